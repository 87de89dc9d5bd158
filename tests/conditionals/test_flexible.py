"""Held-out predictions of any shape, and conditional models that are corrected by them."""

import numpy as np
import pandas as pd
import pytest

from sobolev import HRTSelector, hrt_test
from sobolev.conditionals import MixedConditional
from sobolev.conditionals.derived import CorrectedConditional
from sobolev.conditionals.flexible import HeldOut, kernel
from sobolev.inference.schemes import Robust


class OneLook(Robust):
    """Robust p-values without the second look."""

    looks_twice = False


def explained(y, predicted):
    return 1 - np.mean((y - predicted) ** 2) / np.var(y)


SIGNALS = {
    "product": lambda Z: Z[:, 0] * Z[:, 1],
    "wave": lambda Z: np.sin(4 * Z[:, 2]),
    "step": lambda Z: np.where(Z[:, 3] > 0.5, 1.0, -0.5),
    "line": lambda Z: Z @ np.full(Z.shape[1], 0.3),
    "exclusive or": lambda Z: np.sign(Z[:, 0]) * np.sign(Z[:, 1]),
}


@pytest.mark.parametrize("shape", SIGNALS)
@pytest.mark.parametrize("d", [8, 90])
def test_every_shape_is_found(shape, d):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, d))
    signal = SIGNALS[shape](Z)
    signal = (signal - signal.mean()) / signal.std()
    y = signal + 0.5 * rng.standard_normal(500)
    assert explained(y, HeldOut(Z).mean(y[:, None])[:, 0]) > 0.35  # at most 0.8


def test_noise_is_rarely_predicted():
    """The best of twelve predictions must be better by 2.5 standard errors."""
    found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        predicted = HeldOut(rng.standard_normal((200, 6))).mean(rng.standard_normal((200, 1)))
        found += predicted.any()
        assert np.mean(predicted**2) < 0.15
    assert found <= 6


def test_predictions_are_held_out():
    """A row does not take part in its own prediction."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((300, 4))
    y = np.sin(3 * Z[:, :1]) + 0.3 * rng.standard_normal((300, 1))
    other = y.copy()
    other[7] += 0.5
    moved = HeldOut(Z).mean(other) - HeldOut(Z).mean(y)
    assert abs(moved[7, 0]) < 0.02
    assert np.abs(moved).max() > 0


def test_rows_of_a_group_do_not_predict_each_other():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), 10)
    Z = rng.standard_normal((40, 3))[groups] + 1e-3 * rng.standard_normal((400, 3))
    y = rng.standard_normal((40, 1))[groups]  # one number for each group
    assert explained(y, HeldOut(Z).mean(y)) > 0.5
    assert not HeldOut(Z, groups).mean(y).any()


def test_spread_follows_a_column():
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((800, 3))
    size = np.where(Z[:, 0] > 0, 3.0, 1.0)
    held_out = HeldOut(Z)
    y = (size * rng.standard_normal(800))[:, None]
    spread = held_out.spread(y - held_out.mean(y))[:, 0]
    assert spread[Z[:, 0] > 0.2].mean() > 1.5 * spread[Z[:, 0] < -0.2].mean()
    even = rng.standard_normal((800, 1))
    assert np.ptp(held_out.spread(even - held_out.mean(even))) == 0.0


def test_kernel_features_have_the_kernel_as_products():
    Z = np.random.default_rng(4).standard_normal((60, 2))
    features = kernel(Z, 1.0)
    squares = ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(features @ features.T, np.exp(-squares / 4), atol=1e-4)


def test_a_category_gets_other_probabilities():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((500, 3))
    grade = np.digitize(np.abs(x[:, 0]) + 0.2 * x[:, 1], [0.5, 1.0])
    X = np.column_stack([x, np.eye(3)[grade]])
    unit, rows = np.array([3, 4, 5]), np.arange(500)
    model = MixedConditional().fit(X)
    corrected = CorrectedConditional(model, X)

    def likelihood(conditional):
        nodes, weights = conditional.joint_distribution(X, unit, rows)
        hit = (nodes == X[:, None, 3:]).all(axis=2)
        np.testing.assert_allclose(weights.sum(axis=1), 1.0)
        return np.log(weights[hit]).mean()

    assert likelihood(corrected) > likelihood(model) + 0.2


def test_values_stay_in_the_range_of_the_column():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((400, 3))
    x[:, 2] = np.exp(x[:, 0] * x[:, 1] + 0.3 * x[:, 2])
    nodes, _ = CorrectedConditional(MixedConditional().fit(x), x).distribution(x, 2, np.arange(400))
    assert nodes.min() >= x[:, 2].min()
    assert nodes.max() <= x[:, 2].max()


def test_a_column_that_is_constant_in_the_rows_that_count_stays_finite():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((300, 3))
    rows = np.arange(300) < 150
    x[rows, 2] = 0.5
    corrected = CorrectedConditional(MixedConditional().fit(x), x, rows)
    nodes, weights = corrected.distribution(x, 2, np.arange(300))
    assert np.isfinite(nodes).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_a_column_that_others_determine_stays_finite():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((300, 3))
    x[:, 2] = x[:, 0]
    nodes, _ = CorrectedConditional(MixedConditional().fit(x), x).distribution(x, 2, np.arange(300))
    assert np.isfinite(nodes).all()


def table(seed, n=400):
    """A response to a product; x2 is the product with noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 8))).add_prefix("x")
    product = X["x0"] * X["x1"]
    X["x2"] = product + 0.7 * X["x2"]
    return X, 1.5 * product + X["x0"] + rng.standard_normal(n)


def test_the_second_look_leaves_out_what_the_first_model_misses():
    n_first = n_second = true = 0
    for seed in range(6):
        X, y = table(seed)
        first = HRTSelector(pvalue=OneLook(), random_state=seed).fit(X, y)
        second = HRTSelector(random_state=seed).fit(X, y)
        n_first += "x2" in first.get_feature_names_out()
        n_second += "x2" in second.get_feature_names_out()
        true += {"x0", "x1"} <= set(second.get_feature_names_out())
        lost = set(first.get_feature_names_out()) - set(second.get_feature_names_out())
        rose = {f"x{j}" for j in np.flatnonzero(second.pvalues_ > first.pvalues_)}
        assert set(second.left_out_) == lost & rose
        assert (second.pvalues_ >= first.pvalues_).all()
        assert not first.left_out_
    assert n_first >= 4
    assert n_second <= 2
    assert true == 6


def test_a_single_test_looks_twice(monkeypatch):
    X, y = table(3)
    second = hrt_test(X, y, "x2", random_state=0).pvalue
    assert hrt_test(X, y, "x0", random_state=0).pvalue < 0.01
    monkeypatch.setattr(Robust, "looks_twice", False)
    assert hrt_test(X, y, "x2", random_state=0).pvalue < 0.05 < second
