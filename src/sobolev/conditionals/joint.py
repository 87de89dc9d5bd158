"""Joint conditional distribution of several columns given the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES, N_NODES, levels
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.residual import ResidualConditional

# A group with at most this many distinct rows is one categorical variable.
MAX_PATTERNS = 32


class JointConditional:
    """The joint conditional distribution of a group of columns given all others.

    A group with few distinct rows, such as the one-hot columns of a category, is modelled as one
    categorical variable whose values are these rows. In a group of continuous columns, each column
    is predicted by ridge regression, and residuals are drawn as whole rows, which keeps the
    dependence between the columns.

    Parameters
    ----------
    columns : array of int
        Positions of the columns of the group.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import JointConditional
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.eye(3)[rng.integers(0, 3, 200)], rng.standard_normal(200)])
    >>> nodes, weights = JointConditional([0, 1, 2]).fit(X).grid(X, np.arange(200))
    >>> nodes.shape, weights.shape
    ((200, 3, 3), (200, 3))
    """

    def __init__(self, columns: Any) -> None:
        self.columns: Index = np.asarray(columns, dtype=np.intp)

    def fit(self, X: Array) -> JointConditional:
        """Fit the models of the group.

        Returns
        -------
        self
            The fitted model.
        """
        own = X[:, self.columns]
        self.patterns_, codes = np.unique(own, axis=0, return_inverse=True)
        self._codes: Array = codes.reshape(-1).astype(float)
        self.is_category_ = self.patterns_.shape[0] <= MAX_PATTERNS
        self._models: list[Any]
        if self.is_category_:
            joined = self._with(X, self._codes)
            self._models = [CategoricalConditional().fit_validated(joined)]
            return self
        few = [np.unique(column).size <= MAX_CATEGORIES for column in own.T]
        if any(few):
            position = int(self.columns[few.index(True)])
            raise ValueError(
                f"a group mixes continuous columns with column {position}, which has few values; "
                f"a group must have at most {MAX_PATTERNS} distinct rows or only continuous "
                "columns. Split the group."
            )
        self._models = [
            ResidualConditional().fit_validated(self._with(X, column)) for column in own.T
        ]
        return self

    def grid(self, X: Array, rows: Index) -> tuple[Array, Array]:
        """Nodes (n, B, c) and weights (n, B) of the group for the fitted rows at ``rows``."""
        last = X.shape[1] - self.columns.size
        if self.is_category_:
            joined = self._with(X, self._codes[rows])
            nodes, weights = self._models[0].distribution(joined, last, rows)
            return self.patterns_[nodes.astype(np.intp)], weights
        parts = [
            model.parts(self._with(X, column), last, rows)
            for model, column in zip(self._models, X[:, self.columns].T, strict=True)
        ]
        n_fit = parts[0][2].size
        # Whole rows of residuals, at equally spaced ranks of the first column.
        order = np.argsort(parts[0][2], kind="stable")
        rows = order[(levels(min(N_NODES, n_fit)) * n_fit).astype(np.intp)]
        nodes = np.stack([m[:, None] + s[:, None] * r[rows] for m, s, r in parts], axis=2)
        return nodes, np.full(nodes.shape[:2], 1 / rows.size)

    def _with(self, X: Array, last: Array) -> Array:
        """The other columns, followed by ``last``."""
        return np.column_stack([np.delete(X, self.columns, axis=1), last])
