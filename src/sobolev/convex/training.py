"""From the parameters of :class:`~sobolev.ConvexSIC` to its fitted attributes.

Arrays in memory and rows in chunks share these steps; each takes the estimator and stores what it
finds on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sobolev._parameters import check_number, check_option
from sobolev._progress import Progress
from sobolev._random import check_generator
from sobolev._sample import (
    Folds,
    merge_equal_rows,
    report_constant,
    spread,
    used_rows,
    varying_groups,
)
from sobolev._standardize import Standardizer
from sobolev._threads import blas_threads
from sobolev._typing import Array
from sobolev.convex.choosing import BestMap, Contest, Rival, resolve_feature_map, still_open
from sobolev.convex.cross_validation import cross_validate
from sobolev.convex.feature_maps import LandmarkMap, MapSpec
from sobolev.convex.fitting import (
    LAMS,
    REFERENCE_LAM,
    RELAXED_LAMS,
    TAU,
    Fit,
    Settings,
    fit_critic,
    mixed,
)
from sobolev.convex.norm_weight import is_open, with_tau
from sobolev.convex.rows import MEASURES, Data, Rows
from sobolev.convex.screening import KEPT, WIDE, Screening
from sobolev.convex.solvers import Alternating, decomposition, resolve_solver
from sobolev.criterion import Groups, choose_lam
from sobolev.exceptions import ConvergenceWarning
from sobolev.targets import TargetEncoder, resolve_target
from sobolev.validation import take_rows

# Largest number of rows among which equal ones are merged; landmark maps always merge them.
MERGE_ROWS = 5000


def check_parameters(estimator: Any) -> None:
    """Refuse parameters that do not make sense, before anything is computed."""
    lam = estimator.lam
    if isinstance(lam, str):
        if lam not in ("auto", "relaxed"):
            raise ValueError(f'lam={lam!r} is unknown; use a positive number, "auto" or "relaxed".')
    else:
        check_number("lam", lam, positive=True)
    check_number("rho", estimator.rho)
    if isinstance(estimator.tau, str):
        check_option("tau", estimator.tau, ("auto",))
    else:
        check_number("tau", estimator.tau, positive=True)
    check_option("measure", estimator.measure, MEASURES)
    solver, encoder = resolve_solver(estimator.solver), resolve_target(estimator.target)
    encoder.check_parameters()
    if encoder.select and not (estimator.measure == "product" and isinstance(solver, Alternating)):
        raise ValueError(
            'TargetEncoder(select=True) needs measure="product" and solver="alternating".'
        )


def forget(estimator: Any) -> None:
    """Remove the attributes of an earlier fit, except what the check of X stored."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        if not name.endswith("_in_"):
            delattr(estimator, name)


def feature_map(estimator: Any, n_rows: int) -> MapSpec:
    """The feature map for a number of rows."""
    single = resolve_solver(estimator.solver).precision == "single"
    return resolve_feature_map(estimator.feature_map, n_rows, single)


def store_encoder(estimator: Any, encoder: TargetEncoder) -> None:
    """Store a fitted encoder and its labels."""
    estimator.encoder_ = encoder
    if encoder.classes_ is not None:
        estimator.classes_ = encoder.classes_


def store_units(estimator: Any, standardizer: Standardizer, stacklevel: int) -> Groups | None:
    """Store the units of the columns; report constant columns; return the groups of the others."""
    estimator.standardizer_ = standardizer
    names = getattr(estimator, "feature_names_in_", None)
    report_constant(standardizer.varying, names, stacklevel + 1)
    varying = standardizer.varying
    return varying_groups(estimator.feature_groups, varying, names, estimator.adjust)


def make_settings(
    estimator: Any, spec: MapSpec, groups: Groups | None, encoder: TargetEncoder | None
) -> Settings:
    """Settings of a fit; without a fitted encoder the responses get no importances."""
    weights = encoder.output_weights if encoder is not None and encoder.select else None
    return Settings(
        map=spec,
        solver=resolve_solver(estimator.solver),
        rho=float(estimator.rho),
        tau=TAU if estimator.tau == "auto" else float(estimator.tau),
        groups=groups,
        measure=estimator.measure,
        seed=int(check_generator(estimator.random_state).integers(2**32)),
        output_weights=weights,
    )


