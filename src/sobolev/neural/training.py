r"""Stochastic block coordinate descent (Algorithm 3 of the paper) for an ensemble of networks.

An update draws a minibatch, moves the parameters by Adam and the importances by mirror descent in
the log domain. The gradient of the gradient penalty is in closed form where the network has a
``trace``, and by double back-propagation otherwise. Everything is batched over members; what
differs between them (rows, batch sizes, seeds, lam) are arrays with a leading dimension E.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import cos, pi
from typing import Any

import numpy as np
import torch

from sobolev._typing import AnyArray, Index
from sobolev.exceptions import DivergenceError
from sobolev.neural.arrays import Array, namespace, to_device, to_numpy
from sobolev.neural.objectives import Objective
from sobolev.neural.sampling import Batch, Rows, Sampler

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
    "cosine": lambda done: 0.5 * (1 + cos(pi * done)),
}

# The least importance, relative to the mean: it keeps 1/eta finite and lets a feature come back.
ETA_FLOOR = 1e-5
# The largest move of log eta in one update: half-way to the optimum is not overshot.
MAX_MOVE = 0.5
# Keeps squares finite in single precision when a critic is about to diverge.
MAX_RATIO = 1e15
# Losses are looked at after this many updates.
REPORT_EVERY = 50
# Responses drawn for each held-out row.
DRAWN = 4

Report = Callable[[int, AnyArray], None]


@dataclass(frozen=True)
class Settings:
    """How to train; see :class:`~sobolev.NeuralSIC` for the meaning of each.

    ``lam`` has one entry for each member. ``eta_relative`` divides the mirror step by the size of
    its gradient at the optimum, ``eta_decay`` averages the squared gradients over updates.
    """

    lam: Array
    epsilon: float = 1e-12
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.5, 0.999)
    weight_decay: float = 1e-4
    schedule: str = "constant"
    eta_step: float = 0.1
    eta_relative: bool = True
    eta_decay: float = 0.99
    closed_form: bool = True


class Adam:
    """Adam with decay of the weights in the gradient, as in torch, in place."""

    def __init__(self, parameters: list[Array], settings: Settings) -> None:
        self.parameters = parameters
        self.settings = settings
        xp = namespace(parameters[0])
        self.first = [xp.zeros_like(p) for p in parameters]
        self.second = [xp.zeros_like(p) for p in parameters]
        self.n_steps = 0

    def step(self, gradients: list[Array], rate: float) -> None:
        """Move the parameters; the gradients are used up."""
        self.n_steps += 1
        beta, beta2 = self.settings.betas
        # The moments are kept without the factors 1 - beta, which saves two passes.
        root = ((1 - beta2) / (1 - beta2**self.n_steps)) ** 0.5
        rate *= (1 - beta) / (1 - beta**self.n_steps) / root
        decay = self.settings.weight_decay
        for p, g, m, v in zip(self.parameters, gradients, self.first, self.second, strict=True):
            if decay:
                g += decay * p
            m *= beta
            m += g
            g *= g
            v *= beta2
            v += g
            namespace(g).sqrt(v, out=g)
            g += 1e-8 / root
            p -= rate * m / g


@dataclass(frozen=True)
class GroupIndex:
    """Pairs (group, feature): groups may overlap."""

    group: Array
    feature: Array
    n_groups: int

    def gather(self, per_feature: Array) -> Array:
        """Sums over the features of each group, (E, d) to (E, K)."""
        return _add_at(per_feature[:, self.feature], self.group, self.n_groups)

    def spread(self, per_group: Array, n_features: int) -> Array:
        """Sums over the groups of each feature, (E, K) to (E, d)."""
        return _add_at(per_group[:, self.group], self.feature, n_features)


def _add_at(values: Array, index: Array, size: int) -> Array:
    if isinstance(values, torch.Tensor):
        return values.new_zeros(values.shape[0], size).index_add(1, index, values)
    return np.stack([np.bincount(index, row, size) for row in values]).astype(values.dtype)


@dataclass
class Importances:
    """eta of every member, on the simplex at every step, and the averaged squared gradients."""

    eta: Array
    average: Array
    groups: GroupIndex | None = None
    n_updates: int = 0

    @classmethod
    def start(cls, eta: Array, groups: GroupIndex | None = None) -> Importances:
        """From given importances, (E, d) or (E, n_groups)."""
        return cls(eta, namespace(eta).zeros_like(eta), groups)

    def inverse(self, n_features: int) -> Array:
        """1/eta for every feature, (E, d)."""
        inverse = 1 / self.eta
        return inverse if self.groups is None else self.groups.spread(inverse, n_features)

    def penalty(self, squared: Array, epsilon: float) -> Array:
        """sum (squared gradient + epsilon) / eta for each member."""
        return ((self._grouped(squared) + epsilon) / self.eta).sum(1)

    def update(self, squared: Array, settings: Settings) -> None:
        """One mirror step in the log domain."""
        xp = namespace(squared)
        squared = self._grouped(squared)
        self.n_updates += 1
        if settings.eta_decay:
            weight = max(1 - settings.eta_decay, 1 / self.n_updates)
            self.average += weight * (squared - self.average)
            squared = self.average
        root = xp.sqrt(squared + settings.epsilon)
        ratio = xp.clip(root / self.eta, None, MAX_RATIO)
        if settings.eta_relative:
            ratio /= root.sum(1)[:, None]
            move = xp.clip(settings.eta_step * ratio * ratio, None, MAX_MOVE)
        else:
            move = (0.5 * settings.eta_step * settings.lam)[:, None] * ratio * ratio
        logits = xp.log(self.eta) + move
        eta = xp.exp(logits - xp.amax(logits, 1)[:, None])
        eta /= eta.sum(1)[:, None]
        eta = xp.clip(eta, ETA_FLOOR / eta.shape[1], None)
        self.eta = eta / eta.sum(1)[:, None]

    def _grouped(self, squared: Array) -> Array:
        return squared if self.groups is None else self.groups.gather(squared)


@dataclass
class Table:
    """The data: X (n, d), responses (n, k), and the metric of each member, (E, d).

    The networks see the columns times the metric; penalties are on derivatives in the columns
    themselves.
    """

    X: Array
    Y: Array
    metric: Array | None = None

    def x(self, rows: Array) -> Array:
        """Rows (E, N) of X, as (E, 1, N, d)."""
        x = self.X[rows]
        if self.metric is not None:
            x *= self.metric[:, None]
        return x[:, None]

    def y(self, *rows: Array) -> Array:
        """Responses at rows (E, N) each, as (E, C, N, k)."""
        return namespace(self.Y).stack([self.Y[r] for r in rows], 1)


@dataclass(frozen=True)
class Validation:
    """Held-out rows (E, N) with weights, responses drawn for them, and when to look and stop.

    Attributes
    ----------
    rows, weights : array (E, N)
    drawn : list of array (E, N)
        Rows of responses drawn for the product of the marginals.
    every : int
        Updates between two looks.
    patience : int
        Looks without progress before a member counts as done.
    """

    rows: Array
    weights: Array
    drawn: list[Array]
    every: int
    patience: int

    @classmethod
    def make(
        cls,
        held_out: list[Rows],
        trained: list[Rows],
        rngs: list[np.random.Generator],
        every: int,
        patience: int,
        device: torch.device | None,
    ) -> Validation:
        """Pad the held-out rows of the members to one length and draw responses for them."""
        n = max(fold.index.size for fold in held_out)
        rows = np.zeros((len(held_out), n), dtype=np.int64)
        weights = np.zeros((len(held_out), n), dtype=np.float32)
        drawn = np.zeros((DRAWN, len(held_out), n), dtype=np.int64)
        for e, (fold, member, rng) in enumerate(zip(held_out, trained, rngs, strict=True)):
            rows[e, : fold.index.size] = fold.index
            weights[e, : fold.index.size] = 1 / fold.index.size if fold.p is None else fold.p
            drawn[:, e] = rng.choice(member.index, size=(DRAWN, n), p=member.p)
        arrays = [to_device(a, device) for a in (rows, weights, *drawn)]
        return cls(arrays[0], arrays[1], arrays[2:], every, patience)

    def risk(self, network: Any, table: Table, objective: Objective) -> AnyArray:
        """Mean risk of the held-out rows, (E,)."""
        with torch.no_grad():
            y = table.y(self.rows, *(self.drawn if network.pairs else ()))
            values = network.values(table.x(self.rows), y if network.pairs else None)
            found: AnyArray = to_numpy((self.weights * objective.risk(values, y)).sum(1))
            return found


@dataclass
class History:
    """Losses (T, E); held-out risks (looks, E) and the updates of the looks; the best update."""

    losses: AnyArray
    risks: list[AnyArray] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)
    best: Index | None = None


def train(
    network: Any,
    table: Table,
    sampler: Sampler,
    objective: Objective,
    importances: Importances,
    settings: Settings,
    n_updates: int,
    validation: Validation | None = None,
    report: Report | None = None,
) -> History:
    """Train the network and the importances in place.

    With a validation the best iterate of every member is put back at the end.
    """
    schedule = SCHEDULES[settings.schedule]
    adam = Adam([_values(p) for p in network.parameters], settings)
    gradients = closed_form if settings.closed_form else double_backpropagation
    losses = np.zeros((n_updates, importances.eta.shape[0]))
    history = History(losses)
    best = None if validation is None else _Best(network, importances, validation.patience)
    done = 0
    for batch in sampler.batches(n_updates):
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is an error
            step = gradients(network, table, batch, objective, importances, settings)
        loss, squared, found = step
        losses[done] = to_numpy(loss)
        adam.step(found, settings.learning_rate * schedule(done / n_updates))
        importances.update(squared, settings)
        done += 1
        if done % REPORT_EVERY == 0 or done == n_updates:
            _check_finite(losses, done)
            if report is not None:
                report(done, losses[max(0, done - REPORT_EVERY) : done].mean(0))
        if validation is not None and (done % validation.every == 0 or done == n_updates):
            assert best is not None
            risk = validation.risk(network, table, objective)
            history.risks.append(risk)
            history.looks.append(done)
            if best.look(done, risk):
                break
    _check_finite(losses, done)
    history.losses = losses[:done]
    if best is not None:
        best.restore()
        history.best = best.update
    return history


def _values(parameter: Array) -> Array:
    """What a parameter holds, outside of any graph."""
    return parameter.detach() if isinstance(parameter, torch.Tensor) else parameter


def _check_finite(losses: AnyArray, done: int) -> None:
    bad = ~np.isfinite(losses[:done]).all(axis=1)
    if bad.any():
        raise DivergenceError(
            f"the loss is not finite after {int(bad.argmax()) + 1} updates; lower learning_rate, "
            "raise rho or lam, or look for columns with extreme values."
        )


# -- gradients -----------------------------------------------------------------------------------


def _scale(table: Table, importances: Importances, settings: Settings, share: float) -> Array:
    """lam/eta in the units of the network's input, (E, d)."""
    scale = importances.inverse(table.X.shape[1]) * (share * settings.lam)[:, None]
    return scale if table.metric is None else scale * table.metric * table.metric


