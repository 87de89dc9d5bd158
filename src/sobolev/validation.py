"""Validation of tables; error messages name the column and how to fix it."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from sobolev._memory import check_memory
from sobolev._typing import AnyArray, Array, Index

MIN_ROWS = 4
MIN_GROUPS = 4
# Numbers beyond this, and columns below the other one, have squares and products that overflow or
# vanish.
LARGEST, SMALLEST = 1e100, 1e-100


def validate_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    gaps: bool = False,
) -> tuple[Array, Any, Array]:
    """Validate X, y and the weights.

    Parameters
    ----------
    estimator : estimator
        Estimator that gets ``n_features_in_`` and ``feature_names_in_`` if ``reset`` is True.
    X, y : array-like or DataFrame
        Training data.
    sample_weight : array-like, optional
        Nonnegative weights of the rows.
    reset : bool, default=True
        Whether to store the names and the number of columns, or to compare X with them.
    gaps : bool, default=False
        Whether X may have missing cells, which are NaN.

    Returns
    -------
    X : array of float, shape (n, d)
        Validated rows.
    y : array or DataFrame
        Validated response.
    weights : array of shape (n,)
        Probabilities of the rows.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    X = validate_rows(estimator, X, reset=reset, gaps=gaps)
    if sp.issparse(y):
        raise TypeError("Sparse y is not supported; pass y.toarray().")
    y = plain_target(y)
    if len(y) != X.shape[0]:
        raise ValueError(
            f"X has {X.shape[0]} rows but y has {len(y)}: inconsistent numbers of samples; "
            "pass one response for each row."
        )
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero for all rows; at least one row needs a positive weight."
        )
    weights = weights / weights.max()  # a sum of large weights overflows
    used = int(np.count_nonzero(weights))
    if used < MIN_ROWS:
        raise ValueError(
            f"n_samples = {used} is too few (1 sample to {MIN_ROWS - 1} samples cannot show "
            f"dependence); at least {MIN_ROWS} rows of positive weight are needed."
        )
    check_memory(*X.shape)
    return X, y, weights / weights.sum()


def validate_rows(estimator: Any, X: Any, *, reset: bool, gaps: bool = False) -> Array:
    """Validate the rows of X; text, NaN and infinity are reported by column.

    With ``gaps``, NaN is a missing cell, but a column needs some numbers.
    """
    if sp.issparse(X):
        raise TypeError(
            "Sparse X is not supported, since kernels and gradients are dense; pass X.toarray(), "
            "or reduce the number of columns first."
        )
    if len(getattr(X, "columns", "X")) == 0:
        raise ValueError("X has no columns.")
    reject_repeated_names(X)
    reject_text_columns(X)
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float64,
            order="C",  # a frame gives the numbers of an array, to the last digit
            ensure_all_finite=False,
            ensure_min_samples=1,
        )
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(not_numbers(_text_positions(X))) from error
    reject_non_finite(checked, X, gaps=gaps)
    reject_extreme(checked, X, small=reset)
    return checked


def read_groups(groups: Any, n: int) -> Index:
    """The number of the group of each row, in the order of their first rows.

    Parameters
    ----------
    groups : array-like of shape (n,)
        Labels, numbers or text.
    n : int
        Number of rows.
    """
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has the shape {labels.shape}, but X has {n} rows.")
    codes, found = pd.factorize(labels)
    if (codes < 0).any():
        raise ValueError(
            f"groups has no label in {int((codes < 0).sum())} of {n} rows; drop these rows, or "
            "give each a label of its own."
        )
    if len(found) < MIN_GROUPS:
        raise ValueError(
            f"groups has {len(found)} different labels; at least {MIN_GROUPS} subjects are needed "
            "to train on some and test on others."
        )
    return np.asarray(codes, dtype=np.intp)


def feature_names(estimator: Any) -> list[str]:
    """Names of the columns that an estimator was fitted to; x0, x1, ... if it has no names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def column_names(X: Any, d: int) -> list[str]:
    """Names of the columns for messages."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return [f"column {j}" for j in range(d)]
    return [f"column {name!r}" for name in columns]


def reject_repeated_names(X: Any) -> None:
    """Raise an error that names the columns of a frame that share a name."""
    columns = pd.Index(getattr(X, "columns", ()))
    if not columns.is_unique:
        shown = list_some([repr(name) for name in columns[columns.duplicated()].unique()])
        raise ValueError(f"X has several columns of the name {shown}; rename them.")


