"""Neural SIC: quality of its variants, time beside a plain loop, the wide data.

    python benchmarks/neural.py [--quick] [--only NAME]

Every finished fit is a line of results/neural.jsonl at once: a run that was killed goes on where it
stopped. After a change of the code under the same version, delete the lines that it touches.
"""

from __future__ import annotations

import _common as common

# isort: split
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _plain_neural as plain
import _plx4720 as plx4720
import numpy as np
import torch
from _ranking_data import Task, liang, sinexp, xor
from ranking import true_positive_rate
from threadpoolctl import threadpool_limits

from sobolev import ConvexSIC, NeuralSIC, __version__
from sobolev._sample import Sample
from sobolev.datasets import make_sinexp
from sobolev.neural import Boosting, EarlyStopping, Optimizer
from sobolev.neural.critics import resolve_critic
from sobolev.neural.fitting import Design, Member, Recipe, fit_members
from sobolev.neural.objectives import PairedSIC

BOOSTED = {"batch_size": [10, 30, 50], "aggregate": "geometric"}
# What each variant changes, and what it shows.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "Boosted: batches of 10, 30, 50, geometric mean": BOOSTED,
    "Boosted: four members": {"n_members": 4},
    'preset="paper"': {"paper": True},
    'preset="paper", Boosted': {"paper": True} | BOOSTED,
    "one round (recursions=1)": {"rounds": 1},
    'permuted responses (critic="small")': {"critic": "small"},
    'the paper\'s step on eta (eta_rule="mirror")': {"eta_rule": "mirror"},
    "early stopping": {"early_stopping": EarlyStopping()},
}
SINEXP = tuple(
    Task(f"SinExp, n = {n}", sinexp, {"n_samples": n}, seeds=50) for n in (125, 250, 500)
)
QUICK_SINEXP = (Task("SinExp, n = 60", sinexp, {"n_samples": 60, "n_features": 12}, seeds=2),)


@dataclass(frozen=True)
class Other:
    """A data set beside SinExp, with its own variants."""

    task: Task
    variants: dict[str, dict[str, Any]]


OTHERS = (
    Other(
        Task("Liang, 40 of 500, n = 500", liang, {"n_samples": 500}, seeds=10),
        {
            "default": {},
            'critic="big"': {"critic": "big"},
            'critic="big", preset="paper"': {"critic": "big", "paper": True},
        },
    ),
    Other(
        Task("XOR, 2 of 50, n = 1000", xor, {"n_samples": 1000, "n_features": 50}, seeds=10),
        {"default": {}, 'preset="paper"': {"paper": True}},
    ),
    Other(
        Task("XOR, 2 of 1000, n = 1000", xor, {"n_samples": 1000, "n_features": 1000}, seeds=5),
        {"default": {}, "4,000 updates (max_iter=4000)": {"max_iter": 4000}},
    ),
)
QUICK_OTHERS = (
    Other(
        Task("XOR, 2 of 6, n = 200", xor, {"n_samples": 200, "n_features": 6}, seeds=2),
        {"default": {}, 'critic="big"': {"critic": "big", "max_iter": 50}},
    ),
)


def estimator(
    seed: int,
    *,
    paper: bool = False,
    critic: str | None = None,
    n_members: int = 1,
    aggregate: str = "arithmetic",
    **training: Any,
) -> NeuralSIC:
    """The estimator of a variant, whose settings of training are those of the optimizer."""
    optimizer = Optimizer.paper(**training) if paper else Optimizer(**training)
    boosting = Boosting(n_members, aggregate)
    options = {} if critic is None else {"critic": critic}
    make = NeuralSIC.paper if paper else NeuralSIC
    return make(optimizer=optimizer, boosting=boosting, random_state=seed, **options)


def quality(task: Task, variant: str, parameters: dict[str, Any], path: Path) -> None:
    """Fit what is not finished yet, a record for each seed."""
    done = {
        r["seed"]
        for r in common.read_records(path)
        if (r["version"], r.get("data"), r.get("variant")) == (__version__, task.name, variant)
    }
    for seed in sorted(set(range(task.seeds)) - done):
        X, y, support = task.draw(seed, **task.options)
        start = time.perf_counter()
        sic = estimator(seed, **parameters).fit(X, y)
        record = {
            "kind": "quality",
            "data": task.name,
            "variant": variant,
            "seed": seed,
            "tpr": true_positive_rate(sic.feature_importances_, support),
            "seconds": round(time.perf_counter() - start, 3),
            "version": __version__,
        }
        common.append_record(path, record)
        print(f"{task.name} · {variant} · seed {seed}: {record['tpr']:.2f}", flush=True)


# -- time beside the plain loop ------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """A comparison with the plain loop, per update and member."""

    name: str
    critic: str
    n_features: int
    n_members: int
    most: float | None = None


