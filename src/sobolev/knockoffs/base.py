"""What every knockoff sampler shares: checked rows, constant columns, draws."""

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
    """Draws knockoffs of the rows it was fitted on.

    A subclass learns in ``_fit(X)`` and draws in ``_sample(rng)``; both see only the columns that
    vary. A constant column is its own knockoff: its difference from the knockoff is zero, so it is
    never discovered.

    Attributes
    ----------
    varying_ : array of bool, shape (p,)
        False for constant columns.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    n_features_in_: int
    varying_: Mask

    def fit(self: Sampler, X: Any, y: Any = None) -> Sampler:
        """Learn from rows of X; a response plays no part.

        Parameters
        ----------
        X : array-like of shape (n, p)
        y : ignored

        Returns
        -------
        self
        """
        return self.fit_validated(validate_rows(self, X, reset=True))

    def fit_validated(self: Sampler, X: Array, names: Any = None) -> Sampler:
        """Learn from rows that were checked at the door, of columns with these names."""
        n, self.n_features_in_ = X.shape
        if names is not None:
            self.feature_names_in_ = names
        if n < MIN_ROWS:
            raise ValueError(f"n_samples = {n} is too few for knockoffs; pass {MIN_ROWS} or more.")
        self.varying_ = Standardizer.fit(X, np.full(n, 1 / n)).varying
        if not self.varying_.all():
            same = np.flatnonzero(~self.varying_)
            all_names = feature_names(self)
            listed = list_some([repr(all_names[j]) for j in same])
            warnings.warn(
                f"{same.size} constant columns are their own knockoffs and cannot be discovered: "
                f"{listed}.",
                ConstantColumnWarning,
                stacklevel=3,
            )
        self._constant = X[:, ~self.varying_]
        self._n_rows = n
        if self.varying_.any():
            self._fit(X[:, self.varying_])
        return self

    def sample(self, random_state: RandomState = None) -> Array:
        """Draw knockoffs of the fitted rows.

        Parameters
        ----------
        random_state : int, Generator, RandomState or None

        Returns
        -------
        array of shape (n, p)
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
        """A vector or square matrix over the varying columns, for all columns."""
        if self.varying_.all():
            return values
        p = self.n_features_in_
        full = np.full((p,) * values.ndim, fill)
        where: Index = np.flatnonzero(self.varying_)
        full[np.ix_(*[where] * values.ndim)] = values
        return full

    def _all_locations(self, X_location: Array) -> Array:
        """Locations of all columns: a constant column's is its value."""
        location = np.empty(self.n_features_in_)
        location[self.varying_] = X_location
        location[~self.varying_] = self._constant[0] if self._constant.size else 0.0
        return location

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _sample(self, rng: np.random.Generator) -> Array:
        raise NotImplementedError
