"""Text tables: encoding, delimiter, header, and number of fields in every line."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

from sobolev._memory import check_table
from sobolev.tables.formats import TEXT, first_line, open_table
from sobolev.tables.numerals import has_decimal_comma
from sobolev.validation import list_some

DELIMITERS = (",", ";", "\t", "|")
NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
# Byte order marks of encodings that need no guess.
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
SAMPLE = 1 << 16
SAMPLE_LINES = 20
ROW_NAMES = "row names"
# Fields that are missing values. "None" is not among them: it is a category in a column of text,
# and a missing value in a column of numbers.
NA_TEXTS = ("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>")
# pandas before 3.1 reads a third of all numbers with an error in the last place unless told not to.
_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
EXACT_NUMBERS: dict[str, Any] = {"float_precision": "round_trip"} if _PANDAS < (3, 1) else {}
SHEET_ERRORS = ("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN")


def read_text(
    path: Path,
    kind: str,
    packed: str,
    *,
    encoding: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    na: Sequence[str] = (),
    not_na: Sequence[str] = (),
) -> pd.DataFrame:
    """Read a text table; a first pass finds errors that pandas would ignore.

    ``attrs`` of the table holds the decimal sign, and the number of fields "NA" in columns of text.
    """
    delimiter = TEXT[kind] if sep is None else NAMED.get(sep.lower(), sep)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n\0"'):
        raise ValueError(f"--sep {sep!r} must be one character, tab, comma, semicolon or space.")
    if decimal is not None and len(decimal) != 1:
        raise ValueError(f"--decimal {decimal!r} must be one character.")
    with explaining(path, encoding):
        spaces = kind in (".txt", ".dat")
        detected, delimiter, names = examine(path, packed, encoding, delimiter, spaces=spaces)
        if decimal == delimiter:
            raise ValueError(
                f"{path.name!r} has {decimal!r} as delimiter between columns; check --decimal."
            )
        missing = [*{*NA_TEXTS, *SHEET_ERRORS} - {*not_na}, *na]
        options: dict[str, Any] = {"sep": delimiter, "names": names, "encoding": detected}
        frame = _load(path, packed, decimal=decimal or ".", na_values=missing, **options)
        if decimal is None and delimiter != "," and any(map(has_decimal_comma, texts_of(frame))):
            decimal = ","
            frame = _load(path, packed, decimal=decimal, na_values=missing, **options)
        holed = [column.name for column in texts_of(frame) if column.isna().any()]
        if "NA" in missing and holed:
            raw = _load(path, packed, na_values=[], usecols=holed, dtype=str, **options)
            frame.attrs["NA"] = {name: int((raw[name] == "NA").sum()) for name in holed}
        frame.attrs["decimal"] = decimal or "."
        return frame


@contextmanager
def explaining(path: Path, encoding: str | None = None) -> Iterator[None]:
    """Raise an error that names the file and the remedy if it cannot be read as text."""
    try:
        yield
    except UnicodeDecodeError as error:
        asked = f"--encoding {encoding}" if encoding else "UTF-8"
        raise ValueError(
            f"{path.name!r} is not {asked} text (byte 0x{error.object[error.start]:02x}); pass "
            "its encoding, such as --encoding latin-1 or --encoding utf-16, or save it as UTF-8."
        ) from error
    except UnicodeError as error:  # utf-16 without its mark
        raise ValueError(f"{path.name!r} is not --encoding {encoding} text ({error}).") from error
    except LookupError as error:
        raise ValueError(
            f"--encoding {encoding!r} is unknown; use utf-8, latin-1, cp1252 or utf-16."
        ) from error
    except (csv.Error, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(
            f"{path.name!r} cannot be split into columns ({first_line(error)}); look for a "
            "quote that is not closed."
        ) from error


def texts_of(frame: pd.DataFrame) -> list[pd.Series]:
    """The columns of text."""
    return [frame[name] for name in frame.select_dtypes(include=["object", "string"])]


def _load(path: Path, packed: str, *, encoding: str, **options: Any) -> pd.DataFrame:
    with open_table(path, packed) as stream:
        return pd.read_csv(
            io.TextIOWrapper(stream, encoding=encoding, newline=""),
            header=0,
            index_col=False,
            keep_default_na=False,
            skipinitialspace=True,
            low_memory=False,
            **EXACT_NUMBERS,
            **options,
        )


def examine(
    path: Path, packed: str, encoding: str | None, delimiter: str | None, *, spaces: bool = False
) -> tuple[str, str, list[str]]:
    """Detect encoding, delimiter and names of all columns.

    Every line must have as many fields as the header, which may leave out the row names.
    """
    with open_table(path, packed) as stream:
        sample = stream.read(SAMPLE)
        encoding = encoding or MARKS.get(sample[:2], "utf-8-sig")
        if "16" not in encoding and b"\0" in sample:
            raise ValueError(f"{path.name!r} is not text; check the file.")
        if delimiter is None:
            delimiter = sniff(sample.decode(encoding, errors="replace"), spaces=spaces)
    with open_table(path, packed) as stream:
        text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        rows = _rows(text, delimiter)
        header = next(rows, None)
        if header is None:
            raise ValueError(f"{path.name!r} is empty.")
        names = [name.strip() for name in header[1]]
        refuse_duplicates(path, names)
        names = _check_rows(path, names, rows)
        check_table(path.name, stream.tell())
        return encoding, delimiter, names


def sniff(sample: str, *, spaces: bool = False) -> str:
    r"""Detect the delimiter: the one that gives the first lines the same number of fields.

    Examples
    --------
    >>> from sobolev.tables.text import sniff
    >>> sniff("a;b\n1,5;2,5\n")
    ';'
    """
    lines = [line for line in sample.splitlines()[: SAMPLE_LINES + 1] if line.strip()]
    if len(lines) > 2 and len(sample) >= SAMPLE // 2:
        lines = lines[:-1]  # it may be incomplete

    def score(delimiter: str) -> tuple[float, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=delimiter) if row]
        if not counts or counts[0] < 2:
            return 0.0, 0
        even = [count in (counts[0], counts[0] + 1) for count in counts]
        return sum(even) / len(even), counts[0]

    best = max(DELIMITERS, key=score)  # ties: the first one
    if score(best)[1] >= 2:
        return best
    return " " if spaces and score(" ")[1] >= 2 else ","


def _rows(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, with line numbers."""
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
    return ((reader.line_num, row) for row in reader if row and (len(row) > 1 or row[0].strip()))


def refuse_duplicates(path: Path, names: list[Any]) -> None:
    """Raise an error if several columns have the same name."""
    twice = [name for name, count in Counter(names).items() if count > 1 and name != ""]
    if twice:
        shown = list_some([repr(name) for name in twice])
        raise ValueError(f"{path.name!r} has several columns named {shown}; rename them.")


def _check_rows(path: Path, names: list[str], rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    """Names of all columns; one is added if the header has none for the row names."""
    width, count = len(names), 0
    for count, (line, row) in enumerate(rows, start=1):
        if count == 1 and len(row) == width + 1 and row[-1] != "":
            width += 1
            names = [ROW_NAMES, *names]
        if len(row) != width:
            raise ValueError(
                f"line {line} of {path.name!r} has {len(row)} fields, but the "
                f"{'header' if width == len(names) else 'line before'} has {width}; fix that "
                "line, or pass the delimiter with --sep."
            )
    if count == 0:
        raise ValueError(f"{path.name!r} has a header but no rows.")
    named = [name or f"column {j + 1}" for j, name in enumerate(names)]
    refuse_duplicates(path, named)
    return named
