"""Matrices of thousands of mostly zero columns: which of them are modelled, and their dense form.

A column is densified only when it is kept. Columns with few nonzero rows are set aside, and if the
others do not fit in memory, those that are most related to the response in the first training rows
are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import gen_batches

from sobolev._typing import Array, Index, Mask
from sobolev.tables.prepared import Prepared
from sobolev.targets import TargetEncoder
from sobolev.validation import list_some, take_rows

# Largest size in bytes of the dense table, and of the matrix of correlations of its columns.
MAX_BYTES = 1 << 30
# A sparse column needs this many nonzero rows.
MIN_NONZERO = 10
# Number of cells that are densified at once.
_BLOCK = 1 << 22

# From the response and the subjects: an order of the rows, and the number of first training rows.
Division = Callable[[Any, Any], tuple[Index, int]]


@dataclass(frozen=True)
class Matrix:
    """Numbers, with what is known about their rows and columns.

    Attributes
    ----------
    values : array or sparse array (CSC) of shape (n, d)
        The columns that may be tested.
    beside : DataFrame
        Further columns, of which some may be the response, subjects and weights.
    names : tuple of str
        Names of the columns of ``values``.
    is_named : bool
        Whether the names came with the matrix.
    """

    values: Any
    beside: pd.DataFrame
    names: tuple[str, ...]
    is_named: bool = True


def of_sparse(X: Any) -> Matrix:
    """A sparse matrix without names.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from sobolev.tables.matrices import of_sparse
    >>> of_sparse(sp.eye_array(3)).names
    ('x0', 'x1', 'x2')
    """
    values = by_columns(X)
    n, d = values.shape
    names = tuple(f"x{j}" for j in range(d))
    return Matrix(values, pd.DataFrame(index=range(n)), names, is_named=False)


def by_columns(X: Any) -> Any:
    """A sparse matrix of any format as floats in CSC format."""
    if X.ndim != 2 or np.issubdtype(X.dtype, np.complexfloating):
        raise TypeError(
            f"X is a sparse array of {X.ndim} dimensions and type {X.dtype}; pass a table of real "
            "numbers."
        )
    return sp.csc_array(X).astype(float, copy=False)


def most_columns(n: int) -> int:
    """Largest number of columns of a table with n rows that fits in memory.

    Examples
    --------
    >>> from sobolev.tables.matrices import most_columns
    >>> most_columns(1000), most_columns(100_000)
    (11585, 1342)
    """
    cells = MAX_BYTES // 8
    return min(int(np.sqrt(cells)), cells // max(n, 1))


def prepare_matrix(matrix: Matrix, beside: Prepared, division: Division | None) -> Prepared:
    """Choose and densify columns.

    Parameters
    ----------
    matrix : Matrix
    beside : Prepared
        The response, the subjects and weights, and the rows that are used; without features.
    division : callable or None
        Divides the rows if the columns do not fit in memory. None refuses such a matrix.

    Returns
    -------
    Prepared
        Its inputs are all columns of the matrix, its X has the columns that were kept.
    """
    values = matrix.values
    if beside.rows.size < values.shape[0]:
        values = values[beside.rows]
    if sp.issparse(values):
        _reject_infinity(values, matrix.names)
    reasons = _unusable(values)
    kept = np.flatnonzero([not reason for reason in reasons])
    if not kept.size:
        raise ValueError(
            f"none of {len(matrix.names)} columns can be used: a sparse column needs at least "
            f"{MIN_NONZERO} nonzero rows, and no column may be constant."
        )
    most = most_columns(values.shape[0])
    if sp.issparse(values) and kept.size > most:
        order, n_train = _divided(beside, division, kept.size, most)
        beside, values = _in_order(beside, order, n_train), values[order]
        strength = strengths(values[:n_train, kept], take_rows(beside.y, slice(n_train)))
        by_strength = kept[np.argsort(-strength, kind="stable")]
        for j in by_strength[most:]:
            reasons[j] = "weak in the training rows"
        beside.notes.append(_screened(kept.size, most, n_train))
        kept = np.sort(by_strength[:most])
    names = [matrix.names[j] for j in kept]
    places = {name: [k] for k, name in enumerate(names)}
    X = dense(values, kept) if sp.issparse(values) else np.asarray(values[:, kept], dtype=float)
    missing = np.isnan(X).mean(axis=0)
    return replace(
        beside,
        X=pd.DataFrame(X, columns=names, copy=False),
        variables=places,
        kinds=dict.fromkeys(names, "numeric"),
        places=places,
        inputs=matrix.names,
        columns_read=len(matrix.names),
        set_aside=[(matrix.names[j], reason) for j, reason in enumerate(reasons) if reason],
        missing={name: share for name, share in zip(names, missing, strict=True) if share},
        is_named=matrix.is_named,
    )


def dense(X: Any, columns: Index) -> Array:
    """Columns of a sparse matrix as a dense array, densified block by block.

    Parameters
    ----------
    X : sparse array (CSC) of shape (n, d)
    columns : array of int

    Returns
    -------
    array of shape (n, len(columns))
    """
    found = np.empty((X.shape[0], columns.size))
    for block in gen_batches(columns.size, max(1, _BLOCK // X.shape[0])):
        found[:, block] = X[:, columns[block]].toarray()
    return found


def strengths(X: Any, y: Any) -> Array:
    r"""Correlation of each sparse column with the response.

    Parameters
    ----------
    X : sparse array (CSC) of shape (n, d)
        Missing cells, NaN, count as zero.
    y : array or DataFrame
        Response that was read before: floats are numbers, all else is labels.

    Returns
    -------
    array of shape (d,)
        The larger of two multiple correlations with psi(y): of sign(x) log(1 + \|x\|), which keeps
        large counts from deciding alone, and of the indicator of the nonzero rows.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from sobolev.tables.matrices import strengths
    >>> strengths(sp.csc_array([[0.0, 5.0], [0.0, 0.0], [3.0, 5.0], [1.0, 0.0]]), list("aabb"))
    array([1., 0.])
    """
    encoder = TargetEncoder("typed", basis="auto").fit(y)
    psi = encoder.transform(y)
    x = np.nan_to_num(X.data)
    return np.maximum(
        _correlations(_with_data(X, np.sign(x) * np.log1p(np.abs(x))), psi),
        _correlations(_with_data(X, (x != 0).astype(float)), psi),
    )


def _correlations(X: Any, psi: Array) -> Array:
    """Multiple correlations of sparse columns with psi, which is centred and whitened."""
    mean, square = X.mean(axis=0), X.power(2).mean(axis=0)
    variance = square - mean**2
    varies = variance > 1e-12 * square
    covariance = np.linalg.norm(X.T @ psi, axis=1) / len(psi)
    return np.where(varies, covariance / np.sqrt(np.where(varies, variance, 1.0)), 0.0)


def _with_data(X: Any, data: Array) -> Any:
    return sp.csc_array((data, X.indices, X.indptr), shape=X.shape)


def _reject_infinity(values: Any, names: tuple[str, ...]) -> None:
    """Refuse infinity in sparse columns, also in those that are not kept."""
    infinite = np.isinf(values.data)
    if infinite.any():
        columns = np.repeat(np.arange(len(names)), np.diff(values.indptr))[infinite]
        shown = list_some([f"column {names[j]!r}" for j in np.unique(columns)])
        raise ValueError(
            f"X contains infinity in {shown}; correct these values, or drop the columns."
        )


def _unusable(values: Any) -> list[str]:
    """Why a column is not used, from X alone; empty if it is used."""
    if not sp.issparse(values):
        return ["constant" if same else "" for same in _are_constant(values)]
    data = np.nan_to_num(values.data)
    count = _with_data(values, (data != 0).astype(float)).sum(axis=0).astype(int)
    filled = _with_data(values, data)
    n = values.shape[0]
    same = (count == n) & (_as_array(filled.max(axis=0)) == _as_array(filled.min(axis=0)))
    least = min(MIN_NONZERO, n // 2)
    return [
        f"nonzero in {k} rows, fewer than {least}" if k < least else "constant" if constant else ""
        for k, constant in zip(count, same, strict=True)
    ]


def _are_constant(values: Any) -> Mask:
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    return ~(high > low)  # also if all cells are missing


def _as_array(found: Any) -> Array:
    return np.asarray(found.todense()).ravel()


def _divided(
    beside: Prepared, division: Division | None, n_columns: int, most: int
) -> tuple[Index, int]:
    """The division of the rows, or an error with figures if there is none."""
    n = beside.rows.size
    if division is not None and beside.response is not None:
        return division(beside.y, beside.groups)
    size = 8 * n_columns * max(n, n_columns) / 2**30
    raise ValueError(
        f"X has {n} rows and {n_columns} columns that could be used, which needs dense arrays of "
        f"{size:.2g} GiB; the limit is {MAX_BYTES / 2**30:.2g} GiB, or {most} columns. Choose "
        "columns without looking at the response, such as the most variable ones, or use "
        "HRTSelector.fit, which chooses them in its training rows."
    )


def _in_order(beside: Prepared, order: Index, n_train: int) -> Prepared:
    """The rows in another order, the training rows first."""
    assert beside.response is not None
    return replace(
        beside,
        response=beside.response.rows(order),
        rows=beside.rows[order],
        groups=None if beside.groups is None else beside.groups[order],
        weights=None if beside.weights is None else beside.weights[order],
        notes=list(beside.notes),
        n_train=n_train,
    )


def _screened(n_columns: int, most: int, n_train: int) -> str:
    return (
        f"{n_columns} columns do not fit in memory as a dense table; the {most} that are most "
        f"related to the response in the {n_train} rows of the first training set are used. A "
        "p-value tests whether the column matters given these columns, not given all of them."
    )
