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

from sobolev._typing import AnyArray, Array, Index
from sobolev.convex.feature_maps import BoundFourierMap, BoundLandmarkMap, squared_distances
from sobolev.inference.null_distribution import NullTable

# Columns of at most this many distinct nodes are evaluated at each of them.
MAX_EXACT = 24
# Nodes of the interpolation for piecewise-linear critics and for predictors of any kind.
PIECEWISE_NODES = 24
# Joint nodes that all rows share, up to which a group is evaluated at each of them for all rows.
MAX_PATTERNS = 64
MAX_CHEBYSHEV = 256
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


def chebyshev_nodes(low: float, high: float, n: int) -> Array:
    """Chebyshev nodes of the second kind, ends included."""
    return 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * np.arange(n) / (n - 1))


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
    if hasattr(estimator, "critic_") and hasattr(estimator, "encoder_"):
        return ConvexEvaluator(estimator, X, y, statistic)
    if hasattr(estimator, "_ensembles") and hasattr(estimator, "reference_"):
        from sobolev.neural.evaluation import NeuralEvaluator

        return NeuralEvaluator(estimator, X, y, statistic)
    return PredictorEvaluator(estimator, X, y)


class _CriticEvaluator:
    """What evaluators of f = h(x)' psi(y) share: standard units and the statistic of h."""

    def __init__(self, estimator: Any, X: Array, y: Any, statistic: str) -> None:
        self.standardizer = estimator.standardizer_
        self.z = self.standardizer.transform(X)
        self.psi = estimator.encoder_.transform(y)
        self.rho = float(getattr(estimator, "rho_", getattr(estimator, "rho", 1.0)))
        self.statistic = statistic
        self.position = np.cumsum(self.standardizer.varying) - 1

    def _standard(self, columns: Index, values: Array) -> tuple[Index, Array]:
        """Positions among varying columns, and values in standard units; constants drop out."""
        kept = self.standardizer.varying[columns]
        columns, values = columns[kept], values[:, kept]
        scaled = (values - self.standardizer.center[columns]) / self.standardizer.scale[columns]
        return self.position[columns], scaled

    def _of_h(self, h: Array, psi: Array) -> Array:
        """The statistic of h (n, Q, k) for responses (n, k), (n, Q)."""
        f = np.einsum("nqk,nk->nq", h, psi)
        if self.statistic == "witness":
            return f
        return f - 0.5 * self.rho * np.einsum("nqk,nqk->nq", h, h)


class ConvexEvaluator(_CriticEvaluator):
    """Kernel, Fourier and other maps of :class:`~sobolev.ConvexSIC`."""

    def __init__(self, estimator: Any, X: Array, y: Any, statistic: str) -> None:
        super().__init__(estimator, X, y, statistic)
        self.critic = estimator.critic_
        self.bound = self.critic.bound
        m = self.bound.n_functions
        self.U, self.linear = self.critic.U[:m], self.critic.U[m:]
        self.offset = self.critic.center @ self.critic.U
        if isinstance(self.bound, BoundLandmarkMap):
            self.distances = squared_distances(self.z, self.bound.centers, self.bound.g)
        elif isinstance(self.bound, BoundFourierMap):
            self.angles = self.z @ self.bound.frequencies.T

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Chebyshev nodes, as many as the width of the functions asks for."""
        _, ends = self._standard(np.array([column]), np.array([[low], [high]]))
        if ends.shape[1] == 0:
            return np.array([low, high]), "piecewise"
        j, length = self.position[column], float(ends[1, 0] - ends[0, 0])
        if isinstance(self.bound, BoundLandmarkMap):
            n = 16 + int(np.ceil(2.0 * length * np.sqrt(self.bound.g[j])))
        elif isinstance(self.bound, BoundFourierMap):
            n = 24 + int(np.ceil(0.6 * length * np.abs(self.bound.frequencies[:, j]).max()))
        else:
            n = 64
        return chebyshev_nodes(low, high, min(n, MAX_CHEBYSHEV)), "chebyshev"

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`Evaluator`."""
        found, scaled = self._standard(columns, values)
        if isinstance(self.bound, BoundLandmarkMap):
            h = self._landmarks(found, scaled)
        elif isinstance(self.bound, BoundFourierMap):
            h = self._fourier(found, scaled)
        else:
            h = self._generic(found, scaled)
        return self._of_h(h, self.psi)

    def _linear_part(self, columns: Index, values: Array) -> Array:
        """The linear block with the columns replaced, less the centre, (n, Q, k)."""
        if not self.linear.size:
            return -self.offset[None, None]
        fixed = self.z @ self.linear - self.z[:, columns] @ self.linear[columns]
        return fixed[:, None] + (values @ self.linear[columns])[None] - self.offset

    def _landmarks(self, columns: Index, values: Array) -> Array:
        centers, g = self.bound.centers[:, columns], self.bound.g[columns]
        rest = self.distances - squared_distances(self.z[:, columns], centers, g)
        np.maximum(rest, 0.0, out=rest)
        own = squared_distances(values, centers, g)
        h = np.empty((rest.shape[0], values.shape[0], self.U.shape[1]))
        if self.bound.spec.kernel == "gaussian":
            rest *= -0.5
            np.exp(rest, out=rest)
            factor = np.exp(-0.5 * own)
            for k in range(h.shape[2]):
                h[:, :, k] = rest @ (factor * self.U[:, k]).T
        else:
            for q in range(values.shape[0]):
                h[:, q] = (1.0 / (1.0 + 0.5 * (rest + own[q]))) @ self.U
        return h + self._linear_part(columns, values)

    def _fourier(self, columns: Index, values: Array) -> Array:
        frequencies = self.bound.frequencies[:, columns]
        rest = self.angles - self.z[:, columns] @ frequencies.T
        cosine, sine = np.cos(rest), np.sin(rest)
        turn = values @ frequencies.T
        turn_cosine, turn_sine = np.cos(turn), np.sin(turn)
        scale = 1 / np.sqrt(frequencies.shape[0])
        of_cosine, of_sine = np.vsplit(scale * self.U, 2)
        h = np.empty((rest.shape[0], values.shape[0], self.U.shape[1]))
        for k in range(h.shape[2]):
            c, s = of_cosine[:, k], of_sine[:, k]
            h[:, :, k] = cosine @ (turn_cosine * c + turn_sine * s).T
            h[:, :, k] += sine @ (turn_cosine * s - turn_sine * c).T
        return h + self._linear_part(columns, values)

    def _generic(self, columns: Index, values: Array) -> Array:
        return np.stack([self.critic(_replaced(self.z, columns, v)) for v in values], axis=1)

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`Evaluator`."""
        found, scaled = self._standard(columns, nodes.reshape(-1, columns.size))
        per_node = scaled.reshape(*nodes.shape[:2], found.size).transpose(1, 0, 2)
        return self._of_h(self._generic(found, per_node), self.psi)


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


def _replaced(X: AnyArray, columns: Index, values: Array) -> Array:
    out = np.array(X, dtype=float)
    out[:, columns] = values
    return out
