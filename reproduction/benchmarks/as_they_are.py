"""False discoveries on public tables as they are: categories, gaps, dates and identifiers included.

The tables of the study ``first_try``, without their response, go into ``HRTSelector().fit`` as a
DataFrame. Responses with a known answer are planted on their columns. None of them is of a kind
that an audit plants or that the certificate has: classes, counts, uneven noise, noise with heavy
tails, products without main effects, and four kinds of pure noise.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.benchmarks.certificate import counted
from reproduction.benchmarks.certificate_report import FDR, by_kind, limit, values
from reproduction.benchmarks.public_tables import MAX_ROWS, TABLES
from reproduction.benchmarks.real_tables import MissingTable
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.paper.simulations import counts_below, null_counts
from sobolev import HRTSelector
from sobolev.conditionals.completing import completed
from sobolev.exceptions import DataWarning
from sobolev.summary import units_of
from sobolev.tables import Prepared, prepare, read_table

NAME = "as_they_are"
FIRST_SEED = 4000
REPETITIONS = 1
QUICK = ("scikit-learn/iris", "palmerpenguins/penguins")
BY_NAME = {table.name: table for table in TABLES}
# Smaller tables say little: half of four features may be active.
MIN_ROWS, MIN_FEATURES = 80, 4
SIGNALS = ("classes", "counts", "uneven noise", "heavy tails", "products")
KINDS = (*SIGNALS, "noise")
MANY = 8
TOO_SMALL = "too small"


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One task for each table and seed, with a response of each kind."""
    names = QUICK if quick else tuple(BY_NAME)
    seeds = range(FIRST_SEED, FIRST_SEED + (repetitions or REPETITIONS))
    return [Task(NAME, {"table": name}, seed) for seed in seeds for name in names]


def measure(settings: Settings, seed: int) -> Record:
    """The selections on a table, by kind of response."""
    try:
        frame = columns_of(settings["table"])
    except MissingTable as error:
        return {"missing": str(error)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        table = prepare(frame)
    made = {
        "rows": len(table.X),
        "features": len(table.variables),
        "categories": "categorical" in table.kinds.values(),
        "gaps": bool(table.missing),
    }
    if len(table.X) < MIN_ROWS or len(table.variables) < MIN_FEATURES:
        return made | {"left_out": TOO_SMALL}
    effects = Effects(table)
    kinds = {kind: run(frame, effects, kind, seed) for kind in KINDS}
    return made | {"kinds": kinds}


@lru_cache(maxsize=1)
def columns_of(name: str) -> pd.DataFrame:
    """The columns of a table without its response, read as the command line does."""
    table = BY_NAME[name]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_bytes(table.text())
        frame = read_table(file)
    return frame.drop(columns=table.target)


def run(frame: pd.DataFrame, effects: Effects, kind: str, seed: int) -> Record:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    y, active = RESPONSES[kind](effects, rng)
    # Rows that are set aside, such as those without any value, have a response of no meaning.
    response = np.full(len(frame), y[0])
    response[effects.table.rows] = y
    selector = HRTSelector(fdr=FDR, random_state=seed)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            selector.fit(frame, response)
    except Exception as error:  # told on the page
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:160]}
    seconds = time.process_time() - start
    is_active = np.isin(frame.columns.astype(str), active)
    units = [np.asarray(unit, dtype=int) for unit in units_of(selector).values()]
    result = counted(selector.support_, is_active, units, by_unit=True)
    null = [unit[0] for unit in units if not is_active[unit].any()]
    is_null = np.isin(np.arange(len(frame.columns)), null)
    return result | null_counts(selector, ~is_null) | {"seconds": round(seconds, 2)}


# -- responses -----------------------------------------------------------------------------------


