"""``sic_path``: importances and held-out risk along lam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._sample import spread
from sobolev._threads import blas_threads
from sobolev._typing import Array
from sobolev.convex.cross_validation import cross_validate
from sobolev.convex.estimator import ConvexSIC
from sobolev.convex.fitting import LAMS, REFERENCE_LAM, fit_critic, path
from sobolev.convex.training import check_parameters, prepare
from sobolev.validation import feature_names, validate_training


@dataclass(frozen=True)
class SICPath:
    """Result of :func:`sic_path`, from the largest lam to the smallest.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        Values of lam, decreasing.
    importances : array of shape (n_lams, d)
        Importances at each lam.
    sic : array of shape (n_lams,)
        The criterion at each lam.
    risks : array of shape (n_folds, n_lams)
        Held-out risk in each fold.
    feature_names : list of str
        Names of the columns.
    """

    lams: Array
    importances: Array
    sic: Array
    risks: Array
    feature_names: list[str]


def sic_path(
    X: Any, y: Any, lams: Sequence[float] = LAMS, *, sample_weight: Any = None, **params: Any
) -> SICPath:
    """Fit convex SIC along a path of lam, each solution started from the one before.

    The kernel's metric is found once, at a reference lam; the path is then the solution of one
    convex problem in lam. The risk is cross-validated as in ``ConvexSIC(lam="auto")``;
    ``tau="auto"`` is 1e-4.

    Parameters
    ----------
    X, y : array-like
        The data, as for :class:`ConvexSIC`.
    lams : sequence of float, optional
        Weights of the gradient penalty.
    sample_weight : array-like, optional
        Weights of the rows.
    **params
        Parameters of :class:`ConvexSIC` other than lam.

    Returns
    -------
    SICPath

    Examples
    --------
    >>> from sobolev import sic_path
    >>> from sobolev.datasets import make_sinexp
    >>> X, y = make_sinexp(200, 10, random_state=0, return_X_y=True)
    >>> result = sic_path(X, y, lams=[0.1, 0.01])
    >>> result.importances.shape
    (2, 10)
    """
    weights = np.sort(np.asarray(lams, dtype=float))[::-1]
    if weights.size == 0 or not np.all(np.isfinite(weights)) or weights.min() <= 0:
        raise ValueError("lams must hold at least one number, all of them positive.")
    estimator = ConvexSIC(lam=REFERENCE_LAM, **params)
    check_parameters(estimator)
    checked = validate_training(estimator, X, y, sample_weight)
    rows, settings, folds = prepare(estimator, *checked)
    with blas_threads(rows.n_rows):
        start = fit_critic(rows, settings, REFERENCE_LAM)
        units, fitted = estimator.standardizer_, settings
        if start.screening is not None:
            units = units.keep(start.screening.columns)
            fitted = settings.on_columns(start.screening.columns)
        solutions = path(start.forms, fitted, weights.tolist(), start.solution.eta)
    importances = [spread(fitted.feature_importances(s), units.varying) for s in solutions]
    return SICPath(
        lams=weights,
        importances=np.array(importances),
        sic=np.array([0.5 * np.sum(s.U * start.forms.M) for s in solutions]),
        risks=cross_validate(rows, settings, weights.tolist(), folds, estimator.n_jobs),
        feature_names=feature_names(estimator),
    )
