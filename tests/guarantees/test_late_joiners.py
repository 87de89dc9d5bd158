"""Columns that join late: the false discovery rate of the forward scheme, by simulation.

How many columns join depends on rows that also make p-values. The procedure counts the largest
number that may join, which is fixed before the first test.
"""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from sobolev import HRTSelector
from sobolev.conditionals import GaussianConditional
from sobolev.inference.multiple_testing import qvalues

N_RUNS = 200
LEVEL = 0.2  # a high level makes errors of the count visible


def run(seed, correlation, n_true, n_repeats=1):
    """Thirty equicorrelated columns; a short list, so that columns join late in most runs."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * rng.standard_normal((120, 30))
    X += np.sqrt(correlation) * rng.standard_normal((120, 1))
    y = X[:, :n_true].sum(axis=1) + np.sqrt(max(1, n_true)) * rng.standard_normal(120)
    hrt = HRTSelector(
        Ridge(alpha=10.0),
        conditional=GaussianConditional(),
        fdr=LEVEL,
        shortlist=6,
        n_repeats=n_repeats,
        copies="keep",
        diagnose=False,
        random_state=seed,
    )
    return hrt.fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("correlation", "n_true", "n_repeats"),
    [(c, n_true, n_repeats) for n_repeats in (1, 3) for n_true in (0, 3) for c in (0.0, 0.9)],
    ids=str,
)
def test_the_rate_holds_where_columns_join_late(correlation, n_true, n_repeats):
    """A correct program exceeds the bound of three standard errors once in some hundred runs."""
    proportions, late = [], 0
    for seed in range(N_RUNS):
        hrt = run(seed, correlation, n_true, n_repeats)
        late += hrt.shortlist_.size > 6
        found = np.flatnonzero(hrt.support_)
        proportions.append(np.mean(found >= n_true) if found.size else 0.0)
        assert hrt.shortlist_.size <= 8 * n_repeats
    error = np.std(proportions) / np.sqrt(N_RUNS)
    assert np.mean(proportions) <= LEVEL + 3 * error
    assert late > N_RUNS / 4  # columns did join late


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_the_count_is_the_largest_possible_one_of_an_order(n_repeats):
    hrt = run(0, 0.0, 3, n_repeats)
    tested = np.isfinite(hrt.pvalues_)
    assert hrt.n_tests_ == 8
    expected = qvalues(hrt.pvalues_[tested], "bh", n_tests=8)
    np.testing.assert_allclose(hrt.qvalues_[tested], expected)
