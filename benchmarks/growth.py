"""How CPU time and peak memory of ConvexSIC.fit grow with rows, columns and components.

    python benchmarks/growth.py [--quick] [--only NAME] [--fresh] [--render]

Every fit runs in a process of its own, whose peak of memory can be told. Each is a line of
results/growth.jsonl at once, keyed by version, curve and size: a run that was killed goes on where
it stopped; ``--fresh`` measures anew what is there. The picture goes to docs/growth.png.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _growth_report import latest, measured, render, save
from scale import peak_memory

from sobolev import ConvexSIC, __version__
from sobolev.convex import Alternating, FourierMap, LandmarkMap

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


def draw(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Five columns matter, two of them only together."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + X[:, 2] * X[:, 3] + X[:, 4] / 2
    return X, signal + rng.standard_normal(n)


def child(task: dict[str, Any]) -> common.Record:
    """Fit here; imports and a first small fit come before. Without rows: they alone."""
    warnings.simplefilter("ignore")  # of convergence: the iterations are in the records
    options = {"lam": LAM, "random_state": 0}
    ConvexSIC(feature_map=FourierMap(8), **options).fit(*draw(60, 6))
    ConvexSIC(feature_map="landmark", **options).fit(*draw(60, 6))
    if not task:
        return {"peak": peak_memory()}
    used, memory = int(time.process_time()), int(LIMIT_GB * 1e9)
    resource.setrlimit(resource.RLIMIT_CPU, (used + LIMIT, used + LIMIT + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    X, y = draw(task["n"], task["d"])
    kind = FourierMap if task["feature_map"] == "fourier" else LandmarkMap
    options |= {"feature_map": kind(task["m"]), "solver": Alternating(rounds=task["recursions"])}
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and sum(seconds) < 1):
        start = time.process_time()
        model = ConvexSIC(**options).fit(X, y)
        seconds.append(time.process_time() - start)
    return {
        "seconds": float(np.median(seconds)),
        "peak": peak_memory(),
        "data": X.nbytes,
        "rounds": int(model.n_rounds_),
        "iterations": int(model.n_iter_),
    }


def in_child(task: dict[str, Any]) -> common.Record:
    """The same in a new process; a reason instead of figures if it fails or takes too long."""
    command = [sys.executable, __file__, "--child", json.dumps(task)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode == -signal.SIGXCPU:
        return {"reason": f"not within {LIMIT} s of CPU"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"reason": lines[-1] if lines else f"ended by signal {-done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


@cache
def base_memory() -> int:
    """Bytes of a process that has only made a small fit."""
    return int(in_child({})["peak"])


def measure(curve: Curve, path: Path, fresh: bool) -> None:
    """All sizes of a curve that are missing, from the smallest on."""
    finished = {} if fresh else latest(common.read_records(path), curve)
    reason = None
    for size in curve.sizes:
        if size in finished:
            continue
        record = {"reason": reason} if reason else in_child(curve.task(size))
        if "peak" in record:
            record["bytes"] = max(record.pop("peak") - base_memory(), 1)
        key = {"version": __version__, "curve": curve.name, "size": size}
        common.append_record(path, key | record)
        print(f"{curve.name} · {size}: {_shown(record)}", flush=True)
        reason = record.get("reason")  # larger sizes would fail as well


def _shown(record: common.Record) -> str:
    if "reason" in record:
        return record["reason"]
    return f"{record['seconds']:.2f} s, {record['bytes'] / 1e6:.0f} MB"


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Growth of time and memory.")
    parser.add_argument("--fresh", action="store_true", help="measure anew what is there")
    parser.add_argument("--render", action="store_true", help="only write the table and picture")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child is not None:
        print(json.dumps(child(args.child)))
        return
    folder = common.output_folder(args)
    path = folder / "results" / "growth.jsonl"
    curves = QUICK_CURVES if args.quick else CURVES
    for curve in [] if args.render else common.choose(curves, args.only):
        measure(curve, path, args.fresh)
    records = common.read_records(path)
    here = folder == common.FOLDER
    picture = folder.parent / "docs" / "growth.png" if here else folder / "growth.png"
    series = [(curve, measured(records, curve)) for curve in curves]
    save([(c, found) for c, found in series if len(found) > 1], picture)
    section = render(curves, records, LAM, "../docs/growth.png" if here else picture.name)
    common.write_section(folder / "RESULTS.md", "growth", section)
    print(section)


if __name__ == "__main__":
    main()
