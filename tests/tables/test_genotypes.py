"""Genotypes: windows of neighbouring columns, and conditional distributions of 0, 1 and 2."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector
from sobolev.conditionals import AutoConditional
from sobolev.conditionals.completing import completions
from sobolev.tables import linkage_blocks, windows


def genotypes(rng, n, d, r=0.9):
    """Sums of two haplotypes, each a thresholded AR(1)."""

    def haplotypes():
        Z = rng.standard_normal((n, d))
        for j in range(1, d):
            Z[:, j] = r * Z[:, j - 1] + np.sqrt(1 - r**2) * Z[:, j]
        return norm.ppf(np.linspace(0.2, 0.5, d)) > Z

    return haplotypes().astype(float) + haplotypes()


NAMES = ["chr1:100", "chr1:900_A_G", "1:1200:G:A", "2:950:T:C", "chr2-1001-A-T", "2:1999:C:G"]


def test_windows_by_distance():
    found = windows(NAMES, 1000)
    assert list(found.values()) == [["chr1:100", "chr1:900_A_G"], ["chr2-1001-A-T", "2:1999:C:G"]]
    assert list(found) == ["chr1:100 to chr1:900_A_G", "chr2-1001-A-T to 2:1999:C:G"]


def test_windows_by_count():
    assert list(windows(NAMES, 2, by="count").values()) == [NAMES[:2], NAMES[3:5]]
    assert windows(["rs7", "rs3", "rs5"], 2, by="count") == {"rs7 to rs3": ["rs7", "rs3"]}
    by_chromosome = windows(["rs7", "rs3", "rs5"], 2, chromosome=[1, 2, 2], by="count")
    assert by_chromosome == {"rs3 to rs5": ["rs3", "rs5"]}


def test_windows_of_positions():
    assert windows([100, 2500, 150, 2600], 1000) == {"100 to 150": [0, 2], "2500 to 2600": [1, 3]}
    position = pd.Series([100, 150, 2500], index=["a", "b", "c"])
    assert windows(position, 1000) == {"a to b": ["a", "b"]}
    twice = windows([1, 2, 1, 2], 10, chromosome=["X", "X", "Y", "Y"])
    assert twice == {"1 to 2": [0, 1], "1 to 2'": [2, 3]}


@pytest.mark.parametrize("by", ["distance", "count"])
@pytest.mark.parametrize("size", [1, 3, 10, 1000])
def test_windows_never_cross_chromosomes(by, size):
    rng = np.random.default_rng(size)
    chromosome, position = rng.integers(1, 5, 80), rng.integers(0, 200, 80)
    found = windows(position, size, chromosome, by=by)
    members = [j for own in found.values() for j in own]
    assert len(members) == len(set(members))
    for own in found.values():
        assert len(own) > 1
        assert len(set(chromosome[own])) == 1
        span = np.ptp(position[own])
        assert span < size if by == "distance" else len(own) <= size
    blocks = linkage_blocks(np.tile(np.arange(9.0)[:, None], 80), np.sort(chromosome))
    assert {len(set(np.sort(chromosome)[own])) for own in blocks.values()} == {1}


def test_bad_windows():
    with pytest.raises(ValueError, match="2 names have no position, such as 'rs7', 'rs3'; pass"):
        windows(["rs7", "1:5", "rs3"], 1000)
    with pytest.raises(ValueError, match=r"size=2.5 must be a whole number of columns"):
        windows([1, 2], 2.5, by="count")
    with pytest.raises(ValueError, match="size=0 must be a number, and positive"):
        windows([1, 2], 0)
    with pytest.raises(ValueError, match="chromosome has 1 entries, but there are 2 columns"):
        windows([1, 2], 5, chromosome=[1])
    with pytest.raises(ValueError, match="chromosome is missing for 1 of 2 columns"):
        windows([1, 2], 5, chromosome=["1", None])
    with pytest.raises(ValueError, match="missing or infinite"):
        windows([1, np.nan], 5)
    with pytest.raises(ValueError, match="one position or name for each column"):
        windows([], 5)


def test_linkage_blocks():
    rng = np.random.default_rng(0)
    a, b = genotypes(rng, 300, 2, r=0.0).T
    gaps = a.copy()
    gaps[:20] = np.nan
    X = pd.DataFrame({"s1": a, "s2": gaps, "s3": b, "s4": np.where(rng.random(300) < 0.02, 0, b)})
    assert linkage_blocks(X) == {"s1 to s2": ["s1", "s2"], "s3 to s4": ["s3", "s4"]}
    assert linkage_blocks(X, r2=0.999) == {"s1 to s2": ["s1", "s2"]}
    assert linkage_blocks(X.to_numpy(), ["1", "2", "3", "3"]) == {"2 to 3": [2, 3]}
    assert linkage_blocks(X.assign(s1=0.0)[["s1", "s2"]]) == {}


def test_windows_are_groups_of_a_selector():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(genotypes(rng, 200, 12), columns=[f"1:{100 * j}:A:G" for j in range(12)])
    table = X.assign(y=X["1:500:A:G"] + 0.5 * rng.standard_normal(200))
    groups = windows(X.columns, 400)
    assert len(groups) == 3
    hrt = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.03), feature_groups=groups, random_state=1
    ).fit(table, "y")
    p = hrt.pvalues_.reshape(3, 4)
    np.testing.assert_array_equal(p, p[:, :1] * np.ones(4))  # a group has one p-value
    assert np.argmin(p[:, 0]) == 1
    assert hrt.get_support()[4:8].all()
    by_position = windows(100 * np.arange(12), 400)
    knockoffs = KnockoffSelector(
        ConvexSIC(lam=0.03), feature_groups=by_position, fdr=0.5, random_state=0
    ).fit(X, table["y"])
    assert [own.tolist() for own in knockoffs.units_.values()] == list(by_position.values())


def test_genotypes_are_drawn_as_genotypes():
    """A conditional distribution, and a draw of a missing cell, is of 0, 1 and 2."""
    rng = np.random.default_rng(0)
    X = genotypes(rng, 200, 8)
    auto = AutoConditional().fit(X)
    for j in range(8):
        nodes, weights = auto.grid(X, j)
        assert set(np.unique(nodes)) <= {0.0, 1.0, 2.0}
        np.testing.assert_allclose(weights.sum(axis=1), 1)
    gaps = rng.random(X.shape) < 0.1
    (filled,) = completions(np.where(gaps, np.nan, X), None, [rng])
    assert set(np.unique(filled)) == {0.0, 1.0, 2.0}
    assert (filled[gaps] == X[gaps]).mean() > 0.6  # its neighbours tell of it


def test_null_pvalues_of_genotypes():
    """Neighbours of a causal variant, LD 0.9; a correct program fails once in 10,000 runs.

    The p-values of one table are dependent; as measured, they are conservative.
    """
    null = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = genotypes(rng, 200, 16)
        y = X[:, 5] - X[:, 11] + rng.standard_normal(200)
        hrt = HRTSelector(
            ConvexSIC(feature_map="landmark", lam=0.03),
            scheme="split",
            diagnose=False,
            random_state=seed,
        )
        null.append(np.delete(hrt.fit(X, y).pvalues_, [5, 11]))
    null = np.concatenate(null)
    assert np.isfinite(null).sum() > 40
    assert (null < 0.05).sum() <= binom.ppf(1 - 1e-4, np.isfinite(null).sum(), 0.05)
