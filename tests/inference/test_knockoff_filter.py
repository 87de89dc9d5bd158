"""The knockoff filter against its definition, written out with loops, and its promises, exactly."""

import warnings
from itertools import product

import numpy as np
import pytest

from sobolev.inference.knockoff_filter import (
    ebh,
    ebh_qvalues,
    knockoff_evalues,
    knockoff_qvalues,
    knockoff_threshold,
)

LEVELS = [0.01, 0.05, 0.1, 1 / 6, 0.2, 0.25, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.9, 0.999]


def naive_threshold(W, fdr, offset):
    for t in sorted(abs(w) for w in W if w != 0):
        above = sum(w >= t for w in W)
        if above and (offset + sum(w <= -t for w in W)) / above <= fdr:
            return t
    return np.inf


def naive_ebh(e, fdr):
    """Levels that are no multiples of the ratios in question, so that rounding plays no part."""
    best = max((k for k in range(1, len(e) + 1) if sorted(e)[-k] >= len(e) / (k * fdr)), default=0)
    return np.array([bool(best) and value >= len(e) / (best * fdr) for value in e], dtype=bool)


def random_statistics(seed):
    """Few or many columns, ties and zeros or none, mostly signal or none."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 40))
    W = rng.standard_normal(p) + rng.choice([-3.0, 0.0, 1.0, 3.0])
    return np.round(W * rng.choice([1.0, 2.0])) if rng.random() < 0.6 else W


@pytest.mark.parametrize("offset", [0, 1])
def test_threshold_and_qvalues_follow_the_definition(offset):
    finite = infinite = 0
    for seed in range(200):
        W = random_statistics(seed)
        q = knockoff_qvalues(W, offset)
        assert (q[W <= 0] == 1).all()
        assert (np.diff(q[np.argsort(W)]) <= 0).all()
        for fdr in LEVELS:
            T = knockoff_threshold(W, fdr, offset)
            assert naive_threshold(W, fdr, offset) == T
            np.testing.assert_array_equal(q <= fdr, W >= T)
            finite, infinite = finite + np.isfinite(T), infinite + np.isinf(T)
    assert min(finite, infinite) > 300


@pytest.mark.parametrize("offset", [0, 1])
def test_a_qvalue_is_the_smallest_level_that_selects(offset):
    for seed in range(100):
        W = random_statistics(seed)
        for w, q in zip(W, knockoff_qvalues(W, offset), strict=True):
            if w > 0 and 0 < q < 1:
                assert w >= knockoff_threshold(W, q, offset)
                assert w < knockoff_threshold(W, np.nextafter(q, 0), offset)


def test_evalues_follow_the_definition_and_ebh_gives_the_filter_back():
    nonzero = 0
    for seed in range(200):
        W = random_statistics(seed)
        for fdr in LEVELS:
            T = naive_threshold(W, fdr, 1)
            expected = [len(W) * (w >= T) / (1 + sum(v <= -T for v in W)) for w in W]
            e = knockoff_evalues(W, fdr)
            np.testing.assert_allclose(e, expected)
            np.testing.assert_array_equal(ebh(e, fdr), W >= T)
            nonzero += e.any()
    assert nonzero > 500


def test_ebh_follows_the_definition():
    found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        e = rng.exponential(size=int(rng.integers(1, 30))) * rng.choice([1.0, 10.0, 100.0])
        e = np.where(rng.random(e.size) < 0.3, 0.0, np.round(e, int(rng.integers(0, 3))))
        q = ebh_qvalues(e)
        assert (q[e == 0] == 1).all()
        for fdr in (0.0437, 0.1049, 0.2093, 0.4877, 0.9177):
            selected = ebh(e, fdr)
            np.testing.assert_array_equal(selected, naive_ebh(e, fdr))
            np.testing.assert_array_equal(selected, q <= fdr)
            found += selected.sum()
    assert found > 500


def test_ebh_at_the_boundary_is_not_decided_by_rounding():
    for p in range(1, 60):
        for k in range(1, p + 1):
            e = np.where(np.arange(p) < k, np.full(p, p / 3), 0.0)
            if k > 3:
                assert ebh(e, 3 / k).sum() == k
                assert not ebh(e, 3 / k - 1e-9).any()


def test_infinite_evalues_are_selected_first():
    np.testing.assert_array_equal(ebh([np.inf, 1.0, 0.0], 0.01), [True, False, False])
    assert ebh_qvalues([np.inf, 1.0, 0.0])[0] == 0


def test_textbook_case():
    W = [9, 8, 7, -6, 5, 4, 3, -2, 1, 0]
    # Shares with the one: 1 → 3/7, 2 → 3/6, 3 → 2/6, 4 → 2/5, 5 → 2/4, 6 → 2/3, 7 → 1/3.
    assert knockoff_threshold(W, 1 / 3) == 3
    assert knockoff_threshold(W, 0.4) == 3
    assert knockoff_threshold(W, 3 / 7) == 1
    assert knockoff_threshold(W, 0.3) == np.inf
    assert knockoff_threshold(W, 0.3, offset=0) == 1  # 2 of 7
    assert knockoff_threshold(W, 0.01, offset=0) == 7
    np.testing.assert_allclose(knockoff_qvalues(W), [1 / 3] * 3 + [1] + [1 / 3] * 3 + [1, 3 / 7, 1])


def test_a_negative_statistic_may_be_the_threshold():
    """At t = 2 one of three is negative: the count enters the e-values."""
    W = [5, 4, 3, -2]
    assert knockoff_threshold(W, 0.7) == 2
    np.testing.assert_array_equal(knockoff_evalues(W, 0.7), [2, 2, 2, 0])
    np.testing.assert_array_equal(knockoff_evalues(W, 0.34), [4, 4, 4, 0])


def test_the_offset_changes_the_threshold_of_evalues_only():
    np.testing.assert_array_equal(knockoff_evalues([5, 4, -2], 0.1, offset=0), [3, 3, 0])
    np.testing.assert_array_equal(knockoff_evalues([5, 4, -2], 0.5, offset=0), [1.5, 1.5, 0])


def test_ties_stand_and_fall_together():
    assert knockoff_threshold([2, 2, 2, 2, -2], 0.5) == 2
    assert knockoff_threshold([2, 2, 2, 2, -2], 0.49) == np.inf
    np.testing.assert_array_equal(knockoff_qvalues([2, 2, 2, 2, -2]), [0.5] * 4 + [1])


@pytest.mark.parametrize("W", [[], [0.0, 0.0], [-1.0, -2.0, -3.0], [1.0], [1.0, -1.0]])
def test_nothing_to_select(W):
    assert knockoff_threshold(W, 0.5) == np.inf
    np.testing.assert_array_equal(knockoff_qvalues(W), np.ones(len(W)))
    np.testing.assert_array_equal(knockoff_evalues(W, 0.5), np.zeros(len(W)))
    assert not ebh(knockoff_evalues(W, 0.5), 0.5).any()


@pytest.mark.parametrize("W", [[-1.0, -2.0], [0.0]])
def test_level_one_selects_no_negative_statistic(W):
    for offset in (0, 1):
        assert knockoff_threshold(W, 1.0, offset) == np.inf
    assert not ebh(np.zeros(3), 1.0).any()


def test_level_one_and_a_single_column():
    assert knockoff_threshold([1.0], 1.0) == 1
    assert ebh([1.0], 1.0).all()


def test_the_order_and_the_scale_of_the_columns_play_no_part():
    rng = np.random.default_rng(0)
    for seed in range(50):
        W = random_statistics(seed)
        order = rng.permutation(W.size)
        np.testing.assert_array_equal(knockoff_qvalues(W[order]), knockoff_qvalues(W)[order])
        assert knockoff_threshold(W[order], 0.3) == knockoff_threshold(W, 0.3)
        assert knockoff_threshold(4 * W, 0.3) == 4 * knockoff_threshold(W, 0.3)
        e = knockoff_evalues(W, 0.5)
        np.testing.assert_array_equal(knockoff_evalues(W[order], 0.5), e[order])
        np.testing.assert_array_equal(ebh(e[order], 0.5), ebh(e, 0.5)[order])


def test_false_discoveries_stay_below_the_level():
    """FDR over 2,000 draws of W with random signs for nulls; the bound is 4 standard errors."""
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(2000):
        W = rng.exponential(size=60) * rng.choice([-1, 1], size=60)
        W[:20] = 1 + rng.exponential(size=20)
        selected = knockoff_threshold(W, 0.2) <= W
        shares.append(selected[20:].sum() / max(1, selected.sum()))
    mean, error = np.mean(shares), np.std(shares) / np.sqrt(2000)
    assert mean < 0.2 + 4 * error
    assert mean > 0.15  # and the level is used


# |W| of the null columns and W of the others. All signs of the null columns are equally likely, so
# that sums over them are exact expectations.
WORLDS = {
    "nothing to find": (np.arange(1.0, 11), []),
    "ties": (np.array([1, 1, 1, 2, 2, 2, 2, 3, 3.0]), []),
    "all tied": (np.ones(8), [1.0, 1.0]),
    "zeros": (np.array([0, 0, 1, 2, 2, 3, 4, 5, 6.0]), [0.0]),
    "above": (np.arange(1.0, 10), [20.0, 21.0, 22.0, 23.0, 24.0]),
    "among ties": (np.array([1, 2, 2, 3, 3, 3, 4, 4.0]), [2.0, 3.0, 4.0, 4.0, 5.0]),
    "below": (np.arange(5.0, 14), [1.0, 2.0, 3.0, 4.0]),
    "of the wrong sign": (np.arange(1.0, 9), [-2.5, 4.5, 6.5, 7.5, 9.5, -3.0]),
    "one null column": (np.array([1.0]), [2.0] * 6),
}


def sign_flips(sizes, others):
    """W for every choice of signs; the null columns come first."""
    for signs in product([-1, 1], repeat=len(sizes)):
        yield np.append(sizes * signs, others)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("world", WORLDS)
def test_null_evalues_sum_to_p_at_most(world, offset):
    """The mean over all signs is an exact expectation, at most p (1 - 2^-m) for m null columns."""
    sizes, others = WORLDS[world]
    worlds = list(sign_flips(sizes, others))
    p, m = worlds[0].size, np.count_nonzero(sizes)
    greatest = 0.0
    for fdr in (0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0):
        sums = [knockoff_evalues(W, fdr, offset)[: sizes.size].sum() for W in worlds]
        greatest = max(greatest, np.mean(sums) / p)
    assert greatest <= (1 - 0.5**m) * (1 + 1e-12)
    assert greatest > 0.3


@pytest.mark.parametrize("world", WORLDS)
def test_what_one_draw_promises(world):
    """E V/R <= fdr with offset 1; with offset 0 only E V/(R + 1/fdr) <= fdr. Exact expectations."""
    sizes, others = WORLDS[world]
    for fdr in (0.1, 0.2, 0.5):
        plus, paper = [], []
        for W in sign_flips(sizes, others):
            selected = knockoff_threshold(W, fdr) <= W
            plus.append(selected[: sizes.size].sum() / max(1, selected.sum()))
            selected = knockoff_threshold(W, fdr, offset=0) <= W
            paper.append(selected[: sizes.size].sum() / (selected.sum() + 1 / fdr))
        assert np.mean(plus) <= fdr * (1 + 1e-12)
        assert np.mean(paper) <= fdr * (1 + 1e-12)


def test_one_draw_with_offset_zero_finds_what_is_not_there():
    """The largest of null statistics is positive in half of all cases, and then selected."""
    sizes, _ = WORLDS["nothing to find"]
    found = [knockoff_threshold(W, 0.05, offset=0) < np.inf for W in sign_flips(sizes, [])]
    assert np.mean(found) >= 0.5


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("level", [0.5, 1.0])
@pytest.mark.parametrize("dependence", ["independent", "equal", "opposite", "sorted"])
def test_ebh_over_draws_keeps_the_rate(offset, level, dependence):
    """Two draws of five null columns beside strong ones, over all signs of both: exact rates."""
    fdr, strong = 0.4, np.array([7.0, 8.0, 9.0, 10.0, 11.0, 12.0])
    one, two = np.array([1.0, 3, 6, 6.5, 8.5]), np.array([9.5, 2.0, 2.0, 7.5, 6.0])
    signs = np.array(list(product([-1, 1], repeat=5)))
    pairs = {
        "independent": [(a, b) for a in signs for b in signs],
        "equal": [(a, a) for a in signs],
        "opposite": [(a, -a) for a in signs],
        "sorted": list(zip(signs, sorted(signs.tolist(), key=sum), strict=True)),
    }[dependence]
    shares, found = [], 0
    for a, b in pairs:
        draws = [np.append(one * a, strong), np.append(two * b, strong)]
        e = np.mean([knockoff_evalues(W, level * fdr, offset) for W in draws], axis=0)
        selected = ebh(e, fdr)
        shares.append(selected[:5].sum() / max(1, selected.sum()))
        found += selected[5:].sum()
    assert np.mean(shares) <= fdr * (1 + 1e-12)
    assert np.mean(shares) > 0
    assert found > len(pairs)


def test_offset_zero_stops_earlier_and_raises_no_evalue():
    more = less = 0
    for seed in range(200):
        W = random_statistics(seed)
        for fdr in LEVELS:
            assert knockoff_threshold(W, fdr, 0) <= knockoff_threshold(W, fdr, 1)
            zero, one = knockoff_evalues(W, fdr, 0), knockoff_evalues(W, fdr, 1)
            assert (zero[one > 0] <= one[one > 0]).all()
            assert (zero[one > 0] > 0).all()
            more, less = more + (zero > one).any(), less + (zero < one).any()
    assert min(more, less) > 50


def test_many_columns_are_quick():
    rng = np.random.default_rng(0)
    W = rng.standard_normal(200_000) + 0.5
    T = knockoff_threshold(W, 0.3)
    np.testing.assert_array_equal(knockoff_qvalues(W) <= 0.3, W >= T)
    np.testing.assert_array_equal(ebh(knockoff_evalues(W, 0.3), 0.3), W >= T)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_statistics_must_be_finite(bad):
    for function in (knockoff_qvalues, lambda W: knockoff_threshold(W, 0.1)):
        with pytest.raises(ValueError, match=r"W contains NaN or infinity at \[1\]"):
            function([1.0, bad, 2.0])
    with pytest.raises(ValueError, match="one-dimensional"):
        knockoff_qvalues([[1.0, 2.0]])


@pytest.mark.parametrize("bad", [[np.nan], [-1.0], [[1.0]]])
def test_evalues_must_be_values(bad):
    for function in (ebh_qvalues, lambda e: ebh(e, 0.1)):
        with pytest.raises(ValueError, match="evalues"):
            function(bad)


@pytest.mark.parametrize("function", [knockoff_threshold, knockoff_evalues, ebh])
def test_levels_and_offsets_are_checked(function):
    for fdr in (0, -0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="fdr"):
            function([1.0], fdr)
    with pytest.raises(TypeError, match="fdr"):
        function([1.0], "0.1")
    if function is not ebh:
        with pytest.raises(ValueError, match="offset=2"):
            function([1.0], 0.1, offset=2)


def test_statistics_of_one_sign_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert knockoff_threshold([-1.0, -2.0, -0.5], 0.5, offset=0) == np.inf
        np.testing.assert_array_equal(knockoff_qvalues([-1.0, -2.0, 0.0]), np.ones(3))
        assert knockoff_threshold([1.0, 2.0, -3.0, 0.0], 0.4, offset=0) == np.inf
        assert knockoff_threshold([0.5, 0.2, 0.1], 0.5) == 0.1
