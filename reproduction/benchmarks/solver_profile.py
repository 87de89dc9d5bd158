"""Where the time of a ConvexSIC fit goes, and what faster iterations could save.

Counts the linear systems of a fit and the CPU time of their parts, and the iterations that the
fixed point needs: plain, from the solution of the lam before, and with Anderson acceleration.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction.benchmarks.ranking_data import Drawn, liang, sinexp
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from sobolev import ConvexSIC
from sobolev.convex.fitting import fit_critic, next_metric
from sobolev.convex.solvers import ETA_FLOOR, Penalties, Solution, alternating
from sobolev.convex.training import prepare
from sobolev.criterion import normalized_importances

NAME = "solver_profile"
LAM, TOLERANCES, MEMORY, MOST = 0.03, (1e-3, 1e-6), 5, 3000
# The functions that a fit spends its time in, by file and name.
PARTS = {
    "penalty Σ w D": [("quadratics.py", "penalty")],
    "linear block": [("quadratics.py", "shifted"), ("quadratics.py", "quadratic_inverse")],
    "squared gradients": [("quadratics.py", "squared_gradients")],
    "kernel and forms": [("rows.py", "bind"), ("rows.py", "forms")],
}


@dataclass(frozen=True)
class Case:
    """A data set by name."""

    name: str
    draw: Callable[..., Drawn]
    options: dict[str, Any]


CASES = (
    Case("SinExp, 500 × 50", sinexp, {"n_samples": 500}),
    Case("Liang, 500 × 500", liang, {"n_samples": 500}),
    Case("SinExp, 500 × 10,000", sinexp, {"n_samples": 500, "n_features": 10_000}),
)
QUICK_CASES = (Case("SinExp, 100 × 20", sinexp, {"n_samples": 100, "n_features": 20}),)


def profile(X: np.ndarray, y: np.ndarray) -> Record:
    """CPU seconds of a default fit, in all and by part, and how many systems it solved."""
    watch = cProfile.Profile(time.process_time)
    watch.enable()
    model = ConvexSIC(random_state=0).fit(X, y)
    watch.disable()
    stats: Any = pstats.Stats(watch)
    calls: dict[tuple[str, str], tuple[int, float]] = {}
    for (file, _, name), (count, _, _, cumulative, _) in stats.stats.items():
        key = (file.rsplit("/", 1)[-1], name)
        if cumulative > calls.get(key, (0, -1.0))[1]:  # of methods of one name, the outermost
            calls[key] = (count, cumulative)

    def within(*names: tuple[str, str]) -> float:
        return sum(calls[name][1] for name in names if name in calls)

    total = stats.total_tt
    shares = {part: within(*names) / total for part, names in PARTS.items()}
    solve = ("quadratics.py", "solve")
    inside = shares["penalty Σ w D"] + shares["linear block"]
    shares["rest of the systems"] = max(within(solve) / total - inside, 0.0)
    return {
        "seconds": total,
        "systems": int(calls[("quadratics.py", "penalty")][0]),
        "last": int(model.objective_curve_.size),
        "rounds": int(model.n_rounds_),
        "validation": within(("cross_validation.py", "cross_validate")) / total,
        "shares": shares,
    }


def anderson(forms: Any, penalties: Penalties, tol: float, most: int = MOST) -> int:
    """Systems until the importances rest, extrapolating their logarithms (type II, ``MEMORY``).

    A step that does not lower the objective is taken back to the plain one.
    """
    d = forms.n_features
    at = np.full(d, -np.log(d))
    steps: list[np.ndarray] = []
    places: list[np.ndarray] = []
    best = np.inf
    for count in range(1, most + 1):
        eta = np.exp(at)
        eta /= eta.sum()
        weights = 1.0 / np.maximum(eta, ETA_FLOOR)
        U = forms.solve(weights, penalties.lam, penalties.rho, penalties.tau)
        objective = -0.5 * float(np.sum(U * forms.M))
        squares = np.maximum(forms.squared_gradients(U), 0.0)
        new = np.maximum(normalized_importances(squares, penalties.epsilon), ETA_FLOOR)
        if 0.5 * np.abs(new - eta).sum() <= tol:
            return count
        if objective > best + 1e-12 and places:
            at, steps, places = plain, [], []  # noqa: F821  (set below, before this can happen)
            best = np.inf
            continue
        best = objective
        plain = np.log(new)
        places, steps = [*places, at][-MEMORY:], [*steps, plain - at][-MEMORY:]
        if len(steps) == 1:
            at = plain
            continue
        F = np.array([step - steps[-1] for step in steps[:-1]]).T
        gamma = np.linalg.lstsq(F, -steps[-1], rcond=1e-10)[0]
        at = places[-1] + steps[-1]
        for g, place, step in zip(gamma, places[:-1], steps[:-1], strict=True):
            at = at + g * ((place + step) - (places[-1] + steps[-1]))
    return most


def iterations(X: np.ndarray, y: np.ndarray) -> Record:
    """Systems to each tolerance on the forms of the last round, cold, warm and accelerated."""
    model = ConvexSIC(lam=LAM, random_state=0)
    sample, settings, _ = prepare(model, X, y, np.full(len(y), 1 / len(y)))
    fit = fit_critic(sample, settings, LAM)
    if fit.screening is not None:
        sample = sample.columns(fit.screening.columns)
    bound = sample.bind(settings.map, next_metric(fit.solution, settings), settings.seed)
    forms = sample.forms(bound)
    penalties, before = settings.penalties(LAM), settings.penalties(10**0.5 * LAM)
    sparser: Solution = alternating(forms, before, tol=TOLERANCES[0], max_iter=MOST)
    warm = 0.5 * sparser.eta + 0.5 / sparser.eta.size
    found: Record = {}
    for tol in TOLERANCES:
        plain = alternating(forms, penalties, tol=tol, max_iter=MOST)
        started = alternating(forms, penalties, eta=warm, tol=tol, max_iter=MOST)
        found[f"{tol:g}"] = [
            plain.n_iter + 1,
            started.n_iter + 1,
            anderson(forms, penalties, tol),
        ]
    return found


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Every data set once."""
    return [Task(NAME, {"name": case.name}, 0) for case in (QUICK_CASES if quick else CASES)]


