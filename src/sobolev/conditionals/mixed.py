"""A conditional model for each type of column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import MAX_CATEGORIES, Conditional, as_conditional
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.residual import ResidualConditional


@dataclass(eq=False, repr=False)
class MixedConditional(Conditional):
    """A categorical model for columns with few values and a continuous model for the others.

    Parameters
    ----------
    continuous : Conditional or None, default=None
        Model of columns with more than ``max_categories`` values; None is
        :class:`~sobolev.conditionals.ResidualConditional`.
    categorical : Conditional or None, default=None
        Model of the other columns; None is
        :class:`~sobolev.conditionals.CategoricalConditional`.
    max_categories : int, default=10
        Largest number of distinct values of a categorical column.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import MixedConditional
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.standard_normal(200), rng.integers(0, 2, 200)])
    >>> mixed = MixedConditional().fit(X)
    >>> mixed.grid(X, 0)[0].shape, mixed.grid(X, 1)[0].shape
    ((200, 100), (200, 2))
    """

    continuous: Any = None
    categorical: Any = None
    max_categories: int = MAX_CATEGORIES

    def learn(self, X: Array) -> None:
        """Fit the categorical and the continuous model."""
        counts = np.array([np.unique(column).size for column in X.T])
        self.is_category_ = counts <= self.max_categories
        category = self.is_category_
        self.continuous_ = self._fitted(self.continuous, ResidualConditional(), X, ~category)
        self.categorical_ = self._fitted(self.categorical, CategoricalConditional(), X, category)

    def _fitted(self, given: Any, default: Any, X: Array, needed: Mask) -> Any:
        if not needed.any():
            return None
        return as_conditional(default if given is None else given).fit_validated(X, self.groups_)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The distribution of column j from the model of its type."""
        model = self.categorical_ if self.is_category_[j] else self.continuous_
        nodes, weights = model.distribution(X, j, rows)
        return nodes, weights
