"""The floors of NeuralSIC with default settings, over fixed seeds: ranking, and no false scores."""

import numpy as np
import pytest

from sobolev import NeuralSIC
from sobolev.datasets import make_sinexp, make_xor
from sobolev.neural import EarlyStopping, Optimizer

pytestmark = pytest.mark.slow


def recalls(make, n_seeds, *shape):
    """Shares of the k true features among the k of largest importance."""
    found = []
    for seed in range(n_seeds):
        data = make(*shape, shuffle_features=True, random_state=seed)
        sic = NeuralSIC(n_features_to_select=int(data.support.sum()), random_state=seed)
        found.append(data.support[sic.fit(data.data, data.target).support_].mean())
    return np.array(found)


def standard_error(values):
    return values.std(ddof=1) / np.sqrt(values.size)


@pytest.mark.parametrize(("n_samples", "floor"), [(125, 0.60), (250, 0.85), (500, 0.95)])
def test_sinexp(n_samples, floor):
    """A program whose true recall is the floor fails once in a thousand."""
    found = recalls(make_sinexp, 50, n_samples)
    assert found.mean() + 3 * standard_error(found) >= floor


def test_xor_two_of_50():
    assert recalls(make_xor, 10, 1000, 50).min() == 1.0


@pytest.mark.parametrize("early_stopping", [False, True])
def test_permuted_responses_have_no_held_out_criterion(early_stopping):
    """A critic that follows noise has a negative score; a positive one would be a false find.

    A correct program fails once in a thousand.
    """
    optimizer = Optimizer(early_stopping=EarlyStopping() if early_stopping else None)
    scores = []
    for seed in range(20):
        data = make_sinexp(300, 20, random_state=seed)
        y = np.random.default_rng(seed).permutation(data.target)
        sic = NeuralSIC(optimizer=optimizer, random_state=seed)
        sic.fit(data.data[:200], y[:200])
        scores.append(sic.score(data.data[200:], y[200:]))
    scores = np.array(scores)
    assert scores.mean() <= 3 * standard_error(scores)
    if early_stopping:
        assert scores.mean() >= -0.1


@pytest.mark.parametrize("critic", ["bilinear", "small"])
def test_permuted_responses_leave_no_held_out_difference(critic):
    """E f under the joint law less E f under the product is zero on new rows if y is noise.

    A correct program fails once in 10,000.
    """
    differences = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = make_sinexp(300, 20, random_state=seed)
        y = rng.permutation(data.target)
        sic = NeuralSIC(critic=critic, random_state=seed).fit(data.data[:200], y[:200])
        rows, own = data.data[200:], y[200:]
        product = np.mean([sic.witness(rows, rng.permutation(own)) for _ in range(20)])
        differences.append(sic.witness(rows, own).mean() - product)
    differences = np.array(differences)
    assert abs(differences.mean()) <= 4 * standard_error(differences)
