"""Weights of the rows in the selectors: they count in the fit and in the statistic."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector
from sobolev.critic import PredictorCritic
from sobolev.inference.null_distribution import NullTable

FAST = ConvexSIC(feature_map="landmark", lam=0.01)


def draw(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n)


def test_a_weighted_table_weighs_rows():
    rng = np.random.default_rng(0)
    values, observed, weights = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.random(6)
    table = NullTable(values, np.full((6, 3), 1 / 3), observed).weighted(weights)
    assert table.statistic == pytest.approx(np.average(observed, weights=weights))
    assert table.mean == pytest.approx(np.average(values.mean(axis=1), weights=weights))
    share = weights / weights.sum()
    assert table.deviation == pytest.approx(np.sqrt(np.sum(share**2 * values.var(axis=1))))


def test_equal_weights_are_no_weights():
    X, y = draw()
    plain = HRTSelector(FAST, random_state=0).fit(X, y)
    weighted = HRTSelector(FAST, random_state=0).fit(X, y, sample_weight=np.full(200, 7.0))
    np.testing.assert_allclose(plain.pvalues_, weighted.pvalues_, rtol=1e-6)


def test_only_ratios_of_weights_matter():
    X, y = draw()
    weights = np.random.default_rng(1).random(200)
    first = HRTSelector(FAST, random_state=0).fit(X, y, sample_weight=weights)
    second = HRTSelector(FAST, random_state=0).fit(X, y, sample_weight=1000 * weights)
    np.testing.assert_allclose(first.pvalues_, second.pvalues_, rtol=1e-6)


def test_rows_of_weight_zero_say_nothing():
    X, y = draw()
    wild = y.copy()
    wild[::2] = 100 * X[::2, 4]
    weights = np.where(np.arange(200) % 2, 1.0, 0.0)
    found, expected = (
        HRTSelector(FAST, random_state=0, diagnose=False).fit(X, values, sample_weight=weights)
        for values in (wild, y)
    )
    np.testing.assert_allclose(found.pvalues_, expected.pvalues_)
    assert found.pvalues_[0] < 1e-6


def test_weighted_null_pvalues_hold():
    rng, below, count = np.random.default_rng(0), 0, 0
    for seed in range(20):
        X = rng.standard_normal((120, 4))
        weights = rng.pareto(2.0, 120) + 0.1
        hrt = HRTSelector(FAST, random_state=seed, diagnose=False)
        pvalues = hrt.fit(X, rng.standard_normal(120), sample_weight=weights).pvalues_
        below, count = below + np.sum(pvalues < 0.1), count + np.isfinite(pvalues).sum()
    assert below / count < 0.1 + 2.6 * np.sqrt(0.09 / count)


def test_predictors_get_weights():
    X, y = draw()
    weights = np.random.default_rng(1).random(200)
    for estimator in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression())):
        fitted = PredictorCritic(estimator).fit_validated(X, y, weights / weights.sum()).estimator
        expected = LinearRegression().fit(X, y, weights).predict(X)
        np.testing.assert_allclose(fitted.predict(X), expected)
    hrt = HRTSelector(RandomForestRegressor(20, random_state=0), random_state=0)
    assert hrt.fit(X, y, sample_weight=weights).support_[0]
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        PredictorCritic(KNeighborsRegressor()).fit_validated(X, y, weights / weights.sum())


def test_knockoffs_with_weights():
    X, y = draw(300, 12)
    X[:, :5], y = draw(300)
    wild = y.copy()
    wild[::2] = 100 * X[::2, 4]
    weights = np.where(np.arange(300) % 2, 1.0, 0.0)
    plain, weighted = (
        KnockoffSelector(FAST, random_state=0, diagnose=False).fit(X, wild, sample_weight=w)
        for w in (None, weights)
    )
    assert plain.statistics_.argmax() == 4
    assert weighted.statistics_.argmax() == 0
    lasso = KnockoffSelector(statistic="lasso_path", random_state=0, diagnose=False)
    assert lasso.fit(X, wild, sample_weight=weights).statistics_.argmax() == 0
    assert lasso.fit(X, wild).statistics_.argmax() == 4
    with pytest.raises(ValueError, match="sample_weight does not go with"):
        KnockoffSelector(statistic="swap").fit(X, y, sample_weight=weights)


def test_weights_do_not_go_with_given_held_out_rows():
    X, y = draw()
    with pytest.raises(ValueError, match="neither groups nor sample_weight"):
        HRTSelector(FAST).fit(X, y, sample_weight=np.ones(200), holdout=(X, y))
