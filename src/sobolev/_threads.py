"""How many threads a computation uses."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

# Up to this many rows one BLAS thread is as fast as several, and far faster on a busy machine.
SMALL_SAMPLE = 1000


def blas_threads(n_rows: int) -> threadpool_limits:
    """A context with one BLAS thread for small samples."""
    return threadpool_limits(1 if n_rows <= SMALL_SAMPLE else None, user_api="blas")
