"""Members, chunks, rounds and evaluation: what a result may depend on, and what it is."""

import threading
from dataclasses import replace

import joblib
import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info

from sobolev._sample import Sample
from sobolev.criterion import normalized_importances, parse_groups
from sobolev.neural import BigCritic, BilinearCritic, DenseNetwork, SmallCritic, fitting
from sobolev.neural.arrays import to_numpy
from sobolev.neural.fitting import (
    CHUNK_MEMBERS,
    Design,
    Member,
    Recipe,
    evaluate,
    fit_members,
    member_inputs,
    network_values,
)
from sobolev.neural.objectives import CrossEntropy, ExactSIC, PairedSIC, SquaredError
from sobolev.neural.optimizer import Optimizer
from sobolev.neural.torch_backend import Wrapped

N, D = 50, 4


def make_sample(weighted=False, k=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    psi = np.column_stack([X[:, 0] + X[:, 1] ** 2, X[:, 0] * X[:, 1], X[:, 2]])[:, :k]
    psi = psi + 0.3 * rng.standard_normal(psi.shape)
    p = rng.dirichlet(4 * np.ones(N)) if weighted else np.full(N, 1 / N)
    X, psi = X - p @ X, psi - p @ psi
    return Sample(X / np.sqrt(p @ X**2), psi / np.sqrt(p @ psi**2), p)


def make_recipe(max_iter=12, closed_form=True, rounds=1, **options):
    gradient = "closed" if closed_form else "autograd"
    optimizer = Optimizer(gradient=gradient, learning_rate=3e-3, max_iter=max_iter, rounds=rounds)
    return Recipe(optimizer, **options)


def make_members(design, seeds, size=20, lam=0.05, held_out=None):
    rows = np.arange(N) if held_out is None else np.setdiff1d(np.arange(N), held_out)
    return [
        Member(design, size, lam * (1 + seed), np.random.default_rng(seed), rows, held_out)
        for seed in seeds
    ]


def results(ensembles):
    """Everything that a member's training leaves, one list for each member."""
    return [
        [
            *(p[e] for p in ensemble.network.parameters),
            ensemble.eta[e],
            ensemble.history.losses[:, e],
            ensemble.moments.difference[e],
            ensemble.moments.second[e],
            ensemble.moments.squared[e],
        ]
        for ensemble in ensembles
        for e in range(ensemble.eta.shape[0])
    ]


def assert_same_results(one, other, rtol=0.0, atol=0.0):
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


DESIGNS = {
    "small": Design(SmallCritic((8, 6), dropout=0.2), PairedSIC(1.0)),
    "big": Design(BigCritic((6,), (5,), (6,), dropout=0.2), PairedSIC(1.0, 0.5)),
    "bilinear": Design(BilinearCritic((8, 6), (4,), dropout=0.2), PairedSIC(1.0, 1.0)),
    "exact": Design(BilinearCritic((8, 6), dropout=0.2), ExactSIC(1.0), 1),
    "regression": Design(DenseNetwork((8, 6), dropout=0.2), SquaredError(), 1),
}


@pytest.fixture(params=DESIGNS)
def design(request):
    return DESIGNS[request.param]


# What a member depends on


@pytest.mark.parametrize("weighted", [False, True])
def test_members_do_not_depend_on_the_number_of_jobs(monkeypatch, design, weighted):
    monkeypatch.setattr(fitting, "CHUNK_MEMBERS", 2)
    sample, recipe = make_sample(weighted), make_recipe(rounds=2)
    one, three = (
        fit_members(sample, make_members(design, range(5)), recipe, n_jobs=n) for n in (1, 3)
    )
    assert_same_results(results(one), results(three))


@pytest.mark.parametrize("stopping", [False, True])
def test_members_do_not_depend_on_which_others_are_trained(design, stopping):
    sample, recipe = make_sample(), make_recipe(rounds=3)
    held_out = None
    if stopping:  # without patience nobody waits for another
        held_out, recipe = np.arange(0, N, 5), replace(recipe, every=4, patience=100)
    together = results(
        fit_members(sample, make_members(design, range(3), held_out=held_out), recipe)
    )
    for seed in range(3):
        members = make_members(design, [seed], held_out=held_out)
        alone = results(fit_members(sample, members, recipe))
        # Products of one member and of three round differently in single precision.
        assert_same_results(alone, [together[seed]], rtol=1e-3, atol=1e-4)


def test_members_trained_by_autograd_do_not_depend_on_the_others():
    sample, recipe = make_sample(), make_recipe(rounds=3, closed_form=False)
    together = results(fit_members(sample, make_members(DESIGNS["small"], range(2)), recipe))
    alone = results(fit_members(sample, make_members(DESIGNS["small"], [1]), recipe))
    assert_same_results(alone, together[1:], rtol=1e-3, atol=1e-4)


def test_autograd_trains_members_as_the_closed_form_does(design):
    sample = make_sample()
    closed, double = (
        results(fit_members(sample, make_members(design, range(2)), make_recipe(closed_form=c)))
        for c in (True, False)
    )
    assert_same_results(closed, double, rtol=1e-3, atol=1e-4)


def test_the_same_seeds_give_the_same_and_other_seeds_other_members(design):
    sample, recipe = make_sample(), make_recipe()
    first, again = (fit_members(sample, make_members(design, [3]), recipe) for _ in range(2))
    assert_same_results(results(first), results(again))
    other = fit_members(sample, make_members(design, [4], lam=0.04), recipe)
    assert np.abs(first[0].eta - other[0].eta).max() > 1e-4


def test_chunks_keep_the_order_and_hold_members_of_one_design():
    small, exact = DESIGNS["small"], DESIGNS["exact"]
    twin = Design(small.spec, small.objective)
    module = Design(lambda d, k: None, PairedSIC(1.0))
    members = [
        *make_members(small, range(CHUNK_MEMBERS + 3)),
        *make_members(exact, range(2)),
        *make_members(twin, range(1)),
        *make_members(small, range(1)),
        *make_members(module, range(2)),
    ]
    chunks = fitting._chunks(members)
    assert [len(chunk) for chunk in chunks] == [CHUNK_MEMBERS, 3, 2, 1, 1, 1, 1]
    assert [m for chunk in chunks for m in chunk] == members
    assert all(m.design is chunk[0].design for chunk in chunks for m in chunk)


def test_chunks_do_not_change_members(monkeypatch):
    sample, design = make_sample(), DESIGNS["small"]
    whole = results(fit_members(sample, make_members(design, range(4)), make_recipe()))
    monkeypatch.setattr(fitting, "CHUNK_MEMBERS", 3)
    split = fit_members(sample, make_members(design, range(4)), make_recipe())
    assert [e.eta.shape[0] for e in split] == [3, 1]
    assert_same_results(results(split), whole, rtol=1e-3, atol=1e-4)


# What is left alone


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "autograd"])
def test_global_states_and_threads_are_restored(global_states, closed):
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        before, pools = global_states(), [p["num_threads"] for p in threadpool_info()]
        fit_members(
            make_sample(), make_members(DESIGNS["small"], [0]), make_recipe(closed_form=closed)
        )
        assert torch.get_num_threads() == threads + 1
        assert [p["num_threads"] for p in threadpool_info()] == pools
        assert global_states() == before
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)


