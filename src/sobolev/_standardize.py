"""Standardisation of columns, in their own units or as normal scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from sobolev._typing import Array, Index, Mask

_CHUNK_ROWS = 8192
# A column has heavy tails if its skewness or its excess kurtosis exceeds these.
MAX_SKEWNESS, MAX_KURTOSIS = 1.0, 2.0
# Columns with fewer distinct values keep their units.
MIN_VALUES = 11


def rank_scores(values: Array) -> Array:
    """Normal scores of the ranks in each column; ties share a rank."""
    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / values.shape[0]))


def has_heavy_tails(numbers: Array, p: Array) -> bool:
    """Whether a column with probabilities p is strongly skewed or has heavy tails."""
    centred = numbers - p @ numbers
    centred = centred / max(float(np.abs(centred).max()), 1e-300)  # keeps fourth powers finite
    variance = float(p @ centred**2)
    if variance <= 0.0:
        return False
    skewness, kurtosis = p @ centred**3 / variance**1.5, p @ centred**4 / variance**2 - 3
    return bool(abs(skewness) > MAX_SKEWNESS or kurtosis > MAX_KURTOSIS)


@dataclass(frozen=True)
class NormalScores:
    """An increasing map from values to normal scores, linear between the fitted values.

    Attributes
    ----------
    knots, scores : array of shape (m,)
        Distinct fitted values, and normal quantiles of their mid-distribution function.
    """

    knots: Array
    scores: Array

    @classmethod
    def fit(cls, numbers: Array, p: Array) -> NormalScores:
        """Fit to values with probabilities p."""
        knots, code = np.unique(numbers, return_inverse=True)
        mass = np.bincount(code, weights=p)
        return cls(knots, ndtri(np.cumsum(mass) - mass / 2))

    def __call__(self, values: Array) -> Array:
        """Scores of values; those of the extremes beyond the fitted values."""
        return np.asarray(np.interp(values, self.knots, self.scores))

    def inverse(self, scores: Array) -> Array:
        """Values with the given scores."""
        return np.asarray(np.interp(scores, self.scores, self.knots))


@dataclass(frozen=True)
class Standardizer:
    """Weighted mean and standard deviation of each column.

    Constant columns, and columns that a fit left out, are marked and removed by :meth:`transform`.

    Attributes
    ----------
    center, scale : array of shape (d,)
        Means and standard deviations.
    varying : array of bool, shape (d,)
        False for constant columns and for columns that a fit left out.
    scores : mapping
        Maps to normal scores, by position, of the columns that have them.
    """

    center: Array
    scale: Array
    varying: Mask
    scores: Mapping[int, NormalScores] = field(default_factory=dict)

    @classmethod
    def fit_scores(cls, X: Array, p: Array) -> Standardizer:
        """As :meth:`fit`, with normal scores for columns that have heavy tails."""
        heavy = [j for j, x in enumerate(X.T) if has_heavy_tails(x, p)]
        heavy = [j for j in heavy if np.unique(X[:, j]).size >= MIN_VALUES]
        scores = {j: NormalScores.fit(X[:, j], p) for j in heavy}
        plain = cls.fit(X, p)
        return replace(cls.fit(replace(plain, scores=scores)._scored(X), p), scores=scores)

    @classmethod
    def fit(cls, X: Array, p: Array) -> Standardizer:
        """Compute from rows with probabilities p, in two passes over chunks of rows."""
        chunks = [slice(i, i + _CHUNK_ROWS) for i in range(0, X.shape[0], _CHUNK_ROWS)]
        reference = X[0].astype(float)
        center = sum(p[c] @ (X[c] - reference) for c in chunks) + reference
        variance = sum(p[c] @ (X[c] - center) ** 2 for c in chunks)
        low, high = X.min(axis=0), X.max(axis=0)
        scale = np.sqrt(variance)
        # A range of a few units in the last place is rounding error, not variation.
        noise = 8 * np.finfo(X.dtype).eps * np.maximum(np.abs(low), np.abs(high))
        varying = (high > low) & (scale > noise)
        return cls(center, np.where(varying, scale, 1.0), varying)

    def transform(self, X: Array) -> Array:
        """The varying columns in standard units."""
        X = self._scored(X)
        if self.varying.all():
            return (X - self.center) / self.scale
        v = self.varying
        return (X[:, v] - self.center[v]) / self.scale[v]

    def values(self, column: int, values: Array) -> Array:
        """Values of one column in standard units."""
        if column in self.scores:
            values = self.scores[column](values)
        return np.asarray((values - self.center[column]) / self.scale[column])

    def original(self, column: int, z: Array) -> Array:
        """Values of one column that have the given standard units."""
        found = self.center[column] + self.scale[column] * z
        return self.scores[column].inverse(found) if column in self.scores else np.asarray(found)

    def _scored(self, X: Array) -> Array:
        """X with normal scores in the columns that have them."""
        if not self.scores:
            return X
        X = np.array(X, dtype=float)
        for j, scores in self.scores.items():
            X[:, j] = scores(X[:, j])
        return X

    def keep(self, columns: Index) -> Standardizer:
        """Keep only the varying columns at these positions (among the varying columns)."""
        varying = np.zeros_like(self.varying)
        varying[np.flatnonzero(self.varying)[columns]] = True
        return replace(self, varying=varying)
