r"""The null distribution of a mean of independent discrete variables.

Under the null hypothesis the statistic of each row is a draw from a known discrete distribution:
the values :math:`r_{ib}` of a table with weights :math:`w_{ib}`. The probability that their mean
reaches the observed one comes from :mod:`sobolev.inference.saddlepoint`, without Monte Carlo error
and without a floor at 1/(R + 1), or from R Monte Carlo draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sobolev._random import RandomState, check_generator
from sobolev._typing import Array
from sobolev.inference.permutation import permutation_pvalue
from sobolev.inference.saddlepoint import saddlepoint_pvalue

# Number of random numbers held in memory at once.
CHUNK = 2**22


@dataclass(frozen=True)
class NullTable:
    """Values of a statistic under the null hypothesis, for each row and node, with weights.

    Attributes
    ----------
    values : array of shape (n, B)
        Statistic of each row at each node of its conditional distribution.
    weights : array of shape (n, B)
        Probabilities of the nodes; rows sum to one.
    observed : array of shape (n,)
        Statistic of each row at the observed value.
    """

    values: Array
    weights: Array
    observed: Array

    def weighted(self, weights: Array) -> NullTable:
        """The table with the statistic of each row multiplied by its weight."""
        each = (weights / weights.mean())[:, None]
        return NullTable(self.values * each, self.weights, self.observed * each[:, 0])

    @property
    def statistic(self) -> float:
        """Observed statistic: the mean over rows."""
        return float(self.observed.mean())

    @cached_property
    def centres(self) -> Array:
        """Conditional mean of the statistic of each row, (n,)."""
        return np.asarray(np.einsum("ib,ib->i", self.weights, self.values), dtype=float)

    @property
    def mean(self) -> float:
        """Mean of the statistic under the null hypothesis."""
        return float(self.centres.mean())

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the statistic under the null hypothesis."""
        centred = self.values - self.centres[:, None]
        variance = np.einsum("ib,ib,ib->", self.weights, centred, centred)
        return float(np.sqrt(variance) / self.observed.size)

    @cached_property
    def is_flat(self) -> bool:
        """Whether the statistic of every row is constant over its nodes, in single precision."""
        size = float(np.abs(self.values).max(initial=0.0))
        return bool(np.ptp(self.values, axis=1).max(initial=0.0) <= 1e-6 * size)

    def saddlepoint(self) -> float:
        """P-value by the saddlepoint approximation."""
        if self.is_flat:
            return 1.0
        return saddlepoint_pvalue(self.values, self.weights, float(self.observed.sum()))

    def montecarlo(self, n_rounds: int, random_state: RandomState = None) -> float:
        """P-value by Monte Carlo draws, with the observed statistic counted as one."""
        if self.is_flat:
            return 1.0
        drawn = self.draw(n_rounds, random_state)
        slack = 1e-12 * max(1.0, float(np.abs(self.observed).sum()))
        return permutation_pvalue(float(self.observed.sum()), drawn, slack)

    def draw(self, n_rounds: int, random_state: RandomState = None) -> Array:
        """Draws of the sum over rows under the null hypothesis, (n_rounds,)."""
        rng = check_generator(random_state)
        n, B = self.values.shape
        cumulated = np.cumsum(self.weights, axis=1)
        cumulated /= cumulated[:, -1:]
        # One sorted array for all rows: row i takes the interval (i, i + 1].
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
