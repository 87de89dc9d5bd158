"""Run all benchmarks, one after the other.

python benchmarks/run.py [--quick]
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence

import _common as common

SCRIPTS = (
    "ranking",
    "speed",
    "independence",
    "neural",
    "knockoff_solvers",
    "knockoffs",
    "knockoffs_hiv",
    "scale",
    "wide",
    "solver_profile",
    "selection",
    "growth",
)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run all benchmarks.")
    parser.add_argument("--quick", action="store_true", help="small sizes, results in temp folders")
    args = parser.parse_args(argv)
    for name in SCRIPTS:
        if (common.FOLDER / f"{name}.py").exists():
            importlib.import_module(name).main(["--quick"] if args.quick else [])


if __name__ == "__main__":
    main()
