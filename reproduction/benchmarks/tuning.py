"""How the defaults of ConvexSIC were chosen: one change at a time, on seeds of their own.

Seeds start at 1000; the published tables use seeds from 0. lam is fixed at the reference, so that
a row shows the change alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.methods import convex_sic
from sobolev.convex import LandmarkMap, fitting
from sobolev.convex.fitting import REFERENCE_LAM
from sobolev.datasets import make_sinexp

NAME, FIRST_SEED = "tuning", 1000
# Number of seeds by number of rows, and numbers of rows at which the two maps are compared.
SEEDS, QUICK_SEEDS = {125: 80, 250: 40}, {125: 2, 250: 1}
MAP_ROWS, QUICK_MAP_ROWS = (1500, 3000, 6000), (200, 400)
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "one round (the paper)": ({"recursions": 1}, {}),
    "four rounds": ({"recursions": 4}, {}),
    "metric power 1": ({}, {"METRIC_POWER": 1.0}),
    "metric power 3": ({}, {"METRIC_POWER": 3.0}),
    "metric floor 1e-2": ({}, {"METRIC_FLOOR": 1e-2}),
    "rounds solved to 20 iterations": ({}, {"ROUND_ITERATIONS": 20}),
    "no second-order screen": ({}, {"SCREEN_PAIRS": np.inf, "SCREEN_CURVATURE": np.inf}),
    "bandwidth 0.2": ({"feature_map": LandmarkMap(bandwidth=0.2)}, {}),
    "bandwidth 1": ({"feature_map": LandmarkMap(bandwidth=1.0)}, {}),
    "bandwidth 2": ({"feature_map": LandmarkMap(bandwidth=2.0)}, {}),
    "Cauchy kernel": ({"feature_map": LandmarkMap(kernel="cauchy")}, {}),
    "no linear block": ({"feature_map": LandmarkMap(linear=False)}, {}),
    "Fourier map, 256 functions": (
        {"feature_map": "fourier", "n_components": 256, "random_state": 0},
        {},
    ),
    "tau 1e-3": ({"tau": 1e-3}, {}),
    "tau 1e-5": ({"tau": 1e-5}, {}),
    "lam 0.01": ({"lam": 0.01}, {}),
    "lam 0.1": ({"lam": 0.1}, {}),
    'lam "auto"': ({"lam": "auto"}, {}),
}


@contextmanager
def constants(values: dict[str, Any]) -> Iterator[None]:
    """Change constants of the fitting module for a while."""
    old = {name: getattr(fitting, name) for name in values}
    for name, value in values.items():
        setattr(fitting, name, value)
    try:
        yield
    finally:
        for name, value in old.items():
            setattr(fitting, name, value)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All variants at all sizes, and the two maps at three."""
    planned = [
        Task(NAME, {"variant": variant, "rows": n_rows}, FIRST_SEED + k)
        for variant in VARIANTS
        for n_rows, seeds in (QUICK_SEEDS if quick else SEEDS).items()
        for k in range(repetitions or seeds)
    ]
    sizes = QUICK_MAP_ROWS if quick else MAP_ROWS
    return planned + [Task(NAME, {"maps": n_rows}, FIRST_SEED) for n_rows in sizes]


def measure(settings: Settings, seed: int) -> Record:
    """The share of true columns among the first six, or both maps on a larger data set."""
    if "maps" in settings:
        return maps(settings["maps"], seed)
    params, values = VARIANTS[settings["variant"]]
    data = make_sinexp(settings["rows"], shuffle_features=True, random_state=seed)
    with constants(values):
        sic = convex_sic(**{"lam": REFERENCE_LAM, "n_features_to_select": 6} | params)
        sic.fit(data.data, data.target)
    return {"tpr": float(data.support[sic.support_].mean())}


def maps(n_rows: int, seed: int) -> Record:
    """The share of importance on true columns and the time of landmark and Fourier maps."""
    data = make_sinexp(n_rows, snr=0.3, shuffle_features=True, random_state=seed)
    found: Record = {}
    for name in ("landmark", "fourier"):
        begin = time.perf_counter()
        sic = convex_sic(feature_map=name, random_state=0).fit(data.data, data.target)
        share = float(sic.feature_importances_[data.support].sum())
        found[name] = {"share": share, "time": time.perf_counter() - begin}
    return found


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if "variant" in row:
            found.setdefault((row["variant"], row["rows"]), []).append(row["tpr"])
    sizes = sorted({n_rows for _, n_rows in found})
    lines = [
        [variant, *(mean_cell(found.get((variant, n_rows), [])) for n_rows in sizes)]
        for variant in VARIANTS
    ]
    counts = [max(len(of) for (_, rows_of), of in found.items() if rows_of == n) for n in sizes]
    header = [f"TPR@6, n = {n} ({k} seeds)" for n, k in zip(sizes, counts, strict=True)]
    grown = [
        [
            str(row["maps"]),
            *(f"{row[name]['share']:.2f}" for name in ("landmark", "fourier")),
            f"{row['landmark']['time'] / row['fourier']['time']:.1f}",
        ]
        for row in sorted((row for row in rows if "maps" in row), key=lambda row: row["maps"])
    ]
    map_header = ["rows", "share on true columns, landmark", "Fourier", "time, landmark / Fourier"]
    return f"""
## Choice of the defaults

`python -m reproduction tuning`: SinExp, lam = {REFERENCE_LAM} unless said, mean ± standard error.
Version {rows[0]["version"]}, one thread.

{markdown_table(["variant", *header], lines)}

### Which map

SinExp at signal-to-noise 0.3, one seed, default settings. `feature_map="auto"` changes from
landmarks to Fourier features at 5,000 rows.

{markdown_table(map_header, grown)}
"""
