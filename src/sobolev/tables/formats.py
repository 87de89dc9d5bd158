"""File formats of tables, recognised by the file name, and how to open them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

# Delimiter of each suffix; None is detected from the first lines.
TEXT: dict[str, str | None] = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None, ".dat": None}
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow")
KNOWN = (*TEXT, *PARQUET, *FEATHER)
SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
# Errors of PyArrow in the face of a schema that makes no sense.
DAMAGED_SCHEMA = (AttributeError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError)
DAMAGED = (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


def suffixes(path: Path) -> tuple[str, str]:
    """The format of a table and its compression ("" if none), such as ".csv" and ".gz".

    Examples
    --------
    >>> from pathlib import Path
    >>> from sobolev.tables.formats import suffixes
    >>> suffixes(Path("my.data.TSV.gz"))
    ('.tsv', '.gz')
    """
    kinds = [suffix.lower() for suffix in path.suffixes]
    packed = kinds.pop() if kinds and kinds[-1] in (*_OPENERS, ".zst") else ""
    kind = kinds[-1] if kinds else ""
    if kind in SHEETS:
        raise ValueError(
            f"{path.name!r} is a spreadsheet; save the sheet as CSV first (in the spreadsheet "
            "program: Save As, CSV UTF-8)."
        )
    if kind not in KNOWN:
        raise ValueError(
            f"{path.name!r} is not a known file type; use one that ends in .csv, .tsv, .txt, "
            ".parquet or .feather, optionally followed by .gz, .bz2, .xz, .zip or .zst."
        )
    return kind, packed


def check_file(path: Path) -> None:
    """Raise an error unless the path is a file that is not empty."""
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; pass the path of a file.")
    if not path.exists():
        raise ValueError(f"there is no file {str(path)!r}{_similar(path)}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path.name!r} is empty.")


def _similar(path: Path) -> str:
    try:
        near = get_close_matches(path.name, [p.name for p in path.parent.iterdir()], n=1)
    except OSError:
        near = []
    return f"; did you mean {near[0]!r}?" if near else "; check the name and the folder"


@contextmanager
def open_table(path: Path, packed: str) -> Iterator[BinaryIO]:
    """The decompressed bytes of a table; a damaged archive raises an error."""
    try:
        with open(path, "rb") as raw, _OPENERS.get(packed, _OPENERS[""])(raw) as stream:
            yield stream
    except (*DAMAGED, OSError) as error:
        # gzip and bz2 raise an OSError without a number; others come from the file system.
        if isinstance(error, OSError) and (not packed or error.errno is not None):
            raise
        raise ValueError(
            f"{path.name!r} is damaged or not a {packed} file ({first_line(error)}); create or "
            "download it again."
        ) from error


@contextmanager
def arrow_file(path: Path, kind: str) -> Iterator[None]:
    """Raise an error that names the file if PyArrow cannot read it."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, OverflowError, *DAMAGED_SCHEMA) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{path.name!r} cannot be read as {kind[1:]}; it is cut short or of another kind "
            f"({first_line(error)})."
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error message; the name of the error if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def _only_member(raw: Any) -> Iterator[Any]:
    with zipfile.ZipFile(raw) as archive:
        inside = [n for n in archive.namelist() if not n.endswith("/") and "__MACOSX" not in n]
        if len(inside) != 1:
            raise ValueError(
                f"the .zip file holds {len(inside)} files; it must hold one. Unpack it first."
            )
        try:
            stream = archive.open(inside[0])
        except (OSError, RuntimeError) as error:  # a wrong place or header, a password
            raise zipfile.BadZipFile(str(error)) from error
        with stream:
            yield stream


@contextmanager
def _zstandard(raw: Any) -> Iterator[Any]:
    try:
        import zstandard
    except ImportError as error:
        raise ImportError("reading .zst files needs zstandard: pip install zstandard") from error
    try:
        with zstandard.ZstdDecompressor().stream_reader(raw) as stream:
            yield io.BufferedReader(stream)
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error


_OPENERS: dict[str, Callable[[Any], Any]] = {
    "": nullcontext,
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zip": _only_member,
    ".zst": _zstandard,
}
