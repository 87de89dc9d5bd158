"""The peak memory of one ranking: that of a process that fits less that of one that only imports.

    python benchmarks/_ranking_memory.py METHOD TASK fit|import [quick]

does either on seed 0 of a task and prints its peak resident memory in bytes.
"""

from __future__ import annotations

import subprocess
import sys

import _common as common


def extra_memory(method: str, task: str, quick: bool) -> int:
    """Bytes that a ranking takes beyond its imports and the data."""
    return max(_child(method, task, "fit", quick) - _child(method, task, "import", quick), 0)


def _child(method: str, task: str, what: str, quick: bool) -> int:
    command = [sys.executable, __file__, method, task, what, *(["quick"] if quick else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=common.FOLDER)
    return int(done.stdout.split()[-1])


def main() -> None:
    import ranking
    from scale import peak_memory

    method, name, what, *quick = sys.argv[1:]
    tasks = ranking.QUICK_TASKS if quick else ranking.TASKS
    (task,) = (task for task in tasks if task.name == name)
    X, y, _ = task.draw(0, **task.options)
    if what == "import":
        ranking.prepare(method)
    else:
        ranking.rank(method, task, X, y, 0, quick=bool(quick))
    print(peak_memory())


if __name__ == "__main__":
    main()
