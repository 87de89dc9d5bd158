r"""Signs of null columns: how often a column that does not matter beats its knockoff.

If swapping a column with its knockoff does not change the joint distribution, a column that does
not matter is as often above its knockoff as below. The responses are planted on a few columns, so
the truth is known, and the importance of a column is its largest absolute correlation with the
response: of its scores, of their squares, and of its values. So :math:`E[x_j\, g(x_{-j})]` is
compared with :math:`E[\tilde x_j\, g(x_{-j})]` for random functions g. This takes a few matrix
products and uses X alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index
from sobolev.inference.planting import N_ACTIVE, SHAPES, plant

N_RESPONSES = 60
MAX_ROWS = 2000
# Mean share of wins of null columns over their knockoffs that is close enough to 1/2.
FAIR = 0.55


@dataclass(frozen=True)
class NullSigns:
    """How often columns that do not matter beat their knockoffs.

    Attributes
    ----------
    shares : array of shape (p,)
        Share of the planted responses, among those that do not depend on the column, in which the
        column beats its knockoff; columns of a group share it. NaN for columns that equal their
        knockoffs.
    mean : float
        Mean over groups, 1/2 if there are none. Knockoffs are valid if it is 1/2 and conservative
        if it is smaller.
    error : float
        Standard error of the mean.
    """

    shares: Array
    mean: float
    error: float

    @property
    def fair(self) -> bool:
        """Whether the mean is at most 0.55."""
        return self.mean <= FAIR

    @property
    def in_doubt(self) -> bool:
        """Whether the mean is above 0.55 by more than two standard errors."""
        return self.mean - 2 * self.error > FAIR


def null_signs(
    X: Array, knockoffs: Sequence[Array], labels: Index, rng: np.random.Generator
) -> NullSigns:
    """Compare null columns with their knockoffs on planted responses.

    Parameters
    ----------
    X : array of shape (n, p)
        Columns. Of many rows, 2000 are drawn.
    knockoffs : sequence of arrays of shape (n, p)
        Draws of knockoffs; wins are averaged over them.
    labels : array of int, shape (p,)
        Group of each column.
    rng : numpy.random.Generator
        Source of the responses.

    Returns
    -------
    NullSigns
    """
    rows = np.sort(rng.permutation(X.shape[0])[:MAX_ROWS])
    X = X[rows]
    _, groups = np.unique(labels, return_inverse=True)
    original, drawn = _features(X), [_features(draw[rows]) for draw in knockoffs]
    wins, tries = np.zeros((2, groups.max() + 1))
    n_active = int(np.clip(np.count_nonzero(np.ptp(X, axis=0) > 0) // 3, 1, N_ACTIVE))
    for number in range(N_RESPONSES):
        planted = plant(X, SHAPES[number % len(SHAPES)], rng, n_active=n_active)
        y = planted.y - planted.y.mean()
        y /= np.linalg.norm(y)
        column = _strongest(original, y, groups)
        for features in drawn:
            ahead = column - _strongest(features, y, groups)
            is_null = np.abs(ahead) > 1e-12
            is_null[groups[planted.active]] = False
            wins += is_null & (ahead > 0)
            tries += is_null
    shares = np.divide(wins, tries, out=np.full(tries.size, np.nan), where=tries > 0)
    known = shares[tries > 0]
    mean = float(known.mean()) if known.size else 0.5
    error = float(known.std(ddof=1) / np.sqrt(known.size)) if known.size > 1 else 0.5
    return NullSigns(shares[groups], mean, error)


def _features(X: Array) -> Array:
    """Scores, squared scores and values of the columns, of mean zero and norm one, (n, 3, p)."""
    scores = rank_scores(X)
    found = np.stack([scores, scores**2, X], axis=1)
    found -= found.mean(axis=0)
    size = np.sqrt(np.sum(found**2, axis=0))
    return np.asarray(found / np.where(size > 0, size, 1.0))


def _strongest(features: Array, y: Array, groups: Index) -> Array:
    """Largest absolute correlation with y in each group."""
    found = np.abs(np.tensordot(y, features, axes=1)).max(axis=0)
    strongest = np.zeros(groups.max() + 1)
    np.maximum.at(strongest, groups, found)
    return strongest
