"""P-values of several orders of the rows become one."""

import numpy as np
import pytest
from scipy.stats import cauchy, norm

from sobolev.inference.orders import EXCESS, LARGEST, merged_pvalues

NAN = np.nan


def factor(n_orders):
    return 1 + EXCESS * np.log(n_orders)


def test_one_order_is_left_alone():
    given = np.array([[0.1, NAN, 1e-300, 1.0]])
    np.testing.assert_array_equal(merged_pvalues(given), given[0])


def test_equal_orders_change_the_factor_only():
    given = np.array([0.3, 0.01, 1e-200])
    np.testing.assert_allclose(merged_pvalues(np.stack([given] * 3)), factor(3) * given)


def test_a_tail_of_the_cauchy_distribution():
    given = np.array([[0.02, 0.3], [0.5, 0.04]])
    expected = cauchy.sf(cauchy.isf(given).mean(axis=0))
    np.testing.assert_allclose(merged_pvalues(given), factor(2) * expected)


def test_an_order_without_the_unit_counts_as_one():
    given = np.array([[0.01, 0.2], [NAN, 0.2], [0.01, 0.2]])
    expected = cauchy.sf(cauchy.isf([0.01, LARGEST, 0.01]).mean())
    np.testing.assert_allclose(merged_pvalues(given)[0], factor(3) * expected)
    assert np.isnan(merged_pvalues(np.full((2, 3), NAN))).all()


def test_the_ends_are_finite():
    np.testing.assert_allclose(
        merged_pvalues(np.array([[0.0, 1.0], [0.0, 1.0]])), [0.0, factor(2) * LARGEST], atol=1e-290
    )
    assert merged_pvalues(np.array([[1e-200], [0.5]]))[0] < 1e-199


@pytest.mark.parametrize("n_orders", [2, 3, 5, 10])
@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 1.0])
def test_level_of_normal_scores(n_orders, correlation):
    """200,000 merged p-values; four standard errors are exceeded by chance once in 30,000."""
    rng = np.random.default_rng(0)
    shared, own = rng.standard_normal(200_000), rng.standard_normal((n_orders, 200_000))
    scores = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    merged = merged_pvalues(norm.sf(scores))
    for level in (0.5, 0.2, 0.05, 0.01, 0.001):
        limit = level + 4 * np.sqrt(level * (1 - level) / merged.size)
        assert (merged <= level).mean() <= limit


@pytest.mark.parametrize("n_orders", [3, 5])
@pytest.mark.parametrize("n_tested", [5, 20, 38])
def test_columns_that_the_first_rows_of_each_order_favour(n_tested, n_orders):
    """Null columns, tested with the sign that the first rows of an order show.

    Each order tests those of the largest sums, so at most ``n_tested * t`` p-values of at most t
    are expected; four standard errors are exceeded by chance once in 30,000.
    """
    rng = np.random.default_rng(n_tested)
    n, n_train, m, repetitions = 40, 12, 60, 400
    levels = np.array([0.1, 0.05, 0.01])
    counts = []
    for _ in range(repetitions):
        rows = rng.standard_normal((n, m))
        pvalues = np.full((n_orders, m), NAN)
        for own in pvalues:
            order = rng.permutation(n)
            first = rows[order[:n_train]].sum(axis=0)
            tested = np.argsort(-np.abs(first))[:n_tested]
            score = np.sign(first) * rows[order[n_train:]].sum(axis=0) / np.sqrt(n - n_train)
            own[tested] = norm.sf(score[tested])
        merged = merged_pvalues(pvalues)
        counts.append([np.nansum(merged <= level) for level in levels])
    found, error = np.mean(counts, axis=0), np.std(counts, axis=0) / np.sqrt(repetitions)
    assert (found <= n_tested * levels + 4 * error).all()
    assert (found >= 0.5 * n_tested * levels - 4 * error).all()  # and not far below
