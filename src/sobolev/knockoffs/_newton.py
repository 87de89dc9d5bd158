"""Newton's method with Hadamard Hessians for the smooth S-matrix problems.

With A = (2 Sigma - diag s)^-1, maximum entropy minimises -log det(2 Sigma - diag s) - sum log s,
minimum variance-based reconstructability minimises tr A + sum 1/s, and the centring step of the
SDP minimises -sum s / mu - log det(2 Sigma - diag s) - sum log s - sum log(1 - s).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, cho_factor, cho_solve

from sobolev._typing import Array, Index
from sobolev.exceptions import ConvergenceWarning
from sobolev.knockoffs._linalg import (
    add_diagonal,
    cholesky,
    inverse_of,
    minus_diagonal,
    positive_inverse,
)

# The optimum is reached up to rounding if the residual has not decreased for this many steps, and
# the next step would lower the objective by less than this fraction.
STALLED_STEPS = 4
ROUNDING = 1e-10


class Ties:
    """Coordinates of s that are equal, one set for each group of columns."""

    def __init__(self, labels: Index) -> None:
        self.labels = labels
        size = np.bincount(labels)
        self.size: Array = size.astype(float)
        self.none = bool(size.size == labels.size and (labels == np.arange(labels.size)).all())
        ones = np.ones(labels.size)
        self._sum: Any = sp.csr_array((ones, (labels, np.arange(labels.size))))

    def spread(self, g: Array) -> Array:
        """Values of all coordinates from the tied values."""
        return g if self.none else g[self.labels]

    def total(self, x: Array) -> Array:
        """Sums over the coordinates that are tied."""
        return x if self.none else np.asarray(self._sum @ x)

    def total_both(self, H: Array) -> Array:
        """Sums over rows and columns of a symmetric matrix."""
        return H if self.none else np.asarray(self._sum @ (self._sum @ H).T)


@dataclass(frozen=True)
class Point:
    """A feasible point: the tied values, the inverse A, and log det(2 Sigma - diag s)."""

    g: Array
    A: Array
    log_det: float


class MaxEnt:
    """-log det(2 Sigma - diag s) - sum log s.

    ``gradient`` returns the gradient in the tied values and the relative residual of stationarity.
    """

    def value(self, point: Point, ties: Ties) -> float:
        """The function."""
        return -point.log_det - float(ties.size @ np.log(point.g))

    def gradient(self, point: Point, ties: Ties) -> tuple[Array, float]:
        """A_jj = 1 / s_j at the optimum."""
        d = ties.total(np.diag(point.A))
        return d - ties.size / point.g, float(np.abs(point.g * d / ties.size - 1).max())

    def hessian(self, point: Point, ties: Ties) -> Array:
        """A∘A + diag(1/s²)."""
        H = ties.total_both(point.A * point.A)
        add_diagonal(H, ties.size / point.g**2)
        return H


class MVR:
    """tr A + sum 1/s."""

    def value(self, point: Point, ties: Ties) -> float:
        """The function."""
        return float(np.trace(point.A) + ties.size @ (1 / point.g))

    def gradient(self, point: Point, ties: Ties) -> tuple[Array, float]:
        """(A²)_jj = 1 / s_j² at the optimum."""
        q = ties.total(np.einsum("ij,ij->j", point.A, point.A))
        residual = float(np.abs(point.g**2 * q / ties.size - 1).max())
        return q - ties.size / point.g**2, residual

    def hessian(self, point: Point, ties: Ties) -> Array:
        """2 A∘A² + diag(2/s³); only the lower triangle if no coordinates are tied."""
        square = blas.dsyrk(2.0, point.A, lower=1)  # the upper triangle stays zero
        if not ties.none:
            square = square + np.tril(square, -1).T
        square *= point.A
        H = ties.total_both(square)
        add_diagonal(H, 2 * ties.size / point.g**3)
        return H


@dataclass(frozen=True)
class Centre:
    """The barrier function of the SDP at ``mu``; its residual bounds the Newton decrement."""

    mu: float

    def value(self, point: Point, ties: Ties) -> float:
        """The function; infinite for s >= 1."""
        if (point.g >= 1).any():
            return np.inf
        inner = point.g / self.mu + np.log(point.g) + np.log1p(-point.g)
        return -point.log_det - float(ties.size @ inner)

    def gradient(self, point: Point, ties: Ties) -> tuple[Array, float]:
        """1 = mu (A_jj - 1/s_j + 1/(1 - s_j)) at the optimum."""
        g, size = point.g, ties.size
        slope = ties.total(np.diag(point.A)) - size / g + size / (1 - g) - size / self.mu
        return slope, float(np.abs(self.mu * slope / size).max())

    def hessian(self, point: Point, ties: Ties) -> Array:
        """A∘A + diag(1/s² + 1/(1-s)²)."""
        H = ties.total_both(point.A * point.A)
        add_diagonal(H, ties.size * (1 / point.g**2 + 1 / (1 - point.g) ** 2))
        return H


# The smooth convex functions of s, which are computed from A.
Objective = MaxEnt | MVR | Centre


def point_at(twice: Array, g: Array, ties: Ties) -> Point | None:
    """The point with values g, or None if it is not feasible; ``twice`` is 2 Sigma."""
    L = cholesky(minus_diagonal(twice, ties.spread(g)))
    if L is None:
        return None
    return Point(g, inverse_of(L), 2 * float(np.log(np.diag(L)).sum()))


def starting_values(twice: Array, ties: Ties) -> Array:
    """Conditional variances 1 / (Sigma^-1)_jj, reduced until they are feasible."""
    g = ties.size / ties.total(np.diag(positive_inverse(0.5 * twice)))
    while cholesky(minus_diagonal(twice, ties.spread(g / 0.95))) is None:
        g = 0.7 * g
    return np.asarray(g)


def minimise(
    twice: Array, objective: Objective, point: Point, ties: Ties, tol: float, max_iter: int
) -> Point:
    """Damped Newton steps until the residual is at most ``tol``.

    With nearly singular matrices, rounding can end the iteration earlier. Any other early end
    raises a warning.
    """
    gradient, residual = objective.gradient(point, ties)
    best, least, stalled = point, residual, 0
    for _ in range(max_iter):
        if residual <= tol:
            return point
        step = -solve_positive(objective.hessian(point, ties), gradient)
        slope = float(gradient @ step)
        flat = -slope <= ROUNDING * abs(objective.value(point, ties))
        moved = _line_search(twice, objective, point, ties, step, slope)
        if flat and (moved is None or stalled >= STALLED_STEPS):
            return best
        if moved is None:
            break
        point = moved
        gradient, residual = objective.gradient(point, ties)
        stalled = stalled + 1 if residual > 0.5 * least else 0
        if residual < least:
            best, least = point, residual
    if least > tol:
        warnings.warn(
            f"Newton's method for the S-matrix stopped at the residual {least:.2g}, above "
            f"tol={tol:g}; the covariance may be too ill-conditioned.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return best


def _line_search(
    twice: Array, objective: Objective, point: Point, ties: Ties, step: Array, slope: float
) -> Point | None:
    """A feasible point with a sufficient decrease of the objective, or None."""
    value = objective.value(point, ties)
    rounding = 1e-12 * (abs(value) + ties.labels.size)
    t = min(1.0, 0.95 / max(1e-300, float((-step / point.g).max())))
    while t > 1e-10:
        trial = point_at(twice, point.g + t * step, ties)
        if trial is not None:
            limit = value + 1e-4 * t * slope + rounding
            if objective.value(trial, ties) <= limit:
                return trial
        t *= 0.5
    return None


def solve_positive(H: Array, b: Array) -> Array:
    """Solve H x = b; only the lower triangle of H is read."""
    try:
        factor = cho_factor(H, lower=True, check_finite=False)
    except np.linalg.LinAlgError:  # rounding: a relative ridge helps
        ridged = H.copy()
        add_diagonal(ridged, 1e-10 * np.diag(H))
        factor = cho_factor(ridged, lower=True, check_finite=False)
    return np.asarray(cho_solve(factor, b, check_finite=False))
