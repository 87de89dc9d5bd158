"""Generalised covariance measure with random forests (Shah and Peters, 2020).

If y does not depend on x_j given the other columns, the residuals of x_j and of y given the others
are uncorrelated. The normalised sum of their products is then asymptotically normal, provided that
both regressions are good enough.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import false_discovery_control, norm
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor

# Breiman's values for regression: a third of the columns at each split, leaves of five rows.
FOREST = RandomForestRegressor(
    n_estimators=100, max_features=1 / 3, min_samples_leaf=5, oob_score=True, n_jobs=1
)


def pvalues(X: np.ndarray, y: np.ndarray, seed: int, forest: BaseEstimator = FOREST) -> np.ndarray:
    """Two-sided p-values, one for each column."""
    rng = np.random.default_rng(seed)
    found = np.ones(X.shape[1])
    for j in np.flatnonzero(np.ptp(X, axis=0) > 0):
        rest = np.delete(X, j, axis=1)
        products = residuals(rest, X[:, j], rng, forest) * residuals(rest, y, rng, forest)
        found[j] = 2 * norm.sf(abs(normalised_sum(products)))
    return found


def residuals(
    X: np.ndarray, z: np.ndarray, rng: np.random.Generator, forest: BaseEstimator
) -> np.ndarray:
    """z less its prediction, in each row by the trees that were not trained on it."""
    model = clone(forest).set_params(random_state=int(rng.integers(2**31)))
    return z - model.fit(X, z).oob_prediction_


def normalised_sum(products: np.ndarray) -> float:
    """Sum of the products over its standard error; 0 if they do not vary."""
    spread = float(products.std())
    return float(np.sqrt(products.size) * products.mean() / spread) if spread > 0 else 0.0


def gcm(X: np.ndarray, y: np.ndarray, seed: int, fdr: float) -> np.ndarray:
    """Columns that Benjamini-Hochberg selects from the p-values."""
    return false_discovery_control(pvalues(X, y, seed)) <= fdr
