"""Tasks that run in parallel, survive a kill and are never repeated.

A task is an experiment, its settings and a seed; a function of these gives its result. Every
finished task is a line of a file at once, so a run that was killed goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sobolev._files import append_record
from sobolev._files import read_records as read_lines
from sobolev._version import __version__

Record = dict[str, Any]
Settings = dict[str, Any]
Measure = Callable[[Settings, int], Record]
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Task:
    """What is measured.

    Attributes
    ----------
    experiment : str
    settings : dict
        All that decides the result besides the seed; plain values that JSON can hold.
    seed : int
    """

    experiment: str
    settings: Settings
    seed: int

    @property
    def key(self) -> str:
        """The same for the same version, experiment, settings and seed."""
        return _key(__version__, self.experiment, self.settings, self.seed)


def record_key(record: Record) -> str:
    """The key of the task that a record is the result of."""
    return _key(record["version"], record["experiment"], record["settings"], record["seed"])


def _key(version: str, experiment: str, settings: Settings, seed: int) -> str:
    return json.dumps([version, experiment, settings, seed], sort_keys=True)


def read_records(path: Path) -> list[Record]:
    """The complete lines of a file of records, the first of each task."""
    found: dict[str, Record] = {}
    for record in read_lines(path):
        try:
            found.setdefault(record_key(record), record)
        except KeyError:
            continue
    return list(found.values())


def run_tasks(
    measure: Measure,
    tasks: Sequence[Task],
    path: Path,
    *,
    n_jobs: int | None = 1,
    step: Step | None = None,
) -> int:
    """Run the tasks that the file does not hold yet.

    Parameters
    ----------
    measure : callable
        From settings and seed to a result, a dict of plain values; a function of a module, so that
        other processes find it.
    tasks : sequence of Task
    path : Path
        The file of records; only this process writes it.
    n_jobs : int or None, default=1
        Processes, each with one BLAS thread; the records do not depend on it. None is all cores.
    step : callable, optional
        Hears of every finished task: how many are done and how many there are to do.

    Returns
    -------
    int
        The number of tasks that were run.
    """
    from joblib import Parallel, delayed, parallel_config

    finished = {record_key(record) for record in read_records(path)}
    missing = [task for task in tasks if task.key not in finished]
    if step is not None:
        step(0, len(missing))
    if not missing:
        return 0
    with parallel_config(backend="loky", inner_max_num_threads=1), warnings.catch_warnings():
        # A worker that has grown is replaced by a fresh one, which is nobody's concern.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
        run = Parallel(
            n_jobs=-1 if n_jobs is None else n_jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        here = os.getpid()
        records: Iterable[Record] = run(delayed(_work)(measure, task, here) for task in missing)
        for done, record in enumerate(records, start=1):
            append_record(path, record)
            if step is not None:
                step(done, len(missing))
    return len(missing)


def _work(measure: Measure, task: Task, parent: int) -> Record:
    """Perform a task in this process or in one that ends when its parent is killed."""
    if os.getpid() != parent:
        _follow(parent)
    return perform(measure, task)


@lru_cache(maxsize=1)
def _follow(parent: int) -> None:
    """End this process soon after its parent: nobody would write its record."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def perform(measure: Measure, task: Task) -> Record:
    """The record of a task, measured on one thread; ``seconds`` is time of the processor."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        result = measure(task.settings, task.seed)
        seconds = time.process_time() - begin
    return {
        "version": __version__,
        "experiment": task.experiment,
        "settings": task.settings,
        "seed": task.seed,
        "result": result,
        "seconds": round(seconds, 2),
        "cores": n_cores(),
        "blas": blas_name(),
    }


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas_name() -> str:
    """The library behind numpy's products, with its version."""
    import numpy  # noqa: F401  (loads the library)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    pools.sort(key=lambda pool: "numpy" not in pool["filepath"])  # scipy may bring another one
    return f"{pools[0]['internal_api']} {pools[0]['version'] or ''}".strip() if pools else "unknown"
