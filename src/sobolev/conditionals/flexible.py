"""Held-out predictions by regressions of any shape: ridge, trees, products and kernels.

They find what a model of a column has missed. Trees with random splits find steps, and the columns
that matter; kernels of these columns find waves, products of all pairs interactions.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics.pairwise import euclidean_distances

from sobolev._typing import Array, Index
from sobolev.conditionals.base import fold_numbers
from sobolev.conditionals.completing import ridge_coefficients
from sobolev.conditionals.forest import CHUNK_ROWS, Leaves
from sobolev.conditionals.ridge import RidgeWithout

# The columns that are used: those that agree best, as lines, waves or in products.
MAX_COLUMNS, FREQUENCIES = 60, (2.0, 4.0)
# Trees: their number, the smallest leaf, and the rows on which they grow.
N_TREES, MIN_LEAF, MAX_ROWS = 50, 3, 500
# Kernels: numbers of columns, widths and landmarks.
N_COLUMNS, WIDTHS, N_LANDMARKS = (1, 2, 4), (0.35, 1.0, 3.0), 150
# Products: the number of those that agree best.
N_PRODUCTS, N_FOLDS = 20, 10
# A prediction counts if it is better than none by so many standard errors.
CLEAR = 2.5
# Largest ratio of a predicted variance to the mean one.
MAX_RATIO = 25.0


class HeldOut:
    """Held-out predictions of variables from the columns of a table.

    Parameters
    ----------
    Z : array of shape (n, d)
        Predictors, as normal scores.
    groups : array of int, optional
        The group of each row: a row is predicted without all rows of its group.
    clear : float, default=2.5
        A prediction counts if it is better than none by so many standard errors.
    """

    def __init__(self, Z: Array, groups: Index | None = None, clear: float = CLEAR) -> None:
        self.Z, self.groups, self.clear = Z, groups, clear

    def mean(self, Y: Array, beside: Array | float = 0.0) -> Array:
        """The best prediction of Y (n, c), zero if none is clearly better than zero.

        Y may be what is left of a variable after the predictions ``beside``: then the variable as a
        whole is predicted, too, which may be simpler than what is left.
        """
        self._grow(Y)
        zero = np.zeros_like(Y)
        candidates = [self._by_trees(Y), self._ridge(self._near, Y), self._products(Y)]
        whole = Y + beside
        for k in sorted({min(k, self._near.shape[1]) for k in N_COLUMNS}):
            for features in [kernel(self._near[:, :k], width) for width in WIDTHS]:
                candidates.append(self._ridge(features, Y))
                if np.ndim(beside):
                    candidates.append(self._ridge(features, whole) - beside)
        errors = [np.sum((Y - found) ** 2, axis=1) for found in candidates]
        best = int(np.argmin([error.sum() for error in errors]))
        return candidates[best] if self._is_clear(np.sum(Y**2, axis=1) - errors[best]) else zero

    def spread(self, errors: Array) -> Array:
        """Standard deviations (n, c) of errors with mean zero, by the trees of the last mean.

        One number for all rows, unless the trees give the errors a clearly larger likelihood.
        """
        squares = errors**2
        same = np.maximum(squares.mean(axis=0), 1e-12)
        local = self._by_trees(np.minimum(squares, 9 * same))
        local = np.clip(local, same / MAX_RATIO, same * MAX_RATIO)
        gain = 0.5 * (np.log(same / local) + squares / same - squares / local)
        return np.sqrt(np.where([self._is_clear(each) for each in gain.T], local, same))

    def _grow(self, Y: Array) -> None:
        """Grow the trees on the columns that agree with Y, and put these in their order."""
        near = self.Z
        if near.shape[1] > MAX_COLUMNS:
            near = near[:, np.argsort(-_agreement(near, Y), kind="stable")[:MAX_COLUMNS]]
        self._rows = np.linspace(0, len(Y) - 1, min(len(Y), MAX_ROWS)).astype(np.intp)
        forest = ExtraTreesRegressor(
            N_TREES, min_samples_leaf=MIN_LEAF, bootstrap=True, random_state=0
        )
        target = Y[self._rows, 0] if Y.shape[1] == 1 else Y[self._rows]
        groups = None if self.groups is None else self.groups[self._rows]
        self._leaves = Leaves.grow(forest, near[self._rows], target, groups)
        self._split = near
        self._near = near[:, np.argsort(-forest.feature_importances_, kind="stable")]

    def _by_trees(self, Y: Array) -> Array:
        """Means over the leaves of the trees that have not seen the row."""
        place = np.full(len(Y), -1)
        place[self._rows] = np.arange(self._rows.size)
        chunks = [slice(i, i + CHUNK_ROWS) for i in range(0, len(Y), CHUNK_ROWS)]
        shares = (self._leaves.weights(self._split[c], place[c]) for c in chunks)
        return np.concatenate([share @ Y[self._rows] for share in shares])

    def _ridge(self, features: Array, Y: Array) -> Array:
        """Leave-one-out predictions by ridge regression, without its slopes for few groups."""
        last, stretch = features.shape[1], self.groups is None
        features = np.column_stack([features, np.zeros(len(Y))])
        ridge = RidgeWithout(features, self.groups, scaled=False)
        return np.column_stack([y - ridge.residuals(y, last, stretch=stretch) for y in Y.T])

    def _products(self, Y: Array) -> Array:
        """Out-of-fold predictions by ridge regression on the products that agree best with Y."""
        Z = self._near
        first, second = np.triu_indices(Z.shape[1], 1)
        folds = fold_numbers(len(Z), N_FOLDS, 0, self.groups)
        predicted = np.zeros_like(Y)
        for k in range(int(folds.max()) + 1) if first.size else ():
            train, test = folds != k, folds == k
            sizes = _with_products(Z[train], Y[train])[first, second]
            best = np.argsort(-sizes, kind="stable")[:N_PRODUCTS]
            products = Z[:, first[best]] * Z[:, second[best]]
            beta, _ = ridge_coefficients(products[train], Y[train])
            predicted[test] = beta[0] + products[test] @ beta[1:]
        return predicted

    def _is_clear(self, gain: Array) -> bool:
        """Whether the mean of the gains, of rows or groups, is above zero beyond chance."""
        each = gain if self.groups is None else np.bincount(self.groups, weights=gain)
        return bool(each.mean() > self.clear * each.std() / np.sqrt(each.size))


def _with_products(Z: Array, Y: Array) -> Array:
    """Covariances, up to a factor, of the products of all pairs of columns with Y, (d, d)."""
    return np.asarray(sum(np.abs(Z.T @ (y[:, None] * Z)) for y in (Y - Y.mean(axis=0)).T))


def _agreement(Z: Array, Y: Array) -> Array:
    """The largest covariance of each column, as a line, a wave or in a product, with Y."""
    centred = Y - Y.mean(axis=0)
    shapes = [Z, *[wave(f * Z) for f in FREQUENCIES for wave in (np.sin, np.cos)]]
    alone = [np.abs(shape.T @ centred).sum(axis=1) for shape in shapes]
    return np.max([*alone, _with_products(Z, Y).max(axis=1)], axis=0)


def kernel(Z: Array, width: float) -> Array:
    """Gaussian kernels at landmarks, as features on which ridge regression is that of kernels."""
    places = np.unique(np.linspace(0, len(Z) - 1, N_LANDMARKS).astype(np.intp))
    landmarks = Z[np.argsort(Z[:, 0], kind="stable")[places]]
    scale = 2 * Z.shape[1] * width**2
    inner = np.exp(-euclidean_distances(landmarks, squared=True) / scale)
    outer = np.exp(-euclidean_distances(Z, landmarks, squared=True) / scale)
    values, vectors = np.linalg.eigh(inner)
    kept = values > 1e-8 * values[-1]
    return np.asarray(outer @ (vectors[:, kept] / np.sqrt(values[kept])))
