"""Sequential knockoffs: exact algebra, columns of their own kind, and the swap property."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev.exceptions import DataWarning
from sobolev.knockoffs._smoothers import ByColumns, ByRows, class_probabilities, make_design
from sobolev.knockoffs.sequential import SequentialKnockoffs, _Code, draw_categories


def latent(n, p, rho=0.7, seed=0):
    """Normal columns in a chain, neighbours of correlation rho."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, p))
    for j in range(1, p):
        G[:, j] = rho * G[:, j - 1] + np.sqrt(1 - rho**2) * G[:, j]
    return G


def binary(n=400, p=10, rho=0.7, seed=0):
    """The chain, cut at different heights."""
    return (latent(n, p, rho, seed) > norm.ppf(np.linspace(0.3, 0.9, p))).astype(float)


def mixed(n=400, seed=0):
    """0/1, -1/2, three values, a count, and continuous columns, in a chain."""
    G = latent(n, 6, seed=seed)
    G[:, 0] = G[:, 0] > 0.3
    G[:, 1] = np.where(G[:, 1] > 0, 2.0, -1.0)
    G[:, 3] = np.digitize(G[:, 3], [-0.5, 1.0]) - 1.5
    G[:, 5] = np.round(np.abs(G[:, 5]))
    return G


# The algebra


@pytest.mark.parametrize("design", [ByRows, ByColumns])
@pytest.mark.parametrize("n", [12, 60])
def test_smoothers_are_ridge_regression_without_a_block(design, n):
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((n, k)) for k in (1, 3, 1, 2)]
    more = [rng.standard_normal((n, k)) for k in (1, 3)]
    v, b = rng.standard_normal((n, 2)), 2.5
    ridge = design(blocks, b)
    for k in range(3):
        for j in range(4):
            Z = np.hstack([block for i, block in enumerate(blocks) if i != j] + more[:k])
            expected = Z @ np.linalg.solve(Z.T @ Z + b * np.eye(Z.shape[1]), Z.T @ v)
            np.testing.assert_allclose(ridge.without(j)(v), expected, atol=1e-10)
            np.testing.assert_allclose(ridge.without(j)(v[:, 0]), expected[:, 0], atol=1e-10)
        if k < 2:
            ridge.add(more[k])


def test_the_shorter_side_is_taken():
    blocks = [np.ones((10, 1))] * 5
    assert isinstance(make_design(blocks, 1.0), ByColumns)
    assert isinstance(make_design([*blocks, np.ones((10, 1))], 1.0), ByRows)


@pytest.mark.parametrize("share", [0.03, 0.4])
@pytest.mark.parametrize("b", [0.5, 50.0])
def test_two_values_are_logistic_regression(share, b):
    Z = latent(300, 8)
    y = (Z[:, 0] + Z[:, 3] > np.quantile(Z[:, 0] + Z[:, 3], 1 - share)).astype(float)
    Z = Z[:, :6] - Z[:, :6].mean(axis=0)
    Z[:, 0] *= 0.01  # a bad scale
    w = y.mean() * (1 - y.mean())
    reference = LogisticRegression(C=1 / (b * w), tol=1e-12, max_iter=100_000).fit(Z, y)
    smooth = make_design([Z, np.zeros((300, 1))], b).without(1)
    P = class_probabilities(smooth, y[:, None], gain=1e-10, max_steps=300)
    np.testing.assert_allclose(P, reference.predict_proba(Z), atol=1e-5)
    rough = class_probabilities(smooth, y[:, None])
    np.testing.assert_allclose(rough, reference.predict_proba(Z), atol=0.01)


def test_many_values_are_multinomial_regression():
    Z = latent(300, 5)
    y = np.argsort(np.argsort(Z[:, 0] + 0.5 * Z[:, 2])) // 100  # as often each
    Z = Z[:, 1:] - Z[:, 1:].mean(axis=0)
    reference = LogisticRegression(C=1 / (3.0 * 2 / 9), tol=1e-12, max_iter=100_000).fit(Z, y)
    smooth = make_design([Z, np.zeros((300, 1))], 3.0).without(1)
    P = class_probabilities(smooth, np.eye(3)[y], gain=1e-10, max_steps=300)
    np.testing.assert_allclose(P, reference.predict_proba(Z), atol=1e-5)


