"""The paper's figures and tables, one module each, resumable.

An experiment is a module with tasks (settings and a seed), a function that measures one of them,
and a page made of the records. Run them with ``sobolev reproduce``.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from sobolev._parameters import check_option
from sobolev.experiments._engine import Record, Settings, Task, read_records, run_tasks

Summary = tuple[str, str, str]
EXPERIMENTS = ("sinexp", "liang", "plx4720", "hiv")

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "Record",
    "Settings",
    "Task",
    "load_experiment",
    "read_records",
    "run_tasks",
]


class Experiment(Protocol):
    """What the module of an experiment has; those with real data also have ``check_data()``."""

    NAME: str
    TITLE: str
    REPETITIONS: int

    @staticmethod
    def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
        """All tasks, repetition by repetition."""

    @staticmethod
    def measure(settings: Settings, seed: int) -> Record:
        """The result of a task, the same for the same settings and seed."""

    @staticmethod
    def summary(records: Sequence[Record]) -> Summary:
        """What came out, what to compare it with, and whether the goal is reached."""

    @staticmethod
    def page(records: Sequence[Record], folder: Path) -> str:
        """Markdown, with figures drawn into the folder."""


def load_experiment(name: str) -> Experiment:
    """The module of an experiment.

    Parameters
    ----------
    name : {"sinexp", "liang", "plx4720", "hiv"}

    Returns
    -------
    Experiment

    Examples
    --------
    >>> from sobolev.experiments import load_experiment
    >>> len(load_experiment("sinexp").tasks(quick=False))
    2700
    """
    check_option("experiment", name, EXPERIMENTS)
    return cast(Experiment, import_module(f"sobolev.experiments.{name}"))
