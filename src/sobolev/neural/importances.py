"""The importances eta during training: mirror descent on the simplex, with groups of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev.criterion import Groups, mirror_step
from sobolev.neural.arrays import Array, namespace, to_device
from sobolev.neural.optimizer import Optimizer

# The least importance, relative to the mean: it keeps 1/eta finite and lets a feature come back.
ETA_FLOOR = 1e-5
# The largest change of log eta in one update of the averaged rule.
MAX_MOVE = 0.5
# The averaged rule: weight of the past in the running mean of the squared gradients.
DECAY = 0.99


@dataclass(frozen=True)
class GroupIndex:
    """Pairs (group, feature): groups may overlap."""

    group: Array
    feature: Array
    n_groups: int

    @classmethod
    def make(cls, groups: Groups, device: Any) -> GroupIndex:
        """The index of parsed groups, on a device."""
        pairs = groups.membership.tocoo()
        rows, columns = (to_device(a.astype(np.int64), device) for a in (pairs.row, pairs.col))
        return cls(rows, columns, groups.n_groups)

    def gather(self, per_feature: Array) -> Array:
        """Sums over the features of each group, (E, d) to (E, K)."""
        return _add_at(per_feature[:, self.feature], self.group, self.n_groups)

    def spread(self, per_group: Array, n_features: int) -> Array:
        """Sums over the groups of each feature, (E, K) to (E, d)."""
        return _add_at(per_group[:, self.group], self.feature, n_features)


def _add_at(values: Array, index: Array, size: int) -> Array:
    if isinstance(values, np.ndarray):
        return np.stack([np.bincount(index, row, size) for row in values]).astype(values.dtype)
    return values.new_zeros(values.shape[0], size).index_add(1, index, values)


@dataclass
class Importances:
    """eta of every member, on the simplex at every step, and the averaged squared gradients."""

    eta: Array
    average: Array
    groups: GroupIndex | None = None
    n_updates: int = 0

    @classmethod
    def start(cls, eta: Array, groups: GroupIndex | None = None) -> Importances:
        """From given importances, (E, d) or (E, n_groups)."""
        return cls(eta, namespace(eta).zeros_like(eta), groups)

    def inverse(self, n_features: int) -> Array:
        """1/eta for every feature, (E, d)."""
        inverse = 1 / self.eta
        return inverse if self.groups is None else self.groups.spread(inverse, n_features)

    def penalty(self, squared: Array, epsilon: float) -> Array:
        """sum (squared gradient + epsilon) / eta for each member."""
        return ((self._grouped(squared) + epsilon) / self.eta).sum(1)

    def update(self, squared: Array, lam: Array, optimizer: Optimizer) -> None:
        """One step of mirror descent (Alg. 3, eta-step), with a floor below eta."""
        xp = namespace(squared)
        squared = self._grouped(squared)
        if optimizer.mirror:
            step, max_move = (0.5 * optimizer.eta_step * lam)[:, None], float("inf")
        else:
            step, max_move = optimizer.eta_step, MAX_MOVE
            self.n_updates += 1
            self.average += max(1 - DECAY, 1 / self.n_updates) * (squared - self.average)
            squared = self.average
        eta = mirror_step(
            self.eta,
            squared,
            step,
            optimizer.epsilon,
            relative=not optimizer.mirror,
            max_move=max_move,
            xp=xp,
        )
        eta = xp.clip(eta, ETA_FLOOR / eta.shape[1], None)
        self.eta = eta / eta.sum(1)[:, None]

    def _grouped(self, squared: Array) -> Array:
        return squared if self.groups is None else self.groups.gather(squared)
