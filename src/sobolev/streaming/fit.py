"""``fit_stream`` and ``partial_fit``: convex SIC on rows that do not fit in memory."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from sobolev._parameters import check_count
from sobolev._sample import varying_groups
from sobolev._threads import blas_threads
from sobolev._typing import Array
from sobolev.convex import ConvexSIC
from sobolev.convex.choosing import AUTO_FOURIER_ROWS
from sobolev.convex.cross_validation import loosened, moment_risks
from sobolev.convex.feature_maps import FourierMap, LinearMap, MapSpec
from sobolev.convex.fitting import LAMS, REFERENCE_LAM, Fit
from sobolev.convex.fitting import solve as solve_forms
from sobolev.convex.moments import FourierMoments
from sobolev.convex.training import (
    check_parameters,
    feature_map,
    forget,
    make_settings,
    refit_lams,
    store_encoder,
    store_fit,
    store_units,
    train,
)
from sobolev.criterion import choose_lam
from sobolev.selection import select
from sobolev.streaming.partial import PartialMoments, partial_rows
from sobolev.streaming.sources import open_source
from sobolev.streaming.stream import Stream, chunk_threads, collect, summarise
from sobolev.targets import resolve_target


def fit_stream(
    estimator: ConvexSIC,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    chunk_rows: int | None = None,
    round_rows: int | None = None,
) -> ConvexSIC:
    """Fit ``ConvexSIC`` to rows that are read in chunks.

    The result is that of a fit in memory, up to rounding, for the same frequencies. The number of
    times that the rows were read is stored as ``n_passes_``.

    Parameters
    ----------
    estimator : ConvexSIC
        The estimator; it is fitted in place.
    X : path, pattern, numpy.memmap, PyArrow dataset, Dask collection, or chunks
        The path of a Parquet, Feather or text table, of a folder or a pattern of such files; a
        PyArrow dataset; a ``numpy.memmap``; a Dask array or dataframe; or chunks: a list of
        ``(X, y)`` or ``(X, y, weight)``, or a function that returns an iterator of them. An array
        or DataFrame in memory is fitted as ``estimator.fit`` does.
    y : str, list of str, array-like or None
        Name of the response (or names) for a table on disk, an array for an array, None for chunks.
    sample_weight : str, array-like or None
        Name of the column of weights for a table on disk, an array for an array.
    chunk_rows : int or None, default=None
        Number of rows in memory at a time. None: as many as take 32 MiB.
    round_rows : int or None, default=None
        Number of rows, held in memory, on which the rounds before the last are run. None runs every
        round on all rows.

    Returns
    -------
    ConvexSIC
        The fitted estimator.

    Notes
    -----
    Up to 5,000 rows are put together and fitted in memory. For more, the map must be "fourier"
    (as "auto" is) or "linear" and the measure "product", and ``tau="auto"`` is 1e-4; the rows are
    read once for means, scales and a sample, and once for the moments of each round.
    ``Alternating(rounds=1)`` or ``round_rows`` keep the number of passes small. The estimator's
    ``n_jobs`` is the number of chunks that are processed at the same time; the result does not
    depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.streaming import fit_stream
    >>> def chunks():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(100, 4))
    ...         yield X, X[:, 2] ** 2
    >>> sic = fit_stream(ConvexSIC(lam=0.03), chunks)
    >>> int(sic.feature_importances_.argmax()), sic.n_passes_
    (2, 2)
    """
    for name, value in (("chunk_rows", chunk_rows), ("round_rows", round_rows)):
        if value is not None:
            check_count(name, value)
    check_parameters(estimator)
    source = open_source(X, y, sample_weight, chunk_rows)
    if source is None:
        return estimator.fit(X, y, sample_weight)
    if source.n_rows is not None and source.n_rows > AUTO_FOURIER_ROWS:
        _check_chunked(estimator)  # before anything is read
    n_jobs, encoder = chunk_threads(estimator.n_jobs), resolve_target(estimator.target)
    summary, passes = summarise(source, encoder.target_type, round_rows, n_jobs)
    if summary.n_rows <= AUTO_FOURIER_ROWS:
        X, y, weight = collect(summary.rows[1])
        estimator.fit(_frame(X, summary.names), y, weight)
        estimator.n_passes_ = passes
        return estimator
    spec, folds = _check_chunked(estimator)
    forget(estimator)
    rows = np.empty((0, summary.columns.mean.size))
    validate_data(estimator, _frame(rows, summary.names), skip_check_array=True)
    select(np.zeros(estimator.n_features_in_), estimator.n_features_to_select, estimator.threshold)
    store_encoder(estimator, summary.response.encoder(encoder))
    stream = Stream(source, summary, encoder, round_rows, n_jobs)
    groups = store_units(estimator, stream.standardizer, stacklevel=3)
    train(estimator, stream, make_settings(estimator, spec, groups, encoder), folds)
    estimator.n_passes_ = passes + stream.n_passes
    return estimator


def partial_fit(
    estimator: ConvexSIC,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    solve: bool = True,
) -> ConvexSIC:
    """Add a chunk of rows to a fit; each chunk is seen once.

    The first chunk determines the frequencies: the bandwidth and, unless the solver has
    ``rounds=1``, the metric. It should be a random sample of some thousand rows. Everything else is
    that of a fit to all rows so far.

    Parameters
    ----------
    estimator : ConvexSIC
        The estimator; it is fitted in place. Its sums are stored as ``partial_moments_``.
    X, y, sample_weight : array-like
        The chunk, as for ``ConvexSIC.fit``.
    classes : sequence, optional
        All labels, if the first chunk may lack some.
    solve : bool, default=True
        Whether to compute the importances of all rows so far. False only adds the chunk; use it for
        all chunks but the last.

    Returns
    -------
    ConvexSIC
        The same estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.convex import FourierMap
    >>> from sobolev.streaming import partial_fit
    >>> sic = ConvexSIC(lam=0.03, feature_map=FourierMap(32), random_state=0)
    >>> for seed in range(3):
    ...     X = np.random.default_rng(seed).normal(size=(500, 4))
    ...     sic = partial_fit(sic, X, X[:, 2] ** 2)
    >>> int(sic.feature_importances_.argmax())
    2
    """
    check_parameters(estimator)
    partial: PartialMoments | None = getattr(estimator, "partial_moments_", None)
    if partial is not None and np.shape(X)[0] == 0:
        return estimator
    X, y, weight = partial_rows(estimator, X, y, sample_weight, reset=partial is None)
    if partial is None:
        forget(estimator)
        spec = _streaming_map(estimator)
        select(np.zeros(X.shape[1]), estimator.n_features_to_select, estimator.threshold)
        folds = _fold_count(estimator) if isinstance(estimator.lam, str) else 1
        names, every = getattr(estimator, "feature_names_in_", None), np.ones(X.shape[1], bool)
        groups = varying_groups(None, every, names, estimator.adjust)
        settings = make_settings(estimator, spec, groups, None)
        encoder = resolve_target(estimator.target)
        partial = PartialMoments.start(X, y, weight, settings, encoder, classes, folds)
    estimator.partial_moments_ = partial.add(X, y, weight)
    if solve:
        _solve(estimator, partial)
    return estimator


def _solve(estimator: ConvexSIC, partial: PartialMoments) -> None:
    """Fit to the sums of all chunks so far: one round under the metric of the first chunk."""
    standardizer, encoder, parts = partial.finish()
    store_encoder(estimator, encoder)
    groups = store_units(estimator, standardizer, stacklevel=4)
    settings = make_settings(estimator, partial.spec, groups, encoder)
    settings = replace(settings, seed=partial.seed)
    lam, risks = estimator.lam, None
    with blas_threads(partial.n_rows):
        if isinstance(lam, str):
            held = [part for part in parts if part.weight > 0]
            risks = np.zeros((1, len(LAMS)))
            if len(held) > 1:
                risks = moment_risks(held, loosened(settings), LAMS, None, refit_lams(lam))
            lam = choose_lam(risks, LAMS, REFERENCE_LAM)
        whole = reduce(FourierMoments.merge, parts)
        forms = whole.forms()
        solution = solve_forms(forms, settings, float(lam))
        fit = Fit(whole.map, forms, solution, partial.metric[standardizer.varying], 1)
    store_fit(estimator, fit, settings, float(lam), risks)


def _frame(X: Array, names: tuple[Any, ...] | None) -> Any:
    return X if names is None else pd.DataFrame(X, columns=pd.Index(names))


def _check_chunked(estimator: ConvexSIC) -> tuple[MapSpec, int]:
    """The map and the number of folds; an error if a setting needs all rows at once."""
    basis = resolve_target(estimator.target).basis
    if basis != "standard":
        raise ValueError(
            f"TargetEncoder(basis={basis!r}) needs the whole response in memory; use "
            '"standard", or transform y before the fit.'
        )
    return _streaming_map(estimator), _fold_count(estimator)


def _streaming_map(estimator: ConvexSIC) -> MapSpec:
    """The map, if its moments add up over chunks."""
    if estimator.measure != "product":
        raise ValueError(
            f'measure={estimator.measure!r} needs all rows in memory; use measure="product".'
        )
    spec = feature_map(estimator, AUTO_FOURIER_ROWS + 1)
    if isinstance(spec, (FourierMap, LinearMap)):
        return spec
    raise ValueError(
        f"{type(spec).__name__} needs all rows in memory: its moments do not add up over chunks. "
        'Use feature_map="fourier" or "linear", an array in memory, or a sample of the rows.'
    )


def _fold_count(estimator: ConvexSIC) -> int:
    if not isinstance(estimator.cv, Integral) or isinstance(estimator.cv, bool):
        raise ValueError("cv must be a number of folds when the data are read in chunks.")
    if estimator.cv < 2:
        raise ValueError(f"cv={estimator.cv} must be at least 2.")
    return int(estimator.cv)
