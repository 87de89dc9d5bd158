"""A measurement in a process of its own, whose peak of memory can be told and limited.

    python -m reproduction.child MODULE FUNCTION ARGUMENTS

calls a function with arguments given as JSON and prints its result, with the ``peak``, as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reproduction import ROOT
from reproduction.engine import Record


def in_child(function: Callable[..., Record], *arguments: object) -> Record:
    """Call a function of a module in a new process.

    Returns
    -------
    dict
        The result of the function and ``peak``, the largest resident memory in bytes; ``error``
        instead if the process failed.
    """
    command = [sys.executable, "-m", "reproduction.child", function.__module__, function.__name__]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, json.dumps(arguments)],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    if done.returncode == -signal.SIGXCPU:
        return {"error": "not within the limit of CPU time"}
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"ended by signal {-done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def limit(gigabytes: float, seconds: int | None = None) -> None:
    """Let allocations beyond so much memory fail, and end this process after so much CPU time."""
    size = int(gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    if seconds is not None:
        until = int(time.process_time()) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (until, until + 5))


def peak_memory() -> int:
    """Bytes; from Linux's own account if there is one, as getrusage counts the parent's, too."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (li for li in status.read_text().splitlines() if li.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def main() -> None:
    """Call the function that the command line names."""
    module, name, arguments = sys.argv[1:]
    found = getattr(importlib.import_module(module), name)(*json.loads(arguments))
    print(json.dumps(found | {"peak": peak_memory()}))


if __name__ == "__main__":
    main()
