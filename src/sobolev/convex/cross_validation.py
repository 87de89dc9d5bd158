"""Cross-validation of lam for the convex critic: by rows, or by the moments of folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sobolev._sample import Sample, response_order, stratified_folds
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import BoundFourierMap, FourierMap, LandmarkMap
from sobolev.convex.fitting import (
    LAMS,
    REFERENCE_LAM,
    ROUND_ITERATIONS,
    Settings,
    bind,
    fit_critic,
    measure_forms,
    next_metric,
    path,
    row_risk,
)
from sobolev.convex.moments import FourierMoments
from sobolev.convex.screening import candidates
from sobolev.convex.solvers import ETA_FLOOR, Forms, Solution, gradient_weights
from sobolev.convex.streaming import Stream

CV_ROUNDS = 3
CV_LANDMARKS = 250


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
        if loose.screen is not None and isinstance(sample, Sample):
            sample = sample.columns(candidates(sample, loose.screen))
            loose = replace(loose, screen=None)
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
    if settings.screen is not None:  # with the rows of the fold, so that the others stay unseen
        sample = sample.columns(candidates(sample, settings.screen, train))
        settings = replace(settings, screen=None)
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
