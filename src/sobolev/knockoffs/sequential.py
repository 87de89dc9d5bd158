r"""Sequential knockoffs: drawn column by column, each from a model that suits the column.

Column j is modelled given the other columns and the knockoffs drawn before it, and its knockoff is
a draw from that model (Candès et al., 2018, sequential conditional independent pairs). By default
all models use the same ridge penalty, so that one matrix inverse is enough for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from sobolev._parameters import check_count, check_number
from sobolev._random import seeded
from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES, fold_numbers
from sobolev.conditionals.categorical import fitted_probabilities
from sobolev.conditionals.ridge import RidgeColumns
from sobolev.knockoffs._smoothers import Smoother, class_probabilities, make_design
from sobolev.knockoffs.base import KnockoffSampler

# Fraction of the best penalty for prediction: bias harms knockoffs more than variance does.
PENALTY_SHARE = 0.3


@dataclass(eq=False, repr=False)
class SequentialKnockoffs(KnockoffSampler):
    """Knockoffs for binary, categorical and continuous columns, with any scikit-learn model.

    The columns are processed in random order. The knockoff of a column with few values takes the
    same values with about the same frequencies. The knockoff of any other column is the predicted
    mean plus the residual of a random row.

    Parameters
    ----------
    regressor : estimator or None, default=None
        Model of a continuous column given the others; None is ridge regression.
    classifier : estimator or None, default=None
        Model of a column with few values given the others, with ``predict_proba``; None is logistic
        regression with a ridge penalty.
    penalty : float or "auto", default="auto"
        Penalty of the default models divided by the number of rows, for standardised columns. A
        smaller penalty makes the knockoffs more similar to the columns, which costs power; a larger
        one loses dependence between columns, which costs false discoveries. "auto" is 0.3 times the
        lower quartile of the penalties that predict the columns best.
    max_categories : int, default=10
        Largest number of distinct values of a column that is treated as categorical.
    n_folds : int, default=5
        Number of folds for ``regressor`` and ``classifier``, which predict each fold from a fit to
        the others. The default models are fitted to all rows.

    Attributes
    ----------
    is_category_ : array of bool, shape (p,)
        True for columns that are treated as categorical.
    penalty_ : float
        Penalty of the default models divided by the number of rows.

    Notes
    -----
    On the 0/1 mutations of the HIV data (3TC and APV) with simulated linear responses and marginal
    correlations as statistic, the false discovery proportion at level 0.2 was 0.11 ± 0.07 and
    0.07 ± 0.03 with power 0.03 and 0.19 (Gaussian knockoffs: 0.43 ± 0.04 and 0.48 ± 0.02, power
    0.82 and 0.91; ten responses each). With a lasso it was 0.13 ± 0.02 and 0.10 ± 0.01, power 0.93
    and 0.98 (Gaussian: 0.16 ± 0.02 and 0.15 ± 0.01, power 0.97 and 1.00). A statistic that nearly
    interpolates can exceed the level: with a weakly penalised lasso it was 0.32 ± 0.03 and
    0.14 ± 0.03 (Gaussian: 0.17 ± 0.02 and 0.14 ± 0.02).

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs.sequential import SequentialKnockoffs
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 100), rng.standard_normal(100)])
    >>> X_knockoff = SequentialKnockoffs().fit(X).sample(random_state=0)
    >>> np.unique(X_knockoff[:, 0])
    array([0., 1.])
    """

    regressor: Any = None
    classifier: Any = None
    penalty: float | str = "auto"
    max_categories: int = MAX_CATEGORIES
    n_folds: int = 5

    def _fit(self, X: Array) -> None:
        check_count("max_categories", self.max_categories)
        check_count("n_folds", self.n_folds)
        if self.n_folds < 2:
            raise ValueError("n_folds=1 leaves no rows for the fit; use 2 or more.")
        if self.classifier is not None and not hasattr(self.classifier, "predict_proba"):
            raise TypeError(
                f"classifier={self.classifier!r} has no predict_proba; use one that has."
            )
        counts = np.array([np.unique(column).size for column in X.T])
        self.is_category_ = np.zeros(self.n_features_in_, dtype=bool)
        self.is_category_[self.varying_] = counts <= self.max_categories
        self.penalty_ = self._resolve_penalty(X)
        self._X = X

    def _resolve_penalty(self, X: Array) -> float:
        if isinstance(self.penalty, str):
            if self.penalty != "auto":
                raise ValueError(f'penalty={self.penalty!r} is unknown; use "auto" or a number.')
            best = (
                np.quantile(RidgeColumns.fit(X, stretch=False).penalties, 0.25, method="lower")
                / X.shape[0]
            )
            return float(PENALTY_SHARE * best)
        check_number("penalty", self.penalty, positive=True)
        return float(self.penalty)

    def _sample(self, rng: np.random.Generator) -> Array:
        X = self._X
        codes = [
            _Code.of(x, bool(c)) for x, c in zip(X.T, self.is_category_[self.varying_], strict=True)
        ]
        models = [self.regressor if code.values is None else self.classifier for code in codes]
        shared = any(model is None for model in models)
        blocks = [code.features(x) for code, x in zip(codes, X.T, strict=True)] if shared else []
        design = make_design(blocks, self.penalty_ * X.shape[0]) if shared else None
        folds = fold_numbers(X.shape[0], self.n_folds, rng)
        draw = np.empty_like(X)
        done: list[int] = []
        for j in rng.permutation(X.shape[1]).tolist():
            if models[j] is None:
                assert design is not None
                predicted = codes[j].smoothed(X[:, j], design.without(j))
            else:
                given = np.hstack([np.delete(X, j, axis=1), draw[:, done]])
                predicted = codes[j].held_out(X[:, j], seeded(models[j], rng), given, folds)
            draw[:, j] = codes[j].draw(X[:, j], predicted, rng)
            done.append(j)
            if design is not None:
                design.add(codes[j].features(draw[:, j]))
        return draw


@dataclass(frozen=True)
class _Code:
    """Encoding of a column: features for the models of other columns, prediction, draw.

    Attributes
    ----------
    values : array or None
        Distinct values of a categorical column, ascending; None for a continuous column.
    center, scale : array
        Mean and standard deviation of the features. These are an indicator of each value (of one
        value, if there are two), or the column itself.
    """

    values: Array | None
    center: Array
    scale: Array

    @classmethod
    def of(cls, x: Array, category: bool) -> _Code:
        """The encoding of a column."""
        values = np.unique(x) if category else None
        raw = _raw_features(x, values)
        return cls(values, raw.mean(axis=0), raw.std(axis=0))

    def features(self, x: Array) -> Array:
        """Features of the column or its knockoff, in the units of the column, with mean zero."""
        Z = (_raw_features(x, self.values) - self.center) / self.scale
        return np.asarray(Z - Z.mean(axis=0))

    def smoothed(self, x: Array, smooth: Smoother) -> Array:
        """Predicted mean or probabilities, by ridge regression on the columns of the smoother."""
        if self.values is None:
            return np.asarray(x.mean() + smooth(x - x.mean()))
        return class_probabilities(smooth, _raw_features(x, self.values))

    def held_out(self, x: Array, model: Any, given: Array, folds: Index) -> Array:
        """Predicted mean or probabilities of each fold, by the model fitted to the other folds."""
        if self.values is None:
            return np.asarray(cross_val_predict(model, given, x, cv=PredefinedSplit(folds)))
        labels = np.searchsorted(self.values, x)
        found = np.empty((x.size, self.values.size))
        for k in range(int(folds.max()) + 1):
            test = folds == k
            found[test] = fitted_probabilities(
                model, given[~test], labels[~test], given[test], self.values.size
            )
        return found

    def draw(self, x: Array, predicted: Array, rng: np.random.Generator) -> Array:
        """Draw a knockoff of the column from its predicted mean or probabilities."""
        if self.values is not None:
            return np.asarray(self.values[draw_categories(predicted, rng)])
        residuals = x - predicted
        residuals = residuals - residuals.mean()
        room, size = x.var() - predicted.var(), residuals.var()
        # Residuals of a fit to all rows are too small; rescale them so that the knockoff has the
        # variance of the column.
        scale = np.sqrt(room / size) if room > 0 and size > 0 else 1.0
        return np.asarray(predicted + scale * rng.permutation(residuals))


def _raw_features(x: Array, values: Array | None) -> Array:
    """Indicators of the values (of the larger one if there are two), or the column itself."""
    if values is None:
        return x[:, None]
    return (x[:, None] == (values[1:] if values.size == 2 else values)).astype(float)


def draw_categories(P: Array, rng: np.random.Generator) -> Index:
    """Draw a value for each row so that each value appears about as often as expected.

    The values are assigned one after the other to the rows without a value, by systematic sampling
    in random order: the number of rows that get a value is the sum of their probabilities, rounded
    up or down at random.

    Parameters
    ----------
    P : array of shape (n, L)
        Probabilities of the values in each row.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    array of int, shape (n,)
        Number of the value of each row.
    """
    n, n_values = P.shape
    found = np.full(n, n_values - 1, dtype=np.intp)
    rows = rng.permutation(n)
    for value in range(n_values - 1):
        rest = P[rows, value:].sum(axis=1)
        share = np.divide(P[rows, value], rest, out=np.zeros(rows.size), where=rest > 0)
        marks = np.floor(np.append(0.0, np.cumsum(share)) + rng.random())
        chosen = np.diff(marks) > 0
        found[rows[chosen]] = value
        rows = rows[~chosen]
    return found
