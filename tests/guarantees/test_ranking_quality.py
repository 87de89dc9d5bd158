"""The floors of ranking quality with default settings, over fixed seeds."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from sobolev import ConvexSIC
from sobolev.datasets import make_liang, make_sinexp, make_xor

pytestmark = pytest.mark.slow


def mean_recall(make, n_seeds, *shape):
    """Mean share of the k true features among the k of largest importance."""
    found = []
    for seed in range(n_seeds):
        data = make(*shape, shuffle_features=True, random_state=seed)
        sic = ConvexSIC(n_features_to_select=int(data.support.sum()))
        found.append(data.support[sic.fit(data.data, data.target).support_].mean())
    return np.mean(found)


@pytest.mark.parametrize(("n_samples", "floor"), [(125, 0.69), (250, 0.91), (500, 0.99)])
def test_sinexp(n_samples, floor):
    assert mean_recall(make_sinexp, 50, n_samples) >= floor


def test_liang():
    assert mean_recall(make_liang, 10, 500) >= 0.80


def test_xor_two_of_200():
    """Both found in at least 9 of 10."""
    assert mean_recall(make_xor, 10, 1000, 200) >= 0.9


def test_all_relevant_columns():
    """5 informative columns and 15 combinations of them come first among 500."""
    found = []
    for seed in range(5):
        X, y = make_classification(
            2600,
            500,
            n_informative=5,
            n_redundant=15,
            n_clusters_per_class=16,
            shuffle=False,
            random_state=seed,
        )
        sic = ConvexSIC(tau=1.0, lam=0.1).fit(X, y.astype(str))
        found.append(np.mean(np.argsort(-sic.relevance(X))[:20] < 20))
    assert np.mean(found) >= 0.98
