"""The knockoff selector: Algorithm 5, null behaviour, power, draws, groups, warnings."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lasso, LassoCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sobolev import ConvexSIC
from sobolev._random import spawn
from sobolev.convex import Alternating
from sobolev.exceptions import DataWarning, KnockoffModelWarning, SobolevWarning
from sobolev.inference.knockoff_filter import (
    ebh,
    knockoff_evalues,
    knockoff_qvalues,
    knockoff_threshold,
)
from sobolev.knockoffs import (
    CopulaKnockoffs,
    FixedXKnockoffs,
    GaussianKnockoffs,
    KnockoffSelector,
    LowRankKnockoffs,
    MatchedKnockoffs,
    SequentialKnockoffs,
)
from sobolev.knockoffs.choice import resolve_sampler


def draw(n=300, p=30, k=12, seed=0):
    """Correlated columns, of which the first k matter, with signs that alternate."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, X[:, :k] @ (-1.0) ** np.arange(k) + rng.standard_normal(n)


def lasso(**options):
    return KnockoffSelector(**{"statistic": "lasso_path", "random_state": 0, **options})


def assert_fair(heads, coins):
    """Fair coins leave 4.5 deviations less than once in 10^5."""
    assert abs(heads - coins / 2) <= 4.5 * np.sqrt(coins) / 2


def test_global_null():
    """A selection at level 0.1 with offset 1 happens in at most a tenth of data sets.

    17 or more of 60 would happen less than once in 10^4 at that bound. The signs of W say more:
    they are independent fair coins.
    """
    sigma = 0.5 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    root = np.linalg.cholesky(sigma)
    selected, heads, coins = 0, 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((100, 30)) @ root.T
        fitted = lasso(sampler=GaussianKnockoffs(sigma), random_state=seed)
        fitted.fit(X, rng.standard_normal(100))
        selected += fitted.support_.any()
        heads += np.sum(fitted.statistics_ > 0)
        coins += np.sum(fitted.statistics_ != 0)
    assert binom.sf(16, 60, 0.1) < 1e-4
    assert selected <= 16
    assert coins > 1700
    assert_fair(heads, coins)


@pytest.mark.parametrize(
    ("estimator", "statistic", "n_sets"),
    [
        (None, "lasso_path", 60),
        (Lasso(0.02), "difference", 60),
        (Lasso(0.02), "swap", 30),
        (RandomForestRegressor(10, max_features=0.3), "difference", 30),
    ],
    ids=str,
)
def test_signs_of_null_columns_are_coins_beside_strong_signals(estimator, statistic, n_sets):
    """The condition for FDR control: null signs are independent given sizes and other signs."""
    sampler = GaussianKnockoffs(np.eye(30) + 0.25)  # the covariance of the columns of draw
    heads, coins = 0, 0
    for seed in range(n_sets):
        options = {"sampler": sampler, "statistic": statistic, "diagnose": False}
        selector = KnockoffSelector(estimator, random_state=seed, **options)
        fitted = selector.fit(*draw(seed=seed))
        assert (fitted.statistics_[:12] > 0).sum() >= 10
        heads += np.sum(fitted.statistics_[12:] > 0)
        coins += np.sum(fitted.statistics_[12:] != 0)
    assert coins > 200
    assert_fair(heads, coins)


@pytest.mark.parametrize(
    ("estimator", "statistic"),
    [
        (None, "lasso_path"),
        (LassoCV(), "difference"),
        (LassoCV(), "swap"),
        (ConvexSIC(lam=0.05), "difference"),
        (ConvexSIC(lam=0.05), "signed_max"),
        (RandomForestRegressor(100), "difference"),
    ],
    ids=str,
)
def test_power_on_an_easy_problem(estimator, statistic):
    X, y = draw()
    fitted = KnockoffSelector(estimator, statistic=statistic, fdr=0.2, random_state=0).fit(X, y)
    assert fitted.support_[:12].sum() >= 11
    assert fitted.feature_importances_.shape == (30,)
    assert fitted.feature_importances_[:12].min() > np.median(fitted.feature_importances_[12:])


