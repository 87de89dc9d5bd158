"""Projected covariance measure (Lundborg, Kim, Shah and Samworth, 2024, Algorithm 1).

Tests whether the mean of y given all columns depends on column j. One half of the rows chooses a
projection f of the columns: how far the prediction of y from all columns differs from its
prediction without column j, divided by the variance of the noise. The other half tests whether f
and y, both less their predictions from the other columns, are correlated. The statistic is
asymptotically normal if the regressions are good enough; large values are evidence.

Written from the paper. Which regressions may use all columns at each split follows the defaults of
the R package comets by the authors: those of targets without noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import false_discovery_control, norm
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from reproduction.benchmarks.gcm import normalised_sum


@dataclass(frozen=True)
class Regressions:
    """The regression of the response, and that of projections and squared residuals."""

    response: BaseEstimator
    projection: BaseEstimator


def _forest(max_features: str | float) -> RandomForestRegressor:
    return RandomForestRegressor(
        n_estimators=100, max_features=max_features, min_samples_split=5, n_jobs=1
    )


FOREST = Regressions(_forest("sqrt"), _forest(1.0))
_TREES = HistGradientBoostingRegressor(max_depth=3, early_stopping=False)
BOOSTING = Regressions(_TREES, _TREES)


def pvalues(
    X: np.ndarray, y: np.ndarray, seed: int, regressions: Regressions = FOREST
) -> np.ndarray:
    """One-sided p-values, one for each column; a constant column has 1."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(y.size)
    choose, test = order[: y.size // 2], order[y.size // 2 :]

    def regress(of: BaseEstimator, Z: np.ndarray, z: np.ndarray) -> BaseEstimator:
        return clone(of).set_params(random_state=int(rng.integers(2**31))).fit(Z, z)

    # The regression on all columns and the variance do not depend on the column that is tested.
    full = regress(regressions.response, X[choose], y[choose])
    g, g_test = full.predict(X[choose]), full.predict(X[test])
    squares = (y[choose] - g) ** 2
    model = regress(regressions.projection, X[choose], squares)
    variance = noise_variance(model, X[choose], squares, X[test])
    found = np.ones(X.shape[1])
    for j in np.flatnonzero(np.ptp(X, axis=0) > 0):
        Z = np.delete(X, j, axis=1)
        reduced = regress(regressions.projection, Z[choose], g)
        m = reduced.predict(Z[choose])
        sign = np.sign(np.mean((y[choose] - m) * (g - m))) or 1.0
        f = sign * (g_test - reduced.predict(Z[test])) / variance
        rest_f = f - regress(regressions.projection, Z[test], f).predict(Z[test])
        rest_y = y[test] - regress(regressions.response, Z[test], y[test]).predict(Z[test])
        found[j] = norm.sf(normalised_sum(rest_f * rest_y))
    return found


def noise_variance(
    model: BaseEstimator, X: np.ndarray, squares: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """Variance of the noise in new rows, from a regression of squared residuals.

    The constant that is added to the regression makes the mean of squares by variance 1 at most.
    """
    fitted = np.maximum(model.predict(X), 0.0)
    floor = 1e-6 * squares.mean() + np.finfo(float).tiny

    def excess(constant: float) -> float:
        return float(np.mean(squares / (fitted + constant))) - 1.0

    # At the mean of the squares the excess is at most zero.
    constant = floor if excess(floor) <= 0 else brentq(excess, floor, squares.mean() + floor)
    return np.maximum(model.predict(new), 0.0) + constant


def pcm(regressions: Regressions) -> Callable[..., np.ndarray]:
    """A selector: Benjamini-Hochberg on the p-values."""

    def select(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
        return false_discovery_control(pvalues(X, y, seed, regressions)) <= fdr

    return select
