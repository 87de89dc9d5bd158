"""Preparation of a table for the estimators: features, responses, types, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sobolev._parameters import check_option
from sobolev.conditionals.completing import completions
from sobolev.responses import READINGS, Response, is_event, read_response, split_event
from sobolev.tables.columns import kind_of, labels, most_categories, numbers
from sobolev.tables.encoding import encode
from sobolev.tables.missing import MISSING, handle_missing
from sobolev.tables.names import known, parse_group_options
from sobolev.tables.numerals import describe_mixture, read_text_columns
from sobolev.tables.rare import rows_of_common_classes
from sobolev.tables.suspects import (
    ask_subject,
    event_flags,
    event_note,
    identifier,
    leak_notes,
    repeated,
    to_keep,
)
from sobolev.targets import as_columns
from sobolev.validation import plain_target

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
        Numeric columns and indicators of categories, with NaN for missing cells.
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
    groups, weights : array or None
        Subject and weight of each row.
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
    groups: Any = None
    weights: Any = None

    @property
    def y(self) -> Any:
        """Values of the response: numbers, labels, or a table of both; None if there is none."""
        return None if self.response is None else self.response.values

    @property
    def has_groups(self) -> bool:
        """Whether some variable has more than one column."""
        return any(len(columns) > 1 for columns in self.variables.values())

    def filled(self, *, with_response: bool = True) -> pd.DataFrame:
        """X with draws in the place of missing cells, given the other columns and the response."""
        if not self.X.isna().to_numpy().any():
            return self.X
        sets = [np.array(own) for own in self.variables.values() if len(own) > 1]
        y = self.y if with_response else None
        (found,) = completions(self.X.to_numpy(), y, [np.random.default_rng(0)], sets=sets)
        return pd.DataFrame(found, columns=self.X.columns)

    @property
    def beside(self) -> dict[str, Any]:
        """What ``fit`` gets beside X and y."""
        found = {"groups": self.groups, "sample_weight": self.weights}
        return {name: value for name, value in found.items() if value is not None}


def prepare(
    frame: pd.DataFrame,
    targets: Sequence[str],
    *,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    categorical: Sequence[str] = (),
    groups: Sequence[str] = (),
    subject: str | None = None,
    blocks_of: int | None = None,
    weights: str | None = None,
    missing: str = "draw",
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
    subject : str, optional
        Column that says which rows belong together.
    blocks_of : int, optional
        Number of consecutive rows that belong together, for time series.
    weights : str, optional
        Column of weights of the rows.
    missing : {"draw", "error", "drop"}, default="draw"
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
    roles = _roles(names, subject, blocks_of, weights)
    used = [name for name in roles.values() if name in responses]
    if used:
        raise ValueError(f"column {used[0]!r} is --target and cannot have another role.")
    unused = {*responses, *left_out, *roles.values()}
    features = [name for name in known(only, names, "--x") or names if name not in unused]
    as_text = known(categorical, names, "--categorical")
    wanted = {*known(keep, names, "--keep"), *as_text}
    rows_read = len(frame)
    frame = frame.dropna(how="all")
    n_blank = rows_read - len(frame)
    notes = [f"{n_blank} blank rows were left out."] if n_blank else []

    used = [name for name in (*responses, *features) if name not in as_text]
    frame = read_text_columns(frame, used, notes)
    y = {name: _response(frame[name], name in as_text) for name in responses}
    set_aside = [(name, "left out by --exclude") for name in left_out]
    columns, kinds, subjects = {}, {}, []
    for name in features:
        column, kind, reason = _feature(frame[name], name in as_text, name in wanted)
        if reason is None:
            columns[name], kinds[name] = column, kind
        else:
            set_aside.append((name, reason))
            if kind not in UNUSABLE and repeated(column):
                subjects.append(name)
    if subject is None and blocks_of is None:
        notes += ask_subject(subjects)
    flags = {} if event is not None else event_flags(columns, y)
    for name, time in flags.items():
        if name not in wanted:
            set_aside.append((name, f"flag of the time {time!r}; {to_keep(name)}"))
            notes.append(event_note(name, time))
            del columns[name]
    kept, dropped = handle_missing(columns, y, missing, notes, set_aside)
    columns = {name: column[kept] for name, column in dropped.items()}
    y = {name: column[kept] for name, column in y.items()}
    common = rows_of_common_classes(y, int(kept.sum()), notes)
    frame = frame[kept][common]
    columns = {name: column[common] for name, column in columns.items()}
    y = {name: column[common] for name, column in y.items()}
    values = {name: column.reset_index(drop=True) for name, column in y.items()}
    if happened is not None:
        values[responses[-1]] = pd.Series(is_event(values[responses[-1]], responses[-1], happened))
    read = read_response(pd.DataFrame(values), response) if y else None
    if read is not None:
        _check_response(read)
    for name in [name for name, column in columns.items() if _is_constant(column)]:
        set_aside.append((name, "constant"))
        del columns[name]
    if not columns:
        goal = f" for {', '.join(map(repr, responses))}" if responses else ""
        raise ValueError(f"no column is left as a feature{goal}.")
    for name, column in y.items():
        notes += leak_notes(columns, name, column)
    given = parse_group_options(groups, names)
    X, variables, kinds = encode(columns, kinds, given, reference=reference)
    return Prepared(
        X,
        read,
        tuple(responses),
        variables,
        kinds,
        set_aside,
        notes,
        rows_read,
        len(names),
        groups=_subjects(frame, roles.get("--subject"), blocks_of),
        weights=_weights(frame[roles["--weights"]]) if "--weights" in roles else None,
    )


def _roles(
    names: Sequence[str], subject: str | None, blocks_of: int | None, weights: str | None
) -> dict[str, str]:
    """The columns that are neither features nor responses, by their option."""
    if subject is not None and blocks_of is not None:
        raise ValueError("pass --subject or --blocks-of, not both.")
    found = {}
    for option, asked in (("--subject", subject), ("--weights", weights)):
        if asked is not None:
            columns = known([asked], names, option)
            if len(columns) != 1:
                raise ValueError(f"{option} takes one column, not {len(columns)}.")
            found[option] = columns[0]
    return found


def _subjects(frame: pd.DataFrame, column: str | None, blocks_of: int | None) -> Any:
    """The subject of each row, or the number of its block of consecutive rows."""
    if blocks_of is not None:
        return frame.index.to_numpy() // blocks_of
    if column is None:
        return None
    missing = int(frame[column].isna().sum())
    if missing:
        raise ValueError(
            f"--subject: column {column!r} has no value in {missing} of {len(frame)} rows; fill "
            "them in, or drop these rows."
        )
    return labels(frame[column]).to_numpy()


def _weights(column: pd.Series) -> Any:
    """Weights as numbers."""
    found = numbers(column) if kind_of(column) == "numeric" else np.array([np.nan])
    if not np.isfinite(found).all() or (found < 0).any():
        raise ValueError(
            f"--weights: column {column.name!r} must hold numbers of zero or more in every row."
        )
    return found


def _feature(column: pd.Series, as_text: bool, wanted: bool) -> tuple[pd.Series, str, str | None]:
    """The column as floats or text, its type, and the reason if it is set aside."""
    kind = "categorical" if as_text else kind_of(column)
    keeping = to_keep(str(column.name))
    whole_numbers = kind == "date" and pd.api.types.is_numeric_dtype(column.dtype)
    if whole_numbers and wanted:
        kind = "numeric"
    if kind in UNUSABLE:
        return column, kind, UNUSABLE[kind] + (f"; {keeping}" if whole_numbers else "")
    reason = None if wanted else identifier(column, kind)
    if kind == "numeric":
        found = numbers(column)
        infinite = int(np.isinf(found).sum())
        if infinite and reason is None:
            raise ValueError(
                f"column {column.name!r} holds infinity in {infinite} of {found.size} rows; fix "
                f"the values, or leave the column out with --exclude {column.name!r}."
            )
        return pd.Series(found, name=column.name), kind, reason and f"{reason}; {keeping}"
    values, most = labels(column), most_categories(len(column))
    count = values.nunique()
    if reason is None and count > most:
        reason = describe_mixture(values) or (
            f"{count} different values, more than the limit of {most} categories"
        )
    elif reason is not None and count <= most:
        reason = f"{reason}; {keeping}"
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
    """Refuse responses that do not vary, and too many classes."""
    columns = as_columns(response.values)
    names = response.names if response.kind == "several" else response.names[:1]
    for name, kind, column in zip(names, response.kinds, columns, strict=True):
        values = np.unique(column)
        if values.size < 2:
            raise ValueError(f"target {name!r} has one value only, {values[0]!r}; it must vary.")
        most = most_categories(column.size)
        if kind == "classes" and values.size > most:
            raise ValueError(
                f"target {name!r} has {values.size} classes in {column.size} rows, more than "
                f"the limit of {most}; merge classes, or use a numeric target."
            )


def _is_constant(column: pd.Series) -> bool:
    return column.nunique() < 2
