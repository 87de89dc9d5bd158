"""Rows at which a fitted witness is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from sobolev._typing import AnyArray, Array

# Rows and numbers that go into one evaluation of the witness.
MAX_ROWS, MAX_VALUES = 4000, 2**23

Move = Mapping[int, Any]


@dataclass(frozen=True)
class Rows:
    """Checked rows of a fitted estimator.

    Attributes
    ----------
    estimator : estimator with ``witness``
    X : array of shape (n, d)
    y : array or DataFrame of n rows
    names : list of str
        Of the columns of X.
    classes : array or None
        The labels, if y is one column of them.
    """

    estimator: Any
    X: Array
    y: Any
    names: list[str]
    classes: AnyArray | None

    def witness(self, moves: Sequence[Move], responses: Sequence[AnyArray] | None = None) -> Array:
        """f at the rows with some columns replaced, (n_moves, n).

        A move names columns with their new values. Each has a response for all rows, of shape (1,)
        or (1, q), or the rows keep their own.
        """
        from sobolev.validation import take_rows

        n, d = self.X.shape
        step = max(1, min(MAX_ROWS, MAX_VALUES // d) // n)
        found = [np.empty((0, n))]
        for start in range(0, len(moves), step):
            part = moves[start : start + step]
            moved = np.tile(self.X, (len(part), 1, 1))
            for block, move in zip(moved, part, strict=True):
                for j, values in move.items():
                    block[:, j] = values
            if responses is None:
                y = take_rows(self.y, np.tile(np.arange(n), len(part)))
            else:
                y = np.concatenate(
                    [np.repeat(r, n, axis=0) for r in responses[start : start + step]]
                )
            f = np.asarray(self.estimator.witness(moved.reshape(-1, d), y))
            found.append(f.reshape(len(part), n))
        return np.concatenate(found).astype(float)

    def sample(self, most: int, rng: np.random.Generator) -> Rows:
        """At most so many rows."""
        n = self.X.shape[0]
        if n <= most:
            return self
        from sobolev.validation import take_rows

        chosen = np.sort(rng.choice(n, size=most, replace=False))
        return replace(self, X=self.X[chosen], y=take_rows(self.y, chosen))

    def position(self, feature: Any) -> int:
        """Of a column, by position or name."""
        d = self.X.shape[1]
        if isinstance(feature, Integral) and not isinstance(feature, bool):
            if not -d <= feature < d:
                raise ValueError(f"feature {feature} does not exist: X has {d} columns.")
            return int(feature) % d
        found = [j for j, name in enumerate(self.names) if name == str(feature)]
        if not found:
            raise ValueError(f"feature {feature!r} is not a column of X; pass a name or position.")
        return found[0]

    @property
    def one_response(self) -> bool:
        """Whether y has no second axis."""
        return np.ndim(self.y) == 1

    @property
    def response_names(self) -> list[str]:
        """Of the columns of y."""
        columns = getattr(self.y, "columns", None)
        q = 1 if self.one_response else np.shape(self.y)[1]
        return [f"y[{k}]" for k in range(q)] if columns is None else [str(c) for c in columns]

    def numeric_responses(self) -> Array:
        """The columns of y."""
        try:
            table = np.asarray(self.y, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                "y has several columns, some of them labels; fit and draw one response at a time."
            ) from None
        return table[:, None] if table.ndim == 1 else table


def read_rows(estimator: Any, X: Any, y: Any) -> Rows:
    """Check rows against a fitted estimator.

    Parameters
    ----------
    estimator : fitted estimator with ``witness``
    X : array-like or DataFrame of shape (n, d)
    y : array-like of n rows

    Returns
    -------
    Rows
    """
    from sklearn.utils.validation import check_is_fitted

    from sobolev.validation import plain_target, validate_rows

    if not hasattr(estimator, "witness"):
        raise TypeError(
            f"{type(estimator).__name__} has no witness; pass a fitted ConvexSIC or NeuralSIC, "
            "such as estimator_ of an HRTSelector."
        )
    check_is_fitted(estimator)
    names, fitted_names = getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)
    if names is not None and fitted_names is None:
        X = np.asarray(X)  # fitted without names: they serve for the picture only
    elif names is None and fitted_names is not None:
        import pandas as pd

        X, names = pd.DataFrame(np.asarray(X), columns=fitted_names), fitted_names
    checked = validate_rows(estimator, X, reset=False)
    target = plain_target(y)
    if len(target) != checked.shape[0]:
        raise ValueError(f"X has {checked.shape[0]} rows but y has {len(target)}; pass the same.")
    shown = [f"x{j}" for j in range(checked.shape[1])] if names is None else [str(n) for n in names]
    # The names are checked; without them arrays will do, which are quicker than tables.
    nameless = copy(estimator)
    nameless.__dict__.pop("feature_names_in_", None)
    return Rows(nameless, checked, target, shown, getattr(estimator, "classes_", None))
