"""Pairs of column and knockoff, in an order that does not reveal which is which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index, Mask


@dataclass(frozen=True)
class Pairs:
    """Pairs of column and knockoff, in an order that does not reveal which is which.

    Attributes
    ----------
    design : array of shape (n, 2 m)
        First members of the m varying pairs, then their partners, in standard units.
    labels : array of int, shape (p,)
        Group of each column; the pairs of a group have the same order.
    flipped : array of bool, shape (p,)
        True where the knockoff comes first.
    varying : array of bool, shape (p,)
        False for pairs that are constant.
    same : array of bool, shape (n_groups,)
        True for groups that equal their knockoffs.
    """

    design: Array
    labels: Index
    flipped: Mask
    varying: Mask
    same: Mask

    @classmethod
    def arrange(cls, X: Array, X_knockoff: Array, labels: Index, rng: np.random.Generator) -> Pairs:
        """Order each pair by its values and a coin toss, and standardise both as one column."""
        n, p = X.shape
        first = _first_difference(X - X_knockoff, labels)
        coins = rng.integers(0, 2, first.size).astype(bool)
        flipped = ((first > 0) ^ coins)[labels]
        stacked = np.empty((2 * n, p))
        stacked[:n] = np.where(flipped, X_knockoff, X)
        stacked[n:] = np.where(flipped, X, X_knockoff)
        units = Standardizer.fit(stacked, np.full(2 * n, 0.5 / n))
        Z = units.transform(stacked)
        return cls(np.hstack([Z[:n], Z[n:]]), labels, flipped, units.varying, first == 0)

    @property
    def n_pairs(self) -> int:
        """Number of pairs that vary."""
        return self.design.shape[1] // 2

    def units(self) -> list[Index]:
        """Positions of each group among the varying columns; groups without any are left out."""
        labels = self.labels[self.varying]
        return [np.flatnonzero(labels == g) for g in np.unique(labels)]

    def restore(self, importances: Array) -> Array:
        """Importances of columns and knockoffs, (2, p), from those of the design, (2 m,)."""
        found = np.zeros((2, self.varying.size))
        found[:, self.varying] = importances.reshape(2, -1)
        return np.where(self.flipped, found[::-1], found)


def _first_difference(difference: Array, labels: Index) -> Array:
    """The first nonzero difference of each group, row by row; zero if there is none."""
    first = np.zeros(int(labels.max()) + 1)
    for g in range(first.size):
        values = difference[:, labels == g].ravel()
        first[g] = values[np.argmax(values != 0)]
    return first
