"""Knockoffs: false discovery rate and power on designs whose truth is known, and on nothing.

    python benchmarks/knockoffs.py [--quick] [--seeds N] [--only NAME] [--method NAME] [--render]

Every finished fit is a line of results/knockoffs.jsonl at once, keyed by version, design, method
and seed: a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _common as common
import numpy as np
from _knockoff_data import BINARY, NORMAL, Design, null_data
from sklearn.linear_model import LassoCV

from sobolev import KnockoffSelector, NeuralSIC, __version__
from sobolev.experiments._tables import mean_and_error

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


def measure(design: Design, method: Method, seed: int) -> common.Record:
    """One fit."""
    X, y, support = design.draw(seed)
    start = time.process_time()
    found = method.make(seed).fit(X, y).support_
    seconds = time.process_time() - start
    return {
        "design": design.name,
        "method": method.name,
        "seed": seed,
        "version": __version__,
        "tpr": round(float(found[support].mean()), 4) if support.any() else None,
        "fdp": round(float((found & ~support).sum() / max(1, found.sum())), 4),
        "seconds": round(seconds, 2),
    }


def _column(records: Sequence[common.Record], name: str) -> np.ndarray:
    return np.array([r[name] for r in records], dtype=float)


def rates(records: Sequence[common.Record], methods: Sequence[Method], designs: Any) -> str:
    """Power and false discovery rate of each method on each design."""
    rows = []
    for design in designs:
        for method in methods:
            of = [r for r in records if (r["design"], r["method"]) == (design.name, method.name)]
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
    return common.markdown_table(header, rows)


def null_table(records: Sequence[common.Record]) -> str:
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
    return common.markdown_table(header, rows)


def render(records: Sequence[common.Record]) -> str:
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

sobolev {__version__}; regenerate with `python benchmarks/knockoffs.py`.
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("False discovery rate and power of knockoffs.")
    parser.add_argument("--seeds", type=int, help="data sets of each design")
    parser.add_argument("--method", help="only methods with this in their name")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")  # Gaussian knockoffs of 0/1 columns are what is measured
    folder = common.output_folder(args)
    path = folder / "results" / "knockoffs.jsonl"
    if not args.render:
        _run(args, path)
    records = common.read_records(path)
    section = render(records)
    common.write_section(folder / "RESULTS.md", "knockoff-rates", section)
    if folder == common.FOLDER:
        choosing = folder.parent / "docs" / "choosing.md"
        common.write_section(choosing, "knockoffs", rates(records, NORMAL_METHODS, NORMAL))
        common.write_section(choosing, "samplers", rates(records, BINARY_METHODS, BINARY))
    print(section)


def _run(args: Any, path: Path) -> None:
    keys = ("version", "design", "method", "seed")
    finished = {tuple(r[k] for k in keys) for r in common.read_records(path)}
    chosen = common.choose([design for design, _, _ in PLAN], args.only)
    for design, methods, n_seeds in PLAN:
        if design not in chosen or not _available(design):
            continue
        for seed in range(args.seeds or (1 if args.quick else n_seeds)):
            for method in methods:
                key = (__version__, design.name, method.name, seed)
                if key in finished or (args.method and args.method not in method.name):
                    continue
                record = measure(design, method, seed)
                common.append_record(path, record)
                print(f"{design.name} · {method.name} · {seed}: {record['tpr']} {record['fdp']}")


def _available(design: Design) -> bool:
    """Whether the data are there; the HIV data are read from SOBOLEV_DATA_HOME."""
    if not design.name.startswith("HIV") or (common.DATA_HOME / "hiv").is_dir():
        return True
    print(f"{design.name}: left out, set SOBOLEV_DATA_HOME to the folder of the data")
    return False


if __name__ == "__main__":
    main()
