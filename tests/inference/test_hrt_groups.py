"""Groups of columns in the holdout randomization test: joint laws, joint tables, units."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control, kstest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from sobolev import ConvexSIC, NeuralSIC
from sobolev.conditionals import JointConditional, MixedConditional
from sobolev.convex import FourierMap
from sobolev.critic import as_critic
from sobolev.exceptions import ConditionalModelWarning
from sobolev.inference import HRTSelector, hrt_test
from sobolev.inference.replacements import joint_table
from sobolev.neural import Optimizer
from sobolev.neural.evaluation import MAX_REFERENCE

QUICK = {"optimizer": Optimizer(max_iter=40, rounds=1), "random_state": 0}
CRITICS = {
    "landmark": ConvexSIC(lam=0.01),
    "fourier": ConvexSIC(feature_map=FourierMap(64), lam=0.01, random_state=0),
    "polynomial": ConvexSIC(feature_map="polynomial", lam=0.01),
    "bilinear": NeuralSIC(**QUICK),
    "two kinds": NeuralSIC(critic=["small", "bilinear"], boosting=2, **QUICK),
    "pairs": NeuralSIC(critic="big", **QUICK),
}
FAST = ConvexSIC(feature_map="landmark", lam=0.01)


def draw(n=160, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


def with_category(n=300, effect=1.0, seed=0, levels=4):
    """Columns 0 to 3: one-hot, a category that depends on column 4; then five numbers."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 5))
    chance = np.exp(Z[:, :1] * np.linspace(-1, 1, levels))
    chance /= chance.sum(axis=1, keepdims=True)
    category = (rng.random((n, 1)) > np.cumsum(chance, axis=1)).sum(axis=1)
    y = Z[:, 1] + effect * np.array([1.5, -1.0, 0.0, 1.0])[category] + rng.standard_normal(n) / 2
    return np.column_stack([np.eye(levels)[category], Z]), y


# -- tables of several columns -------------------------------------------------------------------


def replaced(X, columns, values):
    moved = X.copy()
    moved[:, columns] = values
    return moved


@pytest.mark.parametrize("statistic", ["risk", "witness"])
@pytest.mark.parametrize("name", CRITICS)
def test_each_row_with_its_own_nodes_equals_a_full_evaluation(name, statistic):
    X, y = draw()
    model = CRITICS[name].fit(X, y)
    if name in ("two kinds", "pairs"):
        assert model.reference_.shape[0] > MAX_REFERENCE
        model.reference_ = model.reference_[:MAX_REFERENCE]  # as many as the table uses
    rows, columns = X[:40], np.array([4, 1, 0])
    nodes = np.random.default_rng(1).standard_normal((40, 3, 3))
    evaluator = as_critic(model).evaluator(rows, y[:40], statistic)
    found = evaluator.each(columns, nodes)
    shared = evaluator.at(columns, nodes[0])
    assert found.shape == shared.shape == (40, 3)
    assert np.ptp(found, axis=1).min() > 1e-6  # the columns matter, so the test can fail
    full = getattr(model, statistic)
    atol = 1e-5 if hasattr(model, "reference_") else 1e-8  # networks run in single precision
    for b in range(3):
        moved = replaced(rows, columns, nodes[:, b])
        np.testing.assert_allclose(found[:, b], full(moved, y[:40]), atol=atol)
        moved = replaced(rows, columns, nodes[0, b])
        np.testing.assert_allclose(shared[:, b], full(moved, y[:40]), atol=atol)


@pytest.mark.parametrize("labels", [False, True])
def test_each_of_a_forest_equals_its_loss(labels):
    X, y = draw()
    response = np.where(y > 0, "b", "a") if labels else y
    kind = RandomForestClassifier if labels else RandomForestRegressor
    model = kind(10, random_state=0).fit(X, response)
    columns, nodes = np.array([1, 0]), np.random.default_rng(1).standard_normal((160, 3, 2))
    evaluator = as_critic(model).evaluator(X, response, "risk")
    found, shared = evaluator.each(columns, nodes), evaluator.at(columns, nodes[0])
    for b in range(3):
        for table, values in ((found, nodes[:, b]), (shared, nodes[0, b])):
            moved = replaced(X, columns, values)
            if labels:
                p = model.predict_proba(moved)[np.arange(160), (response == "b").astype(int)]
                expected = np.log(np.maximum(p, 1e-12))
            else:
                expected = -((model.predict(moved) - y) ** 2)
            np.testing.assert_allclose(table[:, b], expected)


