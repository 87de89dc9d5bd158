"""Several columns given the others: one variable spread over many columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals.base import N_NODES, levels
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.mixed import MAX_CATEGORIES
from sobolev.conditionals.residual import ResidualConditional

# Groups with at most this many different rows are one variable with so many values.
MAX_PATTERNS = 32


class JointConditional:
    """The joint law of a group of columns given all others.

    A group with few different rows, such as the one-hot columns of a category, is one variable with
    these rows as values. A group of continuous columns has a ridge prediction for each and the
    residuals of whole rows, so that they stay as dependent as they are.

    Parameters
    ----------
    columns : array of int
        The group.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import JointConditional
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.eye(3)[rng.integers(0, 3, 200)], rng.standard_normal(200)])
    >>> nodes, weights = JointConditional([0, 1, 2]).fit(X).grid(X)
    >>> nodes.shape, weights.shape
    ((200, 3, 3), (200, 3))
    """

    def __init__(self, columns: Any) -> None:
        self.columns: Index = np.asarray(columns, dtype=np.intp)

    def fit(self, X: Array) -> JointConditional:
        """Learn from rows of X.

        Returns
        -------
        self
        """
        own = X[:, self.columns]
        self.patterns_, codes = np.unique(own, axis=0, return_inverse=True)
        self.is_category_ = self.patterns_.shape[0] <= MAX_PATTERNS
        self._models: list[Any]
        if self.is_category_:
            joined = self._with(X, codes.reshape(-1).astype(float))
            self._models = [CategoricalConditional().fit(joined)]
            return self
        few = [np.unique(column).size <= MAX_CATEGORIES for column in own.T]
        if any(few):
            position = int(self.columns[few.index(True)])
            raise ValueError(
                f"a group mixes continuous columns with column {position}, which has few values; "
                f"a group is tested jointly if it has at most {MAX_PATTERNS} different rows or "
                "only continuous columns. Split the group."
            )
        self._models = [ResidualConditional().fit(self._with(X, column)) for column in own.T]
        return self

    def grid(self, X: Array) -> tuple[Array, Array]:
        """Nodes (n, B, c) and weights (n, B) of the group for rows that were fitted on."""
        if self.is_category_:
            model, codes = self._models[0], self._codes(X)
            nodes, weights = model.grid(self._with(X, codes), -1)
            return self.patterns_[nodes.astype(np.intp)], weights
        parts = []
        for model, column in zip(self._models, X[:, self.columns].T, strict=True):
            joined = self._with(X, column)
            parts.append(model._parts(joined, joined.shape[1] - 1, model._positions(joined)))
        n_fit = parts[0][2].size
        # Whole rows of residuals, spread evenly over the sorted first component.
        order = np.argsort(parts[0][2], kind="stable")
        rows = order[(levels(min(N_NODES, n_fit)) * n_fit).astype(np.intp)]
        nodes = np.stack([m[:, None] + s[:, None] * r[rows] for m, s, r in parts], axis=2)
        return nodes, np.full(nodes.shape[:2], 1 / rows.size)

    def _with(self, X: Array, last: Array) -> Array:
        """The other columns, and one more."""
        return np.column_stack([np.delete(X, self.columns, axis=1), last])

    def _codes(self, X: Array) -> Array:
        known = {row.tobytes(): k for k, row in enumerate(np.ascontiguousarray(self.patterns_))}
        rows = np.ascontiguousarray(X[:, self.columns])
        return np.array([known.get(row.tobytes(), 0) for row in rows], dtype=float)
