"""The closed-form gradients against automatic and finite differences, and the networks' algebra.

The finite differences are of a loss written out here, row by row, with the derivative in x carried
forward through the layers: it shares no code with the package.
"""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from sobolev.neural import BigCritic, BilinearCritic, DenseNetwork, SmallCritic
from sobolev.neural.arrays import Keep, activation, namespace, to_device, to_numpy
from sobolev.neural.importances import GroupIndex
from sobolev.neural.layers import Stack, matmul, outer
from sobolev.neural.networks import Branched, Product
from sobolev.neural.objectives import CrossEntropy, ExactSIC, PairedSIC, SquaredError
from sobolev.neural.torch_backend import Wrapped, double_backpropagation
from sobolev.neural.training import closed_form

CPU = torch.device("cpu")

PAIRED = {
    "small, one layer": SmallCritic((6,), dropout=0.2),
    "small, two layers": SmallCritic((6, 5), dropout=0.3),
    "small, three layers": SmallCritic((6, 5, 4), dropout=0.0),
    "small, narrow": SmallCritic((1, 4), dropout=0.0, slope=0.25),
    "small, slope": SmallCritic((6, 5), dropout=0.2, slope=0.125),
    "small, bias": SmallCritic((6, 5), dropout=0.2, bias=True),
    "small, linear": SmallCritic((4, 3), dropout=0.0, slope=1.0),
    "big": BigCritic((6, 5), (4, 3), (5, 4), dropout=0.2, slope=1 / 64),
    "big, without bias": BigCritic((6,), (4,), (5,), slope=0.0, bias=False),
    "bilinear": BilinearCritic((6, 5), (4, 3), dropout=0.2, slope=0.125),
    "bilinear, bias": BilinearCritic((6,), (4,), dropout=0.2, bias=True),
    "bilinear, fixed psi": BilinearCritic((6, 5), dropout=0.3),
}
MEASURES = {"product": 0.0, "mixture": 0.5, "joint": 1.0}
SPECS = {
    "dense": DenseNetwork((6, 5), dropout=0.2),
    "dense, one layer": DenseNetwork((6,), dropout=0.0, slope=0.25),
    "bilinear": BilinearCritic((6, 5), dropout=0.3),
}
OBJECTIVES = {
    "exact": ExactSIC(0.7),
    "squared": SquaredError(),
    "entropy": CrossEntropy(),
}
OVERLAPPING = {"group": np.array([0, 0, 1, 1, 2, 2]), "feature": np.array([0, 1, 1, 2, 3, 4])}