def measure(settings: Settings, seed: int) -> Record:
    """The profile of a fit and the counts of iterations."""
    case = next(each for each in (*CASES, *QUICK_CASES) if each.name == settings["name"])
    X, y, _ = case.draw(seed, **case.options)
    return {"profile": profile(X, y), "iterations": iterations(X, y)}


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    by_name = {row["name"]: row for row in rows}
    records = [by_name[case.name] for case in (*CASES, *QUICK_CASES) if case.name in by_name]
    parts = [*PARTS, "rest of the systems"]
    times = [
        [
            record["name"],
            f"{record['profile']['seconds']:.1f}",
            str(record["profile"]["systems"]),
            str(record["profile"]["rounds"]),
            str(record["profile"]["last"]),
            f"{100 * record['profile']['validation']:.0f} %",
            *(f"{100 * record['profile']['shares'][part]:.0f} %" for part in parts),
        ]
        for record in records
    ]
    header = ["data", "CPU, s", "systems", "rounds", "systems of the last", "cross-validation"]
    counts = [
        [record["name"], tol, *(str(count) for count in record["iterations"][tol])]
        for record in records
        for tol in record["iterations"]
    ]
    return f"""
## Where the time of a fit goes

`ConvexSIC` with default settings on one thread under a profiler, and the systems that the fixed
point needs at lam = {LAM:g}: from uniform importances, from the solution of a lam √10 times as
large (half-way back to uniform, as along the path), and with Anderson acceleration of the logarithm
of the importances (memory {MEMORY}, at most {MOST:,}).
sobolev {rows[0]["version"]}; regenerate with `python -m reproduction solver_profile`.

{markdown_table([*header, *parts], times)}

{markdown_table(["data", "tolerance", "plain", "warm", "Anderson"], counts)}
"""
