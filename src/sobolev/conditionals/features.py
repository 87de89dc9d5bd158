"""The features of a table: columns, the user's groups, and columns that cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.conditionals.units import GROUP, NEAR_COPIES, find_units
from sobolev.criterion import disjoint_groups
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
        Why columns were joined, or what else determines them; empty if nothing is special.
    is_testable : bool
        False if other columns determine it, so that nothing of it is left to vary given them.
    """

    name: str
    columns: Index
    note: str = ""
    is_testable: bool = True


def features(X: Array, groups: Any, names: Sequence[str], copies: str) -> list[Feature]:
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
    home = {int(j): name for name, columns in own.items() for j in columns}
    several = [columns.tolist() for columns in own.values() if columns.size > 1]
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
            note = reason if alone else f"others determine it ({reason})"
            found += [Feature(part, own[part], note, alone) for part in parts]
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
