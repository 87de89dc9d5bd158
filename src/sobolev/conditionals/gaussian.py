"""Gaussian conditionals: every column from one precision matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.covariance import LedoitWolf

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import N_NODES, Conditional, fold_numbers, levels


class GaussianConditional(Conditional):
    """Columns that are jointly normal, with any covariance estimator of scikit-learn.

    Parameters
    ----------
    covariance : estimator or None, default=None
        Anything with ``covariance_`` and ``location_`` after ``fit(X)``; None is Ledoit and Wolf's.
    n_folds : int, default=5
        Number of folds; a fitted row is predicted by the fit without its fold.
    n_nodes : int, default=100
        Number of nodes of the grid: mid-quantiles of the normal distribution.
    random_state : int, Generator, RandomState or None, default=0
        Assigns the rows to the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import GaussianConditional
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> nodes, weights = GaussianConditional().fit(X).grid(X, 0)
    >>> nodes.shape
    (200, 100)
    """

    def __init__(
        self,
        covariance: Any = None,
        n_folds: int = 5,
        n_nodes: int = N_NODES,
        random_state: RandomState = 0,
    ) -> None:
        self.covariance = covariance
        self.n_folds = n_folds
        self.n_nodes = n_nodes
        self.random_state = random_state

    def learn(self, X: Array) -> None:
        """Estimate the covariance, on all rows and without each fold."""
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state)
        n_folds = int(self.folds_.max()) + 1
        self.models_ = [self._model(X[self.folds_ != k]) for k in range(n_folds)]
        self.model_ = self._model(X)

    def _model(self, X: Array) -> tuple[Array, Array]:
        """Location and precision; in standard units first, so that no column dominates."""
        center, scale = X.mean(axis=0), X.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        estimator = LedoitWolf() if self.covariance is None else clone(self.covariance)
        estimator.fit((X - center) / scale)
        covariance = np.asarray(estimator.covariance_) * np.outer(scale, scale)
        location = np.asarray(getattr(estimator, "location_", np.zeros(X.shape[1])))
        ridge = 1e-8 * np.diag(scale**2)
        return center + scale * location, np.linalg.inv(covariance + ridge)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Mid-quantiles of the conditional normal distribution of column j."""
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
