r"""The knockoff filter: from signed statistics W to discoveries.

Under the null hypothesis the sign of :math:`W_j` is a fair coin, so the statistics below
:math:`-t` count the false ones above t. With V false among R selected, the filter with offset 1
(knockoff+) keeps :math:`E[V / R]` at the level, the filter with offset 0 only
:math:`E[V / (R + 1/\text{fdr})]`. The e-values of both carry the full promise through e-BH.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._parameters import check_fraction
from sobolev._typing import Array, Index, Mask

# Relative slack of the levels of e-BH: rounding does not decide what stands on the boundary.
_SLACK = 1e-12


def knockoff_threshold(W: Any, fdr: float, offset: int = 1) -> float:
    r"""The least t at which the estimated share of false discoveries is at most ``fdr``.

    .. math::

        T = \min \left\{ t \in \{|W_j|\} \setminus \{0\} :
            \frac{\text{offset} + \#\{W_j \le -t\}}{\#\{W_j \ge t\}} \le \text{fdr} \right\}

    Parameters
    ----------
    W : array-like of shape (p,)
        Importance of each column less that of its knockoff.
    fdr : float
        The level, in (0, 1].
    offset : {0, 1}, default=1
        1 is knockoff+, which controls the false discovery rate. 0 does not: with nothing to find
        it selects in half of all cases or more, at any level.

    Returns
    -------
    float
        Select ``W >= T``; infinite if no t will do.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import knockoff_threshold
    >>> knockoff_threshold([5, 4, 3, 2, -1], fdr=0.25)
    2.0
    >>> knockoff_threshold([5, 4, 3, 2, -1], fdr=0.2)
    inf
    """
    check_fraction("fdr", fdr, low=0.0, high=1.0)
    t, shares = _estimated_shares(_check_statistics(W), offset)
    allowed = t[shares <= fdr]
    return float(allowed[0]) if allowed.size else np.inf


def knockoff_qvalues(W: Any, offset: int = 1) -> Array:
    """The smallest false discovery rate at which each column is selected.

    Parameters
    ----------
    W : array-like of shape (p,)
        Importance of each column less that of its knockoff.
    offset : {0, 1}, default=1
        1 is knockoff+.

    Returns
    -------
    array of shape (p,)
        For every ``fdr < 1``, ``q <= fdr`` exactly where ``W >= knockoff_threshold(W, fdr)``. One
        where W is negative or zero.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import knockoff_qvalues
    >>> knockoff_qvalues([5, 4, -3, 2, 1])
    array([0.5, 0.5, 1. , 0.5, 0.5])
    """
    W = _check_statistics(W)
    t, shares = _estimated_shares(W, offset)
    q = np.ones(W.size)
    positive = W > 0
    if positive.any():
        least = np.minimum.accumulate(shares)
        q[positive] = np.minimum(least[np.searchsorted(t, W[positive])], 1.0)
    return q


def knockoff_evalues(W: Any, fdr: float, offset: int = 1) -> Array:
    r"""The e-values of the knockoff filter, which may be averaged over draws.

    .. math:: e_j = p \, \frac{1\{W_j \ge T\}}{1 + \#\{W_k \le -T\}}

    with T the threshold at level ``fdr``. The expectations of the null ones sum to at most p for
    either offset and any ``fdr`` fixed beforehand: these only decide where to stop, and the
    denominator has its one whatever they are. For a single draw :func:`ebh` at the same level
    selects what the filter with offset 1 selects.

    Parameters
    ----------
    W : array-like of shape (p,)
        Importance of each column less that of its knockoff.
    fdr : float
        The level of the threshold, in (0, 1].
    offset : {0, 1}, default=1
        Of the threshold. With 0 it is never larger: more e-values are positive, but none that is
        positive with 1 is larger.

    Returns
    -------
    array of shape (p,)
        All zero if the threshold is infinite.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import knockoff_evalues
    >>> knockoff_evalues([5, 4, 3, 2, -1], fdr=0.25)
    array([5., 5., 5., 5., 0.])
    """
    W = _check_statistics(W)
    T = knockoff_threshold(W, fdr, offset)
    return W.size * (W >= T) / (1 + np.count_nonzero(W <= -T))


def ebh(evalues: Any, fdr: float) -> Mask:
    """Select by e-values, of any dependence, with a controlled false discovery rate.

    Parameters
    ----------
    evalues : array-like of shape (p,)
        Non-negative, of sum of expectations at most p over the true null hypotheses; averages of
        e-values are e-values.
    fdr : float
        The level, in (0, 1].

    Returns
    -------
    array of bool, shape (p,)
        The k largest, for the greatest k such that each of them is at least ``p / (k fdr)``.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import ebh
    >>> ebh([5, 5, 5, 5, 0], fdr=0.25)
    array([ True,  True,  True,  True, False])
    >>> ebh([5, 5, 5, 5, 0], fdr=0.2)
    array([False, False, False, False, False])
    """
    check_fraction("fdr", fdr, low=0.0, high=1.0)
    return _ebh_levels(_check_evalues(evalues)) <= fdr


def ebh_qvalues(evalues: Any) -> Array:
    """The smallest false discovery rate at which :func:`ebh` selects each hypothesis, at most one.

    The e-values must not depend on the level: those of :func:`knockoff_evalues` do through their
    threshold, so keep its ``fdr`` fixed when you read levels off here.

    Parameters
    ----------
    evalues : array-like of shape (p,)
        Non-negative.

    Returns
    -------
    array of shape (p,)
        For every ``fdr < 1``, ``q <= fdr`` exactly where ``ebh(evalues, fdr)``.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import ebh_qvalues
    >>> ebh_qvalues([5, 5, 5, 5, 0]).round(4)
    array([0.25, 0.25, 0.25, 0.25, 1.  ])
    """
    return np.minimum(_ebh_levels(_check_evalues(evalues)), 1.0)


def _estimated_shares(W: Array, offset: int) -> tuple[Array, Array]:
    """The candidates t, ascending, and the estimated share of false discoveries at each."""
    if offset not in (0, 1):
        raise ValueError(f"offset={offset!r} is unknown; use 1 (knockoff+) or 0.")
    t = np.unique(np.abs(W[W != 0]))
    n_above, n_below = _count_from(W[W > 0], t), _count_from(-W[W < 0], t)
    shares = np.full(t.size, np.inf)
    np.divide(offset + n_below, n_above, out=shares, where=n_above > 0)
    return t, shares


def _count_from(values: Array, t: Array) -> Index:
    """How many values are at least t."""
    return values.size - np.searchsorted(np.sort(values), t, side="left")


def _ebh_levels(evalues: Array) -> Array:
    """The smallest level at which each is selected, without the bound at one."""
    p = evalues.size
    order = np.argsort(-evalues, kind="stable")
    with np.errstate(divide="ignore"):
        level = p * (1 - _SLACK) / (np.arange(1, p + 1) * evalues[order])
    found = np.empty(p)
    found[order] = np.minimum.accumulate(level[::-1])[::-1]
    return found


def _vector(name: str, values: Any) -> Array:
    found = np.asarray(values, dtype=float)
    if found.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional; got the shape {found.shape}.")
    return found


def _check_statistics(W: Any) -> Array:
    W = _vector("W", W)
    if not np.isfinite(W).all():
        bad = np.flatnonzero(~np.isfinite(W))
        raise ValueError(
            f"W contains NaN or infinity at {bad[:5].tolist()}; leave these columns out."
        )
    return W


def _check_evalues(evalues: Any) -> Array:
    e = _vector("evalues", evalues)
    if np.isnan(e).any() or (e < 0).any():
        raise ValueError("evalues contains NaN or negative values; e-values are at least 0.")
    return e
