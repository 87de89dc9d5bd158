"""Group knockoffs: a block diagonal S-matrix with one block for each group of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import block_diag, eigh

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.criterion import GroupsLike, disjoint_groups
from sobolev.knockoffs._linalg import repaired_correlation
from sobolev.knockoffs._newton import Ties
from sobolev.knockoffs.s_matrix import METHODS, solve_correlation


def group_labels(
    feature_groups: GroupsLike | None, n_features: int, feature_names: Sequence[str] | None = None
) -> Index:
    """The group of each column; groups must not overlap.

    Parameters
    ----------
    feature_groups : mapping, sequence of sequences or None
        Groups of columns, as in :func:`sobolev.criterion.parse_groups`. A column that no group
        mentions is a group of its own; with None all columns are.
    n_features : int
        Number of columns.
    feature_names : sequence of str, optional
        Names of the columns; x0, x1 and so on by default.

    Returns
    -------
    array of int, shape (n_features,)
        Number of the group of each column.
    """
    labels = np.arange(n_features)
    if feature_groups is None:
        return labels
    names = [f"x{j}" for j in labels] if feature_names is None else feature_names
    for label, columns in enumerate(disjoint_groups(feature_groups, names).values()):
        labels[columns] = label
    return labels


def solve_group_s(sigma: Any, feature_groups: GroupsLike, method: str = "mvr") -> Array:
    """The block diagonal S-matrix of group knockoffs, S_g = gamma_g Sigma_gg.

    Correlation within a group does not limit S, so groups of nearly collinear columns keep their
    power. After each group is whitened, S is gamma_g times the identity in group g; the factors
    gamma solve the problem of :func:`solve_s` in these coordinates, with one value for each group
    (one value for all groups with "equi").

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance matrix; repaired, with a warning, if it is nearly singular.
    feature_groups : mapping or sequence of sequences
        Disjoint groups of columns, by position.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Method, see :func:`solve_s`.

    Returns
    -------
    array of shape (p, p)
        The S-matrix.

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
    correlation, deviations, _ = repaired_correlation(sigma)
    labels = group_labels(feature_groups, deviations.size)
    return solve_group_correlation(correlation, labels, method) * np.outer(deviations, deviations)


def solve_group_correlation(correlation: Array, labels: Index, method: str) -> Array:
    """The block diagonal S-matrix of a positive definite correlation matrix."""
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
