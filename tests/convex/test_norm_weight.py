"""tau="auto": when it is chosen, what it is then, and that nothing else changes."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from sobolev import ConvexSIC, load, save, sic_path
from sobolev.convex import Alternating
from sobolev.convex.cross_validation import squared_correlation
from sobolev.convex.fitting import row_risk
from sobolev.convex.norm_weight import is_clear
from sobolev.streaming import fit_stream, partial_fit

SMALL, ALL_COLUMNS = 1e-4, Alternating(screen=None)


def repeated(n=50, d=150, seed=0):
    """A response that depends on a factor, of which forty columns are noisy versions."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((n, 1))
    X = rng.standard_normal((n, d))
    X[:, :40] = factor + X[:, :40]
    return X, factor[:, 0] + 0.3 * rng.standard_normal(n)


def few(n=120, d=260, seed=0):
    """A response that depends on five columns."""
    return make_friedman1(n, d, noise=0.3, random_state=seed)


def assert_same(one, two, X, y):
    np.testing.assert_array_equal(one.feature_importances_, two.feature_importances_)
    np.testing.assert_array_equal(one.witness(X, y), two.witness(X, y))
    assert one.lam_ == two.lam_
    assert one.tau_ == two.tau_


@pytest.mark.parametrize("d", [10, 60, 120])
def test_with_at_most_two_columns_for_each_row_it_is_small(d):
    X, y = repeated(60, 150)
    X = X[:, :d]
    found = ConvexSIC().fit(X, y)
    assert found.tau_ == SMALL
    assert_same(found, ConvexSIC(tau=SMALL).fit(X, y), X, y)


def test_where_columns_repeat_each_other_it_is_their_number():
    X, y = repeated()
    found = ConvexSIC().fit(X, y)
    assert found.tau_ == 150.0
    assert_same(found, ConvexSIC(tau=150.0, lam=found.lam_).fit(X, y), X, y)
    small = ConvexSIC(tau=SMALL).fit(X, y)
    assert found.lam_ == small.lam_
    np.testing.assert_array_equal(found.lam_risks_, small.lam_risks_)
    first, theirs = (np.argsort(-each.feature_importances_)[:20] for each in (found, small))
    assert np.mean(first < 40) > np.mean(theirs < 40)


def test_where_few_columns_act_together_it_stays_small():
    X, y = few()
    found = ConvexSIC().fit(X, y)
    assert_same(found, ConvexSIC(tau=SMALL).fit(X, y), X, y)


def test_a_large_one_leaves_no_column_out(monkeypatch):
    """Where candidates would be fitted first, and one that is sparse is fitted to them alone."""
    monkeypatch.setattr("sobolev.convex.training.WIDE", 100)
    monkeypatch.setattr("sobolev.convex.training.KEPT", 60)
    X, y = repeated()
    found = ConvexSIC(lam=0.03).fit(X, y)
    assert found.tau_ == 150.0
    assert found.screening_ is None
    assert_same(found, ConvexSIC(lam=0.03, tau=150.0, solver=ALL_COLUMNS).fit(X, y), X, y)
    X, y = few()
    found = ConvexSIC(lam=0.03).fit(X, y)
    assert found.screening_ is not None
    assert_same(found, ConvexSIC(lam=0.03, tau=SMALL).fit(X, y), X, y)


def test_a_number_is_taken_as_it_is():
    X, y = repeated()
    assert ConvexSIC(tau=0.5).fit(X, y).tau_ == 0.5
    assert ConvexSIC(tau=0.5).for_testing().tau == 0.5


def test_units_order_and_constant_columns_do_not_matter():
    X, y = repeated(50, 101)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(50), rng.permutation(101)
    other = 3 + X[np.ix_(rows, columns)] * rng.uniform(0.1, 10, 101)
    one, two = ConvexSIC(lam=0.03).fit(X, y), ConvexSIC(lam=0.03).fit(other, y[rows])
    assert one.tau_ == two.tau_ == 101.0
    np.testing.assert_allclose(
        two.feature_importances_, one.feature_importances_[columns], rtol=1e-6, atol=1e-9
    )
    X[:, 100] = 7.0
    with pytest.warns(UserWarning, match="constant"):
        assert ConvexSIC(lam=0.03).fit(X, y).tau_ == SMALL


