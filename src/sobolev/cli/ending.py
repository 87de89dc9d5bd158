"""How a command ends: exit codes, and one line for a mistake."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager

import typer

BAD_INPUT, INTERRUPTED = 2, 130
MISTAKES = (ValueError, TypeError, OSError, ImportError, ArithmeticError, MemoryError)


def one_line(text: str) -> str:
    r"""A text on one line, with control characters escaped.

    Examples
    --------
    >>> from sobolev.cli.ending import one_line
    >>> print(one_line("a\x1b[31m\n  b"))
    a\x1b[31m b
    """
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in joined)


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """End with one line and code 2 after a mistake of the user, with code 130 after Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(one_line(f"sobolev: interrupted {error}"), err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise
    except (*MISTAKES, BrokenExecutor) as error:
        typer.echo(f"sobolev: {one_line(describe(error))}", err=True)
        raise typer.Exit(BAD_INPUT) from None


def describe(error: BaseException) -> str:
    """What went wrong, for the user."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename is not None else ""
        return f"{error.strerror}{where}"
    if isinstance(error, MemoryError):
        return str(error) or "not enough memory for a table of this size; use fewer columns"
    if isinstance(error, BrokenExecutor):
        return (
            "a worker process was killed, perhaps for lack of memory; what is done is kept, and "
            "the same command with --n-jobs 1 goes on with less memory"
        )
    return str(error) or type(error).__name__