def test_one_draw_is_the_filter():
    fitted = lasso().fit(*draw())
    W = fitted.statistics_
    np.testing.assert_array_equal(fitted.draws_, W[None])
    assert fitted.threshold_ == knockoff_threshold(W, 0.1)
    np.testing.assert_array_equal(fitted.support_, knockoff_threshold(W, 0.1) <= W)
    np.testing.assert_array_equal(fitted.qvalues_, knockoff_qvalues(W))
    np.testing.assert_array_equal(fitted.qvalues_ <= 0.1, fitted.support_)
    np.testing.assert_array_equal(ebh(fitted.evalues_, 0.1), fitted.support_)
    assert fitted.estimator_ is None


@pytest.mark.parametrize("n_draws", [1, 3])
def test_nothing_is_selected_from_noise(n_draws):
    X, y = draw()
    fitted = KnockoffSelector(Lasso(1e6), n_draws=n_draws, random_state=0).fit(X, y)
    np.testing.assert_array_equal(fitted.draws_, 0)
    assert (np.array(fitted.threshold_) == np.inf).all()
    assert not fitted.support_.any()
    np.testing.assert_array_equal(fitted.qvalues_, 1)


@pytest.mark.parametrize("estimator", [ConvexSIC(lam=0.05), Lasso(0.02, tol=1e-10)], ids=str)
def test_algorithm_5_of_the_paper(estimator):
    """Alg. 5 written out: eta of [X, X̃], W_j = eta_j - eta_(j + d), threshold, selection."""
    X, y = draw(k=4)
    selector = KnockoffSelector(estimator, sampler="gaussian", offset=0, random_state=0)
    fitted = selector.fit(X, y)
    X_knockoff = fitted.sampler_.sample(spawn(0, 1)[0])
    both = np.vstack([X, X_knockoff])
    Z, Z_knockoff = np.split((both - both.mean(axis=0)) / both.std(axis=0), 2)
    model = clone(estimator)
    if isinstance(model, ConvexSIC):  # the critic of a test
        model = model.for_testing()
    model.fit(np.hstack([Z, Z_knockoff]), y)
    eta = getattr(model, "feature_importances_", None)
    eta = np.abs(model.coef_) if eta is None else eta
    W = eta[:30] - eta[30:]
    np.testing.assert_allclose(fitted.statistics_, W, atol=1e-8)
    W = fitted.statistics_
    allowed = [t for t in np.abs(W[W != 0]) if np.sum(t <= -W) <= 0.1 * np.sum(t <= W)]
    assert fitted.threshold_ == min(allowed)
    np.testing.assert_array_equal(fitted.support_, min(allowed) <= W)
    assert fitted.support_[:4].all()


def test_offset_zero_is_the_filter_of_algorithm_5():
    X, y = draw(k=4)
    plus, paper = lasso().fit(X, y), lasso(offset=0).fit(X, y)
    W = plus.statistics_
    np.testing.assert_array_equal(W, paper.statistics_)
    assert paper.threshold_ == knockoff_threshold(W, 0.1, offset=0)
    assert paper.threshold_ < plus.threshold_
    np.testing.assert_array_equal(paper.qvalues_, knockoff_qvalues(W, offset=0))
    assert paper.support_[:4].all()


def test_several_draws_average_e_values():
    X, y = draw()
    fitted = lasso(n_draws=5, fdr=0.2).fit(X, y)
    assert fitted.draws_.shape == (5, 30)
    assert fitted.threshold_.shape == (5,)
    np.testing.assert_allclose(fitted.statistics_, fitted.draws_.mean(axis=0))
    e = np.mean([knockoff_evalues(w, 0.1) for w in fitted.draws_], axis=0)
    np.testing.assert_allclose(fitted.evalues_, e)
    np.testing.assert_array_equal(fitted.support_, ebh(e, 0.2))
    np.testing.assert_array_equal(fitted.qvalues_ <= 0.2, fitted.support_)
    assert fitted.support_[:12].sum() >= 11
    assert len({tuple(w) for w in fitted.draws_}) == 5


