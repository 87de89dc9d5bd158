"""SinExp: six of 50 columns in nested sines and exponentials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reproduction.engine import Record, Settings, Task
from reproduction.methods import FORWARD, PAPER
from reproduction.paper import rates, simulations
from reproduction.paper.simulations import ORACLE

NAME, TITLE = "sinexp", "SinExp: nonlinear interactions"
REPETITIONS, QUICK_REPETITIONS = 100, 3
SIZES = (125, 250, 500)
GOALS = {125: 0.80, 250: 0.99, 500: 1.00}
# Quartiles of TPR and FDP at n = 250, read from the authors' own figure.
PUBLISHED_SIZE = 250
PUBLISHED = {
    ("elastic net", "hrt"): ("0.17 / 0.33 / 0.50", "–"),
    ("random forest", "hrt"): ("0.33 / 0.50 / 0.83", "–"),
    ("MSE + Sobolev penalty", "hrt"): ("0.67 / 0.83 / 0.83", "–"),
    (PAPER, "witness"): ("0.67 / 0.83 / 1.00", "0.00 / 0.07 / 0.20"),
}
PUBLISHED_MEDIAN = 0.833


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Three sizes, all methods."""
    sizes = [{"n": n, "features": 50, "top": 6, "shortlist": 20} for n in SIZES]
    default = QUICK_REPETITIONS if quick else REPETITIONS
    return simulations.make_tasks(NAME, sizes, repetitions or default)


def measure(settings: Settings, seed: int) -> Record:
    """Draw n rows to train on and n to test on, and measure a method."""
    from sobolev.datasets.synthetic import make_sinexp, sinexp_signal

    data = make_sinexp(2 * settings["n"], settings["features"], random_state=seed)
    return simulations.measure(data, sinexp_signal, settings, seed)


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The default setting in one line."""
    published = (
        f"published median of neural SIC: TPR {PUBLISHED_MEDIAN:.2f} at n = {PUBLISHED_SIZE}"
    )
    return rates.summary(records, GOALS, published)


def page(records: Sequence[Record], folder: Path) -> str:
    """Figures and tables."""
    rates.draw_rates(records, "hrt", folder / f"{NAME}-hrt.png")
    rates.draw_rates(records, "top", folder / f"{NAME}-top.png")
    parts = [
        f"""\
Six of 50 columns matter, all pairs of columns have correlation 0.5. Every method trains on n rows;
it selects its six most important columns ("top 6"), or the holdout randomization test on n more
rows selects among its 20 most important at a false discovery rate of 10 %. "{FORWARD}" is the
default `HRTSelector()`, which divides the same 2n rows by itself, "{ORACLE}" the same with the
function that made the response in place of the critic.

{reading(records)}

{rates.goal_table(records, GOALS)}

![Rates of the holdout randomization test]({NAME}-hrt.png)

Tests compare risks; that of "{PAPER}" has the paper's statistic, the mean witness.

The six most important columns:

![Rates of the six most important columns]({NAME}-top.png)
"""
    ]
    for n in rates.sizes_of(records):
        published = PUBLISHED if n == PUBLISHED_SIZE else {}
        parts.append(f"## n = {n}\n\n{rates.rates_table(records, n, published)}\n")
    parts.append(
        f"## Time\n\n{rates.time_table(records)}\n\n"
        "A repetition is data, fit, ranking and test, on one thread. "
        f"{_ratio(records)}\n"
    )
    return "\n".join(parts)


def reading(records: Sequence[Record]) -> str:
    """What the numbers say, in words."""
    said = []
    n = PUBLISHED_SIZE
    tpr = rates.values(records, n, FORWARD, "hrt", "tpr")
    if tpr.size:
        fdp = rates.values(records, n, FORWARD, "hrt", "fdp")
        said.append(
            f"At n = {n} the default finds {tpr.mean():.0%} of the true columns (FDR "
            f"{fdp.mean():.3f}); the published median of neural SIC is {PUBLISHED_MEDIAN:.0%}."
        )
    paper = rates.values(records, n, PAPER, "witness", "tpr")
    if paper.size:
        risk = rates.values(records, n, PAPER, "hrt", "tpr")
        said.append(
            f"The paper's own settings and statistic find {paper.mean():.0%} here, with the risk "
            f"as statistic {risk.mean():.0%}."
        )
    smallest = min(rates.sizes_of(records), default=None)
    if smallest is not None and (best := rates.best_split(records, smallest)):
        forward = rates.values(records, smallest, FORWARD, "hrt", "tpr")
        if forward.size:
            said.append(
                f"At n = {smallest} the best method of one split is {best[0]} with {best[1]:.0%}, "
                f"the default finds {forward.mean():.0%}."
            )
    return " ".join([*said, rates.excesses(records)]).strip()


def _ratio(records: Sequence[Record]) -> str:
    """Against the time of the authors' script."""
    largest = max(SIZES)
    seconds = {
        method: found
        for method in (FORWARD, PAPER)
        if (found := rates.seconds_of(records, largest, method))
    }
    if not seconds:
        return ""
    each = " and ".join(
        f"{rates.AUTHORS_SECONDS / s:.0f} times that of {m}" for m, s in seconds.items()
    )
    return (
        f"The authors' published script takes about {rates.AUTHORS_SECONDS:.0f} s for n = "
        f"{largest} with its test of 20 columns, on one thread, {each}."
    )
