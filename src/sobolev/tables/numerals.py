"""Numbers in text columns: separators of thousands, decimal commas, signs and missing marks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pandas as pd

from sobolev.validation import list_some

# If at least this fraction of a text column are numbers, the other values are errors; with a
# smaller fraction, or with few values that are whole numbers, the column holds categories.
MOSTLY = 0.9
FEW_VALUES = 10
# Texts that mean a missing value where all other values are numbers, in lower case.
MISSING_MARKS = frozenset(
    ("", "?", "-", "--", "---", "–", "—", ".", "..", "n/a", "na", "nan", "null", "none", "missing")
)
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_SPACE = " \u00a0\u2009\u202f'\u2019"  # also the narrow and the unbreakable space
_ENGLISH = re.compile(rf"[-+]?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)?(?:\.\d*)?{_EXPONENT}")
_CONTINENTAL = re.compile(rf"[-+]?(?:\d{{1,3}}(?:\.\d{{3}})+|\d+)?(?:,\d*)?{_EXPONENT}")
_SPACED = re.compile(rf"[-+]?\d{{1,3}}(?:[{_SPACE}]\d{{3}})+(?:[.,]\d*)?|[-+]?\d+(?:[.,]\d*)?")
_CODE = re.compile(r"[A-Za-z]*\d+[A-Za-z]*")  # 135, 136A, 137
_CURRENCY = "$€£¥₹"


@dataclass(frozen=True)
class Reading:
    """A column that was read, with the marks of missing values, or the texts among few numbers."""

    column: pd.Series
    marks: str = ""
    mixed: str = ""


def read_text_columns(frame: pd.DataFrame, names: Iterable[str], notes: list[str]) -> pd.DataFrame:
    """The table with numbers where text columns contain numbers; notes say what was missing.

    ``frame.attrs`` may hold the decimal sign of the file, and the number of fields "NA" by column.
    """
    texts = {name: frame[name] for name in names if _may_be_text(frame.dtypes[name])}
    decimal = frame.attrs.get("decimal", ".")
    found = {name: numbers_from_text(column, decimal) for name, column in texts.items()}
    changed = {n: each.column for n, each in found.items() if each.column is not texts[n]}
    codes = {n: k for n, k in frame.attrs.get("NA", {}).items() if k and n in texts}
    _tell(
        notes,
        "Among numbers these texts count as missing: {}.",
        [f"{name!r} {each.marks}" for name, each in found.items() if each.marks],
    )
    _tell(
        notes,
        "Few whole numbers with texts among them are categories: {}. Pass --na TEXT if a text "
        "means missing.",
        [f"{name!r} {each.mixed}" for name, each in found.items() if each.mixed],
    )
    _tell(
        notes,
        "Fields 'NA' of text columns count as missing: {}. Pass --not-na NA if NA is a category.",
        [f"{name!r} {count}" for name, count in codes.items() if name not in changed],
    )
    return frame.assign(**changed) if changed else frame


def _may_be_text(dtype: Any) -> bool:
    return pd.api.types.is_object_dtype(dtype) or isinstance(dtype, pd.StringDtype)


def _tell(notes: list[str], sentence: str, items: Sequence[str]) -> None:
    if items:
        notes.append(sentence.format(list_some(items)))


def numbers_from_text(column: pd.Series, decimal: str = ".") -> Reading:
    """Read a text column as numbers if it contains numbers.

    Parameters
    ----------
    column : Series
        Column of any type; only text is looked at.
    decimal : str, default="."
        Decimal sign of the file, which decides whether "1.234" is a thousand.

    Returns
    -------
    Reading
        With floats if all values are numbers or marks of missing values; otherwise with the given
        column.

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.tables.numerals import numbers_from_text
    >>> numbers_from_text(pd.Series(["$1,234.5", "$7", "?"])).column.tolist()
    [1234.5, 7.0, nan]
    """
    text = _texts(column)
    values = pd.Series(text.unique(), dtype=object)
    is_mark = values.str.lower().isin(MISSING_MARKS) if len(values) else values.astype(bool)
    known = values[~is_mark]
    if known.empty:
        return Reading(column)
    marks = text[text.isin(set(values[is_mark]))]
    if known.str.lower().isin({"true", "false"}).all():
        gone = column.index.isin(marks.index)
        return Reading(column.where(~gone), _counts(marks)) if gone.any() else Reading(column)
    parsed = parse(known, decimal)
    if parsed.notna().all():
        table = dict(zip(known, parsed, strict=True))
        return Reading(text.map(table).astype(float).reindex(column.index), _counts(marks))
    others = text[text.isin(set(known[parsed.isna()]))]
    n = len(text) - len(marks)
    if n - len(others) < MOSTLY * n or known.str.fullmatch(_CODE).all():
        return Reading(column)
    if len(known) <= FEW_VALUES and known[parsed.notna()].str.isdigit().all():
        return Reading(column, mixed=_counts(others))
    raise ValueError(_text_among_numbers(str(column.name), others, n))


def parse(values: pd.Series, decimal: str = ".") -> pd.Series:
    """Texts as floats, in the one notation that fits most of them; NaN where it does not fit."""
    bare = _without_signs(values)
    if decimal == ".":
        plain = pd.to_numeric(bare, errors="coerce")
        if plain.notna().all() or not bare.str.contains(r"\d", regex=True).any():
            return plain
        readings = [plain, _grouped(bare, _ENGLISH, ",", ".")]
    else:
        readings = []
    readings += [
        _grouped(bare, _CONTINENTAL, ".", ","),
        _grouped(bare, _SPACED, _SPACE, ","),
        pd.to_numeric(bare, errors="coerce"),
    ]
    return max(readings, key=lambda found: int(found.notna().sum()))  # ties: the first one


def has_decimal_comma(column: pd.Series) -> bool:
    """Whether most values of a text column are numbers with a decimal comma, such as "1,5"."""
    text = pd.Series(_texts(column).unique(), dtype=object)
    text = text[~text.str.lower().isin(MISSING_MARKS)]
    comma = text.str.fullmatch(r"[-+]?[\d.]*,\d+") & text.str.fullmatch(_CONTINENTAL)
    number = comma | text.str.fullmatch(r"[-+]?\d+")
    return bool(comma.any() and number.mean() >= MOSTLY)


def _texts(column: pd.Series) -> pd.Series:
    """The values of a column of texts, perhaps among numbers, stripped; empty for other columns."""
    present = column.dropna()
    plain = all(isinstance(v, (str, int, float, Decimal)) and v is not True for v in present)
    if not plain or not any(isinstance(value, str) for value in present):
        return pd.Series([], dtype=object)
    return present.astype(str).str.strip().astype(object)


def _grouped(values: pd.Series, pattern: re.Pattern[str], groups: str, decimal: str) -> pd.Series:
    """Values that match the notation, without separators of thousands."""
    fits = values.str.fullmatch(pattern) & values.str.contains(r"\d", regex=True)
    bare = values.str.replace(f"[{re.escape(groups)}]", "", regex=True)
    if decimal == ",":
        bare = bare.str.replace(",", ".", regex=False)
    return pd.to_numeric(bare.where(fits), errors="coerce").astype(float)


def _without_signs(values: pd.Series) -> pd.Series:
    """Values without a per cent sign that all have, or without the one currency sign in use."""
    if values.str.endswith("%").all():
        return values.str[:-1].str.rstrip()
    used = [sign for sign in _CURRENCY if values.str.contains(sign, regex=False).any()]
    if len(used) != 1:
        return values
    sign = re.escape(used[0])
    return values.str.replace(rf"^([-+]?)\s*{sign}\s*|\s*{sign}$", r"\1", n=1, regex=True)


def _counts(texts: pd.Series) -> str:
    """Texts with the number of their rows, the most frequent first."""
    counts = texts.value_counts()
    return list_some([f"{text!r} in {count}" for text, count in counts.items()], 3)


def _text_among_numbers(name: str, others: pd.Series, n: int) -> str:
    row, first, column = int(others.index[0]) + 1, str(others.iloc[0]), shlex.quote(name)
    return (
        f"column {name!r} holds numbers in {n - len(others)} of {n} rows, but {_counts(others)} "
        f"(first in row {row} after the header); fix it, pass --na {shlex.quote(first)} if it "
        f"means missing, --categorical {column} if the column holds categories, or --exclude "
        f"{column}."
    )


def describe_mixture(texts: pd.Series) -> str | None:
    """What a text column holds besides text, if it contains numbers."""
    present = texts.dropna()
    values = pd.Series(present.unique(), dtype=object)
    others = set(values[parse(values).isna()])
    n = int((~present.isin(others)).sum())
    if not n or not others:
        return None
    example = present[present.isin(others)].iloc[0]
    return f"numbers in {n} of {len(present)} rows and text such as {example!r} in the others"
