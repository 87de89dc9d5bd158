"""The holdout randomization test: null p-values, false discoveries and power.

    python benchmarks/hrt.py [--quick] [--seeds N] [--only NAME] [--render]

``--only`` chooses designs. Every finished test is a line of results/hrt.jsonl at once, keyed by
version, design, method and seed: a run that was killed goes on where it stopped. The calibration
table also goes to docs/calibration.md.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _hrt_data import DESIGNS, Design
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import ElasticNetCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC, HRTSelector, NeuralSIC, __version__

LEVELS = (0.001, 0.01, 0.05, 0.1, 0.5)
DEFAULT = "ConvexSIC, forward, risk"
# Estimators of one split, and the statistics that each fit is tested with.
SPLIT = {
    "ConvexSIC": ("risk", "witness"),
    "NeuralSIC": ("risk", "witness"),
    "elastic net": ("loss",),
    "random forest": ("loss",),
}
N_CALIBRATION, N_POWER, N_TREES = 200, 100, 100
HOLDS, FAILS = "holds", "**fails**"


def split_methods() -> list[str]:
    return [f"{name}, split, {stat}" for name, stats in SPLIT.items() for stat in stats]


def make_estimator(name: str, seed: int) -> Any:
    """An estimator by name, with its defaults."""
    if name == "ConvexSIC":
        return ConvexSIC(random_state=seed)
    if name == "NeuralSIC":
        return NeuralSIC(random_state=seed)
    if name == "random forest":
        return common.random_forest(N_TREES, seed)
    return make_pipeline(StandardScaler(), ElasticNetCV())


def selected(selector: HRTSelector, support: np.ndarray) -> common.Record:
    """What a fitted selector found, and how its null p-values fall."""
    null = selector.pvalues_[~support]
    null = null[np.isfinite(null)]
    found = selector.support_
    return {
        "tpr": round(float(found[support].mean()), 4),
        "fdp": round(float((found & ~support).sum() / max(1, found.sum())), 4),
        "below": [int(np.count_nonzero(null < level)) for level in LEVELS],
        "n_null": int(null.size),
        "failing": len(selector.diagnostics_.failing) if selector.diagnostics_ else 0,
    }


def measure(design: Design, seed: int, missing: Sequence[str], path: Path) -> None:
    """Run the methods that are missing on one data set."""
    X, y, support = design.draw(seed)
    order = np.random.default_rng([seed, 1]).permutation(y.size)
    train, test = order[: design.n], order[design.n :]

    def keep(method: str, selector: HRTSelector, seconds: float) -> None:
        record = {"design": design.name, "method": method, "seed": seed, "version": __version__}
        record |= selected(selector, support) | {"seconds": round(seconds, 2)}
        common.append_record(path, record)
        print(f"{design.name} · {method} · {seed}: {record['tpr']:.2f} {record['fdp']:.2f}")

    if DEFAULT in missing:
        start = time.process_time()
        selector = HRTSelector(random_state=seed).fit(X, y)
        keep(DEFAULT, selector, time.process_time() - start)
    for name, statistics in SPLIT.items():
        wanted = [s for s in statistics if f"{name}, split, {s}" in missing]
        if not wanted:
            continue
        start = time.process_time()
        model = make_estimator(name, seed).fit(X[train], y[train])
        fit_seconds = time.process_time() - start
        for statistic in wanted:
            start = time.process_time()
            selector = HRTSelector(
                FrozenEstimator(model),
                statistic="risk" if statistic == "loss" else statistic,
                scheme="split",
                diagnose=False,
            ).fit(X[train], y[train], holdout=(X[test], y[test]))
            seconds = fit_seconds + time.process_time() - start
            keep(f"{name}, split, {statistic}", selector, seconds)


def plan(design: Design, seeds: int | None) -> list[tuple[int, list[str]]]:
    """The methods of each seed: the default on all, the others where the paper has figures."""
    power = design.name.startswith(("SinExp", "Liang"))
    return [
        (seed, [DEFAULT] + (split_methods() if power and seed < N_POWER else []))
        for seed in range(seeds or N_CALIBRATION)
    ]


def calibration_rows(
    designs: Sequence[Design], records: Sequence[common.Record]
) -> dict[str, list[str]]:
    """Shares of null p-values below levels, with the verdict on 0.05, by design."""
    rows = {}
    for design in designs:
        found = _of(records, design.name, DEFAULT)
        if not found:
            continue
        below = np.array([r["below"] for r in found], dtype=float)
        counts = np.array([r["n_null"] for r in found], dtype=float)
        share = below.sum(axis=0) / counts.sum()
        k = LEVELS.index(0.05)
        # P-values of one data set depend on each other: the error is between data sets.
        noise = below[:, k] - share[k] * counts
        error = np.sqrt(np.sum(noise**2)) / counts.sum() if len(found) > 1 else np.nan
        upper = 0.05 + 2.576 * error
        verdict = HOLDS if share[k] <= upper else FAILS
        if design.correct and share[k] < 0.02:
            verdict = "**too conservative**"
        warned = np.mean([r["failing"] > 0 for r in found])
        shares = [
            f"{value:.4f}" if level < 0.01 else f"{value:.3f}"
            for level, value in zip(LEVELS, share, strict=True)
        ]
        counted = [str(len(found)), f"{int(counts.sum()):,}"]
        rows[design.name] = [*counted, *shares, f"{upper:.3f}", verdict, f"{warned:.2f}"]
    return rows


def calibration(designs: Sequence[Design], records: Sequence[common.Record]) -> str:
    """The table of shares of null p-values below levels."""
    rows = [[name, *cells] for name, cells in calibration_rows(designs, records).items()]
    header = ["design", "data sets", "p-values", *[f"< {level:g}" for level in LEVELS]]
    return common.markdown_table([*header, "99 % limit at 0.05", "verdict", "warned"], rows)


def verdicts(designs: Sequence[Design], records: Sequence[common.Record]) -> str:
    """What the calibration says, in a sentence."""
    rows = calibration_rows(designs, records)
    column = 2 + LEVELS.index(0.05)
    failing = [f"{name} ({cells[column]})" for name, cells in rows.items() if cells[-2] != HOLDS]
    held = f"hold their level on {len(rows) - len(failing)} of {len(rows)} designs"
    if not failing:
        return f"Null p-values {held}."
    return (
        f"Null p-values {held}; the share below 0.05 is outside the 99 % limit on "
        f"{', '.join(failing)}."
    )


def power(designs: Sequence[Design], records: Sequence[common.Record]) -> str:
    """Mean true positive rate and false discovery rate of every method."""
    rows = []
    for method in [DEFAULT, *split_methods()]:
        cells = [_power_cell(_of(records, d.name, method)) for d in designs]
        if any(cell != "–" for cell in cells):
            rows.append([method, *cells])
    return common.markdown_table(["method", *[d.name for d in designs]], rows)


SCHEMES = (DEFAULT, "ConvexSIC, split, risk", "ConvexSIC, split, witness")


def schemes(designs: Sequence[Design], records: Sequence[common.Record]) -> str:
    """The ways to test with ConvexSIC, one below the other."""
    rows = [[m, *[_power_cell(_of(records, d.name, m)) for d in designs]] for m in SCHEMES]
    return common.markdown_table(["method", *[d.name for d in designs]], rows)


def _power_cell(records: Sequence[common.Record]) -> str:
    records = [r for r in records if r["seed"] < N_POWER]
    if not records:
        return "–"
    tpr, fdp = (np.array([r[name] for r in records]) for name in ("tpr", "fdp"))
    scale = np.sqrt(max(1, tpr.size - 1))
    return (
        f"**{tpr.mean():.3f}** ± {tpr.std() / scale:.3f}, FDR {fdp.mean():.3f} ± "
        f"{fdp.std() / scale:.3f} ({tpr.size})"
    )


def _of(records: Sequence[common.Record], design: str, method: str) -> list[common.Record]:
    return [r for r in records if (r["design"], r["method"]) == (design, method)]


PAPER = [d for d in DESIGNS if d.name.startswith(("SinExp", "Liang"))]


def render(records: Sequence[common.Record]) -> tuple[str, str]:
    """The calibration table and the power table, with what they mean."""
    null = f"""
