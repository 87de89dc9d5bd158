"""Selection at a false discovery rate of 0.1, beside hidimstat and knockpy on the same data.

A peer that is not installed, or that fails, is a row with its reason; what is not installed is
tried again by the next run. The peers are in the extra "bench"; knockpy needs a C compiler.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from reproduction.benchmarks.knockoff_designs import NORMAL, Design
from reproduction.benchmarks.ranking_data import liang, sinexp
from reproduction.benchmarks.selection_peers import LIANG, METHODS, REFERENCE, Method, quietly
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_and_error, mean_cell
from reproduction.paper.simulations import rates

NAME = "selection"
FDR = 0.1


def _sinexp(n: int, d: int = 50) -> Design:
    name = f"SinExp, 6 of {d}, n = {n}"
    return Design(name, lambda seed: sinexp(seed, n_samples=n, n_features=d))


LINEAR = Design("AR(1) 0.5, linear, 15 of 60, n = 300", NORMAL[0].draw)
DESIGNS = (
    *[_sinexp(n) for n in (125, 250, 500)],
    Design(LIANG, lambda seed: liang(seed, n_samples=500)),
    LINEAR,
)
QUICK_DESIGNS = (_sinexp(80, 12),)


@dataclass(frozen=True)
class Cell:
    """What a method did on a design: the records with figures, and why there are no more."""

    method: Method
    found: list[Record]
    reason: str


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All methods on a data set before the next; of what is not installed the first one alone."""
    planned = []
    for design in QUICK_DESIGNS if quick else DESIGNS:
        most = repetitions or (1 if quick else max(method.seeds for method in METHODS))
        counts = {method.name: min(most, method.seeds_on(design.name)) for method in METHODS}
        counts |= {m.name: min(1, counts[m.name]) for m in METHODS if m.missing()}
        planned += [
            Task(NAME, {"design": design.name, "method": method.name}, seed)
            for seed in range(most)
            for method in METHODS
            if seed < counts[method.name]
        ]
    return planned


def measure(settings: Settings, seed: int) -> Record:
    """One selection."""
    design = next(d for d in (*DESIGNS, *QUICK_DESIGNS) if d.name == settings["design"])
    method = next(method for method in METHODS if method.name == settings["method"])
    reason = method.missing()
    if reason:
        return {"missing": reason}
    X, y, support = design.draw(seed)
    try:
        with quietly():
            start = time.process_time()
            found = np.asarray(method.select(X, y, seed, FDR), dtype=bool)
            seconds = time.process_time() - start
    except Exception as error:  # whatever a peer raises is told, not hidden
        if method.package == "sobolev":
            raise
        return {"error": _one_line(error)}
    package = f"{method.package} {version(method.package)}"
    return {"package": package, **rates(found, support), "seconds": seconds}


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace("|", "/")
    return text if len(text) <= 160 else f"{text[:159]}…"


def cells(rows: Sequence[Record], design: Design) -> list[Cell]:
    """All methods on a design."""
    mine = [row for row in rows if row["design"] == design.name]
    made = []
    for method in METHODS:
        of = [row for row in mine if row["method"] == method.name]
        found = [row for row in of if "tpr" in row]
        failed = [row.get("error") or row["missing"] for row in of if "tpr" not in row]
        reason = failed[0] if failed else ""
        if reason and found:
            reason = f"failed on {len(failed)}: {reason}"
        if not of and not method.seeds_on(design.name):
            reason = f"left out: {method.why}"
        if found or reason:
            made.append(Cell(method, found, reason))
    return made


