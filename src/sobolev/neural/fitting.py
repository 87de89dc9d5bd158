"""Fit an ensemble to a sample: members, rounds of the metric, importances on all rows.

Everything here takes arrays and plain settings; the estimators validate, name and store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from sobolev._sample import Sample
from sobolev._typing import AnyArray, Array, Index
from sobolev.criterion import Groups, normalized_importances
from sobolev.neural.arrays import keep_freed_memory, to_device, to_numpy
from sobolev.neural.critics import wrap_module
from sobolev.neural.networks import Wrapped, as_float, on_device
from sobolev.neural.objectives import Objective
from sobolev.neural.sampling import Rows, Sampler
from sobolev.neural.training import (
    GroupIndex,
    History,
    Importances,
    Settings,
    Table,
    Validation,
    input_gradients,
    train,
)

# A round before the last has this share of the updates of the last.
ROUND_SHARE = 0.25
# The metric of a round: importance relative to the largest, plus a floor that lets a feature come
# back.
METRIC_FLOOR = 0.03
# Members trained in one set of batched products; more would no longer fit into fast memory.
CHUNK_MEMBERS = 8
# Numbers that an evaluation holds at once, and draws of the response for each row.
EVALUATION_SIZE = 2**23
EVALUATION_DRAWS = 4


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
            n = n_targets if self.outputs is None else self.outputs
            return wrap_module(self.spec, rngs[0], n_features, n, pairs=self.outputs is None)
        if self.outputs is None:
            return self.spec.build(rngs, n_features, n_targets)
        return self.spec.build_network(rngs, n_features, self.outputs)


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

    ``settings`` has no lam yet. ``eta_of_state`` takes the importances from the last step of
    mirror descent, as the paper does, instead of from the gradients on all rows.
    """

    settings: Settings
    max_iter: int
    recursions: int = 1
    groups: Groups | None = None
    device: torch.device | None = None
    eta_of_state: bool = False
    seed: int = 0
    every: int = 0
    patience: int = 0


@dataclass
class Moments:
    """Of every member on all rows: E f difference, E f² and mean squared derivatives (E, d)."""

    difference: AnyArray
    second: AnyArray
    squared: AnyArray


@dataclass
class Ensemble:
    """Members of one design, trained.

    Attributes
    ----------
    design : Design
    sizes : tuple of int
        The numbers of features and of columns of psi.
    network : Network
        On the CPU, in double precision, of standardised columns.
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
    report: Callable[[int, int, float], None] | None = None,
) -> list[Ensemble]:
    """Train members in chunks of one design each, in the order given.

    A chunk's composition does not depend on ``n_jobs``, and no member depends on the others.
    ``start`` are the ensembles of an earlier fit of the same members, to go on from.
    """
    chunks = _chunks(members)
    before: Sequence[Ensemble | None] = [None] * len(chunks)
    if start is not None and [e.eta.shape[0] for e in start] == [len(c) for c in chunks]:
        before = start
    with _one_thread():
        # Modules draw from torch's global generator, which threads cannot share.
        shared = all(member.design.batched for member in members)
        run = Parallel(n_jobs=n_jobs if shared else 1, prefer="threads")
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


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for products: the same numbers on every machine, and no waiting."""
    keep_freed_memory()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"), torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)


