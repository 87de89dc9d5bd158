"""NeuralSIC: relations between its results, invariances, weights, groups."""

import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch import nn

from sobolev import NeuralSIC
from sobolev.exceptions import DataWarning
from sobolev.neural import BigCritic, BilinearCritic, EarlyStopping, Optimizer, SmallCritic

N, D = 120, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 1] + np.sin(2 * X[:, 4]) + 0.1 * RNG.standard_normal(N)
RELEVANT = {1, 4}
NAMES = [f"gene{j}" for j in range(D)]
KINDS = np.array(["high", "low", "mid"])
LABELS = KINDS[np.digitize(Y, np.quantile(Y, [0.25, 0.6]))]
SEVERAL = np.column_stack([Y, X[:, 0] - X[:, 1]])


class Module(nn.Module):
    """A user's critic, with dropout from torch's global generator."""

    def __init__(self, n_features, n_targets, dropout=0.2):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features + n_targets, 40), nn.ReLU(), nn.Dropout(dropout), nn.Linear(40, 1)
        )

    def forward(self, x, y):
        return self.layers(torch.cat([x, y], dim=1))


NAMED = {
    "bilinear": "bilinear",
    "small": "small",
    "big": "big",
    "bilinear with layers of y": BilinearCritic(target_widths=(20,)),
    "module": Module,
    "list": ["bilinear", SmallCritic(widths=(60,))],
}
CRITICS = {  # the same kinds, narrow ones
    "bilinear": BilinearCritic(widths=(30, 30)),
    "small": SmallCritic(widths=(30, 30)),
    "big": BigCritic((30,), (10,), (30,)),
    "bilinear with layers of y": BilinearCritic(widths=(30, 30), target_widths=(20,)),
    "module": Module,
    "list": [BilinearCritic(widths=(30,)), SmallCritic(widths=(30,))],
}
FIELDS = {field.name for field in fields(Optimizer)}
RESPONSES = {"numbers": Y, "labels": LABELS, "several": SEVERAL}


def sic(**parameters):
    """An estimator that is trained in a few hundredths of a second."""
    parameters = {"max_iter": 40, "rounds": 1, "random_state": 0} | parameters
    training = {name: parameters.pop(name) for name in FIELDS & parameters.keys()}
    return NeuralSIC(optimizer=Optimizer(**training), **parameters)


def importances(*data, sample_weight=None, **parameters):
    return sic(**parameters).fit(*data, sample_weight).feature_importances_


def all_pairs(fitted, rows, y):
    """f(x_i, y_j) of every row with every response, by one call for each response."""
    n = len(rows)
    responses = (np.repeat(y[j : j + 1], n, axis=0) for j in range(len(y)))
    return np.stack([fitted.witness(rows, same) for same in responses], axis=1)


# Mathematics at the surface


@pytest.mark.parametrize("measure", ["product", "mixture", "joint"])
@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_importances_lie_on_the_simplex_and_the_terms_add_up(critic, measure):
    fitted = sic(critic=critic, measure=measure, rho=0.7).fit(X, Y)
    eta, terms = fitted.feature_importances_, fitted.decomposition_
    assert eta.shape == (D,)
    assert np.all(eta > 0)
    assert eta.sum() == pytest.approx(1.0, abs=1e-9)
    assert np.all(terms.per_feature >= 0)
    assert terms.function >= 0
    assert terms.norm == 0
    penalties = terms.per_feature.sum() + terms.function
    assert fitted.sic_ == pytest.approx(terms.mean_difference - penalties, rel=1e-9)


@pytest.mark.parametrize("y", RESPONSES.values(), ids=RESPONSES)
def test_terms_of_the_exact_critic_are_expectations_of_its_witness(y):
    """E f of the product is zero, the means are over all pairs of a row with a response."""
    fitted = sic(rho=0.7).fit(X, y)
    f = all_pairs(fitted, X, y)
    np.testing.assert_allclose(f.mean(axis=1), 0, atol=1e-7)
    terms = fitted.decomposition_
    assert terms.mean_difference == pytest.approx(np.diag(f).mean(), rel=1e-6)
    assert terms.function == pytest.approx(0.35 * np.mean(f**2), rel=1e-6)


