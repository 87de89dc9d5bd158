r"""Signed statistics W of pairs of column and knockoff.

A statistic is valid if swapping a column with its knockoff changes the sign of its :math:`W_j` and
nothing else. That is so for any estimator here, by construction: before it is fitted each pair is
put in an order that does not depend on which of the two is the column (the smaller entry in the
first row where they differ comes first, then a coin is tossed), and both share one centre and
scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._random import RandomState, check_generator, seeded
from sobolev._typing import Array, Index
from sobolev.critic import as_critic, unwrapped
from sobolev.knockoffs.groups import GroupsLike, group_labels
from sobolev.knockoffs.importances import (
    entry_importances,
    model_importances,
    swap_importances,
)
from sobolev.knockoffs.pairs import Pairs

# How importances become W.
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
        One for each column, if there are no groups.
    importances : array of shape (2, p)
        Of the columns and of their knockoffs.
    model : estimator or None
        The last fit, to the arranged pairs; None for "lasso_path".
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
    r"""The statistic W of each column: large where it matters more than its knockoff.

    With importances :math:`I_j` of the column and :math:`\tilde I_j` of the knockoff:

    - "difference": :math:`I_j - \tilde I_j`;
    - "signed_max": :math:`\max(I_j, \tilde I_j)\, \mathrm{sign}(I_j - \tilde I_j)`;
    - "lasso_path": the same, where the importance is the penalty at which the column enters the
      path of the lasso;
    - "swap": the difference of out-of-fold losses with the knockoff in the places of both and
      with the column in the places of both, for any predictor.

    Parameters
    ----------
    X, X_knockoff : array-like of shape (n, p)
    y : array-like of shape (n,)
    estimator : estimator or None, default=None
        With ``feature_importances_`` or ``coef_``, for "swap" with predictions; None is
        :class:`~sobolev.ConvexSIC`. Not for "lasso_path".
    statistic : {"difference", "signed_max", "lasso_path", "swap"}, default="difference"
    feature_groups : mapping or sequence of sequences, optional
        Disjoint groups of columns, by position; importances are summed in each.
    random_state : int, Generator, RandomState or None, default=0
        For the coins, the folds and the open random states of the estimator.

    Returns
    -------
    array of shape (p,) or (n_groups,)
        Zero where column and knockoff are equal.

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
            f"X has the shape {X.shape} and X_knockoff {X_knockoff.shape}; pass two tables of one "
            "shape."
        )
    p = X.shape[1]
    labels = np.arange(p) if feature_groups is None else group_labels(feature_groups, p)
    rng = check_generator(random_state)
    return evaluate(X, X_knockoff, y, estimator, statistic, labels, rng).W


def evaluate(
    X: Array,
    X_knockoff: Array,
    y: Any,
    estimator: Any,
    statistic: str,
    labels: Index,
    rng: np.random.Generator,
) -> Evaluation:
    """Statistics, importances and model of one draw; see :func:`knockoff_statistics`."""
    check_statistic(statistic, estimator)
    pairs, y, model = Pairs.arrange(X, X_knockoff, labels, rng), _vector(y), None
    if pairs.n_pairs == 0:
        found = np.zeros(0)
    elif statistic == "lasso_path":
        found = entry_importances(pairs.design, y)
    else:
        critic = _fresh(estimator, rng)
        if statistic == "swap":
            found = swap_importances(critic, pairs.design, y, pairs.units(), rng)
        else:
            critic = critic.fit_validated(pairs.design, y)
            found = model_importances(critic, 2 * pairs.n_pairs)
        model = unwrapped(critic)
    importances = pairs.restore(found)
    sums = np.stack([np.bincount(labels, side, pairs.same.size) for side in importances])
    W = signed_statistics(sums[0], sums[1], CONTRASTS[statistic])
    return Evaluation(np.where(pairs.same, 0.0, W), importances, model)


def signed_statistics(
    importances: Array, knockoff_importances: Array, contrast: str = "difference"
) -> Array:
    """W from the importances of columns and knockoffs.

    Parameters
    ----------
    importances, knockoff_importances : array of shape (p,)
    contrast : {"difference", "signed_max"}, default="difference"

    Returns
    -------
    array of shape (p,)

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
    """A known name, and no estimator where none is used."""
    check_option("statistic", statistic, CONTRASTS)
    if statistic == "lasso_path" and estimator is not None:
        raise ValueError(
            'statistic="lasso_path" fits the lasso itself; leave estimator out, or use another '
            "statistic."
        )


def _vector(y: Any) -> Any:
    """A response of one column as a vector: the folds see its order, and no estimator warns."""
    if np.ndim(y) != 2 or np.shape(y)[1] != 1:
        return y
    return y.iloc[:, 0] if hasattr(y, "iloc") else np.asarray(y)[:, 0]


def _fresh(estimator: Any, rng: np.random.Generator) -> Any:
    if estimator is None:
        from sobolev.convex import ConvexSIC  # the default critic

        estimator = ConvexSIC()
    return as_critic(seeded(estimator, rng)).for_testing()
