"""Wall time of the commands, start-up included, beside that of imports that they cannot avoid."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reproduction.engine import Record

IMPORTS = [sys.executable, "-c", "import numpy, pandas, sklearn"]
SOBOLEV = [sys.executable, "-m", "sobolev"]
PEER = "`python -c 'import numpy, pandas, sklearn'`"


def select(quick: bool) -> Record:
    """From a CSV of SinExp to the report."""
    rows = 200 if quick else 1000
    with tempfile.TemporaryDirectory() as folder:
        table, out = str(Path(folder) / "sinexp.csv"), str(Path(folder) / "out")
        _seconds([*SOBOLEV, "simulate", "sinexp", "--rows", str(rows), "--out", table])
        command = [*SOBOLEV, "select", table, "--target", "y", "--out", out]
        ours, theirs = _in_turn(command, IMPORTS, repeats=1 if quick else 5)
    return {
        "what": f"`sobolev select` of a CSV of SinExp, {rows} × 50, to the report; wall time of "
        "the process, all cores",
        "peer": PEER,
        "ours": ours,
        "theirs": theirs,
        "notes": {"cores": os.cpu_count(), "shortest": f"{min(ours):.2f} s"},
    }


def show_help(quick: bool) -> Record:
    """The list of commands."""
    ours, theirs = _in_turn([*SOBOLEV, "--help"], IMPORTS, repeats=1 if quick else 5)
    return {
        "what": "`sobolev --help`, wall time of the process",
        "peer": PEER,
        "ours": ours,
        "theirs": theirs,
        "notes": {},
    }


def _in_turn(*commands: list[str], repeats: int) -> list[list[float]]:
    seconds: list[list[float]] = [[] for _ in commands]
    for _ in range(repeats):
        for command, times in zip(commands, seconds, strict=True):
            times.append(_seconds(command))
    return seconds


def _seconds(command: list[str]) -> float:
    """Wall time, with as many BLAS threads as a user has."""
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=free)
    return time.perf_counter() - start
