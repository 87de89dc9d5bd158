r"""All relevant columns: those that share information with what the critic uses.

A sparse critic needs one of several columns with the same information, and leaves out the rest. The
directions in which it varies, the eigenvectors of :math:`E[\nabla f \nabla f^\top]` for
uncorrelated columns, are known all the same, and a redundant column is correlated with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._standardize import Standardizer
from sobolev._typing import Array
from sobolev.convex.fitting import Critic

# Rows at which gradients are taken.
GRADIENT_ROWS = 1000
# Rows for each column that makes up the directions, and the least number of such columns.
ROWS_EACH, MIN_COLUMNS = 10, 5
# The weight of a direction is its mean squared gradient to this power: a direction in which the
# critic varies little may be the only trace of a column.
POWER = 0.25
# Ridge of the correlation matrix.
RIDGE = 1e-6


def all_relevant(estimator: Any, X: Array) -> Array:
    """Importances of all columns that share information with the critic; they sum to one.

    Parameters
    ----------
    estimator : ConvexSIC
        Fitted.
    X : array of shape (n, d)
        Checked rows.

    Returns
    -------
    array of shape (d,)
    """
    n = X.shape[0]
    Z = estimator.standardizer_.transform(X)
    importances = estimator.feature_importances_[estimator.standardizer_.varying]
    most = max(MIN_COLUMNS, n // ROWS_EACH)
    used = np.sort(np.argsort(-importances, kind="stable")[:most])
    used = used[importances[used] > 0]
    if not used.size:
        return np.zeros(X.shape[1])
    gradients = _gradient_products(estimator.critic_, Z[:: max(1, n // GRADIENT_ROWS)])
    units = Standardizer.fit(X, np.full(n, 1 / n))
    every = (X - units.center) / units.scale * units.varying
    own = Z[:, used] - Z[:, used].mean(axis=0)
    root = np.linalg.cholesky(own.T @ own / n + RIDGE * np.eye(used.size))
    size, axes = np.linalg.eigh(root.T @ gradients[np.ix_(used, used)] @ root)
    scores = np.linalg.solve(root, own.T).T @ axes  # uncorrelated directions, of variance one
    weights = np.maximum(size, 0.0) ** POWER
    found = (every.T @ scores / n) ** 2 @ weights
    return np.asarray(found / max(float(found.sum()), 1e-300))


def _gradient_products(critic: Critic, rows: Array) -> Array:
    """The mean of ∇f ∇f' over the rows, summed over the columns of psi."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for u in critic.U.T:
        gradient = critic.bound.gradient(rows, np.broadcast_to(u, (rows.shape[0], u.size)))
        total += gradient.T @ gradient / rows.shape[0]
    return total
