"""Neural SIC: quality of its variants, time beside a plain loop, the wide data.

The default on SinExp and Liang, and on the widest XOR, is measured by the study of rankings, on the
seeds of the variants.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.benchmarks import plx4720_data as plx4720
from reproduction.benchmarks import ranking
from reproduction.benchmarks.paired import FIRST_SEED
from reproduction.benchmarks.ranking_data import DATA, DataSet, sinexp, xor
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_and_error
from reproduction.methods import BOOSTED
from reproduction.timing import alternate
from sobolev._sample import Sample
from sobolev.datasets import make_sinexp
from sobolev.neural import Optimizer
from sobolev.neural.critics import resolve_critic
from sobolev.neural.fitting import Design, Member, Recipe, fit_members
from sobolev.neural.objectives import PairedSIC

NAME, NEEDS = "neural", ("ranking",)
DEFAULT = "default"
# What each variant changes, and what it shows.
VARIANTS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "Boosted: batches of 10, 30, 50, geometric mean": BOOSTED,
    "Boosted: four members": {"n_members": 4},
    'preset="paper"': {"preset": "paper"},
    'preset="paper", Boosted': {"preset": "paper"} | BOOSTED,
    "one round (recursions=1)": {"recursions": 1},
    'permuted responses (critic="small")': {"critic": "small"},
    'the paper\'s step on eta (eta_rule="mirror")': {"eta_rule": "mirror"},
    "early stopping": {"early_stopping": True},
}
RANKED = {data.name: data for data in DATA}
SINEXP = tuple(RANKED[f"SinExp, n = {n}"] for n in (125, 250, 500))
# Number of seeds, from 0, where the ranking has others.
SEEDS = {"Liang, 40 of 500, n = 500": 10, "XOR, 2 of 1000, n = 1000": 5}
QUICK_SINEXP = (DataSet("SinExp, n = 60", sinexp, {"n_samples": 60, "n_features": 12}, seeds=2),)
PRESET = {"preset": "paper"}
# Data sets beside SinExp, each with its own variants.
OTHERS: tuple[tuple[DataSet, dict[str, dict[str, Any]]], ...] = (
    (
        RANKED["Liang, 40 of 500, n = 500"],
        {
            DEFAULT: {},
            'critic="big"': {"critic": "big"},
            'critic="big", preset="paper"': {"critic": "big"} | PRESET,
        },
    ),
    (
        DataSet("XOR, 2 of 50, n = 1000", xor, {"n_samples": 1000, "n_features": 50}, seeds=10),
        {DEFAULT: {}, 'preset="paper"': PRESET},
    ),
    (
        RANKED["XOR, 2 of 1000, n = 1000"],
        {DEFAULT: {}, "4,000 updates (max_iter=4000)": {"max_iter": 4000}},
    ),
)
QUICK_OTHERS = (
    (
        DataSet("XOR, 2 of 6, n = 200", xor, {"n_samples": 200, "n_features": 6}, seeds=2),
        {DEFAULT: {}, 'critic="big"': {"critic": "big", "max_iter": 50}},
    ),
)
QUICK_UPDATES = 40


def studied(quick: bool) -> list[tuple[DataSet, dict[str, dict[str, Any]]]]:
    """All data sets with their variants."""
    return [(data, VARIANTS) for data in (QUICK_SINEXP if quick else SINEXP)] + list(
        QUICK_OTHERS if quick else OTHERS
    )


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Times first, then the variants; the default where it is ranked is a task of that study."""
    size = {"quick": True} if quick else {}
    planned = [
        Task(NAME, {"kind": "speed", "name": speed.name, **size}, 0)
        for speed in (SPEEDS[:3] if quick else SPEEDS)
    ]
    planned += [Task(NAME, {"kind": kind, **size}, 0) for kind in ("fit", "wide")]
    for data, variants in studied(quick):
        for variant in variants:
            for seed in range(repetitions or SEEDS.get(data.name, data.seeds)):
                settings = {"kind": "quality", "data": data.name, "variant": variant, **size}
                if variant == DEFAULT and data.name in RANKED:
                    settings = ranking.settings_of(data, "NeuralSIC", quick)
                    planned.append(Task(ranking.NAME, settings, seed))
                else:
                    planned.append(Task(NAME, settings, seed))
    return planned


def measure(settings: Settings, seed: int) -> Record:
    """One fit of a variant, or one of the times."""
    quick = settings.get("quick", False)
    if settings["kind"] == "speed":
        speed = next(speed for speed in SPEEDS if speed.name == settings["name"])
        return time_updates(speed, quick)
    if settings["kind"] == "fit":
        return time_fits(quick)
    if settings["kind"] == "wide":
        return wide(quick)
    data, variants = next(each for each in studied(quick) if each[0].name == settings["data"])
    parameters = variants[settings["variant"]]
    if quick:
        parameters = parameters | {"max_iter": QUICK_UPDATES}
    X, y, support = data.draw(seed, **data.options)
    start = time.perf_counter()
    model = methods.neural_sic(random_state=seed, **parameters).fit(X, y)
    seconds = time.perf_counter() - start
    tpr = ranking.true_positive_rate(model.feature_importances_, support)
    return {"tpr": tpr, "seconds": seconds}


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