def test_separable_values_stay_finite():
    x = np.repeat([0.0, 1.0], 50)
    Z = (x - 0.5)[:, None]
    smooth = make_design([Z, np.zeros((100, 1))], 1e-6).without(1)
    P = class_probabilities(smooth, x[:, None])
    assert np.isfinite(P).all()
    assert (P[:50, 0] > 0.99).all()
    assert (P[50:, 1] > 0.99).all()


# Draws of categories


def test_draws_have_the_probabilities_and_their_totals():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 0.5, 2.0], size=60)
    P[0], P[1] = [0, 1, 0], [0.5, 0, 0.5]
    draws = np.array([draw_categories(P, rng) for _ in range(4000)])
    counts = np.array([(draws == value).sum(axis=1) for value in range(3)])
    assert (np.abs(counts[0] - P[:, 0].sum()) < 1).all()
    assert (draws[:, 0] == 1).all()
    assert (draws[:, 1] != 1).all()
    for value in range(3):
        # 180 means of 4,000 draws; the bound of 5 standard errors fails once in 10,000.
        error = np.sqrt(P[:, value] * (1 - P[:, value]) / 4000)
        assert (np.abs((draws == value).mean(axis=0) - P[:, value]) <= 5 * error + 1e-12).all()


def test_a_whole_number_of_ones_is_kept():
    rng = np.random.default_rng(0)
    p = np.array([0.5, 0.25, 0.25, 0.75, 0.25, 1.0])
    for _ in range(200):
        assert draw_categories(np.column_stack([1 - p, p]), rng).sum() == 3


# Columns of their own kind


def test_knockoffs_are_of_the_kind_of_the_column():
    X = mixed()
    sampler = SequentialKnockoffs().fit(X)
    assert sampler.is_category_.tolist() == [True, True, False, True, False, True]
    draw = sampler.sample(random_state=0)
    assert draw.shape == X.shape
    for j in np.flatnonzero(sampler.is_category_):
        values, counts = np.unique(X[:, j], return_counts=True)
        assert set(draw[:, j]) <= set(values)
        found = np.array([np.sum(draw[:, j] == value) for value in values])
        if values.size == 2:
            assert np.abs(found - counts).max() <= 1
        # Otherwise rounding passes on: 5 standard deviations of independent draws are not reached.
        assert np.all(np.abs(found - counts) <= 5 * np.sqrt(counts))
    for j in np.flatnonzero(~sampler.is_category_):
        np.testing.assert_allclose(draw[:, j].mean(), X[:, j].mean(), atol=1e-10)
        # Mean and permuted residuals are uncorrelated up to 1 / sqrt(400).
        assert 0.75 < draw[:, j].var() / X[:, j].var() < 1.25


def test_max_categories_decides():
    X = mixed()
    assert SequentialKnockoffs(max_categories=2).fit(X).is_category_.sum() == 2
    draw = SequentialKnockoffs(max_categories=1).fit(X).sample(0)
    assert np.unique(draw[:, 0]).size > 2


def test_residuals_are_those_of_other_rows_at_the_scale_of_the_column():
    x = np.random.default_rng(0).standard_normal(500)
    mean = 0.8 * x
    draw = _Code.of(x, category=False).draw(x, mean, np.random.default_rng(1))
    residuals = draw - mean
    ratio = np.sort(residuals) / np.sort(x - x.mean())
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)
    assert ratio[0] == pytest.approx(0.6)  # 1 - 0.64 of the variance is left
    # Independent of the row's own value: 4.5 standard errors, once in 10^5.
    assert abs(np.corrcoef(residuals, x)[0, 1]) < 0.2


# The swap property


