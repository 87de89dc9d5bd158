"""Statistics: swapping pairs flips exactly their signs, and independent formulas."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Lasso, LassoCV, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from sobolev import ConvexSIC
from sobolev.critic import as_critic
from sobolev.exceptions import ConvergenceWarning
from sobolev.knockoffs import GaussianKnockoffs, knockoff_statistics
from sobolev.knockoffs.importances import _folds, entry_importances, swap_importances
from sobolev.knockoffs.pairs import Pairs
from sobolev.knockoffs.statistics import evaluate, signed_statistics

REGRESSION = [
    (None, "lasso_path"),
    (LassoCV(), "difference"),
    (LassoCV(), "signed_max"),
    (make_pipeline(StandardScaler(), Ridge()), "difference"),
    (RandomForestRegressor(10), "difference"),
    (DecisionTreeRegressor(), "signed_max"),
    (ConvexSIC(lam=0.05), "difference"),
    (ConvexSIC(lam=0.05), "swap"),
    (LassoCV(), "swap"),
    (RandomForestRegressor(10), "swap"),
    (KNeighborsRegressor(), "swap"),
]


def draw(n=120, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    K = GaussianKnockoffs().fit(X).sample(seed)
    return X, K, X[:, 0] + 2 * X[:, 1] - X[:, 2] + 0.5 * rng.standard_normal(n)


def swap(X, K, columns):
    A, B = X.copy(), K.copy()
    A[:, columns], B[:, columns] = K[:, columns], X[:, columns]
    return A, B


@pytest.mark.parametrize(("estimator", "statistic"), REGRESSION, ids=str)
def test_swapping_pairs_flips_exactly_their_signs(estimator, statistic):
    X, K, y = draw()
    W = knockoff_statistics(X, K, y, estimator, statistic, random_state=4)
    assert np.count_nonzero(W) >= 4
    assert W[1] > 0
    for columns in ([1], [0, 3, 5], list(range(8))):
        expected = W.copy()
        expected[columns] *= -1
        found = knockoff_statistics(*swap(X, K, columns), y, estimator, statistic, random_state=4)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("estimator", "statistic"),
    [
        (None, "lasso_path"),
        (LogisticRegression(), "difference"),
        (RandomForestClassifier(10), "swap"),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels(estimator, statistic, n_classes):
    X, K, y = draw()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0] if n_classes == 2 else [-1, 1])]
    W = knockoff_statistics(X, K, labels, estimator, statistic)
    assert W[1] > 0
    found = knockoff_statistics(*swap(X, K, [1, 4]), labels, estimator, statistic)
    np.testing.assert_array_equal(found, W * [1, -1, 1, 1, -1, 1, 1, 1])


@pytest.mark.parametrize(
    ("estimator", "statistic"),
    [(None, "lasso_path"), (RandomForestRegressor(10), "difference"), (Ridge(), "swap")],
    ids=str,
)
def test_groups_flip_together(estimator, statistic):
    X, K, y = draw()
    groups = [[0, 1], [2, 5, 6]]
    W = knockoff_statistics(X, K, y, estimator, statistic, feature_groups=groups)
    assert W.shape == (5,)
    assert W[0] > 0
    found = knockoff_statistics(
        *swap(X, K, [0, 1, 3]), y, estimator, statistic, feature_groups=groups
    )
    np.testing.assert_array_equal(found, W * [-1, 1, -1, 1, 1])


def test_the_order_of_a_pair_is_a_coin():
    """Of 200 coins the number of heads leaves 100 ± 32 less than once in 10^5."""
    rng = np.random.default_rng(0)
    X, K = rng.standard_normal((2, 30, 200))
    K[:7] = X[:7]  # the first difference is in row 7
    one, two = (Pairs.arrange(X, K, np.arange(200), np.random.default_rng(s)) for s in (1, 2))
    for heads in (one.flipped, two.flipped, one.flipped ^ two.flipped):
        assert 68 <= heads.sum() <= 132
    # The same coins give the same design, whichever is called the knockoff.
    turned = Pairs.arrange(K, X, np.arange(200), np.random.default_rng(1))
    np.testing.assert_array_equal(turned.design, one.design)
    np.testing.assert_array_equal(turned.flipped, ~one.flipped)


def test_pairs_share_centre_and_scale():
    X, K, _ = draw()
    X, K = X * np.geomspace(0.01, 100, 8) + 5, K * np.geomspace(0.01, 100, 8) + 5
    X[:, 2] = K[:, 2] = 3.0
    pairs = Pairs.arrange(X, K, np.arange(8), np.random.default_rng(0))
    assert pairs.design.shape == (120, 14)
    assert pairs.varying.tolist() == [True, True, False, *[True] * 5]
    assert pairs.same.tolist() == [False, False, True, *[False] * 5]
    stacked = np.vstack([pairs.design[:, :7], pairs.design[:, 7:]])
    np.testing.assert_allclose(stacked.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(stacked.std(axis=0), 1)
    # The difference within a pair survives: the knockoff is not rescaled alone.
    kept = pairs.varying
    ratio = pairs.design[:, :7].std(axis=0) / pairs.design[:, 7:].std(axis=0)
    expected = X.std(axis=0)[kept] / K.std(axis=0)[kept]
    flipped = pairs.flipped[kept]
    np.testing.assert_allclose(ratio, np.where(flipped, 1 / expected, expected))
    restored = pairs.restore(np.arange(14.0))
    np.testing.assert_array_equal(restored[0, kept], np.arange(7) + 7 * flipped)
    np.testing.assert_array_equal(restored[1, kept], np.arange(7) + 7 * ~flipped)
    np.testing.assert_array_equal(restored[:, 2], 0)


def test_equal_pairs_have_no_statistic():
    X, K, y = draw()
    K[:, 1] = X[:, 1]
    for estimator, statistic in ((None, "lasso_path"), (LassoCV(), "difference")):
        W = knockoff_statistics(X, K, y, estimator, statistic)
        assert W[1] == 0
        assert W[0] > 0


def test_contrasts():
    a, b = np.array([3.0, 1.0, 2.0]), np.array([1.0, 4.0, 2.0])
    np.testing.assert_array_equal(signed_statistics(a, b), [2, -3, 0])
    np.testing.assert_array_equal(signed_statistics(a, b, "signed_max"), [3, -4, 0])
    with pytest.raises(ValueError, match="contrast"):
        signed_statistics(a, b, "ratio")


def test_a_column_is_in_the_lasso_just_below_its_entry():
    X, K, y = draw()
    design = np.hstack([X, K])
    y = (y - y.mean()) / y.std()
    entries = entry_importances(design, y)
    design = design - design.mean(axis=0)
    np.testing.assert_allclose(entries.max(), np.abs(design.T @ y).max() / y.size)
    for j in np.argsort(-entries)[:6]:
        above, below = (
            Lasso(alpha=entries[j] * factor, tol=1e-12, max_iter=100_000).fit(design, y).coef_[j]
            for factor in (1.001, 0.999)
        )
        assert above == 0
        assert below != 0


def test_copies_of_columns_do_not_end_the_path():
    """LARS stops at a column that equals another one; rare 0/1 columns have such knockoffs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40))
    y = X[:, ::2].sum(axis=1) + rng.standard_normal(200)
    entries = entry_importances(X, y)
    assert (entries > 0).all()
    found = entry_importances(np.hstack([X, X[:, :25]]), y)
    np.testing.assert_allclose(found, np.append(entries, entries[:25]))


