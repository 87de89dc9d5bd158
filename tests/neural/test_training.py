"""Algorithm 3: Adam, the importances, schedules, early stopping, and what lam does to eta."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax

from sobolev._sample import Sample
from sobolev.criterion import normalized_importances, parse_groups
from sobolev.exceptions import DivergenceError
from sobolev.neural import BilinearCritic, SmallCritic, training
from sobolev.neural.arrays import to_device, to_numpy
from sobolev.neural.fitting import Design, Member, Recipe, fit_members
from sobolev.neural.importances import DECAY, ETA_FLOOR, GroupIndex, Importances
from sobolev.neural.objectives import ExactSIC, PairedSIC, SquaredError
from sobolev.neural.optimizer import SCHEDULES, Optimizer
from sobolev.neural.sampling import Rows, Sampler
from sobolev.neural.torch_backend import double_backpropagation
from sobolev.neural.training import DRAWN, Adam, Table, Validation, closed_form, train

CPU = torch.device("cpu")
DEVICES = pytest.mark.parametrize("device", [None, CPU], ids=["numpy", "torch"])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


LAM = np.array([0.1])


# Adam


@DEVICES
@pytest.mark.parametrize("decay", [0.0, 0.03])
@pytest.mark.parametrize("betas", [(0.5, 0.999), (0.9, 0.99)])
def test_adam_equals_the_one_of_torch(rng, device, decay, betas):
    start = [rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 1, 4))]
    ours = [to_device(p.copy(), device) for p in start]
    theirs = [torch.tensor(p, requires_grad=True) for p in start]
    adam = Adam(ours, Optimizer(weight_decay=decay, betas=betas))
    reference = torch.optim.Adam(theirs, lr=1.0, betas=betas, weight_decay=decay)
    for step in range(20):
        # Gradients down to the size of Adam's epsilon.
        gradients = [10.0 ** (-step / 2) * rng.standard_normal(p.shape) for p in start]
        rate = 0.01 / (1 + step)
        for p, g in zip(theirs, gradients, strict=True):
            p.grad = torch.tensor(g)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        adam.step([to_device(g.copy(), device) for g in gradients], rate)
    for p, q, before in zip(ours, theirs, start, strict=True):
        np.testing.assert_allclose(to_numpy(p), q.detach().numpy(), rtol=1e-10)
        assert np.abs(to_numpy(p) - before).max() > 0.01


# Importances


EXTREMES = [
    np.zeros(6),
    np.full(6, 1e30),
    np.array([1e30, 0, 0, 0, 0, 1e-30]),
    np.array([0, 0, 0, 0, 0, 1e30]),
    np.array([1, 1e-3, 1e-6, 1e-9, 1e-12, 0]),
    np.full(6, 1e-38),
]


@DEVICES
@pytest.mark.parametrize(
    ("dtype", "rule"), [(np.float32, "averaged"), (np.float64, "averaged"), (np.float64, "mirror")]
)
@pytest.mark.parametrize("step", [0.1, 10.0])
def test_importances_stay_on_the_simplex(rng, device, dtype, rule, step):
    lam, options = to_device(np.ones(2, dtype), device), Optimizer(eta_rule=rule, eta_step=step)
    importances = Importances.start(to_device(rng.dirichlet(np.ones(6), 2).astype(dtype), device))
    for i in rng.integers(len(EXTREMES), size=(200, 2)):
        squared = np.stack([EXTREMES[i[0]], EXTREMES[i[1]]]).astype(dtype)
        importances.update(to_device(squared, device), lam, options)
        eta = to_numpy(importances.eta)
        assert eta.dtype == dtype
        np.testing.assert_allclose(eta.sum(1), 1, rtol=1e-6)
        assert eta.min() >= 0.9 * ETA_FLOOR / 6
    given = importances.eta
    importances.update(to_device(np.ones((2, 6), dtype), device), lam, options)
    assert importances.eta is not given  # an iterate that was kept is not changed


@DEVICES
@pytest.mark.parametrize(
    ("dtype", "rule", "tol"),
    [
        (np.float32, "averaged", 1e-4),
        (np.float64, "averaged", 1e-8),
        (np.float64, "mirror", 1e-8),
    ],
)
def test_importances_converge_to_those_of_constant_gradients(rng, device, dtype, rule, tol):
    squared = rng.exponential(size=(2, 7)) ** 2
    # The raw step is in the units of the gradients.
    lam = to_device((2 / np.sqrt(squared).sum(1) ** 2).astype(dtype), device)
    options = Optimizer(eta_rule=rule, epsilon=1e-4)
    importances = Importances.start(to_device(np.full((2, 7), 1 / 7, dtype), device))
    for _ in range(300):
        importances.update(to_device(squared.astype(dtype), device), lam, options)
    expected = np.stack([normalized_importances(row, 1e-4) for row in squared])
    np.testing.assert_allclose(to_numpy(importances.eta), expected, rtol=tol)


def test_a_feature_that_was_given_up_comes_back():
    importances = Importances.start(np.array([[1 - 1e-6, 1e-6]]))
    for _ in range(100):
        importances.update(np.array([[0.0, 1.0]]), LAM, Optimizer())
    assert importances.eta[0, 1] > 0.99


@DEVICES
def test_the_mirror_rule_is_the_eta_step_of_algorithm_3(rng, device):
    eta, squared = rng.dirichlet(5 * np.ones(6), size=2), rng.exponential(size=(2, 6))
    lam = to_device(np.array([0.3, 1.2]), device)
    options = Optimizer(eta_rule="mirror", eta_step=0.02, epsilon=1e-2)
    importances = Importances.start(to_device(eta.copy(), device))
    importances.update(to_device(squared, device), lam, options)
    slope = np.array([[0.3], [1.2]]) / 2 * (squared + 1e-2) / eta**2
    expected = softmax(np.log(eta) + 0.02 * slope, axis=1)
    np.testing.assert_allclose(to_numpy(importances.eta), expected, rtol=1e-12)


def test_the_first_averaged_step_is_a_mirror_step_free_of_units(rng):
    eta, squared = rng.dirichlet(5 * np.ones(6), size=2), rng.exponential(size=(2, 6))
    options = Optimizer(eta_step=0.02, epsilon=1e-9)
    share = np.sqrt(squared + 1e-9) / np.sqrt(squared + 1e-9).sum(1, keepdims=True)
    expected = softmax(np.log(eta) + 0.02 * (share / eta) ** 2, axis=1)
    for scale in (1.0, 1e6):
        importances = Importances.start(eta.copy())
        importances.update(scale * squared, LAM, replace(options, epsilon=scale * 1e-9))
        np.testing.assert_allclose(importances.eta, expected, rtol=1e-12)


def test_squared_gradients_are_averaged_plainly_at_first_and_with_decay_later(rng):
    squares = rng.exponential(size=(160, 1, 4))
    importances = Importances.start(np.full((1, 4), 0.25))
    expected = squares[:100].mean(0)
    for number, squared in enumerate(squares):
        importances.update(squared, LAM, Optimizer())
        if number == 99:
            np.testing.assert_allclose(importances.average, expected, rtol=1e-12)
    for squared in squares[100:]:
        expected = DECAY * expected + (1 - DECAY) * squared
    np.testing.assert_allclose(importances.average, expected, rtol=1e-12)


# Groups


@DEVICES
def test_overlapping_groups_equal_the_dense_computation(rng, device):
    groups = parse_groups([[0, 1, 2], [2, 3], [5, 0]], 7)
    A = groups.membership.toarray()
    index = GroupIndex.make(groups, device)
    eta, squared = rng.dirichlet(np.ones(len(A)), size=2), rng.exponential(size=(2, 7))
    per_feature, per_group = to_device(squared, device), to_device(eta, device)
    np.testing.assert_allclose(to_numpy(index.gather(per_feature)), squared @ A.T, rtol=1e-12)
    np.testing.assert_allclose(to_numpy(index.spread(per_group, 7)), eta @ A, rtol=1e-12)
    grouped = Importances.start(per_group, index)
    np.testing.assert_allclose(to_numpy(grouped.inverse(7)), (1 / eta) @ A, rtol=1e-12)
    expected = ((squared @ A.T + 1e-2) / eta).sum(1)
    np.testing.assert_allclose(to_numpy(grouped.penalty(per_feature, 1e-2)), expected, rtol=1e-12)
    # A step on groups is a step on the sums.
    lam, options = to_device(np.full(2, 0.1), device), Optimizer()
    dense = Importances.start(to_device(eta.copy(), device))
    grouped.update(per_feature, lam, options)
    dense.update(to_device(squared @ A.T, device), lam, options)
    np.testing.assert_allclose(to_numpy(grouped.eta), to_numpy(dense.eta), rtol=1e-12)


@DEVICES
@pytest.mark.parametrize("objective", [PairedSIC(1.0, 0.5), ExactSIC(1.0)], ids=["paired", "exact"])
def test_groups_of_one_feature_each_change_nothing(make_problem, device, objective):
    spec = BilinearCritic((6, 5), dropout=0.2)
    outputs = 2 if isinstance(objective, ExactSIC) else None
    order = to_device(np.arange(5), device)
    found = [
        make_problem(spec, objective, outputs, device=device, groups=groups).gradients(closed_form)
        for groups in (None, GroupIndex(order, order, 5))
    ]
    for one, other in zip(*(f[2] for f in found), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("objective", [PairedSIC(1.0, 0.5), SquaredError()], ids=["paired", "mse"])
def test_closed_form_and_autograd_agree_on_overlapping_groups(make_problem, objective):
    spec, outputs = BilinearCritic((6, 5)), 2 if isinstance(objective, SquaredError) else None
    group, feature = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 4])  # 3 is in no group
    plain = make_problem(spec, objective, outputs, groups=GroupIndex(group, feature, 2))
    index = GroupIndex(torch.tensor(group), torch.tensor(feature), 2)
    double = make_problem(spec, objective, outputs, device=CPU, groups=index, autograd=True)
    expected = double.gradients(double_backpropagation)
    found = plain.gradients(closed_form)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
    for one, other in zip(found[2], expected[2], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


# Training


def start_training(device=None, members=(0, 1), n=40, spec=None, **options):
    """Arguments of ``train`` but the number of updates; y is noise, so it will overfit."""
    rng = np.random.default_rng(5)
    rngs = [np.random.default_rng(seed) for seed in members]
    X, Y = (rng.standard_normal((n, w)).astype(np.float32) for w in (4, 1))
    spec = SmallCritic((8, 8), dropout=0.1) if spec is None else spec
    network = spec.build(rngs, 4, 1).to(device)
    rows = [Rows(np.arange(n))] * len(members)
    sampler = Sampler(rows, [20] * len(members), rngs, network.dropouts, 2, device)
    eta = np.full((len(members), 4), 0.25, np.float32)
    return {
        "network": network,
        "table": Table(to_device(X, device), to_device(Y, device)),
        "sampler": sampler,
        "objective": PairedSIC(1.0),
        "importances": Importances.start(to_device(eta, device)),
        "lam": to_device(np.full(len(members), 0.01, np.float32), device),
        "optimizer": Optimizer(**options),
    }


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1, 1, 1, 1]),
        ("linear", [1, 0.75, 0.5, 0.25]),
        ("cosine", [1, (1 + np.sqrt(0.5)) / 2, 0.5, (1 - np.sqrt(0.5)) / 2]),
    ],
)
def test_schedules_scale_the_learning_rate(monkeypatch, schedule, expected):
    rates = []
    monkeypatch.setattr(Adam, "step", lambda self, gradients, rate: rates.append(rate))
    train(**start_training(schedule=schedule, learning_rate=0.02), n_updates=4)
    np.testing.assert_allclose(rates, 0.02 * np.array(expected), rtol=1e-12)
    assert set(SCHEDULES) == {"constant", "linear", "cosine"}


@DEVICES
def test_the_history_holds_the_loss_of_every_update_before_it(device):
    reported = []
    setup = start_training(device)
    again = start_training(device)
    history = train(**setup, n_updates=70, report=lambda done, loss: reported.append((done, loss)))
    assert history.losses.shape == (70, 2)
    assert history.best is None
    assert history.risks == []
    batch = next(again.pop("sampler").batches(1))
    epsilon = again.pop("optimizer").epsilon
    first, _, _ = closed_form(batch=batch, epsilon=epsilon, **again)
    np.testing.assert_allclose(history.losses[0], to_numpy(first), rtol=1e-6)
    assert [done for done, _ in reported] == [50, 70]
    np.testing.assert_allclose(reported[0][1], history.losses[:50].mean(0))
    np.testing.assert_allclose(reported[1][1], history.losses[20:70].mean(0))
    assert (history.losses[-10:].mean(0) < history.losses[:10].mean(0)).all()


class Scripted:
    """Held-out risks as written, and the iterates that they were asked for."""

    def __init__(self, risks, importances, every=3, patience=2):
        self.risks, self.importances = [np.array(risk) for risk in risks], importances
        self.every, self.patience, self.seen = every, patience, []

    def risk(self, network, table, objective):
        state = [*network.parameters, self.importances.eta]
        self.seen.append([to_numpy(part).copy() for part in state])
        return self.risks[len(self.seen) - 1]


@DEVICES
@pytest.mark.parametrize(
    ("risks", "best"),
    [
        ([[1, 1], [3, 2], [2, 5], [2, 1], [0, 4], [9, 9]], [1, 2]),  # stops at the fifth look
        ([[1], [4], [4], [3], [9]], [1]),  # no progress at equal risk; stops at the fourth
        ([[0, 3], [1, 2], [2, 1], [3, 0]], [3, 0]),  # to the end
    ],
)
def test_early_stopping_keeps_the_best_iterate_of_each_member(device, risks, best):
    setup = start_training(device, members=range(len(best)))
    script = Scripted(risks, setup["importances"])
    history = train(**setup, n_updates=12 if len(risks) == 4 else 30, validation=script)
    looks = len(script.seen)
    assert looks == {6: 5, 5: 4, 4: 4}[len(risks)]
    assert history.looks == [3 * (i + 1) for i in range(looks)]
    assert history.losses.shape == (3 * looks, len(best))
    np.testing.assert_array_equal(history.best, [3 * (i + 1) for i in best])
    np.testing.assert_array_equal(history.risks, risks[:looks])
    state = [*setup["network"].parameters, setup["importances"].eta]
    for e, look in enumerate(best):
        for part, kept, last in zip(state, script.seen[look], script.seen[-1], strict=True):
            np.testing.assert_array_equal(to_numpy(part)[e], kept[e])
            assert look == looks - 1 or (kept[e] != last[e]).any()


def test_the_last_update_is_always_looked_at():
    setup = start_training()
    script = Scripted([[1, 1], [2, 2], [3, 3]], setup["importances"], every=4)
    history = train(**setup, n_updates=10, validation=script)
    assert history.looks == [4, 8, 10]


def make_validation(device=None, seeds=(0, 1), every=5, patience=4):
    rngs = [np.random.default_rng(40 + seed) for seed in seeds]
    held_out = [Rows(np.arange(30, 40)), Rows(np.arange(24, 40))]
    trained = [Rows(np.arange(24))] * 2
    return Validation.make(held_out, trained, rngs, every, patience, device)


@DEVICES
def test_training_on_noise_stops_at_the_best_held_out_risk(device):
    setup = start_training(device, learning_rate=0.02)
    validation = make_validation(device)
    history = train(**setup, n_updates=400, validation=validation)
    assert history.losses.shape[0] == history.looks[-1] < 400
    assert (history.best < history.looks[-1]).all()
    risk = validation.risk(setup["network"], setup["table"], setup["objective"])
    np.testing.assert_allclose(risk, np.max(history.risks, axis=0), rtol=1e-6)


def test_held_out_risk_equals_its_definition_with_rows_of_the_law_trained_on():
    setup, validation = start_training(), make_validation()
    network, table = setup["network"], setup["table"]
    found = validation.risk(network, table, setup["objective"])
    assert len(validation.drawn) == DRAWN
    assert all((drawn < 24).all() for drawn in validation.drawn)
    for e, rows in enumerate([np.arange(30, 40), np.arange(24, 40)]):
        total = 0.0
        for n, i in enumerate(rows):
            responses = [i, *(drawn[e, n] for drawn in validation.drawn)]
            x, y = table.X[i][None, None, None], table.Y[responses][None, :, None]
            alone = network.replace([p[[e]] for p in network.parameters])
            f = alone.values(x, y)[0, :, 0]
            total += f[0] - np.mean(f[1:] + f[1:] ** 2 / 2)
        assert found[e] == pytest.approx(total / rows.size, rel=1e-4)


def test_held_out_responses_of_weighted_rows_are_drawn_by_their_weights():
    rows = Rows(np.array([3, 8]), np.array([1.0, 0.0]))
    rng = np.random.default_rng(0)
    validation = Validation.make([Rows(np.arange(50))], [rows], [rng], 1, 1, None)
    assert all((drawn == 3).all() for drawn in validation.drawn)


def test_held_out_rows_count_by_their_weights():
    fold = Rows(np.array([3, 8]), np.array([0.25, 0.75]))
    rng = np.random.default_rng(0)
    validation = Validation.make([fold], [Rows(np.arange(3))], [rng], 1, 1, None)
    np.testing.assert_allclose(validation.weights, [[0.25, 0.75]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@DEVICES
@pytest.mark.parametrize("patience", [None, 50])
def test_a_loss_that_is_not_finite_names_the_remedy(device, patience):
    setup = start_training(device, learning_rate=1e15)
    script = None
    if patience:
        script = Scripted(np.zeros((20, 2)), setup["importances"], patience=patience)
    with pytest.raises(DivergenceError, match=r"after [23] updates; lower learning_rate"):
        train(**setup, n_updates=20, validation=script)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_divergence_is_seen_long_before_the_end():
    setup = start_training()
    setup["table"].X[:] = np.inf
    updates = []

    def counted(*args):
        updates.append(1)
        return closed_form(*args)

    with pytest.raises(DivergenceError, match="after 1 updates"):
        train(**setup, n_updates=1000, gradients=counted)
    assert len(updates) == training.REPORT_EVERY


# The penalty at its extremes


def importances_of(lam, relevant=2, d=10, n=300, **options):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((n, d))
    y = X[:, :relevant].sum(1) + 0.5 * rng.standard_normal(n)
    X, y = (X - X.mean(0)) / X.std(0), (y - y.mean()) / y.std()
    sample = Sample(X, y[:, None], np.full(n, 1 / n))
    design = Design(BilinearCritic((30,), dropout=0.0), ExactSIC(1.0), 1)
    member = Member(design, 100, lam, np.random.default_rng(1), np.arange(n))
    recipe = Recipe(Optimizer(learning_rate=5e-3, max_iter=400, rounds=1, **options))
    (ensemble,) = fit_members(sample, [member], recipe)
    return ensemble


@pytest.mark.parametrize("of_state", [False, True], ids=["on all rows", "of the state"])
def test_lam_decides_how_many_features_share_the_mass(of_state, monkeypatch):
    states, start = [], Importances.start

    def remembered(*arguments):
        states.append(start(*arguments))
        return states[-1]

    monkeypatch.setattr(Importances, "start", remembered)
    found = [importances_of(lam).eta for lam in (1e-9, 0.3)]
    none, much = [state.eta[0] for state in states] if of_state else [eta[0] for eta in found]
    for eta in (none, much):
        assert eta.sum() == pytest.approx(1, rel=1e-6)
        assert set(np.argsort(eta)[-2:]) == {0, 1}
    assert none.min() > 0.03  # without a penalty the critic uses every feature
    assert much[2:].max() < 0.02
    assert much[2:].sum() < 0.4 * none[2:].sum()


def test_an_extreme_lam_silences_the_critic():
    silent, loud = (importances_of(lam).moments for lam in (100.0, 0.01))
    assert silent.second[0] < 1e-3 * loud.second[0]
    assert silent.squared.sum() < 1e-3 * loud.squared.sum()
