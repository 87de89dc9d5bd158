"""The holdout randomization test: which columns matter given all others, with few false finds."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import log_ndtr, ndtri_exp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._random import RandomState, check_generator, seeded
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.diagnostics import diagnose_conditional, warn_if_misfit
from sobolev.conditionals.joint import JointConditional
from sobolev.conditionals.mixed import resolve_conditional
from sobolev.convex.fitting import SMALL_SAMPLE
from sobolev.criterion import parse_groups
from sobolev.exceptions import SobolevWarning
from sobolev.inference.multiple_testing import PROCEDURES, qvalues, smallest_qvalue
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.tables import (
    STATISTICS,
    PredictorEvaluator,
    joint_table,
    make_evaluator,
    null_table,
)
from sobolev.selection import plain_target, take_rows, validate_rows, validate_training

# The forward scheme: blocks, and the share of the rows that they hold.
N_BLOCKS = 5
HOLDOUT = {"split": 0.5, "forward": 0.7}
# Landmarks of the default estimator: beyond them refits take longer and find no more.
N_LANDMARKS = 300
# The first fit has at least so many rows, or half of them.
MIN_TRAIN = 20
# Tests of fewer rows with a critic are so short that threads wait for each other.
THREAD_ROWS = 500
# The shortlist by default: a tenth of the number of rows, but at least this many columns.
MIN_SHORTLIST = 20


@dataclass(frozen=True)
class HRTResult:
    """The test of one column.

    Attributes
    ----------
    statistic : float
        The mean statistic of the held-out rows.
    pvalue : float
    null_mean, null_deviation : float
        Of the statistic if the column does not matter given the others.
    feature : str or None
        The name of the column.
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_deviation: float
    feature: str | None = None