Null p-values of the default `HRTSelector` (`ConvexSIC`, forward scheme, `MixedConditional`):
columns that do not matter given the others, pooled over data sets. The share below each level
should be the level or less. "99 % limit" is 0.05 plus 2.576 standard errors between data sets;
"warned" is the share of data sets with a `ConditionalModelWarning`.

{calibration(DESIGNS, records)}
"""
    found = f"""
Mean true positive rate ± standard error and mean false discovery rate at `fdr=0.1`, with the number
of seeds. All methods see the same 2n rows: "split" trains on n and tests on n, "forward" trains on
the first 30 % and goes on in five blocks. Elastic net and random forest ({N_TREES} trees) are
tested with their squared error; all use the default conditional model.

{power(PAPER, records)}
"""
    return null, found


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("The holdout randomization test.")
    parser.add_argument("--seeds", type=int, help="data sets of each design")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    parser.add_argument("--method", help="only methods with this in their name")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # the records count what would be warned of
    folder = common.output_folder(args)
    path = folder / "results" / "hrt.jsonl"
    seeds = 2 if args.quick and args.seeds is None else args.seeds
    keys = ("version", "design", "method", "seed")
    finished = {tuple(r[k] for k in keys) for r in common.read_records(path)}
    for design in [] if args.render else common.choose(DESIGNS, args.only):
        for seed, methods in plan(design, seeds):
            missing = [
                m
                for m in methods
                if (__version__, design.name, m, seed) not in finished
                and (args.method is None or args.method in m)
            ]
            if missing:
                measure(design, seed, missing, path)
    records = common.read_records(path)
    null, found = render(records)
    body = f"## Holdout randomization test\n{found}\n### Null p-values\n{null}"
    body += f"\nsobolev {__version__}; regenerate with `python benchmarks/hrt.py`."
    common.write_section(folder / "RESULTS.md", "hrt", body)
    if folder == common.FOLDER:
        docs = folder.parent / "docs"
        common.write_section(docs / "calibration.md", "calibration", null)
        common.write_section(docs / "calibration.md", "power", found)
        common.write_section(docs / "choosing.md", "hrt-verdicts", verdicts(DESIGNS, records))
        common.write_section(docs / "choosing.md", "hrt-schemes", schemes(PAPER, records))
        common.write_section(folder.parent / "README.md", "hrt", found)
    print(body)


if __name__ == "__main__":
    main()
