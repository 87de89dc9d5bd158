"""Progress on standard error, for estimators with ``verbose``."""

from __future__ import annotations


class Progress:
    """A bar on standard error with the stage and the current objective (``verbose``)."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose

    def __enter__(self) -> Progress:
        if self.verbose:
            from rich import progress
            from rich.console import Console

            self.console = Console(stderr=True)
            self.bar = progress.Progress(
                progress.SpinnerColumn(),
                progress.TextColumn("{task.description}", markup=False),
                progress.BarColumn(),
                progress.TimeElapsedColumn(),
                console=self.console,
            )
            self.bar.start()
            self.task = self.bar.add_task("starting", total=None)
        return self

    def __exit__(self, *exception: object) -> None:
        if self.verbose:
            self.bar.stop()

    def stage(self, text: str, total: int | None = None) -> None:
        """Begin a stage, of so many steps if that is known."""
        self.text = text
        if self.verbose:
            self.bar.reset(self.task, total=total, description=text)

    def step(self, text: str, completed: int | None = None) -> None:
        """Say where the stage is; ``verbose=2`` prints every step on a line of its own."""
        if not self.verbose:
            return
        line = f"{self.text} · {text}"
        self.bar.update(self.task, description=line, completed=completed)
        if self.verbose > 1:
            self.console.print(line, markup=False)
