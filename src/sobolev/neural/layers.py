r"""Piecewise-linear layers of an ensemble, and the gradient of a gradient in closed form.

A network of linear layers and (leaky) ReLUs is linear between its kinks: with the masks
:math:`m_l` (slope times dropout) held fixed, :math:`z_l = m_l \circ (z_{l-1} W_l + c_l)`. Three
passes give everything that training needs, none of them a graph:

- *forward*: the values z and the masks;
- *adjoint*: :math:`a_l = m_l \circ b_l,\ b_{l-1} = a_l W_l^\top`, the derivative of an output in
  every layer, down to the input: g;
- *tangent*: :math:`t_l = m_l \circ (t_{l-1} W_l)`, the change of every layer when the input moves
  along a direction t_0 = G.

For weights :math:`\delta_i` on the outputs f_i and a penalty P(g) with :math:`G = \partial P /
\partial g`, the gradient of :math:`\sum_i \delta_i f_i + P` in a layer is
:math:`\sum_i (\delta_i z_{l-1,i} + t_{l-1,i})^\top a_{l,i}`: the double back-propagation of P costs
one forward pass more.

Rows are arrays of shape (E, C, N, width): E members, C copies (pairings with a response, or
outputs), N rows. A dimension C of one is shared by all copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sobolev.neural.arrays import Array, Keep, activation, rectified


def matmul(z: Array, W: Array) -> Array:
    """Rows (E, C, N, i) times the matrices (E, i, o) of their members."""
    E, C, N, i = z.shape
    if i == 1:
        return z * W[:, None]
    return (z.reshape(E, C * N, i) @ W).reshape(E, C, N, W.shape[2])


def outer(z: Array, a: Array) -> Array:
    """The sum over rows and copies of z' a, (E, i, o)."""
    E, i, o = z.shape[0], z.shape[3], a.shape[3]
    return z.reshape(E, -1, i).swapaxes(1, 2) @ a.reshape(E, -1, o)


@dataclass
class Passes:
    """What the forward pass of a stack leaves behind: inputs and masks of its layers."""

    inputs: list[Array]
    masks: list[Array]
    output: Array


@dataclass
class Stack:
    """Linear layers, each followed by an activation; an ensemble of them.

    Attributes
    ----------
    weights : list of array (E, in, out)
    biases : list of array (E, 1, out), empty without biases
    slope : float
        The slope of the activation below zero.
    dropout : float
        The share of activations dropped in an update.
    """

    weights: list[Array]
    biases: list[Array] = field(default_factory=list)
    slope: float = 0.0
    dropout: float = 0.0

    def dropouts(self, own: bool) -> list[tuple[bool, int, float]]:
        """For each layer: whether copies have masks of their own, the width, the rate."""
        return [(own, W.shape[2], self.dropout) for W in self.weights]

    def values(self, z: Array) -> Array:
        """Values of the last layer, without dropout and with nothing kept for other passes."""
        for level, W in enumerate(self.weights):
            z = rectified(self._shifted(matmul(z, W), level), self.slope)
        return z

    def values_from(self, pre: Array) -> Array:
        """Values of the last layer from the product of the input with the first."""
        rest = Stack(self.weights[1:], self.biases[1:], self.slope)
        return rest.values(rectified(self._shifted(pre, 0), self.slope))

    def forward(self, z: Array, keeps: list[Keep | None]) -> Passes:
        """Values of the last layer, and what the other passes need."""
        inputs, masks = [], []
        for level, (W, keep) in enumerate(zip(self.weights, keeps, strict=True)):
            inputs.append(z)
            z, mask = activation(self._shifted(matmul(z, W), level), self.slope, keep)
            masks.append(mask)
        return Passes(inputs, masks, z)

    def _shifted(self, pre: Array, level: int) -> Array:
        """A product with the weights of a layer plus its bias."""
        return pre + self.biases[level][:, None] if self.biases else pre

    def adjoint(
        self, b: Array, masks: list[Array], *, to_input: bool = True
    ) -> tuple[Array, list[Array]]:
        """Derivatives in the input (if wanted), and before each activation from first to last."""
        found: list[Array] = []
        for level in reversed(range(len(self.weights))):
            b = b * masks[level]
            found.append(b)
            if level or to_input:
                b = matmul(b, self.weights[level].swapaxes(1, 2))
        return b, found[::-1]

    def tangent(self, t: Array, masks: list[Array]) -> tuple[list[Array], Array]:
        """Changes of the input of each layer, and of the output, when the first moves by t."""
        found = []
        for W, mask in zip(self.weights, masks, strict=True):
            found.append(t)
            t = matmul(t, W)
            t *= mask
        return found, t

    def gradient(
        self, passes: Passes, upstream: Array, penalty: tuple[list[Array], list[Array]] | None
    ) -> list[Array]:
        """The gradient when the output has the derivative ``upstream``.

        ``penalty`` are the tangents and adjoints of a gradient penalty, to be added.
        """
        _, adjoints = self.adjoint(upstream, passes.masks, to_input=False)
        weights = [outer(z, a) for z, a in zip(passes.inputs, adjoints, strict=True)]
        if penalty is not None:
            for W, t, a in zip(weights, *penalty, strict=True):
                W += outer(t, a)
        biases = [a.sum((1, 2))[:, None] for a in adjoints] if self.biases else []
        return [*weights, *biases]
