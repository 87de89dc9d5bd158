r"""The statistic of every row at every value that a column may take.

A test of column j needs the critic at rows in which :math:`x_j` is replaced by the nodes of its
conditional law. Those are never formed: replacing one column changes a kernel by a factor, a
Fourier feature by a phase, the first layer of a network by a rank-one term. The result is found at
a few common values of :math:`x_j` and interpolated to the nodes of each row. The observed value
passes through the same interpolation, so the test stays exact whatever the error of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sobolev._typing import Array, Index
from sobolev.inference.null_distribution import NullTable

# Columns of at most this many distinct nodes are evaluated at each of them.
MAX_EXACT = 24
# Nodes of the interpolation for piecewise-linear critics and for predictors of any kind.
PIECEWISE_NODES = 24
# Joint nodes that all rows share, up to which a group is evaluated at each of them for all rows.
MAX_PATTERNS = 64
STATISTICS = ("risk", "witness")


class Evaluator(Protocol):
    """The statistic on fixed rows, as a function of one column."""

    def at(self, columns: Index, values: Array) -> Array:
        """The statistic of every row with the columns replaced by each of the values.

        ``values`` is (Q, len(columns)); the result is (n, Q).
        """

    def each(self, columns: Index, nodes: Array) -> Array:
        """The statistic of every row with the columns replaced by its own nodes.

        ``nodes`` is (n, B, len(columns)); the result is (n, B).
        """

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Where to evaluate between two values, and how to interpolate."""


def null_table(evaluator: Any, column: int, x: Array, nodes: Array, weights: Array) -> NullTable:
    """The table of one column: its statistic at the nodes of each row and at the observed values.

    Parameters
    ----------
    evaluator : Evaluator
    column : int
    x : array of shape (n,)
        The observed values of the column.
    nodes, weights : array of shape (n, B)
        The conditional law of each row.
    """
    few = np.unique(nodes[0]).size <= MAX_EXACT
    distinct = np.unique(nodes) if few else np.array([nodes.min(), nodes.max()])
    if few and distinct.size <= MAX_EXACT:
        distinct = np.union1d(distinct, x) if np.unique(x).size <= MAX_EXACT else distinct
        table = evaluator.at(np.array([column]), distinct[:, None])
        values = np.take_along_axis(table, np.searchsorted(distinct, nodes), axis=1)
        place = np.minimum(np.searchsorted(distinct, x), distinct.size - 1)
        return NullTable(values, weights, np.take_along_axis(table, place[:, None], axis=1)[:, 0])
    low = min(float(distinct[0]), float(x.min()))
    high = max(float(distinct[-1]), float(x.max()))
    knots, rule = evaluator.nodes(column, low, high)
    table = evaluator.at(np.array([column]), knots[:, None])
    interpolate = _chebyshev if rule == "chebyshev" else _piecewise
    both = interpolate(knots, table, np.column_stack([nodes, x]))
    return NullTable(both[:, :-1], weights, both[:, -1])


def joint_table(
    evaluator: Any, columns: Index, x: Array, nodes: Array, weights: Array
) -> NullTable:
    """The table of several columns that are replaced together.

    Parameters
    ----------
    evaluator : Evaluator
    columns : array of int
    x : array of shape (n, len(columns))
        The observed values.
    nodes : array of shape (n, B, len(columns))
        Joint nodes of each row.
    weights : array of shape (n, B)
    """
    patterns = nodes[0]
    if patterns.shape[0] <= MAX_PATTERNS and (nodes == patterns).all():
        same = (x[:, None] == patterns).all(axis=2)
        if same.any(axis=1).all():
            values = evaluator.at(columns, patterns)
            return NullTable(values, weights, values[np.arange(x.shape[0]), same.argmax(axis=1)])
    # The observed values go with the nodes, so that rounding is the same for both.
    both = evaluator.each(columns, np.concatenate([nodes, x[:, None]], axis=1))
    return NullTable(both[:, :-1], weights, both[:, -1])


