"""Base class of the knockoff samplers: validation, constant columns, draws."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._random import RandomState, spawn
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index, Mask
from sobolev.exceptions import ConstantColumnWarning
from sobolev.validation import feature_names, list_some, validate_rows

MIN_ROWS = 3

Sampler = TypeVar("Sampler", bound="KnockoffSampler")


class KnockoffSampler(BaseEstimator):
    """Base class of samplers that draw knockoffs of the rows they were fitted to.

    A subclass implements ``_fit(X)`` and ``_sample(rng)``; both see only the columns that vary. A
    constant column is its own knockoff: the two do not differ, so it is never selected.

    Attributes
    ----------
    varying_ : array of bool, shape (p,)
        False for constant columns.
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : array of str, shape (p,)
        Names of the columns, if X has names.
    """

    n_features_in_: int
    varying_: Mask

    def fit(self: Sampler, X: Any, y: Any = None) -> Sampler:
        """Fit the model of the columns.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to draw knockoffs of.
        y : ignored
            Not used; knockoffs are drawn without the response.

        Returns
        -------
        self
            The fitted sampler.
        """
        return self.fit_validated(validate_rows(self, X, reset=True))

    def fit_validated(self: Sampler, X: Array, names: Any = None) -> Sampler:
        """Fit to rows that were validated before; ``names`` are the names of the columns."""
        n, self.n_features_in_ = X.shape
        if names is not None:
            self.feature_names_in_ = names
        if n < MIN_ROWS:
            raise ValueError(f"n_samples = {n} is too few for knockoffs; pass at least {MIN_ROWS}.")
        self.varying_ = Standardizer.fit(X, np.full(n, 1 / n)).varying
        if not self.varying_.all():
            same = np.flatnonzero(~self.varying_)
            all_names = feature_names(self)
            listed = list_some([repr(all_names[j]) for j in same])
            warnings.warn(
                f"{same.size} constant columns are their own knockoffs and cannot be selected: "
                f"{listed}.",
                ConstantColumnWarning,
                stacklevel=3,
            )
        self._constant = X[:, ~self.varying_]
        self._n_rows = n
        if self.varying_.any():
            self._fit(X[:, self.varying_])
        return self

    @property
    def fitted_shape(self) -> tuple[int, int]:
        """Number of rows and columns of the fitted table."""
        return self._n_rows, self.n_features_in_

    def sample(self, random_state: RandomState = None) -> Array:
        """Draw knockoffs of the fitted rows.

        Parameters
        ----------
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator of the draw.

        Returns
        -------
        array of shape (n, p)
            Knockoffs, one row for each fitted row.
        """
        check_is_fitted(self, "varying_")
        # A child generator: data simulated from the same seed must not share its normals.
        rng = spawn(random_state, 1)[0]
        draw = np.empty((self._n_rows, self.n_features_in_))
        draw[:, ~self.varying_] = self._constant
        if self.varying_.any():
            draw[:, self.varying_] = self._sample(rng)
        return draw

    def _expanded(self, values: Array, fill: float = 0.0) -> Array:
        """Extend a vector or square matrix over the varying columns to all columns."""
        if self.varying_.all():
            return values
        p = self.n_features_in_
        full = np.full((p,) * values.ndim, fill)
        where: Index = np.flatnonzero(self.varying_)
        full[np.ix_(*[where] * values.ndim)] = values
        return full

    def _all_locations(self, X_location: Array) -> Array:
        """Locations of all columns; that of a constant column is its value."""
        location = np.empty(self.n_features_in_)
        location[self.varying_] = X_location
        location[~self.varying_] = self._constant[0] if self._constant.size else 0.0
        return location

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _sample(self, rng: np.random.Generator) -> Array:
        raise NotImplementedError
