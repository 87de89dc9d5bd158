"""A conditional model for each type of column, and the choice of a model by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional, OwnConditional
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.gaussian import GaussianConditional
from sobolev.conditionals.neural import NeuralConditional
from sobolev.conditionals.residual import ResidualConditional

# Largest number of distinct values of a categorical column.
MAX_CATEGORIES = 10


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

    @staticmethod
    def _fitted(given: Any, default: Any, X: Array, needed: Mask) -> Any:
        if not needed.any():
            return None
        return resolve_conditional(default if given is None else given).fit_validated(X)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The distribution of column j from the model of its type."""
        model = self.categorical_ if self.is_category_[j] else self.continuous_
        nodes, weights = model.distribution(X, j, rows)
        return nodes, weights


CONDITIONALS: dict[str, type[Conditional]] = {
    "auto": MixedConditional,
    "mixed": MixedConditional,
    "gaussian": GaussianConditional,
    "residual": ResidualConditional,
    "categorical": CategoricalConditional,
    "neural": NeuralConditional,
}


def resolve_conditional(conditional: Any) -> Conditional:
    """Return an unfitted model for a name or an object with ``fit(X)`` and ``grid(X, j)``."""
    if isinstance(conditional, str):
        if conditional not in CONDITIONALS:
            options = ", ".join(f'"{name}"' for name in CONDITIONALS)
            raise ValueError(f"conditional={conditional!r} is unknown; use {options} or an object.")
        return CONDITIONALS[conditional]()
    if isinstance(conditional, Conditional):
        return clone(conditional)
    if hasattr(conditional, "fit") and hasattr(conditional, "grid"):
        fresh = clone(conditional) if hasattr(conditional, "get_params") else conditional
        return OwnConditional(fresh)
    raise TypeError(
        f"conditional must be a name or an object with fit(X) and grid(X, j); got {conditional!r}."
    )
