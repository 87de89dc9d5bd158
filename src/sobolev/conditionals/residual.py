"""Conditionals of a mean and residuals: any regressor, and what it leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import N_NODES, Conditional, cross_fitted, fold_numbers, levels
from sobolev.conditionals.ridge import RidgeColumns

# Standard errors by which the slope of the size must stand out to be believed.
CLEAR = 3.0


class ResidualConditional(Conditional):
    """Column j is a prediction from the others plus a residual.

    Residuals are out of fold: those of the fit are smaller and would make the distribution too
    narrow and p-values too small.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Any scikit-learn regressor, fitted for each column and fold when the column is first asked
        for. None is ridge regression; the penalty of each column is chosen by exact leave-one-out,
        with one matrix decomposition for all columns.
    scale : "auto", estimator or None, default="auto"
        How the size of the residuals depends on the other columns. "auto" lets it grow with their
        mean absolute value if the data show that it does, as under heavy tails with a common
        factor. An estimator is a regressor for the logarithm of the absolute residual. None keeps
        the size constant.
    n_folds : int, default=5
        Number of folds for a regressor of your own and for ``scale``.
    n_nodes : int, default=100
        Number of nodes of the grid: mid-quantiles of the residuals.
    random_state : int, Generator, RandomState or None, default=0
        Assigns the rows to the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import ResidualConditional
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> nodes, weights = ResidualConditional().fit(X).grid(X, 0)
    >>> nodes.shape
    (200, 100)
    """

    def __init__(
        self,
        regressor: Any = None,
        scale: Any = "auto",
        n_folds: int = 5,
        n_nodes: int = N_NODES,
        random_state: RandomState = 0,
    ) -> None:
        self.regressor = regressor
        self.scale = scale
        self.n_folds = n_folds
        self.n_nodes = n_nodes
        self.random_state = random_state

    def learn(self, X: Array) -> None:
        """Fit the ridge regressions; other regressors wait until a column is asked for."""
        self.X_ = X
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state)
        if isinstance(self.scale, str) and self.scale != "auto":
            raise ValueError(f'scale={self.scale!r} is unknown; use "auto", None or a regressor.')
        self.ridge_ = RidgeColumns.fit(X) if self.regressor is None else None
        self._columns: dict[int, tuple[Array, Any]] = {}
        self._scales: dict[int, tuple[Array, Any]] = {}

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The mean of column j plus mid-quantiles of the residuals."""
        mean, size, residuals = self.parts(X, j, rows)
        nodes = mean[:, None] + size[:, None] * np.quantile(residuals, levels(self.n_nodes))
        return nodes, np.full(nodes.shape, 1 / self.n_nodes)

    def parts(self, X: Array, j: int, rows: Index) -> tuple[Array, Array, Array]:
        """Mean and size of column j for each row, and the residuals of fit over their size."""
        held_out, model = self._mean(j)
        residuals = self.X_[:, j] - held_out
        mean = _predicted(X, rows, held_out, model)
        if self.scale is None:
            return mean, np.ones(X.shape[0]), residuals
        sizes, scale_model = self._size(j, residuals)
        return mean, _predicted(X, rows, sizes, scale_model), residuals / sizes

    def _mean(self, j: int) -> tuple[Array, Any]:
        """Predictions of every fitted row without it, and the model for new rows."""
        if self.ridge_ is not None:
            ridge = self.ridge_
            return self.X_[:, j] - ridge.scale[j] * ridge.residuals[:, j], _for(ridge, j)
        if j not in self._columns:
            rest = np.delete(self.X_, j, axis=1)
            held_out, full = self._cross_fit(self.regressor, rest, self.X_[:, j])
            self._columns[j] = (held_out, _WithoutColumn(full.predict, j))
        return self._columns[j]

    def _size(self, j: int, residuals: Array) -> tuple[Array, Any]:
        """The expected absolute residual of every fitted row, and the model for new rows."""
        if j not in self._scales:
            rest = np.delete(self.X_, j, axis=1)
            floor = 1e-3 * np.abs(residuals).mean() + 1e-300
            target = np.log(np.abs(residuals) + floor)
            if isinstance(self.scale, str):
                common = _CommonScale.fit(rest, target)
                self._scales[j] = (common(rest), _WithoutColumn(common, j))
                return self._scales[j]
            held_out, full = self._cross_fit(self.scale, rest, target)
            self._scales[j] = (np.exp(held_out), _WithoutColumn(_Exponential(full), j))
        return self._scales[j]

    def _cross_fit(self, regressor: Any, rest: Array, target: Array) -> tuple[Array, Any]:
        """Out-of-fold predictions, and the fit to all rows."""
        held_out = np.empty(target.size)
        for k in range(int(self.folds_.max()) + 1):
            test = self.folds_ == k
            held_out[test] = clone(regressor).fit(rest[~test], target[~test]).predict(rest[test])
        return held_out, clone(regressor).fit(rest, target)


@dataclass(frozen=True)
class _WithoutColumn:
    """A function of all columns but one, called with all of them."""

    function: Any
    column: int

    def __call__(self, X: Array) -> Array:
        found: Array = self.function(np.delete(X, self.column, axis=1))
        return found


@dataclass(frozen=True)
class _Exponential:
    """The exponential of a regressor's prediction."""

    regressor: Any

    def __call__(self, X: Array) -> Array:
        return np.exp(self.regressor.predict(X))


@dataclass(frozen=True)
class _CommonScale:
    """The size of a residual from the mean absolute value of the other columns.

    A line between logarithms, with a slope between 0 and 1; flat unless the slope stands out by
    ``CLEAR`` standard errors.
    """

    center: Array
    spread: Array
    mean: float = 0.0
    slope: float = 0.0

    @classmethod
    def fit(cls, rest: Array, target: Array) -> _CommonScale:
        """From the other columns and the logarithm of the absolute residual."""
        spread = rest.std(axis=0)
        scale = cls(rest.mean(axis=0), np.where(spread > 0, spread, 1.0))
        u = scale._outlyingness(rest)
        mean, variance = float(u.mean()), float(u.var())
        if variance <= 1e-12:
            return scale
        slope = float(np.mean((u - mean) * (target - target.mean())) / variance)
        noise = target - target.mean() - slope * (u - mean)
        error = float(np.sqrt(noise.var() / variance / u.size))
        slope = float(np.clip(slope, 0.0, 1.0)) if slope > CLEAR * error else 0.0
        return replace(scale, mean=mean, slope=slope)

    def __call__(self, rest: Array) -> Array:
        return np.exp(self.slope * (self._outlyingness(rest) - self.mean))

    def _outlyingness(self, rest: Array) -> Array:
        if rest.shape[1] == 0:
            return np.zeros(rest.shape[0])
        return np.log(np.abs((rest - self.center) / self.spread).mean(axis=1) + 1e-3)


def _predicted(X: Array, rows: Index, held_out: Array, model: Any) -> Array:
    """Out-of-fold predictions for fitted rows, the model's predictions for new ones."""
    fresh = np.zeros(X.shape[0])
    new = rows < 0
    if new.any():
        fresh[new] = model(X[new])
    return cross_fitted(rows, held_out, fresh)


def _for(ridge: RidgeColumns, j: int) -> Any:
    return lambda X: ridge.predict(X, j)
