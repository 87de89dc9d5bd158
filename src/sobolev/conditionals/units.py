"""Units of columns that cannot be told apart, from X alone.

A column that the other columns determine cannot be tested alone: given the others, nothing of it
is left to vary. Such columns are joined with those that determine them, and are tested as one unit.
Three kinds of determination are looked for:

1. Copies: the normal scores of two columns are (nearly) equal up to sign. Scores depend on ranks
   only, so the logarithm of a column is a copy of it.
2. Functions of one column: sorted by one column, the values of the other jump so little that its
   rank correlation xi (Chatterjee, 2021) is close to one. This finds squares and thresholds.
3. Linear combinations of several columns, such as totals and one-hot columns that sum to one, by
   leave-one-out ridge regression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from sobolev._standardize import Standardizer, rank_scores
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals._checks import unit_norm
from sobolev.conditionals.base import MAX_CATEGORIES
from sobolev.conditionals.ridge import GramInverse
from sobolev.criterion import disjoint_groups
from sobolev.validation import reject_extreme, reject_non_finite

# Absolute correlation of the scores of copies, which differ in no rank.
COPY = 1 - 1e-9
# Absolute correlation of the scores of near copies.
NEAR_COPY = 0.995
# With fewer rows than this only copies are looked for.
MIN_ROWS = 30
# A function of one column has at least this xi.
FUNCTION = 0.93
# xi of a function with b monotone pieces is about 1 - 3 b / n. Up to 20 / n may be missing, but xi
# must not be below LEAST_XI. This does not apply to pairs with a score correlation above MONOTONE,
# whose xi is large because of their correlation.
FINITE = 20.0
LEAST_XI = 0.8
MONOTONE = 0.9
# A column with few values is a function of another column if its xi is at least this and the other
# column determines its value except in this share of the rows.
FEW_VALUES_XI = 0.9
UNDETERMINED = 0.01
# Number of rows that must differ from the most frequent value; with fewer, agreement is chance.
MIN_OTHER = 10
# A first look at xi uses this many rows and keeps pairs with at least this xi, for pairs with small
# and with large correlation. With more columns than this it would take too long and is left out.
LOOK_ROWS = 200
LOOK_XI = (0.7, 0.85)
MAX_COLUMNS = 1000
# Leave-one-out R² of a linear combination, in the columns and also in their scores, so that a few
# outliers do not decide.
LINEAR = 0.99
# Leave-one-out R² of an exact linear combination, which need not hold in the scores.
EXACT_LINEAR = 0.9999
# Ridge penalties relative to the number of rows.
PENALTIES = (1e-6, 1e-4, 1e-2)
# Number of times that units are joined with the columns that determine them.
MAX_ROUNDS = 5

GROUP = "group"
COPIES = "copies"
NEAR_COPIES = "near copies"
FUNCTIONS = "one column is a function of another"
COMBINATION = "linear combination"
CATEGORIES = "full set of categories"
# Pairs of columns to join.
Pairs = list[tuple[int, int]]
# Several reasons are given in this order.
REASONS = (GROUP, COPIES, NEAR_COPIES, FUNCTIONS, COMBINATION)


@dataclass(frozen=True)
class Unit:
    """Columns that are tested together.

    Attributes
    ----------
    columns : array of int
        Positions of the columns, in ascending order.
    reason : str
        Why the columns belong together; empty for a single column.
    """

    columns: Index
    reason: str


def find_units(X: Any, groups: Any = None, *, names: Sequence[str] | None = None) -> list[Unit]:
    """Divide the columns of X into units that can be tested given the other columns.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Rows with numeric columns.
    groups : mapping or sequence of sequences, optional
        Disjoint groups of columns that must stay together. Further columns may join them.
    names : sequence of str, optional
        Names of the columns, for groups given by name and for error messages.

    Returns
    -------
    list of Unit
        Units in the order of their first columns. Each column is in exactly one unit.

    Notes
    -----
    Nothing is random. Monotone maps of a column leave copies and functions as they are; linear
    combinations are found in the columns as given. With more than 1000 columns, functions are not
    looked for; with fewer than 30 rows, only copies are.

    References
    ----------
    .. [1] Chatterjee, S. (2021). A new coefficient of correlation. Journal of the American
       Statistical Association, 116(536), 2009-2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals.units import find_units
    >>> x, z = np.random.default_rng(0).standard_normal((2, 200))
    >>> for unit in find_units(np.column_stack([x, z, x**2, np.exp(z)])):
    ...     print(unit.columns, unit.reason)
    [0 2] one column is a function of another
    [1 3] copies
    """
    table = np.asarray(X, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"X has the shape {table.shape}; pass a table with rows and columns.")
    n, d = table.shape
    if not n:
        raise ValueError("X has no rows.")
    reject_non_finite(table, X)
    reject_extreme(table, X, small=True)
    names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(names) != d:
        raise ValueError(f"names has {len(names)} entries, but X has {d} columns.")
    joined = _Joined(d)
    if groups is not None:
        for columns in disjoint_groups(groups, names).values():
            joined.add(columns[:1], columns[1:], GROUP)
    standard = Standardizer.fit(table, np.full(n, 1 / n))
    if standard.varying.sum() > 1:
        varying = np.flatnonzero(standard.varying)
        _look_for_all(table[:, varying], standard.transform(table), varying, joined)
    return [Unit(unit, joined.reason(unit, table)) for unit in joined.units()]


class _Joined:
    """Pairs of columns that belong together, with the reason for each."""

    def __init__(self, d: int) -> None:
        self.pairs: dict[tuple[int, int], str] = {}
        self.d = d

    def add(self, first: Iterable[int], second: Iterable[int], reason: str) -> None:
        """Add pairs; ``first`` may be one column for all."""
        for i, j in np.broadcast(np.asarray(first), np.asarray(second)):
            self.pairs.setdefault((int(i), int(j)), reason)

    def labels(self) -> Index:
        """Number of the unit of each column."""
        i, j = np.array(list(self.pairs), dtype=np.intp).reshape(-1, 2).T
        graph = sp.coo_array((np.ones(i.size), (i, j)), shape=(self.d, self.d))
        return np.asarray(connected_components(graph, directed=False)[1], dtype=np.intp)

    def units(self) -> list[Index]:
        """Columns of each unit, in the order of their first columns."""
        labels = self.labels()
        order = np.argsort(labels, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
        return sorted(parts, key=lambda part: int(part[0]))

    def reason(self, columns: Index, X: Array) -> str:
        """Reasons of the pairs in a unit, in words."""
        if columns.size == 1:
            return ""
        members = set(columns.tolist())
        found = {reason for (i, _), reason in self.pairs.items() if i in members}
        if found - {GROUP} and _is_full_set(X[:, columns]):
            found = found & {GROUP}
            return ", ".join([*found, CATEGORIES])
        if NEAR_COPIES in found:
            found.discard(COPIES)
        return ", ".join(reason for reason in REASONS if reason in found)


def _is_full_set(own: Array) -> bool:
    """Whether the columns have two values each and exactly one is high in every row."""
    low, high = own.min(axis=0), own.max(axis=0)
    is_high = own == high
    two_values = bool((is_high | (own == low)).all()) and bool((low < high).all())
    return two_values and bool((is_high.sum(axis=1) == 1).all())


def _look_for_all(X: Array, Z: Array, columns: Index, joined: _Joined) -> None:
    """Join copies, then functions of one column, then linear combinations.

    X holds the varying columns, Z the same in standard units; ``columns`` are their positions.
    """
    scores = unit_norm(rank_scores(X))
    correlation = np.abs(scores.T @ scores)
    for i, j, reason in _copies(correlation):
        joined.add(columns[i], columns[j], reason)
    if X.shape[0] < MIN_ROWS:
        return
    if columns.size <= MAX_COLUMNS:
        xi = _functions(X, correlation, joined.labels()[columns])
        _join(partial(_function_pairs, xi, correlation), columns, FUNCTIONS, joined)
    raw = _Regressions.of(Z)
    ranked = cache(partial(_Regressions.of, scores * np.sqrt(len(Z))))  # seldom needed
    _join(partial(_combination_pairs, raw, ranked), columns, COMBINATION, joined)


def _join(find: Callable[[Index], Pairs], columns: Index, reason: str, joined: _Joined) -> None:
    """Join units with columns that determine them until no unit is determined by the others."""
    for _ in range(MAX_ROUNDS):
        pairs = find(joined.labels()[columns])
        if not pairs:
            return
        for i, j in pairs:
            joined.add(columns[[i]], columns[[j]], reason)


def _copies(correlation: Array) -> list[tuple[Index, Index, str]]:
    """Pairs of copies, and pairs of near copies from clusters in which all pairs are near copies.

    Chains, in which each column is close to the next, are cut by complete linkage.
    """
    same = np.triu(correlation >= COPY, 1)
    first, second = np.nonzero(same)
    found = [(first, second, COPIES)]
    one_of_each = np.flatnonzero(~same.any(axis=0))  # the first column of each set of copies
    close = correlation[np.ix_(one_of_each, one_of_each)] >= NEAR_COPY
    _, label = connected_components(sp.csr_array(close), directed=False)
    for chain in np.flatnonzero(np.bincount(label) > 1):
        members = one_of_each[label == chain]
        distance = 1 - correlation[np.ix_(members, members)]
        np.fill_diagonal(distance, 0.0)
        tree = linkage(squareform(np.maximum(distance, 0.0), checks=False), "complete")
        cluster = fcluster(tree, 1 - NEAR_COPY, "distance")
        for c in np.unique(cluster):
            near = members[cluster == c]
            found.append((np.repeat(near[:1], near.size - 1), near[1:], NEAR_COPIES))
    return found


def _functions(X: Array, correlation: Array, labels: Index) -> Array:
    """xi of column j given column k, at (k, j), if j is a function of k; zero if it is not."""
    n, d = X.shape
    xi = np.zeros((d, d))
    monotone = correlation >= MONOTONE
    # Near copies in different units come from a chain that was cut.
    candidates = (labels[:, None] != labels) & (correlation < NEAR_COPY)
    candidates &= _first_look(X) >= np.where(monotone, LOOK_XI[1], LOOK_XI[0])
    if not candidates.any():
        return xi
    counts = [np.unique(x, return_counts=True)[1] for x in X.T]
    candidates[:, [n - count.max() < MIN_OTHER for count in counts]] = False
    few = np.array([count.size <= MAX_CATEGORIES for count in counts])
    needed = np.where(monotone, FUNCTION, np.clip(1 - FINITE / n, LEAST_XI, FUNCTION))
    needed[:, few] = FEW_VALUES_XI
    for k in np.flatnonzero(candidates.any(axis=1)):
        columns = np.flatnonzero(candidates[k])
        found = _xi(X[:, k], X[:, columns])
        for j, value in zip(columns, found, strict=True):
            if value >= needed[k, j] and (not few[j] or _is_determined(X[:, k], X[:, j])):
                xi[k, j] = value
    return xi


def _function_pairs(xi: Array, correlation: Array, labels: Index) -> Pairs:
    """A column of each unit of functions of other columns, with the best of these columns.

    The best has the largest correlation among those whose xi is largest up to 0.01.
    """
    xi = np.where(labels[:, None] != labels, xi, 0.0)
    found = []
    for unit in _units_within(np.max(xi, axis=0) > 0, labels):
        strength = xi[:, unit].max(axis=1)
        best = strength >= strength.max() - 0.01
        partner = np.where(best, correlation[:, unit].max(axis=1), -1.0).argmax()
        found.append((int(unit[0]), int(partner)))
    return found


def _units_within(possible: Mask, labels: Index) -> list[Index]:
    """Columns of the units all of whose columns are possible."""
    size = np.bincount(labels)  # zero for constant columns, which are left out
    complete = (size > 0) & (np.bincount(labels, weights=possible) == size)
    return [np.flatnonzero(labels == u) for u in np.flatnonzero(complete)]


def _first_look(X: Array) -> Array:
    """xi of every column given every other from some of the rows, ties in the order of rows."""
    n, d = X.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, LOOK_ROWS)).astype(np.intp))
    X = X[rows]
    order = np.argsort(X, axis=0, kind="stable")
    ranks = _counts_below(X).astype(np.float32)
    jumps = np.empty((d, d))
    for k in range(d):
        jumps[k] = np.abs(np.diff(ranks[order[:, k]], axis=0)).sum(axis=0)
    return 1 - jumps / _expected_jumps(X)


def _xi(x: Array, Y: Array) -> Array:
    """Chatterjee's xi of the columns of Y given x, averaged over the orders of ties in x."""
    return np.asarray(1 - _jumps(x, _counts_below(Y)) / _expected_jumps(Y))


