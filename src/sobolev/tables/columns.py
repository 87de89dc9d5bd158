"""Types of columns: numbers, categories and dates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from sobolev._typing import Array

# Largest number of categories, for few and for many rows: with more, categories have few rows each,
# or the column is an identifier. The second number is also the largest number of distinct rows in a
# group of columns that is tested as one category.
FEW_CATEGORIES, MOST_CATEGORIES = 20, 32
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
# Dates at the start of a text, in lower case: 2024-01-31, 31.1.2024, 2024-01, 31 Jan 2024, 2024Q1.
_DATE = (
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|\d{4}[-/]\d{2}$|"
    rf"\d{{1,2}}[- ]?{_MONTH}[-, ]*\d{{2,4}}|{_MONTH}[- .]*(?:\d{{1,2}},? +)?\d{{4}}|"
    r"\d{4}[- ]?q[1-4]$|\d{1,2}:\d{2}(?::\d{2})?"
)
# Share of dates among the values of a text column of dates, and fewest distinct whole numbers such
# as 20240131 that are dates.
MOSTLY_DATES, MIN_DATES = 0.9, 10
# Whole floats below this are exact.
MOST_EXACT = 2.0**53
FIRST_DATE, LAST_DATE = 18000101, 21001231


def most_categories(n: int) -> int:
    """Largest number of categories of a column with n rows."""
    return min(MOST_CATEGORIES, max(FEW_CATEGORIES, n // 10))


def kind_of(column: pd.Series) -> str:
    """Type of a column: "numeric", "categorical", "date" or "other"."""
    types, dtype = pd.api.types, column.dtype
    if types.is_bool_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype):
        return "categorical"
    if types.is_numeric_dtype(dtype):
        if types.is_complex_dtype(dtype):
            return "other"
        return "date" if _numbers_are_dates(column) else "numeric"
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "date"
    present = column.dropna()
    if present.empty:
        return "numeric"
    if all(isinstance(value, (bool, np.bool_)) for value in present):
        return "categorical"
    if not all(np.isscalar(value) for value in present):
        return "date" if all(hasattr(value, "isoformat") for value in present) else "other"
    text = present.astype(str).str.strip()
    if pd.to_numeric(text, errors="coerce").notna().all():
        return "numeric"
    dated = text.str.lower().str.match(_DATE).mean()
    return "date" if dated >= MOSTLY_DATES else "categorical"


def _numbers_are_dates(column: pd.Series) -> bool:
    """Whether whole numbers are all dates such as 20240131."""
    low, high = FIRST_DATE, LAST_DATE
    first = column.iloc[0] if len(column) >= MIN_DATES else 0
    if not (pd.isna(first) or low <= first <= high):
        return False
    found = column.dropna().unique()
    if len(found) < MIN_DATES or found.min() < low or found.max() > high or (found % 1 != 0).any():
        return False
    texts = pd.Series(found).astype("int64").astype(str)
    return bool(pd.to_datetime(texts, format="%Y%m%d", errors="coerce").notna().all())


def numbers(column: pd.Series) -> Array:
    """A numeric column as floats, with NaN for missing values."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        column = pd.to_numeric(column.astype(object).where(column.notna(), np.nan), errors="coerce")
    return np.asarray(column.to_numpy(dtype=float, na_value=np.nan))


def labels(column: pd.Series) -> pd.Series:
    """A categorical column as stripped text; blank values are missing."""
    values = column
    if pd.api.types.is_float_dtype(column.dtype):
        present = column.dropna()
        if ((present % 1 == 0) & (present.abs() < MOST_EXACT)).all():
            values = column.astype("Int64")  # 2, not 2.0
    texts = [
        None if gone else str(value).strip() or None
        for value, gone in zip(values.astype(object), column.isna(), strict=True)
    ]
    return pd.Series(texts, index=column.index, name=column.name, dtype=object)
