"""The sample that the solvers use: standardised rows, encoded response, probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from sobolev._typing import Array, Index, Mask
from sobolev.criterion import Groups, adjusted_groups
from sobolev.exceptions import ConstantColumnWarning
from sobolev.selection import select
from sobolev.validation import list_some, take_rows

Folds = int | list[Index]

# Number of columns that are compared first when equal rows are searched.
MERGE_COLUMNS = 32


@dataclass(frozen=True)
class Sample:
    """Standardised rows, the encoded response, and probabilities of the rows.

    Attributes
    ----------
    X : array of shape (n, d)
        Standardised rows.
    psi : array of shape (n, k)
        Encoded response.
    p : array of shape (n,)
        Probabilities of the rows.
    """

    X: Array
    psi: Array
    p: Array

    def rows(self, index: Index) -> Self:
        """A subset of the rows, centred again."""
        p = self.p[index] / self.p[index].sum()
        X, psi = self.X[index], self.psi[index]
        return replace(self, X=X - p @ X, psi=psi - p @ psi, p=p)

    def columns(self, index: Index) -> Self:
        """A subset of the columns."""
        return replace(self, X=self.X[:, index].astype(float, copy=False))


def stratified_folds(sample: Sample, k: int) -> list[Index]:
    """Test sets of k folds, stratified by the sorted response; independent of the order of rows.

    There are fewer folds if there are fewer than 2 k rows, and none with fewer than four rows.
    """
    k = min(k, sample.p.size // 2)
    order = response_order(sample)
    return [np.sort(order[i::k]) for i in range(k)] if k > 1 else []


def response_order(sample: Sample) -> Index:
    """Order of the rows by response; ties are broken by their norm and by a score.

    None of these depends on the order of rows or columns.
    """
    X, weights = sample.X, sample.p[:, None]
    radius = np.round(np.sum(X**2, axis=1), 6)
    linear = X @ (X.T @ (weights * sample.psi))
    scores = X @ (X.T @ (weights * linear**3))  # the cube separates columns of equal covariance
    return np.lexsort((*np.round(scores.T, 6), radius, *np.round(sample.psi.T, 9)))


def merge_equal_rows(
    X: Array, psi: Array, p: Array, *, ordered: bool = False
) -> tuple[Array, Array, Array]:
    """Merge equal rows into one row with their total weight.

    The rows are in order of first appearance or, if ``ordered``, in an order that depends on the
    values alone.
    """
    if X.shape[1] > MERGE_COLUMNS:
        _, order = np.unique(X[:, :MERGE_COLUMNS], axis=0, return_index=True)
        if order.size == p.size:  # all rows differ in these columns already
            return (X[order], psi[order], p[order]) if ordered else (X, psi, p)
    _, first, inverse = np.unique(
        np.hstack([X, psi]), axis=0, return_index=True, return_inverse=True
    )
    if first.size == p.size and not ordered:
        return X, psi, p
    mass: Array = np.bincount(inverse.ravel(), weights=p).astype(float)
    order = np.arange(first.size) if ordered else np.argsort(first)
    return X[first[order]], psi[first[order]], mass[order]


def spread(values: Array, varying: Mask) -> Array:
    """Extend values of the varying columns to all columns, with zero for constant ones."""
    out = np.zeros(varying.size)
    out[varying] = values
    return out


def report_constant(varying: Mask, names: Any, stacklevel: int) -> None:
    """Warn about constant columns by name; raise an error if all columns are constant."""
    constant = np.flatnonzero(~varying)
    if constant.size == varying.size:
        raise ValueError("every column of X is constant; at least one must vary to explain y.")
    if not constant.size:
        return
    shown = list_some([repr(names[j]) if names is not None else str(j) for j in constant])
    warnings.warn(
        f"constant columns get importance 0: {shown}.", ConstantColumnWarning, stacklevel=stacklevel
    )


def varying_groups(groups: Any, varying: Mask, names: Any, adjust: Any = None) -> Groups | None:
    """The groups of the user without constant columns; columns of ``adjust`` are in no group.

    None: every column is a group of its own.
    """
    if groups is None and adjust is None:
        return None
    labels = None if names is None else [str(name) for name in names]
    found = adjusted_groups(groups, adjust, varying.size, labels).restrict(np.flatnonzero(varying))
    if not found.n_groups:
        raise ValueError("adjust names all columns of X that vary; leave one or more to be ranked.")
    return None if groups is None and not found.adjusted.any() else found


def used_rows(estimator: Any, X: Array, y: Any, p: Array) -> tuple[Array, Any, Array, Folds]:
    """Rows of positive weight among checked rows: X, y, probabilities, and the folds among them.

    A selection rule that cannot be met is reported here, before the fit.
    """
    select(np.zeros(X.shape[1]), estimator.n_features_to_select, estimator.threshold)
    used = p > 0
    folds = resolve_folds(estimator.cv, X, y, used)
    if not used.all():
        X, p = X[used], p[used]
        y = take_rows(y, used)
    return X, y, p, folds


def resolve_folds(cv: Any, X: Array, y: Any, used: Mask) -> Folds:
    """Number of folds, or the test rows of the user's splits among the rows that are used."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv={cv} must be at least 2.")
        return int(cv)
    if isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise TypeError(f"cv must be an integer, a splitter or an iterable of splits; got {cv!r}.")
    splits = cv.split(X, y) if hasattr(cv, "split") else cv
    position = np.cumsum(used) - 1
    tests = [np.asarray(test) for _, test in splits]
    return [position[test][used[test]] for test in tests if used[test].any()]
