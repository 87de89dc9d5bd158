"""Differences of the moments of columns and knockoffs, in standard errors."""

from __future__ import annotations

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES

# Number of pairs of columns that are compared at once.
CHUNK_PAIRS = 2**22


def correlation_gaps(A: Array, B: Array, labels: Index) -> tuple[Array, Array, Array]:
    """The most significant difference of correlations of each column.

    The columns are processed in chunks, so that no table of all pairs is held in memory.

    Returns
    -------
    gaps : array of shape (p,)
        The difference.
    errors : array of shape (p,)
        Its absolute value in standard errors.
    counts : array of int, shape (p,)
        Number of differences that were compared.
    """
    p = A.shape[1]
    both = np.hstack([A, B])
    squares = both**2
    size = max(1, CHUNK_PAIRS // (2 * p))
    parts = [
        _gaps_of(slice(start, start + size), A, B, both, squares, labels)
        for start in range(0, p, size)
    ]
    gaps, errors, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    return gaps, errors, counts


def _gaps_of(
    chosen: slice, A: Array, B: Array, both: Array, squares: Array, labels: Index
) -> tuple[Array, Array, Array]:
    """The results of :func:`correlation_gaps` for a slice of the columns."""
    n, p = A.shape
    a, b = A[:, chosen], B[:, chosen]
    own = np.arange(p)[chosen]
    apart = labels[own, None] != labels
    within = ~apart & (own[:, None] != np.arange(p))
    D = a - b
    gap = D.T @ both
    square = (D**2).T @ squares
    use = np.hstack([apart, apart])
    if within.any():  # a swap moves both columns: x_j x_k against x̃_j x̃_k
        inner = a.T @ A - b.T @ B
        inner_square = (a**2).T @ A**2 + (b**2).T @ B**2 - 2 * (a * b).T @ (A * B)
        gap[:, :p] = np.where(within, inner, gap[:, :p])
        square[:, :p] = np.where(within, inner_square, square[:, :p])
        use[:, :p] |= within
    z = np.where(use, np.abs(in_errors(gap, square)), 0.0)
    worst = z.argmax(axis=1)
    rows = np.arange(own.size)
    return np.where(use, gap, 0.0)[rows, worst] / n, z[rows, worst], use.sum(axis=1)


def in_errors(total: Array, squares: Array) -> Array:
    """Sums divided by the roots of the sums of squares; zero if nothing varies."""
    error = np.sqrt(np.maximum(squares, 0.0))
    usable = error > 1e-9 * np.sqrt(max(float(squares.max(initial=0.0)), 1e-300))
    return np.divide(total, error, out=np.zeros_like(total), where=usable)


def off_values(x: Array, x_knockoff: Array) -> float:
    """Share of knockoffs with a value that the column never takes.

    Zero for columns with more than ten values, and for columns without repeated values.
    """
    values = np.unique(x)
    if values.size > MAX_CATEGORIES or values.size == x.size:
        return 0.0
    return float(1 - np.isin(x_knockoff, values).mean())


def correlations(X: Array, X_knockoff: Array) -> Array:
    """Correlation of each column with its knockoff; NaN for constant columns."""
    A, B = X - X.mean(axis=0), X_knockoff - X_knockoff.mean(axis=0)
    size = np.linalg.norm(A, axis=0) * np.linalg.norm(B, axis=0)
    varying = (np.ptp(X, axis=0) > 0) & (size > 0)
    nothing = np.full(X.shape[1], np.nan)
    return np.divide((A * B).sum(axis=0), size, out=nothing, where=varying)
