"""Fit an ensemble to a sample: members, rounds of the metric, importances on all rows.

Everything here takes arrays and plain settings; the estimators validate, name and store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import gen_batches

from sobolev._sample import Sample
from sobolev._typing import AnyArray, Array, Index
from sobolev.criterion import Groups, normalized_importances
from sobolev.neural.arrays import one_thread, to_device, to_numpy
from sobolev.neural.importances import GroupIndex, Importances
from sobolev.neural.objectives import Objective
from sobolev.neural.optimizer import Optimizer
from sobolev.neural.sampling import Rows, Sampler
from sobolev.neural.training import History, Table, Validation, closed_form, train

# The metric of a round: importance relative to the largest, plus a floor that lets a feature come
# back.
METRIC_FLOOR = 0.03
# Number of members trained in one set of batched products; more would not fit into fast memory.
CHUNK_MEMBERS = 8
# Size of the arrays that an evaluation holds at once, and draws of the response for each row.
EVALUATION_SIZE = 2**23
EVALUATION_DRAWS = 4

Report = Callable[[int, int, AnyArray], None]


@dataclass(frozen=True, eq=False)
class Design:
    """An architecture and what it is trained for.

    ``outputs`` is the number of outputs of a network of x alone, None for a critic of (x, y).
    """

    spec: Any
    objective: Objective
    outputs: int | None = None

    @property
    def batched(self) -> bool:
        """Whether members are trained together, in closed form; a user's module is not."""
        return hasattr(self.spec, "build") or hasattr(self.spec, "build_network")

    def build(self, rngs: Sequence[np.random.Generator], n_features: int, n_targets: int) -> Any:
        """A network with random parameters, one generator for each member."""
        if not self.batched:
            from sobolev.neural.torch_backend import wrap_module

            n = n_targets if self.outputs is None else self.outputs
            return wrap_module(self.spec, rngs[0], n_features, n, pairs=self.outputs is None)
        if self.outputs is None:
            return self.spec.build(rngs, n_features, n_targets)
        return self.spec.build_network(rngs, n_features, self.outputs)

    def own_generator(self, rng: np.random.Generator) -> Any:
        """A context in which a user's module may draw from torch's global generator."""
        if self.batched:
            return nullcontext()
        from sobolev.neural.torch_backend import own_generator

        return own_generator(rng)


@dataclass(frozen=True)
class Member:
    """One member: its design, batch size, lam, generator and rows."""

    design: Design
    batch_size: int
    lam: float
    rng: np.random.Generator
    train: Index
    held_out: Index | None = None


@dataclass(frozen=True)
class Recipe:
    """What all members share.

    Attributes
    ----------
    optimizer : Optimizer
    groups : Groups or None
        Groups of columns; a column in none of them is not penalised.
    device : torch.device or None
        None is the CPU.
    seed : int
        Seed of the draws in the evaluation on all rows.
    every, patience : int
        Number of updates between two checks of the held-out risk (0: no checks), and number of
        checks without progress before stopping.
    """

    optimizer: Optimizer
    groups: Groups | None = None
    device: Any = None
    seed: int = 0
    every: int = 0
    patience: int = 0


@dataclass
class Moments:
    """Moments of every member on all rows.

    The difference of the means of f, the mean of f² and mean squared derivatives (E, d).
    """

    difference: AnyArray
    second: AnyArray
    squared: AnyArray


@dataclass
class Ensemble:
    """Trained members of one design.

    Attributes
    ----------
    design : Design
    sizes : tuple of int
        The numbers of features and of columns of psi.
    network : Network
        A network of standardised columns, on the CPU, in double precision.
    eta : array (E, d) or (E, n_groups)
        Importances of the members.
    moments : Moments
    history : History
    """

    design: Design
    sizes: tuple[int, int]
    network: Any
    eta: AnyArray
    moments: Moments
    history: History


