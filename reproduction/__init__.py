"""The paper's experiments, and comparisons with peers, on one engine.

    python -m reproduction sinexp --quick

A study is a module with tasks (settings and a seed), a function that measures one of them, and
pages made of the records. The experiments of the paper are in ``reproduction.paper``, their pages
in ``docs/results``; the comparisons are in ``reproduction.benchmarks``, their tables in
``RESULTS.md``. This package is part of the repository, not of the wheel.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

PAPER = ("sinexp", "liang", "plx4720", "hiv")
BENCH = (
    "ranking",
    "speed",
    "independence",
    "neural",
    "knockoff_solvers",
    "knockoffs",
    "knockoffs_hiv",
    "scale",
    "wide",
    "solver_profile",
    "selection",
    "certificate",
    "first_version",
    "as_they_are",
    "growth",
    "first_try",
    "survival",
    "genomics",
)
# Long, and not part of `make bench`.
OTHERS = ("hrt", "wrong_models", "decomposition", "missing", "subjects", "tuning")
STUDIES = (*PAPER, *BENCH, *OTHERS)


def load_study(name: str) -> Any:
    """The module of a study.

    Every study has ``tasks(quick, repetitions)``, a list of tasks, and ``measure(settings, seed)``,
    the result of a task. An experiment of the paper also has ``NAME``, ``TITLE``, ``REPETITIONS``,
    ``summary(records)``, ``page(records, folder)`` and, with real data, ``check_data()``. A
    benchmark has ``render(rows)``, its section of ``RESULTS.md``, and perhaps ``NEEDS``, other
    studies whose records it shows, and ``quoted(rows)``, what other pages show of it.

    Parameters
    ----------
    name : str
        One of ``STUDIES``.

    Examples
    --------
    >>> from reproduction import load_study
    >>> len(load_study("sinexp").tasks(quick=False))
    2700
    """
    return import_module(f"reproduction.{'paper' if name in PAPER else 'benchmarks'}.{name}")
