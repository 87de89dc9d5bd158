"""Dask arrays and dataframes: passes run on the workers and are merged in a tree."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from itertools import accumulate
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

from sobolev.streaming.chunks import Pass, Source, State, make_chunk
from sobolev.tables.names import hint

# Number of results that one task of the tree merges.
FAN_IN = 8


class DaskSource(Source):
    """A Dask array or dataframe, with a response and weights in the same chunks.

    Parameters
    ----------
    X : dask array of shape (n, d) or dask dataframe
    y : dask array or series or dataframe, or names of columns of the dataframe X
    weight : the same, for the weights, or None
    """

    def __init__(self, X: Any, y: Any, weight: Any) -> None:
        if y is None:
            raise ValueError("y is None; give a dask array, or the name of a column of X.")
        self.frame = hasattr(X, "npartitions") and hasattr(X, "columns")
        self.targets, self.weight_name = None, None
        self.names = tuple(X.columns) if self.frame else None
        if self.frame and _is_name(y):
            self.targets = y if isinstance(y, str) else list(y)
            self._check_names([y] if isinstance(y, str) else list(y), "y")
        if isinstance(weight, str):
            self.weight_name = weight
            self._check_names([weight], "sample_weight")
        X = X if self.frame else _whole_rows(X)
        self.blocks = _blocks(X)
        self.lengths = _lengths(X) if weight is None else None
        self.n_rows = None if self.lengths is None else sum(self.lengths)
        self.y = None if self.targets is not None else self._aligned(X, y, "y")
        named = weight is None or self.weight_name is not None
        self.weight = None if named else self._aligned(X, weight, "sample_weight")

    def _check_names(self, asked: list[str], argument: str) -> None:
        for name in asked:
            if self.names is None or name not in self.names:
                said = "X has no names." if self.names is None else hint(name, self.names)
                raise ValueError(f"{argument}: there is no column {name!r}; {said}")

    def _aligned(self, X: Any, other: Any, name: str) -> list[Any]:
        """The blocks of a collection with the rows of X."""
        if not hasattr(other, "to_delayed"):
            raise TypeError(
                f"{name} must be a dask collection with the chunks of X, or a column's name; got "
                f"{type(other).__name__}. Turn it into one with dask.array.from_array."
            )
        mine = getattr(X, "chunks", (None,))[0] if not self.frame else None
        chunks = getattr(other, "chunks", None)
        if chunks is not None and mine is not None and chunks[0] != mine:
            if sum(chunks[0]) != sum(mine):  # unknown lengths compare as unequal
                raise ValueError(f"X and {name} differ in their numbers of rows, or in chunks.")
            other = other.rechunk({0: mine})
        other = other if not hasattr(other, "chunks") or other.ndim == 1 else _whole_rows(other)
        blocks = _blocks(other)
        if len(blocks) != len(self.blocks):
            raise ValueError(
                f"X has {len(self.blocks)} chunks but {name} has {len(blocks)}; repartition them "
                "alike."
            )
        return blocks

    def learn(self, counts: Mapping[int, int]) -> None:
        """Store the number of rows of each chunk."""
        self.lengths = [counts.get(i, 0) for i in range(len(self.blocks))]
        self.n_rows = sum(self.lengths)

    def run(self, task: Pass[State], n_jobs: int = 1) -> State:
        """One task for each chunk, then a tree of merges; only its root is fetched."""
        from dask.delayed import delayed

        shared = delayed(task, traverse=False)
        starts = (
            [0] * len(self.blocks) if self.lengths is None else [0, *accumulate(self.lengths[:-1])]
        )
        look = delayed(_look, pure=False)
        parts = [
            look(
                shared,
                block,
                None if self.y is None else self.y[i],
                None if self.weight is None else self.weight[i],
                (self.names, self.targets, self.weight_name),
                i,
                starts[i],
            )
            for i, block in enumerate(self.blocks)
        ]
        merge = delayed(_merge, pure=False)
        while len(parts) > 1:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [merge(shared, group) for group in groups]
        state = parts[0].compute()
        if state is None:
            raise ValueError("there are no rows: every chunk of X is empty.")
        return state


def _is_name(y: Any) -> bool:
    return isinstance(y, str) or (
        isinstance(y, (list, tuple)) and all(isinstance(name, str) for name in y)
    )


def _whole_rows(X: Any) -> Any:
    """An array whose chunks hold whole rows."""
    return X if len(X.chunks[1]) == 1 else X.rechunk({1: -1})


def _blocks(X: Any) -> list[Any]:
    delayed = X.to_delayed()
    return list(delayed.ravel()) if hasattr(delayed, "ravel") else list(delayed)


def _lengths(X: Any) -> list[int] | None:
    """Number of rows of each chunk, if Dask knows it."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or any(n != n for n in chunks[0]):
        return None
    return [int(n) for n in chunks[0]]


def _look(
    task: Any, block: Any, y: Any, weight: Any, columns: tuple[Any, Any, Any], i: int, start: int
) -> Any:
    """On a worker: the state of a chunk; None if it is empty."""
    names, targets, weight_name = columns
    if targets is not None or weight_name is not None:
        y = block[targets] if targets is not None else y
        weight = block[weight_name] if weight_name is not None else weight
        out = {weight_name, *([targets] if isinstance(targets, str) else targets or [])}
        names = tuple(name for name in names if name not in out)
        block = block[list(names)]
    if isinstance(y, pd.Series):
        y = y.to_numpy()
    chunk = make_chunk(block, y, weight, names=names, number=i)
    if not chunk.X.shape[0]:
        return None
    with threadpool_limits(1):
        return task.look(chunk, start)


def _merge(task: Any, parts: list[Any]) -> Any:
    """On a worker: neighbouring states merged, in order."""
    found = [part for part in parts if part is not None]
    return reduce(task.merge, found) if found else None
