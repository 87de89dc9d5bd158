"""The holdout randomization test: tables, selection, null p-values, reproducibility."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sobolev import ConvexSIC, NeuralSIC
from sobolev.convex import FourierMap
from sobolev.critic import as_critic
from sobolev.datasets import make_sinexp
from sobolev.exceptions import SobolevWarning
from sobolev.inference import Forward, HRTSelector, MonteCarlo, Split, hrt_test
from sobolev.inference.multiple_testing import null_share, qvalues
from sobolev.inference.replacements import null_table
from sobolev.inference.trial import with_every_class
from sobolev.neural import Optimizer, SmallCritic
from sobolev.neural.evaluation import MAX_REFERENCE

QUICK = {"optimizer": Optimizer(max_iter=40, rounds=1), "random_state": 0}
CRITICS = [
    ConvexSIC(),
    ConvexSIC(feature_map=FourierMap(64), random_state=0),
    ConvexSIC(feature_map="polynomial", lam=0.01),
    NeuralSIC(**QUICK),
    NeuralSIC(critic=["small", "bilinear"], boosting=2, **QUICK),
    NeuralSIC(critic="big", **QUICK),
]


def draw(n=160, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("estimator", CRITICS, ids=lambda e: str(e)[:60])
@pytest.mark.parametrize("statistic", ["risk", "witness"])
def test_replacing_a_column_equals_a_full_evaluation(estimator, statistic):
    X, y = draw()
    model = estimator.fit(X, y)
    if hasattr(model, "reference_"):
        model.reference_ = model.reference_[:MAX_REFERENCE]  # as many as the table uses
    evaluator = as_critic(model).evaluator(X[:50], y[:50], statistic)
    values = np.array([-1.5, 0.0, 0.3])
    found = evaluator.at(np.array([1]), values[:, None])
    for q, value in enumerate(values):
        moved = X[:50].copy()
        moved[:, 1] = value
        expected = getattr(model, statistic)(moved, y[:50])
        atol = 1e-5 if hasattr(model, "reference_") else 1e-8  # networks run in single precision
        np.testing.assert_allclose(found[:, q], expected, atol=atol)


@pytest.mark.parametrize("estimator", CRITICS[:2], ids=["landmark", "fourier"])
def test_interpolation_is_exact_for_smooth_critics(estimator):
    X, y = draw()
    model = estimator.fit(X, y)
    evaluator = as_critic(model).evaluator(X, y, "risk")
    nodes = X[:, [0]] + np.linspace(-1, 1, 60)
    table = null_table(evaluator, 0, X[:, 0], nodes, np.full(nodes.shape, 1 / 60))
    np.testing.assert_allclose(table.observed, model.risk(X, y), atol=1e-4)
    moved = X.copy()
    moved[:, 0] = nodes[:, 17]
    np.testing.assert_allclose(table.values[:, 17], model.risk(moved, y), atol=1e-4)


def test_constant_columns_do_not_move_the_statistic():
    X, y = draw()
    X[:, 3] = 1.0
    with pytest.warns(UserWarning, match="constant"):
        model = ConvexSIC(lam=0.01).fit(X, y)
    evaluator = as_critic(model).evaluator(X, y, "risk")
    found = evaluator.at(np.array([3]), np.array([[0.0], [5.0]]))
    np.testing.assert_allclose(found, model.risk(X, y)[:, None] * np.ones(2))


def test_predictors_have_their_loss():
    X, y = draw()
    forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    found = as_critic(forest).evaluator(X, y, "risk").at(np.array([2]), np.array([[0.5]]))
    moved = X.copy()
    moved[:, 2] = 0.5
    np.testing.assert_allclose(found[:, 0], -((forest.predict(moved) - y) ** 2))
    labels = np.where(y > 0, "b", "a")
    trees = RandomForestClassifier(20, random_state=0).fit(X, labels)
    found = as_critic(trees).evaluator(X, labels, "risk").at(np.array([2]), np.array([[0.5]]))
    p = trees.predict_proba(moved)[np.arange(160), (labels == "b").astype(int)]
    np.testing.assert_allclose(found[:, 0], np.log(np.maximum(p, 1e-12)))


@pytest.mark.parametrize(
    "estimator",
    [
        None,
        NeuralSIC(critic=SmallCritic(widths=(50,)), optimizer=Optimizer(max_iter=400)),
        LassoCV(),
    ],
    ids=["convex", "neural", "lasso"],
)
@pytest.mark.parametrize("scheme", ["split", "forward"])
def test_relevant_columns_are_found(estimator, scheme):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 8))
    y = 2 * X[:, 2] - X[:, 5] + 0.3 * rng.standard_normal(240)
    hrt = HRTSelector(estimator, scheme=scheme, random_state=0).fit(X, y)
    assert hrt.support_[[2, 5]].all()
    assert hrt.support_.sum() <= 4
    assert hrt.transform(X).shape == (240, hrt.support_.sum())


def test_qvalues_and_support_belong_together():
    X, y = draw()
    hrt = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.01),
        shortlist=4,
        fdr=0.2,
        n_repeats=1,
        random_state=1,
    )
    hrt.fit(X, y)
    tested = np.isfinite(hrt.pvalues_)
    assert tested.sum() == 4
    np.testing.assert_array_equal(np.flatnonzero(tested), hrt.shortlist_)
    planned = np.append(hrt.pvalues_[tested], 1.0)  # a fifth column could have joined
    np.testing.assert_allclose(hrt.qvalues_[tested], false_discovery_control(planned)[:4])
    np.testing.assert_array_equal(hrt.support_[tested], hrt.qvalues_[tested] <= 0.2)
    assert not hrt.support_[~tested].any()


def test_null_pvalues_are_uniform():
    """Irrelevant columns of independent data sets; a correct program fails once in 10,000."""
    found = []
    for seed in range(25):
        X, y = draw(n=120, seed=100 + seed)
        hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.03), random_state=seed).fit(X, y)
        found.append(hrt.pvalues_[2:])
    p = np.concatenate(found)
    share = np.mean(p < 0.1)
    # 100 p-values of four dependent columns each: effectively at least 25 independent ones.
    assert share < 0.1 + 3.7 * np.sqrt(0.1 * 0.9 / 50)


@pytest.mark.parametrize("scheme", ["split", "forward"])
def test_the_same_answer_twice_and_for_any_number_of_jobs(scheme):
    X, y = draw()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    results = [
        HRTSelector(
            ConvexSIC(feature_map="landmark", lam=0.01), scheme=scheme, random_state=3, n_jobs=jobs
        )
        .fit(X, y)
        .pvalues_
        for jobs in (1, 1, 2)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_given_holdout_rows_are_the_ones_tested():
    X, y = draw(300)
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.01), scheme="split", random_state=0)
    hrt.fit(X[:150], y[:150], holdout=(X[150:], y[150:]))
    model = ConvexSIC(lam=0.01).fit(X[:150], y[:150])
    assert hrt.statistics_[0] == pytest.approx(model.risk(X[150:], y[150:]).mean(), abs=1e-6)


def test_a_true_column_survives_the_merging_of_orders():
    X, y = draw()
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.01), n_repeats=3, random_state=0).fit(
        X, y
    )
    assert hrt.pvalues_.max() <= 1
    assert hrt.pvalues_[1] < 1e-3


def test_monte_carlo_agrees_with_the_saddlepoint():
    X, y = draw()
    both = [
        HRTSelector(ConvexSIC(feature_map="landmark", lam=0.01), pvalue=kind, random_state=0)
        .fit(X, y)
        .pvalues_
        for kind in ("saddlepoint", "montecarlo")
    ]
    error = np.sqrt(both[0] * (1 - both[0]) / 1000) + 2e-3
    assert np.all(np.abs(both[0] - both[1]) < 5 * error)


def test_a_hopeless_setting_is_said_before_the_work():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 150)), rng.standard_normal(60)
    hrt = HRTSelector(
        ConvexSIC(lam=0.1), pvalue="montecarlo", scheme="split", shortlist=150, fdr=0.01
    )
    with pytest.warns(SobolevWarning, match="smallest p-value"):
        hrt.fit(X, y)


def test_one_column_by_name():
    data = make_sinexp(n_samples=200, n_features=12, random_state=0)
    frame = pd.DataFrame(data.data, columns=[f"g{j}" for j in range(12)])
    result = hrt_test(frame, data.target, "g0", random_state=0)
    assert result.pvalue < 0.01
    assert result.statistic > result.null_mean + 2 * result.null_deviation
    assert result.feature == "g0"
    with pytest.raises(ValueError, match="'nope'"):
        hrt_test(frame, data.target, "nope")


def test_the_result_of_one_column_of_a_selector():
    """With one split and the same draw of rows it is that of hrt_test."""
    data = make_sinexp(n_samples=200, n_features=6, random_state=0)
    frame = pd.DataFrame(data.data, columns=[f"g{j}" for j in range(6)])
    critic = ConvexSIC(lam=0.02, random_state=0)
    hrt = HRTSelector(critic, scheme="split", random_state=0, shortlist=3).fit(frame, data.target)
    name = frame.columns[hrt.shortlist_[0]]
    alone = hrt_test(frame, data.target, name, estimator=critic, random_state=0)
    found = hrt.result(name)
    assert found == hrt.result(int(hrt.shortlist_[0]))
    assert found.feature == name
    for field in ("statistic", "pvalue", "null_mean", "null_deviation"):
        assert getattr(found, field) == pytest.approx(getattr(alone, field), rel=1e-6)
    left_out = frame.columns[np.isnan(hrt.pvalues_)][0]
    with pytest.raises(ValueError, match=f"'{left_out}' was not tested.*shortlist"):
        hrt.result(left_out)
    with pytest.raises(ValueError, match="'nope'"):
        hrt.result("nope")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"fdr": 0}, "fdr"),
        ({"scheme": Split(1.0)}, "test_size"),
        ({"scheme": Forward(n_blocks=0)}, "n_blocks"),
        ({"pvalue": MonteCarlo(0)}, "n_draws"),
        ({"statistic": "x"}, "statistic"),
        ({"pvalue": "x"}, "pvalue"),
        ({"scheme": "cross"}, "scheme"),
        ({"procedure": "x"}, "procedure"),
        ({"n_repeats": 0}, "n_repeats"),
        ({"shortlist": 0}, "shortlist"),
        ({"conditional": "x"}, "conditional"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        HRTSelector(**parameters).fit(*draw(40))


def test_storey_and_yekutieli():
    p = np.array([0.001, 0.01, 0.02, np.nan, 0.6, 0.9])
    assert null_share(p[np.isfinite(p)]) == 1.0
    np.testing.assert_allclose(qvalues(p, "storey")[:3], qvalues(p, "bh")[:3])
    assert null_share(np.array([0.01] * 9 + [0.9])) == pytest.approx(0.4)
    harmonic = sum(1 / k for k in range(1, 6))
    np.testing.assert_allclose(qvalues(p, "by")[:2], np.minimum(1, harmonic * qvalues(p, "bh")[:2]))
    assert np.isnan(qvalues(np.full(3, np.nan))).all()


# A row of weight two is one observation that counts twice, not two independent ones.
NOT_REPEATED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "weights are not repetitions"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [HRTSelector(ConvexSIC(feature_map="landmark", lam=0.01), random_state=0)],
    expected_failed_checks=lambda _: NOT_REPEATED,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_a_table_is_validated_once(monkeypatch):
    """At the door: refits, tests and diagnostics take rows that were checked."""
    from sobolev import validation

    calls = []
    check = validation.validate_data
    monkeypatch.setattr(
        validation, "validate_data", lambda *a, **k: calls.append(1) or check(*a, **k)
    )
    HRTSelector(random_state=0).fit(*draw(120, 8))
    assert len(calls) == 1
    HRTSelector(NeuralSIC(**QUICK), random_state=0).fit(*draw(120, 8))
    assert len(calls) == 2


def test_the_default_critic_is_convex_sic():
    X, y = draw()
    default = HRTSelector(random_state=0).fit(X, y)
    named = HRTSelector(ConvexSIC(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(default.pvalues_, named.pvalues_)


def test_algorithm_4_as_printed_is_one_setting():
    """Neural SIC, the mean witness, a split, a neural generator and R Monte Carlo rounds."""
    hrt = HRTSelector.paper(fdr=0.2, pvalue=MonteCarlo(50))
    assert hrt.estimator.get_params()["critic"] == "small"
    assert (hrt.statistic, hrt.scheme, hrt.conditional, hrt.procedure) == (
        "witness",
        "split",
        "neural",
        "bh",
    )
    assert (hrt.fdr, hrt.pvalue) == (0.2, MonteCarlo(50))  # what the caller passes wins
    X, y = draw(120, 4)
    quick = HRTSelector.paper(LassoCV(), conditional="gaussian", random_state=0).fit(X, y)
    smallest = 1 / 1001
    assert quick.pvalues_.min() >= smallest - 1e-12
    np.testing.assert_allclose(np.round(quick.pvalues_ * 1001), quick.pvalues_ * 1001, atol=1e-6)


def test_the_first_fit_sees_every_class():
    rng = np.random.default_rng(0)
    y = np.array(["a"] * 50 + ["b"] * 3 + ["c"] * 2)
    for _ in range(100):
        order = rng.permutation(55)
        found = with_every_class(order, 20, y)
        assert sorted(found) == list(range(55))
        assert set(y[found[:20]]) == {"a", "b", "c"}
        if set(y[order[:20]]) == {"a", "b", "c"}:
            np.testing.assert_array_equal(found, order)
    groups = np.repeat(np.arange(11), 5)
    found = with_every_class(np.arange(11), 4, y, groups)
    assert set(y[np.isin(groups, found[:4])]) == {"a", "b", "c"}
    np.testing.assert_array_equal(with_every_class(np.arange(55), 20, np.arange(55.0)), range(55))
    X = rng.normal(size=(55, 4))
    for seed in range(5):
        HRTSelector(ConvexSIC(feature_map="landmark", lam=0.1), random_state=seed).fit(X, y)
