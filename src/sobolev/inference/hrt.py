"""The holdout randomization test: which columns matter given all others (Algorithm 4)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import count
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._memory import check_memory
from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional, one_of_each
from sobolev.conditionals.choice import resolve_conditional
from sobolev.conditionals.completing import completions, sets_of
from sobolev.conditionals.derived import CorrectedConditional, TabulatedConditional
from sobolev.conditionals.diagnostics import judge, warn_if_misfit
from sobolev.conditionals.features import Feature, covariates, features
from sobolev.criterion import parse_columns
from sobolev.critic import (
    STATISTICS,
    allowed_kind,
    told_covariates,
    told_type,
    unwrapped,
)
from sobolev.exceptions import ConditionalModelWarning, SobolevWarning
from sobolev.inference.multiple_testing import PROCEDURES, qvalues, smallest_qvalue
from sobolev.inference.orders import merged_pvalues
from sobolev.inference.schemes import Forward, Imputed, Split, resolve_pvalue, resolve_scheme
from sobolev.inference.trial import Block, Run, Trial
from sobolev.responses import read_training
from sobolev.skill import Skill, held_out_skill
from sobolev.summary import LEFT_OUT, SummaryMixin, with_missing
from sobolev.tables.fitting import TableMixin
from sobolev.tables.opening import open_table
from sobolev.tables.prepared import Prepared
from sobolev.tables.repeats import without_copies
from sobolev.validation import feature_names, list_some, read_groups, validate_rows

# The distributions of up to this many features are tabulated for an audit.
MAX_TABULATED = 300
# Number of draws of missing cells.
N_DRAWS = 5
# Tables of fewer rows, of survival times: with fewer events, are tested in this many orders.
FEW_ROWS, FEW_ROWS_ORDERS = 400, 5
# A larger p-value with a corrected model of the columns takes the place of the first one.
NOT_SMALL = 0.05


def risen(first: float, second: float) -> float:
    """The first p-value, or the larger of two if the second, of a corrected model, is not small."""
    return max(first, second) if second > NOT_SMALL else first


@dataclass(frozen=True)
class HRTResult:
    """The test of one column.

    Attributes
    ----------
    statistic : float
        Mean statistic of the held-out rows.
    pvalue : float
    null_mean, null_deviation : float
        Mean and standard deviation of the statistic under the null hypothesis.
    feature : str or None
        Name of the column.
    """

    statistic: float
    pvalue: float
    null_mean: float
    null_deviation: float
    feature: str | None = None


@dataclass(frozen=True)
class Rows:
    """Checked rows: X and y, subjects, weights of mean one, and the number of training rows.

    None: no subjects, equal weights, or training rows that are still to be drawn. ``gaps`` are the
    cells of X that were missing, ``draws`` further tables with other draws in their places.
    """

    X: Array
    y: Any
    groups: Index | None = None
    weights: Array | None = None
    n_train: int | None = None
    gaps: Mask | None = None
    draws: tuple[Array, ...] = ()

    def filled(self, rng: np.random.Generator, sets: Sequence[Index] = ()) -> Rows:
        """Rows with draws in the place of missing cells; further tables have other draws.

        ``sets`` are columns that are drawn together if they are missing together.
        """
        if not np.isnan(self.X).any():
            return self
        children = rng.spawn(N_DRAWS)
        first, *others = completions(self.X, self.y, children, sets=sets, groups=self.groups)
        return replace(self, X=first, gaps=np.isnan(self.X), draws=tuple(others))


@dataclass(eq=False, repr=False)
class HRTSelector(TableMixin, SummaryMixin, SelectorMixin, BaseEstimator):
    """Select columns by the holdout randomization test, at a false discovery rate.

    The estimator is fitted to one part of the rows. On the held-out rows each column in turn is
    replaced by draws from its conditional distribution given all other columns. A column matters
    if the statistic of the real values is larger than chance would make it.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~sobolev.ConvexSIC` (None), :class:`~sobolev.NeuralSIC`, or any regressor or
        classifier with ``feature_importances_`` or ``coef_``. A fitted estimator in
        :class:`~sklearn.frozen.FrozenEstimator` is tested on ``holdout`` rows as it is.
    conditional : str or object, default="auto"
        The model of each column given the others, see :mod:`sobolev.conditionals`.
    fdr : float, default=0.1
        Level of the false discovery rate.
    statistic : {"risk", "witness", "residual"}, default="risk"
        Statistic of a held-out row: the penalised witness, or the witness of the paper. For
        predictors both are minus the loss. For survival times "risk" is the log-likelihood of a
        proportional hazard, the critic of the log-rank scores being its logarithm. "residual" is
        doubly robust: the critic times the residual of the response given the other columns, from a
        critic that is fitted again without the column. Its mean under the null hypothesis is zero
        up to a product of two errors, of the conditional model and of that critic; it takes more
        time and finds less.
    pvalue : {"robust", "saddlepoint", "studentised", "montecarlo"} or MonteCarlo, default="robust"
        How the p-value is found. "saddlepoint" and "montecarlo" (with the number of draws set by
        :class:`~sobolev.inference.MonteCarlo`) are valid if the conditional distribution of the
        column is right. "studentised" is valid if the conditional mean of the statistic is right,
        whatever the spread and shape. "robust" is the larger of "saddlepoint" and "studentised",
        valid if either is; what would be selected is tested with a corrected model of the columns,
        too, whose p-value counts if it is not small.
    scheme : {"forward", "split"}, Forward or Split, default="forward"
        How the rows are used. "split" fits once and tests on all held-out rows. "forward" goes
        through the held-out rows in blocks and refits to all rows before each block; what the
        blocks say is combined. :class:`~sobolev.inference.Forward` and
        :class:`~sobolev.inference.Split` set the share of held-out rows.
    shortlist : int or None, default=None
        Number of columns to test, chosen by importance on the training rows. None is a tenth of
        the number of rows, but at least 20. With "forward", columns that a later fit ranks in the
        upper half of the shortlist are added, up to a quarter of its length.
    n_repeats : int or "auto", default="auto"
        Number of repetitions with other orders of the rows, which make a selection depend less on
        the order. Their p-values are merged by Cauchy's rule, see
        :func:`~sobolev.inference.orders.merged_pvalues`. "auto" is five for tables of fewer than
        400 rows, or events of survival times, with the forward scheme, where it finds more, and one
        otherwise.
    procedure : {"bh", "by", "storey"}, default="bh"
        How p-values become q-values.
    response : str, default="auto"
        How y is read: "number", "count", "grades", "classes" or "survival", see
        :func:`~sobolev.responses.read_response`. "auto" reads text, booleans and codes of classes
        as classes, the structured arrays of scikit-survival as survival times, and other numbers
        as numbers; ``response_.sentence`` says what was done.
    feature_groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that are replaced and tested together, such as the
        one-hot columns of one variable. Other columns are tested alone.
    copies : {"join", "keep"}, default="join"
        What to do with columns that cannot be told apart: copies, near copies, full sets of one-hot
        columns, and columns that others determine. "join" tests them together, as one feature.
        "keep" tests near copies alone, and gives columns that others determine no p-value.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the model and are not tested,
        such as age, sex and batch. The others are tested given them. A column stands for its whole
        group or set of copies, which cannot be told apart from it. An estimator with a parameter
        ``adjust`` that is None, such as :class:`~sobolev.ConvexSIC`, does not penalise them; to any
        other predictor they are columns as all others.
    diagnose : bool, default=True
        Whether to check the conditional model of the tested columns, for ``diagnostics_``.
    random_state : int, Generator, RandomState or None, default=None
        Determines the splits and the open random states of the estimator.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 also prints a line for each fit.

    Attributes
    ----------
    pvalues_, qvalues_ : array of shape (d,)
        NaN where not tested; the columns of a group share them.
    statistics_ : array of shape (d,)
        Mean statistic of the held-out rows over the repetitions, NaN where not tested.
    null_means_, null_deviations_ : array of shape (d,)
        Mean and standard deviation of the statistic under the null hypothesis; see :meth:`result`.
    support_ : array of bool, shape (d,)
        Columns with a q-value of at most ``fdr``.
    adjusted_ : array of int
        The columns that were adjusted for; their p-values are NaN.
    shortlist_ : array of int
        The tested columns.
    n_repeats_ : int
        Number of repetitions.
    n_tests_ : int
        Number of tests that ``procedure`` counts.
    missing_ : array of shape (d,)
        Share of missing cells.
    units_ : dict
        The features, by name: positions of the columns that are tested together.
    left_out_ : dict
        Features that are selected with the conditional model, and not with a corrected one, by
        name: their p-values before and after. They are not in ``support_``.
    response_ : Response
        The response as it was read: ``kind``, ``values`` and ``sentence``.
    skill_ : Skill or None
        How well the critics predict the rows that they test, against a baseline: R² of numbers, AUC
        of classes, concordance of survival times; see :class:`sobolev.skill.Skill`.
    feature_importances_ : array of shape (d,)
        Importances from the first fit.
    estimator_ : estimator
        The last fit.
    conditional_ : object
        The fitted conditional model.
    diagnostics_ : ConditionalDiagnostics or None
        How well the conditional model fits the tested columns.

    Notes
    -----
    The false discovery rate is controlled if the p-values are valid, see ``pvalue``, and
    independent or positively dependent (``procedure="by"`` does not need that). A column joins the
    shortlist before any row that it is tested on is used, so its p-value is valid; the procedure
    counts the largest number of columns that may join, which is known before the first test.

    Examples
    --------
    >>> from sobolev import HRTSelector
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=1)
    >>> hrt = HRTSelector(random_state=0).fit(data.data, data.target)
    >>> hrt.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5])
    """

    estimator: Any = None
    _: KW_ONLY
    conditional: Any = "auto"
    fdr: float = 0.1
    statistic: str = "risk"
    pvalue: Any = "robust"
    scheme: Any = "forward"
    shortlist: int | None = None
    n_repeats: int | str = "auto"
    procedure: str = "bh"
    response: str = "auto"
    feature_groups: Any = None
    copies: str = "join"
    adjust: Any = None
    diagnose: bool = True
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    _by_column: ClassVar = {
        "pvalues_": np.nan,
        "qvalues_": np.nan,
        "statistics_": np.nan,
        "null_means_": np.nan,
        "null_deviations_": np.nan,
        "support_": False,
        "missing_": 0.0,
    }
    _as_encoded = (
        "estimator_",
        "conditional_",
        "diagnostics_",
        "left_out_",
        "response_",
        "n_repeats_",
        "n_tests_",
        "skill_",
    )

    @classmethod
    def paper(cls, estimator: Any = None, **parameters: Any) -> HRTSelector:
        """Algorithm 4 of the paper exactly as printed.

        Neural SIC (Alg. 3) on the training rows, the mean witness on one holdout set as the
        statistic, a neural conditional generator, Monte Carlo p-values with 1,000 rounds, and the
        procedure of Benjamini and Hochberg. Needs PyTorch for the generator.

        Parameters
        ----------
        estimator : estimator or None, default=None
            None is ``NeuralSIC.paper()``.
        **parameters
            Parameters of :class:`HRTSelector`; they replace those of the paper.

        Returns
        -------
        HRTSelector
        """
        if estimator is None:
            from sobolev.neural import NeuralSIC

            estimator = NeuralSIC.paper()
        settings = {
            "conditional": "neural",
            "statistic": "witness",
            "pvalue": "montecarlo",
            "scheme": "split",
            "procedure": "bh",
        }
        return cls(estimator, **(settings | parameters))

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        holdout: tuple[Any, Any] | None = None,
    ) -> HRTSelector:
        """Fit, test and select.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, AnnData or Prepared, of shape (n, d)
            A DataFrame of pandas or polars is taken as it is: categories, text with few values and
            booleans are encoded and tested as one feature each; identifiers and dates are set
            aside, with a warning. :func:`sobolev.tables.prepare` changes that. Missing cells are
            NaN. They are drawn given the other columns and y, five times;
            p-values then take account of the differences between draws, and the rows in which a
            column is missing say nothing of it. Columns of a sparse matrix with fewer than 10
            nonzero rows are set aside. If the others need more than 1 GiB as a dense table, those
            most related to y in the first training rows are kept, and tested given each other.
            Of AnnData, X is used.
        y : array-like, str or tuple of str
            The response: one or several columns, a structured array of survival times, or the
            names of its columns in the DataFrame X, from which they are taken out, or in ``obs`` of
            AnnData. A prepared table has its own.
        groups : array-like of shape (n,) or str, optional
            The subject of each row, if rows belong together: repeated measures, litters, sites; or
            the name of its column in X. Subjects are never divided between training and test, and
            p-values are found from the spread between subjects. Without groups, rows that repeat
            earlier ones in every column and in y, as chance would not explain, are left out.
        sample_weight : array-like of shape (n,) or str, optional
            How much each row counts, in the fit of the critic and in the statistic; or the name of
            its column in X. Only ratios matter: a row of weight two is one observation that counts
            twice, not two independent ones. Weights must not depend on the column that is tested.
        holdout : tuple (X, y), optional
            Rows to test on. By default a share of the rows is held out.

        Returns
        -------
        self
        """
        self._check_parameters()
        for name in ("feature_importances_", "support_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        self._forget_table()
        kind = allowed_kind(self.estimator, self.response)
        data = open_table(
            X,
            y,
            groups=groups,
            sample_weight=sample_weight,
            response=kind,
            division=self._division,
        )
        if data is not None:
            if holdout is not None:
                raise ValueError("holdout needs a table of numbers; encode X, or leave it out.")
            return self._fit_table(data)
        return self._fit_numbers(X, y, groups, sample_weight, holdout)

    def _fit_numbers(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        holdout: tuple[Any, Any] | None = None,
    ) -> HRTSelector:
        """Fit to a table that is used as it is."""
        rng = check_generator(self.random_state)
        rows = self._read(X, y, groups, sample_weight, holdout)
        self.missing_ = np.isnan(rows.X).mean(axis=0)
        rows = rows.filled(rng, sets_of(self.feature_groups, feature_names(self)))
        found = self._find_units(rows.X, rows.groups)
        self.units_ = {unit.name: unit.columns for unit in found}
        self._unit_notes = {
            int(j): unit.note
            if unit.is_testable or unit.is_adjusted
            else f"not tested: {unit.note}"
            for unit in found
            for j in unit.columns
            if unit.note
        }
        testable = [unit.columns for unit in found if unit.is_testable]
        self.adjusted_ = covariates(found)
        trial = self._trial(rows, testable, self.adjusted_)
        self.n_repeats_ = self._n_orders(trial, rows.n_train)
        self._warn_if_hopeless(trial, rows.n_train)
        n_fits = self.n_repeats_ * trial.n_blocks(rows.n_train)
        with Progress(self.verbose) as progress:
            progress.stage("testing", n_fits)
            done = count(1)

            def heard(critic: Any) -> None:
                if not hasattr(self, "feature_importances_"):
                    self.feature_importances_ = critic.feature_importances_
                number = next(done)
                progress.step(f"fit {number} of {n_fits}", number - 0.5)

            runs: list[Run] = []
            try:
                while len(runs) < self.n_repeats_:
                    runs.append(trial.run(rows.n_train, rng, heard))
            except KeyboardInterrupt:
                self._keep(trial, runs)
                raise
        self._store(trial, runs)
        self.skill_ = self._held_out_skill(trial, runs)
        self._check_conditional(trial)
        self.warn(stacklevel=4)
        return self

    def _held_out_skill(self, trial: Trial, runs: list[Run]) -> Skill | None:
        """How well the critics predict the rows that they test.

        Cells that were missing hold draws given y; here they hold the means of their columns.
        """
        X = trial.X
        if trial.gaps is not None:
            X = np.where(trial.gaps, np.mean(X, axis=0, where=~trial.gaps), X)
        blocks = [[(fit.critic, fit.train, fit.rows) for fit in run.fits] for run in runs]
        return held_out_skill(blocks, X, trial.y, self.response_, trial.groups)

    def _n_orders(self, trial: Trial, n_train: int | None) -> int:
        """Number of repetitions; one if the order of the rows is given."""
        if self.n_repeats != "auto":
            return int(self.n_repeats)
        is_free = isinstance(trial.scheme, Forward) and trial.scheme.shuffle and n_train is None
        said = len(trial.X) if trial.happened is None else int(trial.happened.sum())
        return FEW_ROWS_ORDERS if is_free and said < FEW_ROWS else 1

    def for_table(self, X: Any, *, groups: Any = None) -> HRTSelector:
        """An unfitted copy whose conditional model is fitted to X, for many responses on one table.

        It does not check the conditional model, which does not depend on the response.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
        groups : array-like of shape (n,), optional
            The subject of each row, as in :meth:`fit`.

        Returns
        -------
        HRTSelector
            To be fitted to all rows of X, in their order.
        """
        self._check_parameters()
        door: HRTSelector = clone(self)
        values = validate_rows(door, X, reset=True, gaps=True)
        if np.isnan(values).any():  # the draws depend on the response
            return door.set_params(diagnose=False)
        subjects = None if groups is None else door._read_groups(groups, len(values))
        units = [unit.columns for unit in door._find_units(values, subjects) if unit.is_testable]
        model: Any = resolve_conditional(self.conditional).fit_validated(values, subjects)
        if len(units) <= MAX_TABULATED:
            model = TabulatedConditional(model, values, units)
        copy: HRTSelector = clone(self)
        return copy.set_params(conditional=FrozenEstimator(model), diagnose=False)

    def alternatives(self) -> list[tuple[str, HRTSelector]]:
        """Copies with other models, which an audit tries in this order if this one fails."""
        offered = {
            "a forest for every column": {"conditional": "forest"},
            "a linear model for every column": {"conditional": "mixed"},
            "a forest, and responses less what the other columns predict": {
                "conditional": "forest",
                "statistic": "residual",
            },
        }
        own = self.get_params(deep=False)
        return [
            (label, clone(self).set_params(**parameters))
            for label, parameters in offered.items()
            if any(own[name] != value for name, value in parameters.items())
        ]

    def _read(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, holdout: tuple[Any, Any] | None
    ) -> Rows:
        """The door: checked rows, held-out rows last."""
        kind = allowed_kind(self.estimator, self.response)
        X, self.response_, weights, n_train = read_training(
            self, X, y, kind, holdout, sample_weight
        )
        check_memory(*X.shape, pairs=True)
        if np.isnan(X).any() and resolve_pvalue(self.pvalue).needs_distribution:
            raise ValueError(
                f"pvalue={self.pvalue!r} needs tables without missing cells; fill them in, drop "
                'their rows, or use pvalue="robust".'
            )
        if holdout is not None and (groups is not None or sample_weight is not None):
            raise ValueError(
                "holdout goes with neither groups nor sample_weight; pass all rows to fit, which "
                "holds out some of them."
            )
        is_fitted = isinstance(self.conditional, FrozenEstimator)
        if groups is None and resolve_scheme(self.scheme).shuffle and not (n_train or is_fitted):
            X, self.response_, weights = without_copies(X, self.response_, weights, stacklevel=5)
        return Rows(
            X,
            self.response_.values,
            groups=None if groups is None else self._read_groups(groups, X.shape[0]),
            weights=None if sample_weight is None else weights * weights.size,
            n_train=n_train,
        )

    def _read_groups(self, groups: Any, n: int) -> Index:
        """The number of the subject of each row, in the order of their first rows."""
        if resolve_pvalue(self.pvalue).needs_distribution:
            raise ValueError(
                f"pvalue={self.pvalue!r} takes rows as independent, which rows of one subject are "
                'not; use pvalue="robust" or "studentised" with groups.'
            )
        return read_groups(groups, n)

    def _find_units(self, X: Array, groups: Index | None = None) -> list[Feature]:
        """The features of a table, from X alone and from one row of each subject."""
        if groups is not None:
            X = X[one_of_each(groups)]
        names = feature_names(self)
        return features(X, self.feature_groups, names, self.copies, self.adjust)

    def _division(self, y: Any, groups: Any) -> tuple[Index, int]:
        """An order of the rows, and the number of rows of the first training set."""
        if self.n_repeats not in (1, "auto"):
            raise ValueError(
                f"n_repeats={self.n_repeats} takes other training rows each time, but the columns "
                "of a matrix that does not fit in memory are chosen in one training set; use "
                "n_repeats=1, or choose columns first, without looking at the response."
            )
        trial = Trial(
            X=np.empty((len(y), 0)),
            y=y,
            units=[],
            estimator=None,
            conditional=resolve_conditional(self.conditional),
            scheme=resolve_scheme(self.scheme),
            pvalue=resolve_pvalue(self.pvalue),
            statistic=self.statistic,
            groups=None if groups is None else self._read_groups(groups, len(y)),
        )
        order, edges = trial.division(None, check_generator(self.random_state).spawn(1)[0])
        return order, int(edges[0])

    def encoded(self, data: Prepared) -> HRTSelector:
        """An unfitted copy for the encoded columns of a prepared table.

        Parameters
        ----------
        data : Prepared
            The columns of one variable are tested together; groups of the selector are groups of
            inputs. If its first rows decided which columns are used, the copy trains on them.

        Returns
        -------
        HRTSelector
        """
        copy = super().encoded(data)
        if data.n_train is None:
            return copy
        return copy.set_params(scheme=replace(resolve_scheme(self.scheme), shuffle=False))

    def _with_groups(self, groups: dict[str, Any] | None) -> HRTSelector:
        """A copy that tests groups of columns, whose critic weighs each group as one."""
        copy, critic = super()._with_groups(groups), clone(self._critic())
        if "feature_groups" in critic.get_params(deep=False) and critic.feature_groups is None:
            copy.set_params(estimator=critic.set_params(feature_groups=groups))
        return copy

    def _critic(self) -> Any:
        """The estimator, or the default one."""
        if self.estimator is not None:
            return self.estimator
        from sobolev.convex import ConvexSIC

        return ConvexSIC()

    def _trial(self, rows: Rows, units: list[Index], adjusted: Index) -> Trial:
        return Trial(
            X=rows.X,
            y=rows.y,
            units=units,
            estimator=told_covariates(told_type(self._critic()), adjusted),
            conditional=self._model(rows.X, rows.groups),
            scheme=resolve_scheme(self.scheme),
            pvalue=resolve_pvalue(self.pvalue) if rows.gaps is None else Imputed(),
            statistic=self.statistic,
            shortlist=self.shortlist,
            n_jobs=self.n_jobs,
            groups=rows.groups,
            weights=rows.weights,
            happened=self.response_.events,
            gaps=rows.gaps,
            draws=tuple((X, self._model(X, rows.groups)) for X in rows.draws),
        )

    def _model(self, X: Array, groups: Index | None) -> Conditional:
        """The conditional model, fitted to a table."""
        return resolve_conditional(self.conditional).fit_validated(X, groups)

    def _store(self, trial: Trial, runs: list[Run]) -> None:
        self.estimator_ = unwrapped(runs[-1].critic)
        self._last_importances = np.asarray(runs[-1].critic.feature_importances_, dtype=float)
        self.conditional_ = getattr(trial.conditional, "model", trial.conditional)
        self.pvalues_ = trial.spread(merged_pvalues(np.stack([run.pvalues for run in runs])))
        self.statistics_ = trial.spread(_mean([run.statistics for run in runs]))
        self.null_means_ = trial.spread(_mean([run.null_means for run in runs]))
        self.null_deviations_ = trial.spread(_mean([run.null_deviations for run in runs]))
        self.shortlist_ = np.flatnonzero(np.isfinite(self.pvalues_))
        self._decide(trial)
        self.left_out_ = self._second_look(trial, runs) if trial.pvalue.looks_twice else {}

    def _decide(self, trial: Trial) -> None:
        """From p-values to q-values and the selection."""
        pvalues = np.array([self.pvalues_[unit[0]] for unit in trial.units])
        n_tests = self.n_tests_ = self._n_counted(trial, int(np.isfinite(pvalues).sum()))
        self.qvalues_ = trial.spread(qvalues(pvalues, self.procedure, n_tests))  # Alg. 4, BH
        self.support_ = np.nan_to_num(self.qvalues_, nan=2.0) <= self.fdr

    def _n_counted(self, trial: Trial, n_tested: int) -> int:
        """The number of tests of the procedure: of the units that one order may test.

        With one split, the training rows alone decide what is tested, and no other unit counts.
        """
        if self.n_repeats_ == 1 and trial.scheme.n_blocks == 1:
            return n_tested
        return trial.n_tests

    def _check_conditional(self, trial: Trial) -> None:
        """Diagnose the conditional model of the columns that were tested alone."""
        self.diagnostics_ = None
        alone = np.sort([unit[0] for unit in trial.units if unit.size == 1])
        tested = np.intersect1d(alone, self.shortlist_)
        if not (self.diagnose and tested.size):
            return
        names = feature_names(self)
        rows = None if trial.groups is None else one_of_each(trial.groups)
        X = trial.X if rows is None else trial.X[rows]
        self.diagnostics_ = judge(trial.conditional, X, names, tested, fitted=rows)

    def _keep(self, trial: Trial, runs: list[Run]) -> None:
        """Keep the orders of the rows that were done when the fit was interrupted, if any.

        The p-values of fewer orders are valid.
        """
        if runs:
            self.n_repeats_ = len(runs)
            self._store(trial, runs)
            self.skill_ = self._held_out_skill(trial, runs)
            self.diagnostics_ = None

    def _second_look(self, trial: Trial, runs: list[Run]) -> dict[str, tuple[float, float]]:
        """Test what is selected with a corrected model, too; a p-value that is not small counts.

        Returns the p-values, before and after, of the units that are no longer selected because
        theirs rose.
        """
        looked = [k for k, unit in enumerate(trial.units) if self.support_[unit[0]]]
        if not looked:
            return {}
        rows = trial.complete_rows(self._last_importances)
        corrected = CorrectedConditional(trial.conditional, trial.X, rows)
        tests = [trial.again(run, looked, corrected, rows) for run in runs]
        again = merged_pvalues(np.array(tests))
        before = self.pvalues_.copy()
        for k, p in zip(looked, again, strict=True):
            self.pvalues_[trial.units[k]] = risen(before[trial.units[k][0]], p)
        self._decide(trial)
        names = {int(own[0]): name for name, own in self.units_.items()}
        firsts = [int(trial.units[k][0]) for k in looked]
        return {
            names[j]: (float(before[j]), float(self.pvalues_[j]))
            for j in firsts
            if not self.support_[j] and self.pvalues_[j] > before[j]
        }

    def warn(self, stacklevel: int = 2) -> None:
        """Warn of features that a corrected model of the columns left out, as ``fit`` does.

        Parameters
        ----------
        stacklevel : int, default=2
            As in :func:`warnings.warn`.
        """
        if resolve_pvalue(self.pvalue).needs_distribution and self.diagnostics_ is not None:
            warn_if_misfit(self.diagnostics_, stacklevel=stacklevel)
        left_out = getattr(self, "left_out_", {})  # older files lack it
        if not left_out:
            return
        shown = [f"{name!r} (p = {p:.2g}, then {q:.2g})" for name, (p, q) in left_out.items()]
        warnings.warn(
            f"left out, because the model of the columns did not fit: {list_some(shown)}. These "
            "p-values were small with the first model only, and not with one that is corrected by "
            "what the other columns predict.",
            ConditionalModelWarning,
            stacklevel=stacklevel,
        )

    def _evidence(self) -> dict[str, Array]:
        return {
            "statistic": self._drops(),
            "pvalue": self.pvalues_,
            "qvalue": self.qvalues_,
        }

    def _drops(self) -> Array:
        """How much the mean held-out statistic falls if a feature is replaced by draws.

        For the risk of a critic f = h(x)' psi(y) this is a share of the variance of psi: R². For
        survival times it is a log-likelihood.
        """
        critic: Any = getattr(self, "estimator_", None)  # a file may lack it
        whitener = getattr(getattr(critic, "encoder_", None), "whitener_", None)
        is_survival = getattr(getattr(self, "response_", None), "events", None) is not None
        unit, is_risk = 1.0, self.statistic == "risk" and not is_survival
        if is_risk and whitener is not None and hasattr(critic, "rho"):
            rho = getattr(critic, "rho_", critic.rho)
            unit = 2 * float(rho) / whitener.shape[1]
        return unit * (self.statistics_ - self.null_means_)

    def _summary_importances(self) -> Array:
        if hasattr(self, "table_"):
            return self.table_.sums(self.encoded_._last_importances)
        return self._last_importances

    def _notes(self) -> dict[int, str]:
        if hasattr(self, "table_"):
            return self._notes_by_input()
        untested = np.flatnonzero(np.isnan(self.pvalues_))
        notes = {int(j): "not tested" for j in untested} | self._unit_notes
        left_out = getattr(self, "left_out_", {})  # older files lack it
        notes |= {int(self.units_[name][0]): LEFT_OUT for name in left_out}
        return with_missing(notes, self.missing_)

    def result(self, feature: int | str) -> HRTResult:
        """The test of one column, such as :func:`~sobolev.plotting.plot_null` shows.

        The statistic is the mean over all held-out rows. With the forward scheme the p-value
        combines those of the blocks and of the repetitions, so it is near the tail of the null
        distribution of that mean, not equal to it.

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
        names = feature_names(self)
        j = int(parse_columns([feature], len(names), names, "feature")[0])
        name = names[j]
        if j in self.adjusted_:
            raise ValueError(f"column {name!r} was not tested: the test is adjusted for it.")
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def _check_parameters(self) -> None:
        check_fraction("fdr", self.fdr, low=0.0, high=1.0)
        check_option("statistic", self.statistic, STATISTICS)
        check_option("procedure", self.procedure, PROCEDURES)
        resolve_pvalue(self.pvalue)
        resolve_scheme(self.scheme)
        if self.n_repeats != "auto":
            check_count("n_repeats", self.n_repeats)
        if self.shortlist is not None:
            check_count("shortlist", self.shortlist)

    def _warn_if_hopeless(self, trial: Trial, n_train: int | None) -> None:
        """Monte Carlo p-values have a smallest value; say so before the work."""
        if not trial.pvalue.smallest:
            return
        n_blocks = trial.n_blocks(n_train)
        # All blocks of all orders at their smallest values together.
        score = -ndtri_exp(np.log(trial.pvalue.smallest)) * np.sqrt(n_blocks)
        floor = float(np.exp(log_ndtr(-score)))
        smallest = float(merged_pvalues(np.full((self.n_repeats_, 1), floor))[0])
        n_tests = self._n_counted(trial, trial.list_size)
        if smallest_qvalue(smallest, n_tests, self.procedure) > self.fdr:
            warnings.warn(
                f"the smallest p-value that {trial.pvalue} can give, {smallest:.2g}, is too large "
                f"for a single discovery among {n_tests} tests at fdr={self.fdr:g}; use "
                'pvalue="saddlepoint", more draws or a smaller shortlist.',
                SobolevWarning,
                stacklevel=4,
            )


def _mean(values: list[Array]) -> Array:
    """Mean over the repetitions in which a unit was tested; NaN if there is none."""
    stacked = np.stack(values)
    n_tested = np.isfinite(stacked).sum(axis=0)
    return np.where(n_tested > 0, np.nansum(stacked, axis=0) / np.maximum(n_tested, 1), np.nan)


def hrt_test(
    X: Any,
    y: Any,
    feature: Any,
    *,
    estimator: Any = None,
    conditional: Any = "auto",
    statistic: str = "risk",
    response: str = "auto",
    adjust: Any = None,
    test_size: float = 0.5,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = None,
) -> HRTResult:
    """Test whether one column matters given all others.

    Parameters
    ----------
    X, y
        As in :meth:`HRTSelector.fit`.
    feature : int or str, or a list of them
        The column, by position or name; several columns are replaced together.
    estimator, conditional, statistic, response, adjust, random_state
        As in :class:`HRTSelector`.
    test_size : float, default=0.5
        Share of rows that are held out.
    groups, sample_weight
        As in :meth:`HRTSelector.fit`.

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
    selector = HRTSelector(
        estimator,
        conditional=conditional,
        statistic=statistic,
        response=response,
        adjust=adjust,
        scheme=Split(test_size),
    )
    selector._check_parameters()
    rng = check_generator(random_state)
    asked = list(feature) if isinstance(feature, (list, tuple, np.ndarray)) else [feature]
    kind = allowed_kind(estimator, response)
    data = open_table(X, y, groups=groups, sample_weight=sample_weight, response=kind)
    if data is not None:
        selector, asked = selector.encoded(data), data.columns_of(asked)
        X, y, groups, sample_weight = data.X, data.response, data.groups, data.weights
    rows = selector._read(X, y, groups, sample_weight, None)
    names = feature_names(selector)
    rows = rows.filled(rng, sets_of(selector.feature_groups, names))
    unit = parse_columns(asked, len(names), names, "feature")
    if not unit.size:
        raise ValueError("feature names no column; give one or several.")
    adjusted = parse_columns(selector.adjust, len(names), names, "adjust")
    if np.isin(unit, adjusted).any():
        raise ValueError(f"feature={feature!r} is in adjust; a test is not adjusted for itself.")
    trial = selector._trial(rows, [unit], adjusted)
    order, edges = trial.division(None, rng)
    train, test = np.split(order, edges[:1])
    held_out = Block(trial.first_fit(train, rng), train, test)
    seed = int(rng.integers(2**63))
    inputs, own = (names, unit) if data is None else (data.inputs, data.inputs_of(unit))
    name = " + ".join(inputs[j] for j in own)
    block, *moments = trial.test_one(trial.evaluators(held_out), held_out, 0, seed)
    found, mean, deviation = moments
    pvalue = 1.0 if block is None else trial.pvalue.combined([block])
    if trial.pvalue.looks_twice and pvalue <= NOT_SMALL:
        whole = trial.complete_rows(np.asarray(held_out.critic.feature_importances_, dtype=float))
        again = trial.with_model(CorrectedConditional(trial.conditional, trial.X, whole), whole)
        second = again.test_one(again.evaluators(held_out), held_out, 0, seed)[0]
        pvalue = risen(pvalue, 1.0 if second is None else trial.pvalue.combined([second]))
    return HRTResult(found, pvalue, mean, deviation, name)
