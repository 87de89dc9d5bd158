"""The inputs that are read in chunks, and the sources for arrays on disk and for iterables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sobolev.streaming.chunks import Chunk, LocalSource, Source, default_rows, make_chunk
from sobolev.validation import take_rows

# The folder in which joblib hands arrays to its processes; these fit in memory.
JOBLIB_FOLDER = "joblib_memmapping_folder"


def open_source(X: Any, y: Any, sample_weight: Any, chunk_rows: int | None) -> Source | None:
    """The source of the rows of X, or None for data in memory.

    Parameters
    ----------
    X : path, pattern, numpy.memmap, pyarrow dataset, dask collection, or chunks
        Chunks are a list of (X, y) or (X, y, weight), an object that can be iterated more than
        once, or a function that returns a new iterator each time.
    y, sample_weight
        Names of columns for tables; arrays for arrays; None for chunks.
    chunk_rows : int or None
        Number of rows in memory at a time; None for as many as take 32 MiB.
    """
    if isinstance(X, (str, os.PathLike)):
        from sobolev.streaming.files import TableSource

        return TableSource(X, y, sample_weight, chunk_rows)
    library = type(X).__module__.split(".")[0]
    if library in ("dask", "dask_expr"):
        from sobolev.streaming.cluster import DaskSource

        return DaskSource(X, y, sample_weight)
    if library == "pyarrow" and hasattr(X, "to_batches") and hasattr(X, "schema"):
        from sobolev.streaming.files import DatasetSource

        return DatasetSource(X, y, sample_weight, chunk_rows)
    if is_on_disk(X):
        return ArraySource(X, y, sample_weight, chunk_rows)
    if _are_chunks(X, y):
        if sample_weight is not None:
            raise ValueError("give the weights with the chunks, as (X, y, weight).")
        return IterableSource(X)
    return None


def is_on_disk(X: Any) -> bool:
    """Whether X is a matrix in a file, not one that joblib shares between its processes."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or getattr(X, "_mmap", None) is None:
        return False
    return JOBLIB_FOLDER not in str(X.filename or "")


def _are_chunks(X: Any, y: Any) -> bool:
    if y is not None:
        return False
    if isinstance(X, (list, tuple)):
        return bool(X) and all(isinstance(c, tuple) and len(c) in (2, 3) for c in X)
    if callable(X):
        return True
    array = hasattr(X, "__array__") or hasattr(X, "columns") or hasattr(X, "shape")
    return isinstance(X, Iterable) and not array


class ArraySource(LocalSource):
    """A matrix on disk beside a response and weights that are arrays.

    Parameters
    ----------
    X : numpy.memmap of shape (n, d)
    y, weight : array-like with n rows, or None for the weight
    chunk_rows : int or None
    """

    def __init__(self, X: Any, y: Any, weight: Any, chunk_rows: int | None) -> None:
        if y is None:
            raise ValueError("y is None; give the response, an array with one row for each of X.")
        self.X, self.y, self.weight = X, y, weight
        n, d = X.shape
        for name, other in (("y", y), ("sample_weight", weight)):
            if other is not None and len(other) != n:
                raise ValueError(f"X has {n} rows but {name} has {len(other)}.")
        self.step = default_rows(d) if chunk_rows is None else chunk_rows
        self.n_rows = n if weight is None else None

    def chunks(self) -> Iterator[Chunk]:
        """Chunks of ``chunk_rows`` rows."""
        for number, start in enumerate(range(0, self.X.shape[0], self.step)):
            rows = slice(start, start + self.step)
            y = take_rows(self.y, rows)
            weight = None if self.weight is None else np.asarray(self.weight[rows])
            X = np.array(self.X[rows], dtype=np.float64)  # read now, not when it is used
            yield make_chunk(X, y, weight, number=number, detail=f" (from row {start})")


class IterableSource(LocalSource):
    """Chunks that the user makes: (X, y) or (X, y, weight).

    Parameters
    ----------
    make : iterable or callable
        A list, an object that can be iterated more than once, or a function that returns an
        iterator.
    """

    def __init__(self, make: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if isinstance(make, Iterator):
            raise ValueError(
                "X is an iterator that can be read only once, but a fit reads the chunks several "
                "times. Pass a list, or a function that returns a new iterator (the generator "
                "function itself, not its result), or call partial_fit for each chunk."
            )
        self.make = make

    def chunks(self) -> Iterator[Chunk]:
        """The chunks, with the columns of the first; empty chunks are skipped."""
        names, d = None, None
        chunks = self.make() if callable(self.make) else self.make
        for number, parts in enumerate(chunks):
            if not isinstance(parts, tuple) or len(parts) not in (2, 3):
                raise TypeError(f"chunk {number} is not a tuple (X, y) or (X, y, weight).")
            X, y, weight = (*parts, None) if len(parts) == 2 else parts
            chunk = make_chunk(X, y, weight, names=names, d=d, number=number)
            if d is None:
                names, d = chunk.names, chunk.X.shape[1]
            if chunk.X.shape[0]:
                yield chunk
