"""The semidefinite program of knockoffs, by a primal-dual interior point method.

Maximise sum s subject to 0 <= s <= 1 and M = 2 Sigma - diag s >= 0. With the dual matrix Z and the
multipliers l of s >= 0 and u of s <= 1, stationarity reads 1 = diag Z + u - l, and the Newton
equations in s have the p × p matrix Z∘M^-1 + diag(l/s + u/(1-s)).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from sobolev._typing import Array
from sobolev.exceptions import ConvergenceWarning
from sobolev.knockoffs._linalg import (
    add_diagonal,
    cholesky,
    inverse_of,
    minus_diagonal,
    step_to_boundary,
)
from sobolev.knockoffs._newton import (
    Centre,
    Ties,
    minimise,
    point_at,
)

# Value of mu at the centring before the first primal-dual step.
MU_START = 0.1
# Fraction of the distance to the boundary that a step may go.
SHORT = 0.95
# Below this mu, rounding errors dominate the certificate of optimality.
MU_LEAST = 1e-8


@dataclass(frozen=True)
class _State:
    """A primal-dual point: tied values g, multipliers, Z, the factor L of M, and A = M^-1."""

    g: Array
    low: Array
    high: Array
    Z: Array
    L: Array
    A: Array


@dataclass(frozen=True)
class _Step:
    """A direction from a state."""

    g: Array
    low: Array
    high: Array
    Z: Array


def solve_sdp(twice: Array, g: Array, ties: Ties, tol: float, max_iter: int) -> Array:
    """Tied values of s on the central path, where the duality gap is about 3 tol p."""
    tol = max(tol, MU_LEAST)
    state = _start(twice, g, ties)
    for _ in range(max_iter):
        mu = _complementarity(state.g, state.low, state.high, state.Z, twice, ties)
        if mu <= tol and _infeasibility(state, ties) <= 1e-3:
            break
        moved = _iterate(state, twice, ties, mu, tol)
        if moved is None:
            break
        state = moved
    return _polish(state, twice, ties, tol)


def _start(twice: Array, g: Array, ties: Ties) -> _State:
    """A point near the central path at MU_START, after a few barrier steps."""
    g = 0.9 * np.minimum(g, 0.9)
    point = point_at(twice, g, ties)
    assert point is not None
    with warnings.catch_warnings():  # convergence is not needed here
        warnings.simplefilter("ignore", ConvergenceWarning)
        point = minimise(twice, Centre(MU_START), point, ties, 2.0, 30)
    mu, g = MU_START, point.g
    L = cholesky(minus_diagonal(twice, ties.spread(g)))
    assert L is not None
    return _State(g, mu * ties.size / g, mu * ties.size / (1 - g), mu * point.A, L, point.A)


def _complementarity(
    g: Array, low: Array, high: Array, Z: Array, twice: Array, ties: Ties
) -> float:
    """The mean complementarity, which is mu on the central path."""
    inner = float(np.vdot(Z, twice)) - float(ties.total(np.diag(Z)) @ g)
    rest = float(low @ g + high @ (1 - g))
    return (inner + rest) / (3 * ties.labels.size)


def _infeasibility(x: _State, ties: Ties) -> float:
    slack = ties.size - ties.total(np.diag(x.Z)) + x.low - x.high
    return float(np.abs(slack / ties.size).max())


def _iterate(x: _State, twice: Array, ties: Ties, mu: float, tol: float) -> _State | None:
    """One predictor-corrector step (Mehrotra), or None if rounding errors prevent it."""
    g, w, d = x.g, 1 - x.g, ties.total(np.diag(x.A))
    H = ties.total_both(x.Z * x.A)
    add_diagonal(H, x.low / g + x.high / w)
    factor, LZ = cholesky(H), cholesky(x.Z)
    if factor is None or LZ is None:
        return None

    def direction(target: float, first: _Step | None) -> _Step:
        rhs = ties.size - target * (d - ties.size / g + ties.size / w)
        low, high = target * ties.size / g - x.low, target * ties.size / w - x.high
        if first is not None:
            rhs = rhs - ties.total((first.Z * x.A) @ ties.spread(first.g))
            low, high = low - first.low * first.g / g, high + first.high * first.g / w
            rhs = rhs - first.low * first.g / g - first.high * first.g / w
        dg = cho_solve((factor, True), rhs, check_finite=False)
        product = x.Z * ties.spread(dg)
        if first is not None:
            product += first.Z * ties.spread(first.g)
        dZ = product @ x.A
        dZ = 0.5 * (dZ + dZ.T) - x.Z
        if target:
            dZ += target * x.A
        return _Step(dg, low - x.low * dg / g, high + x.high * dg / w, dZ)

    first = direction(0.0, None)
    primal, dual = _lengths(x, LZ, first, ties)
    ahead = _complementarity(*_ahead(x, first, min(primal, 1.0), min(dual, 1.0)), twice, ties)
    target = mu * min(1.0, max(ahead / mu, 1e-4)) ** 2
    step = direction(max(target, 0.3 * tol), first)
    primal, dual = _lengths(x, LZ, step, ties)
    return _move(x, step, min(1.0, SHORT * primal), min(1.0, SHORT * dual), twice, ties)


def _lengths(x: _State, LZ: Array, step: _Step, ties: Ties) -> tuple[float, float]:
    """Largest feasible step lengths in s and in the multipliers."""
    ratios = np.concatenate([-step.g / x.g, step.g / (1 - x.g)])
    primal = min(1 / max(1e-300, float(ratios.max())), step_to_boundary(x.L, -ties.spread(step.g)))
    ratios = np.concatenate([-step.low / x.low, -step.high / x.high])
    dual = min(1 / max(1e-300, float(ratios.max())), step_to_boundary(LZ, step.Z))
    return primal, dual


def _ahead(x: _State, d: _Step, t: float, r: float) -> tuple[Array, Array, Array, Array]:
    """Values and multipliers after steps t in s and r in the multipliers."""
    return x.g + t * d.g, x.low + r * d.low, x.high + r * d.high, x.Z + r * d.Z


def _move(x: _State, d: _Step, t: float, r: float, twice: Array, ties: Ties) -> _State | None:
    """Take the step, shortened if the estimated distance to the boundary was too large."""
    L = cholesky(minus_diagonal(twice, ties.spread(x.g + t * d.g)))
    while L is None:
        t *= 0.8
        if t < 1e-8:
            return None
        L = cholesky(minus_diagonal(twice, ties.spread(x.g + t * d.g)))
    while cholesky(x.Z + r * d.Z) is None:
        r *= 0.8
        if r < 1e-8:
            return None
    return _State(*_ahead(x, d, t, r), L, inverse_of(L))


def _polish(x: _State, twice: Array, ties: Ties, mu: float) -> Array:
    """Move to the central path at ``mu``.

    On the path s is unique even if the optimum of the SDP is not, and mu A is a dual certificate.
    """
    point = point_at(twice, x.g, ties)
    assert point is not None
    return minimise(twice, Centre(mu), point, ties, mu, 30).g


def duality_gap(twice: Array, g: Array, ties: Ties) -> float:
    """The smallest duality gap of g over the dual points mu A, divided by p.

    Every Z >= 0 with u = max(0, 1 - diag Z) is dual feasible, so the gap bounds the distance of
    sum s from the optimum.
    """
    point = point_at(twice, g, ties)
    if point is None:
        return np.inf
    d = ties.total(np.diag(point.A))
    trace = float(np.vdot(point.A, twice))
    # trace * mu + sum max(0, size - mu d) is convex and piecewise linear in mu.
    mu = np.concatenate([[0.0], ties.size / d])
    order = np.argsort(mu)
    mu = mu[order]
    size, d = np.concatenate([[0.0], ties.size])[order], np.concatenate([[0.0], d])[order]
    left_size, left_d = size.sum() - np.cumsum(size), d.sum() - np.cumsum(d)
    dual = trace * mu + left_size - mu * left_d
    return max(float(dual.min()) - float(ties.size @ g), 0.0) / ties.labels.size