def test_a_short_path_is_told():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 40))
    y = X[:, ::2].sum(axis=1) + rng.standard_normal(200)
    nearly = np.hstack([X, X[:, :25] + 1e-9 * rng.standard_normal((200, 25))])
    with pytest.warns(ConvergenceWarning, match="nearly collinear"):
        entry_importances(nearly, y)


def test_orthogonal_columns_enter_at_their_covariance():
    rng = np.random.default_rng(0)
    design = np.linalg.qr(rng.standard_normal((50, 6)) - 0.0)[0]
    design -= design.mean(axis=0)
    design = np.linalg.qr(design)[0]
    y = rng.standard_normal(50)
    y = (y - y.mean()) / y.std()
    np.testing.assert_allclose(entry_importances(design, y), np.abs(design.T @ y) / 50)


def test_swap_importances_of_a_known_model():
    """With f = 2 x_0 known, the squared error grows by what the partner in its place costs."""

    class Known(Ridge):
        def fit(self, X, y):
            self.coef_, self.n_features_in_ = np.array([2.0, 0, 0, 0]), 4
            return self

        def predict(self, X):
            return X @ self.coef_

    rng = np.random.default_rng(0)
    design, noise = rng.standard_normal((60, 4)), rng.standard_normal(60)
    y = 2 * design[:, 0] + noise
    units = [np.array([0]), np.array([1])]
    found = swap_importances(as_critic(Known()), design, y, units, rng)
    grown = np.mean((y - 2 * design[:, 2]) ** 2) - np.mean(noise**2)
    np.testing.assert_allclose(found, [grown, 0, 0, 0], atol=1e-12)


def test_swap_importances_are_of_unseen_rows():
    class Memory(Ridge):
        def fit(self, X, y):
            self.seen_, self.n_features_in_ = set(X[:, 0]), X.shape[1]
            return self

        def predict(self, X):
            evaluated.update(X[:, 0])
            assert not self.seen_ & set(X[:, 0])
            return np.zeros(len(X))

    evaluated: set = set()
    rng = np.random.default_rng(0)
    design = rng.standard_normal((23, 2))
    design[:, 1] = design[:, 0]
    swap_importances(as_critic(Memory()), design, design[:, 0], [np.array([0])], rng)
    assert evaluated == set(design[:, 0])


