"""DataFrames of pandas and polars as they are: one form for both, with distinct names."""

from __future__ import annotations

from typing import Any

import pandas as pd

from sobolev.validation import list_some


def is_frame(X: Any) -> bool:
    """Whether X is a DataFrame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "__getitem__")


def as_pandas(frame: Any) -> pd.DataFrame:
    """A DataFrame of pandas with text as names of its columns and rows numbered from 0.

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.tables.frames import as_pandas
    >>> as_pandas(pd.DataFrame({7: [1.5, 2.5]}, index=["a", "b"]))
         7
    0  1.5
    1  2.5
    """
    if not is_frame(frame):
        raise TypeError(f"a table must be a DataFrame of pandas or polars, not {type(frame)}.")
    names = [str(name) for name in frame.columns]
    twice = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    if twice:
        shown = list_some([repr(name) for name in twice])
        raise ValueError(f"the table has several columns of the name {shown}; rename them.")
    if isinstance(frame, pd.DataFrame):
        return frame.set_axis(names, axis="columns").reset_index(drop=True)
    return pd.DataFrame({name: _column(frame[name]) for name in names})


def _column(column: Any) -> Any:
    """A column of polars for pandas."""
    dtype = column.dtype
    if dtype.is_numeric() or str(dtype) == "Boolean":
        return column.to_numpy()
    values = column.to_list()
    is_category = str(dtype).startswith(("Categorical", "Enum"))
    return pd.Categorical(values) if is_category else pd.Series(values, dtype=object)
