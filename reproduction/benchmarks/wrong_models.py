"""Designs that were made to break the test: null columns that are curved functions of active ones.

A test that replaces a column by draws given the others relies on a model of the column. Here the
default models miss what the column and the response share: products, waves, powers, thresholds. The
study counts what is left of the level, without and with the second look.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from reproduction.benchmarks.certificate import counted, unit_positions
from reproduction.benchmarks.certificate_report import FDR, holds, values
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from sobolev import HRTSelector
from sobolev.inference.schemes import Robust

NAME = "wrong_models"
FIRST_SEED, REPETITIONS = 6000, 40
N_ROWS, N_COLUMNS = 400, 8
Drawn = tuple[pd.DataFrame, np.ndarray, tuple[str, ...]]


class OneLook(Robust):
    """Robust p-values without the second look."""

    looks_twice = False


METHODS = {"one look": OneLook(), "default": "robust"}


def _frame(X: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(X).add_prefix("x")


def _product(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    X[:, 2] = X[:, 0] * X[:, 1] + 0.7 * X[:, 2]
    return _frame(X), 1.5 * X[:, 0] * X[:, 1] + X[:, 0] + e[:, 0], ("x0", "x1")


def _chance(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    X[:, 2] = rng.random(N_ROWS) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))
    return _frame(X), 1.5 * X[:, 0] * X[:, 1] + X[:, 3] + e[:, 0], ("x0", "x1", "x3")


def _exclusive_or(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    X[:, :3] = X[:, :3] > 0
    either = np.abs(X[:, 0] - X[:, 1])
    X[:, 2] = np.where(rng.random(N_ROWS) < 0.15, 1 - either, either)
    return _frame(X), 1.5 * either + X[:, 3] + e[:, 0], ("x0", "x1", "x3")


def _wave(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    wave = np.sin(4 * X[:, 0])
    X[:, 2] = wave + 0.5 * X[:, 2]
    return _frame(X), 1.5 * wave + X[:, 1] + 0.7 * e[:, 0], ("x0", "x1")


def _sizes(rng: np.random.Generator) -> Drawn:
    """A radius, with powers of it that have errors of 10 to 30 %."""
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    z = 0.5 * X[:, 0]
    powers, errors = np.array([2, 1.5, 3, -1]), np.array([0.15, 0.15, 0.3, 0.1])
    X[:, 1:5] = np.exp(z[:, None] * powers + errors * X[:, 1:5])
    X[:, 0] = np.exp(z)
    return _frame(X), 2 * np.sin(3 * z) + X[:, 5] + e[:, 0], ("x0", "x5")


def _thresholds(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    z = X[:, 0].copy()
    X[:, 1:4] = z[:, None] + 0.25 * X[:, 1:4] > np.array([-0.5, 0.0, 0.7])
    return _frame(X), 2 * np.tanh(3 * z) + X[:, 4] + e[:, 0], ("x0", "x4")


def _scales(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    X[:, 1:4] = np.clip(np.round(2.5 + 1.5 * X[:, [0]] + 0.4 * X[:, 1:4]), 0, 5)
    return _frame(X), 2 * np.sin(2 * X[:, 0]) + X[:, 4] + e[:, 0], ("x0", "x4")


def _category(rng: np.random.Generator) -> Drawn:
    X, e = rng.standard_normal((2, N_ROWS, N_COLUMNS))
    frame = _frame(X)
    grade = np.digitize(np.abs(X[:, 0]) + 0.3 * X[:, 2], [0.5, 1.0])
    frame["x2"] = np.array(["low", "middle", "high"])[grade]
    return frame, 1.5 * X[:, 0] ** 2 + X[:, 1] + e[:, 0], ("x0", "x1")


DESIGNS: dict[str, Callable[[np.random.Generator], Drawn]] = {
    "a product": _product,
    "two values, by a product": _chance,
    "exclusive or": _exclusive_or,
    "a wave": _wave,
    "powers of a size": _sizes,
    "thresholds": _thresholds,
    "integer scales": _scales,
    "a category": _category,
}


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All designs and methods for one seed before the next."""
    most = repetitions or (1 if quick else REPETITIONS)
    return [
        Task(NAME, {"design": design, "method": method}, seed)
        for seed in range(FIRST_SEED, FIRST_SEED + most)
        for design in DESIGNS
        for method in METHODS
    ]


def measure(settings: Settings, seed: int) -> Record:
    """True and false discoveries in one data set."""
    X, y, active = DESIGNS[settings["design"]](np.random.default_rng(seed))
    selector = HRTSelector(fdr=FDR, pvalue=METHODS[settings["method"]], random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(X, y)
    units = unit_positions(selector, X.shape[1])
    result = counted(selector.support_, X.columns.isin(active), units, by_unit=True)
    return result | {"left_out": len(selector.left_out_)}


# -- the page ------------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return "## Designs that were made to break the test\n\n" + body(rows)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The same on the page of the calibration."""
    return {("docs/calibration.md", NAME): body(rows)}


def body(rows: Sequence[Record]) -> str:
    """False discovery rates and power by design, without and with the second look."""
    header = [
        "null columns are",
        *[f"FDR, {m}" for m in METHODS],
        *[f"power, {m}" for m in METHODS],
    ]
    lines = []
    for design in DESIGNS:
        of = {m: [r for r in rows if (r["design"], r["method"]) == (design, m)] for m in METHODS}
        if all(of.values()):
            lines.append([design, *map(_rate, of.values()), *map(_power, of.values())])
    counts = {len([r for r in rows if r["design"] == d]) // len(METHODS) for d in DESIGNS}
    return "\n\n".join(
        [
            f"{N_ROWS} rows, {N_COLUMNS} columns, {max(counts)} data sets from seed {FIRST_SEED}, "
            f"`fdr={FDR:g}`. Bold exceeds the level by more than two standard errors.",
            markdown_table(header, lines),
        ]
    )


def _rate(rows: Sequence[Record]) -> str:
    cell = mean_cell(values(rows, "fdp"))
    return cell if holds(rows) else f"**{cell}**"


def _power(rows: Sequence[Record]) -> str:
    return f"{values(rows, 'tpr').mean():.2f}"
