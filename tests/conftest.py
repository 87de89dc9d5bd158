"""One BLAS thread and a backend without screen, whatever was imported before."""

import importlib
import os
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """The variables above come too late when a plugin has loaded numpy already."""
    import scipy.linalg  # noqa: F401

    with threadpool_limits(1):
        yield


@pytest.fixture
def load(monkeypatch):
    """Import a script as ``python benchmarks/script.py`` would find it."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent / "benchmarks"))
    return importlib.import_module
