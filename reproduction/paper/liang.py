"""Liang: 40 of 500 correlated columns, half of them linear, half through a tanh."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from reproduction.engine import Record, Settings, Task
from reproduction.methods import FORWARD, PAPER
from reproduction.paper import rates, simulations
from reproduction.paper.simulations import ORACLE

NAME, TITLE = "liang", "Liang: forty of five hundred"
REPETITIONS, QUICK_REPETITIONS = 100, 2
FULL = {"n": 500, "features": 500, "top": 40, "shortlist": 100, "critic": "big"}
QUICK = {"n": 150, "features": 100, "top": 40, "shortlist": 60, "critic": "big"}
GOALS = {500: 0.92}


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One size, all methods; a smaller one to try it out."""
    default = QUICK_REPETITIONS if quick else REPETITIONS
    return simulations.make_tasks(NAME, [QUICK if quick else FULL], repetitions or default)


def measure(settings: Settings, seed: int) -> Record:
    """Draw n rows to train on and n to test on, and measure a method."""
    from sobolev.datasets.synthetic import liang_signal, make_liang

    data = make_liang(2 * settings["n"], settings["features"], random_state=seed)
    signal = partial(liang_signal, weights=data.weights)
    return simulations.measure(data, signal, settings, seed)


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The default setting in one line, beside what could be found and elastic net."""
    others = [
        f"{method} {tpr.mean():.3f}"
        for method in (ORACLE, "elastic net")
        for n in GOALS
        if (tpr := rates.values(records, n, method, "hrt", "tpr")).size
    ]
    return rates.summary(records, GOALS, f"TPR of {', '.join(others)}" if others else "–")


def page(records: Sequence[Record], folder: Path) -> str:
    """Figures and tables."""
    rates.draw_rates(records, "hrt", folder / f"{NAME}-hrt.png")
    rates.draw_rates(records, "top", folder / f"{NAME}-top.png")
    parts = []
    for n in rates.sizes_of(records):
        setting = next(r["settings"] for r in records if r["settings"]["n"] == n)
        parts.append(
            f"## n = {n}\n\n{setting['top']} of {setting['features']} columns matter; the test is "
            f"among the {setting['shortlist']} most important.\n\n"
            f"{rates.rates_table(records, n, {})}\n"
        )
    tables = "\n".join(parts)
    return f"""\
Forty columns matter, half of them linearly, half in pairs inside a tanh; all pairs of columns have
correlation 0.5. Every method trains on n rows; it selects its 40 most important columns, or the
holdout randomization test on n more rows selects at a false discovery rate of 10 %. "{FORWARD}"
is the default `HRTSelector()` on the same 2n rows, "{ORACLE}" the same with the function that
made the response in place of the critic. Neural SIC has the paper's big critic. The paper shows its
results in a figure without numbers, so there is no published column.

{reading(records)}

{rates.goal_table(records, GOALS)}

![Rates of the holdout randomization test]({NAME}-hrt.png)

Tests compare risks; that of "{PAPER}" has the paper's statistic, the mean witness.

The forty most important columns:

![Rates of the forty most important columns]({NAME}-top.png)

{tables}
## Time

{rates.time_table(records)}
"""


def reading(records: Sequence[Record]) -> str:
    """What the numbers say, in words."""
    said = []
    for n in rates.sizes_of(records):
        tpr, fdp = (rates.values(records, n, FORWARD, "hrt", name) for name in ("tpr", "fdp"))
        best = rates.best_split(records, n)
        if not tpr.size or best is None:
            continue
        net = rates.values(records, n, "elastic net", "hrt", "tpr")
        said.append(
            f"At n = {n} the default finds {tpr.mean():.0%} of the true columns (FDR "
            f"{fdp.mean():.3f}); the best method of one split is {best[0]} with {best[1]:.0%}"
            + (f", elastic net has {net.mean():.0%}." if net.size else ".")
        )
        truth = rates.values(records, n, ORACLE, "hrt", "tpr")
        if truth.size:
            said.append(
                f"With the true function in place of the critic the same test finds "
                f"{truth.mean():.0%}: {max(0.0, truth.mean() - tpr.mean()):.0%} are lost to what "
                "the critic has not learned from the rows before a block, the rest to the test "
                "itself."
            )
        witness = rates.values(records, n, PAPER, "witness", "tpr")
        if witness.size:
            risk = rates.values(records, n, PAPER, "hrt", "tpr")
            said.append(
                f"The paper's network finds {witness.mean():.0%} with the paper's statistic and "
                f"{risk.mean():.0%} with the risk."
            )
    return " ".join([*said, rates.excesses(records)]).strip()