def _fit_chunk(
    sample: Sample,
    members: list[Member],
    recipe: Recipe,
    start: Ensemble | None,
    report: Callable[[int, int, float], None] | None,
) -> Ensemble:
    d, k = sample.X.shape[1], sample.psi.shape[1]
    design, rngs = members[0].design, [m.rng for m in members]
    closed = recipe.settings.closed_form and design.batched
    device = recipe.device if closed else recipe.device or torch.device("cpu")
    lam = to_device(np.array([m.lam for m in members], dtype=np.float32), device)
    settings = replace(recipe.settings, lam=lam, closed_form=closed)
    X = to_device(sample.X.astype(np.float32), device)
    Y = to_device(sample.psi.astype(np.float32), device)
    groups = _group_index(recipe.groups, device)
    size = d if recipe.groups is None else recipe.groups.n_groups
    eta = np.full((len(members), size), 1 / size, dtype=np.float32)
    network, metric = design.build(rngs, d, k), None
    n_rounds = recipe.recursions
    if start is not None and start.eta.shape == eta.shape and _alike(start.network, network):
        network, eta, n_rounds = start.network, start.eta.astype(np.float32), 1
        network = as_float(network, np.float32)
    trained = [_rows(sample, m.train) for m in members]
    with torch.random.fork_rng(devices=[], enabled=not design.batched):
        if not design.batched:
            torch.manual_seed(int(members[0].rng.integers(2**63)))
        for number in range(1, n_rounds + 1):
            last = number == n_rounds
            network = on_device(network if number == 1 else design.build(rngs, d, k), device)
            if not closed and not isinstance(network, Wrapped):
                for parameter in network.parameters:
                    parameter.requires_grad_(True)
            importances = Importances.start(to_device(eta.copy(), device), groups)
            sampler = Sampler(
                trained,
                [m.batch_size for m in members],
                rngs,
                network.dropouts,
                2 if network.pairs else 1,
                device,
            )
            history = train(
                network,
                Table(X, Y, metric if metric is None else to_device(metric, device)),
                sampler,
                design.objective,
                importances,
                settings,
                recipe.max_iter if last else max(1, round(ROUND_SHARE * recipe.max_iter)),
                _validation(sample, members, trained, recipe, device) if last else None,
                None if report is None else _reporter(report, number),
            )
            network = as_float(on_device(network, None), float)
            if metric is not None:
                network.scale_inputs(metric)
            moments = evaluate(network, sample, design.objective, recipe.seed)
            if not last:
                metric = _metric(moments.squared)
    eta = to_numpy(importances.eta).astype(float)
    if not recipe.eta_of_state:
        squared = moments.squared
        if recipe.groups is not None:
            squared = np.stack([recipe.groups.squared_gradients(row) for row in squared])
        eta = np.stack([normalized_importances(row, settings.epsilon) for row in squared])
    return Ensemble(design, (d, k), network, eta, moments, history)


def _alike(one: Any, other: Any) -> bool:
    """Whether two networks have parameters of the same shapes."""
    shapes = [[tuple(p.shape) for p in network.parameters] for network in (one, other)]
    return type(one) is type(other) and shapes[0] == shapes[1]


def _reporter(
    report: Callable[[int, int, float], None], number: int
) -> Callable[[int, AnyArray], None]:
    return lambda done, losses: report(number, done, float(-losses.mean()))


def _rows(sample: Sample, index: Index) -> Rows:
    p = sample.p[index]
    uniform = np.ptp(p) <= 1e-9 * p.max()
    return Rows(index, None if uniform else p / p.sum())


def _group_index(groups: Groups | None, device: torch.device | None) -> GroupIndex | None:
    if groups is None:
        return None
    pairs = groups.membership.tocoo()
    return GroupIndex(
        to_device(pairs.row.astype(np.int64), device),
        to_device(pairs.col.astype(np.int64), device),
        groups.n_groups,
    )


def _validation(
    sample: Sample,
    members: list[Member],
    trained: list[Rows],
    recipe: Recipe,
    device: torch.device | None,
) -> Validation | None:
    folds = [m.held_out for m in members]
    if not recipe.every or any(fold is None for fold in folds):
        return None
    held_out = [_rows(sample, fold) for fold in folds if fold is not None]
    rngs = [m.rng for m in members]
    return Validation.make(held_out, trained, rngs, recipe.every, recipe.patience, device)


def _metric(squared: AnyArray) -> AnyArray:
    """Columns by their importance, of mean square one, (E, d)."""
    root = np.sqrt(squared)
    metric = root / np.maximum(root.max(axis=1, keepdims=True), 1e-30) + METRIC_FLOOR
    metric /= np.sqrt(np.mean(metric**2, axis=1, keepdims=True))
    return metric.astype(np.float32)


