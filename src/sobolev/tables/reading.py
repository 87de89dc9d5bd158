"""Reading of tables from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from sobolev._memory import check_table
from sobolev.tables.formats import PARQUET, TEXT, arrow_file, check_file, open_table, suffixes
from sobolev.tables.text import read_text, refuse_duplicates

# Number of bytes that are read at once from a file that is read as a whole.
PART_BYTES = 1 << 26


def read_table(
    path: str | Path,
    *,
    encoding: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    na: Sequence[str] = (),
    not_na: Sequence[str] = (),
) -> pd.DataFrame:
    """Read CSV, TSV, other delimited text, Parquet or Feather, compressed or not.

    Parameters
    ----------
    path : str or Path
        File to read; its name determines the format.
    encoding : str, optional
        Encoding of a text file; by default UTF-8, or that of the byte order mark.
    sep : str, optional
        Delimiter of a text file; detected by default.
    decimal : str, optional
        Decimal sign in a text file; detected by default.
    na : sequence of str, optional
        Additional codes of missing values, besides the empty field, NA, NaN, null and similar.
    not_na : sequence of str, optional
        Codes of these that are not missing values, such as NA for Namibia.

    Returns
    -------
    DataFrame
        Table with at least one row; the names of the columns are distinct strings.
    """
    path = Path(path)
    check_file(path)
    kind, packed = suffixes(path)
    if kind in TEXT:
        frame = read_text(
            path,
            kind,
            packed,
            encoding=encoding,
            sep=sep,
            decimal=decimal,
            na=na,
            not_na=not_na,
        )
    else:
        frame = _read_arrow(path, kind, packed)
    frame.columns = pd.Index([_name(name) for name in frame.columns], dtype=object)
    refuse_duplicates(path, list(frame.columns))
    if frame.shape[0] == 0:
        raise ValueError(f"{path.name!r} has columns but no rows.")
    return frame


def _content(path: Path, stream: BinaryIO) -> bytes:
    """All bytes of a file, unpacked, unless they exceed the memory."""
    parts: list[bytes] = []
    while part := stream.read(PART_BYTES):
        parts.append(part)
        check_table(path.name, sum(map(len, parts)))
    return b"".join(parts)


def _name(name: Any) -> str:
    parts = name if isinstance(name, tuple) else (name,)
    return " ".join(str(part) for part in parts)


def _read_arrow(path: Path, kind: str, packed: str) -> pd.DataFrame:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError as error:
        raise ImportError(f"reading {kind} files needs pyarrow: pip install pyarrow") from error
    with arrow_file(path, kind), open_table(path, packed) as stream:
        # Not by path: "a=b" in the name of a folder would become a column.
        source = pyarrow.BufferReader(_content(path, stream))
        if kind in PARQUET:
            said = parquet.read_metadata(source)
            check_table(path.name, 8 * said.num_rows * said.num_columns)
            source.seek(0)
        table = (parquet.read_table if kind in PARQUET else feather.read_table)(source)
    refuse_duplicates(path, list(table.column_names))
    with arrow_file(path, kind):
        frame = table.to_pandas()
    if not isinstance(frame.index, pd.RangeIndex) and any(frame.index.names):
        frame = frame.reset_index()
    return frame.reset_index(drop=True)
