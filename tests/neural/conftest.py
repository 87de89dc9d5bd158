"""A small training problem, the same on numpy and torch, that the tests of the networks share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from sobolev.neural.arrays import to_device, to_numpy
from sobolev.neural.importances import Importances
from sobolev.neural.objectives import CrossEntropy
from sobolev.neural.sampling import Batch, Rows, Sampler
from sobolev.neural.training import Table

N_ROWS, D = 40, 5


@dataclass
class Problem:
    """One update's worth of everything that a gradient needs."""

    network: Any
    table: Table
    batch: Batch
    objective: Any
    importances: Importances
    lam: Any
    epsilon: float
    sizes: list[int]

    def gradients(self, rule):
        """Loss, squared derivatives and gradients by ``rule``, all as numpy arrays."""
        loss, squared, found = rule(
            self.network,
            self.table,
            self.batch,
            self.objective,
            self.importances,
            self.lam,
            self.epsilon,
        )
        return to_numpy(loss), to_numpy(squared), [to_numpy(g) for g in found]


@pytest.fixture
def make_problem():
    """Build a problem; what a member sees depends on its seed alone."""

    def make(
        spec,
        objective,
        outputs=None,
        *,
        k=2,
        members=(0, 1, 2),
        dtype=np.float64,
        device=None,
        metric=True,
        groups=None,
        autograd=False,
    ):
        rngs = [np.random.default_rng(seed) for seed in members]
        own = [np.random.default_rng(100 + seed) for seed in members]
        network = (
            spec.build(rngs, D, k) if outputs is None else spec.build_network(rngs, D, outputs)
        )
        network = network.replace([p.astype(dtype) for p in network.parameters])
        network = network.to(device)
        for parameter in network.parameters if autograd else ():
            parameter.requires_grad_(True)
        sizes = [13 - 3 * (seed % 3) for seed in members]  # ragged
        sampler = Sampler(
            [Rows(np.arange(seed, N_ROWS)) for seed in members],
            sizes,
            rngs,
            network.dropouts,
            2 if network.pairs else 1,
            device,
        )
        batch = next(sampler.batches(1))

        def array(values):
            return to_device(np.asarray(values, dtype), device)

        weights = to_numpy(batch.weights).astype(float)
        batch = Batch(
            batch.rows, batch.permuted, array(weights), array(np.sqrt(weights)), batch.keeps
        )
        rng = np.random.default_rng(0)
        X = rng.standard_normal((N_ROWS, D))
        Y = rng.standard_normal((N_ROWS, k if outputs is None else outputs))
        if isinstance(objective, CrossEntropy):
            Y = np.eye(outputs)[rng.integers(outputs, size=N_ROWS)]
        n_groups = D if groups is None else groups.n_groups
        eta = np.stack([r.dirichlet(3 * np.ones(n_groups)) for r in own])
        scales = np.stack([r.uniform(0.5, 1.5, D) for r in own]) if metric else None
        table = Table(array(X), array(Y), None if scales is None else array(scales))
        lam = array(0.2 + 0.1 * np.array(members))
        importances = Importances.start(array(eta), groups)
        return Problem(network, table, batch, objective, importances, lam, 1e-3, sizes)

    return make


@pytest.fixture
def global_states():
    """A function that reads the state of every global generator."""
    import random

    def read():
        return (
            random.getstate(),
            [str(part) for part in np.random.get_state()],  # noqa: NPY002
            torch.random.get_rng_state().tolist(),
        )

    return read
