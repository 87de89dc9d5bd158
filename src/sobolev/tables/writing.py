"""Writing of tables to files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from sobolev._files import write_atomic
from sobolev.tables.formats import PARQUET, TEXT, first_line, suffixes

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


def without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    r"""A table whose texts no spreadsheet takes for a formula.

    A text that begins with =, +, -, @, a tab or a carriage return, after any number of apostrophes,
    gets one more apostrophe. :func:`with_formulas` takes it away again.

    Parameters
    ----------
    frame : DataFrame

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.tables.writing import with_formulas, without_formulas
    >>> guarded = without_formulas(pd.DataFrame({"feature": ["=1+1", "dose"], "W": [-1.0, 2.0]}))
    >>> guarded["feature"].tolist(), guarded["W"].tolist()
    (["'=1+1", 'dose'], [-1.0, 2.0])
    >>> with_formulas(guarded)["feature"].tolist()
    ['=1+1', 'dose']
    """
    return _replaced(frame, r"^('*[=+\-@\t\r])", r"'\1")


def with_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """The table that :func:`without_formulas` was given."""
    return _replaced(frame, r"^'('*[=+\-@\t\r])", r"\1")


def _replaced(frame: pd.DataFrame, pattern: str, by: str) -> pd.DataFrame:
    texts = frame.select_dtypes(include=["object", "string"])
    found = {
        name: [re.sub(pattern, by, v) if isinstance(v, str) else v for v in column]
        for name, column in texts.items()
    }
    return frame.assign(**found)


def _arrow_bytes(frame: pd.DataFrame, kind: str) -> bytes:
    buffer = io.BytesIO()
    try:
        if kind in PARQUET:
            frame.to_parquet(buffer, engine="pyarrow", index=False)
        else:
            frame.to_feather(buffer)
    except ImportError as error:
        raise ImportError(f"writing {kind} files needs pyarrow: pip install pyarrow") from error
    except (NotImplementedError, OverflowError, ValueError, TypeError) as error:
        raise ValueError(
            f"the table cannot be written as {kind[1:]} ({first_line(error)}); convert the column, "
            "or write CSV."
        ) from error
    return buffer.getvalue()
