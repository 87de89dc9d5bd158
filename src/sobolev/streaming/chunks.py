"""Chunks of rows, checked as they arrive, and passes over all chunks of a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from sobolev._typing import Array
from sobolev.validation import list_some, plain_target, reject_text_columns, take_rows

# Default number of rows of a chunk: as many as take this memory, within bounds.
CHUNK_BYTES = 32 * 2**20
LEAST_ROWS, MOST_ROWS = 4096, 262_144

State = TypeVar("State")


@dataclass(frozen=True)
class Chunk:
    """Some rows of positive weight.

    Attributes
    ----------
    X : array of shape (n, d)
    y : array or DataFrame
        The response as the user has it.
    weight : array of shape (n,)
    where : str
        Name of the chunk in messages.
    names : tuple or None
        Names of the columns.
    number : int
        Its place among the chunks.
    """

    X: Array
    y: Any
    weight: Array
    where: str
    names: tuple[Any, ...] | None
    number: int = 0

    def rows(self, index: Any) -> Chunk:
        """Some of the rows, copied."""
        X, y = np.array(self.X[index]), take_rows(self.y, index).copy()
        return replace(self, X=X, y=y, weight=self.weight[index].copy())


class Pass(Protocol[State]):
    """A computation on every chunk: a state for each, and a way to merge two states, in order."""

    def look(self, chunk: Chunk, start: int) -> State:
        """The state of a chunk; ``start`` is the position of its first row among all rows."""

    def merge(self, first: State, second: State) -> State:
        """The state of two neighbouring stretches of rows."""


class Source(ABC):
    """Rows that can be read several times, in the same order.

    Attributes
    ----------
    n_rows : int or None
        Number of rows, if it is known before they are read.
    """

    n_rows: int | None = None

    def learn(self, counts: Mapping[int, int]) -> None:
        """Store the number of rows of each chunk, found by a first pass."""
        self.n_rows = sum(counts.values())

    @abstractmethod
    def run(self, task: Pass[State], n_jobs: int = 1) -> State:
        """Run a pass; the result does not depend on ``n_jobs``."""


class LocalSource(Source):
    """Chunks that are read in this process; one is read while others are processed."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """All chunks, from the first."""

    def run(self, task: Pass[State], n_jobs: int = 1) -> State:
        """Read in this thread and process in ``n_jobs`` others, each with one BLAS thread."""
        state: State | None = None
        waiting: deque[Future[State]] = deque()

        def absorb() -> None:
            nonlocal state
            found = waiting.popleft().result()
            state = found if state is None else task.merge(state, found)

        start = 0
        with threadpool_limits(1), ThreadPoolExecutor(n_jobs) as pool:
            try:
                for chunk in self.chunks():
                    if not chunk.X.shape[0]:  # every row has weight zero
                        continue
                    if len(waiting) >= n_jobs:  # the one at work and the one just read
                        absorb()
                    waiting.append(pool.submit(task.look, chunk, start))
                    start += chunk.X.shape[0]
                    del chunk
                while waiting:
                    absorb()
            finally:
                for future in waiting:
                    future.cancel()
        if state is None:
            raise ValueError("there are no rows: every chunk is empty; check the path or function.")
        return state


def default_rows(d: int) -> int:
    """Default number of rows of a chunk of d columns."""
    return int(np.clip(CHUNK_BYTES // (8 * max(1, d)), LEAST_ROWS, MOST_ROWS))


def make_chunk(
    X: Any,
    y: Any,
    weight: Any = None,
    *,
    names: Sequence[Any] | None = None,
    d: int | None = None,
    number: int = 0,
    detail: str = "",
) -> Chunk:
    """Check a chunk; messages say which one it is.

    Parameters
    ----------
    X, y : array-like or DataFrame
    weight : array-like or None
    names, d
        Names and number of columns of the chunks before; None for the first.
    number : int
        Its place among the chunks.
    detail : str
        Further description of the chunk for messages.
    """
    where = f"chunk {number}{detail}"
    try:
        return replace(_checked(X, y, weight, names, d, where), number=number)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


def _checked(
    X: Any, y: Any, weight: Any, names: Sequence[Any] | None, d: int | None, where: str
) -> Chunk:
    if sp.issparse(X):
        raise TypeError("sparse X is not supported; pass X.toarray().")
    found = None
    if hasattr(X, "columns"):
        X, found = _in_order(X, names)
        reject_text_columns(X)
    try:
        rows: Array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("X holds text, not numbers; encode or drop these columns.") from None
    if rows.ndim != 2:
        raise ValueError(f"X must have rows and columns; it has {rows.ndim} dimensions.")
    if d is not None and rows.shape[1] != d:
        raise ValueError(f"X has {rows.shape[1]} columns, but the chunks before have {d}.")
    y = plain_target(y)
    if len(y) != rows.shape[0]:
        raise ValueError(f"X has {rows.shape[0]} rows but y has {len(y)}.")
    chunk = Chunk(rows, y, check_weights(weight, rows.shape[0]), where, found)
    return chunk if chunk.weight.all() else chunk.rows(np.flatnonzero(chunk.weight))


def _in_order(X: Any, names: Sequence[Any] | None) -> tuple[Any, tuple[Any, ...]]:
    """The columns in the order of the first chunk."""
    found = tuple(X.columns)
    if names is None or found == tuple(names):
        return X, found
    if set(found) != set(names):
        raise ValueError(other_columns(found, names))
    return X[list(names)], tuple(names)


def other_columns(found: Sequence[Any], names: Sequence[Any]) -> str:
    """A message for columns that are not those of the first chunk."""
    missing = [repr(name) for name in names if name not in found]
    unknown = [repr(name) for name in found if name not in names]
    said = [f"it lacks {list_some(missing)}"] if missing else []
    said += [f"it also has {list_some(unknown)}"] if unknown else []
    return f"the columns differ from those of the first chunk: {'; '.join(said)}."


def check_weights(weight: Any, n: int) -> Array:
    """Weights as floats, one for each row, none negative; ones if there are none."""
    if weight is None:
        return np.ones(n)
    found = np.asarray(weight, dtype=np.float64).ravel()
    if found.size != n:
        raise ValueError(f"there are {found.size} weights for {n} rows.")
    if not np.all(np.isfinite(found)) or (found < 0).any():
        raise ValueError("weights must be finite and not negative.")
    return found
