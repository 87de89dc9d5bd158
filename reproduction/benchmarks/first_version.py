"""The default test beside that of the first version, at equal false discovery rates.

The first version trusted the whole model of the columns (saddlepoint p-values, linear models), kept
copies apart and tested in one order of the rows with a kernel critic. Its false discovery rate is
not the one that it prints. So it is run at many levels, and on each table judged at the one at
which its measured rate is that of the default: a level that its user could not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reproduction.benchmarks.certificate import FIRST_SEED, SOURCES, counted, sharing
from reproduction.benchmarks.certificate_report import FDR, by_kind, pick, values
from reproduction.benchmarks.real_tables import TABLES
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_and_error
from sobolev import ConvexSIC, HRTSelector
from sobolev.conditionals.units import find_units
from sobolev.convex import AutoMap
from sobolev.inference.planting import SHAPES
from sobolev.targets import TargetEncoder

NAME, NEEDS = "first_version", ("certificate",)
REPETITIONS = 20
QUICK_TABLES = ("wine", "diabetes")
# From less than one false discovery in a thousand to the double of the level.
LEVELS = tuple(float(f"{level:.2g}") for level in np.geomspace(0.2, 1e-6, 33))


def first_version(seed: int) -> HRTSelector:
    """The default of the first version, with the parameters of today."""
    return HRTSelector(
        ConvexSIC(feature_map=AutoMap(300), target=TargetEncoder()),
        conditional="mixed",
        pvalue="saddlepoint",
        copies="keep",
        n_repeats=1,
        random_state=seed,
    )


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """A task for each table and seed of the certificate, with a response of each kind."""
    names = QUICK_TABLES if quick else [table.name for table in TABLES]
    seeds = range(FIRST_SEED, FIRST_SEED + (repetitions or (2 if quick else REPETITIONS)))
    return [Task(NAME, {"table": name}, seed) for seed in seeds for name in names]


def measure(settings: Settings, seed: int) -> Record:
    """True and false discoveries at each level, by kind of response."""
    source = SOURCES[settings["table"]]
    if source.missing():
        return {"missing": source.missing()}
    units = [unit.columns for unit in find_units(source.columns(seed))]
    selector = first_version(seed)
    kinds = {}
    for kind in SHAPES:
        X, y, active = source.draw(kind, seed)
        selector.fit(X, y)
        qvalues = np.nan_to_num(selector.qvalues_, nan=2.0)
        found = [counted(qvalues <= q, active, units, by_unit=False) for q in (*LEVELS, FDR)]
        *at_levels, at_fdr = [(each["tpr"], each["fdp"]) for each in found]
        kinds[kind] = {"levels": at_levels, "tpr": at_fdr[0], "fdp": at_fdr[1]}
        selector = sharing(selector)  # the model of the columns serves all responses
    return {"kinds": kinds}


# -- the page ------------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return "## The first version at equal false discovery rates\n\n" + body(rows)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The same on the page of the certificate."""
    return {("docs/certificate.md", NAME): body(rows)}


def body(rows: Sequence[Record]) -> str:
    """A row for each table that both have."""
    before = by_kind([row for row in rows if row["study"] == NAME])
    now = pick(by_kind([r for r in rows if r["study"] != NAME]), method="HRTSelector", kind=SHAPES)
    lines = [_line(table.name, pick(before, table=table.name), now) for table in TABLES]
    header = ["table (responses)", "default", "first version", "at equal rate", "default more by"]
    return "\n\n".join(
        [
            "Power, with the false discovery rate in brackets, on the same responses. The first "
            "version is shown at its level of 0.1, and at the largest level at which its measured "
            "rate is at most that of the default (or 0.02, if that is larger), with the mean "
            "difference of the power ± its standard error over responses.",
            markdown_table(header, [line for line in lines if line]),
        ]
    )


def _line(table: str, before: Sequence[Any], now: Sequence[Any]) -> list[str]:
    """The figures of a table; empty without responses that both have."""
    of_now = {(r["kind"], r["seed"]): r for r in now if r["table"] == table and "fdp" in r}
    pairs = [(of_now[key], r) for r in before if (key := (r["kind"], r["seed"])) in of_now]
    if not pairs:
        return []
    ours, theirs = (list(side) for side in zip(*pairs, strict=True))
    rate = values(ours, "fdp").mean()
    curves = np.array([r["levels"] for r in theirs], dtype=float)  # responses, levels, (tpr, fdp)
    allowed = np.flatnonzero(curves[:, :, 1].mean(axis=0) <= max(rate, 0.02))
    power = values(ours, "tpr")
    best = curves[:, allowed[0]] if allowed.size else np.zeros_like(curves[:, 0])
    gain, error = mean_and_error(power - best[:, 0])
    return [
        f"{table} ({len(pairs)})",
        f"{power.mean():.2f} ({rate:.2f})",
        f"{values(theirs, 'tpr').mean():.2f} ({values(theirs, 'fdp').mean():.2f})",
        f"{best[:, 0].mean():.2f} ({best[:, 1].mean():.2f})",
        f"{gain:+.3f} ± {error:.3f}",
    ]
