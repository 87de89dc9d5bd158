"""Preparation of a table for the estimators: features, responses, types, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from sobolev._parameters import check_option
from sobolev.responses import READINGS, Response, is_event, read_response, split_event
from sobolev.tables.columns import kind_of, labels, most_categories, numbers
from sobolev.tables.encoding import categories, encode, merge
from sobolev.tables.frames import as_pandas
from sobolev.tables.missing import MISSING, handle_missing
from sobolev.tables.names import known, parse_group_options
from sobolev.tables.numerals import describe_mixture, read_text_columns
from sobolev.tables.prepared import Prepared
from sobolev.tables.rare import rows_of_common_classes
from sobolev.tables.repeats import note_of, repeated_rows
from sobolev.tables.suspects import (
    ask_subject,
    event_flags,
    event_note,
    identifier,
    leak_notes,
    marks_blocks,
    repeated,
    to_keep,
)
from sobolev.targets import as_columns
from sobolev.validation import plain_target

UNUSABLE = {
    "date": "dates; convert them to numbers, such as days since the start, to use them",
    "other": "neither numbers nor text",
}


def prepare(
    frame: pd.DataFrame,
    targets: str | Sequence[str] = (),
    *,
    only: Sequence[str] | None = (),
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    adjust: Sequence[str] = (),
    categorical: Sequence[str] = (),
    groups: Sequence[str] | Mapping[str, Sequence[str]] = (),
    subject: str | None = None,
    blocks_of: int | None = None,
    weights: str | None = None,
    missing: str = "draw",
    offer_missing: Sequence[str] = (),
    response: str = "auto",
    event: str | None = None,
    reference: bool = False,
) -> Prepared:
    """Split a table into features and responses and encode them as numbers.

    Parameters
    ----------
    frame : DataFrame
        The table, of pandas or polars.
    targets : str or sequence of str, optional
        Names of the responses; one string may contain several, separated by commas. Without any,
        all columns are features.
    only : sequence of str, optional
        Names of the features; by default all other columns. None reads the response, subjects and
        weights only.
    exclude, keep, categorical : sequence of str, optional
        Columns to leave out, to keep even if they look like identifiers, and to treat as
        categories.
    adjust : sequence of str, optional
        Covariates, which are kept even if they look like identifiers. A column of a group stands
        for the whole group.
    groups : mapping or sequence of str, optional
        Groups of columns by name, or as ``name=column,column``, or files with such lines.
    subject : str, optional
        Column that says which rows belong together.
    blocks_of : int, optional
        Number of consecutive rows that belong together, for time series.
    weights : str, optional
        Column of weights of the rows.
    missing : {"draw", "error", "drop"}, default="draw"
        Treatment of missing values.
    offer_missing : sequence of str, optional
        Columns whose missingness is a further feature, 1 where the value is missing and 0
        elsewhere; "*" for all that have missing values.
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
        What :meth:`HRTSelector.fit <sobolev.HRTSelector.fit>` takes in the place of X and y.

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.tables import prepare
    >>> grown = ["yes", "no"] * 20
    >>> frame = pd.DataFrame({"nr": range(40), "light": [1.5, 2.0, 2.5, 4.0] * 10, "grown": grown})
    >>> data = prepare(frame, "grown")
    >>> list(data.X), data.set_aside
    (['light'], [('nr', 'numbers the rows; --keep nr uses it')])
    """
    frame = as_pandas(frame)
    targets = [targets] if isinstance(targets, str) else targets
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
    covariates = _covariates(adjust, names, responses, left_out, roles)
    asked = [*known(only, names, "--x"), *covariates] if only else names
    features = [name for name in dict.fromkeys(asked) if name not in unused]
    features = [] if only is None else features
    as_text = known(categorical, names, "--categorical")
    wanted = {*known(keep, names, "--keep"), *as_text, *covariates}
    offered = known(offer_missing, features, "--offer-missing")
    rows_read = len(frame)
    frame = frame if only is None else frame.dropna(how="all")
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
        numeric = [name for name, kind in kinds.items() if kind == "numeric"]
        blocks = [name for name in numeric if name not in wanted and marks_blocks(columns[name])]
        notes += ask_subject(subjects, blocks)
    flags = {} if event is not None else event_flags(columns, y)
    for name, time in flags.items():
        if name not in wanted:
            set_aside.append((name, f"flag of the time {time!r}; {to_keep(name)}"))
            notes.append(event_note(name, time))
            del columns[name]
    if only is not None:
        _refuse_nothing(columns, responses)
    kept, dropped = handle_missing(columns, y, len(frame), missing, notes, set_aside)
    columns = {name: column[kept] for name, column in dropped.items()}
    y = {name: column[kept] for name, column in y.items()}
    common = rows_of_common_classes(y, int(kept.sum()), notes)
    frame = frame[kept][common]
    columns = {name: column[common] for name, column in columns.items()}
    y = {name: column[common] for name, column in y.items()}
    if y and columns and subject is None and blocks_of is None:
        copies = repeated_rows(pd.DataFrame(columns), pd.DataFrame(y))
        notes += [note_of(copies)] if copies.any() else []
        frame = frame[~copies]
        columns = {name: column[~copies] for name, column in columns.items()}
        y = {name: column[~copies] for name, column in y.items()}
    shares = {name: float(column.isna().mean()) for name, column in columns.items()}
    values = {name: column.reset_index(drop=True) for name, column in y.items()}
    if happened is not None:
        values[responses[-1]] = pd.Series(is_event(values[responses[-1]], responses[-1], happened))
    read = read_response(pd.DataFrame(values), response) if y else None
    if read is not None:
        _check_response(read)
    _check_covariates(covariates, set_aside)
    for name in [name for name, column in columns.items() if _is_constant(column)]:
        set_aside.append((name, "constant"))
        del columns[name]
    if only is not None:
        _refuse_nothing(columns, responses)
    for name, column in y.items():
        notes += leak_notes(columns, name, column)
    for name in [name for name in offered if 0 < shares.get(name, 0) < 1]:
        label = f"{name} is missing"
        columns[label] = columns[name].isna().astype(float).rename(label)
        kinds[label] = "numeric"
        features.append(label)
    given = groups if isinstance(groups, Mapping) else parse_group_options(groups, names)
    X, places = encode(columns, kinds, reference=reference)
    variables, merged = merge(places, kinds, given)
    owner = {column: name for name, members in given.items() for column in members}
    adjusted = dict.fromkeys(owner.get(name, name) for name in covariates if name in columns)
    if adjusted and len(adjusted) == len(variables):
        raise ValueError("--adjust leaves no column to test; name fewer columns.")
    return Prepared(
        X,
        read,
        tuple(responses),
        variables,
        merged,
        set_aside,
        notes,
        rows_read,
        len(names),
        inputs=tuple(features),
        places=places,
        rows=frame.index.to_numpy(),
        missing={name: share for name, share in shares.items() if share},
        categories={n: categories(c) for n, c in columns.items() if kinds[n] == "categorical"},
        groups=_subjects(frame, roles.get("--subject"), blocks_of),
        weights=_weights(frame[roles["--weights"]]) if "--weights" in roles else None,
        adjusted=tuple(adjusted),
    )


def _refuse_nothing(columns: Mapping[str, pd.Series], responses: Sequence[str]) -> None:
    if not columns:
        goal = f" for {', '.join(map(repr, responses))}" if responses else ""
        raise ValueError(f"no column is left as a feature{goal}.")


def _covariates(
    adjust: Sequence[str],
    names: Sequence[str],
    responses: Sequence[str],
    left_out: Sequence[str],
    roles: Mapping[str, str],
) -> list[str]:
    """The columns of --adjust, which can have no other role."""
    found = known(adjust, names, "--adjust")
    others = {name: option for option, name in roles.items()}
    others |= dict.fromkeys(left_out, "--exclude") | dict.fromkeys(responses, "--target")
    for name in found:
        if name in others:
            raise ValueError(f"column {name!r} is both in --adjust and in {others[name]}.")
    return found


def _check_covariates(covariates: Sequence[str], set_aside: Sequence[tuple[str, str]]) -> None:
    """Refuse covariates that cannot be used: a test would silently not be adjusted for them."""
    for name, reason in set_aside:
        if name in covariates:
            raise ValueError(f"--adjust: column {name!r} cannot be used: {reason}.")


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
    if kind == "categorical" and not as_text and getattr(column.dtype, "ordered", False):
        column, kind = _placed(plain_target(column), column), "numeric"
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
        return _placed(found, column), kind, reason and f"{reason}; {keeping}"
    values, most = labels(column), most_categories(len(column))
    count = values.nunique()
    if reason is None and count > most:
        reason = describe_mixture(values) or (
            f"{count} different values, more than the limit of {most} categories"
        )
    elif reason is not None and count <= most:
        reason = f"{reason}; {keeping}"
    return values, kind, reason


def _placed(values: Any, column: pd.Series) -> pd.Series:
    """Values in the rows of a column, whose numbers have gaps if blank rows were left out."""
    return pd.Series(values, index=column.index, name=column.name)


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
        return _placed(plain_target(column), column)
    if kind == "categorical":
        return labels(column)
    values = _placed(numbers(column), column)
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
            raise ValueError(
                f"target {name!r} has one value only, {values[0].item()!r}; it must vary."
            )
        most = most_categories(column.size)
        if kind == "classes" and values.size > most:
            raise ValueError(
                f"target {name!r} has {values.size} classes in {column.size} rows, more than "
                f"the limit of {most}; merge classes, or use a numeric target."
            )


def _is_constant(column: pd.Series) -> bool:
    return column.nunique() < 2