class HRTSelector(SelectorMixin, BaseEstimator):
    """Select columns by the holdout randomization test, at a false discovery rate.

    The estimator is fitted to one part of the rows. On the others each column in turn is replaced
    by draws from its law given all other columns; a column matters if the statistic of the real
    values is larger than chance.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~sobolev.ConvexSIC` (None: with 300 landmarks), :class:`~sobolev.NeuralSIC`, or
        any regressor or classifier with ``feature_importances_`` or ``coef_``. A fitted one in
        :class:`~sklearn.frozen.FrozenEstimator` is tested on ``holdout`` rows as it is.
    conditional : str or object, default="auto"
        The model of a column given the others, see :mod:`sobolev.conditionals`.
    fdr : float, default=0.1
        The false discovery rate.
    statistic : {"risk", "witness"}, default="risk"
        The penalised witness, or the paper's mean witness. Predictors have their loss.
    pvalue : {"saddlepoint", "montecarlo"}, default="saddlepoint"
        How the tail of the null distribution is found.
    shortlist : int or None, default=None
        Test so many columns, those of largest importance in the training rows. None takes a tenth
        of the number of rows, at least 20.
    holdout : float or None, default=None
        The share of rows that are tested on; None is 0.5 for "split" and 0.7 for "forward".
    scheme : {"forward", "split"}, default="forward"
        "split" tests on all held-out rows with one fit. "forward" goes through them in five
        blocks and refits with all rows before the block; columns that a later fit ranks in the
        upper half of the shortlist join. Given the rows before it, the p-value of each block is
        uniform under the null, so their combination (Stouffer, weighted by size) is exact.
    n_repeats : int, default=1
        Repetitions with other splits. Twice the median of their p-values is valid whatever their
        dependence.
    procedure : {"bh", "by", "storey"}, default="bh"
        From p-values to q-values.
    groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that are replaced and tested together, such as the
        one-hot columns of one variable. Other columns are tested alone.
    n_rounds : int, default=1000
        Look-ups for ``pvalue="montecarlo"``.
    diagnose : bool, default=True
        Check the conditional model of the tested columns and warn where it does not fit.
    random_state : int, Generator, RandomState or None, default=None
        Decides the splits.
    n_jobs : int or None, default=None
        Threads for the columns; the result does not depend on it.

    Attributes
    ----------
    pvalues_, qvalues_ : array of shape (d,)
        NaN where not tested; the columns of a group share them.
    statistics_ : array of shape (d,)
        The mean statistic of the held-out rows (of the last repetition), NaN where not tested.
    null_means_, null_deviations_ : array of shape (d,)
        Of that statistic if the column does not matter given the others; see :meth:`result`.
    support_ : array of bool, shape (d,)
        Columns with a q-value of at most ``fdr``.
    shortlist_ : array of int
        The tested columns.
    feature_importances_ : array of shape (d,)
        Of the first fit.
    estimator_ : estimator
        The last fit.
    conditional_ : object
        The fitted conditional model.
    diagnostics_ : ConditionalDiagnostics or None
        How well the conditional model fits the tested columns.

    Notes
    -----
    The false discovery rate is controlled if the conditional model is right and the p-values are
    independent or positively dependent (``procedure="by"`` needs neither). A column enters the list
    before any row that it is tested on is looked at, so choosing what to test costs nothing.

    Examples
    --------
    >>> from sobolev import HRTSelector
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=1)
    >>> hrt = HRTSelector(random_state=0).fit(data.data, data.target)
    >>> hrt.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        conditional: Any = "auto",
        fdr: float = 0.1,
        statistic: str = "risk",
        pvalue: str = "saddlepoint",
        shortlist: int | None = None,
        holdout: float | None = None,
        scheme: str = "forward",
        n_repeats: int = 1,
        procedure: str = "bh",
        groups: Any = None,
        n_rounds: int = 1000,
        diagnose: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.conditional = conditional
        self.fdr = fdr
        self.statistic = statistic
        self.pvalue = pvalue
        self.shortlist = shortlist
        self.holdout = holdout
        self.scheme = scheme
        self.n_repeats = n_repeats
        self.procedure = procedure
        self.groups = groups
        self.n_rounds = n_rounds
        self.diagnose = diagnose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, holdout: tuple[Any, Any] | None = None) -> HRTSelector:
        """Fit, test and select.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
        y : array-like of shape (n,)
        holdout : tuple (X, y), optional
            Rows to test on. By default a share of the rows is set aside.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y, _ = validate_training(self, X, y)
        names = getattr(self, "feature_names_in_", None)
        n_train, rng = None, check_generator(self.random_state)
        if holdout is not None:
            n_train = X.shape[0]
            X_test, y_test = validate_rows(self, holdout[0], reset=False), plain_target(holdout[1])
            if len(X_test) != len(y_test):
                raise ValueError(
                    f"holdout has {len(X_test)} rows of X and {len(y_test)} values of y; pass the "
                    "same rows of both."
                )
            X, y = np.vstack([X, X_test]), np.concatenate([np.asarray(y), np.asarray(y_test)])
        trial = _Trial(self, X, y, _units(self.groups, X.shape[1], names))
        self._warn_if_hopeless(trial, n_train)
        self.conditional_ = trial.conditional
        runs = [trial.run(n_train, rng) for _ in range(self.n_repeats)]
        self.feature_importances_ = runs[0].importances
        self.estimator_ = runs[-1].model
        pvalues = _merged(np.stack([run.pvalues for run in runs]))
        self.pvalues_ = trial.spread(pvalues)
        self.qvalues_ = trial.spread(qvalues(pvalues, self.procedure))
        self.statistics_ = trial.spread(runs[-1].statistics)
        self.null_means_ = trial.spread(runs[-1].null_means)
        self.null_deviations_ = trial.spread(runs[-1].null_deviations)
        self.shortlist_ = np.flatnonzero(np.isfinite(self.pvalues_))
        self.support_ = np.nan_to_num(self.qvalues_, nan=2.0) <= self.fdr
        self.diagnostics_ = None
        alone = [int(j) for j in self.shortlist_ if trial.alone[j]]
        if self.diagnose and alone:
            rows = X if names is None else pd.DataFrame(X, columns=names)
            found = diagnose_conditional(self.conditional_, rows, alone)
            self.diagnostics_ = found
            warn_if_misfit(found, stacklevel=2)
        return self

    def result(self, feature: int | str) -> HRTResult:
        """The test of one column, such as :func:`~sobolev.plotting.plot_null` shows.

        The statistic is the mean over all held-out rows. With the forward scheme the p-value
        combines those of the blocks, with repetitions it is twice their median, so it is near the
        tail of the null distribution of that mean, not equal to it.

        Parameters
        ----------
        feature : int or str
            Position or name of a tested column; a column of a group stands for the group.

        Returns
        -------
        HRTResult

        Examples
        --------
        >>> from sobolev import HRTSelector
        >>> from sobolev.datasets import make_sinexp
        >>> from sobolev.plotting import plot_null
        >>> data = make_sinexp(n_samples=200, n_features=8, random_state=0, as_frame=True)
        >>> hrt = HRTSelector(random_state=0).fit(data.data, data.target)
        >>> plot_null(hrt.result("x1")).get_title(loc="left").startswith("x1: p = ")
        True
        """
        check_is_fitted(self, "support_")
        names = getattr(self, "feature_names_in_", None)
        unit = _units({"feature": [feature]}, self.n_features_in_, names)[0]
        j = int(unit[0])
        name = f"x{j}" if names is None else str(names[j])
        if np.isnan(self.pvalues_[j]):
            raise ValueError(
                f"column {name!r} was not tested: it is not in shortlist_; raise shortlist."
            )
        return HRTResult(
            float(self.statistics_[j]),
            float(self.pvalues_[j]),
            float(self.null_means_[j]),
            float(self.null_deviations_[j]),
            name,
        )

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def _check_parameters(self) -> None:
        check_fraction("fdr", self.fdr, low=0.0, high=1.0)
        if self.holdout is not None:
            check_fraction("holdout", self.holdout, low=0.0, high=0.9)
        check_option("statistic", self.statistic, STATISTICS)
        check_option("pvalue", self.pvalue, ["saddlepoint", "montecarlo"])
        check_option("scheme", self.scheme, ["split", "forward"])
        check_option("procedure", self.procedure, PROCEDURES)
        check_count("n_repeats", self.n_repeats)
        check_count("n_rounds", self.n_rounds)
        if self.shortlist is not None:
            check_count("shortlist", self.shortlist)

    def _warn_if_hopeless(self, trial: _Trial, given: int | None) -> None:
        """Monte Carlo p-values have a floor; say so before the work."""
        if self.pvalue == "saddlepoint":
            return
        edges = trial.edges(given)
        tests = trial.list_size()
        # Blocks at their floors together; two for the doubled median.
        score = -ndtri_exp(-np.log(self.n_rounds + 1)) * np.sqrt(len(edges) - 1)
        smallest = float(np.exp(log_ndtr(-score))) * (2 if self.n_repeats > 1 else 1)
        if smallest_qvalue(smallest, tests, self.procedure) > self.fdr:
            warnings.warn(
                f"the smallest p-value that n_rounds={self.n_rounds} can give, {smallest:.2g}, is "
                f"too large for a single find among {tests} tests at fdr={self.fdr:g}; use "
                'pvalue="saddlepoint", more rounds or a smaller shortlist.',
                SobolevWarning,
                stacklevel=3,
            )


