"""Architectures: the critics of (x, y) and the networks of x that a user can choose.

A critic is a name ("small", "big", "bilinear"), one of the specifications below with its own
widths, or any callable ``(n_features, n_targets) -> torch.nn.Module`` of (x, y).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sobolev._parameters import check_fraction
from sobolev.neural.arrays import Array, is_module
from sobolev.neural.layers import Stack
from sobolev.neural.networks import Branched, Network, Perceptron, Product

Rngs = Sequence[np.random.Generator]


@dataclass(eq=False, repr=False)
class SmallCritic(BaseEstimator):
    """The small critic of the paper: dense layers of x and y side by side.

    Parameters
    ----------
    widths : sequence of int, default=(100, 100)
        Widths of the hidden layers.
    dropout : float, default=0.3
        Share of activations dropped in an update, rounded to a multiple of 1/256.
    slope : float, default=0.0
        Slope of the activation below zero; 0 is the ReLU.
    bias : bool, default=False
        Whether layers have biases. Without them f = ⟨∂f/∂x, x⟩ + ⟨∂f/∂y, y⟩ (homogeneous).
    """

    widths: Sequence[int] = (100, 100)
    dropout: float = 0.3
    slope: float = 0.0
    bias: bool = False

    def build(self, rngs: Rngs, n_features: int, n_targets: int) -> Network:
        """An ensemble with random parameters, one generator for each member."""
        return _perceptron(rngs, n_features, n_targets, 1, self)


@dataclass(eq=False, repr=False)
class BigCritic(BaseEstimator):
    """The big critic of the paper: a branch for x, a branch for y, and dense layers of both.

    Parameters
    ----------
    widths : sequence of int, default=(100, 100)
        Widths of the layers in the branch of x.
    target_widths : sequence of int, default=(100, 100)
        Widths of the layers in the branch of y.
    joint_widths : sequence of int, default=(100, 100)
        Widths of the hidden layers after the branches.
    dropout : float, default=0.0
        Share of activations dropped in an update, rounded to a multiple of 1/256.
    slope : float, default=0.01
        Slope of the activation below zero.
    bias : bool, default=True
        Whether layers have biases.
    """

    widths: Sequence[int] = (100, 100)
    target_widths: Sequence[int] = (100, 100)
    joint_widths: Sequence[int] = (100, 100)
    dropout: float = 0.0
    slope: float = 0.01
    bias: bool = True

    def build(self, rngs: Rngs, n_features: int, n_targets: int) -> Network:
        """An ensemble with random parameters, one generator for each member."""
        _check_architecture(self)
        x = _stack(rngs, (n_features, *self.widths), self)
        y = _stack(rngs, (n_targets, *self.target_widths), self)
        i, j = self.widths[-1], self.target_widths[-1]
        return Branched(x, y, _perceptron(rngs, i, j, 1, self, self.joint_widths))


@dataclass(eq=False, repr=False)
class BilinearCritic(BaseEstimator):
    """phi(x)' V psi(y): bilinear in features of x and features of y.

    Parameters
    ----------
    widths : sequence of int, default=(100, 100)
        Widths of the layers of phi.
    target_widths : sequence of int, default=()
        Widths of the layers of psi. With none, psi is the centred and whitened encoding of the
        response, as in :class:`~sobolev.ConvexSIC`, and expectations under the product of the
        marginals are exact in y: no permuted responses are drawn.
    dropout : float, default=0.3
        Share of activations dropped in an update, rounded to a multiple of 1/256.
    slope : float, default=0.0
        Slope of the activation below zero; 0 is the ReLU.
    bias : bool, default=False
        Whether layers have biases.
    """

    widths: Sequence[int] = (100, 100)
    target_widths: Sequence[int] = ()
    dropout: float = 0.3
    slope: float = 0.0
    bias: bool = False

    def build(self, rngs: Rngs, n_features: int, n_targets: int) -> Network:
        """An ensemble with random parameters, one generator for each member."""
        _check_architecture(self)
        x = _stack(rngs, (n_features, *self.widths), self)
        y = _stack(rngs, (n_targets, *self.target_widths), self)
        V = _linear(rngs, self.widths[-1], (n_targets, *self.target_widths)[-1])
        return Branched(x, y, Product(V))

    def build_network(self, rngs: Rngs, n_features: int, n_outputs: int) -> Network:
        """An ensemble of h(x) = V' phi(x), for the exact product or a regression."""
        return _perceptron(rngs, n_features, 0, n_outputs, self)


