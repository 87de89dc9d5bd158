"""How a response is read: as a number, a count, grades, classes, survival times, or several.

The command line and the Python selectors read y here, so the same y gets the same encoding in both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from sobolev._parameters import check_option
from sobolev._typing import AnyArray, Array, Index, Mask
from sobolev.exceptions import TargetError
from sobolev.targets import are_codes, are_integers, as_columns, as_labels, finite_numbers
from sobolev.validation import list_some, plain_target, take_rows, validate_rows, validate_training

READINGS = ("auto", "number", "count", "grades", "classes", "survival")
# Integers with at most this many values are called grades, with more they are called a count.
MAX_GRADES = 10
# Of several responses, at most this many are described one by one.
MAX_DESCRIBED = 3
# Words for an event and for its absence, in lower case; a number before a colon is not read, as in
# "1:DECEASED".
EVENTS = {
    *("dead", "death", "died", "deceased", "event", "yes", "y", "true", "t", "failure", "failed"),
    *("relapse", "relapsed", "recurred", "recurrence", "progressed", "progression", "uncensored"),
}
NO_EVENTS = {"alive", "living", "censored", "no", "n", "false", "f", "none", "no event", "lost"}


@dataclass(frozen=True, eq=False)
class Response:
    """A response as it was read.

    Attributes
    ----------
    kind : {"number", "count", "grades", "classes", "survival", "several"}
        What the response is.
    values : array or DataFrame
        What critics are fitted to: floats, labels of any other type, or a table of both.
    names : tuple of str
        Names of the columns of y.
    description : str
        How y was read, in one line.
    kinds : tuple of str
        The kind of each column of ``values``; grades with the order of their labels, if one was
        given.
    remedy : str, default=""
        How to read y otherwise, if that is in doubt.
    events : array of bool or None
        Whether the event happened, for survival times.
    """

    kind: str
    values: Any = field(repr=False)
    names: tuple[str, ...]
    description: str
    kinds: tuple[str, ...]
    remedy: str = ""
    events: Mask | None = field(default=None, repr=False)

    @property
    def sentence(self) -> str:
        """How y was read, and how to change it, in one line."""
        return f"{self.description} {self.remedy}".strip()

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def rows(self, rows: Index) -> Response:
        """The response of some rows."""
        events = None if self.events is None else self.events[rows]
        return replace(self, values=take_rows(self.values, rows), events=events)

    def with_values(self, values: Any) -> Response:
        """Other values of the same kind, such as the rows in another order; events are dropped."""
        return replace(self, values=values, events=None)

    def read(self, y: Any) -> Response:
        """Read other rows in the same way; survival times are scored among themselves."""
        kind = self.kinds if self.kind == "several" else self.kinds[0]
        return read_response(y, kind, names=self.names)


def read_response(
    y: Any, kind: str | Sequence[str] = "auto", *, names: Sequence[str] | None = None
) -> Response:
    """Read a response.

    Parameters
    ----------
    y : array-like, DataFrame or Response
        One or several columns, or for survival times the structured array of scikit-survival, or
        two columns, time and event. A Response is returned as it is.
    kind : str or sequence of str, default="auto"
        "number", "count", "grades", "classes" or "survival"; a sequence has one for each column.
        "grades=low,medium,high" gives the order of labels. "auto" reads text, booleans and
        unordered categories as classes, ordered categories as grades, a structured array as
        survival times, and integers by the rule of :func:`~sobolev.targets.are_codes`.
    names : sequence of str, optional
        Names of the columns; by default those that y has.

    Returns
    -------
    Response

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.responses import read_response
    >>> read_response(np.repeat([0, 1, 2], 50)).sentence
    'y was read as 3 classes (0, 1, 2). Set response="number" (--response number) to change that.'
    >>> read_response(np.repeat([3, 4, 5, 6], 50)).kind
    'grades'
    >>> time, event = [5.0, 8.0, 3.0, 1.0], [True, False, True, True]
    >>> read_response(np.column_stack([time, event]), "survival").values.round(2)
    array([-0.08, -1.08,  0.42,  0.75])
    """
    if isinstance(y, Response):
        return y
    for one in [kind] if isinstance(kind, str) else kind:
        check_option("response", str(one).partition("=")[0], READINGS)
    names = response_names(y) if names is None else tuple(names)
    if _is_structured(y) and kind in ("auto", "number"):
        kind = "survival"
    if kind == "survival":
        return _read_survival(y, names)
    y = plain_target(y)
    if _is_structured(y):
        raise ValueError(
            f'y is a structured array of survival times; use response="survival", not {kind!r}.'
        )
    columns = as_columns(y)
    if len(set(names)) != len(columns):
        names = (*(f"y[{i}]" for i in range(len(columns))),)
    kinds = [kind] * len(columns) if isinstance(kind, str) else list(kind)
    if len(kinds) != len(columns):
        raise ValueError(
            f"y has {len(columns)} columns, but {len(kinds)} kinds of response were given."
        )
    read = [_read_column(c, name, k) for c, name, k in zip(columns, names, kinds, strict=True)]
    if len(read) == 1:
        return read[0]
    floats = all(found.values.dtype.kind == "f" for found in read)
    values: Any = pd.DataFrame({n: r.values for n, r in zip(names, read, strict=True)})
    if floats and not hasattr(y, "columns"):
        values = np.column_stack([found.values for found in read])
    kinds = [found.kinds[0] for found in read]
    if len(read) <= MAX_DESCRIBED:
        description = " ".join(found.description for found in read)
    else:
        counts = ", ".join(f"{kinds.count(one)} as {one}" for one in dict.fromkeys(kinds))
        description = f"{len(read)} responses were read: {counts}."
    remedy = next((found.remedy for found in read if found.remedy), "")
    return Response("several", values, names, description, tuple(kinds), remedy)


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    kind: str = "auto",
    holdout: tuple[Any, Any] | None = None,
    sample_weight: Any = None,
) -> tuple[Array, Response, Array, int | None]:
    """The door of a selector: checked rows and their response.

    Parameters
    ----------
    estimator : estimator
        Estimator that gets ``n_features_in_`` and ``feature_names_in_``.
    X : array-like or DataFrame of shape (n, d)
    y : array-like, str, tuple of str or Response
        The response, or the names of its columns in the DataFrame X.
    kind : str, default="auto"
        As in :func:`read_response`.
    holdout : tuple (X, y), optional
        Further rows, which are put behind the others.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows.

    Returns
    -------
    X : array of float, shape (n, d)
        With NaN for missing cells.
    response : Response
    weights : array of shape (n,)
        Probabilities of the rows, without those of ``holdout``.
    n_train : int or None
        Number of rows before those of ``holdout``.
    """
    X, y = take_response(X, y)
    names = () if y is None else response_names(y)
    values = y.values if isinstance(y, Response) else y
    X, plain, weights = validate_training(estimator, X, values, sample_weight, gaps=True)
    if holdout is None:
        response = y if isinstance(y, Response) else read_response(plain, kind, names=names)
        return X, response, weights, None
    X_test, y_test = take_response(*holdout)
    X_test = validate_rows(estimator, X_test, reset=False, gaps=True)
    y_test = plain_target(y_test)
    if len(X_test) != len(y_test):
        raise ValueError(
            f"holdout has {len(X_test)} rows of X and {len(y_test)} values of y; pass the same "
            "rows of both."
        )
    is_frame = hasattr(plain, "iloc") and hasattr(y_test, "iloc")
    both = pd.concat([plain, y_test]) if is_frame else np.concatenate([plain, y_test])
    return np.vstack([X, X_test]), read_response(both, kind, names=names), weights, X.shape[0]


def take_response(X: Any, y: Any) -> tuple[Any, Any]:
    """Take the columns that y names out of the table X; other y are returned as they are.

    Parameters
    ----------
    X : DataFrame
        The table.
    y : str or tuple of str
        The name of a column, or several; "status=2" is the column status, with 2 as the event.

    Returns
    -------
    X : DataFrame
        The other columns.
    y : Series or DataFrame
        The response.
    """
    asked = (y,) if isinstance(y, str) else y
    if not isinstance(asked, tuple) or not all(isinstance(name, str) for name in asked):
        return X, y
    if not (hasattr(X, "columns") and hasattr(X, "drop") and hasattr(X, "iloc")):
        if isinstance(y, str):
            raise ValueError(f"y={y!r} names a column, but X is not a pandas DataFrame.")
        return X, y
    found = {}
    for name in asked:
        column, event = split_event(name, list(X.columns))
        if column not in X.columns:
            if isinstance(y, str):
                raise ValueError(f"y={y!r} is not a column of X.")
            return X, y  # a tuple of labels
        found[column] = X[column] if event is None else is_event(X[column], column, event)
    rest = X.drop(columns=list(found))
    return rest, X[y] if y in found else pd.DataFrame(found)


def split_event(text: str, columns: Sequence[Any]) -> tuple[str, str | None]:
    """The column and the value of "status=2"; a column may have such a name itself."""
    if text in columns or "=" not in text:
        return text, None
    name, _, value = text.rpartition("=")
    return name.strip(), value.strip()


def response_names(y: Any) -> tuple[str, ...]:
    """Names of the columns of a response."""
    if isinstance(y, Response):
        return y.names
    columns = getattr(y, "columns", None)
    if columns is None and _is_structured(y):
        columns = np.asarray(y).dtype.names
    if columns is not None:
        return tuple(map(str, columns))
    name, shape = getattr(y, "name", None), np.asarray(y).shape
    if len(shape) != 2 or shape[1] == 1:
        return ("y" if name is None else str(name),)
    return tuple(f"y[{k}]" for k in range(shape[1]))


# -- one column ------------------------------------------------------------------------------------


def _read_column(column: AnyArray, name: str, kind: str) -> Response:
    kind, _, levels = kind.partition("=")
    given = f"{kind}={levels}" if levels else ""
    if levels:
        column = _graded(column, name, [level.strip() for level in levels.split(",")])
    if column.dtype.kind == "b" and kind not in ("auto", "classes"):
        column = column.astype(float)
    found, said, other = _sorted_out(column, name, kind)
    values = as_labels(column) if found == "classes" else finite_numbers(column, name)
    if found == "classes" and values.dtype.kind == "f" and are_integers(values):
        values = values.astype(np.int64)
    if found == "count" and (not are_integers(values) or values.min() < 0):
        raise ValueError(
            f"{name} is not a count: it holds other values than 0, 1, 2, ...; use "
            'response="number" (--response number).'
        )
    remedy = f'Set response="{other}" (--response {other}) to change that.' if other else ""
    kinds = (given or found,)
    return Response(found, values, (name,), f"{name} was read as {said}.", kinds, remedy)


def _sorted_out(column: AnyArray, name: str, kind: str) -> tuple[str, str, str]:
    """The kind of a column, what to say of it, and the other kind that it might be."""
    if column.dtype.kind in "OUSb":
        if kind not in ("auto", "classes"):
            raise ValueError(
                f"{name} holds labels, not numbers; leave response at "
                '"auto", or give their order: response="grades=low,medium,high" '
                '(--response "grades=low,medium,high").'
            )
        return "classes", _classes_in_words(as_labels(column)), ""
    if kind == "classes":
        return kind, _classes_in_words(as_labels(column)), ""
    values, rows = np.unique(finite_numbers(column, name), return_counts=True)
    whole = are_integers(values)
    if kind == "auto" and are_codes(values, rows):
        return "classes", _classes_in_words(values), "number" if values.size > 2 else ""
    other = "classes" if kind == "auto" and whole and values.size <= MAX_GRADES else ""
    if kind == "auto":
        few = whole and values.size <= MAX_GRADES
        kind = "grades" if few else "count" if whole and values[0] >= 0 else "number"
    said = {"number": "a number", "count": "a count", "grades": "grades"}[kind]
    if kind != "number":
        said += f" from {values[0]:g} to {values[-1]:g}"
    if kind == "grades":
        said += ", in their order"
    return kind, said, other


def _classes_in_words(labels: AnyArray) -> str:
    shown = [_said(value) for value in np.unique(labels).tolist()]
    return f"{len(shown)} classes ({list_some(shown)})"


def _said(value: Any) -> str:
    """A label for the reader: 2, not 2.0, and text in quotes."""
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _graded(column: AnyArray, name: str, levels: list[str]) -> Array:
    """The place of each label in the order of the levels, from 1."""
    place = {level: float(k) for k, level in enumerate(levels, start=1)}
    numbers = column.dtype.kind in "iuf" and are_integers(column)
    labels = [str(value).strip() for value in (column.astype(int) if numbers else column)]
    unknown = [label for label in labels if label not in place]
    if unknown:
        raise ValueError(
            f"{name} holds {unknown[0]!r}, which is not among the grades "
            f"{list_some([repr(level) for level in levels])}."
        )
    return np.array([place[label] for label in labels])


# -- survival times --------------------------------------------------------------------------------


def _is_structured(y: Any) -> bool:
    """Whether y is a structured array, as scikit-survival makes them."""
    dtype = getattr(y, "dtype", None)
    return getattr(dtype, "names", None) is not None


def _read_survival(y: Any, names: tuple[str, ...]) -> Response:
    if _is_structured(y):
        y = pd.DataFrame({name: y[name] for name in y.dtype.names})
    columns = as_columns(y)
    if len(columns) != 2:
        raise ValueError(
            f'response="survival" needs two columns, time and event; y has {len(columns)}.'
        )
    names = ("time", "event") if names == ("y[0]", "y[1]") else names
    if columns[0].dtype.kind == "b" and columns[1].dtype.kind != "b":
        columns, names = columns[::-1], names[::-1]
    times, happened = _times(columns[0], names[0]), is_event(columns[1], names[1])
    scores = survival_scores(times, happened, names[1])
    events = columns[1][happened].tolist()
    which = "" if columns[1].dtype.kind == "b" else f" ({names[1]} = {_said(events[0])})"
    description = (
        f"{names[0]} and {names[1]} were read as survival times, encoded as log-rank scores: "
        f"{int(happened.sum())} events{which} in {happened.size} rows, the others are censored."
    )
    return Response("survival", scores, names, description, ("survival",), events=happened)


def _times(column: AnyArray, name: str) -> Array:
    if column.dtype.kind in "OUSb":
        raise ValueError(f"{name} holds no numbers; the time comes first, then the event.")
    times = finite_numbers(column, name)
    if times.min() < 0:
        raise ValueError(
            f"{name} holds a negative time ({times.min():g}, first in row {int(times.argmin())}); "
            "survival times must be zero or positive."
        )
    return times


def is_event(column: Any, name: str, event: str | None = None) -> Mask:
    """Whether the event happened, from the values of a column.

    Parameters
    ----------
    column : array-like
        Booleans, 0 and 1, two other numbers of which the larger is the event, or two words of which
        one says that the event happened or the other one that it did not.
    name : str
        Name of the column.
    event : str, optional
        The value that is the event; all others are censored.

    Returns
    -------
    array of bool
    """
    column = as_columns(column)[0]
    if column.dtype.kind == "b" and event is None:
        return column
    labels = as_labels(column)
    values = np.unique(labels)
    texts = [_said(v) if isinstance(v, float) else str(v).strip() for v in values.tolist()]
    if event is not None:
        if event not in texts:
            raise ValueError(f"{name} has no value {event!r}; its values: {list_some(texts)}.")
        return np.asarray(labels == values[texts.index(event)])
    remedy = (
        f'say which value is the event, such as --event "{name}={texts[-1]}" or, in Python, '
        f"y == {_said(values[-1].item())} as a column of True and False."
    )
    if values.size > 2:
        raise ValueError(f"{name} has {values.size} values ({list_some(texts)}); {remedy}")
    if values.dtype.kind in "iuf":
        if values.size == 2 or values[0] in (0, 1):
            return np.asarray((labels == values[-1]) & (values[-1] != 0))
    else:
        words = [re.sub(r"^\d+\s*:\s*", "", text).casefold() for text in texts]
        yes, no = [w in EVENTS for w in words], [w in NO_EVENTS for w in words]
        if sum(yes) == 1:
            return np.asarray(labels == values[yes.index(True)])
        if sum(no) == 1 and sum(yes) == 0:
            return np.asarray(labels != values[no.index(True)])
    raise ValueError(f"{name} does not say which value is the event ({list_some(texts)}); {remedy}")


def survival_scores(time: Array, happened: Mask, name: str = "event") -> Array:
    r"""Log-rank scores: the martingale residuals of the Nelson-Aalen estimate.

    The score of a row is :math:`\delta_i - \hat\Lambda(t_i)`, one if the event happened less the
    cumulative hazard up to the time of the row: high for early events, low for long survival. The
    log-rank test sums these scores over a group. Ties share one risk set, and censored rows are at
    risk at their own time.

    Parameters
    ----------
    time : array of shape (n,)
        Time of the event or of censoring.
    happened : array of bool, shape (n,)
        Whether the event happened at that time.
    name : str, default="event"
        Name of the column of events, for messages.

    Returns
    -------
    array of shape (n,)
        Scores with mean zero.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.responses import survival_scores
    >>> survival_scores(np.array([1.0, 2.0, 2.0, 3.0]), np.array([True, True, False, True]))
    array([ 0.75      ,  0.41666667, -0.58333333, -0.58333333])
    """
    if not happened.any():
        raise TargetError(f"{name}: all rows are censored; at least one event is needed.")
    place = np.unique(time, return_inverse=True)[1]
    events = np.bincount(place, weights=happened)
    at_risk = np.cumsum(np.bincount(place)[::-1])[::-1]
    hazard = np.cumsum(events / at_risk)
    scores: Array = happened - hazard[place]
    if np.ptp(scores) == 0:
        raise TargetError(f"{name}: all times are equal; survival times must vary.")
    return scores