def test_the_answer_does_not_depend_on_n_jobs():
    X, y = draw()
    model = KnockoffSelector(LassoCV(), n_draws=3, fdr=0.2, random_state=0)
    one = model.fit(X, y)
    two = clone(model).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.draws_, two.draws_)
    np.testing.assert_array_equal(one.support_, two.support_)
    np.testing.assert_array_equal(one.estimator_.coef_, two.estimator_.coef_)


def test_seeds():
    X, y = draw()
    # The forest takes its seed from the selector.
    model = KnockoffSelector(RandomForestRegressor(10), random_state=3)
    first = model.fit(X, y).statistics_
    np.testing.assert_array_equal(clone(model).fit(X, y).statistics_, first)
    seeded = clone(model).set_params(random_state=np.random.default_rng(3)).fit(X, y)
    np.testing.assert_array_equal(seeded.statistics_, first)
    other = clone(model).set_params(random_state=None)
    assert not np.array_equal(other.fit(X, y).statistics_, clone(other).fit(X, y).statistics_)


def test_samplers_by_name_and_by_object():
    X, y = draw()
    mixed = X.copy()
    mixed[:, 0] = mixed[:, 0] > 0
    names = {
        "gaussian": GaussianKnockoffs,
        "copula": CopulaKnockoffs,
        "sequential": SequentialKnockoffs,
        "fixed": FixedXKnockoffs,
        "lowrank": LowRankKnockoffs,
        "matched": MatchedKnockoffs,
    }
    for name, kind in names.items():
        fitted = lasso(sampler=name, fdr=0.2).fit(X, y)
        assert type(fitted.sampler_) is kind
        assert fitted.support_[:12].sum() >= 11
    assert isinstance(resolve_sampler("auto", X), GaussianKnockoffs)
    assert isinstance(resolve_sampler("auto", mixed), MatchedKnockoffs)
    constant = np.column_stack([X, np.ones(300)])
    assert isinstance(resolve_sampler("auto", constant), GaussianKnockoffs)
    given = GaussianKnockoffs(method="sdp")
    fitted = lasso(sampler=given).fit(X, y)
    assert fitted.sampler_.method == "sdp"
    assert not hasattr(given, "s_")


def test_data_frames_and_constant_columns():
    X, y = draw()
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)]).assign(flat=1.0)
    with pytest.warns(DataWarning, match=r"set aside: .flat. .constant"):
        fitted = KnockoffSelector(
            ConvexSIC(feature_map="landmark", lam=0.05), fdr=0.2, random_state=0
        ).fit(frame, y)
    assert fitted.statistics_[30] == 0
    assert fitted.feature_importances_[30] == 0
    assert not fitted.support_[30]
    assert fitted.qvalues_[30] == 1
    chosen = list(fitted.get_feature_names_out())
    assert {f"c{j}" for j in range(11)} <= set(chosen)
    assert fitted.set_output(transform="pandas").transform(frame).columns.tolist() == chosen
    flat = np.ones((20, 12))
    with pytest.warns(DataWarning, match="constant"), pytest.warns(SobolevWarning, match="0 col"):
        assert not lasso().fit(flat, y[:20]).support_.any()


def test_scale_and_shift_change_nothing():
    X, y = draw(n=150)
    moved = X * np.geomspace(0.01, 100, 30) + 7
    for estimator in (LassoCV(), ConvexSIC(lam=0.05)):
        model = KnockoffSelector(estimator, random_state=0, fdr=0.2)
        a, b = model.fit(X, y), clone(model).fit(moved, y)
        np.testing.assert_allclose(a.statistics_, b.statistics_, atol=1e-3)


