"""Missing values: an error, rows to drop, or values to impute."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sobolev._typing import Mask
from sobolev.validation import list_some

MISSING = ("error", "drop", "impute")
MIN_ROWS = 10


def handle_missing(
    columns: Mapping[str, pd.Series],
    responses: Mapping[str, pd.Series],
    missing: str,
    notes: list[str],
    set_aside: list[tuple[str, str]],
) -> tuple[Mask, dict[str, pd.Series]]:
    """Find the rows to keep, and fill in missing values if asked to.

    Parameters
    ----------
    columns, responses : mapping of Series
        Features and responses by name.
    missing : {"error", "drop", "impute"}
        Treatment of missing values. Responses are never imputed; their rows are dropped.
    notes, set_aside : list
        Lists to which notes and columns without values are appended.

    Returns
    -------
    kept : array of bool
        Mask of the rows to keep.
    columns : mapping of Series
        Features with no missing values in these rows.
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
    n = len(next(iter(everything.values()), ()))
    if not gaps:
        return np.ones(n, dtype=bool), present
    if missing == "error":
        counts = list_some([f"{name!r} {count}" for name, count in gaps.items()], 8)
        raise ValueError(
            f"values are missing ({n} rows; by column: {counts}); pass --missing drop to leave out "
            "these rows, --missing impute to fill in the median or most frequent value, or "
            "--exclude to leave out the columns."
        )
    watched = everything if missing == "drop" else responses
    kept = np.ones(n, dtype=bool)
    for column in watched.values():
        kept &= ~column.isna().to_numpy()
    if kept.sum() < MIN_ROWS:
        raise ValueError(
            f"only {int(kept.sum())} of {n} rows have no missing values; pass --missing impute to "
            "fill them in, or --exclude to leave out the columns with most missing values."
        )
    if not kept.all():
        what = "with missing values" if missing == "drop" else "without a target value"
        notes.append(f"{int((~kept).sum())} of {n} rows {what} were left out.")
    if missing == "impute":
        present = _impute(present, kept, notes)
    return kept, present


def _impute(columns: Mapping[str, pd.Series], kept: Mask, notes: list[str]) -> dict[str, pd.Series]:
    filled, counts = {}, []
    for name, column in columns.items():
        gaps = int(column[kept].isna().sum())
        filled[name] = column
        if gaps:
            seen = column[kept].dropna()
            if seen.empty:
                raise ValueError(f"column {name!r} has no values in the rows with a target value.")
            text = column.dtype == object
            value = seen.mode().iloc[0] if text else float(seen.median())
            filled[name] = column.where(column.notna(), value)
            counts.append(f"{name!r} {gaps}")
    if counts:
        notes.append(
            "Missing values were filled in with the median or the most frequent value, which can "
            f"weaken effects ({list_some(counts)})."
        )
    return filled


def _columns(names: list[str]) -> str:
    shown = list_some([repr(name) for name in names])
    return f"column {shown} has" if len(names) == 1 else f"columns {shown} have"
