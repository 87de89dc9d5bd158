"""The door of the selectors: DataFrames, sparse matrices and AnnData as they are."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pandas as pd
import scipy.sparse as sp

from sobolev.exceptions import DataWarning
from sobolev.responses import Response, response_names, split_event
from sobolev.tables.annotated import is_annotated, of_annotated
from sobolev.tables.frames import as_pandas, is_frame
from sobolev.tables.matrices import Division, Matrix, of_sparse, prepare_matrix
from sobolev.tables.missing import DRAWN
from sobolev.tables.prepared import Prepared
from sobolev.tables.preparing import prepare
from sobolev.targets import as_columns
from sobolev.validation import list_some, plain_target

# An option of the command line in a message, and its value if one follows.
_OPTION = re.compile(
    r"--([a-z]+(?:-[a-z]+)*)(?: (?!(?:to|if|or|is|and|takes|needs|belong)\b)('[^']*'|[\w.*,]*\w))?"
)
# Arguments of ``fit`` for options of the command line; others are arguments of ``prepare``.
_OF_FIT = {"subject": "groups", "weights": "sample_weight", "target": "y"}


def open_table(
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    response: str = "auto",
    reference: bool = False,
    division: Division | None = None,
    stacklevel: int = 3,
) -> Prepared | None:
    """Prepare a table for a selector: a DataFrame by the rules of the command line.

    Parameters
    ----------
    X : array-like, DataFrame, sparse matrix, AnnData or Prepared
    y : array-like, str, tuple of str or Response, optional
        The response, or the names of its columns in X, or in ``X.obs`` of AnnData.
    groups, sample_weight : array-like or str, optional
        Subjects and weights of the rows, or the names of their columns.
    response : str, default="auto"
        How y is read, see :func:`~sobolev.responses.read_response`.
    reference : bool, default=False
        Whether to leave out the most frequent category, as in :func:`prepare`.
    division : callable, optional
        Divides the rows of a sparse matrix that does not fit in memory; by default such a matrix
        is refused. See :func:`~sobolev.tables.matrices.prepare_matrix`.
    stacklevel : int, default=3
        As in :func:`warnings.warn`.

    Returns
    -------
    Prepared or None
        None if X is to be used as it is: an array, or a DataFrame of which every column is a number
        and none is set aside.
    """
    if isinstance(X, Prepared):
        given = {"y": y, "groups": groups, "sample_weight": sample_weight}
        for name in [name for name, value in given.items() if value is not None]:
            raise ValueError(f"{name} is given beside a prepared table; give it to prepare.")
        return X
    matrix = _as_matrix(X, y=y, groups=groups, sample_weight=sample_weight)
    if matrix is None and not is_frame(X):
        return None
    frame = as_pandas(X if matrix is None else matrix.beside)
    options = {"reference": reference} if matrix is None else {"only": None}
    try:
        data = _prepared(frame, y, groups, sample_weight, response, options)
    except ValueError as error:
        raise ValueError(in_python(str(error))) from error
    if matrix is not None:
        data = prepare_matrix(matrix, data, division)
    _warn(data, stacklevel + 1)
    by_name = isinstance(groups, str) or isinstance(sample_weight, str)
    return None if matrix is None and data.is_plain and not by_name else data


def _as_matrix(X: Any, **given: Any) -> Matrix | None:
    """AnnData or a sparse matrix; None for other tables."""
    if is_annotated(X):
        return of_annotated(X)
    if not sp.issparse(X):
        return None
    for name, value in given.items():
        if isinstance(value, str):
            raise ValueError(
                f"{name}={value!r} names a column, but X is a sparse matrix, which has none; pass "
                "the values."
            )
    return of_sparse(X)


def _prepared(
    frame: pd.DataFrame,
    y: Any,
    groups: Any,
    sample_weight: Any,
    response: str,
    options: dict[str, Any],
) -> Prepared:
    """The table with its response, subjects and weights among its columns, prepared."""
    for option, values in (("subject", groups), ("weights", sample_weight)):
        if isinstance(values, str):
            options[option] = values
        elif values is not None:
            (options[option],) = _add(frame, {option: values})
    if y is None:
        return prepare(frame, **options)
    if isinstance(y, Response):
        data = prepare(frame, **options)
        return data.with_response(y.rows(data.rows))
    if isinstance(y, str) or _are_names(y, frame):
        asked = [y] if isinstance(y, str) else list(y)
        events = [name for name in asked if split_event(name, list(frame.columns))[1]]
        if len(asked) == 2 and len(events) == 1:
            options["event"] = events[0]
            asked.remove(events[0])
        return prepare(frame, asked, response=response, **options)
    structured = getattr(getattr(y, "dtype", None), "names", None)
    if structured is not None:  # of scikit-survival, event before time
        columns = dict(sorted(((n, y[n]) for n in structured), key=lambda c: c[1].dtype == bool))
        response = "survival"
    else:
        columns = dict(zip(response_names(y), as_columns(plain_target(y)), strict=True))
    return prepare(frame, _add(frame, columns), response=response, **options)


def _are_names(y: Any, frame: pd.DataFrame) -> bool:
    """Whether y is a tuple of names of columns, not of labels."""
    names = list(frame.columns)
    return isinstance(y, tuple) and all(
        isinstance(name, str) and split_event(name, names)[0] in names for name in y
    )


def _add(frame: pd.DataFrame, columns: dict[str, Any]) -> list[str]:
    """Add columns to the table under names that are still free."""
    names = []
    for label, values in columns.items():
        name, found = label, pd.Series(values).reset_index(drop=True)
        if len(found) != len(frame):
            raise ValueError(
                f"X has {len(frame)} rows but {label} has {len(found)}: inconsistent numbers of "
                "samples; pass one value for each row."
            )
        while name in frame.columns:
            name += "'"
        frame[name] = found
        names.append(name)
    return names


def _warn(data: Prepared, stacklevel: int) -> None:
    """Say what was set aside and what was done to the rows."""
    said = list(data.notes)
    if data.set_aside:
        shown = list_some([f"{name!r} ({reason})" for name, reason in data.set_aside], 4)
        said.insert(0, f"set aside: {shown}.")
    for text in said:
        if not text.startswith(DRAWN):
            warnings.warn(in_python(text), DataWarning, stacklevel=stacklevel)


def in_python(text: str) -> str:
    """A message of the command line in the words of Python.

    Examples
    --------
    >>> from sobolev.tables.opening import in_python
    >>> in_python("pass --subject patient if rows belong together")
    "pass groups='patient' if rows belong together"
    >>> in_python("--keep 'my id' uses it")
    "sobolev.tables.prepare(..., keep='my id') uses it"
    """

    def argument(match: re.Match[str]) -> str:
        option, value = match.group(1), match.group(2)
        name = _OF_FIT.get(option, option.replace("-", "_"))
        if value is None:
            return name
        given = f"{name}={value if value.startswith(chr(39)) else repr(value)}"
        return given if option in _OF_FIT else f"sobolev.tables.prepare(..., {given})"

    return _OPTION.sub(argument, text)
