r"""Logistic regression of a column on all others, for all folds at once and a path of penalties.

The coefficients w minimise the sum of the log losses plus :math:`a |w|^2 / 2` with a = 1 / C, as
in scikit-learn. The intercept is not penalised, and two values have a single logit.

One eigendecomposition serves all columns, folds and penalties. It gives
:math:`Z Z^\top = R^\top R` for the standardised rows Z, where the rows of R are orthogonal with
squared norms :math:`\lambda`. Column j is :math:`z_j = R^\top v`, and the predictors without it
have :math:`Z_{-j} Z_{-j}^\top = R^\top (I - v v^\top) R`. So the logits are :math:`R^\top u` with
:math:`u = (I - v v^\top) q`, the penalty is :math:`a q^\top u / 2`, and q has at most min(n, d)
entries for each value.

The loss is minimised by nonlinear conjugate gradients. The preconditioner is an approximate Hessian
that ignores the dependence between values and the differences between folds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from sobolev._typing import Array, Index, Mask

# Stop when a step would decrease the penalised loss of each fit by less than half of this.
TOLERANCE = 2e-7
MAX_STEPS = 1000
# Eigenvalues below this share of the largest one are treated as zero.
RANK_TOLERANCE = 1e-9
# Largest number of logits that are iterated at once; it bounds the memory.
MAX_LOGITS = 1_000_000


@dataclass(frozen=True)
class LogisticColumns:
    """Penalised logistic regressions of columns with few values on all other columns.

    Attributes
    ----------
    center, scale : array of shape (d,)
        Means and standard deviations of the columns.
    rows : array of shape (n, d)
        Standardised rows Z.
    rotated : array of shape (1 + r, n)
        A row of ones for the intercept, followed by R.
    sizes : array of shape (1 + r,)
        Squared norms of the rows of ``rotated``.
    """

    center: Array
    scale: Array
    rows: Array
    rotated: Array
    sizes: Array

    @classmethod
    def fit(cls, X: Array) -> LogisticColumns:
        """Standardise the rows of X and decompose the smaller of their Gram matrices."""
        n, d = X.shape
        center, scale = X.mean(axis=0), np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
        Z = (X - center) / scale
        sizes, vectors = np.linalg.eigh(Z.T @ Z if n >= d else Z @ Z.T)
        kept = sizes > RANK_TOLERANCE * sizes[-1]
        sizes, vectors = sizes[kept], vectors[:, kept]
        R = (Z @ vectors if n >= d else vectors * np.sqrt(sizes)).T
        return cls(center, scale, Z, np.vstack([np.ones(n), R]), np.append(float(n), sizes))

    def held_out(self, j: int, codes: Index, folds: Index, strengths: Sequence[float]) -> Array:
        """Probabilities of the values of column j in each row, by the fit without its fold.

        Parameters
        ----------
        j : int
            Position of the column.
        codes : array of int, shape (n,)
            Number of the value of column j in each row.
        folds : array of int, shape (n,)
            Fold of each row.
        strengths : sequence of float
            Values of C, ascending.

        Returns
        -------
        array of shape (n_strengths, n, n_values)
            Zero for values that do not occur outside the fold of the row.
        """
        n_folds = int(folds.max()) + 1
        if n_folds < 2:
            raise ValueError("one fold leaves no rows to fit; use n_folds=2 or more.")
        found = np.empty((len(strengths), codes.size, int(codes.max()) + 1))
        n_parts = min(n_folds, -(-n_folds * found[0].size // MAX_LOGITS))
        for part in np.array_split(np.arange(n_folds), n_parts):
            path = self._path(j, codes, folds != part[:, None], strengths)
            for of_strength, (P, _) in zip(found, path, strict=True):
                for fold, of_fit in zip(part, P.swapaxes(0, 1), strict=True):
                    of_strength[folds == fold] = of_fit[:, folds == fold].T
        return found

    def predict(self, j: int, codes: Index, strength: float, X: Array) -> Array:
        """Probabilities of the values of column j in new rows, by the fit to all rows.

        Parameters
        ----------
        j, codes
            See :meth:`held_out`.
        strength : float
            Value of C.
        X : array of shape (m, d)
            New rows with all columns; column j is not used.

        Returns
        -------
        array of shape (m, n_values)
        """
        ((_, q),) = self._path(j, codes, np.ones((1, codes.size), dtype=bool), [strength])
        intercept, q = q[:, 0, 0], q[:, 0, 1:]
        # w = Z' R' diag(1 / lambda) q without its entry j.
        w = self.rows.T @ (self.rotated[1:].T @ (q / self.sizes[1:]).T)
        w[j] = 0.0
        logits = intercept + (X - self.center) / self.scale @ w
        return _probabilities(logits.T).T

    def _path(
        self, j: int, codes: Index, train: Mask, strengths: Sequence[float]
    ) -> Iterator[tuple[Array, Array]]:
        """Probabilities (n_values, n_fits, n) and q for each strength.

        Each row of ``train`` marks the rows of one fit. The fit at a strength starts at that of the
        strength before.
        """
        v = self.rotated @ self.rows[:, j] / self.sizes
        v[0] = 0.0  # the intercept
        Y = np.eye(int(codes.max()) + 1)[:, codes]
        counts = Y @ train.T
        with np.errstate(divide="ignore"):
            start = np.log(counts)  # -inf for a value without training rows, which remains so
        # The fit to two of many values has two opposite coefficient vectors instead of one, so
        # that the same penalty would be half as strong.
        factor = np.where(np.sum(counts > 0, axis=0) == 2, 2.0, 1.0)
        if len(Y) == 2:
            Y, start, factor = Y[1:], start[1:] - start[:1], np.ones(len(train))
        fits = _Fits(self.rotated, self.sizes, v, Y[:, None], train.astype(float))
        q, F = np.zeros((*start.shape, v.size)), np.repeat(start[:, :, None], codes.size, axis=2)
        q[:, :, 0] = start
        for strength in strengths:
            q, F = fits.minimise(factor / strength, q, F)
            yield _probabilities(F), q


@dataclass(frozen=True)
class _Fits:
    """Regressions of one column on the same predictors, each with training rows of its own.

    Arrays have the axes (logits, fits, rows) or (logits, fits, coefficients).
    """

    R: Array
    sizes: Array
    v: Array
    Y: Array
    train: Array

    def minimise(self, a: Array, q: Array, F: Array) -> tuple[Array, Array]:
        """Conjugate gradients for the penalties a, from the coefficients q with the logits F."""
        flat = (q.shape[0] * q.shape[1], -1)
        metric = self._metric(F, float(a.min()), full=False)
        # A full metric costs about as much as so many steps.
        patience = max(5, self.v.size // (2 * a.size))
        residual = self._residual(F)
        G_old, du, dq = np.zeros_like(q), np.zeros_like(q), np.zeros_like(q)
        gain_old = np.full(a.size, np.inf)
        for step in range(MAX_STEPS):
            if step == patience:
                metric = self._metric(F, float(a.min()), full=True)
                gain_old = np.full(a.size, np.inf)
            G = (residual.reshape(flat) @ self.R.T).reshape(q.shape)
            G[:, :, 1:] += a[:, None] * q[:, :, 1:]
            u, own = metric.solve(G)
            gain = _dot(G, u)
            active = (gain > TOLERANCE)[:, None]
            if not active.any():
                break
            # Polak-Ribiere, restarted where the direction would hardly descend.
            momentum = np.maximum(0.0, gain - _dot(G_old, u)) / gain_old
            momentum = np.where(momentum * _dot(G, du) > gain / 2, 0.0, momentum)[:, None]
            du, dq = active * (momentum * du - u), active * (momentum * dq - own)
            dF = (du.reshape(flat) @ self.R).reshape(F.shape)
            quadratic = a * _dot(du[:, :, 1:], dq[:, :, 1:])
            t, F, residual = self._move(F, dF, residual, _dot(G, du), quadratic)
            q = q + t * dq
            G_old, gain_old = G, np.maximum(gain, 1e-300)
        return q, F

    def _residual(self, F: Array) -> Array:
        return (_softmax(F) - self.Y) * self.train

    def _move(
        self, F: Array, dF: Array, residual: Array, slope: Array, quadratic: Array
    ) -> tuple[Array, Array, Array]:
        """Newton's step t along dF, shorter where it ends on a steep rise of the penalised loss."""
        # The probabilities; in the other rows the indicators, where the curvature is zero.
        PdF = (residual + self.Y) * dF
        curvature = _dot(PdF, dF) - np.sum(PdF.sum(axis=0) ** 2, axis=1)
        t = -slope / np.maximum(curvature + quadratic, 1e-300)
        linear = slope - _dot(residual, dF)
        for _ in range(MAX_STEPS):
            moved = F + t[:, None] * dF
            residual = self._residual(moved)
            rise = _dot(residual, dF) + linear + t * quadratic
            over = rise > -slope / 2
            if not over.any():
                break
            t[over] *= slope[over] / (slope - rise)[over]
        return t[:, None], moved, residual

    def _metric(self, F: Array, a: float, *, full: bool) -> _Metric:
        """The metric at the logits F; unless it is full, with the same weight for all rows."""
        P = _softmax(F)
        weights = np.mean(P * (1 - P) * self.train, axis=1)
        penalty = np.where(np.arange(self.v.size) > 0, a, 1e-6)
        if full:
            hessian = (self.R * weights[:, None]) @ self.R.T + np.diag(penalty)
            return _Metric(np.linalg.inv(hessian), self.v, a)
        hessian = weights.mean(axis=1)[:, None, None] * self.sizes + penalty
        return _Metric(1 / hessian, self.v, a)


