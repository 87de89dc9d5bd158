"""Permutations of the rows, and p-values that count the observed value (the +1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._typing import Array, Index


def permutations(
    n: int,
    n_permutations: int,
    rng: np.random.Generator,
    blocks: Any = None,
    groups: Index | None = None,
) -> Index:
    """Random permutations of the rows, within blocks or of whole groups if given.

    Parameters
    ----------
    n : int
        Number of rows.
    n_permutations : int
        Number of permutations.
    rng : numpy.random.Generator
        Source of randomness.
    blocks : array-like of shape (n,), optional
        Block of each row; rows are exchanged only within their block.
    groups : array of int, shape (n,), optional
        Number of the group of each row; groups of the same size are exchanged as a whole.

    Returns
    -------
    array of int, shape (n_permutations, n)
        One permutation of the row numbers in each row.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.permutation import permutations
    >>> permutations(4, 2, np.random.default_rng(0), blocks=["a", "a", "b", "b"])
    array([[0, 1, 2, 3],
           [0, 1, 3, 2]])
    """
    if groups is not None:
        return _whole_groups(np.asarray(groups), n_permutations, rng)
    if blocks is None:
        return rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
    labels = np.unique(np.asarray(blocks), return_inverse=True)[1]
    out = np.empty((n_permutations, n), dtype=np.intp)
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        out[:, rows] = rng.permuted(np.tile(rows, (n_permutations, 1)), axis=1)
    return out


def _whole_groups(groups: Index, n_permutations: int, rng: np.random.Generator) -> Index:
    """Permutations of groups, each among those with as many rows; rows keep their order."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    out = np.empty((n_permutations, groups.size), dtype=np.intp)
    for size in np.unique(sizes):
        rows = order[starts[sizes == size][:, None] + np.arange(size)]
        place = rng.permuted(np.tile(np.arange(len(rows)), (n_permutations, 1)), axis=1)
        out[:, rows.ravel()] = rows[place].reshape(n_permutations, -1)
    return out


def permutation_pvalue(observed: float, null: Array, slack: float | None = None) -> float:
    """Share of values at least as large as the observed one, which is counted as well.

    Parameters
    ----------
    observed : float
        Observed statistic.
    null : array of shape (n_permutations,)
        Statistics drawn under the null hypothesis.
    slack : float, optional
        Values below the observed one by at most this much count as ties, that is, against it;
        1e-10 of its size by default.

    Returns
    -------
    float
        The p-value, at least 1 / (n_permutations + 1).

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.permutation import permutation_pvalue
    >>> permutation_pvalue(3.0, np.array([1.0, 2.0, 3.0]))
    0.5
    """
    if slack is None:
        slack = 1e-10 * max(abs(observed), 1e-300)
    return float((1 + np.count_nonzero(null >= observed - slack)) / (1 + null.size))