def test_importances_are_root_mean_squares_of_the_derivatives():
    """By differences of the witness; with one standardised response f(x, mean + std) = h(x)."""
    fitted = sic(lam=0.05).fit(X, Y)
    one, step = np.full(N, Y.mean() + Y.std()), 1e-4
    squared = np.zeros(D)
    for j, scale in enumerate(X.std(axis=0)):
        shift = step * scale * np.eye(D)[j]
        difference = fitted.witness(X + shift, one) - fitted.witness(X - shift, one)
        squared[j] = np.mean((difference / (2 * step)) ** 2)
    root = np.sqrt(squared)
    np.testing.assert_allclose(fitted.feature_importances_, root / root.sum(), atol=2e-3)
    np.testing.assert_allclose(
        fitted.decomposition_.per_feature, 0.025 * root * root.sum(), rtol=0.05
    )


@pytest.mark.parametrize("y", RESPONSES.values(), ids=RESPONSES)
def test_risk_of_bilinear_critics_is_exact_in_the_response(y):
    fitted = sic(rho=0.6, boosting=2).fit(X, y)
    new = X[:5] + 0.1
    squares = np.mean(all_pairs(fitted, new, y) ** 2, axis=1)
    expected = fitted.witness(new, y[:5]) - 0.3 * squares
    np.testing.assert_allclose(fitted.risk(new, y[:5]), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("critic", ["small", "big", Module], ids=["small", "big", "module"])
def test_risk_of_other_critics_is_over_32_quantiles_of_the_response(critic):
    fitted = sic(critic=critic, rho=0.6).fit(X, Y)
    reference = np.quantile(Y, (np.arange(32) + 0.5) / 32, method="inverted_cdf")
    f = all_pairs(fitted, X, reference)
    expected = fitted.witness(X, Y) - f.mean(axis=1) - 0.3 * np.mean(f**2, axis=1)
    np.testing.assert_allclose(fitted.risk(X, Y), expected, atol=1e-5)


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_score_is_the_mean_risk(critic):
    fitted = sic(critic=critic).fit(X, Y)
    weights = np.random.default_rng(0).exponential(size=N)
    risk = fitted.risk(X, Y)
    assert risk.shape == (N,)
    assert fitted.score(X, Y) == pytest.approx(risk.mean(), rel=1e-9)
    assert fitted.score(X, Y, weights) == pytest.approx(np.average(risk, weights=weights))


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("critic", ["bilinear", "small"])
@pytest.mark.parametrize("seed", [0, 1])
def test_without_dependence_held_out_rows_show_none(critic, early_stopping, seed):
    """A critic that follows noise has a negative score; one of a thousand is above 3 errors."""
    y = np.random.default_rng(seed).permutation(Y)
    stopping = EarlyStopping() if early_stopping else None
    options = {"critic": critic, "early_stopping": stopping, "max_iter": 120}
    fitted = sic(random_state=seed, **options).fit(X[:80], y[:80])
    risk = fitted.risk(X[80:], y[80:])
    assert risk.mean() <= 3 * risk.std(ddof=1) / np.sqrt(risk.size)
    if early_stopping:
        assert risk.mean() >= -0.1


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_double_backpropagation_agrees_with_the_closed_form(critic):
    options = {"critic": critic, "max_iter": 8}
    closed = sic(gradient="auto", **options).fit(X, Y)
    automatic = sic(gradient="autograd", **options).fit(X, Y)
    np.testing.assert_allclose(
        automatic.feature_importances_, closed.feature_importances_, atol=1e-4
    )
    np.testing.assert_allclose(automatic.objective_curve_, closed.objective_curve_, atol=1e-4)


# Finding features


@pytest.mark.parametrize("critic", NAMED.values(), ids=NAMED)
def test_every_critic_finds_the_relevant_features(critic):
    fitted = sic(critic=critic, max_iter=200, rounds=2, learning_rate=5e-3).fit(X, Y)
    assert set(np.argsort(-fitted.feature_importances_)[:2]) == RELEVANT
    assert set(fitted.get_support(indices=True)) == RELEVANT
    assert fitted.score(X, Y) > 0.2


@pytest.mark.parametrize("measure", ["mixture", "joint"])
@pytest.mark.parametrize("critic", ["bilinear", "small"])
def test_other_measures_find_the_features_and_differ(critic, measure):
    eta = importances(X, Y, critic=critic, measure=measure, max_iter=150)
    assert set(np.argsort(-eta)[:2]) == RELEVANT
    assert np.abs(eta - importances(X, Y, critic=critic, max_iter=150)).max() > 1e-4


def test_several_responses_and_labels():
    fitted = sic(max_iter=120).fit(X, SEVERAL)
    assert set(np.argsort(-fitted.feature_importances_)[:3]) == {0, 1, 4}
    assert not hasattr(fitted, "classes_")
    fitted = sic(max_iter=120).fit(X, LABELS)
    assert set(np.argsort(-fitted.feature_importances_)[:2]) == RELEVANT
    assert fitted.classes_.tolist() == ["high", "low", "mid"]


def test_rounds_of_the_metric_sharpen_the_ranking():
    one, four = (importances(X, Y, rounds=r, max_iter=120) for r in (1, 4))
    assert four[[1, 4]].sum() > one[[1, 4]].sum() + 0.05


# Invariances


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_order_of_rows_does_not_matter(critic):
    order = np.random.default_rng(1).permutation(N)
    options = {"critic": critic, "batch_size": 50, "rounds": 2, "early_stopping": EarlyStopping()}
    first = importances(X, LABELS, **options)
    np.testing.assert_allclose(importances(X[order], LABELS[order], **options), first, atol=1e-5)


def test_order_of_rows_does_not_matter_for_classes_of_equal_size():
    """Their indicators have a covariance with equal eigenvalues: any basis of psi is white."""
    balanced, order = np.repeat(KINDS, N // 3), np.random.default_rng(1).permutation(N)
    first = importances(X, balanced)
    np.testing.assert_allclose(importances(X[order], balanced[order]), first, atol=1e-5)


def test_units_and_origins_do_not_matter():
    rng = np.random.default_rng(2)
    scale, shift = 10.0 ** rng.choice([-6, 0, 6], size=D), rng.standard_normal(D)
    first = importances(X, Y)
    for rows, y in ((scale * (X + shift), Y), (X, 1e6 * Y + 3), (X, 1e-6 * Y)):
        np.testing.assert_allclose(importances(rows, y), first, atol=1e-4)


def test_names_of_labels_do_not_matter():
    codes = np.unique(LABELS, return_inverse=True)[1]
    first = importances(X, LABELS)
    for same in (codes, pd.Series(LABELS, dtype="category"), LABELS.tolist()):
        np.testing.assert_allclose(importances(X, same), first, atol=1e-6)


# Weights


@pytest.mark.parametrize("critic", ["bilinear", "small"])
@pytest.mark.parametrize("lam", [0.01, "auto"])
def test_rows_of_no_weight_are_as_if_absent(critic, lam):
    """Even where they would add a class or make a constant column vary."""
    rows = np.column_stack([X, np.zeros(N)])
    extra = np.vstack([rows[:3] + 50, rows])
    labels = np.concatenate([["other"] * 3, LABELS])
    w = np.concatenate([np.zeros(3), np.ones(N)])
    with pytest.warns(DataWarning):
        weighted = sic(critic=critic, lam=lam, max_iter=20, cv=3).fit(extra, labels, w)
    dropped = sic(critic=critic, lam=lam, max_iter=20, cv=3).fit(X, LABELS)
    assert weighted.classes_.tolist() == ["high", "low", "mid"]
    np.testing.assert_array_equal(
        weighted.feature_importances_, [*dropped.feature_importances_, 0.0]
    )
    np.testing.assert_array_equal(weighted.witness(rows, LABELS), dropped.witness(X, LABELS))


@pytest.mark.parametrize("batch_size", [30, 500], ids=["drawn", "whole"])
@pytest.mark.parametrize("critic", ["bilinear", "small"])
def test_integer_weights_are_repetitions(critic, batch_size):
    w = np.random.default_rng(3).integers(0, 4, size=N)
    rows = np.repeat(np.arange(N), w)
    options = {"critic": critic, "batch_size": batch_size}
    weighted = sic(**options).fit(X, Y, w)
    repeated = sic(**options).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        weighted.feature_importances_, repeated.feature_importances_, atol=1e-5
    )
    assert weighted.sic_ == pytest.approx(repeated.sic_, abs=1e-5)
    assert np.abs(weighted.feature_importances_ - importances(X, Y, **options)).max() > 1e-3


# Columns without information, groups


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_constant_columns_get_nothing(critic):
    rows = np.insert(X, 2, 7.0, axis=1)
    with pytest.warns(DataWarning, match="importance 0: 2"):
        fitted = sic(critic=critic).fit(rows, Y)
    without = sic(critic=critic).fit(X, Y)
    expected = np.insert(without.feature_importances_, 2, 0.0)
    np.testing.assert_allclose(fitted.feature_importances_, expected, atol=1e-9)
    assert np.all(fitted.member_importances_[:, 2] == 0)
    assert fitted.decomposition_.per_feature[2] == 0
    assert not fitted.support_[2]
    np.testing.assert_allclose(fitted.witness(rows, Y), without.witness(X, Y), atol=1e-9)


def test_the_warning_points_at_the_line_that_called_fit():
    with pytest.warns(DataWarning) as caught:
        sic().fit(np.insert(X, 2, 7.0, axis=1), Y)
    assert caught[0].filename == __file__


def test_constant_columns_are_named():
    frame = pd.DataFrame(X, columns=NAMES).assign(flat=1.0)
    with pytest.warns(DataWarning, match="'flat'"):
        fitted = sic(feature_groups={"pair": ["flat", "gene0"]}).fit(frame, Y)
    assert fitted.group_importances_.sum() == pytest.approx(1)
    assert fitted.feature_importances_[0] == pytest.approx(fitted.group_importances_[0])


@pytest.mark.parametrize("critic", ["bilinear", "small", Module], ids=["bilinear", "small", "mod"])
@pytest.mark.parametrize("rule", ["averaged", "mirror"])
def test_groups_share_one_importance(critic, rule):
    frame = pd.DataFrame(X, columns=NAMES)
    options = {"critic": critic, "eta_rule": rule, "boosting": 2}
    named = sic(feature_groups={"a": ["gene0", "gene2"], "b": ["gene1", "gene4"]}, **options).fit(
        frame, Y
    )
    placed = sic(feature_groups={"a": [0, 2], "b": [1, 4]}, **options).fit(frame, Y)
    np.testing.assert_array_equal(named.feature_importances_, placed.feature_importances_)
    assert named.group_names_ == ["a", "b", "gene3", "gene5"]
    assert named.group_importances_.shape == (4,)
    assert named.group_importances_.argmax() == 1
    shares = [named.feature_importances_[c].sum() for c in ([0, 2], [1, 4], [3], [5])]
    np.testing.assert_allclose(shares, named.group_importances_, rtol=1e-9)
    np.testing.assert_allclose(named.member_importances_.sum(axis=1), 1.0)


def test_refitting_forgets_the_fit_before():
    fitted = sic(feature_groups=[[0, 1]]).fit(X, LABELS)
    fitted.set_params(feature_groups=None).fit(X, Y)
    assert not hasattr(fitted, "classes_")
    assert not hasattr(fitted, "group_importances_")
    np.testing.assert_array_equal(fitted.feature_importances_, importances(X, Y))


# The scikit-learn contract beyond its own checks


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_pickle_keeps_the_critic(critic):
    fitted = sic(critic=critic, rounds=2).fit(X, LABELS)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.witness(X, LABELS), fitted.witness(X, LABELS))
    np.testing.assert_array_equal(copy.feature_importances_, fitted.feature_importances_)


