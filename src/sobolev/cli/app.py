"""The commands and their options; each imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sobolev.cli import options as o
from sobolev.cli.ending import ending_cleanly, one_line
from sobolev.cli.loading import loading

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Which columns of a table matter: the Sobolev Independence Criterion.",
)


def _version(show: bool) -> None:
    if show:
        from sobolev import __version__

        typer.echo(f"sobolev {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Which columns of a table matter: the Sobolev Independence Criterion."""


@app.command(short_help="Which columns matter, at a false discovery rate.")
@o.sharing(selector=o.SELECT, **o.TABLE)
def select(
    context: typer.Context,
    data: o.Data,
    target: o.Target,
    selector: dict[str, Any],
    columns: dict[str, Any],
    reading: dict[str, Any],
    output: dict[str, Any],
    audit: o.Audit = False,
) -> None:
    """Find the columns that matter for the target given all others, with few false discoveries.

    Writes selection.csv, result.json and report.html. Example: sobolev select data.csv --target y
    """
    options = {"columns": columns, "reading": reading, "output": output}
    _run(context, data, target, selector, audit=audit, **options)


@app.command(short_help="Which columns matter most, without error control.")
@o.sharing(selector=o.RANK, **o.TABLE)
def rank(
    context: typer.Context,
    data: o.Data,
    target: o.Target,
    selector: dict[str, Any],
    columns: dict[str, Any],
    reading: dict[str, Any],
    output: dict[str, Any],
) -> None:
    """Rank the columns by importance for the target: quick, but without error control.

    Example: sobolev rank data.csv --target y --top 10
    """
    selector["method"] = o.Method.rank
    _run(context, data, target, selector, columns=columns, reading=reading, output=output)


def _run(
    context: typer.Context,
    data: Path,
    target: list[str],
    selector: dict[str, Any],
    *,
    audit: bool = False,
    **options: dict[str, Any],
) -> None:
    with ending_cleanly():
        with loading():
            from sobolev.cli.running import check_auditable, make_selector, run

        if audit:
            check_auditable(selector["method"])
        options["columns"]["reference"] = selector["method"] == o.Method.knockoffs
        run(
            data,
            target,
            make_selector(**selector),
            audit=audit,
            n_jobs=selector.get("n_jobs"),
            command=o.command_line(context),
            **options,
        )


@app.command(short_help="Whether the false discovery rate holds on a table.")
@o.sharing(selector=o.SELECT, columns=o.TABLE["columns"], reading=o.READING, output=o.AUDIT_OUTPUT)
def audit(
    context: typer.Context,
    data: o.Data,
    selector: dict[str, Any],
    columns: dict[str, Any],
    reading: dict[str, Any],
    output: dict[str, Any],
    target: o.OptionalTarget = None,
    repeats: o.Repeats = 20,
) -> None:
    """Measure the false discovery rate of a selection on the columns of a table.

    Responses with a known answer are planted on the columns, and the selector is run on each. If
    the level does not hold, other models of the columns are tried. Writes audit.json and audit.png;
    a run that was stopped goes on. Example: sobolev audit data.csv --target y
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.auditing import run_audit
            from sobolev.cli.running import check_auditable, make_selector

        check_auditable(selector["method"])
        columns["reference"] = selector["method"] == o.Method.knockoffs
        run_audit(
            data,
            target or [],
            make_selector(**selector),
            repeats=repeats,
            n_jobs=selector.get("n_jobs"),
            command=o.command_line(context),
            columns=columns,
            reading=reading,
            output=output,
        )


@app.command("test", short_help="Whether columns depend on others at all.")
@o.sharing(test=o.TEST, columns=o.COLUMNS, reading=o.READING)
def independence(
    data: o.Data,
    y: o.Responses,
    test: dict[str, Any],
    columns: dict[str, Any],
    reading: dict[str, Any],
) -> None:
    """Test whether columns y depend on columns x at all, by permutation.

    Example: sobolev test data.csv --x 'gene_*' --y survival
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.independence import run_test

        run_test(data, y, columns=columns, reading=reading, **test)


@app.command()
def simulate(
    name: o.Simulation,
    rows: Annotated[int, typer.Option(min=4, help="Number of rows.")] = 500,
    features: Annotated[
        int | None,
        typer.Option("--columns", min=2, help="Number of features. [default: as in the paper]"),
    ] = None,
    seed: o.Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="File, such as sinexp.csv or sinexp.parquet.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Write a table of simulated data for which the true answer is known.

    Example: sobolev simulate sinexp --rows 500 --out sinexp.csv
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.simulating import run_simulation

        run_simulation(name.value, rows, features, seed, out, overwrite=overwrite)


@app.command()
def doctor(json: o.Json = False) -> None:
    """Show versions, processor, BLAS, threads and optional packages."""
    with ending_cleanly():
        from sobolev.cli.doctor import run_doctor

        run_doctor(json=json)


@app.command(short_help="A complete example: test, audit and report.")
def demo(
    context: typer.Context,
    real: Annotated[
        bool,
        typer.Option("--real", help="A real table, diabetes of scikit-learn, not a simulated one."),
    ] = False,
    rows: Annotated[int, typer.Option(min=50, help="Number of simulated rows.")] = 400,
    seed: o.Seed = 0,
    repeats: o.Repeats = 20,
    out: o.DemoOut = None,
) -> None:
    """Run a complete example: ranking, p-values, selection, audit and report.

    50 simulated columns, six of which matter, or with --real ten measurements of patients with
    diabetes. Writes selection.csv, result.json, report.html and the table itself.
    """
    with ending_cleanly():
        with loading():
            from sobolev.demo import diabetes, run_demo, simulated

        example = diabetes() if real else simulated(rows, seed)
        command = o.command_line(context)
        run_demo(example, seed=seed, repeats=repeats, out=out, command=command)


def main() -> None:
    """Entry point of the console script; a wrong option is one line, like any other mistake."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # names with letters that the terminal lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        if "\n" in message():  # the help, which no arguments ask for
            error.show()  # type: ignore[attr-defined]
        else:
            typer.echo(f"sobolev: {one_line(message())} (see sobolev --help)", err=True)
        code = getattr(error, "exit_code", 2)
    sys.exit(code if isinstance(code, int) else 0)
