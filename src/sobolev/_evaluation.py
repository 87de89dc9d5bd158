"""What the evaluators of critics f(x, y) = h(x)' psi(y) share: standard units and the statistic."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index
from sobolev.criterion import risk
from sobolev.targets import TargetEncoder


class BilinearEvaluator:
    """Base of evaluators of f(x, y) = h(x)' psi(y); see :class:`~sobolev.critic.Evaluator`.

    Parameters
    ----------
    standardizer, encoder, rho
        Units of the columns, encoding of y and weight of the squared critic, from the fit.
    X : array of shape (n, d)
        Rows whose columns are replaced.
    y : array-like of shape (n,) or (n, q)
        Responses of the rows.
    statistic : {"risk", "witness"}
        The statistic of a row.
    """

    def __init__(
        self,
        standardizer: Standardizer,
        encoder: TargetEncoder,
        rho: float,
        X: Array,
        y: Any,
        statistic: str,
    ) -> None:
        self.standardizer = standardizer
        self.z = standardizer.transform(X)
        self.psi = encoder.transform(y)
        self.rho = float(rho)
        self.statistic = statistic
        self.position = np.cumsum(standardizer.varying) - 1

    def standard(self, columns: Index, values: Array) -> tuple[Index, Array]:
        """Positions among the varying columns, and values in standard units.

        Constant columns are left out.
        """
        kept = self.standardizer.varying[columns]
        columns, values = columns[kept], values[:, kept]
        scaled = (values - self.standardizer.center[columns]) / self.standardizer.scale[columns]
        return self.position[columns], scaled

    def of_h(self, h: Array, psi: Array) -> Array:
        """The statistic (n, Q) of h (n, Q, k) for encoded responses (n, k)."""
        f = np.einsum("nqk,nk->nq", h, psi)
        if self.statistic == "witness":
            return f
        found: Array = risk(f, np.einsum("nqk,nqk->nq", h, h), self.rho)
        return found


def chebyshev_nodes(low: float, high: float, n: int) -> Array:
    """Chebyshev nodes of the second kind, including both ends."""
    return 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * np.arange(n) / (n - 1))
