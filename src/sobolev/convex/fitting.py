"""Fit the convex critic to a sample: measures, the recursive metric, some of many columns.

Everything here takes arrays and plain settings; the estimator validates, names and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from sobolev._sample import Sample
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import (
    BoundFourierMap,
    BoundMap,
    FourierMap,
    LandmarkMap,
    MapSpec,
    coupled_forms,
)
from sobolev.convex.moments import FourierMoments
from sobolev.convex.quadratics import CoupledForms
from sobolev.convex.screening import (
    MAX_CHECKS,
    Screening,
    candidates,
    curvature,
    joining,
    optimality_ratios,
    pair_strength,
)
from sobolev.convex.solvers import (
    SOLVERS,
    Forms,
    Penalties,
    Solution,
    alternating_joint,
    continuation,
)
from sobolev.convex.streaming import SCREEN_ROWS, Stream
from sobolev.criterion import Explanation, Groups

MEASURES = ("product", "permuted", "mixture", "joint")

# The path of lam that cross-validation walks, from sparse to dense, and the value kept when no lam
# predicts held-out rows.
LAMS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REFERENCE_LAM = 0.03
# Where the critic is refitted to importances found at a larger lam, free of its shrinkage.
RELAXED_LAMS = (0.003, 0.001)

# The metric of a round: (eta / max eta)^power + floor. Power 2 scales each column by its
# importance, the floor lets a feature come back.
METRIC_POWER, METRIC_FLOOR = 2.0, 1e-3
# The metric has settled when a round moves eta by less than this in total variation.
SETTLED = 0.01
# A warm start gives every feature this share of the mean importance, so that it can come back.
WARM_FLOOR = 0.01
# Rounds before the last need not converge.
ROUND_ITERATIONS = 4
AUTO_ROUNDS = 10

# The screen for second-order effects: thresholds, the weight of columns below them, and the most
# that all of these may weigh together, lest a few columns drown among thousands.
SCREEN_PAIRS, SCREEN_CURVATURE = 6.0, 4.0
SCREEN_FLOOR, SCREEN_BACKGROUND = 0.1, 20.0

# Up to this many rows one BLAS thread is as fast as several, and far faster on a busy machine.
SMALL_SAMPLE = 1000

# Points of the quadrature along a path, and rows explained at once.
PATH_NODES = 32
EXPLAIN_ROWS = 2048


@dataclass(frozen=True)
class Settings:
    """What a fit needs besides the sample and lam."""

    map: MapSpec
    rho: float = 1.0
    tau: float = 1e-4
    epsilons: tuple[float, ...] = (1e-12,)
    groups: Groups | None = None
    solver: str = "alternating"
    measure: str = "product"
    rounds: int = AUTO_ROUNDS
    max_iter: int = 100
    tol: float = 1e-3
    seed: int = 0
    output_weights: Array | None = None
    screen: int | None = None  # columns to begin with, if not with all

    @property
    def adapts(self) -> bool:
        """Whether the map has a metric that rounds can improve."""
        return isinstance(self.map, (LandmarkMap, FourierMap))


@dataclass(frozen=True)
class Critic:
    """What evaluating a fitted critic needs, and nothing of the training rows besides landmarks."""

    bound: BoundMap
    center: Array
    U: Array

    def __call__(self, X: Array) -> Array:
        """U' phi(x) at standardised rows, (n, k)."""
        return (self.bound.values(X) - self.center) @ self.U

    def explain(self, X: Array, psi: Array) -> Explanation:
        """Integrated gradients: x_j ∫ ∂_j f(t x, y) dt along the way from the mean row to x.

        They add up to f(x, y) - f(0, y), for any smooth critic.
        """
        nodes, weights = np.polynomial.legendre.leggauss(PATH_NODES)
        features = np.empty_like(X)
        for start in range(0, X.shape[0], EXPLAIN_ROWS):
            rows = slice(start, start + EXPLAIN_ROWS)
            x, coefficients = X[rows], psi[rows] @ self.U.T
            features[rows] = x * sum(
                0.5 * w * self.bound.gradient(0.5 * (1 + t) * x, coefficients)
                for t, w in zip(nodes, weights, strict=True)
            )
        f = np.sum(self(X) * psi, axis=1)
        return Explanation(features, np.zeros(f.size), f - features.sum(axis=1))


@dataclass(frozen=True)
class Fit:
    """A fit: the bound map, its forms, the solution, the metric and the rounds run.

    If it is on some of the columns only, ``screening`` says which, and how the others were checked.
    """

    bound: BoundMap
    forms: Forms
    solution: Solution
    metric: Array
    n_rounds: int
    screening: Screening | None = None

    def critic(self, solution: Solution | None = None) -> Critic:
        """The critic of the solution, or of another one on the same forms."""
        forms, U = self.forms, (solution or self.solution).U
        if isinstance(forms, CoupledForms):
            return Critic(self.bound, forms.blocks[0, 0].mean, forms.split(U))
        return Critic(self.bound, forms.mean, U)


