r"""Thousands of columns: fit candidate columns first, and check the optimality of all columns.

The critic of some columns is also that of all columns, with importance zero for the others, as
long as no function of another column lowers the objective. Adding :math:`t\,g(x_j)` to f changes
the objective by :math:`-t\,E[g(x_j)\,R] + \lambda S\,|t| \sqrt{E g'(x_j)^2}`, to first order, where
:math:`R = \psi - \rho\,U^\top\phi` is what the critic leaves of the response and
:math:`S = \sum_k \sqrt{E|\partial_k f|^2}`. So a column may stay out if

.. math::

    \big\| E[g(x_j) R] \big\| \le \lambda S \sqrt{E g'(x_j)^2} .

For the linear function this is the optimality condition of the problem that is solved, in which
every column has a linear function; the square detects a curved effect. Columns that violate either
condition are added, and the critic is fitted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils import gen_batches

from sobolev._sample import Sample
from sobolev._typing import Array, Index

# Number of columns from which on candidates are fitted first, and number of candidates.
WIDE = 5000
KEPT = 2000
# Largest number of fits, each with a check of the other columns.
MAX_CHECKS = 6
# Tolerance of the condition, about the tolerance of the solution.
SLACK = 0.01

_BLOCK_BYTES = 1 << 25


@dataclass(frozen=True)
class Screening:
    """How a fit on some of the columns was checked on the others.

    Attributes
    ----------
    columns : array of int
        The columns that the critic was fitted on, among those that vary.
    ratios : array
        For each varying column that was left out, the left side of the condition divided by its
        right side: at most one at the optimum. Zero for the columns of the critic.
    n_checks : int
        Number of fits, each with a check.
    """

    columns: Index
    ratios: Array
    n_checks: int

    @property
    def n_missed(self) -> int:
        """Number of columns that violate the condition after the last fit; zero at the optimum."""
        return int(np.sum(self.ratios > 1 + SLACK))


def pair_strength(X: Array, psi: Array, p: Array, gram: Array | None = None) -> Array:
    """sum_k E[psi x_j x_k]² for each column j, summed over the columns of psi.

    Parameters
    ----------
    X, psi, p
        Rows, encoded response and probabilities.
    gram : array of shape (n, n), optional
        X X' over all columns k, if X holds some of the columns j only.
    """
    pairs = np.zeros(X.shape[1])
    for column in psi.T:
        weighted = (p * column)[:, None] * X
        if gram is None and X.shape[1] <= X.shape[0]:
            pairs += np.sum((weighted.T @ X) ** 2, axis=0)
        else:
            product = (X @ X.T if gram is None else gram) @ weighted
            pairs += np.einsum("ij,ij->j", weighted, product)
    return pairs


def curvature(X: Array, psi: Array, p: Array) -> Array:
    """The z-score of E[psi x_j²] for each column."""
    squares = X**2
    squares -= p @ squares
    scale = np.sqrt(p @ squares**2 * (p @ p)) + 1e-12
    found: Array = np.sqrt(np.sum((squares.T @ (p[:, None] * psi)) ** 2, axis=1)) / scale
    return found


def column_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of columns of a few megabytes each."""
    found: Iterator[slice] = gen_batches(n_columns, max(1, _BLOCK_BYTES // (8 * n_rows)))
    return found


def candidates(
    sample: Sample, keep: int, rows: Index | slice = slice(None), always: Index | None = None
) -> Index:
    """Candidate columns, by their own effects and by their share in interactions.

    Half of them have the largest covariance with the response, a quarter each the largest curvature
    and the largest share in products of two columns. Columns that are chosen twice are replaced by
    those with the next largest covariance.

    Parameters
    ----------
    sample : Sample
        Rows and encoded response.
    keep : int
        Number of candidates.
    rows : array of int, optional
        The rows to use; by default all.
    always : array of int, optional
        Columns that are candidates in any case, beside the others.
    """
    p, psi = sample.p[rows] / sample.p[rows].sum(), sample.psi[rows]
    psi = psi - p @ psi
    d = sample.X.shape[1]
    if keep >= d:
        return np.arange(d)
    blocks = list(column_blocks(p.size, d))

    def block(columns: slice) -> Array:
        X = sample.X[rows, columns].astype(float)
        X -= p @ X
        return X

    linear, curved, pairs = np.empty(d), np.empty(d), np.empty(d)
    gram = np.zeros((p.size, p.size))
    for columns in blocks:
        X = block(columns)
        linear[columns] = np.linalg.norm(X.T @ (p[:, None] * psi), axis=1)
        curved[columns] = curvature(X, psi, p)
        gram += X @ X.T
    for columns in blocks:
        pairs[columns] = pair_strength(block(columns), psi, p, gram)
    chosen = np.zeros(d, dtype=bool)
    for score, count in ((linear, keep - 2 * (keep // 4)), (curved, keep // 4), (pairs, keep // 4)):
        chosen[_largest(score, count)] = True
    rest = np.flatnonzero(~chosen)
    chosen[rest[_largest(linear[rest], keep - int(chosen.sum()))]] = True
    if always is not None:
        chosen[always] = True
    return np.flatnonzero(chosen)


def _largest(scores: Array, count: int) -> Index:
    """The positions of the largest scores; ties go to the first."""
    return np.argsort(-scores, kind="stable")[:count]


def optimality_ratios(
    sample: Sample, kept: Index, residual: Array, level: float, *, squares: bool
) -> Array:
    """The left side of the optimality condition divided by its right side, for each column.

    Parameters
    ----------
    sample : Sample
        Rows and encoded response.
    kept : array of int
        The columns of the critic; their ratio is zero.
    residual : array of shape (n, k)
        psi - rho U'phi.
    level : float
        lam S.
    squares : bool
        Whether to check squares as well as linear functions.
    """
    p = sample.p
    weighted = p[:, None] * residual
    ratios = np.empty(sample.X.shape[1])
    for columns in column_blocks(p.size, ratios.size):
        X = sample.X[:, columns].astype(float)
        force = np.linalg.norm(X.T @ weighted, axis=1)
        if squares:
            X **= 2
            X -= p @ X  # half of this has the derivative x_j, of mean square one
            force = np.maximum(force, 0.5 * np.linalg.norm(X.T @ weighted, axis=1))
        ratios[columns] = force / max(level, 1e-300)
    ratios[kept] = 0.0
    return ratios


def joining(ratios: Array, most: int) -> Index:
    """The columns that violate the condition; at most ``most``, those with the largest ratios."""
    broken = np.flatnonzero(ratios > 1 + SLACK)
    return broken[_largest(ratios[broken], most)]