def fit_members(
    sample: Sample,
    members: Sequence[Member],
    recipe: Recipe,
    start: Sequence[Ensemble] | None = None,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> list[Ensemble]:
    """Train members in chunks of one design each, in the order given.

    The chunks do not depend on ``n_jobs``, and no member depends on the others. ``start`` are the
    ensembles of an earlier fit of the same members, to continue from.
    """
    chunks = _chunks(members)
    before: Sequence[Ensemble | None] = [None] * len(chunks)
    if start is not None and [e.eta.shape[0] for e in start] == [len(c) for c in chunks]:
        before = start
    batched = all(member.design.batched for member in members)
    if not batched or recipe.optimizer.gradient == "autograd":
        import sobolev.neural.torch_backend  # noqa: F401, first: one_thread limits torch, too
    with one_thread():
        # Modules draw from torch's global generator, which threads cannot share. Threads under any
        # setting of joblib: what hears of progress cannot be sent to a process.
        run = Parallel(n_jobs=n_jobs if batched else 1, require="sharedmem")
        return list(
            run(
                delayed(_fit_chunk)(sample, chunk, recipe, one, report)
                for chunk, one in zip(chunks, before, strict=True)
            )
        )


def _chunks(members: Sequence[Member]) -> list[list[Member]]:
    chunks: list[list[Member]] = []
    for member in members:
        last = chunks[-1] if chunks else None
        joins = last is not None and last[0].design is member.design and len(last) < CHUNK_MEMBERS
        if joins and member.design.batched:
            chunks[-1].append(member)
        else:
            chunks.append([member])
    return chunks


def _fit_chunk(
    sample: Sample,
    members: list[Member],
    recipe: Recipe,
    start: Ensemble | None,
    report: Report | None,
) -> Ensemble:
    """All rounds of the members of a chunk."""
    d, k = sample.X.shape[1], sample.psi.shape[1]
    optimizer, design, rngs = recipe.optimizer, members[0].design, [m.rng for m in members]
    gradients, device = _gradients(design, recipe)
    lam = to_device(np.array([m.lam for m in members], dtype=np.float32), device)
    X = to_device(sample.X.astype(np.float32), device)
    Y = to_device(sample.psi.astype(np.float32), device)
    groups = None if recipe.groups is None else GroupIndex.make(recipe.groups, device)
    size = d if recipe.groups is None else recipe.groups.n_groups
    eta = np.full((len(members), size), 1 / size, dtype=np.float32)  # Alg. 3: eta_j = 1/d
    network, metric, n_rounds = design.build(rngs, d, k), None, optimizer.rounds
    if start is not None and start.eta.shape == eta.shape and _alike(start.network, network):
        network, eta, n_rounds = start.network.cast(np.float32), start.eta.astype(np.float32), 1
    trained = [_rows(sample, m.train) for m in members]
    with design.own_generator(rngs[0]):
        for number in range(1, n_rounds + 1):
            last = number == n_rounds
            network = (network if number == 1 else design.build(rngs, d, k)).to(device)
            if gradients is not closed_form:
                for parameter in network.parameters:
                    parameter.requires_grad_(True)
            importances = Importances.start(to_device(eta.copy(), device), groups)
            history = train(
                network,
                Table(X, Y, metric if metric is None else to_device(metric, device)),
                Sampler(
                    trained,
                    [m.batch_size for m in members],
                    rngs,
                    network.dropouts,
                    2 if network.pairs else 1,
                    device,
                ),
                design.objective,
                importances,
                lam,
                optimizer,
                optimizer.max_iter if last else optimizer.round_updates,
                _validation(sample, members, trained, recipe, device) if last else None,
                None if report is None else partial(report, number),
                gradients,
            )
            network = network.to(None).cast(float)
            if metric is not None:
                network.scale_inputs(metric)
            moments = evaluate(network, sample, design.objective, recipe.seed)
            metric = _metric(moments.squared, recipe.groups)
    if optimizer.mirror:  # the paper: the last eta is the result
        eta = to_numpy(importances.eta).astype(float)
    else:
        squared = moments.squared
        if recipe.groups is not None:
            squared = np.stack([recipe.groups.squared_gradients(row) for row in squared])
        eta = np.stack([normalized_importances(row, optimizer.epsilon) for row in squared])
    return Ensemble(design, (d, k), network, eta, moments, history)


def _gradients(design: Design, recipe: Recipe) -> tuple[Any, Any]:
    """How to differentiate the gradient penalty, and where: None is numpy."""
    if design.batched and recipe.optimizer.gradient != "autograd":
        return closed_form, recipe.device
    from sobolev.neural.torch_backend import CPU, double_backpropagation

    return double_backpropagation, recipe.device or CPU


def _alike(one: Any, other: Any) -> bool:
    """Whether two networks have parameters of the same shapes."""
    shapes = [[tuple(p.shape) for p in network.parameters] for network in (one, other)]
    return type(one) is type(other) and shapes[0] == shapes[1]


def _rows(sample: Sample, index: Index) -> Rows:
    p = sample.p[index]
    uniform = np.ptp(p) <= 1e-9 * p.max()
    return Rows(index, None if uniform else p / p.sum())


def _validation(
    sample: Sample, members: list[Member], trained: list[Rows], recipe: Recipe, device: Any
) -> Validation | None:
    folds = [m.held_out for m in members]
    if not recipe.every or any(fold is None for fold in folds):
        return None
    held_out = [_rows(sample, fold) for fold in folds if fold is not None]
    rngs = [m.rng for m in members]
    return Validation.make(held_out, trained, rngs, recipe.every, recipe.patience, device)


def _metric(squared: AnyArray, groups: Groups | None = None) -> AnyArray:
    """Weights of the columns by their importance, of mean square one, (E, d).

    Columns that are not penalised have the largest weight.
    """
    root = np.sqrt(squared)
    if groups is not None:
        root[:, groups.adjusted] = root.max(axis=1, keepdims=True)
    metric = root / np.maximum(root.max(axis=1, keepdims=True), 1e-30) + METRIC_FLOOR
    metric /= np.sqrt(np.mean(metric**2, axis=1, keepdims=True))
    return metric.astype(np.float32)


# -- evaluation on all rows ----------------------------------------------------------------------


def evaluate(network: Any, sample: Sample, objective: Objective, seed: int) -> Moments:
    """Moments of every member without dropout, over all rows and draws of the response."""
    n, d = sample.X.shape
    draws = np.random.default_rng(seed).choice(n, (EVALUATION_DRAWS, n), p=sample.p)
    joint = objective.joint
    share = np.array([joint, *[(1 - joint) / len(draws)] * len(draws)])
    sign = np.array([1.0, *[-1 / len(draws)] * len(draws)])
    difference: Any = 0.0
    second: Any = 0.0
    squared: Any = 0.0
    for rows in _row_chunks(n, network, EVALUATION_DRAWS + 1, d):
        psi, w = sample.psi[rows], sample.p[rows]
        y = np.stack([psi, *(sample.psi[draw[rows]] for draw in draws)]) if network.pairs else None
        values, g = network.values_and_gradients(*member_inputs(network, sample.X[rows], y))
        if network.pairs:
            difference = difference + np.einsum("ecn,n,c->e", values, w, sign)
            second = second + np.einsum("ecn,n,c->e", values**2, w, share)
            squared = squared + np.einsum("ecnd,n,c->ed", g**2, w, share)
        else:
            if psi.shape[1] == values.shape[1]:
                difference = difference + np.einsum("ecn,n,nc->e", values, w, psi)
            second = second + np.einsum("ecn,n->e", values**2, w)
            squared = squared + np.einsum("ecnd,n->ed", g**2, w)
    return Moments(difference, second, squared)


def _row_chunks(n: int, network: Any, n_copies: int, d: int) -> Iterator[slice]:
    size = max(1, EVALUATION_SIZE // (network.n_members * n_copies * d))
    return gen_batches(n, size)


def network_values(network: Any, X: Array, y: Array | None) -> AnyArray:
    """Values (E, C, n) at standardised rows; y is (C, n, k) or None."""
    widest = max(X.shape[1], *(width for _, width, _ in network.dropouts), 0)
    found = []
    for rows in _row_chunks(X.shape[0], network, 1 if y is None else y.shape[0], widest):
        inputs = member_inputs(network, X[rows], None if y is None else y[:, rows])
        found.append(to_numpy(network.values(*inputs)))
    return np.concatenate(found, axis=2)


def member_inputs(network: Any, X: Array, y: Array | None) -> tuple[AnyArray, AnyArray | None]:
    """Rows for every member, (E, 1, N, d) and (E, C, N, k); members share the memory."""
    E = network.n_members
    x = np.broadcast_to(X, (E, 1, *X.shape))
    return x, None if y is None else np.broadcast_to(y, (E, *y.shape))
