"""Tasks that run in parallel, survive a kill and are never repeated.

A task is a study, its settings and a seed; a function of these gives its result. Every finished
task is a line of a file at once, so a run that was killed goes on where it stopped.
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

from sobolev import __version__

Record = dict[str, Any]
Settings = dict[str, Any]
Measure = Callable[[Settings, int], Record]
Step = Callable[[int, int], None]

NO_DATA = "`SOBOLEV_DATA_HOME` must name the folder of the data"


@dataclass(frozen=True)
class Task:
    """What is measured.

    Attributes
    ----------
    experiment : str
        The name of the study.
    settings : dict
        All that decides the result besides the seed; plain values that JSON can hold.
    seed : int
    """

    experiment: str
    settings: Settings
    seed: int

    @property
    def key(self) -> str:
        """The same for the same version, study, settings and seed."""
        return _key(__version__, self.experiment, self.settings, self.seed)


def record_key(record: Record) -> str:
    """The key of the task that a record is the result of."""
    return _key(record["version"], record["experiment"], record["settings"], record["seed"])


def _key(version: str, experiment: str, settings: Settings, seed: int) -> str:
    return json.dumps([version, experiment, settings, seed], sort_keys=True)


# -- files of records ----------------------------------------------------------------------------


def append_record(path: Path, record: Record) -> None:
    """Add one JSON line to a file, on disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # a killed run left half a line, which reading skips
                line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_records(path: Path) -> list[Record]:
    """The complete lines of a file of records, the first of each task.

    A record that says what was ``missing`` gives way to a later one.
    """
    found: dict[str, Record] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
            key = record_key(record)
        except (ValueError, TypeError, KeyError):  # no JSON, no object, no record
            continue
        if key not in found or not is_finished(found[key]):
            found[key] = record
    return list(found.values())


def is_finished(record: Record) -> bool:
    """Whether a task need not be run again; what lacked a package or data is tried again."""
    return "missing" not in record["result"]


def forget(path: Path, tasks: Sequence[Task]) -> None:
    """Remove the records of tasks, so that they are run again."""
    from sobolev._files import write_atomic

    gone = {task.key for task in tasks}
    kept = [record for record in read_records(path) if record_key(record) not in gone]
    if path.exists():
        write_atomic(path, "".join(json.dumps(record) + "\n" for record in kept))


def latest(records: Sequence[Record]) -> list[Record]:
    """Records of the version that was run last, in the order of seeds; versions are not mixed."""
    if not records:
        return []
    version = records[-1]["version"]
    found = [record for record in records if record["version"] == version]
    return sorted(found, key=lambda record: (record["seed"], record_key(record)))


def flat(record: Record) -> Record:
    """A record as one row: its settings, its result, seed, seconds and version."""
    outer = {name: record[name] for name in ("seed", "seconds", "version")}
    return outer | record["settings"] | record["result"]


# -- running -------------------------------------------------------------------------------------


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
        Number of processes, each with one BLAS thread; the results do not depend on it. None means
        all cores.
    step : callable, optional
        Called after every finished task with the number of tasks done and the number to do.

    Returns
    -------
    int
        The number of tasks that were run.
    """
    from joblib import Parallel, delayed, parallel_config

    finished = {record_key(record) for record in read_records(path) if is_finished(record)}
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
    """The record of a task, measured on one thread.

    ``seconds`` is the CPU time of the whole task, unless the result brings a time of its own.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        try:
            result = measure(task.settings, task.seed)
        except FileNotFoundError:
            result = {"missing": NO_DATA}
        seconds = time.process_time() - begin
    return {
        "version": __version__,
        "experiment": task.experiment,
        "settings": task.settings,
        "seed": task.seed,
        "seconds": result.pop("seconds", round(seconds, 2)),
        "result": result,
        "cores": n_cores(),
        "blas": blas_name(),
    }


def n_cores() -> int:
    """Number of cores that this process may use."""
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
