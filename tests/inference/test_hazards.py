"""Survival times are tested by the likelihood of a hazard, and the baseline is Breslow's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LassoCV, LinearRegression

from sobolev import ConvexSIC, HRTSelector
from sobolev.critic import PredictorCritic
from sobolev.inference.hazards import MAX_LOG_RATIO, breslow, hazard_model
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.trial import Trial
from sobolev.responses import read_response, survival_scores

TRAIN, ROWS = np.arange(120), np.arange(120, 200)


def survival(seed=0, n=200, effect=1.0, ties=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    time = rng.exponential(size=n) * np.exp(-effect * X[:, 0])
    cut = rng.exponential(size=n)
    happened = time <= cut
    time = np.minimum(time, cut)
    return X, np.ceil(5 * time) / 5 if ties else time, happened


def breslow_by_hand(time, happened, ratios, asked):
    events = np.unique(time[happened])
    steps = [np.sum(happened & (time == t)) / ratios[time >= t].sum() for t in events]
    return np.array([sum(s for t, s in zip(events, steps, strict=True) if t <= a) for a in asked])


@pytest.mark.parametrize("ties", [False, True])
def test_the_scores_hold_all_that_the_baseline_needs(ties):
    X, time, happened = survival(ties=ties)
    scores, ratios = survival_scores(time, happened), np.exp(X[:, 0])
    shared = np.round(happened - scores, 10)
    found = breslow(shared[TRAIN], happened[TRAIN], ratios[TRAIN], shared[ROWS])
    # Between two events of all rows nothing happens, so that times there are as good as one.
    expected = breslow_by_hand(time[TRAIN], happened[TRAIN], ratios[TRAIN], time[ROWS])
    assert_allclose(found, expected, rtol=1e-12)


def test_the_statistic_is_the_likelihood_of_the_hazard():
    X, time, happened = survival()
    scores = survival_scores(time, happened)
    model = LinearRegression().fit(X[TRAIN], scores[TRAIN])
    found = hazard_model(PredictorCritic(model), X, scores, happened, TRAIN, ROWS)
    moved = X[ROWS].copy()
    moved[:, 0] = 0.3
    share, centre = happened[TRAIN].mean(), model.predict(X[TRAIN]).mean()
    g, own = (
        np.clip((model.predict(rows) - centre) / share, -MAX_LOG_RATIO, MAX_LOG_RATIO)
        for rows in (moved, X[TRAIN])
    )
    baseline = breslow_by_hand(time[TRAIN], happened[TRAIN], np.exp(own), time[ROWS])
    expected = happened[ROWS] * g - baseline * np.exp(g)
    values, ones = found.predicted.at(np.array([0]), np.array([[0.3]])), np.ones((ROWS.size, 1))
    table = found.of(NullTable(values, ones, values[:, 0]))
    assert_allclose(table.values[:, 0], expected, rtol=1e-9)
    assert_allclose(table.observed, expected, rtol=1e-9)


def test_the_likelihood_is_right_between_nodes_and_for_heavy_tails(monkeypatch):
    """A critic that is a line in x, or in its normal scores, has a hazard that is no polynomial."""
    X, time, happened = survival(n=400)
    X[:, 0] = np.sinh(3 * X[:, 0])
    y = np.column_stack([time, happened])
    hrt = HRTSelector(response="survival", n_repeats=1, diagnose=False, random_state=0).fit(X, y)
    assert hrt.pvalues_[0] < 1e-6
    assert abs(hrt.null_means_[0]) < 20
    trials, run = [], Trial.run

    def kept(trial, *given):
        trials.append((trial, run(trial, *given)))
        return trials[-1][1]

    monkeypatch.setattr(Trial, "run", kept)
    clone(hrt).fit(X, y)
    trial, done = trials[0]
    block = done.fits[-1]
    model, x = trial.evaluator(block), X[block.rows]
    table = trial.table(model, block.rows, 0)
    exact = model.predicted.each(np.array([0]), x[:, None, :1])
    expected = model.of(NullTable(exact, np.ones((len(x), 1)), exact[:, 0])).observed
    assert_allclose(table.observed, expected, atol=1e-3)


@pytest.mark.parametrize("rho", [1.0, 3.0])
def test_critics_predict_the_scores_in_their_own_units(rho):
    X = survival()[0]
    y = 10 * X[:, 0] + 3 + np.random.default_rng(1).standard_normal(len(X))
    critic = ConvexSIC(lam=0.001, rho=rho).fit(X, y)
    predicted = critic.evaluator(X, y, "witness").predicting()
    found = predicted.each(np.array([0]), X[:, None, :1])[:, 0]
    assert 0.9 < np.polyfit(found, y, 1)[0] < 1.3
    assert np.corrcoef(found, y)[0, 1] > 0.98


def test_critics_that_predict_no_number_keep_their_own_statistic():
    pytest.importorskip("torch")
    from sobolev import NeuralSIC
    from sobolev.neural import BigCritic

    X, time, happened = survival()
    scores = survival_scores(time, happened)
    critic = NeuralSIC(critic=BigCritic((4,), (4,), (4,)), lam=0.1, random_state=0)
    critic.fit(X[TRAIN], scores[TRAIN])
    assert hazard_model(critic, X, scores, happened, TRAIN, ROWS) is None


def test_two_classes_are_no_number():
    X, _, happened = survival()
    labels = np.where(happened, "yes", "no")
    assert ConvexSIC(lam=0.1).fit(X, labels).evaluator(X, labels, "risk").predicting() is None


def test_training_rows_without_events_have_no_hazard():
    X, time, happened = survival()
    happened[TRAIN] = False
    scores = survival_scores(time, happened)
    model = PredictorCritic(LinearRegression().fit(X[TRAIN], scores[TRAIN]))
    assert hazard_model(model, X, scores, happened, TRAIN, ROWS) is None


@pytest.mark.parametrize("estimator", [None, LassoCV()])
def test_the_active_column_is_found_and_the_statistic_is_a_likelihood(estimator):
    X, time, happened = survival(3)
    y = np.column_stack([time, happened])
    hrt = HRTSelector(estimator, response="survival", random_state=0).fit(X, y)
    assert hrt.support_[0]
    assert hrt.pvalues_[0] < 1e-3
    drop = hrt.summary().set_index("feature").loc["x0", "statistic"]
    assert_allclose(drop, hrt.statistics_[0] - hrt.null_means_[0])
    witness = HRTSelector(estimator, response="survival", statistic="residual", random_state=0)
    assert witness.fit(X, y).pvalues_[0] / hrt.pvalues_[0] > 1.5


@pytest.mark.parametrize(("events", "orders"), [(399, 5), (400, 1)])
def test_of_survival_times_events_count_rather_than_rows(events, orders):
    rng = np.random.default_rng(0)
    X, time = rng.standard_normal((500, 3)), rng.exponential(size=500)
    y = np.column_stack([time, np.arange(500) < events])
    hrt = HRTSelector(
        LinearRegression(), response="survival", conditional="gaussian", diagnose=False
    )
    assert hrt.set_params(random_state=0).fit(X, y).n_repeats_ == orders


def test_rows_of_a_response_keep_their_events():
    _, time, happened = survival()
    response = read_response(np.column_stack([time, happened]), "survival")
    some = response.rows(ROWS)
    assert_allclose(some.values, response.values[ROWS])
    np.testing.assert_array_equal(some.events, happened[ROWS])
    assert read_response(np.arange(30.0)).rows(ROWS[:3] - 120).events is None
