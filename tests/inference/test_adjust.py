"""Covariates of the selectors: in the model, never tested, and the others are tested given them."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LassoCV

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC, audit, hrt_test
from sobolev.critic import told_covariates
from sobolev.inference.auditing import planted_response
from sobolev.knockoffs.importances import entry_importances
from sobolev.knockoffs.statistics import evaluate
from sobolev.plotting import plot_importances, plot_knockoff_statistics, plot_pvalues
from sobolev.report import make_result, write_report
from sobolev.report.text import methods

matplotlib.use("Agg")
FAST = ConvexSIC(feature_map="landmark", lam=0.1)


def confounded(n=120, d=6, seed=0, effect=0.6):
    """Column a matters a little, b only follows the confounder, age, which matters a lot."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, d)), columns=[*"abcdefgh"[: d - 1], "age"])
    X["b"] = 0.7 * X["age"] + 0.7 * X["b"]
    wave = 3 * np.sin(3 * X["age"]) + 3 * X["age"]
    return X, wave + effect * X["a"] + rng.standard_normal(n)


def split(X, y, seed=0, **settings):
    return HRTSelector(scheme="split", diagnose=False, random_state=seed, **settings).fit(X, y)


@pytest.fixture(scope="module")
def tests():
    """P-values of a and b and the held-out skill of the critic, with and without adjust."""
    found = []
    for seed in range(30):
        X, y = confounded(seed=seed)
        X_new, y_new = confounded(400, seed=1000 + seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pair = [split(X, y, seed, estimator=FAST, adjust=a) for a in (None, ["age"])]
        X_new = X_new.to_numpy()
        found.append(
            [
                [*np.nan_to_num(h.pvalues_[:2], nan=1), h.estimator_.score(X_new, y_new)]
                for h in pair
            ]
        )
    return np.array(found)


def test_a_column_that_follows_the_confounder_has_a_valid_pvalue(tests):
    pvalues = tests[:, 1, 1]
    for level in (0.05, 0.1, 0.25):  # a correct program fails in less than 1 of 500 cases each
        assert (pvalues <= level).sum() <= binom.ppf(0.998, len(pvalues), level)


def test_the_skill_of_the_critic_stays(tests):
    without, adjusted = tests[:, :, 2].mean(axis=0)
    assert adjusted > without + 0.02


def test_an_effect_beside_a_large_covariate_is_found_more_often(tests):
    without, adjusted = tests[:, 0, 0], tests[:, 1, 0]
    assert (adjusted < 0.05).mean() > (without < 0.05).mean() + 0.1
    assert np.median(adjusted) < np.median(without)


@pytest.fixture(scope="module")
def fitted():
    X, y = confounded(effect=2.0)
    return HRTSelector(FAST, adjust=["age"], random_state=0).fit(X, y), X, y


def test_a_covariate_is_not_tested(fitted):
    hrt, X, _ = fitted
    for values in (hrt.pvalues_, hrt.qvalues_, hrt.statistics_):
        assert np.isnan(values[5])
    np.testing.assert_array_equal(hrt.adjusted_, [5])
    assert 5 not in hrt.shortlist_
    assert not hrt.get_support()[5]
    assert hrt.transform(X).shape[1] == hrt.support_.sum() == 1
    found = hrt.summary().set_index("feature")
    assert found.loc["age", "note"] == "adjusted for"
    assert found.loc["age", "importance"] == 0
    assert "1 of 5 features at FDR" in hrt._answer_html()
    with pytest.raises(ValueError, match="'age' was not tested: the test is adjusted for it"):
        hrt.result("age")


def test_the_estimator_of_the_user_stays_as_it_is(fitted):
    hrt, X, y = fitted
    assert FAST.adjust is None
    assert hrt.estimator_.adjust == [5]
    own = told_covariates(ConvexSIC(adjust=[1]), np.array([5]))
    assert own.adjust == [1]
    assert np.isfinite(split(X, y, estimator=LassoCV(), adjust=["age"]).pvalues_[0])
    assert split(X, y, estimator=NeuralSIC(), adjust=[5]).estimator_.adjust == [5]


def test_a_copy_of_a_covariate_is_adjusted_for(fitted):
    _, X, y = fitted
    hrt = split(X.assign(months=12 * X["age"]), y, estimator=FAST, adjust=["months"])
    np.testing.assert_array_equal(hrt.adjusted_, [5, 6])
    found = hrt.summary().set_index("feature")
    assert found.loc["age, months", "note"] == "adjusted for (cannot be told apart: copies)"
    grouped = split(X, y, estimator=FAST, adjust=["age"], feature_groups={"two": ["d", "age"]})
    np.testing.assert_array_equal(grouped.adjusted_, [3, 5])


def test_nothing_changes_without_covariates(fitted):
    _, X, y = fitted
    np.testing.assert_array_equal(split(X, y).pvalues_, split(X, y, adjust=[]).pvalues_)


def test_the_doubly_robust_statistic_has_covariates(fitted):
    _, X, y = fitted
    assert split(X, y, estimator=FAST, statistic="residual", adjust=["age"]).pvalues_[0] < 0.01


def test_one_column_given_covariates(fitted):
    _, X, y = fitted
    assert hrt_test(X, y, "a", adjust=["age"], random_state=0).pvalue < 0.01
    with pytest.raises(ValueError, match="feature='age' is in adjust"):
        hrt_test(X, y, "age", adjust=["age"])


@pytest.mark.parametrize("selector", [HRTSelector, KnockoffSelector])
def test_errors(selector, fitted):
    _, X, y = fitted
    with pytest.raises(ValueError, match="adjust names column 'agee', but X has no such column"):
        selector(adjust=["agee"]).fit(X, y)
    with pytest.raises(ValueError, match="adjust leaves no column to test"):
        selector(adjust=list(X)).fit(X, y)
    with pytest.raises(TypeError, match=r"adjust='age' must be a list of columns, \['age'\]"):
        selector(adjust="age").fit(X, y)


# -- knockoffs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", ["difference", "swap", "lasso_path"])
def test_knockoffs_leave_covariates_out(statistic):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    y = X[:, :10].sum(axis=1) + 8 * X[:, 11] + rng.standard_normal(200)
    estimator = None if statistic == "lasso_path" else ConvexSIC(lam=0.05)
    options = {"statistic": statistic, "fdr": 0.2, "random_state": 0}
    selector = KnockoffSelector(estimator, adjust=[11], **options).fit(X, y)
    for values in (selector.statistics_, selector.qvalues_, selector.evalues_):
        assert np.isnan(values[11])
        assert np.isfinite(values[:11]).all()
    assert selector.support_[:10].all()
    assert not selector.support_[11]
    found = selector.summary().set_index("feature")
    assert found.loc["x11", "note"] == "adjusted for"
    assert f"{selector.support_.sum()} of 11 features" in selector._answer_html()
    if statistic == "difference":
        assert selector.estimator_.adjust == [22]
        assert selector.diagnostics_.effects[11, 0] == 0  # it is its own knockoff


def test_swapping_a_column_flips_its_sign_beside_covariates():
    rng = np.random.default_rng(0)
    X, K, Z = rng.standard_normal((3, 80, 4))
    y = X[:, 0] + 3 * Z[:, 0] + rng.standard_normal(80)
    swapped = np.array([True, False, True, False])
    labels = np.arange(4)
    for statistic in ("difference", "lasso_path"):
        estimator = FAST if statistic == "difference" else None
        tables = (X, K), (np.where(swapped, K, X), np.where(swapped, X, K))
        one, other = (
            evaluate(*table, y, estimator, statistic, labels, np.random.default_rng(1), None, Z).W
            for table in tables
        )
        np.testing.assert_allclose(other, np.where(swapped, -one, one), atol=1e-12)


def test_the_lasso_path_does_not_penalise_covariates():
    """The first entry is the largest partial covariance with the response."""
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((60, 5)), rng.standard_normal((60, 2))
    y = X[:, 3] + 9 * Z[:, 0] + rng.standard_normal(60)
    design = np.column_stack([np.ones(60), Z])
    hat = design @ np.linalg.pinv(design)
    rest, left = y - hat @ y, X - hat @ X
    psi = rest / y.std()
    found = entry_importances(X, y, None, Z)
    assert found.argmax() == 3
    assert found.max() == pytest.approx(np.abs(left.T @ psi).max() / 60)


# -- audit, pictures and report --------------------------------------------------------------------


def test_responses_are_planted_on_tested_columns():
    X = np.random.default_rng(0).standard_normal((300, 6))
    adjusted = np.array([0, 4])
    for number in range(10):
        planted = planted_response(
            number, X, None, 2.0, np.random.default_rng(number), None, adjusted
        )
        assert not np.isin(planted.active, adjusted).any()
        fit = np.linalg.lstsq(X[:, adjusted], planted.y)[0]
        assert np.abs(fit).max() > 0.3  # the covariates matter for every response


def test_an_audit_of_an_adjusted_selector():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((100, 5)), columns=[*"abcd", "age"])
    X["a"] += X["age"]
    selector = HRTSelector(FAST, scheme="split", adjust=["age"])
    result = audit(selector, X, n_repeats=4, random_state=0)
    assert all(run.n_true == run.n_active for run in result.runs)
    assert all(run.n_null + run.n_true <= 4 for run in result.runs)
    assert result.passed
    knockoffs = KnockoffSelector(statistic="lasso_path", offset=0, fdr=0.3, adjust=[4])
    assert len(audit(knockoffs, X, n_repeats=2, random_state=0).runs) == 2
    with pytest.raises(ValueError, match="adjust names column 'z'"):
        audit(HRTSelector(adjust=["z"]), X, n_repeats=1)


