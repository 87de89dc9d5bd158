"""Conditional models made from fitted ones: tabulated for many tests, or with a corrected mean."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals._checks import moments
from sobolev.conditionals.base import Conditional
from sobolev.conditionals.ridge import RidgeWithout

# Largest and smallest probability of a value after the mean of two values was corrected.
LEAST_PROBABILITY = 1e-3


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


class RecentredConditional(Conditional):
    """The distributions of another model with their means corrected.

    If the differences between a column and the means of its distributions can be predicted from the
    other columns by ridge regression, their leave-one-out predictions are added to the means, and
    the widths shrink as the differences do.

    Parameters
    ----------
    model : Conditional
        Fitted model.
    X : array of shape (n, d)
        The rows that it was fitted to.
    """

    def __init__(self, model: Conditional, X: Array) -> None:
        self.model, self.X_ = model, X
        self.n_rows_, self.n_features_in_ = X.shape
        self._ridge = RidgeWithout(X, model.groups_)
        self._corrections: dict[int, tuple[Array, float]] = {}

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Moved and narrowed nodes; two values get other probabilities instead."""
        nodes, weights = self.model.distribution(X, j, rows)
        shift, narrower = self._correction(j)
        if nodes.shape[1] == 2:
            step = nodes[:, 1] - nodes[:, 0]
            high = weights[:, 1] + shift[rows] / np.where(step != 0, step, 1.0)
            high = np.clip(high, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
            return nodes, np.column_stack([1 - high, high])
        mean = moments(nodes, weights)[0][:, None]
        return mean + shift[rows, None] + narrower * (nodes - mean), weights

    def _correction(self, j: int) -> tuple[Array, float]:
        """What to add to the mean of column j in each row, and the factor of its width."""
        if j not in self._corrections:
            everywhere = np.arange(self.X_.shape[0])
            mean, _ = moments(*self.model.distribution(self.X_, j, everywhere))
            before = self.X_[:, j] - mean
            after = self._ridge.residuals(before, j)
            size = max(float(np.mean(before**2)), 1e-300)
            narrower = min(1.0, float(np.sqrt(np.mean(after**2) / size)))
            self._corrections[j] = (before - after, narrower)
        return self._corrections[j]