def test_swapped_columns_have_the_same_moments():
    """Second and third moments with columns swapped, to three standard errors of a mean.

    The fit holds the moments closer than that: the largest gap was below 0.009 in four draws, the
    bound is 0.034. Shuffled copies of the columns do not pass.
    """
    n, p = 4000, 6
    X = binary(n, p, rho=0.8)
    draw = SequentialKnockoffs().fit(X).sample(0)
    shuffled = np.random.default_rng(0).permuted(X, axis=0)
    bound = 3 * np.sqrt(2 / (4 * n))

    def largest(other):
        gaps = [0.0]
        for j in range(p):
            for k in set(range(p)) - {j}:
                original = X[:, j] * X[:, k]
                gaps += [np.mean(original - other[:, j] * X[:, k])]
                gaps += [np.mean(original - other[:, j] * other[:, k])]
                for i in set(range(p)) - {j, k}:
                    gaps += [np.mean((original - other[:, j] * X[:, k]) * X[:, i])]
                    gaps += [np.mean((original - other[:, j] * other[:, k]) * X[:, i])]
        return np.abs(gaps).max()

    assert largest(draw) < bound
    assert largest(shuffled) > 2 * bound


def test_correlations_of_mixed_columns_carry_over():
    """The largest gap was below 0.044 in four draws; the bound is 0.089, or four errors."""
    n = 4000
    X = mixed(n)
    draw = SequentialKnockoffs().fit(X).sample(0)
    p = X.shape[1]
    C = np.corrcoef(X.T, draw.T)
    beside = ~np.eye(p, dtype=bool)
    bound = 4 * np.sqrt(2 / n)
    assert np.abs(C[:p, p:] - C[:p, :p])[beside].max() < bound
    assert np.abs(C[p:, p:] - C[:p, :p])[beside].max() < bound
    assert np.abs(C[:p, :p])[beside].max() > 2 * bound


def test_knockoffs_of_independent_columns_are_not_copies():
    X = (np.random.default_rng(0).random((500, 40)) < 0.3).astype(float)
    draw = SequentialKnockoffs().fit(X).sample(0)
    own = [np.corrcoef(x, z)[0, 1] for x, z in zip(X.T, draw.T, strict=True)]
    assert np.mean(own) < 0.2


def test_a_smaller_penalty_gives_closer_knockoffs():
    X = binary(300, 40)
    agreement = [
        np.mean(SequentialKnockoffs(penalty=penalty).fit(X).sample(0) == X)
        for penalty in (0.01, 0.3, 10.0)
    ]
    assert agreement[0] > agreement[1] + 0.05 > agreement[2] + 0.1


def test_signs_of_null_statistics_are_fair():
    """Marginal correlations with a column next in the chain: the harshest statistic for copies.

    The y of each draw of X depends on the middle column; its two neighbours are null. 120 fair
    signs break the bounds with probability 3e-5.
    """
    signs, shuffled_signs = [], []
    for seed in range(60):
        X = binary(300, 9, rho=0.6, seed=seed)
        rng = np.random.default_rng(seed)
        y = X[:, 4] + 0.5 * rng.standard_normal(300)
        draw = SequentialKnockoffs().fit(X).sample(rng)
        for other, found in ((draw, signs), (rng.permuted(X, axis=0), shuffled_signs)):
            for j in (3, 5):
                W = abs(np.corrcoef(X[:, j], y)[0, 1]) - abs(np.corrcoef(other[:, j], y)[0, 1])
                found.append(np.sign(W))
    positive = np.sum(np.array(signs) > 0) / np.count_nonzero(signs)
    assert 0.31 < positive < 0.69
    assert np.mean(np.array(shuffled_signs) > 0) > 0.8


# Models of the caller


def test_models_of_the_caller_are_used():
    X = mixed(200)
    sampler = SequentialKnockoffs(LinearRegression(), GaussianNB()).fit(X)
    draw = sampler.sample(0)
    assert set(np.unique(draw[:, 1])) == {-1.0, 2.0}
    C = np.corrcoef(X.T, draw.T)
    assert C[1, 8] == pytest.approx(C[1, 2], abs=0.25)
    only = SequentialKnockoffs(classifier=RandomForestClassifier(5, random_state=0)).fit(X)
    assert set(np.unique(only.sample(0)[:, 0])) == {0.0, 1.0}
    only = SequentialKnockoffs(regressor=LinearRegression()).fit(X)
    assert set(np.unique(only.sample(0)[:, 3])) <= {-1.5, -0.5, 0.5}


