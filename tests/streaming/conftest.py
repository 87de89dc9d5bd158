"""A table too long for the in-memory map, and critics that are compared."""

import numpy as np
import pandas as pd
import pytest

N, D = 6203, 5


@pytest.fixture(scope="session")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) * [1.0, 10.0, 0.1, 1.0, 3.0] + [0.0, 50.0, 1.0, -1.0, 0.0]
    X[:, 3] = rng.integers(0, 3, size=N)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1] * (X[:, 3] - 1) + 0.3 * rng.standard_normal(N)
    return X, y


@pytest.fixture(scope="session")
def weights():
    w = np.random.default_rng(1).integers(0, 9, size=N).astype(float)
    assert (w == 0).any()
    assert (w > 0).sum() > 5000  # beyond what is put together in memory
    return w


@pytest.fixture(scope="session")
def frame(rows):
    X, y = rows
    return pd.DataFrame(X, columns=list("abcde")).assign(y=y)


@pytest.fixture(scope="session")
def cut():
    """Chunks of the given sizes, the last of what remains."""

    def chunks(X, y, sizes, weight=None):
        ends = np.minimum(np.cumsum([*sizes, N]), N)
        pieces = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        if weight is None:
            return [(X[p], y[p]) for p in pieces]
        return [(X[p], y[p], weight[p]) for p in pieces]

    return chunks


@pytest.fixture(scope="session")
def same():
    """Two fits agree in all that they report."""

    def check(first, second, X, y, tol=1e-8):
        for name in ("feature_importances_", "sic_", "lam_", "n_rounds_", "objective_curve_"):
            np.testing.assert_allclose(getattr(first, name), getattr(second, name), atol=tol)
        np.testing.assert_allclose(first.risk(X, y), second.risk(X, y), atol=tol)
        np.testing.assert_array_equal(first.support_, second.support_)

    return check
