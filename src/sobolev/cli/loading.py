"""Imports at the start of a command, which take longer than many a fit."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Import without garbage collection, which searches what modules hold for ever in vain.

    Of the time that ``sobolev select`` takes to import and to leave its modules, that is a fifth.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
