"""Rates over repetitions: tables, goals, figures and words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduction.engine import Record
from reproduction.markdown import (
    exceeding,
    markdown_table,
    mean_and_error,
    mean_cell,
    quartile_cell,
)
from reproduction.methods import FORWARD, METHODS, PAPER
from reproduction.paper.simulations import FDR, ORACLE

SELECTIONS = {
    "top": "top {top}",
    "hrt": "HRT",
    "witness": "HRT, the paper's statistic",
}
# What the authors' published script takes for SinExp with n = 500, 20 columns tested, one thread.
AUTHORS_SECONDS = 480.0


def values(records: Sequence[Record], n: int, method: str, selection: str, rate: str) -> np.ndarray:
    """A rate over repetitions."""
    found = [
        record["result"][selection][rate]
        for record in records
        if (record["settings"]["n"], record["settings"]["method"]) == (n, method)
        and selection in record["result"]
    ]
    return np.array(found, dtype=float)


def sizes_of(records: Sequence[Record]) -> list[int]:
    """The numbers of training rows, ascending."""
    return sorted({record["settings"]["n"] for record in records})


def rates_table(
    records: Sequence[Record], n: int, published: dict[tuple[str, str], tuple[str, str]]
) -> str:
    """Quartiles and means of every method and way of selecting, beside published quartiles."""
    top = next(r["settings"]["top"] for r in records if r["settings"]["n"] == n)
    rows = []
    for selection, words in SELECTIONS.items():
        for method in (*METHODS, ORACLE):
            tpr, fdp = (values(records, n, method, selection, rate) for rate in ("tpr", "fdp"))
            if not tpr.size:
                continue
            reference = published.get((method, selection), ("–", "–"))
            rows.append(
                [
                    f"{method}, {words.format(top=top)}",
                    quartile_cell(tpr),
                    mean_cell(tpr),
                    quartile_cell(fdp),
                    mean_cell(fdp),
                    *(reference if published else ()),
                    str(tpr.size),
                ]
            )
    header = ["method", "TPR quartiles", "TPR mean", "FDP quartiles", "FDR (mean FDP)"]
    if published:
        header += ["published TPR quartiles", "published FDP quartiles"]
    return markdown_table([*header, "repetitions"], rows)


def seconds_of(records: Sequence[Record], n: int, method: str) -> float | None:
    """Median seconds of a repetition, data, fit and tests, on one thread."""
    found = [
        record["seconds"]
        for record in records
        if (record["settings"]["n"], record["settings"]["method"]) == (n, method)
    ]
    return float(np.median(found)) if found else None


def time_table(records: Sequence[Record]) -> str:
    """Median seconds of a repetition."""
    sizes = sizes_of(records)
    rows = []
    for method in METHODS:
        cells = [seconds_of(records, n, method) for n in sizes]
        if any(cell is not None for cell in cells):
            rows.append([method, *("–" if cell is None else f"{cell:.1f}" for cell in cells)])
    return markdown_table(["CPU seconds of a repetition", *(f"n = {n}" for n in sizes)], rows)


def shown(record: Record, selection: str) -> dict[str, float] | None:
    """The rates that a figure shows: the test of the paper's network is that of the paper."""
    result = record["result"]
    own = selection == "hrt" and record["settings"]["method"] == PAPER
    found: dict[str, float] | None = result.get("witness" if own else selection)
    return found


def draw_rates(records: Sequence[Record], selection: str, path: Path) -> None:
    """Box plots of all methods, a column of panels for each size, with the level of the HRT."""
    import matplotlib
    import pandas as pd

    rows = [
        {"method": method, "group": f"n = {n}", **found}
        for n in sizes_of(records)
        for method in METHODS
        for record in records
        if (record["settings"]["n"], record["settings"]["method"]) == (n, method)
        and (found := shown(record, selection)) is not None
    ]
    if not rows:
        return
    with matplotlib.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        from reproduction.plot_rates import plot_rates

        axes = plot_rates(pd.DataFrame(rows), fdr=FDR if selection == "hrt" else None)
        axes[0, 0].figure.savefig(path, dpi=110)
        plt.close(axes[0, 0].figure)


def goal_row(records: Sequence[Record], n: int, goal: float) -> list[str]:
    """Whether the default setting reaches a true positive rate at the level."""
    tpr, fdp = (values(records, n, FORWARD, "hrt", rate) for rate in ("tpr", "fdp"))
    if not tpr.size:
        return []
    reached, kept = "–", "–"  # one repetition decides nothing
    if tpr.size > 1:
        mean, error = mean_and_error(fdp)
        reached = "yes" if tpr.mean() >= goal else "no"
        kept = "yes" if mean <= FDR + 2 * error else "no"
    ceiling = mean_cell(values(records, n, ORACLE, "hrt", "tpr"))
    return [f"n = {n}", f"{goal:.2f}", mean_cell(tpr), reached, mean_cell(fdp), kept, ceiling]


def goal_table(records: Sequence[Record], goals: dict[int, float]) -> str:
    """The goals of the default setting, and what came of them."""
    rows = [row for n, goal in goals.items() if (row := goal_row(records, n, goal))]
    header = ["default setting", "TPR goal", "TPR", "reached", "FDR", "at most 0.10 + 2 se"]
    header.append(f"TPR of {ORACLE}")
    return markdown_table(header, rows) if rows else ""


def summary(
    records: Sequence[Record], goals: dict[int, float], beside: str
) -> tuple[str, str, str]:
    """The rates of the default setting at all sizes that have a goal, in one line."""
    sizes = [n for n in goals if values(records, n, FORWARD, "hrt", "tpr").size]
    if not sizes:
        return "–", beside, "–"
    tpr, fdr = (
        " / ".join(mean_cell(values(records, n, FORWARD, "hrt", rate)) for n in sizes)
        for rate in ("tpr", "fdp")
    )
    rows = [goal_row(records, n, goals[n]) for n in sizes]
    verdicts = {cell for row in rows for cell in (row[3], row[5])}
    verdict = "–" if "–" in verdicts else "not reached" if "no" in verdicts else "reached"
    return (
        f"TPR {tpr}, FDR {fdr} at n = {' / '.join(map(str, sizes))}",
        beside,
        f"TPR {' / '.join(f'{goals[n]:.2f}' for n in sizes)}, FDR 0.10: {verdict}",
    )


def best_split(records: Sequence[Record], n: int) -> tuple[str, float] | None:
    """The method of one split with the largest mean true positive rate of the test."""
    found = {
        method: float(tpr.mean())
        for method in METHODS
        if method != FORWARD and (tpr := values(records, n, method, "hrt", "tpr")).size
    }
    return max(found.items(), key=lambda item: item[1]) if found else None


def excesses(records: Sequence[Record]) -> str:
    """Methods whose mean false discovery proportion is clearly above the level."""
    rates = {
        f"{method} at n = {n}": values(records, n, method, "hrt", "fdp")
        for n in sizes_of(records)
        for method in METHODS
    }
    return exceeding(rates, FDR)
