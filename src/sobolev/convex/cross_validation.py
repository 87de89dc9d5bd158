"""Cross-validation of lam for the convex critic: by rows, or by the moments of folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, reduce

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sobolev._sample import Folds
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import BoundFourierMap, LandmarkMap
from sobolev.convex.fitting import (
    LAMS,
    REFERENCE_LAM,
    ROUND_ITERATIONS,
    Settings,
    fit_critic,
    next_metric,
    path,
    row_risk,
)
from sobolev.convex.moments import FourierMoments
from sobolev.convex.rows import Data, Rows
from sobolev.convex.screening import candidates
from sobolev.convex.solvers import ETA_FLOOR, Alternating, Forms, Solution, gradient_weights
from sobolev.criterion import SMALLEST

# How good a critic is on held-out rows: its values, the encoded responses, and the weights of rows.
Score = Callable[[Array, Array, Array], float]

# Largest numbers of rounds and of landmarks of the fits to folds.
CV_ROUNDS = 3
CV_LANDMARKS = 250


def cross_validate(
    data: Data,
    settings: Settings,
    lams: Sequence[float] = LAMS,
    folds: Folds = 5,
    n_jobs: int | None = None,
    relaxed: Sequence[float] = (),
    score: Score | None = None,
) -> Array:
    """Held-out risk, or another score, of each lam in each fold, (n_folds, n_lams).

    With ``relaxed``, the critic is refitted to the importances of each lam at the best of these
    values: a large lam is judged by the columns that it picks, not by how much it shrinks the
    critic.

    Each fold finds its own metric at a reference lam and then follows the path of lam on it. With
    landmarks the folds use fewer landmarks and looser solutions than the final fit. With Fourier
    features the metric is found once on all rows and the folds are sums of moments.
    """
    data, folds = data.split(folds, settings.map)
    if not folds:  # two or three distinct rows: nothing to hold out
        return np.zeros((1, len(lams)))
    loose = loosened(settings)
    score = score or partial(mean_risk, rho=settings.rho)
    if data.by_moments(settings.map, settings.measure):
        if loose.screen is not None:
            assert isinstance(data, Rows)
            columns = candidates(data, loose.screen, always=loose.adjusted)
            data, loose = data.columns(columns), loose.on_columns(columns)
        eta, parts = _fold_moments(data, loose, folds)
        return moment_risks(parts, loose, lams, eta, relaxed)
    assert isinstance(data, Rows)
    assert not isinstance(folds, int)
    if isinstance(settings.map, LandmarkMap):
        most = settings.map.n_components or CV_LANDMARKS
        fewer = replace(settings.map, n_components=min(most, CV_LANDMARKS))
        # Under the product measure lam then depends neither on random_state nor on the row order.
        seed = 0 if settings.measure == "product" else settings.seed
        loose = replace(loose, map=fewer, seed=seed)
    tasks = [delayed(_fold_scores)(data, loose, lams, test, relaxed, score) for test in folds]
    with threadpool_limits(1):  # once for all folds: the same arithmetic for any n_jobs
        return _best_refit(np.array(Parallel(n_jobs=n_jobs, prefer="threads")(tasks)))


def mean_risk(h: Array, psi: Array, p: Array, rho: float) -> float:
    """The mean risk of rows with probabilities p."""
    return float(p @ row_risk(h, psi, rho))


def squared_correlation(h: Array, psi: Array, p: Array) -> float:
    """Squared correlation of a critic with white responses, zero if negative.

    With rho=1 it is twice the risk of the best multiple of the critic.
    """
    joint = max(float(p @ np.sum(h * psi, axis=1)), 0.0)
    return joint**2 / max(float(p @ np.sum(h**2, axis=1)), SMALLEST)


def loosened(settings: Settings) -> Settings:
    """Settings for cross-validation: fewer rounds, looser solutions."""
    solver = settings.solver
    quick = Alternating(
        rounds=min(solver.n_rounds, CV_ROUNDS),
        max_iter=min(solver.max_iter, ROUND_ITERATIONS),
        tol=solver.tol,
        epsilon=solver.epsilons[-1],
    )
    return replace(settings, solver=quick, output_weights=None)


def _best_refit(risks: Array) -> Array:
    """Risks of the refit of each lam that is best on average, (n_folds, n_lams)."""
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


def _fold_scores(
    rows: Rows,
    settings: Settings,
    lams: Sequence[float],
    test: Index,
    relaxed: Sequence[float],
    score: Score,
) -> Array:
    """Scores of one held-out fold, (n_lams, n_refits)."""
    train = np.setdiff1d(np.arange(rows.n_rows), test)
    if settings.screen is not None:  # by the training rows: the others stay unseen
        columns = candidates(rows, settings.screen, train, settings.adjusted)
        rows, settings = rows.columns(columns), settings.on_columns(columns)
    inner = rows.rows(train)
    fit = fit_critic(inner, settings, REFERENCE_LAM)
    if settings.map.adapts:
        bound = inner.bind(settings.map, next_metric(fit.solution, settings), settings.seed)
        forms = inner.forms(bound, settings.measure, settings.seed)
        fit = replace(fit, bound=bound, forms=forms)
    X = rows.X[test] - inner.p @ rows.X[train]
    psi, weights = rows.psi[test], rows.p[test] / rows.p[test].sum()
    values = fit.bound.values(X) - fit.critic().center

    def scored(solution: Solution) -> float:
        return score(values @ fit.critic(solution).U, psi, weights)

    solutions = path(fit.forms, settings, lams, fit.solution.eta)
    return np.array(
        [[scored(r) for r in _refits(fit.forms, settings, s, relaxed)] for s in solutions]
    )


def _fold_moments(
    data: Data, settings: Settings, folds: Folds
) -> tuple[Array, list[FourierMoments]]:
    """The importances at the reference lam, and the moments of each fold under their metric."""
    fit = fit_critic(data.subsample or data, settings, REFERENCE_LAM)
    bound = data.bind(settings.map, next_metric(fit.solution, settings), settings.seed)
    assert isinstance(bound, BoundFourierMap)
    return fit.solution.eta, data.moments(bound, folds)


def moment_risks(
    parts: Sequence[FourierMoments],
    settings: Settings,
    lams: Sequence[float],
    eta: Array | None,
    relaxed: Sequence[float] = (),
) -> Array:
    """Held-out risk of each lam from the moments of each fold, (n_folds, n_lams)."""
    whole = reduce(FourierMoments.merge, parts)
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
