"""The level of sic_test over 400 data sets: inside the 99 % binomial band of 0.05."""

import numpy as np
import pytest
from scipy.stats import binom

from sobolev import sic_test


@pytest.mark.slow
@pytest.mark.parametrize("tail", ["normal", "cauchy", "labels"])
def test_rejection_rate(tail):
    n_sets, level = 400, 0.05
    rejected = 0
    for seed in range(n_sets):
        rng = np.random.default_rng(10**6 + seed)
        X = rng.standard_normal((100, 3))
        if tail == "labels":
            y = rng.choice(["a", "b", "c"], 100)
        else:
            y = rng.standard_normal(100) if tail == "normal" else rng.standard_cauchy(100)
        rejected += sic_test(X, y, n_permutations=199, random_state=seed).pvalue <= level
    low, high = binom.ppf([0.005, 0.995], n_sets, level)
    assert low <= rejected <= high, f"{rejected} of {n_sets} rejected"