SPEEDS = (
    Speed("small critic, d = 50", "small", 50, 1, most=1 / 3),
    Speed("small critic, d = 50, ensemble of 16", "small", 50, 16, most=1 / 5),
    Speed("small critic, d = 500", "small", 500, 1),
    Speed("big critic, d = 50", "big", 50, 1),
    Speed("big critic, d = 500", "big", 500, 1),
    Speed("big critic, d = 500, ensemble of 16", "big", 500, 16),
)


def closed_form(speed: Speed, sample: Sample, n_updates: int) -> None:
    """The closed form as NeuralSIC runs it, batches of 100 with dropout, Adam and the eta step."""
    design = Design(resolve_critic(speed.critic), PairedSIC(1.0))
    rows = np.arange(sample.p.size)
    members = [
        Member(design, 100, 0.01, np.random.default_rng(i), rows) for i in range(speed.n_members)
    ]
    recipe = Recipe(Optimizer(max_iter=n_updates, rounds=1))
    fit_members(sample, members, recipe)


def time_updates(speed: Speed, quick: bool) -> common.Record:
    """CPU time per update and member of the closed form and of the plain loop, in turn."""
    n_updates, repeats = (5, 2) if quick else (400, 5)
    rng = np.random.default_rng(0)
    n = 300
    sample = Sample(
        rng.standard_normal((n, speed.n_features)), rng.standard_normal((n, 1)), np.full(n, 1 / n)
    )
    ours, theirs = common.alternate(
        lambda: closed_form(speed, sample, n_updates),
        lambda: plain.train(speed.critic, sample.X, sample.psi, n_updates),
        repeats=repeats,
    )
    return {
        "kind": "speed",
        "name": speed.name,
        "milliseconds": [1e3 * t / n_updates / speed.n_members for t in ours],
        "plain_milliseconds": [1e3 * t / n_updates for t in theirs],
        "version": __version__,
    }


def time_fits(quick: bool) -> common.Record:
    """A default fit of NeuralSIC beside one of ConvexSIC, in turn."""
    n, repeats = (60, 1) if quick else (500, 5)
    X, y = make_sinexp(n_samples=n, shuffle_features=True, random_state=0, return_X_y=True)
    ours, theirs = common.alternate(
        lambda: NeuralSIC(random_state=0).fit(X, y),
        lambda: ConvexSIC(random_state=0).fit(X, y),
        repeats=repeats,
    )
    return {
        "kind": "fit",
        "n": n,
        "seconds": ours,
        "convex_seconds": theirs,
        "version": __version__,
    }


# -- the wide data -------------------------------------------------------------------------------


def wide(quick: bool) -> common.Record | None:
    """A fit of 4,000 updates on the plx4720 data: time, memory, rank of the BRAF mutation."""
    if not plx4720.PATH.exists():
        print("plx4720 is left out: point SOBOLEV_DATA_HOME to the folder of the data")
        return None
    n_features, parameters = (300, {"max_iter": 40}) if quick else (None, {"max_iter": 4000})
    X, y, braf = plx4720.load(n_features)
    start = time.process_time()
    sic = estimator(0, **parameters).fit(X, y)
    seconds = time.process_time() - start
    start = time.process_time()
    n_updates = 2 if quick else 20
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    plain.train("small", standard, ((y - y.mean()) / y.std())[:, None], n_updates)
    plain_seconds = (time.process_time() - start) / n_updates
    scores = sic.feature_importances_
    return {
        "kind": "wide",
        "shape": list(X.shape),
        "parameters": parameters,
        "seconds": seconds,
        "updates": sic.optimizer.total_updates,
        "plain_update": plain_seconds,
        "memory": plx4720.peak_memory(n_features, "NeuralSIC", parameters),
        "rank": 1 + int(np.sum(scores > scores[braf])),
        "version": __version__,
    }


# -- the report ----------------------------------------------------------------------------------


def render(records: Sequence[common.Record], quick: bool) -> str:
    """The section of RESULTS.md."""
    records = [r for r in records if r["version"] == __version__]
    tasks = QUICK_SINEXP if quick else SINEXP
    rows = [
        [variant, *(_cell(records, task.name, variant) for task in tasks)] for variant in VARIANTS
    ]
    others = [
        [other.task.name, variant, _cell(records, other.task.name, variant)]
        for other in (QUICK_OTHERS if quick else OTHERS)
        for variant in other.variants
    ]
    speeds = {r["name"]: r for r in records if r["kind"] == "speed"}
    timed = [_speed_row(speeds[s.name], s.most) for s in SPEEDS if s.name in speeds]
    wides = [r for r in records if r["kind"] == "wide"]
    parts = [
        f"""## Neural SIC

`python benchmarks/neural.py`, one thread, sobolev {__version__}. The share of the k true features
among the first k (TPR at k), mean ± standard error over seeds from 0. A row names what it changes
in the default.

{common.markdown_table(["variant", *(task.name for task in tasks)], rows)}

{common.markdown_table(["data", "variant", "TPR"], others)}"""
    ]
    if timed:
        header = ["what", "closed form, ms", "plain loop, ms", "ratio (range)", "at most"]
        parts.append(
            f"""### Time per update

The closed form as NeuralSIC runs it beside a plain torch loop with double back-propagation
(`benchmarks/_plain_neural.py`): the same critic, batches of 100, Adam and the step on eta included,
CPU time in turn in one process, per member; medians over five turns of 400 updates.

{common.markdown_table(header, timed)}"""
        )
    parts += [_fit_text(r) for r in records if r["kind"] == "fit"][-1:]
    if wides:
        parts.append(_wide_text(wides[-1]))
    return "\n\n".join(parts)


