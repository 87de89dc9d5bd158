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
