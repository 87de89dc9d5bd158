"""Columns that should perhaps not be there: identifiers, event flags, and leaks of the response."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from sobolev._typing import AnyArray, Array, Index
from sobolev.tables.columns import FEW_CATEGORIES, most_categories, numbers
from sobolev.validation import list_some

# The end of a note that asks for the column of subjects.
IF_TOGETHER = "if rows belong together."

# -- identifiers ---------------------------------------------------------------------------------

_UNIT = (
    "patient|pat|pt|subject|subj|case|sample|specimen|participant|part|person|pers|individual|"
    "indiv|respondent|resp|record|rec|row|obs|observation|sequence|seq|serial|doc|student|stud|"
    "pupil|animal|mouse|donor|client|customer|cust|user|member|employee|household|hh|family|fam|"
    "firm|company|school|sch|district|dist|county|study|choice|plot|tree|interview|int|line"
)
_UNITS = rf"(?:{_UNIT})s?"
# Names of identifiers in lower case and split into words; those of rows count only if all values
# differ, those of subjects also if values repeat.
_SUBJECT = re.compile(
    rf"(?:.* )?(?:id|ids|uuid|guid|barcode|accession)|id {_UNITS}|{_UNITS} ?(?:id|no|nr|num|nbr|"
    rf"number|key)|id(?:{_UNIT})|[pshu]id|mrn|usubjid|pidnum|id ?(?:no|num|nr)|subj|subject|"
    "patient|participant|respondent|household|person|individual"
)
_ROW = re.compile(
    rf"{_SUBJECT.pattern}|(?:.* )?(?:index|idx|row|rowid|key)|row ?names|column 1|unnamed 0|"
    rf"level 0|1|obs|{_UNITS} ?(?:code|name|label)"
)
_TIME = re.compile(r"(?:.* )?(?:year|yr|month|week|day|date|time|t|period|quarter|wave|visit|age)")
# A subject has at least two rows for most values; a named one at most so many on average.
MIN_SUBJECTS, MOST_ROWS = 10, 50
# Share of blocks of rows that have the same length.
SAME_LENGTH = 0.75
# Codes of subjects use at least one of so many integers.
SPARSEST = 3


def identifier(column: pd.Series, kind: str) -> str | None:
    """The reason why a column looks like an identifier, of rows or of subjects, or None.

    Counts can differ in every row by chance, so integers are identifiers only if the name says so,
    if they number the rows in their order, or if they number blocks of rows.
    """
    if kind == "categorical":
        present = column.dropna()
        if len(present) > 1 and present.nunique() == len(present):
            return "a different text in every row, as in an identifier"
        return _named_subject(words(str(column.name)), present)
    values = numbers(column)
    values = values[~np.isnan(values)]
    n = values.size
    if n < 2 or np.isinf(values).any() or (values % 1 != 0).any():
        return None
    name = words(str(column.name))
    if np.unique(values).size == n:
        if _ROW.fullmatch(name):
            return "a different number in every row and the name of an identifier"
        steps = np.diff(values)  # a rank has the same values, but not in this order
        in_order = n > 2 and (abs(steps) == 1).all() and abs(steps.sum()) == n - 1
        return "numbers the rows" if in_order else None
    if _numbers_blocks(values) and not _TIME.fullmatch(name):
        return "numbers blocks of rows"
    return _named_subject(name, pd.Series(values))


def repeated(column: pd.Series) -> bool:
    """Whether an identifier, or a text with many values, looks like the subject of several rows.

    Most subjects have two or more rows, and none has many more than the others.
    """
    counts = column.value_counts().to_numpy()
    if counts.size < MIN_SUBJECTS or counts.max() < 2:
        return False
    if _SUBJECT.fullmatch(words(str(column.name))):
        return bool(counts[counts > 1].sum() > 0.1 * counts.sum())
    return bool((counts > 1).mean() >= 0.75 and counts.max() <= 4 * np.median(counts))


def marks_blocks(column: pd.Series) -> bool:
    """Whether an integer is constant in blocks of neighbouring rows of about the same length.

    Codes of subjects do this, and so does what was measured once for each of them.
    """
    values = numbers(column)
    if values.size < 2 or not np.isfinite(values).all() or (values % 1 != 0).any():
        return False
    found, counts = np.unique(values, return_counts=True)
    return bool(
        found.size > FEW_CATEGORIES
        and np.median(counts) >= 2
        and 1 + np.count_nonzero(np.diff(values)) == found.size
        and (counts == np.median(counts)).mean() >= SAME_LENGTH
        and not _TIME.fullmatch(words(str(column.name)))
    )


def ask_subject(names: Sequence[str], blocks: Sequence[str] = ()) -> list[str]:
    """The question that repeated identifiers raise, or else columns that mark blocks of rows."""
    if not names and blocks:
        shown = list_some([repr(name) for name in blocks])
        return [
            f"Rows come in blocks with the same value of {shown}: pass --subject "
            f"{shlex.quote(blocks[0])} {IF_TOGETHER}"
        ]
    if not names:
        return []
    shown, verb = list_some([repr(name) for name in names]), "s" if len(names) == 1 else ""
    return [
        f"{shown} look{verb} like the subject of repeated rows: pass --subject "
        f"{shlex.quote(names[0])} {IF_TOGETHER}"
    ]


def to_keep(name: str) -> str:
    """The option that keeps a column."""
    return f"--keep {shlex.quote(name)} uses it"


def words(name: str) -> str:
    """A name in lower case and split into words, "patientID" as "patient id"."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.findall(r"[^\W_]+", split.lower()))


