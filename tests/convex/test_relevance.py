"""All relevant columns: redundant ones come before noise."""

import numpy as np
import pytest

from sobolev import ConvexSIC


def factor(seed=0, n=300, d=60, copies=20):
    """Noisy versions of a hidden factor, which the response follows, and noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    hidden = rng.standard_normal(n)
    X[:, :copies] = hidden[:, None] + 0.5 * rng.standard_normal((n, copies))
    return X, np.sin(2 * hidden) + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("settings", [{"lam": 0.03}, {"lam": 0.1, "tau": 1.0}])
def test_noisy_versions_of_a_factor_come_before_noise(settings):
    X, y = factor()
    sic = ConvexSIC(random_state=0, **settings).fit(X, y)
    found = sic.relevance(X)
    assert found.shape == (60,)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    assert set(np.argsort(-found)[:20]) == set(range(20))
    assert set(np.argsort(-sic.feature_importances_)[:20]) != set(range(20))  # one is enough


def test_a_copy_is_as_relevant_as_its_column_and_a_constant_is_not():
    X, y = factor(d=8, copies=1)
    X = np.column_stack([X, X[:, 0], np.full(len(X), 3.0)])
    sic = ConvexSIC(lam=0.1, tau=1.0).fit(X, y)
    found = sic.relevance(X)
    assert found[8] == pytest.approx(found[0])
    assert found[9] == 0.0
    assert found[[0, 8]].sum() > 0.6


def test_units_of_columns_do_not_matter():
    X, y = factor(d=10, copies=3)
    sic = ConvexSIC(lam=0.1, tau=1.0).fit(X, y)
    scales = np.logspace(-3, 3, 10)
    other = ConvexSIC(lam=0.1, tau=1.0).fit(X * scales + 5, y)
    np.testing.assert_allclose(other.relevance(X * scales + 5), sic.relevance(X), rtol=1e-5)


def test_columns_that_were_screened_out_have_their_relevance():
    """Of many columns the fit takes candidates; the others may repeat them."""
    from sobolev.convex import Alternating

    X, y = factor(n=200, d=40, copies=12)
    sic = ConvexSIC(lam=0.1, tau=1.0, solver=Alternating(screen=5)).fit(X, y)
    assert sic.screening_.columns.size < 40
    assert set(np.argsort(-sic.relevance(X))[:12]) == set(range(12))


def test_no_importance_no_relevance():
    X = np.random.default_rng(0).standard_normal((50, 4))
    sic = ConvexSIC(lam=0.1).fit(X, X[:, 0])
    sic.feature_importances_ = np.zeros(4)
    np.testing.assert_array_equal(sic.relevance(X), 0.0)
    with pytest.raises(ValueError, match="4 features"):
        sic.relevance(X[:, :3])
