"""The statistic of a convex critic on fixed rows, as a function of some of the columns.

The rows with replaced columns are never formed: a feature map knows how its functions change when
columns are replaced (a kernel by a factor, a Fourier feature by a phase).
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np

from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import with_columns
from sobolev.criterion import risk

# Largest number of nodes of the interpolation.
MAX_NODES = 256


class ConvexEvaluator:
    """Statistic of a convex critic; see :class:`~sobolev.critic.Evaluator`."""

    slow: ClassVar[bool] = False

    def __init__(self, estimator: Any, X: Array, y: Any, statistic: str) -> None:
        self.standardizer, critic = estimator.standardizer_, estimator.critic_
        self.rho, self.statistic = float(estimator.rho), statistic
        self.z, self.psi = self.standardizer.transform(X), estimator.encoder_.transform(y)
        self.encoder = estimator.encoder_
        self.position = np.cumsum(self.standardizer.varying) - 1
        self.critic, self.bound = critic, critic.bound
        m = self.bound.n_functions
        self.U, self.linear = critic.U[:m], critic.U[m:]
        self.offset = critic.center @ critic.U
        self.fixed = self.bound.fixed(self.z)

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Chebyshev nodes, as many as the functions of the map need."""
        units = self.standardizer
        if not units.varying[column]:
            return np.array([low, high]), "piecewise"
        low, high = units.values(column, np.array([low, high])).tolist()
        n = self.bound.n_nodes(int(self.position[column]), high - low)
        nodes = np.polynomial.chebyshev.chebpts2(min(n, MAX_NODES))
        return units.original(column, 0.5 * (low + high) + 0.5 * (high - low) * nodes), "chebyshev"

    def coordinate(self, column: int, values: Array) -> Array:
        """Values in standard units, in which the functions of the map are smooth."""
        return self.standardizer.values(column, values)

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`~sobolev.critic.Evaluator`."""
        columns, values = self._standard(columns, values)
        h = self.bound.replaced(self.z, self.fixed, columns, values, self.U)
        return self._of_h(h + self._linear_part(columns, values))

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`~sobolev.critic.Evaluator`."""
        found, scaled = self._standard(columns, nodes.reshape(-1, columns.size))
        per_node = scaled.reshape(*nodes.shape[:2], found.size).transpose(1, 0, 2)
        h = [self.critic(with_columns(self.z, found, values)) for values in per_node]
        return self._of_h(np.stack(h, axis=1))

    def residual(self, predicted: Array) -> ConvexEvaluator:
        """See :class:`~sobolev.critic.Evaluator`."""
        found = copy(self)
        found.psi, found.statistic = self.psi - predicted, "witness"
        return found

    def predicting(self) -> ConvexEvaluator | None:
        """See :class:`~sobolev.critic.Evaluator`."""
        if self.encoder.classes_ is not None or self.psi.shape[1] > 1:
            return None
        found, ends = copy(self), self.encoder.transform(np.array([0.0, 1.0]))
        found.psi = np.full_like(self.psi, self.rho / float(ends[1, 0] - ends[0, 0]))
        found.statistic = "witness"
        return found

    def _linear_part(self, columns: Index, values: Array) -> Array:
        """The linear block with the columns replaced, minus the mean of the map, (n, Q, k)."""
        if not self.linear.size:
            return -self.offset[None, None]
        rest = self.z @ self.linear - self.z[:, columns] @ self.linear[columns]
        return rest[:, None] + (values @ self.linear[columns])[None] - self.offset

    def _standard(self, columns: Index, values: Array) -> tuple[Index, Array]:
        """Positions among the varying columns, and values in standard units.

        Constant columns are left out.
        """
        kept = self.standardizer.varying[columns]
        columns, values = columns[kept], values[:, kept]
        scaled = [
            self.standardizer.values(int(j), v) for j, v in zip(columns, values.T, strict=True)
        ]
        return self.position[columns], np.reshape(scaled, values.shape[::-1]).T

    def _of_h(self, h: Array) -> Array:
        """The statistic (n, Q) of h (n, Q, k), for f(x, y) = h(x)' psi(y)."""
        f = np.einsum("nqk,nk->nq", h, self.psi)
        if self.statistic == "witness":
            return f
        found: Array = risk(f, np.einsum("nqk,nqk->nq", h, h), self.rho)
        return found