def _squared(sums: Array, table: Table, share: float) -> Array:
    """Mean squared derivatives in the columns themselves, (E, d)."""
    squared = share * sums
    return squared if table.metric is None else squared * table.metric * table.metric


def _responses(network: Any, table: Table, batch: Batch) -> Array:
    return table.y(batch.rows, *([batch.permuted] if network.pairs else []))


def closed_form(
    network: Any,
    table: Table,
    batch: Batch,
    objective: Objective,
    importances: Importances,
    settings: Settings,
) -> tuple[Array, Array, list[Array]]:
    """Loss (E,), mean squared derivatives (E, d) and the gradient in each parameter."""
    y = _responses(network, table, batch)
    trace = network.trace(table.x(batch.rows), y if network.pairs else None, batch.keeps)
    loss, delta = objective(trace.values, y, batch.weights)
    g = trace.input_gradient(objective.copies)
    g *= batch.roots[:, None, :, None]
    sums = namespace(g).einsum("ecnd,ecnd->ed", g, g)
    squared = _squared(sums, table, objective.share)
    loss = loss + 0.5 * settings.lam * importances.penalty(squared, settings.epsilon)
    g *= batch.roots[:, None, :, None]
    g *= _scale(table, importances, settings, objective.share)[:, None, None]
    return loss, squared, trace.parameter_gradient(delta, g, objective.copies)


