r"""Ridge regression of every column on all others, with exact leave-one-out errors.

With :math:`\Omega = (X^\top X + a I)^{-1}` the coefficients of column j on the rest are
:math:`-\Omega_{-j,j} / \Omega_{jj}`, its residuals :math:`U_{ij} / \Omega_{jj}` with
:math:`U = X \Omega`, and row i has the leverage
:math:`x_i^\top \Omega x_i - U_{ij}^2 / \Omega_{jj}`: one matrix for each penalty gives the
leave-one-out residuals of all columns and rows.

A penalty that suppresses the noise of many columns also shrinks their common signal, part of which
then remains in the residual. So each prediction is multiplied by the slope of the column on its
leave-one-out prediction, and the penalty is chosen after this correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sobolev._typing import Array, Index
from sobolev.conditionals.base import fold_numbers

# Penalties relative to the number of rows.
PENALTIES = tuple(10.0 ** np.linspace(-4, 2, 13))
# Largest factor by which a prediction is multiplied.
MAX_SLOPE = 100.0
# Number of blocks whose penalties are compared.
MAX_BLOCKS = 100
# Number of folds where rows belong together.
N_FOLDS = 10


@dataclass(frozen=True)
class RidgeColumns:
    """Ridge regressions of every column on the others, with penalties chosen by leave-one-out.

    Attributes
    ----------
    center, scale : array of shape (d,)
        Means and standard deviations of the columns.
    penalties, slopes : array of shape (d,)
        Penalty of each column, and the factor that corrects the shrinkage.
    residuals : array of shape (n, d)
        Leave-one-out residuals in standard units.
    """

    center: Array
    scale: Array
    penalties: Array
    slopes: Array
    residuals: Array
    _rows: Array

    @classmethod
    def fit(cls, X: Array, *, stretch: bool = True, groups: Index | None = None) -> RidgeColumns:
        """Fit to the rows of X; with ``stretch=False`` the slopes are one.

        With ``groups``, residuals are out of fold, and the rows of a group are in one fold.
        """
        center, scale, Z = _standard(X)
        held_out = _held_out(Z, groups)
        penalties, slopes, residuals = _best(Z, held_out, stretch)
        return cls(center, scale, penalties, slopes, residuals, Z)

    def predict(self, X: Array, j: int) -> Array:
        """The mean of column j given the others, in the units of the column."""
        Z = (X - self.center) / self.scale
        beta = _coefficients(self._rows, j, self.penalties[j])
        return self.center[j] + self.scale[j] * self.slopes[j] * (Z @ beta)


class RidgeWithout:
    """Ridge regressions of variables on all columns but one, which share one decomposition.

    Parameters
    ----------
    X : array of shape (n, d)
    groups : array of int, optional
        As in :meth:`RidgeColumns.fit`.
    scaled : bool, default=True
        Whether all columns get the same scale.
    """

    def __init__(self, X: Array, groups: Index | None = None, *, scaled: bool = True) -> None:
        Z = _standard(X)[2] if scaled else X - X.mean(axis=0)
        self._held_out = _held_out(Z, groups)

    def residuals(self, target: Array, j: int, *, stretch: bool = True) -> Array:
        """Leave-one-out residuals of a variable on the columns other than j, in its units."""
        _, scale, z = _standard(target[:, None])

        penalties = z.size * np.array(PENALTIES)
        found = self._held_out.without(j, z[:, 0], penalties)
        held_out = dict(zip(penalties.tolist(), found.T, strict=True))
        return np.asarray(scale[0] * _best(z, lambda a: held_out[a][:, None], stretch)[2][:, 0])


def _standard(X: Array) -> tuple[Array, Array, Array]:
    """Means and standard deviations (1 for constants), and the columns in standard units."""
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return center, scale, (X - center) / scale


def _held_out(Z: Array, groups: Index | None) -> GramInverse | _OutOfFold:
    """Held-out residuals at each penalty: leave-one-out, or by folds of groups."""
    return GramInverse(Z) if groups is None else _OutOfFold(Z, groups)


def _best(
    Z: Array, held_out: Callable[[float], Array], stretch: bool = True
) -> tuple[Array, Array, Array]:
    """Penalties, slopes and residuals of the smallest held-out errors.

    ``held_out`` gives the held-out residuals of the columns of Z at a penalty.
    """
    n, d = Z.shape
    best = np.full(d, np.inf)
    penalties, slopes, residuals = np.full(d, n * PENALTIES[-1]), np.zeros(d), Z.copy()
    for relative in reversed(PENALTIES):  # ties: the largest penalty wins
        predicted = Z - held_out(n * relative)
        slope = _slopes(Z, predicted) if stretch else np.ones(d)
        errors = Z - slope * predicted
        size = np.mean(errors**2, axis=0)
        better = size < best
        best = np.where(better, size, best)
        penalties[better] = n * relative
        slopes[better] = slope[better]
        residuals[:, better] = errors[:, better]
    return penalties, slopes, residuals


def best_block_penalties(blocks: Sequence[Array]) -> Array:
    """Penalties with which ridge regression predicts blocks of columns best from all others.

    Parameters
    ----------
    blocks : sequence of arrays of shape (n, m)
        Blocks of columns with mean zero. If there are many, some are chosen at equal distances.

    Returns
    -------
    array
        The penalty of each chosen block with the smallest leave-one-out error.
    """
    n, ends = blocks[0].shape[0], np.cumsum([block.shape[1] for block in blocks])
    inverse = GramInverse(np.hstack(blocks))
    chosen = np.unique(np.linspace(0, len(blocks) - 1, min(len(blocks), MAX_BLOCKS)).astype(int))
    penalties = n * np.array(PENALTIES[::-1])  # ties: the largest penalty wins
    errors = [
        np.sum(inverse.block(np.arange(ends[u] - blocks[u].shape[1], ends[u]), a)[1] ** 2)
        for a in penalties
        for u in chosen
    ]
    return penalties[np.argmin(np.reshape(errors, (penalties.size, chosen.size)), axis=0)]


def _slopes(Z: Array, predicted: Array) -> Array:
    """Slope of each column on its prediction."""
    power = np.maximum(np.einsum("ij,ij->j", predicted, predicted), 1e-300)
    return np.clip(np.einsum("ij,ij->j", Z, predicted) / power, 0.0, MAX_SLOPE)


class GramInverse:
    """The inverse of X' X + a I for many a, from the smaller Gram matrix of X."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z
        self.tall = Z.shape[0] >= Z.shape[1]
        gram = Z.T @ Z if self.tall else Z @ Z.T
        values, self.vectors = np.linalg.eigh(gram)
        self.values = np.maximum(values, 0.0)
        self.rotated = Z @ self.vectors if self.tall else self.vectors.T @ Z
        self._leverages: dict[float, Array] = {}

    def leave_one_out(self, a: float, columns: Index | slice = slice(None)) -> Array:
        """Leave-one-out residuals of columns on all others at penalty a, (n, m)."""
        n = self.Z.shape[0]
        shrunk = 1.0 / (self.values + a)
        if self.tall:
            U = (self.rotated * shrunk) @ self.vectors[columns].T
        else:
            U = self.vectors @ (shrunk[:, None] * self.rotated[:, columns])
        diagonal = self._diagonal(a)[columns]
        room = 1 - 1 / n - self._leverage(a)[:, None] + U**2 / diagonal
        return U / diagonal / np.maximum(room, 1e-6)

    def __call__(self, a: float) -> Array:
        """Leave-one-out residuals of every column on all others at penalty a, (n, d)."""
        return self.leave_one_out(a)

    def without(self, j: int, target: Array, penalties: Array) -> Array:
        """Leave-one-out residuals of a variable on all columns but j, by penalty, (n, L)."""
        beta, own, size = self.coefficients(j, target, penalties)
        leverage = np.column_stack([self._leverage(a) for a in penalties.tolist()])
        room = 1 - 1 / self.Z.shape[0] - leverage + (self.Z @ own) ** 2 / size
        return np.asarray((target[:, None] - self.Z @ beta) / np.maximum(room, 1e-6))

    def coefficients(self, j: int, target: Array, penalties: Array) -> tuple[Array, Array, Array]:
        """Coefficients of a variable on all columns but j, zero at j, by penalty, (d, L).

        Also columns j of the inverses, (d, L), and their entries at j.
        """
        shrunk = 1.0 / (self.values[:, None] + penalties)
        if self.tall:
            beta = self.vectors @ (shrunk * (self.rotated.T @ target)[:, None])
            own = self.vectors @ (shrunk * self.vectors[j][:, None])
        else:
            beta = self.rotated.T @ (shrunk * (self.vectors.T @ target)[:, None])
            own = -self.rotated.T @ (shrunk * self.rotated[:, j][:, None]) / penalties
            own[j] += 1 / penalties
        size = np.maximum(own[j], 1e-300)
        beta = beta - own * (beta[j] / size)
        beta[j] = 0.0
        return beta, own, size

    def new_rows(self, Z: Array, a: float) -> Array:
        """Residuals of other rows, of all columns on all others, at penalty a, (m, d)."""
        shrunk = 1.0 / (self.values + a)
        if self.tall:
            U = (Z @ self.vectors * shrunk) @ self.vectors.T
        else:
            U = (Z - (Z @ self.rotated.T * shrunk) @ self.rotated) / a
        return np.asarray(U / self._diagonal(a))

    def in_sample(self, a: float) -> Array:
        """Mean squares of the residuals of every column on all others at penalty a, (d,)."""
        squared = 1.0 / (self.values + a) ** 2
        if self.tall:
            power = self.vectors**2 @ (self.values * squared)
        else:
            power = squared @ self.rotated**2
        return np.asarray(power / self._diagonal(a) ** 2 / self.Z.shape[0])

    def block(self, columns: Index, a: float) -> tuple[Array, Array]:
        r"""Regressions of the columns B on all columns outside B.

        The coefficients are :math:`-\Omega_{-B,B} \Omega_{BB}^{-1}`. Returns them with zeros at B,
        (d, m), and the leave-one-out residuals, (n, m).
        """
        n = self.Z.shape[0]
        shrunk = 1.0 / (self.values + a)
        if self.tall:
            omega = self.vectors @ (shrunk[:, None] * self.vectors[columns].T)
        else:
            omega = -self.rotated.T @ (shrunk[:, None] * self.rotated[:, columns]) / a
            omega[columns, np.arange(columns.size)] += 1 / a
        beta = np.linalg.solve(omega[columns], omega.T).T
        errors = self.Z @ beta
        leverage = self._leverage(a) - np.sum((self.Z @ omega) * errors, axis=1)
        beta[columns] = 0.0
        return -beta, errors / np.maximum(1 - 1 / n - leverage, 1e-6)[:, None]

    def _diagonal(self, a: float) -> Array:
        """The diagonal of the inverse."""
        shrunk = 1.0 / (self.values + a)
        tall = self.tall
        found = self.vectors**2 @ shrunk if tall else (1 - shrunk @ self.rotated**2) / a
        return np.maximum(found, 1e-300)

    def _leverage(self, a: float) -> Array:
        """Leverage of every row in a regression on all columns."""
        if a not in self._leverages:
            shrunk = 1.0 / (self.values + a)
            shares = shrunk if self.tall else self.values * shrunk
            rows = self.rotated if self.tall else self.vectors
            self._leverages[a] = np.asarray(rows**2 @ shares)
        return self._leverages[a]


