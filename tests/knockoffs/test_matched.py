"""Matched knockoffs: observed values, whole rows of a group, the swap property."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sobolev.knockoffs import MatchedKnockoffs, SequentialKnockoffs
from sobolev.knockoffs.signs import null_signs


def curved(n=400, seed=0):
    """Six columns: curves and a spread that follow the first, a label, an independent column."""
    rng = np.random.default_rng(seed)
    z, e = rng.standard_normal(n), rng.standard_normal((n, 5))
    return np.column_stack(
        [
            z,
            z**2 + 0.3 * e[:, 0],
            np.exp(z) + 0.3 * e[:, 1],
            np.exp(z) * e[:, 2],
            np.digitize(z + 0.5 * e[:, 3], [-1, 1]),
            e[:, 4],
        ]
    )


def test_knockoffs_are_observed_values_of_the_column():
    X = curved()
    draw = MatchedKnockoffs().fit(X).sample(0)
    for x, knockoff in zip(X.T, draw.T, strict=True):
        assert np.isin(knockoff, x).all()
    assert (draw[:, [0, 1, 2, 3, 5]] != X[:, [0, 1, 2, 3, 5]]).all(axis=0).mean() > 0.5


def test_columns_of_a_group_are_drawn_from_one_row():
    """A square, a copy and a threshold stay what they are; one-hot columns stay one-hot."""
    x, z = np.random.default_rng(0).standard_normal((2, 300))
    codes = np.digitize(x + z, [-1, 0, 1])
    X = np.column_stack([x, x**2, x, x > 0, np.eye(4)[codes], z])
    groups = {"x": [0, 1, 2, 3], "code": [4, 5, 6, 7]}
    draw = MatchedKnockoffs(groups).fit(X).sample(0)
    np.testing.assert_array_equal(draw[:, 1], draw[:, 0] ** 2)
    np.testing.assert_array_equal(draw[:, 2], draw[:, 0])
    np.testing.assert_array_equal(draw[:, 3], draw[:, 0] > 0)
    np.testing.assert_array_equal(draw[:, 4:8].sum(axis=1), 1)
    assert np.abs(draw[:, 4:8].sum(axis=0) - X[:, 4:8].sum(axis=0)).max() < 30


def test_curves_and_spread_are_kept():
    """Null columns win in about half of the planted responses, not so with linear models."""
    labels, rng = np.arange(6), np.random.default_rng(0)
    shares = {
        kind: np.mean(
            [
                null_signs(X, [kind().fit(X).sample(seed)], labels, rng).mean
                for seed, X in enumerate(map(curved, [400] * 6, range(6)))
            ]
        )
        for kind in (MatchedKnockoffs, SequentialKnockoffs)
    }
    assert shares[MatchedKnockoffs] < 0.55
    assert shares[SequentialKnockoffs] > 0.6


def test_seeds_frames_and_clones():
    X = curved(100)
    sampler = MatchedKnockoffs(n_neighbors=3, penalty=0.1).fit(X)
    np.testing.assert_array_equal(sampler.sample(1), sampler.sample(1))
    assert (sampler.sample(1) != sampler.sample(2)).any()
    assert sampler.penalty_ == 0.1
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = clone(MatchedKnockoffs({"ab": ["a", "b"]})).fit(frame).sample(1)
    np.testing.assert_array_equal(named, MatchedKnockoffs([[0, 1]]).fit(X).sample(1))


@pytest.mark.parametrize("n", [3, 8, 40])
@pytest.mark.parametrize("p", [1, 2, 30])
def test_few_rows_and_columns(n, p):
    X = np.random.default_rng(0).standard_normal((n, p))
    assert np.isfinite(MatchedKnockoffs().fit(X).sample(0)).all()


def test_constant_columns_are_their_own_knockoffs():
    X = curved(100)
    X[:, 2] = 5.0
    with pytest.warns(UserWarning, match="constant"):
        draw = MatchedKnockoffs([[1, 2]]).fit(X).sample(0)
    np.testing.assert_array_equal(draw[:, 2], 5.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"penalty": "big"}, "unknown"), ({"penalty": -1.0}, "penalty"), ({"n_neighbors": 0}, "n_ne")],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        MatchedKnockoffs(**options).fit(curved(50))


@pytest.mark.parametrize("n", [60, 300])
def test_nearly_collinear_columns_stay_in_range(n):
    """Updates of an inverse lose all digits here; knockoffs of size 10^6 were the result."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    X = np.hstack([X + 1e-4 * rng.standard_normal(X.shape) for _ in range(6)])
    for sampler in (MatchedKnockoffs(), SequentialKnockoffs(), SequentialKnockoffs(penalty=1e-7)):
        assert np.abs(sampler.fit(X).sample(0)).max() < 3 * np.abs(X).max()
