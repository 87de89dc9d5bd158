"""The first pass: means and scales of columns, the distribution of y, a sample of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from types import SimpleNamespace

import numpy as np
from sklearn.utils import gen_batches

from sobolev._standardize import Standardizer
from sobolev._typing import Array
from sobolev.streaming.chunks import Chunk
from sobolev.streaming.response import ResponseMoments
from sobolev.validation import reject_extreme, reject_non_finite

# Number of rows whose deviations are computed at once, so that they stay in the cache.
BLOCK_ROWS = 4096


@dataclass(frozen=True)
class ColumnMoments:
    """Weight, mean, sum of squared deviations and range of each column."""

    weight: float
    mean: Array
    squares: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array, weight: Array) -> ColumnMoments:
        """The moments of the rows of a chunk."""
        blocks = gen_batches(X.shape[0], BLOCK_ROWS)
        return reduce(cls.merge, (cls._of_block(X[rows], weight[rows]) for rows in blocks))

    @classmethod
    def _of_block(cls, X: Array, weight: Array) -> ColumnMoments:
        total = float(weight.sum())
        mean = weight @ X / total
        deviation = X - mean
        deviation *= deviation
        return cls(total, mean, weight @ deviation, X.min(axis=0), X.max(axis=0))

    def merge(self, other: ColumnMoments) -> ColumnMoments:
        """The moments of both sets of rows."""
        weight = self.weight + other.weight
        step = other.mean - self.mean
        share = other.weight / weight
        return ColumnMoments(
            weight,
            self.mean + share * step,
            self.squares + other.squares + self.weight * share * step**2,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def standardizer(self) -> Standardizer:
        """The units of the columns, the same as from all rows at once."""
        scale = np.sqrt(self.squares / self.weight)
        noise = 8 * np.finfo(float).eps * np.maximum(np.abs(self.low), np.abs(self.high))
        varying = (self.high > self.low) & (scale > noise)
        return Standardizer(self.mean, np.where(varying, scale, 1.0), varying)


Rows = dict[int, list[Chunk]]


@dataclass(frozen=True)
class Summary:
    """Result of the first pass.

    Attributes
    ----------
    counts : mapping
        Number of rows of positive weight in each chunk.
    names : tuple or None
        Names of the columns.
    columns, response : ColumnMoments, ResponseMoments
        Moments of the columns and of the response.
    rows : mapping
        For each step the rows 0, step, 2 step and so on, in pieces.
    """

    counts: Mapping[int, int]
    names: tuple[str, ...] | None
    columns: ColumnMoments
    response: ResponseMoments
    rows: Rows

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class Gather:
    """A pass that collects every step-th row, for several steps."""

    steps: tuple[int, ...]

    def look(self, chunk: Chunk, start: int) -> Rows:
        """The rows of a chunk whose position is a multiple of a step."""
        found: Rows = {}
        for step in self.steps:
            index = np.arange(-start % step, chunk.X.shape[0], step)
            found[step] = [chunk.rows(index)] if index.size else []
        return found

    def merge(self, first: Rows, second: Rows) -> Rows:
        """The rows of both chunks, in order."""
        return {step: first[step] + second[step] for step in self.steps}


@dataclass(frozen=True)
class Summarise:
    """The first pass; it also collects rows if their steps are known already."""

    target_type: str
    steps: tuple[int, ...] = ()

    def look(self, chunk: Chunk, start: int) -> Summary:
        """Check a chunk for NaN and compute its sums."""
        try:
            table = SimpleNamespace(columns=chunk.names)
            reject_non_finite(chunk.X, table)
            reject_extreme(chunk.X, table, small=False)
            response = ResponseMoments.of(chunk.y, chunk.weight, self.target_type)
        except ValueError as error:
            raise ValueError(f"{chunk.where}: {error}") from error
        return Summary(
            {chunk.number: chunk.X.shape[0]},
            chunk.names,
            ColumnMoments.of(chunk.X, chunk.weight),
            response,
            Gather(self.steps).look(chunk, start),
        )

    def merge(self, first: Summary, second: Summary) -> Summary:
        """The summary of both stretches of rows."""
        return Summary(
            {**first.counts, **second.counts},
            first.names,
            first.columns.merge(second.columns),
            first.response.merge(second.response),
            Gather(self.steps).merge(first.rows, second.rows),
        )
