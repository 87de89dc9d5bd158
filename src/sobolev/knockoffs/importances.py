"""Importances of columns and knockoffs: from a fitted model, the lasso path, or swaps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning
from sklearn.linear_model import lars_path

from sobolev._typing import Array, Index
from sobolev.critic import unwrapped
from sobolev.exceptions import ConvergenceWarning
from sobolev.targets import TargetEncoder
from sobolev.validation import take_rows

N_FOLDS = 5
# A lasso path that ends above this fraction of its first penalty raises a warning.
SHORT_PATH = 0.01


def model_importances(critic: Any, n_columns: int) -> Array:
    """Importances of a fitted critic, validated."""
    name = type(unwrapped(critic)).__name__
    try:
        found = np.asarray(critic.feature_importances_, dtype=float)
    except TypeError as error:
        raise TypeError(
            f"{name} has neither feature_importances_ nor coef_; use "
            'statistic="swap", which needs predictions only.'
        ) from error
    if found.shape != (n_columns,) or not np.isfinite(found).all():
        raise ValueError(
            f"{name} has {found.size} importances for {n_columns} columns, or importances that are "
            'not finite; use statistic="swap", which needs predictions only.'
        )
    return found


def entry_importances(
    design: Array, y: Any, weights: Array | None = None, covariates: Array | None = None
) -> Array:
    """The penalty at which each column enters the lasso path; zero if it never enters.

    Floats are numbers; all else is labels, which are encoded as indicators. With several responses
    the largest penalty is used.

    Parameters
    ----------
    design : array of shape (n, d)
        Columns and knockoffs.
    y : array-like of shape (n,) or (n, q)
        Responses.
    weights : array of shape (n,), optional
        Probabilities of the rows.
    covariates : array of shape (n, q), optional
        Columns that are not penalised: the path is that of the residuals of columns and responses
        on them.

    Returns
    -------
    array of shape (d,)
        Penalty of each column.
    """
    responses = TargetEncoder("typed").fit(y, weights).transform(y)
    # Equal columns share one entry: a column and its copy together would end the path.
    different, position = np.unique(design, axis=1, return_inverse=True)
    different -= np.average(different, axis=0, weights=weights)
    columns = [response - np.average(response, weights=weights) for response in responses.T]
    if weights is not None:
        root = np.sqrt(weights * weights.size)
        different, columns = root[:, None] * different, [root * column for column in columns]
    if covariates is not None and covariates.shape[1]:
        beside = covariates - np.average(covariates, axis=0, weights=weights)
        beside = beside if weights is None else root[:, None] * beside
        different = _residuals(different, beside)
        columns = [_residuals(column, beside) for column in columns]
    entries = np.max([_entries(different, column) for column in columns], axis=0)
    return np.asarray(entries[np.ravel(position)])


def _residuals(values: Array, columns: Array) -> Array:
    """What is left of the values after their least squares regression on the columns."""
    found: Array = values - columns @ np.linalg.lstsq(columns, values)[0]
    return found


def _entries(design: Array, response: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SklearnConvergenceWarning)  # checked below
        alphas, _, path = lars_path(
            design, response, method="lasso", max_iter=2 * min(design.shape)
        )
    if alphas[-1] > SHORT_PATH * alphas[0]:
        warnings.warn(
            f"the lasso path stopped at {alphas[-1] / alphas[0]:.2g} of its first penalty because "
            "columns are nearly collinear. Columns that had not entered count as never entering; "
            'use LassoCV with statistic="difference".',
            ConvergenceWarning,
            stacklevel=2,
        )
    entered = path != 0
    # The coefficients at the knot where a column enters are still zero.
    step = np.maximum(entered.argmax(axis=1) - 1, 0)
    return np.where(entered.any(axis=1), alphas[step], 0.0)


def swap_importances(
    critic: Any, design: Array, y: Any, units: Sequence[Index], rng: np.random.Generator
) -> Array:
    """The increase of the out-of-fold loss when a column is replaced by its partner.

    Parameters
    ----------
    critic : Critic
        Critic to fit. Its loss is minus the risk: the squared error of a regressor, the log loss of
        a classifier.
    design : array of shape (n, 2 m + q)
        Columns and knockoffs; column j and column m + j are a pair. The last q have no partner.
    y : array-like of shape (n,)
        Response.
    units : sequence of arrays of int
        Positions below m that are replaced together; the increase is divided equally among them.
        Each position is in one of the units.
    rng : numpy.random.Generator
        Generator for the folds.

    Returns
    -------
    array of shape (2 m,)
        Increase of the loss for each column of a pair.
    """
    n, m = design.shape[0], sum(unit.size for unit in units)
    _check_labels(critic, y)
    folds = _folds(y, n, rng)
    total = np.zeros(2 * m)
    for k in range(int(folds.max()) + 1):
        test = folds == k
        held_out = design[test]
        critic.fit_validated(design[~test], take_rows(y, ~test))
        evaluator = critic.evaluator(held_out, take_rows(y, test), "risk")
        for unit in units:
            both = np.concatenate([unit, unit + m])
            one, other = held_out[:, unit], held_out[:, unit + m]
            versions = [[one, other], [other, other], [one, one]]
            nodes = np.stack([np.hstack(version) for version in versions], axis=1)
            as_is, *replaced = evaluator.each(both, nodes).sum(axis=0) / (n * unit.size)
            total[unit] += as_is - replaced[0]
            total[unit + m] += as_is - replaced[1]
    return total


def _check_labels(critic: Any, y: Any) -> None:
    """Raise an error for a label with one row: it is unknown when that row is held out."""
    if not critic.reads_labels(y):
        return
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            f'y contains {labels[counts.argmin()].item()!r} only once; statistic="swap" needs '
            "at least two rows of each label. If y holds numbers, set "
            'target="regression" in the estimator.'
        )


def _folds(y: Any, n: int, rng: np.random.Generator) -> Index:
    """Fold of each row, stratified by the sorted response; ties are in random order."""
    order = rng.permutation(n)
    values = np.asarray(y)
    if values.ndim == 1:
        codes = np.unique(values, return_inverse=True)[1]
        order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(n, dtype=np.intp)
    folds[order] = np.arange(n) % min(N_FOLDS, n // 2)
    return folds
