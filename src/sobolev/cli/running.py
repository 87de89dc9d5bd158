"""``sobolev select`` and ``sobolev rank``: from the file to the answer."""

from __future__ import annotations

import shlex
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from sobolev.cli.ending import INTERRUPTED
from sobolev.cli.output import check_folder, save
from sobolev.cli.pictures import draw
from sobolev.cli.selecting import Found, Plan, Teller, find
from sobolev.cli.terminal import Reporter, print_table
from sobolev.cli.versions import versions
from sobolev.report import COLUMNS, SelectionResult
from sobolev.report.files import result_json
from sobolev.tables import Prepared, prepare, read_table
from sobolev.validation import list_some

# Warnings that say nothing new here: constant columns were set aside before.
KNOWN = ("constant columns get importance 0",)
# What warnings call things, and what the command calls them.
WORDS = {
    "use HRTSelector": "use --method hrt",
    "n_draws=": "--draws ",
    "raise fdr": "raise --fdr",
    "Remedy:": "Remedy, in Python:",
}


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    data: Path
    targets: list[str]
    method: str
    critic: str
    columns: dict[str, Any]
    reading: dict[str, Any]
    fdr: float = 0.1
    draws: int = 1
    top: int | None = None
    test_options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    n_jobs: int | None = None
    out: Path | None = None
    format: str = "table"
    quiet: bool = False


def run(request: Request) -> None:
    """Read, select, write and print."""
    begin = time.perf_counter()
    plan = make_plan(request)
    if request.out is not None:
        check_folder(request.out)
    with Reporter(request.quiet) as reporter:
        reporter.stage("reading")
        data = load(request, reporter)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            plan = replace(plan, tell=Teller(plan, data, reporter.step))
            reporter.stage("fitting", total=plan.n_fits(len(data.X)))
            try:
                found = find(plan, data)
            except KeyboardInterrupt:
                ranking = plan.tell.partial() if plan.tell is not None else None
                if ranking is None:
                    raise
                found = ranking
        said = [*data.notes, *plain_words(caught)]
        for text in said[len(data.notes) :]:
            reporter.say(f"warning: {text}")
        reporter.stage("report")
        result = make_result(request, plan, data, found, said, time.perf_counter() - begin)
        if request.out is not None:
            if not found.partial:
                result = replace(result, pictures=draw(found, data, result))
            written = save(result, request.out)
            reporter.say(f"Report: {written['report.html']} (and selection.csv, result.json)")
    if found.partial:
        kept = f"; the ranking so far is in {request.out}" if request.out is not None else ""
        typer.echo(f"sobolev: interrupted before the tests were done{kept}", err=True)
        raise typer.Exit(INTERRUPTED)
    show(result, request.format)


def make_plan(request: Request) -> Plan:
    """Check the options against each other before the file is read."""
    if request.method != "hrt" and request.test_options:
        option = next(iter(request.test_options))
        raise ValueError(f"--{option} belongs to --method hrt, not to {request.method}.")
    if request.method == "rank" and request.draws > 1:
        raise ValueError("--draws belongs to --method hrt and knockoffs, not to rank.")
    if not 0 < request.fdr < 1:
        raise ValueError(f"--fdr {request.fdr:g} must lie between 0 and 1, such as 0.1.")
    share = request.test_options.get("holdout")
    if share is not None and not 0 < share <= 0.9:
        raise ValueError(f"--holdout {share:g} must lie between 0 and 0.9, such as 0.5.")
    return Plan(
        method=request.method,
        critic=request.critic,
        fdr=request.fdr,
        draws=request.draws,
        top=request.top,
        scheme=request.test_options.get("scheme", "forward"),
        holdout=share,
        seed=request.seed,
        n_jobs=request.n_jobs,
    )


def load(request: Request, reporter: Reporter) -> Prepared:
    """The table, ready for the estimators; what was done to it is told."""
    frame = read_table(request.data, **request.reading)
    options = request.columns | {"reference": request.method == "knockoffs"}
    data = prepare(frame, request.targets, **options)
    tell_preparation(data, reporter)
    return data


def tell_preparation(data: Prepared, reporter: Reporter) -> None:
    """Say what was set aside and what was done to the rows."""
    aside = [item for item in data.set_aside if "--exclude" not in item[1]]
    if aside:
        listed = list_some([f"{name} ({reason})" for name, reason in aside], 4)
        noun = "column" if len(aside) == 1 else "columns"
        reporter.say(f"note: {len(aside)} {noun} set aside: {listed}")
    for text in data.notes:
        reporter.say(f"note: {text}")


def plain_words(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Each warning once, in the words of the command; what only programmers need is left out."""
    found: dict[str, None] = {}
    for item in caught:
        text = str(item.message)
        if issubclass(item.category, (DeprecationWarning, FutureWarning, ImportWarning)):
            continue
        if text.startswith(KNOWN):
            continue
        for word, ours in WORDS.items():
            text = text.replace(word, ours)
        found[text[:1].upper() + text[1:]] = None
    return list(found)


def make_result(
    request: Request, plan: Plan, data: Prepared, found: Found, said: list[str], seconds: float
) -> SelectionResult:
    """Everything that the files hold."""
    said = [*found.remarks, *said]
    facts = {
        "name": request.data.name,
        "rows": len(data.X),
        "rows_dropped": data.rows_read - len(data.X),
        "columns": data.columns_read,
        "features": len(data.variables),
        "categorical": sum(kind == "categorical" for kind in data.kinds.values()),
        "set_aside": [{"column": name, "reason": reason} for name, reason in data.set_aside],
    }
    if found.partial:
        facts["partial"] = True
    kept = ("missing", "task", "exclude", "groups", "categorical", "keep")
    asked = {name: request.columns[name] for name in kept if request.columns[name]}
    settings = found.settings | asked | {"seed": request.seed, "command": command(request)}
    return SelectionResult(
        method="rank" if found.partial else request.method,
        targets=data.targets,
        fdr=None if found.partial or request.method == "rank" else request.fdr,
        table=found.table[list(COLUMNS)],
        data=facts,
        settings=settings,
        versions=versions(plan.critic),
        warnings=tuple(said),
        seconds=seconds,
    )


def command(request: Request) -> str:
    """The shell line that repeats the run."""
    select = request.method != "rank"
    words = ["sobolev", "select" if select else "rank", str(request.data)]
    options: list[tuple[str, Any]] = [("target", name) for name in request.targets]
    if select:
        options += [("method", request.method), ("fdr", f"{request.fdr:g}")]
        options += [("draws", request.draws)] if request.draws > 1 else []
    options += [("critic", request.critic)]
    options += [("top", request.top)] if request.top is not None else []
    options += list(request.test_options.items())
    for name, value in (request.columns | request.reading).items():
        default = {"missing": "error", "task": "auto", "decimal": "."}.get(name)
        given = value if isinstance(value, list) else [value]
        options += [(name, item) for item in given if item is not None and item != default]
    options.append(("seed", request.seed))
    return shlex.join([*words, *(text for n, v in options for text in (f"--{n}", str(v)))])


def show(result: SelectionResult, format: str) -> None:
    """The answer on standard output."""
    if format == "json":
        typer.echo(result_json(result), nl=False)
    elif format == "csv":
        typer.echo(result.table.to_csv(index=False), nl=False)
    else:
        print_table(result)
