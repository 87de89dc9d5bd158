"""Gaussian knockoffs under a factor model, for thousands of columns without a p × p matrix."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular

from sobolev._parameters import check_count, check_number, check_option
from sobolev._typing import Array
from sobolev.exceptions import ConvergenceWarning
from sobolev.knockoffs.base import KnockoffSampler

METHODS = ("mvr", "maxent", "equi")
# Largest number of factors with "auto", and smallest unique variance of a standardised column.
MAX_FACTORS = 50
MIN_UNIQUE = 0.01
# s stays below 2 (1 - MARGIN) times the unique variance: the covariance of the noise is then
# diagonal plus low rank, and no p × p matrix is needed.
MARGIN = 1e-3


@dataclass(frozen=True)
class FactorModel:
    """Factor model Sigma = diag(unique) + loadings loadings'.

    Attributes
    ----------
    unique : array of shape (p,)
        Unique variances.
    loadings : array of shape (p, r)
        Loadings of the columns on the factors.
    """

    unique: Array
    loadings: Array

    def reduced(self, diagonal: Array, weight: float = 1.0) -> tuple[Array, Array]:
        """T with (diag(e) + weight L L')^-1 = diag(1/e) - T T', and the factor of its core."""
        scaled = self.loadings / diagonal[:, None]
        core = np.eye(scaled.shape[1]) / weight + self.loadings.T @ scaled
        R = np.linalg.cholesky(core)
        return solve_triangular(R, scaled.T, lower=True).T, np.asarray(R, dtype=float)

    def smallest_eigenvalue(self) -> float:
        """Smallest eigenvalue of Sigma, by bisection on the inertia of Sigma - t I."""
        low, high = float(self.unique.min()), float((self.unique + self._squares()).min())
        while high - low > 1e-9 * high:
            t = 0.5 * (low + high)
            shifted = self.unique - t
            shifted[shifted == 0] = np.finfo(float).tiny
            core = self.loadings.T @ (self.loadings / shifted[:, None])
            core.flat[:: core.shape[0] + 1] += 1
            negative = int(np.sum(shifted < 0)) - int(np.sum(np.linalg.eigvalsh(core) < 0))
            low, high = (t, high) if negative <= 0 else (low, t)
        return low

    def _squares(self) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.loadings, self.loadings))


def fit_factors(Z: Array, n_factors: int | None, max_iter: int, tol: float) -> FactorModel:
    """Fit a factor model to standardised columns.

    Alternates between the principal factors of the columns, in units of their unique standard
    deviations, and the unique variances. Each eigenvalue is corrected for its bias with n rows (the
    spiked model); eigenvalues that noise alone could reach do not count as factors.

    Parameters
    ----------
    Z : array of shape (n, p)
        Columns of mean zero and variance one.
    n_factors : int or None
        Largest number of factors; None is 50.
    max_iter : int
        Largest number of iterations.
    tol : float
        Tolerance: the fit stops when no unique variance changes by more.

    Returns
    -------
    FactorModel
        The fitted model.
    """
    n, p = Z.shape
    most = min(MAX_FACTORS if n_factors is None else n_factors, n - 1, p)
    unique, change = np.ones(p), np.inf
    for _ in range(max_iter):
        deviations = np.sqrt(unique)
        values, vectors = _leading(Z / (deviations * np.sqrt(n)), most)
        spikes = _unbiased_spikes(values, p / n)
        kept = spikes > 1
        if not kept.any():
            kept[0] = True
        loadings = deviations[:, None] * vectors[:, kept] * np.sqrt(np.maximum(spikes[kept] - 1, 0))
        new = np.clip(1 - np.einsum("ij,ij->i", loadings, loadings), MIN_UNIQUE, 1.0)
        change, unique = float(np.abs(new - unique).max()), new
        if change <= tol:
            break
    else:
        warnings.warn(
            f"the factor model did not converge: a unique variance changed by {change:.2g} in the "
            f"last of {max_iter} iterations; raise max_iter or lower n_factors.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return FactorModel(unique, loadings)


def _leading(W: Array, k: int) -> tuple[Array, Array]:
    """The k leading eigenvalues and eigenvectors of W'W, from the smaller Gram matrix."""
    n, p = W.shape
    gram = W @ W.T if n < p else W.T @ W
    m = gram.shape[0]
    values, U = eigh(gram, subset_by_index=[m - k, m - 1], check_finite=False)
    if n < p:
        U = W.T @ U / np.sqrt(np.maximum(values, 1e-300))
    return values[::-1], U[:, ::-1]


def _unbiased_spikes(values: Array, ratio: float) -> Array:
    """Population eigenvalues from sample eigenvalues, with p / n = ratio and unit noise."""
    b = values + 1 - ratio
    root = np.sqrt(np.maximum(b**2 - 4 * values, 0.0))
    return np.where(values > (1 + np.sqrt(ratio)) ** 2, 0.5 * (b + root), 1.0)


def low_rank_s(model: FactorModel, method: str, tol: float = 1e-6, max_iter: int = 500) -> Array:
    """The diagonal s of the S-matrix of a factor model, in O(p r²) operations per iteration.

    s is at most twice the unique variances. All coordinates move at once to their own optimum given
    the others; the step is halved until the objective decreases.
    """
    most = np.minimum(2 * (1 - MARGIN) * model.unique, 2.0)
    if method == "equi":
        return np.minimum(np.minimum(1.0, 2 * (1 - MARGIN) * model.smallest_eigenvalue()), most)
    s = 0.5 * most
    value, diagonal, square = _low_rank_objective(model, s, method)
    for _ in range(max_iter):
        if method == "maxent":
            wish, residual = (1 - diagonal * s) / (2 * diagonal), 1 - diagonal * s
        else:
            norm = np.sqrt(square)
            wish, residual = (1 - norm * s) / (norm + diagonal), 1 - square * s**2
        residual = np.where((s >= most) & (residual > 0), 0.0, residual)
        if np.abs(residual).max() <= tol:
            return s
        t = 1.0
        while t > 1e-8:
            trial = np.clip(s + t * wish, 0.01 * s, most)
            new = _low_rank_objective(model, trial, method)
            if new[0] <= value + 1e-12 * abs(value):
                break
            t *= 0.5
        s, (value, diagonal, square) = trial, new
    warnings.warn(
        "the S-matrix of the factor model did not converge: its residual is "
        f"{np.abs(residual).max():.2g}, above {tol:g}.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return s


def _low_rank_objective(model: FactorModel, s: Array, method: str) -> tuple[float, Array, Array]:
    """The objective, diag A and diag A² for A = (2 Sigma - diag s)^-1."""
    e = 2 * model.unique - s
    T, R = model.reduced(e, 2.0)
    share = np.einsum("ij,ij->i", T, T)
    diagonal = 1 / e - share
    if method == "maxent":
        log_det = float(np.log(e).sum()) + 2 * float(np.log(np.diag(R)).sum())
        return -log_det - float(np.log(s).sum()), diagonal, diagonal
    square = 1 / e**2 - 2 * share / e + np.einsum("ij,ij->i", T @ (T.T @ T), T)
    return float(diagonal.sum() + (1 / s).sum()), diagonal, square


@dataclass(eq=False, repr=False)
class LowRankKnockoffs(KnockoffSampler):
    """Gaussian knockoffs under a factor model: the covariance is diagonal plus low rank.

    Made for thousands of columns: time is linear in p, and no p × p matrix is formed. If only
    neighbouring columns are correlated, the covariance is not of low rank; use
    :class:`~sobolev.knockoffs.GaussianKnockoffs` with ``block_size`` instead.

    Parameters
    ----------
    n_factors : int or "auto", default="auto"
        Largest number of factors; "auto" is 50. Eigenvalues that noise alone could reach never
        count as factors.
    method : {"mvr", "maxent", "equi"}, default="mvr"
        Method for s as in :func:`~sobolev.knockoffs.solve_s`, with s at most twice the unique
        variances.
    max_iter : int, default=100
        Largest number of iterations of the factor model.
    tol : float, default=1e-3
        Tolerance: the factor model stops when no unique variance changes by more.

    Attributes
    ----------
    location_, scale_ : arrays of shape (p,)
        Mean and standard deviation of the columns.
    loadings_ : array of shape (p, r)
        Loadings in the units of X.
    unique_variances_ : array of shape (p,)
        Unique variances: ``covariance_ = diag(unique_variances_) + loadings_ @ loadings_.T``.
    s_ : array of shape (p,)
        Diagonal of the S-matrix.
    n_factors_ : int
        Number of factors.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import LowRankKnockoffs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 300)) + rng.standard_normal((100, 1))
    >>> sampler = LowRankKnockoffs().fit(X)
    >>> sampler.n_factors_
    1
    >>> sampler.sample(random_state=0).shape
    (100, 300)
    """

    n_factors: int | str = "auto"
    method: str = "mvr"
    max_iter: int = 100
    tol: float = 1e-3

    @property
    def covariance_(self) -> Array:
        """The p × p covariance, computed on access."""
        return np.diag(self.unique_variances_) + self.loadings_ @ self.loadings_.T

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        check_count("max_iter", self.max_iter)
        check_number("tol", self.tol, positive=True)
        location, scale = X.mean(axis=0), X.std(axis=0)
        Z = (X - location) / scale
        model = fit_factors(Z, _factor_count(self.n_factors), self.max_iter, self.tol)
        s = low_rank_s(model, self.method)
        T, _ = model.reduced(model.unique)
        # (Z - Z Sigma^-1 S) and V = diag(2 s - s²/unique) + (S T)(S T)'.
        self._mean = location + (Z * (1 - s / model.unique) + (Z @ T) @ T.T * s) * scale
        self._noise = np.sqrt(s * (2 - s / model.unique)) * scale
        self._low = T * (s * scale)[:, None]
        self.location_ = self._all_locations(location)
        self.scale_ = self._expanded(scale)
        self.s_ = self._expanded(s * scale**2)
        self.unique_variances_ = self._expanded(model.unique * scale**2)
        self.n_factors_ = model.loadings.shape[1]
        self.loadings_ = np.zeros((self.n_features_in_, self.n_factors_))
        self.loadings_[self.varying_] = model.loadings * scale[:, None]

    def _sample(self, rng: np.random.Generator) -> Array:
        n, p = self._mean.shape
        draw = rng.standard_normal((n, p))
        draw *= self._noise
        draw += rng.standard_normal((n, self._low.shape[1])) @ self._low.T
        draw += self._mean
        return draw


def _factor_count(n_factors: Any) -> int | None:
    if isinstance(n_factors, Integral):
        check_count("n_factors", n_factors)
        return int(n_factors)
    check_option("n_factors", n_factors, ("auto",))
    return None
