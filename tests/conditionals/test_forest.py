"""The forest distribution, the choice by fit, and models made from fitted ones."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sobolev.conditionals import AutoConditional, ForestConditional, MixedConditional
from sobolev.conditionals.choice import resolve_conditional
from sobolev.conditionals.derived import CorrectedConditional, TabulatedConditional
from sobolev.conditionals.forest import weighted_quantiles


def curved(n=400, seed=0):
    """A column that is a curve of another with a size that grows, and a binary one."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 4))
    x[:, 1] = x[:, 0] ** 2 + 0.1 * (1 + np.abs(x[:, 0])) * rng.standard_normal(n)
    x[:, 2] = (x[:, 0] + rng.standard_normal(n)) > 0
    return x


def mean(nodes, weights):
    return np.sum(nodes * weights, axis=1)


def test_the_distribution_follows_the_curve_and_never_leaves_the_values():
    X = curved()
    model = ForestConditional().fit(X)
    nodes, weights = model.grid(X, 1, np.arange(len(X)))
    assert nodes.shape == (400, 100)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert np.isin(nodes, X[:, 1]).all()
    found = np.corrcoef(mean(nodes, weights), X[:, 0] ** 2)[0, 1]
    assert found > 0.9
    assert abs(np.corrcoef(mean(*MixedConditional().fit(X).grid(X, 1)), X[:, 0] ** 2)[0, 1]) < 0.5


def test_few_values_get_probabilities():
    X = curved()
    nodes, weights = ForestConditional().fit(X).grid(X, 2, np.arange(len(X)))
    np.testing.assert_array_equal(nodes[0], [0.0, 1.0])
    high = X[:, 0] > 1
    low = X[:, 0] < -1
    assert weights[high, 1].mean() > 0.7 > 0.3 > weights[low, 1].mean()
    assert weights.min() > 0


def test_fitted_rows_are_predicted_by_trees_that_have_not_seen_them():
    """A column of noise: with its own value in the leaf the mean would follow the column."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    model = ForestConditional(min_leaf=2).fit(X)
    out = mean(*model.grid(X, 0, np.arange(300)))
    own = mean(*model.grid(X, 0))
    assert np.corrcoef(out, X[:, 0])[0, 1] < 0.2 < 0.5 < np.corrcoef(own, X[:, 0])[0, 1]


def test_rows_beyond_those_that_grew_the_forest(monkeypatch):
    monkeypatch.setattr("sobolev.conditionals.forest.MAX_ROWS", 150)
    monkeypatch.setattr("sobolev.conditionals.forest.CHUNK_ROWS", 64)
    X = curved(300)
    nodes, weights = ForestConditional().fit(X).grid(X, 1, np.arange(300))
    assert np.corrcoef(mean(nodes, weights), X[:, 0] ** 2)[0, 1] > 0.7


def test_one_column_has_its_own_distribution():
    X = np.random.default_rng(0).standard_normal((100, 1))
    nodes, _ = ForestConditional().fit(X).grid(X, 0, np.arange(100))
    assert np.ptp(nodes.mean(axis=1)) < 0.6


def test_weighted_quantiles_are_values():
    x = np.array([3.0, 1.0, 2.0])
    weights = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    found = weighted_quantiles(x, weights, np.array([0.25, 0.6, 0.9]))
    np.testing.assert_array_equal(found, [[1.0, 2.0, 3.0], [3.0, 3.0, 3.0]])


def test_the_same_seed_gives_the_same_distribution():
    X = curved()
    first, second = (ForestConditional().fit(X).grid(X, 1)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_auto_takes_the_forest_only_where_the_linear_model_fails():
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((400, 6)) + rng.standard_normal((400, 1))
    auto = AutoConditional().fit(normal)
    assert not any(auto.uses_forest(j) for j in range(6))
    np.testing.assert_array_equal(
        auto.grid(normal, 2)[0], MixedConditional().fit(normal).grid(normal, 2)[0]
    )
    X = curved()
    auto = AutoConditional().fit(X)
    assert auto.uses_forest(1)
    assert not auto.uses_forest(3)
    np.testing.assert_array_equal(auto.grid(X, 1)[0], ForestConditional().fit(X).grid(X, 1)[0])


def test_a_table_keeps_the_distributions_of_fitted_rows():
    X = curved(200)
    model = AutoConditional().fit(X)
    units = [np.array([0]), np.array([1, 3]), np.array([2])]
    table = TabulatedConditional(model, X, units)
    rows = np.array([5, 0, 199])
    for j in (0, 2):
        for kept, asked in zip(
            table.distribution(X[rows], j, rows), model.distribution(X[rows], j, rows), strict=True
        ):
            np.testing.assert_array_equal(kept, asked)
    kept = table.joint_distribution(X[rows], units[1], rows)
    np.testing.assert_array_equal(kept[0], model.joint_distribution(X[rows], units[1], rows)[0])
    assert kept[0].shape == (3, 100, 2)


def test_a_frozen_model_is_not_fitted_again():
    X = curved(200)
    model = AutoConditional().fit(X)
    frozen = resolve_conditional(clone(FrozenEstimator(model)))
    frozen.fit_validated(X)
    np.testing.assert_array_equal(frozen.grid(X, 1)[0], model.grid(X, 1)[0])
    with pytest.raises(ValueError, match="fitted to a table of 200 rows and 4 columns"):
        resolve_conditional(FrozenEstimator(model)).fit_validated(X[:50])


def test_the_mean_is_corrected_where_other_columns_predict_the_difference():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    X[:, 0] += 2 * X[:, 1]

    class Ignorant(ForestConditional):
        """The distribution of a column without the others."""

        def distribution(self, X, j, rows):
            nodes = np.quantile(self.X_[:, j], (np.arange(50) + 0.5) / 50)
            return np.tile(nodes, (len(rows), 1)), np.full((len(rows), 50), 0.02)

    rows = np.arange(400)
    wrong = Ignorant().fit(X)
    right = CorrectedConditional(wrong, X)
    assert np.std(mean(*wrong.distribution(X, 0, rows))) < 1e-9
    error = mean(*right.distribution(X, 0, rows)) - 2 * X[:, 1]
    assert np.std(error) < 0.25
    # A column that nothing predicts stays as it is.
    assert np.std(mean(*right.distribution(X, 2, rows))) < 0.1


def test_two_values_are_corrected_by_their_probabilities():
    X = curved(400)

    class Even(ForestConditional):
        """Both values with probability one half."""

        def distribution(self, X, j, rows):
            return np.tile([0.0, 1.0], (len(rows), 1)), np.full((len(rows), 2), 0.5)

    nodes, weights = CorrectedConditional(Even().fit(X), X).distribution(X, 2, np.arange(400))
    np.testing.assert_array_equal(nodes[0], [0.0, 1.0])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    assert weights[X[:, 0] > 1, 1].mean() > 0.7
    assert weights.min() > 5e-4
