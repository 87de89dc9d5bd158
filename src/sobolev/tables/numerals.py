"""Numbers in text columns: separators of thousands, decimal commas, signs and missing marks."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from decimal import Decimal

import pandas as pd

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


def read_text_columns(frame: pd.DataFrame, names: Iterable[str], notes: list[str]) -> pd.DataFrame:
    """The table with numbers where text columns contain numbers; notes say what was missing.

    ``frame.attrs`` may hold the decimal sign of the file, and the number of fields "NA" by column.
    """
    decimal = frame.attrs.get("decimal", ".")
    codes = frame.attrs.get("NA", {})
    changed = {}
    for name in names:
        column = frame[name]
        if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
            continue
        found, note = numbers_from_text(column, decimal)
        if note is not None:
            notes.append(note)
        if found is not column:
            changed[name] = found
        elif codes.get(name):
            notes.append(
                f"Column {name!r} holds text, and {codes[name]} fields 'NA' count as missing; "
                "pass --not-na NA if it is a category."
            )
    return frame.assign(**changed) if changed else frame


def numbers_from_text(column: pd.Series, decimal: str = ".") -> tuple[pd.Series, str | None]:
    """Read a text column as numbers if it contains numbers.

    Parameters
    ----------
    column : Series
        Column of any type; only text is looked at.
    decimal : str, default="."
        Decimal sign of the file, which decides whether "1.234" is a thousand.

    Returns
    -------
    column : Series
        Floats if all values are numbers or marks of missing values; otherwise the given column.
    note : str or None
        Which marks were read as missing.

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.tables.numerals import numbers_from_text
    >>> numbers_from_text(pd.Series(["$1,234.5", "$7", "?"], name="price"))[0].tolist()
    [1234.5, 7.0, nan]
    """
    text = _texts(column)
    if text.empty:
        return column, None
    values = pd.Series(text.unique(), dtype=object)
    is_mark = values.str.lower().isin(MISSING_MARKS)
    known = values[~is_mark]
    if known.empty:
        return column, None
    if known.str.lower().isin({"true", "false"}).all():
        return column.where(~text.isin(set(values[is_mark])).reindex(column.index)), None
    parsed = parse(known, decimal)
    if parsed.notna().all():
        table = dict(zip(known, parsed, strict=True))
        found = text.map(table).astype(float).reindex(column.index)
        return found, _marks_note(column, text[text.isin(set(values[is_mark]) - {""})])
    others = text[text.isin(set(known[parsed.isna()]))]
    n = int(text.isin(set(known)).sum())
    if n - len(others) < MOSTLY * n or known.str.fullmatch(_CODE).all():
        return column, None
    if len(known) <= FEW_VALUES and known[parsed.notna()].str.isdigit().all():
        return column, _category_note(str(column.name), others, n)
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


def _marks_note(column: pd.Series, marks: pd.Series) -> str | None:
    if marks.empty:
        return None
    counts = ", ".join(f"{mark!r} {count}" for mark, count in marks.value_counts().items())
    return f"Column {column.name!r} holds numbers; these texts count as missing: {counts}."


def _counts(others: pd.Series) -> str:
    """Texts with the number of their rows, the most frequent first."""
    counts = others.value_counts()
    shown = ", ".join(f"{text!r} in {count}" for text, count in counts.head(3).items())
    return shown + (f" and {len(counts) - 3} other texts" if len(counts) > 3 else "")


def _category_note(name: str, others: pd.Series, n: int) -> str:
    return (
        f"Column {name!r} holds few whole numbers in {n - len(others)} of {n} rows and "
        f"{_counts(others)}, so its values are categories; pass --na "
        f"{shlex.quote(str(others.iloc[0]))} if that means missing."
    )


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
