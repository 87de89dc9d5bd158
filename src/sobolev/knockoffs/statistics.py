r"""Signed statistics W of pairs of column and knockoff.

A statistic is valid if swapping a column with its knockoff changes the sign of its :math:`W_j` and
nothing else. That is so for any estimator here, by construction: before it is fitted each pair is
put in an order that does not depend on which of the two is the column (the smaller entry in the
first row where they differ comes first, then a coin is tossed), and both share one centre and
scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.linear_model import lars_path

from sobolev._parameters import check_option
from sobolev._random import RandomState, check_generator, seeded
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index, Mask
from sobolev.exceptions import ConvergenceWarning
from sobolev.inference.hrt import N_LANDMARKS, feature_importances
from sobolev.inference.tables import make_evaluator
from sobolev.knockoffs.groups import GroupsLike, group_labels
from sobolev.selection import take_rows
from sobolev.targets import TargetEncoder

# How importances become W.
CONTRASTS = {
    "difference": "difference",
    "swap": "difference",
    "signed_max": "signed_max",
    "lasso_path": "signed_max",
}
N_FOLDS = 5
# A path of the lasso that ends before this part of its first penalty is told.
SHORT_PATH = 0.01


@dataclass(frozen=True)
class Evaluation:
    """The statistics of one draw of knockoffs.

    Attributes
    ----------
    W : array of shape (n_groups,)
        One for each column, if there are no groups.
    importances : array of shape (2, p)
        Of the columns and of their knockoffs.
    model : estimator or None
        The last fit, to the arranged pairs; None for "lasso_path".
    """

    W: Array
    importances: Array
    model: Any


@dataclass(frozen=True)
class Pairs:
    """Columns beside their knockoffs, in an order that does not tell one from the other.

    Attributes
    ----------
    design : array of shape (n, 2 m)
        The m varying columns or their knockoffs, then their partners, in standard units.
    labels : array of int, shape (p,)
        The group of each column; groups keep together.
    flipped : array of bool, shape (p,)
        Where the knockoff comes first.
    varying : array of bool, shape (p,)
    same : array of bool, shape (n_groups,)
        Groups whose knockoffs equal them.
    """

    design: Array
    labels: Index
    flipped: Mask
    varying: Mask
    same: Mask

    @classmethod
    def arrange(cls, X: Array, X_knockoff: Array, labels: Index, rng: np.random.Generator) -> Pairs:
        """Order each pair by its values and a coin, and standardise it as one column."""
        n, p = X.shape
        first = _first_difference(X - X_knockoff, labels)
        coins = rng.integers(0, 2, first.size).astype(bool)
        flipped = ((first > 0) ^ coins)[labels]
        stacked = np.empty((2 * n, p))
        stacked[:n] = np.where(flipped, X_knockoff, X)
        stacked[n:] = np.where(flipped, X, X_knockoff)
        units = Standardizer.fit(stacked, np.full(2 * n, 0.5 / n))
        Z = units.transform(stacked)
        return cls(np.hstack([Z[:n], Z[n:]]), labels, flipped, units.varying, first == 0)

    @property
    def n_pairs(self) -> int:
        """How many columns vary."""
        return self.design.shape[1] // 2

    def units(self) -> list[Index]:
        """Positions among the varying columns of each group that has some."""
        labels = self.labels[self.varying]
        return [np.flatnonzero(labels == g) for g in np.unique(labels)]

    def restore(self, importances: Array) -> Array:
        """Importances of the design, (2 m,), as those of columns and knockoffs, (2, p)."""
        found = np.zeros((2, self.varying.size))
        found[:, self.varying] = importances.reshape(2, -1)
        return np.where(self.flipped, found[::-1], found)


def knockoff_statistics(
    X: Any,
    X_knockoff: Any,
    y: Any,
    estimator: Any = None,
    statistic: str = "difference",
    *,
    groups: GroupsLike | None = None,
    random_state: RandomState = 0,
) -> Array:
    r"""The statistic W of each column: large where it matters more than its knockoff.

    With importances :math:`I_j` of the column and :math:`\tilde I_j` of the knockoff:

    - "difference": :math:`I_j - \tilde I_j`;
    - "signed_max": :math:`\max(I_j, \tilde I_j)\, \mathrm{sign}(I_j - \tilde I_j)`;
    - "lasso_path": the same, where the importance is the penalty at which the column enters the
      path of the lasso;
    - "swap": the difference of out-of-fold losses with the knockoff in the places of both and
      with the column in the places of both, for any predictor.

    Parameters
    ----------
    X, X_knockoff : array-like of shape (n, p)
    y : array-like of shape (n,)
    estimator : estimator or None, default=None
        With ``feature_importances_`` or ``coef_``, for "swap" with predictions; None is
        :class:`~sobolev.ConvexSIC` with 300 landmarks. Not for "lasso_path".
    statistic : {"difference", "signed_max", "lasso_path", "swap"}, default="difference"
    groups : mapping or sequence of sequences, optional
        Disjoint groups of columns, by position; importances are summed in each.
    random_state : int, Generator, RandomState or None, default=0
        For the coins, the folds and the open random states of the estimator.

    Returns
    -------
    array of shape (p,) or (n_groups,)
        Zero where column and knockoff are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs.statistics import knockoff_statistics
    >>> rng = np.random.default_rng(0)
    >>> X, X_knockoff = rng.standard_normal((2, 100, 3))
    >>> W = knockoff_statistics(X, X_knockoff, X[:, 1], statistic="lasso_path")
    >>> int(W.argmax())
    1
    """
    X, X_knockoff = np.asarray(X, dtype=float), np.asarray(X_knockoff, dtype=float)
    if X.ndim != 2 or X.shape != X_knockoff.shape:
        raise ValueError(
            f"X has the shape {X.shape} and X_knockoff {X_knockoff.shape}; pass two tables of one "
            "shape."
        )
    p = X.shape[1]
    labels = np.arange(p) if groups is None else group_labels(groups, p)
    rng = check_generator(random_state)
    return evaluate(X, X_knockoff, y, estimator, statistic, labels, rng).W


def evaluate(
    X: Array,
    X_knockoff: Array,
    y: Any,
    estimator: Any,
    statistic: str,
    labels: Index,
    rng: np.random.Generator,
) -> Evaluation:
    """Statistics, importances and model of one draw; see :func:`knockoff_statistics`."""
    check_statistic(statistic, estimator)
    pairs = Pairs.arrange(X, X_knockoff, labels, rng)
    model = None
    if pairs.n_pairs == 0:
        found = np.zeros(0)
    elif statistic == "lasso_path":
        found = entry_importances(pairs.design, y)
    else:
        model = _fresh(estimator, rng)
        if statistic == "swap":
            found = swap_importances(model, pairs.design, y, pairs.units(), rng)
        else:
            found = model_importances(model.fit(pairs.design, y), 2 * pairs.n_pairs)
    importances = pairs.restore(found)
    sums = np.stack([np.bincount(labels, side, pairs.same.size) for side in importances])
    W = signed_statistics(sums[0], sums[1], CONTRASTS[statistic])
    return Evaluation(np.where(pairs.same, 0.0, W), importances, model)


def signed_statistics(
    importances: Array, knockoff_importances: Array, contrast: str = "difference"
) -> Array:
    """W from the importances of columns and knockoffs.

    Parameters
    ----------
    importances, knockoff_importances : array of shape (p,)
    contrast : {"difference", "signed_max"}, default="difference"

    Returns
    -------
    array of shape (p,)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs.statistics import signed_statistics
    >>> signed_statistics(np.array([3.0, 1.0]), np.array([1.0, 2.0]), "signed_max")
    array([ 3., -2.])
    """
    check_option("contrast", contrast, ("difference", "signed_max"))
    difference = np.asarray(importances - knockoff_importances, dtype=float)
    if contrast == "difference":
        return difference
    return np.maximum(importances, knockoff_importances) * np.sign(difference)


def model_importances(model: Any, n_columns: int) -> Array:
    """Importances or absolute coefficients of a fitted model or pipeline."""
    try:
        found = feature_importances(model)
    except TypeError as error:
        raise TypeError(
            f"{type(model).__name__} has neither feature_importances_ nor coef_; use "
            'statistic="swap", which needs predictions only.'
        ) from error
    if found.shape != (n_columns,) or not np.isfinite(found).all():
        raise ValueError(
            f"{type(model).__name__} has {found.size} importances for {n_columns} columns, or some "
            'that are not finite; use statistic="swap", which needs predictions only.'
        )
    return found


def entry_importances(design: Array, y: Any) -> Array:
    """The penalty at which each column enters the path of the lasso; zero if it never does.

    Labels are taken as indicators; with several responses the largest penalty counts.

    Parameters
    ----------
    design : array of shape (n, d)
    y : array-like of shape (n,) or (n, q)

    Returns
    -------
    array of shape (d,)
    """
    responses = TargetEncoder().fit(y).transform(y)
    # Equal columns share their entry: beside its copy a column would end the path.
    different, position = np.unique(design, axis=1, return_inverse=True)
    different -= different.mean(axis=0)
    entries = np.max([_entries(different, response) for response in responses.T], axis=0)
    return np.asarray(entries[np.ravel(position)])


def _entries(design: Array, response: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SklearnConvergenceWarning)  # judged below
        alphas, _, path = lars_path(
            design, response - response.mean(), method="lasso", max_iter=2 * min(design.shape)
        )
    if alphas[-1] > SHORT_PATH * alphas[0]:
        warnings.warn(
            f"the path of the lasso stopped at {alphas[-1] / alphas[0]:.2g} of its first penalty: "
            "columns are nearly collinear. The others count as never entering; use LassoCV with "
            'statistic="difference".',
            ConvergenceWarning,
            stacklevel=2,
        )
    entered = path != 0
    # The coefficients at the knot where a column enters are still zero.
    step = np.maximum(entered.argmax(axis=1) - 1, 0)
    return np.where(entered.any(axis=1), alphas[step], 0.0)


def swap_importances(
    model: Any, design: Array, y: Any, units: Sequence[Index], rng: np.random.Generator
) -> Array:
    """The loss on unseen rows when the partner stands in for a column, less the loss as it is.

    Parameters
    ----------
    model : estimator
        Regressor (squared error), classifier (log loss) or SIC (minus the risk).
    design : array of shape (n, 2 m)
        Pairs are column j and column m + j.
    y : array-like of shape (n,)
    units : sequence of arrays of int
        Positions below m that are replaced together and share the increase equally.
    rng : numpy.random.Generator

    Returns
    -------
    array of shape (2 m,)
    """
    n, m = design.shape[0], design.shape[1] // 2
    if is_classifier(model):
        labels, counts = np.unique(np.asarray(y), return_counts=True)
        if counts.min() < 2:
            raise ValueError(
                f'y holds {labels[counts.argmin()].item()!r} only once; statistic="swap" needs '
                "two rows or more of each label."
            )
    folds = _folds(y, n, rng)
    total = np.zeros(2 * m)
    for k in range(int(folds.max()) + 1):
        test = folds == k
        held_out = design[test]
        model.fit(design[~test], take_rows(y, ~test))
        evaluator = make_evaluator(model, held_out, take_rows(y, test), "risk")
        for unit in units:
            both = np.concatenate([unit, unit + m])
            one, other = held_out[:, unit], held_out[:, unit + m]
            versions = [[one, other], [other, other], [one, one]]
            nodes = np.stack([np.hstack(version) for version in versions], axis=1)
            as_is, *replaced = evaluator.each(both, nodes).sum(axis=0) / (n * unit.size)
            total[unit] += as_is - replaced[0]
            total[unit + m] += as_is - replaced[1]
    return total


def check_statistic(statistic: str, estimator: Any) -> None:
    """A known name, and no estimator where none is used."""
    check_option("statistic", statistic, CONTRASTS)
    if statistic == "lasso_path" and estimator is not None:
        raise ValueError(
            'statistic="lasso_path" fits the lasso itself; leave estimator out, or use another '
            "statistic."
        )


def _first_difference(difference: Array, labels: Index) -> Array:
    """The first difference of each group that is not zero, along the rows; zero if none is."""
    first = np.zeros(int(labels.max()) + 1)
    for g in range(first.size):
        values = difference[:, labels == g].ravel()
        first[g] = values[np.argmax(values != 0)]
    return first


def _fresh(estimator: Any, rng: np.random.Generator) -> Any:
    from sobolev.convex import ConvexSIC

    return seeded(ConvexSIC(n_components=N_LANDMARKS) if estimator is None else estimator, rng)


def _folds(y: Any, n: int, rng: np.random.Generator) -> Index:
    """Fold of each row, dealt out along the sorted response, in random order among equals."""
    order = rng.permutation(n)
    values = np.asarray(y)
    if values.ndim == 1:
        codes = np.unique(values, return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % min(N_FOLDS, n // 2)
    return folds
