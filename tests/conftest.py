"""One BLAS thread and a backend without screen, whatever was imported before."""

import os

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
