"""The S-matrix of Gaussian knockoffs, which sets how much each knockoff differs from its column.

Knockoffs of columns with covariance Sigma have cov(x, x̃) = Sigma - diag(s), which requires s >= 0
and 2 Sigma - diag(s) >= 0. Large s gives power; the methods differ in how they measure the size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._parameters import check_count, check_number, check_option
from sobolev._typing import Array
from sobolev.knockoffs._blocks import solve_blocks
from sobolev.knockoffs._linalg import (
    FLOOR,
    correlation_of,
    repaired_correlation,
    smallest_eigenvalue,
)
from sobolev.knockoffs._newton import (
    MVR,
    MaxEnt,
    Objective,
    Ties,
    minimise,
    point_at,
    starting_values,
)
from sobolev.knockoffs._sdp import duality_gap, solve_sdp

METHODS = ("mvr", "sdp", "maxent", "equi")


def solve_s(
    sigma: Any,
    method: str = "mvr",
    *,
    block_size: int | None = None,
    tol: float = 1e-7,
    max_iter: int = 100,
) -> Array:
    """Compute the diagonal s of the S-matrix of a covariance matrix.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance matrix. The problem is solved for the correlation matrix, and s is scaled back. A
        matrix that is nearly singular or not positive definite is repaired; a warning states the
        shift.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Objective. "mvr" (minimum variance-based reconstructability) minimises the trace of the
        joint precision matrix, "maxent" maximises the joint entropy, "sdp" maximises the sum of s,
        and "equi" maximises one common value, min(1, 2 lambda_min) in correlation units.
    block_size : int, optional
        Largest number of columns in a block. Blocks of correlated columns are solved separately,
        then s is scaled so that 2 Sigma - diag(s) is positive definite. This is faster for
        thousands of columns, but s is smaller.
    tol : float, default=1e-7
        Tolerance of the relative residual of stationarity. For "sdp" it bounds the mean
        complementarity, so that the duality gap per column is at most about 3 tol; values below
        1e-8 count as 1e-8 there.
    max_iter : int, default=100
        Largest number of iterations of the solver.

    Returns
    -------
    array of shape (p,)
        Diagonal of the S-matrix, in the units of ``sigma``.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import solve_s
    >>> solve_s([[1.0, 0.5], [0.5, 1.0]], "sdp").round(4)
    array([1., 1.])
    >>> solve_s([[1.0, 0.5], [0.5, 1.0]], "mvr").round(4)
    array([0.5822, 0.5822])
    """
    check_option("method", method, METHODS)
    check_number("tol", tol, positive=True)
    check_count("max_iter", max_iter)
    if block_size is not None:
        check_count("block_size", block_size)
    correlation, deviations, _ = repaired_correlation(sigma)

    def solve(block: Array) -> Array:
        return solve_correlation(block, method, tol=tol, max_iter=max_iter)

    if block_size is None or block_size >= deviations.size:
        s = solve(correlation)
    else:
        s = solve_blocks(correlation, method, block_size, solve)
    return s * deviations**2


def solve_correlation(
    correlation: Array,
    method: str,
    ties: Ties | None = None,
    *,
    tol: float = 1e-7,
    max_iter: int = 100,
) -> Array:
    """The diagonal s for a positive definite correlation matrix; tied coordinates are equal."""
    p = correlation.shape[0]
    ties = Ties(np.arange(p)) if ties is None else ties
    if method == "equi":
        return np.full(p, _equal(correlation))
    twice = np.asfortranarray(2 * correlation)
    g = starting_values(twice, ties)
    if method == "sdp":
        return ties.spread(solve_sdp(twice, g, ties, tol, max_iter))
    point = point_at(twice, g, ties)
    assert point is not None
    return ties.spread(minimise(twice, _objective(method), point, ties, tol, max_iter).g)


def _equal(correlation: Array) -> float:
    """min(1, 2 lambda_min), slightly inside the feasible set."""
    return min(1.0, 2 * smallest_eigenvalue(correlation) * (1 - 1e-8))


def _objective(method: str) -> Objective:
    return MVR() if method == "mvr" else MaxEnt()


def kkt_residual(sigma: Any, s: Any, method: str = "mvr") -> float:
    r"""Measure how far s is from the optimum, for an s from any solver.

    With :math:`A = (2 \Sigma - \operatorname{diag} s)^{-1}` in correlation units, the residual is
    :math:`\max_j |s_j^2 (A^2)_{jj} - 1|` for "mvr" and :math:`\max_j |s_j A_{jj} - 1|` for
    "maxent". For "sdp" it is a duality gap divided by p, which bounds the distance of mean(s) from
    its optimum, and for "equi" the largest distance from min(1, 2 lambda_min).

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance matrix.
    s : array-like of shape (p,)
        Diagonal of the S-matrix.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Objective, see :func:`solve_s`.

    Returns
    -------
    float
        The residual; infinite if s is not feasible.

    Examples
    --------
    >>> from sobolev.knockoffs import kkt_residual
    >>> kkt_residual([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], "maxent")
    0.0
    """
    check_option("method", method, METHODS)
    correlation, deviations = correlation_of(sigma)
    g = np.asarray(s, dtype=float) / deviations**2
    if g.shape != deviations.shape:
        raise ValueError(f"s must have shape {deviations.shape}; got {g.shape}.")
    if method == "equi":
        return float(np.abs(g - min(1.0, 2 * smallest_eigenvalue(correlation))).max())
    ties, twice = Ties(np.arange(g.size)), np.asfortranarray(2 * correlation)
    if (g <= 0).any() or (method == "sdp" and (g > 1).any()):
        return np.inf
    if method == "sdp":
        return duality_gap(twice, g, ties)
    point = point_at(twice, g, ties)
    return np.inf if point is None else _objective(method).gradient(point, ties)[1]


def repair_covariance(sigma: Any, floor: float = FLOOR) -> tuple[Array, float]:
    """Make a covariance matrix positive definite, with a warning if it changes.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance matrix.
    floor : float, default=1e-6
        Smallest eigenvalue of the correlation matrix.

    Returns
    -------
    sigma : array of shape (p, p)
        Covariance matrix with the same variances.
    shift : float
        Number that was added to the diagonal of the correlation matrix; 0 if sigma is unchanged.
    """
    correlation, deviations, shift = repaired_correlation(sigma, floor)
    return correlation * np.outer(deviations, deviations), shift
