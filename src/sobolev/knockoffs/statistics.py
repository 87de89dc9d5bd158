r"""Signed statistics W of pairs of column and knockoff (Algorithm 5).

A statistic is valid if swapping a column with its knockoff changes the sign of its :math:`W_j` and
nothing else. This holds for every estimator by construction: before the fit, each pair is put in
an order that does not depend on which of the two is the column (the one with the smaller entry in
the first row where they differ comes first, then a coin toss decides), and both are standardised
with the same mean and standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._random import RandomState, check_generator, seeded
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index
from sobolev.criterion import GroupsLike
from sobolev.critic import allowed_kind, as_critic, told_covariates, told_type, unwrapped
from sobolev.knockoffs.groups import group_labels
from sobolev.knockoffs.importances import (
    entry_importances,
    model_importances,
    swap_importances,
)
from sobolev.knockoffs.pairs import Pairs
from sobolev.responses import read_response

# How W is computed from the importances of column and knockoff.
CONTRASTS = {
    "difference": "difference",
    "swap": "difference",
    "signed_max": "signed_max",
    "lasso_path": "signed_max",
}


@dataclass(frozen=True)
class Evaluation:
    """The statistics of one draw of knockoffs.

    Attributes
    ----------
    W : array of shape (n_groups,)
        Statistic of each group; of each column if there are no groups.
    importances : array of shape (2, p)
        Importances of the columns and of their knockoffs.
    model : estimator or None
        The estimator of the last fit, to the arranged pairs; None for "lasso_path".
    """

    W: Array
    importances: Array
    model: Any


def knockoff_statistics(
    X: Any,
    X_knockoff: Any,
    y: Any,
    estimator: Any = None,
    statistic: str = "difference",
    *,
    feature_groups: GroupsLike | None = None,
    random_state: RandomState = 0,
) -> Array:
    r"""Compute the statistic W of each column, large if it is more important than its knockoff.

    With importances :math:`I_j` of the column and :math:`\tilde I_j` of the knockoff:

    - "difference": :math:`I_j - \tilde I_j`;
    - "signed_max": :math:`\max(I_j, \tilde I_j)\, \mathrm{sign}(I_j - \tilde I_j)`;
    - "lasso_path": the same, where the importance is the penalty at which the column enters the
      lasso path;
    - "swap": the out-of-fold loss with both columns of the pair set to the knockoff, minus the
      loss with both set to the column; for any predictor.

    Parameters
    ----------
    X, X_knockoff : array-like of shape (n, p)
        Columns and their knockoffs.
    y : array-like of shape (n,)
        Response.
    estimator : estimator or None, default=None
        Estimator with ``feature_importances_`` or ``coef_``, for "swap" with predictions; None is
        :class:`~sobolev.ConvexSIC`. Not used with "lasso_path".
    statistic : {"difference", "signed_max", "lasso_path", "swap"}, default="difference"
        Name of the statistic.
    feature_groups : mapping or sequence of sequences, optional
        Disjoint groups of columns, by position; importances are summed over each group.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the order of the pairs, the folds, and parameters ``random_state`` of
        the estimator that are None.

    Returns
    -------
    array of shape (p,) or (n_groups,)
        Statistics W; zero if column and knockoff are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs.statistics import knockoff_statistics
    >>> rng = np.random.default_rng(0)
    >>> X, X_knockoff = rng.standard_normal((2, 100, 3))
    >>> W = knockoff_statistics(X, X_knockoff, X[:, 1], statistic="lasso_path")
    >>> int(W.argmax())
    1
    """
    X, X_knockoff = np.asarray(X, dtype=float), np.asarray(X_knockoff, dtype=float)
    if X.ndim != 2 or X.shape != X_knockoff.shape:
        raise ValueError(
            f"X has shape {X.shape} and X_knockoff has shape {X_knockoff.shape}; pass two tables "
            "of one shape."
        )
    labels = group_labels(feature_groups, X.shape[1])
    rng = check_generator(random_state)
    values = read_response(y, allowed_kind(estimator, "auto")).values
    return evaluate(X, X_knockoff, values, estimator, statistic, labels, rng).W


def evaluate(
    X: Array,
    X_knockoff: Array,
    y: Any,
    estimator: Any,
    statistic: str,
    labels: Index,
    rng: np.random.Generator,
    weights: Array | None = None,
    covariates: Array | None = None,
) -> Evaluation:
    """Statistics, importances and model of one draw; see :func:`knockoff_statistics`.

    y was read before: floats are numbers, all else is labels. ``weights`` are probabilities of the
    rows. ``covariates`` are columns (n, q) without knockoffs; the estimator gets them after the
    pairs, and the lasso path does not penalise them.
    """
    check_statistic(statistic, estimator)
    if weights is not None and statistic == "swap":
        raise ValueError('sample_weight does not go with statistic="swap"; use "difference".')
    pairs, model = Pairs.arrange(X, X_knockoff, labels, rng), None
    design, beside = pairs.design, np.arange(0)
    if covariates is not None:
        p = np.full(len(X), 1 / len(X))
        design = np.hstack([design, Standardizer.fit(covariates, p).transform(covariates)])
        beside = np.arange(pairs.design.shape[1], design.shape[1])
    if pairs.n_pairs == 0:
        found = np.zeros(0)
    elif statistic == "lasso_path":
        found = entry_importances(pairs.design, y, weights, design[:, beside])
    else:
        critic = _fresh(estimator, rng, beside)
        if statistic == "swap":
            found = swap_importances(critic, design, y, pairs.units(), rng)
        else:
            critic = critic.fit_validated(design, y, weights)  # Alg. 5, train SIC
            found = model_importances(critic, design.shape[1])[: 2 * pairs.n_pairs]
        model = unwrapped(critic)
    importances = pairs.restore(found)
    # Alg. 5: W_j = eta_j - eta_(j + d) for the default statistic, summed over groups.
    sums = np.stack([np.bincount(labels, side, pairs.same.size) for side in importances])
    W = signed_statistics(sums[0], sums[1], CONTRASTS[statistic])
    return Evaluation(np.where(pairs.same, 0.0, W), importances, model)


def signed_statistics(
    importances: Array, knockoff_importances: Array, contrast: str = "difference"
) -> Array:
    """Compute W from the importances of columns and knockoffs.

    Parameters
    ----------
    importances, knockoff_importances : array of shape (p,)
        Importances of the columns and of their knockoffs.
    contrast : {"difference", "signed_max"}, default="difference"
        Formula, see :func:`knockoff_statistics`.

    Returns
    -------
    array of shape (p,)
        Statistics W.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs.statistics import signed_statistics
    >>> signed_statistics(np.array([3.0, 1.0]), np.array([1.0, 2.0]), "signed_max")
    array([ 3., -2.])
    """
    check_option("contrast", contrast, ("difference", "signed_max"))
    difference = np.asarray(importances - knockoff_importances, dtype=float)
    if contrast == "difference":
        return difference
    return np.maximum(importances, knockoff_importances) * np.sign(difference)


def check_statistic(statistic: str, estimator: Any) -> None:
    """Raise an error for an unknown statistic, or an estimator that it would not use."""
    check_option("statistic", statistic, CONTRASTS)
    if statistic == "lasso_path" and estimator is not None:
        raise ValueError(
            'statistic="lasso_path" does not use an estimator; leave it out, or use another '
            "statistic."
        )


def _fresh(estimator: Any, rng: np.random.Generator, adjusted: Index) -> Any:
    if estimator is None:
        from sobolev.convex import ConvexSIC  # the default critic

        estimator = ConvexSIC()
    told = told_covariates(told_type(estimator), adjusted)
    return as_critic(seeded(told, rng)).for_testing()