def test_constant_columns_of_a_group_do_not_move_the_statistic():
    X, y = draw()
    X[:, 3] = 1.0
    with pytest.warns(UserWarning, match="constant"):
        model = ConvexSIC(lam=0.01).fit(X, y)
    evaluator = as_critic(model).evaluator(X, y, "risk")
    nodes = np.random.default_rng(1).standard_normal((160, 2, 2))
    found = evaluator.each(np.array([3, 0]), nodes)
    expected = model.risk(replaced(X, [0], nodes[:, 1, 1:]), y)
    np.testing.assert_allclose(found[:, 1], expected, atol=1e-8)


def test_joint_tables_have_the_observed_rows_and_their_own_nodes():
    X, y = draw()
    model = ConvexSIC(lam=0.01).fit(X, y)
    evaluator, columns = as_critic(model).evaluator(X, y, "risk"), np.array([0, 1])
    own = X[:, None, columns] + np.random.default_rng(1).standard_normal((160, 5, 2))
    for nodes in (own, np.broadcast_to(own[:1], own.shape)):
        table = joint_table(evaluator, columns, X[:, columns], nodes, np.full((160, 5), 0.2))
        np.testing.assert_allclose(table.observed, model.risk(X, y), atol=1e-8)
        expected = model.risk(replaced(X, columns, nodes[:, 3]), y)
        np.testing.assert_allclose(table.values[:, 3], expected, atol=1e-8)


@pytest.mark.parametrize(
    "name",
    [
        "landmark",
        "bilinear",
        "pairs",
    ],
)
def test_a_group_without_any_effect_is_not_found(name):
    """A category that is constant in the rows of the fit."""
    X, y = with_category(200, effect=0.0)
    train = X[:100].copy()
    train[:, :4] = [1, 0, 0, 0]
    with pytest.warns(UserWarning, match="constant"):
        model = CRITICS[name].fit(train, y[:100])
    group, nodes = np.arange(4), np.broadcast_to(np.eye(4), (10, 4, 4))
    for start in range(100, 200, 10):
        rows, responses = X[start : start + 10], y[start : start + 10]
        evaluator = as_critic(model).evaluator(rows, responses, "risk")
        table = joint_table(evaluator, group, rows[:, group], nodes, np.full((10, 4), 0.25))
        assert table.saddlepoint() == 1.0


# -- joint laws ----------------------------------------------------------------------------------