# -- evaluation on all rows ----------------------------------------------------------------------


def evaluate(network: Any, sample: Sample, objective: Objective, seed: int) -> Moments:
    """Moments of every member without dropout, over all rows and draws of the response."""
    n, d = sample.X.shape
    rng = np.random.default_rng(seed)
    draws = list(rng.choice(n, (EVALUATION_DRAWS, n), p=sample.p))
    difference: Any = 0.0
    second: Any = 0.0
    squared: Any = 0.0
    for rows in _row_chunks(n, network, EVALUATION_DRAWS + 1, d):
        y = _responses(sample.psi, rows, draws) if network.pairs else None
        values, g = values_and_gradients(network, sample.X[rows], y)
        w = sample.p[rows]
        squares = g**2
        if network.pairs:
            joint = getattr(objective, "joint", 0.0)
            share = np.array([joint, *[(1 - joint) / len(draws)] * len(draws)])
            sign = np.array([1.0, *[-1 / len(draws)] * len(draws)])
            difference = difference + np.einsum("ecn,n,c->e", values, w, sign)
            second = second + np.einsum("ecn,n,c->e", values**2, w, share)
            squared = squared + np.einsum("ecnd,n,c->ed", squares, w, share)
        else:
            psi = sample.psi[rows]
            if psi.shape[1] == values.shape[1]:
                difference = difference + np.einsum("ecn,n,nc->e", values, w, psi)
            second = second + np.einsum("ecn,n->e", values**2, w)
            squared = squared + np.einsum("ecnd,n->ed", squares, w)
    return Moments(difference, second, squared)


def _row_chunks(n: int, network: Any, n_copies: int, d: int) -> Iterator[slice]:
    size = max(1, EVALUATION_SIZE // (n_members(network) * n_copies * d))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def _responses(psi: Array, rows: slice, draws: list[Index]) -> Array:
    """The own response and drawn ones, (C, N, k)."""
    return np.stack([psi[rows], *(psi[draw[rows]] for draw in draws)])


def network_values(network: Any, X: Array, y: Array | None) -> AnyArray:
    """Values (E, C, n) at standardised rows; y is (C, n, k) or None."""
    d = X.shape[1]
    widest = max(d, *(width for _, width, _ in network.dropouts)) if network.dropouts else d
    found = []
    with torch.no_grad():
        for rows in _row_chunks(X.shape[0], network, 1 if y is None else y.shape[0], widest):
            x, part = _inputs(network, X, y, rows)
            found.append(to_numpy(network.values(x, part)))
    return np.concatenate(found, axis=2)


def _inputs(
    network: Any, X: Array, y: Array | None, rows: slice
) -> tuple[AnyArray, AnyArray | None]:
    """Rows for every member, (E, 1, N, d) and (E, C, N, k); members share the memory."""
    E = n_members(network)
    x = X[rows]
    x = np.broadcast_to(x, (E, 1, *x.shape))
    if y is None:
        return x, None
    part = y[:, rows]
    return x, np.broadcast_to(part, (E, *part.shape))


def n_members(network: Any) -> int:
    """The number of members of a network."""
    return 1 if isinstance(network, Wrapped) else int(network.parameters[0].shape[0])


def values_and_gradients(network: Any, X: Array, y: Array | None) -> tuple[AnyArray, AnyArray]:
    """Values (E, C, N) and derivatives in x (E, C, N, d); y is (C, N, k) or None."""
    x, part = _inputs(network, X, y, slice(None))
    if isinstance(network, Wrapped):
        with torch.enable_grad():
            tensor = torch.tensor(x, requires_grad=True)
            values = network.values(tensor, part)
            g = input_gradients(values, tensor)
        return to_numpy(values), to_numpy(g)
    trace = network.trace(x, part, [None] * len(network.dropouts))
    return trace.values, trace.input_gradient(slice(None))