def test_folds_share_out_rare_labels():
    labels = np.array(["a"] * 2 + ["b"] * 60 + ["c"] * 58)
    for seed in range(20):
        folds = _folds(labels, 120, np.random.default_rng(seed))
        assert folds[0] != folds[1]
        np.testing.assert_array_equal(np.bincount(folds), 24)


def test_errors_name_the_remedy():
    X, K, y = draw()
    with pytest.raises(TypeError, match="swap"):
        knockoff_statistics(X, K, y, KNeighborsRegressor())
    with pytest.raises(ValueError, match="lasso_path"):
        knockoff_statistics(X, K, y, Ridge(), "lasso_path")
    with pytest.raises(ValueError, match="one shape"):
        knockoff_statistics(X, K[:, :3], y)
    labels = np.array(["a"] + ["b"] * 60 + ["c"] * 59)
    with pytest.raises(ValueError, match="'a' only once"):
        knockoff_statistics(X, K, labels, RandomForestClassifier(3), "swap")
    for target in (labels, labels[:, None]):
        with pytest.raises(ValueError, match="'a' only once"):
            knockoff_statistics(X, K, target, RandomForestClassifier(3), "swap")
    few = np.array([99] + [0] * 60 + [1] * 59)  # a number, also in the folds that lack 99
    assert np.isfinite(knockoff_statistics(X, K, few, ConvexSIC(lam=0.05), "swap")).all()
    with pytest.raises(ValueError, match=r'99 only once.*target="regression"'):
        knockoff_statistics(X, K, few, ConvexSIC(lam=0.05, target="classification"), "swap")
    pipeline = make_pipeline(PolynomialFeatures(2), Ridge())
    with pytest.raises(ValueError, match="153 importances for 16 columns"):
        knockoff_statistics(X, K, y, pipeline)


def evaluated(statistic, estimator, weights=None, Z=None, seed=1):
    X, K, y = draw()
    rng = np.random.default_rng(seed)
    return evaluate(X, K, y, estimator, statistic, np.arange(8), rng, weights, Z)


@pytest.mark.parametrize(
    ("statistic", "estimator"),
    [("lasso_path", None), ("difference", ConvexSIC(lam=0.05)), ("swap", Ridge())],
)
def test_units_of_covariates_do_not_matter(statistic, estimator):
    Z = np.random.default_rng(2).standard_normal((120, 2))
    found = evaluated(statistic, estimator, Z=Z)
    moved = evaluated(statistic, estimator, Z=1e3 * Z + 7.0)
    np.testing.assert_allclose(moved.W, found.W, rtol=1e-6, atol=1e-9)
    assert np.abs(found.W - evaluated(statistic, estimator).W).max() > 0
    assert found.importances.shape == (2, 8)


def test_only_covariates_are_adjusted_for():
    plain = evaluated("difference", ConvexSIC(lam=0.05)).model
    assert plain.adjust is None
    Z = np.random.default_rng(2).standard_normal((120, 3))
    assert evaluated("difference", ConvexSIC(lam=0.05), Z=Z).model.adjust == [16, 17, 18]


@pytest.mark.filterwarnings("ignore:the lasso path stopped")
def test_the_lasso_path_explains_the_response_by_covariates_first():
    """A response that is the covariate leaves nothing to the columns."""
    X, K, y = draw()
    labels, rng = np.arange(8), np.random.default_rng(1)
    rest = y[:, None] + 1e-6 * rng.standard_normal((120, 1))
    left = evaluate(X, K, y, None, "lasso_path", labels, rng, None, rest).importances
    assert left.max() < 1e-4 * evaluated("lasso_path", None).importances.max()


def test_weights_go_with_all_statistics_but_swap():
    weights = np.random.default_rng(3).dirichlet(np.ones(120))
    for statistic, estimator in (("lasso_path", None), ("difference", ConvexSIC(lam=0.05))):
        equal = evaluated(statistic, estimator, np.full(120, 1 / 120)).W
        np.testing.assert_allclose(equal, evaluated(statistic, estimator).W, atol=1e-9)
        assert np.abs(evaluated(statistic, estimator, weights).W - equal).max() > 0
    with pytest.raises(ValueError, match="sample_weight"):
        evaluated("swap", Ridge(), weights)


def test_no_column_differs_from_its_knockoff():
    X, _, y = draw()
    for statistic in ("difference", "lasso_path", "swap"):
        found = evaluate(X, X, y, None, statistic, np.arange(8), np.random.default_rng(0))
        np.testing.assert_array_equal(found.W, np.zeros(8))


def test_estimators_see_covariates_in_standard_units():
    Z = 5.0 + 3.0 * np.random.default_rng(2).standard_normal((120, 2))
    model = evaluated("difference", make_pipeline(StandardScaler(), Ridge()), Z=Z).model
    np.testing.assert_allclose(model[0].mean_[16:], 0.0, atol=1e-12)
    np.testing.assert_allclose(model[0].scale_[16:], 1.0)