def test_a_category_has_its_patterns_as_nodes():
    X, _ = with_category()
    model = JointConditional([0, 1, 2, 3]).fit(X)
    nodes, weights = model.grid(X, np.arange(len(X)))
    assert model.is_category_
    assert nodes.shape == (300, 4, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (nodes.sum(axis=2) == 1).all()
    assert len(np.unique(nodes[0], axis=0)) == 4
    np.testing.assert_array_equal(nodes, np.broadcast_to(nodes[:1], nodes.shape))


def test_the_law_of_a_category_follows_the_other_columns():
    """Observed less expected: 300 binary terms of mean zero if the law is right."""
    X, _ = with_category()
    nodes, weights = JointConditional([0, 1, 2, 3]).fit(X).grid(X, np.arange(len(X)))
    chance = np.einsum("nb,nbc->nc", weights, nodes)
    assert np.corrcoef(chance[:, 3], X[:, 4])[0, 1] > 0.8
    assert np.corrcoef(chance[:, 0], X[:, 4])[0, 1] < -0.8
    gap = (X[:, :4] - chance) * X[:, 4:5]
    # 4 sums at 4.5 standard errors: a correct program fails once in 30,000.
    assert (np.abs(gap.sum(axis=0)) < 4.5 * np.sqrt((gap**2).sum(axis=0))).all()


def continuous_group(n=2000, seed=0):
    """Columns 0 and 1 share noise (0.8) and both depend on column 2; column 3 is idle."""
    rng = np.random.default_rng(seed)
    rest = rng.standard_normal((n, 2))
    noise = rng.standard_normal((n, 2)) @ np.linalg.cholesky([[1, 0.8], [0.8, 1]]).T
    return np.column_stack([rest[:, :1] * [1.0, -0.7] + noise, rest])


def test_a_continuous_group_keeps_its_correlations():
    """One draw for each of 2,000 rows: correlations within 5 standard errors of both samples.

    Each has an error of at most 1/sqrt(2000), the 100 shared residuals add a systematic one of
    about (1 - r²)/sqrt(100), 0.04 for the pair itself, twice that is allowed.
    """
    X = continuous_group()
    nodes, weights = JointConditional([0, 1]).fit(X).grid(X, np.arange(len(X)))
    assert nodes.shape == (2000, 100, 2)
    np.testing.assert_allclose(weights, 0.01)
    rng = np.random.default_rng(1)
    drawn = X.copy()
    drawn[:, :2] = nodes[np.arange(2000), rng.integers(100, size=2000)]
    real, found = np.corrcoef(X.T), np.corrcoef(drawn.T)
    assert np.abs(real - found).max() < 5 * np.sqrt(2 / 2000)
    residual = np.corrcoef((nodes - nodes.mean(axis=1, keepdims=True)).reshape(-1, 2).T)[0, 1]
    assert residual == pytest.approx(0.8, abs=0.1)
    np.testing.assert_allclose(drawn[:, :2].std(axis=0), X[:, :2].std(axis=0), rtol=0.1)


def test_independent_draws_would_lose_the_correlation():
    """Shuffling one component breaks the bound of the test above: it can fail."""
    X = continuous_group()
    nodes, _ = JointConditional([0, 1]).fit(X).grid(X, np.arange(len(X)))
    rng = np.random.default_rng(1)
    drawn = X.copy()
    for c in (0, 1):
        drawn[:, c] = nodes[np.arange(2000), rng.integers(100, size=2000), c]
    assert np.abs(np.corrcoef(X.T) - np.corrcoef(drawn.T)).max() > 5 * np.sqrt(2 / 2000)


def test_a_group_may_mix_kinds_and_keeps_whole_rows():
    X, y = with_category()
    model = JointConditional([4, 3]).fit(X)
    nodes, weights = model.grid(X, np.arange(len(X)))
    assert model.is_forest_
    observed = {tuple(row) for row in X[:, [4, 3]]}
    assert all(tuple(row) in observed for row in nodes.reshape(-1, 2))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    hrt = HRTSelector(FAST, feature_groups={"odd": [5, 2]}, random_state=0).fit(X, y)
    assert np.isfinite(hrt.pvalues_[[5, 2]]).all()


def test_a_category_is_found_as_one_unit():
    X, y = with_category()
    hrt = HRTSelector(FAST, feature_groups={"kind": [0, 1, 2, 3]}, random_state=0).fit(X, y)
    assert hrt.support_[:4].all()
    assert hrt.support_[5]
    for values in (hrt.pvalues_, hrt.qvalues_, hrt.statistics_):
        assert values.shape == (9,)
        assert np.unique(values[:4]).size == 1
    assert hrt.transform(X).shape[1] == hrt.support_.sum()
    units = np.r_[hrt.pvalues_[0], hrt.pvalues_[4:]]
    np.testing.assert_allclose(
        np.r_[hrt.qvalues_[0], hrt.qvalues_[4:]], false_discovery_control(units)
    )
    assert not np.allclose(hrt.qvalues_, false_discovery_control(hrt.pvalues_))


class Fixed(RegressorMixin, BaseEstimator):
    """Fixed importances: two columns of 0.3 are together more than one of 0.5."""

    def fit(self, X, y):
        self.feature_importances_ = np.array([0.3, 0.3, 0.5, 0.4, 0.1, 0.0])
        return self

    def predict(self, X):
        return X[:, 0] + X[:, 1]


@pytest.mark.parametrize(("shortlist", "tested"), [(1, [0, 1]), (2, [0, 1, 2]), (9, range(5))])
def test_the_list_counts_units_and_importances_add_up(shortlist, tested):
    X, y = draw(60)
    hrt = HRTSelector(
        Fixed(), feature_groups=[[0, 1]], shortlist=shortlist, scheme="split", diagnose=False
    ).fit(X, y)
    np.testing.assert_array_equal(hrt.shortlist_, tested)
    np.testing.assert_array_equal(np.flatnonzero(np.isfinite(hrt.pvalues_)), tested)


def test_continuous_groups_and_names_of_a_frame():
    X, y = draw(240)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = HRTSelector(
        FAST, feature_groups={"first": ["a", "b"], "last": ["f", "e"]}, random_state=0
    )
    named.fit(frame, y)
    placed = HRTSelector(FAST, feature_groups=[[0, 1], [4, -1]], random_state=0).fit(X, y)
    # A frame has another order in memory: rounding moves atoms to other bins of a convolution.
    np.testing.assert_allclose(named.pvalues_, placed.pvalues_, rtol=0.01)
    assert named.pvalues_[0] == named.pvalues_[1] < 1e-4
    assert named.pvalues_[4] == named.pvalues_[5] > 1e-3
    assert named.support_[:2].all()
    assert list(named.get_feature_names_out()[:2]) == ["a", "b"]


def test_columns_in_two_groups_are_named():
    X, y = draw(60)
    with pytest.raises(ValueError, match="column 'x2' is in 2 groups"):
        HRTSelector(FAST, feature_groups=[[0, 2], [2, 3]]).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(ValueError, match="column 'c' is in 2 groups"):
        HRTSelector(FAST, feature_groups=[["a", "c"], ["c", "d"]]).fit(frame, y)
    with pytest.raises(ValueError, match="'z'"):
        HRTSelector(FAST, feature_groups=[["a", "z"]]).fit(frame, y)


def test_a_group_of_one_column_is_the_column():
    X, y = draw()
    grouped = HRTSelector(FAST, feature_groups=[[j] for j in range(6)], random_state=0).fit(X, y)
    alone = HRTSelector(FAST, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grouped.pvalues_, alone.pvalues_)


class OwnJoint(MixedConditional):
    """A conditional with a joint law of its own: the observed rows, so nothing can be found."""

    asked: list = []  # noqa: RUF012 - shared by the clones

    def joint_distribution(self, X, columns, rows):
        unit = columns
        self.asked.append(tuple(columns))
        return np.repeat(X[:, None, unit], 2, axis=1), np.full((X.shape[0], 2), 0.5)


def test_a_joint_law_of_the_user_is_used():
    X, y = draw()
    OwnJoint.asked.clear()
    settings = {"feature_groups": [[0, 1]], "n_repeats": 1, "random_state": 0}
    hrt = HRTSelector(FAST, conditional=OwnJoint(), **settings).fit(X, y)
    assert OwnJoint.asked == [(0, 1)] * 5
    assert (hrt.pvalues_[:2] > 0.99).all()
    plain = HRTSelector(FAST, **settings).fit(X, y)
    assert (plain.pvalues_[:2] < 1e-4).all()
    np.testing.assert_array_equal(hrt.pvalues_[2:], plain.pvalues_[2:])


def test_groups_are_not_judged_as_single_columns():
    """One-hot columns are a function of each other: only the others are diagnosed."""
    X, y = with_category()
    hrt = HRTSelector(FAST, feature_groups=[[0, 1, 2, 3]], random_state=0).fit(X, y)
    assert set(hrt.diagnostics_.columns) <= set(range(4, 9))


def test_every_column_in_a_group_leaves_nothing_to_judge():
    X, y = draw()
    hrt = HRTSelector(FAST, feature_groups=[[0, 1, 2], [3, 4, 5]], random_state=0).fit(X, y)
    assert hrt.support_[:3].all()


@pytest.mark.parametrize("kind", ["category", "numbers"])
def test_null_groups_have_uniform_pvalues(kind):
    """40 independent data sets; a Kolmogorov bound that a correct program breaks once in 10,000.

    The law is learnt from the rows, for which 0.03 is allowed.
    """
    p = []
    for seed in range(40):
        X, y = with_category(n=80, effect=0.0, seed=seed, levels=2)
        group = [0, 1] if kind == "category" else [2, 4]  # column 3 alone matters
        model = RandomForestRegressor(3, max_depth=4, random_state=seed)
        p.append(hrt_test(X, y, group, estimator=model, random_state=seed).pvalue)
    assert kstest(p, "uniform").statistic < 2.23 / np.sqrt(40) + 0.03


def test_hrt_test_of_several_columns():
    X, y = with_category()
    assert hrt_test(X, y, [0, 1, 2, 3], estimator=FAST, random_state=0).pvalue < 1e-6
    frame = pd.DataFrame(X, columns=list("abcdefghi"))
    named = hrt_test(frame, y, ["g", "h"], estimator=FAST, random_state=0)
    placed = hrt_test(X, y, np.array([6, 7]), estimator=FAST, random_state=0)
    assert named.pvalue == pytest.approx(placed.pvalue, rel=0.01)
    assert named.pvalue > 1e-4
    with pytest.raises(ValueError, match="'z'"):
        hrt_test(frame, y, ["a", "z"])


def test_a_misfit_outside_the_groups_still_warns():
    X, y = with_category()
    X[:, 8] = X[:, 8] > 0
    settings = {"conditional": "gaussian", "pvalue": "saddlepoint", "random_state": 0}
    hrt = HRTSelector(FAST, feature_groups=[[0, 1, 2, 3]], **settings)
    with pytest.warns(ConditionalModelWarning, match="x8"):
        hrt.fit(X, y)
