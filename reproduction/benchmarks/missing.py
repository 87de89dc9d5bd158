"""Missing cells: completely at random, and depending on another column.

Columns share a factor (correlation 0.7), and the response depends on four of them. Cells are
missing completely at random in every column; or in every second column, with a chance that rises
with the value of the next one, which is complete.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.paper.simulations import null_counts, rates, share_cells
from sobolev import HRTSelector

NAME = "missing"
FIRST_SEED = 9000
REPETITIONS = 60
N_ROWS, N_COLUMNS, N_ACTIVE, CORRELATION = 400, 20, 4, 0.7
KINDS = ("at random", "depending on a column")
SHARES = (0.05, 0.2, 0.4)
CASES = (("complete", 0.0), *((kind, share) for kind in KINDS for share in SHARES))
TREATMENTS = ("drawn", "median")
LEVELS = (0.005, 0.05)
FDR = 0.1


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All cases for one seed before the next; the median only where much is missing."""
    return [
        Task(NAME, {"kind": kind, "share": share, "treatment": treatment}, FIRST_SEED + k)
        for k in range(repetitions or (1 if quick else REPETITIONS))
        for kind, share in CASES
        for treatment in TREATMENTS
        if treatment == "drawn" or share >= 0.2
    ]


def measure(settings: Settings, seed: int) -> Record:
    """One selection, counted."""
    X, y, true = draw(settings["kind"], settings["share"], seed)
    if settings["treatment"] == "median":
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    selector = HRTSelector(fdr=FDR, diagnose=False, random_state=seed).fit(X, y)
    found = rates(selector.support_, true)
    return found | null_counts(selector, true)


def draw(kind: str, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns with missing cells, the response, and which columns matter."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((N_ROWS, 1))
    own = rng.standard_normal((N_ROWS, N_COLUMNS))
    X = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * own
    signal = np.sin(1.5 * X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3]
    y = signal / signal.std() + 0.7 * rng.standard_normal(N_ROWS)
    chance = np.full(X.shape, share)
    if kind == "depending on a column":
        chance[:, 1::2] = 0.0
        steep = 1 / (1 + np.exp(-3 * X[:, 1::2]))
        chance[:, ::2] = np.minimum(1.0, share * steep / steep.mean(axis=0))
    return np.where(rng.random(X.shape) < chance, np.nan, X), y, np.arange(N_COLUMNS) < N_ACTIVE


def table(rows: Sequence[Record]) -> str:
    """Null p-values, false discoveries and power."""
    cells = []
    for kind, share in CASES:
        for treatment in TREATMENTS:
            key = (kind, share, treatment)
            found = [r for r in rows if (r["kind"], r["share"], r["treatment"]) == key]
            if found:
                name = kind if not share else f"{share:.0%} {kind}"
                means = [mean_cell([r[part] for r in found]) for part in ("fdp", "tpr")]
                shares = share_cells(found, LEVELS)
                cells.append([name, treatment if share else "–", str(len(found)), *shares, *means])
    levels = [f"null p < {level:g} (99 % limit)" for level in LEVELS]
    return markdown_table(["missing", "cells", "data sets", *levels, "FDR", "power"], cells)


def text(rows: Sequence[Record]) -> str:
    """The table with what it means."""
    return f"""
{N_ROWS} rows, {N_COLUMNS} columns with correlation {CORRELATION}, four of which matter. The level
is 10 %. Cells are missing completely at random in all columns, or in every second column with a
chance that depends on its neighbour. They are drawn, as `fit` does, or filled in with the median. A
limit is the level plus 2.576 standard errors between data sets; bold is beyond it.

{table(rows)}
"""


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    made = f"sobolev {rows[0]['version']}; regenerate with `python -m reproduction missing`."
    return f"## Missing cells\n{text(rows)}\n{made}"


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of the guide."""
    return {("docs/guide.md", NAME): text(rows)}
