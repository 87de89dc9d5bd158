"""Approximate S-matrix of thousands of columns, from blocks of correlated columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage, to_tree
from scipy.spatial.distance import squareform

from sobolev._typing import Array, Index
from sobolev.knockoffs._linalg import cholesky, inverse_of, minus_diagonal

# Relative accuracy of the largest feasible factor of s.
FACTOR_TOL = 1e-3
# Relative step at which the best factor is accepted, and number of vectors for its curvature.
STEP_TOL = 1e-2
N_PROBES = 10


def correlation_blocks(correlation: Array, block_size: int) -> list[Index]:
    """Divide the columns into blocks of at most ``block_size``, where correlations are weak.

    The dendrogram of 1 - |correlation| (average linkage) is cut from the top until no branch is
    too large; neighbouring branches are then merged as long as they fit into a block.
    """
    distance = np.clip(1 - np.abs(correlation), 0.0, None)
    np.fill_diagonal(distance, 0.0)
    tree = to_tree(linkage(squareform(distance, checks=False), "average"))
    blocks: list[list[int]] = []
    for branch in _branches(tree, block_size):
        if blocks and len(blocks[-1]) + len(branch) <= block_size:
            blocks[-1] += branch
        else:
            blocks.append(branch)
    return [np.sort(np.asarray(block, dtype=np.intp)) for block in blocks]


def _branches(tree: Any, block_size: int) -> list[list[int]]:
    """The largest branches of at most ``block_size`` leaves, in the order of the dendrogram."""
    stack, found = [tree], []
    while stack:
        node = stack.pop()
        if node.get_count() > block_size:
            stack += [node.get_right(), node.get_left()]
        else:
            found.append(node.pre_order())
    return found


def solve_blocks(
    correlation: Array, method: str, block_size: int, solve: Callable[[Array], Array]
) -> Array:
    """Solve each block separately, then multiply s by one common factor.

    The factor keeps 2 Sigma - diag(s) positive definite; for "mvr" and "maxent" it also minimises
    the objective.
    """
    p = correlation.shape[0]
    if method == "equi":
        return solve(correlation)
    s = np.empty(p)
    for block in correlation_blocks(correlation, block_size):
        s[block] = solve(correlation[np.ix_(block, block)])
    twice = np.asfortranarray(2 * correlation)
    most = feasible_factor(twice, s)
    if method == "sdp":
        return most * s
    return _best_factor(twice, s, most, method) * s


def feasible_factor(twice: Array, s: Array) -> float:
    """The largest factor in (0, 1] that keeps 2 Sigma - factor diag(s) positive definite."""
    low, high = 0.0, 1.0
    if cholesky(minus_diagonal(twice, s)) is not None:
        return 1.0
    while high - low > FACTOR_TOL * high and high > 1e-12:
        middle = 0.5 * (low + high)
        if cholesky(minus_diagonal(twice, middle * s)) is None:
            high = middle
        else:
            low = middle
    return low


def _best_factor(twice: Array, s: Array, most: float, method: str) -> float:
    """Newton's method for the convex objective as a function of the factor, in (0, most]."""
    low, high, factor = 0.0, most, 0.9 * most
    for _ in range(20):
        L = cholesky(minus_diagonal(twice, factor * s))
        step = 0.0 if L is None else _factor_step(inverse_of(L), s, factor, method)
        if L is None or step < 0:
            high = factor
        else:
            low = factor
        moved = factor + step
        inside = L is not None and low <= moved <= high
        factor = moved if inside else 0.5 * (low + high)
        if inside and abs(step) <= STEP_TOL * factor:
            break
    return factor


def _factor_step(A: Array, s: Array, factor: float, method: str) -> float:
    """The Newton step of the factor; A = (2 Sigma - factor diag(s))^-1."""
    if method == "maxent":
        slope = float(s @ np.diag(A)) - s.size / factor
        return -slope / (float(s @ (A * A) @ s) + s.size / factor**2)
    inverse = float(np.sum(1 / s))
    slope = float(np.einsum("ij,ij->j", A, A) @ s) - inverse / factor**2
    # tr(A S A S A) from a few fixed random signs: the step need not be exact.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (s.size, N_PROBES))
    probe = A @ signs
    curvature = float(np.vdot(s[:, None] * probe, A @ (s[:, None] * probe))) / N_PROBES
    return -slope / (2 * curvature + 2 * inverse / factor**3)
