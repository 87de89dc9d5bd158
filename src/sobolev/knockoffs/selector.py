"""The knockoff selector (Algorithm 5): feature selection at a false discovery rate."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sobolev._memory import check_memory
from sobolev._parameters import check_count, check_fraction
from sobolev._progress import Progress
from sobolev._random import RandomState, spawn
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.completing import completions, sets_of
from sobolev.conditionals.features import Feature, covariates, features
from sobolev.critic import allowed_kind
from sobolev.exceptions import SobolevWarning
from sobolev.inference.knockoff_filter import (
    check_offset,
    ebh,
    ebh_qvalues,
    knockoff_evalues,
    knockoff_qvalues,
    knockoff_threshold,
)
from sobolev.knockoffs.choice import fitted_sampler
from sobolev.knockoffs.diagnostics import (
    KnockoffDiagnostics,
    compare,
    missed_dependence,
    warn_if_misfit,
)
from sobolev.knockoffs.fixed import FixedXKnockoffs
from sobolev.knockoffs.statistics import Evaluation, check_statistic, evaluate
from sobolev.responses import read_training
from sobolev.skill import cross_validated_skill
from sobolev.summary import SummaryMixin, with_missing
from sobolev.tables.fitting import TableMixin
from sobolev.tables.opening import open_table
from sobolev.tables.repeats import without_copies
from sobolev.validation import feature_names, validate_rows

# Samplers that alternatives() offers.
ALTERNATIVES = ("auto", "matched", "copula", "sequential", "gaussian")


@dataclass(eq=False, repr=False)
class KnockoffSelector(TableMixin, SummaryMixin, SelectorMixin, BaseEstimator):
    """Select features with knockoffs at a controlled false discovery rate (Algorithm 5).

    Knockoffs are synthetic copies of the columns. They are drawn without y, but their dependence
    on each other and on the other columns is that of the columns. The estimator is fitted to
    columns and knockoffs together. A column is selected if it is more important than its knockoff
    by a margin that chance rarely produces.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Estimator with ``feature_importances_`` or ``coef_``; None is
        :class:`~sobolev.ConvexSIC`. It is fitted to standardised columns and knockoffs, each pair
        in random order.
    sampler : str or object, default="auto"
        Sampler of the knockoffs: "gaussian", "matched", "copula", "sequential", "lowrank", "fixed",
        or an object with ``fit(X)`` and ``sample(random_state)``. A fitted sampler in
        :class:`~sklearn.frozen.FrozenEstimator` is used as it is. "auto" is "gaussian" if its
        knockoffs are a fair match for columns that do not matter, otherwise "matched". It is
        decided from X alone, with planted responses; see Notes.
    fdr : float, default=0.1
        Level of the false discovery rate.
    offset : {0, 1}, default=1
        Offset in the threshold. With one draw, 1 is knockoff+, which controls the false discovery
        rate; 0 is the filter of the SIC paper, which has more power but only controls the modified
        rate E[V / (R + 1 / fdr)], where V of R selected columns are false. With several draws both
        control the false discovery rate: 0 gives lower thresholds, which selects more columns if
        few draws reach a threshold with 1, but otherwise needs more agreement between draws.
    n_draws : int, default=1
        Number of draws of knockoffs. With more than one, the e-values of all draws, each at level
        ``fdr / 2``, are averaged, and e-BH selects from the averages. If effects are strong, the
        selection then depends less on the seed.
    statistic : {"difference", "signed_max", "lasso_path", "swap"}, default="difference"
        Signed statistic W of each column, see :func:`~sobolev.knockoffs.knockoff_statistics`.
    response : str, default="auto"
        How y is read: "number", "count", "grades", "classes" or "survival", see
        :func:`~sobolev.responses.read_response`; ``response_.sentence`` says what was done.
    feature_groups : mapping or sequence of sequences, optional
        Disjoint groups of columns, by name or position, that are selected together.
    copies : {"join", "keep"}, default="join"
        What to do with columns that cannot be told apart: copies, functions of another column, full
        sets of one-hot columns, and linear combinations. "join" selects them together, see
        ``units_``; with "keep", one may be selected in place of another.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the model, without knockoffs,
        and are not selected, such as age, sex and batch. The others are selected given them. A
        column stands for its whole group or set of copies. An estimator with a parameter ``adjust``
        that is None, such as :class:`~sobolev.ConvexSIC`, and the lasso path do not penalise them;
        to any other predictor they are columns as all others.
    diagnose : bool, default=True
        Whether to compare columns and knockoffs, and warn if the false discovery rate is in doubt.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator for the knockoffs and for parameters ``random_state`` of the estimator
        that are None.
    n_jobs : int or None, default=None
        Number of processes for the draws; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 also prints a line for each draw.

    Attributes
    ----------
    statistics_ : array of shape (p,)
        Statistics W, averaged over draws; the columns of a group have the same W. NaN for
        covariates, as are q-values and e-values.
    draws_ : array of shape (n_draws, p)
        Statistics W of each draw.
    threshold_ : float or array of shape (n_draws,)
        Smallest W that is selected, infinite if nothing is; an array if ``n_draws > 1``.
    qvalues_ : array of shape (p,)
        Smallest false discovery rate at which each column is selected. With several draws, the
        thresholds at level ``fdr / 2`` are kept fixed.
    evalues_ : array of shape (p,)
        E-values, averaged over draws.
    support_ : array of bool, shape (p,)
        Mask of the selected columns.
    adjusted_ : array of int
        The columns that were adjusted for.
    feature_importances_ : array of shape (p,)
        Importances of the columns (not of the knockoffs), averaged over draws; zero for covariates.
    missing_ : array of shape (p,)
        Share of missing cells.
    units_ : dict of str to array of int
        Positions of the columns that are selected together, by the name of the unit. Each column is
        in exactly one unit.
    response_ : Response
        The response as it was read: ``kind``, ``values`` and ``sentence``.
    skill_ : Skill or None
        How well held-out rows are predicted from columns and knockoffs, if the estimator is a
        ConvexSIC that chose ``lam`` by cross-validation; see :class:`sobolev.skill.Skill`.
    sampler_ : object
        The fitted sampler.
    estimator_ : estimator or None
        The estimator of the last draw, fitted to the varying columns and their knockoffs with each
        pair in random order, and to the covariates after them.
    diagnostics_ : KnockoffDiagnostics or None
        Diagnostics of the first draw, without the classifier; None for fixed-X knockoffs, which
        need no model of the columns.

    See Also
    --------
    sobolev.inference.HRTSelector : Tests with p-values, for any number of columns.

    Notes
    -----
    With offset 1, nothing can be selected from fewer than ``1 / fdr`` columns, or ``2 / fdr``
    columns with several draws; with offset 0, several draws need ``1 / fdr`` columns. With groups,
    both the columns here and the false discovery rate are counted in groups. The guarantees hold if
    ``fdr``, ``offset`` and ``n_draws`` are chosen before any result is seen.

    ``sampler="auto"`` plants responses on a few columns of X and counts how often another column,
    which does not matter, has a larger correlation with the response than its knockoff. The share
    must be about 1/2. Gaussian knockoffs are used if it is at most 0.55 and no column has few
    values; otherwise matched knockoffs, with the largest penalty for which it is at most 0.55.

    Fixed-X knockoffs are meant for ``statistic="lasso_path"`` and normal noise.

    Algorithm 5 of the SIC paper is
    ``KnockoffSelector(NeuralSIC(), sampler="gaussian", offset=0)``. The paper selects the columns
    with W above the threshold; here, as in the references, a W equal to the threshold
    is also selected.

    References
    ----------
    E. Candès, Y. Fan, L. Janson, J. Lv (2018). Panning for gold: model-X knockoffs for high
    dimensional controlled variable selection. J. R. Stat. Soc. B 80.

    Z. Ren, R. F. Barber (2024). Derandomised knockoffs: leveraging e-values for false discovery
    rate control. J. R. Stat. Soc. B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import KnockoffSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 30))
    >>> y = X[:, :10].sum(axis=1) + rng.standard_normal(300)
    >>> knockoffs = KnockoffSelector(statistic="lasso_path", random_state=0).fit(X, y)
    >>> bool(knockoffs.support_[:10].all())
    True
    """

    estimator: Any = None
    _: KW_ONLY
    sampler: Any = "auto"
    fdr: float = 0.1
    offset: int = 1
    n_draws: int = 1
    statistic: str = "difference"
    response: str = "auto"
    feature_groups: Any = None
    copies: str = "join"
    adjust: Any = None
    diagnose: bool = True
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    _by_column: ClassVar = {
        "statistics_": 0.0,
        "draws_": 0.0,
        "qvalues_": 1.0,
        "evalues_": 0.0,
        "support_": False,
        "missing_": 0.0,
    }
    _as_encoded = ("estimator_", "sampler_", "diagnostics_", "threshold_", "response_", "skill_")

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None
    ) -> KnockoffSelector:
        """Draw knockoffs, fit the estimator and select columns.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix, AnnData or Prepared, of shape (n, p)
            Columns to select from; a DataFrame is taken as it is, as in
            :meth:`HRTSelector.fit <sobolev.HRTSelector.fit>`. A sparse matrix must fit in 1 GiB as
            a dense table. Missing cells (NaN) are drawn given
            the other columns and y, anew for each draw of knockoffs. Copies of earlier rows are
            left out, as there.
        y : array-like, str or tuple of str
            The response: one or several columns, a structured array of survival times, or the
            names of its columns in the DataFrame X, from which they are taken out. A prepared
            table has its own.
        groups : None
            Knockoffs need independent rows, so subjects with several rows are refused.
        sample_weight : array-like of shape (n,) or str, optional
            How much each row counts in the fit of the estimator, or the name of that column in X;
            only ratios matter. Weights must not depend on the column that is tested.

        Returns
        -------
        self
            The fitted selector.
        """
        self._check_parameters()
        _refuse_groups(groups)
        self._forget_table()
        kind = allowed_kind(self.estimator, self.response)
        data = open_table(X, y, sample_weight=sample_weight, response=kind)
        if data is not None:
            return self._fit_table(data)
        return self._fit_numbers(X, y, sample_weight=sample_weight)

    def _fit_numbers(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> KnockoffSelector:
        """Fit to a table that is used as it is."""
        _refuse_groups(groups)
        kind = allowed_kind(self.estimator, self.response)
        X, self.response_, weights, _ = read_training(self, X, y, kind, None, sample_weight)
        check_memory(*X.shape, pairs=True)
        if not isinstance(self.sampler, FrozenEstimator):
            X, self.response_, weights = without_copies(X, self.response_, weights, stacklevel=4)
        y = self.response_.values
        self.missing_ = np.isnan(X).mean(axis=0)
        generators = spawn(self.random_state, self.n_draws)
        names = feature_names(self)
        tables = _filled(X, y, sets_of(self.feature_groups, names), generators)
        X = tables[0]
        units = features(X, self.feature_groups, names, self.copies, self.adjust)
        self.units_ = {unit.name: unit.columns for unit in units}
        self._unit_notes = {int(j): unit.note for unit in units for j in unit.columns if unit.note}
        labels = _labels(units, len(names))
        self.adjusted_ = covariates(units)
        tested = _others(self.adjusted_, len(names))
        self._warn_if_too_few(labels[tested][np.ptp(X[:, tested], axis=0) > 0])
        self.sampler_ = fitted_sampler(self.sampler, X, labels, names)
        constant = np.flatnonzero(~getattr(self.sampler_, "varying_", np.ones(0, dtype=bool)))
        self._unit_notes |= dict.fromkeys(constant.tolist(), "constant")
        self._warn_if_unsuited()
        with Progress(self.verbose) as progress:
            progress.stage("fitting columns and knockoffs", self.n_draws)
            given = None if sample_weight is None else weights
            runs = self._run(tables, y, given, labels, generators, progress)
        self._select(np.stack([run.W for run, _ in runs]), labels, tested)
        self.feature_importances_ = np.zeros(len(names))
        self.feature_importances_[tested] = np.mean([r.importances[0] for r, _ in runs], axis=0)
        self.estimator_ = runs[-1][0].model
        self.skill_ = cross_validated_skill(self.estimator_)
        self.diagnostics_ = runs[0][1]
        if self.diagnostics_ is not None:
            knockoffs = np.asarray(self.sampler_.sample(np.random.default_rng(0)), dtype=float)
            missed = missed_dependence(X, knockoffs, labels, np.flatnonzero(self.support_))
            self.diagnostics_ = replace(self.diagnostics_, names=tuple(names), missed=missed)
        self.warn(stacklevel=4)
        return self

    def warn(self, stacklevel: int = 2) -> None:
        """Warn if the false discovery rate is in doubt, as ``fit`` does.

        Parameters
        ----------
        stacklevel : int, default=2
            As in :func:`warnings.warn`.
        """
        if self.diagnostics_ is not None:
            warn_if_misfit(self.diagnostics_, stacklevel=stacklevel)

    def for_table(self, X: Any, *, groups: Any = None) -> KnockoffSelector:
        """A copy whose sampler is already fitted to X, for many responses on the same table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, p)
            The columns that the copy will be fitted to.
        groups : None
            As in :meth:`fit`.

        Returns
        -------
        KnockoffSelector
            Not fitted; its sampler is frozen, also in clones.
        """
        self._check_parameters()
        _refuse_groups(groups)
        reader = BaseEstimator()
        X = validate_rows(reader, X, reset=True, gaps=True)
        if np.isnan(X).any():  # the draws depend on the response
            return clone(self)
        names = feature_names(reader)
        units = features(X, self.feature_groups, names, self.copies, self.adjust)
        fitted = fitted_sampler(self.sampler, X, _labels(units, len(names)), names)
        return clone(self).set_params(sampler=FrozenEstimator(fitted))

    def alternatives(self) -> list[tuple[str, KnockoffSelector]]:
        """Selectors with other samplers, to try if the audit of this one fails.

        Returns
        -------
        list of (str, KnockoffSelector)
            A label and a selector that is not fitted, the most promising first.
        """
        used = self.sampler if isinstance(self.sampler, str) else None
        return [
            (f'sampler="{name}"', clone(self).set_params(sampler=name))
            for name in ALTERNATIVES
            if name != used
        ]

    def _check_parameters(self) -> None:
        check_fraction("fdr", self.fdr, low=0.0, high=1.0)
        check_count("n_draws", self.n_draws)
        check_statistic(self.statistic, self.estimator)
        check_offset(self.offset)

    @property
    def _level(self) -> float:
        """Level of the threshold of each draw."""
        return self.fdr if self.n_draws == 1 else self.fdr / 2

    def _warn_if_too_few(self, labels: Index) -> None:
        """Warn before the fit if there are too few columns to select any."""
        count = np.unique(labels).size
        is_grouped = self.feature_groups is not None or count < labels.size
        what = "groups" if is_grouped else "columns"
        # e-BH needs 1 / fdr selected columns, for any thresholds of the draws.
        least = self._level if self.offset == 1 else self.fdr
        if (self.offset == 0 and self.n_draws == 1) or least * count * (1 + 1e-12) >= 1:
            return
        fewer = ", use n_draws=1" if self.n_draws > 1 and self.offset == 1 else ""
        warnings.warn(
            f"nothing can be selected: {count} {what} vary, but level {self.fdr:g} with "
            f"{self.n_draws} draws and offset {self.offset} needs {np.ceil(1 / least):.0f} or "
            f"more; raise fdr{fewer}, or use the holdout randomization test.",
            SobolevWarning,
            stacklevel=4,
        )

    def _warn_if_unsuited(self) -> None:
        if isinstance(self.sampler_, FixedXKnockoffs) and self.statistic != "lasso_path":
            warnings.warn(
                "fixed-X knockoffs control the false discovery rate only if the statistic depends "
                'on the Gram matrix alone; use statistic="lasso_path", or another sampler.',
                SobolevWarning,
                stacklevel=4,
            )

    def _samplers(self, tables: list[Array], labels: Index) -> list[Any]:
        """The sampler of each draw: the fitted one, or one fitted to the table of the draw."""
        names = feature_names(self)
        return [
            self.sampler_ if X is tables[0] else fitted_sampler(self.sampler, X, labels, names)
            for X in tables
        ]

    def _run(
        self,
        tables: list[Array],
        y: Any,
        weights: Array | None,
        labels: Index,
        generators: list[np.random.Generator],
        progress: Progress,
    ) -> list[tuple[Evaluation, Any]]:
        """Statistics of every draw, diagnostics of the first and the model of the last."""
        diagnose = self.diagnose and not isinstance(self.sampler_, FixedXKnockoffs)
        settings = (y, weights, self.estimator, self.statistic, labels, self.adjusted_)
        samplers = self._samplers(tables, labels)
        tasks = [
            delayed(_draw)(
                samplers[k], tables[k], *settings, rng, diagnose and k == 0, k == self.n_draws - 1
            )
            for k, rng in enumerate(generators)
        ]
        n_jobs = self.n_jobs if self.n_draws > 1 else None
        runs = []
        for number, run in enumerate(Parallel(n_jobs=n_jobs, return_as="generator")(tasks), 1):
            runs.append(run)
            progress.step(f"draw {number} of {self.n_draws}", number)
        return runs

    def _select(self, W: Array, labels: Index, tested: Index) -> None:
        """Select columns from the statistics of the groups in each draw (Alg. 5, output)."""
        columns, own = np.full(labels.size, W.shape[1]), np.unique(labels[tested])
        columns[tested] = np.searchsorted(own, labels[tested])

        def spread(per_group: Array) -> Array:
            """From groups to columns; covariates have none."""
            nothing = np.full((*per_group.shape[:-1], 1), np.nan)
            return np.concatenate([per_group, nothing], axis=-1)[..., columns]

        # Alg. 5, threshold: the smallest t with (offset + #{W <= -t}) / #{W >= t} <= level.
        thresholds = np.array([knockoff_threshold(w, self._level, self.offset) for w in W])
        e = np.mean([knockoff_evalues(w, self._level, self.offset) for w in W], axis=0)
        if self.n_draws == 1:
            self.threshold_: Any = float(thresholds[0])
            support, q = W[0] >= thresholds[0], knockoff_qvalues(W[0], self.offset)
        else:
            self.threshold_ = thresholds
            support, q = ebh(e, self.fdr), ebh_qvalues(e)
        self.draws_, self.evalues_, self.qvalues_ = spread(W), spread(e), spread(q)
        self.statistics_ = self.draws_.mean(axis=0)
        self.support_ = spread(support.astype(float)) == 1

    def _evidence(self) -> dict[str, Array]:
        return {"W": self.statistics_, "qvalue": self.qvalues_}

    def _notes(self) -> dict[int, str]:
        if hasattr(self, "table_"):
            return self._notes_by_input()
        notes = dict(self._unit_notes)
        doubtful = [] if self.diagnostics_ is None else self.diagnostics_.doubtful
        for j in doubtful:
            notes[j] = "; ".join([*filter(None, [notes.get(j)]), "the knockoff does not match"])
        return with_missing(notes, self.missing_)

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _filled(
    X: Array, y: Any, sets: list[Index], generators: list[np.random.Generator]
) -> list[Array]:
    """The table of each draw of knockoffs, with other draws in the place of missing cells."""
    if not np.isnan(X).any():
        return [X] * len(generators)
    return completions(X, y, [rng.spawn(1)[0] for rng in generators], sets=sets)


def _refuse_groups(groups: Any) -> None:
    if groups is not None:
        raise ValueError(
            "knockoffs need independent rows, which rows of one subject are not: leave groups out "
            "and keep one row of each subject, or use HRTSelector (--method hrt)."
        )


def _others(columns: Index, n_columns: int) -> Index:
    """The columns that are not among the given ones."""
    return np.setdiff1d(np.arange(n_columns), columns)


def _labels(units: list[Feature], n_columns: int) -> Index:
    """Number of the unit of each column."""
    labels = np.empty(n_columns, dtype=np.intp)
    for number, unit in enumerate(units):
        labels[unit.columns] = number
    return labels


def _compared(X: Array, X_knockoff: Array, labels: Index, adjusted: Index) -> KnockoffDiagnostics:
    """Diagnostics of a draw, in which each covariate is its own knockoff."""
    X_knockoff = X_knockoff.copy()
    X_knockoff[:, adjusted] = X[:, adjusted]
    found = compare(X, X_knockoff, labels)
    found.correlations[adjusted] = np.nan
    return found


def _draw(
    sampler: Any,
    X: Array,
    y: Any,
    weights: Array | None,
    estimator: Any,
    statistic: str,
    labels: Index,
    adjusted: Index,
    rng: np.random.Generator,
    diagnose: bool,
    keep: bool,
) -> tuple[Evaluation, KnockoffDiagnostics | None]:
    """One draw on one BLAS thread (Alg. 5); models are large, so only the last is kept."""
    with threadpool_limits(1, user_api="blas"):
        X_knockoff = np.asarray(sampler.sample(rng), dtype=float)
        if X_knockoff.shape != X.shape or not np.isfinite(X_knockoff).all():
            raise ValueError(
                f"sampler {type(sampler).__name__} returned knockoffs of shape {X_knockoff.shape} "
                f"for X of shape {X.shape}, or values that are not finite."
            )
        tested = _others(adjusted, labels.size)
        own = np.unique(labels[tested], return_inverse=True)[1]
        table = X[:, tested], X_knockoff[:, tested]
        beside = X[:, adjusted] if adjusted.size else None
        found = evaluate(*table, y, estimator, statistic, own, rng, weights, beside)
        diagnostics = _compared(X, X_knockoff, labels, adjusted) if diagnose else None
    return (found if keep else replace(found, model=None)), diagnostics
