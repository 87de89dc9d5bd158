"""Fits on some of many columns: candidates, the condition on the others, and what it promises."""

from dataclasses import replace

import numpy as np
import pytest

from sobolev import ConvexSIC, sic_path
from sobolev._sample import merge_equal_rows
from sobolev.convex import Alternating, fitting, screening
from sobolev.convex.feature_maps import FourierMap, LandmarkMap, LinearMap
from sobolev.convex.fitting import Settings, fit_critic, solve
from sobolev.convex.rows import Rows
from sobolev.convex.screening import candidates, curvature, optimality_ratios, pair_strength
from sobolev.convex.training import n_candidates
from sobolev.datasets import make_sinexp
from sobolev.exceptions import ConvergenceWarning


def draw(n, d, seed=0, k=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.sin(2 * X[:, [1]]) + X[:, [d - 2]] + 0.5 * rng.standard_normal((n, k))
    return Rows(X, (y - y.mean(axis=0)) / y.std(axis=0), np.full(n, 1 / n))


def test_scores_of_blocks_are_those_of_all_columns(monkeypatch):
    sample = draw(40, 90, k=2)
    monkeypatch.setattr(screening, "_BLOCK_BYTES", 8 * 40 * 7)
    gram = sample.X @ sample.X.T
    whole = pair_strength(sample.X, sample.psi, sample.p)
    direct = sum(
        np.sum(np.einsum("i,ij,ik->jk", sample.p * s, sample.X, sample.X) ** 2, axis=0)
        for s in sample.psi.T
    )
    np.testing.assert_allclose(whole, direct)
    parts = [
        pair_strength(sample.X[:, b], sample.psi, sample.p, gram)
        for b in screening.column_blocks(40, 90)
    ]
    assert len(parts) == 13
    np.testing.assert_allclose(np.concatenate(parts), whole)
    few = candidates(sample, 24)
    monkeypatch.undo()
    np.testing.assert_array_equal(candidates(sample, 24), few)


def test_candidates_are_columns_of_every_kind_of_effect():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 2000))
    y = X[:, 3] + 1.5 * X[:, 700] ** 2 + 3 * X[:, 1500] * X[:, 1999] + rng.standard_normal(300)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    sample = Rows(X, ((y - y.mean()) / y.std())[:, None], np.full(300, 1 / 300))
    found = candidates(sample, 100)
    assert found.size == 100
    assert np.all(np.diff(found) > 0)
    assert {3, 700, 1500, 1999} <= set(found.tolist())
    covariance = np.abs(X.T @ sample.psi[:, 0])
    assert set(np.argsort(-covariance)[:50].tolist()) <= set(found.tolist())
    assert np.argmax(curvature(X, sample.psi, sample.p)) == 700


def test_candidates_of_some_rows_do_not_see_the_others():
    sample = draw(60, 300)
    rows = np.arange(40)
    moved = Rows(sample.X.copy(), sample.psi.copy(), sample.p)
    moved.X[40:] = 7.0
    moved.psi[40:] = -3.0
    np.testing.assert_array_equal(candidates(sample, 30, rows), candidates(moved, 30, rows))


def full_problem(sample, columns, settings, lam, start):
    """The solution on all columns, the kernel on some of them, to high precision."""
    metric = np.zeros(sample.X.shape[1])
    metric[columns] = start
    forms = sample.forms(sample.bind(settings.map, metric, settings.seed))
    return solve(forms, settings, lam)


@pytest.mark.parametrize("spec", [LandmarkMap(), LinearMap()])
def test_the_fit_on_kept_columns_is_the_optimum_on_all(spec):
    sample = draw(80, 160)
    settings = Settings(spec, Alternating(rounds=1, tol=1e-6, max_iter=20000), screen=12)
    fit = fit_critic(sample, settings, 0.2)
    kept = fit.screening.columns
    assert kept.size < 160
    assert fit.screening.n_missed == 0
    assert fit.screening.ratios.max() <= 1 + screening.SLACK
    eta = np.zeros(160)
    eta[kept] = fit.solution.eta
    whole = full_problem(sample, kept, replace(settings, screen=None), 0.2, fit.metric)
    np.testing.assert_allclose(whole.eta, eta, atol=2e-4)
    np.testing.assert_allclose(
        whole.objective_curve[-1], fit.solution.objective_curve[-1], rtol=1e-4
    )


