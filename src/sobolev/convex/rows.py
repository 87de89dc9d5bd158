"""The rows that a fit reads: in memory (:class:`Rows`), or wherever :class:`Data` says."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from sobolev._sample import Folds, Sample, response_order, stratified_folds
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import (
    SPACING_ROWS,
    BoundFourierMap,
    BoundMap,
    FourierMap,
    LandmarkMap,
    MapSpec,
    coupled_forms,
)
from sobolev.convex.moments import FourierMoments
from sobolev.convex.solvers import Forms

MEASURES = ("product", "permuted", "mixture", "joint")


class Data(Protocol):
    """What a fit needs of its rows, in memory or not."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def screen(self) -> Sample:
        """Rows for the screen for second-order effects."""

    @property
    def subsample(self) -> Rows | None:
        """Rows for the rounds before the last; None to run every round on all rows."""

    def bind(self, spec: MapSpec, metric: Array, seed: int) -> BoundMap:
        """Place the map on the rows; the same seed in every round keeps rounds comparable."""

    def forms(self, bound: BoundMap, measure: str, seed: int) -> Forms:
        """Quadratic forms under the measure of the penalties."""

    def split(self, folds: Folds, spec: MapSpec) -> tuple[Data, Folds]:
        """The rows in the order in which cross-validation reads them, and the folds."""

    def by_moments(self, spec: MapSpec, measure: str) -> bool:
        """Whether folds are cross-validated through their moments."""

    def moments(self, bound: BoundFourierMap, folds: Folds) -> list[FourierMoments]:
        """Moments of each fold."""


class Rows(Sample):
    """Standardised rows in memory, the encoded response, and probabilities of the rows."""

    subsample: ClassVar[None] = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.p.size

    @property
    def screen(self) -> Sample:
        """Rows for the screen for second-order effects."""
        step = max(1, self.p.size // SPACING_ROWS)
        return Sample(self.X[::step], self.psi[::step], self.p[::step])

    def bind(self, spec: MapSpec, metric: Array, seed: int) -> BoundMap:
        """Place the map on the rows."""
        return spec.bind_sample(self, metric, np.random.default_rng(seed))

    def forms(self, bound: BoundMap, measure: str = "product", seed: int = 0) -> Forms:
        """Quadratic forms under the measure mu of the penalties.

        - ``product``: exact expectations under p_x p_y;
        - ``permuted``: the paper's estimator with one permuted copy of the response;
        - ``joint``: p_xy; ``mixture``: (p_xy + p_x p_y) / 2.
        """
        X, psi, p = self.X, self.psi, self.p
        if measure == "product":
            return bound.forms(X, psi, p)
        outer = psi[:, :, None] * psi[:, None, :]
        difference = psi
        if measure == "permuted":
            shuffled = psi[_permutation(p, np.random.default_rng(seed))]
            outer = shuffled[:, :, None] * shuffled[:, None, :]
            difference = psi - shuffled
        elif measure == "mixture":
            outer = 0.5 * (outer + np.eye(psi.shape[1]))
        omega = p[:, None, None] * outer
        if psi.shape[1] == 1:
            return bound.forms(X, difference, p, omega[:, 0, 0])
        return coupled_forms(bound, X, psi, p, omega, p[:, None] * difference)

    def split(self, folds: Folds, spec: MapSpec) -> tuple[Rows, list[Index]]:
        """Folds along the sorted response, unless the user gave them."""
        if not isinstance(folds, int):
            return self, folds
        rows = self
        if isinstance(spec, LandmarkMap):  # it draws landmarks by position
            order = response_order(self)
            rows = Rows(self.X[order], self.psi[order], self.p[order])
        return rows, stratified_folds(rows, folds)

    def by_moments(self, spec: MapSpec, measure: str) -> bool:
        """True for Fourier features under the product measure."""
        return isinstance(spec, FourierMap) and measure == "product"

    def moments(self, bound: BoundFourierMap, folds: Folds) -> list[FourierMoments]:
        """Moments of each fold, given by its rows."""
        assert not isinstance(folds, int)
        k = self.psi.shape[1]
        return [
            FourierMoments.empty(bound, k).update(self.X[f], self.psi[f], self.p[f]) for f in folds
        ]


def _permutation(p: Array, rng: np.random.Generator) -> Index:
    """A permutation of the rows; with unequal weights a draw that keeps the distribution of y."""
    if np.ptp(p) <= 1e-12 * p.max():
        return rng.permutation(p.size)
    return rng.choice(p.size, size=p.size, p=p)
