"""Conditionals of columns with few values: any classifier with probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import Conditional, cross_fitted, fold_numbers

# Penalties of the default classifier, as C of scikit-learn.
STRENGTHS = (0.003, 0.03, 0.3)
# No value is impossible: this share of each distribution is the frequencies of the column.
SMOOTHING = 0.01


class CategoricalConditional(Conditional):
    """Columns with few values: probabilities of the values given the other columns.

    Parameters
    ----------
    classifier : estimator or None, default=None
        Any classifier with ``predict_proba``; None is logistic regression with its penalty chosen
        by the out-of-fold likelihood.
    n_folds : int, default=5
        Number of folds; a fitted row is predicted by the fit without its fold.
    random_state : int, Generator, RandomState or None, default=0
        Assigns the rows to the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import CategoricalConditional
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float)
    >>> nodes, weights = CategoricalConditional().fit(X).grid(X, 0)
    >>> nodes[0]
    array([0., 1.])
    """

    def __init__(
        self, classifier: Any = None, n_folds: int = 5, random_state: RandomState = 0
    ) -> None:
        self.classifier = classifier
        self.n_folds = n_folds
        self.random_state = random_state

    def learn(self, X: Array) -> None:
        """Keep the rows; a column is modelled when it is first asked for."""
        self.X_ = X
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state)
        self._columns: dict[int, tuple[Array, Array, Any]] = {}

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The values of column j, with their probabilities for each row."""
        values, held_out, model = self._column(j)
        new = rows < 0
        fresh = np.full((X.shape[0], values.size), 1 / values.size)
        if new.any():
            fresh[new] = model(X[new])
        weights = cross_fitted(rows, held_out, fresh)
        return np.broadcast_to(values, weights.shape).copy(), weights

    def _column(self, j: int) -> tuple[Array, Array, Any]:
        """The values of column j, out-of-fold probabilities, and the model for new rows."""
        if j not in self._columns:
            values, codes = np.unique(self.X_[:, j], return_inverse=True)
            rest = np.delete(self.X_, j, axis=1)
            frequencies = np.bincount(codes) / codes.size
            best, chosen = -np.inf, None
            for classifier in self._candidates():
                held_out = self._out_of_fold(classifier, rest, codes, frequencies)
                likelihood = float(np.log(held_out[np.arange(codes.size), codes]).sum())
                if likelihood > best:
                    best, chosen = likelihood, (classifier, held_out)
            assert chosen is not None
            model = _Full(chosen[0], rest, codes, frequencies, j)
            self._columns[j] = (values, chosen[1], model)
        return self._columns[j]

    def _candidates(self) -> list[Any]:
        if self.classifier is not None:
            return [self.classifier]
        return [
            make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300))
            for C in STRENGTHS
        ]

    def _out_of_fold(self, classifier: Any, rest: Array, codes: Index, frequencies: Array) -> Array:
        held_out = np.empty((codes.size, frequencies.size))
        for k in range(int(self.folds_.max()) + 1):
            test = self.folds_ == k
            held_out[test] = _probabilities(
                classifier, rest[~test], codes[~test], rest[test], frequencies
            )
        return held_out


@dataclass(frozen=True)
class _Full:
    """The fit to all rows, made when a new row asks for it."""

    classifier: Any
    rest: Array
    codes: Index
    frequencies: Array
    column: int

    def __call__(self, X: Array) -> Array:
        asked = np.delete(X, self.column, axis=1)
        return _probabilities(self.classifier, self.rest, self.codes, asked, self.frequencies)


def _probabilities(
    classifier: Any, rest: Array, codes: Index, asked: Array, frequencies: Array
) -> Array:
    """Probabilities of all values, also of those that a fold does not hold."""
    found = np.zeros((asked.shape[0], frequencies.size))
    present = np.unique(codes)
    if present.size == 1:
        found[:, present[0]] = 1.0
    elif rest.shape[1] == 0:  # no other column: the frequencies
        found[:] = frequencies
    else:
        fitted = clone(classifier).fit(rest, codes)
        found[:, fitted.classes_] = fitted.predict_proba(asked)
    return np.asarray((1 - SMOOTHING) * found + SMOOTHING * frequencies)
