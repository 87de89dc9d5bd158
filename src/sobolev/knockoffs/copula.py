"""Knockoffs for columns with arbitrary marginal distributions, by a Gaussian copula."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

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
from sobolev.knockoffs._linalg import positive_inverse, square_root
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.s_matrix import METHODS, solve_s

# Squared correlations of scores below this many squared standard errors count as noise (for small
# p, 2 log p of them).
NOISE = 8.0
# The smallest eigenvalue of the latent correlation matrix grows with sqrt(p / n) between these.
FLOORS = (0.01, 0.1)
# A projection that changes a correlation by more than this raises a warning.
LARGE_CHANGE = 0.2


@dataclass(eq=False, repr=False)
class CopulaKnockoffs(KnockoffSampler):
    """Knockoffs with the marginal distributions of the columns: 0/1 columns get 0/1 knockoffs.

    Each column is modelled as a step function of a latent standard normal variable, and the latent
    variables are jointly normal. Latent correlations are estimated pair by pair from the
    correlations of the scores (tetrachoric and polychoric correlations are special cases). For each
    draw, the latent variables of discrete columns are sampled given all columns (Gibbs sweeps of
    truncated normal variables); then Gaussian knockoffs of the latent variables are drawn and
    mapped back to the values of the columns. Under the model these knockoffs are exact, up to the
    convergence of the sweeps.

    Parameters
    ----------
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Method for the S-matrix, see :func:`~sobolev.knockoffs.solve_s`.
    shrinkage : "auto" or float in [0, 1), default="auto"
        Shrinkage of the correlations r of the scores towards zero. "auto" multiplies each by
        max(0, 1 - min(8, 2 log p) / (n r²)), which removes noise and keeps strong correlations.
    n_sweeps : int, default=20
        Number of Gibbs sweeps in ``fit``, and again before every draw.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the latent variables in ``fit``.

    Attributes
    ----------
    latent_correlation_ : array of shape (p, p)
        Correlation matrix of the latent variables; zero off the diagonal for constant columns.
    s_ : array of shape (p,)
        Diagonal of the S-matrix of the latent variables; zero for constant columns.
    shrinkage_ : float
        Mean shrinkage over all pairs of columns.
    change_ : float
        Largest change of a latent correlation that was needed for a positive definite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import CopulaKnockoffs
    >>> X = np.random.default_rng(0).integers(0, 2, (100, 3))
    >>> np.unique(CopulaKnockoffs().fit(X).sample(random_state=0))
    array([0., 1.])
    """

    method: str = "mvr"
    shrinkage: float | str = "auto"
    n_sweeps: int = 20
    random_state: RandomState = 0

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        check_count("n_sweeps", self.n_sweeps)
        self._margins = [Margin.fit(x) for x in X.T]
        R = self._correlation(X.shape[0])
        self._precision = positive_inverse(R)
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
        """Latent correlations from the shrunk correlations of the scores."""
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
                f"latent correlations were changed by up to {self.change_:.2g} to make their "
                "matrix positive definite; columns with rare values or nearly collinear columns "
                "are the usual cause. Raise shrinkage, or drop such columns.",
                SobolevWarning,
                stacklevel=5,
            )
        return R

    def _weights(self, products: Array, n: int) -> Array:
        """Factor by which the correlation of each pair is multiplied."""
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