def reject_text_columns(X: Any) -> None:
    """Raise an error that names the columns that are not numeric."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return
    bad = []
    for position, name in enumerate(columns):
        column = X.iloc[:, position] if hasattr(X, "iloc") else X[name]
        if not _is_numeric(column):
            bad.append(name)
    if bad:
        raise ValueError(not_numbers(bad))


def not_numbers(columns: list[Any]) -> str:
    """Error message for columns that are not numeric."""
    shown = list_some([repr(name) for name in columns])
    return (
        f"X has columns that are not numbers: {shown}. HRTSelector and KnockoffSelector take them "
        "as they are; elsewhere encode them (sobolev.tables.prepare(table).X) or drop them."
    )


def _text_positions(X: Any) -> list[int]:
    """Positions of the columns of an array that cannot be converted to numbers."""
    bad = []
    for j, column in enumerate(np.asarray(X, dtype=object).T):
        try:
            column.astype(float)
        except (TypeError, ValueError):
            bad.append(j)
    return bad


def _is_numeric(column: Any) -> bool:
    is_numeric = getattr(column.dtype, "is_numeric", None)  # polars
    if callable(is_numeric):
        return bool(is_numeric()) or str(column.dtype) == "Boolean"
    types = pd.api.types
    if types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype):
        return not types.is_complex_dtype(column.dtype)
    if column.dtype == object:
        return all(isinstance(v, (Real, np.number)) for v in column)
    return False


def reject_non_finite(X: Array, original: Any, *, gaps: bool = False) -> None:
    """Raise an error that names the columns with NaN or infinity.

    With ``gaps``, only infinity and columns of nothing but NaN are errors.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(X.sum()):
            return
    missing = np.isnan(X)
    bad = np.isinf(X) if gaps else ~np.isfinite(X)
    columns = np.flatnonzero(bad.any(axis=0) | missing.all(axis=0))
    if not columns.size:
        return
    names = column_names(original, X.shape[1])
    count = (bad if bad.any() else missing).sum(axis=0)
    shown = list_some([f"{names[j]} ({count[j]} of {X.shape[0]} rows)" for j in columns])
    if gaps and not bad.any():
        raise ValueError(f"Input X contains no number in {shown}; drop these columns.")
    kind = "NaN" if missing[:, columns].any() and not gaps else "infinity"
    accepted = "inf is not accepted" if gaps else "NaN or inf are not accepted"
    remedy = "correct or drop" if gaps else "impute or drop"
    raise ValueError(
        f"Input X contains {kind} ({accepted}) in {shown}; {remedy} these values first."
    )


def reject_extreme(X: Array, original: Any, *, small: bool) -> None:
    """Raise an error that names the columns with numbers that are too large to be multiplied.

    With ``small``, also the columns whose numbers are all too small.
    """
    size = np.maximum(np.fmax.reduce(X, axis=0), -np.fmin.reduce(X, axis=0))
    columns = np.flatnonzero((size > LARGEST) | (small & (size > 0) & (size < SMALLEST)))
    if columns.size:
        names = column_names(original, X.shape[1])
        shown = list_some([f"{names[j]} (up to {size[j]:.1g})" for j in columns])
        raise ValueError(
            f"X contains numbers of extreme size in {shown}; rescale the column, or correct the "
            "values if they mark missing cells."
        )


def list_some(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """The first names of a list for a message, and the number of further ones."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def take_rows(y: Any, rows: Any) -> Any:
    """Rows of a response, by position or mask."""
    return y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y)[rows]


def plain_target(y: Any) -> Any:
    """Convert a response to an array; DataFrames, whose columns may differ in type, are kept.

    Ordered categories become the numbers 1, 2, ... in their order, and categories without an order
    become labels, also if they are numbers.
    """
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        if hasattr(y, "iloc"):
            return y
        return pd.DataFrame({name: y[name].to_numpy() for name in y.columns})  # polars
    if isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
        y = _plain_categories(y)
    y_array: AnyArray = np.asarray(y)
    if y_array.ndim == 0:
        advice = f"; if it names a column, pass the column itself, table[{y!r}]"
        raise ValueError(
            "y must have one or two dimensions, but is a single value"
            f"{advice if isinstance(y, str) else ''}."
        )
    _num_samples(y_array)
    return y_array


def _plain_categories(y: Any) -> AnyArray:
    """A pandas categorical as numbers, if it is ordered, or as labels."""
    column = pd.Series(y)
    if column.cat.ordered:
        return np.where(column.isna(), np.nan, column.cat.codes + 1.0)
    labels = column.astype(object)
    if pd.api.types.is_numeric_dtype(column.cat.categories.dtype):
        labels = labels.where(column.isna(), labels.astype(str))
    return np.asarray(labels, dtype=object)
