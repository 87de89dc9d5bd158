"""Knockoffs of columns of any margins, by a Gaussian copula."""

from __future__ import annotations

import warnings

import numpy as np

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._random import RandomState, spawn
from sobolev._typing import Array
from sobolev.exceptions import SobolevWarning
from sobolev.knockoffs._latent import (
    Margin,
    gibbs,
    latent_correlation,
    nearest_correlation,
    start_latent,
)
from sobolev.knockoffs._linalg import cholesky, inverse_of, square_root
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.s_matrix import METHODS, solve_s

# Correlations of scores below this many standard errors, squared, are noise (2 log p for small p).
NOISE = 8.0
# The least eigenvalue of the latent correlation matrix grows with sqrt(p / n) between these.
FLOORS = (0.01, 0.1)
# A projection that changes a correlation by more than this is told.
LARGE_CHANGE = 0.2


class CopulaKnockoffs(KnockoffSampler):
    """Knockoffs with the margins of the columns: 0/1 columns get 0/1 knockoffs.

    Each column is a step function of a latent standard normal variable, and the latent variables
    are jointly normal. Latent correlations are found pair by pair from the correlations of the
    scores (tetrachoric and polychoric correlations are special cases). For a draw, the latent
    variables of discrete columns are sampled given all columns (Gibbs sweeps of truncated normal
    variables), Gaussian knockoffs are drawn of them and taken back to the columns' values. Under
    the model these are exact knockoffs, up to the convergence of the sweeps.

    Parameters
    ----------
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        See :func:`~sobolev.knockoffs.solve_s`.
    shrinkage : "auto" or float in [0, 1), default="auto"
        How far the correlations r of the scores are pulled to zero. "auto" multiplies each by
        1 - min(8, 2 log p) / (n r²), at least zero: noise goes, strong correlations stay.
    n_sweeps : int, default=20
        Gibbs sweeps in fit, and again before every draw.
    random_state : int, Generator, RandomState or None, default=0
        For the latent variables of fit.

    Attributes
    ----------
    latent_correlation_ : array of shape (p, p)
        Zero beside the diagonal for constant columns.
    s_ : array of shape (p,)
        Of the latent variables; zero for constant columns.
    shrinkage_ : float
        The mean over all pairs of columns.
    change_ : float
        The largest change of a latent correlation that made the matrix positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import CopulaKnockoffs
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 3))
    >>> np.unique(CopulaKnockoffs().fit(X).sample(random_state=0))
    array([0., 1.])
    """

    def __init__(
        self,
        method: str = "mvr",
        shrinkage: float | str = "auto",
        n_sweeps: int = 20,
        random_state: RandomState = 0,
    ) -> None:
        self.method = method
        self.shrinkage = shrinkage
        self.n_sweeps = n_sweeps
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        check_count("n_sweeps", self.n_sweeps)
        self._margins = [Margin.fit(x) for x in X.T]
        R = self._correlation(X.shape[0])
        L = cholesky(R)
        assert L is not None
        self._precision = inverse_of(L)
        s = solve_s(R, self.method)
        self._coefficients = self._precision * s
        self._root = square_root(2 * np.diag(s) - s[:, None] * self._coefficients).T
        rng = spawn(self.random_state, 1)[0]
        start = start_latent(self._margins, rng)
        self._latent = gibbs(start, self._margins, self._precision, self.n_sweeps, rng)
        self.latent_correlation_ = self._expanded(R)
        np.fill_diagonal(self.latent_correlation_, 1.0)
        self.s_ = self._expanded(s)

    def _correlation(self, n: int) -> Array:
        """The shrunk correlations of the scores, taken to the latent variables."""
        scores = np.column_stack([m.scores[m.codes] for m in self._margins])
        products = scores.T @ scores / n
        weights = self._weights(products, n)
        p = products.shape[0]
        self.shrinkage_ = 1 - float(weights[~np.eye(p, dtype=bool)].mean()) if p > 1 else 0.0
        floor = float(np.clip(0.2 * np.sqrt(p / n), *FLOORS))
        latent = latent_correlation(self._margins, weights * products)
        R, self.change_ = nearest_correlation(latent, floor)
        if self.change_ > LARGE_CHANGE:
            warnings.warn(
                f"latent correlations changed by up to {self.change_:.2g} to become positive "
                "definite: rare values or nearly collinear columns. Raise shrinkage, or drop "
                "columns with few distinct rows.",
                SobolevWarning,
                stacklevel=5,
            )
        return R

    def _weights(self, products: Array, n: int) -> Array:
        """What is left of the correlation of each pair."""
        if not isinstance(self.shrinkage, str):
            check_fraction("shrinkage", self.shrinkage, low=0, high=1, closed="left")
            return np.full_like(products, 1 - self.shrinkage)
        check_option("shrinkage", self.shrinkage, ("auto",))
        d = np.diag(products)
        squared = products**2 / np.outer(d, d)
        noise = min(NOISE, 2 * np.log(d.size)) / n
        return np.maximum(1 - noise / np.maximum(squared, 1e-300), 0.0)

    def _sample(self, rng: np.random.Generator) -> Array:
        Z = gibbs(self._latent, self._margins, self._precision, self.n_sweeps, rng)
        draw = Z - Z @ self._coefficients + rng.standard_normal(Z.shape) @ self._root
        return np.column_stack([m.back(z) for m, z in zip(self._margins, draw.T, strict=True)])