def double_backpropagation(
    network: Any,
    table: Table,
    batch: Batch,
    objective: Objective,
    importances: Importances,
    settings: Settings,
) -> tuple[Array, Array, list[Array]]:
    """The same by automatic differentiation, for networks of any kind."""
    y = _responses(network, table, batch)
    x = table.x(batch.rows).requires_grad_(True)
    scale = _scale(table, importances, settings, objective.share)[:, None, None]
    w = batch.weights[:, None, :, None]
    with torch.enable_grad():
        values = network.values(x, y if network.pairs else None, batch.keeps)
        loss, delta = objective(values.detach(), y, batch.weights)
        g = input_gradients(values, x, objective.copies)
        total = (values * delta).sum() + 0.5 * (w * scale * g * g).sum()
        found = torch.autograd.grad(total, network.parameters, allow_unused=True)
    g = g.detach()
    squared = _squared((w * g * g).sum((1, 2)), table, objective.share)
    loss = loss + 0.5 * settings.lam * importances.penalty(squared, settings.epsilon)
    gradients = [
        torch.zeros_like(p) if gradient is None else gradient.clone()  # they may share memory
        for p, gradient in zip(network.parameters, found, strict=True)
    ]
    return loss, squared, gradients


def input_gradients(values: Array, x: Array, copies: slice = slice(None)) -> Array:
    """Derivatives of each copy in the shared x by automatic differentiation, (E, C', N, d)."""
    chosen = range(*copies.indices(values.shape[1]))
    each = [torch.autograd.grad(values[:, c].sum(), x, create_graph=True)[0] for c in chosen]
    return torch.cat(each, 1)


