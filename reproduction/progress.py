"""A bar with the time left, on standard error and only on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Any


class Bar:
    """Shows how many tasks are done and how long the others will take.

    The estimate is that of the tasks done so far in this run: those of other kinds alternate, so
    their mean time hardly moves. (Rich's own estimate looks back for half a minute, which is less
    than one task may take.)

    Parameters
    ----------
    text : str
        What is being done.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bar: Any = None

    def __enter__(self) -> Bar:
        self.begin = time.monotonic()
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self.bar = progress.Progress(
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(bar_width=30),
                progress.MofNCompleteColumn(),
                progress.TimeElapsedColumn(),
                progress.TextColumn("{task.fields[left]}", markup=False),
                console=Console(stderr=True),
                transient=True,
                redirect_stdout=False,
            )
            self.bar.start()
            self.task = self.bar.add_task(self.text, total=None, left="")
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None

    def step(self, done: int, total: int) -> None:
        """Show the number of tasks that are done."""
        if self.bar is None:
            return
        left = time_left(time.monotonic() - self.begin, done, total)
        self.bar.update(self.task, completed=done, total=total, left=left)


def time_left(elapsed: float, done: int, total: int) -> str:
    """How long the rest will take, in words.

    Examples
    --------
    >>> from reproduction.progress import time_left
    >>> time_left(60.0, 2, 10)
    '4 min left'
    """
    if not done:
        return ""
    return f"{in_words(elapsed / done * (total - done))} left"


def in_words(seconds: float) -> str:
    """A time, short.

    Examples
    --------
    >>> from reproduction.progress import in_words
    >>> in_words(42.3), in_words(700), in_words(9000)
    ('42 s', '12 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
