"""SobolevRegressor and SobolevClassifier: they learn and select, in the units of y."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from torch import nn

from sobolev import SobolevClassifier, SobolevRegressor, load, save
from sobolev.exceptions import DataWarning
from sobolev.neural import DenseNetwork, EarlyStopping, Optimizer

N, D = 200, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2 * N, D))
Y = X[:, 1] + np.sin(2 * X[:, 4]) + 0.1 * RNG.standard_normal(2 * N)
X_NEW, Y_NEW = X[N:], Y[N:]
X, Y = X[:N], Y[:N]
CUTS = np.quantile(Y, [0.3, 0.6])
WORDS = np.array(["low", "mid", "high"])
LABELS, LABELS_NEW = WORDS[np.digitize(Y, CUTS)], WORDS[np.digitize(Y_NEW, CUTS)]


def module(n_features, n_outputs):
    return nn.Sequential(
        nn.Linear(n_features, 40), nn.ReLU(), nn.Dropout(0.1), nn.Linear(40, n_outputs)
    )


NETWORKS = {"default": None, "one layer": DenseNetwork(widths=(60,), dropout=0.1), "module": module}
GOOD = {"optimizer": Optimizer(max_iter=250, rounds=2, learning_rate=5e-3), "random_state": 0}
FAST = {"optimizer": Optimizer(max_iter=30, rounds=2), "random_state": 0}


def changed(parameters, **training):
    """The same parameters with another optimizer."""
    return parameters | {"optimizer": replace(parameters["optimizer"], **training)}


def responses(cls):
    return Y if cls is SobolevRegressor else LABELS


BOTH = pytest.mark.parametrize("cls", [SobolevRegressor, SobolevClassifier])
EVERY_NETWORK = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)


# Regression


@EVERY_NETWORK
def test_the_regressor_learns_a_nonlinear_function(network):
    fitted = SobolevRegressor(network=network, **GOOD).fit(X, Y)
    linear = LinearRegression().fit(X, Y).score(X_NEW, Y_NEW)
    assert fitted.score(X_NEW, Y_NEW) > max(0.8, linear + 0.1)
    assert set(fitted.get_support(indices=True)) == {1, 4}


def test_several_responses_have_a_column_each():
    several = np.column_stack([Y, 100 * X[:, 0] + 7])
    fitted = SobolevRegressor(**GOOD).fit(X, several)
    found = fitted.predict(X)
    assert found.shape == (N, 2)
    residual = np.mean((found - several) ** 2, axis=0)
    assert np.all(residual < 0.2 * several.var(axis=0))
    assert fitted.feature_importances_[[0, 1, 4]].sum() > 0.8
    one = SobolevRegressor(**FAST).fit(X, several[:, :1])
    assert one.predict(X).shape == (N, 1)


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, -5.0), (1e-3, 0.5), (1.0, 1e4)])
def test_predictions_are_in_the_units_of_the_response(scale, shift):
    first = SobolevRegressor(**FAST).fit(X, Y)
    moved = SobolevRegressor(**FAST).fit(X, scale * Y + shift)
    np.testing.assert_allclose(
        moved.predict(X_NEW), scale * first.predict(X_NEW) + shift, atol=1e-3 * scale
    )
    np.testing.assert_allclose(moved.feature_importances_, first.feature_importances_, atol=1e-4)


def test_the_prediction_is_the_mean_of_the_members():
    three = SobolevRegressor(boosting=3, **FAST).fit(X, Y)
    ensemble = three._ensembles[0]
    alone = []
    for member in range(3):
        network = ensemble.network.replace(
            [p[member : member + 1] for p in ensemble.network.parameters]
        )
        one = clone(three).set_params(boosting=1).fit(X, Y)
        one._ensembles[0].network = network
        alone.append(one.predict(X_NEW))
    np.testing.assert_allclose(three.predict(X_NEW), np.mean(alone, axis=0), atol=1e-5)
    assert np.ptp(alone, axis=0).max() > 1e-3


def test_the_penalty_shrinks_the_predictions():
    """With ever more penalty nothing is left but the mean."""
    spreads = [
        SobolevRegressor(lam=lam, **changed(GOOD, rounds=1)).fit(X, Y).predict(X).std()
        for lam in (0.0, 1.0, 100.0)
    ]
    assert spreads[0] > spreads[1] > spreads[2]
    assert spreads[2] < 0.2 * Y.std()


def test_integers_are_numbers_for_the_regressor():
    y = np.round(3 * Y).astype(int)
    fitted = SobolevRegressor(**FAST).fit(X, y)
    np.testing.assert_array_equal(
        fitted.predict(X), SobolevRegressor(**FAST).fit(X, y.astype(float)).predict(X)
    )


# Classification


@EVERY_NETWORK
def test_the_classifier_learns_and_selects(network):
    fitted = SobolevClassifier(network=network, **GOOD).fit(X, LABELS)
    assert fitted.score(X_NEW, LABELS_NEW) > 0.7
    assert set(np.argsort(-fitted.feature_importances_)[:2]) == {1, 4}
    assert fitted.classes_.tolist() == ["high", "low", "mid"]


@pytest.mark.parametrize("n_members", [1, 3])
def test_probabilities_sum_to_one_and_decide_the_class(n_members):
    fitted = SobolevClassifier(boosting=n_members, **FAST).fit(X, LABELS)
    p = fitted.predict_proba(X_NEW)
    assert p.shape == (N, 3)
    assert np.all((p > 0) & (p < 1))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(X_NEW), fitted.classes_[p.argmax(axis=1)])
    # On the training rows the mean probabilities are near the frequencies of the classes.
    frequencies = np.unique(LABELS, return_counts=True)[1] / N
    np.testing.assert_allclose(fitted.predict_proba(X).mean(axis=0), frequencies, atol=0.1)


@pytest.mark.parametrize("labels", [Y > 0, np.where(Y > 0, 7, -2), np.where(Y > 0, 3.0, 1.0)])
def test_two_classes_of_any_kind(labels):
    fitted = SobolevClassifier(**changed(GOOD, max_iter=150)).fit(X, labels)
    np.testing.assert_array_equal(fitted.classes_, np.unique(labels))
    assert fitted.predict(X).dtype == labels.dtype
    assert fitted.score(X, labels) > 0.85


def test_a_rare_class_has_a_small_probability():
    """The offsets of the scores learn the frequencies where nothing else is to be learned."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(N) < 0.1, "rare", "common")
    optimizer = Optimizer(max_iter=300, learning_rate=1e-2, rounds=1)
    fitted = SobolevClassifier(lam=10.0, optimizer=optimizer, random_state=0).fit(X, y)
    expected = np.mean(y == "rare")
    assert np.abs(fitted.predict_proba(X)[:, 1].mean() - expected) < 0.05


