"""Conditional models: grids are distributions, leave-one-out is exact, rows are out of fold."""

import pickle

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from sobolev.conditionals import (
    CategoricalConditional,
    GaussianConditional,
    MixedConditional,
    ResidualConditional,
)
from sobolev.conditionals.choice import resolve_conditional
from sobolev.conditionals.ridge import GramInverse, RidgeColumns, _coefficients

CONTINUOUS = [
    GaussianConditional(),
    ResidualConditional(),
    ResidualConditional(LinearRegression()),
    ResidualConditional(scale=LinearRegression()),
    MixedConditional(),
]


def correlated(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + rng.standard_normal((n, 1))


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = correlated(n, 4, seed)
    X[:, 1] = X[:, 0] + 0.5 * rng.standard_normal(n) > 0
    X[:, 2] = np.digitize(X[:, 2], [-1, 1])
    return X


def all_rows(X):
    """Row numbers: the rows are those of the fit."""
    return np.arange(len(X))


def pit(nodes, weights, x):
    """The mass below the observed value, half of that at it."""
    below = np.sum(weights * (nodes < x[:, None] - 1e-9), axis=1)
    return below + 0.5 * np.sum(weights * (np.abs(nodes - x[:, None]) <= 1e-9), axis=1)


@pytest.mark.parametrize("model", CONTINUOUS, ids=repr)
def test_grids_are_distributions(model):
    X = correlated()
    nodes, weights = model.fit(X).grid(X, 2, all_rows(X))
    assert nodes.shape == weights.shape == (300, 100)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (np.diff(nodes, axis=1) >= 0).all()


@pytest.mark.parametrize("model", CONTINUOUS, ids=repr)
@pytest.mark.parametrize("fresh", [False, True])
def test_the_distribution_is_calibrated(model, fresh):
    """Uniform transforms, by a two-sample bound that a correct program breaks once in 10,000."""
    X = correlated(1000)
    rows = correlated(1000, seed=1) if fresh else X
    model = model.fit(X)
    positions = None if fresh else all_rows(X)
    for j in range(2):
        transform = pit(*model.grid(rows, j, positions), rows[:, j])
        # The grid has steps of 0.01, and new rows see one draw of the residuals.
        assert kstest(transform, "uniform").statistic < 0.01 + 2.2 * np.sqrt(2 / 1000)


def test_a_model_too_small_is_not_calibrated():
    X = correlated(1000)
    nodes, weights = ResidualConditional().fit(X).grid(X, 0, all_rows(X))
    centre = nodes.mean(axis=1, keepdims=True)
    assert kstest(pit(centre + 0.5 * (nodes - centre), weights, X[:, 0]), "uniform").pvalue < 1e-4


@pytest.mark.parametrize(("n", "d"), [(30, 8), (12, 20)])
def test_leave_one_out_is_exact_for_all_columns(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = GramInverse(Z).leave_one_out(3.0)
    for j in (0, d - 1):
        rest = np.delete(Z, j, axis=1)
        for i in range(n):
            kept = np.arange(n) != i
            mean, own = rest[kept].mean(axis=0), Z[kept, j].mean()
            A = rest[kept] - mean
            beta = np.linalg.solve(A.T @ A + 3 * np.eye(d - 1), A.T @ (Z[kept, j] - own))
            expected = Z[i, j] - own - (rest[i] - mean) @ beta
            assert found[i, j] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("n", "d"), [(30, 8), (12, 20)])
def test_a_block_is_regressed_on_the_columns_outside_it(n, d):
    Z = correlated(n, d) - correlated(n, d).mean(axis=0)
    block, inverse = np.array([1, 4, 5]), GramInverse(Z)
    coefficients, errors = inverse.block(block, 2.0)
    assert (coefficients[block] == 0).all()
    for i, j in enumerate(block):
        kept = np.append(np.setdiff1d(np.arange(d), block), j)
        np.testing.assert_allclose(
            coefficients[kept[:-1], i], _coefficients(Z[:, kept], kept.size - 1, 2.0)[:-1]
        )
        alone = GramInverse(Z[:, kept]).leave_one_out(2.0)[:, -1]
        np.testing.assert_allclose(errors[:, i], alone, atol=1e-9)


@pytest.mark.parametrize(("n", "d"), [(30, 8), (12, 20)])
def test_errors_in_the_sample_are_those_of_ridge(n, d):
    Z = correlated(n, d) - correlated(n, d).mean(axis=0)
    found = GramInverse(Z).in_sample(2.0)
    for j in range(d):
        assert found[j] == pytest.approx(np.mean((Z[:, j] - Z @ _coefficients(Z, j, 2.0)) ** 2))


@pytest.mark.parametrize(("n", "d"), [(30, 8), (12, 20)])
def test_coefficients_are_those_of_ridge(n, d):
    Z = correlated(n, d)
    rest = np.delete(Z, 1, axis=1)
    expected = np.linalg.solve(rest.T @ rest + 2 * np.eye(d - 1), rest.T @ Z[:, 1])
    found = _coefficients(Z, 1, 2.0)
    np.testing.assert_allclose(np.delete(found, 1), expected, atol=1e-10)
    assert found[1] == 0


def test_each_column_has_the_penalty_of_the_least_error():
    X = correlated(200, 6)
    ridge = RidgeColumns.fit(X)
    z = (X[:, 3] - X[:, 3].mean()) / X[:, 3].std()
    inverse = GramInverse((X - X.mean(axis=0)) / X.std(axis=0))

    def error(penalty):
        predicted = z - inverse.leave_one_out(penalty)[:, 3]
        slope = predicted @ z / (predicted @ predicted)
        return ((z - slope * predicted) ** 2).mean(), slope

    best, slope = error(ridge.penalties[3])
    assert (ridge.residuals[:, 3] ** 2).mean() == pytest.approx(best)
    assert ridge.slopes[3] == pytest.approx(slope)
    for factor in (10**-0.5, 10**0.5):
        assert error(factor * ridge.penalties[3])[0] >= best


def test_shrinkage_leaves_nothing_of_a_common_factor():
    """Half of 300 correlated columns' variance is one factor; the residual must not keep it.

    Without the slope the correlation is above 0.03 on average over columns, at n = 1000.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 1)) + rng.standard_normal((1000, 300))
    ridge = RidgeColumns.fit(X)
    kept = [
        np.corrcoef(ridge.residuals[:, j], X.mean(axis=1) - X[:, j] / 300)[0, 1] for j in range(50)
    ]
    assert abs(np.mean(kept)) < 0.015
    new = rng.standard_normal((1000, 1)) + rng.standard_normal((1000, 300))
    rest = new[:, 7] - ridge.predict(new, 7)
    # Fresh rows: one standard error is 0.03.
    assert abs(np.corrcoef(rest, new.mean(axis=1) - new[:, 7] / 300)[0, 1]) < 0.12


@pytest.mark.parametrize("model", [ResidualConditional(LinearRegression()), GaussianConditional()])
def test_fitted_rows_are_predicted_by_models_without_them(model):
    """Moving one row's value must not move its own distribution."""
    X = correlated(60)
    before = model.fit(X).grid(X, 0, all_rows(X))[0][5].mean()
    moved = X.copy()
    moved[5, 0] += 20  # pulls the models of the other folds, not its own
    after = model.fit(moved).grid(moved, 0, all_rows(moved))[0][5]
    assert np.median(after) == pytest.approx(before, abs=0.5)


def test_categories_have_probabilities_of_their_values():
    X = mixed()
    nodes, weights = CategoricalConditional().fit(X).grid(X, 1, all_rows(X))
    np.testing.assert_array_equal(nodes, np.tile([0.0, 1.0], (300, 1)))
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert weights.min() > 0
    # Calibrated: the mean probability is the frequency, and it follows the other column.
    assert weights[:, 1].mean() == pytest.approx(X[:, 1].mean(), abs=0.03)
    assert np.corrcoef(weights[:, 1], X[:, 0])[0, 1] > 0.9


def test_any_classifier_and_new_rows():
    X, rows = mixed(), mixed(50, seed=3)
    model = CategoricalConditional(RandomForestClassifier(20, random_state=0)).fit(X)
    nodes, weights = model.grid(rows, 2)
    assert nodes.shape == (50, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_a_value_that_a_fold_lacks_is_possible():
    X = mixed(60)
    X[:, 2] = 0
    X[7, 2] = 1
    weights = CategoricalConditional().fit(X).grid(X, 2, all_rows(X))[1]
    assert np.isfinite(weights).all()
    assert weights[7, 1] > 0


def test_mixed_chooses_by_the_number_of_values():
    X = mixed()
    model = MixedConditional().fit(X)
    np.testing.assert_array_equal(model.is_category_, [False, True, True, False])
    assert [model.grid(X, j)[0].shape[1] for j in range(4)] == [100, 2, 3, 100]


def test_draws_follow_the_grid():
    X = mixed()
    model = MixedConditional().fit(X)
    drawn = model.sample(X, 1, 400, random_state=0, rows=all_rows(X))
    expected = model.grid(X, 1, all_rows(X))[1][:, 1]
    error = np.sqrt(expected * (1 - expected) / 400)
    # 300 rows, six standard errors each: a correct program fails once in a million.
    assert np.all(np.abs(drawn.mean(axis=1) - expected) < 6 * error + 1e-9)
    again = model.sample(X, 1, 400, random_state=0, rows=all_rows(X))
    np.testing.assert_array_equal(drawn, again)


def test_errors_name_the_remedy():
    X = correlated()
    with pytest.raises(ValueError, match="column 9 does not exist"):
        MixedConditional().fit(X).grid(X, 9)
    with pytest.raises(ValueError, match=r'conditional=.nope.*"gaussian"'):
        resolve_conditional("nope")
    with pytest.raises(TypeError, match="fit\\(X\\) and grid"):
        resolve_conditional(3)


def heavy(n=600, d=8, seed=0):
    """Rows of a multivariate t distribution: far out in all columns at once."""
    rng = np.random.default_rng(seed)
    return correlated(n, d, seed) / np.sqrt(rng.chisquare(3, (n, 1)) / 3)


def test_the_distribution_is_wide_where_the_row_is_far_out():
    X = heavy()
    model = ResidualConditional().fit(X)
    nodes, weights = model.grid(X, 0, all_rows(X))
    width = nodes[:, 75] - nodes[:, 25]
    assert np.corrcoef(np.log(width), np.log(np.abs(X[:, 1:]).mean(axis=1)))[0, 1] > 0.99
    outer = width > np.quantile(width, 0.8)
    transform = pit(nodes, weights, X[:, 0])
    # Of the 120 widest rows 10 % should be beyond the outer deciles on either side, 24 in all; a
    # constant width leaves about half of them there.
    beyond = np.mean(np.abs(transform[outer] - 0.5) > 0.4)
    assert beyond < 0.2 + 4 * np.sqrt(0.2 * 0.8 / 120)
    constant = ResidualConditional(scale=None).fit(X)
    flat = pit(*constant.grid(X, 0, all_rows(X)), X[:, 0])
    assert np.mean(np.abs(flat[outer] - 0.5) > 0.4) > beyond + 0.1


def test_the_distribution_of_normal_rows_has_one_width():
    X = correlated(600)
    nodes, _ = ResidualConditional().fit(X).grid(X, 0, all_rows(X))
    width = nodes[:, 75] - nodes[:, 25]
    assert np.ptp(width) < 1e-9


def test_new_rows_have_a_width_of_their_own():
    model = ResidualConditional().fit(heavy())
    rows = np.vstack([np.zeros((1, 8)), np.full((1, 8), 6.0)])
    nodes, _ = model.grid(rows, 0)
    width = nodes[:, 75] - nodes[:, 25]
    assert width[1] > 2 * width[0]


def test_an_unknown_scale_is_named():
    with pytest.raises(ValueError, match="scale='x'"):
        ResidualConditional(scale="x").fit(correlated())


@pytest.mark.parametrize("model", [*CONTINUOUS, CategoricalConditional()], ids=repr)
def test_fitted_models_pickle_after_use(model):
    X, rows = mixed(), mixed(20, seed=4)
    before = model.fit(X).grid(rows, 1)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.grid(rows, 1), before)


def test_a_row_number_decides_not_the_bytes_of_the_row():
    """The same rows as new ones get the full model; wrong shapes are refused."""
    X = correlated(60)
    model = GaussianConditional().fit(X)
    known, new = model.grid(X, 0, all_rows(X))[0], model.grid(X, 0)[0]
    assert not np.allclose(known, new)
    some = np.array([7, -1, 3])
    mixed_rows = model.grid(X[[7, 7, 3]], 0, some)[0]
    np.testing.assert_allclose(mixed_rows, [known[7], new[7], known[3]])
    with pytest.raises(ValueError, match="rows has the shape"):
        model.grid(X, 0, [1, 2])