def blas_threads(n_rows: int) -> threadpool_limits:
    """A context with one BLAS thread for small samples, where more only wait for each other."""
    return threadpool_limits(1 if n_rows <= SMALL_SAMPLE else None, user_api="blas")


def bind(sample: Sample | Stream, settings: Settings, metric: Array) -> BoundMap:
    """Place the map on the sample; the same seed each time keeps rounds comparable."""
    if isinstance(sample, Stream):
        return sample.bind(settings.map, metric, settings.seed)
    return settings.map.bind(sample.X, metric, sample.p, np.random.default_rng(settings.seed))


def measure_forms(bound: BoundMap, sample: Sample | Stream, measure: str, seed: int) -> Forms:
    """Quadratic forms under the measure mu of the penalties.

    - ``product``: exact expectations under p_x p_y;
    - ``permuted``: the paper's estimator, one permuted copy of the response;
    - ``joint``: p_xy; ``mixture``: (p_xy + p_x p_y) / 2.
    """
    if isinstance(sample, Stream):  # of the product measure
        assert isinstance(bound, BoundFourierMap)
        return sample.moments(bound)[0].forms()
    X, psi, p = sample.X, sample.psi, sample.p
    if measure == "product":
        return bound.forms(X, psi, p)
    outer = psi[:, :, None] * psi[:, None, :]
    difference = psi
    if measure == "permuted":
        shuffled = psi[_permutation(p, np.random.default_rng(seed))]
        outer = shuffled[:, :, None] * shuffled[:, None, :]
        difference = psi - shuffled
    elif measure == "mixture":
        outer = 0.5 * (outer + np.eye(psi.shape[1]))
    omega = p[:, None, None] * outer
    if psi.shape[1] == 1:
        return bound.forms(X, difference, p, omega[:, 0, 0])
    return coupled_forms(bound, X, psi, p, omega, p[:, None] * difference)


def _permutation(p: Array, rng: np.random.Generator) -> Index:
    """A permutation of the rows; unequal weights need a draw by weight to keep the law of y."""
    if np.ptp(p) <= 1e-12 * p.max():
        return rng.permutation(p.size)
    return rng.choice(p.size, size=p.size, p=p)