# Both


@BOTH
def test_importances_lie_on_the_simplex(cls):
    rows = np.insert(X, 3, 1.0, axis=1)
    with pytest.warns(DataWarning, match="importance 0: 3") as caught:
        fitted = cls(boosting=2, **FAST).fit(rows, responses(cls))
    assert caught[0].filename == __file__
    assert fitted.feature_importances_.shape == (D + 1,)
    assert fitted.feature_importances_[3] == 0
    assert fitted.feature_importances_.sum() == pytest.approx(1)
    assert fitted.member_importances_.shape == (2, D + 1)
    without = cls(boosting=2, **FAST).fit(X, responses(cls))
    np.testing.assert_allclose(fitted._outputs(rows), without._outputs(X), atol=1e-9)


@BOTH
@EVERY_NETWORK
def test_pickle_and_clone_keep_the_network(cls, network):
    fitted = cls(network=network, boosting=2, **FAST).fit(X, responses(cls))
    expected = fitted.predict(X_NEW)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X_NEW), expected)
    np.testing.assert_array_equal(clone(fitted).fit(X, responses(cls)).predict(X_NEW), expected)


@BOTH
@EVERY_NETWORK
def test_files_keep_the_network(cls, network, tmp_path):
    fitted = cls(network=network, boosting=2, **FAST).fit(X, responses(cls))
    path = save(fitted, tmp_path / "model")
    loaded = load(path, module=network) if network is module else load(path)
    np.testing.assert_array_equal(loaded.predict(X_NEW), fitted.predict(X_NEW))
    np.testing.assert_array_equal(loaded.feature_importances_, fitted.feature_importances_)