class _OutOfFold:
    """Residuals of every column on all others, from regressions without the row's fold."""

    def __init__(self, Z: Array, groups: Index) -> None:
        folds = fold_numbers(Z.shape[0], N_FOLDS, 0, groups)
        self.parts = [np.flatnonzero(folds == k) for k in range(int(folds.max()) + 1)]
        self.inverses = [GramInverse(np.delete(Z, part, axis=0)) for part in self.parts]
        self.Z = Z

    def __call__(self, a: float) -> Array:
        """The residuals at penalty a, (n, d)."""
        return self._joined(lambda part, inverse: inverse.new_rows(self.Z[part], a))

    def without(self, j: int, target: Array, penalties: Array) -> Array:
        """The residuals of a variable on all columns but j, by penalty, (n, L)."""

        def of(part: Index, inverse: GramInverse) -> Array:
            beta, _, _ = inverse.coefficients(j, np.delete(target, part), penalties)
            return np.asarray(target[part, None] - self.Z[part] @ beta)

        return self._joined(of)

    def _joined(self, of: Callable[[Index, GramInverse], Array]) -> Array:
        """What a function of each part and its inverse gives, in the order of the rows."""
        found = [of(part, inverse) for part, inverse in zip(self.parts, self.inverses, strict=True)]
        back = np.argsort(np.concatenate(self.parts))
        return np.concatenate(found)[back]


def _coefficients(Z: Array, j: int, a: float) -> Array:
    """Ridge coefficients of column j on the others; zero at j."""
    rest = np.delete(Z, j, axis=1)
    n, m = rest.shape
    if n >= m:
        beta = np.linalg.solve(rest.T @ rest + a * np.eye(m), rest.T @ Z[:, j])
    else:
        beta = rest.T @ np.linalg.solve(rest @ rest.T + a * np.eye(n), Z[:, j])
    return np.insert(beta, j, 0.0)
