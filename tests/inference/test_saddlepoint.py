"""Tails of sums of discrete rows, against exact distributions: lattices, heavy rows, edges."""

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from sobolev.inference.saddlepoint import MAX_ATOMS, _convolved, _heavy_rows, saddlepoint_pvalue


def tails_of_integers(steps, weights):
    """P(S >= k) for k = 0, 1, ... of rows of integers, shifted to begin at zero; and the shift."""
    shift = int(np.where(weights > 0, steps, np.iinfo(int).max).min(axis=1).sum())
    mass = np.ones(1)
    for row, w in zip(steps, weights, strict=True):
        used = row[w > 0]
        places = used - used.min()
        longer = np.zeros(mass.size + places.max())
        for place, weight in zip(places, w[w > 0], strict=True):
            longer[place : place + mass.size] += weight * mass
        mass = longer
    return np.cumsum(mass[::-1])[::-1], shift


def exact_distribution(values, weights):
    """Sorted atoms and tails of the sum of a few rows, all combinations."""
    atoms, masses = np.zeros(1), np.ones(1)
    for v, w in zip(values, weights, strict=True):
        atoms = np.add.outer(atoms, v).ravel()
        masses = np.multiply.outer(masses, w).ravel()
    order = np.argsort(atoms)
    return atoms[order], np.cumsum(masses[order][::-1])[::-1]


def tail_at(atoms, tails, s):
    return np.append(tails, 0.0)[np.searchsorted(atoms, s)]


def found_at(values, weights, points):
    return np.array([saddlepoint_pvalue(values, weights, float(s)) for s in points])


def n_heavy(values, weights):
    return _heavy_rows(values - np.sum(weights * values, axis=1, keepdims=True), weights).size


def ends(values, weights):
    low = np.where(weights > 0, values, np.inf).min(axis=1).sum()
    return low, np.where(weights > 0, values, -np.inf).max(axis=1).sum()


def integer_family(kind, n=50, B=20, seed=0):
    """Integer rows: too many steps for a lattice, few enough for the exact distribution."""
    rng = np.random.default_rng(seed)
    scale = {
        "plain": np.ones(n),
        "dominating": np.r_[25.0, np.ones(n - 1)],
        "geometric": 40.0 * 0.8 ** np.arange(n),
        "cauchy": np.abs(rng.standard_cauchy(n)),
    }[kind]
    steps = np.round(100 * scale[:, None] * rng.standard_normal((n, B))).astype(int)
    return steps, rng.dirichlet(np.ones(B), size=n)


# -- lattices ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "p"),
    [(100, 0.05), (100, 0.1), (100, 0.3), (100, 0.5), (400, 0.02), (400, 0.5), (400, 0.8)],
)
def test_binomial_tails_within_one_percent(n, p):
    values, weights = np.tile([0.0, 1.0], (n, 1)), np.tile([1 - p, p], (n, 1))
    k = np.arange(1, n + 1)
    exact = binom.sf(k - 1, n, p)
    k, exact = k[exact > 1e-12], exact[exact > 1e-12]
    np.testing.assert_allclose(found_at(values, weights, k), exact, rtol=0.01)


def test_small_binomials_and_their_ends():
    values, weights = np.tile([0.1, 0.4], (10, 1)), np.tile([0.4, 0.6], (10, 1))
    k = np.arange(11)
    found = found_at(values, weights, 1.0 + 0.3 * k)
    np.testing.assert_allclose(found[1:], binom.sf(k[1:] - 1, 10, 0.6), rtol=0.02)
    assert found[-1] == pytest.approx(0.6**10, rel=1e-9)


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.0, 0.0), (0.37, -2.1), (1e-5, 3.0), (1e6, 1.0), (-2.0, 0.5)]
)
@pytest.mark.parametrize("B", [3, 12])
def test_lattices_of_many_steps_any_scale_and_shift(scale, shift, B):
    n = 60
    steps = np.tile(np.arange(B), (n, 1))
    weights = np.random.default_rng(B).dirichlet(np.ones(B), size=n)
    if scale < 0:
        exact, low = tails_of_integers(-steps, weights)
    else:
        exact, low = tails_of_integers(steps, weights)
    k = np.arange(exact.size)
    asked = np.flatnonzero((exact > 1e-12) & (k > 0))
    sums = abs(scale) * (low + asked) + n * shift
    found = found_at(scale * steps + shift, weights, sums)
    np.testing.assert_allclose(found, exact[asked], rtol=0.01)