def _column(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([r[name] for r in records], dtype=float)


def holds(cell: Cell) -> bool:
    """Whether false discoveries are within two standard errors of the level, if that is known."""
    fdr, error = mean_and_error(_column(cell.found, "fdp"))
    return not fdr > FDR + 2 * error


def ratios(cell: Cell, reference: Cell | None) -> str:
    """CPU seconds by those of the reference on the same data: median and quartiles."""
    if reference is None or cell.method.name == REFERENCE:
        return "1" if cell.method.name == REFERENCE else "–"
    base = {r["seed"]: r["seconds"] for r in reference.found}
    paired = [r["seconds"] / base[r["seed"]] for r in cell.found if base.get(r["seed"])]
    if not paired:
        return "–"
    low, middle, high = np.quantile(paired, [0.25, 0.5, 0.75])
    return f"{middle:.2g} ({low:.2g} to {high:.2g})"


def lines(found: Sequence[Cell]) -> list[list[str]]:
    """Lines of the table of one design."""
    reference = next((c for c in found if c.method.name == REFERENCE and c.found), None)
    made = []
    for cell in found:
        if not cell.found:
            made.append([cell.method.name, *["–"] * 6, cell.reason])
            continue
        made.append(
            [
                cell.method.name,
                mean_cell(_column(cell.found, "tpr")),
                mean_cell(_column(cell.found, "fdp")),
                "–" if len(cell.found) < 2 else "holds" if holds(cell) else "**fails**",
                str(len(cell.found)),
                f"{np.median(_column(cell.found, 'seconds')):.2f}",
                ratios(cell, reference),
                cell.reason or "–",
            ]
        )
    return made


def difference(cell: Cell, other: Cell) -> tuple[float, float, int]:
    """Mean difference of true positive rates on the seeds that both have, and its error."""
    base = {r["seed"]: r["tpr"] for r in other.found}
    paired = [r["tpr"] - base[r["seed"]] for r in cell.found if r["seed"] in base]
    if not paired:
        return float("nan"), float("nan"), 0
    return *mean_and_error(paired), len(paired)


def verdict(found: Sequence[Cell]) -> str:
    """Who finds most among those whose false discovery rate holds, ours beside the peers."""
    usable = [c for c in found if c.found and holds(c)]
    ours = [c for c in usable if c.method.package == "sobolev"]
    peers = [c for c in usable if c.method.package != "sobolev"]
    broken = [c.method.name for c in found if c.found and not holds(c)]
    said = f"Beyond the level: {', '.join(broken)}. " if broken else ""
    if not ours:
        return said + "None of ours holds the level."
    best = max(ours, key=lambda c: _column(c.found, "tpr").mean())
    power = mean_cell(_column(best.found, "tpr"))
    if not peers:
        return f"{said}Of ours {best.method.name} finds most ({power}); no peer to compare."
    peer = max(peers, key=lambda c: _column(c.found, "tpr").mean())
    gap, error, count = difference(best, peer)
    text = f"{best.method.name} {power}, best peer {peer.method.name} "
    text += f"{mean_cell(_column(peer.found, 'tpr'))}"
    if not count or error != error:
        return f"{said}{text}: too few common data sets for a verdict."
    outcome = "a tie within two standard errors"
    if abs(gap) > 2 * error:
        outcome = "**ours ahead**" if gap > 0 else "**the peer wins**"
    return f"{said}{text}: {outcome} ({gap:+.3f} ± {error:.3f} on {count} common data sets)."


HEADER = [
    "method",
    "true positive rate",
    "false discovery rate",
    "≤ q + 2 se",
    "data sets",
    "CPU s",
    f"times {REFERENCE}",
    "remark",
]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    parts = []
    for design in (*DESIGNS, *QUICK_DESIGNS):
        found = cells(rows, design)
        if any(cell.found for cell in found):
            table = markdown_table(HEADER, lines(found))
            parts.append(f"### {design.name}\n\n{verdict(found)}\n\n{table}")
    body = "\n\n".join(parts)
    peers = {r["package"] for r in rows if not r.get("package", "sobolev").startswith("sobolev")}
    versions = ", ".join(sorted(peers)) or "none installed"
    return f"""
## Selection at a false discovery rate of {FDR}

All see the same n rows, on one thread; means ± standard errors over data sets. CPU seconds are
medians, and "times {REFERENCE}" is their ratio to {REFERENCE} on the same data (median, quartiles).
{REFERENCE} and KnockoffSelector have their defaults (`ConvexSIC`; forward scheme), "lasso" is
`LassoCV`. Peers have their own defaults ({versions}): d0CRT keeps the tenth
of the columns with the largest lasso coefficients unless it says "no screening" or "forest" (100
trees, all columns), with Benjamini-Hochberg on its p-values; CFI is conditional feature importance
of a forest of 100 trees with Benjamini-Hochberg on the p-values of its t-tests. Knockoffs at
q = {FDR} select ten columns (1 / q) or none, and SinExp
has six: at this level only tests with p-values can find them.

{body}

sobolev {rows[0]["version"]}; regenerate with `python -m reproduction selection`.
"""
