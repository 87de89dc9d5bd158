"""The saddlepoint tail: exact cases, Monte Carlo, edges."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from sobolev.inference.null_distribution import NullTable
from sobolev.inference.saddlepoint import saddlepoint_pvalue


def table(n=80, B=40, seed=0, scale=0.5):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, B)) * np.exp(scale * rng.standard_normal((n, 1)))
    return values, rng.dirichlet(np.ones(B), size=n)


@pytest.mark.parametrize("seed", range(4))
def test_saddlepoint_agrees_with_look_ups(seed):
    values, weights = table(seed=seed)
    drawn = NullTable(values, weights, np.zeros(80)).draw(200_000, seed)
    for level in (0.5, 0.1, 0.01, 1e-3):
        s = np.quantile(drawn, 1 - level)
        expected = np.mean(drawn >= s)
        error = np.sqrt(expected * (1 - expected) / drawn.size)
        found = saddlepoint_pvalue(values, weights, s)
        # Four standard errors (16 checks: once in 1,000 runs) and the formula's own 1 %.
        assert abs(found - expected) < 4 * error + 0.01 * expected


def test_normal_rows_have_the_normal_tail():
    nodes = norm.ppf((np.arange(2000) + 0.5) / 2000)
    values, weights = np.tile(nodes, (5, 1)), np.full((5, 2000), 1 / 2000)
    sd = np.sqrt(5 * np.mean(nodes**2))
    for z in (-2.0, 0.0, 1.0, 3.0):  # the grid has no tails beyond 3.5 standard deviations
        found = saddlepoint_pvalue(values, weights, z * sd)
        assert found == pytest.approx(norm.sf(z), rel=0.02)


def test_a_binomial_tail_far_out():
    values, weights = np.tile([0.0, 1.0], (200, 1)), np.tile([0.9, 0.1], (200, 1))
    for k in (40, 60, 80):
        exact = binom.sf(k - 1, 200, 0.1)
        found = saddlepoint_pvalue(values, weights, float(k))
        assert 0.3 < found / exact < 1.5  # without a continuity correction it lies below


def test_monotone_and_never_zero_to_the_end():
    values, weights = table()
    top = values.max(axis=1).sum()
    points = np.linspace(values.min(axis=1).sum() - 1, 1.01 * top, 400)
    found = np.array([saddlepoint_pvalue(values, weights, s) for s in points])
    assert (np.diff(found) <= 1e-12).all()
    assert found[0] == 1.0
    assert 0 < found[-1] < 1e-12


def test_edges():
    flat, weights = np.ones((4, 3)), np.full((4, 3), 1 / 3)
    assert saddlepoint_pvalue(flat, weights, 4.0) == 1.0
    assert 0 < saddlepoint_pvalue(flat, weights, 5.0) < 1e-100
    one = np.vstack([flat, [[0.0, 1.0, 2.0]]])
    third = np.full((5, 3), 1 / 3)
    assert saddlepoint_pvalue(one, third, 6.0) == pytest.approx(1 / 3)
    impossible = np.array([[0.0, 1.0, 99.0]] * 30)
    zero = np.tile([0.5, 0.5, 0.0], (30, 1))
    assert saddlepoint_pvalue(impossible, zero, 30.0) == pytest.approx(0.5**30)


def test_scale_and_shift_of_the_statistic_do_not_matter():
    values, weights = table()
    first = saddlepoint_pvalue(values, weights, 20.0)
    moved = saddlepoint_pvalue(1e6 * values + 3, weights, 1e6 * 20.0 + 3 * 80)
    assert moved == pytest.approx(first, rel=1e-6)


def test_monte_carlo_counts_the_observed_one():
    values, weights = table(n=10)
    found = NullTable(values, weights, np.full(10, 1e6)).montecarlo(99, 0)
    assert found == pytest.approx(0.01)
    assert NullTable(values, weights, np.full(10, -1e6)).montecarlo(99, 0) == 1.0


def test_look_ups_follow_the_weights():
    values = np.array([[0.0, 1.0], [0.0, 10.0]])
    weights = np.array([[0.25, 0.75], [1.0, 0.0]])
    drawn = NullTable(values, weights, np.zeros(2)).draw(40_000, 0)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    assert drawn.mean() == pytest.approx(0.75, abs=0.015)  # seven standard errors


def test_moments_of_the_null():
    values, weights = table()
    null = NullTable(values, weights, np.zeros(80))
    drawn = null.draw(200_000, 1) / 80
    assert null.mean == pytest.approx(drawn.mean(), abs=6 * null.deviation / np.sqrt(200_000))
    assert null.deviation == pytest.approx(drawn.std(), rel=0.02)


def test_moments_by_hand():
    values = np.array([[0.0, 1.0], [2.0, 6.0]])
    weights = np.array([[0.25, 0.75], [0.5, 0.5]])
    null = NullTable(values, weights, np.array([1.0, 6.0]))
    np.testing.assert_allclose(null.centres, [0.75, 4.0])
    assert (null.statistic, null.mean) == (3.5, 2.375)
    assert null.deviation == pytest.approx(np.sqrt(3 / 16 + 4) / 2)


def test_row_weights_multiply_the_statistic_and_have_mean_one():
    values, weights = table(n=3, B=4)
    found = NullTable(values, weights, np.arange(3.0)).weighted(np.array([2.0, 4.0, 6.0]))
    each = np.array([0.5, 1.0, 1.5])
    np.testing.assert_allclose(found.values, each[:, None] * values)
    np.testing.assert_allclose(found.observed, each * np.arange(3.0))
    np.testing.assert_array_equal(found.weights, weights)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e5])
def test_a_statistic_that_no_row_changes_is_flat(size):
    """Rows may differ from each other; what counts is the range of a row, next to the values."""
    rows = size * np.array([[1.0], [-3.0], [2.0]])
    weights = np.full((3, 4), 0.25)
    wave = np.array([0.0, 1.0, -1.0, 0.5])
    for ripple, flat in ((0.0, True), (1e-6, True), (2e-6, False)):
        null = NullTable(rows + size * ripple * wave, weights, rows[:, 0])
        assert null.is_flat == flat
        if flat:
            assert null.saddlepoint() == null.montecarlo(9, 0) == 1.0
    assert NullTable(np.zeros((3, 4)), weights, np.zeros(3)).is_flat


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_ties_with_the_observed_sum_count(scale):
    """All draws of the sum are 0.3 up to rounding, in whatever order it was added up."""
    values = scale * np.array([[0.1, 0.2], [0.2, 0.1]])
    weights = np.array([[1.0, 0.0], [1.0, 0.0]])
    null = NullTable(values, weights, scale * np.array([0.3, 1e-13]))
    assert null.montecarlo(19, 0) == 1.0
    above = NullTable(values, weights, scale * np.array([0.3, 1e-11]))
    assert above.montecarlo(19, 0) == pytest.approx(0.05)


def test_draws_do_not_depend_on_how_many_are_held_in_memory(monkeypatch):
    values, weights = table(n=7)
    null = NullTable(values, weights, np.zeros(7))
    expected = null.draw(23, 5)
    for chunk in (1, 14, 21):  # fewer than one round, two, three
        monkeypatch.setattr("sobolev.inference.null_distribution.CHUNK", chunk)
        np.testing.assert_array_equal(null.draw(23, 5), expected)


def test_draws_follow_weights_of_any_sum():
    values = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    weights = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    drawn = NullTable(values, 1.2 * weights, np.zeros(2)).draw(40_000, 0)
    sums = np.add.outer(values[0], values[1]).ravel()
    shares = np.array([np.mean(drawn == s) for s in sums])
    # Six standard errors.
    np.testing.assert_allclose(shares, np.outer(*weights).ravel(), atol=0.015)
