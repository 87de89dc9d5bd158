"""Tables on disk in chunks: Parquet, Feather, CSV and other text, PyArrow datasets."""

from __future__ import annotations

import glob
import io
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sobolev._typing import Array
from sobolev.streaming.chunks import Chunk, LocalSource, default_rows, make_chunk, other_columns
from sobolev.tables.formats import (
    KNOWN,
    PARQUET,
    TEXT,
    arrow_file,
    check_file,
    open_table,
    suffixes,
)
from sobolev.tables.names import hint
from sobolev.tables.text import EXACT_NUMBERS, MARKS, SAMPLE, explaining, refuse_duplicates, sniff
from sobolev.validation import not_numbers

# Name that pandas gives to row labels without a name in a file; they are not a feature.
ROW_NUMBERS = re.compile(r"__index_level_\d+__")


class NamedSource(LocalSource):
    """A table whose responses and weights are columns, given by name.

    Parameters
    ----------
    target : str or sequence of str
    weight : str or None
    chunk_rows : int or None
    """

    def __init__(self, target: Any, weight: Any, chunk_rows: int | None) -> None:
        self.single = isinstance(target, str)
        self.targets = [target] if self.single else list(() if target is None else target)
        if not self.targets or not all(isinstance(name, str) for name in self.targets):
            raise ValueError(
                "y must name the column of the response (or a list of names) when X is a table "
                f"on disk; got {target!r}."
            )
        if weight is not None and not isinstance(weight, str):
            raise ValueError(
                "sample_weight must name a column when X is a table on disk; "
                f"got {type(weight).__name__}."
            )
        self.weight, self.chunk_rows = weight, chunk_rows

    @abstractmethod
    def pieces(self) -> Iterator[tuple[Any, str]]:
        """Record batches or DataFrames, each with its name for messages."""

    def split(self, names: Sequence[str]) -> tuple[str, ...]:
        """The features; an error if a response or the weight is not among the columns."""
        asked = [("y", name) for name in self.targets]
        asked += [("sample_weight", self.weight)] if self.weight is not None else []
        for argument, name in asked:
            if name not in names:
                said = f"{argument}: there is no column {name!r}; {hint(name, names)}"
                raise ValueError(said)
        left_out = {*self.targets, self.weight}
        return tuple(n for n in names if n not in left_out and not ROW_NUMBERS.fullmatch(n))

    def rows_of(self, names: Sequence[str]) -> int:
        """Number of rows of a chunk."""
        return default_rows(len(names)) if self.chunk_rows is None else self.chunk_rows

    def chunks(self) -> Iterator[Chunk]:
        """The pieces, split into features, responses and weights."""
        features: tuple[str, ...] | None = None
        for number, (batch, file) in enumerate(self.pieces()):
            is_frame = isinstance(batch, pd.DataFrame)
            piece = batch if is_frame else batch.to_pandas(ignore_metadata=True)
            detail = f" (of {file})"
            try:
                found = self.split(list(piece.columns))
                features = found if features is None else features
                if set(found) != set(features):
                    raise ValueError(other_columns(found, features))
                X = _matrix(piece, features)
            except ValueError as error:
                raise ValueError(f"chunk {number}{detail}: {error}") from error
            if not len(piece):
                continue
            y = {name: piece[name].to_numpy() for name in self.targets}
            response = y[self.targets[0]] if self.single else pd.DataFrame(y)
            weight = None if self.weight is None else piece[self.weight].to_numpy()
            chunk = make_chunk(X, response, weight, number=number, detail=detail)
            yield replace(chunk, names=features)


