"""Losses and their derivatives against automatic differentiation of the loss written out; risks."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from sobolev.neural.arrays import to_device, to_numpy
from sobolev.neural.objectives import (
    CrossEntropy,
    ExactSIC,
    PairedSIC,
    SquaredError,
    log_softmax,
)

E, N, K = 3, 11, 4
CPU = torch.device("cpu")


def paired_loss(objective, f, y, w):
    joint, product = f[:, 0], f[:, 1]
    square = objective.joint * joint**2 + (1 - objective.joint) * product**2
    return (w * (product - joint + objective.rho / 2 * square)).sum(1)


def exact_loss(objective, h, y, w):
    f = torch.einsum("ekn,enk->en", h, y[:, 0])
    return (w * (objective.rho / 2 * (h**2).sum(1) - f)).sum(1)


def squared_loss(objective, h, y, w):
    return torch.einsum("en,enk->e", w, (h.transpose(1, 2) - y[:, 0]) ** 2)


def entropy_loss(objective, h, y, w):
    rows = cross_entropy(h.transpose(1, 2).reshape(-1, K), y.reshape(-1, K), reduction="none")
    return (w * rows.reshape(E, N)).sum(1)


CASES = {
    "product": (PairedSIC(0.6, 0.0), 2, paired_loss),
    "mixture": (PairedSIC(0.6, 0.5), 2, paired_loss),
    "joint": (PairedSIC(0.6, 1.0), 2, paired_loss),
    "without rho": (PairedSIC(0.0), 2, paired_loss),
    "exact": (ExactSIC(0.6), K, exact_loss),
    "squared": (SquaredError(), K, squared_loss),
    "entropy": (CrossEntropy(), K, entropy_loss),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def draw(objective, n_copies, seed=0):
    """Values, responses and weights, some of them zero as those of short batches are."""
    rng = np.random.default_rng(seed)
    values = 2 * rng.standard_normal((E, n_copies, N))
    y = rng.standard_normal((E, 2 if isinstance(objective, PairedSIC) else 1, N, K))
    if isinstance(objective, CrossEntropy):
        y = np.eye(K)[rng.integers(K, size=(E, 1, N))]
    weights = rng.dirichlet(np.ones(N), size=E)
    weights[1, 7:] = 0
    return values, y, weights


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_loss_and_delta_equal_autograd_of_the_loss_written_out(case, device):
    objective, n_copies, written_out = case
    arrays = draw(objective, n_copies)
    loss, delta = objective(*(to_device(a.copy(), device) for a in arrays))
    f, y, w = (torch.tensor(a) for a in arrays)
    f.requires_grad_(True)
    expected = written_out(objective, f, y, w)
    expected.sum().backward()
    np.testing.assert_allclose(to_numpy(loss), expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(to_numpy(delta), f.grad.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_an_evaluation_leaves_its_arguments_alone(case, device):
    objective, n_copies, _ = case
    arrays = draw(objective, n_copies)
    given = [to_device(a.copy(), device) for a in arrays]
    objective(*given)
    objective.risk(given[0], given[1])
    for before, after in zip(arrays, given, strict=True):
        np.testing.assert_array_equal(to_numpy(after), before)


@pytest.mark.parametrize("name", ["exact", "squared", "entropy"])
def test_the_risk_of_an_objective_of_x_alone_is_minus_its_loss(name):
    objective, n_copies, _ = CASES[name]
    values, y, weights = draw(objective, n_copies)
    loss, _ = objective(values, y, weights)
    risk = objective.risk(values, y)
    assert risk.shape == (E, N)
    np.testing.assert_allclose((weights * risk).sum(1), -loss, rtol=1e-12)


@pytest.mark.parametrize("n_drawn", [1, 4])
def test_the_paired_risk_averages_over_the_drawn_responses(n_drawn):
    values = np.random.default_rng(0).standard_normal((E, 1 + n_drawn, N))
    risk = PairedSIC(0.8).risk(values, None)
    for e in range(E):
        for n in range(N):
            drawn = [f + 0.4 * f * f for f in values[e, 1:, n]]
            assert risk[e, n] == pytest.approx(values[e, 0, n] - sum(drawn) / n_drawn, rel=1e-12)


def test_the_paired_risk_of_one_drawn_response_is_minus_the_loss_under_the_product():
    objective = PairedSIC(0.8)
    values, y, weights = draw(objective, 2)
    loss, _ = objective(values, y, weights)
    np.testing.assert_allclose((weights * objective.risk(values, y)).sum(1), -loss, rtol=1e-12)


@pytest.mark.parametrize("joint", [0.0, 0.5, 1.0])
def test_the_copies_of_a_measure_share_its_mass(joint):
    objective = PairedSIC(1.0, joint)
    chosen = np.arange(2)[objective.copies]
    mass = np.zeros(2)
    mass[chosen] = objective.share
    np.testing.assert_array_equal(mass, [joint, 1 - joint])


@pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])
def test_log_softmax_is_a_distribution_without_overflow(device):
    values = np.array([[[1e4, 0.0], [-1e4, 1.0], [0.0, 2.0]]])
    found = to_numpy(log_softmax(to_device(values, device)))
    np.testing.assert_allclose(np.exp(found).sum(1), 1.0, rtol=1e-12)
    expected = torch.log_softmax(torch.tensor(values), 1).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