def _counts_below(Y: Array) -> Array:
    """Number of values in the column that are at most this large."""
    ordered = np.sort(Y, axis=0)
    found = [np.searchsorted(o, y, "right") for o, y in zip(ordered.T, Y.T, strict=True)]
    return np.array(found, dtype=float).T


def _expected_jumps(Y: Array) -> Array:
    """Sum of the jumps between rows in random order, 2 sum l (n - l) / n; infinite if constant."""
    n = Y.shape[0]
    above = _counts_below(-Y)
    found = 2 * np.sum(above * (n - above), axis=0) / n
    return np.where(found > 0, found, np.inf)


def _jumps(x: Array, R: Array) -> Array:
    """Sum of |R_i - R_i+1| over rows sorted by x, averaged over the orders of ties in x."""
    _, label = np.unique(x, return_inverse=True)
    size = np.bincount(label)
    if size.size == x.size:
        return np.asarray(np.abs(np.diff(R[np.argsort(x)], axis=0)).sum(axis=0))
    inside = _pairwise(label, R)
    # Pairs of neighbouring sets of ties: (0, 1), (2, 3), ... and (1, 2), (3, 4), ...
    both = np.empty((size.size - 1, R.shape[1]))
    both[0::2] = _pairwise(label // 2, R)[: both[0::2].shape[0]]
    both[1::2] = _pairwise((label + 1) // 2, R)[1 : 1 + both[1::2].shape[0]]
    between = (both - inside[:-1] - inside[1:]) / (size[:-1] * size[1:])[:, None]
    within = 2 * inside / size[:, None]
    return np.asarray(between.sum(axis=0) + within.sum(axis=0))


def _pairwise(label: Index, R: Array) -> Array:
    """Sum of |R_i - R_j| over all pairs of rows with the same label, (n_labels, m)."""
    big = R.max() + 1
    order = np.sort(label)
    size = np.bincount(label)
    start = np.cumsum(size) - size
    sorted_within = np.sort(R + big * label[:, None], axis=0) - big * order[:, None]
    weight = 2 * (np.arange(label.size) - start[order]) - size[order] + 1
    return np.asarray(np.add.reduceat(weight[:, None] * sorted_within, start, axis=0))


def _is_determined(x: Array, y: Array) -> bool:
    """Whether y, which has few values, changes little more often than a function of x would.

    A function with k values changes about k times in the order of x, and each row that does not
    follow it adds two changes.
    """
    values = np.unique(y)
    changes = _jumps(x, (y[:, None] == values).astype(float)).sum() / 2
    return bool(changes <= values.size + 2 * int(UNDETERMINED * y.size))


@dataclass(frozen=True)
class _Regressions:
    """Ridge regressions of columns on the others, with the columns they may determine."""

    inverse: GramInverse
    at_best: Array

    @classmethod
    def of(cls, Z: Array) -> _Regressions:
        """From columns in standard units."""
        inverse = GramInverse(Z)
        # No leave-one-out error is smaller than the in-sample error at the smallest penalty.
        return cls(inverse, 1 - inverse.in_sample(PENALTIES[0] * Z.shape[0]))

    def alone(self, columns: Index) -> Array:
        """Leave-one-out R² of columns given all others."""
        n = self.inverse.Z.shape[0]
        errors = [self.inverse.leave_one_out(a * n, columns) for a in PENALTIES]
        return 1 - np.min([np.mean(e**2, axis=0) for e in errors], axis=0)

    def together(self, columns: Index) -> tuple[float, int]:
        """The smallest R² in a set of columns given those outside, and the strongest of these."""
        n = self.inverse.Z.shape[0]
        fits = [self.inverse.block(columns, a * n) for a in PENALTIES]
        errors = np.array([np.mean(e**2, axis=0) for _, e in fits])
        worst = errors.max(axis=1)
        # The largest penalty that is good enough gives the most stable coefficients.
        chosen = np.flatnonzero(worst <= max(1 - LINEAR, worst.min()))[-1]
        partner = np.abs(fits[chosen][0]).max(axis=1).argmax()
        return float(1 - errors.min(axis=0).max()), int(partner)


def _combination_pairs(
    raw: _Regressions, ranked: Callable[[], _Regressions], labels: Index
) -> Pairs:
    """A column of each unit that the others determine, with the column of largest coefficient."""
    possible = raw.at_best >= LINEAR
    alone = np.flatnonzero(possible & (np.bincount(labels)[labels] == 1))
    if alone.size:
        possible[alone] = raw.alone(alone) >= LINEAR
    found = []
    for unit in _units_within(possible, labels):
        if unit.size == labels.size:
            continue
        r2, partner = raw.together(unit)
        if r2 >= EXACT_LINEAR or (r2 >= LINEAR and ranked().together(unit)[0] >= LINEAR):
            found.append((int(unit[0]), partner))
    return found