class TableSource(NamedSource):
    """A file, a folder of files or a pattern such as ``data/*.parquet``.

    Parameters
    ----------
    path : str or path
    target, weight, chunk_rows
        As for :class:`NamedSource`.
    """

    def __init__(self, path: Any, target: Any, weight: Any, chunk_rows: int | None) -> None:
        super().__init__(target, weight, chunk_rows)
        self.files = find_files(path)
        if weight is None and all(suffixes(file)[0] in PARQUET for file in self.files):
            parquet = _pyarrow("parquet")
            self.n_rows = 0
            for file in self.files:
                with arrow_file(file, suffixes(file)[0]):
                    self.n_rows += parquet.read_metadata(file).num_rows

    def pieces(self) -> Iterator[tuple[Any, str]]:
        """The pieces of one file after the other."""
        for file in self.files:
            kind, packed = suffixes(file)
            if kind in TEXT:
                batches: Iterator[Any] = self._text(file, kind, packed)
            else:
                batches = self._arrow(file, kind)
            yield from ((batch, repr(file.name)) for batch in batches)

    def _arrow(self, file: Path, kind: str) -> Iterator[Any]:
        batches = self._parquet(file) if kind in PARQUET else self._feather(file)
        while True:
            with arrow_file(file, kind):
                batch = next(batches, None)
                if batch is None:
                    return
                frame = batch.to_pandas(ignore_metadata=True)
            yield frame

    def _parquet(self, file: Path) -> Iterator[Any]:
        with _pyarrow("parquet").ParquetFile(file) as reader:
            names = list(reader.schema_arrow.names)
            refuse_duplicates(file, names)
            yield from reader.iter_batches(batch_size=self.rows_of(names))

    def _feather(self, file: Path) -> Iterator[Any]:
        dataset = _pyarrow("dataset").dataset(file, format="feather")
        yield from dataset.to_batches(batch_size=self.rows_of(dataset.schema.names))

    def _text(self, file: Path, kind: str, packed: str) -> Iterator[Any]:
        with open_table(file, packed) as stream:
            sample = stream.read(SAMPLE)
        encoding = MARKS.get(sample[:2], "utf-8-sig")
        text = sample.decode(encoding, errors="replace")
        sep = TEXT[kind] or sniff(text, spaces=kind in (".txt", ".dat"))
        with explaining(file), open_table(file, packed) as stream:
            header = text.splitlines()[0] if text else ""
            frames = pd.read_csv(
                io.TextIOWrapper(stream, encoding=encoding, newline=""),
                sep=sep,
                chunksize=self.rows_of(header.split(sep)),
                index_col=False,
                skipinitialspace=True,
                **EXACT_NUMBERS,
            )
            for frame in frames:
                frame.columns = [str(name).strip() for name in frame.columns]
                yield frame


class DatasetSource(NamedSource):
    """A PyArrow dataset: many files, partitions, remote stores, filters.

    Parameters
    ----------
    dataset : pyarrow.dataset.Dataset
    target, weight, chunk_rows
        As for :class:`NamedSource`.
    """

    def __init__(self, dataset: Any, target: Any, weight: Any, chunk_rows: int | None) -> None:
        super().__init__(target, weight, chunk_rows)
        in_memory = not hasattr(dataset, "scanner")  # a table
        self.dataset = _pyarrow("dataset").dataset(dataset) if in_memory else dataset
        if weight is None:
            self.n_rows = int(self.dataset.count_rows())

    def pieces(self) -> Iterator[tuple[Any, str]]:
        """Record batches, with little read-ahead."""
        rows = self.rows_of(self.dataset.schema.names)
        scanner = self.dataset.scanner(
            batch_size=rows, batch_readahead=1, fragment_readahead=1, use_threads=False
        )
        yield from ((batch, "the dataset") for batch in scanner.to_batches())


def find_files(path: Any) -> list[Path]:
    """The files that a path or a pattern stands for, sorted by name."""
    text = os.fspath(path)
    if glob.has_magic(text) and not Path(text).exists():
        files = sorted(Path(found) for found in glob.glob(text, recursive=True))
        if not files:
            raise ValueError(f"no file matches {text!r}; check the folder and the pattern.")
    elif Path(text).is_dir():
        files = sorted(f for f in Path(text).rglob("*") if f.suffix.lower() in KNOWN)
        if not files:
            raise ValueError(f"the folder {text!r} holds no table ({', '.join(KNOWN)}).")
    else:
        files = [Path(text)]
    for file in files:
        check_file(file)
        suffixes(file)
    return files


def _pyarrow(module: str) -> Any:
    try:
        from importlib import import_module

        return import_module(f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError(
            "reading Parquet or Feather files needs pyarrow: pip install 'sobolev[streaming]'"
        ) from error


def _matrix(piece: pd.DataFrame, names: Sequence[str]) -> Array:
    """Columns as floats, each contiguous in memory, as they are on disk."""
    out = np.empty((len(names), len(piece)))
    text = []
    for row, name in zip(out, names, strict=True):
        column = piece[name].to_numpy()
        if column.dtype.kind in "fiub":
            row[:] = column
        elif column.dtype.kind == "O" and all(v is None for v in column):
            row[:] = np.nan
        elif column.dtype.kind == "O" and all(v is None or isinstance(v, bool) for v in column):
            row[:] = [np.nan if v is None else v for v in column]
        else:
            text.append(name)
    if text:
        raise ValueError(not_numbers(text))
    return out.T