@BOTH
def test_lam_comes_from_the_path(cls):
    fitted = cls(lam="auto", cv=3, **FAST).fit(X, responses(cls))
    assert fitted.lam_ in fitted.lam_path_
    assert fitted.lam_risks_.shape == (3, fitted.lam_path_.size)
    assert np.all(fitted.lam_risks_ < 0)  # minus squared errors, log-likelihoods


@BOTH
def test_rows_of_no_weight_are_as_if_absent(cls):
    y = responses(cls)
    extra = np.vstack([X, X[:5] + 100])
    w = np.concatenate([np.ones(N), np.zeros(5)])
    weighted = cls(**FAST).fit(extra, np.concatenate([y, y[:5]]), w)
    np.testing.assert_array_equal(weighted.predict(X), cls(**FAST).fit(X, y).predict(X))


@BOTH
def test_integer_weights_are_repetitions(cls):
    y, w = responses(cls), np.random.default_rng(1).integers(0, 3, size=N)
    rows = np.repeat(np.arange(N), w)
    weighted, repeated = cls(**FAST).fit(X, y, w), cls(**FAST).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted._outputs(X), repeated._outputs(X), atol=1e-4)


@BOTH
def test_order_of_rows_does_not_matter(cls):
    y, order = responses(cls), np.random.default_rng(1).permutation(N)
    first = cls(**FAST).fit(X, y)._outputs(X_NEW)
    np.testing.assert_allclose(
        cls(**FAST).fit(X[order], y[order])._outputs(X_NEW), first, atol=1e-4
    )


@BOTH
def test_early_stopping_and_warm_start(cls):
    y = responses(cls)
    stopped = cls(**changed(FAST, max_iter=400, early_stopping=EarlyStopping(patience=1))).fit(X, y)
    assert stopped.n_iter_ <= 400
    assert stopped.validation_curve_.shape[1] == 1
    assert np.all(stopped.validation_curve_ < 0)
    warm = cls(**changed(FAST, warm_start=True)).fit(X, y)
    start = warm.objective_curve_[:5].mean()
    assert warm.fit(X, y).objective_curve_[:5].mean() < start


@BOTH
def test_groups_share_one_importance(cls):
    fitted = cls(feature_groups={"pair": [1, 4]}, **FAST).fit(X, responses(cls))
    assert fitted.group_names_[0] == "pair"
    assert fitted.group_importances_.argmax() == 0
    pair = fitted.feature_importances_[[1, 4]].sum()
    assert pair == pytest.approx(fitted.group_importances_[0])
    fitted.set_params(feature_groups=None).fit(X, responses(cls))
    assert not hasattr(fitted, "group_importances_")


@BOTH
def test_they_select_columns_in_a_pipeline(cls):
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(D)])
    fitted = cls(n_features_to_select=2, **GOOD).fit(frame, responses(cls))
    assert fitted.get_feature_names_out().tolist() == ["gene1", "gene4"]
    pipeline = make_pipeline(clone(fitted), clone(fitted).set_params(n_features_to_select=None))
    pipeline.fit(X, responses(cls))
    assert pipeline[-1].n_features_in_ == 2
    assert pipeline.score(X, responses(cls)) > 0.7
