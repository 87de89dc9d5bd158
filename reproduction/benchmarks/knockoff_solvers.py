"""S-matrix solvers and knockoff samplers beside cvxpy and knockpy, in one run on one thread.

A peer that is not installed, or that fails, is named with the reason. knockpy needs a C compiler,
and is not in the extras: `pip install knockpy`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from reproduction.child import peak_memory
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from sobolev.knockoffs import LowRankKnockoffs, kkt_residual, solve_s

NAME = "knockoff_solvers"
Solver = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Measurement:
    """``run(quick)`` gives a record; ``least`` is the ratio to reach, ``most`` seconds to keep."""

    name: str
    run: Callable[[bool], Record]
    least: float | None = None
    most: float | None = None


def chain(p: int) -> np.ndarray:
    """Correlations of a Markov chain whose steps have correlations of Beta(3, 1)."""
    steps = np.random.default_rng(0).beta(3, 1, p - 1)
    place = np.concatenate([[0], np.cumsum(np.log(steps))])
    return np.exp(-np.abs(place[:, None] - place))


def cvxpy_sdp(sigma: np.ndarray, solver: str | None = None) -> np.ndarray:
    """The SDP as it is written down, with the default solver of cvxpy or another one."""
    import cvxpy

    s = cvxpy.Variable(sigma.shape[0])
    cone = 2 * sigma - cvxpy.diag(s) >> 0
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(s)), [s >= 0, s <= 1, cone])
    problem.solve(solver=solver)
    return np.asarray(s.value)


def cvxpy_clarabel(sigma: np.ndarray) -> np.ndarray:
    """The same with an interior point method."""
    return cvxpy_sdp(sigma, "CLARABEL")


def knockpy_mvr(sigma: np.ndarray) -> np.ndarray:
    from knockpy import mrc

    return np.diag(mrc.solve_mvr(sigma))


def knockpy_maxent(sigma: np.ndarray) -> np.ndarray:
    from knockpy import mrc

    return np.diag(mrc.solve_maxent(sigma))


def knockpy_sdp(sigma: np.ndarray) -> np.ndarray:
    from knockpy import mac

    return np.diag(mac.solve_SDP(sigma))


def beside(method: str, peer_name: str, peer: Solver | None, p: int, small: int) -> Callable:
    """A comparison of one method at p columns (``small`` when quick)."""

    def run(quick: bool) -> Record:
        sigma = chain(small if quick else p)
        solve_s(chain(20), method)  # imports are not timed
        start = time.process_time()
        s = solve_s(sigma, method)
        seconds = time.process_time() - start
        record = {
            "what": f"{method}, p = {sigma.shape[0]}",
            "peer": peer_name,
            "seconds": seconds,
            "residual": kkt_residual(sigma, s, method),
            "peer_seconds": None,
            "notes": {},
        }
        if peer is not None:
            record |= _peer(peer, sigma, s, method)
        return record

    return run


def _peer(peer: Solver, sigma: np.ndarray, s: np.ndarray, method: str) -> Record:
    try:
        peer(chain(10))
        start = time.process_time()
        theirs = peer(sigma)
        seconds = time.process_time() - start
    except Exception as error:  # whatever a peer raises is told, not hidden
        return {"notes": {"left out": f"{type(error).__name__}: {error}"}}
    notes = {
        "residual of the peer": _residual(sigma, theirs, method),
        "largest difference of s": f"{np.abs(s - theirs).max():.1g}",
    }
    if method == "sdp":
        notes["mean(s) minus the peer's"] = f"{np.mean(s) - np.mean(theirs):.1g}"
    return {"peer_seconds": seconds, "notes": notes}


def _residual(sigma: np.ndarray, s: np.ndarray, method: str) -> str:
    found = kkt_residual(sigma, s, method)
    return f"{found:.1g}" if np.isfinite(found) else "none, s is not strictly feasible"


def low_rank(quick: bool) -> Record:
    """Fit and one draw of a factor model for thousands of columns."""
    n, p, r = (200, 1000, 5) if quick else (500, 10_000, 10)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, r)) @ (0.3 * rng.standard_normal((r, p)))
    X += rng.standard_normal((n, p))
    before = peak_memory()
    start = time.process_time()
    sampler = LowRankKnockoffs().fit(X)
    fitted = time.process_time()
    sampler.sample(random_state=0)
    end = time.process_time()
    growth = (peak_memory() - before) / 2**20
    return {
        "what": f"LowRankKnockoffs, fit and draw, {n} × {p:,}",
        "peer": "–",
        "seconds": end - start,
        "residual": None,
        "peer_seconds": None,
        "notes": {
            "of which the draw": f"{end - fitted:.2f} s",
            "factors": sampler.n_factors_,
            "growth of the process": f"{growth:.0f} MiB beside X of {X.nbytes / 2**20:.0f} MiB",
        },
    }


# The sampler comes first: its memory is counted from the peak of the process so far.
MEASUREMENTS = (
    Measurement("lowrank", low_rank),
    Measurement("sdp100", beside("sdp", "cvxpy, default", cvxpy_sdp, 100, 40), least=50),
    Measurement("sdp100clarabel", beside("sdp", "cvxpy, Clarabel", cvxpy_clarabel, 100, 40), 50),
    Measurement("sdp200", beside("sdp", "knockpy", knockpy_sdp, 200, 40)),
    Measurement("mvr500", beside("mvr", "knockpy", knockpy_mvr, 500, 100), least=10),
    Measurement("maxent500", beside("maxent", "knockpy", knockpy_maxent, 500, 100), least=10),
    Measurement("sdp1000", beside("sdp", "–", None, 1000, 200)),
    Measurement("mvr1000", beside("mvr", "–", None, 1000, 200)),
    Measurement("maxent1000", beside("maxent", "–", None, 1000, 200)),
    Measurement("mvr2000", beside("mvr", "–", None, 2000, 200), most=20),
    Measurement("maxent2000", beside("maxent", "–", None, 2000, 200)),
)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Every measurement once."""
    size = {"quick": True} if quick else {}
    return [Task(NAME, {"name": each.name, **size}, 0) for each in MEASUREMENTS]


