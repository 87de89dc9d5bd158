"""Preparation of a table for the estimators: features, responses, types, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sobolev._parameters import check_option
from sobolev.responses import READINGS, Response, is_event, read_response, split_event
from sobolev.tables.columns import identifier, kind_of, labels, most_categories, numbers
from sobolev.tables.encoding import encode
from sobolev.tables.missing import MISSING, handle_missing
from sobolev.tables.names import known, parse_group_options
from sobolev.targets import as_columns
from sobolev.validation import list_some, plain_target

UNUSABLE = {
    "date": "dates; convert them to numbers, such as days since the start, to use them",
    "other": "neither numbers nor text",
}


@dataclass(frozen=True)
class Prepared:
    """A table that is ready for the estimators.

    Attributes
    ----------
    X : DataFrame of float
        Numeric columns and indicators of categories.
    response : Response or None
        The response as it was read; None if there is none.
    targets : tuple of str
        Names of the responses.
    variables : mapping
        Positions in X of every variable that is ranked or tested.
    kinds : mapping
        Type of each variable, "numeric" or "categorical".
    set_aside : list of (column, reason)
        Columns that are not used.
    notes : list of str
        Changes to the data, in sentences.
    rows_read, columns_read : int
        Number of rows and columns of the file.
    """

    X: pd.DataFrame
    response: Response | None
    targets: tuple[str, ...]
    variables: Mapping[str, list[int]]
    kinds: Mapping[str, str]
    set_aside: list[tuple[str, str]]
    notes: list[str]
    rows_read: int
    columns_read: int

    @property
    def y(self) -> Any:
        """Values of the response: numbers, labels, or a table of both; None if there is none."""
        return None if self.response is None else self.response.values

    @property
    def has_groups(self) -> bool:
        """Whether some variable has more than one column."""
        return any(len(columns) > 1 for columns in self.variables.values())


def prepare(
    frame: pd.DataFrame,
    targets: Sequence[str],
    *,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    categorical: Sequence[str] = (),
    groups: Sequence[str] = (),
    missing: str = "error",
    response: str = "auto",
    event: str | None = None,
    reference: bool = False,
) -> Prepared:
    """Split a table into features and responses and encode them as numbers.

    Parameters
    ----------
    frame : DataFrame
        Table from :func:`read_table`.
    targets : sequence of str
        Names of the responses; one string may contain several, separated by commas. Without any,
        all columns are features.
    only : sequence of str, optional
        Names of the features; by default all other columns.
    exclude, keep, categorical : sequence of str, optional
        Columns to leave out, to keep even if they look like identifiers, and to treat as
        categories.
    groups : sequence of str, optional
        Groups of columns as ``name=column,column``, or files with such lines.
    missing : {"error", "drop", "impute"}, default="error"
        Treatment of missing values.
    response : str, default="auto"
        How the responses are read, see :func:`~sobolev.responses.read_response`.
    event : str, optional
        The column that says whether the event happened at the time in the target, such as
        "status", or "status=2" if 2 is the event.
    reference : bool, default=False
        Whether to leave out the most frequent category, so that indicators are not collinear.

    Returns
    -------
    Prepared
        Table for the estimators.
    """
    check_option("--missing", missing, MISSING)
    check_option("--response", response.partition("=")[0], READINGS)
    names = list(frame.columns)
    responses, happened = known(targets, names, "--target"), None
    if event is not None:
        status, happened = split_event(event, names)
        response = _check_event(responses, response)
        responses += [name for name in known([status], names, "--event") if name not in responses]
    left_out = known(exclude, names, "--exclude")
    clash = [name for name in responses if name in left_out]
    if clash:
        raise ValueError(f"column {clash[0]!r} is both --target and in --exclude.")
    unused = {*responses, *left_out}
    features = [name for name in known(only, names, "--x") or names if name not in unused]
    as_text = known(categorical, names, "--categorical")
    wanted = {*known(keep, names, "--keep"), *as_text}
    rows_read = len(frame)
    frame = frame.dropna(how="all")
    n_blank = rows_read - len(frame)
    notes = [f"{n_blank} blank rows were left out."] if n_blank else []

    y = {name: _response(frame[name], name in as_text) for name in responses}
    set_aside = [(name, "left out by --exclude") for name in left_out]
    columns, kinds = {}, {}
    for name in features:
        column, kind, reason = _feature(frame[name], name in as_text, name in wanted)
        if reason is None:
            columns[name], kinds[name] = column, kind
        else:
            set_aside.append((name, reason))
    kept, dropped = handle_missing(columns, y, missing, notes, set_aside)
    columns = {name: column[kept] for name, column in dropped.items()}
    y = {name: column[kept].reset_index(drop=True) for name, column in y.items()}
    if happened is not None:
        y[responses[-1]] = pd.Series(is_event(y[responses[-1]], responses[-1], happened))
    read = read_response(pd.DataFrame(y), response) if y else None
    if read is not None:
        _check_response(read)
    for name in [name for name, column in columns.items() if _is_constant(column)]:
        set_aside.append((name, "constant"))
        del columns[name]
    if not columns:
        goal = f" for {', '.join(map(repr, responses))}" if responses else ""
        raise ValueError(f"no column is left as a feature{goal}.")
    given = parse_group_options(groups, names)
    X, variables, kinds = encode(columns, kinds, given, reference=reference)
    return Prepared(
        X, read, tuple(responses), variables, kinds, set_aside, notes, rows_read, len(names)
    )


def _feature(column: pd.Series, as_text: bool, wanted: bool) -> tuple[pd.Series, str, str | None]:
    """The column as floats or text, its type, and the reason if it is set aside."""
    kind = "categorical" if as_text else kind_of(column)
    if kind in UNUSABLE:
        return column, kind, UNUSABLE[kind]
    reason = None if wanted else identifier(column, kind)
    if kind == "numeric":
        found = numbers(column)
        infinite = int(np.isinf(found).sum())
        if infinite and reason is None:
            raise ValueError(
                f"column {column.name!r} holds infinity in {infinite} of {found.size} rows; fix "
                f"the values, or leave the column out with --exclude {column.name!r}."
            )
        return pd.Series(found, name=column.name), kind, reason
    values, most = labels(column), most_categories(len(column))
    count = values.nunique()
    if reason is None and count > most:
        reason = f"{count} different values, more than the limit of {most} categories"
    return values, kind, reason


def _check_event(targets: Sequence[str], response: str) -> str:
    """The response of a run with --event: survival times."""
    if len(targets) != 1:
        raise ValueError(f"--event needs one --target, the time; {len(targets)} were given.")
    if response not in ("auto", "survival"):
        raise ValueError(f"--event is for survival times, not for --response {response}.")
    return "survival"


def _response(column: pd.Series, as_text: bool) -> pd.Series:
    """A response as floats or labels, with gaps."""
    kind, name = ("categorical" if as_text else kind_of(column)), column.name
    if kind in UNUSABLE:
        raise ValueError(f"target {name!r} holds {UNUSABLE[kind]}.")
    if kind == "categorical" and not as_text and getattr(column.dtype, "ordered", False):
        return pd.Series(plain_target(column), name=name)
    if kind == "categorical":
        return labels(column)
    values = pd.Series(numbers(column), name=name)
    if np.isinf(values).any():
        raise ValueError(f"target {name!r} holds infinity; fix or drop these rows.")
    return values


def _check_response(response: Response) -> None:
    """Refuse responses that do not vary, and classes that are too many or too rare."""
    columns = as_columns(response.values)
    names = response.names if response.kind == "several" else response.names[:1]
    for name, kind, column in zip(names, response.kinds, columns, strict=True):
        values, counts = np.unique(column, return_counts=True)
        if values.size < 2:
            raise ValueError(f"target {name!r} has one value only, {values[0]!r}; it must vary.")
        most = most_categories(column.size)
        if kind == "classes" and values.size > most:
            raise ValueError(
                f"target {name!r} has {values.size} classes in {column.size} rows, more than "
                f"the limit of {most}; merge classes, or use a numeric target."
            )
        if kind == "classes" and counts.min() < 2:
            rare = list_some([repr(label) for label in values[counts < 2].tolist()])
            raise ValueError(
                f"target {name!r} has classes of a single row: {rare}; merge or drop them."
            )


def _is_constant(column: pd.Series) -> bool:
    return bool((column.to_numpy() == column.iloc[0]).all())