class Effects:
    """Effects of the features of a table, in standard units."""

    def __init__(self, table: Prepared) -> None:
        self.table = table
        sets = [np.array(columns) for columns in table.variables.values() if len(columns) > 1]
        self.complete = completed(table.X.to_numpy(), np.random.default_rng(0), sets=sets)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], list[str]]:
        """Effects of ``n`` features that are drawn at random, and their names."""
        names = list(self.table.variables)
        chosen = [names[k] for k in rng.choice(len(names), min(n, len(names)), replace=False)]
        return [self.of(name, rng) for name in chosen], chosen

    def n_active(self, rng: np.random.Generator) -> int:
        """Two or four features, at most a third of all."""
        third = min(MANY, len(self.table.variables) // 3)
        return max(2, third if rng.random() < 0.5 else min(4, third))

    def of(self, name: str, rng: np.random.Generator) -> np.ndarray:
        """A random effect of each category, or a line, a bend or a step of a number."""
        Z = self.complete[:, self.table.variables[name]]
        if self.table.kinds[name] == "categorical" or Z.shape[1] > 1:
            return _standard(Z @ rng.standard_normal(Z.shape[1]))
        z = Z[:, 0]
        ranks = pd.Series(z).rank(pct=True).to_numpy() - 0.5
        shapes = (_standard(z), _standard(ranks), _standard(ranks) ** 2, (ranks > 0).astype(float))
        return float(rng.choice([-1, 1])) * _standard(shapes[rng.integers(len(shapes))])


def _standard(z: np.ndarray) -> np.ndarray:
    return (z - z.mean()) / max(float(z.std()), 1e-300)


def _sum(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    found, names = effects.draw(effects.n_active(rng), rng)
    return _standard(np.sum(found, axis=0)), names


def _classes(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    score, names = _sum(effects, rng)
    return np.where(rng.random(score.size) < 1 / (1 + np.exp(-2.5 * score)), "yes", "no"), names


def _counts(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    score, names = _sum(effects, rng)
    return rng.poisson(np.exp(0.7 + 0.8 * np.clip(score, -4, 2.5))).astype(float), names


def _uneven(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    """The first active feature decides the size of the noise, too."""
    found, names = effects.draw(effects.n_active(rng), rng)
    score = _standard(np.sum(found, axis=0))
    size = np.exp(0.6 * np.clip(found[0], -2.5, 2.5))
    return np.sqrt(2) * score + size * rng.standard_normal(score.size), names


def _heavy(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    score, names = _sum(effects, rng)
    return np.sqrt(2) * score + rng.standard_t(3, score.size) / np.sqrt(3), names


def _products(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    found, names = effects.draw(2 if rng.random() < 0.5 else 4, rng)
    found, names = found[: len(found) // 2 * 2], names[: len(found) // 2 * 2]
    score = _standard(np.sum([a * b for a, b in zip(found[::2], found[1::2], strict=True)], axis=0))
    return np.sqrt(2) * score + rng.standard_normal(score.size), names


def _noise(effects: Effects, rng: np.random.Generator) -> tuple[np.ndarray, list[str]]:
    n = len(effects.table.X)
    draws: tuple[Callable[[], np.ndarray], ...] = (
        lambda: rng.standard_normal(n),
        lambda: rng.lognormal(0, 1.5, n),
        lambda: np.where(rng.random(n) < 0.25, "yes", "no"),
        lambda: rng.poisson(1.0, n).astype(float),
    )
    return draws[rng.integers(len(draws))](), []


RESPONSES: dict[str, Callable[..., tuple[np.ndarray, list[str]]]] = dict(
    zip(KINDS, (_classes, _counts, _uneven, _heavy, _products, _noise), strict=True)
)


# -- the page ------------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return "## Public tables as they are\n\n" + body(rows)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The same on the page of the certificate."""
    return {("docs/certificate.md", NAME): body(rows)}


def body(rows: Sequence[Record]) -> str:
    """Rates by kind of response and of table."""
    used = [row for row in rows if "kinds" in row]
    small = sum("left_out" in row for row in rows)
    if not used:
        return "No package with tables is installed."
    runs = by_kind(used)
    failed = [run for run in runs if "error" in run]
    named = {
        "all": used,
        "with categories": [row for row in used if row["categories"]],
        "with missing cells": [row for row in used if row["gaps"]],
        "numbers only": [row for row in used if not row["categories"] and not row["gaps"]],
    }
    header = [
        "tables",
        "number",
        *SIGNALS,
        "noise: runs with a find",
        "power",
        "p < .005",
        "p < .05",
    ]
    lines = [[name, *_line(by_kind(some))] for name, some in named.items() if some]
    said = [
        f"{len(used)} tables with at least {MIN_ROWS} rows and {MIN_FEATURES} features, of at most "
        f"{MAX_ROWS} rows ({small} are smaller). Mean false discovery rate ± standard error at "
        f"`fdr={FDR:g}` by kind of response; bold exceeds the level by more than two standard "
        "errors. Power is the share of active features that were found, over the five kinds with "
        "a signal.",
        markdown_table(header, lines),
    ]
    if failed:
        said.append(f"{len(failed)} runs ended in an error, such as {failed[0]['error']!r}.")
    return "\n\n".join(said)


def _line(runs: Sequence[dict[str, Any]]) -> list[str]:
    """The figures of some tables."""
    cells = []
    for kind in KINDS:
        fdp = values([run for run in runs if run["kind"] == kind], "fdp")
        cell = mean_cell(fdp)
        cells.append(f"**{cell}**" if fdp.size > 1 and fdp.mean() > limit(fdp) else cell)
    counts = [run for run in runs if "below" in run]
    total = max(1, sum(run["n_null"] for run in counts))
    shares = [f"{sum(counts_below(run)[p] for run in counts) / total:.4f}" for p in (0.005, 0.05)]
    n_tables = len({run["table"] for run in runs})
    return [str(n_tables), *cells, f"{values(runs, 'tpr').mean():.2f}", *shares]
