"""A fit to more rows than memory should hold, beside reading the file and the bare products.

Writes Parquet files to a temporary folder (that of ``TMPDIR``), fits ConvexSIC to them in a process
of its own and forms, in another, what any such fit must form: the matrix, its cosines and sines,
their Gram matrix.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.benchmarks.growth import draw
from reproduction.child import in_child, limit
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table

NAME = "scale"
ROWS, QUICK_ROWS = 10**7, 10**5
D, M = 50, 256
RELEVANT = (0, 1, 2, 3, 4)
FILE_ROWS = 1_000_000
BLOCK = 2048
LIMIT_GB = 2.0
MOST = 2.0
SETTINGS: dict[str, dict[str, Any]] = {
    "one round": {"lam": 0.03, "recursions": 1},
    "lam chosen, rounds on a sample": {"lam": "auto"},
}
STREAM: dict[str, dict[str, Any]] = {"lam chosen, rounds on a sample": {"round_rows": 20_000}}


def write_table(folder: Path, n: int) -> int:
    """Files of up to a million rows, as pandas writes them; returns their size."""
    import pandas as pd

    for number, start in enumerate(range(0, n, FILE_ROWS)):
        X, y = draw(min(FILE_ROWS, n - start), D, number)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=y)
        frame.to_parquet(folder / f"part-{number:04d}.parquet", index=False)
    return sum(file.stat().st_size for file in folder.iterdir())


def fit(folder: Path, settings: str) -> Record:
    """The fit from the files."""
    options = {"feature_map": "fourier", "n_components": M, "random_state": 0}
    model = methods.convex_sic(**options, **SETTINGS[settings])
    model = methods.fit_stream(model, str(folder), "y", **STREAM.get(settings, {}))
    top = np.argsort(-model.feature_importances_)[: len(RELEVANT)]
    return {
        "found": int(np.isin(top, RELEVANT).sum()),
        "passes": int(model.n_passes_),
        "lam": model.lam_,
        "iterations": model.n_iter_,
    }


def floor(folder: Path, _: str) -> Record:
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


def read(folder: Path, _: str) -> Record:
    """Read once, nothing else."""
    import pyarrow.parquet as parquet

    rows = 0
    for path in sorted(folder.iterdir()):
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=2**25 // (8 * D)):
                rows += batch.num_rows
    return {"rows": rows}


STEPS = {"fit": fit, "floor": floor, "read": read}


def timed(step: str, folder: str, settings: str) -> Record:
    """Run a step here; report wall and CPU seconds."""
    import pyarrow.parquet  # noqa: F401  (imports are not timed)

    limit(LIMIT_GB)
    wall, cpu = time.perf_counter(), time.process_time()
    found = STEPS[step](Path(folder), settings)
    return found | {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }


def apart(step: str, folder: Path, settings: str = "") -> Record:
    """The same in a process of its own, whose memory can be told."""
    found = in_child(timed, step, str(folder), settings)
    if "error" in found:
        raise RuntimeError(f"{step}: {found['error']}")
    return found | {"peak_gb": found.pop("peak") / 1e9}


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One table."""
    return [Task(NAME, {"rows": QUICK_ROWS if quick else ROWS, "columns": D, "m": M}, 0)]


def measure(settings: Settings, seed: int) -> Record:
    """Write the table, measure all steps, clean up."""
    n = settings["rows"]
    folder = Path(tempfile.mkdtemp(prefix="sobolev-scale-"))
    need = n * (D + 1) * 8 * 1.2
    try:
        if shutil.disk_usage(folder).free < need:
            raise RuntimeError(f"{folder} has no room for {need / 1e9:.1f} GB; set TMPDIR.")
        size = write_table(folder, n) / 1e9
        apart("read", folder)  # both sides find the files in the same state
        return {
            "gb": size,
            "read": apart("read", folder),
            "floor": apart("floor", folder),
            "fits": {name: apart("fit", folder, name) for name in SETTINGS},
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lines(row: Record) -> list[list[str]]:
    """A line of the table for each fit of a record."""
    return [line(row, name, fitted) for name, fitted in row["fits"].items()]


def line(row: Record, name: str, fitted: Record) -> list[str]:
    """A fit beside the floor; CPU seconds, as reading ahead in a thread is no gain."""
    bare = row["floor"]
    ratio = fitted["cpu_seconds"] / bare["cpu_seconds"]
    judged = name == "one round"
    missed = judged and ratio > MOST
    heavy = fitted["peak_gb"] > LIMIT_GB
    return [
        f"{row['rows']:,} × {row['columns']}, {row['gb']:.2f} GB, m = {row['m']}: "
        f"{name} (sobolev {row['version']})",
        str(fitted["passes"]),
        f"{fitted['seconds']:.1f} ({fitted['cpu_seconds']:.1f})",
        f"{bare['seconds']:.1f} ({bare['cpu_seconds']:.1f})",
        f"{row['read']['seconds']:.1f}",
        f"**{ratio:.2f}**",
        (f"{MOST:g}" if judged else "–") + (" (missed)" if missed else ""),
        f"{fitted['peak_gb']:.2f} GB" + (f" (above {LIMIT_GB:g})" if heavy else ""),
        f"{fitted['found']} of {len(RELEVANT)}",
    ]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
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
{LIMIT_GB:g} GB, so that a fit beyond it fails. Regenerate with `python -m reproduction scale`.

{markdown_table(header, [each for row in rows for each in lines(row)])}
"""
