"""The options that commands share."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Method = StrEnum("Method", ["hrt", "knockoffs", "rank"])
Critic = StrEnum("Critic", ["convex", "neural"])
Sampler = StrEnum("Sampler", ["auto", "gaussian", "matched", "copula", "sequential"])
Scheme = StrEnum("Scheme", {"forward": "forward", "once": "split"})
Missing = StrEnum("Missing", ["draw", "error", "drop"])
Conditional = StrEnum("Conditional", ["auto", "forest", "mixed", "gaussian", "neural"])
Copies = StrEnum("Copies", ["join", "keep"])
Format = StrEnum("Format", ["table", "json", "csv"])
AuditFormat = StrEnum("AuditFormat", ["table", "json"])
Simulated = StrEnum("Simulated", ["sinexp", "liang", "xor", "sine-radius"])


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
OptionalTarget = Annotated[
    list[str] | None,
    _list(
        "--target",
        "-t",
        help="Response column; its values and its signal-to-noise ratio are used, and it is no "
        "feature. Without it, all columns are features.",
    ),
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
CriticOption = Annotated[
    Critic, typer.Option(help="convex: a convex critic; neural: a neural network.")
]
Fdr = Annotated[
    float, typer.Option(help="Largest share of false discoveries among the selected, on average.")
]
Audit = Annotated[
    bool,
    typer.Option(
        "--audit",
        help="Measure the false discovery rate on these columns first, with planted responses; if "
        "the level does not hold, try other models of the columns.",
    ),
]
Repeats = Annotated[int, typer.Option(min=1, help="Number of planted responses.")]
TestSize = Annotated[
    float | None,
    typer.Option(help="Share of test rows (hrt). [default: 0.7 for forward, 0.5 for split]"),
]
SchemeOption = Annotated[
    Scheme | None,
    typer.Option(help="forward: refit in five blocks; split: one fit (hrt). [default: forward]"),
]
ConditionalOption = Annotated[
    Conditional | None,
    typer.Option(
        help="Model of each column given the others (hrt): auto, forest, mixed (linear), gaussian "
        "or neural. [default: auto]"
    ),
]
CopiesOption = Annotated[
    Copies | None,
    typer.Option(
        help="Columns that cannot be told apart: join them into one feature, or keep them apart. "
        "[default: join]"
    ),
]
SamplerOption = Annotated[
    Sampler | None,
    typer.Option(
        help="How knockoffs are drawn (knockoffs). [default: auto, what suits the columns]"
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Number of draws of knockoffs, or of orders of the rows of hrt. [default: 1; for hrt "
        "5 if there are fewer than 400 rows, or events of survival times]",
    ),
]
Top = Annotated[
    int | None,
    typer.Option(min=1, help="Number of features to select. [default: all above the mean]"),
]
Exclude = Annotated[
    list[str] | None, _list("--exclude", help="Columns to leave out; * matches any text.")
]
Adjust = Annotated[
    list[str] | None,
    _list(
        "--adjust",
        help="Covariates, such as age,sex,batch: always in the model, neither penalised nor "
        "tested.",
    ),
]
Groups = Annotated[
    list[str] | None,
    _list(
        "--groups",
        metavar="NAME=COLUMNS|FILE",
        help="Columns that are selected together; or a file of such lines.",
    ),
]
Subject = Annotated[
    str | None,
    typer.Option(
        help="Column that says which rows belong together, such as a patient with several visits.",
        metavar="COLUMN",
    ),
]
BlocksOf = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="For time series: so many consecutive rows belong together, and the rows keep their "
        "order.",
        metavar="ROWS",
    ),
]
Weights = Annotated[
    str | None, typer.Option(help="Column of weights of the rows.", metavar="COLUMN")
]
Categorical = Annotated[
    list[str] | None, _list("--categorical", help="Numeric columns to treat as categories.")
]
Keep = Annotated[
    list[str] | None,
    _list("--keep", help="Columns to keep though they look like identifiers or event flags."),
]
MissingOption = Annotated[
    Missing,
    typer.Option(help="Missing values: draw them given the other columns, refuse, or drop rows."),
]
ResponseOption = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="How to read the target: auto, number, count, grades, classes or survival; grades may "
        "have an order, as in grades=low,medium,high.",
    ),
]
Event = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="For survival times: the column that says whether the event happened at the time in "
        "--target; status=2 if 2 is the event.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Jobs = Annotated[
    int | None,
    typer.Option(help="Number of parallel jobs; does not change the result. [default: all cores]"),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the results. [default: named after the data, with a number if that one "
        "holds results of another command]",
        metavar="DIR",
    ),
]
DemoOut = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the results. [default: sobolev-demo, with a number if that one holds "
        "results of another command]",
        metavar="DIR",
    ),
]
FormatOption = Annotated[Format, typer.Option(help="What to print.")]
AuditFormatOption = Annotated[AuditFormat, typer.Option(help="What to print.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no files, only print.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages.")]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as latin-1. [default: utf-8]")
]
Sep = Annotated[
    str | None,
    typer.Option(help="Delimiter of a text file, such as ';' or tab. [default: detected]"),
]
Decimal = Annotated[
    str | None, typer.Option(help="Decimal sign of a text file. [default: detected]")
]
Na = Annotated[
    list[str] | None, _list("--na", metavar="TEXT", help="Another mark of missing values.")
]
NotNa = Annotated[
    list[str] | None,
    _list("--not-na", metavar="TEXT", help="A text that is no missing value, such as NA."),
]
OfferMissing = Annotated[
    list[str] | None,
    _list(
        "--offer-missing",
        metavar="COLS",
        help="Columns whose missingness is a feature of its own; '*' for all.",
    ),
]
Permutations = Annotated[int, typer.Option(min=1, help="Number of permutations of the rows.")]
Blocks = Annotated[str | None, typer.Option(help="Column of batches: permute only within them.")]
Simulation = Annotated[Simulated, typer.Argument(help="Which data.", show_default=False)]


# Options that commands share: name, type and default. "None" leaves the default to what is called.
Shared = dict[str, tuple[Any, Any]]
SELECT: Shared = {
    "method": (MethodOption, Method.hrt),
    "critic": (CriticOption, Critic.convex),
    "fdr": (Fdr, 0.1),
    "test_size": (TestSize, None),
    "scheme": (SchemeOption, None),
    "conditional": (ConditionalOption, None),
    "copies": (CopiesOption, None),
    "sampler": (SamplerOption, None),
    "draws": (Draws, None),
    "seed": (Seed, 0),
    "n_jobs": (Jobs, None),
}
RANK: Shared = {
    "critic": (CriticOption, Critic.convex),
    "top": (Top, None),
    "seed": (Seed, 0),
    "n_jobs": (Jobs, None),
}
TEST: Shared = {
    "x": (Features, None),
    "permutations": (Permutations, 999),
    "blocks": (Blocks, None),
    "subject": (Subject, None),
    "seed": (Seed, 0),
    "json": (Json, False),
    "quiet": (Quiet, False),
}
COLUMNS: Shared = {
    "exclude": (Exclude, None),
    "categorical": (Categorical, None),
    "keep": (Keep, None),
    "missing": (MissingOption, Missing.draw),
    "offer_missing": (OfferMissing, None),
    "response": (ResponseOption, "auto"),
    "event": (Event, None),
}
READING: Shared = {
    "encoding": (Encoding, None),
    "sep": (Sep, None),
    "decimal": (Decimal, None),
    "na": (Na, None),
    "not_na": (NotNa, None),
}
OUTPUT: Shared = {
    "out": (Out, None),
    "format": (FormatOption, Format.table),
    "json": (Json, False),
    "no_report": (NoReport, False),
    "quiet": (Quiet, False),
}
AUDIT_OUTPUT = OUTPUT | {"format": (AuditFormatOption, AuditFormat.table)}
GROUPS: Shared = {
    "adjust": (Adjust, None),
    "groups": (Groups, None),
    "subject": (Subject, None),
    "blocks_of": (BlocksOf, None),
    "weights": (Weights, None),
}
TABLE = {"columns": COLUMNS | GROUPS, "reading": READING, "output": OUTPUT}
# Options that do not change the result, and options that the command line always shows.
SILENT, ALWAYS = {*OUTPUT, "n_jobs"}, {"method", "critic", "fdr", "seed"}


def sharing(**groups: Shared) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command groups of options; it receives the options of a group as one dict."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = {
            name: (hints[name], parameter.default)
            for name, parameter in inspect.signature(command).parameters.items()
            if name not in groups
        }
        for options in groups.values():
            own |= options

        @wraps(command)
        def called(**given: Any) -> None:
            packed = {
                group: {n: v for n in options if (v := given.pop(n)) is not None}
                for group, options in groups.items()
            }
            command(**given, **packed)

        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=a)
                for name, (a, d) in own.items()
            ]
        )
        called.__annotations__ = {name: kind for name, (kind, _) in own.items()}
        return called

    return decorate


def command_line(context: typer.Context) -> str:
    """The shell line that repeats a command."""
    words, options = ["sobolev", str(context.info_name)], []
    for parameter in context.command.params:
        value, name = context.params.get(str(parameter.name)), str(parameter.name)
        given = value if isinstance(value, (list, tuple)) else [value]
        if name in SILENT or value is None:
            continue
        if parameter.param_type_name == "argument":
            words.append(str(value))
        elif getattr(parameter, "is_flag", False):
            options += [parameter.opts[0]] * bool(value)
        elif name in ALWAYS or str(value) != str(parameter.default):
            options += [text for item in given for text in (parameter.opts[0], str(item))]
    return shlex.join([*words, *options])
