"""Contributions of the features to the witness of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from sobolev._typing import AnyArray, Array
from sobolev.criterion import Explanation
from sobolev.neural.fitting import n_members, values_and_gradients
from sobolev.neural.networks import Bilinear, on_device

CHUNK_ROWS = 512


def explain_witness(networks: Sequence[Any], X: Array, psi: Array) -> Explanation:
    """Average the explanations of all members at standardised rows."""
    found = []
    for start in range(0, X.shape[0], CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        terms = [_terms(network, X[rows], psi[rows]) for network in networks]
        members = sum(n_members(network) for network in networks)
        found.append([sum(part[i] for part in terms) / members for i in range(3)])
    features, target, base = (np.concatenate([part[i] for part in found]) for i in range(3))
    return Explanation(features, target, base)


def _terms(network: Any, X: Array, psi: Array) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Sums over the members of a network: features (n, d), target (n,), base (n,)."""
    if not network.pairs:
        h, g = values_and_gradients(network, X, None)
        f = np.einsum("ekn,nk->n", h, psi)
        features = X * np.einsum("eknd,nk->nd", g, psi)
        return features, np.zeros(X.shape[0]), f - features.sum(axis=1)
    values, g = values_and_gradients(network, X, psi[None])
    f = values[:, 0].sum(axis=0)
    features = X * g[:, 0].sum(axis=0)
    target = np.sum(psi * _response_gradient(network, X, psi), axis=1)
    return features, target, f - features.sum(axis=1) - target


def _response_gradient(network: Any, X: Array, psi: Array) -> AnyArray:
    """The derivative in the response, summed over members, (n, k).

    Zero for bilinear critics: f = ⟨∂f/∂x, x⟩ already.
    """
    if isinstance(network, Bilinear):
        return np.zeros_like(psi)
    network = on_device(network, torch.device("cpu"))
    E = n_members(network)
    with torch.enable_grad():
        x = torch.as_tensor(X).expand(E, 1, *X.shape)
        y = torch.as_tensor(psi).expand(E, 1, *psi.shape)
        y = y.clone().requires_grad_(True)
        (gradient,) = torch.autograd.grad(network.values(x, y).sum(), y)
    return np.asarray(gradient[:, 0].sum(0).numpy(), dtype=float)