CASES = {
    f"{name}, {measure}": (spec, PairedSIC(0.7, joint), None)
    for name, spec in PAIRED.items()
    for measure, joint in MEASURES.items()
} | {
    f"{name}, {objective}, {outputs} outputs": (spec, OBJECTIVES[objective], outputs)
    for name, spec in SPECS.items()
    for objective in OBJECTIVES
    for outputs in (1, 3)
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def assert_gradients_close(found, expected, tol):
    size = max(np.abs(g).max() for g in expected[2])
    assert size > 0
    np.testing.assert_allclose(found[0], expected[0], rtol=10 * tol)
    np.testing.assert_allclose(found[1], expected[1], rtol=10 * tol, atol=tol)
    for one, other in zip(found[2], expected[2], strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=tol * size)


# The closed form against automatic differentiation


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_closed_form_equals_double_backpropagation(case, make_problem, device, dtype):
    closed = make_problem(*case, dtype=dtype, device=device).gradients(closed_form)
    double = make_problem(*case, dtype=dtype, device=CPU, autograd=True)
    tol = 1e-5 if dtype == np.float32 else 1e-9
    assert_gradients_close(closed, double.gradients(double_backpropagation), tol)
    assert all(g.dtype == dtype for g in closed[2])


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
@pytest.mark.parametrize("name", ["small, two layers, mixture", "dense, exact, 3 outputs"])
def test_closed_form_holds_without_a_metric_and_for_one_response(make_problem, name, device):
    spec, objective, outputs = CASES[name]
    options = {"metric": False, "k": 1}
    closed = make_problem(spec, objective, outputs, device=device, **options)
    double = make_problem(spec, objective, outputs, device=CPU, autograd=True, **options)
    expected = double.gradients(double_backpropagation)
    assert_gradients_close(closed.gradients(closed_form), expected, 1e-9)


# The closed form against finite differences of the loss written out


def row_layer(z, J, W, bias, slope, keep):
    """Values of a layer at one row, and their derivative in x, (d, width)."""
    pre = z @ W + bias
    mask = np.where(pre > 0, 1.0, slope) * keep
    return pre * mask, (J @ W) * mask


def row_stack(stack, e, z, J, keeps):
    for level, W in enumerate(stack.weights):
        bias = stack.biases[level][e, 0] if stack.biases else 0.0
        z, J = row_layer(z, J, W[e], bias, stack.slope, keeps.pop(0))
    return z, J


def row_perceptron(net, e, z, J, y, keeps):
    W = net.Wx[e]
    if net.Wy is not None:
        W, z = np.vstack([W, net.Wy[e]]), np.concatenate([z, y])
        J = np.hstack([J, np.zeros((len(J), len(y)))])
    bias = 0.0 if net.bias is None else net.bias[e, 0]
    z, J = row_layer(z, J, W, bias, net.hidden.slope, keeps.pop(0))
    z, J = row_stack(net.hidden, e, z, J, keeps)
    return z @ net.V[e] + (0.0 if net.offset is None else net.offset[e, 0]), J @ net.V[e]


def row_network(net, e, x, J, y, keeps):
    """Outputs at one row, (o,), and their derivative, (d, o)."""
    if isinstance(net, Branched):
        x, J = row_stack(net.branch_x, e, x, J, keeps)
        y, _ = row_stack(net.branch_y, e, y, np.zeros((1, len(y))), keeps)
        net = net.joint
    if isinstance(net, Product):
        right = net.V[e] @ y
        return np.array([x @ right]), (J @ right)[:, None]
    return row_perceptron(net, e, x, J, y, keeps)


def row_keeps(batch, e, copy, n):
    masks = []
    for keep in batch.keeps:
        if keep is None:
            masks.append(1.0)
        else:
            shared = keep.kept.shape[1] == 1
            masks.append(keep.kept[e, 0 if shared else copy, n] * keep.factor)
    return masks


def row_loss(objective, f, y):
    """The loss of one row: f are the values of its copies, or its outputs."""
    if isinstance(objective, PairedSIC):
        share = np.array([objective.joint, 1 - objective.joint])
        return f[1] - f[0] + objective.rho / 2 * share @ f**2
    if isinstance(objective, ExactSIC):
        return -f @ y + objective.rho / 2 * f @ f
    if isinstance(objective, SquaredError):
        return (f - y) @ (f - y)
    return np.log(np.exp(f).sum()) - f @ y


def written_out(problem, network, e):
    """The loss of member e, and its mean squared derivatives."""
    table, batch, objective = problem.table, problem.batch, problem.objective
    metric = np.ones(table.X.shape[1]) if table.metric is None else table.metric[e]
    paired = isinstance(objective, PairedSIC)
    loss, squared = 0.0, np.zeros_like(metric)
    for n in range(problem.sizes[e]):
        i, responses = batch.rows[e, n], [batch.rows[e, n]]
        if paired:
            responses.append(batch.permuted[e, n])
        each = [
            row_network(
                network,
                e,
                metric * table.X[i],
                np.diag(metric),
                table.Y[r],
                row_keeps(batch, e, copy, n),
            )
            for copy, r in enumerate(responses)
        ]
        f = np.concatenate([values for values, _ in each])
        J = np.hstack([derivative for _, derivative in each])
        share = np.array([objective.joint, 1 - objective.joint]) if paired else 1.0
        loss += row_loss(objective, f, table.Y[i]) / problem.sizes[e]
        squared += (share * J**2).sum(1) / problem.sizes[e]
    eta, groups, grouped = problem.importances.eta[e], problem.importances.groups, squared
    if groups is not None:
        pairs = zip(groups.group, groups.feature, strict=True)
        grouped = np.zeros(groups.n_groups)
        for k, j in pairs:
            grouped[k] += squared[j]
    penalty = ((grouped + problem.epsilon) / eta).sum()
    return loss + problem.lam[e] / 2 * penalty, squared


def check_against_written_out(problem):
    loss, squared, gradient = problem.gradients(closed_form)
    network, n_members = problem.network, len(problem.sizes)
    rng = np.random.default_rng(3)
    for e in range(n_members):
        value, squares = written_out(problem, network, e)
        assert loss[e] == pytest.approx(value, rel=1e-6)  # weights are rounded to float32
        np.testing.assert_allclose(squared[e], squares, rtol=1e-6)
    step = 1e-6
    for _ in range(3):
        direction = [rng.standard_normal(p.shape) for p in network.parameters]
        up, down = (
            network.replace([p + s * d for p, d in zip(network.parameters, direction, strict=True)])
            for s in (step, -step)
        )
        for e in range(n_members):
            slope = written_out(problem, up, e)[0] - written_out(problem, down, e)[0]
            expected = sum((g[e] * d[e]).sum() for g, d in zip(gradient, direction, strict=True))
            size = np.sqrt(sum((g[e] ** 2).sum() for g in gradient))
            assert slope / (2 * step) == pytest.approx(expected, abs=1e-6 * size)


def test_closed_form_equals_finite_differences_of_the_loss_written_out(case, make_problem):
    check_against_written_out(make_problem(*case, members=(0, 2)))


@pytest.mark.parametrize("name", ["small, two layers, mixture", "dense, squared, 3 outputs"])
def test_overlapping_groups_are_penalised_by_the_sum_of_their_features(make_problem, name):
    groups = GroupIndex(**OVERLAPPING, n_groups=3)
    check_against_written_out(make_problem(*CASES[name], members=(0, 2), groups=groups))


@pytest.mark.parametrize("name", ["small, bias", "big", "bilinear", "bilinear, fixed psi"])
def test_autograd_follows_values_to_the_second_order(make_problem, name):
    # Seeds are fixed: no activation is within the steps of gradcheck of its kink.
    problem = make_problem(PAIRED[name], PairedSIC(1.0), members=(0, 2), device=CPU)
    rows, keeps = problem.batch.rows[:, :3], problem.batch.keeps
    keeps = [None if k is None else Keep(k.kept[:, :, :3], k.factor) for k in keeps]
    x, y = problem.table.x(rows), problem.table.y(rows, problem.batch.permuted[:, :3])

    def values(x, y, *parameters):
        return problem.network.replace(list(parameters)).values(x, y, keeps)

    inputs = [t.clone().requires_grad_(True) for t in (x, y, *problem.network.parameters)]
    assert torch.autograd.gradcheck(values, inputs)
    assert torch.autograd.gradgradcheck(values, inputs)


# Independent networks and identities


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("widths", "slope"), [((6,), 0.0), ((6, 5), 0.2), ((6, 5, 4), 0.01)])
def test_small_critic_equals_a_sequential_module_of_the_same_weights(
    make_problem, widths, slope, bias
):
    spec = SmallCritic(widths, slope=slope, bias=bias)
    problem = make_problem(spec, PairedSIC(1.0), dtype=np.float32)
    net, batch, table = problem.network, problem.batch, problem.table
    x, y = table.x(batch.rows), table.y(batch.rows, batch.permuted)
    values = net.values(x, y)
    biases = [net.bias, *net.hidden.biases, net.offset]
    for e in range(3):
        weights = [np.vstack([net.Wx[e], net.Wy[e]]), *(W[e] for W in net.hidden.weights), net.V[e]]
        layers = []
        for level, W in enumerate(weights):
            linear = torch.nn.Linear(*W.shape, bias=bias)
            linear.weight.data = torch.tensor(W.T)
            if bias:
                linear.bias.data = torch.tensor(biases[level][e, 0])
            layers += [linear, torch.nn.LeakyReLU(slope)]
        module = torch.nn.Sequential(*layers[:-1])
        for copy in range(2):
            rows = torch.tensor(np.hstack([x[e, 0], y[e, copy]]))
            expected = module(rows)[:, 0].detach().numpy()
            np.testing.assert_allclose(values[e, copy], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["small, one layer", "small, two layers", "small, slope", "big, without bias"]
)
def test_critics_without_bias_are_homogeneous(make_problem, name):
    problem = make_problem(PAIRED[name], PairedSIC(1.0), dtype=np.float32)
    batch, table = problem.batch, problem.table
    x, y = table.x(batch.rows), table.y(batch.rows, batch.permuted)
    trace = problem.network.trace(x, y, batch.keeps)
    dx = trace.input_gradient(slice(None))
    dy = trace.response_gradient()
    euler = (dx * x).sum(-1) + (dy * y).sum(-1)
    np.testing.assert_allclose(trace.values, euler, atol=1e-5 * np.abs(trace.values).max())
    assert np.abs(trace.values).max() > 1e-3


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_members_of_an_ensemble_equal_the_same_members_alone(case, make_problem, device):
    spec, *rest = case
    spec = clone(spec).set_params(dropout=0.0)
    loss, squared, gradient = make_problem(spec, *rest, device=device).gradients(closed_form)
    for e in range(3):
        alone = make_problem(spec, *rest, members=(e,), device=device).gradients(closed_form)
        together = (loss[[e]], squared[[e]], [g[[e]] for g in gradient])
        assert_gradients_close(alone, together, 1e-12)


