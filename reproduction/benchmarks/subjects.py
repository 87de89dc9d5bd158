"""Rows that belong together: repeated measures and time series, told and not told.

Columns and noise have subjects with several rows each (intraclass correlation 0.2 or 0.5; three
columns are constant within subjects), or they are series with autocorrelation 0.7. The response
depends on four columns, or on none.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.paper.simulations import null_counts, rates, share_cells
from sobolev import HRTSelector
from sobolev.inference import Forward

NAME = "subjects"
FIRST_SEED = 8000
REPETITIONS = 100
N_ROWS, N_COLUMNS, N_ACTIVE = 400, 20, 4
SUBJECT_ROWS, BLOCK_ROWS = 10, 20
CORRELATIONS = {
    "subjects, correlation 0.2": 0.2,
    "subjects, correlation 0.5": 0.5,
    "series, AR(1) 0.7": None,
}
EFFECTS = ("none", "four columns")
TOLD = ("groups", "rows alone")
LEVELS = (0.005, 0.05)
FDR = 0.1


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All designs, with and without groups, for one seed before the next."""
    return [
        Task(NAME, {"design": design, "effects": effects, "told": told}, FIRST_SEED + k)
        for k in range(repetitions or (1 if quick else REPETITIONS))
        for design in CORRELATIONS
        for effects in EFFECTS
        for told in TOLD
    ]


def measure(settings: Settings, seed: int) -> Record:
    """One selection, counted."""
    X, y, groups, true = draw(settings["design"], settings["effects"], seed)
    is_series = CORRELATIONS[settings["design"]] is None
    is_told = settings["told"] == "groups"
    scheme = Forward(shuffle=not (is_series and is_told))
    selector = HRTSelector(fdr=FDR, scheme=scheme, diagnose=False, random_state=seed)
    selector.fit(X, y, groups=groups if is_told else None)
    found = rates(selector.support_, true) if true.any() else {}
    n_found = int(selector.support_.sum())
    n_false = int((selector.support_ & ~true).sum())
    found |= {"n_selected": n_found, "fdp": round(n_false / max(1, n_found), 4)}
    return found | null_counts(selector, true)


def draw(
    design: str, effects: str, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Columns, response, the subject or block of each row, and which columns matter."""
    rng = np.random.default_rng(seed)
    share = CORRELATIONS[design]
    groups = np.arange(N_ROWS) // (BLOCK_ROWS if share is None else SUBJECT_ROWS)

    def dependent(k: int) -> np.ndarray:
        noise = rng.standard_normal((N_ROWS, k))
        if share is None:
            for i in range(1, N_ROWS):
                noise[i] = 0.7 * noise[i - 1] + np.sqrt(1 - 0.7**2) * noise[i]
            return noise
        between = rng.standard_normal((groups[-1] + 1, k))[groups]
        return np.sqrt(share) * between + np.sqrt(1 - share) * noise

    X = np.sqrt(0.3) * dependent(1) + np.sqrt(0.7) * dependent(N_COLUMNS)
    if share is not None:
        X[:, -3:] = rng.standard_normal((groups[-1] + 1, 3))[groups]
    noise = dependent(1)[:, 0]
    true = np.arange(N_COLUMNS) < (N_ACTIVE if effects != "none" else 0)
    if effects == "none":
        return X, noise, groups, true
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3]
    return X, signal / signal.std() + noise, groups, true


def table(rows: Sequence[Record]) -> str:
    """Null p-values, false discoveries and power."""
    cells = []
    for design in CORRELATIONS:
        for effects in EFFECTS:
            for told in TOLD:
                key = (design, effects, told)
                found = [r for r in rows if (r["design"], r["effects"], r["told"]) == key]
                if found:
                    cells.append([design, effects, told, *_summary(found)])
    levels = [f"null p < {level:g} (99 % limit)" for level in LEVELS]
    header = ["rows", "effects", "told", "data sets", *levels, "FDR", "power"]
    return markdown_table(header, cells)


def _summary(found: Sequence[Record]) -> list[str]:
    power = [r["tpr"] for r in found if "tpr" in r]
    shares = share_cells(found, LEVELS)
    rate = mean_cell([r["fdp"] for r in found])
    return [str(len(found)), *shares, rate, mean_cell(power) if power else "–"]


def text(rows: Sequence[Record]) -> str:
    """The table with what it means."""
    return f"""
{N_ROWS} rows, {N_COLUMNS} columns: 40 subjects with {SUBJECT_ROWS} rows each and the intraclass
correlation in all columns and in the noise (three columns are constant within subjects), or series
with autocorrelation 0.7, told as blocks of {BLOCK_ROWS} rows. The level is 10 %. "rows alone" is
the same without `groups`. A limit is the level plus 2.576 standard errors between data sets; bold
is beyond it. Without effects the false discovery rate is the share of data sets with a find.

{table(rows)}
"""


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    made = f"sobolev {rows[0]['version']}; regenerate with `python -m reproduction subjects`."
    return f"## Rows that belong together\n{text(rows)}\n{made}"


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of the guide."""
    return {("docs/guide.md", NAME): text(rows)}
