"""Group knockoffs: an S-matrix that is block diagonal, one block for each group of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import block_diag, eigh

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.criterion import disjoint_groups
from sobolev.knockoffs._linalg import correlation_of, repair_correlation
from sobolev.knockoffs._newton import Ties
from sobolev.knockoffs.s_matrix import METHODS, solve_correlation

GroupsLike = Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]]


def group_labels(
    groups: GroupsLike, n_features: int, feature_names: Sequence[str] | None = None
) -> Index:
    """The group of each column; groups must not overlap.

    Parameters
    ----------
    groups : mapping or sequence of sequences
        As in :func:`sobolev.criterion.parse_groups`; a column that no group mentions is a group of
        its own.
    n_features : int
    feature_names : sequence of str, optional

    Returns
    -------
    array of int, shape (n_features,)
    """
    names = [f"x{j}" for j in range(n_features)] if feature_names is None else feature_names
    labels = np.empty(n_features, dtype=np.intp)
    for label, columns in enumerate(disjoint_groups(groups, names).values()):
        labels[columns] = label
    return labels


def solve_group_s(sigma: Any, groups: GroupsLike, method: str = "mvr") -> Array:
    """The block diagonal S of group knockoffs: S_g = gamma_g Sigma_gg.

    Correlation between the columns of a group does not limit S, so groups of nearly collinear
    columns keep their power. In coordinates that are white within each group, S is gamma_g times
    the identity; the factors gamma solve the problem of :func:`solve_s` there, with one value for
    each group ("equi": one for all).

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance, repaired with a warning where it must be.
    groups : mapping or sequence of sequences
        Disjoint groups of columns, by position.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"

    Returns
    -------
    array of shape (p, p)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import solve_group_s
    >>> sigma = np.array([[1, 0.99, 0], [0.99, 1, 0], [0, 0, 1]])
    >>> solve_group_s(sigma, [[0, 1], [2]], "equi").round(4)
    array([[1.  , 0.99, 0.  ],
           [0.99, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    check_option("method", method, METHODS)
    correlation, deviations = correlation_of(sigma)
    correlation, _ = repair_correlation(correlation)
    labels = group_labels(groups, deviations.size)
    return solve_group_correlation(correlation, labels, method) * np.outer(deviations, deviations)


def solve_group_correlation(correlation: Array, labels: Index, method: str) -> Array:
    """The block diagonal S of a positive definite correlation matrix."""
    _, labels = np.unique(labels, return_inverse=True)
    order = np.argsort(labels, kind="stable")
    ordered = correlation[np.ix_(order, order)]
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    blocks = [ordered[np.ix_(b, b)] for b in np.split(np.arange(labels.size), cuts)]
    white = block_diag(*[_inverse_root(b) for b in blocks])
    inner = white @ ordered @ white
    inner = 0.5 * (inner + inner.T)
    np.fill_diagonal(inner, 1.0)
    gamma = solve_correlation(inner, method, Ties(np.asarray(labels[order], dtype=np.intp)))
    S = np.empty_like(correlation)
    S[np.ix_(order, order)] = block_diag(*blocks) * gamma
    return S


def _inverse_root(block: Array) -> Array:
    values, vectors = eigh(block)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
