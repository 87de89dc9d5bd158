"""Rows that do not fit in memory, as convex SIC sees them: a sample of rows, and sums over all.

A fit reads its source once for means, scales, the distribution of the response and a sample of
rows, and once for the moments of each round. Everything else works on sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs, parallel_config

from sobolev._sample import Folds, Sample
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index
from sobolev.convex.choosing import AUTO_FOURIER_ROWS
from sobolev.convex.feature_maps import (
    MEDIAN_ROWS,
    SPACING_ROWS,
    BoundFourierMap,
    BoundMap,
    FourierMap,
    LinearMap,
    MapSpec,
    median_squared_distance,
    spaced_metric,
)
from sobolev.convex.moments import FourierMoments
from sobolev.convex.quadratics import QuadraticForms
from sobolev.convex.rows import Rows
from sobolev.streaming.chunks import Chunk, Source
from sobolev.streaming.summary import Gather, Summarise, Summary
from sobolev.targets import TargetEncoder

# Number of rows whose features are computed at once, so that they stay in the cache.
BLOCK_ROWS = 2048
# Relative tolerance for the total weight of the rows in later passes.
SAME_WEIGHT = 1e-9


@dataclass(frozen=True)
class MomentPass:
    """A pass that sums the moments of a bound map, for each fold."""

    bound: BoundFourierMap
    standardizer: Standardizer
    encoder: TargetEncoder
    folds: int

    def look(self, chunk: Chunk, start: int) -> list[FourierMoments]:
        """The moments of a chunk."""
        X = self.standardizer.transform(chunk.X)
        psi = self.encoder.transform(chunk.y)
        return fold_moments(self.bound, X, psi, chunk.weight, self.folds, start)

    def merge(
        self, first: list[FourierMoments], second: list[FourierMoments]
    ) -> list[FourierMoments]:
        """Add the moments fold by fold."""
        return [a.merge(b) for a, b in zip(first, second, strict=True)]


def fold_moments(
    bound: BoundFourierMap, X: Array, psi: Array, weight: Array, folds: int, start: int
) -> list[FourierMoments]:
    """The moments of rows whose first has the position ``start``, one for each fold."""
    parts = [FourierMoments.empty(bound, psi.shape[1]) for _ in range(folds)]
    if folds == 1:
        return [parts[0].update(X, psi, weight, rows=BLOCK_ROWS)]
    for part, rows in zip(parts, fold_rows(start, X.shape[0], folds), strict=True):
        part.update(X[rows], psi[rows], weight[rows], rows=BLOCK_ROWS)
    return parts


def fold_rows(start: int, n: int, folds: int) -> list[Index]:
    """The rows of each fold, among n rows whose first has the position ``start``.

    The fold of a row is a hash of its position (the finaliser of splitmix64). It does not depend on
    how rows are cut into chunks, nor on any period in their order.
    """
    x = np.arange(start + 1, start + 1 + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    fold = (x ^ (x >> np.uint64(31))) % np.uint64(folds)
    return [np.flatnonzero(fold == f) for f in range(folds)]


class Stream:
    """A source and what a fit must know before it reads it for moments.

    It keeps the protocol :class:`~sobolev.convex.rows.Data`.

    Parameters
    ----------
    source : Source
        The rows.
    summary : Summary
        Result of the first pass.
    encoder : TargetEncoder
        Fitted to the response.
    round_rows : int or None
        Number of rows of ``subsample``.
    n_jobs : int
        Number of threads of a pass.

    Attributes
    ----------
    screen : Rows
        Rows for the screen for second-order effects and for the spacing of values.
    subsample : Rows or None
        Rows on which the rounds before the last are run.
    n_passes : int
        How often the source was read for moments.
    """

    def __init__(
        self,
        source: Source,
        summary: Summary,
        encoder: TargetEncoder,
        round_rows: int | None,
        n_jobs: int,
    ) -> None:
        self.source, self.encoder, self.n_jobs = source, encoder, n_jobs
        self.n_rows, self.weight = summary.n_rows, summary.columns.weight
        self.standardizer = summary.columns.standardizer()
        screen, median, rounds = _steps(self.n_rows, round_rows)
        self.screen, self._median = (self._rows(summary.rows[s]) for s in (screen, median))
        self.subsample = None if rounds is None else self._rows(summary.rows[rounds])
        self.n_passes = 0

    def _rows(self, pieces: Sequence[Chunk]) -> Rows:
        X, y, weight = collect(pieces)
        return Rows(self.standardizer.transform(X), self.encoder.transform(y), weight / self.weight)

    def bind(self, spec: MapSpec, metric: Array, seed: int) -> BoundFourierMap:
        """Draw frequencies for the bandwidth that the sample has under a metric."""
        return place(spec, metric, self._median, self.screen, seed)

    def forms(self, bound: BoundMap, measure: str, seed: int) -> QuadraticForms:
        """Quadratic forms under the product measure."""
        assert isinstance(bound, BoundFourierMap)
        return self.moments(bound, 1)[0].forms()

    def split(self, folds: Folds, spec: MapSpec) -> tuple[Stream, Folds]:
        """Folds go by the position of the rows."""
        return self, folds

    def by_moments(self, spec: MapSpec, measure: str) -> bool:
        """Always: the rows are seen through sums only."""
        return True

    def moments(self, bound: BoundFourierMap, folds: Folds) -> list[FourierMoments]:
        """Read all rows once, for the moments of each fold."""
        assert isinstance(folds, int)
        task = MomentPass(bound, self.standardizer, self.encoder, folds)
        parts = self.source.run(task, self.n_jobs)
        self.n_passes += 1
        weight = sum(part.weight for part in parts)
        if abs(weight - self.weight) > SAME_WEIGHT * self.weight:
            raise ValueError(
                f"the rows of a later pass have the weight {weight:g}, those of the first "
                f"{self.weight:g}; every pass must give the same rows in the same order."
            )
        if not all(np.isfinite(part.first).all() for part in parts):
            raise ValueError("a later pass found NaN or infinity; the data have changed.")
        return parts


def place(spec: MapSpec, metric: Array, rows: Sample, screen: Sample, seed: int) -> BoundFourierMap:
    """Draw frequencies for the median distance of some rows and the spacing of values in others."""
    if isinstance(spec, LinearMap):
        return BoundFourierMap(np.empty((0, metric.size)), linear=True)
    assert isinstance(spec, FourierMap)
    median = median_squared_distance(rows.X, metric, rows.p)
    g = spaced_metric(metric / (spec.bandwidth * median), screen.X, screen.p)
    return spec.place(g, np.random.default_rng(seed))


def _steps(n: int, round_rows: int | None) -> tuple[int, int, int | None]:
    """Steps between the rows of the screen, of the median distance and of the first rounds."""
    rounds = None if round_rows is None else -(-n // round_rows)
    return max(1, n // SPACING_ROWS), max(1, -(-n // MEDIAN_ROWS)), rounds


def summarise(
    source: Source, target_type: str, round_rows: int | None, n_jobs: int
) -> tuple[Summary, int]:
    """The first pass, and the number of times that the source was read for it.

    The rows of the sample have regular steps, which depend on the number of rows. If that number is
    not known before (text, weights, chunks of the user), the sample takes a second pass.
    """

    def steps(n: int) -> tuple[int, ...]:
        if n <= AUTO_FOURIER_ROWS:
            return (1,)
        return tuple(sorted({step for step in _steps(n, round_rows) if step is not None}))

    if source.n_rows is not None:
        return source.run(Summarise(target_type, steps(source.n_rows)), n_jobs), 1
    summary = source.run(Summarise(target_type), n_jobs)
    source.learn(summary.counts)
    return replace(summary, rows=source.run(Gather(steps(summary.n_rows)), n_jobs)), 2


def collect(pieces: Sequence[Chunk]) -> tuple[Array, Any, Array]:
    """X, y and weights of all pieces together."""
    X = np.vstack([piece.X for piece in pieces])
    y = [piece.y for piece in pieces]
    together = pd.concat(y, ignore_index=True) if hasattr(y[0], "iloc") else np.concatenate(y)
    return X, together, np.concatenate([piece.weight for piece in pieces])


def chunk_threads(n_jobs: int | None) -> int:
    """Number of threads of a pass; they run in this process with any backend of joblib."""
    with parallel_config(backend="threading"):
        return int(effective_n_jobs(n_jobs))
