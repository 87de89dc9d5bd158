"""Far more columns than rows: time, memory, and whether the columns that matter are found.

Every fit runs in a process of its own, whose peak of memory can be told.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.benchmarks.ranking import true_positive_rate
from reproduction.child import in_child, limit
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from sobolev.datasets import make_sinexp

NAME = "wide"
SIZE, QUICK_SIZE = {"n": 500, "d": 100_000}, {"n": 100, "d": 5200}
LIMIT_GB = 4.0
DESIGNS = {"four shapes": 5, "SinExp": 5}  # and the seeds of each


@dataclass(frozen=True)
class Method:
    """An estimator by name, and on how many of the seeds it is run."""

    name: str
    options: dict[str, Any]
    seeds: int = 5
    neural: bool = False

    def make(self, seed: int) -> Any:
        of = methods.neural_sic if self.neural else methods.convex_sic
        return of(random_state=seed, **self.options)


METHODS = (
    Method("ConvexSIC", {}),
    Method("ConvexSIC, single precision", {"precision": "single"}, seeds=2),
    Method("NeuralSIC", {}, seeds=1, neural=True),
)


def draw(design: str, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Independent normal columns; four (one of them with no linear effect) or six matter."""
    if design == "SinExp":
        data = make_sinexp(n, d, shuffle_features=True, random_state=seed)
        return data.data, data.target, data.support
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    where = rng.choice(d, size=4, replace=False)
    a, b, c, e = X[:, where].T
    y = 2 * np.sin(1.5 * a) + b**2 + 2 * np.tanh(2 * c) + 2 * np.maximum(e, 0)
    support = np.zeros(d, dtype=bool)
    support[where] = True
    return X, y + rng.standard_normal(n), support


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All designs by a method before the next method; a quick run has one design."""
    planned = []
    for method in METHODS:
        for design, seeds in DESIGNS.items():
            if quick and (method.neural or design == "SinExp"):
                continue
            settings = {"design": design, "method": method.name, **(QUICK_SIZE if quick else SIZE)}
            count = min(seeds, method.seeds, repetitions or seeds, 1 if quick else seeds)
            planned += [Task(NAME, settings, seed) for seed in range(count)]
    return planned


def measure(settings: Settings, seed: int) -> Record:
    """One fit in a process of its own."""
    found = in_child(fit, settings, seed)
    if "peak" in found:
        found["peak_gb"] = round(found.pop("peak") / 1e9, 3)
    return found


def fit(task: Settings, seed: int) -> Record:
    """One fit here; imports and caches are not counted."""
    warnings.simplefilter("ignore")
    method = next(m for m in METHODS if m.name == task["method"])
    methods.convex_sic(lam=0.1).fit(*draw("SinExp", 50, 8, 0)[:2])
    X, y, support = draw(task["design"], task["n"], task["d"], seed)
    limit(LIMIT_GB)
    start = time.process_time()
    model = method.make(seed).fit(X, y)
    found = {
        "seconds": round(time.process_time() - start, 2),
        "data_gb": round(X.nbytes / 1e9, 3),
        "tpr": true_positive_rate(model.feature_importances_, support),
    }
    checked = getattr(model, "screening_", None)
    if checked is not None:
        kept = np.zeros(support.size, dtype=bool)
        kept[checked.columns] = True
        found |= {
            "columns": int(checked.columns.size),
            "checks": checked.n_checks,
            "largest_ratio": round(float(checked.ratios.max()), 4),
            "missed": checked.n_missed,
            "true_kept": int(kept[support].sum()),
        }
    return found


def table(rows: Sequence[Record]) -> str:
    """A line for each method, design and size."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    order = {method.name: k for k, method in enumerate(METHODS)}
    designs = list(DESIGNS)
    rows = [row for row in rows if "error" not in row]
    for row in sorted(rows, key=lambda r: (order[r["method"]], designs.index(r["design"]))):
        of = (row["design"], row["method"], row["n"], row["d"])
        groups.setdefault(of, []).append(row)
    header = ["data", "method", "seeds", "TPR at k", "CPU, s", "peak memory", "columns", "check"]
    return markdown_table(header, [line(*of, found) for of, found in groups.items()])


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return f"""
## Far more columns than rows

A fit in a process of its own, on one thread; TPR at k is the share of the k true columns among the
first k, mean ± standard error. The peak of resident memory counts imports and the data; private
memory is limited to {LIMIT_GB:g} GB, so that a fit beyond it fails. "Columns" are those that the
critic ended with; "check" is the largest ratio of the optimality condition among the columns left
out (at most 1.01 at the optimum). sobolev {rows[0]["version"]}; regenerate with
`python -m reproduction wide`.

{table(rows)}
"""


def line(design: str, method: str, n: int, d: int, found: Sequence[Record]) -> list[str]:
    seconds = np.array([record["seconds"] for record in found])
    peak = max(record["peak_gb"] for record in found)
    screened = [record for record in found if "columns" in record]
    columns, check = "all", "–"
    if screened:
        sizes = [record["columns"] for record in screened]
        columns = f"{min(sizes):,}–{max(sizes):,}" if len(sizes) > 1 else f"{sizes[0]:,}"
        check = f"{max(record['largest_ratio'] for record in screened):.3f}"
    return [
        f"{design}, {n:,} × {d:,}",
        method,
        str(len(found)),
        mean_cell([record["tpr"] for record in found]),
        f"{np.median(seconds):.0f} ({seconds.min():.0f}–{seconds.max():.0f})",
        f"{peak:.2f} GB, of which X {found[0]['data_gb']:.2f}",
        columns,
        check,
    ]


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of the page on scale."""
    return {("docs/streaming.md", "wide"): table(rows)}
