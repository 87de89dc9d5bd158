"""Measures, folds, the choice of lam, the screen and the recursive metric."""

from dataclasses import replace

import numpy as np
import pytest

import sobolev.convex.fitting as fitting
from sobolev._sample import response_order, stratified_folds
from sobolev.convex.cross_validation import cross_validate
from sobolev.convex.feature_maps import FourierMap, LandmarkMap, LinearMap, PolynomialMap
from sobolev.convex.fitting import (
    LAMS,
    METRIC_FLOOR,
    METRIC_POWER,
    REFERENCE_LAM,
    Settings,
    fit_critic,
    next_metric,
    path,
    row_risk,
    solve,
    start_metric,
)
from sobolev.convex.quadratics import CoupledForms
from sobolev.convex.rows import Rows
from sobolev.convex.solvers import Alternating, BlockCoordinateDescent, Penalties, alternating
from sobolev.criterion import choose_lam, normalized_importances, parse_groups
from sobolev.datasets import make_sinexp, make_xor


@pytest.fixture
def sample(draw_sample):
    return Rows(*draw_sample(n=60, k=1))


def standardized(X, y, p=None):
    p = np.full(len(y), 1 / len(y)) if p is None else p
    X, psi = X - p @ X, (y - p @ y)[:, None]
    return Rows(X / np.sqrt(p @ X**2), psi / np.sqrt(p @ psi**2), p)


def test_a_subsample_is_centred_and_keeps_its_weights(draw_sample):
    sample = Rows(*draw_sample(n=30, k=2, weighted=True))
    rows = np.array([1, 4, 9, 20])
    part = sample.rows(rows)
    np.testing.assert_allclose(part.p, sample.p[rows] / sample.p[rows].sum())
    np.testing.assert_allclose(part.p @ part.X, 0, atol=1e-14)
    np.testing.assert_allclose(part.p @ part.psi, 0, atol=1e-14)
    np.testing.assert_allclose(np.diff(part.X, axis=0), np.diff(sample.X[rows], axis=0))


# Folds


