"""Progress and messages on standard error, the answer on standard output."""

from __future__ import annotations

import sys
from typing import Any

import typer

from sobolev._numbers import shown_pvalue
from sobolev._progress import Bar
from sobolev.cli.ending import one_line
from sobolev.report import SelectionResult
from sobolev.report.nothing import reasons, steps
from sobolev.report.sections import mark_name

SHOWN, MOST_SHOWN = 20, 60
# Numbers of each method beside the importance, by the headers of their columns.
NUMBERS = {
    "hrt": {"drop": "statistic", "p": "pvalue", "q": "qvalue"},
    "knockoffs": {"W": "statistic", "q": "qvalue"},
    "rank": {},
}


class Reporter:
    """Stages, steps and messages; a progress bar only if standard error is a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.bar: Bar | None = None

    def __enter__(self) -> Reporter:
        if not self.quiet and sys.stderr.isatty():
            self.bar = Bar(transient=True).__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.__exit__(*exception)
            self.bar = None

    def stage(self, text: str, total: float | None = None) -> None:
        """Begin a stage; ``total`` is its number of steps, if known."""
        if self.bar is not None:
            self.bar.stage(text, total)

    def step(self, text: str, completed: float | None = None) -> None:
        """Show where the stage is."""
        if self.bar is not None:
            self.bar.step(text, completed)

    def say(self, text: str) -> None:
        """Write a line on standard error."""
        if self.bar is not None:
            self.bar.say(one_line(text))
        elif not self.quiet:
            typer.echo(one_line(text), err=True)


def print_table(result: SelectionResult) -> None:
    """Print the headline, the held-out skill, the strongest features, and why there are none."""
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
    numbers = NUMBERS[result.method]
    for header in numbers:
        view.add_column(header, justify="right", no_wrap=True)
    view.add_column(mark_name(result).lower(), no_wrap=True)
    for place, (_, row) in enumerate(shown.iterrows(), start=1):
        view.add_row(
            str(place),
            Text(one_line(row["feature"])),
            f"{row['importance']:.4f}",
            *(_shown(row[column], column) for column in numbers.values()),
            "yes" if row["selected"] else "",
            style="bold" if row["selected"] else "",
        )
    console.print(Text(one_line(result.headline) + ".", style="bold"))
    if result.skill is not None and result.selected:
        console.print(Text(result.skill.sentence))
    console.print(view)
    if not result.selected:
        _print_nothing(console, result)
    hidden = len(table) - len(shown)
    if hidden:
        console.print(Text(f"… and {hidden:,} more.", style="dim"))
    tested = int(table["pvalue"].notna().sum())
    if result.method == "hrt" and tested < len(table):
        console.print(
            f"{tested:,} features were tested, the most important on the training rows; the "
            "others have no p-value.",
            highlight=False,
        )


def _print_nothing(console: Any, result: SelectionResult) -> None:
    """Why nothing was selected, and what to do next."""
    from rich.text import Text

    for title, words in (("Why", reasons(result)), ("What next", steps(result))):
        if words:
            console.print(Text(f"{title}:", style="bold"))
        for said in words:
            console.print(Text(f"- {one_line(said)}"))


def _shown(value: float, column: str) -> str:
    if column in ("pvalue", "qvalue"):
        return shown_pvalue(value)
    return "–" if value != value else f"{value:.3f}".replace("-0.000", "0.000")
