"""Blocks of correlated columns: the S-matrix of thousands of columns, nearly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from sobolev._typing import Array, Index
from sobolev.knockoffs._linalg import cholesky, inverse_of, minus_diagonal

# Relative accuracy of the common factor of s.
FACTOR_TOL = 1e-3
# The last relative step towards the best factor, and the vectors that estimate its curvature.
STEP_TOL = 1e-2
N_PROBES = 10


def correlation_blocks(correlation: Array, block_size: int) -> list[Index]:
    """Blocks of at most ``block_size`` columns, cut where correlations are weakest.

    The dendrogram of 1 - |correlation| (average linkage) is cut from the top until no branch is
    too large; neighbours in its order are then joined while they fit into a block.
    """
    distance = np.clip(1 - np.abs(correlation), 0.0, None)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    blocks: list[list[int]] = []
    for branch in _branches(tree, block_size):
        if blocks and len(blocks[-1]) + len(branch) <= block_size:
            blocks[-1] += branch
        else:
            blocks.append(branch)
    return [np.sort(np.asarray(block, dtype=np.intp)) for block in blocks]


def _branches(tree: Array, block_size: int) -> list[list[int]]:
    """The largest branches of at most ``block_size`` leaves, in the order of the dendrogram."""
    p = tree.shape[0] + 1
    stack, found = [2 * p - 2], []
    while stack:
        node = stack.pop()
        if node >= p and tree[node - p, 3] > block_size:
            stack += [int(tree[node - p, 1]), int(tree[node - p, 0])]
        else:
            found.append(_leaves(tree, node))
    return found


def _leaves(tree: Array, node: int) -> list[int]:
    p = tree.shape[0] + 1
    stack, found = [node], []
    while stack:
        node = stack.pop()
        if node < p:
            found.append(node)
        else:
            stack += [int(tree[node - p, 1]), int(tree[node - p, 0])]
    return found


def solve_blocks(
    correlation: Array, method: str, block_size: int, solve: Callable[[Array], Array]
) -> Array:
    """Solve each block alone, then scale all of s by one factor.

    The factor keeps 2 Sigma - diag(s) positive definite; for "mvr" and "maxent" it also minimises
    their objective.
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
    """Newton's method for the convex objective in the factor alone, inside (0, most]."""
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
    # tr(A S A S A) from a few fixed signs: a step need not be exact.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (s.size, N_PROBES))
    probe = A @ signs
    curvature = float(np.vdot(s[:, None] * probe, A @ (s[:, None] * probe))) / N_PROBES
    return -slope / (2 * curvature + 2 * inverse / factor**3)
