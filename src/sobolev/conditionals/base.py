"""What every conditional model shares: discrete laws on a grid, draws, known rows."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Index
from sobolev.validation import validate_rows

# Nodes of the discrete law of a continuous column, as in the paper.
N_NODES = 100


class Conditional(BaseEstimator):
    """A model of one column given the others.

    A subclass learns in ``_fit(X)`` and gives, in ``_grid(X, j, known)``, the discrete law of
    column j for every row: nodes and weights. ``known`` are the positions of the rows among those
    of fit, or -1: rows that were fitted on get predictions of models that have not seen them.
    """

    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Conditional:
        """Learn from rows of X; a response plays no part.

        Returns
        -------
        self
        """
        X = validate_rows(self, X, reset=True)
        self._known = {row.tobytes(): i for i, row in enumerate(np.ascontiguousarray(X))}
        self._last_positions: tuple[bytes, Index] = b"", np.empty(0, dtype=np.intp)
        self._fit(X)
        return self

    def grid(self, X: Any, j: int) -> tuple[Array, Array]:
        """The law of column j given the other columns of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        j : int
            The column.

        Returns
        -------
        nodes, weights : arrays of shape (n, B)
            The rows of the weights sum to one.
        """
        check_is_fitted(self, "n_features_in_")
        X = validate_rows(self, X, reset=False)
        if not -self.n_features_in_ <= j < self.n_features_in_:
            raise ValueError(f"column {j} does not exist; X has {self.n_features_in_} columns.")
        return self._grid(X, j % self.n_features_in_, self._positions(X))

    def sample(self, X: Any, j: int, n: int = 1, random_state: RandomState = None) -> Array:
        """Draw column j given the others, n times for each row.

        Returns
        -------
        array of shape (n_rows, n)
        """
        nodes, weights = self.grid(X, j)
        rng = check_generator(random_state)
        cumulated = np.cumsum(weights, axis=1)
        cumulated /= cumulated[:, -1:]
        level = rng.random((nodes.shape[0], n))
        position = np.sum(level[:, :, None] >= cumulated[:, None, :], axis=2)
        return np.take_along_axis(nodes, np.minimum(position, nodes.shape[1] - 1), axis=1)

    def _positions(self, X: Array) -> Index:
        """Where the rows stand among those of fit; -1 for new ones.

        Columns are asked for one after the other on the same rows: the last answer is kept.
        """
        rows = np.ascontiguousarray(X)
        key = blake2b(rows.tobytes(), digest_size=16).digest()
        last, found = self._last_positions
        if key != last:
            known = [self._known.get(row.tobytes(), -1) for row in rows]
            found = np.array(known, dtype=np.intp)
            self._last_positions = key, found
        return found

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _grid(self, X: Array, j: int, known: Index) -> tuple[Array, Array]:
        raise NotImplementedError


def levels(n_nodes: int) -> Array:
    """Mid-points of equal slices of (0, 1)."""
    return (np.arange(n_nodes) + 0.5) / n_nodes


def fold_numbers(n: int, n_folds: int, random_state: RandomState) -> Index:
    """A fold for every row, of sizes that differ by one at most."""
    rng = check_generator(random_state)
    return np.asarray(rng.permutation(n) % min(n_folds, n), dtype=np.intp)


def cross_fitted(known: Index, out_of_fold: Array, fresh: Array) -> Array:
    """Predictions of models without the row where it is known, of the full model elsewhere.

    ``out_of_fold`` has one row for each row of fit, ``fresh`` one for each row asked for.
    """
    found = fresh.copy()
    old = known >= 0
    found[old] = out_of_fold[known[old]]
    return found
