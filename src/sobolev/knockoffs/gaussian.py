"""Model-X knockoffs of jointly normal columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.covariance import LedoitWolf

from sobolev._parameters import check_option
from sobolev._typing import Array
from sobolev.knockoffs._linalg import (
    cholesky,
    correlation_of,
    inverse_of,
    repair_correlation,
    square_root,
)
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.groups import GroupsLike, group_labels, solve_group_correlation
from sobolev.knockoffs.s_matrix import METHODS, solve_s


class GaussianKnockoffs(KnockoffSampler):
    """Knockoffs of jointly normal columns: x̃ given x is normal with fixed covariance.

    Parameters
    ----------
    covariance : None, estimator or array of shape (p, p), default=None
        None is Ledoit and Wolf's estimator; any covariance estimator of scikit-learn is fitted to
        the standardised columns; a matrix is taken as it is, with the column means as location.
    method : {"mvr", "sdp", "maxent", "equi"}, default="mvr"
        How the S-matrix is chosen, see :func:`~sobolev.knockoffs.solve_s`.
    feature_groups : list of lists or mapping, optional
        Disjoint groups of columns that are swapped together: S is block diagonal.
    block_size : int, optional
        For thousands of columns, see :func:`~sobolev.knockoffs.solve_s`; not with groups.

    Attributes
    ----------
    covariance_ : array of shape (p, p)
        Of the model, in the units of X; repaired if need be.
    location_ : array of shape (p,)
    s_ : array of shape (p,)
        The diagonal of S, ``cov(x, x̃) = covariance_ - S``; zero for constant columns.
    S_ : array of shape (p, p)
        Only with groups.
    shift_ : float
        What the repair added to the diagonal of the correlation matrix; 0 if nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import GaussianKnockoffs
    >>> X = np.random.default_rng(0).standard_normal((100, 3))
    >>> GaussianKnockoffs().fit(X).sample(random_state=0).shape
    (100, 3)
    """

    def __init__(
        self,
        covariance: Any = None,
        method: str = "mvr",
        feature_groups: GroupsLike | None = None,
        block_size: int | None = None,
    ) -> None:
        self.covariance = covariance
        self.method = method
        self.feature_groups = feature_groups
        self.block_size = block_size

    def _fit(self, X: Array) -> None:
        check_option("method", self.method, METHODS)
        if self.feature_groups is not None and self.block_size is not None:
            raise ValueError("block_size does not go with feature_groups; leave one of them out.")
        location, covariance = self._model(X)
        correlation, deviations = correlation_of(covariance)
        correlation, self.shift_ = repair_correlation(correlation)
        units = np.outer(deviations, deviations)
        self.location_ = self._all_locations(location)
        self.covariance_ = self._expanded(correlation * units)
        L = cholesky(correlation)
        assert L is not None
        precision = inverse_of(L)
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
        """Location and covariance; estimated in standard units, so that no column dominates."""
        center, scale = X.mean(axis=0), X.std(axis=0)
        if self.covariance is not None and not hasattr(self.covariance, "fit"):
            return center, self._given()
        estimator = LedoitWolf() if self.covariance is None else clone(self.covariance)
        estimator.fit((X - center) / scale)
        covariance = np.asarray(estimator.covariance_) * np.outer(scale, scale)
        location = np.asarray(getattr(estimator, "location_", np.zeros(scale.size)))
        return center + scale * location, covariance

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
        assert self.feature_groups is not None
        names = getattr(self, "feature_names_in_", None)
        labels = group_labels(self.feature_groups, self.n_features_in_, names)
        return solve_group_correlation(correlation, labels[self.varying_], self.method)

    def _sample(self, rng: np.random.Generator) -> Array:
        return np.asarray(self._mean + rng.standard_normal(self._mean.shape) @ self._root)