def test_specifications_have_nested_parameters():
    fitted = sic(critic=SmallCritic(widths=(20,))).fit(X, Y)
    assert fitted.get_params()["critic__dropout"] == 0.3
    other = clone(fitted).set_params(critic__dropout=0.0)
    assert other.critic is not fitted.critic
    assert fitted.critic.dropout == 0.3
    again = clone(fitted).fit(X, Y)
    np.testing.assert_array_equal(again.feature_importances_, fitted.feature_importances_)
    assert np.abs(other.fit(X, Y).feature_importances_ - fitted.feature_importances_).max() > 1e-6


def test_names_of_a_frame_are_kept():
    frame = pd.DataFrame(X, columns=NAMES, index=np.arange(N) + 1000)
    fitted = sic(n_features_to_select=2, max_iter=150).fit(frame, pd.Series(Y, index=frame.index))
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.get_feature_names_out().tolist() == ["gene1", "gene4"]
    table = fitted.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(table, frame[["gene1", "gene4"]])


def test_fit_leaves_its_arguments_alone():
    rows, y, w = X.copy(), Y.copy(), np.ones(N)
    sic(early_stopping=EarlyStopping()).fit(rows, y, w)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(w, 1.0)


def test_before_fit_there_is_nothing_to_ask():
    for ask in ("witness", "risk", "score", "explain"):
        with pytest.raises(NotFittedError):
            getattr(sic(), ask)(X, Y)
    with pytest.raises(NotFittedError):
        sic().transform(X)


def test_new_rows_are_checked():
    fitted = sic().fit(X, LABELS)
    with pytest.raises(ValueError, match="6 features"):
        fitted.witness(X[:, :3], LABELS)
    with pytest.raises(ValueError, match="120 rows but y has 3"):
        fitted.risk(X, LABELS[:3])
    with pytest.raises(ValueError, match="label 'huge'"):
        fitted.explain(X, ["huge"] * N)
