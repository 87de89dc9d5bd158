import numpy as np
import pandas as pd
import pytest

from sobolev.inference.planting import (
    KINDS,
    RATIOS,
    permute,
    plant,
    signal_to_noise_of,
    with_values_of,
)


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((300, 10))


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_follows_its_active_columns_only(X, kind):
    """Rows that agree in the active columns differ by the noise alone."""
    planted = plant(X, kind, np.random.default_rng(1), n_active=3)
    assert planted.active.size == (0 if kind == "noise" else 3)
    changed = X.copy()
    others = np.setdiff1d(np.arange(10), planted.active)
    changed[:, others] = np.random.default_rng(2).standard_normal((300, others.size))
    again = plant(changed, kind, np.random.default_rng(1), n_active=3)
    np.testing.assert_allclose(again.y, planted.y)


def test_a_permuted_response_keeps_its_values(X):
    labels = np.array(["a", "b", "c"] * 100)
    planted = permute(labels, np.random.default_rng(0))
    assert planted.kind == "permuted"
    assert planted.active.size == 0
    assert sorted(planted.y) == sorted(labels)
    assert (planted.y != labels).any()
    both = pd.DataFrame({"u": X[:, 0], "v": labels})
    rows = permute(both, np.random.default_rng(0)).y
    assert set(zip(rows["u"], rows["v"], strict=True)) == set(
        zip(both["u"], both["v"], strict=True)
    )


def test_the_values_of_a_real_response_keep_the_planted_order(X):
    planted = plant(X, "additive", np.random.default_rng(1))
    heavy = np.random.default_rng(2).standard_cauchy(300)
    taken = with_values_of(planted, heavy)
    assert sorted(taken.y) == sorted(heavy)
    assert (np.argsort(taken.y) == np.argsort(planted.y)).all()
    classes = with_values_of(planted, np.repeat(["low", "high"], [200, 100])).y
    assert (classes == "low").sum() == 200


def test_the_ratio_follows_the_signal(X):
    """The response without a signal has the smallest ratio, one without noise the largest."""
    rng = np.random.default_rng(0)
    assert signal_to_noise_of(X, rng.standard_normal(300), rng) == RATIOS[0]
    assert signal_to_noise_of(X, X[:, 0] + X[:, 1], rng) == RATIOS[-1]
    assert signal_to_noise_of(X, np.where(X[:, 0] > 0, "a", "b"), rng) == RATIOS[-1]
