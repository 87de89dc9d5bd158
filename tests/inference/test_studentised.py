"""Studentised p-values: exact for symmetric differences, careful in small and skewed samples."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm, ttest_1samp

from sobolev.inference import HRTSelector
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.saddlepoint import saddlepoint_pvalue
from sobolev.inference.schemes import BlockTest, Robust, Saddlepoint, Studentised
from sobolev.inference.studentised import studentised_pvalue


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_pvalue_is_that_of_all_patterns_of_signs(n):
    d = np.random.default_rng(n).standard_normal(n) + 0.5
    signs = np.array(list(product([-1, 1], repeat=n)))
    exact = np.mean(signs @ np.abs(d) >= d.sum() - 1e-12)
    right_skewed = np.mean(d**3) >= 0
    found = studentised_pvalue(d)
    assert found >= exact * (1 - 1e-9)  # a left-skewed sample gets a larger one
    if right_skewed or exact >= 0.5:
        assert found == pytest.approx(exact, rel=0.1)


def test_equal_differences_are_a_binomial_test():
    d = np.repeat([1.0, -1.0], [40, 20])
    assert studentised_pvalue(d) == pytest.approx(binom.sf(39, 60, 0.5), rel=0.02)


def test_many_normal_differences_give_the_t_test():
    d = np.random.default_rng(0).standard_normal(400) + 0.12
    assert studentised_pvalue(d) == pytest.approx(
        ttest_1samp(d, 0, alternative="greater").pvalue, rel=0.1
    )


def test_scale_does_not_matter_and_zeros_do_not_count():
    d = np.random.default_rng(1).standard_normal(50) + 0.3
    p = studentised_pvalue(d)
    assert studentised_pvalue(1e-9 * d) == pytest.approx(p, rel=1e-6)
    assert studentised_pvalue(np.append(d, np.zeros(100))) == pytest.approx(p, rel=1e-9)
    assert studentised_pvalue(np.zeros(5)) == 1.0
    assert studentised_pvalue(np.empty(0)) == 1.0


@pytest.mark.parametrize(
    ("draw", "levels"),
    [
        (lambda rng: rng.standard_normal(12), (0.05, 0.01)),
        (lambda rng: rng.standard_t(2, 100), (0.05, 0.005)),
        (lambda rng: rng.exponential(size=200) - 1, (0.05, 0.005)),
        (lambda rng: 1 - rng.exponential(size=200), (0.05, 0.005)),
        (lambda rng: (rng.random(200) < 0.03) - 0.03, (0.05, 0.005)),
        (lambda rng: np.r_[10 * rng.choice([-1, 1]), rng.standard_normal(40)], (0.05, 0.005)),
    ],
    ids=["few", "heavy tails", "right-skewed", "left-skewed", "rare", "one row dominates"],
)
def test_the_level_holds_for_many_shapes(draw, levels):
    """600 samples of mean zero; a correct program breaks a bound once in some 10,000 runs."""
    rng = np.random.default_rng(0)
    p = np.array([studentised_pvalue(draw(rng)) for _ in range(600)])
    for level in levels:
        assert np.mean(p <= level) <= level * 1.15 + 4 * np.sqrt(level / 600)


def test_left_skewed_samples_get_larger_pvalues_than_from_the_t_test():
    rng = np.random.default_rng(0)
    samples = 1 - rng.exponential(size=(100, 60))
    tested = ttest_1samp(samples, 0, axis=1, alternative="greater").pvalue
    small = tested < 0.2
    found = np.array([studentised_pvalue(d) for d in samples[small]])
    assert np.mean(found > tested[small]) > 0.9


def blocks(seed=0, shift=0.2):
    rng = np.random.default_rng(seed)
    return [
        BlockTest(float(np.log(rng.uniform())), s * (rng.standard_normal(30) + shift), s)
        for s in (1.0, 5.0, 25.0)
    ]


def test_robust_is_the_larger_of_the_two():
    found = blocks()
    both = Saddlepoint().combined(found), Studentised().combined(found)
    assert Robust().combined(found) == max(both)


def test_blocks_count_by_the_deviation_that_the_model_gives_them():
    """Blocks of different scale count alike: the result is that of the unscaled differences."""
    scaled, plain = blocks(), blocks()
    plain = [BlockTest(b.log_pvalue, b.differences / b.deviation, 1.0) for b in plain]
    assert Studentised().combined(scaled) == pytest.approx(Studentised().combined(plain))


def test_a_wrong_spread_breaks_the_saddlepoint_only():
    """Rows that vary five times as much as the model says: null p-values of both kinds."""
    rng = np.random.default_rng(0)
    grid = np.linspace(-1.7, 1.7, 21)
    values, weights = np.tile(grid, (100, 1)), np.full((100, 21), 1 / 21)
    p = {"saddlepoint": [], "robust": []}
    for _ in range(200):
        observed = 5 * rng.standard_normal(100)
        table = NullTable(values, weights, observed)
        block = BlockTest(np.log(table.saddlepoint()), observed - table.centres, 1.0)
        p["saddlepoint"].append(Saddlepoint().combined([block]))
        p["robust"].append(Robust().combined([block]))
    assert np.mean(np.array(p["saddlepoint"]) < 0.05) > 0.3
    assert np.mean(np.array(p["robust"]) < 0.05) < 0.05 + 4 * np.sqrt(0.05 / 200)


@pytest.mark.parametrize("scheme", ["split", "forward"])
def test_every_pvalue_has_a_name(scheme):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = X[:, 0] + 0.5 * rng.standard_normal(150)
    found = {
        name: HRTSelector(pvalue=name, scheme=scheme, n_repeats=1, random_state=0)
        .fit(X, y)
        .pvalues_
        for name in ("robust", "saddlepoint", "studentised", "montecarlo")
    }
    np.testing.assert_array_equal(
        found["robust"], np.fmax(found["saddlepoint"], found["studentised"])
    )
    assert all(p[0] < 0.05 for p in found.values())


@pytest.mark.parametrize("shift", [1.1, 1.2, 1.3])
def test_hall_s_transformation_of_a_left_skewed_sample(shift):
    """The tail at z + a z²/3 + a² z³/27 + a/6, where a is the skewness over the root of n."""
    d = shift + np.log((np.arange(30) + 0.5) / 30)
    values = np.column_stack([-np.abs(d), np.abs(d)])
    signs = saddlepoint_pvalue(values, np.full(values.shape, 0.5), d.sum())
    z, a = norm.isf(signs), np.mean(d**3) / np.mean(d**2) ** 1.5 / np.sqrt(30)
    expected = norm.sf(z + a * z**2 / 3 + a**2 * z**3 / 27 + a / 6)
    assert expected > signs
    assert signs < 0.5
    assert studentised_pvalue(d) == pytest.approx(expected, rel=1e-9)


def test_differences_of_the_size_of_rounding_are_left_out():
    d = np.array([1.0, 1.0, 1.0, 1.0])
    assert studentised_pvalue(np.r_[d, -1e-10, 1e-10]) == pytest.approx(1 / 16)
    assert studentised_pvalue(np.r_[d, -1e-8, 1e-8]) != studentised_pvalue(d)


def test_a_sum_below_its_mean_is_not_corrected():
    d = np.array([-1.0, -2.0, 0.5, -3.0])
    signs = np.array(list(product([-1, 1], repeat=4)))
    exact = np.mean(signs @ np.abs(d) >= d.sum() - 1e-12)
    assert studentised_pvalue(d) == pytest.approx(exact, rel=1e-6)
    assert studentised_pvalue(np.array([2.0, 2.0, -3.0])) == 0.5  # four of eight patterns