def test_pictures_leave_covariates_out(fitted):
    hrt, X, y = fitted
    assert "5 features tested" in plot_pvalues(hrt).get_title(loc="left")
    shown = [label.get_text() for label in plot_importances(hrt).get_yticklabels()]
    assert "age" not in shown
    options = {"statistic": "lasso_path", "offset": 0, "adjust": ["age"], "random_state": 0}
    knockoffs = KnockoffSelector(**options).fit(X, y)
    assert "of 5 features" in plot_knockoff_statistics(knockoffs).get_title(loc="left")


def test_the_report_names_covariates_and_does_not_count_them(fitted, tmp_path):
    hrt, X, y = fitted
    result = make_result(hrt, X, y, pictures=False)
    assert result.answer.startswith("1 of 5 features at FDR 10 %")
    assert result.data["features"] == 5
    assert "age" not in set(result.table["feature"])
    assert list(result.settings["adjust"]) == ["age"]
    page = write_report(hrt, X, y, tmp_path / "report.html").read_text()
    assert "given all other features and given age, which was always in the model and " in page
    assert "the model and not penalised or tested, by the holdout randomization test" in page
    assert "We tested which of 5 features" in page
    assert "Only the" not in page  # all other features were tested
    ranking = make_result(ConvexSIC(lam=0.1, adjust=["b", "age"]).fit(X, y), X, y, pictures=False)
    assert "given b and age, which were always in the model and not penalised or ranked" in methods(
        ranking
    )
    lasso = make_result(split(X, y, estimator=LassoCV(), adjust=[5]), X, y, pictures=False)
    assert "which was among the columns of the model and not tested" in methods(lasso)