@pytest.mark.parametrize(
    ("pattern", "masses"),
    [
        ([0, 1, 2, 7], [[0.5, 0.3, 0.2, 0.0]]),
        ([0, 1, 2, 7], [[0.5, 0.5, 0.0, 0.0], [0.7, 0.0, 0.3, 0.0]]),
        ([-900, 0, 1, 100000], [[0.0, 0.5, 0.5, 0.0]]),
    ],
)
def test_values_of_weight_zero_play_no_part(pattern, masses):
    n = 100
    steps, weights = np.tile(pattern, (n, 1)), np.tile(masses, (n // len(masses), 1))
    exact, low = tails_of_integers(steps, weights)
    asked = np.flatnonzero(exact > 1e-12)[1:]
    found = found_at(steps.astype(float), weights, low + asked)
    np.testing.assert_allclose(found, exact[asked], rtol=0.01)


@pytest.mark.parametrize(("n", "p"), [(10, 0.01), (10, 0.05), (50, 0.01)])
def test_the_smallest_sum_is_reached_for_certain(n, p):
    values, weights = np.tile([0.0, 1.0], (n, 1)), np.tile([1 - p, p], (n, 1))
    assert saddlepoint_pvalue(values, weights, 0.0) == pytest.approx(1.0, rel=0.01)


def test_a_lattice_finer_than_any_difference():
    steps, weights = np.tile([[0, 2], [0, 3]], (30, 1)), np.full((60, 2), 0.5)
    exact, _ = tails_of_integers(steps, weights)
    asked = np.array([85, 95, 105, 120])
    found = found_at(steps.astype(float), weights, asked)
    np.testing.assert_allclose(found, exact[asked], rtol=0.02)


# -- rows of very different size -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("plain", 0), ("dominating", 0), ("dominating", 1), ("geometric", 0), ("geometric", 1)]
    + [("cauchy", seed) for seed in range(4)],
)
def test_heavy_rows_against_the_exact_distribution(kind, seed):
    """Found lies within 3 % of the tail, with the point moved by the width of merged atoms."""
    steps, weights = integer_family(kind, seed=seed)
    exact, low = tails_of_integers(steps, weights)
    assert (n_heavy(steps, weights) > 0) == (kind != "plain")
    levels = np.array([0.99, 0.9, 0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9])
    asked = np.unique(exact.size - np.searchsorted(exact[::-1], levels))
    width = int(np.ceil(exact.size / (MAX_ATOMS - 1))) if kind != "plain" else 1
    found = found_at(steps.astype(float), weights, low + asked)
    above = np.append(exact, np.zeros(width))[asked + width]
    below = exact[np.maximum(asked - width, 0)]
    assert (found > 0.97 * above).all()
    assert (found < 1.03 * below).all()


@pytest.mark.parametrize("kind", ["dominating", "geometric", "cauchy"])
@pytest.mark.parametrize("seed", range(3))
def test_few_rows_that_are_all_heavy_are_convolved(kind, seed):
    """Merging moves an atom by less than one bin for each row: a bound without any slack."""
    rng = np.random.default_rng(seed)
    n, B = 7, 6
    scale = {
        "dominating": np.r_[50.0, 0.5 ** np.arange(n - 1)],
        "geometric": 0.5 ** np.arange(n),
        "cauchy": np.sort(np.abs(rng.standard_cauchy(n))) ** 3,
    }[kind]
    values = scale[:, None] * rng.standard_normal((n, B))
    weights = rng.dirichlet(np.ones(B), size=n)
    assert n_heavy(values, weights) == n
    atoms, tails = exact_distribution(values, weights)
    moved = n * (atoms[-1] - atoms[0]) / (MAX_ATOMS - 1)
    points = np.unique(np.r_[np.quantile(atoms, np.linspace(0, 1, 40)), atoms[-20:]])
    found = found_at(values, weights, points)
    assert (found >= tail_at(atoms, tails, points + moved) - 1e-12).all()
    assert (found <= tail_at(atoms, tails, points - moved) + 1e-12).all()
    # Merged atoms lie below the largest sum; the chance of that one is kept.
    near = atoms[-1] - 1e-7 * (atoms[-1] - atoms[0])
    assert saddlepoint_pvalue(values, weights, near) >= tails[-1] * (1 - 1e-9)


def test_few_atoms_are_not_merged():
    """Up to 1024 combinations the convolution is exact, also at the atoms."""
    rng = np.random.default_rng(0)
    values = 0.4 ** np.arange(5)[:, None] * rng.standard_normal((5, 4))
    weights = rng.dirichlet(np.ones(4), size=5)
    atoms, tails = exact_distribution(values, weights)
    assert n_heavy(values, weights) == 5
    np.testing.assert_allclose(found_at(values, weights, atoms[::7]), tails[::7], rtol=1e-9)


# -- shape ---------------------------------------------------------------------------------------

FAMILIES = {
    "binomial": (np.tile([0.0, 1.0], (60, 1)), np.tile([0.9, 0.1], (60, 1))),
    "steps": (np.tile(np.arange(5.0), (40, 1)), np.full((40, 5), 0.2)),
    "zeros": (np.tile([0.0, 1.0, 50.0], (60, 1)), np.tile([0.7, 0.3, 0.0], (60, 1))),
    **{
        kind: (lambda f: (f[0].astype(float), f[1]))(integer_family(kind))
        for kind in ("plain", "dominating", "geometric", "cauchy")
    },
}


@pytest.mark.parametrize("name", FAMILIES)
def test_decreasing_and_never_zero(name):
    values, weights = FAMILIES[name]
    low, high = ends(values, weights)
    span = high - low
    points = np.r_[low - 0.1 * span, np.linspace(low - 1e-6 * span, high, 100), high + 0.1 * span]
    found = found_at(values, weights, points)
    assert found[0] == found[1] == 1.0
    assert (np.diff(found) <= 1e-12 * found[:-1]).all()
    assert found[-1] > 0
    assert found[-1] == found[-2] < 1e-12
    top = values == np.where(weights > 0, values, -np.inf).max(axis=1, keepdims=True)
    certain = np.log(np.where(top, weights, 0).sum(axis=1)).sum()
    assert np.log(found[-1]) == pytest.approx(max(certain, -700.0))


def test_decreasing_with_one_heavy_row_among_few():
    rng = np.random.default_rng(13)
    values, weights = rng.standard_normal((8, 6)), rng.dirichlet(np.ones(6), size=8)
    assert n_heavy(values, weights) == 1
    found = found_at(values, weights, np.linspace(4.5, 5.5, 60))
    assert (np.diff(found) <= 0).all()


# -- edges ---------------------------------------------------------------------------------------


def test_one_row_is_its_own_distribution():
    rng = np.random.default_rng(0)
    values, weights = rng.standard_normal((1, 9)), rng.dirichlet(np.ones(9), size=1)
    atoms, tails = exact_distribution(values, weights)
    np.testing.assert_allclose(found_at(values, weights, atoms), tails)
    between = 0.5 * (atoms[1:] + atoms[:-1])
    np.testing.assert_allclose(found_at(values, weights, between), tails[1:])
    assert saddlepoint_pvalue(values, weights, 9.0) == pytest.approx(tails[-1])


@pytest.mark.parametrize("n", [1, 7])
def test_one_value_for_each_row_is_certain(n):
    values, weights = np.arange(1.0, n + 1)[:, None], np.ones((n, 1))
    total = values.sum()
    assert saddlepoint_pvalue(values, weights, total) == 1.0
    assert saddlepoint_pvalue(values, weights, total - 1) == 1.0
    assert 0 < saddlepoint_pvalue(values, weights, total + 1) < 1e-100


@pytest.mark.parametrize("offset", [0.0, 2.0, 1e6])
@pytest.mark.parametrize("n", [2, 30])
def test_all_rows_certain_but_one(offset, n):
    certain = offset * np.random.default_rng(0).standard_normal((n - 1, 1)) * np.ones(3)
    values = np.vstack([certain, [[0.0, 1.0, 5.0]]])
    weights = np.tile([0.2, 0.5, 0.3], (n, 1))
    asked = certain[:, 0].sum() + np.array([-1.0, 0.5, 0.9, 2.0, 4.9, 5.0, 7.0])
    expected = [1.0, 0.8, 0.8, 0.3, 0.3, 0.3, 0.3]
    np.testing.assert_allclose(found_at(values, weights, asked), expected, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("name", FAMILIES)
def test_huge_and_tiny_scales(name, scale):
    values, weights = FAMILIES[name]
    mean, (_, high) = float(np.sum(weights * values)), ends(values, weights)
    points = mean + np.array([0.05, 0.2, 0.6, 1.1]) * (high - mean)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = found_at(scale * values, weights, scale * points)
    np.testing.assert_allclose(found, found_at(values, weights, points), rtol=1e-6)


@pytest.mark.parametrize("rare", [1e-8, 1e-5])
def test_a_rare_value_far_from_the_mean(rare):
    """One row of 100 is 1, up to a thousand standard deviations out: the formula does not overflow.

    It is exact if one row has to be 1, and good to a factor of three if two have to be.
    """
    values, weights = np.tile([0.0, 1.0], (100, 1)), np.tile([1 - rare, rare], (100, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ratio = found_at(values, weights, [1, 2]) / binom.sf([0, 1], 100, rare)
        assert ratio[0] == pytest.approx(1.0, abs=0.01)
        assert 0.4 < ratio[1] < 1.1
        below = found_at(-values, weights, [-1, 0])
    np.testing.assert_allclose(below, [1.0, (1 - rare) ** 100], rtol=1e-3)


def test_a_convolution_keeps_few_atoms_and_their_mean():
    rng = np.random.default_rng(0)
    values, weights = 5.0 * rng.standard_normal((6, 7)), rng.dirichlet(np.ones(7), size=6)
    atoms, masses = _convolved(values, weights)
    assert 100 < atoms.size <= MAX_ATOMS
    assert masses.sum() == pytest.approx(1.0)
    assert masses @ atoms == pytest.approx(np.sum(weights * values))


@pytest.mark.parametrize("constant", [1, 30])
def test_rows_that_cannot_vary_only_move_the_sum(constant):
    rng = np.random.default_rng(4)
    values, weights = rng.standard_normal((20, 6)), rng.dirichlet(np.ones(6), size=20)
    fixed = np.full((constant, 6), 3.0)
    more = np.vstack([values, fixed]), np.vstack([weights, np.full((constant, 6), 1 / 6)])
    points = np.array([-3.0, 0.0, 2.0, 6.0])
    found = found_at(*more, points + 3.0 * constant)
    np.testing.assert_allclose(found, found_at(values, weights, points), rtol=1e-6)
