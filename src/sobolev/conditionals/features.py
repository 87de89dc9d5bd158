"""The features of a table: columns, the user's groups, and columns that cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals.units import GROUP, NEAR_COPIES, find_units
from sobolev.validation import list_some

# What to do with columns that cannot be told apart.
COPIES = ("join", "keep")
MAX_NAMED = 3


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
        Why columns were joined, or why the feature is not tested; empty if nothing is special.
    is_testable : bool
    """

    name: str
    columns: Index
    note: str = ""
    is_testable: bool = True


def features(
    X: Array, names: Sequence[str], groups: Mapping[str, Index], copies: str
) -> list[Feature]:
    """The features of a table, in the order of their first columns.

    Parameters
    ----------
    X : array of shape (n, d)
        Validated rows.
    names : sequence of str
        Names of the columns.
    groups : mapping
        The features as the user sees them, by name: groups and single columns, disjoint and
        complete, as :func:`sobolev.criterion.disjoint_groups` returns them.
    copies : {"join", "keep"}
        "join" makes one feature of groups and columns that cannot be told apart. "keep" keeps them
        apart; those that others determine are then not testable.

    Returns
    -------
    list of Feature
    """
    home = {int(j): name for name, columns in groups.items() for j in columns}
    several = [columns.tolist() for columns in groups.values() if columns.size > 1]
    found = []
    for unit in find_units(X, several, names=names):
        parts = list(dict.fromkeys(home[int(j)] for j in unit.columns))
        reason = ", ".join(word for word in unit.reason.split(", ") if word != GROUP)
        if len(parts) == 1:
            found.append(Feature(parts[0], unit.columns))
        elif copies == "join":
            name = list_some(parts, most=MAX_NAMED)
            found.append(Feature(name, unit.columns, f"cannot be told apart: {reason}"))
        else:
            alone = reason == NEAR_COPIES
            note = reason if alone else f"not tested: others determine it ({reason})"
            found += [Feature(part, groups[part], note, alone) for part in parts]
    return _distinct(sorted(found, key=lambda feature: int(feature.columns[0])))


def _distinct(found: list[Feature]) -> list[Feature]:
    """Features with names that differ: a joined name may be that of a column."""
    seen: set[str] = set()
    made = []
    for feature in found:
        name = feature.name
        while name in seen:
            name += "′"
        seen.add(name)
        made.append(Feature(name, np.asarray(feature.columns), feature.note, feature.is_testable))
    return made