def test_a_column_that_was_no_candidate_joins(monkeypatch):
    sample = draw(80, 160)
    everything = candidates(sample, 12)
    strong = 158
    assert strong in everything
    monkeypatch.setattr(
        fitting,
        "candidates",
        lambda s, keep, **_: everything[(everything != strong) & (everything != 1)],
    )
    settings = Settings(LandmarkMap(), Alternating(rounds=2), screen=12)
    fit = fit_critic(sample, settings, 0.1)
    assert fit.screening.n_checks > 1
    assert strong in fit.screening.columns
    assert fit.solution.eta[np.searchsorted(fit.screening.columns, strong)] > 0.1
    assert fit.screening.n_missed == 0


def test_ratios_by_hand():
    sample = draw(50, 30, k=2)
    residual = np.random.default_rng(0).standard_normal((50, 2))
    found = optimality_ratios(sample, np.array([4]), residual, 0.3, squares=True)
    j = 7
    x = sample.X[:, j]
    linear = np.linalg.norm([np.mean(x * residual[:, a]) for a in range(2)])
    square = np.linalg.norm([np.mean((x**2 - 1) / 2 * residual[:, a]) for a in range(2)])
    assert found[j] == pytest.approx(max(linear, square) / 0.3)
    assert found[4] == 0.0
    plain = optimality_ratios(sample, np.array([4]), residual, 0.3, squares=False)
    assert plain[j] == pytest.approx(linear / 0.3)


def test_the_square_brings_in_a_curved_column():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 120))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 0] + 2.0 * X[:, 90] ** 2 + 0.1 * rng.standard_normal(200)
    sample = Rows(X, ((y - y.mean()) / y.std())[:, None], np.full(200, 1 / 200))
    kept = np.setdiff1d(np.arange(20), [90])
    settings = Settings(LandmarkMap(), Alternating(rounds=1))
    fit = fit_critic(sample.columns(kept), settings, 0.1)
    residual = sample.psi - fit.critic()(sample.X[:, kept])
    level = 0.1 * np.sqrt(fit.solution.squared_gradients).sum()
    curved = optimality_ratios(sample, kept, residual, level, squares=True)
    assert np.argmax(curved) == 90
    assert curved[90] > 2


def test_estimator_on_many_columns():
    data = make_sinexp(200, 5200, random_state=0, shuffle_features=True)
    model = ConvexSIC(lam=0.1, n_features_to_select=2, solver=Alternating(rounds=2, screen=200))
    model.fit(data.data, data.target)
    found = model.screening_
    assert 200 <= found.columns.size < 5200
    assert found.ratios.shape == (5200,)
    assert model.standardizer_.varying.sum() == found.columns.size
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    left_out = np.setdiff1d(np.arange(5200), found.columns)
    assert np.all(model.feature_importances_[left_out] == 0)
    assert np.all(data.support[model.get_support(indices=True)])
    # what a fitted critic does works on all columns, and only the kept ones count
    moved = data.data.copy()
    moved[:, left_out] += 5.0
    np.testing.assert_allclose(
        model.witness(moved, data.target), model.witness(data.data, data.target)
    )
    explained = model.explain(data.data[:5], data.target[:5])
    assert explained.features.shape == (5, 5200)


def test_screening_is_off_below_its_size_and_on_demand():
    data = make_sinexp(120, 40, random_state=0)
    assert ConvexSIC(lam=0.1).fit(data.data, data.target).screening_ is None
    settings = Settings(LandmarkMap())
    assert n_candidates(settings, screening.WIDE) is None
    assert n_candidates(settings, screening.WIDE + 1) == screening.KEPT
    assert n_candidates(Settings(LandmarkMap(), Alternating(screen=None)), 10**6) is None
    few = ConvexSIC(lam=0.1, solver=Alternating(screen=15)).fit(data.data, data.target)
    assert 15 <= few.screening_.columns.size < 40
    assert (
        ConvexSIC(lam=0.1, solver=Alternating(screen=40)).fit(data.data, data.target).screening_
        is None
    )
    with_constant = np.column_stack([np.ones(120), data.data])
    with pytest.warns(UserWarning, match="constant"):
        shifted = ConvexSIC(lam=0.1, solver=Alternating(screen=15)).fit(with_constant, data.target)
    np.testing.assert_allclose(shifted.feature_importances_[1:], few.feature_importances_)
    path = sic_path(data.data, data.target, lams=[0.1, 0.05], solver=Alternating(screen=15))
    assert path.importances.shape == (2, 40)
    np.testing.assert_allclose(path.importances.sum(axis=1), 1.0)
    assert path.importances[0].max() > 0


