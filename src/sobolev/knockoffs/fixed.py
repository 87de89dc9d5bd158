"""Fixed-X knockoffs: exact Gram matrices, no model of X, at least 2p + 1 rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.exceptions import DataWarning
from sobolev.knockoffs._blocks import feasible_factor
from sobolev.knockoffs._linalg import square_root
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.s_matrix import METHODS, solve_s
from sobolev.validation import feature_names, list_some

# For columns of unit length, singular values below this fraction of the largest count as zero.
RANK_TOL = 1e-7


@dataclass(eq=False, repr=False)
class FixedXKnockoffs(KnockoffSampler):
    """Knockoffs for the linear model with fixed X and normal noise.

    Let Xc be the centred columns. The knockoffs satisfy X̃c'X̃c = Xc'Xc and
    Xc'X̃c = Xc'Xc - diag(s) exactly, for any X. A column that depends linearly on others is its own
    knockoff (s = 0), and a warning names it.

    Parameters
    ----------
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Method for the S-matrix, see :func:`~sobolev.knockoffs.solve_s`.
    center : bool, default=True
        Whether to centre the columns, which a model with an intercept needs; this takes
        n >= 2p + 1 rows. With False (columns that are centred already, or no intercept) n >= 2p
        rows are enough.

    Attributes
    ----------
    s_ : array of shape (p,)
        Diagonal of the S-matrix, in units of the Gram matrix.
    location_ : array of shape (p,)
        Means of the columns; zero with ``center=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import FixedXKnockoffs
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> X -= X.mean(axis=0)
    >>> sampler = FixedXKnockoffs().fit(X)
    >>> K = sampler.sample(random_state=0)
    >>> np.allclose(X.T @ K, X.T @ X - np.diag(sampler.s_))
    True
    """

    method: str = "mvr"
    center: bool = True

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        n, p = X.shape
        needed = 2 * p + int(self.center)
        if n < needed:
            raise ValueError(
                f"X has {n} rows and {p} columns that vary; fixed-X knockoffs need n >= "
                f"{'2p + 1' if self.center else '2p'} = {needed} rows. Use GaussianKnockoffs or "
                "CopulaKnockoffs, which work with fewer rows."
            )
        location = X.mean(axis=0) if self.center else np.zeros(p)
        Xc = X - location
        length = np.linalg.norm(Xc, axis=0)
        self._unit = Xc / length
        self._length, self._location = length, location
        tied = dependent_columns(self._unit)
        self._warn(tied)
        self._free = np.setdiff1d(np.arange(p), tied)
        self._tied, self._copies = tied, X[:, tied]
        # Only the part of the free columns outside the span of the dependent ones limits s.
        rest = self._unit[:, self._free]
        self._basis = self._column_space(tied)
        residual = rest - self._basis @ (self._basis.T @ rest)
        s = np.zeros(p)
        if self._free.size:
            q, r = qr(residual, mode="economic")
            s_free = self._solve(r.T @ r)
            # residual G^-1 diag(s) = q R^-T diag(s), and C'C = 2 diag(s) - diag(s) G^-1 diag(s).
            half = solve_triangular(r, np.diag(s_free), trans="T")
            self._mean = rest - q @ half
            self._root = square_root(2 * np.diag(s_free) - half.T @ half).T
            self._basis = np.hstack([self._basis, q])
            s[self._free] = s_free
        if self.center:
            self._basis = np.hstack([self._basis, np.full((n, 1), n**-0.5)])
        self.s_ = self._expanded(s * length**2)
        self.location_ = self._all_locations(location)

    def _solve(self, gram: Array) -> Array:
        """s that is feasible for the Gram matrix itself, even if the solver repaired it."""
        s = solve_s(gram, self.method)
        return feasible_factor(2 * gram, s) * s

    def _column_space(self, columns: Index) -> Array:
        """An orthonormal basis of the span of the given columns."""
        if columns.size == 0:
            return np.zeros((self._unit.shape[0], 0))
        U, d, _ = np.linalg.svd(self._unit[:, columns], full_matrices=False)
        return np.asarray(U[:, d > RANK_TOL * d[0]])

    def _warn(self, tied: Index) -> None:
        if tied.size == 0:
            return
        names = feature_names(self)
        shown = list_some([repr(names[j]) for j in np.flatnonzero(self.varying_)[tied]])
        warnings.warn(
            f"{tied.size} columns are collinear ({shown}): their fixed-X knockoffs equal them, so "
            "they cannot be selected. Drop some of them.",
            DataWarning,
            stacklevel=5,
        )

    def _sample(self, rng: np.random.Generator) -> Array:
        unit = self._unit.copy()
        if self._free.size:
            noise = rng.standard_normal((unit.shape[0], self._free.size))
            for _ in range(2):  # twice is enough for orthogonality to rounding
                noise -= self._basis @ (self._basis.T @ noise)
            q, _ = qr(noise, mode="economic")
            q -= self._basis @ (self._basis.T @ q)
            unit[:, self._free] = self._mean + q @ self._root
        draw = np.asarray(self._location + unit * self._length)
        draw[:, self._tied] = self._copies  # exact copies: rounding must not make a difference
        return draw


def dependent_columns(unit: Array) -> Index:
    """Positions of the columns that take part in a linear dependence.

    Parameters
    ----------
    unit : array of shape (n, p)
        Columns of unit length.

    Returns
    -------
    array of int
        Positions in ascending order.
    """
    _, d, Vt = np.linalg.svd(unit, full_matrices=False)
    null = Vt[d <= RANK_TOL * d[0]]
    return np.asarray(np.flatnonzero(np.abs(null).max(axis=0, initial=0.0) > 1e-6), dtype=np.intp)