@dataclass(frozen=True)
class _Run:
    """One way through the rows; arrays hold one entry for each unit, NaN where not tested."""

    pvalues: Array
    statistics: Array
    null_means: Array
    null_deviations: Array
    importances: Array
    model: Any


class _Trial:
    """Rows, their conditional model, and the units (columns or groups) that are tested."""

    def __init__(self, settings: HRTSelector, X: Array, y: Any, units: list[Index]) -> None:
        self.settings, self.X, self.y, self.units = settings, X, y, units
        self.conditional = resolve_conditional(settings.conditional).fit(X)
        self.alone = np.zeros(X.shape[1], dtype=bool)
        self.alone[[unit[0] for unit in units if unit.size == 1]] = True
        self._joint: dict[int, Any] = {}

    def edges(self, given: int | None) -> Index:
        """Where the blocks of test rows begin, and the end."""
        settings, n = self.settings, self.X.shape[0]
        share = HOLDOUT[settings.scheme] if settings.holdout is None else settings.holdout
        begin = max(round((1 - share) * n), min(MIN_TRAIN, n // 2)) if given is None else given
        n_blocks = 1 if settings.scheme == "split" else min(N_BLOCKS, n - begin)
        return np.linspace(begin, n, n_blocks + 1).round().astype(np.intp)

    def list_size(self) -> int:
        """How many units the first fit names."""
        asked = self.settings.shortlist
        if asked is None:
            asked = max(MIN_SHORTLIST, self.X.shape[0] // 10)
        return min(int(asked), len(self.units))

    def run(self, given: int | None, rng: np.random.Generator) -> _Run:
        """Go through the blocks: refit, let units join, test those that have joined."""
        n, edges = self.X.shape[0], self.edges(given)
        order = rng.permutation(n) if given is None else np.arange(n)
        size = self.list_size()
        scores, rows_seen, statistics, centres, variances = np.zeros((5, len(self.units)))
        joined, moved = np.zeros((2, len(self.units)), dtype=bool)
        first = None
        with closing(self.fits(order, edges[:-1], rng)) as models:
            for model, (begin, end) in zip(models, pairwise(edges), strict=True):
                importances = feature_importances(model)
                joined |= self._named(importances, size if first is None else -(-size // 2))
                first = importances if first is None else first
                tested, m = np.flatnonzero(joined), end - begin
                results = self.test(model, order[begin:end], tested, rng)
                logs, means, null_means, null_deviations = np.array(results).reshape(-1, 4).T
                # A flat table says nothing: a score of zero for its share is conservative, where
                # the -8 of its p-value 1 would drown the other blocks.
                flat = np.isnan(logs)
                logs = np.where(flat, np.log(0.5), np.minimum(logs, -1e-15))
                scores[tested] -= np.sqrt(m) * ndtri_exp(logs)
                moved[tested] |= ~flat
                statistics[tested] += m * means
                centres[tested] += m * null_means
                variances[tested] += (m * null_deviations) ** 2
                rows_seen[tested] += m
        assert first is not None
        with np.errstate(invalid="ignore"):
            pvalues = np.exp(log_ndtr(-scores / np.sqrt(rows_seen)))
            pvalues[joined & ~moved] = 1.0
            return _Run(
                pvalues,
                statistics / rows_seen,
                centres / rows_seen,
                np.sqrt(variances) / rows_seen,
                first,
                model,
            )

    def fits(
        self, order: Index, sizes: Index, rng: np.random.Generator
    ) -> Generator[Any, None, None]:
        """The estimator fitted to the first rows, for each number of rows in turn.

        SIC chooses ``lam`` once: the sampling noise that it holds down falls like the number of
        rows grows, and so does ``lam``. Later fits do not start from the last one, which would
        keep out columns that it had set aside, so small ones run in threads beside the tests.
        """
        model = self.first_fit(order[: sizes[0]], rng)
        yield model
        if not self._independent(model):
            for before, n in pairwise(sizes):
                if hasattr(model, "lam_") and "lam" in model.get_params(deep=False):
                    model.set_params(lam=model.lam_ * before / n)
                yield self._fit(model, order[:n])
            return
        lam, models = model.lam_, []
        for before, n in pairwise(sizes):
            lam = lam * before / n
            models.append(copy(model).set_params(lam=lam))
        pool = ThreadPoolExecutor(effective_n_jobs(self.settings.n_jobs))
        try:
            with threadpool_limits(1, user_api="blas"):  # as each fit would set it by itself
                tasks = zip(models, (order[:n] for n in sizes[1:]), strict=True)
                for future in [pool.submit(self._fit, *task) for task in tasks]:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def first_fit(self, rows: Index, rng: np.random.Generator) -> Any:
        """A seeded copy of the estimator, fitted to the rows."""
        from sobolev.convex import ConvexSIC

        given = self.settings.estimator
        model = seeded(ConvexSIC(n_components=N_LANDMARKS) if given is None else given, rng)
        return self._fit(model, rows)

    def _fit(self, model: Any, rows: Index) -> Any:
        return model.fit(self.X[rows], take_rows(self.y, rows))

    def _independent(self, model: Any) -> bool:
        """Whether later fits can run side by side: each on one core, none drawing on another."""
        from sobolev.convex import ConvexSIC

        return (
            isinstance(model, ConvexSIC)
            and self.X.shape[0] <= SMALL_SAMPLE
            and not model.warm_start
            and isinstance(model.random_state, Integral)
            and effective_n_jobs(self.settings.n_jobs) > 1
        )

    def test(
        self, model: Any, rows: Index, tested: Index, rng: np.random.Generator
    ) -> list[tuple[float, float, float, float]]:
        """Log p-value (NaN: flat), statistic, its null mean and deviation, of each unit."""
        evaluator = self.evaluator(model, rows)
        seeds = rng.integers(2**63, size=tested.size)
        threads = rows.size >= THREAD_ROWS or isinstance(evaluator, PredictorEvaluator)
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.settings.n_jobs if threads else 1, prefer="threads")
            return list(
                run(
                    delayed(self._test_one)(evaluator, rows, int(k), int(seed))
                    for k, seed in zip(tested, seeds, strict=True)
                )
            )

    def _test_one(
        self, evaluator: Any, rows: Index, k: int, seed: int
    ) -> tuple[float, float, float, float]:
        table = self.table(evaluator, rows, k)
        law = (table.statistic, table.mean, table.deviation)
        if table.is_flat:  # the critic of this block does not use the unit
            return np.nan, *law
        if self.settings.pvalue == "saddlepoint":
            return float(np.log(table.saddlepoint())), *law
        return float(np.log(table.montecarlo(self.settings.n_rounds, seed))), *law

    def evaluator(self, model: Any, rows: Index) -> Any:
        """The statistic on the given rows."""
        return make_evaluator(model, self.X[rows], take_rows(self.y, rows), self.settings.statistic)

    def table(self, evaluator: Any, rows: Index, k: int) -> NullTable:
        """The null distribution of unit k on the given rows."""
        unit, X = self.units[k], self.X[rows]
        if unit.size == 1:
            j = int(unit[0])
            return null_table(evaluator, j, X[:, j], *self.conditional.grid(X, j))
        return joint_table(evaluator, unit, X[:, unit], *self._group_law(X, k))

    def _group_law(self, X: Array, k: int) -> tuple[Array, Array]:
        """The joint law of group k: of the user's conditional if it has one."""
        unit = self.units[k]
        if hasattr(self.conditional, "joint_grid"):
            nodes, weights = self.conditional.joint_grid(X, unit)
            return np.asarray(nodes), np.asarray(weights)
        if k not in self._joint:
            self._joint[k] = JointConditional(unit).fit(self.X)
        nodes, weights = self._joint[k].grid(X)
        return nodes, weights

    def _named(self, importances: Array, size: int) -> Mask:
        """The units of largest positive importance."""
        share = np.array([importances[unit].sum() for unit in self.units])
        named = np.zeros(share.size, dtype=bool)
        named[np.argsort(-share, kind="stable")[:size]] = True
        return named & (share > 0)

    def spread(self, per_unit: Array) -> Array:
        """From units to columns."""
        found = np.full(self.X.shape[1], np.nan)
        for unit, value in zip(self.units, per_unit, strict=True):
            found[unit] = value
        return found


def _units(groups: Any, d: int, names: Any) -> list[Index]:
    """The columns of each unit; every column belongs to one."""
    if groups is None:
        return [np.array([j]) for j in range(d)]
    parsed = parse_groups(groups, d, names)
    if parsed.n_memberships.max() > 1:
        column = int(parsed.n_memberships.argmax())
        label = repr(names[column]) if names is not None else column
        raise ValueError(f"column {label} is in two groups; groups that are tested are disjoint.")
    rows = parsed.membership
    return [rows.indices[a:b].astype(np.intp) for a, b in pairwise(rows.indptr)]


def _merged(pvalues: Array) -> Array:
    """Twice the median over repetitions; a unit that one left out was not found there."""
    if pvalues.shape[0] == 1:
        return np.asarray(pvalues[0])
    tested = np.isfinite(pvalues).any(axis=0)
    filled = np.where(np.isfinite(pvalues), pvalues, 1.0)
    return np.where(tested, np.minimum(1.0, 2 * np.median(filled, axis=0)), np.nan)


def hrt_test(
    X: Any,
    y: Any,
    feature: Any,
    *,
    estimator: Any = None,
    conditional: Any = "auto",
    statistic: str = "risk",
    holdout: float = 0.5,
    random_state: RandomState = None,
) -> HRTResult:
    """Test whether one column matters given all others.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n, d)
    y : array-like of shape (n,)
    feature : int or str, or a list of them
        The column, by position or name; several are replaced together.
    estimator, conditional, statistic, holdout, random_state
        As in :class:`HRTSelector`.

    Returns
    -------
    HRTResult

    Examples
    --------
    >>> from sobolev.datasets import make_sinexp
    >>> from sobolev import hrt_test
    >>> data = make_sinexp(n_samples=200, n_features=12, random_state=0)
    >>> hrt_test(data.data, data.target, feature=0, random_state=0).pvalue < 0.01
    True
    """
    settings = HRTSelector(
        estimator, conditional=conditional, statistic=statistic, scheme="split", holdout=holdout
    )
    settings._check_parameters()
    X, y, _ = validate_training(settings, X, y)
    names = getattr(settings, "feature_names_in_", None)
    asked = list(feature) if isinstance(feature, (list, tuple, np.ndarray)) else [feature]
    groups = _units({"feature": asked}, X.shape[1], names)
    trial = _Trial(settings, X, y, groups[:1])
    rng = check_generator(random_state)
    order, n_train = rng.permutation(X.shape[0]), int(trial.edges(None)[0])
    model = trial.first_fit(order[:n_train], rng)
    test_rows = order[n_train:]
    table = trial.table(trial.evaluator(model, test_rows), test_rows, 0)
    name = " + ".join(str(names[j]) if names is not None else f"x{j}" for j in groups[0])
    return HRTResult(table.statistic, table.saddlepoint(), table.mean, table.deviation, name)


def feature_importances(model: Any) -> Array:
    """What a fitted estimator ranks columns by."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "feature_importances_"):
        return np.asarray(last.feature_importances_, dtype=float)
    if hasattr(last, "coef_"):
        return np.abs(np.atleast_2d(last.coef_)).max(axis=0)
    raise TypeError(
        f"{type(last).__name__} has neither feature_importances_ nor coef_, which the shortlist "
        "is taken from."
    )
