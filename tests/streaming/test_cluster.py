"""Dask: moments where the chunks live, merged in a tree, and workers that die."""

import logging
import os
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC
from sobolev.convex import Alternating, FourierMap
from sobolev.streaming import fit_stream

pytest.importorskip("distributed", reason="the cluster needs dask[distributed]")
da = pytest.importorskip("dask.array", reason="the cluster needs dask")
dd = pytest.importorskip("dask.dataframe", reason="the cluster needs dask and pyarrow")

FAST = {
    "lam": 0.03,
    "feature_map": FourierMap(32),
    "solver": Alternating(rounds=2),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def client():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def whole(rows):
    return ConvexSIC(**FAST).fit(*rows)


def as_dask(X, y, size=700):
    return da.from_array(X, chunks=(size, 2)), da.from_array(y, chunks=1000)


def test_arrays_and_dataframes(rows, weights, frame, whole, same):
    """In this process, on threads: what the cluster runs is the same graph."""
    X, y = as_dask(*rows)
    found = fit_stream(ConvexSIC(**FAST), X, y)
    same(found, whole, *rows)
    assert found.n_passes_ == 3
    table = dd.from_pandas(frame, npartitions=5)
    found = fit_stream(ConvexSIC(**FAST), table, "y")
    named = ConvexSIC(**FAST).fit(frame[list("abcde")], frame["y"])
    same(found, named, frame[list("abcde")], frame["y"])
    assert list(found.feature_names_in_) == list("abcde")
    assert found.n_passes_ == 4  # Dask does not know the lengths of partitions
    found = fit_stream(ConvexSIC(**FAST), table[list("abcde")], table["y"])
    same(found, named, frame[list("abcde")], frame["y"])
    heavy = ConvexSIC(**FAST).fit(rows[0], rows[1], weights)
    same(fit_stream(ConvexSIC(**FAST), X, y, da.from_array(weights, chunks=999)), heavy, *rows)
    table = dd.from_pandas(frame.assign(w=weights), npartitions=3)
    found = fit_stream(ConvexSIC(**FAST), table, "y", "w")
    np.testing.assert_allclose(found.feature_importances_, heavy.feature_importances_, atol=1e-8)


def test_empty_partitions_and_several_responses(rows, frame, same):
    table = dd.from_pandas(frame.assign(z=frame["a"] + frame["y"]), npartitions=12)
    table = table[table["y"] > table["y"].min()]  # lengths unknown
    empty = table[table["a"] > 1e9]
    table = dd.concat([table, empty])
    found = fit_stream(ConvexSIC(**FAST | {"lam": "auto"}, cv=2), table, ["y", "z"])
    kept = frame[frame["y"] > frame["y"].min()]
    Y = pd.DataFrame({"y": kept["y"], "z": kept["a"] + kept["y"]})
    from sobolev.streaming.stream import fold_rows

    folds = fold_rows(0, len(kept), 2)
    expected = ConvexSIC(**FAST | {"lam": "auto"}, cv=list(zip(folds[::-1], folds, strict=True)))
    same(found, expected.fit(kept[list("abcde")], Y), kept[list("abcde")], Y)


def test_errors(rows, frame):
    X, y = as_dask(*rows)
    table = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="there is no column 'Y'; did you mean 'y'"):
        fit_stream(ConvexSIC(**FAST), table, "Y")
    with pytest.raises(TypeError, match="y must be a dask collection"):
        fit_stream(ConvexSIC(**FAST), X, rows[1])
    with pytest.raises(ValueError, match="numbers of rows"):
        fit_stream(ConvexSIC(**FAST), X, y[:100])
    with pytest.raises(ValueError, match="y is None"):
        fit_stream(ConvexSIC(**FAST), X)
    holes = rows[0].copy()
    holes[4321, 2] = np.nan
    with pytest.raises(ValueError, match=r"chunk 4: .*NaN.*column 2"):
        fit_stream(
            ConvexSIC(**FAST), da.from_array(holes, chunks=(1000, 5)), da.from_array(rows[1])
        )
    with pytest.raises(ValueError, match=r"chunk \d: .*not numbers: 'c'"):
        fit_stream(ConvexSIC(**FAST), dd.from_pandas(frame.assign(c="red"), npartitions=2), "y")


def test_a_worker_is_killed_during_the_fit(client, rows, whole, same):
    """The chunks that it held are made again, and the sums are the same to the last bit."""

    def slow(block):
        time.sleep(0.05)
        return block

    X, y = as_dask(*rows, size=500)
    X = X.map_blocks(slow, dtype=float, meta=np.empty((0, 0)))
    undisturbed = fit_stream(ConvexSIC(**FAST), X, y)
    same(undisturbed, whole, *rows)

    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    seen = []

    def kill():
        """As soon as some tasks of the fit are done."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if len(client.cluster.scheduler.tasks) > 10:
                time.sleep(0.3)
                os.kill(victim, signal.SIGKILL)
                seen.append(time.monotonic())
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill)
    killer.start()
    disturbed = fit_stream(ConvexSIC(**FAST), X, y)
    finished = time.monotonic()
    killer.join()
    assert seen, "no worker was killed"
    assert seen[0] < finished, "the fit was over before the worker was killed"
    client.wait_for_workers(2, timeout=20)
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(disturbed.feature_importances_, undisturbed.feature_importances_)
    np.testing.assert_array_equal(disturbed.critic_.U, undisturbed.critic_.U)


def test_joblib_sends_folds_to_the_cluster(client, rows):
    X, y = rows[0][:200], rows[1][:200]
    here = ConvexSIC(cv=3, random_state=0).fit(X, y)
    before = client.cluster.scheduler.transition_counter
    with joblib.parallel_config(backend="dask", n_jobs=2):
        there = ConvexSIC(cv=3, random_state=0).fit(X, y)
    assert client.cluster.scheduler.transition_counter > before
    np.testing.assert_allclose(there.lam_risks_, here.lam_risks_, atol=1e-9)
    np.testing.assert_allclose(there.feature_importances_, here.feature_importances_, atol=1e-9)
