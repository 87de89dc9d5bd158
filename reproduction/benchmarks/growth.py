"""How CPU time and peak memory of ConvexSIC.fit grow with rows, columns and components.

Every fit runs in a process of its own, whose peak of memory can be told.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.benchmarks.growth_report import measured, report, save
from reproduction.child import in_child, limit
from reproduction.engine import Record, Settings, Task
from reproduction.methods import convex_sic

NAME = "growth"
LAM = 0.03
LIMIT, LIMIT_GB = 150, 6.0  # of CPU and memory; a fit beyond, and all larger ones, are left out


@dataclass(frozen=True)
class Curve:
    """Sizes along one axis ("n", "d" or "m"), all else fixed; m None is the default."""

    axis: str
    feature_map: str
    sizes: tuple[int, ...]
    n: int = 0
    d: int = 50
    m: int | None = 256
    recursions: int | str = 1
    goal: str = ""  # what the issue asks: "linear" or nothing

    @property
    def few_landmarks(self) -> bool:
        return self.feature_map == "landmark" and self.m is not None

    @property
    def rounds(self) -> str:
        return "one round" if self.recursions == 1 else "default rounds"

    @property
    def fixed(self) -> str:
        known = {"n": f"n = {self.n:,}", "d": f"d = {self.d:,}", "m": f"m = {self.m}"}
        if self.m is None:
            known["m"] = "m = min(n, 1,000)" if self.axis == "n" else f"m = {self.n}"
        return ", ".join(text for name, text in known.items() if name != self.axis)

    @property
    def short(self) -> str:
        """The fixed size that tells the curves of an axis apart."""
        return self.fixed.split(", ", 1)[1] if self.axis == "n" else self.fixed.split(", ")[0]

    @property
    def name(self) -> str:
        return f"in {self.axis}: {self.feature_map}, {self.fixed}, {self.rounds}"

    def task(self, size: int) -> dict[str, Any]:
        """What one process fits."""
        found = {"n": self.n, "d": self.d, "m": self.m} | {self.axis: size}
        return found | {"feature_map": self.feature_map, "recursions": self.recursions}


def doubled(first: int, count: int) -> tuple[int, ...]:
    return tuple(first * 2**k for k in range(count))


ROWS = (500, 1000, 1500, 2000, 2500, 3000, 4000, 5000)
WIDE_SIZES = (78, 156, 312, 625, 1250, 2500, 5000, 10_000, 20_000)
CURVES = (
    Curve("n", "fourier", doubled(1000, 11), goal="linear"),
    Curve("n", "fourier", doubled(1000, 10), recursions="auto", goal="linear"),
    Curve("n", "landmark", (312, 625, *ROWS[1:]), goal="linear"),
    Curve("n", "landmark", ROWS, m=None, goal="linear"),
    Curve("n", "landmark", ROWS[::2], m=None, recursions="auto"),
    Curve("d", "landmark", WIDE_SIZES, n=500, m=None, goal="linear"),
    Curve("d", "landmark", WIDE_SIZES[:-2], n=500, m=None, recursions="auto", goal="linear"),
    Curve("d", "fourier", doubled(25, 7), n=10_000, goal="linear"),
    Curve("m", "fourier", doubled(64, 6), n=20_000),
    Curve("m", "fourier", doubled(64, 6), n=20_000, recursions="auto"),
    Curve("m", "landmark", doubled(64, 6), n=5000),
    Curve("m", "landmark", doubled(64, 5), n=5000, recursions="auto"),
)
QUICK_CURVES = (
    Curve("n", "fourier", (500, 2000), d=10, m=32, goal="linear"),
    Curve("d", "landmark", (10, 40), n=100, m=None, goal="linear"),
)


def draw(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Five columns matter, two of them only together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + X[:, 2] * X[:, 3] + X[:, 4] / 2
    return X, signal + rng.standard_normal(n)


# Curves that a fit was too large for in this run, with the reason: larger ones would fail as well.
_given_up: dict[str, str] = {}


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All sizes of a curve, from the smallest on."""
    return [
        Task(NAME, {"curve": curve.name, "size": size}, 0)
        for curve in (QUICK_CURVES if quick else CURVES)
        for size in curve.sizes
    ]


def measure(settings: Settings, seed: int) -> Record:
    """Median CPU seconds, peak memory, rounds and iterations of a fit; or why there are none."""
    name = settings["curve"]
    curve = next(curve for curve in (*CURVES, *QUICK_CURVES) if curve.name == name)
    if name in _given_up:
        return {"error": _given_up[name]}
    found = in_child(fit, curve.task(settings["size"]))
    if "error" in found:
        _given_up[name] = found["error"]
        return found
    return found | {"bytes": max(found.pop("peak") - base_memory(), 1)}


@cache
def base_memory() -> int:
    """Bytes of a process that has only made a small fit."""
    return int(in_child(small_fits)["peak"])


def small_fits() -> Record:
    """Import everything that a fit imports."""
    for options in ({"feature_map": "fourier", "n_components": 8}, {"feature_map": "landmark"}):
        convex_sic(lam=LAM, random_state=0, **options).fit(*draw(60, 6))
    return {}


def fit(task: dict[str, Any]) -> Record:
    """Fit here, up to three times; imports and a first small fit come before."""
    warnings.simplefilter("ignore")  # of convergence: the iterations are in the records
    small_fits()
    limit(LIMIT_GB, LIMIT)
    X, y = draw(task["n"], task["d"])
    options = {"feature_map": task["feature_map"], "recursions": task["recursions"]}
    options |= {"n_components": task["m"], "lam": LAM, "random_state": 0}
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and sum(seconds) < 1):
        start = time.process_time()
        model = convex_sic(**options).fit(X, y)
        seconds.append(time.process_time() - start)
    return {
        "seconds": float(np.median(seconds)),
        "data": X.nbytes,
        "rounds": int(model.n_rounds_),
        "iterations": int(model.n_iter_),
    }


def curves_of(rows: Sequence[Record]) -> list[Curve]:
    """The curves that have records."""
    known = {row["curve"] for row in rows}
    return [curve for curve in (*CURVES, *QUICK_CURVES) if curve.name in known]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return report(curves_of(rows), rows, LAM)


def save_picture(rows: Sequence[Record], folder: Path) -> None:
    """Draw time and memory against sizes."""
    series = [(curve, measured(rows, curve)) for curve in curves_of(rows)]
    save([(curve, found) for curve, found in series if len(found) > 1], folder / "growth.png")
