"""Responses with a known answer, planted on the columns of a table.

The columns are those of a real table, so that nobody designed their dependence; the response is a
known function of a few of them plus normal noise, so that the truth is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from sobolev._parameters import check_option
from sobolev._typing import Array, Index

# Shapes of the signal. "noise" has none.
SHAPES = ("additive", "product", "threshold")
KINDS = (*SHAPES, "noise")
N_ACTIVE = 4
SIGNAL_TO_NOISE = 2.0


@dataclass(frozen=True)
class Planted:
    """A response that was planted on the columns of a table.

    Attributes
    ----------
    kind : str
        Shape of the signal, one of ``KINDS``.
    y : array of shape (n,)
    active : array of int
        Positions of the columns that the response depends on.
    """

    kind: str
    y: Array
    active: Index


def plant(
    X: Array,
    kind: str,
    rng: np.random.Generator,
    *,
    n_active: int = N_ACTIVE,
    signal_to_noise: float = SIGNAL_TO_NOISE,
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
    if kind == "noise":
        return Planted(kind, noise, np.zeros(0, dtype=np.intp))
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    active = rng.choice(varying, min(n_active, varying.size), replace=False)
    scale = _normal_scores if rng.random() < 0.5 else _standard
    Z = np.column_stack([scale(X[:, j]) for j in active])
    signal = _standard(np.sum(_terms(Z, kind, rng), axis=0))
    return Planted(kind, np.sqrt(signal_to_noise) * signal + noise, active)


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
    return _standard(np.asarray(ndtri((rankdata(z) - 0.5) / z.size)))
