"""One-pass moments of the Fourier map: weighted sums over rows that can be merged.

With a Fourier map, convex SIC needs only a few means of the data. They add up over chunks of rows,
over folds and over machines; the iterations of the solver do not read the data again. Cosines and
sines come in pairs, so the Gram matrix of the derivatives is a rearrangement of the Gram matrix of
the values: one product for each chunk instead of two.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array
from sobolev.convex.quadratics import FourierPart, LinearPart, QuadraticForms
from sobolev.criterion import risk

if TYPE_CHECKING:
    from sobolev.convex.feature_maps import BoundFourierMap

CHUNK_BYTES = 32 * 2**20


def fourier_values(X: Array, frequencies: Array, out: Array | None = None) -> Array:
    """sqrt(1/h) (cos(x·w), sin(x·w)) for h frequencies, written to ``out`` if given."""
    h = frequencies.shape[0]
    out = np.empty((X.shape[0], 2 * h)) if out is None else out
    phase = X @ frequencies.T
    np.cos(phase, out=out[:, :h])
    np.sin(phase, out=out[:, h:])
    out *= np.sqrt(1.0 / max(1, h))
    return out


@dataclass
class FourierMoments:
    """Weighted sums over the rows read so far, with z = (phi(x), x).

    Attributes
    ----------
    map : BoundFourierMap
        The map.
    weight, heavy_weight : float
        Sum of the row weights, and sum of their weights in the second moments. The two are equal
        under the product measure.
    first, heavy_first : array of shape (m + d,)
        Sum of z with the first and with the second weights.
    second : array of shape (m + d, m + d)
        Sum of z z' with the second-moment weights.
    response : array of shape (m + d, k)
        Sum of z psi'.
    response_first : array of shape (k,)
        Sum of psi.
    """

    map: BoundFourierMap
    weight: float
    heavy_weight: float
    first: Array
    heavy_first: Array
    second: Array
    response: Array
    response_first: Array

    @classmethod
    def empty(cls, bound: BoundFourierMap, k: int) -> FourierMoments:
        """The moments of no rows."""
        size = bound.n_functions + (bound.frequencies.shape[1] if bound.linear else 0)
        shapes = ((size,), (size,), (size, size), (size, k), (k,))
        return cls(bound, 0.0, 0.0, *(np.zeros(shape) for shape in shapes))

    def update(
        self,
        X: Array,
        psi: Array,
        p: Array | None = None,
        omega: Array | None = None,
        rows: int | None = None,
    ) -> FourierMoments:
        """Add rows, one chunk at a time; returns the moments themselves.

        Parameters
        ----------
        X, psi : array of shape (n, d), (n, k)
            Standardised rows and the encoded response.
        p : array of shape (n,), optional
            Row weights; ones if not given.
        omega : array of shape (n,), optional
            Row weights of the second moments; p if not given.
        rows : int, optional
            Number of rows at a time; by default as many as take 32 MiB.
        """
        size, m = self.second.shape[0], self.map.n_functions
        dtype: Any = np.float32 if self.map.single else np.float64
        frequencies = self.map.frequencies.astype(dtype, copy=False)
        rows = max(64, CHUNK_BYTES // (8 * size)) if rows is None else rows
        buffer = np.empty((min(rows, X.shape[0]), size), dtype=dtype)
        for start in range(0, X.shape[0], rows):
            chunk = slice(start, start + rows)
            x = X[chunk].astype(dtype, copy=False)
            z = buffer[: x.shape[0]]
            fourier_values(x, frequencies, out=z[:, :m])
            if self.map.linear:
                z[:, m:] = x
            response, total, mass = psi[chunk], z.sum(axis=0), float(x.shape[0])
            weights = None if p is None or np.all(p[chunk] == 1) else p[chunk]
            if weights is not None:
                response, mass = weights[:, None] * response, float(weights.sum())
                total = weights.astype(dtype, copy=False) @ z
            self.weight += mass
            self.first += total
            self.response += z.T @ response.astype(dtype, copy=False)
            self.response_first += response.sum(axis=0)
            if omega is not None:
                weights = omega[chunk]
                mass, total = float(weights.sum()), weights.astype(dtype, copy=False) @ z
            self.heavy_weight += mass
            self.heavy_first += total
            if weights is None or weights.min() >= 0:
                if weights is not None:
                    z *= np.sqrt(weights.astype(dtype, copy=False))[:, None]
                self.second += z.T @ z  # numpy computes half of this symmetric product
            else:
                self.second += z.T @ (weights.astype(dtype, copy=False)[:, None] * z)
        return self

    def merge(self, other: FourierMoments) -> FourierMoments:
        """The moments of both sets of rows."""
        return self._combine(other, 1.0)

    def remove(self, other: FourierMoments) -> FourierMoments:
        """The moments without the rows of the other: all rows without a fold."""
        return self._combine(other, -1.0)

    def _combine(self, other: FourierMoments, sign: float) -> FourierMoments:
        sums = {
            f.name: getattr(self, f.name) + sign * getattr(other, f.name)
            for f in fields(self)
            if f.name != "map"
        }
        return FourierMoments(self.map, **sums)

    def centred(self, center: Array) -> tuple[Array, Array]:
        """E (z - c)(z - c)' and E (z - c) psi' for a given c."""
        second = self.second - np.outer(center, self.heavy_first)
        second -= np.outer(self.heavy_first, center)
        second += self.heavy_weight * np.outer(center, center)
        response = self.response - np.outer(center, self.response_first)
        return second / self.weight, response / self.weight

    @property
    def mean(self) -> Array:
        """Mean of z, the linear block's columns included."""
        return self.first / self.weight

    def forms(self) -> QuadraticForms:
        """The quadratic forms of convex SIC."""
        m, h = self.map.n_functions, self.map.n_functions // 2
        mean = self.mean
        C, M = self.centred(mean)
        raw = self.second[:m, :m] / self.weight
        delta = np.empty((m, m))  # E delta delta' for delta = (-sin, cos)
        delta[:h, :h] = raw[h:, h:]
        delta[h:, h:] = raw[:h, :h]
        delta[:h, h:] = -raw[h:, :h]
        delta[h:, :h] = -raw[:h, h:]
        plain = self.heavy_first[:m] / self.weight
        mean_delta = np.concatenate([-plain[h:], plain[:h]])
        frequencies = np.vstack([self.map.frequencies, self.map.frequencies])
        part = FourierPart(
            frequencies=frequencies,
            mean=mean[:m],
            mean_derivative=frequencies * mean_delta[:, None],
            C=C[:m, :m],
            S=delta,
            M=M[:m],
            cross=C[:m, m:],
        )
        mass = self.heavy_weight / self.weight
        linear = LinearPart(M[m:], C[m:, m:], mass=mass) if self.map.linear else None
        return QuadraticForms(part, linear)

    def risk(self, U: Array, center: Array, rho: float) -> float:
        """Mean risk of the critic U, centred at ``center``, on these moments' rows."""
        second, response = self.centred(center)
        return float(risk(np.sum(U * response), np.sum(U * (second @ U)), rho))
