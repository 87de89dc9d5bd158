"""The memory that a fit needs, the memory that is free, and a clear word before the work."""

from __future__ import annotations

import os
from pathlib import Path

# Estimates below this are not compared with the memory that is free.
CHECKED_BYTES = 1 << 28
# Number of arrays of each shape that a fit holds at its peak, as measured, rounded down: as large
# as the table, rows by functions of a kernel critic, and columns by columns in models of them.
TABLES, FUNCTIONS, PAIRS = 3, 6, 8
# A kernel critic has at most so many functions, on at most so many rows at once.
MOST_FUNCTIONS, MOST_ROWS = 1000, 5000


def fit_bytes(n: int, d: int, *, pairs: bool = False) -> int:
    """The memory that a fit needs beyond the table, about.

    Parameters
    ----------
    n, d : int
        Number of rows and columns.
    pairs : bool, default=False
        Whether the columns are modelled given each other, as in tests and knockoffs.

    Returns
    -------
    int
        Number of bytes.

    Examples
    --------
    >>> from sobolev._memory import fit_bytes
    >>> round(fit_bytes(1000, 20_000, pairs=True) / 2**30, 1)
    24.3
    """
    functions = min(n, MOST_ROWS) * min(n, MOST_FUNCTIONS)
    return 8 * (TABLES * n * d + FUNCTIONS * functions + (PAIRS * d * d if pairs else 0))


def check_memory(n: int, d: int, *, pairs: bool = False) -> None:
    """Raise an error with the estimate if a fit needs more memory than is free."""
    needed = fit_bytes(n, d, pairs=pairs)
    if needed < CHECKED_BYTES:
        return
    free = free_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"a fit to {n:,} rows and {d:,} columns needs about {needed / 2**30:.2g} GiB of "
            f"memory, but {max(free, 0) / 2**30:.2g} GiB are free; use fewer columns, or for many "
            "rows sobolev.streaming.fit_stream."
        )


def check_table(name: str, n_bytes: int) -> None:
    """Raise an error if a table of so many bytes, as text or as numbers, does not fit in memory.

    A small archive can hold a huge table, so the size of the file says nothing.
    """
    if n_bytes < CHECKED_BYTES:
        return
    free = free_bytes()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{name!r} holds a table of about {n_bytes / 2**30:.2g} GiB, but "
            f"{free / 2**30:.2g} GiB of memory are free; use sobolev.streaming.fit_stream, or "
            "fewer columns."
        )


def free_bytes() -> int | None:
    """Memory that this process may still take: the least of all limits; None if none is known."""
    found = [_of_system(), _of_container(), _of_process()]
    return min((limit for limit in found if limit is not None), default=None)


def _of_system() -> int | None:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container(folder: str = "/sys/fs/cgroup") -> int | None:
    limit, used = (_read(f"{folder}/memory.{name}").strip() for name in ("max", "current"))
    if not limit.isdigit() or not used.isdigit():
        return None
    cache = [line.split() for line in _read(f"{folder}/memory.stat").splitlines()]
    kept = next((int(size) for name, size in cache if name == "inactive_file"), 0)
    return int(limit) - int(used) + kept


def _of_process() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _read("/proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not used:
        return None
    return limit - int(used[0]) * resource.getpagesize()


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
