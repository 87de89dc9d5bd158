r"""Encodings of the response into a centred, whitened basis psi(y).

The critic is :math:`f(x, y) = \phi(x)^\top U \psi(y)`. With :math:`E\,\psi = 0` and
:math:`E\,\psi\psi^\top = I` under the empirical distribution of y, every expectation under the
product of the marginals is exact and needs no permuted sample. The encoding psi is

- for regression, the standardised response, its normal scores, or orthonormal polynomials;
- for classification, the whitened indicators, one column fewer than there are classes;
- for several responses, all columns whitened together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from sobolev._parameters import check_option
from sobolev._standardize import NormalScores, has_heavy_tails
from sobolev._typing import AnyArray, Array
from sobolev.exceptions import TargetError
from sobolev.validation import LARGEST, plain_target

# Integers are labels only if they are the codes 0, 1, ... of at most so many classes, each with at
# least this share of the rows. Counts and grades seldom are: large counts are rare, grades begin
# at 1.
MAX_CODES, MIN_CODE_SHARE = 10, 0.05
TARGET_TYPES = ("auto", "regression", "classification", "typed")
_RANK_TOL = 1e-9
_DATES = "y contains dates or durations; convert them to numbers first."


@dataclass
class TargetColumn:
    """The raw basis of one column of y: indicators, or polynomials of a standardised number.

    ``recurrence`` holds (a_k, b_k) of b_k p_k(z) = (z - a_k) p_{k-1}(z) - b_{k-1} p_{k-2}(z), the
    polynomials that are orthonormal under the distribution of z.
    """

    name: str
    classes: AnyArray | None = None
    center: float = 0.0
    scale: float = 1.0
    scores: NormalScores | None = None
    recurrence: Array = field(default_factory=lambda: np.empty((0, 2)))

    def values(self, column: AnyArray) -> Array:
        """The raw basis of a column, (n, n_raw)."""
        if self.classes is not None:
            return self._indicators(column)
        z = self.standardize(finite_numbers(column, self.name))
        if not self.recurrence.size:
            return z[:, None]
        basis, norm_before = [np.zeros_like(z), np.ones_like(z)], 0.0
        for shift, norm in self.recurrence:
            basis.append(((z - shift) * basis[-1] - norm_before * basis[-2]) / norm)
            norm_before = norm
        return np.column_stack(basis[2:])

    def standardize(self, numbers: Array) -> Array:
        """Numbers as normal scores, if the column has them, and in standard units."""
        if self.scores is not None:
            numbers = self.scores(numbers)
        return (numbers - self.center) / self.scale

    def _indicators(self, column: AnyArray) -> Array:
        assert self.classes is not None
        labels = as_labels(column)
        if self.classes.dtype.kind == "U":  # labels of mixed types are compared as text
            labels = labels.astype(str)
        code = np.searchsorted(self.classes, labels)
        code = np.minimum(code, self.classes.size - 1)
        unknown = self.classes[code] != labels
        if unknown.any():
            raise TargetError(
                f"{self.name} holds the label {labels[unknown][0].item()!r}, unseen in fit; "
                f"known labels: {', '.join(map(repr, self.classes[:10].tolist()))}."
            )
        return np.eye(self.classes.size)[code]


@dataclass(eq=False, repr=False)
class TargetEncoder(BaseEstimator):
    """Encode y as psi(y), centred and whitened under its (weighted) empirical distribution.

    Parameters
    ----------
    target_type : {"auto", "regression", "classification", "typed"}, default="auto"
        Type of the response. "auto" treats text, booleans, unordered categories, two integers, and
        the codes 0, 1, ... of at most 10 classes with at least 5 % of the rows each as labels,
        everything else as numbers; see :func:`are_codes`. "typed" treats floats as numbers and
        everything else as labels.
    basis : {"standard", "normal_scores", "auto", "polynomial"}, default="standard"
        Basis of a numeric response. "auto" is "normal_scores" for a response with heavy tails.
    degree : int, default=3
        Degree of the polynomial basis.
    select : bool, default=False
        Whether the columns of a numeric y with several columns get importances as well.

    Attributes
    ----------
    classes_ : array or None
        Sorted labels of a single categorical response; None otherwise.
    n_outputs_ : int
        Number of columns of y.
    whitener_ : array of shape (n_raw, k)
        Whitening matrix W: psi(y) = (raw basis - mean) W.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.targets import TargetEncoder
    >>> psi = TargetEncoder().fit(["a", "b", "a", "c"]).transform(["a", "b", "a", "c"])
    >>> psi.shape
    (4, 2)
    >>> bool(np.allclose(psi.T @ psi / 4, np.eye(2)))
    True
    """

    target_type: str = "auto"
    basis: str = "standard"
    degree: int = 3
    select: bool = False

    def fit(self, y: Any, sample_weight: Array | None = None) -> TargetEncoder:
        """Fit the encoding to y."""
        self.check_parameters()
        table = as_columns(y)
        weights = _probabilities(sample_weight, len(table[0]))
        self.n_outputs_ = len(table)
        names = ["y"] if len(table) == 1 else [f"y[{i}]" for i in range(len(table))]
        self.columns_ = [
            self._fit_column(c, name, weights) for c, name in zip(table, names, strict=True)
        ]
        self.classes_ = self.columns_[0].classes if self.n_outputs_ == 1 else None
        raw = self._raw(table)
        self.mean_ = weights @ raw
        centred = raw - self.mean_
        self.whitener_ = whitener(centred.T @ (weights[:, None] * centred))
        return self

    def transform(self, y: Any) -> Array:
        """Encode y.

        Returns
        -------
        array of shape (n, k)
            psi(y) of each row.
        """
        table = as_columns(y)
        if len(table) != self.n_outputs_:
            raise ValueError(
                f"y has {len(table)} columns, but {self.n_outputs_} were passed to fit."
            )
        return (self._raw(table) - self.mean_) @ self.whitener_

    def standardized(self, y: Any) -> Array:
        """The columns before whitening: standardised numbers, or indicators of the classes."""
        return self._raw(as_columns(y))

    def unstandardized(self, values: Array) -> Array:
        """Convert standardised numbers to the units of y, (n, n_outputs)."""
        scale = np.array([column.scale for column in self.columns_])
        return values * scale + np.array([column.center for column in self.columns_])

    @property
    def output_weights(self) -> Array:
        """Derivatives ∂psi/∂y for numeric responses in standard units.

        Row l is t_l with ∂f/∂y_l = phi(x)' U t_l. Only linear encodings have constant derivatives.
        """
        if any(
            c.classes is not None or c.recurrence.size or c.scores is not None
            for c in self.columns_
        ):
            raise ValueError(
                "TargetEncoder(select=True) needs numeric responses in their standard encoding; "
                'use target_type="regression" and basis="standard".'
            )
        return self.whitener_

    def check_parameters(self) -> None:
        """Raise an error for invalid parameters."""
        check_option("target", self.target_type, TARGET_TYPES)
        check_option("basis", self.basis, ("standard", "normal_scores", "auto", "polynomial"))
        if self.basis == "polynomial" and self.degree not in range(1, 11):
            raise ValueError(f"degree={self.degree!r} must be an integer from 1 to 10.")

    def _raw(self, table: list[AnyArray]) -> Array:
        return np.hstack([c.values(v) for c, v in zip(self.columns_, table, strict=True)])

    def _fit_column(self, column: AnyArray, name: str, weights: Array) -> TargetColumn:
        if self._is_categorical(column, weights):
            classes = np.unique(as_labels(column))
            if classes.size < 2:
                raise TargetError(
                    f"{name} has one class only ({classes[0].item()!r}); at least two are needed."
                )
            return TargetColumn(name, classes=classes)
        numbers = finite_numbers(column, name)
        if np.ptp(numbers) == 0:
            raise TargetError(f"{name} is constant ({numbers[0]:g}); the response must vary.")
        encoded = TargetColumn(name)
        heavy = self.basis == "auto" and has_heavy_tails(numbers, weights)
        if heavy or self.basis == "normal_scores":
            encoded.scores = NormalScores.fit(numbers, weights)
            numbers = encoded.standardize(numbers)
        encoded.center = float(weights @ numbers)
        spread = np.ptp(numbers)  # keeps the squares of very small or large numbers finite
        z = (numbers - encoded.center) / spread
        encoded.scale = float(spread * np.sqrt(weights @ z**2))
        if self.basis == "polynomial":
            z = (numbers - encoded.center) / encoded.scale
            encoded.recurrence = _orthonormal_recurrence(z, weights, self.degree)
        return encoded

    def _is_categorical(self, column: AnyArray, weights: Array) -> bool:
        if self.target_type == "typed":
            return column.dtype.kind != "f"
        if self.target_type != "auto":
            return self.target_type == "classification"
        if column.dtype.kind in "OUSb":
            return True
        if not are_integers(column):
            return False
        values, code = np.unique(column, return_inverse=True)
        return are_codes(values, np.bincount(code, weights=weights) * column.size)


def are_codes(values: AnyArray, rows: AnyArray) -> bool:
    """Whether numbers are labels of classes: the one rule for integers in this package.

    Two different integers are labels. More are labels if they are the codes 0, 1, ..., K - 1 that
    encoders of labels give, of at most 10 classes with two rows and 5 % of the rows each, or more.
    All other integers, such as grades from 1 to 5 or counts, are numbers.

    Parameters
    ----------
    values : array of shape (K,)
        The distinct numbers, sorted.
    rows : array of shape (K,)
        Number of rows of each, or the sum of their weights.

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.targets import are_codes
    >>> are_codes(np.array([0, 1, 2]), np.array([50, 50, 50]))  # the species of iris
    True
    >>> are_codes(np.array([1, 2, 3, 4, 5]), np.full(5, 50))  # answers on a scale from 1 to 5
    False
    >>> are_codes(np.array([0, 1, 2, 3, 4]), np.array([70, 60, 30, 9, 1]))  # numbers of children
    False
    """
    if not 2 <= values.size <= MAX_CODES or not are_integers(values):
        return False
    if values.size == 2:
        return True
    is_range = bool((values == np.arange(values.size)).all())
    least = max(2.0, MIN_CODE_SHARE * float(rows.sum()))
    return is_range and bool(rows.min() >= least - 1e-6)


def are_integers(values: AnyArray) -> bool:
    """Whether all numbers are integers, whatever their type."""
    if values.dtype.kind == "f":
        return bool(np.isfinite(values).all() and (values % 1 == 0).all())
    return values.dtype.kind in "iu"


def resolve_target(target: Any) -> TargetEncoder:
    """Return an unfitted encoder for the parameter ``target``, a type or an encoder."""
    if isinstance(target, TargetEncoder):
        return clone(target)
    if isinstance(target, str):
        return TargetEncoder(target)
    listed = ", ".join(f'"{name}"' for name in TARGET_TYPES)
    raise TypeError(f"target must be {listed} or a TargetEncoder; got {target!r}.")


def whitener(covariance: Array) -> Array:
    """W with W' S W = I by Gram-Schmidt; linearly dependent columns are dropped.

    Unlike principal axes, W is stable if eigenvalues are equal, as for classes of equal size.
    """
    found: list[Array] = []
    for j in range(covariance.shape[0]):
        w = np.zeros(covariance.shape[0])
        w[j] = 1.0
        for _ in range(2):  # twice, for orthogonality up to rounding
            for before in found:
                w -= (before @ covariance @ w) * before
        variance = float(w @ covariance @ w)
        if variance > _RANK_TOL * covariance[j, j]:
            found.append(w / np.sqrt(variance))
    return np.column_stack(found)


def as_columns(y: Any) -> list[AnyArray]:
    """Split y into columns, each with its own type; objects become numbers if all of them are."""
    y = plain_target(y)
    if not len(y):
        raise ValueError("y has no rows.")
    if hasattr(y, "columns"):  # a DataFrame: types differ by column
        if not y.shape[1]:
            raise ValueError("y has no columns.")
        return [_column_array(plain_target(y.iloc[:, i])) for i in range(y.shape[1])]
    array = np.asarray(y)
    if array.ndim == 1:
        return [_column_array(y if array.dtype.kind == "O" else array)]
    if array.ndim == 2 and array.shape[1] > 0:
        return [_column_array(array[:, i]) for i in range(array.shape[1])]
    raise ValueError(f"y must have one or two dimensions, not {array.ndim}.")


def _column_array(column: Any) -> AnyArray:
    array = np.asarray(column)
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y contains complex numbers.")
    if array.dtype.kind in "mM":
        raise ValueError(_DATES)
    if array.dtype.kind == "O":
        missing = pd.isna(array).tolist()
        if any(missing):
            raise ValueError(
                f"y has missing values (first in row {missing.index(True)}); drop these rows."
            )
        if all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in array):
            numbers = np.array(array.tolist())
            return numbers.astype(float) if numbers.dtype.kind == "O" else numbers
        if any(hasattr(v, "isoformat") for v in array):
            raise ValueError(_DATES)
    return array


def as_labels(column: AnyArray) -> AnyArray:
    """Labels that can be sorted; labels of mixed types and other objects become text."""
    if column.dtype.kind == "O":
        kinds = {type(v) for v in column}
        is_plain = len(kinds) == 1 and kinds <= {str, bytes, bool, int, float}
        return np.array(column.tolist() if is_plain else [str(v) for v in column])
    if column.dtype.kind == "f":
        return finite_numbers(column, "y")
    return column


def finite_numbers(column: AnyArray, name: str) -> Array:
    """Convert a column to finite floats; an error names the column if that fails."""
    try:
        numbers = column.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f'{name} holds text, not numbers; use target="classification".') from None
    bad = ~(np.abs(numbers) <= LARGEST)
    if bad.any():
        kind = f"numbers beyond {LARGEST:g}" if np.isfinite(numbers).all() else "NaN or infinity"
        raise ValueError(
            f"{name} contains {kind} in {int(bad.sum())} rows "
            f"(first in row {int(bad.argmax())}); drop or correct them."
        )
    return numbers


def _probabilities(sample_weight: Array | None, n: int) -> Array:
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    return sample_weight / sample_weight.sum()


def _orthonormal_recurrence(z: Array, weights: Array, degree: int) -> Array:
    """Coefficients (a_k, b_k) of the polynomials orthonormal under the weights (Stieltjes).

    There are fewer than ``degree`` if z has too few distinct values.
    """
    before, current, norm = np.zeros_like(z), np.ones_like(z), 0.0
    recurrence = []
    for _ in range(degree):
        shift = float(weights @ (z * current**2))
        following = (z - shift) * current - norm * before
        norm = float(np.sqrt(weights @ following**2))
        if norm < _RANK_TOL * np.abs(z).max():
            break
        before, current = current, following / norm
        recurrence.append((shift, norm))
    return np.array(recurrence)