def test_groups():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((300, 20))
    # Two similar columns: neither is found alone, but the pair is.
    X = np.repeat(base, 2, axis=1) + 0.05 * rng.standard_normal((300, 40))
    y = base[:, :8].sum(axis=1) + rng.standard_normal(300)
    names = [f"c{j}" for j in range(40)]
    groups = {f"g{k}": [f"c{2 * k}", f"c{2 * k + 1}"] for k in range(19)}  # the last two alone
    fitted = lasso(feature_groups=groups, fdr=0.2).fit(pd.DataFrame(X, columns=names), y)
    W = fitted.statistics_
    np.testing.assert_array_equal(W[0:38:2], W[1:38:2])
    np.testing.assert_array_equal(fitted.support_[0:38:2], fitted.support_[1:38:2])
    per_group = np.append(W[0:38:2], W[38:])
    assert fitted.threshold_ == knockoff_threshold(per_group, 0.2)
    assert fitted.support_[:16].all()
    assert fitted.sampler_.feature_groups is not None
    assert not fitted.diagnostics_.failing
    with pytest.raises(ValueError, match="disjoint"):
        lasso(feature_groups=[[0, 1], [1, 2]]).fit(X, y)


def test_group_knockoffs_are_selected_by_group():
    """Columns of a group may only be swapped together: one by one, signs are not coin tosses."""
    X, y = draw()
    names = [f"c{j}" for j in range(30)]
    frame = pd.DataFrame(X, columns=names)
    sampler = GaussianKnockoffs(feature_groups={"twins": ["c3", "c4"]})
    with pytest.raises(ValueError, match=r"'c3', 'c4'.*swapped together"):
        lasso(sampler=sampler).fit(frame, y)
    with pytest.raises(ValueError, match=r"'x3', 'x4'.*swapped together"):
        lasso(sampler=GaussianKnockoffs(feature_groups=[[3, 4]]), feature_groups=[[2, 3]]).fit(X, y)
    within = lasso(sampler=sampler, feature_groups=[[2, 3, 4]]).fit(frame, y)
    assert within.sampler_.S_[3, 4] != 0
    assert within.support_[2:5].all()
    alone = lasso(sampler=GaussianKnockoffs(feature_groups=[[3]])).fit(X, y)  # groups of one
    np.testing.assert_array_equal(alone.statistics_ != 0, True)


def test_groups_of_an_estimated_model_have_coins_for_signs():
    """Signs of null groups with two similar columns; 4.5 deviations, as above."""
    heads = coins = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.standard_normal((150, 15)), 2, axis=1)
        X += 0.3 * rng.standard_normal((150, 30))
        groups = [[2 * k, 2 * k + 1] for k in range(15)]
        y = X[:, :6].sum(axis=1) + rng.standard_normal(150)
        W = lasso(feature_groups=groups, random_state=seed, fdr=0.3).fit(X, y).statistics_[6::2]
        heads, coins = heads + np.sum(W > 0), coins + np.sum(W != 0)
    assert coins > 200
    assert_fair(heads, coins)


def test_a_response_of_one_column_is_a_vector():
    X, y = draw()
    for model in (LassoCV(), RandomForestRegressor(10)):
        selector = KnockoffSelector(model, statistic="swap", random_state=0)
        expected = selector.fit(X, y).statistics_
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for column in (y[:, None], pd.DataFrame({"y": y})):
                found = clone(selector).fit(X, column).statistics_
                np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", [4, 10])
