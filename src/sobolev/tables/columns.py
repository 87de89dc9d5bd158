"""Types of columns: numbers, categories, dates and identifiers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from sobolev._typing import Array

# Largest number of categories, for few and for many rows: with more, categories have few rows each,
# or the column is an identifier. The second number is also the largest number of distinct rows in a
# group of columns that is tested as one category.
FEW_CATEGORIES, MOST_CATEGORIES = 20, 32
# If more than this fraction of a text column are numbers, the other values are reported as errors.
MOSTLY = 0.5
_IDENTIFIER = re.compile(
    r"(^|[^a-z])(id|ids|uuid|guid|index|idx|barcode|accession|rowid|row names|row|column 1)$"
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{4}/\d{1,2}/\d{1,2}")
_COMMA = re.compile(r"[-+]?\d+,\d+")


def most_categories(n: int) -> int:
    """Largest number of categories of a column with n rows."""
    return min(MOST_CATEGORIES, max(FEW_CATEGORIES, n // 10))


def kind_of(column: pd.Series) -> str:
    """Type of a column: "numeric", "categorical", "date" or "other".

    A text column that contains mostly numbers is an error that names the first other value.
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
    if not all(np.isscalar(value) for value in present):
        return "date" if all(hasattr(value, "isoformat") for value in present) else "other"
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


def _text_among_numbers(column: pd.Series, texts: pd.Series) -> str:
    value, row = str(texts.iloc[0]), int(texts.index[0]) + 1
    more = f" ({len(texts)} such values)" if len(texts) > 1 else ""
    said = f"column {column.name!r} holds numbers, but row {row} after the header {value!r}{more}"
    if _COMMA.fullmatch(value.strip()):
        return f"{said}; fix it, or pass --decimal , if that is the decimal sign."
    return (
        f"{said}; fix it, pass --na {value!r} if it means missing, or --categorical "
        f"{column.name!r} if the column holds categories."
    )


def numbers(column: pd.Series) -> Array:
    """A numeric column as floats, with NaN for missing values."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        column = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def labels(column: pd.Series) -> pd.Series:
    """A categorical column as stripped text; blank values are missing."""
    values = column
    if pd.api.types.is_float_dtype(column.dtype) and (column.dropna() % 1 == 0).all():
        values = column.astype("Int64")  # 2, not 2.0
    texts = [
        None if gone else str(value).strip() or None
        for value, gone in zip(values.astype(object), column.isna(), strict=True)
    ]
    return pd.Series(texts, index=column.index, name=column.name, dtype=object)


def identifier(column: pd.Series, kind: str) -> str | None:
    """The reason why a column looks like an identifier of the rows, or None.

    Counts can differ in every row by chance, so integers are identifiers only if the name says so
    or if they are consecutive.
    """
    if kind == "categorical":
        present = column.dropna()
        unique = len(present) > 1 and present.nunique() == len(present)
        return "a different text in every row, as in an identifier" if unique else None
    values = numbers(column)
    values = values[~np.isnan(values)]
    n = values.size
    if n < 2 or np.isinf(values).any() or (values % 1 != 0).any() or np.unique(values).size < n:
        return None
    if _IDENTIFIER.search(_words(str(column.name))):
        return "a different number in every row and the name of an identifier"
    if n > 2 and np.ptp(values) == n - 1:
        return "numbers the rows"
    return None


def _words(name: str) -> str:
    """A name in lower case and split into words, "patientID" as "patient id"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower().strip()
