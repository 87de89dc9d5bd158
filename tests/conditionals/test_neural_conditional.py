"""The network's distributions: bins, calibration, what it has seen, and what it leaves alone."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.base import clone

from sobolev.conditionals import CategoricalConditional, ResidualConditional
from sobolev.conditionals.neural import (
    NeuralConditional,
    _Bins,
    _Check,
    _column_bins,
    _minibatches,
    _Networks,
    _positions,
    _train,
)
from sobolev.neural.arrays import map_arrays

torch = pytest.importorskip("torch")

SMALL = {"n_bins": 10, "hidden": 32, "n_layers": 2, "batch_size": 50}

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Blocked())
"""


def ring(n=400, seed=0):
    """Two columns on a circle, one of three values that follows the first, one on its own."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.standard_normal((n, 2))
    return np.column_stack([circle, np.digitize(circle[:, 0], [-0.5, 0.5]), rng.random(n)])


def pit(nodes, weights, x, rng):
    """The mass below the observed value, and a random share of its own node's.

    The node of a value is the nearest one: bins have no edges outside of the model.
    """
    own = np.argmin(np.abs(nodes - x[:, None]) + 1e9 * (weights == 0), axis=1)
    below = np.cumsum(weights, axis=1) - weights
    take = np.arange(x.size), own
    return below[take] + rng.random(x.size) * weights[take]


def likelihood(nodes, weights, x):
    own = np.argmin(np.abs(nodes - x[:, None]), axis=1)
    return np.log(weights[np.arange(x.size), own]).mean()


@pytest.fixture(scope="module")
def fitted():
    return NeuralConditional(**SMALL, epochs=40).fit(ring())


def test_grids_are_distributions(fitted):
    for rows, known in ((ring(), np.arange(400)), (ring(30, seed=1), None)):
        for j, width in enumerate([10, 10, 3, 10]):
            nodes, weights = fitted.grid(rows, j, known)
            assert nodes.shape == weights.shape == (len(rows), width)
            np.testing.assert_allclose(weights.sum(axis=1), 1)
            assert (weights > 0).all()
            assert (np.diff(nodes, axis=1) > 0).all()
            assert np.isin(nodes, ring()[:, j]).all()


def test_a_row_does_not_show_its_own_entry(fitted):
    rows = ring(20, seed=2)
    changed = rows.copy()
    changed[:, 1] += 3
    np.testing.assert_array_equal(fitted.grid(rows, 1), fitted.grid(changed, 1))
    assert not np.allclose(fitted.grid(rows, 0)[1], fitted.grid(changed, 0)[1], atol=0.01)


@pytest.mark.parametrize("fresh", [False, True])
def test_the_distribution_is_calibrated(fitted, fresh):
    """Uniform transforms: a correct model of 400 rows is beyond 0.11 once in 10,000.

    The distribution is estimated, from 400 rows as well, which doubles the variance.
    """
    rows, rng = ring(seed=1) if fresh else ring(), np.random.default_rng(0)
    for j in range(4):
        known = None if fresh else np.arange(len(rows))
        transform = pit(*fitted.grid(rows, j, known), rows[:, j], rng)
        assert kstest(transform, "uniform").statistic < 0.11 * np.sqrt(2)


def test_the_distribution_has_two_peaks_where_the_column_has(fitted):
    """On a circle the mean of a column given the other is zero: a line sees nothing."""
    rows = ring(400, seed=1)
    nodes, weights = fitted.grid(rows, 1)
    middle = np.abs(rows[:, 0]) < 0.3
    spread = np.sum(weights * nodes**2, axis=1) - np.sum(weights * nodes, axis=1) ** 2
    assert spread[middle].mean() > 2 * spread[np.abs(rows[:, 0]) > 0.9].mean()
    near_zero = np.sum(weights * (np.abs(nodes) < 0.5), axis=1)
    assert near_zero[middle].mean() < 0.1
    linear, _ = ResidualConditional().fit(ring()).grid(rows, 1)
    assert np.mean(np.abs(linear[middle]) < 0.5) > 0.2


def test_columns_of_few_values_have_their_probabilities(fitted):
    rows = ring(400, seed=1)
    nodes, weights = fitted.grid(rows, 2)
    np.testing.assert_array_equal(nodes, np.tile([0.0, 1.0, 2.0], (400, 1)))
    frequencies = np.bincount(rows[:, 2].astype(int)) / 400
    marginal = np.log(frequencies[rows[:, 2].astype(int)]).mean()
    assert likelihood(nodes, weights, rows[:, 2]) > marginal / 4
    categorical = CategoricalConditional().fit(ring())
    assert likelihood(nodes, weights, rows[:, 2]) > likelihood(
        *categorical.grid(rows, 2), rows[:, 2]
    )


def test_fitted_rows_are_predicted_by_networks_without_them():
    X = np.random.default_rng(0).standard_normal((60, 12))
    model = NeuralConditional(n_bins=4, hidden=16, epochs=5).fit(X)
    for k in range(5):
        rows = model.folds_ == k
        own = model.grid(X[rows], 0, np.flatnonzero(rows))[1]
        expected = model.networks_.probabilities(
            X[rows], np.zeros(rows.sum(), dtype=int), k, model.bins_
        )
        np.testing.assert_allclose(own, expected)
    # A new row is predicted by the last network.
    fresh = X[:1] + 1e-9
    expected = model.networks_.probabilities(fresh, np.array([0]), 5, model.bins_)
    np.testing.assert_allclose(model.grid(fresh, 0)[1], expected)


def test_minibatches_hold_the_rows_of_their_network():
    members = [np.arange(0, 80), np.arange(20, 100), np.arange(100)]
    rngs = np.random.default_rng(0).spawn(3)
    batches = list(_minibatches(members, 7, 30, rngs))
    assert [rows.shape for rows, _ in batches] == [(3, 30)] * 4
    rows = np.concatenate([rows for rows, _ in batches], axis=1)
    columns = np.concatenate([columns for _, columns in batches], axis=1)
    for e, own in enumerate(members):
        np.testing.assert_array_equal(np.unique(rows[e]), own)
        assert np.bincount(rows[e]).max() == 2
        assert (np.diff(rows[e, : own.size]) < 0).any()
        np.testing.assert_array_equal(np.unique(columns[e]), np.arange(7))


def alone(X, rows, start, e, check, spec, rngs):
    """Network e trained by itself, in the words of torch."""
    one = map_arrays(start, lambda array: torch.tensor(array[e]))
    for parameter in one.trained:
        parameter.requires_grad_(True)
    adam = torch.optim.Adam(one.trained, lr=spec.learning_rate)
    Z = torch.as_tensor((X - X[rows].mean(axis=0)) / X[rows].std(axis=0), dtype=torch.float32)
    for chosen, columns in _minibatches([rows], X.shape[1], spec.batch_size, rngs):
        j = torch.as_tensor(columns[0])
        z = Z[chosen[0]].clone()
        z[torch.arange(j.numel()), j] = 0
        for layer, W in enumerate(one.weights[:-1]):
            z = torch.nn.functional.batch_norm(z @ W, None, None, training=True)
            z = torch.relu(one.gains[layer][j] * z + one.shifts[layer][j])
        scores = z @ one.weights[-1] + one.bias + torch.as_tensor(check.bins.offsets[e])[j]
        target = torch.as_tensor(check.codes[e, chosen[0], columns[0]]).long()
        adam.zero_grad()
        torch.nn.functional.cross_entropy(scores, target).backward()
        adam.step()
    return [parameter.detach().numpy() for parameter in one.trained]


def test_networks_are_trained_as_if_alone():
    X, spec = ring(100), NeuralConditional(**SMALL, epochs=1)
    members = [np.arange(20, 100), np.arange(80)]
    folds = np.repeat([0, 0, 1, 1, 1], 20)
    rng = np.random.default_rng(0)
    bins, codes = _Bins.fit(X, members, spec.n_bins)
    check = _Check.draw(X, bins, codes, folds, rng)
    start = _Networks.start(X, members, spec, rng.spawn(2))
    best, likelihoods = _train(X, members, start, check, spec, np.random.default_rng(1).spawn(2))
    assert likelihoods[1] > likelihoods[0]  # so that the trained networks are kept
    for e, rows in enumerate(members):
        rngs = np.random.default_rng(1).spawn(2)[e : e + 1]
        for found, expected in zip(
            best.trained, alone(X, rows, start, e, check, spec, rngs), strict=True
        ):
            np.testing.assert_allclose(found[e], expected, atol=1e-5)


def test_outputs_are_normalised_by_the_running_moments():
    rng = np.random.default_rng(0)
    X, columns = rng.standard_normal((40, 3)), rng.integers(3, size=40)
    net = _Networks.start(X, [np.arange(40)], NeuralConditional(n_bins=5, hidden=4), [rng])
    net = map_arrays(net, lambda array: array + 0.3 * rng.random(array.shape).astype(np.float32))
    z = (X - net.center[0]) / net.scale[0]
    z[np.arange(40), columns] = 0
    for k in range(3):
        z = (z @ net.weights[k][0] - net.means[k][0]) / np.sqrt(net.variances[k][0] + 1e-5)
        z = np.maximum(z * net.gains[k][0, columns] + net.shifts[k][0, columns], 0)
    expected = z @ net.weights[3][0] + net.bias[0]
    found = net.outputs(net.inputs(X[None], columns[None]), columns[None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_row_moves_only_the_networks_that_see_it():
    X = ring(60)
    model = NeuralConditional(**SMALL, epochs=3)
    before = model.fit(X).networks_.center, model.bins_.nodes, model.folds_
    moved = X.copy()
    moved[5, 0] += 20
    model.fit(moved)
    own, other = before[2][5], (before[2][5] + 1) % 5
    np.testing.assert_array_equal(model.folds_, before[2])
    np.testing.assert_array_equal(model.networks_.center[own], before[0][own])
    np.testing.assert_array_equal(model.bins_.nodes[own, 0], before[1][own, 0])
    assert not np.array_equal(model.networks_.center[other], before[0][other])
    assert not np.array_equal(model.bins_.nodes[other, 0], before[1][other, 0])


def test_training_stops_at_the_best_epoch_and_noise_is_not_learnt():
    X = np.random.default_rng(0).standard_normal((60, 6))
    model = NeuralConditional(n_bins=8, hidden=64, epochs=200).fit(X)
    assert model.likelihoods_.size < 201  # PATIENCE
    assert model.likelihoods_[0] == pytest.approx(-np.log(8), abs=0.05)
    assert model.n_epochs_ == np.argmax(model.likelihoods_)
    # The networks kept are those of the best epoch: they give its likelihood again.
    again = NeuralConditional(n_bins=8, hidden=64, epochs=max(model.n_epochs_, 1)).fit(X)
    np.testing.assert_array_equal(again.grid(X, 2), model.grid(X, 2))


def test_the_start_is_the_frequencies():
    X = ring(200)
    model = NeuralConditional(**SMALL, epochs=1, learning_rate=1e-12).fit(X)
    weights = model.grid(X, 2)[1]
    np.testing.assert_allclose(weights, np.tile(np.bincount(X[:, 2].astype(int)) / 200, (200, 1)))


def test_bins_hold_equal_shares_and_ties_merge():
    x = np.sort(np.random.default_rng(0).standard_normal(103))
    tops, nodes, sizes = _column_bins(x, 10)
    assert sizes.sum() == 103
    assert sizes.min() >= 10
    assert sizes.max() <= 11
    np.testing.assert_array_equal(np.bincount(np.searchsorted(tops, x)), sizes)
    assert (nodes[:-1] <= tops).all()
    assert (nodes[1:] > tops).all()
    assert (_column_bins(np.array([0.0, 1.0, 1.0, 1.0]), 4)[2] == [1, 3]).all()
    tied = np.sort(np.where(x < 0.5, 0.0, x))
    tops, nodes, sizes = _column_bins(tied, 10)
    assert nodes[0] == 0
    assert sizes[0] >= (tied == 0).sum()
    assert nodes.size < 10


def test_positions_differ_and_follow_the_quantiles():
    np.testing.assert_array_equal(_positions(np.full(10, 0.1), 10), np.arange(10))
    np.testing.assert_array_equal(_positions(np.array([0.5, 0.5]), 100), [25, 75])
    for frequencies in ([0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.01, 0.97]):
        at = _positions(np.array(frequencies), 4)
        np.testing.assert_array_equal(at, np.arange(4))


def test_zero_inflated_constant_and_single_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.maximum(rng.standard_normal(150), 0), np.full(150, 3.0)])
    model = NeuralConditional(**SMALL, epochs=2).fit(X)
    nodes, weights = model.grid(X, 0)
    np.testing.assert_array_equal(nodes[:, 0], 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert weights[:, 0].mean() == pytest.approx(np.mean(X[:, 0] == 0), abs=0.1)
    np.testing.assert_array_equal(model.grid(X, 1), np.stack([X[:, 1:], np.ones((150, 1))]))
    alone = NeuralConditional(**SMALL, epochs=2).fit(X[:, :1])
    assert np.ptp(alone.grid(X[:1, :1] + np.arange(5.0)[:, None] + 9, 0)[1], axis=0).max() == 0


def test_distributions_of_different_widths_share_a_grid():
    """Networks of the folds may have different numbers of bins; the rest has no mass."""
    X = np.random.default_rng(0).standard_normal((80, 2))
    X[:, 0] = np.maximum(X[:, 0], -0.5)
    model = NeuralConditional(n_bins=30, hidden=8, n_layers=1, epochs=1).fit(X)
    assert len({model.bins_.positions(e, 0).size for e in range(5)}) > 1
    nodes, weights = model.grid(X, 0)
    assert np.isfinite(nodes).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (np.diff(nodes, axis=1) >= 0).all()


def test_global_generators_and_threads_are_left_alone():
    X = ring(60)
    state, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    first = NeuralConditional(**SMALL, epochs=2).fit(X).grid(X, 0)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(np.random.get_state()[1], numbers)  # noqa: NPY002
    assert torch.get_num_threads() == threads
    assert torch.is_grad_enabled()
    torch.rand(3)
    np.testing.assert_array_equal(NeuralConditional(**SMALL, epochs=2).fit(X).grid(X, 0), first)
    other = NeuralConditional(**SMALL, epochs=2, random_state=1).fit(X).grid(X, 0)
    assert not np.array_equal(other[1], first[1])


def test_pickle_and_clone(fitted):
    copy = pickle.loads(pickle.dumps(fitted))
    rows = np.vstack([ring()[:5], ring(5, seed=3)])
    np.testing.assert_array_equal(copy.grid(rows, 0), fitted.grid(rows, 0))
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert not hasattr(fresh, "networks_")


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    X = ring(80)
    model = NeuralConditional(**SMALL, epochs=3)
    expected = model.fit(X).grid(X, 1)[1]
    found = model.fit(X * scale + 5 * scale).grid(X * scale + 5 * scale, 1)[1]
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n_bins": 0}, ValueError, "n_bins=0"),
        ({"hidden": 2.5}, TypeError, "hidden"),
        ({"n_layers": 0}, ValueError, "n_layers=0"),
        ({"epochs": 0}, ValueError, "epochs=0"),
        ({"batch_size": 0}, ValueError, "batch_size=0"),
        ({"learning_rate": 0}, ValueError, "learning_rate=0"),
        ({"n_folds": 1}, ValueError, "n_folds=1 leaves no rows"),
    ],
)
def test_bad_parameters_are_named(given, error, message):
    with pytest.raises(error, match=message):
        NeuralConditional(**given).fit(ring(20))


def test_few_rows():
    with pytest.raises(ValueError, match="at least 2 rows"):
        NeuralConditional().fit(ring(1))
    nodes, weights = NeuralConditional(**SMALL, epochs=1).fit(ring(3)).grid(ring(3), 0)
    assert np.isfinite(nodes).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_without_torch_it_says_what_to_install():
    code = """
import numpy as np
from sobolev.conditionals.neural import NeuralConditional
assert "torch" not in sys.modules
try:
    NeuralConditional().fit(np.eye(4))
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "PyTorch" in done.stdout
    assert done.stdout.strip().endswith('pip install "sobolev[neural]"')
