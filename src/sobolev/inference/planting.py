"""Responses with a known answer, planted on the columns of a table.

The columns are those of a real table, so that nobody designed their dependence; the response is a
known function of a few of them plus normal noise, so that the truth is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from sobolev._parameters import check_option
from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index
from sobolev.validation import take_rows

# Shapes of the signal. "noise" has none.
SHAPES = ("additive", "product", "threshold")
KINDS = (*SHAPES, "noise")
N_ACTIVE = 4
SIGNAL_TO_NOISE = 2.0
# The ratio of a real response is rounded to one of these.
RATIOS = (0.5, 1.0, 2.0, 4.0)
# Rows and folds that are enough to estimate it.
RATIO_ROWS, RATIO_FOLDS = 1000, 5


@dataclass(frozen=True)
class Planted:
    """A response that was planted on the columns of a table.

    Attributes
    ----------
    kind : str
        Shape of the signal, one of ``KINDS``, or "permuted".
    y : array of shape (n,)
        A DataFrame if several real responses were permuted.
    active : array of int
        Positions of the columns that the response depends on.
    """

    kind: str
    y: Any
    active: Index


def plant(
    X: Array,
    kind: str,
    rng: np.random.Generator,
    *,
    n_active: int = N_ACTIVE,
    signal_to_noise: float = SIGNAL_TO_NOISE,
    groups: Index | None = None,
) -> Planted:
    """Plant a response on the columns of X.

    The active columns are drawn at random among the columns that vary. They enter as normal scores
    of their ranks or in standard units, with equal probability.

    Parameters
    ----------
    X : array of shape (n, d)
    kind : {"additive", "product", "threshold", "noise"}
        "additive" sums waves and lines of single columns, "product" sums products of two columns
        with main effects, "threshold" sums steps, and "noise" does not depend on any column.
    rng : numpy.random.Generator
    n_active : int, default=4
        Number of active columns.
    signal_to_noise : float, default=2.0
        Variance of the signal over the variance of the noise.
    groups : array of int, shape (n,), optional
        Number of the subject of each row. Half the variance of the noise is then between subjects.

    Returns
    -------
    Planted

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.planting import plant
    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> planted = plant(X, "additive", np.random.default_rng(1))
    >>> planted.y.shape, planted.active.size
    ((200,), 4)
    """
    check_option("kind", kind, KINDS)
    noise = rng.standard_normal((X.shape[0],))
    if groups is not None:
        noise = np.sqrt(0.5) * (noise + rng.standard_normal((int(groups.max()) + 1,))[groups])
    if kind == "noise":
        return Planted(kind, noise, np.zeros(0, dtype=np.intp))
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    active = rng.choice(varying, min(n_active, varying.size), replace=False)
    scale = _normal_scores if rng.random() < 0.5 else _standard
    Z = np.column_stack([scale(X[:, j]) for j in active])
    signal = _standard(np.sum(_terms(Z, kind, rng), axis=0))
    return Planted(kind, np.sqrt(signal_to_noise) * signal + noise, active)


def beside(planted: Planted, X: Array, adjusted: Index, rng: np.random.Generator) -> Planted:
    """A response planted on the other columns, with an effect of the covariates added.

    Parameters
    ----------
    planted : Planted
        Its active columns are counted without the covariates.
    X : array of shape (n, d)
        All columns.
    adjusted : array of int
        Positions of the covariates.
    rng : numpy.random.Generator
        Source of the weights of the covariates. Their sum has variance one, as the noise has.

    Returns
    -------
    Planted
        Its active columns are counted among all columns.
    """
    Z = np.column_stack([_standard(X[:, j]) for j in adjusted])
    effect = _standard(Z @ rng.standard_normal(adjusted.size))
    others = np.setdiff1d(np.arange(X.shape[1]), adjusted)
    return replace(planted, y=planted.y + effect, active=others[planted.active])


def permute(y: Any, rng: np.random.Generator) -> Planted:
    """A real response with its rows in random order, so that it depends on no column."""
    return Planted("permuted", take_rows(y, rng.permutation(len(y))), np.zeros(0, dtype=np.intp))


def with_values_of(planted: Planted, y: Any) -> Planted:
    """The planted response with the values of y, in the order of the planted values.

    Labels are planted on labels and heavy tails on heavy tails. A function of the planted response
    depends on no further column, so the truth is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.planting import Planted, with_values_of
    >>> planted = Planted("additive", np.array([0.3, -1.0, 0.9]), np.array([0]))
    >>> with_values_of(planted, np.array(["b", "a", "b"])).y.tolist()
    ['b', 'a', 'b']
    """
    codes, values = pd.factorize(np.asarray(y), sort=True)
    ranks = rankdata(planted.y, method="ordinal").astype(np.intp) - 1  # floats since scipy 1.18
    return replace(planted, y=np.asarray(values)[np.sort(codes)[ranks]])


def signal_to_noise_of(X: Array, y: Any, rng: np.random.Generator) -> float:
    """The signal-to-noise ratio of a real response, rounded to one of ``RATIOS``.

    It is R² / (1 - R²) with the cross-validated R² of ridge regression or of a random forest,
    whichever is larger. Labels count as indicators of their classes.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,) or DataFrame
    rng : numpy.random.Generator

    Returns
    -------
    float
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.model_selection import cross_val_predict

    rows = rng.permutation(len(X))[:RATIO_ROWS]
    columns = _numbers(take_rows(y, rows))
    if len(rows) < 2 * RATIO_FOLDS or not columns.shape[1]:
        return SIGNAL_TO_NOISE
    Z = np.column_stack([_standard(column) for column in X[rows].T])
    response = columns if columns.shape[1] > 1 else columns[:, 0]
    forest = RandomForestRegressor(
        100,
        min_samples_leaf=3,
        max_features=int(np.clip(Z.shape[1] // 3, 1, 100)),
        random_state=int(rng.integers(2**31)),
    )
    explained = 0.0
    for model in (RidgeCV(np.geomspace(1e-2, 1e5, 15)), forest):
        found = cross_val_predict(model, Z, response, cv=RATIO_FOLDS).reshape(columns.shape)
        explained = max(explained, float(1 - np.mean((columns - found) ** 2)))
    ratio = explained / max(1 - explained, 1e-9)
    return min(RATIOS, key=lambda known: abs(np.log(known / max(ratio, 1e-9))))


def _numbers(y: Any) -> Array:
    """Responses as columns in standard units, labels as indicators; constant ones are left out."""
    frame = pd.get_dummies(pd.DataFrame(y).infer_objects(), dtype=float)
    columns = frame.to_numpy(dtype=float)
    return np.apply_along_axis(_standard, 0, columns[:, np.ptp(columns, axis=0) > 0])


def _terms(Z: Array, kind: str, rng: np.random.Generator) -> list[Array]:
    """The terms of the signal, one or more for each active column."""
    columns = list(Z.T)
    if kind == "threshold":
        return [_step(z, rng.uniform(0.3, 0.7)) for z in columns]
    if kind == "additive":
        return [_standard(z if k % 2 else np.sin(1.5 * z) + 0.3 * z) for k, z in enumerate(columns)]
    main = [_standard(z) / (1 + k % 2) for k, z in enumerate(columns)]
    products = [a * b for a, b in zip(columns[::2], columns[1::2], strict=False)]
    return main + [_standard(product) for product in products]


def _step(z: Array, cut: float) -> Array:
    """A step at a quantile, or the nearest one that both sides reach."""
    above = z > np.quantile(z, cut)
    return _standard(np.asarray(above if above.any() else z == z.max(), dtype=float))


def _standard(z: Array) -> Array:
    centred = z - z.mean()
    return np.asarray(centred / max(float(centred.std()), 1e-300))


def _normal_scores(z: Array) -> Array:
    return _standard(rank_scores(z))
