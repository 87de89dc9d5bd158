"""Base class of the conditional models: discrete distributions, draws, row numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Index
from sobolev.validation import validate_rows

# Number of nodes of the discrete distribution of a continuous column, as in the paper.
N_NODES = 100
# Largest number of distinct values of a categorical column.
MAX_CATEGORIES = 10


class Conditional(BaseEstimator):
    """Base class of models of one column given the others.

    A subclass implements ``learn(X)``, which fits validated rows, and
    ``distribution(X, j, rows)``, which returns nodes and weights of the discrete conditional
    distribution of column j for every row. ``rows`` holds the position of each row in the fitted
    table, or -1 for a new row; a fitted row is predicted by a model that has not seen it.
    ``groups_`` holds the number of the group of each fitted row, or None: a model that has seen
    another row of the group has seen the row.
    """

    n_features_in_: int
    n_rows_: int
    groups_: Index | None = None
    # The joint model of several columns: "linear", "forest", or "auto" by what fits.
    joint_kind: ClassVar[str] = "linear"

    def fit(self, X: Any, y: Any = None) -> Conditional:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Training rows.
        y : ignored
            Not used.

        Returns
        -------
        self
            The fitted model.
        """
        return self.fit_validated(validate_rows(self, X, reset=True))

    def fit_validated(self, X: Array, groups: Index | None = None) -> Conditional:
        """Fit to rows that were validated before.

        Parameters
        ----------
        X : array of shape (n, d)
        groups : array of int, shape (n,), optional
            Number of the group of each row, from 0 on. Rows of a group belong together.
        """
        self.n_rows_, self.n_features_in_ = X.shape
        self.groups_ = groups
        self._table, self._joint = X, dict[tuple[int, ...], Any]()
        self.learn(X)
        return self

    def grid(self, X: Any, j: int, rows: Any = None) -> tuple[Array, Array]:
        """The conditional distribution of column j given the other columns of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows with all columns.
        j : int
            Position of the column.
        rows : array of int, shape (n,), optional
            Position of each row in the fitted table, -1 for new rows. Fitted rows are predicted by
            models that have not seen them. By default all rows are new.

        Returns
        -------
        nodes, weights : arrays of shape (n, B)
            Values and their probabilities; each row of the weights sums to one.
        """
        check_is_fitted(self, "n_features_in_")
        X = validate_rows(self, X, reset=False)
        d, n = self.n_features_in_, X.shape[0]
        if not -d <= j < d:
            raise ValueError(f"column {j} does not exist; X has {d} columns.")
        positions = np.full(n, -1) if rows is None else np.asarray(rows, dtype=np.intp)
        if positions.shape != (n,):
            raise ValueError(f"rows has the shape {positions.shape}, but X has {n} rows.")
        return self.distribution(X, j % d, positions)

    def sample(
        self, X: Any, j: int, n: int = 1, random_state: RandomState = None, rows: Any = None
    ) -> Array:
        """Draw column j given the others, n times for each row.

        Parameters
        ----------
        X, j, rows
            See :meth:`grid`.
        n : int, default=1
            Number of draws for each row.
        random_state : int, Generator, RandomState or None, default=None
            Seed or generator of the draws.

        Returns
        -------
        array of shape (n_rows, n)
            Draws of column j.
        """
        nodes, weights = self.grid(X, j, rows)
        return draw_nodes(nodes, weights, check_generator(random_state).random((len(nodes), n)))

    def joint_distribution(self, X: Array, columns: Index, rows: Index) -> tuple[Array, Array]:
        """Nodes (n, B, c) and weights (n, B) of several columns for fitted rows at ``rows``."""
        from sobolev.conditionals.joint import JointConditional

        key = tuple(columns.tolist())
        if key not in self._joint:
            joint = JointConditional(columns, kind=self.joint_kind)
            self._joint[key] = joint.fit(self._table, self.groups_)
        nodes, weights = self._joint[key].grid(X, rows)
        return nodes, weights

    def learn(self, X: Array) -> None:
        """Fit to validated rows."""
        raise NotImplementedError

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights of column j for validated rows; ``rows`` as in :meth:`grid`."""
        raise NotImplementedError


class FrozenConditional(Conditional):
    """A fitted model in :class:`~sklearn.frozen.FrozenEstimator`: it is never fitted again.

    Parameters
    ----------
    model : FrozenEstimator
        Holds the fitted model.
    """

    def __init__(self, model: FrozenEstimator) -> None:
        self.model = model

    def learn(self, X: Array) -> None:
        """Check that the model was fitted to these rows."""
        fitted = self.model.estimator
        if (fitted.n_rows_, fitted.n_features_in_) != X.shape:
            raise ValueError(
                f"the frozen conditional model was fitted to a table of {fitted.n_rows_} rows and "
                f"{fitted.n_features_in_} columns, but X has {X.shape[0]} and {X.shape[1]}; fit it "
                "to the rows of X."
            )

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights from the fitted model."""
        nodes, weights = self.model.estimator.distribution(X, j, rows)
        return nodes, weights

    def joint_distribution(self, X: Array, columns: Index, rows: Index) -> tuple[Array, Array]:
        """Joint nodes and weights from the fitted model."""
        nodes, weights = self.model.estimator.joint_distribution(X, columns, rows)
        return nodes, weights


