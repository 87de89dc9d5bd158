"""The commands and their options; each imports what it needs when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

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
def select(
    data: o.Data,
    target: o.Target,
    method: o.MethodOption = o.Method.hrt,
    critic: o.CriticOption = o.Critic.convex,
    fdr: o.Fdr = 0.1,
    holdout: o.Holdout = None,
    scheme: o.SchemeOption = None,
    draws: o.Draws = 1,
    exclude: o.Exclude = None,
    groups: o.Groups = None,
    categorical: o.Categorical = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    task: o.TaskOption = o.Task.auto,
    seed: o.Seed = 0,
    n_jobs: o.Jobs = None,
    out: o.Out = None,
    format: o.FormatOption = o.Format.table,
    json: o.Json = False,
    no_report: o.NoReport = False,
    quiet: o.Quiet = False,
    encoding: o.Encoding = None,
    sep: o.Sep = None,
    decimal: o.Decimal = ".",
    na: o.Na = None,
) -> None:
    """Find the columns that matter for the target given all others, with few false ones.

    Writes selection.csv, result.json and report.html. Example: sobolev select data.csv --target y
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.running import Request, run

        given = {"holdout": holdout, "scheme": scheme.value if scheme else None}
        run(
            Request(
                data=data,
                targets=target,
                method=method.value,
                critic=critic.value,
                fdr=fdr,
                draws=draws,
                test_options={name: value for name, value in given.items() if value is not None},
                seed=seed,
                n_jobs=n_jobs,
                columns=o.columns(exclude, groups, categorical, keep, missing, task),
                reading=o.reading(encoding, sep, decimal, na),
                out=None if no_report else out or default_folder(data),
                format="json" if json else format.value,
                quiet=quiet,
            )
        )


@app.command(short_help="Which columns matter most, without error control.")
def rank(
    data: o.Data,
    target: o.Target,
    critic: o.CriticOption = o.Critic.convex,
    top: o.Top = None,
    exclude: o.Exclude = None,
    groups: o.Groups = None,
    categorical: o.Categorical = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    task: o.TaskOption = o.Task.auto,
    seed: o.Seed = 0,
    n_jobs: o.Jobs = None,
    out: o.Out = None,
    format: o.FormatOption = o.Format.table,
    json: o.Json = False,
    no_report: o.NoReport = False,
    quiet: o.Quiet = False,
    encoding: o.Encoding = None,
    sep: o.Sep = None,
    decimal: o.Decimal = ".",
    na: o.Na = None,
) -> None:
    """Rank the columns by importance for the target: quick, but without error control.

    Example: sobolev rank data.csv --target y --top 10
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.running import Request, run

        run(
            Request(
                data=data,
                targets=target,
                method="rank",
                critic=critic.value,
                top=top,
                seed=seed,
                n_jobs=n_jobs,
                columns=o.columns(exclude, groups, categorical, keep, missing, task),
                reading=o.reading(encoding, sep, decimal, na),
                out=None if no_report else out or default_folder(data),
                format="json" if json else format.value,
                quiet=quiet,
            )
        )


@app.command("test", short_help="Whether columns depend on others at all.")
def independence(
    data: o.Data,
    y: o.Responses,
    x: o.Features = None,
    permutations: o.Permutations = 999,
    blocks: o.Blocks = None,
    exclude: o.Exclude = None,
    categorical: o.Categorical = None,
    keep: o.Keep = None,
    missing: o.MissingOption = o.Missing.error,
    task: o.TaskOption = o.Task.auto,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
    encoding: o.Encoding = None,
    sep: o.Sep = None,
    decimal: o.Decimal = ".",
    na: o.Na = None,
) -> None:
    """Test whether columns y depend on columns x at all, by permutation.

    Example: sobolev test data.csv --x 'gene_*' --y survival
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.independence import run_test

        run_test(
            data,
            x or [],
            y,
            permutations=permutations,
            blocks=blocks,
            seed=seed,
            columns=o.columns(exclude, None, categorical, keep, missing, task),
            reading=o.reading(encoding, sep, decimal, na),
            json=json,
            quiet=quiet,
        )


@app.command()
def simulate(
    name: o.Simulation,
    rows: Annotated[int, typer.Option(min=4, help="Rows.")] = 500,
    features: Annotated[
        int | None, typer.Option("--columns", min=2, help="Features; by default as in the paper.")
    ] = None,
    seed: o.Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="File, such as sinexp.csv or sinexp.parquet.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Write a table of simulated data whose true columns are known.

    Example: sobolev simulate sinexp --rows 500 --out sinexp.csv
    """
    with ending_cleanly():
        with loading():
            from sobolev.cli.simulating import run_simulation

        run_simulation(name.value, rows, features, seed, out, overwrite=overwrite)


@app.command()
def doctor(json: o.Json = False) -> None:
    """Show versions, processor, BLAS, threads and optional parts."""
    with ending_cleanly():
        from sobolev.cli.doctor import run_doctor

        run_doctor(json=json)


@app.command(short_help="Rank simulated columns and write a report.")
def demo(
    n_samples: Annotated[int, typer.Option("--rows", min=50, help="Rows to simulate.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("sobolev-demo"),
) -> None:
    """Rank 50 simulated features, six of which matter, and write a report."""
    with ending_cleanly():
        with loading():
            from sobolev.demo import run_demo

        run_demo(n_samples, seed, out)


def default_folder(data: Path) -> Path:
    """Where results go by default: a folder in the current one, named after the data."""
    return Path(f"{data.name.split('.')[0] or 'data'}-sobolev")


def main() -> None:
    """Entry point of the console script; a wrong option is one line, like any other mistake."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal lacks letters for
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
