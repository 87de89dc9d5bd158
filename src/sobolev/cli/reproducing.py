"""``sobolev reproduce``: the paper's experiments, and pages with what they gave."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from sobolev._parameters import check_count
from sobolev.cli.ending import describe, one_line
from sobolev.cli.output import check_folder
from sobolev.experiments import EXPERIMENTS, load_experiment, run_tasks
from sobolev.experiments._progress import Bar
from sobolev.experiments.pages import records_file, write_index, write_page


def run_reproduction(
    name: str, *, quick: bool, repetitions: int | None, n_jobs: int | None, out: Path
) -> None:
    """Run what is missing, write the pages, and print them.

    Parameters
    ----------
    name : str
        An experiment or "all".
    quick : bool
        Few repetitions and smaller settings.
    repetitions : int or None
        None is the number of the experiment.
    n_jobs : int or None
        Processes; None is all cores.
    out : Path
        The folder of the pages.
    """
    names = chosen(name)
    if repetitions is not None:
        check_count("--repetitions", repetitions)
    if n_jobs is not None and n_jobs < 1 and n_jobs != -1:
        raise ValueError(f"--n-jobs {n_jobs} must be at least 1, or -1 for all cores.")
    check_folder(out)
    missing = missing_data(names)
    for each in names:
        if each in missing:
            continue
        reproduce(each, quick=quick, repetitions=repetitions, n_jobs=n_jobs, out=out)
    if missing:
        first, error = next(iter(missing.items()))
        left_out = f" ({', '.join(missing)} left out)" if len(names) > 1 else ""
        raise ValueError(f"{first}: {describe(error)}{left_out}")


def chosen(name: str) -> Sequence[str]:
    """The experiments that a word stands for."""
    if name == "all":
        return EXPERIMENTS
    if name not in EXPERIMENTS:
        raise ValueError(f"no experiment {name!r}; use {', '.join(EXPERIMENTS)} or all.")
    return (name,)


def missing_data(names: Sequence[str]) -> dict[str, Exception]:
    """The experiments whose data cannot be read, with the reason."""
    found: dict[str, Exception] = {}
    for name in names:
        check = getattr(load_experiment(name), "check_data", None)
        try:
            if check is not None:
                check()
        except (OSError, ValueError) as error:
            found[name] = error
    return found


def reproduce(
    name: str, *, quick: bool, repetitions: int | None, n_jobs: int | None, out: Path
) -> None:
    """One experiment."""
    experiment = load_experiment(name)
    tasks = experiment.tasks(quick, repetitions)
    typer.echo(
        one_line(f"{name}: {len(tasks)} tasks, records in {records_file(out, name)}"), err=True
    )
    with Bar(name) as bar:
        ran = run_tasks(
            experiment.measure, tasks, records_file(out, name), n_jobs=n_jobs, step=bar.step
        )
    page = write_page(out, name)
    write_index(out)
    typer.echo(page)
    typer.echo(one_line(f"{name}: ran {ran} tasks, page {out / f'{name}.md'}"), err=True)
