"""Rows at which the critic of a fitted selector is evaluated for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import AnyArray, Array

if TYPE_CHECKING:
    from sobolev.critic import Evaluator


class NoEffectsError(TypeError):
    """The critic of a selector does not show effects of the columns of X."""


@dataclass(frozen=True)
class Rows:
    """Checked rows, and the critic that judges them.

    Attributes
    ----------
    critic : Critic
    X : array of shape (n, d)
    y : array or DataFrame of n rows
    names : list of str
        Names of the columns of X.
    classes : array or None
        The labels, if y is one column of labels.
    sets : mapping
        Columns of X and categories of each feature that is a category.
    """

    critic: Any
    X: Array
    y: Any
    names: list[str]
    classes: AnyArray | None
    sets: Mapping[str, tuple[list[int], tuple[str, ...]]] = field(default_factory=dict)

    def evaluator(self, response: AnyArray | None = None) -> Evaluator:
        """The witness of the rows as a function of some of the columns.

        The rows keep their responses, or all of them get one response of shape (1,) or (1, q).
        """
        y = self.y if response is None else np.repeat(response, len(self.X), axis=0)
        found: Evaluator = self.critic.evaluator(self.X, y, "witness")
        return found

    def sample(self, most: int, rng: np.random.Generator) -> Rows:
        """A random sample of at most ``most`` rows."""
        n = self.X.shape[0]
        if n <= most:
            return self
        from sobolev.validation import take_rows

        chosen = np.sort(rng.choice(n, size=most, replace=False))
        return replace(self, X=self.X[chosen], y=take_rows(self.y, chosen))

    def position(self, feature: Any) -> int:
        """Position of a column that is given by position or name."""
        d = self.X.shape[1]
        if isinstance(feature, Integral) and not isinstance(feature, bool):
            if not -d <= feature < d:
                raise ValueError(f"feature {feature} does not exist: X has {d} columns.")
            return int(feature) % d
        if str(feature) in self.sets and str(feature) not in self.names:
            raise ValueError(f"feature {feature!r} has several categories, not one column.")
        if str(feature) not in self.names:
            raise ValueError(f"feature {feature!r} is not a column of X; pass a name or position.")
        return self.names.index(str(feature))

    @property
    def one_response(self) -> bool:
        """Whether y has no second axis."""
        return np.ndim(self.y) == 1

    @property
    def response_names(self) -> list[str]:
        """Names of the columns of y."""
        columns = getattr(self.y, "columns", None)
        q = 1 if self.one_response else np.shape(self.y)[1]
        return [f"y[{k}]" for k in range(q)] if columns is None else [str(c) for c in columns]

    def numeric_responses(self) -> Array:
        """The columns of y as numbers, (n, q)."""
        try:
            table = np.asarray(self.y, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                "y has several columns, some of them labels; fit and draw one response at a time."
            ) from None
        return table[:, None] if table.ndim == 1 else table


def read_rows(selector: Any, X: Any, y: Any) -> Rows:
    """Check rows against a fitted selector or critic.

    Parameters
    ----------
    selector : fitted ConvexSIC, NeuralSIC or HRTSelector, or another critic
    X : array-like, DataFrame or Prepared, of shape (n, d)
        If the selector was fitted to a table with categories, the rows are those of its fit.
    y : array-like of n rows

    Returns
    -------
    Rows
    """
    from sobolev.critic import unwrapped
    from sobolev.responses import Response
    from sobolev.tables import Prepared
    from sobolev.validation import plain_target, validate_rows

    table = X if isinstance(X, Prepared) else getattr(selector, "table_", None)
    if table is not None:
        rows = read_rows(getattr(selector, "encoded_", selector), table.filled(), table.response)
        alone = {own[0]: name for name, own in table.places.items() if len(own) == 1}
        shown = [alone.get(j, name) for j, name in enumerate(rows.names)]
        sets = {name: (table.places[name], found) for name, found in table.categories.items()}
        return replace(rows, names=shown, sets=sets)
    critic = _critic(selector)
    names, fitted_names = getattr(X, "columns", None), getattr(selector, "feature_names_in_", None)
    if names is not None and fitted_names is None:
        X = np.asarray(X)  # fitted without names: they only label the picture
    elif names is None and fitted_names is not None:
        import pandas as pd

        X, names = pd.DataFrame(np.asarray(X), columns=fitted_names), fitted_names
    checked = validate_rows(selector, X, reset=False)
    response = y if isinstance(y, Response) else getattr(selector, "response_", None)
    target = plain_target(y) if response is None else response.read(y).values
    if len(target) != checked.shape[0]:
        raise ValueError(f"X has {checked.shape[0]} rows but y has {len(target)}; pass the same.")
    shown = [f"x{j}" for j in range(checked.shape[1])] if names is None else [str(n) for n in names]
    return Rows(critic, checked, target, shown, getattr(unwrapped(critic), "classes_", None))


def _critic(selector: Any) -> Any:
    """The critic of the columns of X that a fitted selector holds, or is."""
    from sklearn.utils.validation import check_is_fitted

    from sobolev.critic import FrozenCritic, PredictorCritic, as_critic

    check_is_fitted(selector)
    critic = as_critic(getattr(selector, "estimator_", selector))
    if isinstance(critic, FrozenCritic):
        critic = critic.critic
    name = type(selector).__name__
    if isinstance(critic, PredictorCritic):
        raise NoEffectsError(
            f"{name} has no witness; pass a fitted ConvexSIC, NeuralSIC, or an HRTSelector with "
            "one of them."
        )
    if critic.feature_importances_.size != selector.n_features_in_:
        raise NoEffectsError(
            f"the critic of {name} was fitted to columns and knockoffs together, so it does not "
            "show effects; pass a ConvexSIC or HRTSelector fitted to the selected columns."
        )
    return critic