@pytest.mark.parametrize("lam", ["auto", "relaxed"])
@pytest.mark.parametrize("feature_map", [LandmarkMap(64), FourierMap(64), LinearMap()])
def test_lam_is_chosen_on_columns_of_each_fold(lam, feature_map):
    data = make_sinexp(150, 300, random_state=1)
    model = ConvexSIC(lam=lam, solver=Alternating(screen=60), feature_map=feature_map, cv=3)
    model.fit(data.data, data.target)
    assert model.lam_risks_.shape == (3, len(fitting.LAMS))
    assert model.screening_.columns.size >= 60


@pytest.mark.parametrize(
    "options",
    [
        {"feature_groups": [[0, 1], [2, 3]]},
        {"measure": "joint"},
        {"feature_map": "polynomial"},
    ],
)
def test_screening_that_cannot_be_checked_is_refused(options):
    data = make_sinexp(60, 6, random_state=0)
    with pytest.raises(ValueError, match=r"screen=4 needs .* use screen=None"):
        ConvexSIC(lam=0.1, solver=Alternating(screen=4), **options).fit(data.data, data.target)
    fitted = ConvexSIC(lam=0.1, **options).fit(data.data, data.target)
    assert fitted.screening_ is None


@pytest.mark.parametrize("screen", [0, 2.5, "all"])
def test_bad_screen(screen):
    data = make_sinexp(60, 6, random_state=0)
    with pytest.raises((ValueError, TypeError), match="screen"):
        ConvexSIC(solver=Alternating(screen=screen)).fit(data.data, data.target)


def test_missed_columns_are_reported(monkeypatch):
    data = make_sinexp(100, 60, random_state=0)
    monkeypatch.setattr(fitting, "MAX_CHECKS", 1)
    with pytest.warns(ConvergenceWarning, match="columns still violate the optimality condition"):
        model = ConvexSIC(lam=0.003, solver=Alternating(screen=5, rounds=1)).fit(
            data.data, data.target
        )
    assert model.screening_.n_missed > 0


@pytest.mark.parametrize("ordered", [True, False])
def test_equal_rows_of_wide_data_merge_as_before(ordered, monkeypatch):
    rng = np.random.default_rng(0)
    X, psi = rng.standard_normal((30, 50)), rng.standard_normal((30, 1))
    p = np.full(30, 1 / 30)
    for rows in (np.arange(30), np.r_[np.arange(28), 3, 3]):
        found = merge_equal_rows(X[rows], psi[rows], p, ordered=ordered)
        monkeypatch.setattr("sobolev._sample.MERGE_COLUMNS", 1000)
        for a, b in zip(
            found, merge_equal_rows(X[rows], psi[rows], p, ordered=ordered), strict=True
        ):
            np.testing.assert_array_equal(a, b)
        monkeypatch.undo()


def test_wide_rows_of_single_precision_give_nearly_the_same():
    data = make_sinexp(120, 600, random_state=0)
    double = ConvexSIC(lam=0.1, solver=Alternating(screen=60)).fit(data.data, data.target)
    single = ConvexSIC(lam=0.1, solver=Alternating(screen=60, precision="single")).fit(
        data.data, data.target
    )
    np.testing.assert_array_equal(single.screening_.columns, double.screening_.columns)
    np.testing.assert_allclose(
        single.feature_importances_, double.feature_importances_, atol=1e-4, rtol=1e-3
    )
    assert not np.array_equal(single.feature_importances_, double.feature_importances_)
