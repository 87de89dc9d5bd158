"""The tables of the comparison of selectors, all computed from records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reproduction.benchmarks import certificate_report as certificate
from reproduction.benchmarks.paired import FIRST_SEED, LEAST, Difference, difference
from reproduction.benchmarks.real_tables import TABLES
from reproduction.benchmarks.selection_designs import Sourced
from reproduction.benchmarks.selection_peers import REFERENCE, Method
from reproduction.engine import Record
from reproduction.markdown import markdown_table, mean_cell

FDR = certificate.FDR
NONE = "–"


@dataclass(frozen=True)
class Cell:
    """What a method did on a design: the runs with figures by data set, and why there are no more.

    A data set is named by its seed or, on a real table, by the kind of its response and the seed.
    """

    method: str
    ours: bool
    runs: Mapping[Hashable, Record]
    reason: str = ""

    def values(self, name: str) -> dict[Hashable, float]:
        """A figure by data set."""
        return {key: run[name] for key, run in self.runs.items() if run.get(name) is not None}

    def array(self, name: str) -> np.ndarray:
        return np.array(list(self.values(name).values()), dtype=float)

    @property
    def power(self) -> float:
        return float(self.array("tpr").mean())

    @property
    def holds(self) -> bool:
        """Whether the false discovery rate is within two standard errors of the level."""
        return certificate.holds(self.runs.values())

    def text(self) -> str:
        """Power, false discovery rate and CPU seconds."""
        seconds = self.array("seconds")
        time = f", {np.median(seconds):.2g} s" if seconds.size else ""
        return f"{self.power:.3f} (FDR {self.array('fdp').mean():.2f}{time})"


# -- cells ---------------------------------------------------------------------------------------


def cells(rows: Sequence[Record], methods: Sequence[Method], design: str) -> list[Cell]:
    """All methods on a design."""
    made = []
    for method in methods:
        of = [
            row
            for row in rows
            if row.get("design") == design
            and row["method"] == method.name
            and row["seed"] >= FIRST_SEED
        ]
        runs = {row["seed"]: row for row in of if "tpr" in row}
        failed = [row.get("error") or row["missing"] for row in of if "tpr" not in row]
        reason = failed[0] if failed else ""
        if reason and runs:
            reason = f"failed on {len(failed)}: {reason}"
        if not of and not method.seeds_on(design):
            reason = f"left out: {method.why}"
        if runs or reason:
            made.append(Cell(method.name, method.package == "sobolev", runs, reason))
    return made


def table_cells(rows: Sequence[Record], table: str) -> list[Cell]:
    """All methods on a real table of the certificate, on the responses that peers have."""
    found = certificate.by_kind(row for row in rows if row.get("table") == table)
    names = list(dict.fromkeys(row["method"] for row in found))
    runs = certificate.common(found, table, names)
    return [
        Cell(name, name in certificate.OURS, {(r["kind"], r["seed"]): r for r in of})
        for name, of in runs.items()
        if of
    ]


def judged(found: Sequence[Cell]) -> list[Cell]:
    """The cells with enough data sets for a claim."""
    return [cell for cell in found if len(cell.runs) >= LEAST]


def best(found: Sequence[Cell], *, ours: bool) -> Cell | None:
    """The cell of most power among ours or the peers' that hold the level."""
    able = [cell for cell in judged(found) if cell.ours == ours and cell.holds]
    return max(able, key=lambda cell: cell.power, default=None)