def prepare(estimator: Any, X: Array, y: Any, p: Array) -> tuple[Rows, Settings, Folds]:
    """Encode and standardise checked rows with probabilities p."""
    X, y, p, folds = used_rows(estimator, X, y, p)
    encoder = resolve_target(estimator.target).fit(y, p)
    psi = encoder.transform(y)
    store_encoder(estimator, encoder)
    spec = feature_map(estimator, X.shape[0])
    few = isinstance(spec, LandmarkMap) or X.shape[0] <= MERGE_ROWS
    if few and estimator.measure != "permuted" and isinstance(folds, int):
        X, psi, p = merge_equal_rows(X, psi, p)
    standardizer = (Standardizer.fit_scores if spec.scores else Standardizer.fit)(X, p)
    groups = store_units(estimator, standardizer, stacklevel=5)
    settings = make_settings(estimator, spec, groups, encoder)
    screen = n_candidates(settings, int(standardizer.varying.sum()))
    rows = standardizer.transform(X)
    if screen is not None and settings.solver.precision == "single":
        rows = rows.astype(np.float32)
    return Rows(rows, psi, p), replace(settings, screen=screen), folds


def n_candidates(settings: Settings, d: int) -> int | None:
    """Number of candidate columns, of d, to fit first; None for all."""
    asked = settings.solver.screen
    plain = (
        settings.map.screens
        and (settings.groups is None or settings.groups.only_adjust)
        and settings.measure == "product"
        and settings.output_weights is None
    )
    if asked is None or (asked == "auto" and (d <= WIDE or not plain)):
        return None
    if not plain:
        raise ValueError(
            f"screen={asked!r} needs a landmark, Fourier or linear map, "
            'measure="product", no feature_groups and no TargetEncoder(select=True); '
            "use screen=None."
        )
    keep = KEPT if asked == "auto" else int(asked)
    return keep if keep < d else None


def train(
    estimator: Any, data: Data, settings: Settings, folds: Folds, contest: Contest | None = None
) -> None:
    """Choose the map, lam and tau if they are not given, fit the critic and store it.

    ``contest`` has the maps to choose from if they were compared before. The critic then is the
    mixture of maps that did best on the rows since.
    """
    risks = None
    with blas_threads(data.n_rows), Progress(estimator.verbose) as progress:
        if contest is None or not isinstance(settings.map, BestMap):
            progress.stage("choosing lam")
            rivals, risks = compare(estimator, data, settings, folds)
            contest = Contest(tuple(rivals))
        if settings.screen is not None:  # each map has candidate columns of its own
            contest = Contest((contest.best,))
        best, has_rivals = contest.best, isinstance(settings.map, BestMap)
        choosing = estimator.tau == "auto" and is_open(data, settings)
        settings = replace(settings, map=best.map)
        if choosing:
            progress.stage("choosing tau")
            settings = with_tau(data, settings, best.lam, folds, estimator.n_jobs)
        progress.stage(f"fitting at lam={best.lam:g}")

        def report(number: int, iteration: int, objective: float) -> None:
            progress.step(f"round {number}, iteration {iteration}, SIC {-objective:.5f}")

        fit = fit_critic(data, settings, best.lam, _warm_start(estimator, settings), report)
        fits = [
            fit if rival is best else fit_critic(data, replace(settings, map=rival.map), rival.lam)
            for rival in contest.rivals
        ]
    store_fit(estimator, fit, settings, best.lam, risks)
    if has_rivals:
        critics = [each.critic() for each in fits]
        estimator._contest = contest.with_critics(critics)
        if len(critics) > 1:
            weights = contest.weights(settings.rho)
            estimator.critic_ = mixed(critics, weights)
            _store_mean_importances(estimator, settings, fits, weights)


def _store_mean_importances(
    estimator: Any, settings: Settings, fits: Sequence[Fit], weights: Array
) -> None:
    """Store the weighted mean of the importances of several fits."""
    own = [settings.feature_importances(each.solution) for each in fits]
    varying = estimator.standardizer_.varying
    estimator.feature_importances_ = spread(np.average(own, axis=0, weights=weights), varying)
    if hasattr(estimator, "group_importances_"):
        own = [each.solution.eta for each in fits]
        estimator.group_importances_ = np.average(own, axis=0, weights=weights)