def test_threads_are_restored_after_an_error():
    threads = torch.get_num_threads()
    broken = Design(lambda d, k: 7, PairedSIC(1.0))
    torch.set_num_threads(threads + 1)
    try:
        with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
            fit_members(make_sample(), make_members(broken, [0]), make_recipe())
        assert torch.get_num_threads() == threads + 1
    finally:
        torch.set_num_threads(threads)


# Evaluation on all rows


def brute_force(network, sample, objective, seed, e):
    """Moments of one member by loops over rows, with derivatives by automatic differentiation."""
    n = len(sample.p)
    draws = np.random.default_rng(seed).choice(n, (fitting.EVALUATION_DRAWS, n), p=sample.p)
    alone = network.replace([torch.tensor(p[[e]]) for p in network.parameters])
    difference, second, squared = 0.0, 0.0, np.zeros(sample.X.shape[1])
    joint = getattr(objective, "joint", 0.0)
    for i, w in enumerate(sample.p):
        x = torch.tensor(sample.X[i])[None, None, None].requires_grad_(True)
        if network.pairs:
            shares = [joint, *[(1 - joint) / len(draws)] * len(draws)]
            signs = [1, *[-1 / len(draws)] * len(draws)]
            ys = [torch.tensor(sample.psi[j])[None, None, None] for j in (i, *draws[:, i])]
            values = [alone.values(x, y)[0, 0, 0] for y in ys]
        else:
            values = list(alone.values(x, None)[0, :, 0])
            shares, signs = [1.0] * len(values), sample.psi[i]
        for value, share, sign in zip(values, shares, signs, strict=True):
            (g,) = torch.autograd.grad(value, x, retain_graph=True)
            difference += w * sign * value.item()
            second += w * share * value.item() ** 2
            squared += w * share * g.numpy()[0, 0, 0] ** 2
    return difference, second, squared


