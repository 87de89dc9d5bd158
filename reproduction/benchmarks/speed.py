"""Time and memory beside a peer, measured in the same run on one thread."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from reproduction.benchmarks import command_speed, hrt_speed
from reproduction.benchmarks import plx4720_data as plx4720
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from reproduction.methods import random_forest
from reproduction.timing import alternate
from sobolev import ConvexSIC
from sobolev.convex.feature_maps import BoundFourierMap, FourierMap
from sobolev.convex.moments import FourierMoments
from sobolev.datasets import make_sinexp

NAME = "speed"
CHUNK_ROWS = 8192


@dataclass(frozen=True)
class Measurement:
    """A comparison: ``run(quick)`` returns what, peer, ours, theirs (CPU seconds) and notes."""

    name: str
    run: Callable[[bool], Record]
    most: float


def sinexp(quick: bool) -> Record:
    """Default fit on SinExp beside a random forest."""
    n, repeats, n_trees = (125, 2, 50) if quick else (500, 5, 500)
    X, y = make_sinexp(n_samples=n, shuffle_features=True, random_state=0, return_X_y=True)
    ours, theirs = alternate(
        lambda: ConvexSIC(random_state=0).fit(X, y),
        lambda: random_forest(n_trees, 0).fit(X, y),
        repeats=repeats,
    )
    return {
        "what": f"default ConvexSIC fit, SinExp {X.shape[0]} × {X.shape[1]}",
        "peer": f"random forest, {n_trees} trees",
        "ours": ours,
        "theirs": theirs,
        "notes": {},
    }


def wide(quick: bool) -> Record:
    """Default fit on the plx4720 data beside a random forest: time, rank of BRAF, memory."""
    # A forest's time is proportional to its trees: 50 are timed and stand for 500.
    n_features, n_trees, stands_for = (300, 10, 100) if quick else (None, 50, 500)
    X, y, braf = plx4720.load(n_features)
    memory = plx4720.fit_memory(n_features, "ConvexSIC", {})
    sic = ConvexSIC(random_state=0)
    forest = random_forest(n_trees, 0)
    ours, theirs = alternate(
        lambda: sic.fit(X, y), lambda: forest.fit(X, y), repeats=1 if quick else 2
    )
    return {
        "what": f"default ConvexSIC fit, plx4720 {X.shape[0]} × {X.shape[1]}, a substitute for the "
        "CCLE matrix of the paper (features of GDSC, response Amax of CCLE)",
        "peer": f"random forest, {stands_for} trees ({n_trees} timed, scaled)",
        "ours": ours,
        "theirs": [t * stands_for / n_trees for t in theirs],
        "notes": {
            "rank of the BRAF mutation": plx4720.rank_of(sic, braf),
            "its rank in the random forest": plx4720.rank_of(forest, braf),
            "peak memory of the fit": _size(memory),
        },
    }


def moments(quick: bool) -> Record:
    """One pass of Fourier moments beside two bare Gram products of the same size."""
    n, d, m, repeats = (64_000, 20, 256, 1) if quick else (1_000_000, 100, 512, 3)
    rng = np.random.default_rng(0)
    X, psi = rng.standard_normal((n, d)), rng.standard_normal((n, 1))
    bound = FourierMap(n_components=m).bind(
        X[:2000], np.ones(d), np.full(2000, 1 / 2000), np.random.default_rng(0)
    )
    Z = _values(bound, X)
    ours, whole, chunked = alternate(
        lambda: FourierMoments.empty(bound, 1).update(X, psi),
        lambda: [Z.T @ Z for _ in range(2)],
        lambda: [_chunked_gram(Z) for _ in range(2)],
        repeats=repeats,
    )
    theirs, way = min((whole, "whole"), (chunked, "in chunks"), key=lambda t: np.median(t[0]))
    small, large = (n // 4, n) if quick else (100_000, 400_000)
    return {
        "what": f"Fourier moments, n = {n:,}, d = {d}, m = {m} and the linear block",
        "peer": f"two products Z'Z of ({n:,}, {m}), {way}",
        "ours": ours,
        "theirs": theirs,
        "notes": {
            f"peak allocation for n = {rows:,}": _size(_peak_of_update(bound, X[:rows], psi[:rows]))
            for rows in (small, large)
        },
    }


def _values(bound: BoundFourierMap, X: np.ndarray) -> np.ndarray:
    """phi at the rows, without a second copy of the large array."""
    Z = np.empty((X.shape[0], bound.n_functions))
    for start in range(0, X.shape[0], CHUNK_ROWS):
        Z[start : start + CHUNK_ROWS] = bound.nonlinear_values(X[start : start + CHUNK_ROWS])
    return Z


def _chunked_gram(Z: np.ndarray) -> np.ndarray:
    total = np.zeros((Z.shape[1], Z.shape[1]))
    for start in range(0, Z.shape[0], CHUNK_ROWS):
        chunk = Z[start : start + CHUNK_ROWS]
        total += chunk.T @ chunk
    return total


def _peak_of_update(bound: BoundFourierMap, X: np.ndarray, psi: np.ndarray) -> int:
    """Bytes that an update allocates at most, beside the rows it is given."""
    tracemalloc.start()
    FourierMoments.empty(bound, 1).update(X, psi)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:.1f} MiB" if n_bytes < 2**29 else f"{n_bytes / 2**30:.2f} GiB"


MEASUREMENTS = (
    Measurement("sinexp", sinexp, most=1.0),
    Measurement("plx4720", wide, most=3.0),
    Measurement("moments", moments, most=2.5),
    Measurement("tables, ConvexSIC", partial(hrt_speed.tables, "ConvexSIC"), most=0.01),
    Measurement("tables, NeuralSIC", partial(hrt_speed.tables, "NeuralSIC"), most=0.01),
    Measurement("split test", partial(hrt_speed.sinexp, "split"), most=1.0),
    Measurement("forward test", partial(hrt_speed.sinexp, "forward"), most=1.0),
    Measurement("wide test", hrt_speed.wide, most=3.0),
    Measurement("select", command_speed.select, most=4.3),
    Measurement("help", command_speed.show_help, most=0.5),
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
    found = {row["name"]: row for row in rows if "missing" not in row}
    lines = [_row(found[m.name], m.most) for m in MEASUREMENTS if m.name in found]
    header = ["what", "peer", "seconds", "peer's seconds", "ratio (range)", "at most", "besides"]
    return f"""
## Speed and memory

Both sides run in turn in the same process on one thread; CPU seconds are medians, the ratio is the
median over the turns, with its range. Commands are timed as whole processes, by the clock.
Regenerate with `python -m reproduction speed`.

{markdown_table(header, lines)}
"""


def _row(record: Record, most: float) -> list[str]:
    ours, theirs = np.array(record["ours"]), np.array(record["theirs"])
    ratios = ours / theirs
    spread = f" ({ratios.min():.2g}–{ratios.max():.2g})" if ratios.size > 1 else ""
    return [
        f"{record['what']} (sobolev {record['version']})",
        record["peer"],
        f"{np.median(ours):.2f}",
        f"{np.median(theirs):.2f}",
        f"**{np.median(ratios):.2g}**{spread}",
        f"{most:g}" + ("" if np.median(ratios) <= most else " (missed)"),
        "; ".join(f"{name}: {value}" for name, value in record["notes"].items()) or "–",
    ]
