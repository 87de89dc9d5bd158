"""The plx4720 data and the memory of a fit on them.

They join features of GDSC to the CCLE response (Amax): the nearest real substitute for the CCLE
matrix of the paper, which is no longer distributed, and not that matrix.

    python benchmarks/_plx4720.py N_FEATURES ESTIMATOR PARAMETERS

fits an estimator with parameters given as JSON in a process of its own and prints its peak resident
memory in bytes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import _common as common
import numpy as np

PATH = common.DATA_HOME / "plx4720" / "plx4720_ccle_response_gdsc_features.npz"
TARGET = "BRAF_mut"


def load(n_features: int | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """X, Amax and the position of the BRAF mutation, in all columns or the last and it."""
    with np.load(PATH) as file:
        X, y, names = file["X"].astype(float), file["Amax"], file["features"]
    braf = int(np.flatnonzero(names == TARGET)[0])
    kept = np.arange(names.size)
    if n_features is not None:
        kept = np.union1d(kept[-n_features + 1 :], [braf])
    return X[:, kept], y, int(np.searchsorted(kept, braf))


def peak_memory(
    n_features: int | None, estimator: str = "ConvexSIC", parameters: dict[str, Any] | None = None
) -> int:
    """Bytes of a process that loads the data and fits, imports included.

    Linux hands the peak of the caller down, so this is an upper bound.
    """
    arguments = [str(n_features or ""), estimator, json.dumps(parameters or {})]
    command = [sys.executable, __file__, *arguments]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    import sobolev

    n_features, estimator, parameters = sys.argv[1:]
    X, y, _ = load(int(n_features) if n_features else None)
    options = json.loads(parameters)
    if estimator == "NeuralSIC":
        options = {"optimizer": sobolev.neural.Optimizer(**options)}
    getattr(sobolev, estimator)(random_state=0, **options).fit(X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak if sys.platform == "darwin" else 1024 * peak)


if __name__ == "__main__":
    main()
