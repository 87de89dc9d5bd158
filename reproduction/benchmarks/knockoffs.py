"""Knockoffs: false discovery rate and power on designs whose truth is known, and on nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LassoCV

from reproduction.benchmarks.knockoff_designs import BINARY, NORMAL, Design, null_data
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_and_error
from reproduction.paper.simulations import rates as rates_of
from sobolev import KnockoffSelector, NeuralSIC

NAME = "knockoffs"
FDR, NULL_FDR = 0.2, 0.1
N_SEEDS, N_NULL = 100, 200
SAMPLERS = ("gaussian", "copula", "sequential")
NULL = Design("no response", null_data)


@dataclass(frozen=True)
class Method:
    """A selector by name."""

    name: str
    estimator: str
    sampler: str = "auto"
    n_draws: int = 1
    fdr: float = FDR

    def make(self, seed: int) -> KnockoffSelector:
        estimators = {"lasso": LassoCV(), "ConvexSIC": None, "NeuralSIC": NeuralSIC()}
        return KnockoffSelector(
            estimators[self.estimator],
            sampler=self.sampler,
            n_draws=self.n_draws,
            fdr=self.fdr,
            random_state=seed,
            diagnose=False,
        )


ESTIMATORS = ("lasso", "ConvexSIC", "NeuralSIC")
NORMAL_METHODS = tuple(Method(e, e) for e in ESTIMATORS)
BINARY_METHODS = tuple(
    Method(f"{e}, {sampler}", e, sampler) for e in ("lasso", "ConvexSIC") for sampler in SAMPLERS
)
NULL_METHODS = tuple(
    Method(f"{e}, {draws} draw{'s' * (draws > 1)}", e, n_draws=draws, fdr=NULL_FDR)
    for e in ("lasso", "ConvexSIC")
    for draws in (1, 5)
)
PLAN = (
    *[(design, NORMAL_METHODS, N_SEEDS) for design in NORMAL],
    *[(design, BINARY_METHODS, N_SEEDS) for design in BINARY],
    (NULL, NULL_METHODS, N_NULL),
)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All methods of a design on a data set before the next data set."""
    return [
        Task(NAME, {"design": design.name, "method": method.name}, seed)
        for design, methods, n_seeds in PLAN
        for seed in range(repetitions or (n_seeds if not quick and has_data(design) else 1))
        for method in methods
    ]


def has_data(design: Design) -> bool:
    """Whether the columns of a design can be drawn; those of HIV are real."""
    if not design.name.startswith("HIV"):
        return True
    try:
        design.draw(0)
    except FileNotFoundError:
        return False
    return True


def measure(settings: Settings, seed: int) -> Record:
    """One fit."""
    design, methods, _ = next(each for each in PLAN if each[0].name == settings["design"])
    method = next(method for method in methods if method.name == settings["method"])
    X, y, support = design.draw(seed)
    start = time.process_time()
    found = method.make(seed).fit(X, y).support_
    seconds = time.process_time() - start
    if not support.any():
        return {"tpr": None, "fdp": float(found.any()), "seconds": seconds}
    return rates_of(found, support) | {"seconds": seconds}


def _column(records: Sequence[Record], name: str) -> np.ndarray:
    return np.array([r[name] for r in records], dtype=float)


def rates(records: Sequence[Record], methods: Sequence[Method], designs: Sequence[Design]) -> str:
    """Power and false discovery rate of each method on each design."""
    done = [r for r in records if "missing" not in r]
    rows = []
    for design in designs:
        for method in methods:
            of = [r for r in done if (r["design"], r["method"]) == (design.name, method.name)]
            if not of:
                continue
            power, power_error = mean_and_error(_column(of, "tpr"))
            fdr, error = mean_and_error(_column(of, "fdp"))
            rows.append(
                [
                    design.name,
                    method.name,
                    f"{power:.3f} ± {power_error:.3f}",
                    f"{fdr:.3f} ± {error:.3f}",
                    "holds" if not fdr > method.fdr + 2 * error else "**fails**",
                    str(len(of)),
                    f"{np.median(_column(of, 'seconds')):.1f}",
                ]
            )
    header = ["design", "method", "power", "FDR", "≤ q + 2 se", "seeds", "CPU s"]
    return markdown_table(header, rows)


def null_table(records: Sequence[Record]) -> str:
    """How often something is selected where nothing is to be found."""
    rows = []
    for method in NULL_METHODS:
        of = [r for r in records if (r["design"], r["method"]) == (NULL.name, method.name)]
        if not of:
            continue
        any_found = _column(of, "fdp") > 0
        limit = NULL_FDR + 2.576 * np.sqrt(NULL_FDR * (1 - NULL_FDR) / any_found.size)
        share = any_found.mean()
        verdict = "holds" if share <= limit else "**fails**"
        rows.append([method.name, f"{share:.3f}", f"{limit:.3f}", verdict, str(any_found.size)])
    header = ["method", "share with a selection", "99 % limit", "verdict", "data sets"]
    return markdown_table(header, rows)


def render(records: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return f"""
## Knockoffs: false discovery rate and power

`KnockoffSelector` at `fdr={FDR}`, offset 1, one draw; means over seeds with standard errors.
"lasso" is `LassoCV`, "ConvexSIC" the default estimator, "NeuralSIC" has its defaults. Normal
columns: 15 of 60 matter (linear, 300 rows) or 12 of 50 (two SinExp signals in ranks of the columns,
1,000 rows), signal-to-noise 2.

{rates(records, NORMAL_METHODS, NORMAL)}

Columns of 0 and 1, 15 of 60 (500 rows) or 20 of 283 (HIV, 629 rows) matter, by lines and products:

{rates(records, BINARY_METHODS, BINARY)}

A response that does not depend on any of 60 columns (200 rows), `fdr={NULL_FDR}`; with five draws
e-values and e-BH. Any selection is then false, so a share up to the level is allowed.

{null_table(records)}

sobolev {records[0]["version"]}; regenerate with `python -m reproduction knockoffs`.
"""


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The tables of other pages."""
    return {
        ("docs/choosing.md", "knockoffs"): rates(rows, NORMAL_METHODS, NORMAL),
        ("docs/choosing.md", "samplers"): rates(rows, BINARY_METHODS, BINARY),
    }
