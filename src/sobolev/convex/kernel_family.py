r"""The family of kernels that ``sic_test`` tests: critics of x, and encodings of y.

For importances fixed at uniform the criterion is a quadratic form of the mean embedding,

.. math::

    \mathrm{SIC} = \tfrac12 \operatorname{tr} M^\top A^{-1} M
                 = \tfrac{1}{2 n^2} \|F^\top \Psi\|^2, \qquad F = \Phi A^{-1/2} .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sl

from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import (
    BoundMap,
    LandmarkMap,
    LinearMap,
    MapSpec,
    median_squared_distance,
    squared_distances,
)
from sobolev.convex.solvers import Penalties, alternating

BANDWIDTHS = (0.05, 0.25, 1.0, 4.0)
# tau, and the ridge of the kernels of the response relative to n.
RIDGE = 0.01
# lam of the tested statistic, and of the sparser critic whose importances are reported.
LAM, IMPORTANCE_LAM = 1e-3, 0.1
MAX_LANDMARKS = 300
MAX_RESPONSES = 30
# Functions of the response with a smaller share after the ridge are left out.
MIN_SHARE = 0.02
# Largest number of features up to which each one is also tested alone.
MAX_SINGLE = 200
SINGLE_LANDMARKS = 20


@dataclass(frozen=True)
class KernelCritic:
    """A kernel on x: its name, columns, bound map and the factor F of its quadratic form."""

    name: str
    columns: Index
    bound: BoundMap
    factor: Array

    def importances(self, X: Array, psi: Array, p: Array) -> Array:
        """Importances of the columns, which X holds, at the fixed point (Alg. 1)."""
        forms = self.bound.forms(X, psi, p)
        penalties = Penalties(lam=IMPORTANCE_LAM, rho=1.0, tau=RIDGE)
        return alternating(forms, penalties, max_iter=50).eta


def kernel_family(X: Array, p: Array, rng: np.random.Generator) -> list[KernelCritic]:
    """The default family of kernels on x: all columns at several bandwidths, and each alone.

    Parameters
    ----------
    X : array of shape (n, d)
        Standardised rows.
    p : array of shape (n,)
        Probabilities of the rows.
    rng : Generator
        For the choice of landmarks.
    """
    d = X.shape[1]
    together: list[tuple[str, MapSpec]] = [("linear", LinearMap())]
    together += [
        (f"bandwidth {b:g}", LandmarkMap(MAX_LANDMARKS, bandwidth=b, linear=False))
        for b in BANDWIDTHS
    ]
    critics = [_critic(name, np.arange(d), spec, X, p, rng) for name, spec in together]
    if 1 < d <= MAX_SINGLE:
        alone = LandmarkMap(SINGLE_LANDMARKS, bandwidth=0.25, linear=True)
        critics += [_critic(f"column {j}", np.array([j]), alone, X, p, rng) for j in range(d)]
    return critics


def _critic(
    name: str, columns: Index, spec: MapSpec, X: Array, p: Array, rng: np.random.Generator
) -> KernelCritic:
    x = X[:, columns]
    bound = spec.bind(x, np.ones(columns.size), p, rng)
    forms = bound.forms(x, np.zeros((x.shape[0], 1)), p)
    # Uniform eta gives every feature the weight d.
    A = forms.system(np.full(columns.size, float(columns.size)), LAM, 1.0, RIDGE)
    factor = sl.solve_triangular(
        sl.cholesky(A, lower=True), (bound.values(x) - forms.mean).T, lower=True
    )
    return KernelCritic(name, columns, bound, factor.T)


def response_bases(psi: Array, p: Array, numeric: bool) -> dict[str, Array]:
    """Encodings of the response: psi itself and, for numbers, ridge-whitened Gaussian kernels.

    The columns of the kernel encoding are the leading eigenvectors of the centred kernel matrix,
    scaled by w / (w + ridge). Their inner products are the regularised projection onto the
    functions of the kernel.

    Parameters
    ----------
    psi : array of shape (n, k)
        The encoded response.
    p : array of shape (n,)
        Probabilities of the rows.
    numeric : bool
        Whether the response holds numbers, not labels.
    """
    bases = {"linear": psi}
    if not numeric:
        return {"labels": psi}
    n = psi.shape[0]
    metric = np.ones(psi.shape[1])
    median = median_squared_distance(psi, metric, p)
    # With more than 2,000 rows, functions at a subset of rows span the encoding.
    centers = psi[:: max(1, n // 500)] if n > 2000 else psi
    D = squared_distances(psi, centers, metric)
    for bandwidth in BANDWIDTHS:
        K = np.exp(-0.5 * D / (bandwidth * median))
        K -= K.mean(axis=0)
        if centers is psi:
            K -= K.mean(axis=1, keepdims=True)
            w, V = sl.eigh(K, subset_by_index=[max(0, n - MAX_RESPONSES), n - 1])
        else:
            V, s, _ = sl.svd(K, full_matrices=False)
            w, V = s[:MAX_RESPONSES] * np.sqrt(n / len(centers)), V[:, :MAX_RESPONSES]
        share = np.maximum(w, 0.0) / (np.maximum(w, 0.0) + RIDGE * n)
        keep = share > MIN_SHARE
        bases[f"bandwidth {bandwidth:g}"] = V[:, keep] * np.sqrt(n * share[keep])
    return bases
