"""The statistic of :class:`~sobolev.NeuralSIC` as a function of some columns.

A replaced column changes the product with the first layer by a term of rank one; the rest of the
network is evaluated from there.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import gen_batches

from sobolev import criterion
from sobolev._typing import AnyArray, Array, Index
from sobolev.critic import quantile_nodes
from sobolev.neural.objectives import PairedSIC

# Rows times copies evaluated at once: their activations stay in the cache.
CHUNK_ROWS = 2**13
# Single precision takes half the time, with errors far below those of the statistic.
PRECISION = np.float32
# Number of values of a column between which the statistic is interpolated linearly.
N_NODES = 14
# Number of responses that represent the distribution of y in the risk of a critic of (x, y).
MAX_REFERENCE = 8


class NeuralEvaluator:
    """Implements :class:`~sobolev.critic.Evaluator`; members are averaged, as in ``witness``."""

    slow: ClassVar[bool] = False

    def __init__(self, estimator: Any, X: Array, y: Any, statistic: str) -> None:
        self.standardizer = estimator.standardizer_
        self.position = np.cumsum(self.standardizer.varying) - 1
        self.X, self.z = X, self.standardizer.transform(X)
        self.psi = estimator.encoder_.transform(y)
        self.encoder = estimator.encoder_
        self.rho, self.statistic = estimator.rho_, statistic
        self.networks = [e.network.cast(PRECISION) for e in estimator._ensembles]
        self.exact = not any(network.pairs for network in self.networks)
        drawn = MAX_REFERENCE if statistic == "risk" and not self.exact else 0
        self.reference = estimator.reference_[:drawn]
        z = self.z.astype(PRECISION)
        self.first = [network.first_product(z) for network in self.networks]

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Quantiles of the column, where the data are, and both ends."""
        return quantile_nodes(self.X[:, column], low, high, N_NODES)

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`~sobolev.critic.Evaluator`."""
        return self.each(columns, np.broadcast_to(values, (self.z.shape[0], *values.shape)))

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`~sobolev.critic.Evaluator`."""
        kept = self.standardizer.varying[columns]  # constant columns do not matter
        columns = columns[kept]
        center, scale = self.standardizer.center[columns], self.standardizer.scale[columns]
        values, found = (nodes[:, :, kept] - center) / scale, self.position[columns]
        step = max(1, CHUNK_ROWS // (values.shape[1] * (1 + len(self.reference))))
        rule = self._exact if self.exact else self._paired
        chunks = gen_batches(values.shape[0], step)
        return np.concatenate([rule(rows, found, values[rows]) for rows in chunks])

    def residual(self, predicted: Array) -> NeuralEvaluator:
        """See :class:`~sobolev.critic.Evaluator`."""
        found = copy(self)
        found.psi, found.statistic = self.psi - predicted, "witness"
        return found

    def predicting(self) -> NeuralEvaluator | None:
        """See :class:`~sobolev.critic.Evaluator`."""
        if self.encoder.classes_ is not None or self.psi.shape[1] > 1 or not self.exact:
            return None
        found, ends = copy(self), self.encoder.transform(np.array([0.0, 1.0]))
        found.psi = np.full_like(self.psi, self.rho / float(ends[1, 0] - ends[0, 0]))
        found.statistic = "witness"
        return found

    def _exact(self, rows: slice, columns: Index, values: Array) -> Array:
        """Critics h(x)' psi(y): expectations over the response are exact."""
        members = [h for part in self._moved(rows, columns, values, None) for h in part]
        h = np.mean(members, axis=0)  # (k, n Q)
        h = h.reshape(h.shape[0], -1, values.shape[1]).transpose(1, 2, 0)
        f = np.einsum("nqk,nk->nq", h, self.psi[rows])
        if self.statistic == "witness":
            return f
        return np.asarray(criterion.risk(f, np.einsum("nqk,nqk->nq", h, h), self.rho))

    def _paired(self, rows: slice, columns: Index, values: Array) -> Array:
        """Critics of (x, y): the own response and, for the risk, the reference responses."""
        psi, Q = self.psi[rows], values.shape[1]
        y = np.stack([psi, *(np.broadcast_to(r, psi.shape) for r in self.reference)])  # (C, n, k)
        total: Any = 0.0
        for network, of_rows in zip(
            self.networks, self._moved(rows, columns, values, y), strict=True
        ):
            found = of_rows.reshape(*of_rows.shape[:2], -1, Q)
            if not network.pairs:
                found = np.einsum("eknq,cnk->ecnq", found, y)
            total = total + found.sum(axis=0)
        f = total / sum(network.n_members for network in self.networks)
        if self.statistic == "witness":
            witness: Array = f[0]
            return witness
        return np.asarray(PairedSIC(self.rho).risk(f[None], psi)[0])

    def _moved(self, rows: slice, columns: Index, values: Array, y: Array | None) -> list[AnyArray]:
        """Values (E, C, n Q) of each network with the columns replaced by values (n, Q, c)."""
        shift = (values - self.z[rows][:, None, columns]).astype(PRECISION)
        own = None if y is None else y.astype(PRECISION)
        return [
            network.shifted(first[:, rows], columns, shift, own)
            for network, first in zip(self.networks, self.first, strict=True)
        ]