def solve(
    forms: Forms,
    settings: Settings,
    lam: float,
    eta: Array | None = None,
    *,
    max_iter: int | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Solution:
    """Solve at one lam, by the solver and the continuation in epsilon that the settings name."""
    penalties = Penalties(lam, settings.rho, settings.tau, settings.epsilons[-1])
    options = {
        "groups": settings.groups,
        "eta": eta,
        "max_iter": settings.max_iter if max_iter is None else max_iter,
        "tol": settings.tol,
        "callback": callback,
    }
    if settings.output_weights is not None:
        return alternating_joint(forms, penalties, settings.output_weights, **options)  # type: ignore[arg-type]
    if len(settings.epsilons) > 1:
        return continuation(forms, penalties, settings.epsilons, settings.solver, **options)
    return SOLVERS[settings.solver](forms, penalties, **options)


def next_metric(solution: Solution, groups: Groups | None) -> Array:
    """The kernel's metric for the next round: each column scaled by its importance."""
    eta = solution.eta
    if groups is not None:
        eta = groups.feature_importances(eta, solution.squared_gradients)
    return (eta / eta.max()) ** METRIC_POWER + METRIC_FLOOR


def start_metric(sample: Sample | Stream) -> Array:
    """The metric of the first round: isotropic, unless second-order effects stand out.

    A kernel on hundreds of columns is blind to a curvature or an interaction without main effect
    (XOR). Two screens, squared gradients of the quadratic critics x' E[psi x x'] x, see them:
    b_j² = sum_k E[psi x_j x_k]², whose excess over the median is measured in robust deviations, and
    the z-score of E[psi x_j²]. Columns that clear either threshold start with ten times the weight
    of the others, and more beyond 200 columns; the rounds that follow decide.
    """
    if isinstance(sample, Stream):
        sample = sample.screen
    step = max(1, sample.p.size // SCREEN_ROWS)
    X, psi, p = sample.X[::step], sample.psi[::step], sample.p[::step]
    p = p / p.sum()
    pairs = pair_strength(X, psi, p)
    pairs -= np.median(pairs)
    spread = 1.4826 * np.median(np.abs(pairs))
    curved = curvature(X, psi, p)
    curved -= np.median(curved)
    score = np.maximum(pairs / (SCREEN_PAIRS * spread + 1e-300), curved / SCREEN_CURVATURE)
    if score.max() <= 1.0 or spread == 0.0:
        return np.ones(X.shape[1])
    floor = min(SCREEN_FLOOR, SCREEN_BACKGROUND / X.shape[1])
    return np.where(score > 1.0, score / score.max(), 0.0) + floor


def fit_critic(
    sample: Sample | Stream,
    settings: Settings,
    lam: float,
    start: tuple[Array, Array] | None = None,
    callback: Callable[[int, int, float], None] | None = None,
) -> Fit:
    """Fit at one lam, with the recursive metric.

    Each round rescales the kernel by the importances of the round before, until they settle; the
    last round is solved to ``tol``.

    Parameters
    ----------
    sample, settings, lam
        The data, the settings and the weight of the gradient penalty.
    start : (metric, eta), optional
        Where to start; the screened metric and uniform importances if not given.
    callback : callable, optional
        Called with round, iteration and objective.
    """
    if settings.screen is not None and isinstance(sample, Sample):
        return _fit_some_columns(sample, settings, lam, callback)
    rounds = settings.rounds if settings.adapts else 1
    if isinstance(sample, Stream) and sample.subsample and start is None and rounds > 1:
        return _fit_after_subsample(sample, sample.subsample, settings, lam, callback)
    metric, eta = (start_metric(sample), None) if start is None else start
    begin = None if eta is None else np.maximum(eta, WARM_FLOOR / eta.size)
    for number in range(1, rounds + 1):
        bound = bind(sample, settings, metric)
        forms = measure_forms(bound, sample, settings.measure, settings.seed)
        last = number == rounds
        watch = None if callback is None else _watch(callback, number)
        solution = solve(
            forms,
            settings,
            lam,
            begin,
            max_iter=None if last else min(ROUND_ITERATIONS, settings.max_iter),
            callback=watch,
        )
        settled = eta is not None and 0.5 * np.abs(solution.eta - eta).sum() < SETTLED
        eta = solution.eta
        if not last and settled:
            solution = solve(forms, settings, lam, eta, callback=watch)
        if last or settled:
            break
        metric, begin = next_metric(solution, settings.groups), _blend(eta)
    return Fit(bound, forms, solution, metric, number)


def _fit_some_columns(
    sample: Sample,
    settings: Settings,
    lam: float,
    callback: Callable[[int, int, float], None] | None,
) -> Fit:
    """Fit on candidates; columns that the optimum would not leave out join until there is none."""
    assert settings.screen is not None
    plain = replace(settings, screen=None)
    columns, start = candidates(sample, settings.screen), None
    for check in range(1, MAX_CHECKS + 1):
        narrow = sample.columns(columns)
        fit = fit_critic(narrow, plain, lam, start, callback)
        residual = narrow.psi - settings.rho * fit.critic()(narrow.X)
        level = lam * float(np.sqrt(fit.solution.squared_gradients).sum())
        curved = fit.bound.n_functions > 0
        ratios = optimality_ratios(sample, columns, residual, level, squares=curved)
        new = joining(ratios, settings.screen)
        if new.size == 0 or check == MAX_CHECKS:
            break
        both = np.union1d(columns, new)
        old = np.searchsorted(both, columns)
        metric, eta = np.full(both.size, METRIC_FLOOR), np.full(both.size, 1.0 / both.size)
        metric[old], eta[old] = fit.metric, fit.solution.eta
        columns, start = both, (metric, eta)
    return replace(fit, screening=Screening(columns, ratios, check))


def _fit_after_subsample(
    stream: Stream,
    subsample: Sample,
    settings: Settings,
    lam: float,
    callback: Callable[[int, int, float], None] | None,
) -> Fit:
    """The rounds before the last on a subsample, the last on all rows."""
    first = replace(settings, rounds=settings.rounds - 1)
    early = fit_critic(subsample, first, lam, callback=callback)
    eta = early.solution.eta
    start = next_metric(early.solution, settings.groups), 0.5 * eta + 0.5 / eta.size
    fit = fit_critic(stream, replace(settings, rounds=1), lam, start, callback)
    return replace(fit, n_rounds=early.n_rounds + 1)


def _watch(
    callback: Callable[[int, int, float], None], number: int
) -> Callable[[int, float], None]:
    return lambda iteration, objective: callback(number, iteration, objective)


def _blend(eta: Array | None) -> Array | None:
    """Half-way back to uniform: a warm start from which small importances can still grow."""
    return None if eta is None else 0.5 * eta + 0.5 / eta.size


def path(
    forms: Forms, settings: Settings, lams: Sequence[float], eta: Array | None
) -> list[Solution]:
    """Solutions along lam on fixed forms, each started from the one before."""
    solutions: list[Solution] = []
    for lam in lams:
        solutions.append(solve(forms, settings, lam, _blend(eta)))
        eta = solutions[-1].eta
    return solutions


def fit_moments(
    parts: Sequence[FourierMoments], settings: Settings, lam: float, metric: Array
) -> Fit:
    """Fit to moments alone: one round under the metric that they were formed with."""
    whole = parts[0]
    for other in parts[1:]:
        whole = whole.merge(other)
    forms = whole.forms()
    return Fit(whole.map, forms, solve(forms, settings, lam), metric, 1)


def row_risk(h: Array, psi: Array, rho: float) -> Array:
    """f(x, y) - rho/2 E_ỹ f(x, ỹ)² per row, for h = U' phi(x) and white psi."""
    return np.sum(h * psi, axis=1) - 0.5 * rho * np.sum(h**2, axis=1)
