"""Contributions of the features to the witness of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from sobolev._typing import AnyArray, Array
from sobolev.criterion import Explanation
from sobolev.neural.fitting import member_inputs

CHUNK_ROWS = 512


def explain_witness(networks: Sequence[Any], X: Array, psi: Array) -> Explanation:
    """Average the explanations of all members at standardised rows."""
    found = []
    for rows in gen_batches(X.shape[0], CHUNK_ROWS):
        terms = [_terms(network, X[rows], psi[rows]) for network in networks]
        members = sum(network.n_members for network in networks)
        found.append([sum(part[i] for part in terms) / members for i in range(3)])
    features, target, base = (np.concatenate([part[i] for part in found]) for i in range(3))
    return Explanation(features, target, base)


def _terms(network: Any, X: Array, psi: Array) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Sums over the members of a network: features (n, d), target (n,), base (n,)."""
    x, y = member_inputs(network, X, psi[None] if network.pairs else None)
    values, g = network.values_and_gradients(x, y)
    if network.pairs:
        f = values[:, 0].sum(axis=0)
        features = X * g[:, 0].sum(axis=0)
        target = np.sum(psi * network.response_gradient(x, y)[:, 0].sum(axis=0), axis=1)
    else:
        f = np.einsum("ekn,nk->n", values, psi)
        features = X * np.einsum("eknd,nk->nd", g, psi)
        target = np.zeros(X.shape[0])
    return features, target, f - features.sum(axis=1) - target
