"""Quality of rankings: how many of the k true features are among the first k.

    python benchmarks/ranking.py [--quick] [--seeds N] [--only NAME]

Every finished fit is a line of results/ranking.jsonl at once, keyed by version, settings and seed:
a run that was killed goes on where it stopped. After a change of the code under the same version,
delete the lines that it touches.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _ranking_data import QUICK_TASKS, TASKS, Task
from sklearn.linear_model import ElasticNetCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC, NeuralSIC, __version__

METHODS = ("ConvexSIC", "NeuralSIC", "random forest", "elastic net")
USUAL_TREES = 500


def make_estimator(method: str, task: Task, y: np.ndarray, seed: int) -> Any:
    """The estimator of a method; None where it does not apply."""
    classification = y.dtype.kind == "U"
    if method == "ConvexSIC":
        return ConvexSIC(random_state=seed)
    if method == "NeuralSIC":
        return NeuralSIC(random_state=seed)
    if method == "random forest":
        return common.random_forest(task.trees, seed, classification=classification)
    return None if classification else make_pipeline(StandardScaler(), ElasticNetCV())


def importances(estimator: Any) -> np.ndarray:
    """What the estimator ranks columns by."""
    if hasattr(estimator, "feature_importances_"):
        return estimator.feature_importances_
    return np.abs(estimator[-1].coef_)


def true_positive_rate(scores: np.ndarray, support: np.ndarray) -> float:
    """The share of the k true features among the first k; ties count by their expectation."""
    k = int(support.sum())
    last = np.sort(scores)[-k]
    above, tied = scores > last, scores == last
    found = support[above].sum() + (k - above.sum()) * support[tied].mean()
    return float(found / k)


def settings(task: Task, method: str) -> dict[str, Any]:
    """What decides a result besides the version and the seed."""
    return task.options | ({"n_trees": task.trees} if method == "random forest" else {})


def key(version: str, name: str, method: str, options: dict[str, Any]) -> str:
    return json.dumps([version, name, method, options], sort_keys=True)


def record_key(record: common.Record) -> str:
    return key(record["version"], record["dataset"], record["method"], record["settings"])


def task_key(task: Task, method: str) -> str:
    return key(__version__, task.name, method, settings(task, method))


def measure(task: Task, seed: int, finished: set[tuple[str, int]], path: Path) -> None:
    """Fit what is not finished yet on one draw, a record for each."""
    missing = [m for m in METHODS if (task_key(task, m), seed) not in finished]
    if not missing:
        return
    X, y, support = task.draw(seed, **task.options)
    for method in missing:
        estimator = make_estimator(method, task, y, seed)
        if estimator is None:
            continue
        start = time.perf_counter()
        estimator.fit(X, y)
        seconds = time.perf_counter() - start
        record = {
            "dataset": task.name,
            "method": method,
            "settings": settings(task, method),
            "seed": seed,
            "tpr": true_positive_rate(importances(estimator), support),
            "seconds": round(seconds, 3),
            "in_turn": len(missing) == len(METHODS),
            "lam": getattr(estimator, "lam_", None),
            "rounds": getattr(estimator, "n_rounds_", None),
            "version": __version__,
        }
        common.append_record(path, record)
        print(
            f"{task.name} · {method} · seed {seed}: {record['tpr']:.2f} in {seconds:.1f} s",
            flush=True,
        )


def render(tasks: Sequence[Task], records: Sequence[common.Record]) -> str:
    """The section of RESULTS.md."""
    groups: dict[str, list[common.Record]] = {}
    for record in records:
        groups.setdefault(record_key(record), []).append(record)
    rows = []
    for task in tasks:
        ours = _seconds(groups.get(task_key(task, METHODS[0]), []))
        cells = [_cell(groups.get(task_key(task, method), []), ours) for method in METHODS]
        if any(cell != "–" for cell in cells):
            rows.append([task.name, *cells])
    table = common.markdown_table(["data", *METHODS], rows)
    return f"""
## Quality of rankings

The share of the k true features among the first k (TPR at k), mean ± standard error over seeds,
and the median time of a fit relative to ConvexSIC's where both ran in turn on one thread. Columns
are scattered at random and ties count by their expectation. Ours have their default settings, the
random forest {USUAL_TREES} trees unless the cell says otherwise; the elastic net is cross-validated
on standardised columns.
sobolev {__version__}; regenerate with `python benchmarks/ranking.py`.

{table}
"""


def _seconds(records: Sequence[common.Record]) -> float:
    return float(np.median([record["seconds"] for record in records])) if records else float("nan")


def _cell(records: Sequence[common.Record], ours: float) -> str:
    if not records:
        return "–"
    tpr = np.array([record["tpr"] for record in records])
    error = f" ± {tpr.std(ddof=1) / np.sqrt(tpr.size):.3f}" if tpr.size > 1 else ""
    trees = records[0]["settings"].get("n_trees", USUAL_TREES)
    note = f", {trees} trees" if trees != USUAL_TREES else ""
    # Times compare only what ran in turn with ConvexSIC.
    in_turn = all(record.get("in_turn", True) for record in records)
    time_note = f", {_seconds(records) / ours:.2g}× time" if in_turn else ""
    return f"**{tpr.mean():.3f}**{error} ({tpr.size} seeds{time_note}{note})"


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Quality of rankings.")
    parser.add_argument("--seeds", type=int, help="seeds of each data set")
    args = parser.parse_args(argv)
    folder = common.output_folder(args)
    path = folder / "results" / "ranking.jsonl"
    tasks = QUICK_TASKS if args.quick else TASKS
    finished = {(record_key(r), r["seed"]) for r in common.read_records(path)}
    for task in common.choose(tasks, args.only):
        for seed in range(args.seeds or task.seeds):
            measure(task, seed, finished, path)
    section = render(tasks, common.read_records(path))
    common.write_section(folder / "RESULTS.md", "ranking", section)
    if folder == common.FOLDER:
        table = section.strip().split("\n\n")[-1]
        common.write_section(folder.parent / "README.md", "ranking", table)
        common.write_section(folder.parent / "docs" / "choosing.md", "ranking", table)
    print(section)


if __name__ == "__main__":
    main()