class _Metric:
    """Approximate inverse of the Hessian in u, by one matrix or one diagonal for each logit.

    With the inverse N of the Hessian for all columns and penalty a, that without column j is
    N - N v v' N / (v' N v + (1 - v' v) / a).
    """

    def __init__(self, inverse: Array, v: Array, a: float) -> None:
        self.inverse, self.v, self.a = inverse, v, a
        self.Nv = self._apply(np.tile(v, (len(inverse), 1, 1)))
        self.core = self.Nv @ v + max(0.0, 1 - float(v @ v)) / a

    def _apply(self, G: Array) -> Array:
        diagonal = self.inverse.shape[1] == 1
        return np.asarray(self.inverse * G if diagonal else G @ self.inverse)

    def solve(self, G: Array) -> tuple[Array, Array]:
        """The step u = (I - v v') q for a gradient, and q."""
        along = np.einsum("lbr,lr->lb", G, self.Nv[:, 0]) / self.core
        u = self._apply(G) - self.Nv * along[:, :, None]
        q = u + self.v * (along / self.a)[:, :, None]
        if len(G) == 1:
            return u, q
        # A vector that is added to the coefficients of all values does not change probabilities.
        return u - u.mean(axis=0), q - q.mean(axis=0)


def _dot(A: Array, B: Array) -> Array:
    """Inner product for each fit."""
    return np.asarray(np.einsum("lbn,lbn->b", A, B))


def _softmax(F: Array) -> Array:
    """Probability of each logit; a single one is that of the second of two values."""
    if len(F) == 1:
        return np.asarray(expit(F))
    P = np.exp(F - F.max(axis=0))
    P /= P.sum(axis=0)
    return P


def _probabilities(F: Array) -> Array:
    """Probabilities of all values."""
    P = _softmax(F)
    return np.concatenate([1 - P, P]) if len(P) == 1 else P
