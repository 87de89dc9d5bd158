"""The same seed gives the same selection: on threads, in processes, under Dask, across versions.

``python tests/test_determinism.py`` prints the numbers of the installed versions as JSON;
``--store`` writes them to tests/data/selections.json, with which the last test compares.
"""

import json
import logging
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC
from sobolev.datasets import make_sinexp

STORED = Path(__file__).resolve().parent / "data" / "selections.json"
# Largest difference of importances (absolute) and of p-values and W (relative) between supported
# versions. Measured on Linux, x86-64, between the lowest versions (numpy 2.0.0, scipy 1.13.0),
# those of constraints.txt and the newest (numpy 2.5.4, scipy 1.18.1): 3e-12 and 3e-9. Other
# systems and processors were not measured.
ACROSS_IMPORTANCES, ACROSS_EVIDENCE = 1e-9, 1e-6
# The training of a network amplifies the last bits in which kernels of BLAS differ: 4.5e-4 among
# those that OpenBLAS has for Sandybridge, Haswell, SkylakeX and Zen processors.
ACROSS_NETWORKS = 5e-3


def data():
    return make_sinexp(n_samples=250, n_features=10, random_state=0, return_X_y=True)


def linear():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    return X, X[:, :12].sum(axis=1) + rng.standard_normal(200)


def convex(n_jobs=None):
    return ConvexSIC(random_state=0, n_jobs=n_jobs).fit(*data())


def fourier(n_jobs=None):
    return ConvexSIC(feature_map="fourier", cv=3, random_state=0, n_jobs=n_jobs).fit(*data())


def neural(n_jobs=None):
    return NeuralSIC(boosting=2, random_state=0, n_jobs=n_jobs).fit(*data())


def hrt(n_jobs=None):
    return HRTSelector(n_repeats=2, random_state=0, n_jobs=n_jobs).fit(*data())


def knockoffs(n_jobs=None):
    return KnockoffSelector(n_draws=2, fdr=0.2, random_state=0, n_jobs=n_jobs).fit(*linear())


FITS = {"convex": convex, "fourier": fourier, "neural": neural, "hrt": hrt, "knockoffs": knockoffs}


def numbers(selector):
    """Selection, importances and evidence of a fitted selector."""
    evidence = getattr(selector, "pvalues_", getattr(selector, "draws_", np.zeros(0)))
    return {
        "selected": selector.get_support(indices=True).tolist(),
        "importances": selector.feature_importances_.tolist(),
        "evidence": np.nan_to_num(evidence).ravel().tolist(),
    }


def assert_same(found, expected, importances, evidence):
    assert found["selected"] == expected["selected"]
    np.testing.assert_allclose(
        found["importances"], expected["importances"], rtol=0, atol=importances
    )
    np.testing.assert_allclose(found["evidence"], expected["evidence"], rtol=evidence, atol=1e-12)


@pytest.fixture(scope="module")
def alone():
    """The numbers on one thread, each found once."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = numbers(FITS[name]())
        return found[name]

    return of


@pytest.mark.parametrize("name", FITS)
def test_two_jobs_give_what_one_gives(name, alone):
    assert_same(numbers(FITS[name](n_jobs=2)), alone(name), 1e-12, 1e-9)


@pytest.mark.parametrize("name", FITS)
def test_two_blas_threads_give_what_one_gives(name, alone):
    with threadpool_limits(2, user_api="blas"):
        found = numbers(FITS[name]())
    assert_same(found, alone(name), 1e-9, 1e-6)


def test_a_new_process_gives_the_same(alone):
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for name in FITS:
        assert_same(found[name], alone(name), 1e-9, 1e-6)


@pytest.mark.parametrize("name", ["hrt", "knockoffs"])
def test_workers_of_dask_give_the_same(name, alone):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        found = numbers(FITS[name](n_jobs=2))
    assert_same(found, alone(name), 1e-9, 1e-6)


@pytest.mark.parametrize("name", FITS)
def test_supported_versions_give_the_same(name, alone):
    """The stored numbers come from the versions of constraints.txt."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    importances = ACROSS_NETWORKS if name == "neural" else ACROSS_IMPORTANCES
    assert_same(alone(name), stored[name], importances, ACROSS_EVIDENCE)


if __name__ == "__main__":
    text = json.dumps({name: numbers(fit()) for name, fit in FITS.items()}, indent=1)
    if "--store" in sys.argv:
        STORED.write_text(text + "\n", encoding="utf-8")
    print(text)
