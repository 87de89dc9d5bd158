"""Conditional distributions of columns with few values, by any probabilistic classifier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._random import RandomState
from sobolev._typing import Array, Index
from sobolev.conditionals.base import Conditional, WithoutColumn, cross_fitted, fold_numbers
from sobolev.conditionals.logistic import LogisticColumns

# Values of the parameter C of the default classifier, ascending.
STRENGTHS = (0.003, 0.03, 0.3)
# Weight of the marginal frequencies in each distribution, so that no probability is zero.
SMOOTHING = 0.01


@dataclass(eq=False, repr=False)
class CategoricalConditional(Conditional):
    """Conditional distributions of columns with few values, by a classifier.

    Parameters
    ----------
    classifier : estimator or None, default=None
        Classifier with ``predict_proba``; None is logistic regression on the standardised other
        columns, with a penalty chosen by the out-of-fold likelihood.
    n_folds : int, default=5
        Number of folds; a fitted row is predicted by the fit without its fold.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the assignment of rows to folds.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import CategoricalConditional
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 3)).astype(float)
    >>> nodes, weights = CategoricalConditional().fit(X).grid(X, 0)
    >>> nodes[0]
    array([0., 1.])
    """

    classifier: Any = None
    n_folds: int = 5
    random_state: RandomState = 0

    def learn(self, X: Array) -> None:
        """Store the rows; the model of a column is fitted on first use."""
        self.X_ = X
        self.folds_ = fold_numbers(X.shape[0], self.n_folds, self.random_state, self.groups_)
        self._logistic = LogisticColumns.fit(X) if self.classifier is None else None
        self._columns: dict[int, tuple[Array, Array, Any]] = {}

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """The values of column j with their probabilities in each row."""
        values, held_out, model = self._column(j)
        weights = cross_fitted(X, rows, held_out, model)
        return np.broadcast_to(values, weights.shape).copy(), weights

    def _column(self, j: int) -> tuple[Array, Array, Any]:
        """The values of column j, out-of-fold probabilities, and the model for new rows."""
        if j not in self._columns:
            values, codes = np.unique(self.X_[:, j], return_inverse=True)
            frequencies = np.bincount(codes) / codes.size
            learned = self._regression if self.classifier is None else self._classification
            self._columns[j] = (values, *learned(j, codes, frequencies))
        return self._columns[j]

    # The model for new rows is fitted to all rows when it is called.

    def _regression(self, j: int, codes: Index, frequencies: Array) -> tuple[Array, Any]:
        if min(self.n_features_in_, frequencies.size) == 1:  # nothing to learn: the frequencies
            return np.tile(frequencies, (codes.size, 1)), partial(_tiled, frequencies)
        assert self._logistic is not None
        path = _smoothed(self._logistic.held_out(j, codes, self.folds_, STRENGTHS), frequencies)
        likelihoods = np.log(path[:, np.arange(codes.size), codes]).sum(axis=1)
        best = int(np.argmax(likelihoods))
        model = partial(_predicted, self._logistic, j, codes, STRENGTHS[best], frequencies)
        return path[best], model

    def _classification(self, j: int, codes: Index, frequencies: Array) -> tuple[Array, Any]:
        rest = np.delete(self.X_, j, axis=1)
        held_out = self._out_of_fold(self.classifier, rest, codes, frequencies)
        model = partial(_probabilities, self.classifier, rest, codes, frequencies)
        return held_out, WithoutColumn(model, j)

    def _out_of_fold(self, classifier: Any, rest: Array, codes: Index, frequencies: Array) -> Array:
        held_out = np.empty((codes.size, frequencies.size))
        for k in range(int(self.folds_.max()) + 1):
            test = self.folds_ == k
            held_out[test] = _probabilities(
                classifier, rest[~test], codes[~test], frequencies, rest[test]
            )
        return held_out


def _tiled(frequencies: Array, X: Array) -> Array:
    return np.tile(frequencies, (X.shape[0], 1))


def _predicted(
    logistic: LogisticColumns, j: int, codes: Index, strength: float, frequencies: Array, X: Array
) -> Array:
    return _smoothed(logistic.predict(j, codes, strength, X), frequencies)


def _smoothed(found: Array, frequencies: Array) -> Array:
    return np.asarray((1 - SMOOTHING) * found + SMOOTHING * frequencies)


def _probabilities(
    classifier: Any, rest: Array, codes: Index, frequencies: Array, asked: Array
) -> Array:
    """Smoothed probabilities of all values, also of values that a fold does not contain."""
    if rest.shape[1] == 0 and np.ptp(codes) > 0:  # no other column: the frequencies
        return _tiled(frequencies, asked)
    found = fitted_probabilities(classifier, rest, codes, asked, frequencies.size)
    return _smoothed(found, frequencies)


def fitted_probabilities(
    classifier: Any, X: Array, codes: Index, X_new: Array, n_values: int
) -> Array:
    """Probabilities of all values for new rows, zero for values without a training row.

    Parameters
    ----------
    classifier : estimator
        Classifier with ``predict_proba``.
    X : array of shape (n, d)
        Training rows.
    codes : array of int, shape (n,)
        Number of the value of each training row.
    X_new : array of shape (m, d)
        Rows to predict.
    n_values : int
        Number of values.

    Returns
    -------
    array of shape (m, n_values)
    """
    found = np.zeros((X_new.shape[0], n_values))
    present = np.unique(codes)
    if present.size == 1:  # nothing to learn
        found[:, present[0]] = 1.0
        return found
    fitted = clone(classifier).fit(X, codes)
    found[:, fitted.classes_] = fitted.predict_proba(X_new)
    return found
