"""Q-values by their definition: the smallest level at which a step-up procedure rejects."""

import numpy as np
import pytest

from sobolev.inference.multiple_testing import null_share, qvalues, smallest_qvalue

NAN = np.nan


def by_definition(p, factor=1.0):
    """The least m p_(k) / k over the ranks k that include the hypothesis, at most one."""
    p = np.asarray(p)
    return [
        min(1.0, min(factor * p.size * bound / np.sum(p <= bound) for bound in p[p >= own]))
        for own in p
    ]


@pytest.mark.parametrize("seed", range(3))
def test_every_procedure_follows_its_definition(seed):
    p = np.random.default_rng(seed).uniform(size=9) ** 2
    harmonic = np.sum(1 / np.arange(1, 10))
    np.testing.assert_allclose(qvalues(p), by_definition(p))
    np.testing.assert_allclose(qvalues(p, "by"), by_definition(p, harmonic))
    share = min(1.0, (1 + np.sum(p > 0.5)) / 4.5)
    np.testing.assert_allclose(qvalues(p, "storey"), np.multiply(share, by_definition(p)))


def test_planned_tests_count_as_pvalues_of_one():
    p = np.array([0.01, 0.02, 0.5])
    more = np.append(p, np.ones(4))
    for procedure in ("bh", "by", "storey"):
        expected = qvalues(more, procedure)[:3]
        np.testing.assert_allclose(qvalues(p, procedure, n_tests=7), expected)
        for same in (None, 0, 3):
            np.testing.assert_array_equal(qvalues(p, procedure, same), qvalues(p, procedure))


def test_fewer_tests_than_pvalues_are_counted_where_each_order_makes_a_part():
    p = np.array([0.01, 0.3, 0.6, 0.95])
    np.testing.assert_allclose(qvalues(p, n_tests=2), [0.02, 0.3, 0.6, 0.95])
    for procedure in ("bh", "by", "storey"):
        expected = np.maximum(qvalues(p, procedure) * 3 / 4, p)
        np.testing.assert_allclose(qvalues(p, procedure, n_tests=3), expected)


def test_columns_that_were_not_tested_have_no_qvalue():
    np.testing.assert_allclose(qvalues(np.array([NAN, 0.02, NAN, 0.01])), [NAN, 0.02, NAN, 0.02])
    np.testing.assert_array_equal(qvalues(np.full(3, NAN), n_tests=5), np.full(3, NAN))


def test_both_ends_are_pvalues_and_nothing_beyond():
    np.testing.assert_array_equal(qvalues(np.array([0.0, 1.0])), [0.0, 1.0])
    for wrong in (-0.1, 1.1, np.inf, -np.inf):
        with pytest.raises(ValueError, match="must lie in"):
            qvalues(np.array([0.5, wrong, NAN]))
    with pytest.raises(ValueError, match="procedure"):
        qvalues(np.array([0.5]), "none")


def test_storey_by_hand():
    p = np.array([0.001, 0.002, 0.1, 0.5, 0.9])
    assert null_share(p) == pytest.approx(2 / 2.5)  # 0.5 is not above 0.5
    assert null_share(p, level=0.05) == pytest.approx(4 / 4.75)
    assert null_share(np.array([0.6, 0.7])) == 1.0
    np.testing.assert_allclose(qvalues(p, "storey")[:2], 0.8 * 0.005)


def test_the_smallest_qvalue_is_that_among_pvalues_of_one():
    assert smallest_qvalue(0.01, 1, "bh") == pytest.approx(0.01)
    assert smallest_qvalue(0.01, 4, "bh") == pytest.approx(0.04)
    assert smallest_qvalue(0.01, 4, "by") == pytest.approx(0.04 * (1 + 1 / 2 + 1 / 3 + 1 / 4))
