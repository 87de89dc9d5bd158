"""Explanations of the kernel critic: contributions of the features that add up to the witness."""

import numpy as np
import pytest

from sobolev import ConvexSIC
from sobolev.convex.feature_maps import FourierMap, LandmarkMap, LinearMap, PolynomialMap


class Sines:
    """A map of a user's own."""

    def values(self, X):
        return np.sin(X)

    def derivative(self, X, j):
        out = np.zeros_like(X)
        out[:, j] = np.cos(X[:, j])
        return out


MAPS = ["landmark", "fourier", "linear", "polynomial", Sines()]


def draw(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("feature_map", MAPS, ids=lambda m: m if isinstance(m, str) else "own")
def test_contributions_add_up_to_the_witness(feature_map):
    X, y = draw()
    sic = ConvexSIC(feature_map=feature_map, lam=0.01, random_state=0).fit(X, y)
    found = sic.explain(X, y)
    assert found.features.shape == X.shape
    np.testing.assert_allclose(found.witness, sic.witness(X, y), atol=1e-10)


@pytest.mark.parametrize("feature_map", MAPS, ids=lambda m: m if isinstance(m, str) else "own")
def test_base_is_the_witness_of_the_mean_row(feature_map):
    X, y = draw()
    sic = ConvexSIC(feature_map=feature_map, lam=0.01, random_state=0).fit(X, y)
    mean = np.repeat(X.mean(axis=0)[None], y.size, axis=0)
    np.testing.assert_allclose(sic.explain(X, y).base, sic.witness(mean, y), atol=1e-6)


def test_a_linear_critic_contributes_coefficient_times_column():
    X, y = draw()
    sic = ConvexSIC(feature_map="linear", lam=0.001).fit(X, y)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    psi = (y - y.mean()) / y.std()
    np.testing.assert_allclose(
        sic.explain(X, y).features, z * sic.critic_.U[:, 0] * psi[:, None], atol=1e-10
    )


def test_the_relevant_feature_contributes_most():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 4))
    y = np.sin(2 * X[:, 3])
    size = np.abs(ConvexSIC().fit(X, y).explain(X, y).features).mean(axis=0)
    assert size.argmax() == 3
    assert size[3] > 5 * np.delete(size, 3).max()


def test_constant_columns_contribute_nothing():
    X, y = draw()
    X[:, 4] = 1.0
    with pytest.warns(UserWarning, match="constant"):
        sic = ConvexSIC(lam=0.01).fit(X, y)
    found = sic.explain(X, y)
    assert np.all(found.features[:, 4] == 0)
    np.testing.assert_allclose(found.witness, sic.witness(X, y), atol=1e-10)


@pytest.mark.parametrize(
    "spec",
    [
        LandmarkMap(),
        LandmarkMap(kernel="cauchy", linear=False),
        FourierMap(n_components=20),
        LinearMap(),
        PolynomialMap(),
    ],
    ids=lambda spec: type(spec).__name__,
)
def test_gradient_of_a_map_agrees_with_differences(spec):
    rng = np.random.default_rng(0)
    X, _ = draw(n=30)
    bound = spec.bind(X, np.ones(5), np.full(30, 1 / 30), np.random.default_rng(0))
    coefficients = rng.standard_normal((30, bound.values(X).shape[1]))
    gradient = bound.gradient(X, coefficients)
    for j in range(5):
        step = np.zeros(5)
        step[j] = 1e-5
        difference = bound.values(X + step) - bound.values(X - step)
        expected = np.sum(difference * coefficients, axis=1) / 2e-5
        np.testing.assert_allclose(gradient[:, j], expected, rtol=1e-6, atol=1e-6)


def test_many_rows_are_explained_in_chunks(monkeypatch):
    X, y = draw()
    sic = ConvexSIC(lam=0.01).fit(X, y)
    whole = sic.explain(X, y).features
    monkeypatch.setattr("sobolev.convex.fitting.EXPLAIN_ROWS", 7)
    np.testing.assert_allclose(sic.explain(X, y).features, whole, atol=1e-10)