class OwnConditional(Conditional):
    """Adapter for a user's object with ``fit(X)`` and ``grid(X, j)``, without row numbers.

    Parameters
    ----------
    model : object
        The user's object.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn(self, X: Array) -> None:
        """Fit the user's object."""
        self.model.fit(X)

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Nodes and weights from the user's object."""
        nodes, weights = self.model.grid(X, j)
        return nodes, weights

    def joint_distribution(self, X: Array, columns: Index, rows: Index) -> tuple[Array, Array]:
        """Joint nodes and weights from the user's object, if it has ``joint_grid(X, columns)``."""
        if not hasattr(self.model, "joint_grid"):
            return super().joint_distribution(X, columns, rows)
        nodes, weights = map(np.asarray, self.model.joint_grid(X, columns))
        return nodes, weights


def as_conditional(model: Any) -> Conditional:
    """Return an unfitted copy of a model, or a fitted one in ``FrozenEstimator`` as it is."""
    if isinstance(model, FrozenEstimator) and hasattr(model.estimator, "distribution"):
        return FrozenConditional(model)
    if isinstance(model, Conditional):
        return clone(model)
    if hasattr(model, "fit") and hasattr(model, "grid"):
        return OwnConditional(clone(model) if hasattr(model, "get_params") else model)
    raise TypeError(
        f"conditional must be a name or an object with fit(X) and grid(X, j); got {model!r}."
    )


def draw_nodes(nodes: Array, weights: Array, level: Array) -> Array:
    """The nodes of each discrete distribution at some levels.

    Parameters
    ----------
    nodes, weights : array of shape (n, B)
        Distributions, one for each row.
    level : array of shape (n, k)
        Numbers in [0, 1); uniform ones give draws.

    Returns
    -------
    array of shape (n, k)
    """
    cumulated = np.cumsum(weights, axis=1)
    cumulated /= cumulated[:, -1:]
    position = np.sum(level[:, :, None] >= cumulated[:, None, :], axis=2)
    return np.take_along_axis(nodes, np.minimum(position, nodes.shape[1] - 1), axis=1)


def levels(n_nodes: int) -> Array:
    """Midpoints of ``n_nodes`` equal intervals of (0, 1)."""
    return (np.arange(n_nodes) + 0.5) / n_nodes


def fold_numbers(
    n: int, n_folds: int, random_state: RandomState, groups: Index | None = None
) -> Index:
    """Random fold of every row; the sizes of the folds differ by at most one.

    With groups, the rows of a group are in one fold, and sizes are counted in groups.
    """
    rng = check_generator(random_state)
    size = n if groups is None else int(groups.max()) + 1
    folds = np.asarray(rng.permutation(size) % min(n_folds, size), dtype=np.intp)
    return folds if groups is None else folds[groups]


def bootstrap_rows(n: int, groups: Index | None, rng: np.random.Generator) -> Index:
    """Positions of rows drawn with replacement; groups are drawn as a whole."""
    if groups is None:
        return rng.integers(n, size=(n,))
    labels = np.unique(groups, return_inverse=True)[1]
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])
    return np.concatenate([members[g] for g in rng.integers(len(members), size=(len(members),))])


def one_of_each(groups: Index, random_state: RandomState = 0) -> Index:
    """One random row of each group, in the order of the rows."""
    order = check_generator(random_state).permutation(groups.size)
    return np.sort(order[np.unique(groups[order], return_index=True)[1]])


def cross_fitted(X: Array, rows: Index, held_out: Array, model: Any) -> Array:
    """Out-of-fold predictions for fitted rows, predictions of the model for new rows.

    ``held_out`` has one entry for each fitted row, ``rows`` is as in :meth:`Conditional.grid`.
    """
    found = held_out[rows]
    new = rows < 0
    if new.any():
        found[new] = model(X[new])
    return found


@dataclass(frozen=True)
class WithoutColumn:
    """A function of all columns except one, called with all of them."""

    function: Any
    column: int

    def __call__(self, X: Array) -> Array:
        """Leave out the column and call the function."""
        found: Array = self.function(np.delete(X, self.column, axis=1))
        return found
