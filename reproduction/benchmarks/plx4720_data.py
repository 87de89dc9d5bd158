"""The plx4720 data with all columns, and the memory of a fit to them.

They join features of GDSC to the CCLE response (Amax): the nearest real substitute for the CCLE
matrix of the paper, which is no longer distributed, and not that matrix.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.child import in_child
from reproduction.engine import Record

FILE = "plx4720/plx4720_ccle_response_gdsc_features.npz"
TARGET = "BRAF_mut"


def load(n_features: int | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """X, Amax and the position of the BRAF mutation, in all columns or the last and it."""
    path = Path(os.environ.get("SOBOLEV_DATA_HOME", "data")) / FILE
    with np.load(path) as file:
        X, y, names = file["X"].astype(float), file["Amax"], file["features"]
    braf = int(np.flatnonzero(names == TARGET)[0])
    kept = np.arange(names.size)
    if n_features is not None:
        kept = np.union1d(kept[-n_features + 1 :], [braf])
    return X[:, kept], y, int(np.searchsorted(kept, braf))


def rank_of(estimator: Any, column: int) -> int:
    """The rank of a column by importance, from one."""
    scores = estimator.feature_importances_
    return 1 + int(np.sum(scores > scores[column]))


def fit_memory(n_features: int | None, estimator: str, options: dict[str, Any]) -> int:
    """Peak memory in bytes of a process that loads the data and fits, imports included."""
    return int(in_child(fit, n_features, estimator, options)["peak"])


def fit(n_features: int | None, estimator: str, options: dict[str, Any]) -> Record:
    """Fit ConvexSIC or NeuralSIC to the data."""
    make = methods.convex_sic if estimator == "ConvexSIC" else methods.neural_sic
    X, y, _ = load(n_features)
    make(random_state=0, **options).fit(X, y)
    return {}
