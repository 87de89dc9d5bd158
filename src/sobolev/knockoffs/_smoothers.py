r"""Ridge and logistic regression of each column on the other columns and their knockoffs.

With the smoother :math:`S = Z (Z^\top Z + b I)^{-1} Z^\top` of the predictors Z, the mean of a
centred continuous column is :math:`S x_j`, and the logits of a categorical column are computed by
conjugate gradients with one product with S per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from sobolev._typing import Array

MAX_STEPS = 30
# The iteration stops at steps that increase the total log-likelihood by less than this.
GAIN = 1e-3
# Largest error of an inverse that was updated; beyond it is computed again.
ACCURACY = 1e-6

Smoother = Callable[[Array], Array]


def class_probabilities(
    smooth: Smoother, Y: Array, gain: float = GAIN, max_steps: int = MAX_STEPS
) -> Array:
    r"""Logistic regression with a ridge penalty, by preconditioned conjugate gradients.

    The penalty on the logit of value l is that of the smoother times
    :math:`w_l = \pi_l (1 - \pi_l)` with the frequency :math:`\pi_l`, so that the first step is
    ridge regression. The logits are :math:`f = K a / b` with :math:`K = Z Z^\top`; neither K nor
    the coefficients are needed, since a step of :math:`S v` in f is a step of :math:`v - S v` in a.

    Parameters
    ----------
    smooth : callable
        Smoother S of centred columns.
    Y : array of shape (n, L)
        Indicators of the values; of the second value only, if there are two.
    gain : float
        Smallest increase of the log-likelihood in a step; the iteration stops below it.
    max_steps : int
        Largest number of steps.

    Returns
    -------
    array of shape (n, max(L, 2))
        Probabilities of the values.
    """
    share = Y.mean(axis=0)
    w = share * (1 - share)
    f = np.tile(np.log(share / (1 - share)) if w.size == 1 else np.log(share), (Y.shape[0], 1))
    a = np.zeros_like(f)
    step, step_a, v_old, slope_old = np.zeros_like(f), np.zeros_like(f), a, np.inf
    for _ in range(max_steps):
        v = (Y - _softmax(f)) / w - a
        mean = v.mean(axis=0)
        Sv = mean + smooth(v - mean)
        slope = float(np.sum(w * v * Sv))
        if slope <= gain:
            break
        momentum = max(0.0, float(np.sum(w * (v - v_old) * Sv)) / slope_old)
        step, step_a = Sv + momentum * step, v - Sv + momentum * step_a
        t = _line_search(Y, f, step, float(np.sum(w * a * step)), float(np.sum(w * step_a * step)))
        f, a, v_old, slope_old = f + t * step, a + t * step_a, v, slope
    P = _softmax(f)
    return np.hstack([1 - P, P]) if w.size == 1 else P


def _softmax(f: Array) -> Array:
    """Probabilities of the values; a single logit is compared with zero."""
    return np.asarray(expit(f) if f.shape[1] == 1 else softmax(f, axis=1))


def _line_search(Y: Array, f: Array, step: Array, linear: float, quadratic: float) -> float:
    """The t that maximises the penalised likelihood of f + t step: Newton in a bracket."""
    low, high, t, first = 0.0, np.inf, 0.0, 0.0
    for _ in range(20):
        P = _softmax(f + t * step)
        slope = float(np.sum(step * (Y - P))) - linear - t * quadratic
        first = first or abs(slope)
        if abs(slope) <= 0.01 * first:
            break
        low, high = (t, high) if slope > 0 else (low, t)
        Pd = P * step
        curvature = float(np.sum(Pd * step) - np.sum(Pd.sum(axis=1) ** 2)) + quadratic
        t = t + slope / curvature if curvature > 0 else np.inf
        if not low < t < high:
            t = 0.5 * (low + high) if np.isfinite(high) else 2 * low + 1
    return t


def make_design(blocks: list[Array], b: float) -> ByColumns | ByRows:
    """The smoother by rows or by columns, whichever matrix is smaller with all knockoffs."""
    n, m = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    return ByRows(blocks, b) if n < 2 * m else ByColumns(blocks, b)


class ByRows:
    """Ridge regression on a growing set of columns, by updates of (Z Z' + b I)^-1."""

    def __init__(self, blocks: list[Array], b: float) -> None:
        Z = np.hstack(blocks)
        self.blocks, self.b = blocks, b
        self.gram = Z @ Z.T + b * np.eye(Z.shape[0])
        self.inverse = inverted(self.gram)

    def without(self, j: int) -> Smoother:
        """The smoother of all columns except block j."""
        U = self.blocks[j]
        V = self.inverse @ U
        core = np.linalg.inv(np.eye(U.shape[1]) - U.T @ V)
        return lambda v: v - self.b * (self.inverse @ v + V @ (core @ (V.T @ v)))

    def add(self, U: Array) -> None:
        """Add columns."""
        V = self.inverse @ U
        self.inverse -= V @ np.linalg.solve(np.eye(U.shape[1]) + U.T @ V, V.T)
        self.gram += U @ U.T
        if not is_inverse(self.inverse, self.gram):
            self.inverse = inverted(self.gram)


class ByColumns:
    """Ridge regression on a growing set of columns, by updates of (Z' Z + b I)^-1."""

    def __init__(self, blocks: list[Array], b: float) -> None:
        self.b = b
        self.ends = np.cumsum([block.shape[1] for block in blocks])
        self.m = m = int(self.ends[-1])
        self._Z = np.zeros((blocks[0].shape[0], 2 * m), order="F")
        self._inverse = np.zeros((2 * m, 2 * m))
        self._Z[:, :m] = np.hstack(blocks)
        Z = self._Z[:, :m]
        self._gram = np.zeros((2 * m, 2 * m))
        self._gram[:m, :m] = Z.T @ Z + b * np.eye(m)
        self._inverse[:m, :m] = inverted(self._gram[:m, :m])

    def without(self, j: int) -> Smoother:
        """The smoother of all columns except block j."""
        Z, inverse = self._Z[:, : self.m], self._inverse[: self.m, : self.m]
        block = slice(self.ends[j - 1] if j else 0, self.ends[j])
        V = inverse[:, block]
        core = np.linalg.inv(V[block])

        def smooth(v: Array) -> Array:
            u = inverse @ (Z.T @ v)
            return np.asarray(Z @ (u - V @ (core @ u[block])))

        return smooth

    def add(self, U: Array) -> None:
        """Add columns: the inverse grows by a border."""
        old, new = slice(0, self.m), slice(self.m, self.m + U.shape[1])
        B = self._Z[:, old].T @ U
        V = self._inverse[old, old] @ B
        own = U.T @ U + self.b * np.eye(U.shape[1])
        core = np.linalg.inv(own - B.T @ V)
        self._inverse[old, old] += V @ core @ V.T
        self._inverse[old, new] = -V @ core
        self._inverse[new, old] = self._inverse[old, new].T
        self._inverse[new, new] = core
        self._Z[:, new] = U
        self.m = new.stop
        self._gram[old, new], self._gram[new, old], self._gram[new, new] = B, B.T, own
        gram = self._gram[: self.m, : self.m]
        if not is_inverse(self._inverse[: self.m, : self.m], gram):
            self._inverse[: self.m, : self.m] = inverted(gram)


def inverted(matrix: Array) -> Array:
    """The inverse, computed afresh."""
    return np.asarray(np.linalg.inv(matrix), dtype=float)


def is_inverse(inverse: Any, matrix: Any) -> bool:
    """Whether an updated inverse is accurate; updates are not if columns are nearly collinear."""
    size = matrix.shape[0]
    probe = np.cos(np.arange(size))  # any vector without structure
    error = np.abs(inverse @ (matrix @ probe) - probe).max()
    return bool(error <= ACCURACY)
