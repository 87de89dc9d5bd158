"""What a column holds: numbers, categories, dates or identifiers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from sobolev._typing import Array

# Categories beyond this many have too few rows each, or are identifiers. A group of columns with
# more different rows than the second number cannot be tested as one category.
FEW_CATEGORIES, MOST_CATEGORIES = 20, 32
# A text column is mended, not taken as categories, if more than this part of it are numbers.
MOSTLY = 0.5
_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|index|idx|barcode|accession|rowid|row names|row|column 1)$"
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_COMMA = re.compile(r"[-+]?\d+,\d+")


def most_categories(n: int) -> int:
    """How many categories a column of n rows may have."""
    return min(MOST_CATEGORIES, max(FEW_CATEGORIES, n // 10))


def kind_of(column: pd.Series) -> str:
    """What a column holds: "numeric", "categorical", "date" or "other".

    Text that is mostly numbers is an error that names the first value that is none.
    """
    types, dtype = pd.api.types, column.dtype
    if types.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    if types.is_numeric_dtype(dtype):
        return "other" if types.is_complex_dtype(dtype) else "numeric"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    present = column.dropna()
    if present.empty:
        return "numeric"
    if all(isinstance(value, (bool, np.bool_)) for value in present):
        return "categorical"
    if not all(
        isinstance(value, str) or np.isscalar(value) or _is_number(value) for value in present
    ):
        return "other" if not all(hasattr(value, "isoformat") for value in present) else "date"
    numbers = pd.to_numeric(present.astype(str), errors="coerce")
    if numbers.notna().all():
        return "numeric"
    if numbers.notna().mean() > MOSTLY:
        raise ValueError(_text_among_numbers(column, present[numbers.isna()]))
    text = present.astype(str).str.strip()
    if text.str.match(_COMMA.pattern + "$").mean() > MOSTLY:
        raise ValueError(
            f"column {column.name!r} holds numbers with a decimal comma, such as "
            f"{text.iloc[0]!r}; pass --decimal ,"
        )
    return "date" if text.str.match(_DATE.pattern).all() else "categorical"


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _text_among_numbers(column: pd.Series, texts: pd.Series) -> str:
    value, row = str(texts.iloc[0]), int(texts.index[0]) + 1
    more = f" ({len(texts)} such values)" if len(texts) > 1 else ""
    said = f"column {column.name!r} holds numbers, but row {row} after the header {value!r}{more}"
    if _COMMA.fullmatch(value.strip()):
        return f"{said}; mend it, or pass --decimal , if that is the decimal sign."
    return (
        f"{said}; mend it, pass --na {value!r} if it means missing, or --categorical "
        f"{column.name!r} if the column holds categories."
    )


def numbers(column: pd.Series) -> Array:
    """A numeric column as floats, NaN where missing."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        column = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def labels(column: pd.Series) -> pd.Series:
    """A categorical column as text without blanks around it, missing where missing or blank."""
    values = column
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all():
        values = column.astype("Int64")  # 2, not 2.0
    texts = [
        None if gone else str(value).strip() or None
        for value, gone in zip(values.astype(object), column.isna(), strict=True)
    ]
    return pd.Series(texts, index=column.index, name=column.name, dtype=object)


def identifier(column: pd.Series, kind: str) -> str | None:
    """Why a column looks like an identifier of the rows, if it does.

    Counts can be different in every row by chance, so whole numbers count as identifiers only by
    name or if they number the rows.
    """
    if kind == "categorical":
        present = column.dropna()
        unique = len(present) > 1 and present.nunique() == len(present)
        return "a different text in every row, like an identifier" if unique else None
    values = numbers(column)
    values = values[~np.isnan(values)]
    n = values.size
    if n < 2 or np.isinf(values).any() or (values % 1 != 0).any() or np.unique(values).size < n:
        return None
    if _IDENTIFIER.search(_words(str(column.name))):
        return "a different number in every row, and the name of an identifier"
    if n > 2 and np.ptp(values) == n - 1:
        return "numbers the rows"
    return None


def _words(name: str) -> str:
    """A name in small letters, "patientID" as "patient id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().strip()
