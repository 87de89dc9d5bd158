"""Where the test loses power on a linear response: one step at a time is replaced.

The columns are an AR(1), and a quarter of them has effects of equal size. Each variant is the
default test with one change: a critic that knows the truth or is a lasso, more rows to test on,
every column on the list, one of the two p-values alone, other numbers of orders of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV

from reproduction.benchmarks.knockoff_designs import chain, respond
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.paper.simulations import TrueFunction, rates
from sobolev import HRTSelector
from sobolev.inference import Forward

NAME = "decomposition"
# Other seeds than those on which the defaults were chosen, from 9000.
FIRST_SEED, REPETITIONS = 8000, 40
N_ROWS, N_COLUMNS, N_ACTIVE, CORRELATION = 300, 60, 15, 0.5
FDR = 0.1
DEFAULT = "default"
# A change of the test, made from the coefficients.
VARIANTS: dict[str, Callable[[np.ndarray], dict[str, Any]]] = {
    DEFAULT: lambda beta: {},
    "critic: the true function": lambda beta: {"estimator": _truth(beta)},
    "critic: lasso": lambda beta: {"estimator": LassoCV()},
    "rows: 80 % to test, in six blocks": lambda beta: {"scheme": Forward(0.8, 6)},
    "list: every column": lambda beta: {"shortlist": N_COLUMNS},
    "p-value: saddlepoint alone": lambda beta: {"pvalue": "saddlepoint"},
    "orders: one": lambda beta: {"n_repeats": 1},
    "orders: three": lambda beta: {"n_repeats": 3},
    "the true function, 90 % of the rows to test, saddlepoint": lambda beta: {
        "estimator": _truth(beta),
        "scheme": Forward(0.9),
        "pvalue": "saddlepoint",
    },
}


def _truth(beta: np.ndarray) -> TrueFunction:
    return TrueFunction(lambda X: X @ beta, beta != 0)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, the response, and the coefficients."""
    rng = np.random.default_rng(seed)
    X = chain(rng, N_ROWS, N_COLUMNS, CORRELATION)
    beta = np.zeros(N_COLUMNS)
    active = rng.choice(N_COLUMNS, N_ACTIVE, replace=False)
    beta[active] = rng.choice([-1.0, 1.0], N_ACTIVE)
    return X, respond(X @ beta, rng), beta


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All variants for one seed before the next."""
    return [
        Task(NAME, {"variant": variant}, FIRST_SEED + k)
        for k in range(repetitions or (1 if quick else REPETITIONS))
        for variant in VARIANTS
    ]


def measure(settings: Settings, seed: int) -> Record:
    """One selection, counted."""
    X, y, beta = draw(seed)
    changes = VARIANTS[settings["variant"]](beta)
    selector = HRTSelector(fdr=FDR, diagnose=False, random_state=seed, **changes)
    return rates(selector.fit(X, y).support_, beta != 0)


def text(rows: Sequence[Record]) -> str:
    """Power and false discoveries of each variant, and the paired difference to the default."""
    tpr = {(row["variant"], row["seed"]): row["tpr"] for row in rows}
    cells = []
    for variant in VARIANTS:
        found = [row for row in rows if row["variant"] == variant]
        paired = [
            row["tpr"] - tpr[DEFAULT, row["seed"]] for row in found if (DEFAULT, row["seed"]) in tpr
        ]
        if found:
            means = [mean_cell([row[part] for row in found]) for part in ("tpr", "fdp")]
            more = "–" if variant == DEFAULT else mean_cell(paired)
            cells.append([variant, means[0], more, means[1], str(len(found))])
    table = markdown_table(["changed", "power", "more than the default", "FDR", "data sets"], cells)
    return f"""
{N_ROWS} rows, {N_COLUMNS} columns of an AR(1) with correlation {CORRELATION}, of which {N_ACTIVE}
have effects ±1; the noise has half the variance of the signal. Means ± standard errors at
`fdr={FDR}`, differences by data set.

{table}
"""


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    made = f"sobolev {rows[0]['version']}; regenerate with `python -m reproduction {NAME}`."
    return f"## Where the test loses power\n{text(rows)}\n{made}"


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of the page on calibration and power."""
    return {("docs/calibration.md", NAME): text(rows)}
