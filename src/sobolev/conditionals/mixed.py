"""A conditional for each column by its type, and the choice of a conditional by name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.gaussian import GaussianConditional
from sobolev.conditionals.neural import NeuralConditional
from sobolev.conditionals.residual import ResidualConditional

# Columns of at most this many values are categories.
MAX_CATEGORIES = 10


class MixedConditional(Conditional):
    """Categories for columns of few values, mean and residuals for the others.

    Parameters
    ----------
    continuous : Conditional or None, default=None
        For columns of more than ``max_categories`` values; None is
        :class:`~sobolev.conditionals.ResidualConditional`.
    categorical : Conditional or None, default=None
        For the others; None is :class:`~sobolev.conditionals.CategoricalConditional`.
    max_categories : int, default=10
        The most values of a category.

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

    def __init__(
        self, continuous: Any = None, categorical: Any = None, max_categories: int = MAX_CATEGORIES
    ) -> None:
        self.continuous = continuous
        self.categorical = categorical
        self.max_categories = max_categories

    def _fit(self, X: Array) -> None:
        counts = np.array([np.unique(column).size for column in X.T])
        self.is_category_ = counts <= self.max_categories
        category = self.is_category_
        self.continuous_ = self._fitted(self.continuous, ResidualConditional(), X, ~category)
        self.categorical_ = self._fitted(self.categorical, CategoricalConditional(), X, category)

    @staticmethod
    def _fitted(given: Any, default: Any, X: Array, needed: Mask) -> Any:
        if not needed.any():
            return None
        return (default if given is None else clone(given)).fit(X)

    def _grid(self, X: Array, j: int, known: Index) -> tuple[Array, Array]:
        model = self.categorical_ if self.is_category_[j] else self.continuous_
        if isinstance(model, Conditional):  # fitted to the same rows: their places are known
            return model._grid(X, j, known)
        nodes, weights = model.grid(X, j)
        return nodes, weights


CONDITIONALS = {
    "auto": MixedConditional,
    "mixed": MixedConditional,
    "gaussian": GaussianConditional,
    "residual": ResidualConditional,
    "categorical": CategoricalConditional,
    "neural": NeuralConditional,
}


def resolve_conditional(conditional: Any) -> Any:
    """A fresh conditional from a name or an object with ``fit`` and ``grid``."""
    if isinstance(conditional, str):
        if conditional not in CONDITIONALS:
            options = ", ".join(f'"{name}"' for name in CONDITIONALS)
            raise ValueError(f"conditional={conditional!r} is unknown; use {options} or an object.")
        return CONDITIONALS[conditional]()
    if hasattr(conditional, "fit") and hasattr(conditional, "grid"):
        return clone(conditional) if hasattr(conditional, "get_params") else conditional
    raise TypeError(
        f"conditional must be a name or an object with fit(X) and grid(X, j); got {conditional!r}."
    )
