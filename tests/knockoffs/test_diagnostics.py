"""Diagnostics of knockoffs: valid knockoffs pass, invalid ones fail, p-values are valid."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from sobolev import KnockoffSelector
from sobolev.exceptions import KnockoffModelWarning
from sobolev.knockoffs import (
    CopulaKnockoffs,
    GaussianKnockoffs,
    SequentialKnockoffs,
    diagnose_knockoffs,
)
from sobolev.knockoffs._moments import off_values
from sobolev.knockoffs.diagnostics import compare, missed_dependence, warn_if_misfit


def covariance(p, rho=0.6):
    return rho ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def normal(n=300, p=10, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p)) @ np.linalg.cholesky(covariance(p)).T


def moments(X, K, labels=None):
    return compare(X, K, np.arange(X.shape[1]) if labels is None else labels)


def test_right_knockoffs_pass():
    """At a rate of 0.01, six or more of 60 would fail less than once in 10^4."""
    assert binom.sf(5, 60, 0.01) < 1e-4
    failing = 0
    for seed in range(60):
        X = normal(100, 8, seed)
        K = GaussianKnockoffs(covariance(8)).fit(X).sample(seed)
        failing += bool(moments(X, K).failing)
    assert failing <= 5


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (lambda X, K: K + 0.5 * (np.arange(10) == 4), "mean"),
        (lambda X, K: np.where(np.arange(10) == 4, 1.6 * K, K), "variance"),
        (lambda X, K: np.where(np.arange(10) == 4, K[::-1], K), "correlation"),
    ],
    ids=["mean", "variance", "correlation"],
)
def test_wrong_moments_are_found(wrong, check):
    X = normal(600)
    K = GaussianKnockoffs(covariance(10)).fit(X).sample(0)
    assert moments(X, K).failing == []
    found = moments(X, wrong(X, K))
    assert 4 in found.failing
    assert check in found.failed_checks(4)
    # A wrong column spoils the correlations of its neighbours, no others.
    assert set(found.failing) <= {3, 4, 5}
    assert found.score == 1 - len(found.failing) / 10


def test_gaps_are_sums_over_their_standard_errors():
    X, K = normal(50, 3), normal(50, 3, seed=1)
    found = moments(X, K)
    both = np.vstack([X, K])
    A, B = ((M - both.mean(axis=0)) / both.std(axis=0) for M in (X, K))
    d = A[:, 0] - B[:, 0]
    np.testing.assert_allclose(found.effects[0, 0], d.mean())
    np.testing.assert_allclose(found.gaps[0, 0], abs(d.sum()) / np.sqrt((d**2).sum()))
    v = A[:, 0] ** 2 - B[:, 0] ** 2
    np.testing.assert_allclose(found.effects[0, 1], v.mean())
    np.testing.assert_allclose(found.gaps[0, 1], abs(v.sum()) / np.sqrt((v**2).sum()))
    terms = [d * g for g in (A[:, 1], A[:, 2], B[:, 1], B[:, 2])]
    sizes = [abs(t.sum()) / np.sqrt((t**2).sum()) for t in terms]
    np.testing.assert_allclose(found.gaps[0, 2], max(sizes))
    np.testing.assert_allclose(found.effects[0, 2], terms[int(np.argmax(sizes))].mean())
    np.testing.assert_allclose(found.correlations[0], np.corrcoef(X[:, 0], K[:, 0])[0, 1])


def test_gaps_do_not_depend_on_which_is_the_knockoff():
    X, K = normal(50, 4), normal(50, 4, seed=1)
    np.testing.assert_allclose(moments(X, K).gaps, moments(K, X).gaps)
    np.testing.assert_allclose(moments(X, K).effects, -moments(K, X).effects)


def test_groups_swap_together():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((500, 4)), 2, axis=1) + 0.05 * rng.standard_normal((500, 8))
    groups = [[0, 1], [2, 3], [4, 5], [6, 7]]
    K = GaussianKnockoffs(feature_groups=groups).fit(X).sample(0)
    assert diagnose_knockoffs(X, K, feature_groups=groups, classifier=False).failing == []
    # Alone, a twin and its knockoff are not alike: the other twin tells.
    assert len(diagnose_knockoffs(X, K, classifier=False).failing) == 8
    # Within a group correlations must agree as well.
    broken = K.copy()
    broken[:, 0] = rng.permutation(K[:, 0])
    assert 0 in diagnose_knockoffs(X, broken, feature_groups=groups, classifier=False).failing
    labels = np.repeat(np.arange(4), 2)
    d = X / np.vstack([X, broken]).std(axis=0), broken / np.vstack([X, broken]).std(axis=0)
    assert moments(*d, labels).gaps[0, 2] > 10


def test_gaussian_knockoffs_of_binary_columns_fail():
    X = normal()
    X[:, [2, 5]] = X[:, [2, 5]] > 0
    wrong = diagnose_knockoffs(X, GaussianKnockoffs().fit(X).sample(0))
    assert sorted(wrong.failing) == [2, 5]
    assert wrong.off_share == 0.2
    assert wrong.score == 0.8
    assert wrong.told_apart
    assert wrong.accuracies.min() > 0.8
    for sampler in (SequentialKnockoffs(), CopulaKnockoffs()):
        right = diagnose_knockoffs(X, sampler.fit(X).sample(0))
        assert right.failing == []
        assert right.off_share == 0
        assert not right.told_apart


def test_columns_on_wrong_values_come_first():
    X = normal()
    X[:, 2] = X[:, 2] > 0
    K = GaussianKnockoffs().fit(X).sample(0)
    K[:, 5] += 10
    assert moments(X, K).failing[:2] == [2, 5]


def test_off_values():
    x = np.arange(20) % 2
    assert off_values(x, x[::-1]) == 0
    assert off_values(x, np.where(np.arange(20) < 5, 0.5, x)) == 0.25
    assert off_values(np.arange(20), np.arange(20) + 0.5) == 0


def test_the_classifier_sees_what_moments_do_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    K = rng.standard_normal((400, 3))
    K[:, 1] = rng.choice([-1.0, 1.0], 400)  # the same mean, variance and correlations
    found = diagnose_knockoffs(X, K)
    assert found.failing == []
    assert found.told_apart


def test_the_pvalue_of_the_classifier_is_honest():
    """Under the null at most a tenth of p-values are at most 0.1; 31 of 150 less than 1 in 10^4."""
    pvalues = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, K = rng.standard_normal((2, 60, 3))
        found = diagnose_knockoffs(X, K, classifier=LogisticRegression(), random_state=seed)
        pvalues.append(found.classifier_pvalue)
    assert binom.sf(30, 150, 0.1) < 1e-4
    assert np.sum(np.array(pvalues) <= 0.1) <= 30
    assert np.mean(pvalues) > 0.4


def test_power_is_the_correlation_with_the_knockoff():
    X = normal()
    copy = diagnose_knockoffs(X, X, classifier=False)
    np.testing.assert_allclose(copy.correlations, 1)
    assert copy.mean_correlation == pytest.approx(1)
    assert copy.failing == []
    fresh = diagnose_knockoffs(X, normal(seed=1), classifier=False)
    assert abs(fresh.mean_correlation) < 0.1


@pytest.mark.parametrize("chunk", [1, 70, 200])
def test_columns_may_be_compared_a_few_at_a_time(monkeypatch, chunk):
    X, labels = normal(), np.array([0, 1, 1, 2, 3, 4, 4, 4, 5, 6])
    K = GaussianKnockoffs().fit(X).sample(0)
    K[:, 5] = K[::-1, 5]
    whole = moments(X, K, labels)
    assert 5 in whole.failing
    monkeypatch.setattr("sobolev.knockoffs._moments.CHUNK_PAIRS", chunk)
    parts = moments(X, K, labels)
    for name in ("effects", "gaps", "qvalues"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-10)


@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_units_play_no_part(unit):
    X = normal()
    K = GaussianKnockoffs().fit(X).sample(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, expected = moments(X * unit, K * unit), moments(X, K)
    np.testing.assert_allclose(found.correlations, expected.correlations)
    np.testing.assert_allclose(found.effects, expected.effects, atol=1e-12)


def test_constant_columns_are_not_judged():
    X = normal()
    X[:, 3] = 2.0
    K = X.copy()
    K[:, :3] = normal(seed=1)[:, :3]
    found = diagnose_knockoffs(X, K, classifier=False)
    assert 3 not in found.failing
    assert np.isnan(found.effects[3]).all()
    assert np.isfinite(found.mean_correlation)
    flat = diagnose_knockoffs(np.ones((20, 2)), np.ones((20, 2)))
    assert flat.failing == []
    assert np.isnan(flat.mean_correlation)
    assert not flat.told_apart


def test_table_names_and_repr():
    X = normal()
    X[:, 2] = X[:, 2] > 0
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)])
    found = diagnose_knockoffs(frame, GaussianKnockoffs().fit(X).sample(0), classifier=False)
    table = found.table()
    assert table.index.tolist() == list(frame.columns)
    assert table.loc["c2", "fails"] == "values"
    assert (table["fails"] == "").sum() == 9
    assert table.loc["c2", "off_values"] == 1
    assert repr(found) == "KnockoffDiagnostics(score=0.9, failing=['c2'])"
    again = diagnose_knockoffs(X, GaussianKnockoffs().fit(X).sample(0), random_state=1)
    assert "accuracy=" in repr(again)


def test_warning():
    X = normal(600)
    K = GaussianKnockoffs(covariance(10)).fit(X).sample(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_misfit(moments(X, K))
    K[:, 4] = K[::-1, 4]  # depends on no other column
    with pytest.warns(KnockoffModelWarning, match="beat their knockoffs too often.*'x4'") as caught:
        warn_if_misfit(moments(X, K), stacklevel=1)
    assert caught[0].filename == __file__
    assert "few values" not in str(caught[0].message)
    assert "--method hrt" in str(caught[0].message)


def test_knockoffs_that_resemble_the_other_columns_too_much_raise_no_warning():
    """They are conservative: their correlations differ, but columns without effect do not win."""
    X = normal(600)
    K = GaussianKnockoffs(covariance(10)).fit(X).sample(0)
    K[:, 4] = 0.9 * (X[:, 3] + X[:, 5]) / np.std(X[:, 3] + X[:, 5]) + 0.1 * K[:, 4]
    found = moments(X, K)
    assert 4 in found.failing
    assert found.doubtful == []


@pytest.mark.parametrize("seed", range(5))
def test_signs_of_exact_knockoffs_are_fair(seed):
    X = normal(300, seed=seed)
    signs = moments(X, GaussianKnockoffs(covariance(10)).fit(X).sample(seed)).signs
    assert not signs.in_doubt
    assert signs.shares.shape == (10,)
    independent = np.random.default_rng(seed).permuted(X, axis=0)
    assert moments(X, independent).signs.in_doubt


def test_errors():
    X = normal()
    with pytest.raises(ValueError, match="must agree"):
        diagnose_knockoffs(X, X[:, :3])
    with pytest.raises(ValueError, match="at least 10"):
        diagnose_knockoffs(X[:9], X[:9])


@pytest.mark.parametrize("n_failing", [0, 1, 9])
def test_plot(n_failing):
    import matplotlib.pyplot as plt

    from sobolev.plotting import plot_knockoffs

    X = normal()
    X[:, :n_failing] = X[:, :n_failing] > 0
    found = diagnose_knockoffs(X, GaussianKnockoffs().fit(X).sample(0), classifier=False)
    ax = plot_knockoffs(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that collapses would warn here
        ax.figure.canvas.draw()
    expected = {0: "none of 10 columns", 1: "1 of 10 columns fails", 9: "9 of 10 columns fail"}
    assert ax.get_title(loc="left").startswith(expected[n_failing])
    assert len(ax.figure.axes) == 2
    legend = ax.figure.axes[1].get_legend()
    shown = [] if legend is None else [text.get_text() for text in legend.get_texts()]
    assert len(shown) == min(n_failing, 7)
    assert ("and 3 more" in shown) == (n_failing == 9)
    own = plt.subplots()[1]
    assert plot_knockoffs(found, own) is own
    plt.close("all")


# -- dependence that knockoffs miss ----------------------------------------------------------------


def with_a_product(product, n=400, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, 12))
    X[:, 5] = 0.7 * X[:, 5] + (X[:, 0] * X[:, 1] if product else 0.7 * X[:, 0])
    return X


@pytest.mark.parametrize("product", [True, False])
def test_columns_that_are_products_of_others_are_named(product):
    X = with_a_product(product)
    knockoffs = GaussianKnockoffs().fit(X).sample(np.random.default_rng(1))
    missed = missed_dependence(X, knockoffs, np.arange(12), [0, 5, 7])
    assert bool(missed[5]) is product
    assert not missed[7]


def test_a_selection_of_such_a_column_is_in_doubt():
    X = with_a_product(True)
    y = X[:, 0] * X[:, 1] + X[:, [0, 1, 2, 3]].sum(axis=1)
    selector = KnockoffSelector(fdr=0.5, sampler="gaussian", random_state=0)
    with pytest.warns(KnockoffModelWarning, match="in a way that their knockoffs do not: .*'x5'"):
        selector.fit(X, y)
    assert 5 in selector.diagnostics_.doubtful
    assert "does not match" in selector.summary().set_index("feature").loc["x5", "note"]
    only_tested = selector.diagnostics_.missed & ~selector.support_
    assert not only_tested.any()
