"""``python -m reproduction``: run what is missing of studies and write their pages.

A quick run writes to the folder ``quick-sobolev``, never to the published pages.
"""

from __future__ import annotations

import os

# BLAS reads these when numpy is imported: one thread, so that times can be compared.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from pathlib import Path  # noqa: E402

from reproduction import BENCH, PAPER, STUDIES, load_study  # noqa: E402
from reproduction.engine import Task, forget, run_tasks  # noqa: E402
from reproduction.pages import home, records_file, write  # noqa: E402
from reproduction.progress import Bar  # noqa: E402

GROUPS = {"paper": PAPER, "bench": BENCH}
BAD_INPUT, INTERRUPTED = 2, 130


class Mistake(Exception):
    """What the user can correct."""


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run studies and write their pages; a run that was stopped goes on.",
    )
    names = f"paper ({', '.join(PAPER)}), bench, or one of {', '.join(STUDIES)}"
    parser.add_argument("studies", nargs="+", metavar="STUDY", help=names)
    parser.add_argument("--quick", action="store_true", help="few repetitions, small settings")
    parser.add_argument("--repetitions", type=int, help="number of repetitions of each setting")
    parser.add_argument(
        "--n-jobs",
        type=int,
        help="number of processes [default: all cores for the paper, 1 where time is measured]",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for records and pages")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="tasks with TEXT in a setting"
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="TEXT", help="no task with TEXT in a setting"
    )
    parser.add_argument("--fresh", action="store_true", help="measure anew what is there")
    parser.add_argument("--render", action="store_true", help="write the pages only")
    return parser.parse_args(argv)


def check(args: argparse.Namespace) -> list[str]:
    """The names of the studies, if all options make sense."""
    names = [name for word in args.studies for name in GROUPS.get(word, (word,))]
    for name in names:
        if name not in STUDIES:
            raise Mistake(f"no study {name!r}; use paper, bench, {', '.join(STUDIES)}.")
    if args.repetitions is not None and args.repetitions < 1:
        raise Mistake(f"--repetitions {args.repetitions} must be at least 1.")
    if args.n_jobs is not None and args.n_jobs < 1 and args.n_jobs != -1:
        raise Mistake(f"--n-jobs {args.n_jobs} must be at least 1, or -1 for all cores.")
    if args.out is not None and args.out.exists() and not args.out.is_dir():
        raise Mistake(f"--out {str(args.out)!r} is a file; give a folder.")
    return names


def chosen(tasks: Sequence[Task], only: Sequence[str], skip: Sequence[str]) -> list[Task]:
    """The tasks with all words of ``only`` and none of ``skip`` in their settings, in any case."""
    said = {id(task): " · ".join(map(str, task.settings.values())).lower() for task in tasks}
    found = [task for task in tasks if all(word.lower() in said[id(task)] for word in only)]
    if tasks and not found:
        raise Mistake(f"--only {' '.join(only)}: no task has this in its settings.")
    return [task for task in found if not any(word.lower() in said[id(task)] for word in skip)]


def run(name: str, args: argparse.Namespace) -> None:
    """Run what is missing of one study, write its pages and print the main one."""
    tasks = [] if args.render else load_study(name).tasks(args.quick, args.repetitions)
    tasks = chosen(tasks, args.only, args.skip)
    by_study: dict[str, list[Task]] = {}
    for task in tasks:  # a study may ask for tasks of another one
        by_study.setdefault(task.experiment, []).append(task)
    ran = 0
    for each, wanted in by_study.items():
        path = records_file(home(each, args.out), each)
        say(f"{name}: {len(wanted)} tasks, records in {path}")
        if args.fresh:
            forget(path, wanted)
        n_jobs = args.n_jobs or (-1 if each in PAPER else 1)
        with Bar(each) as bar:
            ran += run_tasks(load_study(each).measure, wanted, path, n_jobs=n_jobs, step=bar.step)
    page = write(name, args.out)
    if page is not None:
        print(page)
    say(f"{name}: ran {ran} tasks, pages in {home(name, args.out)}")


def say(text: str) -> None:
    """A line on standard error."""
    print(" ".join(text.split()), file=sys.stderr, flush=True)


def missing_data(names: Sequence[str]) -> dict[str, Exception]:
    """The studies whose data cannot be read, with the reason."""
    found: dict[str, Exception] = {}
    for name in names:
        check_data = getattr(load_study(name), "check_data", None)
        try:
            if check_data is not None:
                check_data()
        except (OSError, ValueError) as error:
            found[name] = error
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Mistakes of the user end in one line and code 2, Ctrl-C in code 130."""
    args = parse(argv)
    if args.quick and args.out is None:
        args.out = Path("quick-sobolev")
    try:
        names = check(args)
        missing = {} if args.render else missing_data(names)
        for name in names:
            if name not in missing:
                run(name, args)
        if missing:
            first, error = next(iter(missing.items()))
            left_out = f" ({', '.join(missing)} left out)" if len(names) > 1 else ""
            message = f"{first}: {error}{left_out}"
            if any(name in PAPER for name in missing):
                raise Mistake(message)
            say(message)  # a comparison that cannot run here is no mistake
    except KeyboardInterrupt:
        say("reproduction: interrupted")
        return INTERRUPTED
    except Mistake as error:
        say(f"reproduction: {error}")
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
