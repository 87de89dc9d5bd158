"""The features of a table: columns, the user's groups, and columns that cannot be told apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.conditionals.units import GROUP, NEAR_COPIES, find_units
from sobolev.criterion import disjoint_groups, parse_columns
from sobolev.summary import ADJUSTED
from sobolev.validation import list_some

# What to do with columns that cannot be told apart.
COPIES = ("join", "keep")
MAX_NAMED = 3
# What stands between a variable and a category in the name of a one-hot column.
_SEPARATOR = re.compile("[_=.: -]")
# Number of rows in which two columns of a set would both be 1 if columns were independent.
MIN_TOGETHER = 10.0


@dataclass(frozen=True)
class Feature:
    """One or more columns that are tested together.

    Attributes
    ----------
    name : str
        Name of the column or group, or the names of the columns that were joined.
    columns : array of int
        Positions of the columns.
    note : str
        Why columns were joined, or what else determines them; empty if nothing is special.
    is_testable : bool
        False if other columns determine it, so that nothing of it is left to vary given them, and
        for covariates.
    is_adjusted : bool
        Whether it is a covariate: the others are tested given it.
    """

    name: str
    columns: Index
    note: str = ""
    is_testable: bool = True
    is_adjusted: bool = False


def features(
    X: Array, groups: Any, names: Sequence[str], copies: str, adjust: Any = None
) -> list[Feature]:
    """The features of a table, in the order of their first columns.

    Parameters
    ----------
    X : array of shape (n, d)
        Validated rows.
    groups : mapping, sequence of sequences, or None
        Disjoint groups of columns that are features of their own.
    names : sequence of str
        Names of the columns.
    copies : {"join", "keep"}
        "join" makes one feature of groups and columns that cannot be told apart. "keep" keeps them
        apart; those that others determine are then not testable.
    adjust : sequence of str or int, optional
        Covariates. A feature with one of these columns is a covariate as a whole.

    Returns
    -------
    list of Feature
        Each column is in exactly one feature.

    Examples
    --------
    >>> import numpy as np
    >>> x, z = np.random.default_rng(0).standard_normal((2, 200))
    >>> for found in features(np.column_stack([x, z, 2 * x]), None, ["a", "b", "c"], "join"):
    ...     print(found.name, found.columns, found.note)
    a, c [0 2] cannot be told apart: copies
    b [1]
    """
    check_option("copies", copies, COPIES)
    own = disjoint_groups([] if groups is None else groups, names)
    notes: dict[str, str] = {}
    if copies == "join":
        alone = [int(columns[0]) for columns in own.values() if columns.size == 1]
        for name, (columns, labels) in named_sets(X, names, alone).items():
            own = {n: c for n, c in own.items() if c.size > 1 or c[0] not in columns}
            own[name], notes[name] = columns, f"categories: {list_some(labels, 8, ' / ')}"
    home = {int(j): name for name, columns in own.items() for j in columns}
    several = [columns.tolist() for columns in own.values() if columns.size > 1]
    found = []
    for unit in find_units(X, several, names=names):
        parts = list(dict.fromkeys(home[int(j)] for j in unit.columns))
        reason = ", ".join(word for word in unit.reason.split(", ") if word != GROUP)
        if len(parts) == 1:
            found.append(Feature(parts[0], unit.columns, notes.get(parts[0], "")))
        elif copies == "join":
            name = list_some(parts, most=MAX_NAMED)
            found.append(Feature(name, unit.columns, f"cannot be told apart: {reason}"))
        else:
            is_near = reason == NEAR_COPIES
            note = reason if is_near else f"others determine it ({reason})"
            found += [Feature(part, own[part], note, is_near) for part in parts]
    found = _with_covariates(found, parse_columns(adjust, len(names), names, "adjust"))
    return _distinct(sorted(found, key=lambda feature: int(feature.columns[0])))


def covariates(found: Sequence[Feature]) -> Index:
    """Positions of the columns of features that are adjusted for."""
    columns = [feature.columns for feature in found if feature.is_adjusted]
    return np.sort(np.concatenate(columns)) if columns else np.zeros(0, dtype=np.intp)


def _with_covariates(found: list[Feature], adjusted: Index) -> list[Feature]:
    """Features with those marked that contain a column to adjust for."""
    made = []
    for feature in found:
        if np.isin(feature.columns, adjusted).any():
            note = f"{ADJUSTED} ({feature.note})" if feature.note else ADJUSTED
            feature = replace(feature, note=note, is_testable=False, is_adjusted=True)
        made.append(feature)
    if all(feature.is_adjusted for feature in made):
        raise ValueError(
            "adjust leaves no column to test: every column is adjusted for, or cannot be told "
            "apart from one that is; name fewer columns."
        )
    return made


def named_sets(
    X: Array, names: Sequence[str], columns: Sequence[int]
) -> dict[str, tuple[Index, list[str]]]:
    """One-hot columns of one variable that came encoded, such as "sex_female" and "sex_male".

    Such columns are 0 or 1, never 1 together, and their names agree up to the last separator. That
    they are never 1 together must not be chance.

    Parameters
    ----------
    X : array of shape (n, d)
    names : sequence of str
        Names of the columns.
    columns : sequence of int
        Positions of the columns to look at.

    Returns
    -------
    dict of str to (array of int, list of str)
        Positions and categories of each set, by the name of the variable.
    """
    stems: dict[str, list[int]] = {}
    for j in columns:
        stem = _SEPARATOR.split(names[j][::-1], maxsplit=1)[-1][::-1]
        if stem != names[j]:
            stems.setdefault(stem, []).append(j)
    found = {}
    for stem, own in stems.items():
        if len(own) < 2 or stem in names or not np.isin(X[:, own], (0, 1)).all():
            continue
        counts, n = X[:, own].sum(axis=0), len(X)
        together = (counts.sum() ** 2 - (counts**2).sum()) / (2 * n)  # if columns were independent
        if together >= MIN_TOGETHER and X[:, own].sum(axis=1).max() == 1:
            labels = [names[j][len(stem) + 1 :] for j in own]
            found[stem] = np.array(own), labels
    return found


def _distinct(found: list[Feature]) -> list[Feature]:
    """Features with names that differ: a joined name may be that of a column."""
    seen: set[str] = set()
    made = []
    for feature in found:
        name = feature.name
        while name in seen:
            name += "′"
        seen.add(name)
        made.append(replace(feature, name=name, columns=np.asarray(feature.columns)))
    return made
