"""Networks with closed-form gradients.

A network is an ensemble: its parameters have a leading dimension of members. ``trace`` runs the
passes of :mod:`sobolev.neural.layers`; ``values`` is the same evaluation, which automatic
differentiation can follow. The tests compare the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sobolev._typing import AnyArray
from sobolev.neural.arrays import (
    Array,
    Keep,
    activation,
    map_arrays,
    rectified,
    to_device,
    to_numpy,
)
from sobolev.neural.layers import Passes, Stack, matmul, outer

Keeps = Sequence[Keep | None]
# For each activation: whether copies have masks of their own, the width, the rate.
Dropouts = list[tuple[bool, int, float]]


class Trace(Protocol):
    """One evaluation, open for the closed-form passes, which are called in this order."""

    @property
    def values(self) -> Array:
        """Values, (E, C, N)."""

    def input_gradient(self, copies: slice) -> Array:
        """The derivatives of the chosen copies in x, (E, C', N, d)."""

    def parameter_gradient(self, delta: Array, G: Array, copies: slice) -> list[Array]:
        """The gradient of sum(delta * values) + P, with G the gradient of P in input_gradient."""


def _part(rows: Array, copies: slice) -> Array:
    """Some of the copies; shared rows stay shared."""
    return rows if rows.shape[1] == 1 else rows[:, copies]


def _total(rows: Array) -> Array:
    """The sum over copies, kept as a dimension."""
    if rows.shape[1] == 2:
        return rows[:, :1] + rows[:, 1:]
    return rows if rows.shape[1] == 1 else rows.sum(1)[:, None]


def _with_responses(rows: Array, of_y: Array) -> Array:
    """Rows (E, 1, N, H) plus what the responses (E, C, n, H) add, each to N / n rows on end."""
    E, C, n, H = of_y.shape
    apart = rows.reshape(E, -1, n, rows.shape[2] // n, H)
    return (apart + of_y[:, :, :, None]).reshape(E, C, -1, H)


class Network:
    """An ensemble of functions of (x, y) if ``pairs``, of x alone otherwise.

    A subclass is a dataclass of its parameters, with ``dropouts``, ``first_weights`` (the weights
    that multiply x, (E, d, H)), ``trace`` and ``values_from``.
    """

    pairs: Any
    dropouts: Any
    first_weights: Any

    @property
    def parameters(self) -> list[Array]:
        """All parameters in the order of the fields."""
        found: list[Array] = []
        map_arrays(self, found.append)
        return found

    def replace(self, parameters: list[Array]) -> Any:
        """The same network with other parameters."""
        left = iter(parameters)
        return map_arrays(self, lambda _: next(left))

    @property
    def n_members(self) -> int:
        """The number of members."""
        return int(self.parameters[0].shape[0])

    @property
    def state(self) -> list[Array]:
        """Everything that the network has learned."""
        return list(self.parameters)

    def with_state(self, state: list[AnyArray], metric: Array | None) -> Any:
        """The same network with another state; the metric is already part of the weights."""
        return self.replace(state)

    def cast(self, dtype: Any) -> Any:
        """The network on the CPU with parameters of another precision."""
        return map_arrays(self, lambda p: p.astype(dtype))

    def to(self, device: Any) -> Any:
        """The network with its parameters as tensors on a device, or as numpy arrays."""
        return map_arrays(self, lambda p: to_device(to_numpy(p), device))

    def scale_inputs(self, metric: Array) -> None:
        """Absorb the metric (E, d) of the columns into the first layer."""
        weights = self.first_weights
        weights *= metric[:, :, None]

    def values(self, x: Array, y: Array | None, keeps: Keeps | None = None) -> Array:
        """Values (E, C, N), without dropout unless its masks are given."""
        return self.trace(x, y, [None] * len(self.dropouts) if keeps is None else keeps).values

    def values_and_gradients(self, x: Array, y: Array | None) -> tuple[Array, Array]:
        """Values (E, C, N) and derivatives in x (E, C, N, d), without dropout."""
        trace = self.trace(x, y, [None] * len(self.dropouts))
        return trace.values, trace.input_gradient(slice(None))

    def response_gradient(self, x: Array, y: Array) -> Array:
        """Derivatives in the response, (E, C, N, k), without dropout."""
        trace: Any = self.trace(x, y, [None] * len(self.dropouts))
        trace.input_gradient(slice(None))
        return trace.response_gradient()

    def first_product(self, x: Array) -> Array:
        """The product of rows (n, d) with the first layer, (E, n, H)."""
        return x @ self.first_weights

    def shifted(self, first: Array, columns: Any, shift: Array, y: Array | None) -> Array:
        """Values (E, C, n Q) when columns move by shifts (n, Q, c), from the first product."""
        weights = self.first_weights[:, columns]  # (E, c, H)
        E, H = weights.shape[0], weights.shape[2]
        pre = (first[:, :, None] + shift @ weights[:, None]).reshape(E, 1, -1, H)
        own = np.broadcast_to(y, (E, *y.shape)) if self.pairs and y is not None else None
        return self.values_from(pre, own)

    def trace(self, x: Array, y: Array | None, keeps: Keeps) -> Trace:
        """Run the forward pass."""
        raise NotImplementedError

    def values_from(self, pre: Array, y: Array | None) -> Array:
        """Values from the product of x with the first layer, see :func:`_with_responses`."""
        raise NotImplementedError


@dataclass
class Perceptron(Network):
    """Linear layers and activations, of (x, y), or of x alone with several outputs.

    The product of x with the first layer is shared by all pairings of x with a response. With
    several outputs there is one pairing, and the copies of the adjoint pass are the outputs.
    """

    Wx: Array
    Wy: Array | None
    bias: Array | None
    hidden: Stack
    V: Array
    offset: Array | None

    @property
    def pairs(self) -> bool:
        """Whether a response is part of the input."""
        return self.Wy is not None

    @property
    def dropouts(self) -> Dropouts:
        """A mask for each hidden layer."""
        first = (self.pairs, self.Wx.shape[2], self.hidden.dropout)
        return [first, *self.hidden.dropouts(self.pairs)]

    @property
    def first_weights(self) -> Array:
        """The weights that multiply x, (E, d, H)."""
        return self.Wx

    def values_from(self, pre: Array, y: Array | None) -> Array:
        """Values from the product of x with the first layer, see :func:`_with_responses`."""
        pre = self._before(pre, y)
        return self._output(self.hidden.values(rectified(pre, self.hidden.slope)))

    def trace(self, x: Array, y: Array | None, keeps: Keeps) -> PerceptronTrace:
        """Run the forward pass."""
        pre = self._before(matmul(x, self.Wx), y)
        z, mask = activation(pre, self.hidden.slope, keeps[0])
        passes = self.hidden.forward(z, list(keeps[1:]))
        return PerceptronTrace(self, x, y, mask, passes, self._output(passes.output))

    def _before(self, pre: Array, y: Array | None) -> Array:
        """The first layer before its activation, from its product with x."""
        if self.Wy is not None:
            pre = _with_responses(pre, matmul(y, self.Wy))
        return pre if self.bias is None else pre + self.bias[:, None]

    def _output(self, z: Array) -> Array:
        """Values (E, C, N) from the last hidden layer; the copies are the outputs if several."""
        out = matmul(z, self.V)
        if self.offset is not None:
            out = out + self.offset[:, None]
        return out[..., 0] if out.shape[-1] == 1 else out[:, 0].swapaxes(1, 2)


@dataclass
class PerceptronTrace:
    """A :class:`Trace` of a perceptron."""

    net: Perceptron
    x: Array
    y: Array | None
    mask: Array
    passes: Passes
    values: Array
    a: Array = field(init=False)
    adjoints: list[Array] = field(init=False)
    weighted: Array = field(init=False)

    def input_gradient(self, copies: slice) -> Array:
        """See :class:`Trace`."""
        top = self.net.V.swapaxes(1, 2)[:, :, None]
        below, self.adjoints = self.net.hidden.adjoint(top, self.passes.masks)
        self.a = below * self.mask
        return matmul(self.a[:, copies], self.net.Wx.swapaxes(1, 2))

    def response_gradient(self) -> Array:
        """The derivatives of all copies in y, (E, C, N, k), after input_gradient."""
        return self._to_y(self.a)

    def parameter_gradient(self, delta: Array, G: Array, copies: slice) -> list[Array]:
        """See :class:`Trace`."""
        net, delta = self.net, delta[..., None]
        t = matmul(G, net.Wx)
        t *= _part(self.mask, copies)
        tangents, last = net.hidden.tangent(t, [_part(m, copies) for m in self.passes.masks])
        self.weighted = self.a * delta
        total = _total(self.weighted)
        first = outer(self.x, total)
        first += outer(G, self.a[:, copies])
        found = [first]
        if net.Wy is not None:
            found.append(outer(self.y, self.weighted))
        if net.bias is not None:
            found.append(total.sum(2))
        for z, t, a in zip(self.passes.inputs, tangents, self.adjoints, strict=True):
            lifted = z * delta
            lifted[:, copies] += t
            found.append(outer(lifted, a))
        if net.hidden.biases:
            found += [(a * delta).sum((1, 2))[:, None] for a in self.adjoints]
        single = net.V.shape[-1] == 1
        per_output = delta if single else delta.swapaxes(1, 3)
        V = outer(self.passes.output, per_output)
        V += (last.sum((1, 2))[:, None] if single else last.sum(2)).swapaxes(1, 2)
        found.append(V)
        if net.offset is not None:
            found.append(per_output.sum((1, 2))[:, None])
        return found

    def adjoint_to_x(self) -> Array:
        """The derivative of sum(delta * values) in the shared x, after parameter_gradient."""
        return matmul(_total(self.weighted), self.net.Wx.swapaxes(1, 2))

    def adjoint_to_y(self) -> Array:
        """The derivative of sum(delta * values) in y, after parameter_gradient."""
        return self._to_y(self.weighted)

    def _to_y(self, a: Array) -> Array:
        assert self.net.Wy is not None
        return matmul(a, self.net.Wy.swapaxes(1, 2))


@dataclass
class Product(Network):
    """x' V y, which joins the branches of a bilinear critic."""

    V: Array
    dropouts = ()

    @property
    def first_weights(self) -> Array:
        """The weights that multiply x, (E, d, k)."""
        return self.V

    def values_from(self, pre: Array, y: Array | None) -> Array:
        """Values from the product of x with the first layer, see :func:`_with_responses`."""
        assert y is not None
        E, C, n, k = y.shape
        return (pre.reshape(E, -1, n, pre.shape[2] // n, k) @ y[..., None]).reshape(E, C, -1)

    def trace(self, x: Array, y: Array | None, keeps: Keeps) -> ProductTrace:
        """Run the forward pass."""
        return ProductTrace(self, x, y, (matmul(x, self.V) * y).sum(-1))


@dataclass
class ProductTrace:
    """A :class:`Trace` of a product."""

    net: Product
    x: Array
    y: Array
    values: Array
    a: Array = field(init=False)
    lifted: Array = field(init=False)
    weighted: Array = field(init=False)

    def input_gradient(self, copies: slice) -> Array:
        """See :class:`Trace`."""
        self.a = matmul(self.y, self.net.V.swapaxes(1, 2))
        return self.a[:, copies]

    def response_gradient(self) -> Array:
        """Zero by convention: f = ⟨∂f/∂x, x⟩ leaves nothing for the response to explain."""
        return 0 * self.y

    def parameter_gradient(self, delta: Array, G: Array, copies: slice) -> list[Array]:
        """See :class:`Trace`."""
        delta = delta[..., None]
        self.weighted = self.a * delta
        self.lifted = self.x * delta
        self.lifted[:, copies] += G
        return [outer(self.lifted, self.y)]

    def adjoint_to_x(self) -> Array:
        """The derivative of sum(delta * values) in the shared x, after parameter_gradient."""
        return _total(self.weighted)

    def adjoint_to_y(self) -> Array:
        """The derivative of sum(delta * values) + P in y, after parameter_gradient."""
        return matmul(self.lifted, self.net.V)


@dataclass
class Branched(Network):
    """A branch for x, a branch for y, and what joins them.

    A perceptron joins the branches of the paper's big critic, a product those of a bilinear critic
    phi(x)' V psi(y), where psi is the response itself when its branch is empty.
    """

    branch_x: Stack
    branch_y: Stack
    joint: Perceptron | Product
    pairs = True

    @property
    def dropouts(self) -> Dropouts:
        """A mask for each hidden layer; the branch of x has one for all pairings."""
        branches = [*self.branch_x.dropouts(False), *self.branch_y.dropouts(True)]
        return [*branches, *self.joint.dropouts]

    @property
    def first_weights(self) -> Array:
        """The weights that multiply x, (E, d, H)."""
        return self.branch_x.weights[0]

    def values_from(self, pre: Array, y: Array | None) -> Array:
        """Values from the product of x with the first layer, see :func:`_with_responses`."""
        phi = matmul(self.branch_x.values_from(pre), self.joint.first_weights)
        return self.joint.values_from(phi, self.branch_y.values(y))

    def trace(self, x: Array, y: Array | None, keeps: Keeps) -> BranchedTrace:
        """Run the forward pass."""
        i = len(self.branch_x.weights)
        j = i + len(self.branch_y.weights)
        px = self.branch_x.forward(x, list(keeps[:i]))
        py = self.branch_y.forward(y, list(keeps[i:j]))
        return BranchedTrace(self, px, py, self.joint.trace(px.output, py.output, keeps[j:]))


@dataclass
class BranchedTrace:
    """A :class:`Trace` of a branched critic."""

    net: Branched
    px: Passes
    py: Passes
    joint: PerceptronTrace | ProductTrace
    adjoints: list[Array] = field(init=False)

    @property
    def values(self) -> Array:
        """See :class:`Trace`."""
        return self.joint.values

    def input_gradient(self, copies: slice) -> Array:
        """See :class:`Trace`."""
        below = self.joint.input_gradient(copies)
        g, self.adjoints = self.net.branch_x.adjoint(below, self.px.masks)
        return g

    def response_gradient(self) -> Array:
        """The derivatives of all copies in y, (E, C, N, k), after input_gradient."""
        return self.net.branch_y.adjoint(self.joint.response_gradient(), self.py.masks)[0]

    def parameter_gradient(self, delta: Array, G: Array, copies: slice) -> list[Array]:
        """See :class:`Trace`."""
        tangents, out = self.net.branch_x.tangent(G, self.px.masks)
        joint = self.joint.parameter_gradient(delta, out, copies)
        penalty = (tangents, self.adjoints)
        x = self.net.branch_x.gradient(self.px, self.joint.adjoint_to_x(), penalty)
        y = self.net.branch_y.gradient(self.py, self.joint.adjoint_to_y(), None)
        return [*x, *y, *joint]