def test_models_of_the_caller_see_columns_and_earlier_knockoffs_but_not_the_row():
    seen = []

    class Spy(LinearRegression):
        def fit(self, X, y):
            seen.append((X.shape, y.copy()))
            return super().fit(X, y)

    X = latent(40, 3)
    SequentialKnockoffs(Spy(), n_folds=4).fit(X).sample(0)
    assert [shape for shape, _ in seen] == [(30, 2)] * 4 + [(30, 3)] * 4 + [(30, 4)] * 4


def test_the_order_of_the_columns_is_drawn():
    first = []

    class Spy(LinearRegression):
        def fit(self, X, y):
            first.append(float(round(y.mean())))
            return super().fit(X, y)

    X = np.array([10.0, 20.0, 30.0]) + 0.1 * latent(40, 3)
    sampler = SequentialKnockoffs(Spy(), n_folds=2).fit(X)
    for seed in range(20):  # one column comes first each time with probability 9e-10
        sampler.sample(seed)
    assert set(first[::6]) == {10.0, 20.0, 30.0}


def test_random_models_of_the_caller_repeat_with_the_seed():
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(5))
    sampler = SequentialKnockoffs(classifier=forest).fit(binary(60, 3))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(sampler.sample(0), sampler.sample(0))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert forest[-1].random_state is None


def test_a_value_that_a_fold_lacks():
    X = binary(40, 3)
    X[:, 0] = np.arange(40) == 7
    draw = SequentialKnockoffs(classifier=GaussianNB()).fit(X).sample(0)
    assert set(np.unique(draw[:, 0])) <= {0.0, 1.0}


# The contract


def test_the_same_seed_gives_the_same_knockoffs():
    sampler = SequentialKnockoffs().fit(mixed(100))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_array_equal(sampler.sample(3), sampler.sample(np.random.default_rng(3)))
    assert np.any(sampler.sample(3) != sampler.sample(4))
    assert np.any(sampler.sample() != sampler.sample())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    copied = pickle.loads(pickle.dumps(sampler))
    np.testing.assert_array_equal(copied.sample(3), sampler.sample(3))
    assert clone(sampler).get_params() == sampler.get_params()


@pytest.mark.parametrize("shape", [(50, 1), (20, 60), (60, 20)])
def test_shapes(shape):
    for X in (latent(*shape), (latent(*shape) > 0).astype(float)):
        with np.errstate(all="raise"):
            draw = SequentialKnockoffs(penalty=1.0).fit(X).sample(0)
        assert draw.shape == shape
        assert np.isfinite(draw).all()


def test_constant_and_equal_columns():
    X = binary(100, 5)
    X[:, 1] = 4.0
    X[:, 2] = X[:, 0]
    with pytest.warns(DataWarning, match="'x1'"):
        sampler = SequentialKnockoffs().fit(pd.DataFrame(X, columns=list("abcde")).to_numpy())
    assert sampler.is_category_.tolist() == [True, False, True, True, True]
    draw = sampler.sample(0)
    assert (draw[:, 1] == 4).all()
    assert np.isfinite(draw).all()


def test_the_penalty_follows_the_dependence():
    dependent = SequentialKnockoffs().fit(latent(300, 10, rho=0.9)).penalty_
    independent = SequentialKnockoffs().fit(latent(300, 10, rho=0.0)).penalty_
    assert dependent < 0.1 < independent
    assert SequentialKnockoffs(penalty=2).fit(latent(50, 3)).penalty_ == 2.0


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"penalty": 0.0}, ValueError, "penalty"),
        ({"penalty": "best"}, ValueError, "penalty='best'"),
        ({"max_categories": 0}, ValueError, "max_categories"),
        ({"n_folds": 1}, ValueError, "n_folds"),
        ({"classifier": LinearRegression()}, TypeError, "predict_proba"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        SequentialKnockoffs(**parameters).fit(binary(50, 3))
