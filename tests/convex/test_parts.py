"""The critic of parts: splines, products, their forms, and what they predict."""

import numpy as np
import pytest

from sobolev import ConvexSIC
from sobolev.convex import LandmarkMap, PartsMap
from sobolev.convex.feature_maps import with_columns
from sobolev.convex.parts import Curves, PartsPart, Splines, natural_splines, place_knots
from sobolev.convex.quadratics import DensePart


def uniform(n):
    return np.full(n, 1 / n)


@pytest.fixture
def columns():
    return np.random.default_rng(0).exponential(size=(200, 3))


@pytest.fixture
def bound():
    """Two pairs among four columns, of which the last is binary, and psi that asks for them."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    X[:, 3] = np.sign(X[:, 3])
    X -= X.mean(axis=0)
    y = X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * np.random.default_rng(2).standard_normal(300)
    psi = (y - y.mean())[:, None] / y.std()
    metric = np.array([1.0, 0.9, 0.8, 0.7])
    metric = np.append(metric, 0.001)
    X = np.column_stack([X, rng.standard_normal(300)])
    X[:, 4] -= X[:, 4].mean()
    made = PartsMap().bind(X, metric, uniform(300), rng, psi)
    return made, X, psi


def test_splines_are_orthonormal_and_orthogonal_to_lines(columns):
    p = np.random.default_rng(2).dirichlet(5 * np.ones(200))
    splines = Splines.fit(columns, p, np.array(place_knots(columns, 6)))
    values, slopes = splines(columns)
    for j in range(3):
        V = values[:, j]
        np.testing.assert_allclose(V.T @ (p[:, None] * V), np.eye(4), atol=1e-8)
        np.testing.assert_allclose(p @ V, 0, atol=1e-8)
        np.testing.assert_allclose(p @ (columns[:, [j]] * V), 0, atol=1e-8)
        S = slopes[:, j]
        np.testing.assert_allclose(
            S.T @ (p[:, None] * S), np.diag(splines.roughness[j]), atol=1e-6, rtol=1e-8
        )
        assert np.all(np.diff(splines.roughness[j]) >= 0)


def test_splines_are_linear_beyond_the_outer_knots_and_smooth_between():
    knots = np.array([[-1.0, -0.2, 0.1, 1.0]])
    for outside in (np.linspace(-5, -1, 9), np.linspace(1, 6, 9)):
        values = natural_splines(outside[:, None], knots)[0][:, 0]
        np.testing.assert_allclose(np.diff(values, 2, axis=0), 0, atol=1e-10)
    x = np.linspace(-2, 2, 101)[:, None]
    up, down = natural_splines(x + 1e-6, knots)[0], natural_splines(x - 1e-6, knots)[0]
    np.testing.assert_allclose((up - down) / 2e-6, natural_splines(x, knots)[1], atol=1e-7)


def test_columns_with_few_values_have_few_functions_or_none():
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [rng.integers(0, 2, 90), rng.integers(0, 3, 90), rng.standard_normal(90)]
    ).astype(float)
    curves = Curves.fit(X, np.arange(3), uniform(90), 6)
    assert [curves.places.get(j) is None for j in range(3)] == [True, False, False]
    assert np.bincount(curves.of, minlength=3).tolist() == [0, 1, 4]


def test_a_value_that_most_rows_share_leaves_distinct_knots():
    x = np.where(np.arange(200) < 180, 0.0, np.arange(200.0))
    (knots,) = place_knots(x[:, None], 6)
    assert knots.size == 6
    assert np.all(np.diff(knots) > 0)


def test_pairs_are_found_by_the_response(bound):
    made, _, _ = bound
    assert {(0, 1), (2, 3)} <= set(made.pairs)
    assert all(4 not in pair for pair in made.pairs)


def test_columns_without_effects_of_their_own_are_paired():
    """A product among 30 columns, beside a line that takes all of the metric."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((300, 30))
    y = 2 * X[:, 0] + X[:, 7] * X[:, 20] + rng.standard_normal(300)
    psi = ((y - y.mean()) / y.std())[:, None]
    metric = np.full(30, 1e-3)
    metric[0] = 1.0
    pairs = PartsMap(pair_columns=10).bind(X, metric, uniform(300), rng, psi).pairs
    assert (7, 20) in pairs
    assert len(pairs) <= 10  # of 435; about four others by chance


def test_without_a_response_there_are_no_pairs(bound):
    _, X, _ = bound
    metric = np.linspace(1, 0.1, 5)
    assert PartsMap().bind(X, metric, uniform(300), np.random.default_rng(0)).pairs == []


def test_a_replaced_column_is_that_of_replaced_rows(bound):
    made, X, _ = bound
    rng = np.random.default_rng(4)
    U = rng.standard_normal((made.n_functions, 2))
    for own in ([0], [2], [3], [4], [1, 3]):
        chosen = np.array(own)
        values = rng.standard_normal((7, chosen.size))
        found = made.replaced(X[:20], made.fixed(X[:20]), chosen, values, U)
        for q, value in enumerate(values):
            wanted = made.nonlinear_values(with_columns(X[:20], chosen, value)) @ U
            np.testing.assert_allclose(found[:, q], wanted, atol=1e-10)


def test_forms_are_those_of_any_map(bound):
    made, X, psi = bound
    p = uniform(300)
    part = made.part(X, psi, p, p)
    plain = DensePart(made.nonlinear_values(X), made.derivatives(X), X, psi, p, p)
    assert isinstance(part, PartsPart)
    weights = np.array([1.0, 0.5, 0.0, 20.0, 3.0])
    np.testing.assert_allclose(part.penalty(weights), plain.penalty(weights), atol=1e-10)
    U = np.random.default_rng(5).standard_normal((made.n_functions, 2))
    np.testing.assert_allclose(
        part.gradient_products(U, 2 * U), plain.gradient_products(U, 2 * U), atol=1e-9
    )


def test_more_columns_than_asked_for_keep_those_of_largest_metric():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 8))
    metric = np.arange(1.0, 9.0)
    made = PartsMap(n_columns=3, n_pairs=0).bind(X, metric, uniform(60), rng)
    assert sorted(made.curves.places) == [5, 6, 7]


@pytest.mark.parametrize("name", ["n_columns", "n_knots", "n_pairs", "pair_columns"])
def test_sizes_are_checked(name):
    with pytest.raises(ValueError, match=name):
        PartsMap(**{name: -1})


def test_an_additive_response_is_predicted_better_than_by_a_kernel():
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (700, 20))
    f = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + X[:, 2] ** 2 - X[:, 3] + X[:, 4] * X[:, 5]
    y = f + 0.5 * rng.standard_normal(700)
    train, test = slice(0, 200), slice(200, None)
    scores = {
        spec: ConvexSIC(feature_map=spec).fit(X[train], y[train]).score(X[test], y[test])
        for spec in (PartsMap(), LandmarkMap())
    }
    assert scores[PartsMap()] > scores[LandmarkMap()] + 0.05
    critic = ConvexSIC(feature_map="parts", n_features_to_select=6).fit(X[train], y[train])
    assert critic.get_support(indices=True).tolist() == [0, 1, 2, 3, 4, 5]
    terms = critic.decomposition_  # the corollary holds for the sum of all parts
    total = terms.gradient + terms.function + terms.norm
    assert 0.5 * terms.mean_difference == pytest.approx(total, rel=1e-2)
