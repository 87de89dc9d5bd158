"""Gaussian model-X knockoffs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._typing import Array
from sobolev.conditionals.gaussian import estimate_covariance
from sobolev.criterion import GroupsLike
from sobolev.knockoffs._linalg import positive_inverse, repaired_correlation, square_root
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.groups import group_labels, solve_group_correlation
from sobolev.knockoffs.s_matrix import METHODS, solve_s


@dataclass(eq=False, repr=False)
class GaussianKnockoffs(KnockoffSampler):
    """Knockoffs for jointly normal columns.

    Given x, the knockoff x̃ is normal, with a covariance that does not depend on x.

    Parameters
    ----------
    covariance : None, estimator or array of shape (p, p), default=None
        Covariance of the columns. A covariance estimator of scikit-learn is fitted to the
        standardised columns; None is Ledoit and Wolf's. A matrix is used as given, with the means
        of the columns as location.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        Method for the S-matrix, see :func:`~sobolev.knockoffs.solve_s`.
    feature_groups : list of lists or mapping, optional
        Disjoint groups of columns that are swapped together; S is then block diagonal.
    block_size : int, optional
        Largest number of columns that are solved together, for thousands of columns; see
        :func:`~sobolev.knockoffs.solve_s`. Not available with groups.

    Attributes
    ----------
    covariance_ : array of shape (p, p)
        Covariance of the model in the units of X, repaired if it was nearly singular.
    location_ : array of shape (p,)
        Means of the columns.
    s_ : array of shape (p,)
        Diagonal of S, where ``cov(x, x̃) = covariance_ - S``; zero for constant columns.
    S_ : array of shape (p, p)
        The S-matrix; only with groups.
    shift_ : float
        Number that the repair added to the diagonal of the correlation matrix; 0 if none was
        needed.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import GaussianKnockoffs
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> GaussianKnockoffs().fit(X).sample(random_state=0).shape
    (100, 3)
    """

    covariance: Any = None
    method: str = "mvr"
    feature_groups: GroupsLike | None = None
    block_size: int | None = None

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        if self.feature_groups is not None and self.block_size is not None:
            raise ValueError(
                "block_size and feature_groups cannot be combined; pass only one of them."
            )
        location, covariance = self._model(X)
        correlation, deviations, self.shift_ = repaired_correlation(covariance)
        units = np.outer(deviations, deviations)
        self.location_ = self._all_locations(location)
        self.covariance_ = self._expanded(correlation * units)
        precision = positive_inverse(correlation)
        Z = (X - location) / deviations
        if self.feature_groups is None:
            s = solve_s(correlation, self.method, block_size=self.block_size)
            self.s_ = self._expanded(s * deviations**2)
            coefficients = precision * s
            V = -coefficients * s[:, None]
            V.flat[:: s.size + 1] += 2 * s
        else:
            S = self._group_s(correlation)
            self.S_ = self._expanded(S * units)
            self.s_ = np.diag(self.S_).copy()
            coefficients = precision @ S
            V = 2 * S - S @ coefficients
        self._mean = location + (Z - Z @ coefficients) * deviations
        self._root = np.ascontiguousarray(square_root(0.5 * (V + V.T)).T) * deviations

    def _model(self, X: Array) -> tuple[Array, Array]:
        """Location and covariance of the columns."""
        if self.covariance is None or hasattr(self.covariance, "fit"):
            return estimate_covariance(X, self.covariance)
        return X.mean(axis=0), self._given()

    def _given(self) -> Array:
        given = np.asarray(self.covariance, dtype=float)
        p = self.n_features_in_
        if given.shape != (p, p):
            raise ValueError(
                f"covariance has shape {given.shape}, but X has {p} columns; pass a ({p}, {p}) "
                "matrix, a covariance estimator, or None."
            )
        return given[np.ix_(self.varying_, self.varying_)]

    def _group_s(self, correlation: Array) -> Array:
        names = getattr(self, "feature_names_in_", None)
        labels = group_labels(self.feature_groups, self.n_features_in_, names)
        return solve_group_correlation(correlation, labels[self.varying_], self.method)

    def _sample(self, rng: np.random.Generator) -> Array:
        return np.asarray(self._mean + rng.standard_normal(self._mean.shape) @ self._root)
