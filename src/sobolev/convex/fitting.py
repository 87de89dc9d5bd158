"""Fit the convex critic to a sample: measures, the recursive metric, cross-validation of lam.

Everything here takes arrays and plain settings; the estimator validates, names and stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sobolev._sample import Sample, response_order, stratified_folds
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
from sobolev.convex.solvers import (
    ETA_FLOOR,
    SOLVERS,
    Forms,
    Penalties,
    Solution,
    alternating_joint,
    continuation,
    gradient_weights,
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

# The screen for second-order effects: thresholds, and the weight of columns below them.
SCREEN_PAIRS, SCREEN_CURVATURE = 6.0, 4.0
SCREEN_FLOOR = 0.1

# Up to this many rows one BLAS thread is as fast as several, and far faster on a busy machine.
SMALL_SAMPLE = 1000

# Points of the quadrature along a path, and rows explained at once.
PATH_NODES = 32
EXPLAIN_ROWS = 2048

CV_ROUNDS = 3
CV_LANDMARKS = 250


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
    """A fit: the bound map, its forms, the solution, the metric and the rounds run."""

    bound: BoundMap
    forms: Forms
    solution: Solution
    metric: Array
    n_rounds: int

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
    the z-score of E[psi x_j²]. Columns that clear either threshold start with up to 1/FLOOR times
    the weight of the others; the rounds that follow decide.
    """
    if isinstance(sample, Stream):
        sample = sample.screen
    step = max(1, sample.p.size // SCREEN_ROWS)
    X, psi, p = sample.X[::step], sample.psi[::step], sample.p[::step]
    p = p / p.sum()
    pairs = np.zeros(X.shape[1])
    for column in psi.T:
        weighted = (p * column)[:, None] * X
        if X.shape[1] <= X.shape[0]:
            pairs += np.sum((weighted.T @ X) ** 2, axis=0)
        else:
            pairs += np.sum(weighted * ((X @ X.T) @ weighted), axis=0)
    pairs -= np.median(pairs)
    spread = 1.4826 * np.median(np.abs(pairs))
    squares = X**2 - p @ X**2
    scale = np.sqrt(p @ squares**2 * (p @ p)) + 1e-12
    curvature = np.sqrt(np.sum(((p[:, None] * squares).T @ psi) ** 2, axis=1)) / scale
    curvature -= np.median(curvature)
    score = np.maximum(pairs / (SCREEN_PAIRS * spread + 1e-300), curvature / SCREEN_CURVATURE)
    if score.max() <= 1.0 or spread == 0.0:
        return np.ones(X.shape[1])
    return np.where(score > 1.0, score / score.max(), 0.0) + SCREEN_FLOOR


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


def cross_validate(
    sample: Sample | Stream,
    settings: Settings,
    lams: Sequence[float] = LAMS,
    folds: Sequence[Index] | int = 5,
    n_jobs: int | None = None,
    relaxed: Sequence[float] = (),
) -> Array:
    """Held-out risk of each lam in each fold, (n_folds, n_lams).

    With ``relaxed``, of a critic refitted to the importances of each lam at the best of these:
    a large lam is judged by the columns that it picks, not by how much it shrinks the critic.

    Each fold finds its own metric at a reference lam and then walks the path on it. With a landmark
    map the folds use fewer landmarks and looser solutions than the final fit. With a Fourier map
    the metric is found once on all rows and the folds are sums of moments. The folds of a stream
    go by the position of the rows.
    """
    if isinstance(folds, int) and isinstance(sample, Sample):
        if isinstance(settings.map, LandmarkMap):  # it draws landmarks by position
            order = response_order(sample)
            sample = Sample(sample.X[order], sample.psi[order], sample.p[order])
        folds = stratified_folds(sample, folds)
    if not folds:  # two or three distinct rows: nothing to hold out
        return np.zeros((1, len(lams)))
    loose = loosened(settings)
    fourier = isinstance(settings.map, FourierMap) and settings.measure == "product"
    if fourier or isinstance(sample, Stream):
        eta, parts = _fold_moments(sample, loose, folds)
        return moment_risks(parts, loose, lams, eta, relaxed)
    assert not isinstance(folds, int)
    if isinstance(settings.map, LandmarkMap):
        most = settings.map.n_components or CV_LANDMARKS
        fewer = replace(settings.map, n_components=min(most, CV_LANDMARKS))
        # Under the product measure lam then depends neither on random_state nor on the row order.
        seed = 0 if settings.measure == "product" else settings.seed
        loose = replace(loose, map=fewer, seed=seed)
    tasks = [delayed(_fold_risks)(sample, loose, lams, test, relaxed) for test in folds]
    with threadpool_limits(1):  # once for all folds: the same arithmetic for any n_jobs
        return _best_refit(np.array(Parallel(n_jobs=n_jobs, prefer="threads")(tasks)))


def loosened(settings: Settings) -> Settings:
    """Settings for cross-validation: fewer rounds, looser solutions."""
    return replace(
        settings,
        rounds=min(settings.rounds, CV_ROUNDS),
        max_iter=min(settings.max_iter, ROUND_ITERATIONS),
        epsilons=settings.epsilons[-1:],
        solver="alternating",
        output_weights=None,
    )


def fit_moments(
    parts: Sequence[FourierMoments], settings: Settings, lam: float, metric: Array
) -> Fit:
    """Fit to moments alone: one round under the metric that they were formed with."""
    whole = parts[0]
    for other in parts[1:]:
        whole = whole.merge(other)
    forms = whole.forms()
    return Fit(whole.map, forms, solve(forms, settings, lam), metric, 1)


def _best_refit(risks: Array) -> Array:
    """Of each lam the refit that is best on average, (n_folds, n_lams)."""
    best = risks.mean(axis=0).argmax(axis=-1)
    return risks[:, np.arange(best.size), best]


def _refits(
    forms: Forms, settings: Settings, solution: Solution, relaxed: Sequence[float]
) -> list[Solution]:
    """The solution, or critics at the ``relaxed`` lams with its importances."""
    if not relaxed:
        return [solution]
    weights = gradient_weights(np.maximum(solution.eta, ETA_FLOOR), settings.groups)
    return [
        replace(solution, U=forms.solve(weights, lam, settings.rho, settings.tau))
        for lam in relaxed
    ]


def _fold_risks(
    sample: Sample,
    settings: Settings,
    lams: Sequence[float],
    test: Index,
    relaxed: Sequence[float],
) -> Array:
    """Held-out risks of one fold, (n_lams, n_refits)."""
    train = np.setdiff1d(np.arange(sample.p.size), test)
    inner = sample.rows(train)
    p = sample.p[train] / sample.p[train].sum()
    fit = fit_critic(inner, settings, REFERENCE_LAM)
    if settings.adapts:
        metric = next_metric(fit.solution, settings.groups)
        bound = bind(inner, settings, metric)
        forms = measure_forms(bound, inner, settings.measure, settings.seed)
        fit = replace(fit, bound=bound, forms=forms)
    X = sample.X[test] - p @ sample.X[train]
    psi, weights = sample.psi[test], sample.p[test] / sample.p[test].sum()
    values = fit.bound.values(X) - fit.critic().center

    def risk(solution: Solution) -> float:
        return float(weights @ row_risk(values @ fit.critic(solution).U, psi, settings.rho))

    solutions = path(fit.forms, settings, lams, fit.solution.eta)
    return np.array(
        [[risk(r) for r in _refits(fit.forms, settings, s, relaxed)] for s in solutions]
    )


def _fold_moments(
    sample: Sample | Stream, settings: Settings, folds: Sequence[Index] | int
) -> tuple[Array, list[FourierMoments]]:
    """The importances at the reference lam, and the moments of each fold under their metric."""
    few = sample.subsample if isinstance(sample, Stream) else None
    fit = fit_critic(few or sample, settings, REFERENCE_LAM)
    bound = bind(sample, settings, next_metric(fit.solution, settings.groups))
    assert isinstance(bound, BoundFourierMap)
    if isinstance(sample, Stream):
        assert isinstance(folds, int)
        return fit.solution.eta, sample.moments(bound, folds)
    assert not isinstance(folds, int)
    k = sample.psi.shape[1]
    parts = [
        FourierMoments.empty(bound, k).update(sample.X[f], sample.psi[f], sample.p[f])
        for f in folds
    ]
    return fit.solution.eta, parts


def moment_risks(
    parts: Sequence[FourierMoments],
    settings: Settings,
    lams: Sequence[float],
    eta: Array | None,
    relaxed: Sequence[float] = (),
) -> Array:
    """Held-out risk of each lam from the moments of each fold, (n_folds, n_lams)."""
    whole = parts[0]
    for other in parts[1:]:
        whole = whole.merge(other)
    risks = []
    for part in parts:
        train = whole.remove(part)
        forms = train.forms()
        solutions = [
            _refits(forms, settings, solution, relaxed)
            for solution in path(forms, settings, lams, eta)
        ]
        risks.append([[part.risk(r.U, train.mean, settings.rho) for r in s] for s in solutions])
    return _best_refit(np.array(risks))


def row_risk(h: Array, psi: Array, rho: float) -> Array:
    """f(x, y) - rho/2 E_ỹ f(x, ỹ)² per row, for h = U' phi(x) and white psi."""
    return np.sum(h * psi, axis=1) - 0.5 * rho * np.sum(h**2, axis=1)
