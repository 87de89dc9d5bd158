"""Conditional distributions from the leaves of a random forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor

from sobolev._random import RandomState, check_generator
from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import (
    MAX_CATEGORIES,
    N_NODES,
    Conditional,
    bootstrap_rows,
    levels,
)

# Columns with at most this many values keep the probability of each; others become quantiles.
MAX_EXACT = 24
# Weight of the marginal frequencies of a column with few values, so that none is impossible.
SMOOTHING = 0.01
# The forest grows on at most this many rows.
MAX_ROWS = 4000
# Number of rows whose weights are held in memory at once.
CHUNK_ROWS = 1000


@dataclass(eq=False, repr=False)
class ForestConditional(Conditional):
    """Conditional distributions as weighted sets of observed values (quantile regression forest).

    The distribution of column j in a row gives each fitted value of the column the weight with
    which its row shares leaves with the row in a random forest that predicts column j from the
    others. Trees that have seen a row are not used for it. The distribution never leaves the values
    of the column; mean, spread and shape depend on the other columns in any way.

    Parameters
    ----------
    n_trees : int, default=60
        Number of trees.
    min_leaf : int, default=5
        Smallest number of rows in a leaf.
    max_features : float, default=1/3
        Share of the other columns among which each split is chosen.
    n_nodes : int, default=100
        Number of nodes of each distribution, which are quantiles, for columns with many values.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator of the trees.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import ForestConditional
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 3))
    >>> X[:, 0] = X[:, 1] ** 2
    >>> nodes, weights = ForestConditional().fit(X).grid(X, 0)
    >>> bool(np.isin(nodes, X[:, 0]).all())
    True
    """

    joint_kind: ClassVar[str] = "forest"

    n_trees: int = 60
    min_leaf: int = 5
    max_features: float = 1 / 3
    n_nodes: int = N_NODES
    random_state: RandomState = 0

    def learn(self, X: Array) -> None:
        """Store the rows; the forest of a column grows on first use."""
        self.X_ = X
        rng = check_generator(self.random_state)
        n = X.shape[0]
        self.rows_: Index = np.sort(rng.permutation(n)[:MAX_ROWS])
        self._grown_groups = None if self.groups_ is None else self.groups_[self.rows_]
        self._seeds: Index = rng.integers(2**31, size=(X.shape[1],))
        self._columns: dict[int, tuple[Leaves, Array, Array]] = {}

    def distribution(self, X: Array, j: int, rows: Index) -> tuple[Array, Array]:
        """Values of column j with the weights of the leaves."""
        leaves, nodes, weights = self._column(j)
        nodes, weights = nodes[rows], weights[rows]
        new = rows < 0
        if new.any():
            nodes[new], weights[new] = self._grid(j, leaves.weights(np.delete(X[new], j, axis=1)))
        return nodes, weights

    def forest(self, n_columns: int, seed: int) -> RandomForestRegressor:
        """The unfitted forest for a number of predictors."""
        return RandomForestRegressor(
            self.n_trees,
            min_samples_leaf=self.min_leaf,
            max_features=max(1, round(self.max_features * n_columns)),
            random_state=seed,
        )

    def _column(self, j: int) -> tuple[Leaves, Array, Array]:
        """The forest of column j, and the distributions of all fitted rows."""
        if j not in self._columns:
            rest, n = np.delete(self.X_, j, axis=1), self.X_.shape[0]
            forest = self.forest(rest.shape[1], int(self._seeds[j]))
            target = split_target(self.X_[self.rows_, j])
            leaves = Leaves.grow(forest, rest[self.rows_], target, self._grown_groups)
            parts = []
            for begin in range(0, n, CHUNK_ROWS):
                chunk = np.arange(begin, min(begin + CHUNK_ROWS, n))
                place = np.where(np.isin(chunk, self.rows_), np.searchsorted(self.rows_, chunk), -1)
                parts.append(self._grid(j, leaves.weights(rest[chunk], place)))
            nodes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
            self._columns[j] = (leaves, nodes, weights)
        return self._columns[j]

    def _grid(self, j: int, share: Array) -> tuple[Array, Array]:
        """Nodes and weights from the shares (n, m) of the rows that the forest grew on."""
        x = self.X_[self.rows_, j]
        values, codes = np.unique(x, return_inverse=True)
        if values.size <= MAX_EXACT:
            member = np.eye(values.size)[codes]
            weights = (1 - SMOOTHING) * share @ member + SMOOTHING * member.mean(axis=0)
            return np.tile(values, (share.shape[0], 1)), weights
        nodes = weighted_quantiles(x, share, levels(self.n_nodes))
        return nodes, np.full(nodes.shape, 1 / self.n_nodes)


@dataclass(frozen=True)
class Leaves:
    """The leaves of a forest with the rows that fell into them when it grew."""

    forest: RandomForestRegressor
    offsets: Index
    grown: sparse.csr_matrix
    seen: Mask

    @classmethod
    def grow(
        cls,
        forest: RandomForestRegressor,
        X: Array,
        target: Array,
        groups: Index | None = None,
    ) -> Leaves:
        """Grow the forest; a table without columns has one leaf.

        A tree that has seen a row of a group has seen the whole group.
        """
        X = X if X.shape[1] else np.zeros((X.shape[0], 1))
        n = X.shape[0]
        if groups is None:
            samples = forest.fit(X, target).estimators_samples_
        else:
            samples = _grow_by_groups(forest, X, target, groups)
        counts = np.stack([np.bincount(s, minlength=n) for s in samples], axis=1)
        sizes = [tree.tree_.node_count for tree in forest.estimators_]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        leaves = (forest.apply(X) + offsets[:-1]).ravel()
        row = np.repeat(np.arange(n), counts.shape[1])
        inside = sparse.csr_matrix(
            (counts.ravel().astype(float), (leaves, row)), shape=(offsets[-1], n)
        )
        inside.eliminate_zeros()
        total = np.asarray(inside.sum(axis=1)).ravel()
        scaled = sparse.diags_array(1 / np.maximum(total, 1.0)) @ inside
        return cls(forest, offsets, sparse.csr_matrix(scaled), counts > 0)

    def weights(self, X: Array, place: Index | None = None) -> Array:
        """Weights (m, n) of the grown rows in the distribution of each row of X.

        ``place`` is the position of each row among the grown rows, -1 for others; trees that have
        seen a row are not used for it.
        """
        X = X if X.shape[1] else np.zeros((X.shape[0], 1))
        m, n_trees = X.shape[0], self.offsets.size - 1
        used = np.ones((m, n_trees))
        if place is not None:
            used[place >= 0] = ~self.seen[place[place >= 0]]
        leaves = (self.forest.apply(X) + self.offsets[:-1]).ravel()
        row = np.repeat(np.arange(m), n_trees)
        outside = sparse.csr_matrix((used.ravel(), (row, leaves)), shape=(m, self.offsets[-1]))
        found = (outside @ self.grown).toarray()
        total = found.sum(axis=1, keepdims=True)  # zero if every tree has seen the row
        even = np.full(found.shape, 1 / found.shape[1])
        return np.where(total > 0, found / np.where(total > 0, total, 1.0), even)


def _grow_by_groups(
    forest: RandomForestRegressor, X: Array, target: Array, groups: Index
) -> list[Index]:
    """Grow every tree on a bootstrap sample of whole groups; returns the rows of each sample."""
    rng = np.random.default_rng(forest.random_state)
    samples = [bootstrap_rows(groups.size, groups, rng) for _ in range(forest.n_estimators)]
    forest.set_params(bootstrap=False, n_estimators=1, warm_start=True)
    for count, rows in enumerate(samples, start=1):
        forest.set_params(n_estimators=count).fit(X[rows], target[rows])
    return samples


def split_target(x: Array) -> Array:
    """What the trees predict: normal scores of a column, or its values as indicators."""
    values, codes = np.unique(x, return_inverse=True)
    if 2 < values.size <= MAX_CATEGORIES:
        return np.eye(values.size)[codes]
    return rank_scores(x)


def weighted_quantiles(x: Array, weights: Array, level: Array) -> Array:
    """Quantiles of x under each row of weights (m, n), at the levels; always values of x."""
    order = np.argsort(x, kind="stable")
    m = weights.shape[0]
    cumulated = np.cumsum(weights[:, order], axis=1)
    cumulated /= cumulated[:, -1:]
    # One sorted array for all rows: row i takes the interval (i, i + 1].
    ladder = (cumulated + np.arange(m)[:, None]).ravel()
    place = np.searchsorted(ladder, (level + np.arange(m)[:, None]).ravel()).reshape(m, -1)
    place = np.clip(place - np.arange(m)[:, None] * x.size, 0, x.size - 1)
    return np.asarray(x[order][place])
