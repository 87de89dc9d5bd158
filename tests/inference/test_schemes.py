"""Where blocks begin, and how the p-values of blocks become one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from sobolev.inference.null_distribution import NullTable
from sobolev.inference.schemes import (
    BlockTest,
    Forward,
    Imputed,
    MonteCarlo,
    Robust,
    Saddlepoint,
    Split,
    Studentised,
    block_edges,
    resolve_pvalue,
    resolve_scheme,
)
from sobolev.inference.studentised import rubin_pvalue, studentised_pvalue


def block(pvalue, n=4, deviation=1.0, draws=None):
    rng = np.random.default_rng(n)
    return BlockTest(float(np.log(pvalue)), rng.standard_normal(n) + 0.5, deviation, draws)


# -- blocks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "n", "n_train", "expected"),
    [
        (Split(), 100, None, [50, 100]),
        (Split(0.9), 100, None, [20, 100]),  # at least 20 rows to train on,
        (Split(0.9), 30, None, [15, 30]),  # or half of few
        (Split(0.3), 100, None, [70, 100]),
        (Forward(), 100, None, [30, 44, 58, 72, 86, 100]),
        (Forward(n_blocks=2), 100, 40, [40, 70, 100]),
        (Forward(), 100, 97, [97, 98, 99, 100]),  # no empty block
    ],
)
def test_where_blocks_begin(scheme, n, n_train, expected):
    np.testing.assert_array_equal(block_edges(scheme, n, n_train), expected)


def test_subjects_with_many_rows_need_fewer_of_them():
    assert block_edges(Split(0.9), 30, None, rows_each=3.0)[0] == 7  # 21 rows
    assert block_edges(Split(0.9), 30, None, rows_each=0.5)[0] == 15


# -- p-values of blocks ----------------------------------------------------------------------------


def test_stouffer_weights_blocks_by_the_root_of_their_rows():
    blocks = [block(0.01, 4), block(0.3, 9), block(0.6, 36)]
    score = np.array([2, 3, 6]) @ norm.isf([0.01, 0.3, 0.6]) / 7
    assert Saddlepoint().combined(blocks) == pytest.approx(norm.sf(score))
    assert Saddlepoint().combined([block(0.02)]) == pytest.approx(0.02)


def test_a_block_with_a_pvalue_of_one_leaves_a_finite_score():
    assert Saddlepoint().combined([block(1.0)]) == pytest.approx(1.0)
    found = Saddlepoint().combined([block(1.0), block(1e-200, 100)])
    assert 0 < found < 0.01


def test_the_larger_of_two_pvalues():
    for pvalue in (1e-9, 0.9):
        blocks = [block(pvalue, 4), block(pvalue, 9)]
        each = Saddlepoint().combined(blocks), Studentised().combined(blocks)
        assert Robust().combined(blocks) == max(each)
        assert min(each) < max(each)


@pytest.mark.parametrize("shared", [0.0, 3.0])
def test_imputed_is_the_largest_of_the_mean_over_draws_rubin_and_saddlepoint(shared):
    """Few rows that agree are a matter of signs, draws that do not agree one of Rubin's rules."""
    blocks = []
    for scale in (1.0, 10.0):
        draws = scale * (np.ones((4, 3)) + shared * np.array([[-1.0], [0.0], [0.0], [1.0]]))
        blocks.append(BlockTest(-50.0, draws.mean(axis=0), scale, draws))
    scaled = np.hstack([b.draws / b.deviation for b in blocks])
    rubin, mean = rubin_pvalue(scaled), studentised_pvalue(scaled.mean(axis=0))
    assert Imputed().combined(blocks) == pytest.approx(max(rubin, mean))
    assert (rubin > mean) == (shared > 0)
    without = BlockTest(-50.0, -10 * np.ones(20), 1.0)
    found = Imputed().combined([*blocks, without])
    assert found == pytest.approx(Studentised().combined([*blocks, without]))
    assert found > 0.9  # a block without draws counts in the mean
    doubted = [replace(block, log_pvalue=np.log(0.5)) for block in blocks]
    assert Imputed().combined(doubted) == pytest.approx(0.5)


def test_rubin_by_hand():
    draws = np.array([[1.0, 2.0, 0.5], [0.5, 2.5, 1.0], [1.5, 1.0, 0.0]])
    sums = draws.sum(axis=1)
    within, between = np.mean(np.sum(draws**2, axis=1)), (1 + 1 / 3) * np.var(sums, ddof=1)
    total = within + between
    expected = student.sf(sums.mean() / np.sqrt(total), 2 / (between / total) ** 2)
    assert rubin_pvalue(draws) == pytest.approx(expected)


def test_one_draw_is_a_normal_score():
    d = np.array([1.0, 2.0, -0.5])
    assert rubin_pvalue(d[None]) == pytest.approx(norm.sf(d.sum() / np.sqrt(np.sum(d**2))))


def test_equal_draws_are_one_draw():
    d = np.array([1.0, 2.0, -0.5])
    assert rubin_pvalue(np.tile(d, (4, 1))) == pytest.approx(rubin_pvalue(d[None]))
    assert rubin_pvalue(1e-3 * d[None]) == pytest.approx(rubin_pvalue(d[None]))
    assert rubin_pvalue(np.zeros((3, 4))) == 1.0


# -- parameters ------------------------------------------------------------------------------------


def test_each_method_asks_the_table():
    values, weights = np.tile([0.0, 1.0], (30, 1)), np.full((30, 2), 0.5)
    table = NullTable(values, weights, np.r_[np.ones(20), np.zeros(10)])
    assert Saddlepoint().of_table(table, 0) == table.saddlepoint()
    assert MonteCarlo(n_draws=99).of_table(table, 3) == table.montecarlo(99, 3)
    assert np.isnan(Studentised().of_table(table, 0))
    assert MonteCarlo(n_draws=99).smallest == pytest.approx(0.01)
    assert Saddlepoint().smallest == 0.0


def test_whether_the_whole_distribution_must_be_right():
    methods = Saddlepoint(), MonteCarlo(), Robust(), Studentised(), Imputed()
    assert [m.needs_distribution for m in methods] == [True, True, False, False, False]


def test_names_and_objects_are_resolved():
    assert resolve_scheme("split") == Split(0.5, True)
    assert resolve_scheme("forward") == Forward(0.7, 5, True)
    assert resolve_scheme(Split(0.9)).n_blocks == 1
    assert resolve_pvalue("montecarlo") == MonteCarlo(1000)
    assert resolve_pvalue(MonteCarlo(1)).smallest == 0.5


@pytest.mark.parametrize(
    ("resolve", "wrong", "error", "match"),
    [
        (resolve_scheme, "blocks", ValueError, "scheme"),
        (resolve_scheme, 3, TypeError, "scheme must be"),
        (resolve_scheme, Split(0.0), ValueError, "test_size"),
        (resolve_scheme, Split(0.91), ValueError, "test_size"),
        (resolve_scheme, Forward(n_blocks=0), ValueError, "n_blocks"),
        (resolve_pvalue, "exact", ValueError, "pvalue"),
        (resolve_pvalue, 3, TypeError, "pvalue must be"),
        (resolve_pvalue, MonteCarlo(0), ValueError, "n_draws"),
    ],
)
def test_wrong_parameters_are_named(resolve, wrong, error, match):
    with pytest.raises(error, match=match):
        resolve(wrong)