@pytest.mark.parametrize("size", [1, 700, 2**23])
def test_evaluation_equals_brute_force(monkeypatch, design, size):
    sample = make_sample(weighted=True)
    rngs = [np.random.default_rng(seed) for seed in range(2)]
    network = design.build(rngs, D, 1).cast(float)
    monkeypatch.setattr(fitting, "EVALUATION_SIZE", size)
    found = evaluate(network, sample, design.objective, seed=11)
    for e in range(2):
        difference, second, squared = brute_force(network, sample, design.objective, 11, e)
        assert found.difference[e] == pytest.approx(difference, rel=1e-8)
        assert found.second[e] == pytest.approx(second, rel=1e-8)
        np.testing.assert_allclose(found.squared[e], squared, rtol=1e-8)


@pytest.mark.parametrize("size", [1, 300, 2**23])
def test_values_do_not_depend_on_how_rows_are_split(monkeypatch, design, size):
    sample = make_sample()
    network = design.build([np.random.default_rng(s) for s in range(2)], D, 1).cast(float)
    y = np.stack([sample.psi, sample.psi[::-1]]) if network.pairs else None
    values, g = network.values_and_gradients(*member_inputs(network, sample.X, y))
    monkeypatch.setattr(fitting, "EVALUATION_SIZE", size)
    np.testing.assert_allclose(network_values(network, sample.X, y), values, atol=1e-13)
    step = 1e-6 * np.eye(D)[2]
    up, down = (network_values(network, sample.X + s, y) for s in (step, -step))
    np.testing.assert_allclose(g[..., 2], (up - down) / 2e-6, atol=1e-7)


def test_the_ensemble_holds_the_evaluation_and_its_importances(design):
    sample, recipe = make_sample(weighted=True), make_recipe(rounds=2, seed=9)
    (ensemble,) = fit_members(sample, make_members(design, range(2)), recipe)
    found = evaluate(ensemble.network, sample, design.objective, 9)
    np.testing.assert_array_equal(found.squared, ensemble.moments.squared)
    np.testing.assert_array_equal(found.difference, ensemble.moments.difference)
    for eta, squared in zip(ensemble.eta, found.squared, strict=True):
        np.testing.assert_allclose(eta, normalized_importances(squared, 1e-12), rtol=1e-12)
    assert all(p.dtype == np.float64 for p in ensemble.network.parameters)
    assert ensemble.network.n_members == 2


def test_groups_share_the_importance_of_the_sums_of_their_features():
    groups = parse_groups([[0, 1], [1, 2]], D)
    recipe = make_recipe(groups=groups)
    (ensemble,) = fit_members(make_sample(), make_members(DESIGNS["exact"], [0]), recipe)
    s = ensemble.moments.squared[0]
    expected = normalized_importances(np.array([s[0] + s[1], s[1] + s[2], s[3]]), 1e-12)
    np.testing.assert_allclose(ensemble.eta[0], expected, rtol=1e-12)


# Rounds and warm starts


