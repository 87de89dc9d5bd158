"""Choice of a conditional model by name, by object, or by how well it fits each column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals._checks import Others
from sobolev.conditionals.base import Conditional, as_conditional, one_of_each
from sobolev.conditionals.categorical import CategoricalConditional
from sobolev.conditionals.diagnostics import judge
from sobolev.conditionals.forest import ForestConditional
from sobolev.conditionals.gaussian import GaussianConditional
from sobolev.conditionals.mixed import MixedConditional
from sobolev.conditionals.neural import NeuralConditional
from sobolev.conditionals.residual import ResidualConditional


@dataclass(eq=False, repr=False)
class AutoConditional(Conditional):
    """A linear model for each column that it fits, a forest for each column that it does not.

    The linear model, :class:`~sobolev.conditionals.MixedConditional`, is ridge or logistic
    regression. It is checked on the rows of X, without the response; a column that fails a check of
    :func:`~sobolev.conditionals.diagnose_conditional` gets a
    :class:`~sobolev.conditionals.ForestConditional`. So columns that share normal factors, where a
    forest is poor, keep the linear model.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import AutoConditional
    >>> X = np.random.default_rng(0).standard_normal((300, 3))
    >>> X[:, 1] += X[:, 0] ** 2
    >>> auto = AutoConditional().fit(X)
    >>> [auto.uses_forest(j) for j in range(3)]
    [True, True, False]
    """

    joint_kind: ClassVar[str] = "auto"

    def learn(self, X: Array) -> None:
        """Fit the linear model; the choice for a column is made on first use."""
        self.X_ = X
        self.linear_ = MixedConditional().fit_validated(X, self.groups_)
        self.forest_ = ForestConditional().fit_validated(X, self.groups_)
        self.__dict__.pop("_judged", None)
        self._is_forest: dict[int, bool] = {}

    @cached_property
    def _judged(self) -> tuple[Array, Index, Others]:
        """Independent rows, their positions, and their columns as predictors."""
        groups = self.groups_
        rows = np.arange(self.X_.shape[0]) if groups is None else one_of_each(groups)
        return self.X_[rows], rows, Others.of(self.X_[rows])

    def uses_forest(self, j: int) -> bool:
        """Whether column j has the forest, because the linear model does not fit."""
        if j not in self._is_forest:
            names = [str(k) for k in range(self.X_.shape[1])]
            X, rows, others = self._judged
            found = judge(self.linear_, X, names, np.array([j]), others=others, fitted=rows)
            self._is_forest[j] = bool(found.misfit.any())
        return self._is_forest[j]

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The distribution of column j from the model that was chosen for it."""
        model = self.forest_ if self.uses_forest(j) else self.linear_
        return model.distribution(X, j, rows)


CONDITIONALS: dict[str, type[Conditional]] = {
    "auto": AutoConditional,
    "mixed": MixedConditional,
    "forest": ForestConditional,
    "gaussian": GaussianConditional,
    "residual": ResidualConditional,
    "categorical": CategoricalConditional,
    "neural": NeuralConditional,
}


def resolve_conditional(conditional: Any) -> Conditional:
    """Return an unfitted model for a name or an object with ``fit(X)`` and ``grid(X, j)``.

    A fitted model in :class:`~sklearn.frozen.FrozenEstimator` is used as it is.
    """
    if not isinstance(conditional, str):
        return as_conditional(conditional)
    if conditional not in CONDITIONALS:
        options = ", ".join(f'"{name}"' for name in CONDITIONALS)
        raise ValueError(f"conditional={conditional!r} is unknown; use {options} or an object.")
    return CONDITIONALS[conditional]()
