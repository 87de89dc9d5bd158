"""Selection at a false discovery rate of 0.1, beside other packages on the same data.

A peer that is not installed, or that fails, is a row with its reason; what is not installed is
tried again by the next run. The peers are in the extra "bench"; knockpy needs a C compiler. The
real tables are those of the certificate, whose records are shown here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from reproduction.benchmarks import selection_report as report
from reproduction.benchmarks.paired import FIRST_SEED, MANY
from reproduction.benchmarks.selection_designs import DESIGNS, QUICK_DESIGNS
from reproduction.benchmarks.selection_peers import METHODS, quietly
from reproduction.engine import Record, Settings, Task
from reproduction.paper.simulations import rates

NAME, NEEDS = "selection", ("certificate",)
FDR = report.FDR


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One data set of every design and method before the next; what is missing is tried once."""
    most = repetitions or (1 if quick else MANY)
    absent = {method.name for method in METHODS if method.missing()}
    return [
        Task(NAME, {"design": design.name, "method": method.name}, FIRST_SEED + k)
        for k in range(most)
        for design in (QUICK_DESIGNS if quick else DESIGNS)
        for method in METHODS
        if k < min(method.seeds_on(design.name), 1 if method.name in absent else most)
    ]


def measure(settings: Settings, seed: int) -> Record:
    """One selection."""
    design = next(d for d in (*DESIGNS, *QUICK_DESIGNS) if d.name == settings["design"])
    method = next(method for method in METHODS if method.name == settings["method"])
    reason = method.missing()
    if reason:
        return {"missing": reason}
    X, y, support = design.draw(seed)
    try:
        with quietly():
            start = time.process_time()
            found = np.asarray(method.select(X, y, seed, FDR), dtype=bool)
            seconds = time.process_time() - start
    except Exception as error:  # whatever a peer raises is told, not hidden
        if method.package == "sobolev":
            raise
        return {"error": _one_line(error)}
    package = f"{method.distribution} {version(method.distribution)}"
    return {"package": package, **rates(found, support), "seconds": seconds}


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace("|", "/")
    return text if len(text) <= 160 else f"{text[:159]}…"


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return report.section(rows, METHODS, (*DESIGNS, *QUICK_DESIGNS))


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The page of other packages."""
    return {("docs/comparison.md", NAME): report.page(rows, METHODS, DESIGNS)}