@pytest.mark.parametrize("name", PAIRED)
def test_members_start_from_the_same_weights_alone(make_problem, name):
    together = make_problem(PAIRED[name], PairedSIC(1.0)).network.parameters
    for e in range(3):
        alone = make_problem(PAIRED[name], PairedSIC(1.0), members=(e,)).network.parameters
        for p, q in zip(together, alone, strict=True):
            np.testing.assert_array_equal(p[[e]], q)


# Round trips


def test_replace_keeps_every_parameter_in_its_place(case, make_problem):
    network = make_problem(*case).network
    new = [p + i for i, p in enumerate(network.parameters)]
    replaced = network.replace(new)
    assert all(p is q for p, q in zip(replaced.parameters, new, strict=True))
    assert replaced.dropouts == network.dropouts
    old = [p - i for i, p in enumerate(replaced.parameters)]
    back = network.replace(old)
    X, Y = np.ones((3, 1, 4, 5)), np.ones((3, 2, 4, 2))
    args = (X, Y if network.pairs else None)
    np.testing.assert_allclose(back.values(*args), network.values(*args), atol=1e-12)


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_scaled_inputs_take_the_metric_into_the_network(case, make_problem, device):
    problem = make_problem(*case, device=device)
    network, metric = problem.network, problem.table.metric
    raw = problem.table.X[problem.batch.rows][:, None]
    y = problem.table.y(problem.batch.rows, problem.batch.permuted) if network.pairs else None
    expected = to_numpy(network.values(raw * metric[:, None, None], y))
    network.scale_inputs(metric)
    np.testing.assert_allclose(to_numpy(network.values(raw, y)), expected, atol=1e-12)