class _Best:
    """The best iterate of every member."""

    def __init__(self, network: Any, importances: Importances, patience: int) -> None:
        self.network, self.importances, self.patience = network, importances, patience
        n_members = importances.eta.shape[0]
        self.risk = np.full(n_members, -np.inf)
        self.waited = np.zeros(n_members, dtype=int)
        self.update = np.zeros(n_members, dtype=int)
        self.saved: list[Array] = []

    def look(self, done: int, risk: AnyArray) -> bool:
        """Keep what is better; True when every member has waited long enough."""
        better = risk > self.risk
        self.waited = np.where(better, 0, self.waited + 1)
        self.risk = np.where(better, risk, self.risk)
        self.update = np.where(better, done, self.update)
        if not self.saved:
            self.saved = [t + 0 for t in self._state()]
        for saved, current in zip(self.saved, self._state(), strict=True):
            if better.size == 1:  # a module is one member, its parameters have no such dimension
                saved[...] = current if better[0] else saved
            else:
                saved[better] = current[better]
        return bool((self.waited >= self.patience).all())

    def restore(self) -> None:
        """Put the best iterates back."""
        for saved, current in zip(self.saved, self._state(), strict=True):
            current[...] = saved

    def _state(self) -> list[Array]:
        return [*map(_values, self.network.parameters), self.importances.eta]