def test_the_metric_has_mean_square_one_and_the_order_of_the_importances():
    squared = np.array([[4.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    metric = fitting._metric(squared)
    np.testing.assert_allclose((metric**2).mean(1), 1, rtol=1e-6)
    floor = fitting.METRIC_FLOOR
    np.testing.assert_allclose(
        metric[0] / metric[0, 0], np.array([1 + floor, 0.5 + floor, floor]) / (1 + floor), rtol=1e-6
    )
    np.testing.assert_allclose(metric[1], 1, rtol=1e-6)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "autograd"])
def test_a_warm_start_without_learning_changes_nothing(design, closed):
    sample, recipe = make_sample(), make_recipe(rounds=2, closed_form=closed)
    first = fit_members(sample, make_members(design, range(2)), recipe)
    before = [p.copy() for p in first[0].network.parameters]
    still = replace(recipe, optimizer=replace(recipe.optimizer, learning_rate=1e-30, max_iter=3))
    second = fit_members(sample, make_members(design, range(2)), still, start=first)
    for p, q, kept in zip(
        first[0].network.parameters, second[0].network.parameters, before, strict=True
    ):
        np.testing.assert_array_equal(p, kept)  # the earlier fit is not touched
        np.testing.assert_allclose(q, kept, rtol=1e-6, atol=1e-7)  # rounded to single precision
    assert second[0].history.losses.shape[0] == 3


def test_a_warm_start_of_another_shape_is_ignored():
    sample, recipe = make_sample(), make_recipe()
    wide = Design(SmallCritic((9,)), PairedSIC(1.0))
    start = fit_members(sample, make_members(wide, [0]), recipe)
    cold, warm = (
        fit_members(sample, make_members(DESIGNS["small"], [0]), recipe, start=one)
        for one in (None, start)
    )
    assert_same_results(results(cold), results(warm))


def test_rows_of_equal_weight_are_shuffled_and_others_drawn():
    assert fitting._rows(make_sample(), np.arange(10)).p is None
    rows = fitting._rows(make_sample(weighted=True), np.arange(10))
    assert rows.p.sum() == pytest.approx(1)


# A module of a user


class Plain(torch.nn.Module):
    """The network of a one-member perceptron as an ordinary module."""

    def __init__(self, net, dropout=0.0):
        super().__init__()
        first = net.Wx[0] if net.Wy is None else np.vstack([net.Wx[0], net.Wy[0]])
        biases = [net.bias, *net.hidden.biases, net.offset] if net.bias is not None else None
        weights = [first, *(W[0] for W in net.hidden.weights), net.V[0]]
        self.layers = torch.nn.ModuleList()
        for level, W in enumerate(weights):
            linear = torch.nn.Linear(*W.shape, bias=biases is not None)
            linear.weight.data = torch.tensor(W.T).contiguous()
            if biases is not None:
                linear.bias.data = torch.tensor(biases[level][0, 0])
            self.layers.append(linear)
        self.slope, self.dropout = net.hidden.slope, torch.nn.Dropout(dropout)

    def forward(self, x, y=None):
        z = x if y is None else torch.cat([x, y], 1)
        for layer in self.layers[:-1]:
            z = self.dropout(torch.nn.functional.leaky_relu(layer(z), self.slope))
        return self.layers[-1](z)


MODULES = {
    "critic": Design(SmallCritic((8, 6), dropout=0.0, slope=0.1), PairedSIC(1.0, 0.5)),
    "critic, bias": Design(SmallCritic((8,), dropout=0.0, bias=True), PairedSIC(1.0)),
    "regression": Design(DenseNetwork((8, 6), dropout=0.0), SquaredError(), 1),
    "classes": Design(DenseNetwork((8, 6), dropout=0.0), CrossEntropy(), 3),
}


def as_module(design, seed, dropout=0.0):
    """The same design as a user's callable, with the weights that the seed gives to the first."""

    def factory(d, k):
        return Plain(design.build([np.random.default_rng(seed)], d, k), dropout)

    return Design(factory, design.objective, design.outputs)


# Responses held out for a critic are drawn after the weights, of which a module draws none.
@pytest.mark.parametrize(
    ("name", "stopping"),
    [*((name, False) for name in MODULES), ("regression", True), ("classes", True)],
)
def test_a_module_trains_as_the_same_network_in_closed_form(name, stopping):
    design, sample, recipe = MODULES[name], make_sample(weighted=True), make_recipe()
    if name == "classes":
        labels = np.digitize(sample.psi[:, 0], [-0.5, 0.5])
        sample = Sample(sample.X, np.eye(3)[labels], sample.p)
    held_out = np.arange(0, N, 5) if stopping else None
    if stopping:
        recipe = replace(recipe, every=2, patience=3)
    found = [
        fit_members(sample, make_members(one, [7], held_out=held_out), recipe)[0]
        for one in (design, as_module(design, 7))
    ]
    closed, module = found
    assert isinstance(module.network, Wrapped)
    start = Plain(design.build([np.random.default_rng(7)], D, sample.psi.shape[1])).state_dict()
    expected = Plain(closed.network.cast(np.float32)).state_dict()
    for key, value in module.network.module.state_dict().items():
        np.testing.assert_allclose(value, expected[key], atol=1e-4)
        assert (value - start[key]).abs().max() > 2e-3
    np.testing.assert_allclose(module.history.losses, closed.history.losses, atol=1e-4)
    np.testing.assert_allclose(module.eta, closed.eta, atol=1e-3)
    np.testing.assert_allclose(module.moments.second, closed.moments.second, rtol=1e-3)
    if stopping:
        np.testing.assert_array_equal(module.history.best, closed.history.best)


def test_rounds_of_a_module_train_a_new_module_in_the_metric():
    design = as_module(MODULES["critic"], 7)
    (ensemble,) = fit_members(make_sample(), make_members(design, [7]), make_recipe(rounds=2))
    metric = ensemble.network.metric
    np.testing.assert_allclose((metric**2).mean(), 1, rtol=1e-5)
    x = np.random.default_rng(0).standard_normal((3, D)).astype(np.float32)
    y = np.ones((1, 3, 1), np.float32)
    rows = torch.tensor(x * metric), torch.tensor(y[0])
    expected = ensemble.network.module(*rows)[:, 0].detach().numpy()
    np.testing.assert_allclose(
        network_values(ensemble.network, x, y)[0, 0], expected, rtol=1e-5, atol=1e-6
    )
    values, g = ensemble.network.values_and_gradients(*member_inputs(ensemble.network, x, y))
    moved = x + 1e-2 * np.eye(D, dtype=np.float32)[1]
    change = network_values(ensemble.network, moved, y) - values
    np.testing.assert_allclose(change, 1e-2 * g[..., 1], atol=1e-4 + 0.3 * np.abs(change).max())


def test_a_module_with_dropout_leaves_the_global_generators_alone(global_states):
    before = global_states()
    design, sample = as_module(MODULES["critic"], 7, dropout=0.3), make_sample()
    first, again = (
        fit_members(sample, make_members(design, [7]), make_recipe())[0] for _ in range(2)
    )
    assert global_states() == before
    np.testing.assert_array_equal(first.history.losses, again.history.losses)
    dry = fit_members(sample, make_members(as_module(MODULES["critic"], 7), [7]), make_recipe())[0]
    assert np.abs(first.history.losses - dry.history.losses).max() > 1e-4


def test_progress_is_heard_under_any_setting_of_joblib():
    design, told = DESIGNS["small"], []
    lock = threading.Lock()  # no process could get it

    def report(*what):
        with lock:
            told.append(what)

    with joblib.parallel_config(backend="loky"):
        members = make_members(design, range(CHUNK_MEMBERS + 1))
        fit_members(make_sample(), members, make_recipe(), n_jobs=2, report=report)
    assert told


# A race: it may pass by chance.
def test_modules_with_dropout_do_not_depend_on_the_number_of_jobs(global_states):
    before, state = global_states(), torch.random.get_rng_state()
    designs = [as_module(MODULES["critic"], seed, dropout=0.3) for seed in range(4)]

    def losses(n_jobs):
        members = [m for s, one in enumerate(designs) for m in make_members(one, [s])]
        found = fit_members(make_sample(), members, make_recipe(40), n_jobs=n_jobs)
        return np.stack([ensemble.history.losses for ensemble in found])

    try:
        np.testing.assert_array_equal(losses(2), losses(1))
        assert global_states() == before
    finally:
        torch.random.set_rng_state(state)


class Shared(torch.nn.Module):
    """Two parameters whose gradients are one array, or one whose gradient is one number."""

    def __init__(self, expanded):
        super().__init__()
        self.inner = torch.nn.Linear(D + 1, 4)
        self.a, self.b = (torch.nn.Parameter(torch.zeros(4)) for _ in range(2))
        self.c = torch.nn.Parameter(torch.zeros(3)) if expanded else None

    def forward(self, x, y):
        z = torch.relu(self.inner(torch.cat([x, y], 1)) + (self.a + self.b))
        return z.sum(1) if self.c is None else z.sum(1) + self.c.sum()


@pytest.mark.parametrize("expanded", [False, True])
def test_parameters_that_enter_alike_move_alike(expanded):
    design = Design(lambda d, k: Shared(expanded), PairedSIC(1.0))
    (ensemble,) = fit_members(make_sample(), make_members(design, [7]), make_recipe())
    module = ensemble.network.module
    np.testing.assert_allclose(to_numpy(module.a), to_numpy(module.b), rtol=1e-6)
