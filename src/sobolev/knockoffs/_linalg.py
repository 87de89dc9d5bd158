"""Symmetric matrices for the S-matrix solvers: factors, inverses, step lengths, repair."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.linalg import blas, eigh, eigvalsh, lapack
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sobolev._typing import Array
from sobolev.exceptions import SobolevWarning

# Smallest eigenvalue of a correlation matrix that needs no repair.
FLOOR = 1e-6


def cholesky(M: Array) -> Array | None:
    """The lower Cholesky factor in Fortran order, or None if M is not positive definite."""
    L, info = lapack.dpotrf(np.asfortranarray(M), lower=1, clean=1)
    return None if info else np.asarray(L)


def inverse_of(L: Array) -> Array:
    """The inverse of L L'."""
    half, _ = lapack.dpotri(L, lower=1)
    A = half + half.T
    A.flat[:: A.shape[0] + 1] *= 0.5
    return np.asarray(A)


def positive_inverse(M: Array) -> Array:
    """The inverse of a positive definite matrix."""
    L = cholesky(M)
    if L is None:
        raise ValueError("the matrix is not positive definite; repair it first.")
    return inverse_of(L)


def add_diagonal(M: Array, d: Array) -> None:
    """Add d to the diagonal of M in place; M is contiguous."""
    M.ravel(order="K")[:: d.size + 1] += d


def minus_diagonal(M: Array, s: Array) -> Array:
    """M - diag(s), in Fortran order."""
    difference = M.copy(order="F")
    add_diagonal(difference, -s)
    return difference


def step_to_boundary(L: Array, N: Array) -> float:
    """The largest t with L L' + t N positive semi-definite, accurate to a few per cent.

    N is a symmetric matrix, or the diagonal of a diagonal one.
    """
    p = L.shape[0]

    def product(x: Array) -> Array:
        y = blas.dtrsv(L, x.ravel(), lower=1, trans=1)
        y = N * y if N.ndim == 1 else N @ y
        return np.asarray(-blas.dtrsv(L, y, lower=1))

    if p < 8:
        dense = np.column_stack([product(e) for e in np.eye(p)])
        largest = float(np.linalg.eigvalsh(0.5 * (dense + dense.T))[-1])
    else:
        operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
        start = np.cos(np.arange(1.0, p + 1) ** 2)  # an arbitrary fixed vector
        options: dict[str, Any] = {"k": 1, "which": "LA", "tol": 1e-2, "ncv": min(p, 12)}
        try:
            largest = float(
                eigsh(operator, v0=start, return_eigenvectors=False, maxiter=50, **options)[0]
            )
        except ArpackNoConvergence:
            return 1.0  # the factorisation after the step decides
    return np.inf if largest <= 0 else 1 / largest


def correlation_of(sigma: Any) -> tuple[Array, Array]:
    """The correlation matrix and the standard deviations of a covariance matrix.

    Returns
    -------
    correlation : array of shape (p, p)
        Correlation matrix.
    deviations : array of shape (p,)
        Standard deviations of the columns.
    """
    S = np.array(sigma, dtype=float)
    if S.ndim != 2 or S.shape[0] != S.shape[1] or S.shape[0] == 0:
        raise ValueError(f"sigma must be a square matrix; got shape {S.shape}.")
    if not np.isfinite(S).all():
        raise ValueError("sigma contains NaN or infinity; estimate it from complete data.")
    if np.abs(S - S.T).max() > 1e-8 * max(1e-300, float(np.abs(S).max())):
        raise ValueError("sigma is not symmetric; pass (sigma + sigma.T) / 2.")
    variances = np.diag(S).copy()
    if (variances <= 0).any():
        j = int(np.flatnonzero(variances <= 0)[0])
        raise ValueError(f"the variance of column {j} is {variances[j]:g}; drop constant columns.")
    deviations = np.sqrt(variances)
    S = 0.5 * (S + S.T) / np.outer(deviations, deviations)
    np.fill_diagonal(S, 1.0)
    return S, deviations


def repaired_correlation(sigma: Any, floor: float = FLOOR) -> tuple[Array, Array, float]:
    """The correlation matrix of a covariance, with its eigenvalues lifted to ``floor``.

    A warning states the shift if the matrix had to change.

    Returns
    -------
    correlation : array of shape (p, p)
        (R + shift I) / (1 + shift); R itself if its eigenvalues reach the floor.
    deviations : array of shape (p,)
        Standard deviations of the columns.
    shift : float
        Number added to the diagonal of R; 0 if R did not change.
    """
    correlation, deviations = correlation_of(sigma)
    lowered = minus_diagonal(np.asfortranarray(correlation), np.full(deviations.size, floor))
    if cholesky(lowered) is not None:
        return correlation, deviations, 0.0
    least = smallest_eigenvalue(correlation)
    shift = max((floor - least) / (1 - floor), 0.0) * (1 + 1e-8) + 1e-14
    kind = "not positive definite" if least <= 0 else "nearly singular"
    warnings.warn(
        f"the covariance is {kind} (smallest eigenvalue {least:.2g} in correlation units): "
        f"{shift:.2g} was added to the diagonal of the correlation matrix. Collinear columns get "
        "knockoffs close to themselves; drop or group them, or shrink the covariance.",
        SobolevWarning,
        stacklevel=3,
    )
    repaired = correlation / (1 + shift)
    np.fill_diagonal(repaired, 1.0)
    return repaired, deviations, shift


def smallest_eigenvalue(M: Array) -> float:
    """The smallest eigenvalue of a symmetric matrix."""
    return float(eigvalsh(M, subset_by_index=[0, 0], check_finite=False)[0])


def square_root(V: Array) -> Array:
    """F with F F' = V for a positive semi-definite V; negative rounding errors are set to 0."""
    L = cholesky(V)
    if L is not None:
        return L
    values, vectors = eigh(V, check_finite=False)
    if values[0] < -1e-6 * max(values[-1], 1e-300):
        warnings.warn(
            f"the conditional covariance of the knockoffs has a negative eigenvalue, "
            f"{values[0]:.2g}, which was set to zero. Pass a better conditioned covariance.",
            SobolevWarning,
            stacklevel=3,
        )
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
