"""Selection at a false discovery rate of 0.1, beside hidimstat and knockpy on the same data.

    python benchmarks/selection.py [--quick] [--seeds N] [--only NAME] [--method NAME] [--render]

Every finished selection is a line of results/selection.jsonl at once, keyed by version, design,
method and seed: a run that was killed goes on where it stopped. A peer that is not installed, or
that fails, is a row with its reason, and is tried again by the next run. The peers are in the extra
"bench"; knockpy needs a C compiler.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _knockoff_data import NORMAL, Design
from _ranking_data import liang, sinexp
from _selection_peers import LIANG, METHODS, REFERENCE, Method, quietly

from sobolev import __version__
from sobolev.experiments._tables import mean_and_error, mean_cell

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
    found: list[common.Record]
    reason: str


def measure(design: Design, method: Method, seed: int) -> common.Record:
    """One selection."""
    record = {"design": design.name, "method": method.name, "seed": seed, "version": __version__}
    reason = method.missing()
    if reason:
        return record | {"reason": reason}
    X, y, support = design.draw(seed)
    try:
        with quietly():
            start = time.process_time()
            found = np.asarray(method.select(X, y, seed, FDR), dtype=bool)
            seconds = time.process_time() - start
    except Exception as error:  # whatever a peer raises is told, not hidden
        if method.package == "sobolev":
            raise
        return record | {"reason": _one_line(error)}
    return record | {
        "package": f"{method.package} {version(method.package)}",
        "tpr": round(float(found[support].mean()), 4),
        "fdp": round(float((found & ~support).sum() / max(1, found.sum())), 4),
        "seconds": round(seconds, 3),
    }


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace("|", "/")
    return text if len(text) <= 160 else f"{text[:159]}…"


def cells(records: Sequence[common.Record], design: Design) -> list[Cell]:
    """All methods on a design; of several records of a seed the last with figures counts."""
    mine = [r for r in records if (r["version"], r["design"]) == (__version__, design.name)]
    made = []
    for method in METHODS:
        of = [r for r in mine if r["method"] == method.name]
        found = {r["seed"]: r for r in of if "reason" not in r}
        failed = {r["seed"]: r["reason"] for r in of if "reason" in r and r["seed"] not in found}
        reason = next(iter(failed.values()), "")
        if reason and found:
            reason = f"failed on {len(failed)}: {reason}"
        if not of and not method.seeds_on(design.name):
            reason = f"left out: {method.why}"
        if found or reason:
            made.append(Cell(method, list(found.values()), reason))
    return made


def _column(records: Sequence[common.Record], name: str) -> np.ndarray:
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


def rows(found: Sequence[Cell]) -> list[list[str]]:
    """Lines of the table of one design."""
    reference = next((c for c in found if c.method.name == REFERENCE and c.found), None)
    lines = []
    for cell in found:
        if not cell.found:
            lines.append([cell.method.name, *["–"] * 6, cell.reason])
            continue
        lines.append(
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
    return lines


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


def render(records: Sequence[common.Record], designs: Sequence[Design]) -> str:
    """The section of RESULTS.md."""
    parts = []
    for design in designs:
        found = cells(records, design)
        if any(cell.found for cell in found):
            table = common.markdown_table(HEADER, rows(found))
            parts.append(f"### {design.name}\n\n{verdict(found)}\n\n{table}")
    body = "\n\n".join(parts)
    peers = {r["package"] for r in records if not r.get("package", "sobolev").startswith("sobolev")}
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

sobolev {__version__}; regenerate with `python benchmarks/selection.py`.
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Selection at a false discovery rate, beside peers.")
    parser.add_argument("--seeds", type=int, help="the most data sets of each design")
    parser.add_argument("--method", help="only methods with this in their name")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # convergence remarks of the peers
    folder = common.output_folder(args)
    path = folder / "results" / "selection.jsonl"
    designs = QUICK_DESIGNS if args.quick else DESIGNS
    if not args.render:
        _run(args, designs, path)
    section = render(common.read_records(path), designs)
    common.write_section(folder / "RESULTS.md", "selection", section)
    print(section)


def _run(args: Any, designs: Sequence[Design], path: Path) -> None:
    keys = ("version", "design", "method", "seed")
    records = common.read_records(path)
    finished = {tuple(r[k] for k in keys) for r in records if "reason" not in r}
    wanted = [m for m in METHODS if not args.method or args.method.lower() in m.name.lower()]
    most = args.seeds or (1 if args.quick else max(m.seeds for m in METHODS))
    for design in common.choose(designs, args.only):
        absent: set[str] = set()
        for seed in range(most):
            for method in wanted:
                key = (__version__, design.name, method.name, seed)
                if seed >= method.seeds_on(design.name) or key in finished:
                    continue
                if method.name in absent:
                    continue
                record = measure(design, method, seed)
                common.append_record(path, record)
                said = record.get("reason") or f"{record['tpr']} {record['fdp']}"
                print(f"{design.name} · {method.name} · {seed}: {said}", flush=True)
                if "reason" in record and not seed:
                    absent.add(method.name)  # what fails on the first data set fails on all


if __name__ == "__main__":
    main()
