r"""The null distribution of a mean of independent look-ups, and its tail.

Under the null hypothesis each row's statistic is a draw from a known discrete law: the values
:math:`r_{ib}` of a table with weights :math:`w_{ib}`. Their sum has the cumulant generating
function :math:`K(t) = \sum_i \log \sum_b w_{ib} e^{t r_{ib}}`, and the chance that it reaches the
observed sum comes from K by the saddlepoint formula of Barndorff-Nielsen: with :math:`K'(t) = s`,
:math:`z = \operatorname{sign}(t)\sqrt{2 (t s - K(t))}` and :math:`u = t \sqrt{K''(t)}`,

.. math::

    P(S \ge s) \approx 1 - \Phi\Big(z + \frac{1}{z} \log \frac{u}{z}\Big) .

No Monte Carlo error, and no floor at 1/(R + 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from sobolev._random import RandomState, check_generator
from sobolev._typing import Array

# Below this distance from the mean, in standard deviations, the formula is interpolated.
NEAR_MEAN = 0.05
MAX_STEPS = 200
TOLERANCE = 1e-9
# The smallest p-value: what a double can hold with room for products.
SMALLEST_LOG = -700.0
# Random look-ups held at once.
CHUNK = 2**22


@dataclass(frozen=True)
class NullTable:
    """Values of a statistic under the null, for each row and node, with their weights.

    Attributes
    ----------
    values : array of shape (n, B)
        The statistic of each row at each node of its conditional law.
    weights : array of shape (n, B)
        The probabilities of the nodes; rows sum to one.
    observed : array of shape (n,)
        The statistic of each row at the observed value.
    """

    values: Array
    weights: Array
    observed: Array

    @property
    def statistic(self) -> float:
        """The mean over rows of the observed statistic."""
        return float(self.observed.mean())

    @property
    def mean(self) -> float:
        """The mean of the statistic under the null."""
        return float(np.sum(self.weights * self.values) / self.observed.size)

    @property
    def deviation(self) -> float:
        """The standard deviation of the statistic under the null."""
        centre = np.sum(self.weights * self.values, axis=1, keepdims=True)
        variance = np.sum(self.weights * (self.values - centre) ** 2)
        return float(np.sqrt(variance) / self.observed.size)

    def saddlepoint(self) -> float:
        """The p-value without Monte Carlo."""
        return saddlepoint_pvalue(self.values, self.weights, float(self.observed.sum()))

    def montecarlo(self, n_rounds: int, random_state: RandomState = None) -> float:
        """The p-value of random look-ups, with the observed one counted in."""
        drawn = self.draw(n_rounds, random_state)
        slack = 1e-12 * max(1.0, float(np.abs(self.observed).sum()))
        reached = np.count_nonzero(drawn >= self.observed.sum() - slack)
        return float((1 + reached) / (1 + n_rounds))

    def draw(self, n_rounds: int, random_state: RandomState = None) -> Array:
        """Sums over rows of random look-ups, (n_rounds,)."""
        rng = check_generator(random_state)
        n, B = self.values.shape
        cumulated = np.cumsum(self.weights, axis=1)
        cumulated /= cumulated[:, -1:]
        # One sorted axis for all rows: row i lives in (i, i + 1].
        ladder = (cumulated + np.arange(n)[:, None]).ravel()
        flat = self.values.ravel()
        sums = np.empty(n_rounds)
        step = max(1, CHUNK // n)
        for start in range(0, n_rounds, step):
            rounds = min(step, n_rounds - start)
            level = rng.random((rounds, n)) + np.arange(n)
            position = np.searchsorted(ladder, level.ravel(), side="right")
            position = np.minimum(position, n * B - 1)
            sums[start : start + rounds] = flat[position].reshape(rounds, n).sum(axis=1)
        return sums


def saddlepoint_pvalue(values: Array, weights: Array, observed: float) -> float:
    """The chance that the sum of one draw from each row reaches ``observed``.

    Parameters
    ----------
    values, weights : array of shape (n, B)
        Rows of values with probabilities.
    observed : float
        The observed sum.

    Returns
    -------
    float
        In (0, 1], never zero; decreasing in ``observed``.
    """
    centre = np.sum(weights * values, axis=1, keepdims=True)
    centred = values - centre
    spread = np.sqrt(np.sum(weights * centred**2))
    size = np.abs(values).max(initial=0.0)
    if spread <= 1e-12 * size * np.sqrt(values.shape[0]) or spread == 0.0:
        total = float(centre.sum())
        return 1.0 if observed <= total + 1e-9 * max(size, 1e-300) else _smallest()
    law = _Law(centred / spread, weights)
    return law.upper_tail((observed - float(centre.sum())) / float(spread))


def _smallest() -> float:
    return float(np.exp(SMALLEST_LOG))


class _Law:
    """A sum of independent discrete variables, of mean zero and variance one."""

    def __init__(self, values: Array, weights: Array) -> None:
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        varying = np.ptp(np.where(weights > 0, values, values[:, :1]), axis=1) > 0
        self.values, self.log_weights = values[varying], log_weights[varying]
        self.weights = weights[varying]
        possible = np.where(self.weights > 0, self.values, -np.inf)
        top = possible.max(axis=1)
        self.largest = float(top.sum())
        at_top = np.where(possible >= top[:, None] - 1e-12, self.weights, 0.0).sum(axis=1)
        self.log_at_largest = float(np.log(at_top).sum())
        self.smallest = float(np.where(self.weights > 0, self.values, np.inf).min(axis=1).sum())

    def upper_tail(self, x: float) -> float:
        """P(S >= x)."""
        if x <= self.smallest:
            return 1.0
        floor = max(self.log_at_largest, SMALLEST_LOG)
        if x >= self.largest - 1e-9 * max(1.0, abs(self.largest)):
            return float(np.exp(floor))
        if abs(x) < NEAR_MEAN and -self.smallest > NEAR_MEAN < self.largest:
            low, high = self._score(-NEAR_MEAN), self._score(NEAR_MEAN)
            share = (x + NEAR_MEAN) / (2 * NEAR_MEAN)
            score = low + share * (high - low)
        else:
            score = self._score(x)
        return float(np.exp(min(0.0, max(float(log_ndtr(-score)), floor))))

    def _score(self, x: float) -> float:
        """The normal score z + log(u / z) / z at x."""
        t = self._solve(x)
        K, _, curvature = self._cumulants(t)
        z = np.sign(t) * np.sqrt(max(2 * (t * x - K), 1e-300))
        u = t * np.sqrt(max(curvature, 1e-300))
        return float(z + np.log(max(u / z, 1e-300)) / z)

    def _cumulants(self, t: float) -> tuple[float, float, float]:
        exponent = self.log_weights + t * self.values
        top = exponent.max(axis=1, keepdims=True)
        e = np.exp(exponent - top)
        total = e.sum(axis=1)
        mean = np.einsum("ib,ib->i", e, self.values) / total
        square = np.einsum("ib,ib,ib->i", e, self.values, self.values) / total
        K = float(np.sum(top[:, 0] + np.log(total)))
        return K, float(mean.sum()), float(np.sum(np.maximum(square - mean**2, 0.0)))

    def _solve(self, x: float) -> float:
        """The t with K'(t) = x, by Newton steps kept inside a bracket."""
        low, high = (0.0, np.inf) if x > 0 else (-np.inf, 0.0)
        t = x
        for _ in range(MAX_STEPS):
            _, slope, curvature = self._cumulants(t)
            gap = slope - x
            if abs(gap) <= TOLERANCE * max(1.0, abs(x)):
                break
            low, high = (t, high) if gap < 0 else (low, t)
            step = t - gap / curvature if curvature > 0 else np.nan
            if not low < step < high:
                step = 0.5 * (low + high) if np.isfinite(low + high) else 2 * t
            elif abs(step) > 3 * abs(t):  # the tail is curved: no long jumps
                step = 3 * t
            if step == t:
                break
            t = step
        return t