def test_devices_and_precisions_round_trip(case, make_problem):
    network = make_problem(*case, dtype=np.float32).network
    tensors = network.to(CPU)
    assert all(isinstance(p, torch.Tensor) for p in tensors.parameters)
    for parameter in tensors.parameters:
        parameter.requires_grad_(True)
    double = tensors.to(None).cast(float)
    assert all(p.dtype == np.float64 for p in double.parameters)
    single = double.cast(np.float32)
    for p, q in zip(network.parameters, single.parameters, strict=True):
        assert q.dtype == np.float32
        assert not np.shares_memory(p, q)
        np.testing.assert_array_equal(p, q)


# Pieces


def test_products_of_rows_with_matrices_and_sums_of_outer_products():
    rng = np.random.default_rng(0)
    for i in (1, 4):
        z, W = rng.standard_normal((2, 3, 5, i)), rng.standard_normal((2, i, 6))
        np.testing.assert_allclose(matmul(z, W), np.einsum("ecni,eio->ecno", z, W), atol=1e-14)
        a = rng.standard_normal((2, 3, 5, 6))
        np.testing.assert_allclose(outer(z, a), np.einsum("ecni,ecno->eio", z, a), atol=1e-13)


@pytest.mark.parametrize("slope", [0.0, 0.25])
@pytest.mark.parametrize("dropped", [False, True])
def test_activations_of_numpy_and_torch_are_the_leaky_relu_times_dropout(slope, dropped):
    rng = np.random.default_rng(0)
    pre, kept = rng.standard_normal((2, 2, 6, 4)), rng.random((2, 2, 6, 4)) < 0.7
    keep = Keep(kept, 1 / 0.7) if dropped else None
    expected = np.maximum(pre, slope * pre) * (kept / 0.7 if dropped else 1.0)
    for device in (None, CPU):
        if keep is not None:
            keep = Keep(to_device(kept, device), keep.factor)
        values, mask = activation(to_device(pre.copy(), device), slope, keep)
        assert namespace(values) is (np if device is None else torch)
        np.testing.assert_allclose(to_numpy(values), expected, atol=1e-15)
        np.testing.assert_allclose(to_numpy(mask) * pre, expected, atol=1e-15)