@pytest.mark.parametrize(
    "parameters",
    [
        {"adjust": [0]},
        {"feature_map": "best"},
        {"feature_map": "fourier"},
        {"solver": Alternating(screen=140)},
    ],
)
def test_where_it_is_not_chosen_it_is_small(parameters):
    X, y = repeated()
    assert ConvexSIC(lam=0.03, random_state=0, **parameters).fit(X, y).tau_ == SMALL


def test_tests_and_paths_keep_the_small_one():
    X, y = repeated()
    assert ConvexSIC().for_testing().tau == SMALL
    found, small = (sic_path(X, y, [0.1, 0.03], tau=tau) for tau in ("auto", SMALL))
    np.testing.assert_array_equal(found.importances, small.importances)
    np.testing.assert_array_equal(found.risks, small.risks)


def test_rows_in_chunks():
    """A few rows are put together and fitted in memory; sums of moments have the small tau."""
    X, y = repeated()
    whole = ConvexSIC(lam=0.03).fit(X, y)
    chunks = [(X[:20], y[:20]), (X[20:], y[20:])]
    assert_same(fit_stream(ConvexSIC(lam=0.03), chunks), whole, X, y)
    assert partial_fit(ConvexSIC(lam=0.03, random_state=0), X, y).tau_ == SMALL


def test_a_saved_critic_keeps_what_was_chosen(tmp_path):
    X, y = repeated()
    found = ConvexSIC(lam=0.03).fit(X, y)
    loaded = load(save(found, tmp_path / "model.npz"))
    assert loaded.tau == "auto"
    assert loaded.tau_ == 150.0
    assert_same(loaded, found, X, y)
    columns = np.array([0, 3])
    np.testing.assert_array_equal(
        loaded.predict_without(columns, X, y, X), found.predict_without(columns, X, y, X)
    )


def test_refits_without_columns_keep_what_was_chosen():
    X, y = repeated()
    columns = np.array([0, 3])
    found = ConvexSIC(lam=0.03).fit(X, y)
    given = ConvexSIC(lam=0.03, tau=150.0).fit(X, y)
    np.testing.assert_array_equal(
        found.predict_without(columns, X, y, X), given.predict_without(columns, X, y, X)
    )


@pytest.mark.parametrize("tau", ["best", "AUTO"])
def test_other_words_are_refused(tau):
    with pytest.raises(ValueError, match=r'tau=.* is unknown; use "auto"'):
        ConvexSIC(tau=tau).fit(*repeated())


def test_the_squared_correlation_is_twice_the_risk_of_the_best_multiple():
    rng = np.random.default_rng(0)
    psi, p = rng.standard_normal((30, 2)), rng.dirichlet(np.ones(30))
    h = 0.2 * psi + rng.standard_normal((30, 2))
    risks = [p @ row_risk(c * h, psi, 1.0) for c in np.linspace(0, 1, 100_001)]
    assert squared_correlation(h, psi, p) == pytest.approx(2 * max(risks), rel=1e-6)
    assert squared_correlation(1e-3 * h, psi, p) == pytest.approx(squared_correlation(h, psi, p))
    assert squared_correlation(-psi, psi, p) == 0.0
    assert squared_correlation(0 * psi, psi, p) == 0.0


def test_two_standard_errors_are_clear():
    gains = np.array([1.0, -1.0, 1.0, -1.0])  # their standard error is 0.577
    assert is_clear(gains + 1.2)
    assert not is_clear(gains + 1.1)
    assert not is_clear(-gains - 1.2)
    assert is_clear(np.array([0.0]))  # nothing to compare