@dataclass(eq=False, repr=False)
class DenseNetwork(BaseEstimator):
    """A network h(x) of dense layers, for :class:`~sobolev.SobolevRegressor` and its classifier.

    Parameters
    ----------
    widths : sequence of int, default=(100, 100)
        Widths of the hidden layers.
    dropout : float, default=0.3
        Share of activations dropped in an update, rounded to a multiple of 1/256.
    slope : float, default=0.0
        Slope of the activation below zero; 0 is the ReLU.
    bias : bool, default=True
        Whether layers have biases.
    """

    widths: Sequence[int] = (100, 100)
    dropout: float = 0.3
    slope: float = 0.0
    bias: bool = True

    def build_network(self, rngs: Rngs, n_features: int, n_outputs: int) -> Network:
        """An ensemble with random parameters, one generator for each member."""
        return _perceptron(rngs, n_features, 0, n_outputs, self)


CRITICS: dict[str, Callable[[], Any]] = {
    "small": SmallCritic,
    "big": BigCritic,
    "bilinear": BilinearCritic,
}


def resolve_critic(critic: Any) -> Any:
    """A specification from a name, a specification or a callable."""
    if isinstance(critic, str):
        if critic not in CRITICS:
            options = ", ".join(f'"{name}"' for name in CRITICS)
            raise ValueError(
                f"critic={critic!r} is unknown; use {options} or a callable that takes "
                "(n_features, n_targets) and returns a torch.nn.Module of (x, y)."
            )
        return CRITICS[critic]()
    if is_module(critic):
        raise TypeError(
            "critic is a torch.nn.Module; pass a callable that takes (n_features, n_targets) and "
            "returns a new module, so that members and refits start afresh."
        )
    if _usable(critic, "build"):
        return critic
    raise TypeError(
        "critic must be a name, a specification such as SmallCritic(), or a callable; "
        f"got {critic!r}."
    )


def resolve_network(network: Any) -> Any:
    """A specification of a network of x from None, a specification or a callable."""
    if network is None:
        return DenseNetwork()
    if not is_module(network) and _usable(network, "build_network"):
        return network
    raise TypeError(
        "network must be None, a DenseNetwork() or a callable that takes (n_features, n_outputs) "
        f"and returns a new torch.nn.Module of x; got {network!r}."
    )


def _usable(given: Any, builder: str) -> bool:
    """Whether it is a specification (not its class), or a callable that makes a module."""
    return not isinstance(given, type) if hasattr(given, builder) else callable(given)


def _linear(rngs: Rngs, n_in: int, n_out: int, fan: int | None = None) -> Array:
    """Uniform in ±1/sqrt(fan): torch's own default for linear layers."""
    bound = 1 / sqrt(fan or n_in)
    return np.stack([rng.uniform(-bound, bound, (n_in, n_out)).astype(np.float32) for rng in rngs])


def _stack(rngs: Rngs, widths: Sequence[int], spec: Any) -> Stack:
    pairs = list(pairwise(widths))
    weights = [_linear(rngs, i, o) for i, o in pairs]
    biases = [_linear(rngs, 1, o, i) for i, o in pairs] if spec.bias else []
    return Stack(weights, biases, float(spec.slope), float(spec.dropout))


def _perceptron(
    rngs: Rngs, d: int, k: int, n_outputs: int, spec: Any, widths: Sequence[int] | None = None
) -> Perceptron:
    _check_architecture(spec)
    widths = tuple(spec.widths if widths is None else widths)
    first = _linear(rngs, d + k, widths[0])
    return Perceptron(
        Wx=np.ascontiguousarray(first[:, :d]),
        Wy=np.ascontiguousarray(first[:, d:]) if k else None,
        bias=_linear(rngs, 1, widths[0], d + k) if spec.bias else None,
        hidden=_stack(rngs, widths, spec),
        V=_linear(rngs, widths[-1], n_outputs),
        offset=_linear(rngs, 1, n_outputs, widths[-1]) if spec.bias else None,
    )


def _check_architecture(spec: Any) -> None:
    name = type(spec).__name__
    for key in ("widths", "target_widths", "joint_widths"):
        widths = getattr(spec, key, None)
        if widths is None:
            continue
        sequence = isinstance(widths, (tuple, list, np.ndarray))
        if not sequence or not all(isinstance(w, Integral) and int(w) > 0 for w in widths):
            raise ValueError(f"{name}: {key}={widths!r} must be a sequence of positive integers.")
        if not len(widths) and not (key == "target_widths" and name == "BilinearCritic"):
            raise ValueError(f"{name}: {key} is empty; give it at least one layer.")
    check_fraction(f"{name}: dropout", spec.dropout, low=0.0, high=1.0, closed="left")
    if not isinstance(spec.slope, Real) or not 0 <= float(spec.slope) <= 1:
        raise ValueError(f"{name}: slope={spec.slope!r} must lie in [0, 1].")