def _named_subject(name: str, present: pd.Series) -> str | None:
    count = present.nunique()
    if count < MIN_SUBJECTS or len(present) > MOST_ROWS * count or not _SUBJECT.fullmatch(name):
        return None
    return f"the name of an identifier and {count} different values in {len(present)} rows"


def _numbers_blocks(values: Array) -> bool:
    """Whether integers number blocks of neighbouring rows of the same length."""
    found, counts = np.unique(values, return_counts=True)
    runs = 1 + int((np.diff(values) != 0).sum())
    return bool(
        found.size > FEW_CATEGORIES
        and runs == found.size
        and (counts == np.median(counts)).mean() >= 0.9
        and np.ptp(found) < SPARSEST * found.size
    )


# -- event flags ---------------------------------------------------------------------------------

MOST_STATES = 4
_DURATION = re.compile(
    r"(?:.* )?(?:time|days|weeks|months|years|survival|duration|durat|os|pfs|dfs|rfs|tte|futime|"
    r"survtime|followup|follow up|lifetime)(?: .*)?"
)
_EVENT = re.compile(
    r"(?:.* )?(?:event|events|status|stat|dead|death|died|deceased|alive|cens|censor|censored|"
    r"censoring|delta|observed|relapse|relapsed|failed|failure|vital status|fustat)(?: .*)?"
)


def event_flags(columns: Mapping[str, pd.Series], y: Mapping[str, pd.Series]) -> dict[str, str]:
    """Columns of few values that say whether the time in a response was observed or censored.

    Returns
    -------
    dict
        The name of the response for each of these columns.
    """
    times = [
        name
        for name, response in y.items()
        if response.dtype != object
        and _DURATION.fullmatch(words(name))
        and response.nunique() > 2
        and response.min() >= 0
    ]
    if not times:
        return {}
    return {
        name: times[0]
        for name, column in columns.items()
        if 2 <= column.nunique() <= MOST_STATES and _EVENT.fullmatch(words(name))
    }


def event_note(flag: str, time: str) -> str:
    """What an event flag beside a time means for the result."""
    return (
        f"{flag!r} looks like the event or censoring flag of the time {time!r}. Every time is "
        "treated as observed, so the result is about the length of follow-up; if times are "
        f"censored, pass --event {shlex.quote(flag)} to read both as survival times."
    )


# -- leaks ---------------------------------------------------------------------------------------

# Rows that are looked at, and fewest rows that say something.
LEAK_ROWS, MIN_LEAK_ROWS = 400, 20
# Chatterjee's coefficient relative to that of a monotone function. A normal pair has 0.97 if one
# explains 99.9 per cent of the variance of the other.
LEAK_XI = 0.97
# Balanced accuracy of the class that a category has, and share of variance between categories.
LEAK_ACCURACY, LEAK_SHARE = 0.99, 0.999
# Fewest rows of a class or category, and largest number of values of a response taken as classes.
MIN_MEMBERS, MOST_CLASSES = 5, 10


def leak_notes(columns: Mapping[str, pd.Series], name: str, y: pd.Series) -> list[str]:
    """A warning that names the columns which determine the response, if there are any."""
    found = leaks(columns, y)
    if not found:
        return []
    shown, option = list_some([repr(column) for column in found]), shlex.quote(",".join(found))
    what, verb, they = (
        ("a copy, a function or a bin of it", "determines", "it is")
        if len(found) == 1
        else ("copies, functions or bins of it", "each determine", "they are")
    )
    return [
        f"{shown} {verb} the target {name!r} almost perfectly: {what}? If {they} not known before "
        f"the target, pass --exclude {option}."
    ]


