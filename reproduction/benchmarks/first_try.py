"""Whether `sobolev select FILE --target COLUMN` works at the first try, on public tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reproduction.benchmarks.public_tables import MAX_ROWS, TABLES
from reproduction.benchmarks.real_tables import MissingTable
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table

NAME = "first_try"
TIMEOUT = 600
QUICK = ("scikit-learn/iris", "scikit-learn/diabetes")
BY_NAME = {table.name: table for table in TABLES}
WORKS, REFUSED, FAILED = "works", "refused", "failed"


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One task for each table; the seed is that of the selection, so one repetition is enough."""
    names = QUICK if quick else tuple(BY_NAME)
    seeds = range(1 if repetitions is None else repetitions)
    return [Task(NAME, {"table": name}, seed) for name in names for seed in seeds]


def measure(settings: Settings, seed: int) -> Record:
    """Run the command on a table in a process of its own."""
    table = BY_NAME[settings["table"]]
    try:
        content = table.text()
    except MissingTable as error:
        return {"missing": str(error)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        file.write_bytes(content)
        command = [sys.executable, "-m", "sobolev", "select", str(file), "--target", table.target]
        quiet = ["--no-report", "--json", "--n-jobs", "1", "--seed", str(seed)]
        begin = os.times()
        done = subprocess.run(
            [*command, *quiet], capture_output=True, text=True, cwd=folder, timeout=TIMEOUT
        )
        end = os.times()
    spent = end.children_user + end.children_system - begin.children_user - begin.children_system
    return outcome(done.returncode, done.stdout, done.stderr) | {"seconds": round(spent, 1)}


def outcome(code: int, out: str, err: str) -> Record:
    """What the command did: it works, it refuses with one line and code 2, or it fails."""
    lines = err.strip().splitlines()
    if code == 0:
        result = json.loads(out)
        return {
            "outcome": WORKS,
            "rows": result["data"]["rows"],
            "features": len(result["features"]),
            "selected": len(result["selected"]),
            "set_aside": [item["column"] for item in result["data"]["set_aside"]],
            "notes": result["warnings"],
        }
    said = [line for line in lines if line.startswith("sobolev: ")]
    refused = code == 2 and len(said) == 1 and not any("Traceback" in line for line in lines)
    last = said[0] if refused else (lines or ["no message"])[-1]
    return {"outcome": REFUSED if refused else FAILED, "line": last.removeprefix("sobolev: ")}


# -- the page ------------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md: the share that works, and the lines of the others."""
    return "## First try\n\n" + body(rows)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The same on the page of the documentation."""
    return {("docs/first-try.md", NAME): body(rows)}


def evidence(rows: Sequence[Record]) -> list[str]:
    """The row of the README."""
    found = [row for row in rows if "outcome" in row]
    good = [row for row in found if row["outcome"] == WORKS]
    time = f"{_median(good):.1f} s"
    return [
        "Does it take a table as it is?",
        f"{len(good)} of {len(found)} public tables work with `--target` alone; the median CPU "
        f"time is {time}.",
        "[first try](docs/first-try.md)",
    ]


def _median(good: Sequence[Record]) -> float:
    """The median CPU time of the tables that work."""
    return float(sorted(row["seconds"] for row in good)[len(good) // 2]) if good else 0.0


def body(rows: Sequence[Record]) -> str:
    """Shares by package, what was set aside and warned of, and the tables that do not work."""
    found = sorted((row for row in rows if "outcome" in row), key=lambda row: row["table"])
    if not found:
        return "No package with tables is installed."
    good = [row for row in found if row["outcome"] == WORKS]
    counts = Counter(row["outcome"] for row in found)
    parts = [
        f"**{len(good)} of {len(found)} tables ({len(good) / len(found):.0%}) work with `--target` "
        f"alone**; {counts[REFUSED]} end with one line and exit code 2, {counts[FAILED]} with "
        f"anything else. At most {MAX_ROWS} rows of a table are used. The median CPU time is "
        f"{_median(good):.1f} s, start of the program included.{_gaps(found)}",
        markdown_table(["package", "tables", "work"], list(_by_package(found))),
        f"Columns were set aside in {sum(bool(row['set_aside']) for row in good)} tables. "
        f"{_noted(good, 'almost perfectly')} tables have a warning of a column that gives the "
        f"target away, {_noted(good, 'event or censoring')} of an event flag, and in "
        f"{_noted(good, '--subject')} the program asks whether rows belong together.",
    ]
    others = [row for row in found if row["outcome"] != WORKS]
    if others:
        lines = [[row["table"], _cell(row)] for row in others]
        parts.append(markdown_table(["table", "what it says"], lines, numbers=False))
    return "\n\n".join(parts)


def _gaps(rows: Sequence[Record]) -> str:
    """How many tables are refused for their missing values alone, and the share without them."""
    gaps = sum(row.get("line", "").startswith("values are missing") for row in rows)
    if not gaps:
        return ""
    good, rest = sum(row["outcome"] == WORKS for row in rows), len(rows) - gaps
    return (
        f" {gaps} tables have missing values and need `--missing`; of the others {good} of {rest} "
        f"work ({good / rest:.0%})."
    )


def _by_package(rows: Sequence[Record]) -> list[list[str]]:
    packages = [row["table"].partition("/")[0] for row in rows]
    works = Counter(
        package for package, row in zip(packages, rows, strict=True) if row["outcome"] == WORKS
    )
    return [[name, str(n), str(works[name])] for name, n in sorted(Counter(packages).items())]


def _noted(rows: Sequence[Record], words: str) -> int:
    return sum(any(words in note for note in row["notes"]) for row in rows)


def _cell(row: dict[str, Any]) -> str:
    kind = "" if row["outcome"] == REFUSED else "fails: "
    return kind + row["line"].replace("|", "\\|")
