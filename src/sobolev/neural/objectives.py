"""What a network is trained for: the loss of its values, its derivative, and the held-out risk.

The trainer adds the gradient penalty; an objective says over which copies it is computed, and with
which weight. Values are (E, C, N), responses (E, C, N, k), weights of the rows (E, N).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sobolev import criterion
from sobolev.neural.arrays import Array, namespace


class Objective:
    """The loss of the values and its derivative.

    Attributes
    ----------
    copies : slice
        The copies that enter the gradient penalty.
    share : float
        The weight of each of these copies.
    joint : float
        The share of the joint distribution in the measure of the penalties.
    """

    copies: Any = slice(None)
    share: Any = 1.0
    joint: Any = 0.0

    def __call__(self, values: Array, y: Array, weights: Array) -> tuple[Array, Array]:
        """Loss of each member, (E,), and its derivative in the values."""
        raise NotImplementedError

    def risk(self, values: Array, y: Array) -> Array:
        """The score of held-out rows, (E, N); larger is better."""
        raise NotImplementedError


@dataclass(frozen=True)
class PairedSIC(Objective):
    """SIC with permuted responses: copy 0 is the joint distribution, copy 1 the product.

    ``joint`` is the share of the joint distribution in the measure of the penalties: 0 for the
    product of the marginals, 1 for the joint distribution, 1/2 for their mixture.
    """

    rho: float
    joint: float = 0.0

    @property
    def copies(self) -> slice:
        """The copies that enter the penalties."""
        return {0.0: slice(1, 2), 1.0: slice(0, 1)}.get(self.joint, slice(0, 2))

    @property
    def share(self) -> float:
        """The weight of each of these copies."""
        return 1.0 if self.joint in (0.0, 1.0) else 0.5

    def __call__(self, values: Array, y: Array, weights: Array) -> tuple[Array, Array]:
        """Product minus joint plus rho/2 E f²."""
        joint, product = values[:, 0], values[:, 1]
        second = self.joint * joint**2 + (1 - self.joint) * product**2
        loss = -criterion.risk(joint, second, self.rho, product)
        delta = namespace(values).empty_like(values)
        delta[:, 0] = self.rho * self.joint * joint - 1
        delta[:, 1] = self.rho * (1 - self.joint) * product + 1
        delta *= weights[:, None]
        return (weights * loss).sum(1), delta

    def risk(self, values: Array, y: Array) -> Array:
        """Copy 0 against the others, which are draws of the response."""
        drawn = values[:, 1:]
        return criterion.risk(values[:, 0], (drawn**2).mean(1), self.rho, drawn.mean(1))


@dataclass(frozen=True)
class ExactSIC(Objective):
    """SIC of f = h(x)' psi(y) under the exact product: -h'psi + rho/2 |h|²."""

    rho: float

    def __call__(self, values: Array, y: Array, weights: Array) -> tuple[Array, Array]:
        """Minus the mean risk."""
        psi = y[:, 0].swapaxes(1, 2)
        loss = -(weights * self.risk(values, y)).sum(1)
        return loss, weights[:, None] * (self.rho * values - psi)

    def risk(self, values: Array, y: Array) -> Array:
        """f - rho/2 |h|² for each row."""
        f = (values * y[:, 0].swapaxes(1, 2)).sum(1)
        return criterion.risk(f, (values**2).sum(1), self.rho)


@dataclass(frozen=True)
class SquaredError(Objective):
    """Squared error, summed over outputs."""

    def __call__(self, values: Array, y: Array, weights: Array) -> tuple[Array, Array]:
        """The mean squared error."""
        residual = values - y[:, 0].swapaxes(1, 2)
        weighted = weights[:, None] * residual
        return (weighted * residual).sum((1, 2)), 2 * weighted

    def risk(self, values: Array, y: Array) -> Array:
        """Minus the squared error."""
        return -((values - y[:, 0].swapaxes(1, 2)) ** 2).sum(1)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """Cross-entropy of softmax(values) with indicators of the classes."""

    def __call__(self, values: Array, y: Array, weights: Array) -> tuple[Array, Array]:
        """The mean cross-entropy."""
        indicators = y[:, 0].swapaxes(1, 2)
        w = weights[:, None]
        log_p = log_softmax(values)
        delta = w * (namespace(values).exp(log_p) - indicators)
        return -(w * indicators * log_p).sum((1, 2)), delta

    def risk(self, values: Array, y: Array) -> Array:
        """The log-likelihood."""
        return (log_softmax(values) * y[:, 0].swapaxes(1, 2)).sum(1)


def log_softmax(values: Array) -> Array:
    """The logarithm of the softmax over outputs, (E, C, N)."""
    xp = namespace(values)
    shifted = values - xp.amax(values, 1)[:, None]
    return shifted - xp.log(xp.exp(shifted).sum(1))[:, None]