def measure(settings: Settings, seed: int) -> Record:
    """One measurement."""
    run = next(each.run for each in MEASUREMENTS if each.name == settings["name"])
    return run(settings.get("quick", False))


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    found = {row["name"]: row for row in rows}
    lines = [_row(found[m.name], m) for m in MEASUREMENTS if m.name in found]
    header = [
        "what",
        "seconds",
        "residual",
        "peer",
        "its seconds",
        "times faster",
        "goal",
        "besides",
    ]
    return f"""
## Knockoffs

CPU seconds on one thread, both sides in the same run; correlations of a Markov chain with steps of
Beta(3, 1). Residual is `kkt_residual`. Regenerate with `python -m reproduction knockoff_solvers`.

{markdown_table(header, lines)}
"""


def _row(record: Record, goal: Measurement) -> list[str]:
    ours, theirs = record["seconds"], record["peer_seconds"]
    ratio = None if theirs is None else theirs / ours
    target = "–"
    if goal.least is not None:
        missed = ratio is not None and ratio < goal.least
        target = f"≥ {goal.least:g}×" + (" (missed)" if missed else "")
    elif goal.most is not None:
        target = f"≤ {goal.most:g} s" + (" (missed)" if ours > goal.most else "")
    return [
        f"{record['what']} (sobolev {record['version']})",
        f"{ours:.3f}" if ours < 1 else f"{ours:.1f}",
        "–" if record["residual"] is None else f"{record['residual']:.1g}",
        record["peer"],
        "–" if theirs is None else f"{theirs:.1f}",
        "–" if ratio is None else f"**{ratio:.0f}**",
        target,
        "; ".join(f"{name}: {value}" for name, value in record["notes"].items()) or "–",
    ]
