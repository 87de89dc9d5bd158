"""Conditional distributions from a predicted mean and residuals, by any regressor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import (
    N_NODES,
    Conditional,
    WithoutColumn,
    cross_fitted,
    fold_numbers,
    levels,
)
from sobolev.conditionals.ridge import RidgeColumns

# Number of standard errors by which the slope of the size must exceed zero.
CLEAR = 3.0


@dataclass(eq=False, repr=False)
class ResidualConditional(Conditional):
    """Conditional distributions as a prediction from the other columns plus a residual.

    Residuals are out of fold. In-sample residuals are smaller; they would make the distributions
    too narrow and the p-values too small.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Regressor of scikit-learn, fitted for each column and fold on first use. None is ridge
        regression; the penalty of each column is chosen by exact leave-one-out errors, with one
        matrix decomposition for all columns.
    scale : "auto", estimator or None, default="auto"
        Model of the size of the residuals given the other columns. With "auto" the size grows with
        their mean absolute value if the data show such a trend, as heavy tails with a common factor
        do. An estimator is a regressor for the logarithm of the absolute residual. With None the
        size is constant.
    n_folds : int, default=5
        Number of folds for ``regressor`` and for ``scale``.
    n_nodes : int, default=100
        Number of nodes of each distribution, which are quantiles of the residuals.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the assignment of rows to folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import ResidualConditional
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> nodes, weights = ResidualConditional().fit(X).grid(X, 0)
    >>> nodes.shape
    (200, 100)
    """

    regressor: Any = None
    scale: Any = "auto"
    n_folds: int = 5
    n_nodes: int = N_NODES
    random_state: RandomState = 0

    def learn(self, X: Array) -> None:
        """Fit the ridge regressions; other regressors are fitted on first use."""
        self.X_ = X
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state, self.groups_)
        if isinstance(self.scale, str) and self.scale != "auto":
            raise ValueError(f'scale={self.scale!r} is unknown; use "auto", None or a regressor.')
        self.ridge_ = None
        if self.regressor is None:
            self.ridge_ = RidgeColumns.fit(X, groups=self.groups_)
        self._columns: dict[int, tuple[Array, Any]] = {}
        self._scales: dict[int, tuple[Array, Any]] = {}
        self.__dict__.pop("_spread", None)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The predicted mean of column j plus quantiles of the residuals."""
        mean, size, residuals = self.parts(X, j, rows)
        nodes = mean[:, None] + size[:, None] * np.quantile(residuals, levels(self.n_nodes))
        return nodes, np.full(nodes.shape, 1 / self.n_nodes)

    def parts(self, X: Array, j: int, rows: Index) -> tuple[Array, Array, Array]:
        """Mean and size of column j for each row, and the residuals of the fit over their size."""
        held_out, model = self._mean(j)
        residuals = self.X_[:, j] - held_out
        mean = cross_fitted(X, rows, held_out, model)
        if self.scale is None:
            return mean, np.ones(X.shape[0]), residuals
        sizes, scale_model = self._size(j, residuals)
        return mean, cross_fitted(X, rows, sizes, scale_model), residuals / sizes

    def _mean(self, j: int) -> tuple[Array, Any]:
        """Predictions of every fitted row from the others, and the model for new rows."""
        if self.ridge_ is not None:
            ridge = self.ridge_
            held_out = self.X_[:, j] - ridge.scale[j] * ridge.residuals[:, j]
            return held_out, partial(ridge.predict, j=j)
        if j not in self._columns:
            rest = np.delete(self.X_, j, axis=1)
            held_out, model = self._cross_fit(self.regressor, rest, self.X_[:, j])
            self._columns[j] = (held_out, WithoutColumn(model, j))
        return self._columns[j]

    @cached_property
    def _spread(self) -> _Spread:
        return _Spread(self.X_)

    def _size(self, j: int, residuals: Array) -> tuple[Array, Any]:
        """The expected absolute residual of every fitted row, and the model for new rows."""
        if j not in self._scales:
            floor = 1e-3 * np.abs(residuals).mean() + 1e-300
            sizes = np.abs(residuals) + floor
            if isinstance(self.scale, str):
                u = self._spread.fitted(j)
                size = _CommonScale.fit(u, np.log(sizes))
                self._scales[j] = (size(u), partial(self._spread.size, j=j, scale=size))
                return self._scales[j]
            regressor = TransformedTargetRegressor(self.scale, func=np.log, inverse_func=np.exp)
            rest = np.delete(self.X_, j, axis=1)
            held_out, model = self._cross_fit(regressor, rest, sizes)
            self._scales[j] = (held_out, WithoutColumn(model, j))
        return self._scales[j]

    def _cross_fit(self, regressor: Any, rest: Array, target: Array) -> tuple[Array, Any]:
        """Out-of-fold predictions, and predictions by the fit to all rows."""
        held_out = cross_val_predict(regressor, rest, target, cv=PredefinedSplit(self.folds_))
        return held_out, clone(regressor).fit(rest, target).predict


class _Spread:
    """How far each row is from the centre, by all columns but one; the fitted rows once for all."""

    def __init__(self, X: Array) -> None:
        spread = X.std(axis=0)
        self.center, self.spread = X.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self._fitted = self._distances(X)
        self._total = self._fitted.sum(axis=1)

    def _distances(self, X: Array) -> Array:
        return np.abs((X - self.center) / self.spread)

    def fitted(self, j: int) -> Array:
        """Logarithm of the mean distance of each fitted row in the columns other than j."""
        return _log_mean(self._total - self._fitted[:, j], self.center.size - 1)

    def size(self, X: Array, j: int, scale: _CommonScale) -> Array:
        """The sizes of the residuals of column j in other rows."""
        distances = self._distances(X)
        total = distances.sum(axis=1) - distances[:, j]
        return scale(_log_mean(total, self.center.size - 1))


def _log_mean(total: Array, size: int) -> Array:
    return np.log(np.maximum(total, 0.0) / size + 1e-3) if size else np.zeros(total.size)


@dataclass(frozen=True)
class _CommonScale:
    """The size of a residual from the mean distance of the other columns from their centres.

    The logarithms are related linearly, with a slope in [0, 1] that is zero unless it exceeds
    ``CLEAR`` standard errors.
    """

    mean: float = 0.0
    slope: float = 0.0

    @classmethod
    def fit(cls, u: Array, target: Array) -> _CommonScale:
        """Fit to the logarithms of the distance and of the absolute residual."""
        mean, variance = float(u.mean()), float(u.var())
        if variance <= 1e-12:
            return cls()
        slope = float(np.mean((u - mean) * (target - target.mean())) / variance)
        noise = target - target.mean() - slope * (u - mean)
        error = float(np.sqrt(noise.var() / variance / u.size))
        slope = float(np.clip(slope, 0.0, 1.0)) if slope > CLEAR * error else 0.0
        return cls(mean, slope)

    def __call__(self, u: Array) -> Array:
        """The size at logarithms of the distance."""
        return np.exp(self.slope * (u - self.mean))
