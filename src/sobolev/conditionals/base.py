"""What every conditional model shares: discrete distributions on a grid, draws, row numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Index
from sobolev.validation import validate_rows

# Number of nodes of the discrete distribution of a continuous column, as in the paper.
N_NODES = 100


class Conditional(BaseEstimator):
    """A model of one column given the others.

    A subclass learns from checked rows in ``learn(X)`` and gives, in ``distribution(X, j, rows)``,
    the discrete conditional distribution of column j for every row: nodes and weights. ``rows``
    holds the position of each row in the table that was fitted, or -1 for a new row: a fitted row
    gets the prediction of a model that has not seen it.
    """

    n_features_in_: int
    n_rows_: int
    # A model of your own may offer the joint distribution of several columns.
    joint_grid: Any = None

    def fit(self, X: Any, y: Any = None) -> Conditional:
        """Learn from the rows of X.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        self
        """
        return self.fit_validated(validate_rows(self, X, reset=True))

    def fit_validated(self, X: Array) -> Conditional:
        """Learn from rows that were checked at the door."""
        self.n_rows_, self.n_features_in_ = X.shape
        self.learn(X)
        return self

    def grid(self, X: Any, j: int, rows: Any = None) -> tuple[Array, Array]:
        """The conditional distribution of column j given the other columns of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        j : int
            The column.
        rows : array of int, shape (n,), optional
            Positions of these rows in the table that was fitted: they get predictions of models
            that have not seen them. -1, and every row if not given, is a new row.

        Returns
        -------
        nodes, weights : arrays of shape (n, B)
            The rows of the weights sum to one.
        """
        check_is_fitted(self, "n_features_in_")
        X = validate_rows(self, X, reset=False)
        d, n = self.n_features_in_, X.shape[0]
        if not -d <= j < d:
            raise ValueError(f"column {j} does not exist; X has {d} columns.")
        positions = np.full(n, -1) if rows is None else np.asarray(rows, dtype=np.intp)
        if positions.shape != (n,):
            raise ValueError(f"rows has the shape {positions.shape}; X has {n} rows.")
        return self.distribution(X, j % d, positions)

    def sample(
        self, X: Any, j: int, n: int = 1, random_state: RandomState = None, rows: Any = None
    ) -> Array:
        """Draw column j given the others, n times for each row.

        Parameters
        ----------
        X, j, rows
            As for :meth:`grid`.
        n : int, default=1
            Number of draws.
        random_state : int, Generator, RandomState or None, default=None

        Returns
        -------
        array of shape (n_rows, n)
        """
        nodes, weights = self.grid(X, j, rows)
        level = check_generator(random_state).random((nodes.shape[0], n))
        cumulated = np.cumsum(weights, axis=1)
        cumulated /= cumulated[:, -1:]
        position = np.sum(level[:, :, None] >= cumulated[:, None, :], axis=2)
        return np.take_along_axis(nodes, np.minimum(position, nodes.shape[1] - 1), axis=1)

    def learn(self, X: Array) -> None:
        """Learn from checked rows."""
        raise NotImplementedError

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights of column j for checked rows at these positions (-1: new)."""
        raise NotImplementedError


class OwnConditional(Conditional):
    """Adapter for a user's object with ``fit(X)`` and ``grid(X, j)``, which takes no row numbers.

    Parameters
    ----------
    model : object
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.joint_grid = getattr(model, "joint_grid", None)

    def learn(self, X: Array) -> None:
        """Fit the user's object."""
        self.model.fit(X)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """What the user's object gives."""
        nodes, weights = self.model.grid(X, j)
        return nodes, weights


def levels(n_nodes: int) -> Array:
    """Mid-points of equal slices of (0, 1)."""
    return (np.arange(n_nodes) + 0.5) / n_nodes


def fold_numbers(n: int, n_folds: int, random_state: RandomState) -> Index:
    """The fold of every row; the sizes of the folds differ by at most one."""
    rng = check_generator(random_state)
    return np.asarray(rng.permutation(n) % min(n_folds, n), dtype=np.intp)


def cross_fitted(rows: Index, out_of_fold: Array, fresh: Array) -> Array:
    """Out-of-fold predictions for fitted rows, predictions of the full model for new ones.

    ``out_of_fold`` has one entry for each fitted row, ``fresh`` one for each row asked for.
    """
    found = fresh.copy()
    old = rows >= 0
    found[old] = out_of_fold[rows[old]]
    return found
