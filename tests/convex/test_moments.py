"""Moments add up: over chunks, over folds, with weights, and they equal sums over rows."""

import numpy as np
import pytest

from sobolev.convex import moments as module
from sobolev.convex.feature_maps import BoundFourierMap
from sobolev.convex.fitting import row_risk
from sobolev.convex.moments import FourierMoments

N, D, H, K = 300, 4, 6, 2
SUMS = ["weight", "heavy_weight", "first", "heavy_first", "second", "response", "response_first"]


@pytest.fixture(params=[True, False], ids=["linear block", "alone"])
def bound(request):
    W = np.random.default_rng(0).normal(size=(H, D))
    return BoundFourierMap(W, linear=request.param)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X, psi = rng.normal(size=(N, D)) + 0.3, rng.normal(size=(N, K))
    return X, psi, rng.exponential(size=N)


def moments_of(bound, *arrays):
    return FourierMoments.empty(bound, K).update(*arrays)


def assert_same(first, second):
    for name in SUMS:
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=1e-10)


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)  # the least chunk, 64 rows


@pytest.mark.parametrize("weighting", ["none", "weights", "signed"])
def test_chunks_add_up_to_sums_over_rows(bound, data, weighting, small_chunks):
    X, psi, w = data
    p = None if weighting == "none" else w
    omega = w * psi[:, 0] * psi[:, 1] if weighting == "signed" else None
    found = moments_of(bound, X, psi, p, omega)
    p = np.ones(N) if p is None else p
    omega = p if omega is None else omega
    z = bound.values(X)
    np.testing.assert_allclose(found.weight, p.sum())
    np.testing.assert_allclose(found.heavy_weight, omega.sum())
    np.testing.assert_allclose(found.first, z.T @ p, atol=1e-10)
    np.testing.assert_allclose(found.heavy_first, z.T @ omega, atol=1e-10)
    np.testing.assert_allclose(found.second, z.T @ (omega[:, None] * z), atol=1e-10)
    np.testing.assert_allclose(found.response, z.T @ (p[:, None] * psi), atol=1e-10)
    np.testing.assert_allclose(found.response_first, psi.T @ p, atol=1e-10)


@pytest.mark.parametrize("size", [1, 1000 * 8, 10**9])
def test_chunk_size_does_not_matter(bound, data, size, monkeypatch):
    X, psi, w = data
    whole = moments_of(bound, X, psi, w)
    monkeypatch.setattr(module, "CHUNK_BYTES", size)
    assert_same(moments_of(bound, X, psi, w), whole)


@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_changes_little(bound, data, weighted):
    X, psi, p = data[:3]
    weights = p if weighted else None
    rough = BoundFourierMap(bound.frequencies, bound.linear, single=True)
    double = FourierMoments.empty(bound, psi.shape[1]).update(X, psi, weights)
    single = FourierMoments.empty(rough, psi.shape[1]).update(X, psi, weights)
    assert single.second.dtype == np.float64
    scale = np.abs(double.second).max()
    gap = np.abs(single.second - double.second).max()
    assert 0 < gap < 1e-5 * scale
    np.testing.assert_allclose(single.response, double.response, atol=1e-4 * scale)


def test_updates_add_up(bound, data):
    X, psi, w = data
    parts = FourierMoments.empty(bound, K)
    for rows in np.array_split(np.arange(N), 7):
        parts.update(X[rows], psi[rows], w[rows])
    assert_same(parts, moments_of(bound, X, psi, w))


def test_merge_and_remove_are_inverse(bound, data):
    X, psi, w = data
    first = moments_of(bound, X[:100], psi[:100], w[:100])
    second = moments_of(bound, X[100:], psi[100:], w[100:])
    whole = moments_of(bound, X, psi, w)
    assert_same(first.merge(second), whole)
    assert_same(whole.remove(first), second)
    assert_same(moments_of(bound, X[:100], psi[:100], w[:100]), first)  # arguments untouched


def test_no_rows_change_nothing(bound, data):
    X, psi, w = data
    whole = moments_of(bound, X, psi, w)
    assert_same(moments_of(bound, X, psi, w).update(X[:0], psi[:0], w[:0]), whole)
    assert_same(whole.merge(FourierMoments.empty(bound, K)), whole)


def test_integer_weights_are_repetitions(bound, data):
    X, psi, _ = data
    w = np.random.default_rng(2).integers(0, 3, size=N)
    assert_same(
        moments_of(bound, X, psi, w.astype(float)),
        moments_of(bound, X.repeat(w, axis=0), psi.repeat(w, axis=0)),
    )


def test_the_scale_of_the_weights_does_not_matter(bound, data):
    X, psi, w = data
    first, second = (moments_of(bound, X, psi, c * w).forms() for c in (1.0, 1e-3))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        first.solve(weights, 0.1, 1.0, 0.01), second.solve(weights, 0.1, 1.0, 0.01), rtol=1e-9
    )


@pytest.mark.parametrize("signed", [False, True], ids=["weights", "signed"])
def test_forms_equal_those_of_centred_rows(bound, data, brute_force, signed):
    """The moments centre z themselves: rows that are not centred give the same forms."""
    X, psi, w = data
    p = w / w.sum()
    psi = psi - p @ psi
    omega = p * psi[:, 0] * psi[:, 1] if signed else p
    forms = moments_of(bound, X, psi, p, omega).forms()
    M, C, D, _ = brute_force(bound, X, psi, p, omega)
    if bound.linear:
        m = bound.n_functions
        np.testing.assert_allclose(forms.mean[:m], (p @ bound.values(X))[:m], atol=1e-12)
    np.testing.assert_allclose(forms.M, M, atol=1e-12)
    np.testing.assert_allclose(forms.covariance_times(np.eye(len(C))), C, atol=1e-12)
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        forms.system(weights, 1.0, 0.0, 0.0), np.tensordot(weights, D, axes=1), atol=1e-7
    )


def test_risk_equals_the_mean_over_rows(bound, data):
    X, psi, w = data
    found = moments_of(bound, X, psi, w)
    center = np.random.default_rng(3).normal(size=found.first.size)
    U = np.random.default_rng(4).normal(size=(found.first.size, K))
    rows = row_risk((bound.values(X) - center) @ U, psi, rho=0.7)
    assert found.risk(U, center, rho=0.7) == pytest.approx(np.average(rows, weights=w), rel=1e-10)


def test_mean_includes_the_linear_block(bound, data):
    X, psi, w = data
    expected = np.average(bound.values(X), weights=w, axis=0)
    np.testing.assert_allclose(moments_of(bound, X, psi, w).mean, expected, atol=1e-12)


def test_memory_does_not_grow_with_the_rows(bound, monkeypatch):
    """One chunk's buffer is all that an update allocates besides the sums."""
    import tracemalloc

    monkeypatch.setattr(module, "CHUNK_BYTES", 2**16)
    rng = np.random.default_rng(0)
    peaks = []
    for n in (5_000, 40_000):
        X, psi = rng.normal(size=(n, D)), rng.normal(size=(n, K))
        tracemalloc.start()
        moments_of(bound, X, psi)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 10_000
