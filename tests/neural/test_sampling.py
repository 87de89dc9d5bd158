"""Minibatches: whose rows, how often, with which weights, from which stream.

Statistical bounds are quantiles at 1e-6: a correct program with another seed would fail one test
in a million. Seeds are fixed, so it passes always or never.
"""

import numpy as np
import pytest
import torch
from scipy.stats import binom, chi2

from sobolev.neural import sampling
from sobolev.neural.arrays import to_numpy
from sobolev.neural.sampling import Rows, Sampler

RARE = 1e-6
DROPOUTS = [(True, 3, 0.25), (False, 5, 0.0), (False, 2, 0.5)]
FIELDS = ("rows", "permuted", "weights", "roots")


def sampler(members, sizes, seeds=None, dropouts=(), n_copies=2, device=None):
    seeds = range(len(members)) if seeds is None else seeds
    rngs = [np.random.default_rng(seed) for seed in seeds]
    return Sampler(members, sizes, rngs, list(dropouts), n_copies, device)


def weighted(n, seed=0):
    return Rows(np.arange(10, 10 + n), np.random.default_rng(seed).dirichlet(2 * np.ones(n)))


def assert_frequencies(drawn, rows):
    """Chi-square of the positions drawn against the probabilities of the rows."""
    p = np.full(rows.index.size, 1 / rows.index.size) if rows.p is None else rows.p
    counts = np.array([(drawn == i).sum() for i in rows.index])
    assert counts.sum() == drawn.size
    expected = drawn.size * p
    assert expected.min() > 5
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(RARE, p.size - 1)


