"""Knockoffs on HIV drug resistance: positions found at q = 0.2, against the treatment list.

One setting for all drugs; lam is chosen from the data, the list of true positions is only used to
count. The experiment of the paper measures ``ConvexSIC``; here are the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV

from reproduction import methods
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from reproduction.paper import hiv
from reproduction.paper.hiv import FDR, KNOCKOFFS, N_DRAWS, PUBLISHED, position_groups
from reproduction.paper.hiv_page import published_total
from sobolev.datasets import HIV_DRUGS, load_hiv

NAME, NEEDS = "knockoffs_hiv", ("hiv",)
N_SEEDS = 10
DRUGS = {kind: [d for d in drugs if d in PUBLISHED] for kind, drugs in HIV_DRUGS.items()}
PAPER = {
    "GLM (paper)": published_total(0),
    "Boosted SIC (paper, offset 0)": published_total(1),
}


@dataclass(frozen=True)
class Method:
    """A statistic, knockoffs, how many draws, and whether positions or columns are the unit."""

    name: str
    statistic: str
    sampler: str = "gaussian"
    n_draws: int = 1
    positions: bool = True

    def estimator(self) -> Any:
        if self.statistic == "lasso":
            return LassoCV()
        if self.statistic == "neural":
            return methods.neural_sic(**methods.BOOSTED)
        return methods.hiv_critic()


MAIN = "ConvexSIC"
METHODS = (
    Method("lasso", "lasso", n_draws=N_DRAWS),
    Method("Boosted NeuralSIC", "neural"),
    Method("ConvexSIC, copula", "convex", "copula"),
    Method("ConvexSIC, sequential", "convex", "sequential"),
    Method("ConvexSIC, by column", "convex", positions=False),
)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """ConvexSIC is a part of the paper's experiment, the others are measured here."""
    count = repetitions or (1 if quick else N_SEEDS)
    drugs = ["ATV"] if quick else [drug for of in DRUGS.values() for drug in of]
    planned = [
        task
        for task in hiv.tasks(quick, count)
        if task.settings["method"] == KNOCKOFFS and task.settings["drug"] in drugs
    ]
    planned += [
        Task(NAME, {"drug": drug, "method": method.name}, seed)
        for seed in range(count)
        for method in METHODS
        for drug in drugs
    ]
    return planned


check_data = hiv.check_data


def measure(settings: Settings, seed: int) -> Record:
    """Positions of the list and others, with both offsets, draw by draw and derandomised."""
    data = load_hiv(settings["drug"])
    method = next(method for method in METHODS if method.name == settings["method"])
    selector, found = hiv.filtered(
        data,
        position_groups(data.positions) if method.positions else None,
        method.estimator(),
        sampler=method.sampler,
        fdr=FDR,
        n_draws=method.n_draws,
        random_state=seed,
    )
    return found | {"lam": getattr(selector.estimator_, "lam_", None)}


def rows_of_methods(rows: Sequence[Record]) -> list[Record]:
    """The rows of this study, and the knockoffs of the paper's experiment in the same form."""
    found = [row for row in rows if row["study"] == NAME]
    for row in rows:
        if row["study"] == "hiv" and row["method"] == KNOCKOFFS:
            draws = {f"draws{k}": [row[f"draw{k}"]] for k in (0, 1)}
            found.append(row | draws | {"method": MAIN})
    return found


def totals(records: Sequence[Record], key: str, drugs: Sequence[str]) -> np.ndarray | None:
    """True and false positions over the drugs, (n_seeds, 2), of seeds with all of them.

    Of single draws the first is taken.
    """
    found: dict[int, dict[str, Any]] = {}
    for r in records:
        if key in r and r["drug"] in drugs:
            found.setdefault(r["seed"], {})[r["drug"]] = r[key][0] if "draws" in key else r[key]
    full = [np.sum(list(of.values()), axis=0) for of in found.values() if len(of) == len(drugs)]
    return np.array(full, dtype=float) if full else None


def _cell(values: np.ndarray | None) -> str:
    if values is None:
        return "–"
    return "{:.1f} / {:.1f}".format(*values.mean(axis=0))


KINDS = (
    ("ebh0", f"{N_DRAWS} draws, e-BH, offset 0"),
    ("ebh1", f"{N_DRAWS} draws, e-BH, offset 1"),
    ("draws1", "one draw, offset 1"),
    ("draws0", "one draw, offset 0"),
)


