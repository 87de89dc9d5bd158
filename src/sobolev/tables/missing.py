"""Missing values: cells to draw, an error, or rows to drop."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sobolev._numbers import shown_share
from sobolev._typing import Mask
from sobolev.validation import list_some

MISSING = ("draw", "error", "drop")
MIN_ROWS = 10
# A column with gaps needs values in this many rows.
MIN_VALUES = 10
# The note on missing cells begins with this.
DRAWN = "Missing cells were drawn"


def handle_missing(
    columns: Mapping[str, pd.Series],
    responses: Mapping[str, pd.Series],
    n: int,
    missing: str,
    notes: list[str],
    set_aside: list[tuple[str, str]],
) -> tuple[Mask, dict[str, pd.Series]]:
    """Find the rows and columns to keep.

    Parameters
    ----------
    columns, responses : mapping of Series
        Features and responses by name.
    n : int
        Number of rows.
    missing : {"draw", "error", "drop"}
        Treatment of missing values: cells that are drawn later, an error, or rows to drop. Rows
        without a response are dropped.
    notes, set_aside : list
        Lists to which notes and columns without values are appended.

    Returns
    -------
    kept : array of bool
        Mask of the rows to keep.
    columns : mapping of Series
        Features; with "draw" they may have gaps.
    """
    for name, column in responses.items():
        if column.isna().all():
            raise ValueError(f"target {name!r} has no values.")
    empty = [name for name, column in columns.items() if column.isna().all()]
    if empty and missing == "error":
        raise ValueError(
            f"{_columns(empty)} no values; leave {'it' if len(empty) == 1 else 'them'} out with "
            f"--exclude {','.join(empty[:5])}{',…' if len(empty) > 5 else ''}"
        )
    set_aside += [(name, "no values") for name in empty]
    present = {name: column for name, column in columns.items() if name not in set(empty)}
    everything = {**present, **responses}
    gaps = {name: int(c.isna().sum()) for name, c in everything.items()}
    gaps = {name: count for name, count in gaps.items() if count}
    if not gaps:
        return np.ones(n, dtype=bool), present
    if missing == "error":
        counts = list_some([f"{name!r} {count}" for name, count in gaps.items()], 8)
        raise ValueError(
            f"values are missing ({n} rows; by column: {counts}); pass --missing draw to draw them "
            "given the other columns, --missing drop to leave out these rows, or --exclude to "
            "leave out the columns."
        )
    watched = everything if missing == "drop" else responses
    kept = np.ones(n, dtype=bool)
    for column in watched.values():
        kept &= ~column.isna().to_numpy()
    if kept.sum() < MIN_ROWS:
        raise ValueError(
            f"only {int(kept.sum())} of {n} rows have no missing values; pass --missing draw to "
            "draw them, or --exclude to leave out the columns with most missing values."
        )
    if not kept.all():
        what = "with missing values" if missing == "drop" else "without a target value"
        notes.append(f"{int((~kept).sum())} of {n} rows {what} were left out.")
    if missing == "draw":
        present = _with_gaps(present, kept, notes, set_aside)
    return kept, present


def _with_gaps(
    columns: Mapping[str, pd.Series], kept: Mask, notes: list[str], set_aside: list[tuple[str, str]]
) -> dict[str, pd.Series]:
    """Columns with enough values to draw the others; a note counts the missing cells."""
    found, shares = {}, []
    for name, column in columns.items():
        count = int(column[kept].isna().sum())
        if count and kept.sum() - count < MIN_VALUES:
            set_aside.append((name, f"values in {int(kept.sum()) - count} rows only"))
            continue
        found[name] = column
        if count:
            shares.append(f"{name!r} {shown_share(count / kept.sum())}")
    if shares:
        notes.append(f"{DRAWN} given the other columns and the target ({list_some(shares)}).")
    return found


def _columns(names: list[str]) -> str:
    shown = list_some([repr(name) for name in names])
    return f"column {shown} has" if len(names) == 1 else f"columns {shown} have"