def leaks(columns: Mapping[str, pd.Series], y: pd.Series) -> list[str]:
    """Names of columns that alone determine the response almost perfectly.

    Parameters
    ----------
    columns : mapping of Series
        Features, numbers or text; rows in which one is missing say nothing of it.
    y : Series
        One response, numbers or labels, without gaps and with the same index.
    """
    if any(x.isna().any() for _, x in columns.items()):
        return [name for name, x in columns.items() if leaks({name: x.dropna()}, y[x.notna()])]
    if len(y) < MIN_LEAK_ROWS:
        return []
    rows = np.unique(np.linspace(0, len(y) - 1, LEAK_ROWS).astype(int))
    rows = np.random.default_rng(0).permutation(rows)  # equal x are in an order that says nothing
    response = y.iloc[rows]
    if response.dtype == object or response.nunique() <= MOST_CLASSES:
        codes = pd.factorize(response)[0]
        follows: Callable[[AnyArray], bool] = partial(_class_follows, codes=codes)
    else:
        values = response.to_numpy(dtype=float)
        follows = partial(_number_follows, y=values, ranks=_ranks(values))
    return [name for name, x in columns.items() if follows(x.to_numpy()[rows])]


def xi(x: Array, y: Array) -> float:
    """Chatterjee's rank correlation: 0 for independence, near 1 if y is a function of x.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.tables.suspects import xi
    >>> x = np.linspace(-1, 1, 300)
    >>> round(xi(x, np.cos(3 * x)), 2)
    0.98
    """
    return _xi(np.argsort(x, kind="stable"), *_ranks(y))


def _ranks(y: Array) -> tuple[Array, float]:
    """Ranks of y, and the scale of their differences."""
    falls = pd.Series(-y).rank(method="max").to_numpy()
    ranks = pd.Series(y).rank(method="max").to_numpy()
    return ranks, 2 * float((falls * (y.size - falls)).sum()) / y.size


def _xi(order: Index, ranks: Array, scale: float) -> float:
    return 1 - float(np.abs(np.diff(ranks[order])).sum()) / scale


def _class_follows(x: AnyArray, codes: Index) -> bool:
    """Whether categories of x have one class each, or the classes are intervals of x."""
    n, common = codes.size, np.flatnonzero(np.bincount(codes) >= MIN_MEMBERS)
    if common.size < 2:
        return False
    order = _order_of_many_values(x)
    if order is None:
        right = _majority_of_others(pd.factorize(x)[0], codes) == codes
        return bool(np.mean([right[codes == label].mean() for label in common]) >= LEAK_ACCURACY)
    changes = np.count_nonzero(np.diff(codes[order]))
    return bool(changes <= 2 * (common.size - 1) + (1 - LEAK_ACCURACY) * n / 2)


def _number_follows(x: AnyArray, y: Array, ranks: tuple[Array, float]) -> bool:
    """Whether a number is a function of x, or x a bin of it."""
    order = _order_of_many_values(x)
    if order is not None:
        return _xi(order, *ranks) >= LEAK_XI * (1 - 3 / (y.size + 1))
    groups = pd.factorize(x)[0]
    return _is_bin(groups, y) or _share_between(groups, y) >= LEAK_SHARE


def _order_of_many_values(x: AnyArray) -> Index | None:
    """The order of the rows by x; None if x has so few values that they are categories."""
    if x.dtype == object:
        return None
    order = np.argsort(x, kind="stable")
    n_values = 1 + np.count_nonzero(np.diff(x[order]))
    return order if n_values > most_categories(x.size) else None


def _majority_of_others(values: Index, codes: Index) -> Index:
    """The most frequent class of the other rows with the same value; -1 if there are none."""
    table = np.zeros((values.max() + 1, codes.max() + 1), dtype=int)
    np.add.at(table, (values, codes), 1)
    others = table[values]
    others[np.arange(codes.size), codes] -= 1
    return np.where(others.any(axis=1), others.argmax(axis=1), -1)


def _is_bin(groups: Index, y: Array) -> bool:
    """Whether the values of y in different groups do not overlap."""
    counts = np.bincount(groups)
    common = np.flatnonzero(counts >= MIN_MEMBERS)
    if common.size < 2 or counts[common].sum() < 0.95 * y.size:
        return False
    spans = sorted((y[groups == g].min(), y[groups == g].max()) for g in common)
    return all(high < low for (_, high), (low, _) in pairwise(spans))


def _share_between(groups: Index, y: Array) -> float:
    """Share of the variance of y between the groups of two or more rows."""
    counts = np.bincount(groups)
    kept = counts[groups] > 1
    if counts.max() < 2 or kept.mean() < 0.5:
        return 0.0
    g, values = groups[kept], y[kept]
    means = np.bincount(g, values, minlength=counts.size) / counts
    total = float(((values - values.mean()) ** 2).sum())
    return 1 - float(((values - means[g]) ** 2).sum()) / total if total else 0.0