def assert_same_batches(one, other):
    for first, second in zip(one, other, strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        for keep, same in zip(first.keeps, second.keeps, strict=True):
            assert (keep is None) == (same is None)
            if keep is not None:
                np.testing.assert_array_equal(keep.kept, same.kept)
                assert keep.factor == same.factor


def test_rows_of_a_member_are_its_own():
    members = [Rows(np.array([3, 5, 7, 11, 13])), weighted(6), Rows(np.arange(50, 70))]
    drawing = sampler(members, [3, 4, 8])
    for batch in drawing.batches(40):
        for e, (member, size) in enumerate(zip(members, drawing.sizes, strict=True)):
            assert np.isin(batch.rows[e, :size], member.index).all()
            assert np.isin(batch.permuted[e, :size], member.index).all()


@pytest.mark.parametrize("size", [1, 4, 5, 12])
def test_every_row_comes_once_in_an_epoch(size):
    index = np.arange(5, 17)
    batches = list(sampler([Rows(index)], [size]).batches(5 * 12))
    for name in ("rows", "permuted"):
        stream = np.concatenate([getattr(b, name)[0] for b in batches])
        epochs = stream.reshape(-1, 12)
        assert len(epochs) == 5 * size
        np.testing.assert_array_equal(np.sort(epochs, axis=1), np.tile(index, (len(epochs), 1)))
    if size == 12:
        assert len({tuple(b.rows[0]) for b in batches}) > 50  # shuffled anew


def test_permuted_responses_are_independent_of_the_rows():
    n, batches = 8, list(sampler([Rows(np.arange(8))], [4]).batches(1200))
    rows, permuted = (np.concatenate([getattr(b, f)[0] for b in batches]) for f in FIELDS[:2])
    # Within epochs draws are without replacement: cells vary less than those of a multinomial.
    table = np.zeros((n, n))
    np.add.at(table, (rows, permuted), 1)
    expected = rows.size / n**2
    assert ((table - expected) ** 2 / expected).sum() < chi2.isf(RARE, (n - 1) ** 2)


@pytest.mark.parametrize("n", [4, 9])
def test_weighted_draws_have_the_frequencies_of_the_weights(n):
    member = weighted(n, seed=3)
    batches = list(sampler([member], [n - 1]).batches(4000))
    for name in ("rows", "permuted"):
        assert_frequencies(np.concatenate([getattr(b, name)[0] for b in batches]), member)


def test_draws_take_weights_of_any_sum():
    member = weighted(6)
    scaled = Rows(member.index, 7 * member.p)
    assert_same_batches(sampler([member], [3]).batches(20), sampler([scaled], [3]).batches(20))


def test_a_row_of_almost_all_the_weight_is_almost_always_drawn():
    member = Rows(np.array([4, 9]), np.array([1 - 1e-12, 1e-12]))
    drawn = np.concatenate([b.rows[0] for b in sampler([member], [1]).batches(500)])
    assert (drawn == 4).all()


@pytest.mark.parametrize("block", [1, 3, 1000])
@pytest.mark.parametrize("n_bytes", [1, 2**25])
def test_streams_do_not_depend_on_the_length_of_a_block(monkeypatch, block, n_bytes):
    members = [Rows(np.arange(9)), weighted(7), weighted(4)]

    def draw():
        return list(sampler(members, [4, 4, 4], dropouts=DROPOUTS).batches(23))

    expected = draw()
    monkeypatch.setattr(sampling, "BLOCK", block)
    monkeypatch.setattr(sampling, "BLOCK_BYTES", n_bytes)
    assert_same_batches(draw(), expected)


def test_streams_go_on_where_they_stopped():
    whole = list(sampler([Rows(np.arange(9))], [4], dropouts=DROPOUTS).batches(20))
    parts = sampler([Rows(np.arange(9))], [4], dropouts=DROPOUTS)
    assert_same_batches([*parts.batches(7), *parts.batches(13)], whole)


def check_independence(sizes):
    members = [Rows(np.arange(9)), weighted(8), Rows(np.arange(20, 31))]
    together = list(sampler(members, sizes, dropouts=DROPOUTS).batches(20))
    for e, (member, size) in enumerate(zip(members, sizes, strict=True)):
        alone = sampler([member], [size], seeds=[e], dropouts=DROPOUTS).batches(20)
        for one, all_ in zip(alone, together, strict=True):
            for name in FIELDS:
                mine, theirs = getattr(one, name), getattr(all_, name)
                np.testing.assert_array_equal(mine[0], theirs[e, :size])
            for mine, theirs in zip(one.keeps, all_.keeps, strict=True):
                if mine is not None:
                    np.testing.assert_array_equal(mine.kept[0], theirs.kept[e, :, :size])


def test_what_a_member_sees_does_not_depend_on_the_others():
    check_independence([5, 5, 5])


def test_what_a_member_sees_does_not_depend_on_the_batch_sizes_of_others():
    check_independence([5, 3, 7])


def test_members_of_different_seeds_see_different_batches():
    members = [Rows(np.arange(30))] * 2
    for batch in sampler(members, [10, 10], dropouts=DROPOUTS).batches(5):
        assert (batch.rows[0] != batch.rows[1]).any()
        assert (batch.keeps[0].kept[0] != batch.keeps[0].kept[1]).any()


def test_a_batch_larger_than_the_rows_of_a_member_takes_them_all():
    members = [Rows(np.arange(4, 10)), Rows(np.arange(20))]
    drawing = sampler(members, [50, 9])
    assert drawing.n == 9
    for batch in drawing.batches(10):
        np.testing.assert_array_equal(np.sort(batch.rows[0, :6]), np.arange(4, 10))
        np.testing.assert_allclose(batch.weights[0], [1 / 6] * 6 + [0] * 3, rtol=1e-6)
        np.testing.assert_allclose(batch.weights[1], 1 / 9, rtol=1e-6)


def test_weights_sum_to_one_and_roots_are_their_roots():
    for batch in sampler([weighted(6), Rows(np.arange(20)), weighted(5)], [50, 9, 3]).batches(3):
        np.testing.assert_allclose(batch.weights.sum(1), 1, rtol=1e-6)
        np.testing.assert_allclose(batch.roots**2, batch.weights, rtol=1e-6)


def test_a_whole_weighted_batch_carries_the_weights_of_its_rows():
    member = weighted(6, seed=1)
    batches = list(sampler([member], [100]).batches(3000))
    for batch in batches:
        order = np.searchsorted(member.index, batch.rows[0])
        np.testing.assert_array_equal(np.sort(order), np.arange(6))
        np.testing.assert_allclose(batch.weights[0], member.p[order], rtol=1e-6)
    # The responses of the product are still drawn.
    assert_frequencies(np.concatenate([b.permuted[0] for b in batches]), member)


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_masks_have_the_rate_to_the_next_256th_and_mean_one(rate):
    dropped = round(256 * rate) / 256
    assert abs(dropped - rate) <= 1 / 512
    batches = sampler([Rows(np.arange(20))], [10], dropouts=[(True, 30, rate)]).batches(100)
    keeps = [batch.keeps[0] for batch in batches]
    kept = np.concatenate([keep.kept.ravel() for keep in keeps])
    low, high = binom.isf([1 - RARE / 2, RARE / 2], kept.size, 1 - dropped)
    assert low <= kept.sum() <= high
    assert all(keep.factor == pytest.approx(1 / (1 - dropped), rel=1e-12) for keep in keeps)


def test_masks_have_the_shape_of_what_they_mask_and_none_is_made_for_rate_zero():
    members = [Rows(np.arange(20))] * 3
    (batch,) = sampler(members, [5, 4, 3], dropouts=DROPOUTS).batches(1)
    assert [None if k is None else k.kept.shape for k in batch.keeps] == [
        (3, 2, 5, 3),
        None,
        (3, 1, 5, 2),
    ]


def test_masks_of_copies_layers_and_updates_are_independent():
    dropouts = [(True, 16, 0.5), (True, 16, 0.5)]
    batches = list(sampler([Rows(np.arange(50))], [50], dropouts=dropouts).batches(20))
    kept = np.stack([[k.kept[0] for k in b.keeps] for b in batches])  # update, layer, copy, ...
    for one, other in [
        (kept[:, :, 0], kept[:, :, 1]),
        (kept[:, 0], kept[:, 1]),
        (kept[:-1], kept[1:]),
    ]:
        equal = one == other
        low, high = binom.isf([1 - RARE / 2, RARE / 2], equal.size, 0.5)
        assert low <= equal.sum() <= high


def test_a_rate_next_to_one_keeps_something():
    (batch,) = sampler([Rows(np.arange(20))], [10], dropouts=[(True, 30, 0.999)]).batches(1)
    assert np.isfinite(batch.keeps[0].factor)


def test_tensors_hold_the_same_batches_as_arrays():
    members = [Rows(np.arange(9)), weighted(8)]
    arrays = sampler(members, [4, 3], dropouts=DROPOUTS).batches(5)
    tensors = sampler(members, [4, 3], dropouts=DROPOUTS, device=torch.device("cpu")).batches(5)
    for one, other in zip(arrays, tensors, strict=True):
        assert all(isinstance(getattr(other, name), torch.Tensor) for name in FIELDS)
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(one, name), to_numpy(getattr(other, name)))
        for keep, same in zip(one.keeps, other.keeps, strict=True):
            if keep is not None:
                np.testing.assert_array_equal(keep.kept, to_numpy(same.kept))


def test_global_generators_are_left_alone(global_states):
    before = global_states()
    list(sampler([Rows(np.arange(9)), weighted(8)], [4, 3], dropouts=DROPOUTS).batches(5))
    assert global_states() == before
