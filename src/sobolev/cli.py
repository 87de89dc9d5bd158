"""The ``sobolev`` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
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


@app.command()
def demo(
    n_samples: Annotated[int, typer.Option("--rows", min=50, help="Rows to simulate.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("sobolev-demo"),
) -> None:
    """Rank 50 simulated features, six of which matter, and write a report."""
    from sobolev.demo import run_demo

    try:
        run_demo(n_samples, seed, out)
    except (ValueError, OSError) as error:
        typer.echo(f"sobolev: {error}", err=True)
        raise typer.Exit(2) from None


def main() -> None:
    """Entry point of the console script."""
    app()


if __name__ == "__main__":
    main()
