"""The choice of the feature map by held-out risk, in one fit and along growing samples."""

import numpy as np
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.convex import BestMap, FourierMap, LandmarkMap, LinearMap, PartsMap
from sobolev.convex.choosing import (
    AUTO_FOURIER_ROWS,
    Contest,
    Rival,
    resolve_feature_map,
    still_open,
)
from sobolev.convex.feature_maps import with_columns
from sobolev.convex.fitting import mixed
from sobolev.datasets import make_sinexp
from sobolev.storage import load, save


def linear(n, d=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, :6] @ np.ones(6) + 2 * rng.standard_normal(n)


def test_many_rows_have_fourier_features():
    assert resolve_feature_map("best", AUTO_FOURIER_ROWS) == BestMap()
    assert resolve_feature_map("best", AUTO_FOURIER_ROWS + 1) == FourierMap()


def test_a_linear_response_takes_the_linear_map():
    X, y = linear(120)
    critic = ConvexSIC(feature_map="best").fit(X, y)
    assert critic.feature_map_ == LinearMap()
    assert critic.lam_risks_.shape[1] == critic.lam_path_.size


def test_interactions_take_the_kernel():
    X, y = make_sinexp(300, 12, random_state=0, return_X_y=True)
    assert ConvexSIC(feature_map="best").fit(X, y).feature_map_ == LandmarkMap()


def test_a_given_lam_is_kept_for_every_map():
    X, y = linear(100)
    critic = ConvexSIC(feature_map="best", lam=0.02).fit(X, y)
    assert critic.lam_ == 0.02
    assert critic.lam_risks_ is None


def test_a_rival_remembers_its_mean_risk():
    rival = Rival(LinearMap(), 0.1, risk=0.2, n_rows=10).judged(np.full(30, 0.4), np.ones(30))
    assert rival.n_rows == 40
    assert rival.risk == pytest.approx((0.2 * 10 + 0.4 * 30) / 40)
    assert Contest((rival, Rival(PartsMap(), 0.1, 0.3, 5))).best is rival
    assert rival.judged(np.array([9.0, 0.35]), np.array([0.0, 1.0])).n_rows == 41
    assert rival.judged(np.array([9.0, 0.35]), np.array([0.0, 1.0])).risk == pytest.approx(0.35)


def test_only_what_is_clearly_worse_leaves_the_contest():
    folds = [np.array([0.50, 0.52, 0.51, 0.49]), np.array([0.30, 0.33, 0.29, 0.31])]
    folds.append(folds[0] + np.array([-0.3, 0.2, 0.1, -0.1]))
    maps = LinearMap(), PartsMap(), LandmarkMap()
    rivals = [Rival(m, 0.1, float(f.mean()), 40) for m, f in zip(maps, folds, strict=True)]
    assert [rival.map for rival in still_open(rivals, folds)] == [LinearMap(), LandmarkMap()]


def fits(X, y, *maps):
    """Rivals with their fitted critics, and one of the fits."""
    fitted = [ConvexSIC(feature_map=each, lam=0.03).fit_validated(X, y) for each in maps]
    rivals = [Rival(each.feature_map_, 0.03, 0.4, len(X), each.critic_) for each in fitted]
    return Contest(tuple(rivals)), fitted[0]


def test_new_rows_change_the_choice_and_the_mixture():
    """First rows that look linear, then rows with a strong interaction of the same columns."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 4))
    y = X[:, 0] + 0.5 * rng.standard_normal(400)
    y[60:] += 4 * X[60:, 1] * X[60:, 2]
    first = ConvexSIC(feature_map="best").fit_validated(X[:60], y[:60])
    first._contest, early = fits(X[:60], y[:60], "linear", "parts")
    for name in ("critic_", "standardizer_", "encoder_"):
        setattr(first, name, getattr(early, name))
    second = first.for_more_rows(60, 200).fit_validated(X[:200], y[:200])
    later = second.for_more_rows(200, 400).fit_validated(X, y)
    assert {rival.n_rows for rival in later._contest.rivals} == {400}
    assert second.lam_ == pytest.approx(0.03 * 60 / 200)
    assert later.feature_map_ == PartsMap()
    linear_share, parts_share = later._contest.weights(1.0)
    assert linear_share < 0.1
    assert parts_share > 0.9
    assert later.feature_importances_[1:3].sum() > 0.8


def test_the_mixture_has_the_largest_risk_on_the_rows_that_it_was_judged_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(600)
    contest, fitted = fits(X[:200], y[:200], "linear", "landmark", "parts")
    x = fitted.standardizer_.transform(X[200:])
    psi = fitted.encoder_.transform(y[200:])
    judged = contest.judged(x, psi, np.ones(400), 1.0)
    found = judged.weights(1.0)
    h = np.array([rival.critic(x) for rival in contest.rivals])

    def risk(weights):
        mixture = np.tensordot(weights, h, 1)
        return np.mean(np.sum(mixture * psi, axis=1) - 0.5 * np.sum(mixture**2, axis=1))

    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    assert all(risk(found) >= risk(other) for other in rng.dirichlet(np.ones(3), 500))
    np.testing.assert_allclose(contest.weights(1.0), 1 / 3)  # before any rows
    np.testing.assert_allclose(  # in two portions
        contest.judged(x[:150], psi[:150], np.ones(150), 1.0)
        .judged(x[150:], psi[150:], np.ones(250), 1.0)
        .weights(1.0),
        found,
    )


def test_a_mixture_is_the_weighted_sum_of_its_critics():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(150)
    contest, fitted = fits(X, y, "landmark", "linear", "parts")
    critics, weights = [rival.critic for rival in contest.rivals], np.array([0.5, 0.2, 0.3])
    fitted.critic_ = mixed(critics, weights)
    x = fitted.standardizer_.transform(X)
    expected = sum(w * critic(x) for w, critic in zip(weights, critics, strict=True))
    np.testing.assert_allclose(fitted.critic_(x), expected, atol=1e-12)
    evaluator, values = fitted.evaluator(X, y, "risk"), np.array([[0.3], [-1.0]])
    found = evaluator.at(np.array([1]), values)
    for k, value in enumerate(values[:, 0]):
        np.testing.assert_allclose(found[:, k], fitted.risk(with_columns(X, [1], value), y))
    explained = fitted.explain(X, y)
    total = explained.features.sum(axis=1) + explained.base
    np.testing.assert_allclose(total, fitted.witness(X, y), atol=1e-6)


def test_a_mixture_survives_a_file(tmp_path):
    X, y = make_sinexp(120, 8, random_state=0, return_X_y=True)
    critic = ConvexSIC(feature_map="best", lam=0.02).fit(X, y)
    contest, _ = fits(X, y, "landmark", "linear")
    critic.critic_ = mixed([rival.critic for rival in contest.rivals], np.array([0.5, 0.5]))
    save(critic, tmp_path / "critic.sobolev")
    again = load(tmp_path / "critic.sobolev")
    np.testing.assert_array_equal(again.witness(X, y), critic.witness(X, y))


def test_the_test_chooses_the_map_and_does_not_depend_on_n_jobs():
    X, y = linear(240)
    one = HRTSelector(random_state=0).fit(X, y)
    two = HRTSelector(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.pvalues_, two.pvalues_)
    assert one.estimator_.feature_map_ == LinearMap()
    assert one.support_[:6].all()
