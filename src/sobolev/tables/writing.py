"""Writing of tables to files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from sobolev._files import write_atomic
from sobolev.tables.formats import PARQUET, TEXT, suffixes

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write CSV, TSV, Parquet or Feather, optionally compressed by gzip, bzip2 or xz.

    Parameters
    ----------
    frame : DataFrame
        Table to write; its index is not written.
    path : str or Path
        File to write; its suffix determines the format.

    Returns
    -------
    Path
        The written file.
    """
    path = Path(path)
    kind, packed = suffixes(path)
    if packed not in PACKERS:
        raise ValueError(
            f"{path.name!r}: tables can be compressed as .gz, .bz2 or .xz, not {packed}."
        )
    if kind in TEXT:
        content = frame.to_csv(index=False, sep=TEXT[kind] or ",").encode()
    else:
        content = _arrow_bytes(frame, kind)
    return write_atomic(path, PACKERS[packed](content))


def _arrow_bytes(frame: pd.DataFrame, kind: str) -> bytes:
    buffer = io.BytesIO()
    try:
        if kind in PARQUET:
            frame.to_parquet(buffer, engine="pyarrow", index=False)
        else:
            frame.to_feather(buffer)
    except ImportError as error:
        raise ImportError(f"writing {kind} files needs pyarrow: pip install pyarrow") from error
    return buffer.getvalue()
