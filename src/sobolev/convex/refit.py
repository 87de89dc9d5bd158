"""Fit a convex critic again without some of its columns, from where the full fit ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sobolev._sample import varying_groups
from sobolev._threads import blas_threads
from sobolev._typing import Array, Index
from sobolev.convex.fitting import fit_critic
from sobolev.convex.rows import Rows
from sobolev.convex.training import make_settings

# Rounds of the metric: other columns may have to take the place of those that are gone.
ROUNDS = 2


def predict_without(estimator: Any, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
    """The encoded response of new rows, predicted by a critic without some of the columns.

    Metric and importances start from those of the fitted estimator, and ``lam`` stays, so this
    takes a fraction of the time of a fit.

    Parameters
    ----------
    estimator : ConvexSIC
        Fitted.
    columns : array of int
        Columns to leave out.
    X, y
        Rows that the estimator was fitted to.
    X_new : array of shape (m, d)
        Rows to predict, with all columns.

    Returns
    -------
    array of shape (m, k)
    """
    units = estimator.standardizer_
    varying = np.flatnonzero(units.varying)
    kept = np.flatnonzero(~np.isin(varying, columns))
    psi = estimator.encoder_.transform(y)
    if not kept.size:
        return np.zeros((X_new.shape[0], psi.shape[1]))
    n = X.shape[0]
    names = getattr(estimator, "feature_names_in_", None)
    groups = varying_groups(estimator.feature_groups, units.varying, names, estimator.adjust)
    start = None
    if groups is None or groups.only_adjust:
        metric, eta = estimator._state
        ranked = slice(None) if groups is None else ~groups.adjusted
        eta = eta[np.isin(np.arange(varying.size)[ranked], kept)]
        start = metric[kept], eta / max(float(eta.sum()), 1e-300)
    if groups is not None:
        groups = groups.restrict(kept)
    settings = make_settings(estimator, estimator.feature_map_, groups, estimator.encoder_)
    settings = replace(settings, tau=getattr(estimator, "tau_", settings.tau))
    rows = Rows(units.transform(X)[:, kept], psi, np.full(n, 1 / n))
    with blas_threads(n):
        fit = fit_critic(rows, settings.with_rounds(ROUNDS), estimator.lam_, start)
    predicted: Array = settings.rho * fit.critic()(units.transform(X_new)[:, kept])
    return predicted