def test_continuous_columns_with_few_rows_are_not_categorical(n):
    """All values of a continuous column differ, for any number of rows."""
    X, y = draw(p=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = lasso(sampler="gaussian").fit(X[:n], y[:n])
    assert fitted.diagnostics_.score == 1


def test_labels():
    X, y = draw()
    for target in (y > 0, np.digitize(y, [-2, 2]), np.where(y > 0, "yes", "no")):
        fitted = lasso(fdr=0.2).fit(X, target)
        assert fitted.support_[:12].sum() >= 8


@pytest.mark.parametrize(
    ("p", "options", "needed"),
    [
        (9, {"fdr": 0.1}, "10 or more"),
        (19, {"fdr": 0.1, "n_draws": 2}, "20 or more"),
        (9, {"fdr": 0.1, "n_draws": 2, "offset": 0}, "10 or more"),
        (12, {"fdr": 0.1, "feature_groups": [[0, 1, 2, 3]]}, "9 groups"),
    ],
)
def test_too_few_columns_for_any_selection(p, options, needed):
    X, y = draw(p=p, k=p)
    with pytest.warns(SobolevWarning, match=needed):
        fitted = lasso(**options).fit(X, y)
    assert not fitted.support_.any()


@pytest.mark.parametrize(
    ("p", "options"),
    [
        (10, {"fdr": 0.1}),
        (9, {"fdr": 0.1, "offset": 0}),
        (20, {"fdr": 0.1, "n_draws": 2}),
        (10, {"fdr": 0.1, "n_draws": 2, "offset": 0}),
    ],
)
def test_no_warning_with_just_enough_columns(p, options):
    X, _ = draw(p=p, k=p)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = lasso(**options).fit(X, X @ (-1.0) ** np.arange(p))
    assert fitted.support_.all()


def test_gaussian_knockoffs_of_binary_columns_raise_a_warning():
    X, y = draw()
    X[:, 3] = X[:, 3] > 0
    with pytest.warns(KnockoffModelWarning, match="few values.*'x3'.*--sampler auto"):
        fitted = lasso(sampler="gaussian").fit(X, y)
    assert fitted.diagnostics_.doubtful == [3]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(30)])
    with pytest.warns(KnockoffModelWarning, match="'c3'") as caught:
        lasso(sampler="gaussian").fit(frame, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lasso().fit(X, y).diagnostics_.doubtful == []
        assert lasso(sampler="gaussian", diagnose=False).fit(X, y).diagnostics_ is None
        assert lasso(sampler="fixed").fit(X, y).diagnostics_ is None


def test_collinear_columns_are_not_discovered_with_fixed_x_knockoffs():
    X, y = draw()
    X[:, 20] = X[:, 0] - 2 * X[:, 1]
    X[:, 21] = X[:, 3]
    with pytest.warns(DataWarning, match="collinear"):
        fitted = lasso(sampler="fixed").fit(X, y)
    np.testing.assert_array_equal(fitted.statistics_[[0, 1, 3, 20, 21]], 0)
    assert np.count_nonzero(fitted.statistics_) >= 20


def test_fixed_x_knockoffs_need_a_statistic_of_the_gram_matrix():
    X, y = draw()
    with pytest.warns(SobolevWarning, match="Gram"):
        KnockoffSelector(LassoCV(), sampler="fixed", random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fdr": 0}, ValueError, "fdr"),
        ({"offset": 2}, ValueError, "offset"),
        ({"n_draws": 0}, ValueError, "n_draws"),
        ({"statistic": "best"}, ValueError, "statistic"),
        ({"estimator": LassoCV()}, ValueError, "estimator"),
        ({"sampler": "normal"}, ValueError, "sampler"),
        ({"sampler": 3}, TypeError, "sampler"),
    ],
)
def test_bad_parameters(options, error, message):
    with pytest.raises(error, match=message):
        lasso(**options).fit(*draw(n=30, p=10, k=2))


def test_a_sampler_with_bad_draws_is_an_error():
    class Half:
        def fit(self, X):
            self.X = X
            return self

        def sample(self, random_state=None):
            return self.X[:, ::2]

    with pytest.raises(ValueError, match="Half"):
        lasso(sampler=Half()).fit(*draw(n=30, p=10, k=2))


@pytest.mark.filterwarnings("ignore:nothing can be selected")
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks(
    [
        KnockoffSelector(
            ConvexSIC(feature_map="landmark", lam=0.1, solver=Alternating(rounds=1)), random_state=0
        ),
        KnockoffSelector(statistic="lasso_path", n_draws=2, random_state=0),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
