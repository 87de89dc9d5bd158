"""The S-matrix of Gaussian knockoffs: how far each knockoff may stand from its column.

Knockoffs of columns with covariance Sigma have cov(x, x̃) = Sigma - diag(s), which needs s >= 0 and
2 Sigma - diag(s) >= 0. Large s makes powerful knockoffs; the methods differ in what large means.
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
    repair_correlation,
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
    """The diagonal s of the S-matrix of a covariance.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance; the problem is solved for its correlation matrix and s scaled back. A matrix
        that is nearly singular or not positive definite is repaired, with a warning that states
        the shift.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        "mvr" makes columns hard to reconstruct from the rest and all knockoffs (minimises the
        trace of the joint precision matrix), "maxent" maximises the joint entropy, "sdp" the sum
        of s, "equi" one common s.
    block_size : int, optional
        Solve blocks of at most this many correlated columns, then scale all of s so that
        2 Sigma - diag(s) stays positive definite: faster for thousands of columns, s is smaller.
    tol : float, default=1e-7
        Bound of the relative residual of stationarity; for "sdp" the mean complementarity, so
        that the duality gap per column is at most about 3 tol (1e-8 is the least tol there).
    max_iter : int, default=100
        Most steps of the solver.

    Returns
    -------
    array of shape (p,)

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
    correlation, deviations = correlation_of(sigma)
    correlation, _ = repair_correlation(correlation)
    p = correlation.shape[0]
    if block_size is not None:
        check_count("block_size", block_size)
    if block_size is None or block_size >= p:
        s = solve_correlation(correlation, method, tol=tol, max_iter=max_iter)
    else:
        s = solve_blocks(
            correlation,
            method,
            block_size,
            lambda block: solve_correlation(block, method, tol=tol, max_iter=max_iter),
        )
    return s * deviations**2


def solve_correlation(
    correlation: Array,
    method: str,
    ties: Ties | None = None,
    *,
    tol: float = 1e-7,
    max_iter: int = 100,
) -> Array:
    """s of a positive definite correlation matrix, with tied coordinates if asked for."""
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
    """min(1, 2 lambda_min), a hair inside the cone."""
    return min(1.0, 2 * smallest_eigenvalue(correlation) * (1 - 1e-8))


def _objective(method: str) -> Objective:
    return MVR() if method == "mvr" else MaxEnt()


def s_equi(sigma: Any) -> Array:
    """The equicorrelated s: min(1, 2 lambda_min) in correlation units.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.

    Returns
    -------
    array of shape (p,)

    Examples
    --------
    >>> from sobolev.knockoffs import s_equi
    >>> s_equi([[1.0, 0.75], [0.75, 1.0]]).round(4)
    array([0.5, 0.5])
    """
    return solve_s(sigma, "equi")


def s_sdp(sigma: Any, *, block_size: int | None = None, tol: float = 1e-7) -> Array:
    """The s of largest sum; see :func:`solve_s`.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.
    block_size, tol
        See :func:`solve_s`.

    Returns
    -------
    array of shape (p,)
    """
    return solve_s(sigma, "sdp", block_size=block_size, tol=tol)


def s_mvr(sigma: Any, *, block_size: int | None = None, tol: float = 1e-7) -> Array:
    """The s of minimum variance-based reconstructability; see :func:`solve_s`.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.
    block_size, tol
        See :func:`solve_s`.

    Returns
    -------
    array of shape (p,)
    """
    return solve_s(sigma, "mvr", block_size=block_size, tol=tol)


def s_maxent(sigma: Any, *, block_size: int | None = None, tol: float = 1e-7) -> Array:
    """The s of largest joint entropy; see :func:`solve_s`.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.
    block_size, tol
        See :func:`solve_s`.

    Returns
    -------
    array of shape (p,)
    """
    return solve_s(sigma, "maxent", block_size=block_size, tol=tol)


def kkt_residual(sigma: Any, s: Any, method: str = "mvr") -> float:
    """How far s is from the optimum of its problem, whatever solver it comes from.

    With A = (2 Sigma - diag s)^-1 in correlation units: for "mvr" max_j |s_j² (A²)_jj - 1|, for
    "maxent" max_j |s_j A_jj - 1|, for "sdp" a duality gap divided by p, which bounds the distance
    of mean(s) from its optimum, for "equi" the largest distance from min(1, 2 lambda_min).
    Infinite for an s outside the cone.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.
    s : array-like of shape (p,)
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"

    Returns
    -------
    float

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
    """A positive definite version of a covariance, with a warning if it had to change.

    Parameters
    ----------
    sigma : array-like of shape (p, p)
        Covariance.
    floor : float, default=1e-6
        The least eigenvalue of the correlation matrix.

    Returns
    -------
    sigma : array of shape (p, p)
        The variances are kept.
    shift : float
        What was added to the diagonal of the correlation matrix; 0 if nothing.
    """
    correlation, deviations = correlation_of(sigma)
    correlation, shift = repair_correlation(correlation, floor)
    return correlation * np.outer(deviations, deviations), shift
