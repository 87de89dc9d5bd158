r"""The knockoff filter: from signed statistics W to discoveries.

Under the null hypothesis the sign of :math:`W_j` is a fair coin toss, so the number of statistics
below :math:`-t` estimates the number of false discoveries above t. With V false discoveries among
R, the filter with offset 1 (knockoff+) controls :math:`E[V / R]`; the filter with offset 0, that of
Algorithm 5, only controls :math:`E[V / (R + 1/\text{fdr})]`. The e-values of both control
:math:`E[V / R]` through e-BH.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sobolev._parameters import check_fraction
from sobolev._typing import Array, Index, Mask

# Relative slack of the levels of e-BH, so that rounding does not decide ties.
_SLACK = 1e-12


def knockoff_threshold(W: Any, fdr: float, offset: int = 1) -> float:
    r"""The smallest t at which the estimated share of false discoveries is at most ``fdr``.

    With offset 0 this is the threshold of Algorithm 5.

    .. math::

        T = \min \left\{ t \in \{|W_j|\} \setminus \{0\} :
            \frac{\text{offset} + \#\{W_j \le -t\}}{\#\{W_j \ge t\}} \le \text{fdr} \right\}

    Parameters
    ----------
    W : array-like of shape (p,)
        Signed statistics, such as the importance of each column minus that of its knockoff.
    fdr : float
        Level of the false discovery rate, in (0, 1].
    offset : {0, 1}, default=1
        Number added to the count of negative statistics. 1 is knockoff+, which controls the false
        discovery rate. 0 does not: if no column matters, it selects some in at least half of all
        data sets, at any level.

    Returns
    -------
    float
        Threshold T: select ``W >= T``. Infinite if no t satisfies the condition.

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
        Signed statistics, such as the importance of each column minus that of its knockoff.
    offset : {0, 1}, default=1
        Offset of the threshold; 1 is knockoff+.

    Returns
    -------
    array of shape (p,)
        Q-values: for every ``fdr < 1``, ``q <= fdr`` if and only if
        ``W >= knockoff_threshold(W, fdr)``. One where W is negative or zero.

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

    with T the threshold at level ``fdr``. The expected e-values of the true null hypotheses sum to
    at most p for either offset and any ``fdr`` fixed in advance: both only affect T, and the
    denominator always contains the one. For a single draw, :func:`ebh` at the same level selects
    the same columns as the filter with offset 1.

    Parameters
    ----------
    W : array-like of shape (p,)
        Signed statistics, such as the importance of each column minus that of its knockoff.
    fdr : float
        Level of the threshold, in (0, 1].
    offset : {0, 1}, default=1
        Offset of the threshold. With 0 the threshold is never larger: at least as many e-values are
        positive, but those that are positive with offset 1 do not increase.

    Returns
    -------
    array of shape (p,)
        E-values; all zero if the threshold is infinite.

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
    """Select by e-values with a controlled false discovery rate, under any dependence.

    Parameters
    ----------
    evalues : array-like of shape (p,)
        Nonnegative e-values, whose expectations over the true null hypotheses sum to at most p;
        averages of e-values are e-values.
    fdr : float
        Level of the false discovery rate, in (0, 1].

    Returns
    -------
    array of bool, shape (p,)
        Mask of the k largest e-values, for the largest k such that all k are at least
        ``p / (k fdr)``.

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

    The e-values must not depend on the level. Those of :func:`knockoff_evalues` depend on its
    parameter ``fdr``, so keep that fixed.

    Parameters
    ----------
    evalues : array-like of shape (p,)
        Nonnegative e-values.

    Returns
    -------
    array of shape (p,)
        Q-values: for every ``fdr < 1``, ``q <= fdr`` if and only if ``ebh(evalues, fdr)``.

    Examples
    --------
    >>> from sobolev.inference.knockoff_filter import ebh_qvalues
    >>> ebh_qvalues([5, 5, 5, 5, 0]).round(4)
    array([0.25, 0.25, 0.25, 0.25, 1.  ])
    """
    return np.minimum(_ebh_levels(_check_evalues(evalues)), 1.0)


def _estimated_shares(W: Array, offset: int) -> tuple[Array, Array]:
    """Candidates t in ascending order, and the estimated share of false discoveries at each."""
    check_offset(offset)
    t = np.unique(np.abs(W[W != 0]))
    n_above, n_below = _count_from(W[W > 0], t), _count_from(-W[W < 0], t)
    shares = np.full(t.size, np.inf)
    np.divide(offset + n_below, n_above, out=shares, where=n_above > 0)
    return t, shares


def check_offset(offset: Any) -> None:
    """Raise an error unless the offset is 0 or 1."""
    if offset not in (0, 1):
        raise ValueError(f"offset={offset!r} is unknown; use 1 (knockoff+) or 0.")


def _count_from(values: Array, t: Array) -> Index:
    """Number of values that are at least t."""
    return values.size - np.searchsorted(np.sort(values), t, side="left")


def _ebh_levels(evalues: Array) -> Array:
    """The smallest level at which each hypothesis is selected, not bounded by one."""
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
