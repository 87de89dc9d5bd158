"""The choice of the feature map by held-out risk, in one fit and along growing samples."""

import numpy as np
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.convex import BestMap, FourierMap, LandmarkMap, LinearMap, PartsMap
from sobolev.convex.choosing import (
    AUTO_FOURIER_ROWS,
    Rival,
    best_of,
    resolve_feature_map,
    still_open,
)
from sobolev.datasets import make_sinexp


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
    assert best_of([rival, Rival(PartsMap(), 0.1, 0.3, 5)]) is rival
    assert rival.judged(np.array([9.0, 0.35]), np.array([0.0, 1.0])).n_rows == 41
    assert rival.judged(np.array([9.0, 0.35]), np.array([0.0, 1.0])).risk == pytest.approx(0.35)


def test_only_what_is_clearly_worse_leaves_the_contest():
    folds = [np.array([0.50, 0.52, 0.51, 0.49]), np.array([0.30, 0.33, 0.29, 0.31])]
    folds.append(folds[0] + np.array([-0.3, 0.2, 0.1, -0.1]))
    maps = LinearMap(), PartsMap(), LandmarkMap()
    rivals = [Rival(m, 0.1, float(f.mean()), 40) for m, f in zip(maps, folds, strict=True)]
    assert [rival.map for rival in still_open(rivals, folds)] == [LinearMap(), LandmarkMap()]


def test_new_rows_change_the_choice():
    """First rows that look linear, then rows with a strong interaction of the same columns."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 4))
    y = X[:, 0] + 0.5 * rng.standard_normal(400)
    y[60:] += 4 * X[60:, 1] * X[60:, 2]
    first = ConvexSIC(feature_map="best").fit_validated(X[:60], y[:60])
    rivals = [Rival(LinearMap(), 0.03, 0.4, 60), Rival(PartsMap(), 0.03, 0.39, 60)]
    first._rivals, first.feature_map_ = rivals, LinearMap()
    early = ConvexSIC(feature_map="linear", lam=0.03).fit_validated(X[:60], y[:60])
    for name in ("critic_", "standardizer_", "encoder_"):
        setattr(first, name, getattr(early, name))
    later = first.for_more_rows(60, 400).fit_validated(X, y)
    assert isinstance(later.feature_map_, (LinearMap, PartsMap))
    assert {rival.n_rows for rival in later._rivals} == {400}
    assert later.lam_ == pytest.approx(0.03 * 60 / 400)
    risks = {type(rival.map): rival.risk for rival in later._rivals}
    assert later.feature_map_ == max(later._rivals, key=lambda rival: rival.risk).map
    assert risks[LinearMap] != risks[PartsMap]


def test_the_test_chooses_the_map_and_does_not_depend_on_n_jobs():
    X, y = linear(240)
    one = HRTSelector(random_state=0).fit(X, y)
    two = HRTSelector(random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.pvalues_, two.pvalues_)
    assert one.estimator_.feature_map_ == LinearMap()
    assert one.support_[:6].all()