SUMMARY_ROWS = (
    ("ebh0", f"`n_draws={N_DRAWS}, offset=0`"),
    ("ebh1", f"`n_draws={N_DRAWS}`"),
    ("draws1", "one draw"),
)


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    records = rows_of_methods(rows)
    every = [d for drugs in DRUGS.values() for d in drugs]
    lines = []
    for name in (MAIN, *(method.name for method in METHODS)):
        of = [r for r in records if r["method"] == name]
        for key, words in KINDS:
            all_drugs = totals(of, key, every)
            if all_drugs is None:
                continue
            true, false = all_drugs.mean(axis=0)
            spread = all_drugs.std(axis=0, ddof=1) if len(all_drugs) > 1 else (np.nan, np.nan)
            by_class = [_cell(totals(of, key, drugs)) for drugs in DRUGS.values()]
            lines.append(
                [
                    f"{name}, {words}",
                    f"**{true:.1f} / {false:.1f}**",
                    f"{false / (true + false):.3f}" if true + false else "–",
                    f"{spread[0]:.1f} / {spread[1]:.1f}",
                    *by_class,
                    str(len(all_drugs)),
                ]
            )
    for name, (true, false) in PAPER.items():
        lines.append([name, f"{true} / {false}", f"{false / (true + false):.3f}", *["–"] * 5])
    header = ["method", "true / false", "share false", "sd over seeds", *DRUGS, "seeds"]
    body = f"""
## Knockoffs on HIV drug resistance

Positions found at q = {FDR} over 15 drugs, true (on the list of treatment-selected mutations of the
class) and others, means over seeds. Positions are groups of columns: the false discovery rate is
controlled for what is counted ("by column": for single mutations, as in the paper). Gaussian
knockoffs unless said. ConvexSIC is `ConvexSIC(feature_map=LandmarkMap(200),
solver=Alternating(rounds=1), lam="relaxed", cv=3)` for all drugs, "lasso" is `LassoCV`, Boosted
NeuralSIC has batches of 10, 30 and 50 and geometric means. The list is not the whole truth:
positions beside it may matter.

{markdown_table(header, lines)}
"""
    first = [r for r in records if r["method"] == MAIN]
    if first:
        lines = []
        for drug in every:
            of = [r for r in first if r["drug"] == drug]
            if not of:
                continue
            cells = [
                "{:.1f} / {:.1f}".format(*np.mean([r[k] for r in of], axis=0))
                if "ebh" in k
                else "{:.1f} / {:.1f}".format(*np.mean([r[k][0] for r in of], axis=0))
                for k, _ in KINDS
            ]
            lams = sorted(r["lam"] for r in of)
            seconds = np.median([r["seconds"] for r in of])
            middle = f"{lams[len(lams) // 2]:g}"
            lines.append([drug, *cells, middle, f"{seconds:.0f}", str(len(of))])
        header = ["drug", *[words for _, words in KINDS], "median lam", "CPU s", "seeds"]
        body += f"\nConvexSIC by drug, true / false:\n\n{markdown_table(header, lines)}\n"
    return body + (
        f"\nsobolev {rows[0]['version']}; regenerate with `python -m reproduction hiv` (ConvexSIC) "
        "and `python -m reproduction knockoffs_hiv`.\n"
    )


def summary(records: Sequence[Record]) -> str:
    """The totals over all drugs."""
    every = [d for drugs in DRUGS.values() for d in drugs]
    of = [r for r in records if r["method"] == MAIN]
    rows = []
    for key, words in SUMMARY_ROWS:
        found = totals(of, key, every)
        if found is not None:
            true, false = found.mean(axis=0)
            spread = np.nan if len(found) < 2 else found.sum(axis=1).std(ddof=1)
            cells = [f"**{true:.0f} / {false:.0f}**", f"{false / (true + false):.2f}"]
            words = f"`KnockoffSelector`, {words} ({len(found)} seeds)"
            rows.append([words, *cells, f"{spread:.1f}"])
    for name, (true, false) in PAPER.items():
        rows.append([name, f"{true} / {false}", f"{false / (true + false):.2f}", "–"])
    header = [
        "15 drugs, q = 0.2",
        "true / false positions",
        "share false",
        "sd of finds over seeds",
    ]
    return markdown_table(header, rows)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of another page."""
    return {("docs/choosing.md", "hiv"): summary(rows_of_methods(rows))}