def compare(
    estimator: Any, data: Data, settings: Settings, folds: Folds
) -> tuple[list[Rival], Array | None]:
    """The feature maps that may be best, each with its lam, by cross-validated risk.

    Returns
    -------
    rivals : list of Rival
        Those that are not clearly worse than the best; there is one if the map is given.
    risks : array of shape (n_folds, n_lams) or None
        Held-out risk of the best map along lam; None if lam is given.
    """
    lam, spec = estimator.lam, settings.map
    is_open = isinstance(lam, str)
    if not (is_open or isinstance(spec, BestMap)):
        return [Rival(spec, float(lam), 0.0, 0)], None
    lams, relaxed = (LAMS, refit_lams(lam)) if is_open else ((float(lam),), ())
    rivals, of_folds, paths = [], [], []
    for each in spec.rivals if isinstance(spec, BestMap) else (spec,):
        own = replace(settings, map=each)
        risks = cross_validate(data, own, lams, folds, estimator.n_jobs, relaxed)
        chosen = choose_lam(risks, lams, REFERENCE_LAM)
        at_chosen = risks[:, lams.index(chosen)]
        rivals.append(Rival(each, chosen, float(at_chosen.mean()), data.n_rows))
        of_folds.append(at_chosen)
        paths.append(risks)
    best = Contest(tuple(rivals)).best
    found = paths[rivals.index(best)] if is_open else None
    return still_open(rivals, of_folds), found


def judge(estimator: Any, contest: Contest, X: Array, y: Any, p: Array, n: int) -> Contest:
    """The contest after the rows beyond the first n, to which its critics were fitted.

    Each lam falls with the number of rows.
    """
    if len(contest.rivals) > 1 and n < X.shape[0]:
        x = estimator.standardizer_.transform(X[n:])
        psi = estimator.encoder_.transform(take_rows(y, np.arange(n, X.shape[0])))
        contest = contest.judged(x, psi, p[n:] * p.size, float(estimator.rho))
    return contest.with_lams(n / X.shape[0])


def refit_lams(lam: str) -> tuple[float, ...]:
    """Values of lam at which critics are refitted in cross-validation."""
    return RELAXED_LAMS if lam == "relaxed" else ()


def _warm_start(estimator: Any, settings: Settings) -> tuple[Array, Array] | None:
    """Metric and importances of the last fit, if its columns and groups were the same."""
    if not settings.solver.warm_start:
        return None
    start: tuple[Array, Array] | None = getattr(estimator, "_state", None)
    d = int(estimator.standardizer_.varying.sum())
    size = d if settings.groups is None else settings.groups.n_groups
    if start is None or start[0].size != d or start[1].size != size:
        return None
    return start


def store_fit(
    estimator: Any, fit: Fit, settings: Settings, lam: float, risks: Array | None
) -> None:
    """Store the attributes of a fit at lam; ``risks`` are those of the cross-validation."""
    estimator.lam_, estimator.tau_ = lam, settings.tau
    estimator.lam_path_ = None if risks is None else np.array(LAMS)
    estimator.lam_risks_ = risks
    estimator.screening_ = fit.screening
    if fit.screening is not None:
        _report_missed(fit.screening, settings, lam)
        estimator.standardizer_ = estimator.standardizer_.keep(fit.screening.columns)
        settings = settings.on_columns(fit.screening.columns)
    solution, varying = fit.solution, estimator.standardizer_.varying
    estimator.critic_, estimator.feature_map_ = fit.critic(), settings.map
    estimator._state = (fit.metric, solution.eta)
    terms = decomposition(fit.forms, solution, settings.penalties(lam), settings.groups)
    estimator.decomposition_ = replace(terms, per_feature=spread(terms.per_feature, varying))
    estimator.feature_importances_ = spread(settings.feature_importances(solution), varying)
    if settings.groups is not None and estimator.feature_groups is not None:
        estimator.group_importances_ = solution.eta
        estimator.group_names_ = settings.groups.names
    if solution.zeta.size:
        estimator.target_importances_ = solution.zeta
    estimator.sic_ = 0.5 * terms.mean_difference
    estimator.n_iter_ = max(1, solution.n_iter)
    estimator.n_rounds_ = fit.n_rounds
    estimator.objective_curve_ = solution.objective_curve
    if not solution.converged:
        solver = settings.solver
        warnings.warn(
            f"the importances still change by {solution.residual:.2g} after "
            f"max_iter={solver.max_iter} iterations (tol={solver.tol:g}); raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _report_missed(screening: Screening, settings: Settings, lam: float) -> None:
    if screening.n_missed:
        warnings.warn(
            f"{screening.n_missed} columns still violate the optimality condition after "
            f"{screening.n_checks} fits to {screening.columns.size} columns; raise `screen` "
            f"(now {settings.solver.screen!r}) or `lam` ({lam:g}).",
            ConvergenceWarning,
            stacklevel=6,
        )
