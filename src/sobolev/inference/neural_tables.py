"""Tables of :class:`~sobolev.NeuralSIC`: one column changes the first layer by a rank-one term."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._evaluation import BilinearEvaluator
from sobolev._typing import AnyArray, Array, Index

# Rows times copies evaluated at once: their activations stay in the cache.
CHUNK_ROWS = 2**13
PRECISION = np.float32
# Values of a column between which the statistic is interpolated linearly.
N_NODES = 14
# Responses that stand for the law of y in the risk of a critic of (x, y).
MAX_REFERENCE = 8


class NeuralEvaluator(BilinearEvaluator):
    """Members are averaged, as in ``witness`` and ``risk``."""

    def __init__(self, estimator: Any, X: Array, y: Any, statistic: str) -> None:
        rho = getattr(estimator, "rho_", 1.0)
        super().__init__(estimator.standardizer_, estimator.encoder_, rho, X, y, statistic)
        self.networks = [_single(ensemble.network) for ensemble in estimator._ensembles]
        self.reference = estimator.reference_[:MAX_REFERENCE]
        self.exact = not any(network.pairs for network in self.networks)
        self.n_copies = 1 if self.exact or statistic == "witness" else 1 + len(self.reference)
        self.first = [_first_layer(network, self.z) for network in self.networks]

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Quantiles of the column, where the data are, and both ends."""
        j = self.position[column]
        own = self.z[:, j] * self.standardizer.scale[column] + self.standardizer.center[column]
        inner = np.quantile(own, np.linspace(0, 1, N_NODES))
        return np.unique(np.concatenate([[low, high], inner])), "piecewise"

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`~sobolev.inference.tables.Evaluator`."""
        found, scaled = self.standard(columns, values)
        return self._in_chunks(found, np.broadcast_to(scaled, (self.z.shape[0], *scaled.shape)))

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`~sobolev.inference.tables.Evaluator`."""
        found, scaled = self.standard(columns, nodes.reshape(-1, columns.size))
        return self._in_chunks(found, scaled.reshape(*nodes.shape[:2], found.size))

    def _in_chunks(self, columns: Index, values: Array) -> Array:
        """The statistic at values (n, Q, c) of the columns in standard units."""
        step = max(1, CHUNK_ROWS // (values.shape[1] * self.n_copies))
        starts = range(0, values.shape[0], step)
        slices = [slice(start, start + step) for start in starts]
        return np.concatenate([self._rows(rows, columns, values[rows]) for rows in slices])

    def _rows(self, rows: slice, columns: Index, values: Array) -> Array:
        psi = self.psi[rows]
        if not self.exact:
            return self._paired(rows, columns, values)
        members = [
            h
            for network, first in zip(self.networks, self.first, strict=True)
            for h in self._moved(network, first, rows, columns, values, None)
        ]
        h = np.mean(members, axis=0)  # (k, n Q)
        h = h.reshape(h.shape[0], psi.shape[0], values.shape[1]).transpose(1, 2, 0)
        return self.of_h(h, psi)

    def _paired(self, rows: slice, columns: Index, values: Array) -> Array:
        """Critics of (x, y): the own response and, for the risk, those that stand for its law."""
        psi, Q = self.psi[rows], values.shape[1]
        n = psi.shape[0]
        drawn = self.reference if self.statistic == "risk" else self.reference[:0]
        copies = [psi, *(np.broadcast_to(r, psi.shape) for r in drawn)]
        y = np.stack(copies)  # (C, n, k)
        total: Any = 0.0
        count = 0
        for network, first in zip(self.networks, self.first, strict=True):
            values_of = self._moved(network, first, rows, columns, values, y)
            if not network.pairs:
                of_rows = values_of.reshape(*values_of.shape[:2], n, Q)
                values_of = np.einsum("eknq,cnk->ecnq", of_rows, y)
            total = total + values_of.sum(axis=0).reshape(len(copies), n, Q)
            count += values_of.shape[0]
        f = total / count
        if self.statistic == "witness":
            found: Array = f[0]
            return found
        return np.asarray(f[0] - (f[1:] + 0.5 * self.rho * f[1:] ** 2).mean(axis=0))

    def _moved(
        self,
        network: Any,
        first: AnyArray,
        rows: slice,
        columns: Index,
        values: Array,
        y: Array | None,
    ) -> AnyArray:
        """Values (E, C, n Q) with the columns replaced by values (n, Q, c)."""
        weights = network.first_weights[:, columns]  # (E, c, H)
        shift = (values - self.z[rows][:, None, columns]).astype(PRECISION)
        E, H = weights.shape[0], weights.shape[2]
        change = shift @ weights[:, None]  # (E, n, Q, H)
        pre = (first[:, rows, None] + change).reshape(E, 1, -1, H)
        own = None
        if network.pairs and y is not None:
            own = np.broadcast_to(y.astype(PRECISION), (E, *y.shape))
        return np.asarray(network.values_from(pre, own))


def _first_layer(network: Any, z: Array) -> AnyArray:
    """x times the first layer, (E, n, H)."""
    return np.asarray(np.matmul(z.astype(PRECISION), network.first_weights))


def _single(network: Any) -> Any:
    """The same network in single precision: half the time, and errors far below the statistic's."""
    return network.replace([np.asarray(p, dtype=PRECISION) for p in network.parameters])
