"""Rows that repeat others, in every column and in the response: to the last digit, or nearly.

A test takes rows as independent. A copy of a row is not: it makes p-values too small, and a critic
that was fitted to one copy is tested on the other.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from sobolev._typing import Array, Mask
from sobolev.exceptions import DataWarning
from sobolev.responses import Response
from sobolev.targets import as_columns

# Fewer copies than this share of the rows are left as they are: they change no p-value by much.
MIN_SHARE = 0.05
# A column tells rows apart if it has different values in this share of the different rows.
TELLS_APART = 0.9
# A column is continuous if it has different values in this share of the rows. Near copies are
# looked for in tables of at least three such columns and at most so many rows.
CONTINUOUS, MIN_CONTINUOUS, MAX_ROWS = 0.5, 3, 3000
# A row is nearly a copy if its nearest row is so much nearer than the last of so many neighbours.
NEAR, NEIGHBOURS = 0.02, 30


def without_copies(
    X: Array, response: Response, weights: Array, stacklevel: int = 3
) -> tuple[Array, Response, Array]:
    """The rows without copies of earlier ones, which are left out with a warning.

    Near copies stay, with a warning that asks whether rows belong together.

    Parameters
    ----------
    X : array of shape (n, d)
        May have missing cells.
    response : Response
    weights : array of shape (n,)
        Probabilities of the rows.
    stacklevel : int, default=3
        As in :func:`warnings.warn`.
    """
    near = near_repeats(X, response.values)
    if near.any():
        warnings.warn(
            f"{near.sum()} of {near.size} rows nearly repeat other rows in every column and in the "
            "response. If they belong together, such as repeated measurements of one subject, "
            "p-values are far too small: pass groups (in the shell: --subject), or keep one row of "
            "each.",
            DataWarning,
            stacklevel=stacklevel + 1,
        )
    copies = repeated_rows(X, response.values)
    if not copies.any():
        return X, response, weights
    warnings.warn(note_of(copies), DataWarning, stacklevel=stacklevel + 1)
    rows = np.flatnonzero(~copies)
    return X[rows], response.rows(rows), weights[rows] / weights[rows].sum()


def note_of(copies: Mask) -> str:
    """What is said of rows that are left out."""
    return (
        f"{copies.sum()} of {copies.size} rows repeat earlier rows in every column and in the "
        "response; they were left out, since copies make p-values too small."
    )


def repeated_rows(X: Any, y: Any) -> Mask:
    """Which rows are copies of earlier ones; none if there are few, or if chance may explain them.

    Chance does not explain them if some column has a value of its own in nearly every different
    row, or if independent columns would hardly have one pair of equal rows. As columns depend on
    each other, the probability of such a pair counts by its square root.

    Parameters
    ----------
    X : array or DataFrame of shape (n, d)
    y : array or DataFrame
        Responses.

    Returns
    -------
    array of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.tables.repeats import repeated_rows
    >>> X, y = np.random.default_rng(0).random((100, 3)), np.zeros(100)
    >>> int(repeated_rows(np.vstack([X, X[:20]]), np.zeros(120)).sum())
    20
    >>> bool(repeated_rows(np.vstack([X, X]) > 0.5, np.zeros(200)).any())
    False
    """
    parts = [pd.DataFrame(X), *[pd.Series(values) for values in as_columns(y)]]
    table = pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
    table.columns = range(table.shape[1])
    copies = table.duplicated().to_numpy()
    none = np.zeros(len(table), dtype=bool)
    if copies.sum() < max(MIN_SHARE * len(table), 1):
        return none
    different = table[~copies]
    n = len(different)
    log_pairs = 2 * np.log(n) - np.log(2)
    for column in different:
        counts = different[column].value_counts(dropna=False).to_numpy()
        if counts.size >= TELLS_APART * n > 1:
            return copies
        log_pairs += 0.5 * np.log(np.sum((counts / n) ** 2))
    return copies if log_pairs < 0 else none


def near_repeats(X: Array, y: Any) -> Mask:
    """Which rows are nearly copies of another row; none if there are few.

    A row is nearly a copy if, in the continuous columns without gaps, the distance to the nearest
    row is a fiftieth of that to the thirtieth. In three dimensions chance brings two rows so near
    in one of some thousand rows. Exact copies do not count.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array or DataFrame
        Responses.

    Returns
    -------
    array of bool, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.tables.repeats import near_repeats
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((100, 4))
    >>> twins = np.vstack([rows, rows + 1e-4 * rng.standard_normal((100, 4))])
    >>> int(near_repeats(twins[:, :3], twins[:, 3]).sum())
    200
    """
    n, none = len(X), np.zeros(len(X), dtype=bool)
    if not NEIGHBOURS < n <= MAX_ROWS:
        return none
    numbers = [v for v in map(np.asarray, as_columns(y)) if np.issubdtype(v.dtype, np.number)]
    columns = [
        column
        for column in [*X.T, *numbers]
        if not np.isnan(column).any() and np.unique(column).size >= CONTINUOUS * n
    ]
    if len(columns) < MIN_CONTINUOUS:
        return none
    Z = np.column_stack(columns).astype(float)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    distances, _ = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(Z).kneighbors()
    near = (distances[:, 0] > 0) & (distances[:, 0] < NEAR * distances[:, -1])
    return near if near.sum() >= MIN_SHARE * n else none
