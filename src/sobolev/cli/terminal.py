"""What is shown: progress and messages on standard error, the answer on standard output."""

from __future__ import annotations

import sys
from typing import Any

import typer

from sobolev.cli.ending import one_line
from sobolev.report import SelectionResult

SHOWN, MOST_SHOWN = 20, 60


class Reporter:
    """Stages, steps and messages; a bar only if standard error is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.bar: Any = None

    def __enter__(self) -> Reporter:
        if not self.quiet and sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self.bar = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(bar_width=30),
                progress.TimeElapsedColumn(),
                progress.TextColumn("left", markup=False),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self.bar.start()
            self.task = self.bar.add_task("starting", total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def stage(self, text: str, total: float | None = None) -> None:
        """Begin a stage, of so many steps if that is known."""
        if self.bar is not None:
            self.bar.reset(self.task, total=total, description=text)

    def step(self, text: str, completed: float) -> None:
        """Say where the stage is."""
        if self.bar is not None:
            self.bar.update(self.task, description=text, completed=completed)

    def say(self, text: str) -> None:
        """A line on standard error."""
        if self.quiet:
            return
        if self.bar is not None:
            self.bar.console.print(one_line(text), markup=False, highlight=False, soft_wrap=True)
        else:
            typer.echo(one_line(text), err=True)


def print_table(result: SelectionResult) -> None:
    """The headline and the strongest features."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, table = Console(), result.table
    shown = table.head(min(max(SHOWN, int(table["selected"].sum())), MOST_SHOWN))
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    view.add_column("", justify="right", style="dim")
    view.add_column("feature", overflow="fold", min_width=8)
    view.add_column("importance", justify="right", no_wrap=True)
    numbers = _numbers(result)
    for header in numbers:
        view.add_column(header, justify="right", no_wrap=True)
    view.add_column("selected", no_wrap=True)
    for place, (_, row) in enumerate(shown.iterrows(), start=1):
        view.add_row(
            str(place),
            Text(one_line(row["feature"])),
            f"{row['importance']:.4f}",
            *(_number(row[column]) for column in numbers.values()),
            "yes" if row["selected"] else "",
            style="bold" if row["selected"] else "",
        )
    console.print(Text(one_line(result.headline) + ".", style="bold"))
    console.print(view)
    hidden = len(table) - len(shown)
    if hidden:
        console.print(Text(f"… and {hidden:,} more.", style="dim"))
    tested = int(table["pvalue"].notna().sum())
    if result.method == "hrt" and tested < len(table):
        console.print(
            f"{tested:,} features were tested, those of largest importance in the training rows; "
            "the others have no p-value.",
            highlight=False,
        )


def _numbers(result: SelectionResult) -> dict[str, str]:
    return {
        "hrt": {"p": "pvalue", "q": "qvalue"},
        "knockoffs": {"W": "statistic", "q": "qvalue"},
        "rank": {},
    }[result.method]


def _number(value: float) -> str:
    if value != value:
        return "–"
    return f"{value:.1e}" if 0 < abs(value) < 1e-3 else f"{value:.3f}"