def time_updates(speed: Speed, quick: bool) -> Record:
    """CPU time per update and member of the closed form and of the plain loop, in turn."""
    from reproduction.benchmarks import plain_neural as plain

    n_updates, repeats = (5, 2) if quick else (400, 5)
    rng = np.random.default_rng(0)
    n = 300
    sample = Sample(
        rng.standard_normal((n, speed.n_features)), rng.standard_normal((n, 1)), np.full(n, 1 / n)
    )
    ours, theirs = alternate(
        lambda: closed_form(speed, sample, n_updates),
        lambda: plain.train(speed.critic, sample.X, sample.psi, n_updates),
        repeats=repeats,
    )
    return {
        "milliseconds": [1e3 * t / n_updates / speed.n_members for t in ours],
        "plain_milliseconds": [1e3 * t / n_updates for t in theirs],
    }


def time_fits(quick: bool) -> Record:
    """A default fit of NeuralSIC beside one of ConvexSIC, in turn."""
    n, repeats = (60, 1) if quick else (500, 5)
    X, y = make_sinexp(n_samples=n, shuffle_features=True, random_state=0, return_X_y=True)
    ours, theirs = alternate(
        lambda: methods.neural_sic(random_state=0).fit(X, y),
        lambda: methods.convex_sic(random_state=0).fit(X, y),
        repeats=repeats,
    )
    return {"n": n, "ours": ours, "theirs": theirs}


# -- the wide data -------------------------------------------------------------------------------


def wide(quick: bool) -> Record:
    """A fit of 4,000 updates on the plx4720 data: time, memory, rank of the BRAF mutation."""
    from reproduction.benchmarks import plain_neural as plain

    n_features, parameters = (300, {"max_iter": 40}) if quick else (None, {"max_iter": 4000})
    X, y, braf = plx4720.load(n_features)
    start = time.process_time()
    sic = methods.neural_sic(random_state=0, **parameters).fit(X, y)
    seconds = time.process_time() - start
    start = time.process_time()
    n_updates = 2 if quick else 20
    standard = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    plain.train("small", standard, ((y - y.mean()) / y.std())[:, None], n_updates)
    plain_seconds = (time.process_time() - start) / n_updates
    return {
        "shape": list(X.shape),
        "parameters": parameters,
        "seconds": seconds,
        "updates": sic.optimizer.total_updates,
        "plain_update": plain_seconds,
        "memory": plx4720.fit_memory(n_features, "NeuralSIC", parameters),
        "rank": plx4720.rank_of(sic, braf),
    }


# -- the report ----------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    quick = any(row.get("quick") for row in rows)
    sinexps = QUICK_SINEXP if quick else SINEXP
    lines = [[variant, *(_cell(rows, data, variant) for data in sinexps)] for variant in VARIANTS]
    others = [
        [data.name, variant, _cell(rows, data, variant)]
        for data, variants in (QUICK_OTHERS if quick else OTHERS)
        for variant in variants
    ]
    own = [row for row in rows if row["study"] == NAME and "missing" not in row]
    speeds = {row["name"]: row for row in own if row["kind"] == "speed"}
    timed = [_speed_row(speeds[s.name], s.most) for s in SPEEDS if s.name in speeds]
    parts = [
        f"""## Neural SIC

`python -m reproduction neural`, one thread, sobolev {rows[0]["version"]}. The share of the k true
features among the first k (TPR at k), mean ± standard error over seeds from 0. A row names what it
changes in the default.

{markdown_table(["variant", *(data.name for data in sinexps)], lines)}

{markdown_table(["data", "variant", "TPR"], others)}"""
    ]
    if timed:
        header = ["what", "closed form, ms", "plain loop, ms", "ratio (range)", "at most"]
        parts.append(
            f"""### Time per update

The closed form as NeuralSIC runs it beside a plain torch loop with double back-propagation
(`reproduction/benchmarks/plain_neural.py`): the same critic, batches of 100, Adam and the step on
eta included, CPU time in turn in one process, per member; medians over five turns of 400
updates.

{markdown_table(header, timed)}"""
        )
    parts += [_fit_text(row) for row in own if row["kind"] == "fit"]
    parts += [_wide_text(row) for row in own if row["kind"] == "wide"]
    return "\n\n".join(parts)


def _cell(rows: Sequence[Record], data: DataSet, variant: str) -> str:
    """The mean rate of a variant on a data set; the default may be of the study of rankings."""
    found = [
        row["tpr"]
        for row in rows
        if (row.get("data"), row.get("variant")) == (data.name, variant)
        or (variant == DEFAULT and _is_ranked(row, data))
    ]
    if not found:
        return "–"
    mean, error = mean_and_error(found)
    spread = f" ± {error:.3f}" if len(found) > 1 else ""
    return f"**{mean:.3f}**{spread} ({len(found)} seeds)"


def _is_ranked(row: Record, data: DataSet) -> bool:
    ranked = (row["study"], row.get("dataset"), row.get("method"), row.get("kind"))
    is_default = ranked == (ranking.NAME, data.name, "NeuralSIC", None)
    return is_default and row["seed"] < FIRST_SEED


def _speed_row(record: Record, most: float | None) -> list[str]:
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


def _fit_text(record: Record) -> str:
    ours, theirs = np.array(record["ours"]), np.array(record["theirs"])
    ratios = ours / theirs
    spread = f"{ratios.min():.2f}–{ratios.max():.2f}"
    return (
        f"A whole default fit on SinExp, n = {record['n']}: {np.median(ours):.2f} s of CPU time, "
        f"{np.median(ratios):.2f} ({spread}) of ConvexSIC's in the same run."
    )


def _wide_text(record: Record) -> str:
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

{markdown_table(header, [cells])}"""
