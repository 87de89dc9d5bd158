r"""Neural SIC: stochastic block coordinate descent (Algorithm 3) for an ensemble of networks.

Each update fetches a minibatch, takes a step of Adam on the parameters and a step of mirror descent
on the importances. The gradient of the gradient penalty has a closed form for the built-in
networks; :mod:`sobolev.neural.torch_backend` has the double back-propagation for a user's module.
Everything is batched over members; what differs between them (rows, batch sizes, seeds, lam) is
stored in arrays with a leading dimension E.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev._typing import AnyArray, Index
from sobolev.exceptions import DivergenceError
from sobolev.neural.arrays import Array, namespace, to_device, to_numpy
from sobolev.neural.importances import Importances
from sobolev.neural.objectives import Objective
from sobolev.neural.optimizer import Optimizer
from sobolev.neural.sampling import Batch, Rows, Sampler

# Number of updates between two checks of the loss.
REPORT_EVERY = 50
# Number of responses drawn for each held-out row.
DRAWN = 4

Report = Callable[[int, AnyArray], None]


class Adam:
    """Adam with weight decay in the gradient, as in torch, in place."""

    def __init__(self, parameters: list[Array], optimizer: Optimizer) -> None:
        self.parameters = parameters
        self.optimizer = optimizer
        xp = namespace(parameters[0])
        self.first = [xp.zeros_like(p) for p in parameters]
        self.second = [xp.zeros_like(p) for p in parameters]
        self.n_steps = 0

    def step(self, gradients: list[Array], rate: float) -> None:
        """Move the parameters; the gradients are used up."""
        self.n_steps += 1
        beta, beta2 = self.optimizer.betas
        # The moments are kept without the factors 1 - beta, which saves two passes.
        root = ((1 - beta2) / (1 - beta2**self.n_steps)) ** 0.5
        rate *= (1 - beta) / (1 - beta**self.n_steps) / root
        decay = self.optimizer.weight_decay
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

    def responses(self, network: Any, batch: Batch) -> Array:
        """The responses of a batch; a critic of (x, y) sees the permuted ones, too."""
        return self.y(batch.rows, *([batch.permuted] if network.pairs else []))

    def penalty_scale(self, importances: Importances, lam: Array, share: float) -> Array:
        """lam/eta in the units of the network's input, (E, d)."""
        return self._in_metric(importances.inverse(self.X.shape[1]) * (share * lam)[:, None])

    def mean_squares(self, sums: Array, share: float) -> Array:
        """Mean squared derivatives in the columns themselves, (E, d)."""
        return self._in_metric(share * sums)

    def _in_metric(self, squares: Array) -> Array:
        return squares if self.metric is None else squares * self.metric * self.metric


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
        device: Any,
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


def closed_form(
    network: Any,
    table: Table,
    batch: Batch,
    objective: Objective,
    importances: Importances,
    lam: Array,
    epsilon: float,
) -> tuple[Array, Array, list[Array]]:
    """Loss (E,), mean squared derivatives (E, d) and the gradient in each parameter."""
    y = table.responses(network, batch)
    trace = network.trace(table.x(batch.rows), y if network.pairs else None, batch.keeps)
    loss, delta = objective(trace.values, y, batch.weights)
    g = trace.input_gradient(objective.copies)
    g *= batch.roots[:, None, :, None]
    sums = namespace(g).einsum("ecnd,ecnd->ed", g, g)
    squared = table.mean_squares(sums, objective.share)
    loss = loss + 0.5 * lam * importances.penalty(squared, epsilon)
    g *= batch.roots[:, None, :, None]
    g *= table.penalty_scale(importances, lam, objective.share)[:, None, None]
    return loss, squared, trace.parameter_gradient(delta, g, objective.copies)


def train(
    network: Any,
    table: Table,
    sampler: Sampler,
    objective: Objective,
    importances: Importances,
    lam: Array,
    optimizer: Optimizer,
    n_updates: int,
    validation: Validation | None = None,
    report: Report | None = None,
    gradients: Callable[..., tuple[Array, Array, list[Array]]] = closed_form,
) -> History:
    """Train the network and the importances in place (Algorithm 3 of the paper).

    ``lam`` has one entry for each member. With a validation the best iterate of every member is
    restored at the end.
    """
    adam = Adam([_values(p) for p in network.parameters], optimizer)
    losses = np.zeros((n_updates, importances.eta.shape[0]))
    history = History(losses)
    best = None if validation is None else _Best(network, importances, validation.patience)
    done = 0
    for batch in sampler.batches(n_updates):  # Alg. 3: fetch (x, y) and (x, permuted y)
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is an error
            loss, squared, found = gradients(
                network, table, batch, objective, importances, lam, optimizer.epsilon
            )
        losses[done] = to_numpy(loss)
        adam.step(found, optimizer.rate(done / n_updates))  # Alg. 3: gradient step on theta
        importances.update(squared, lam, optimizer)  # Alg. 3: mirror descent on eta
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
    return parameter if isinstance(parameter, np.ndarray) else parameter.detach()


def _check_finite(losses: AnyArray, done: int) -> None:
    bad = ~np.isfinite(losses[:done]).all(axis=1)
    if bad.any():
        raise DivergenceError(
            f"the loss is not finite after {int(bad.argmax()) + 1} updates; lower learning_rate, "
            "raise rho or lam, or look for columns with extreme values."
        )


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
