"""Everything that needs PyTorch: a user's module, double back-propagation, devices.

No other module of the package imports torch, except the model that ``NeuralConditional`` trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sobolev._typing import AnyArray
from sobolev.neural.arrays import Array, to_numpy
from sobolev.neural.importances import Importances
from sobolev.neural.networks import Dropouts, Keeps
from sobolev.neural.objectives import Objective
from sobolev.neural.sampling import Batch
from sobolev.neural.training import Table

try:
    import torch
except ImportError as error:
    raise ImportError(
        "modules of your own, GPUs, automatic differentiation and NeuralConditional need PyTorch: "
        'pip install "sobolev[neural]"'
    ) from error


CPU = torch.device("cpu")


def find_device(device: Any) -> torch.device | None:
    """The device to train on; None is the CPU."""
    available: dict[str, Any] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if device == "auto":
        return next((torch.device(kind) for kind, ready in available.items() if ready()), None)
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        raise ValueError(
            f'device={device!r} is unknown; use "auto", "cpu", "cuda", "cuda:1" or "mps".'
        ) from None
    if found.type not in ("cpu", *available):
        raise ValueError(f'device={device!r} is not supported; use "auto", "cpu", "cuda" or "mps".')
    if found.type != "cpu" and not available[found.type]():
        kind = found.type.upper()
        raise ValueError(f'device={device!r}: {kind} is not available here; use device="auto".')
    return None if found.type == "cpu" else found


@contextmanager
def own_generator(rng: np.random.Generator) -> Iterator[None]:
    """Seed torch's global generator, which modules draw from, and restore it afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        yield


def wrap_module(
    factory: Callable[[int, int], Any],
    rng: np.random.Generator,
    n_features: int,
    n_targets: int,
    *,
    pairs: bool,
) -> Wrapped:
    """A user's module, built without touching torch's global generator."""
    with own_generator(rng):
        module = factory(n_features, n_targets)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"the callable must return a torch.nn.Module of {'(x, y)' if pairs else 'x'}; "
            f"got {type(module).__name__}."
        )
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("the module has no trainable parameters.")
    return Wrapped(module.to(torch.float32), pairs, n_outputs=1 if pairs else n_targets)


