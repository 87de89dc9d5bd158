"""The holdout randomization test: which columns matter given all others, with few false finds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import log_ndtr, ndtri_exp
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.mixed import resolve_conditional
from sobolev.exceptions import SobolevWarning
from sobolev.inference.multiple_testing import PROCEDURES, qvalues
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.tables import STATISTICS, make_evaluator, null_table
from sobolev.selection import plain_target, validate_rows, validate_training

# Blocks of the forward scheme, and look-ups of ``pvalue="montecarlo"``.
N_BLOCKS = 5
N_ROUNDS = 1000
# The shortlist by default: a fifth of the training rows, but at least this many columns.
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
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_deviation: float


class HRTSelector(SelectorMixin, BaseEstimator):
    """Select columns by the holdout randomization test, at a false discovery rate.

    The estimator is fitted to one part of the rows. On the others each column in turn is replaced
    by draws from its law given all other columns; a column matters if the statistic of the real
    values is larger than chance.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~sobolev.ConvexSIC` (None), :class:`~sobolev.NeuralSIC`, or any regressor or
        classifier with ``feature_importances_`` or ``coef_``.
    conditional : str or object, default="auto"
        The model of a column given the others, see :mod:`sobolev.conditionals`.
    fdr : float, default=0.1
        The false discovery rate.
    statistic : {"risk", "witness"}, default="risk"
        The penalised witness, or the paper's mean witness. Predictors have their loss.
    pvalue : {"saddlepoint", "montecarlo"}, default="saddlepoint"
        How the tail of the null distribution is found.
    shortlist : int or None, default=None
        Test so many columns, those of largest importance in the training rows. None takes a fifth
        of the training rows, at least 20.
    holdout : float, default=0.5
        The share of rows that are tested on.
    scheme : {"split", "forward"}, default="split"
        "split" tests on all held-out rows with one fit. "forward" goes through them in five blocks
        and refits with all rows before the block; given those, each block's p-value is uniform
        under the null, so their combination (Stouffer) is exact.
    n_repeats : int, default=1
        Repetitions with other splits. Twice the median of their p-values is valid whatever their
        dependence.
    procedure : {"bh", "by", "storey"}, default="bh"
        From p-values to q-values.
    random_state : int, Generator, RandomState or None, default=None
        Decides the splits.
    n_jobs : int or None, default=None
        Threads for the columns; the result does not depend on it.

    Attributes
    ----------
    pvalues_, qvalues_ : array of shape (d,)
        NaN where not tested.
    statistics_ : array of shape (d,)
        The mean statistic of the held-out rows (of the last repetition), NaN where not tested.
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

    Examples
    --------
    >>> from sobolev.datasets import make_sinexp
    >>> from sobolev.inference import HRTSelector
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=0)
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
        holdout: float = 0.5,
        scheme: str = "split",
        n_repeats: int = 1,
        procedure: str = "bh",
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
        rng = check_generator(self.random_state)
        given = None
        if holdout is not None:
            given = X.shape[0]
            X = np.vstack([X, validate_rows(self, holdout[0], reset=False)])
            y = np.concatenate([np.asarray(y), np.asarray(plain_target(holdout[1]))])
        self._warn_if_hopeless(X.shape)
        self.conditional_ = resolve_conditional(self.conditional).fit(X)
        repeats = [self._repeat(X, y, given, rng, first=i == 0) for i in range(self.n_repeats)]
        pvalues = np.stack(repeats)
        if self.n_repeats == 1:
            self.pvalues_ = pvalues[0]
        else:
            # A column that a repetition left out of its shortlist was not found there.
            tested = np.isfinite(pvalues).any(axis=0)
            filled = np.where(np.isfinite(pvalues), pvalues, 1.0)
            doubled = np.minimum(1.0, 2 * np.median(filled, axis=0))
            self.pvalues_ = np.where(tested, doubled, np.nan)
        self.shortlist_ = np.flatnonzero(np.isfinite(self.pvalues_))
        self.qvalues_ = qvalues(self.pvalues_, self.procedure)
        self.support_ = np.nan_to_num(self.qvalues_, nan=2.0) <= self.fdr
        return self

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def _check_parameters(self) -> None:
        check_fraction("fdr", self.fdr, low=0.0, high=1.0)
        check_fraction("holdout", self.holdout, low=0.0, high=0.9)
        check_option("statistic", self.statistic, STATISTICS)
        check_option("pvalue", self.pvalue, ["saddlepoint", "montecarlo"])
        check_option("scheme", self.scheme, ["split", "forward"])
        check_option("procedure", self.procedure, PROCEDURES)
        check_count("n_repeats", self.n_repeats)
        if self.shortlist is not None:
            check_count("shortlist", self.shortlist)

    def _warn_if_hopeless(self, shape: tuple[int, ...]) -> None:
        """Monte Carlo p-values have a floor; say so before the work."""
        if self.pvalue == "saddlepoint":
            return
        n_train = round((1 - self.holdout) * shape[0])
        tests = self._n_shortlist(n_train, shape[1])
        if tests / (N_ROUNDS + 1) > self.fdr:
            warnings.warn(
                f"the smallest p-value of {N_ROUNDS} rounds, {1 / (N_ROUNDS + 1):.2g}, is too "
                f"large for a single find among {tests} tests at fdr={self.fdr:g}; use "
                'pvalue="saddlepoint" or a smaller shortlist.',
                SobolevWarning,
                stacklevel=3,
            )

    def _n_shortlist(self, n_train: int, d: int) -> int:
        if isinstance(self.shortlist, Integral):
            return min(int(self.shortlist), d)
        return min(d, max(MIN_SHORTLIST, n_train // 5))

    def _repeat(
        self, X: Array, y: Any, given: int | None, rng: np.random.Generator, *, first: bool
    ) -> Array:
        """p-values of one split, NaN where not tested."""
        n = X.shape[0]
        if given is None:
            order, n_train = rng.permutation(n), round((1 - self.holdout) * n)
        else:
            order, n_train = np.arange(n), given
        n_blocks = 1 if self.scheme == "split" else min(N_BLOCKS, n - n_train)
        edges = np.linspace(n_train, n, n_blocks + 1).round().astype(int)
        scores, sizes = [], []
        columns: Index | None = None
        statistics = np.zeros(X.shape[1])
        for begin, end in pairwise(edges):
            model = self._fitted(X, y, order[:begin], rng)
            if columns is None:
                importances = _importances(model)
                columns = np.argsort(-importances, kind="stable")
                columns = columns[: self._n_shortlist(n_train, X.shape[1])]
                columns = np.sort(columns[importances[columns] > 0])
                if first:
                    self.feature_importances_ = importances
            tables = self._tables(model, X, y, order[begin:end], columns)
            seeds = rng.integers(2**63, size=len(tables))
            logs = np.log([self._pvalue(t, int(s)) for t, s in zip(tables, seeds, strict=True)])
            scores.append(-ndtri_exp(np.minimum(logs, -1e-15)))
            sizes.append(end - begin)
            share = (end - begin) / (n - n_train)
            statistics[columns] += share * np.array([t.statistic for t in tables])
        assert columns is not None
        self.estimator_ = model
        tested = np.zeros(X.shape[1], dtype=bool)
        tested[columns] = True
        self.statistics_ = np.where(tested, statistics, np.nan)
        weights = np.sqrt(np.array(sizes, dtype=float))
        combined = weights @ np.stack(scores) / np.sqrt(np.sum(weights**2))
        pvalues = np.full(X.shape[1], np.nan)
        pvalues[columns] = np.exp(log_ndtr(-combined))
        return pvalues

    def _fitted(self, X: Array, y: Any, rows: Index, rng: np.random.Generator) -> Any:
        from sobolev.convex import ConvexSIC

        model = ConvexSIC() if self.estimator is None else clone(self.estimator)
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=int(rng.integers(2**31)))
        return model.fit(X[rows], _take(y, rows))

    def _tables(
        self, model: Any, X: Array, y: Any, rows: Index, columns: Index
    ) -> Sequence[NullTable]:
        evaluator = make_evaluator(model, X[rows], _take(y, rows), self.statistic)
        grids = [self.conditional_.grid(X[rows], int(j)) for j in columns]
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.n_jobs, prefer="threads")
            return list(
                run(
                    delayed(null_table)(evaluator, int(j), X[rows, j], *grid)
                    for j, grid in zip(columns, grids, strict=True)
                )
            )

    def _pvalue(self, table: NullTable, seed: int) -> float:
        if self.pvalue == "saddlepoint":
            return table.saddlepoint()
        return table.montecarlo(N_ROUNDS, seed)


def hrt_test(
    X: Any,
    y: Any,
    feature: int | str,
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
    feature : int or str
        The column, by position or name.
    estimator, conditional, statistic, holdout, random_state
        As in :class:`HRTSelector`.

    Returns
    -------
    HRTResult

    Examples
    --------
    >>> from sobolev.datasets import make_sinexp
    >>> from sobolev.inference import hrt_test
    >>> data = make_sinexp(n_samples=200, n_features=12, random_state=0)
    >>> hrt_test(data.data, data.target, feature=0, random_state=0).pvalue < 0.01
    True
    """
    names = list(getattr(X, "columns", []))
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not a column of X.")
        feature = names.index(feature)
    selector = HRTSelector(estimator, conditional=conditional, statistic=statistic, holdout=holdout)
    selector._check_parameters()
    X, y, _ = validate_training(selector, X, y)
    rng = check_generator(random_state)
    selector.conditional_ = resolve_conditional(conditional).fit(X)
    order, n_train = rng.permutation(X.shape[0]), round((1 - holdout) * X.shape[0])
    model = selector._fitted(X, y, order[:n_train], rng)
    column = np.array([feature % X.shape[1]])
    (table,) = selector._tables(model, X, y, order[n_train:], column)
    return HRTResult(table.statistic, table.saddlepoint(), table.mean, table.deviation)


def _importances(model: Any) -> Array:
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


def _take(y: Any, rows: Index) -> Any:
    return y.iloc[rows] if hasattr(y, "iloc") else y[rows]
