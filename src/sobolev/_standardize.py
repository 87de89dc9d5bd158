"""Standardisation of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sobolev._typing import Array, Index, Mask

_CHUNK_ROWS = 8192


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
    """

    center: Array
    scale: Array
    varying: Mask

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
        if self.varying.all():
            return (X - self.center) / self.scale
        v = self.varying
        return (X[:, v] - self.center[v]) / self.scale[v]

    def keep(self, columns: Index) -> Standardizer:
        """Keep only the varying columns at these positions (among the varying columns)."""
        varying = np.zeros_like(self.varying)
        varying[np.flatnonzero(self.varying)[columns]] = True
        return replace(self, varying=varying)
