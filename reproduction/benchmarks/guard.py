"""Guard of the speed: ``make bench-guard`` fails if a ratio is 25 % worse than the stored one.

The short versions of the measurements of :mod:`reproduction.benchmarks.speed` are run, each several
times in turn with its peer. The ratio is that of the shortest times, which other processes change
least. A ratio that is too large is measured again before it counts. Measurements of downloaded data
are left out.

``python -m reproduction.benchmarks.guard --update`` stores the ratios of this machine; do so after
a change that is meant to cost time, and say why in the commit.
"""

import argparse
import json
import sys
from pathlib import Path

from reproduction.benchmarks.speed import MEASUREMENTS, Measurement
from sobolev._files import write_atomic

STORED = Path(__file__).resolve().parent.parent / "data" / "speed_guard.json"
GUARDED = tuple(m for m in MEASUREMENTS if m.name not in ("plx4720", "wide test"))
WORSE, REPEATS, ATTEMPTS = 1.25, 3, 3


def ratio(measurement: Measurement, repeats: int = REPEATS) -> float:
    """Shortest time of ours over the shortest of the peer."""
    records = [measurement.run(True) for _ in range(repeats)]
    ours, theirs = ([t for record in records for t in record[k]] for k in ("ours", "theirs"))
    return min(ours) / min(theirs)


def is_worse(found: float, stored: float) -> bool:
    """Whether a ratio is worse than the stored one by more than the tolerance."""
    return found > WORSE * stored


def guarded_ratio(measurement: Measurement, stored: float) -> float:
    """The smallest ratio of several attempts; a good one ends them."""
    found = ratio(measurement)
    for _ in range(ATTEMPTS - 1):
        if not is_worse(found, stored):
            break
        found = min(found, ratio(measurement))
    return found


def compare(stored: dict[str, float]) -> list[str]:
    """Measure and print all ratios; the names of those that are worse."""
    worse = []
    for measurement in GUARDED:
        before = stored[measurement.name]
        found = guarded_ratio(measurement, before)
        if is_worse(found, before):
            worse.append(measurement.name)
        sign = "WORSE" if is_worse(found, before) else "ok"
        print(f"{measurement.name:20} {found:9.4g}  stored {before:9.4g}  {sign}", flush=True)
    return worse


def main(arguments: list[str] | None = None) -> int:
    """Compare with the stored ratios, or store new ones; 1 if one is worse."""
    parser = argparse.ArgumentParser(description="Compare the speed with the stored ratios.")
    parser.add_argument("--update", action="store_true", help="store the ratios of this machine")
    if parser.parse_args(arguments).update:
        found = {m.name: float(f"{ratio(m):.4g}") for m in GUARDED}
        write_atomic(STORED, json.dumps(found, indent=2) + "\n")
        print(f"{len(found)} ratios are stored in {STORED.name}.")
        return 0
    worse = compare(json.loads(STORED.read_text(encoding="utf-8")))
    if worse:
        print(f"more than {WORSE - 1:.0%} slower than stored: {', '.join(worse)}")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