def test_the_slope_is_as_precise_as_the_values():
    values, _ = activation(torch.tensor([-1.0], dtype=torch.float64), 0.1, None)
    assert values.item() == -0.1


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_tangent_is_the_adjoint_of_the_adjoint(slope):
    rng = np.random.default_rng(1)
    stack = Stack([rng.standard_normal((2, i, o)) for i, o in [(4, 6), (6, 3)]], slope=slope)
    z, t, b = (rng.standard_normal((2, 1, 5, width)) for width in (4, 4, 3))
    masks = stack.forward(z, [None, None]).masks
    below, _ = stack.adjoint(b, masks)
    _, moved = stack.tangent(t, masks)
    assert (below * t).sum() == pytest.approx((b * moved).sum(), rel=1e-12)


# Modules of a user


class Sum(torch.nn.Module):
    """w'x + v'y, one number for each row, or whatever ``shape`` makes of it."""

    def __init__(self, shape=lambda out: out):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(1.0, 4.0))
        self.v = torch.nn.Parameter(torch.tensor([10.0]))
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.shape = shape

    def forward(self, x, y=None):
        out = x @ self.w
        return self.shape(out if y is None else out + y @ self.v)


@pytest.mark.parametrize("shape", [lambda out: out, lambda out: out[:, None]], ids=["n", "n, 1"])
@pytest.mark.parametrize("metric", [None, np.array([[2.0, 0.5, 1.0]])], ids=["plain", "metric"])
def test_a_module_sees_every_pair_of_rows_and_responses(shape, metric):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((1, 1, 4, 3)), rng.standard_normal((1, 2, 4, 1))
    scales = np.ones((1, 3)) if metric is None else metric
    inner = (x * scales) @ np.arange(1.0, 4.0)
    net = Wrapped(Sum(shape))
    if metric is not None:
        net.scale_inputs(metric)
    expected = inner + 10 * y[..., 0]
    np.testing.assert_allclose(to_numpy(net.values(x, y)), expected, rtol=1e-5)
    alone = Wrapped(Sum(shape), pairs=False, metric=net.metric)
    np.testing.assert_allclose(to_numpy(alone.values(x, None)), inner, rtol=1e-5)


def test_a_module_knows_training_from_evaluation_and_keeps_its_precision():
    net = Wrapped(Sum())
    x, y = np.ones((1, 1, 4, 3)), np.ones((1, 2, 4, 1))
    net.values(x, y, [])
    assert net.module.training
    net.values(x, y)
    assert not net.module.training
    assert net.cast(float) is net
    assert net.to(None) is net
    assert [tuple(p.shape) for p in net.parameters] == [(3,), (1,)]  # the frozen one is left out


def test_a_module_that_does_not_return_one_number_for_each_row_is_refused():
    x, y = np.ones((1, 1, 4, 3)), np.ones((1, 2, 4, 1))
    with pytest.raises(ValueError, match="one number for each row"):
        Wrapped(Sum(lambda out: out.sum())).values(x, y)
    with pytest.raises(ValueError, match="returned 1 rows for 4"):
        Wrapped(Sum(lambda out: out.sum()[None]), pairs=False).values(x, None)
