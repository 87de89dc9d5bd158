"""The holdout randomization test: which columns matter given all others, with few false finds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtri_exp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Mask
from sobolev.conditionals.diagnostics import diagnose_conditional, warn_if_misfit
from sobolev.critic import as_critic
from sobolev.exceptions import SobolevWarning
from sobolev.inference.multiple_testing import PROCEDURES, qvalues, smallest_qvalue
from sobolev.inference.tables import STATISTICS
from sobolev.inference.trial import Split, Trial, make_units, resolve_scheme
from sobolev.summary import SummaryMixin
from sobolev.validation import plain_target, validate_rows, validate_training


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


class HRTSelector(SummaryMixin, SelectorMixin, BaseEstimator):
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
        scheme: Any = "forward",
        n_repeats: int = 1,
        procedure: str = "bh",
        feature_groups: Any = None,
        n_rounds: int = 1000,
        diagnose: bool = True,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.verbose = verbose
        self.estimator = estimator
        self.conditional = conditional
        self.fdr = fdr
        self.statistic = statistic
        self.pvalue = pvalue
        self.shortlist = shortlist
        self.scheme = scheme
        self.n_repeats = n_repeats
        self.procedure = procedure
        self.feature_groups = feature_groups
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
        trial = Trial(self, X, y, make_units(self.feature_groups, X.shape[1], names))
        self._warn_if_hopeless(trial, n_train)
        self.conditional_ = trial.conditional
        with Progress(self.verbose) as progress:
            n_fits = self.n_repeats * (len(trial.edges(n_train)) - 1)
            progress.stage("testing", total=n_fits)
            done = 0

            def tell(importances: Array) -> None:
                nonlocal done
                if done == 0:
                    self.feature_importances_ = importances
                done += 1
                progress.step(f"block {done} of {n_fits}", done)

            trial.tell = tell
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
        unit = make_units({"feature": [feature]}, self.n_features_in_, names)[0]
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

    def _evidence(self) -> dict[str, Array]:
        return {"statistic": self.statistics_, "pvalue": self.pvalues_, "qvalue": self.qvalues_}

    def _summary_importances(self) -> Array:
        return np.asarray(as_critic(self.estimator_).feature_importances_)

    def _notes(self) -> dict[int, str]:
        return {int(j): "not tested" for j in np.flatnonzero(np.isnan(self.pvalues_))}

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def _check_parameters(self) -> None:
        check_fraction("fdr", self.fdr, low=0.0, high=1.0)
        check_option("statistic", self.statistic, STATISTICS)
        check_option("pvalue", self.pvalue, ["saddlepoint", "montecarlo"])
        check_fraction("test_size", resolve_scheme(self.scheme).test_size, low=0.0, high=0.9)
        check_option("procedure", self.procedure, PROCEDURES)
        check_count("n_repeats", self.n_repeats)
        check_count("n_rounds", self.n_rounds)
        if self.shortlist is not None:
            check_count("shortlist", self.shortlist)

    def _warn_if_hopeless(self, trial: Trial, given: int | None) -> None:
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
        estimator, conditional=conditional, statistic=statistic, scheme=Split(holdout)
    )
    settings._check_parameters()
    X, y, _ = validate_training(settings, X, y)
    names = getattr(settings, "feature_names_in_", None)
    asked = list(feature) if isinstance(feature, (list, tuple, np.ndarray)) else [feature]
    groups = make_units({"feature": asked}, X.shape[1], names)
    trial = Trial(settings, X, y, groups[:1])
    rng = check_generator(random_state)
    order, n_train = rng.permutation(X.shape[0]), int(trial.edges(None)[0])
    model = trial.first_fit(order[:n_train], rng)
    test_rows = order[n_train:]
    table = trial.table(trial.evaluator(model, test_rows), test_rows, 0)
    name = " + ".join(str(names[j]) if names is not None else f"x{j}" for j in groups[0])
    return HRTResult(table.statistic, table.saddlepoint(), table.mean, table.deviation, name)
