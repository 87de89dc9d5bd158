"""The options that commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Method(StrEnum):
    """How columns are selected."""

    hrt = "hrt"
    knockoffs = "knockoffs"
    rank = "rank"


class Critic(StrEnum):
    """What dependence is measured with."""

    convex = "convex"
    neural = "neural"


class Scheme(StrEnum):
    """How rows are split."""

    forward = "forward"
    once = "split"


class Missing(StrEnum):
    """What to do with missing values."""

    error = "error"
    drop = "drop"
    impute = "impute"


class Task(StrEnum):
    """What the target is."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Format(StrEnum):
    """What is printed."""

    table = "table"
    json = "json"
    csv = "csv"


class Simulated(StrEnum):
    """Data with a known answer."""

    sinexp = "sinexp"
    liang = "liang"
    xor = "xor"
    sine_radius = "sine-radius"


def _list(*flags: str, help: str, metavar: str = "COLUMNS") -> Any:
    return typer.Option(*flags, help=help, metavar=metavar)


Data = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet or Feather file, also packed (.gz, .bz2, .xz, .zip, .zst).",
        show_default=False,
    ),
]
Target = Annotated[
    list[str],
    _list("--target", "-t", help="Response column; several with commas, or repeat the option."),
]
Features = Annotated[list[str] | None, _list("--x", help="Columns to test; all others by default.")]
Responses = Annotated[list[str], _list("--y", help="Response columns.")]
MethodOption = Annotated[
    Method,
    typer.Option(
        help="hrt: p-values by the holdout randomization test; knockoffs: for many columns; rank: "
        "importances alone."
    ),
]
CriticOption = Annotated[Critic, typer.Option(help="convex: a kernel; neural: a network.")]
Fdr = Annotated[
    float, typer.Option(help="The share of false ones to accept among the selected, on average.")
]
Holdout = Annotated[
    float | None,
    typer.Option(help="Share of rows tested on (hrt). [default: 0.7 for forward, 0.5 for split]"),
]
SchemeOption = Annotated[
    Scheme | None,
    typer.Option(help="forward: refit in five blocks; split: one fit (hrt). [default: forward]"),
]
Draws = Annotated[
    int, typer.Option(min=1, help="Draws of knockoffs, or repetitions of hrt with other splits.")
]
Top = Annotated[
    int | None, typer.Option(min=1, help="Select so many. [default: all above the mean]")
]
Exclude = Annotated[list[str] | None, _list("--exclude", help="Columns to leave out; * matches.")]
Groups = Annotated[
    list[str] | None,
    _list(
        "--groups",
        metavar="NAME=COLUMNS|FILE",
        help="Columns that are selected together; or a file of such lines.",
    ),
]
Categorical = Annotated[
    list[str] | None, _list("--categorical", help="Numeric columns to take as categories.")
]
Keep = Annotated[
    list[str] | None, _list("--keep", help="Columns to keep though they look like identifiers.")
]
MissingOption = Annotated[
    Missing, typer.Option(help="Missing values: refuse, drop rows, or fill in median and mode.")
]
TaskOption = Annotated[
    Task, typer.Option(help="Take the target as number or classes. [auto: text is classes]")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Jobs = Annotated[
    int | None, typer.Option(help="Parallel jobs; changes no result. [default: all cores]")
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the results. [default: named after the data]", metavar="DIR"),
]
FormatOption = Annotated[Format, typer.Option(help="What to print.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no files, only print.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages.")]
Encoding = Annotated[
    str | None, typer.Option(help="Of a text file, such as latin-1. [default: utf-8]")
]
Sep = Annotated[
    str | None, typer.Option(help="Delimiter of a text file, such as ';' or tab. [default: found]")
]
Decimal = Annotated[str, typer.Option(help="Decimal sign of a text file.")]
Na = Annotated[
    list[str] | None, _list("--na", metavar="TEXT", help="A further mark of missing values.")
]
Permutations = Annotated[int, typer.Option(min=1, help="Permutations of the rows.")]
Blocks = Annotated[
    str | None, typer.Option(help="Column of batches or subjects: permute only within them.")
]
Simulation = Annotated[Simulated, typer.Argument(help="Which data.", show_default=False)]


def columns(
    exclude: list[str] | None,
    groups: list[str] | None,
    categorical: list[str] | None,
    keep: list[str] | None,
    missing: Missing,
    task: Task,
) -> dict[str, Any]:
    """The options of :func:`sobolev.tables.prepare`."""
    return {
        "exclude": exclude or [],
        "groups": groups or [],
        "categorical": categorical or [],
        "keep": keep or [],
        "missing": missing.value,
        "task": task.value,
    }


def reading(
    encoding: str | None, sep: str | None, decimal: str, na: list[str] | None
) -> dict[str, Any]:
    """The options of :func:`sobolev.tables.read_table`."""
    return {"encoding": encoding, "sep": sep, "decimal": decimal, "na": na or []}