def _cell(records: Sequence[common.Record], data: str, variant: str) -> str:
    found = [
        r
        for r in records
        if r["kind"] == "quality" and (r["data"], r["variant"]) == (data, variant)
    ]
    if not found:
        return "–"
    tpr = np.array([r["tpr"] for r in found])
    error = f" ± {tpr.std(ddof=1) / np.sqrt(tpr.size):.3f}" if tpr.size > 1 else ""
    return f"**{tpr.mean():.3f}**{error} ({tpr.size} seeds)"


def _speed_row(record: common.Record, most: float | None) -> list[str]:
    ours, theirs = np.array(record["milliseconds"]), np.array(record["plain_milliseconds"])
    ratios = ours / theirs
    missed = most is not None and np.median(ratios) > most
    return [
        record["name"],
        f"{np.median(ours):.3f}",
        f"{np.median(theirs):.3f}",
        f"**{np.median(ratios):.3f}** ({ratios.min():.3f}–{ratios.max():.3f})",
        "–" if most is None else f"{most:.3f}" + (" (missed)" if missed else ""),
    ]


def _fit_text(record: common.Record) -> str:
    ours, theirs = np.array(record["seconds"]), np.array(record["convex_seconds"])
    ratios = ours / theirs
    spread = f"{ratios.min():.2f}–{ratios.max():.2f}"
    return (
        f"A whole default fit on SinExp, n = {record['n']}: {np.median(ours):.2f} s of CPU time, "
        f"{np.median(ratios):.2f} ({spread}) of ConvexSIC's in the same run."
    )


def _wide_text(record: common.Record) -> str:
    update = 1e3 * record["seconds"] / record["updates"]
    header = ["updates", "CPU seconds", "ms per update", "plain loop, small critic", "memory"]
    cells = [
        f"{record['updates']:,}",
        f"{record['seconds']:.0f}",
        f"{update:.1f}",
        f"{1e3 * record['plain_update']:.1f} ms",
        f"{record['memory'] / 2**20:.0f} MiB",
    ]
    n, d = record["shape"]
    return f"""### Wide data

plx4720 ({n} × {d}: features of GDSC, response Amax of CCLE, a substitute for the CCLE matrix of the
paper), the default with `max_iter={record["parameters"]["max_iter"]}`: updates of all rounds, and
the peak memory of the process with its imports. The BRAF mutation has rank {record["rank"]}.

{common.markdown_table(header, [cells])}"""


def _jobs(quick: bool, path: Path) -> list[tuple[str, Callable[[], Any]]]:
    jobs: list[tuple[str, Callable[[], Any]]] = []

    def record(measured: common.Record | None) -> None:
        if measured is not None:
            common.append_record(path, measured)
            print(measured, flush=True)

    for speed in SPEEDS[:3] if quick else SPEEDS:
        jobs.append((f"speed: {speed.name}", lambda s=speed: record(time_updates(s, quick))))
    jobs.append(("speed: whole fit", lambda: record(time_fits(quick))))
    jobs.append(("wide", lambda: record(wide(quick))))
    small = {"max_iter": 40} if quick else {}
    for variant, parameters in VARIANTS.items():
        for task in QUICK_SINEXP if quick else SINEXP:
            jobs.append(
                (
                    f"{task.name}: {variant}",
                    lambda t=task, v=variant, p=parameters: quality(t, v, p | small, path),
                )
            )
    for other in QUICK_OTHERS if quick else OTHERS:
        for variant, parameters in other.variants.items():
            jobs.append(
                (
                    f"{other.task.name}: {variant}",
                    lambda o=other, v=variant, p=parameters: quality(o.task, v, p | small, path),
                )
            )
    return jobs


def main(argv: Sequence[str] | None = None) -> None:
    args = common.argument_parser("Neural SIC.").parse_args(argv)
    folder = common.output_folder(args)
    path = folder / "results" / "neural.jsonl"
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for name, job in _jobs(args.quick, path):
            if args.only is None or args.only.lower() in name.lower():
                job()
    section = render(common.read_records(path), args.quick)
    common.write_section(folder / "RESULTS.md", "neural", section)
    print(section)


if __name__ == "__main__":
    main()
