"""Progress of long computations: the one place that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Who hears of progress instead of a bar: set by programs, such as the command line.
_LISTENER: ContextVar[Any] = ContextVar("sobolev_progress_listener", default=None)


@contextmanager
def listening(listener: Any) -> Iterator[None]:
    """Report the progress of the next fit to a listener with ``stage`` and ``step``.

    Parameters
    ----------
    listener : object
        With ``stage(text, total)`` and ``step(text, completed)``, such as :class:`Bar`.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def _time_left() -> Any:
    """A column with the time left, empty as long as it is not known."""
    from datetime import timedelta

    from rich import progress
    from rich.text import Text

    class TimeLeft(progress.ProgressColumn):
        max_refresh = 0.5  # it does not flicker

        def render(self, task: progress.Task) -> Text:
            left = None if task.finished else task.time_remaining
            said = "" if left is None else f"{timedelta(seconds=int(left))} left"
            return Text(said, style="progress.remaining")

    return TimeLeft()


class Bar:
    """A progress bar on standard error.

    Parameters
    ----------
    transient : bool, default=False
        Whether the bar disappears at the end.
    """

    def __init__(self, *, transient: bool = False) -> None:
        from rich import progress
        from rich.console import Console

        self.console = Console(stderr=True)
        self.bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(bar_width=30),
            progress.TimeElapsedColumn(),
            _time_left(),
            console=self.console,
            transient=transient,
            redirect_stdout=False,
        )
        self.task = self.bar.add_task("starting", total=None)

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def stage(self, text: str, total: float | None = None) -> None:
        """Begin a stage; ``total`` is its number of steps, if known."""
        self.bar.reset(self.task, total=total, description=text)

    def step(self, text: str, completed: float | None = None) -> None:
        """Show where the stage is."""
        self.bar.update(self.task, description=text, completed=completed)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


class Progress:
    """Progress of one fit: shown by the listener, by a bar if ``verbose``, or not at all.

    Fits within the fit are silent unless they are verbose themselves.

    Parameters
    ----------
    verbose : int
        1 shows a bar, 2 also prints every step on a line of its own.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.text = ""

    def __enter__(self) -> Progress:
        self.shown = _LISTENER.get()
        self.token = _LISTENER.set(None)
        if self.shown is None and self.verbose:
            self.shown = Bar().__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        _LISTENER.reset(self.token)
        if isinstance(self.shown, Bar) and self.verbose:
            self.shown.__exit__(*exception)

    def stage(self, text: str, total: float | None = None) -> None:
        """Begin a stage; ``total`` is its number of steps, if known."""
        self.text = text
        if self.shown is not None:
            self.shown.stage(text, total)

    def step(self, text: str, completed: float | None = None) -> None:
        """Say where the stage is."""
        if self.shown is None:
            return
        line = f"{self.text} · {text}"
        self.shown.step(line, completed)
        if self.verbose > 1:
            self.shown.say(line)
