"""Latent normal variables of columns with any marginal distribution: scores, correlations, draws.

Column j is a step function of a standard normal z_j. The step function is expanded in Hermite
polynomials, so that the correlation of two scores is a power series in the latent correlation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from sobolev._typing import Array, Index

# Number of terms of the Hermite series, and largest latent correlation in its inversion.
N_TERMS = 50
MAX_CORRELATION = 0.99
# A column is discrete if its most frequent value has at least this share of the rows.
DISCRETE_SHARE = 0.02
_CHUNK_PAIRS = 50_000
_CHUNK_ROWS = 2048


@dataclass(frozen=True)
class Margin:
    """The empirical distribution of a column, as cells of the standard normal distribution.

    Attributes
    ----------
    values : array of shape (k,)
        Distinct values in ascending order.
    codes : array of int, shape (n,)
        Position of the value of each row.
    edges : array of shape (k + 1,)
        Normal quantiles of the cumulative frequencies, from -inf to inf.
    scores : array of shape (k,)
        Mean of z in each cell.
    """

    values: Array
    codes: Index
    edges: Array
    scores: Array

    @classmethod
    def fit(cls, x: Array) -> Margin:
        """Estimate from a column."""
        values, codes, counts = np.unique(x, return_inverse=True, return_counts=True)
        cumulated = np.concatenate([[0], np.cumsum(counts)]) / x.size
        edges = ndtri(cumulated)
        scores = -np.diff(norm.pdf(edges)) / np.diff(cumulated)
        return cls(values, np.asarray(codes, dtype=np.intp), edges, scores)

    @property
    def discrete(self) -> bool:
        """Whether some value is frequent, so that its cell is wide."""
        share = np.diff(ndtr(self.edges)).max()
        return bool(share >= DISCRETE_SHARE and self.values.size < self.codes.size)

    def middle(self) -> Array:
        """Normal score of each row, in the middle of its cell."""
        cumulated = ndtr(self.edges)
        return np.asarray(ndtri(0.5 * (cumulated[:-1] + cumulated[1:]))[self.codes])

    def back(self, z: Array) -> Array:
        """Values of the cells that contain z."""
        return self.values[np.searchsorted(self.edges[1:-1], z, side="left")]

    def hermite(self) -> Array:
        """Coefficients 1 to N_TERMS of the scores in normalised Hermite polynomials."""
        inner, jumps = self.edges[1:-1], np.diff(self.scores)
        weight = jumps * norm.pdf(inner)
        found = np.empty(N_TERMS)
        previous, current = np.zeros_like(inner), np.ones_like(inner)
        for m in range(1, N_TERMS + 1):
            found[m - 1] = weight @ current / np.sqrt(m)
            previous, current = (
                current,
                (inner * current - np.sqrt(m - 1) * previous) / np.sqrt(m),
            )
        return found


def latent_correlation(margins: list[Margin], score_correlation: Array) -> Array:
    """The latent correlations for which the scores have the given mean products.

    Parameters
    ----------
    margins : list of Margin
        Marginal distributions of the columns.
    score_correlation : array of shape (p, p)
        Mean products of the scores, not divided by their standard deviations.

    Returns
    -------
    array of shape (p, p)
        Latent correlations, computed pair by pair; the matrix need not be positive definite.
    """
    coefficients = np.array([margin.hermite() for margin in margins])
    p = len(margins)
    rows, columns = np.triu_indices(p, 1)
    found = np.eye(p)
    for start in range(0, rows.size, _CHUNK_PAIRS):
        i, j = rows[start : start + _CHUNK_PAIRS], columns[start : start + _CHUNK_PAIRS]
        rho = _invert((coefficients[i] * coefficients[j]).T, score_correlation[i, j])
        found[i, j] = found[j, i] = rho
    return found


def _invert(series: Array, target: Array) -> Array:
    """Solve sum_m series[m] rho^(m+1) = target; the left side increases with rho."""
    low = np.full(target.shape, -MAX_CORRELATION)
    high = -low
    for _ in range(30):
        rho = 0.5 * (low + high)
        value = np.zeros_like(rho)
        for term in series[::-1]:
            value += term
            value *= rho
        under = value < target
        low, high = np.where(under, rho, low), np.where(under, high, rho)
    return np.asarray(0.5 * (low + high))


def nearest_correlation(R: Array, floor: float) -> tuple[Array, float]:
    """Lift the eigenvalues of a matrix to about ``floor``; also returns the largest change."""
    values, vectors = np.linalg.eigh(R)
    if values[0] >= floor:
        return R, 0.0
    lifted = (vectors * np.maximum(values, floor)) @ vectors.T
    deviations = np.sqrt(np.diag(lifted))
    lifted = 0.5 * (lifted + lifted.T) / np.outer(deviations, deviations)
    np.fill_diagonal(lifted, 1.0)
    return lifted, float(np.abs(lifted - R).max())


def start_latent(margins: list[Margin], rng: np.random.Generator) -> Array:
    """Normal scores: the middle of the cell, or a random point of it for discrete columns."""
    Z = np.column_stack([margin.middle() for margin in margins])
    for j, margin in enumerate(margins):
        if margin.discrete:
            low, high = margin.edges[margin.codes], margin.edges[margin.codes + 1]
            Z[:, j] = truncated_normal(low, high, rng.random(low.size))
    return Z


def gibbs(
    Z: Array, margins: list[Margin], precision: Array, n_sweeps: int, rng: np.random.Generator
) -> Array:
    """Draw the latent variables of discrete columns given the rest and their cells.

    Parameters
    ----------
    Z : array of shape (n, p)
        Starting values; not changed.
    margins : list of Margin
        Marginal distributions of the columns.
    precision : array of shape (p, p)
        Precision matrix of the latent variables.
    n_sweeps : int
        Number of sweeps over the columns.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    array of shape (n, p)
        Latent variables.
    """
    Z = Z.copy()
    discrete = [j for j, margin in enumerate(margins) if margin.discrete]
    deviations = 1 / np.sqrt(np.diag(precision))
    for start in range(0, Z.shape[0] if discrete else 0, _CHUNK_ROWS):
        rows = slice(start, start + _CHUNK_ROWS)
        z = np.asfortranarray(Z[rows])
        for _ in range(n_sweeps):
            for j in discrete:
                margin, sd = margins[j], deviations[j]
                codes = margin.codes[rows]
                mean = z[:, j] - z @ precision[:, j] * sd**2
                low, high = (margin.edges[codes] - mean) / sd, (margin.edges[codes + 1] - mean) / sd
                z[:, j] = mean + sd * truncated_normal(low, high, rng.random(codes.size))
        Z[rows] = z
    return Z


def truncated_normal(low: Array, high: Array, level: Array) -> Array:
    """Quantiles at ``level`` of the standard normal between ``low`` and ``high``."""
    flip = low > 0  # the lower tail keeps its digits
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    below, above = ndtr(a), ndtr(b)
    z = ndtri(below + level * (above - below))
    # Far in the tail the cell has no mass in double precision: use its nearer end.
    z = np.where(np.isfinite(z), z, np.where(np.isfinite(b), b, a))
    z = np.clip(z, a, b)
    return np.where(flip, -z, z)