@dataclass
class Wrapped:
    """A user's module as a network of one member, trained by automatic differentiation.

    ``metric`` multiplies the columns of x before the module sees them.
    """

    module: torch.nn.Module
    pairs: bool = True
    n_outputs: int = 1
    metric: Array | None = None
    dropouts: Dropouts = field(default_factory=list)
    n_members: int = 1

    @property
    def parameters(self) -> list[Array]:
        """The trainable parameters of the module."""
        return [p for p in self.module.parameters() if p.requires_grad]

    @property
    def state(self) -> list[Array]:
        """Everything that the module has learned, buffers included."""
        return list(self.module.state_dict().values())

    def with_state(self, state: list[AnyArray], metric: Array | None) -> Wrapped:
        """Load another state into the module."""
        names = self.module.state_dict()
        values = {name: torch.as_tensor(a) for name, a in zip(names, state, strict=True)}
        self.module.load_state_dict(values)
        self.metric = metric
        return self

    def cast(self, dtype: Any) -> Wrapped:
        """The module keeps its precision."""
        return self

    def to(self, device: torch.device | None) -> Wrapped:
        """Move the module to a device; None is the CPU."""
        self.module.to(CPU if device is None else device)
        return self

    def scale_inputs(self, metric: Array) -> None:
        """Absorb the metric (1, d) of the columns."""
        self.metric = to_numpy(metric)

    def values(self, x: Array, y: Array | None, keeps: Keeps | None = None) -> Array:
        """Values (1, C, N). ``keeps`` tells training (not None) from evaluation."""
        self.module.train(keeps is not None)
        with torch.set_grad_enabled(keeps is not None):
            return self._values(x, y)

    def values_and_gradients(self, x: Array, y: Array | None) -> tuple[AnyArray, AnyArray]:
        """Values (1, C, N) and derivatives in x (1, C, N, d), without dropout."""
        self.module.eval()
        with torch.enable_grad():
            tensor = torch.tensor(x, requires_grad=True)
            values = self._values(tensor, y)
            return to_numpy(values), to_numpy(input_gradients(values, tensor))

    def response_gradient(self, x: Array, y: Array) -> AnyArray:
        """Derivatives in the response, (1, C, N, k), without dropout."""
        self.module.eval()
        with torch.enable_grad():
            tensor = torch.tensor(y, requires_grad=True)
            (found,) = torch.autograd.grad(self._values(x, tensor).sum(), tensor)
        gradient: AnyArray = to_numpy(found).astype(float)
        return gradient

    def first_product(self, x: AnyArray) -> AnyArray:
        """The rows themselves, (1, n, d): a module shows no first layer."""
        return x[None]

    def shifted(
        self, first: AnyArray, columns: Any, shift: AnyArray, y: AnyArray | None
    ) -> AnyArray:
        """Values (1, C, n Q) when columns of the rows move by shifts (n, Q, c)."""
        n, Q = shift.shape[:2]
        x = np.repeat(first[0][:, None], Q, axis=1)
        x[:, :, columns] += shift
        own = np.repeat(y, Q, axis=1)[None] if self.pairs and y is not None else None
        found: AnyArray = to_numpy(self.values(x.reshape(1, 1, n * Q, -1), own))
        return found

    def _values(self, x: Array, y: Array | None) -> Array:
        own = self.parameters[0]
        x, y = (part if part is None else _tensor(part).to(own) for part in (x, y))
        if self.metric is not None:
            x = x * torch.as_tensor(self.metric).to(own)
        N = x.shape[2]
        if y is None:
            return self._outputs(self.module(x[0, 0]), N)
        C = y.shape[1]
        rows = x.expand(1, C, N, x.shape[3]).reshape(C * N, -1)
        out = self.module(rows, y.reshape(C * N, -1))
        if out.numel() != C * N:
            raise ValueError(
                f"the critic module returned shape {tuple(out.shape)} for {C * N} rows; "
                "it must return one number for each row."
            )
        return out.reshape(1, C, N)

    def _outputs(self, out: Array, N: int) -> Array:
        """Outputs of a module of x alone as copies, (1, n_outputs, N)."""
        out = out[:, None] if out.dim() == 1 else out
        if out.shape[0] != N:
            raise ValueError(f"the module returned {out.shape[0]} rows for {N}.")
        if out.dim() != 2 or out.shape[1] != self.n_outputs:
            raise ValueError(
                f"the module returned shape {tuple(out.shape)} for {N} rows; it must have "
                f"{self.n_outputs} outputs."
            )
        return out.transpose(0, 1)[None]


def _tensor(array: Array) -> torch.Tensor:
    """A tensor; a numpy array that is a view of shared rows is copied."""
    return array if isinstance(array, torch.Tensor) else torch.tensor(array)


def double_backpropagation(
    network: Any,
    table: Table,
    batch: Batch,
    objective: Objective,
    importances: Importances,
    lam: Array,
    epsilon: float,
) -> tuple[Array, Array, list[Array]]:
    """The same as :func:`~sobolev.neural.training.closed_form` by automatic differentiation."""
    y = table.responses(network, batch)
    x = table.x(batch.rows).requires_grad_(True)
    scale = table.penalty_scale(importances, lam, objective.share)[:, None, None]
    w = batch.weights[:, None, :, None]
    with torch.enable_grad():
        values = network.values(x, y if network.pairs else None, batch.keeps)
        loss, delta = objective(values.detach(), y, batch.weights)
        g = input_gradients(values, x, objective.copies)
        total = (values * delta).sum() + 0.5 * (w * scale * g * g).sum()
        found = torch.autograd.grad(total, network.parameters, allow_unused=True)
    g = g.detach()
    squared = table.mean_squares((w * g * g).sum((1, 2)), objective.share)
    loss = loss + 0.5 * lam * importances.penalty(squared, epsilon)
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
