"""Moments of chunks that are seen once, converted at the end to the units of all rows.

The first chunk determines provisional units for the columns and the response, and the frequencies.
Sums in these units become sums in the units of all rows by an affine change of x, by turning each
pair (cos, sin) by the phase of the shift, and by whitening the response again. The conversion is
exact.
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sobolev._standardize import Standardizer
from sobolev._typing import Array
from sobolev.convex.feature_maps import BoundFourierMap, FourierMap, LinearMap
from sobolev.convex.fitting import REFERENCE_LAM, Settings, fit_critic, next_metric, start_metric
from sobolev.convex.moments import FourierMoments
from sobolev.convex.rows import Rows
from sobolev.exceptions import DataWarning
from sobolev.streaming.chunks import check_weights
from sobolev.streaming.response import set_units
from sobolev.streaming.stream import fold_moments, place
from sobolev.streaming.summary import ColumnMoments
from sobolev.targets import TargetEncoder, are_integers, as_columns
from sobolev.validation import list_some, plain_target, take_rows, validate_rows, validate_training


@dataclass
class PartialMoments:
    """The sums of all chunks so far, in the units of the first.

    Attributes
    ----------
    spec, seed, metric
        The map, the seed of its frequencies and the metric of the columns.
    standardizer : Standardizer
        Units of the first chunk, for all columns.
    encoder : TargetEncoder
        Encoding of the first chunk; the sums are of its raw basis.
    parts : list of FourierMoments
        Moments of each fold.
    columns : ColumnMoments or None
        Moments of the columns in their own units.
    raw_products : array
        Weighted sums of the products of the raw basis.
    n_rows : int
        Number of rows.
    """

    spec: FourierMap | LinearMap
    seed: int
    metric: Array
    standardizer: Standardizer
    encoder: TargetEncoder
    parts: list[FourierMoments]
    raw_products: Array
    columns: ColumnMoments | None = None
    n_rows: int = 0

    @classmethod
    def start(
        cls,
        X: Array,
        y: Any,
        weight: Array,
        settings: Settings,
        encoder: TargetEncoder,
        classes: Any,
        folds: int,
    ) -> PartialMoments:
        """Learn units and frequencies from the first chunk, without adding it."""
        p = weight / weight.sum()
        integers = are_integers(as_columns(y)[0])  # labels, also if this chunk has few of them
        if classes is not None and encoder.target_type == "auto" and integers:
            encoder.set_params(target_type="classification")
        psi = encoder.fit(y, p).transform(y)
        units = Standardizer.fit(X, p)
        if not units.varying.any():
            raise ValueError("every column of the first chunk is constant; begin with more rows.")
        _warn_constant(units)
        sample = Rows(units.transform(X), psi, p)
        settings = settings.on_columns(np.flatnonzero(units.varying))
        metric = _metric(sample, settings)
        bound = _bind(sample, settings, metric, units)
        all_metric = np.ones(X.shape[1])
        all_metric[units.varying] = metric
        _add_classes(encoder, classes)
        k = encoder.standardized(take_rows(y, slice(0, 1))).shape[1]
        return cls(
            settings.map,  # type: ignore[arg-type]
            settings.seed,
            all_metric,
            replace(units, varying=np.ones_like(units.varying)),
            encoder,
            [FourierMoments.empty(bound, k) for _ in range(folds)],
            np.zeros((k, k)),
        )

    def add(self, X: Array, y: Any, weight: Array) -> PartialMoments:
        """Add a chunk; returns the sums themselves."""
        raw = self.encoder.standardized(y)
        bound, folds = self.parts[0].map, len(self.parts)
        x = self.standardizer.transform(X)
        new = fold_moments(bound, x, raw, weight, folds, self.n_rows)
        found = ColumnMoments.of(X, weight)
        self.parts = [part.merge(other) for part, other in zip(self.parts, new, strict=True)]
        self.columns = found if self.columns is None else self.columns.merge(found)
        self.raw_products = self.raw_products + raw.T @ (weight[:, None] * raw)
        self.n_rows += X.shape[0]
        return self

    def finish(self) -> tuple[Standardizer, TargetEncoder, list[FourierMoments]]:
        """Units, encoding and moments of all rows so far."""
        assert self.columns is not None
        encoder, units = copy(self.encoder), self.columns.standardizer()
        mean = np.sum([part.response_first for part in self.parts], axis=0) / self.columns.weight
        covariance = self.raw_products / self.columns.weight - np.outer(mean, mean)
        loadings = set_units(encoder, mean, covariance)
        parts = [self._in_units(part, units, mean, loadings) for part in self.parts]
        return units, encoder, parts

    def _in_units(
        self, part: FourierMoments, units: Standardizer, mean: Array, loadings: Array
    ) -> FourierMoments:
        """Sums of z = (phi(x), x) and psi for x and y in the units of all rows.

        The linear block is not shifted: the forms centre it.
        """
        v, first = units.varying, self.standardizer
        stretch = units.scale[v] / first.scale[v]
        shift = (units.center[v] - first.center[v]) / first.scale[v]
        old, m = part.map, part.map.n_functions
        keep = np.append(np.arange(m), m + np.flatnonzero(v)) if old.linear else np.arange(m)
        frequencies = old.frequencies[:, v]
        theta = frequencies @ shift
        c, s = np.cos(theta)[:, None], np.sin(theta)[:, None]

        def turned(sums: Array) -> Array:
            cosines, sines, x = np.split(sums[keep], [m // 2, m])
            scale = stretch[: x.shape[0], None]
            return np.vstack([c * cosines + s * sines, c * sines - s * cosines, x / scale])

        first_sum = turned(part.first[:, None])[:, 0]
        second = turned(turned(part.second).T).T
        response = (turned(part.response) - np.outer(first_sum, mean)) @ loadings
        response_first = (part.response_first - part.weight * mean) @ loadings
        bound = BoundFourierMap(frequencies * stretch, old.linear, old.single)
        weight = part.weight
        return FourierMoments(
            bound, weight, weight, first_sum, first_sum, second, response, response_first
        )


def partial_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool
) -> tuple[Array, Any, Array]:
    """Checked rows of positive weight; later chunks must have the columns of the first."""
    if reset:
        X, y, _ = validate_training(estimator, X, y, sample_weight)
    else:
        X, y = validate_rows(estimator, X, reset=False), plain_target(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)}.")
    weight = check_weights(sample_weight, X.shape[0])
    used = weight > 0
    return X[used], take_rows(y, used), weight[used]


def _metric(sample: Rows, settings: Settings) -> Array:
    """The metric of the first chunk after all rounds but one."""
    if settings.n_rounds == 1:
        return start_metric(sample, settings.groups)
    first = settings.with_rounds(settings.n_rounds - 1)
    return next_metric(fit_critic(sample, first, REFERENCE_LAM).solution, first)


def _bind(sample: Rows, settings: Settings, metric: Array, units: Standardizer) -> BoundFourierMap:
    """Frequencies for all columns; zero for columns that are constant so far."""
    found = place(settings.map, metric, sample, sample.screen, settings.seed)
    frequencies = np.zeros((found.frequencies.shape[0], units.varying.size))
    frequencies[:, units.varying] = found.frequencies
    return BoundFourierMap(frequencies, found.linear, found.single)


def _warn_constant(units: Standardizer) -> None:
    constant = np.flatnonzero(~units.varying)
    if constant.size:
        warnings.warn(
            f"columns {list_some([str(j) for j in constant])} are constant in the first chunk; "
            "if they vary later, the critic is linear in them.",
            DataWarning,
            stacklevel=4,
        )


def _add_classes(encoder: TargetEncoder, classes: Any) -> None:
    """Make room for labels that the first chunk lacks."""
    if classes is None:
        return
    if encoder.classes_ is None:
        raise ValueError("classes is for one response of labels; y holds numbers.")
    given = np.unique(np.asarray(classes))
    missing = [label for label in encoder.classes_.tolist() if label not in set(given.tolist())]
    if missing:
        raise ValueError(f"y holds the label {missing[0]!r}, which is not among classes.")
    encoder.columns_[0] = replace(encoder.columns_[0], classes=given)
    encoder.classes_ = given
