"""Encoding of categories as indicators, and the variables that are tested as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sobolev.conditionals.joint import MAX_PATTERNS
from sobolev.tables.columns import MOST_CATEGORIES

assert MOST_CATEGORIES <= MAX_PATTERNS


def encode(
    columns: Mapping[str, pd.Series], kinds: Mapping[str, str], *, reference: bool
) -> tuple[pd.DataFrame, dict[str, list[int]]]:
    """Encode all columns as numbers.

    Parameters
    ----------
    columns : mapping of Series
        Columns by name.
    kinds : mapping of str
        Type of each column, "numeric" or "categorical".
    reference : bool
        Whether to leave out the most frequent of three or more categories.

    Returns
    -------
    X : DataFrame of float
        Numeric columns and indicators of categories.
    places : mapping from a name to positions in X
        Columns of X that stand for each column.
    """
    parts: dict[str, np.ndarray] = {}
    places: dict[str, list[int]] = {}
    for name, column in columns.items():
        found: Any = {name: column}
        if kinds[name] == "categorical":
            found = _indicators(name, column, reference)
        begin = len(parts)
        for label, values in found.items():
            while label in parts or (label != name and label in columns):
                label += "'"
            parts[label] = values.to_numpy(dtype=float)
        places[name] = list(range(begin, len(parts)))
    return pd.DataFrame(parts), places


def categories(column: pd.Series) -> tuple[str, ...]:
    """The categories of a column, in the order of their indicators."""
    return tuple(sorted(column.dropna().unique()))


def _indicators(name: str, column: pd.Series, reference: bool) -> pd.DataFrame:
    """One indicator for each category; one indicator for two categories. Gaps stay gaps."""
    found = pd.get_dummies(column, prefix=name, prefix_sep="=", dtype=float)
    found[column.isna()] = np.nan
    if found.shape[1] == 2:
        return found.iloc[:, 1:]
    return found.drop(columns=found.sum().idxmax()) if reference else found


def merge(
    places: Mapping[str, list[int]], kinds: Mapping[str, str], groups: Mapping[str, Sequence[str]]
) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Merge the columns of each group; it takes the place of its first column.

    Parameters
    ----------
    places : mapping from a column to positions
    kinds : mapping of str
        Type of each column.
    groups : mapping from a name to columns
        Groups of columns; columns that were set aside are ignored.

    Returns
    -------
    variables : mapping from a name to positions
        Groups, and columns that are in none.
    kinds : mapping of str
        Type of each variable; a group with a numeric column is numeric.
    """
    owner = {column: name for name, members in groups.items() for column in members}
    variables: dict[str, list[int]] = {}
    merged: dict[str, str] = {}
    for column, positions in places.items():
        name = owner.get(column, column)
        if name != column and name in places and owner.get(name) != name:
            raise ValueError(
                f"--groups: the group {name!r} has the name of a column; rename the group."
            )
        variables.setdefault(name, []).extend(positions)
        numeric = kinds[column] == "numeric" or merged.get(name) == "numeric"
        merged[name] = "numeric" if numeric else "categorical"
    return variables, merged