# -- verdicts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """The default of ours beside the best peer that holds the level.

    ``enough`` says whether both sides have enough data sets for a claim.
    """

    design: str
    own: Cell | None
    other: Cell | None
    peer: Cell | None
    gap: Difference | None
    beyond: Sequence[str]
    enough: bool

    @property
    def outcome(self) -> str:
        """One word, or why there is none."""
        if self.own is None:
            return "not measured yet"
        if not self.enough:
            return "too few data sets yet"
        if not self.own.holds:
            return "**beyond the level**"
        if self.gap is None:
            return "no peer holds the level"
        return {"ahead": "ahead", "level": "level", "behind": "**behind**"}[self.gap.side]

    def line(self) -> list[str]:
        """A line of the table of verdicts."""
        other = NONE
        if self.other is not None and (self.own is None or self.other.power > self.own.power):
            other = f"{self.other.method}: {self.other.text()}"
        peer = NONE if self.peer is None else f"{self.peer.method}: {self.peer.text()}"
        return [
            self.design,
            NONE if self.own is None else self.own.text(),
            peer,
            NONE if self.gap is None else str(self.gap),
            self.outcome,
            other,
            "; ".join(self.beyond) or NONE,
        ]


def verdict(design: str, found: Sequence[Cell]) -> Verdict:
    """Who finds most among those whose false discovery rate holds."""
    own = next((cell for cell in found if cell.method == REFERENCE and cell.runs), None)
    others = [cell for cell in found if cell.method != REFERENCE]
    peer = best(found, ours=False)
    gap = None
    if own is not None and peer is not None:
        gap = difference(own.values("tpr"), peer.values("tpr"))
    beyond = [
        f"{cell.method} ({cell.array('fdp').mean():.2f})"
        for cell in judged(found)
        if not cell.holds
    ]
    sides = [[cell for cell in judged(found) if cell.ours == ours] for ours in (True, False)]
    enough = own in sides[0] and bool(sides[1])
    return Verdict(design, own, best(others, ours=True), peer, gap, beyond, enough)


def verdicts(
    rows: Sequence[Record], methods: Sequence[Method], designs: Sequence[Sourced]
) -> list[Verdict]:
    """The verdicts on the designs and on the real tables that have records."""
    all_cells = {design.name: cells(rows, methods, design.name) for design in designs}
    for table in TABLES:
        found = table_cells(rows, table.name)
        if any(not cell.ours for cell in found):
            all_cells[f"real: {table.name}"] = found
    return [
        verdict(name, found)
        for name, found in all_cells.items()
        if any(cell.runs for cell in found)
    ]


VERDICT_HEADER = [
    "design",
    REFERENCE,
    "best peer at a held level",
    "difference ± se (data sets)",
    "outcome",
    "better of ours",
    "beyond the level (FDR)",
]


def verdict_text(found: Sequence[Verdict]) -> str:
    """How often the default is ahead, level and behind, and where it is behind."""
    sides: dict[str, list[str]] = {}
    for each in found:
        if each.enough and each.gap is not None and each.own is not None and each.own.holds:
            sides.setdefault(each.gap.side, []).append(each.design)
    if not sides:
        return f"There are too few data sets for a verdict on {REFERENCE} yet."
    counts = [f"{word} on {len(sides.get(word, []))}" for word in ("ahead", "level", "behind")]
    behind = "; ".join(sides.get("behind", []))
    text = f"{REFERENCE} is {', '.join(counts)} of {sum(map(len, sides.values()))} designs."
    return f"{text} Behind: {behind}." if behind else text


# -- pages ---------------------------------------------------------------------------------------

READING = f"""
All methods see the same rows, on one thread. Seeds start at {FIRST_SEED}: no choice of a setting
has seen them. A cell has the power, the realised false discovery rate at q = {FDR} and the median
of CPU seconds. A method that exceeds q by more than two standard errors (of at least
{certificate.LEAST_SPREAD} by the root of the number of data sets) cannot win. The best peer is
chosen among all of them after the fact, which favours the peers. The difference is paired by data
set; ahead and behind mean by more than two standard errors.
""".strip()

SETTINGS = """
Ours have their defaults; "lasso" is `LassoCV`. hidimstat: d0CRT keeps the tenth of the columns with
the largest lasso coefficients unless it says "no screening" or "forest" (100 trees, all columns);
CFI draws each column 50 times and uses t-tests on one half of the rows (one split) or across five
folds (CFI-CV and LOCO-CV, with the corrected t-test). knockpy: Gaussian knockoffs with an estimated
covariance. fippy: a forest on four fifths of the rows, ten draws, t-tests. DoubleML: a partially
linear model with `LassoCV` for each column, five folds. GCM: generalised covariance measure with
out-of-bag residuals. PCM: projected covariance measure, one split, as the R package comets sets it
(`reproduction/benchmarks/gcm.py`, `pcm.py`). Forests have 100 trees. P-values go through
Benjamini-Hochberg. Knockoffs at q = 0.1 select at least ten columns (1 / q) or none: with fewer
true columns only tests with p-values can find them.
""".strip()


def page(rows: Sequence[Record], methods: Sequence[Method], designs: Sequence[Sourced]) -> str:
    """What the page of other packages shows: a line for each design and where it comes from."""
    found = verdicts(rows, methods, designs)
    table = markdown_table(VERDICT_HEADER, [each.line() for each in found], numbers=False)
    shown = {each.design for each in found}
    sources = [f"- {d.name}: {d.source}." for d in designs if d.name in shown]
    sources.append("- real: tables and responses of the [certificate](certificate.md).")
    return "\n\n".join(
        [
            READING,
            verdict_text(found),
            table,
            "Where the designs come from:",
            "\n".join(sources),
            "How the methods are set:",
            SETTINGS,
            missing_text(rows, methods),
        ]
    )


def missing_text(rows: Sequence[Record], methods: Sequence[Method]) -> str:
    """Versions of the peers, and those that could not be run."""
    own = [row for row in rows if "design" in row]
    peers = {r["package"] for r in own if not r.get("package", "sobolev").startswith("sobolev")}
    text = f"Versions: {', '.join(sorted(peers)) or 'no peer is installed'}."
    absent = {r["method"]: r["missing"] for r in own if "missing" in r}
    lines = [f"- {name}: {reason}." for name, reason in absent.items()]
    for method in methods:
        without = "; ".join(design for design, seeds in method.few.items() if not seeds)
        if without:
            lines.append(f"- {method.name} is left out on {without}: {method.why}.")
    return f"{text}\n\n" + "\n".join(lines) if lines else text


HEADER = [
    "method",
    "true positive rate",
    "false discovery rate",
    "holds",
    "data sets",
    "CPU s",
    f"times {REFERENCE}",
    "remark",
]


def ratios(cell: Cell, reference: Cell | None) -> str:
    """CPU seconds by those of the reference on the same data: median and quartiles."""
    if reference is None or cell.method == REFERENCE:
        return "1" if cell.method == REFERENCE else NONE
    base = reference.values("seconds")
    own = cell.values("seconds").items()
    paired = [seconds / base[key] for key, seconds in own if base.get(key)]
    if not paired:
        return NONE
    low, middle, high = np.quantile(paired, [0.25, 0.5, 0.75])
    return f"{middle:.2g} ({low:.2g} to {high:.2g})"


def lines(found: Sequence[Cell]) -> list[list[str]]:
    """Lines of the table of one design."""
    reference = next((cell for cell in found if cell.method == REFERENCE and cell.runs), None)
    made = []
    for cell in found:
        if not cell.runs:
            made.append([cell.method, *[NONE] * 6, cell.reason])
            continue
        made.append(
            [
                cell.method,
                mean_cell(cell.array("tpr")),
                mean_cell(cell.array("fdp")),
                NONE if len(cell.runs) < 2 else "holds" if cell.holds else "**fails**",
                str(len(cell.runs)),
                f"{np.median(cell.array('seconds')):.2f}",
                ratios(cell, reference),
                cell.reason or NONE,
            ]
        )
    return made


def section(rows: Sequence[Record], methods: Sequence[Method], designs: Sequence[Sourced]) -> str:
    """The section of RESULTS.md."""
    found = {design.name: cells(rows, methods, design.name) for design in designs}
    parts = [
        f"### {name}\n\n{markdown_table(HEADER, lines(of))}"
        for name, of in found.items()
        if any(cell.runs for cell in of)
    ]
    body = "\n\n".join(parts)
    return f"""
## Selection at a false discovery rate of {FDR}

{page(rows, methods, designs).replace("](certificate.md)", "](../docs/certificate.md)")}

{body}

sobolev {rows[0]["version"]}; regenerate with `python -m reproduction selection`.
"""
