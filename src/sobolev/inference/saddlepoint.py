r"""Tail probabilities of a sum of independent discrete variables.

The sum of one draw from each row of a table has the cumulant generating function
:math:`K(t) = \sum_i \log \sum_b w_{ib} e^{t r_{ib}}`. The probability that it reaches s follows
from K by the formula of Barndorff-Nielsen: with :math:`K'(t) = s`,
:math:`z = \operatorname{sign}(t)\sqrt{2 (t s - K(t))}` and :math:`u = t \sqrt{K''(t)}`,

.. math::

    P(S \ge s) \approx 1 - \Phi\Big(z + \frac{1}{z} \log \frac{u}{z}\Big) .

Two cases need more. Rows with a large share of the variance make the sum far from normal; they
are convolved exactly, and the formula is used for the others. On a lattice with step h the formula
is evaluated at s - h/2, with t in u replaced by :math:`(2 / h) \sinh(h t / 2)`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import log_ndtr

from sobolev._typing import Array, Index

# Below this distance from the mean, in standard deviations, the formula is interpolated.
NEAR_MEAN = 0.05
MAX_STEPS = 200
# Relative tolerance of K'(t) = s.
TOLERANCE = 1e-7
# Logarithm of the smallest p-value; products of such p-values still fit in double precision.
SMALLEST_LOG = -700.0
# A row is convolved if it has more than this share of its variance plus that of smaller rows.
HEAVY_SHARE = 0.25
# Number of atoms that a convolution keeps, and of points of the tail curve of the other rows.
MAX_ATOMS = 1024
CURVE_POINTS = 96
# Number of exponentials held in memory at once.
AT_ONCE = 2**18
# Tables with at most this many nodes are checked for a lattice with at most this many steps.
LATTICE_NODES = 24
LATTICE_STEPS = 32
# Rows that all have their most frequent values with a smaller probability are not looked at.
RARE_LOG = -20.0


def saddlepoint_pvalue(values: Array, weights: Array, observed: float) -> float:
    """The probability that the sum of one draw from each row is at least ``observed``.

    Parameters
    ----------
    values, weights : array of shape (n, B)
        Values of each row and their probabilities.
    observed : float
        Observed sum.

    Returns
    -------
    float
        P-value in (0, 1], decreasing in ``observed``.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.saddlepoint import saddlepoint_pvalue
    >>> values, weights = np.tile([0.0, 1.0], (100, 1)), np.full((100, 2), 0.5)
    >>> round(saddlepoint_pvalue(values, weights, 60), 4)
    0.0284
    """
    values = np.asarray(values, dtype=float)  # those of a network have single precision
    centre = np.einsum("ib,ib->i", weights, values)[:, None]
    centred = values - centre
    spread = np.sqrt(np.einsum("ib,ib,ib->", weights, centred, centred))
    size = np.abs(values).max(initial=0.0)
    if spread <= 1e-12 * size * np.sqrt(values.shape[0]) or spread == 0.0:
        total = float(centre.sum())
        reached = observed <= total + 1e-9 * max(size, 1e-300)
        return 1.0 if reached else float(np.exp(SMALLEST_LOG))
    centred /= spread
    x = (observed - float(centre.sum())) / float(spread)
    heavy = _heavy_rows(centred, weights)
    light = np.setdiff1d(np.arange(values.shape[0]), heavy)
    whole = _Ends(centred, weights)
    if x <= whole.smallest + 1e-9 * max(1.0, abs(whole.smallest)):
        return 1.0
    floor = float(np.exp(max(whole.log_at_largest, SMALLEST_LOG)))
    if x >= whole.largest - 1e-9 * max(1.0, abs(whole.largest)):
        return floor
    if not heavy.size:
        found = float(np.exp(log_ndtr(-_Distribution(centred, weights).score(x))))
    else:
        atoms, masses = _convolved(centred[heavy], weights[heavy])
        tail = _tail(centred[light], weights[light], x - atoms)
        found = float(masses @ tail)
    return min(1.0, max(found, floor, _of_one_change(centred, weights, x)))


def _of_one_change(values: Array, weights: Array, x: float) -> float:
    """The probability that at most one row leaves its most frequent value, and the sum reaches x.

    The true p-value is not smaller. Where other values are very rare it is almost this, and the
    saddlepoint may be half of it.
    """
    most = weights.argmax(axis=1)[:, None]
    usual = np.take_along_axis(weights, most, axis=1)
    log_usual = float(np.log(usual).sum())
    if log_usual < RARE_LOG:
        return 0.0
    modes = np.take_along_axis(values, most, axis=1)
    missing = x - float(modes.sum()) - 1e-9 * max(1.0, abs(x))
    share = np.where(values - modes >= missing, weights / usual, 0.0)
    np.put_along_axis(share, most, 0.0, axis=1)
    return float(np.exp(log_usual) * (share.sum() + (missing <= 0)))


def _heavy_rows(values: Array, weights: Array) -> Index:
    """Rows with a large share of the variance of themselves and all smaller rows."""
    variance = np.einsum("ib,ib,ib->i", weights, values, values)
    order = np.argsort(-variance)
    left = np.cumsum(variance[order][::-1])[::-1]
    light = np.flatnonzero(variance[order] <= HEAVY_SHARE * left)
    return np.asarray(order[: light[0] if light.size else order.size], dtype=np.intp)


class _Ends:
    """The largest and smallest sum, and the probability of the largest."""

    def __init__(self, values: Array, weights: Array) -> None:
        possible = weights > 0
        everywhere = True if possible.all() else possible
        self.top = values.max(axis=1, where=everywhere, initial=-np.inf)
        self.bottom = values.min(axis=1, where=everywhere, initial=np.inf)
        at_top = np.sum(weights, axis=1, where=values >= self.top[:, None] - 1e-12)
        self.largest, self.smallest = float(self.top.sum()), float(self.bottom.sum())
        self.log_at_largest = float(np.log(np.minimum(at_top, 1.0)).sum())


def _convolved(values: Array, weights: Array) -> tuple[Array, Array]:
    """Atoms and masses of the sum of the rows; close atoms are replaced by their mean."""
    atoms: Array = np.zeros(1)
    masses: Array = np.ones(1)
    for v, w in zip(values, weights, strict=True):
        atoms = np.add.outer(atoms, v[w > 0]).ravel()
        masses = np.multiply.outer(masses, w[w > 0]).ravel()
        if atoms.size > MAX_ATOMS:
            low, high = atoms.min(), atoms.max()
            bins = ((atoms - low) * ((MAX_ATOMS - 1) / max(high - low, 1e-300))).astype(np.intp)
            mass: Array = np.bincount(bins, masses).astype(float)
            moment: Array = np.bincount(bins, masses * atoms).astype(float)
            atoms, masses = moment[mass > 0] / mass[mass > 0], mass[mass > 0]
    return atoms, masses


def _tail(values: Array, weights: Array, x: Array) -> Array:
    """P(S >= x) of the light rows at many points, from one curve of normal scores."""
    spread = float(np.sqrt(np.sum(weights * values**2)))
    if spread <= 1e-9:  # the total variance is one: these rows add nothing
        return np.asarray(x <= 1e-9, dtype=float)
    distribution = _Distribution(values / spread, weights)
    ends = distribution.ends
    x = x / spread
    tail = np.exp(log_ndtr(-distribution.curve()(x)))
    return np.where(x <= ends.smallest, 1.0, np.where(x > ends.largest, 0.0, tail))


class _Distribution:
    """A sum of independent discrete variables with mean zero and variance one."""

    def __init__(self, values: Array, weights: Array) -> None:
        variance = np.einsum("ib,ib,ib->i", weights, values, values)
        varying = variance > 0
        if not varying.all():
            values, weights = values[varying], weights[varying]
        self.ends = _Ends(values, weights)
        # Impossible values must not overflow.
        self.values = np.clip(values, self.ends.bottom[:, None], self.ends.top[:, None])
        self.squares = self.values**2
        self.weights = weights
        self.uniform = bool(weights.size) and float(np.ptp(weights)) == 0.0
        self.step = _lattice_step(self.values, self.weights)

    def score(self, x: float) -> float:
        """The normal score whose upper tail is P(S >= x)."""
        x = self._inside(x - self.step / 2)
        low, high = self._inside(-NEAR_MEAN), self._inside(NEAR_MEAN)
        if low < x < high:
            share = (x - low) / (high - low)
            below, above = self._score_at(*self._solve(low)), self._score_at(*self._solve(high))
            return below + share * (above - below)
        return self._score_at(*self._solve(x))

    def curve(self) -> Callable[[Array], Array]:
        """Normal scores as a function of x, interpolated between evaluations of K.

        The interpolation points do not depend on x, so that the curve is one increasing function
        for all observed sums.
        """
        low, high = (
            self._solve(self._inside(x))[0] for x in (self.ends.smallest, self.ends.largest)
        )
        t = np.sinh(np.linspace(np.arcsinh(low), np.arcsinh(high), CURVE_POINTS))
        at_once = max(1, AT_ONCE // self.values.size)
        parts = [self._cumulants(t[k : k + at_once]) for k in range(0, t.size, at_once)]
        cumulants = np.concatenate(parts, axis=1)
        x = cumulants[1]
        far = (np.abs(x) > min(NEAR_MEAN, 0.5 * np.abs(x).max())) & (np.abs(t) > 0)
        scores = np.maximum.accumulate(
            [self._score_at(t[k], cumulants[:, k]) for k in np.flatnonzero(far)]
        )
        x = x[far]
        kept = np.concatenate([[True], np.diff(x) > 0])
        curve = PchipInterpolator(x[kept], scores[kept])
        first, last = x[kept][[0, -1]]
        return lambda at: np.asarray(curve(np.clip(at - self.step / 2, first, last)))

    def _inside(self, x: float) -> float:
        """The nearest point that the mean of a tilted distribution can reach."""
        return float(np.clip(x, (1 - 1e-6) * self.ends.smallest, (1 - 1e-6) * self.ends.largest))

    def _score_at(self, t: float, cumulants: Array) -> float:
        """z + log(u / z) / z at K'(t)."""
        K, x, curvature = cumulants.tolist()
        z = np.sign(t) * np.sqrt(max(2 * (t * x - K), 1e-300))
        slope = t if self.step == 0 else 2 / self.step * np.sinh(min(self.step * t / 2, 300.0))
        u = slope * np.sqrt(max(curvature, 1e-300))
        return float(z + np.log(max(u / z, 1e-300)) / z)

    def _cumulants(self, t: Array) -> Array:
        """K and its first two derivatives at every t, (3, n_t)."""
        # Exponents are at most zero; the largest one has positive weight, so no sum vanishes.
        edge = t[:, None] * np.where(t[:, None] > 0, self.ends.top, self.ends.bottom)
        e = self.values * t[:, None, None]
        e -= edge[:, :, None]
        np.exp(e, out=e)
        if self.uniform:
            e *= self.weights[0, 0]
        else:
            e *= self.weights
        total = e.sum(axis=2)
        mean = np.einsum("tib,ib->ti", e, self.values) / total
        square = np.einsum("tib,ib->ti", e, self.squares) / total
        K = np.sum(edge + np.log(total), axis=1)
        return np.array([K, mean.sum(axis=1), np.maximum(square - mean**2, 0.0).sum(axis=1)])

    def _solve(self, x: float) -> tuple[float, Array]:
        """The t with K'(t) = x, by Newton steps inside a bracket, and the cumulants at t."""
        low, high = (0.0, np.inf) if x > 0 else (-np.inf, 0.0)
        t = x
        for _ in range(MAX_STEPS):
            cumulants = self._cumulants(np.array([t]))[:, 0]
            _, slope, curvature = cumulants.tolist()
            gap = slope - x
            if abs(gap) <= TOLERANCE * max(1.0, abs(x)):
                break
            low, high = (t, high) if gap < 0 else (low, t)
            step = t - gap / curvature if curvature > 0 else np.nan
            if not low < step < high:
                step = 0.5 * (low + high) if np.isfinite(low + high) else 2 * t
            elif abs(step) > 3 * abs(t):  # limit the step where K is strongly curved
                step = 3 * t
            if step == t:
                break
            t = step
        return t, cumulants


def _lattice_step(values: Array, weights: Array) -> float:
    """The step of a lattice that contains all sums; zero if there is none."""
    if not values.size or values.shape[1] > LATTICE_NODES:
        return 0.0
    possible = weights > 0
    lowest = np.where(possible, values, np.inf).min(axis=1, keepdims=True)
    above = (values - lowest)[possible]
    above = np.unique(np.round(above[above > 1e-9], 10))
    if not above.size:
        return 0.0
    step = float(above[0])
    for value in above[1:]:
        step = _common_divisor(float(value), step, tolerance=1e-6 * float(above[0]))
        if above[-1] / step > LATTICE_STEPS:
            return 0.0
    return step


def _common_divisor(a: float, b: float, tolerance: float) -> float:
    """The greatest common divisor of two positive numbers up to rounding."""
    while b > tolerance:
        left = a % b
        a, b = b, (0.0 if b - left <= tolerance else left)
    return a
