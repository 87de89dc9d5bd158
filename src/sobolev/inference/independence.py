r"""``sic_test``: a test of independence between features and response.

For importances fixed at uniform the criterion is a quadratic form of the mean embedding,

.. math::

    \mathrm{SIC} = \tfrac12 \operatorname{tr} M^\top A^{-1} M
                 = \tfrac{1}{2 n^2} \|F^\top \Psi\|^2, \qquad F = \Phi A^{-1/2},

with F computed once, so that a permutation of the response costs one small matrix product. The test
evaluates it for several kernels on x (linear, four bandwidths, and each feature alone) and several
encodings of y (linear, four bandwidths), standardises each by its permutation distribution and
takes the largest. The family is treated alike under every permutation, so the p-value is exact
whatever the family.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sl
from sklearn.base import BaseEstimator

from sobolev._random import RandomState, check_generator
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import (
    BoundMap,
    LandmarkMap,
    LinearMap,
    MapSpec,
    median_squared_distance,
    squared_distances,
)
from sobolev.convex.fitting import blas_threads
from sobolev.convex.solvers import Penalties, alternating
from sobolev.exceptions import DataWarning
from sobolev.inference.permutation import permutation_pvalue, permutations
from sobolev.targets import TargetEncoder
from sobolev.validation import validate_training

BANDWIDTHS = (0.05, 0.25, 1.0, 4.0)
# tau, and the ridge of the response's kernels relative to n.
RIDGE = 0.01
# lam of the tested statistic, and of the sparser critic that importances are read from.
LAM, IMPORTANCE_LAM = 1e-3, 0.1
MAX_LANDMARKS = 300
MAX_RESPONSES = 30
# Functions of the response that the ridge all but removes are left out.
MIN_SHARE = 0.02
# Up to this many features each one is also tested alone.
MAX_SINGLE = 200
SINGLE_LANDMARKS = 20


@dataclass(frozen=True)
class SICTestResult:
    """Result of :func:`sic_test`.

    Attributes
    ----------
    statistic : float
        The largest standardised SIC over the family of kernels.
    pvalue : float
        Permutation p-value, at least 1 / (n_permutations + 1).
    importances : array of shape (d,)
        Importances of the features, under the kernel of all features that stood out most.
    null : array of shape (n_permutations,)
        The statistic under permutation.
    sic : float
        The criterion under that kernel.
    kernel : str
        Which kernel that was.
    """

    statistic: float
    pvalue: float
    importances: Array
    null: Array
    sic: float
    kernel: str

    def __repr__(self) -> str:
        return f"SICTestResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g})"


@dataclass(frozen=True)
class _Critic:
    """A kernel on x: its name, columns, bound map and the factor F of its quadratic form."""

    name: str
    columns: Index
    bound: BoundMap
    factor: Array


def sic_test(
    X: Any,
    y: Any,
    *,
    n_permutations: int = 999,
    blocks: Any = None,
    target_type: str = "auto",
    random_state: RandomState = None,
) -> SICTestResult:
    """Test whether y is independent of X, by permutation.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numeric columns.
    y : array-like of shape (n,) or (n, q)
        Numbers or labels, one or several columns.
    n_permutations : int, default=999
        The number of permutations.
    blocks : array-like of shape (n,), optional
        Rows are exchanged only within blocks: for batches, subjects or strata.
    target_type : {"auto", "regression", "classification"}, default="auto"
        What y is.
    random_state : int, Generator, RandomState or None, default=None
        The source of the permutations.

    Returns
    -------
    SICTestResult

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import sic_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> dependent = sic_test(X, np.sin(2 * X[:, 0]), n_permutations=199, random_state=0)
    >>> dependent.pvalue
    0.005
    >>> int(dependent.importances.argmax())
    0
    >>> sic_test(X, rng.normal(size=100), n_permutations=199, random_state=0).pvalue > 0.05
    True
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations={n_permutations} must be at least 1.")
    X, y, p = validate_training(BaseEstimator(), X, y)
    standardizer = Standardizer.fit(X, p)
    if not standardizer.varying.any():
        raise ValueError("every column of X is constant; at least one must vary.")
    if not standardizer.varying.all():
        warnings.warn(
            f"{int((~standardizer.varying).sum())} constant columns get importance 0.",
            DataWarning,
            stacklevel=2,
        )
    Z = standardizer.transform(X)
    rng = check_generator(random_state)
    if blocks is not None and len(blocks) != Z.shape[0]:
        raise ValueError(f"blocks has {len(blocks)} entries for {Z.shape[0]} rows.")
    encoder = TargetEncoder(target_type).fit(y, p)
    with blas_threads(Z.shape[0]):
        responses = response_bases(encoder.transform(y), p, encoder.classes_ is None)
        critics = _critics(Z, p, rng)
        order = permutations(Z.shape[0], n_permutations, rng, blocks)
        # Rows: the members of the family, by critic and response. The observed value comes first.
        values = np.stack(
            [_permuted_sic(critics, psi, order) for psi in responses.values()], axis=1
        ).reshape(-1, order.shape[0] + 1)
        spread = values.std(axis=1, keepdims=True)
        scores = (values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
        statistics = scores.max(axis=0)
        # Importances come from the critic of all features that stands out most.
        joint = sum(critic.columns.size == Z.shape[1] for critic in critics) * len(responses)
        winner = int(scores[:joint, 0].argmax())
        critic, response = (
            critics[winner // len(responses)],
            list(responses)[winner % len(responses)],
        )
        importances = np.zeros(X.shape[1])
        importances[standardizer.varying] = _importances(Z, responses[response], p, critic)
    return SICTestResult(
        statistic=float(statistics[0]),
        pvalue=permutation_pvalue(float(statistics[0]), statistics[1:]),
        importances=importances,
        null=statistics[1:],
        sic=float(values[winner, 0]),
        kernel=f"x: {critic.name}; y: {response}",
    )


def response_bases(psi: Array, p: Array, numeric: bool) -> dict[str, Array]:
    """Encodings of the response: psi itself and, for numbers, ridge-whitened Gaussian kernels.

    The columns of the kernel encoding are the leading eigenvectors of the centred kernel matrix,
    scaled by w / (w + ridge): its inner products are the regularised projection onto the kernel's
    functions.
    """
    bases = {"linear": psi}
    if not numeric:
        return {"labels": psi}
    n = psi.shape[0]
    metric = np.ones(psi.shape[1])
    median = median_squared_distance(psi, metric, p)
    # Beyond 2,000 rows, functions at a subset of rows span the encoding.
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


def _critics(Z: Array, p: Array, rng: np.random.Generator) -> list[_Critic]:
    """The kernels on x: all features together at several bandwidths, and each alone."""
    d = Z.shape[1]
    together: list[tuple[str, MapSpec]] = [("linear", LinearMap())]
    together += [
        (f"bandwidth {b:g}", LandmarkMap(MAX_LANDMARKS, bandwidth=b, linear=False))
        for b in BANDWIDTHS
    ]
    critics = [_critic(name, np.arange(d), spec, Z, p, rng) for name, spec in together]
    if 1 < d <= MAX_SINGLE:
        alone = LandmarkMap(SINGLE_LANDMARKS, bandwidth=0.25, linear=True)
        critics += [_critic(f"column {j}", np.array([j]), alone, Z, p, rng) for j in range(d)]
    return critics


def _critic(
    name: str, columns: Index, spec: MapSpec, Z: Array, p: Array, rng: np.random.Generator
) -> _Critic:
    X = Z[:, columns]
    bound = spec.bind(X, np.ones(columns.size), p, rng)
    forms = bound.forms(X, np.zeros((X.shape[0], 1)), p)
    # Uniform eta gives every feature the weight d.
    A = forms.system(np.full(columns.size, float(columns.size)), LAM, 1.0, RIDGE)
    factor = sl.solve_triangular(
        sl.cholesky(A, lower=True), (bound.values(X) - forms.mean).T, lower=True
    )
    return _Critic(name, columns, bound, factor.T)


def _permuted_sic(critics: list[_Critic], psi: Array, order: Index) -> Array:
    """SIC of each critic for the response as it is, then permuted: |F' psi|² / (2 n²)."""
    n, k = psi.shape
    factors = np.vstack([critic.factor.T for critic in critics])
    first = np.cumsum([0] + [critic.factor.shape[1] for critic in critics[:-1]])
    rows = np.vstack([np.arange(n), order])
    out = np.empty((len(critics), rows.shape[0]))
    batch = max(1, 2**21 // (k * factors.shape[0]))
    for start in range(0, rows.shape[0], batch):
        part = rows[start : start + batch]
        stacked = psi[part.T].reshape(n, -1)
        squares = np.square(factors @ stacked).reshape(factors.shape[0], len(part), k).sum(axis=2)
        out[:, start : start + len(part)] = np.add.reduceat(squares, first, axis=0)
    return out / (2 * n**2)


def _importances(Z: Array, psi: Array, p: Array, critic: _Critic) -> Array:
    """Importances of the features at the fixed point."""
    forms = critic.bound.forms(Z, psi, p)
    penalties = Penalties(lam=IMPORTANCE_LAM, rho=1.0, tau=RIDGE)
    return alternating(forms, penalties, max_iter=50).eta
