"""Conditional models made from fitted ones: tabulated for many tests, or with a corrected mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sobolev._standardize import NormalScores, has_heavy_tails, rank_scores
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional, levels
from sobolev.conditionals.flexible import HeldOut

# Largest and smallest probability of a value after the mean of two values was corrected.
LEAST_PROBABILITY = 1e-3
# Smallest standard deviation of a model, in normal scores.
LEAST_SPREAD = 1e-3
# With more rows the distributions of one unit only are kept in memory.
MAX_KEPT = 5000


class TabulatedConditional(Conditional):
    """The distributions of all fitted rows, for many tests of the same table.

    Parameters
    ----------
    model : Conditional
        Fitted model.
    X : array of shape (n, d)
        The rows that it was fitted to.
    units : iterable of array of int
        Columns, alone or together, whose distributions are tabulated.
    """

    def __init__(self, model: Conditional, X: Array, units: Iterable[Index]) -> None:
        self.n_rows_, self.n_features_in_ = X.shape
        rows = np.arange(X.shape[0])
        self._tables: dict[tuple[int, ...], tuple[Array, Array]] = {}
        for unit in units:
            if unit.size == 1:
                found = model.distribution(X, int(unit[0]), rows)
            else:
                found = model.joint_distribution(X, unit, rows)
            self._tables[tuple(unit.tolist())] = found

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights from the table."""
        return self.joint_distribution(X, np.array([j]), rows)

    def joint_distribution(self, X: Array, columns: Index, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights from the table."""
        nodes, weights = self._tables[tuple(columns.tolist())]
        return nodes[rows], weights[rows]


class CorrectedConditional(Conditional):
    """The distributions of another model, corrected where the other columns show that it is wrong.

    What the model leaves of a unit, a column or several, is predicted from the other columns by
    :class:`~sobolev.conditionals.flexible.HeldOut`. Columns with many values are moved by these
    predictions and have the errors that are left then; the values of a category get other
    probabilities. Where nothing can be predicted beyond chance, means and probabilities stay, and
    spreads become those of the errors.

    Parameters
    ----------
    model : Conditional
        Fitted model.
    X : array of shape (n, d)
        The rows that it was fitted to.
    rows : array of bool, shape (n,), optional
        The rows that show how the columns depend on each other; others are not corrected.
    """

    def __init__(self, model: Conditional, X: Array, rows: Mask | None = None) -> None:
        self.model, self.X_ = model, X
        self.rows = np.arange(len(X)) if rows is None else np.flatnonzero(rows)
        self.n_rows_, self.n_features_in_ = X.shape
        self._tables: dict[tuple[int, ...], tuple[Array, Array]] = {}

    @cached_property
    def _scores(self) -> Array:
        return rank_scores(self.X_[self.rows])

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Corrected nodes and weights of one column."""
        nodes, weights = self._of_unit(np.array([j]))
        return nodes[rows, :, 0], weights[rows]

    def joint_distribution(self, X: Array, columns: Index, rows: Index) -> tuple[Array, Array]:
        """Corrected nodes and weights of several columns."""
        nodes, weights = self._of_unit(columns)
        return nodes[rows], weights[rows]

    def _of_unit(self, columns: Index) -> tuple[Array, Array]:
        """Nodes (n, B, c) and weights (n, B) of a unit in all fitted rows."""
        key = tuple(columns.tolist())
        if key not in self._tables:
            if self.n_rows_ > MAX_KEPT:  # one unit is enough: its blocks follow each other
                self._tables.clear()
            self._tables[key] = self._corrected(columns)
        return self._tables[key]

    def _corrected(self, columns: Index) -> tuple[Array, Array]:
        if columns.size == 1:
            found = self.model.distribution(self.X_, int(columns[0]), np.arange(self.n_rows_))
            nodes, weights = found[0][:, :, None], found[1]
        else:
            found = self.model.joint_distribution(self.X_, columns, np.arange(self.n_rows_))
            nodes, weights = found
        if columns.size == self.n_features_in_:
            return nodes, weights
        nodes, weights = nodes.copy(), weights.copy()
        own, rows = self.X_[np.ix_(self.rows, columns)], self.rows
        groups = self.model.groups_
        held_out = HeldOut(
            np.delete(self._scores, columns, axis=1), None if groups is None else groups[rows]
        )
        hit = (own[:, None, :] == nodes[rows]).all(axis=2)
        if hit.any(axis=1).all() and (nodes == nodes[:1]).all():  # the values of a category
            weights[rows] += held_out.mean(hit - weights[rows])
            weights = np.clip(weights, LEAST_PROBABILITY, None)
            return nodes, weights / weights.sum(axis=1, keepdims=True)
        nodes[rows], weights[rows] = _moved(own, nodes[rows], weights[rows], held_out)
        return nodes, weights


def _moved(own: Array, nodes: Array, weights: Array, held_out: HeldOut) -> tuple[Array, Array]:
    """Nodes (n, B, c) and weights (n, B) with corrected means and spreads; own has the values."""
    p = np.full(len(own), 1 / len(own))
    maps = [_scale(column, p) for column in own.T]
    scores = np.stack([to(nodes[:, :, k]) for k, to in enumerate(maps)], axis=2)
    mean = np.einsum("nbc,nb->nc", scores, weights)
    left = np.column_stack([to(x) for to, x in zip(maps, own.T, strict=True)]) - mean
    shift = held_out.mean(left, mean)
    if shift.any():  # the shape of the model was that of its wrong means, too
        errors = left - shift
        spread = held_out.spread(errors)
        shape = _quantiles(errors / spread, nodes.shape[1])
        scores = (mean + shift)[:, None, :] + spread[:, None, :] * shape
        weights = np.full(weights.shape, 1 / weights.shape[1])
    else:
        spread = np.sqrt(np.einsum("nbc,nb->nc", (scores - mean[:, None, :]) ** 2, weights))
        factor = held_out.spread(left / np.maximum(spread, LEAST_SPREAD))
        scores = mean[:, None, :] + factor[:, None, :] * (scores - mean[:, None, :])
    return np.stack([to.inverse(scores[:, :, k]) for k, to in enumerate(maps)], axis=2), weights


@dataclass(frozen=True)
class _Units:
    """Standard units of a column, and back within its range."""

    x: Array

    def __call__(self, values: Array) -> Array:
        return np.asarray((values - self.x.mean()) / self.size)

    @property
    def size(self) -> float:
        """The standard deviation, or one."""
        return float(self.x.std()) or 1.0

    def inverse(self, values: Array) -> Array:
        """Values with the given units."""
        found = self.x.mean() + self.size * values
        return np.asarray(np.clip(found, self.x.min(), self.x.max()))


def _scale(x: Array, p: Array) -> NormalScores | _Units:
    """The scale on which a column is corrected: normal scores if it has heavy tails."""
    return NormalScores.fit(x, p) if has_heavy_tails(x, p) else _Units(x)


def _quantiles(errors: Array, n_nodes: int) -> Array:
    """Whole rows of errors (n, c) in units of their size, at equally spaced ranks of the first."""
    errors = errors / np.maximum(np.sqrt(np.mean(errors**2, axis=0)), 1e-300)
    order = np.argsort(errors[:, 0], kind="stable")
    return np.asarray(errors[order[(levels(n_nodes) * len(errors)).astype(np.intp)]])
