"""Probability integral transforms of a conditional model, and tests of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import kstwo, norm, t
from sklearn.base import clone

from sobolev._random import RandomState, check_generator
from sobolev._standardize import Standardizer, rank_scores
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import (
    MAX_CATEGORIES,
    Conditional,
    OwnConditional,
    draw_nodes,
    fold_numbers,
)

# Function of j that returns rows of column j with the nodes and weights of their distributions.
Distributions = Callable[[int], list[tuple[Index, Array, Array]]]

# Means and widths of the distributions are compared with the transforms only if they vary by at
# least this fraction of a width: smaller variation comes from leaving out the row itself.
VARIES = 0.1
# Number of folds for objects that do not take row numbers.
N_FOLDS = 5


@dataclass(frozen=True)
class Seen:
    """Transforms, draws and moments of the distributions of m columns in n rows.

    Attributes
    ----------
    columns : array of int, shape (m,)
        Positions of the columns.
    pit : array of shape (n, m)
        Probability integral transforms of the observed values.
    drawn : array of shape (n, m)
        One draw from each distribution.
    means, widths : array of shape (n, m)
        Means and standard deviations of the distributions.
    off_values : array of bool, shape (m,)
        True for columns with few values whose distributions have other values.
    """

    columns: Index
    pit: Array
    drawn: Array
    means: Array
    widths: Array
    off_values: Mask

    @classmethod
    def of(
        cls, distributions: Distributions, X: Array, columns: Index, random_state: RandomState
    ) -> Seen:
        """Evaluate the distributions column by column."""
        generators = check_generator(random_state).spawn(X.shape[1])
        pit, drawn, means, widths = np.empty((4, X.shape[0], columns.size))
        off_values = np.zeros(columns.size, dtype=bool)
        for i, j in enumerate(columns):
            x, at_atom = X[:, j], np.empty(X.shape[0], dtype=bool)
            slack = 1e-9 * x.std() + 8 * np.finfo(float).eps * np.abs(x)
            level = generators[j].random((2, x.size))
            for rows, nodes, weights in distributions(int(j)):
                nodes, weights = _sorted(nodes, weights)
                pit[rows, i], at_atom[rows] = transform(
                    nodes, weights, x[rows], level[0, rows], slack[rows]
                )
                drawn[rows, i] = draw_nodes(nodes, weights, level[1, rows][:, None])[:, 0]
                means[rows, i], widths[rows, i] = moments(nodes, weights)
            off_values[i] = at_atom.mean() < 0.5 and np.unique(x).size <= MAX_CATEGORIES
        return cls(columns, pit, drawn, means, widths, off_values)


def unseen_distributions(
    conditional: Any, table: Any, refit: bool | None, fitted: Index | None = None
) -> Distributions:
    """Return a function of j that gives the distributions of rows that the model has not seen.

    The rows of ``table`` must be the fitted rows in the same order, or those at ``fitted``, unless
    ``refit`` is False.
    """
    n = table.shape[0]
    knows_rows = isinstance(conditional, Conditional) and not isinstance(
        conditional, OwnConditional
    )
    if refit is None:
        refit = not knows_rows and hasattr(conditional, "fit")
        if knows_rows and fitted is None and conditional.n_rows_ != n:
            raise ValueError(
                f"X has {n} rows, but the model was fitted to {conditional.n_rows_}; pass the same "
                "rows, or refit=False for new rows."
            )
        rows = np.arange(n) if fitted is None else fitted
    else:
        rows = np.full(n, -1)
    if refit:
        return _refitted(conditional, table)
    if knows_rows:
        X = np.asarray(table, dtype=float)
        return lambda j: [(np.arange(n), *conditional.distribution(X, j, rows))]
    return lambda j: [(np.arange(n), *conditional.grid(table, j))]


def _refitted(conditional: Any, table: Any) -> Distributions:
    """Distributions from copies of a model, each fitted without one fold."""
    folds = fold_numbers(table.shape[0], N_FOLDS, 0)
    take = table.iloc.__getitem__ if hasattr(table, "iloc") else table.__getitem__
    fresh = clone if hasattr(conditional, "get_params") else copy.deepcopy
    parts = [np.flatnonzero(folds == k) for k in range(N_FOLDS)]
    models = [fresh(conditional).fit(take(folds != k)) for k in range(N_FOLDS)]
    return lambda j: [
        (part, *model.grid(take(part), j)) for part, model in zip(parts, models, strict=True)
    ]


def _sorted(nodes: Any, weights: Any) -> tuple[Array, Array]:
    nodes, weights = np.asarray(nodes, dtype=float), np.asarray(weights, dtype=float)
    if nodes.shape != weights.shape or nodes.ndim != 2:
        raise ValueError("grid(X, j) must return nodes and weights of the same shape (n, B).")
    if not np.isfinite(nodes).all() or (weights < 0).any():
        raise ValueError("grid(X, j) must return finite nodes and nonnegative weights.")
    weights = weights / weights.sum(axis=1, keepdims=True)
    if (np.diff(nodes, axis=1) >= 0).all():
        return nodes, weights
    order = np.argsort(nodes, axis=1, kind="stable")
    return np.take_along_axis(nodes, order, axis=1), np.take_along_axis(weights, order, axis=1)


def transform(
    nodes: Array, weights: Array, x: Array, level: Array, slack: Any = 0.0
) -> tuple[Array, Mask]:
    """The randomised probability integral transform of x in discrete distributions.

    The transform of a value at an atom is uniform over the mass of the atom. Between atoms, which
    then represent slices of a continuous distribution, it is interpolated linearly between the
    middles of their masses; outside the range of the atoms it is uniform over half the outer mass.

    Parameters
    ----------
    nodes, weights : array of shape (n, B)
        Distributions, with nodes in ascending order.
    x : array of shape (n,)
        Observed values.
    level : array of shape (n,)
        Uniform random numbers.
    slack : float or array of shape (n,)
        Largest distance from an atom at which a value counts as being at it.

    Returns
    -------
    u : array of shape (n,)
        Transforms, in (0, 1).
    at_atom : array of bool, shape (n,)
        Whether each value is at an atom.
    """
    B = nodes.shape[1]
    first = np.sum(nodes < (x - slack)[:, None], axis=1)
    last = np.sum(nodes <= (x + slack)[:, None], axis=1)
    at_atom = last > first
    bounds = np.concatenate([np.zeros((x.size, 1)), np.cumsum(weights, axis=1)], axis=1)
    low, high = _take(bounds, first), _take(bounds, last)
    middle = bounds[:, 1:] - 0.5 * weights
    left, right = np.maximum(first - 1, 0), np.minimum(first, B - 1)
    inside = (first > 0) & (first < B)
    step = np.where(inside, _take(nodes, right) - _take(nodes, left), 1.0)
    share = np.where(inside, (x - _take(nodes, left)) / step, level)
    from_, to = _take(middle, left), _take(middle, right)
    from_, to = np.where(first == 0, 0.0, from_), np.where(first == B, 1.0, to)
    u = np.where(at_atom, low + level * (high - low), from_ + share * (to - from_))
    return np.clip(u, 1e-12, 1 - 1e-12), at_atom


@dataclass(frozen=True)
class Others:
    """The columns of X as predictors that a conditional distribution may depend on.

    Attributes
    ----------
    scores : array of shape (n, 2 d)
        Normal scores of the columns and their absolute values, with mean zero and norm one.
    size : array of shape (n,)
        Sum of the absolute normal scores of each row.
    absolute : array of shape (n, d)
        Absolute normal scores.
    units : array of shape (n, d)
        Columns in standard units.
    varying : array of bool, shape (d,)
        False for constant columns.
    """

    scores: Array
    size: Array
    absolute: Array
    units: Array
    varying: Mask

    @classmethod
    def of(cls, X: Array) -> Others:
        """Compute from the rows of X."""
        standard = Standardizer.fit(X, np.full(X.shape[0], 1 / X.shape[0]))
        units = (X - standard.center) / standard.scale * standard.varying
        scores = rank_scores(X) * standard.varying
        absolute = np.abs(scores)
        both = np.hstack([unit_norm(scores), unit_norm(absolute)])
        return cls(both, absolute.sum(axis=1), absolute, units, standard.varying)

    def candidates(self, columns: Index, means: Array, widths: Array) -> Array:
        """Functions of the other columns, (3, n, m): outlyingness, mean and width.

        They have mean zero and norm one; means or widths that hardly vary are set to zero.
        """
        typical = widths.mean(axis=0)
        means = np.where(means.std(axis=0) >= VARIES * typical, means, 0.0)
        widths = np.where(widths.std(axis=0) >= VARIES * typical, widths, 0.0)
        out = self.size[:, None] - self.absolute[:, columns]
        return np.stack([unit_norm(rank_scores(values)) for values in (out, means, widths)])

    def dependence(self, values: Array, more: Array, columns: Index) -> tuple[Array, Array]:
        """The strongest correlation of each column of ``values`` with a predictor, and its p-value.

        The predictors are the other columns, their absolute scores and ``more``; the p-value is
        corrected for their number by Bonferroni.
        """
        n, d = self.units.shape
        values = unit_norm(values)
        found = self.scores.T @ values
        position = np.arange(columns.size)
        found[columns, position] = found[columns + d, position] = 0.0
        found = np.vstack([found, np.einsum("ni,cni->ci", values, more)])
        strongest = np.take_along_axis(found, np.abs(found).argmax(axis=0)[None], axis=0)[0]
        tested = np.maximum(np.count_nonzero(found, axis=0), 1)
        strength = np.abs(strongest) * np.sqrt((n - 2) / np.maximum(1 - strongest**2, 1e-12))
        return strongest, np.minimum(2 * t.sf(strength, n - 2) * tested, 1.0)

    @cached_property
    def _squares(self) -> Array:
        return self.units**2

    def gaps(self, X: Array, drawn: Array, columns: Index) -> tuple[Array, Array, Array, Array]:
        """Differences between the correlations of draws and of columns.

        Returns the most significant difference, its absolute value in standard errors, the root
        mean square of all differences in standard errors, and the p-value of the first. Units do
        not change if draw and column are swapped; standard errors are those of random signs.
        """
        n, d = self.units.shape
        x = X[:, columns]
        scale = np.vstack([x, drawn]).std(axis=0)
        difference = (drawn - x) / np.where(scale > 0, scale, 1.0)
        gap = self.units.T @ difference / n
        error = np.sqrt(self._squares.T @ difference**2) / n
        use = (np.arange(d)[:, None] != columns) & self.varying[:, None] & (error > 0)
        standard = np.where(use, gap / np.where(use, error, 1.0), 0.0)
        worst = np.abs(standard).argmax(axis=0)[None]
        largest = np.abs(np.take_along_axis(standard, worst, axis=0)[0])
        count = np.maximum(use.sum(axis=0), 1)
        rms = np.sqrt(np.sum(standard**2, axis=0) / count)
        pvalue = np.minimum(2 * norm.sf(largest) * count, 1.0)
        return np.take_along_axis(gap, worst, axis=0)[0], largest, rms, pvalue


def moments(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each distribution."""
    mean = np.sum(weights * nodes, axis=1)
    return mean, np.sqrt(np.sum(weights * (nodes - mean[:, None]) ** 2, axis=1))


def uniform_test(pit: Array) -> tuple[Array, Array]:
    """The Kolmogorov-Smirnov distance from the uniform distribution, and its p-value."""
    n = pit.shape[0]
    u = np.sort(pit, axis=0)
    steps = np.arange(n + 1)[:, None] / n
    distance = np.maximum(np.max(steps[1:] - u, axis=0), np.max(u - steps[:-1], axis=0))
    return distance, np.asarray(kstwo.sf(distance, n))


def normal_scores(u: Array) -> Array:
    """Normal quantiles of u: standard normal if u is uniform."""
    return np.asarray(ndtri(np.clip(u, 1e-12, 1 - 1e-12)))


def unit_norm(values: Array) -> Array:
    """Columns scaled to mean zero and norm one; zero for constant columns."""
    centred = values - values.mean(axis=0)
    size = np.sqrt(np.sum(centred**2, axis=0))
    return centred / np.where(size > 1e-9, size, np.inf)


def _take(values: Array, position: Index) -> Array:
    return np.take_along_axis(values, position[:, None], axis=1)[:, 0]
