"""What the benchmarks share: one thread, records that survive a kill, sections of RESULTS.md.

Import this module before numpy: it pins BLAS to one thread, here and nowhere else.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

from sobolev._files import append_record, read_records, write_atomic  # noqa: E402, F401
from sobolev.experiments._tables import markdown_table  # noqa: E402, F401  (after the pins)

FOLDER = Path(__file__).resolve().parent
DATA_HOME = Path(os.environ.get("SOBOLEV_DATA_HOME", FOLDER.parent / "data"))

Record = dict[str, Any]


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, results in a temp folder"
    )
    parser.add_argument("--only", metavar="NAME", help="only what has NAME in its name")
    parser.add_argument("--output", type=Path, help="where RESULTS.md and results/ stand")
    return parser


def output_folder(args: argparse.Namespace) -> Path:
    """Where to write; a quick run never touches the results of a full one."""
    if args.output is not None:
        return args.output
    return Path(tempfile.mkdtemp(prefix="sobolev-quick-")) if args.quick else FOLDER


def choose(named: Iterable[Any], only: str | None) -> list[Any]:
    """The items whose ``name`` contains ``only``, in any case."""
    items = list(named)
    chosen = [item for item in items if only is None or only.lower() in item.name.lower()]
    if not chosen:
        raise SystemExit(f"--only {only}: choose among {'; '.join(i.name for i in items)}")
    return chosen


def write_section(path: Path, name: str, body: str) -> None:
    """Put ``body`` between the markers of a section of a Markdown file, all at once."""
    start, end = f"<!-- {name}:start -->", f"<!-- {name}:end -->"
    section = f"{start}\n{body.strip()}\n{end}"
    text = path.read_text() if path.exists() else "# Benchmark results\n"
    if start in text and end in text:
        before, rest = text.split(start, 1)
        text = before + section + rest.split(end, 1)[1]
    else:
        text = f"{text.rstrip()}\n\n{section}\n"
    write_atomic(path, text)


def alternate(*calls: Callable[[], object], repeats: int) -> list[list[float]]:
    """CPU seconds of each call, in turn: on one thread, other processes hardly change them."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, times in zip(calls, seconds, strict=True):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return seconds


def random_forest(n_trees: int, seed: int, *, classification: bool = False) -> Any:
    """The peer of every ranking, on one thread."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest = RandomForestClassifier if classification else RandomForestRegressor
    return forest(n_estimators=n_trees, random_state=seed, n_jobs=1)
