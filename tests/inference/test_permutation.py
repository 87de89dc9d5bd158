import numpy as np
import pytest

from sobolev.inference.permutation import permutation_pvalue, permutations


def test_each_row_is_a_permutation():
    order = permutations(10, 50, np.random.default_rng(0))
    assert order.shape == (50, 10)
    np.testing.assert_array_equal(np.sort(order, axis=1), np.tile(np.arange(10), (50, 1)))


def test_rows_stay_in_their_block():
    blocks = np.array(["b", "a", "b", "a", "c", "b"])
    order = permutations(6, 100, np.random.default_rng(0), blocks)
    assert (blocks[order] == blocks).all()
    assert len({tuple(row) for row in order}) > 5


def test_permutations_are_uniform():
    order = permutations(3, 6000, np.random.default_rng(1))
    _, counts = np.unique(order, axis=0, return_counts=True)
    assert counts.size == 6
    # Chi-square with 5 degrees of freedom: a correct program exceeds 25.7 once in 10,000 seeds.
    assert np.sum((counts - 1000) ** 2 / 1000) < 25.7


@pytest.mark.parametrize(
    ("observed", "null", "expected"),
    [(5.0, [1, 2, 3], 0.25), (0.0, [1, 2, 3], 1.0), (2.0, [1, 2, 3], 0.75)],
)
def test_pvalue_counts_the_observed_value_and_ties(observed, null, expected):
    assert permutation_pvalue(observed, np.array(null, float)) == expected


def test_pvalue_counts_ties_within_rounding():
    assert permutation_pvalue(1.0, np.array([1.0 - 1e-14])) == 1.0
