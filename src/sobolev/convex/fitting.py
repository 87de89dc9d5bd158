"""Fit the convex critic to rows: the recursive metric, the screen, candidate columns.

Everything here takes arrays and plain settings; the estimator validates, names and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from sobolev._typing import Array, Index, Mask
from sobolev.convex.feature_maps import BoundMap, LandmarkMap, MapSpec, SideBySide
from sobolev.convex.quadratics import MANY_ROWS, CoupledForms
from sobolev.convex.rows import Data, Rows
from sobolev.convex.screening import (
    MAX_CHECKS,
    Screening,
    candidates,
    curvature,
    joining,
    optimality_ratios,
    pair_strength,
)
from sobolev.convex.solvers import Alternating, Forms, Penalties, Solution, Solver
from sobolev.criterion import SMALLEST, Explanation, Groups, risk

# The values of lam that cross-validation tries, from sparse to dense, and the value that is used
# when no lam predicts held-out rows.
LAMS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
REFERENCE_LAM = 0.03
# Values of lam at which the critic is refitted to the importances of a larger lam.
RELAXED_LAMS = (0.003, 0.001)
# The weight of the norm that tau="auto" is unless it is chosen.
TAU = 1e-4

# The metric of a round: (eta / max eta)^power + floor. Power 2 scales each column by its
# importance, the floor lets a feature come back.
METRIC_POWER, METRIC_FLOOR = 2.0, 1e-3
# The metric has settled when a round moves eta by less than this in total variation.
SETTLED = 0.01
# A warm start gives every feature this share of the mean importance, so that it can come back.
WARM_FLOOR = 0.01
# Largest number of iterations in the rounds before the last, which need not converge.
ROUND_ITERATIONS = 4
# Of many rows, the rounds before the last use this many landmarks.
EARLY_LANDMARKS = 300

# The screen for second-order effects: thresholds, the weight of columns below them, and the largest
# total weight of those columns.
SCREEN_PAIRS, SCREEN_CURVATURE = 6.0, 4.0
SCREEN_FLOOR, SCREEN_BACKGROUND = 0.1, 20.0

# Points of the quadrature along a path, and rows explained at once.
PATH_NODES = 32
EXPLAIN_ROWS = 2048


@dataclass(frozen=True)
class Settings:
    """Settings of a fit to some rows at some lam.

    Attributes
    ----------
    map, solver
        Feature map and solver.
    rho, tau
        Weights of the penalties.
    groups : Groups or None
        Groups of columns; a column in none of them is not penalised.
    measure : str
        Measure of the penalties.
    seed : int
        Seed of frequencies, landmarks and permutations.
    output_weights : array or None
        Loadings of the responses on psi, for sparsity in y.
    screen : int or None
        Number of candidate columns to fit first; None for all.
    """

    map: MapSpec
    solver: Solver = field(default_factory=Alternating)
    rho: float = 1.0
    tau: float = TAU
    groups: Groups | None = None
    measure: str = "product"
    seed: int = 0
    output_weights: Array | None = None
    screen: int | None = None

    @property
    def n_rounds(self) -> int:
        """Largest number of rounds of the metric, if the map has one."""
        return self.solver.n_rounds if self.map.adapts else 1

    def penalties(self, lam: float) -> Penalties:
        """The weights of the penalties at one lam."""
        return Penalties(lam, self.rho, self.tau, self.solver.epsilons[-1])

    @property
    def adjusted(self) -> Index:
        """The columns that are not penalised."""
        return np.zeros(0, np.intp) if self.groups is None else np.flatnonzero(self.groups.adjusted)

    @property
    def penalised(self) -> Mask | slice:
        """The columns that are penalised."""
        return slice(None) if self.groups is None else ~self.groups.adjusted

    def on_columns(self, columns: Index) -> Settings:
        """Settings of a fit to some of the columns, all of them at once."""
        groups = None if self.groups is None else self.groups.restrict(columns)
        return replace(self, screen=None, groups=groups)

    def with_rounds(self, rounds: int) -> Settings:
        """The same settings with another number of rounds."""
        return replace(self, solver=replace(self.solver, rounds=rounds))

    def feature_importances(self, solution: Solution) -> Array:
        """Importances of the columns, shared out within groups."""
        if self.groups is None:
            return solution.eta
        return self.groups.feature_importances(solution.eta, solution.squared_gradients)


@dataclass(frozen=True)
class Critic:
    """A fitted critic; of the training rows it holds the landmarks only."""

    bound: BoundMap
    center: Array
    U: Array

    def __call__(self, X: Array) -> Array:
        """U' phi(x) at standardised rows, (n, k)."""
        return (self.bound.values(X) - self.center) @ self.U

    def explain(self, X: Array, psi: Array) -> Explanation:
        """Integrated gradients: x_j ∫ ∂_j f(t x, y) dt along the line from the mean row to x.

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


def mixed(critics: Sequence[Critic], weights: Array) -> Critic:
    """The weighted sum of critics of the same columns, as one critic."""
    bound = SideBySide([critic.bound for critic in critics])
    sizes = [each.n_functions for each in bound.maps]
    parts = [w * critic.U for w, critic in zip(weights, critics, strict=True)]
    center = [critic.center[:m] for critic, m in zip(critics, sizes, strict=True)]
    U = [part[:m] for part, m in zip(parts, sizes, strict=True)]
    straight = [k for k, each in enumerate(bound.maps) if each.linear]
    if straight:  # the mean of the columns, the same for all
        center.append(critics[straight[0]].center[sizes[straight[0]] :])
        U.append(sum(parts[k][sizes[k] :] for k in straight))
    return Critic(bound, np.concatenate(center), np.vstack(U))


@dataclass(frozen=True)
class Fit:
    """A fit: the bound map, its forms, the solution, the metric and the number of rounds.

    If the fit used candidate columns only, ``screening`` says which, and how the others were
    checked.
    """

    bound: BoundMap
    forms: Forms
    solution: Solution
    metric: Array
    n_rounds: int
    screening: Screening | None = None

    def critic(self, solution: Solution | None = None) -> Critic:
        """The critic of the solution, or of another solution on the same forms."""
        forms, U = self.forms, (solution or self.solution).U
        if isinstance(forms, CoupledForms):
            return Critic(self.bound, forms.blocks[0, 0].mean, forms.split(U))
        return Critic(self.bound, forms.mean, U)


def solve(
    forms: Forms,
    settings: Settings,
    lam: float,
    eta: Array | None = None,
    *,
    max_iter: int | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Solution:
    """Solve at one lam."""
    options = {"groups": settings.groups, "eta": eta, "callback": callback}
    if settings.output_weights is not None:
        options["output_weights"] = settings.output_weights
    return settings.solver.solve(forms, settings.penalties(lam), max_iter=max_iter, **options)


def next_metric(solution: Solution, settings: Settings) -> Array:
    """The metric of the kernel for the next round: each column scaled by its importance.

    Columns that are not penalised have no importance; their slopes, in the unit of the importances,
    take its place, so the kernel follows the covariates as it follows other columns.
    """
    eta, adjusted = settings.feature_importances(solution), settings.adjusted
    if adjusted.size:
        assert settings.groups is not None
        total = np.sqrt(settings.groups.squared_gradients(solution.squared_gradients)).sum()
        eta = eta.copy()
        eta[adjusted] = np.sqrt(solution.squared_gradients[adjusted]) / max(total, SMALLEST)
    return (eta / max(eta.max(), SMALLEST)) ** METRIC_POWER + METRIC_FLOOR


def start_metric(data: Data, groups: Groups | None = None) -> Array:
    """The metric of the first round: isotropic, unless second-order effects are strong.

    A kernel on hundreds of columns does not see a curvature or an interaction without main effect
    (XOR). Two screens, squared gradients of the quadratic critics x' E[psi x x'] x, see them:
    b_j² = sum_k E[psi x_j x_k]², whose excess over the median is measured in robust deviations, and
    the z-score of E[psi x_j²]. Columns above either threshold start with ten times the weight
    of the others, and more if there are over 200 columns; the following rounds correct it.
    Columns in none of the groups, which are not penalised, have the largest weight.
    """
    rows = data.screen
    X, psi, p = rows.X, rows.psi, rows.p / rows.p.sum()
    metric = np.ones(X.shape[1])
    ranked = np.ones(metric.size, dtype=bool) if groups is None else ~groups.adjusted
    if not ranked.any():
        return metric
    pairs = pair_strength(X, psi, p)[ranked]
    pairs -= np.median(pairs)
    spread = 1.4826 * np.median(np.abs(pairs))
    curved = curvature(X, psi, p)[ranked]
    curved -= np.median(curved)
    score = np.maximum(pairs / (SCREEN_PAIRS * spread + 1e-300), curved / SCREEN_CURVATURE)
    if score.max() <= 1.0 or spread == 0.0:
        return metric
    floor = min(SCREEN_FLOOR, SCREEN_BACKGROUND / X.shape[1])
    metric[ranked] = np.where(score > 1.0, score / score.max(), 0.0) + floor
    metric[~ranked] = metric[ranked].max()
    return metric


def fit_critic(
    data: Data,
    settings: Settings,
    lam: float,
    start: tuple[Array, Array] | None = None,
    callback: Callable[[int, int, float], None] | None = None,
) -> Fit:
    """Fit at one lam, with the recursive metric.

    Each round rescales the kernel by the importances of the round before, until they settle; the
    last round is solved to the tolerance of the solver.

    Parameters
    ----------
    data, settings, lam
        The rows, the settings and the weight of the gradient penalty.
    start : (metric, eta), optional
        Metric and importances to start from; by default the screened metric and uniform
        importances.
    callback : callable, optional
        Called with round, iteration and objective.
    """
    if settings.screen is not None:
        return _fit_candidates(data, settings, lam, callback)
    rounds = settings.n_rounds
    if start is None and rounds > 1:
        early = _cheaper(data, settings)
        if early is not None:
            return _fit_in_two(data, settings, *early, lam, callback)
    metric, eta = (start_metric(data, settings.groups), None) if start is None else start
    begin = None if eta is None else np.maximum(eta, WARM_FLOOR / max(eta.size, 1))
    for number in range(1, rounds + 1):
        bound = data.bind(settings.map, metric, settings.seed)
        forms = data.forms(bound, settings.measure, settings.seed)
        last = number == rounds
        watch = None if callback is None else partial(callback, number)
        most = None if last else min(ROUND_ITERATIONS, settings.solver.max_iter)
        solution = solve(forms, settings, lam, begin, max_iter=most, callback=watch)
        settled = eta is not None and 0.5 * np.abs(solution.eta - eta).sum() < SETTLED
        eta = solution.eta
        if not last and settled:
            solution = solve(forms, settings, lam, eta, callback=watch)
        if last or settled:
            break
        metric, begin = next_metric(solution, settings), _blend(eta)
    return Fit(bound, forms, solution, metric, number)


def _fit_candidates(
    data: Data,
    settings: Settings,
    lam: float,
    callback: Callable[[int, int, float], None] | None,
) -> Fit:
    """Fit candidate columns; add columns that violate the optimality condition until none does."""
    assert settings.screen is not None
    assert isinstance(data, Rows)  # columns are screened in memory only
    columns, start = candidates(data, settings.screen, always=settings.adjusted), None
    for check in range(1, MAX_CHECKS + 1):
        narrow, plain = data.columns(columns), settings.on_columns(columns)
        fit = fit_critic(narrow, plain, lam, start, callback)
        residual = narrow.psi - settings.rho * fit.critic()(narrow.X)
        level = lam * float(np.sqrt(fit.solution.squared_gradients[plain.penalised]).sum())
        curved = fit.bound.n_functions > 0
        ratios = optimality_ratios(data, columns, residual, level, squares=curved)
        new = joining(ratios, settings.screen)
        if new.size == 0 or check == MAX_CHECKS:
            break
        both = np.union1d(columns, new)
        old = np.searchsorted(both, columns)
        metric, eta = np.full(both.size, METRIC_FLOOR), np.full(both.size, 1.0 / both.size)
        metric[old], eta[old[plain.penalised]] = fit.metric, fit.solution.eta
        columns, start = both, (metric, eta[settings.on_columns(both).penalised])
    return replace(fit, screening=Screening(columns, ratios, check))


def _cheaper(data: Data, settings: Settings) -> tuple[Data, Settings] | None:
    """What the rounds before the last, which only find a metric, are run on; None: the same."""
    if data.subsample is not None:
        return data.subsample, settings
    own = settings.map
    if data.n_rows <= MANY_ROWS or not (isinstance(own, LandmarkMap) and own.adapts):
        return None
    if own.n_components is not None and own.n_components <= EARLY_LANDMARKS:
        return None
    return data, replace(settings, map=replace(own, n_components=EARLY_LANDMARKS))


def _fit_in_two(
    data: Data,
    settings: Settings,
    early_data: Data,
    early: Settings,
    lam: float,
    callback: Callable[[int, int, float], None] | None,
) -> Fit:
    """Run the rounds before the last on less, the last on everything."""
    first = fit_critic(early_data, early.with_rounds(early.n_rounds - 1), lam, callback=callback)
    start = next_metric(first.solution, settings), _blend(first.solution.eta)
    fit = fit_critic(data, settings.with_rounds(1), lam, start, callback)
    return replace(fit, n_rounds=first.n_rounds + 1)


def _blend(eta: Array) -> Array:
    """Half-way back to uniform: a warm start from which small importances can still grow."""
    return 0.5 * eta + 0.5 / max(eta.size, 1)


def path(
    forms: Forms, settings: Settings, lams: Sequence[float], eta: Array | None
) -> list[Solution]:
    """Solutions along lam on fixed forms, each started from the one before."""
    solutions: list[Solution] = []
    for lam in lams:
        solutions.append(solve(forms, settings, lam, None if eta is None else _blend(eta)))
        eta = solutions[-1].eta
    return solutions


def row_risk(h: Array, psi: Array, rho: float) -> Array:
    """The risk of each row for h = U' phi(x) and white psi, where E_ỹ f(x, ỹ)² = |h|²."""
    found: Array = risk(np.sum(h * psi, axis=1), np.sum(h**2, axis=1), rho)
    return found
