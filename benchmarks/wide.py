"""Far more columns than rows: time, memory, and whether the columns that matter are found.

    python benchmarks/wide.py [--quick] [--columns D] [--seeds N] [--only METHOD] [--render]

Every fit runs in a process of its own, whose peak of memory can be told, and is a line of
results/wide.jsonl at once: a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import _common as common
import numpy as np
from ranking import true_positive_rate
from scale import peak_memory

from sobolev import ConvexSIC, __version__
from sobolev.convex import Alternating
from sobolev.datasets import make_sinexp
from sobolev.experiments._tables import mean_cell

N, D = 500, 100_000
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
        if not self.neural:
            return ConvexSIC(random_state=seed, **self.options)
        from sobolev import NeuralSIC

        return NeuralSIC(random_state=seed, **self.options)


METHODS = (
    Method("ConvexSIC", {}),
    Method("ConvexSIC, single precision", {"solver": Alternating(precision="single")}, seeds=2),
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


def child(task: dict[str, Any]) -> common.Record:
    """One fit here; the first record is of the data alone."""
    warnings.simplefilter("ignore")
    method = next(m for m in METHODS if m.name == task["method"])
    ConvexSIC(lam=0.1).fit(*draw("SinExp", 50, 8, 0)[:2])  # imports and caches are not counted
    X, y, support = draw(task["design"], task["n"], task["d"], task["seed"])
    limit = int(LIMIT_GB * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # beyond, allocations fail
    start = time.process_time()
    model = method.make(task["seed"]).fit(X, y)
    found = {
        "seconds": round(time.process_time() - start, 2),
        "peak_gb": round(peak_memory() / 1e9, 3),
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


def in_child(task: dict[str, Any]) -> common.Record:
    done = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(task)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def key(record: common.Record) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("version", "design", "method", "n", "d", "seed"))


def render(records: Sequence[common.Record]) -> str:
    """The section of RESULTS.md."""
    groups: dict[tuple[Any, ...], list[common.Record]] = {}
    for record in records:
        of = (record["design"], record["method"], record["n"], record["d"])
        groups.setdefault(of, []).append(record)
    header = ["data", "method", "seeds", "TPR at k", "CPU, s", "peak memory", "columns", "check"]
    table = common.markdown_table(header, [row(*of, found) for of, found in groups.items()])
    return f"""
## Far more columns than rows

A fit in a process of its own, on one thread; TPR at k is the share of the k true columns among the
first k, mean ± standard error. The peak of resident memory counts imports and the data; private
memory is limited to {LIMIT_GB:g} GB, so that a fit beyond it fails. "Columns" are those that the
critic ended with; "check" is the largest ratio of the optimality condition among the columns left
out (at most 1.01 at the optimum). sobolev {__version__}; regenerate with
`python benchmarks/wide.py`.

{table}
"""


def row(design: str, method: str, n: int, d: int, found: Sequence[common.Record]) -> list[str]:
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Far more columns than rows.")
    parser.add_argument("--columns", type=int, help="columns of the data")
    parser.add_argument("--seeds", type=int, help="seeds of each design, at most")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        print(json.dumps(child(json.loads(args.child))))
        return
    output = common.output_folder(args)
    path = output / "results" / "wide.jsonl"
    n, d = (100, 5200) if args.quick else (N, args.columns or D)
    finished = {key(record) for record in common.read_records(path)}
    for method in [] if args.render else common.choose(METHODS, args.only):
        for design, seeds in DESIGNS.items():
            count = min(seeds, method.seeds, args.seeds or seeds, 1 if args.quick else seeds)
            for seed in range(count):
                if args.quick and (method.neural or design == "SinExp"):
                    continue
                task = {"design": design, "method": method.name, "n": n, "d": d, "seed": seed}
                if key(task | {"version": __version__}) in finished:
                    continue
                record = task | in_child(task) | {"version": __version__}
                common.append_record(path, record)
                print(json.dumps(record), flush=True)
    section = render(common.read_records(path))
    common.write_section(output / "RESULTS.md", "wide", section)
    if output == common.FOLDER:
        table = section.strip().split("\n\n")[-1]
        common.write_section(output.parent / "docs" / "streaming.md", "wide", table)


if __name__ == "__main__":
    main()
