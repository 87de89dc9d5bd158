"""Joint conditional distribution of several columns given the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._parameters import check_option
from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES, N_NODES, levels, one_of_each
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.diagnostics import judge
from sobolev.conditionals.forest import ForestConditional, Leaves, split_target, weighted_quantiles
from sobolev.conditionals.residual import ResidualConditional

# A group with at most this many distinct rows is one categorical variable.
MAX_PATTERNS = 32
KINDS = ("auto", "linear", "forest")


class JointConditional:
    """The joint conditional distribution of a group of columns given all others.

    A group with few distinct rows, such as the one-hot columns of a category, is modelled as one
    categorical variable whose values are these rows. Otherwise each column is predicted by ridge
    regression, and residuals are drawn as whole rows, which keeps the dependence between the
    columns; or whole rows of the group are drawn with the weights of a forest, which also keeps
    functions, such as a column and its square.

    Parameters
    ----------
    columns : array of int
        Positions of the columns of the group.
    kind : {"auto", "linear", "forest"}, default="auto"
        Ridge regression, a forest, or ridge regression if all columns are continuous, none
        determines another, and the linear model fits each of them.

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

    def __init__(self, columns: Any, kind: str = "auto") -> None:
        check_option("kind", kind, KINDS)
        self.columns: Index = np.asarray(columns, dtype=np.intp)
        self.kind = kind

    def fit(self, X: Array, groups: Index | None = None) -> JointConditional:
        """Fit the models of the group.

        Parameters
        ----------
        X : array of shape (n, d)
        groups : array of int, shape (n,), optional
            Number of the group of each row, as in :meth:`Conditional.fit_validated`.

        Returns
        -------
        self
            The fitted model.
        """
        own, self._groups = X[:, self.columns], groups
        self.patterns_, codes = np.unique(own, axis=0, return_inverse=True)
        self._codes: Array = codes.reshape(-1).astype(float)
        self.is_category_ = self.patterns_.shape[0] <= MAX_PATTERNS
        self._models: list[Any] = []
        if self.is_category_:
            joined = self._with(X, self._codes)
            self._models = [CategoricalConditional().fit_validated(joined, groups)]
        elif self.kind != "forest" and not self._has_few_values(own):
            self._models = [
                ResidualConditional().fit_validated(self._with(X, column), groups)
                for column in own.T
            ]
            if self.kind == "auto" and not self._is_linear(X, own):
                self._models = []
        self.is_forest_ = not self._models
        if self.is_forest_:
            self._grow(X, own)
        return self

    @staticmethod
    def _has_few_values(own: Array) -> bool:
        return any(np.unique(column).size <= MAX_CATEGORIES for column in own.T)

    def _is_linear(self, X: Array, own: Array) -> bool:
        """Whether no column of the group is nearly a copy and the linear model fits all of them."""
        scores = rank_scores(own)
        correlations = np.abs(np.corrcoef(scores, rowvar=False))[np.triu_indices(own.shape[1], 1)]
        if correlations.max(initial=0.0) > 0.99:
            return False
        last = X.shape[1] - self.columns.size
        names = [str(j) for j in range(last + 1)]
        rows = np.arange(X.shape[0]) if self._groups is None else one_of_each(self._groups)
        return not any(
            judge(
                model, self._with(X, column)[rows], names, np.array([last]), fitted=rows
            ).misfit.any()
            for model, column in zip(self._models, own.T, strict=True)
        )

    def _grow(self, X: Array, own: Array) -> None:
        """A forest that predicts all columns of the group, and the nodes of every fitted row."""
        targets = [split_target(column).reshape(X.shape[0], -1) for column in own.T]
        rest = np.delete(X, self.columns, axis=1)
        forest = ForestConditional().forest(rest.shape[1], 0)
        leaves = Leaves.grow(forest, rest, np.hstack(targets), self._groups)
        # Rows in the order of the first principal component, of which the nodes are quantiles.
        scores = rank_scores(own)
        scores = scores - scores.mean(axis=0)
        index = scores @ np.linalg.svd(scores, full_matrices=False)[2][0]
        order = np.argsort(index, kind="stable").astype(float)
        place = np.empty(order.size)
        place[order.astype(np.intp)] = np.arange(order.size)
        share = leaves.weights(rest, np.arange(X.shape[0]))
        chosen = weighted_quantiles(place, share, levels(min(N_NODES, order.size)))
        self._nodes = own[order.astype(np.intp)[chosen.astype(np.intp)]]

    def grid(self, X: Array, rows: Index) -> tuple[Array, Array]:
        """Nodes (n, B, c) and weights (n, B) of the group for the fitted rows at ``rows``."""
        last = X.shape[1] - self.columns.size
        if self.is_category_:
            joined = self._with(X, self._codes[rows])
            nodes, weights = self._models[0].distribution(joined, last, rows)
            return self.patterns_[nodes.astype(np.intp)], weights
        if self.is_forest_:
            nodes = self._nodes[rows]
            return nodes, np.full(nodes.shape[:2], 1 / nodes.shape[1])
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
