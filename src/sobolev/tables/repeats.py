"""Rows that repeat earlier ones to the last digit, in every column and in the response.

A test takes rows as independent. A copy of a row is not: it makes p-values too small, and a critic
that was fitted to one copy is tested on the other.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from sobolev._typing import Array, Mask
from sobolev.exceptions import DataWarning
from sobolev.responses import Response
from sobolev.targets import as_columns

# Fewer copies than this share of the rows are left as they are: they change no p-value by much.
MIN_SHARE = 0.05
# A column tells rows apart if it has different values in this share of the different rows.
TELLS_APART = 0.9


def without_copies(
    X: Array, response: Response, weights: Array, stacklevel: int = 3
) -> tuple[Array, Response, Array]:
    """The rows without copies of earlier ones, which are left out with a warning.

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
