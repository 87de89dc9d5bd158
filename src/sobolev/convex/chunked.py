"""How ConvexSIC fits data that come in chunks: from sources that are read again, or seen once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from sobolev._sample import Folds, Sample, choose_lam, report_constant, varying_groups
from sobolev._standardize import Standardizer
from sobolev.convex.cross_validation import loosened, moment_risks
from sobolev.convex.feature_maps import (
    AUTO_FOURIER_ROWS,
    FourierMap,
    LinearMap,
    resolve_feature_map,
)
from sobolev.convex.fitting import (
    LAMS,
    REFERENCE_LAM,
    RELAXED_LAMS,
    Fit,
    Settings,
    blas_threads,
    fit_moments,
)
from sobolev.convex.partial import PartialMoments, partial_rows
from sobolev.convex.streaming import Stream, chunk_threads, collect, streaming_map, summarise
from sobolev.selection import select
from sobolev.streaming import Source
from sobolev.streaming.summary import set_columns
from sobolev.targets import TargetEncoder


class ChunkedFitMixin:
    """``partial_fit`` and the fit to a source, for an estimator with ConvexSIC's parameters."""

    n_features_in_: int
    n_features_to_select: int | float | None
    threshold: float | None
    feature_map: Any
    n_components: int | None
    measure: str
    groups: Any
    lam: float | str
    cv: Any
    round_rows: int | None
    n_jobs: int | None
    target_type: str
    target_basis: str
    target_degree: int
    standardizer_: Standardizer
    encoder_: TargetEncoder
    precision: str
    _check_parameters: Callable[[], None]
    _forget: Callable[[], None]
    _prepare: Callable[..., tuple[Sample, Settings, Folds]]
    _settings: Callable[..., Settings]
    _fit_sample: Callable[[Any, Settings, Folds], None]
    _store: Callable[[Fit, Settings], None]

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None, solve: bool = True
    ) -> Any:
        """Add a chunk of rows; each is looked at once.

        The first chunk decides the frequencies: the bandwidth and, unless ``recursions=1``, the
        metric. It should be a fair sample of the rows, some thousand of them. Everything else is
        that of a fit to all rows so far.

        Parameters
        ----------
        X, y, sample_weight : array-like
            The chunk, as for :meth:`fit` in memory.
        classes : sequence, optional
            All labels, if the first chunk may lack some.
        solve : bool, default=True
            Whether to find the importances of all rows so far. False only adds up, for all but the
            last chunk.

        Returns
        -------
        self
        """
        self._check_parameters()
        partial = self.__dict__.get("_partial")
        if partial is not None and np.shape(X)[0] == 0:
            return self
        names = getattr(X, "columns", None)
        X, y, weight = partial_rows(self, X, y, sample_weight, reset=partial is None)
        if partial is None:
            self._forget()
            spec = self._streaming_map()
            select(np.zeros(X.shape[1]), self.n_features_to_select, self.threshold)
            encoder = TargetEncoder(self.target_type, self.target_basis, self.target_degree)
            folds = self._fold_count() if isinstance(self.lam, str) else 1
            settings = self._settings(spec, None, joint=False)
            partial = PartialMoments.start(X, y, weight, settings, encoder, classes, folds)
        self._partial = partial.add(X, y, weight)
        if solve:
            self._solve_partial(partial, names)
        return self

    def _fit_source(self, source: Source) -> Any:
        n_jobs = chunk_threads(self.n_jobs)
        if source.n_rows is not None and source.n_rows > AUTO_FOURIER_ROWS:
            self._check_chunked()  # before anything is read
        summary, passes = summarise(source, self.target_type, self.round_rows, n_jobs)
        if summary.n_rows <= AUTO_FOURIER_ROWS:
            X, y, weight = collect(summary.rows[1])
            names = summary.names
            frame = X if names is None else pd.DataFrame(X, columns=pd.Index(names))
            self._fit_sample(*self._prepare(frame, y, weight))
            self.n_passes_ = passes
            return self
        spec, folds = self._check_chunked()
        set_columns(self, summary.names, summary.columns.mean.size)
        select(np.zeros(self.n_features_in_), self.n_features_to_select, self.threshold)
        encoder = TargetEncoder(self.target_type, self.target_basis, self.target_degree)
        self.encoder_ = summary.response.encoder(encoder)
        if self.encoder_.classes_ is not None:
            self.classes_ = self.encoder_.classes_
        stream = Stream(source, summary, self.encoder_, self.round_rows, n_jobs)
        self.standardizer_ = stream.standardizer
        report_constant(self.standardizer_.varying, summary.names, stacklevel=4)
        groups = varying_groups(self.feature_groups, self.standardizer_.varying, summary.names)
        self._fit_sample(stream, self._settings(spec, groups), folds)
        self.n_passes_ = passes + stream.n_passes
        return self

    def _check_chunked(self) -> tuple[FourierMap | LinearMap, int]:
        """The map and the number of folds; an error if a setting needs all rows at once."""
        if self.target_basis != "standard":
            raise ValueError(
                f"target_basis={self.target_basis!r} needs the whole response in memory; use "
                '"standard", or transform y before the fit.'
            )
        return self._streaming_map(), self._fold_count()

    def _streaming_map(self) -> FourierMap | LinearMap:
        """The map for data in chunks."""
        if self.measure != "product":
            raise ValueError(
                f'measure={self.measure!r} needs all rows in memory; use measure="product".'
            )
        many = AUTO_FOURIER_ROWS + 1
        spec = resolve_feature_map(
            self.feature_map, self.n_components, many, self.precision == "single"
        )
        return streaming_map(spec)

    def _fold_count(self) -> int:
        if not isinstance(self.cv, Integral) or isinstance(self.cv, bool):
            raise ValueError("cv must be a number of folds when the data are read in chunks.")
        if self.cv < 2:
            raise ValueError(f"cv={self.cv} must be at least 2.")
        return int(self.cv)

    def _solve_partial(self, partial: PartialMoments, names: Any) -> None:
        self.standardizer_, self.encoder_, parts = partial.finish()
        if self.encoder_.classes_ is not None:
            self.classes_ = self.encoder_.classes_
        varying = self.standardizer_.varying
        report_constant(varying, names, stacklevel=4)
        settings = self._settings(partial.spec, varying_groups(self.feature_groups, varying, names))
        settings = replace(settings, seed=partial.seed)
        self.lam_path_, self.lam_risks_, lam = None, None, self.lam
        with blas_threads(partial.n_rows):
            if isinstance(lam, str):
                self.lam_path_ = np.array(LAMS)
                loose = loosened(settings)
                refits = RELAXED_LAMS if lam == "relaxed" else ()
                held = [part for part in parts if part.weight > 0]
                self.lam_risks_ = (
                    moment_risks(held, loose, LAMS, None, refits)
                    if len(held) > 1
                    else np.zeros((1, len(LAMS)))
                )
                lam = choose_lam(self.lam_risks_, LAMS, REFERENCE_LAM)
            fit = fit_moments(parts, settings, float(lam), partial.metric[varying])
        self.lam_ = float(lam)
        self._store(fit, settings)
