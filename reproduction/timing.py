"""CPU times of calls that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable


def alternate(*calls: Callable[[], object], repeats: int) -> list[list[float]]:
    """CPU seconds of each call, in turn: on one thread, other processes hardly change them."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, times in zip(calls, seconds, strict=True):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return seconds