def _chebyshev(knots: Array, table: Array, asked: Array) -> Array:
    """The polynomial through each row's values (n, Q) at its own points (n, B), by Clenshaw."""
    last = knots.size - 1
    angles = np.pi / last * np.outer(np.arange(last + 1), np.arange(last + 1))
    to_coefficients = np.cos(angles) * np.where(np.arange(last + 1) % 2, -2.0, 2.0) / last
    to_coefficients[[0, -1]] *= 0.5
    to_coefficients[:, [0, -1]] *= 0.5
    coefficients = table @ to_coefficients
    x = (2 * asked - knots[0] - knots[-1]) / (knots[-1] - knots[0])
    twice = 2 * x
    ahead, behind, product = np.zeros_like(x), np.zeros_like(x), np.empty_like(x)
    for j in range(last, 0, -1):
        np.multiply(twice, ahead, out=product)
        np.subtract(product, behind, out=behind)
        behind += coefficients[:, [j]]
        ahead, behind = behind, ahead
    found: Array = x * ahead - behind + coefficients[:, [0]]
    return found


def _piecewise(knots: Array, table: Array, asked: Array) -> Array:
    """Linear interpolation of each row's values (n, Q) at its own points (n, B)."""
    right = np.clip(np.searchsorted(knots, asked), 1, knots.size - 1)
    share = (asked - knots[right - 1]) / (knots[right] - knots[right - 1])
    below = np.take_along_axis(table, right - 1, axis=1)
    above = np.take_along_axis(table, right, axis=1)
    return below + share * (above - below)


def make_evaluator(estimator: Any, X: Array, y: Any, statistic: str) -> Any:
    """The evaluator of a fitted estimator on held-out rows."""
    check_is_fitted(estimator)
    if hasattr(estimator, "evaluator"):
        return estimator.evaluator(X, y, statistic)
    if hasattr(estimator, "_ensembles") and hasattr(estimator, "reference_"):
        from sobolev.inference.neural_tables import NeuralEvaluator

        return NeuralEvaluator(estimator, X, y, statistic)
    return PredictorEvaluator(estimator, X, y)


class PredictorEvaluator:
    """Any regressor (minus the squared error) or classifier (log-likelihood)."""

    def __init__(self, estimator: Any, X: Array, y: Any) -> None:
        self.estimator, self.X = estimator, X
        self.names = getattr(estimator, "feature_names_in_", None)
        self.codes: Index | None = None
        if is_classifier(estimator):
            if not hasattr(estimator, "predict_proba"):
                raise TypeError(
                    f"{type(estimator).__name__} has no predict_proba, which the test needs."
                )
            labels = np.asarray(y).ravel()
            unseen = np.setdiff1d(labels, estimator.classes_)
            if unseen.size:
                raise ValueError(
                    f"label {unseen[0]!r} is among the held-out rows, but no row that "
                    f"{type(estimator).__name__} was fitted to has it."
                )
            self.codes = np.searchsorted(estimator.classes_, labels)
        elif not hasattr(estimator, "predict"):
            raise TypeError(
                f"{type(estimator).__name__} cannot be tested: it has neither a critic nor predict."
            )
        self.y = np.asarray(y).reshape(X.shape[0], -1)

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Quantiles of the column, where the data are, and both ends."""
        inner = np.quantile(self.X[:, column], np.linspace(0, 1, PIECEWISE_NODES))
        return np.unique(np.concatenate([[low, high], inner])), "piecewise"

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`Evaluator`."""
        return self._copies(columns, values)

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`Evaluator`."""
        return self._copies(columns, nodes.transpose(1, 0, 2))

    def _copies(self, columns: Index, values: Array) -> Array:
        """The statistic of one copy of the rows for each entry of the values."""
        n, Q = self.X.shape[0], values.shape[0]
        stacked = np.tile(self.X.astype(float, copy=False), (Q, 1))
        each = values if values.ndim == 3 else values[:, None]  # (Q, n or 1, len(columns))
        stacked.reshape(Q, n, -1)[:, :, columns] = each
        rows: Any = stacked
        if self.names is not None:
            import pandas as pd

            rows = pd.DataFrame(stacked, columns=self.names)
        if self.codes is not None:
            p = np.asarray(self.estimator.predict_proba(rows)).reshape(Q, n, -1)
            chosen = p[:, np.arange(n), self.codes]
            return np.log(np.maximum(chosen, 1e-12)).T
        predicted = np.asarray(self.estimator.predict(rows)).reshape(Q, n, -1)
        found: Array = -((predicted - self.y) ** 2).sum(axis=2).T
        return found
