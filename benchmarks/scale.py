"""A fit to more rows than memory should hold, beside reading the file and the bare products.

    python benchmarks/scale.py [--quick] [--rows N] [--folder PATH]

Writes Parquet files to a temporary folder, fits ConvexSIC to them in a process of its own and
forms, in another, what any such fit must form: the matrix, its cosines and sines, their Gram
matrix. Each run is a line of results/scale.jsonl; RESULTS.md shows the latest of each size.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import _common as common
import numpy as np

from sobolev import ConvexSIC, __version__
from sobolev.convex import Alternating, FourierMap
from sobolev.streaming import fit_stream

D, M = 50, 256
RELEVANT = (0, 1, 2, 3, 4)
FILE_ROWS = 1_000_000
BLOCK = 2048
LIMIT_GB = 2.0
MOST = 2.0
SETTINGS: dict[str, dict[str, Any]] = {
    "one round": {"lam": 0.03, "rounds": 1},
    "lam chosen, rounds on a sample": {"lam": "auto", "round_rows": 20_000},
}


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Five of fifty columns matter, two of them only together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + X[:, 2] * X[:, 3] + X[:, 4] / 2
    return X, signal + rng.standard_normal(n)


def write_table(folder: Path, n: int) -> int:
    """Files of up to a million rows, as pandas writes them; returns their size."""
    import pandas as pd

    for number, start in enumerate(range(0, n, FILE_ROWS)):
        X, y = draw(min(FILE_ROWS, n - start), number)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=y)
        frame.to_parquet(folder / f"part-{number:04d}.parquet", index=False)
    return sum(file.stat().st_size for file in folder.iterdir())


def fit(folder: Path, settings: str) -> common.Record:
    """The fit from the files."""
    options = SETTINGS[settings]
    model = ConvexSIC(
        lam=options["lam"],
        feature_map=FourierMap(M),
        solver=Alternating(rounds=options.get("rounds", "auto")),
        random_state=0,
    )
    fit_stream(model, folder, "y", round_rows=options.get("round_rows"))
    top = np.argsort(-model.feature_importances_)[: len(RELEVANT)]
    return {
        "found": int(np.isin(top, RELEVANT).sum()),
        "passes": int(model.n_passes_),
        "lam": model.lam_,
        "iterations": model.n_iter_,
    }


def floor(folder: Path, _: str) -> common.Record:
    """Read once; X W', cosines and sines, and their Gram matrix with the linear block."""
    import pyarrow.parquet as parquet

    W = np.random.default_rng(0).standard_normal((M // 2, D)) / np.sqrt(D)
    Z, gram = np.empty((BLOCK, M + D)), np.zeros((M + D, M + D))
    for path in sorted(folder.iterdir()):
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=2**25 // (8 * D)):
                X = np.empty((D, batch.num_rows))
                for j in range(D):
                    X[j] = batch.column(j).to_numpy()
                for start in range(0, batch.num_rows, BLOCK):
                    x = X[:, start : start + BLOCK].T
                    z = Z[: x.shape[0]]
                    phase = x @ W.T
                    np.cos(phase, out=z[:, : M // 2])
                    np.sin(phase, out=z[:, M // 2 : M])
                    z[:, M:] = x
                    gram += z.T @ z
    return {"trace": float(np.trace(gram))}


def read(folder: Path, _: str) -> common.Record:
    """Read once, nothing else."""
    import pyarrow.parquet as parquet

    rows = 0
    for path in sorted(folder.iterdir()):
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=2**25 // (8 * D)):
                rows += batch.num_rows
    return {"rows": rows}


TASKS = {"fit": fit, "floor": floor, "read": read}


def child(task: str, folder: Path, settings: str) -> None:
    """Run a task here; report wall and CPU seconds and the peak of resident memory."""
    import pyarrow.parquet  # noqa: F401  (imports are not timed)

    limit = int(LIMIT_GB * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # beyond, allocations fail
    wall, cpu = time.perf_counter(), time.process_time()
    found = TASKS[task](folder, settings)
    usage = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    print(json.dumps(found | usage | {"peak_gb": peak_memory() / 1e9}))


def peak_memory() -> int:
    """Bytes; from Linux's own account if there is one, as getrusage counts the parent's, too."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (li for li in status.read_text().splitlines() if li.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_child(task: str, folder: Path, settings: str = "") -> common.Record:
    """The same in a process of its own, whose memory can be told."""
    command = [sys.executable, __file__, "--child", task, "--folder", str(folder)]
    done = subprocess.run(
        [*command, "--settings", settings], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def measure(n: int, parent: Path | None) -> list[common.Record]:
    """Write the table, measure all tasks, clean up."""
    folder = Path(tempfile.mkdtemp(prefix="sobolev-scale-", dir=parent))
    need = n * (D + 1) * 8 * 1.2
    try:
        if shutil.disk_usage(folder).free < need:
            raise SystemExit(f"{folder} has no room for {need / 1e9:.1f} GB; use --folder.")
        size = write_table(folder, n) / 1e9
        print(f"wrote {n:,} × {D}, {size:.2f} GB", flush=True)
        in_child("read", folder)  # both sides find the files in the same state
        base = {"rows": n, "columns": D, "m": M, "gb": size, "version": __version__}
        base |= {"read": in_child("read", folder), "floor": in_child("floor", folder)}
        return [
            base | {"name": f"{n} {name}", "settings": name, "fit": in_child("fit", folder, name)}
            for name in SETTINGS
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def ratio(record: common.Record) -> float:
    """CPU seconds: reading ahead in a second thread does not count as a gain."""
    return record["fit"]["cpu_seconds"] / record["floor"]["cpu_seconds"]


def row(record: common.Record) -> list[str]:
    fitted, bare = record["fit"], record["floor"]
    judged = record["settings"] == "one round"
    missed = judged and ratio(record) > MOST
    heavy = fitted["peak_gb"] > LIMIT_GB
    return [
        f"{record['rows']:,} × {record['columns']}, {record['gb']:.2f} GB, m = {record['m']}: "
        f"{record['settings']} (sobolev {record['version']})",
        str(fitted["passes"]),
        f"{fitted['seconds']:.1f} ({fitted['cpu_seconds']:.1f})",
        f"{bare['seconds']:.1f} ({bare['cpu_seconds']:.1f})",
        f"{record['read']['seconds']:.1f}",
        f"**{ratio(record):.2f}**",
        (f"{MOST:g}" if judged else "–") + (" (missed)" if missed else ""),
        f"{fitted['peak_gb']:.2f} GB" + (f" (above {LIMIT_GB:g})" if heavy else ""),
        f"{fitted['found']} of {len(RELEVANT)}",
    ]


def render(records: Sequence[common.Record]) -> str:
    """The section of RESULTS.md."""
    latest = {record["name"]: record for record in records}
    header = [
        "data and settings",
        "passes",
        "fit, s (CPU)",
        "floor, s (CPU)",
        "reading alone, s",
        "ratio of CPU",
        "at most",
        "peak memory",
        "relevant columns on top",
    ]
    return f"""
## Beyond memory

`ConvexSIC` on Parquet files, in a process whose peak of resident memory is measured (imports
included). The floor reads the files once and forms X W', cosines, sines and the Gram matrix with
the linear block, nothing else; both on one BLAS thread. A fit of one round reads twice. The ratio
is of CPU seconds, which other work on the machine hardly changes; private memory is limited to
{LIMIT_GB:g} GB, so that a fit beyond it fails. Regenerate with `python benchmarks/scale.py`.

{common.markdown_table(header, [row(record) for record in latest.values()])}
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Rows beyond memory.")
    parser.add_argument("--rows", type=int, help="rows of the table")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    parser.add_argument("--child", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--settings", default="", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.child:
        child(args.child, args.folder, args.settings)
        return
    output = common.output_folder(args)
    path = output / "results" / "scale.jsonl"
    for record in measure(args.rows or (10**5 if args.quick else 10**7), args.folder):
        common.append_record(path, record)
        print(" | ".join(row(record)), flush=True)
    common.write_section(output / "RESULTS.md", "scale", render(common.read_records(path)))


if __name__ == "__main__":
    main()
