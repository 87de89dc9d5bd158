"""Missing cells, drawn from the conditional distributions of their columns.

The cells are filled with draws of the marginal distributions first. Then, a few times, the missing
cells of each column are drawn again given the other columns, by a regression that is fitted to the
rows in which the column is not missing. Further predictors, such as the response, take part: a draw
that ignores the response weakens the dependence between it and the column, and leaves what the
column explains to its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import MAX_CATEGORIES, bootstrap_rows
from sobolev.criterion import disjoint_groups
from sobolev.targets import TargetEncoder

N_SWEEPS = 5
# Number of predictors of a column, those with the largest correlations.
MAX_PREDICTORS = 50
# A missing category is that of one of so many rows with similar predictions.
N_DONORS = 5
# Ridge penalties relative to the number of rows.
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)


def completions(
    X: Array,
    y: Any,
    generators: Sequence[np.random.Generator],
    *,
    sets: Sequence[Index] = (),
    groups: Index | None = None,
) -> list[Array]:
    """The table with draws in the place of missing cells, once for each generator.

    Parameters
    ----------
    X, groups
        As in :func:`completed`.
    y : array, DataFrame or None
        Response that was read before: floats are numbers, all else is labels. It is a predictor.
    generators : sequence of numpy.random.Generator
    sets : sequence of array of int
        Columns that are drawn together if they are missing together.
    """
    beside = None if y is None else TargetEncoder("typed", basis="auto").fit(y).transform(y)
    gaps = np.isnan(X)
    whole = [own for own in sets if (gaps[:, own] == gaps[:, own[:1]]).all()]
    return [completed(X, rng, sets=whole, beside=beside, groups=groups) for rng in generators]


def completed(
    X: Array,
    rng: np.random.Generator,
    *,
    sets: Sequence[Index] = (),
    beside: Array | None = None,
    groups: Index | None = None,
    n_sweeps: int = N_SWEEPS,
) -> Array:
    """The table with a draw in the place of every missing cell.

    Parameters
    ----------
    X : array of shape (n, d)
        Numbers, with NaN for missing cells. Every column has some numbers.
    rng : numpy.random.Generator
    sets : sequence of array of int
        Columns that are drawn together, such as the one-hot columns of a category; they are missing
        in the same rows.
    beside : array of shape (n, k), optional
        Further predictors without missing cells.
    groups : array of int, shape (n,), optional
        Number of the subject of each row, as in :meth:`Conditional.fit_validated`.
    n_sweeps : int, default=5
        Number of times that the cells are drawn again.

    Returns
    -------
    array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals.completing import completed
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(200)
    >>> X = np.column_stack([x, x + 0.1 * rng.standard_normal(200)])
    >>> X[:20, 1] = np.nan
    >>> filled = completed(X, rng)
    >>> bool(np.abs(filled[:20, 1] - x[:20]).max() < 0.5)
    True
    """
    gaps = np.isnan(X)
    if not gaps.any():
        return X
    holes = [unit for unit in _units(X.shape[1], sets) if gaps[:, unit[0]].any()]
    filled = X.copy()
    for unit in holes:
        missing = gaps[:, unit[0]]
        seen = np.flatnonzero(~missing)
        filled[np.ix_(missing, unit)] = X[np.ix_(rng.choice(seen, missing.sum()), unit)]
    for _ in range(n_sweeps):
        for unit in holes:
            rest = np.delete(filled, unit, axis=1)
            rest = _standard(rest if beside is None else np.column_stack([rest, beside]))
            missing = gaps[:, unit[0]]
            filled[np.ix_(missing, unit)] = _draw(filled[:, unit], missing, rest, groups, rng)
    return filled


def _standard(X: Array) -> Array:
    scale = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def sets_of(feature_groups: Any, names: Sequence[str]) -> list[Index]:
    """The user's groups of several columns."""
    groups = {} if feature_groups is None else disjoint_groups(feature_groups, names)
    return [columns for columns in groups.values() if columns.size > 1]


def _units(d: int, sets: Sequence[Index]) -> list[Index]:
    inside = set(np.concatenate(sets).tolist()) if sets else set()
    alone = [np.array([j]) for j in range(d) if j not in inside]
    return [*sets, *alone]


def _draw(
    unit: Array, gaps: Mask, rest: Array, groups: Index | None, rng: np.random.Generator
) -> Array:
    """Draws for the missing rows of a unit (n, c), given predictors (n, k) in standard units.

    The regression is fitted to a bootstrap sample of the rows that are not missing, so that draws
    differ as much as it is uncertain. A column with many values gets its prediction plus a residual
    of another row, other units the values of a row with a similar prediction.
    """
    seen = np.flatnonzero(~gaps)
    sample = seen[bootstrap_rows(seen.size, None if groups is None else groups[seen], rng)]
    target, scale = unit - unit[seen].mean(axis=0), unit[seen].std(axis=0)
    target = target / np.where(scale > 0, scale, 1.0)
    strength = np.abs(rest[seen].T @ target[seen]).max(axis=1)
    used = rest[:, np.sort(np.argsort(-strength, kind="stable")[:MAX_PREDICTORS])]
    beta, errors = ridge_coefficients(used[sample], target[sample])
    predicted = np.column_stack([np.ones(len(used)), used]) @ beta
    missing = predicted[gaps]
    if unit.shape[1] == 1 and np.unique(unit[seen]).size > MAX_CATEGORIES:
        drawn = missing + errors[rng.integers(len(errors), size=(len(missing),))]
        return np.asarray(unit[seen].mean(axis=0) + drawn * scale)
    _, near = cKDTree(predicted[seen]).query(missing, k=min(N_DONORS, seen.size))
    donors = np.asarray(near).reshape(len(missing), -1)
    pick = rng.integers(donors.shape[1], size=(len(missing),))
    return np.asarray(unit[seen[donors[np.arange(len(missing)), pick]]])


def ridge_coefficients(X: Array, Y: Array) -> tuple[Array, Array]:
    """Coefficients (k + 1, c), the intercept first, and leave-one-out errors (n, c)."""
    n = X.shape[0]
    mean_x, mean_y = X.mean(axis=0), Y.mean(axis=0)
    U, s, Vt = np.linalg.svd(X - mean_x, full_matrices=False)
    rotated, best = U.T @ (Y - mean_y), np.inf
    beta, errors = np.zeros((X.shape[1] + 1, Y.shape[1])), Y - mean_y
    for penalty in PENALTIES:
        shrunk = s**2 / (s**2 + penalty * n)
        room = 1 - 1 / n - U**2 @ shrunk
        left = (Y - mean_y - U @ (shrunk[:, None] * rotated)) / np.maximum(room, 1e-3)[:, None]
        size = float(np.mean(left**2))
        if size < best:
            best, errors = size, left
            slopes = Vt.T @ ((s / (s**2 + penalty * n))[:, None] * rotated)
            beta = np.vstack([mean_y - mean_x @ slopes, slopes])
    return beta, errors
