"""The distribution of the response from sums over chunks, for its encoding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sobolev._typing import AnyArray, Array
from sobolev.targets import (
    MAX_CODES,
    TargetColumn,
    TargetEncoder,
    are_codes,
    are_integers,
    as_columns,
    as_labels,
    finite_numbers,
    whitener,
)

# Largest number of labels.
MOST_LABELS = 1000
# Key of a column of y as a number, not one of its labels.
NUMBER = None
Key = tuple[int, Any]


@dataclass(frozen=True)
class ResponseMoments:
    """Means and sums of products of the columns of y, as numbers and as indicators of labels.

    Attributes
    ----------
    n_rows : int
    weight : float
    kinds : tuple of str
        For each column the kinds of its values: "n" for integers, which may be labels, "f" for
        other numbers, "t" for labels.
    keys : list of (column, label)
        The variables; the label None stands for the number itself.
    mean, products : array of shape (q,), (q, q)
        Means, and sums of products of deviations.
    """

    n_rows: int
    weight: float
    kinds: tuple[str, ...]
    keys: tuple[Key, ...]
    mean: Array
    products: Array

    @classmethod
    def of(cls, y: Any, weight: Array, target_type: str) -> ResponseMoments:
        """The moments of the rows of a chunk."""
        table = as_columns(y)
        names = _names(len(table))
        kinds, keys, values = [], [], []
        for i, (column, name) in enumerate(zip(table, names, strict=True)):
            kind = _kind(column, target_type)
            kinds.append(kind)
            if kind != "t":
                keys.append((i, NUMBER))
                values.append(finite_numbers(column, name)[:, None])
            if kind != "f":
                labels = as_labels(column)
                found, code = np.unique(labels, return_inverse=True)
                if kind == "n" and found.size > MAX_CODES:
                    kinds[-1] = "f"
                    continue
                _check_count(found.size, name)
                keys += [(i, label) for label in found.tolist()]
                values.append(np.eye(found.size)[code.ravel()])
        raw, total = np.hstack(values), float(weight.sum())
        mean = raw[0] + weight @ (raw - raw[0]) / total  # exact for a constant column
        deviation = raw - mean
        products = deviation.T @ (weight[:, None] * deviation)
        return cls(raw.shape[0], total, tuple(kinds), tuple(keys), mean, products)

    def merge(self, other: ResponseMoments) -> ResponseMoments:
        """The moments of both sets of rows; labels that one set lacks count zero there."""
        if len(self.kinds) != len(other.kinds):
            raise ValueError(
                f"y has {len(self.kinds)} columns in some chunks and {len(other.kinds)} in others."
            )
        kinds = tuple(map(_joint, _names(len(self.kinds)), self.kinds, other.kinds))
        keys = tuple(
            key
            for key in dict.fromkeys((*self.keys, *other.keys))
            if kinds[key[0]] != "f" or key[1] is NUMBER
        )
        kinds, keys = _drop_many(kinds, keys)
        mean, products = self._at(keys)
        more_mean, more_products = other._at(keys)
        weight = self.weight + other.weight
        step, share = more_mean - mean, other.weight / weight
        return ResponseMoments(
            self.n_rows + other.n_rows,
            weight,
            kinds,
            keys,
            mean + share * step,
            products + more_products + self.weight * share * np.outer(step, step),
        )

    def _at(self, keys: tuple[Key, ...]) -> tuple[Array, Array]:
        place = {key: position for position, key in enumerate(self.keys)}
        present = [i for i, key in enumerate(keys) if key in place]
        where = [place[keys[i]] for i in present]
        mean, products = np.zeros(len(keys)), np.zeros((len(keys), len(keys)))
        mean[present] = self.mean[where]
        products[np.ix_(present, present)] = self.products[np.ix_(where, where)]
        return mean, products

    def encoder(self, encoder: TargetEncoder) -> TargetEncoder:
        """Fit an encoder with the standard basis, as to all rows at once."""
        names = _names(len(self.kinds))
        encoder.n_outputs_ = len(names)
        encoder.columns_, used = [], []
        for i, name in enumerate(names):
            labels = [k for k, key in enumerate(self.keys) if key[0] == i and key[1] is not NUMBER]
            classes = np.array([self.keys[k][1] for k in labels])
            order = np.argsort(classes)
            rows = self.mean[labels][order] * self.n_rows
            if self.kinds[i] == "t" or (labels and are_codes(classes[order], rows)):
                if classes.size < 2:
                    raise ValueError(
                        f"{name} has one class only ({classes[0].item()!r}); at least two are "
                        "needed."
                    )
                encoder.columns_.append(TargetColumn(name, classes=classes[order]))
                used += [labels[j] for j in order]
                continue
            position = self.keys.index((i, NUMBER))
            if self.products[position, position] == 0.0:
                raise ValueError(
                    f"{name} is constant ({self.mean[position]:g}); a response must vary to "
                    "depend on X."
                )
            encoder.columns_.append(TargetColumn(name))
            used.append(position)
        encoder.classes_ = encoder.columns_[0].classes if encoder.n_outputs_ == 1 else None
        covariance = self.products[np.ix_(used, used)] / self.weight
        set_units(encoder, self.mean[used], covariance)
        return encoder


def set_units(encoder: TargetEncoder, mean: Array, covariance: Array) -> Array:
    """Change the units of an encoder to those of rows whose raw basis has these moments.

    Returns the loadings of psi = (raw - mean) @ loadings, for the raw basis in the old units.
    """
    center, scale = np.zeros(mean.size), np.ones(mean.size)
    columns, position = [], 0
    for column in encoder.columns_:
        width = len(column.recurrence) or (1 if column.classes is None else column.classes.size)
        if column.classes is None and not column.recurrence.size:
            center[position] = mean[position]
            scale[position] = np.sqrt(covariance[position, position])
            column = replace(
                column,
                center=float(column.center + column.scale * center[position]),
                scale=float(column.scale * scale[position]),
            )
        columns.append(column)
        position += width
    encoder.columns_ = columns
    encoder.mean_ = (mean - center) / scale
    encoder.whitener_ = whitener(covariance / np.outer(scale, scale))
    return encoder.whitener_ / scale[:, None]


def _names(count: int) -> list[str]:
    return ["y"] if count == 1 else [f"y[{i}]" for i in range(count)]


def _kind(column: AnyArray, target_type: str) -> str:
    if target_type == "auto":
        if column.dtype.kind in "OUSb":
            return "t"
        return "n" if are_integers(column) else "f"
    is_number = target_type == "regression" or (target_type == "typed" and column.dtype.kind == "f")
    return "f" if is_number else "t"


def _joint(name: str, first: str, second: str) -> str:
    if "t" in (first, second) and first != second:
        raise ValueError(
            f"{name} holds labels in some chunks and numbers in others; set target, or read "
            "the column with one type."
        )
    return max(first, second, key="tnf".index)


def _drop_many(
    kinds: tuple[str, ...], keys: tuple[Key, ...]
) -> tuple[tuple[str, ...], tuple[Key, ...]]:
    """Treat integers with many distinct values as numbers."""
    found = list(kinds)
    for i, (kind, name) in enumerate(zip(kinds, _names(len(kinds)), strict=True)):
        count = sum(key[0] == i and key[1] is not NUMBER for key in keys)
        if kind == "n" and count > MAX_CODES:
            found[i] = "f"
            keys = tuple(key for key in keys if key[0] != i or key[1] is NUMBER)
        elif kind == "t":
            _check_count(count, name)
    return tuple(found), keys


def _check_count(count: int, name: str) -> None:
    if count > MOST_LABELS:
        raise ValueError(
            f"{name} has more than {MOST_LABELS:,} labels; if they are numbers, use "
            'target="regression".'
        )
