"""Matched knockoffs: values of other rows in which the columns have nearly the same prediction.

The knockoff of a column must depend on the other columns, and on the knockoffs drawn before it, as
the column does. Ridge regression predicts normal scores and squared scores of the column, so mean
and spread; the knockoff is the value of the column in a row with nearly the same predictions
(predictive mean matching). It is an observed value, whatever the distribution of the column, and
several columns are drawn together as they occur together, so that a square stays a square.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from sobolev._parameters import check_count, check_number
from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES
from sobolev.conditionals.joint import MAX_PATTERNS
from sobolev.conditionals.ridge import best_block_penalties
from sobolev.criterion import GroupsLike
from sobolev.knockoffs._smoothers import Smoother, class_probabilities, make_design
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.groups import group_labels
from sobolev.knockoffs.sequential import draw_categories

# Scale of squared scores among the predictors: their ridge penalty is 16 times that of the scores.
SQUARES = 0.25


@dataclass(eq=False, repr=False)
class MatchedKnockoffs(KnockoffSampler):
    """Knockoffs that are observed values, for columns of any type that depend in any way.

    The columns are processed in random order. Ridge regression on the other columns and on the
    knockoffs drawn before predicts the normal scores of a column and their squares. The knockoff is
    the value in one of the rows with the most similar predictions. A column with few values gets a
    draw from logistic regression.

    Parameters
    ----------
    feature_groups : list of lists or mapping, optional
        Disjoint groups of columns that are drawn and swapped together. Columns that determine each
        other, such as a column and its square, should be a group.
    n_neighbors : int, default=5
        Number of rows among which one is drawn.
    penalty : float or "auto", default="auto"
        Ridge penalty divided by the number of rows. "auto" is the median of the penalties that
        predict the columns best.

    Attributes
    ----------
    penalty_ : float
        Ridge penalty divided by the number of rows.

    References
    ----------
    R. J. A. Little (1988). Missing-data adjustments in large surveys. J. Bus. Econ. Stat. 6.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import MatchedKnockoffs
    >>> x = np.random.default_rng(0).standard_normal(200)
    >>> X = np.column_stack([x, x**2, np.roll(x, 1)])
    >>> X_knockoff = MatchedKnockoffs([[0, 1]]).fit(X).sample(random_state=0)
    >>> bool(np.all(X_knockoff[:, 1] == X_knockoff[:, 0] ** 2))
    True
    """

    feature_groups: GroupsLike | None = None
    n_neighbors: int = 5
    penalty: float | str = "auto"

    def _fit(self, X: Array) -> None:
        check_count("n_neighbors", self.n_neighbors)
        names = getattr(self, "feature_names_in_", None)
        labels = group_labels(self.feature_groups, self.n_features_in_, names)[self.varying_]
        self._units = [_Unit.of(X[:, labels == g], labels == g) for g in np.unique(labels)]
        self._X = X
        self.penalty_ = self._resolve_penalty()

    def _resolve_penalty(self) -> float:
        if isinstance(self.penalty, str):
            if self.penalty != "auto":
                raise ValueError(f'penalty={self.penalty!r} is unknown; use "auto" or a number.')
            if len(self._units) == 1:
                return 1.0
            best = best_block_penalties([unit.features for unit in self._units])
            return float(np.quantile(best, 0.5, method="lower")) / self._X.shape[0]
        check_number("penalty", self.penalty, positive=True)
        return float(self.penalty)

    def _sample(self, rng: np.random.Generator) -> Array:
        draw = np.empty_like(self._X)
        design = make_design(
            [unit.features for unit in self._units], self.penalty_ * self._X.shape[0]
        )
        for u in rng.permutation(len(self._units)).tolist():
            unit = self._units[u]
            rows = unit.draw(design.without(u), self.n_neighbors, rng)
            draw[:, unit.columns] = self._X[np.ix_(rows, unit.columns)]
            features = unit.features[rows]
            design.add(features - features.mean(axis=0))
        return draw


@dataclass(frozen=True)
class _Unit:
    """Columns that are drawn together.

    Attributes
    ----------
    columns : array of int
        Their positions.
    features : array of shape (n, m)
        What they are to the models of other columns: an indicator of each value of a column with
        few values, otherwise normal scores and their squares, with mean zero.
    targets : array of shape (n, t)
        What is predicted: an indicator of each distinct row of the columns (of the second, if there
        are two), if these are few, otherwise the features in standard units.
    first : array of int or None
        A row with each of the distinct rows, if these are few.
    """

    columns: Index
    features: Array
    targets: Array
    first: Index | None

    @classmethod
    def of(cls, own: Array, mask: Any) -> _Unit:
        """The unit of the columns under the mask."""
        columns = np.flatnonzero(mask)
        parts = [_features(x) for x in own.T]
        standard = np.hstack([Z for Z, _ in parts])
        features = standard * np.concatenate([scale for _, scale in parts])
        _, first, codes = np.unique(own, axis=0, return_index=True, return_inverse=True)
        if first.size > MAX_PATTERNS:
            return cls(columns, features, standard, None)
        indicators = np.eye(first.size)[codes.reshape(-1)]
        targets = indicators[:, 1:] if first.size == 2 else indicators
        return cls(columns, features, targets, np.asarray(first, dtype=np.intp))

    def draw(self, smooth: Smoother, n_neighbors: int, rng: np.random.Generator) -> Index:
        """For each row, the number of the row whose values become the knockoff."""
        if self.first is not None:
            return self.first[draw_categories(class_probabilities(smooth, self.targets), rng)]
        n = self.targets.shape[0]
        count = min(n_neighbors, n - 1)
        search = NearestNeighbors(n_neighbors=count).fit(smooth(self.targets))
        near = search.kneighbors(return_distance=False)  # without the row itself
        return np.asarray(near[np.arange(n), rng.integers(0, count, n)], dtype=np.intp)


def _features(x: Array) -> tuple[Array, Array]:
    """Features of a column in standard units, and their scales among the predictors."""
    values = np.unique(x)
    if values.size <= MAX_CATEGORIES:
        raw = (x[:, None] == (values[1:] if values.size == 2 else values)).astype(float)
        scale = np.ones(raw.shape[1])
    else:
        score = rank_scores(x)
        raw, scale = np.column_stack([score, score**2]), np.array([1.0, SQUARES])
    deviation = raw.std(axis=0)
    return (raw - raw.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0), scale