@pytest.mark.parametrize(("n", "k"), [(60, 5), (61, 5), (7, 5), (4, 5)])
def test_folds_partition_the_rows(draw_sample, n, k):
    folds = stratified_folds(Rows(*draw_sample(n=n, k=1)), k)
    assert len(folds) == min(k, n // 2)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))
    sizes = [f.size for f in folds]
    assert max(sizes) - min(sizes) <= 1


def test_folds_are_balanced_in_the_response(sample):
    ranks = np.argsort(np.argsort(sample.psi[:, 0]))
    for fold in stratified_folds(sample, 5):
        np.testing.assert_array_equal(np.sort(ranks[fold]) // 5, np.arange(12))


def labels_and_signs():
    """Rows with equal responses and equal norms: nothing but signs tells them apart."""
    rng = np.random.default_rng(0)
    X = np.unique(rng.choice([-1.0, 1.0], size=(80, 9)), axis=0)
    return Rows(X, np.where(X[:, :1] > 0, 1.0, -1.0), np.full(len(X), 1 / len(X)))


@pytest.mark.parametrize("kind", ["numbers", "signs"])
@pytest.mark.parametrize("seed", range(3))
def test_folds_do_not_depend_on_the_order_of_rows_or_columns(sample, kind, seed):
    sample = sample if kind == "numbers" else labels_and_signs()
    n, d = sample.X.shape
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(d)
    moved = Rows(sample.X[rows][:, columns], sample.psi[rows], sample.p[rows])
    found = {frozenset(rows[fold]) for fold in stratified_folds(moved, 5)}
    assert found == {frozenset(fold) for fold in stratified_folds(sample, 5)}


# Measures


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("measure", ["product", "permuted", "mixture", "joint"])
@pytest.mark.parametrize(
    "spec", [LandmarkMap(8), FourierMap(8), LinearMap(), PolynomialMap(2)], ids=lambda s: str(s)[:6]
)
def test_forms_of_a_measure_equal_its_expectations(spec, measure, k, draw_sample, bind_map):
    """E f² and E|d_j f|² under mu, from values of f at the pairs that mu weighs."""
    n, seed = 12, 5
    sample = Rows(*draw_sample(n=n, k=k))
    bound = spec.bind(sample.X, np.ones(4), sample.p, np.random.default_rng(0))
    forms = sample.forms(bound, measure, seed)
    center = sample.p @ bound.values(sample.X)
    size = center.size
    U = np.random.default_rng(1).standard_normal((size, k))

    joint = np.eye(n) / n  # weights of the pairs (x_i, y_j)
    product = np.full((n, n), 1 / n**2)
    permuted = np.zeros((n, n))
    permuted[np.arange(n), np.random.default_rng(seed).permutation(n)] = 1 / n
    mu = {
        "product": product,
        "permuted": permuted,
        "joint": joint,
        "mixture": (joint + product) / 2,
    }[measure]
    far = permuted if measure == "permuted" else product

    def f(X):
        return (bound.values(X) - center) @ U @ sample.psi.T  # f(x_i, y_j)

    stacked = U.T.reshape(-1, 1) if isinstance(forms, CoupledForms) else U
    assert isinstance(forms, CoupledForms) == (measure != "product" and k > 1)
    X = sample.X
    assert np.sum(stacked * forms.M) == pytest.approx(np.sum((joint - far) * f(X)), abs=1e-10)
    square = np.sum(stacked * forms.covariance_times(stacked))
    assert square == pytest.approx(np.sum(mu * f(X) ** 2), rel=1e-9)
    slopes = [(f(X + 1e-5 * e) - f(X - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    np.testing.assert_allclose(
        forms.squared_gradients(stacked), [np.sum(mu * s**2) for s in slopes], rtol=1e-6
    )


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("measure", ["product", "permuted", "mixture", "joint"])
@pytest.mark.parametrize("spec", [LandmarkMap(15), FourierMap(12), LinearMap()])
def test_every_measure_has_its_fixed_point(spec, measure, k, draw_sample):
    sample = Rows(*draw_sample(n=40, k=k))
    solver = Alternating(epsilon=1e-8, rounds=1, max_iter=5000, tol=1e-9)
    settings = Settings(spec, solver, tau=0.01, measure=measure)
    fit = fit_critic(sample, settings, 0.1)
    eta, U = fit.solution.eta, fit.solution.U
    squares = fit.forms.squared_gradients(U)
    np.testing.assert_allclose(eta, normalized_importances(squares, 1e-8), atol=1e-6)
    A = fit.forms.system(1 / eta, 0.1, 1.0, 0.01)
    residual = A @ U - fit.forms.M
    assert np.linalg.norm(residual) <= 1e-6 * np.linalg.norm(fit.forms.M)
    critic = fit.critic()
    assert critic.U.shape == (fit.bound.values(sample.X).shape[1], k)
    expected = (fit.bound.values(sample.X) - critic.center) @ critic.U
    np.testing.assert_allclose(critic(sample.X), expected)
    np.testing.assert_allclose(sample.p @ critic(sample.X), 0, atol=1e-10)


def test_a_weighted_permutation_keeps_the_law_of_the_response():
    """With unequal weights the copy of y is drawn by weight: E psi² stays near one."""
    rng = np.random.default_rng(0)
    n = 4000
    y = rng.standard_normal(n)
    w = np.where(y > 1, 10.0, 1.0)
    sample = standardized(rng.standard_normal((n, 2)), y, w / w.sum())
    bound = LinearMap().bind(sample.X, np.ones(2), sample.p, rng)
    forms = sample.forms(bound, "permuted", 0)
    assert forms.linear.mass == pytest.approx(1.0, abs=0.1)


# Solving


def test_solve_follows_the_settings(sample):
    settings = Settings(FourierMap(10), Alternating(tol=1e-9, max_iter=3000, epsilon=1e-8))
    forms = sample.forms(sample.bind(settings.map, np.ones(4), settings.seed))
    plain = solve(forms, settings, 0.1)
    for solver in (
        BlockCoordinateDescent(tol=1e-7, max_iter=3000, epsilon=1e-8),
        replace(settings.solver, epsilon=(1e-3, 1e-5, 1e-8)),
    ):
        other = replace(settings, solver=solver)
        np.testing.assert_allclose(solve(forms, other, 0.1).eta, plain.eta, atol=1e-6)
    short = solve(forms, settings, 0.1, max_iter=1)
    assert short.n_iter == 1
    joint = solve(forms, replace(settings, output_weights=np.eye(1)), 0.1)
    assert joint.target_squares.shape == (1,)
    np.testing.assert_allclose(joint.zeta, [1.0])


def test_path_solutions_do_not_depend_on_the_warm_start(sample):
    settings = Settings(FourierMap(10), Alternating(tol=1e-10, max_iter=5000, epsilon=1e-6))
    forms = sample.forms(sample.bind(settings.map, np.ones(4), settings.seed))
    warm = path(forms, settings, (1.0, 0.1, 0.01), None)
    for lam, solution in zip((1.0, 0.1, 0.01), warm, strict=True):
        np.testing.assert_allclose(solution.eta, solve(forms, settings, lam).eta, atol=1e-7)


def test_metric_follows_the_importances(sample):
    settings = Settings(LinearMap())
    forms = sample.forms(sample.bind(settings.map, np.ones(4), settings.seed))
    groups = parse_groups([[0, 1]], 4)
    for grouping in (None, groups):
        solution = alternating(forms, Penalties(0.1), grouping)
        eta = solution.eta
        if grouping is not None:
            eta = grouping.feature_importances(eta, solution.squared_gradients)
        metric = next_metric(solution, replace(settings, groups=grouping))
        np.testing.assert_allclose(metric, (eta / eta.max()) ** METRIC_POWER + METRIC_FLOOR)
        assert metric.argmax() == eta.argmax()
        assert metric.min() >= METRIC_FLOOR


@pytest.mark.parametrize("spec", [LinearMap(), PolynomialMap(2)])
def test_maps_without_a_metric_take_one_round(spec, sample):
    assert fit_critic(sample, Settings(spec, Alternating(rounds=10)), 0.1).n_rounds == 1


def test_rounds_stop_when_the_importances_settle():
    data = make_sinexp(120, 8, random_state=0)
    sample = standardized(data.data, data.target)
    seen = []
    fit = fit_critic(
        sample,
        Settings(LandmarkMap(), Alternating(rounds=30)),
        0.03,
        callback=lambda *call: seen.append(call),
    )
    assert 1 < fit.n_rounds < 30
    assert [number for number, *_ in seen] == sorted(number for number, *_ in seen)
    assert seen[-1][0] == fit.n_rounds
    assert fit.solution.converged
    # One round more, from where it stopped, changes little.
    again = fit_critic(
        sample,
        Settings(LandmarkMap(), Alternating(rounds=1)),
        0.03,
        start=(next_metric(fit.solution, Settings(LandmarkMap())), fit.solution.eta),
    )
    assert 0.5 * np.abs(again.solution.eta - fit.solution.eta).sum() < 0.05


def test_early_rounds_on_few_landmarks_find_the_same_columns(monkeypatch):
    X, y = make_sinexp(400, 12, random_state=0, return_X_y=True)
    rows = standardized(X, y)
    settings = Settings(map=LandmarkMap(), solver=Alternating())
    plain = fit_critic(rows, settings, 0.003)
    monkeypatch.setattr(fitting, "MANY_ROWS", 100)
    monkeypatch.setattr(fitting, "EARLY_LANDMARKS", 150)
    fast = fit_critic(rows, settings, 0.003)
    assert fast.bound.n_functions == plain.bound.n_functions > 150
    assert 0.5 * np.abs(fast.solution.eta - plain.solution.eta).sum() < 0.03
    few = replace(settings, map=LandmarkMap(n_components=100))
    assert fit_critic(rows, few, 0.003).bound.n_functions == 100  # no fewer to begin with


def test_the_recursive_metric_sharpens_the_importances():
    """What the rounds are for: the true features gain on those of noise."""
    data = make_sinexp(250, 30, random_state=0)
    sample = standardized(data.data, data.target)
    shares = [
        fit_critic(sample, Settings(LandmarkMap(), Alternating(rounds=rounds)), 0.03)
        .solution.eta[:6]
        .sum()
        for rounds in (1, 10)
    ]
    assert shares[1] > shares[0] + 0.1


# The screen


@pytest.mark.parametrize("seed", range(4))
def test_screen_finds_xor_among_many(seed):
    data = make_xor(600, 300, shuffle_features=True, random_state=seed)
    metric = start_metric(standardized(data.data, data.target))
    assert metric[data.support].min() > 2 * metric[~data.support].max()


@pytest.mark.parametrize("seed", [2, 3])
def test_screen_finds_a_curvature_that_the_sums_over_pairs_miss(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 500))
    metric = start_metric(standardized(X, X[:, 7] ** 2 + 3 * rng.standard_normal(300)))
    assert metric.argmax() == 7
    assert metric[7] > 2 * np.delete(metric, 7).max()


def test_screen_is_isotropic_on_noise():
    """Measured: 96 of 100 seeds; 16 or fewer of 20 would come once in 200 such tests."""
    isotropic = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sample = standardized(rng.standard_normal((100, 50)), rng.standard_normal(100))
        isotropic += np.array_equal(start_metric(sample), np.ones(50))
    assert isotropic >= 17


def test_screen_is_the_same_in_both_of_its_forms():
    """More columns than rows: sums over pairs of rows instead of pairs of columns."""
    data = make_xor(300, 299, random_state=1)
    tall = standardized(data.data, data.target)
    rng = np.random.default_rng(0)
    extra = np.column_stack([data.data, rng.standard_normal((300, 2))])
    wide = standardized(extra, data.target)
    product = np.array(
        [((tall.p * tall.psi[:, 0])[:, None] * wide.X).T @ wide.X[:, j] for j in range(2)]
    )
    assert np.abs(product[0]).argmax() == 1  # XOR: E psi x0 x1 stands out
    np.testing.assert_allclose(start_metric(tall)[:2], start_metric(wide)[:2], rtol=0.1)


def test_screen_does_not_depend_on_the_order_of_columns():
    data = make_xor(300, 40, random_state=0)
    sample = standardized(data.data, data.target)
    order = np.random.default_rng(0).permutation(40)
    moved = Rows(sample.X[:, order], sample.psi, sample.p)
    np.testing.assert_allclose(start_metric(moved), start_metric(sample)[order], rtol=1e-9)


# Cross-validation


def test_row_risk_is_the_penalised_witness():
    rng = np.random.default_rng(0)
    h, psi = rng.standard_normal((2, 50, 3))
    expected = [h[i] @ psi[i] - 0.35 * h[i] @ h[i] for i in range(50)]
    np.testing.assert_allclose(row_risk(h, psi, 0.7), expected)


def test_risk_of_held_out_rows_for_the_linear_map(draw_sample):
    """Against a fit to the training rows and its risk on the others, written out."""
    sample = Rows(*draw_sample(n=40, k=2, weighted=True))
    settings = Settings(LinearMap(), Alternating(tol=1e-9, max_iter=4, epsilon=1e-6))
    lams = (0.1, 0.01)
    risks = cross_validate(sample, settings, lams, folds=4)
    assert risks.shape == (4, 2)
    for fold, row in zip(stratified_folds(sample, 4), risks, strict=True):
        train = sample.rows(np.setdiff1d(np.arange(40), fold))
        forms = LinearMap().bind(train.X, None, None, None).forms(train.X, train.psi, train.p)
        eta = solve(forms, settings, REFERENCE_LAM).eta
        for solution, risk in zip(path(forms, settings, lams, eta), row, strict=True):
            others = np.setdiff1d(np.arange(40), fold)
            mean = np.average(sample.X[others], weights=sample.p[others], axis=0)
            h = (sample.X[fold] - mean) @ solution.U
            expected = np.sum(h * sample.psi[fold], axis=1) - 0.5 * np.sum(h**2, axis=1)
            assert risk == pytest.approx(np.average(expected, weights=sample.p[fold]), rel=1e-9)


def test_risk_from_moments_equals_risk_from_rows(draw_sample):
    """Fourier folds are differences of sums; the same critic fitted to centred rows must agree."""
    sample = Rows(*draw_sample(n=50, k=2, weighted=True))
    solver = Alternating(epsilon=1e-4, rounds=1, max_iter=4, tol=0.0)
    settings = Settings(FourierMap(12), solver, tau=0.01, seed=3)
    folds = [np.arange(0, 10), np.arange(10, 30), np.arange(30, 50)]  # not balanced: means differ
    lams = (0.1, 0.01)
    risks = cross_validate(sample, settings, lams, folds)

    whole = fit_critic(sample, settings, REFERENCE_LAM)
    bound = sample.bind(settings.map, next_metric(whole.solution, settings), settings.seed)
    for fold, row in zip(folds, risks, strict=True):
        others = np.setdiff1d(np.arange(50), fold)
        weights = sample.p[others] / sample.p[others].sum()
        train = Rows(sample.X[others], sample.psi[others], weights)
        forms = bound.forms(train.X, train.psi, weights)
        center = weights @ bound.values(train.X)
        for solution, risk in zip(
            path(forms, settings, lams, whole.solution.eta), row, strict=True
        ):
            h = (bound.values(sample.X[fold]) - center) @ solution.U
            expected = row_risk(h, sample.psi[fold], 1.0)
            assert risk == pytest.approx(np.average(expected, weights=sample.p[fold]), rel=1e-6)


@pytest.fixture(scope="module")
def long_sample():
    """Enough rows that the folds draw a subset of landmarks."""
    data = make_sinexp(340, 8, random_state=0)
    return standardized(data.data, data.target)


LONG = Settings(LandmarkMap(), Alternating(rounds=2))


def test_landmark_risks_do_not_depend_on_the_seed(long_sample):
    first, second = (
        cross_validate(long_sample, replace(LONG, seed=seed), (0.1, 0.01), 5) for seed in (0, 1)
    )
    np.testing.assert_array_equal(first, second)


def test_landmark_risks_do_not_depend_on_the_order_of_rows(long_sample):
    rows = np.random.default_rng(0).permutation(340)
    moved = Rows(long_sample.X[rows], long_sample.psi[rows], long_sample.p[rows])
    np.testing.assert_array_equal(rows[response_order(moved)], response_order(long_sample))
    np.testing.assert_allclose(
        cross_validate(moved, LONG, (0.1, 0.01), 5),
        cross_validate(long_sample, LONG, (0.1, 0.01), 5),
        atol=1e-9,
    )


@pytest.mark.parametrize("spec", [LandmarkMap(), FourierMap(20), LinearMap()])
def test_risks_do_not_depend_on_the_number_of_threads(spec, sample):
    settings = Settings(spec, Alternating(rounds=2))
    one, two = (cross_validate(sample, settings, (0.1, 0.01), 4, n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_held_out_risk_prefers_less_shrinkage_for_a_strong_signal():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    risks = cross_validate(standardized(X, X[:, 0]), Settings(LinearMap()), LAMS, 5).mean(axis=0)
    assert np.all(np.diff(risks) > 0)  # the path runs from sparse to dense
    assert risks[-1] == pytest.approx(0.5, abs=0.01)  # half of the explained variance


# The choice of lam


def test_without_held_out_risk_lam_is_the_reference():
    risks = -np.abs(np.random.default_rng(0).standard_normal((5, len(LAMS))))
    assert choose_lam(risks, LAMS, REFERENCE_LAM) == REFERENCE_LAM


def test_a_clearly_better_lam_is_chosen():
    for best, lam in enumerate(LAMS):
        risks = 0.2 + 0.001 * np.random.default_rng(best).standard_normal((5, len(LAMS)))
        risks[:, best] += 0.1
        assert choose_lam(risks, LAMS, REFERENCE_LAM) == lam


def test_a_better_lam_within_one_standard_error_is_not_chosen():
    reference, best = LAMS.index(REFERENCE_LAM), LAMS.index(0.001)
    risks = np.full((4, len(LAMS)), 0.1)
    risks[:, reference] = 0.2
    gain = np.array([0.1, -0.1, 0.1, -0.05])  # mean 0.0125, standard error 0.05
    risks[:, best] = 0.2 + gain
    assert choose_lam(risks, LAMS, REFERENCE_LAM) == REFERENCE_LAM
    risks[:, best] = 0.2 + np.abs(gain)  # mean 0.0875, standard error 0.0125
    assert choose_lam(risks, LAMS, REFERENCE_LAM) == 0.001


def test_the_reference_is_the_nearest_on_the_path():
    assert choose_lam(np.zeros((3, 2)), (1.0, 0.05), REFERENCE_LAM) == 0.05
    assert choose_lam(np.array([[0.1, 0.2]]), (1.0, 0.05), REFERENCE_LAM) == 0.05
    assert (
        choose_lam(np.array([[0.2, 0.1]]), (1.0, 0.05), REFERENCE_LAM) == 1.0
    )  # one fold: no error to weigh


# Relaxed risks


@pytest.mark.parametrize("kind", ["landmark", "fourier", "linear"])
def test_relaxed_risk_is_that_of_a_refit_by_hand(kind):
    """Fold by fold: importances at lam, critic at the relaxed lam, risk on the rows left out."""
    X = np.random.default_rng(3).standard_normal((90, 4))
    sample = standardized(X, X[:, 0] + X[:, 1])
    spec = {"landmark": LandmarkMap(), "fourier": FourierMap(40), "linear": LinearMap()}[kind]
    settings = Settings(spec, Alternating(rounds=1, max_iter=3))
    folds = stratified_folds(sample, 3)
    lams, relaxed = (1.0, 0.1), (0.02,)
    found = cross_validate(sample, settings, lams, folds, relaxed=relaxed)
    plain = cross_validate(sample, settings, lams, folds)
    tight = cross_validate(sample, settings, (0.02,), folds)
    assert found.shape == plain.shape == (3, 2)
    # Free of shrinkage both are far better; the importances of a lam near 0.02 serve as its own.
    assert np.all(found.mean(axis=0) > plain.mean(axis=0))
    assert found[:, 1].mean() == pytest.approx(tight.mean(), abs=0.02)
    both = cross_validate(sample, settings, lams, folds, relaxed=(5.0, 0.02))
    np.testing.assert_array_equal(both, found)  # the better of two refits


def test_without_relaxed_lams_the_risk_is_that_of_the_solution():
    X = np.random.default_rng(4).standard_normal((60, 3))
    sample = standardized(X, X[:, 0])
    settings = Settings(LinearMap(), Alternating(rounds=1))
    folds = stratified_folds(sample, 3)
    plain = cross_validate(sample, settings, (0.1,), folds)
    same = cross_validate(sample, settings, (0.1,), folds, relaxed=(0.1,))
    np.testing.assert_allclose(plain, same, rtol=1e-6)


def test_the_screen_is_not_drowned_by_many_columns():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 1500))
    y = X[:, 0] + X[:, 900] ** 2 + 0.5 * rng.standard_normal(300)
    metric = start_metric(standardized(X, y))
    assert metric.argmax() == 900
    assert metric.max() > 1
    assert np.sum(metric[metric < 0.1]) <= 20 + 1e-9
    fit = fit_critic(standardized(X, y), Settings(LandmarkMap(), Alternating(rounds=3)), 0.1)
    assert set(np.argsort(-fit.solution.eta)[:2]) == {0, 900}
