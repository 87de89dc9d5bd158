"""Gaussian conditional distributions, from one precision matrix for all columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.covariance import LedoitWolf

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import N_NODES, Conditional, fold_numbers, levels


def estimate_covariance(X: Array, estimator: Any = None) -> tuple[Array, Array]:
    """Location and covariance of the columns of X.

    The estimator is fitted to standardised columns, so that no column dominates.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows.
    estimator : estimator or None, default=None
        Covariance estimator of scikit-learn; None is Ledoit and Wolf's.

    Returns
    -------
    location : array of shape (d,)
    covariance : array of shape (d, d)
    """
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    fitted = (LedoitWolf() if estimator is None else clone(estimator)).fit((X - center) / scale)
    location = np.asarray(getattr(fitted, "location_", np.zeros(scale.size)))
    return center + scale * location, np.asarray(fitted.covariance_) * np.outer(scale, scale)


@dataclass(eq=False, repr=False)
class GaussianConditional(Conditional):
    """Conditional distributions of jointly normal columns.

    Parameters
    ----------
    covariance : estimator or None, default=None
        Covariance estimator of scikit-learn, with ``covariance_`` and ``location_`` after
        ``fit(X)``; None is Ledoit and Wolf's.
    n_folds : int, default=5
        Number of folds; a fitted row is predicted by the fit without its fold.
    n_nodes : int, default=100
        Number of nodes of each distribution, which are quantiles of the normal distribution.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the assignment of rows to folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import GaussianConditional
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> nodes, weights = GaussianConditional().fit(X).grid(X, 0)
    >>> nodes.shape
    (200, 100)
    """

    covariance: Any = None
    n_folds: int = 5
    n_nodes: int = N_NODES
    random_state: RandomState = 0

    def learn(self, X: Array) -> None:
        """Estimate the covariance from all rows, and from all rows except each fold."""
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state, self.groups_)
        n_folds = int(self.folds_.max()) + 1
        self.models_ = [self._model(X[self.folds_ != k]) for k in range(n_folds)]
        self.model_ = self._model(X)

    def _model(self, X: Array) -> tuple[Array, Array]:
        """Location and precision matrix."""
        location, covariance = estimate_covariance(X, self.covariance)
        variance = X.var(axis=0)
        ridge = 1e-8 * np.diag(np.where(variance > 0, variance, 1.0))
        return location, np.asarray(np.linalg.inv(covariance + ridge), dtype=float)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Quantiles of the conditional normal distribution of column j."""
        mean, deviation = self._moments(X, j, self.model_)
        for k, model in enumerate(self.models_):
            own = np.flatnonzero((rows >= 0) & (self.folds_[rows] == k))
            if own.size:
                mean[own], deviation[own] = self._moments(X[own], j, model)
        nodes = mean[:, None] + deviation[:, None] * ndtri(levels(self.n_nodes))
        return nodes, np.full(nodes.shape, 1 / self.n_nodes)

    @staticmethod
    def _moments(X: Array, j: int, model: tuple[Array, Array]) -> tuple[Array, Array]:
        location, precision = model
        variance = 1 / precision[j, j]
        mean = X[:, j] - (X - location) @ precision[:, j] * variance
        return mean, np.full(X.shape[0], np.sqrt(variance))
