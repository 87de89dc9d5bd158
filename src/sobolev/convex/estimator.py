"""ConvexSIC: the kernel form of the Sobolev Independence Criterion as a scikit-learn selector."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sobolev._parameters import check_count, check_number, check_option
from sobolev._progress import Progress
from sobolev._random import RandomState, check_generator
from sobolev._sample import (
    Folds,
    Sample,
    choose_lam,
    merge_equal_rows,
    report_constant,
    spread,
    training_rows,
    varying_groups,
)
from sobolev._standardize import Standardizer
from sobolev._typing import Array
from sobolev.convex.chunked import ChunkedFitMixin
from sobolev.convex.cross_validation import cross_validate
from sobolev.convex.feature_maps import (
    FourierMap,
    LandmarkMap,
    LinearMap,
    MapSpec,
    resolve_feature_map,
)
from sobolev.convex.fitting import (
    AUTO_ROUNDS,
    LAMS,
    MEASURES,
    REFERENCE_LAM,
    RELAXED_LAMS,
    Fit,
    Settings,
    blas_threads,
    fit_critic,
    row_risk,
)
from sobolev.convex.screening import KEPT, WIDE, Screening
from sobolev.convex.solvers import SOLVERS, JointSolution, Penalties, decomposition
from sobolev.convex.streaming import Stream
from sobolev.criterion import Explanation, Groups
from sobolev.exceptions import ConvergenceWarning
from sobolev.selection import SICSelectorMixin
from sobolev.streaming import open_source
from sobolev.summary import SummaryMixin
from sobolev.targets import TargetEncoder
from sobolev.validation import plain_target, validate_rows

# Up to this many rows equal ones are looked for (landmark maps: always) and merged.
MERGE_ROWS = 5000


class ConvexSIC(SummaryMixin, ChunkedFitMixin, SICSelectorMixin, BaseEstimator):
    r"""Feature selection by convex SIC: a kernel critic and importances that sum to one.

    Finds the critic f that best tells the joint law of (x, y) from the product of the marginals,

    .. math::

        \mathrm{SIC} = \sup_f\ E_{p_{xy}} f - E_{p_x p_y} f
          - \frac{\lambda}{2} \Big(\sum_j \sqrt{E |\partial_j f|^2}\Big)^2
          - \frac{\rho}{2} E f^2 - \frac{\tau}{2} \|f\|^2 ,

    a convex problem for :math:`f(x, y) = \phi(x)^\top U \psi(y)`. The importance of feature j is
    its share of the gradient penalty.

    Parameters
    ----------
    lam : float, "auto" or "relaxed", default="auto"
        Weight of the sparsity-inducing gradient penalty. "auto" chooses it by cross-validated risk.
        "relaxed" does so for critics that are refitted, at a smaller lam, to the importances of
        each lam: it judges the columns that a lam picks, not how much it shrinks the critic, and
        chooses larger values where many columns matter a little.
    rho : float, default=1.0
        Weight of E f². At 1 the risk is half the explained variance.
    tau : float, default=1e-4
        Weight of the squared norm of f in its function space.
    epsilon : float or sequence of float, default=1e-12
        Perturbation that keeps importances positive. A decreasing sequence is a continuation
        (Theorem 2): each solution starts the next.
    feature_map : {"auto", "landmark", "fourier", "linear", "polynomial"} or object, default="auto"
        The map phi. "auto" takes landmarks (kernel functions at the rows) beside a linear block up
        to 5,000 rows and Fourier features beside it beyond. An object with ``values(X)`` and
        ``derivative(X, j)`` on standardised columns is a map of your own.
    n_components : int or None, default=None
        The most landmarks (None: 1,000) or the number of Fourier features (None: 1,024).
    recursions : int or "auto", default="auto"
        Rounds of the recursive metric: the kernel is rescaled by the importances and refitted. 1 is
        the paper; "auto" goes on until the importances settle, ten rounds at most.
    solver : {"alternating", "bcd"}, default="alternating"
        Algorithm 1 or Algorithm 2 of the paper.
    measure : {"product", "permuted", "mixture", "joint"}, default="product"
        The measure of the penalties. "product" is exact; "permuted" is the paper's estimator with
        one permuted copy of the response.
    groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    select_targets : bool, default=False
        Also weigh the columns of a multi-output y (``target_importances_``).
    target_type : {"auto", "regression", "classification"}, default="auto"
        What y is. "auto" takes text, booleans and integers of at most 20 values as labels.
    target_basis : {"standard", "normal_scores", "polynomial"}, default="standard"
        The encoding of a numeric y.
    target_degree : int, default=3
        Degree of the polynomial encoding.
    n_features_to_select : int, float or None, default=None
        Select so many features, or this fraction.
    threshold : float or None, default=None
        Select features with a larger importance. By default those above the mean, 1/d.
    cv : int or splitter or iterable, default=5
        Folds for choosing lam. An int deals rows out along the sorted response. Of a splitter
        the test rows are used; all other rows train.
    max_iter : int, default=100
        The most iterations of the solver in the last round.
    tol : float, default=1e-3
        Stop when the importances move by less, in total variation.
    screen : int, None or "auto", default="auto"
        Fit on so many columns that may matter instead of all; those that the optimum would not
        leave out join (``screening_``). "auto" begins with 2,000 if there are more than 5,000.
        None fits all at once; so does every fit that reads more than 5,000 rows in chunks.
    precision : {"double", "single"}, default="double"
        "single" forms Fourier features and the products of a chunk of rows in single precision and
        keeps the rows of a screened fit so; sums and solves are always double.
    warm_start : bool, default=False
        Start from the importances of the last fit.
    chunk_rows : int or None, default=None
        Rows held at a time when X is read in chunks. None: as many as take 32 MiB.
    round_rows : int or None, default=None
        When X is read in chunks, run the rounds of the metric before the last on so many of its
        rows, held in memory. None: each round reads all rows.
    random_state : int, Generator, RandomState or None, default=None
        Used for Fourier frequencies, for landmarks beyond 1,000 rows and for
        ``measure="permuted"``.
    n_jobs : int or None, default=None
        Threads for the folds, or for the chunks; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every iteration.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        eta, of sum one; zero for constant columns.
    group_importances_ : array of shape (n_groups,)
        eta of each group, if ``groups`` is given; their names are in ``group_names_``.
    target_importances_ : array of shape (n_outputs,)
        If ``select_targets``.
    support_ : array of bool, shape (d,)
        The selected features.
    sic_ : float
        The criterion, half the mean difference.
    decomposition_ : Decomposition
        The three terms of the corollary and each feature's part.
    lam_ : float
        The weight used.
    lam_risks_ : array of shape (n_folds, n_lams) or None
        Held-out risk along ``lam_path_`` if lam was chosen; with "relaxed", of the refits.
    n_iter_, n_rounds_ : int
        Iterations of the last round and rounds.
    n_passes_ : int
        How often the data were read, if in chunks.
    objective_curve_ : array
        The objective along the last round.
    screening_ : Screening or None
        The columns that the critic was fitted on, if not all, and the check of the others.
    classes_ : array
        The labels, if y was a single column of labels.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    sic_path : importances and risk along lam.
    sobolev.sic_test : test of independence.

    Notes
    -----
    Columns are standardised inside, so rescaling or shifting a column changes nothing. Duplicated
    columns share their importance equally. With landmarks and linear maps the result depends
    neither on a seed (up to 1,000 rows) nor on the order of rows or columns. Importances rank
    features; they carry no error guarantee by themselves.

    References
    ----------
    Y. Mroueh, T. Sercu, M. Rigotti, I. Padhi, C. dos Santos (2019). Sobolev Independence
    Criterion. Advances in Neural Information Processing Systems 32.

    Examples
    --------
    >>> from sobolev import ConvexSIC
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=300, n_features=12, random_state=0)
    >>> sic = ConvexSIC(n_features_to_select=6).fit(data.data, data.target)
    >>> sic.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5])
    >>> round(float(sic.feature_importances_.sum()), 6)
    1.0
    """

    def __init__(
        self,
        *,
        lam: float | str = "auto",
        rho: float = 1.0,
        tau: float = 1e-4,
        epsilon: float | Sequence[float] = 1e-12,
        feature_map: Any = "auto",
        n_components: int | None = None,
        recursions: int | str = "auto",
        solver: str = "alternating",
        measure: str = "product",
        feature_groups: Any = None,
        select_targets: bool = False,
        target_type: str = "auto",
        target_basis: str = "standard",
        target_degree: int = 3,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        cv: Any = 5,
        max_iter: int = 100,
        tol: float = 1e-3,
        screen: int | str | None = "auto",
        precision: str = "double",
        warm_start: bool = False,
        chunk_rows: int | None = None,
        round_rows: int | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.lam = lam
        self.rho = rho
        self.tau = tau
        self.epsilon = epsilon
        self.feature_map = feature_map
        self.n_components = n_components
        self.recursions = recursions
        self.solver = solver
        self.measure = measure
        self.feature_groups = feature_groups
        self.select_targets = select_targets
        self.target_type = target_type
        self.target_basis = target_basis
        self.target_degree = target_degree
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.screen = screen
        self.precision = precision
        self.warm_start = warm_start
        self.chunk_rows = chunk_rows
        self.round_rows = round_rows
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ConvexSIC:
        """Fit the critic and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d), or data that are read in chunks
            Numeric columns without missing values. Read in chunks are: the path of a Parquet,
            Feather or text table, a folder or a pattern of such files; a PyArrow dataset; a
            ``numpy.memmap``; a Dask array or dataframe; and chunks of your own, a list of
            ``(X, y)`` or ``(X, y, weight)`` or a function that returns an iterator of them.
        y : array-like of shape (n,) or (n, q)
            Numbers or labels. The name of a column, or a list of names, if X is a table on disk;
            None if X is chunks.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights; an integer weight is the same as repeating the row. The name of
            a column if X is a table on disk.

        Returns
        -------
        self

        Notes
        -----
        Up to 5,000 rows that are read in chunks are put together and fitted as if in memory.
        Beyond, the map must be "fourier" ("auto" is) or "linear" and the measure "product"; the
        data are read once for means, scales and a sample, and once for the moments of each round
        (``n_passes_``). ``recursions=1`` or ``round_rows`` keep the passes few.
        """
        self._check_parameters()
        self._forget()
        source = open_source(X, y, sample_weight, self.chunk_rows)
        if source is not None:
            return self._fit_source(source)
        sample, settings, folds = self._prepare(X, y, sample_weight)
        self._fit_sample(sample, settings, folds)
        return self

    def _forget(self) -> None:
        """What an earlier fit left and this one may not set."""
        for name in (
            "classes_",
            "group_importances_",
            "group_names_",
            "target_importances_",
            "n_passes_",
            "_partial",
        ):
            self.__dict__.pop(name, None)

    def witness(self, X: Any, y: Any) -> Array:
        """The critic f(x, y) for each row: high where the pair looks dependent.

        Returns
        -------
        array of shape (n,)
        """
        h, psi = self._pairs(X, y)
        return np.sum(h * psi, axis=1)

    def risk(self, X: Any, y: Any) -> Array:
        """The penalised witness f(x, y) - rho/2 E_ỹ f(x, ỹ)² for each row.

        Its mean on new rows is the held-out criterion; with ``rho=1`` and one response it is half
        the reduction of the squared error.

        Returns
        -------
        array of shape (n,)
        """
        h, psi = self._pairs(X, y)
        return row_risk(h, psi, self.rho)

    def evaluator(self, X: Array, y: Any, statistic: str) -> Any:
        """The statistic of checked rows as a function of some of the columns."""
        from sobolev.inference.tables import make_evaluator

        return make_evaluator(self, X, y, statistic)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean risk, the held-out criterion."""
        return float(np.average(self.risk(X, y), weights=sample_weight))

    def explain(self, X: Any, y: Any) -> Explanation:
        """Contributions of the features to the witness of each row, which add up to it.

        Gradients are integrated along the way from the mean row to x; ``base`` is the witness of
        the mean row with the row's own response.

        Returns
        -------
        Explanation
        """
        found = self.critic_.explain(*self._rows(X, y))
        return found.among(self.standardizer_.varying)

    def _rows(self, X: Any, y: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "feature_importances_")
        X = validate_rows(self, X, reset=False)
        psi = self.encoder_.transform(plain_target(y))
        if psi.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {psi.shape[0]}.")
        return self.standardizer_.transform(X), psi

    def _pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        x, psi = self._rows(X, y)
        return self.critic_(x), psi

    def _check_parameters(self) -> None:
        if isinstance(self.lam, str):
            if self.lam not in ("auto", "relaxed"):
                raise ValueError(
                    f'lam={self.lam!r} is unknown; use a positive number, "auto" or "relaxed".'
                )
        else:
            check_number("lam", self.lam, positive=True)
        check_number("rho", self.rho)
        check_number("tau", self.tau, positive=True)
        check_number("tol", self.tol)
        epsilons = np.atleast_1d(self.epsilon)
        for value in epsilons:
            check_number("epsilon", value, positive=True)
        if epsilons.size == 0 or np.any(np.diff(epsilons) >= 0):
            raise ValueError(
                f"epsilon={self.epsilon!r} must be a number or a decreasing sequence of numbers."
            )
        check_option("solver", self.solver, SOLVERS)
        check_option("measure", self.measure, MEASURES)
        check_option("precision", self.precision, ("double", "single"))
        check_count("max_iter", self.max_iter)
        if self.n_components is not None:
            check_count("n_components", self.n_components)
        if self.recursions != "auto":
            check_count("recursions", self.recursions)
        if self.screen is not None and self.screen != "auto":
            check_count("screen", self.screen)
        for name in ("chunk_rows", "round_rows"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        if self.select_targets and (self.measure != "product" or self.solver != "alternating"):
            raise ValueError(
                'select_targets=True needs measure="product" and solver="alternating".'
            )

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> tuple[Sample, Settings, Folds]:
        """Validate, encode and standardise; learns everything that does not need the solver."""
        names = getattr(X, "columns", None)
        X, y, p, folds = training_rows(self, X, y, sample_weight)
        self.encoder_ = TargetEncoder(self.target_type, self.target_basis, self.target_degree)
        psi = self.encoder_.fit(y, p).transform(y)
        single = self.precision == "single"
        if self.encoder_.classes_ is not None:
            self.classes_ = self.encoder_.classes_
        spec = resolve_feature_map(self.feature_map, self.n_components, X.shape[0], single)
        few = isinstance(spec, LandmarkMap) or X.shape[0] <= MERGE_ROWS
        if few and self.measure != "permuted" and isinstance(folds, int):
            X, psi, p = merge_equal_rows(X, psi, p)
        self.standardizer_ = Standardizer.fit(X, p)
        varying = self.standardizer_.varying
        report_constant(varying, names, stacklevel=4)
        groups = varying_groups(self.feature_groups, varying, names)
        settings = self._settings(spec, groups)
        settings = replace(settings, screen=self._screened(settings, int(varying.sum())))
        rows = self.standardizer_.transform(X)
        if single and settings.screen is not None:
            rows = rows.astype(np.float32)
        return Sample(rows, psi, p), settings, folds

    def _screened(self, settings: Settings, d: int) -> int | None:
        """How many of d columns to begin with; None for all."""
        plain = (
            isinstance(settings.map, (LandmarkMap, FourierMap, LinearMap))
            and settings.groups is None
            and settings.measure == "product"
            and settings.output_weights is None
        )
        if self.screen is None or (self.screen == "auto" and (d <= WIDE or not plain)):
            return None
        if not plain:
            raise ValueError(
                f"screen={self.screen!r} needs a landmark, Fourier or linear map, "
                'measure="product", no groups and select_targets=False; use screen=None.'
            )
        keep = KEPT if self.screen == "auto" else int(self.screen)
        return keep if keep < d else None

    def _settings(self, spec: MapSpec, groups: Groups | None, *, joint: bool = True) -> Settings:
        joint = joint and self.select_targets
        return Settings(
            map=spec,
            rho=float(self.rho),
            tau=float(self.tau),
            epsilons=tuple(float(e) for e in np.atleast_1d(self.epsilon)),
            groups=groups,
            solver=self.solver,
            measure=self.measure,
            rounds=AUTO_ROUNDS if self.recursions == "auto" else int(self.recursions),
            max_iter=int(self.max_iter),
            tol=float(self.tol),
            seed=int(check_generator(self.random_state).integers(2**32)),
            output_weights=self.encoder_.output_weights if joint else None,
        )

    def _fit_sample(self, sample: Sample | Stream, settings: Settings, folds: Folds) -> None:
        # A warm start needs the same columns and groups; anything else starts afresh.
        start = getattr(self, "_state", None) if self.warm_start else None
        d = int(self.standardizer_.varying.sum())
        size = d if settings.groups is None else settings.groups.n_groups
        if start is not None and (start[0].size != d or start[1].size != size):
            start = None
        n_rows = sample.n_rows if isinstance(sample, Stream) else sample.p.size
        with blas_threads(n_rows), Progress(self.verbose) as progress:
            self.lam_path_, self.lam_risks_ = None, None
            lam = self.lam
            if isinstance(lam, str):
                progress.stage("choosing lam")
                self.lam_path_ = np.array(LAMS)
                refits = RELAXED_LAMS if lam == "relaxed" else ()
                self.lam_risks_ = cross_validate(sample, settings, LAMS, folds, self.n_jobs, refits)
                lam = choose_lam(self.lam_risks_, LAMS, REFERENCE_LAM)
            progress.stage(f"fitting at lam={lam:g}")

            def report(number: int, iteration: int, objective: float) -> None:
                progress.step(f"round {number}, iteration {iteration}, SIC {-objective:.5f}")

            fit = fit_critic(sample, settings, float(lam), start, report)
        self.lam_ = float(lam)
        self._store(fit, settings)

    def _store(self, fit: Fit, settings: Settings) -> None:
        self.screening_ = fit.screening
        if fit.screening is not None:
            self._report_missed(fit.screening)
            self.standardizer_ = self.standardizer_.keep(fit.screening.columns)
        solution, varying = fit.solution, self.standardizer_.varying
        penalties = Penalties(self.lam_, settings.rho, settings.tau, settings.epsilons[-1])
        self.critic_ = fit.critic()
        self._state = (fit.metric, solution.eta)
        terms = decomposition(fit.forms, solution, penalties, settings.groups)
        self.decomposition_ = replace(terms, per_feature=spread(terms.per_feature, varying))
        eta = solution.eta
        if settings.groups is not None:
            self.group_importances_, self.group_names_ = eta, settings.groups.names
            eta = settings.groups.feature_importances(eta, solution.squared_gradients)
        self.feature_importances_ = spread(eta, varying)
        if isinstance(solution, JointSolution):
            self.target_importances_ = solution.zeta
        self.sic_ = 0.5 * self.decomposition_.mean_difference
        self.n_iter_ = max(1, solution.n_iter)
        self.n_rounds_ = fit.n_rounds
        self.objective_curve_ = solution.objective_curve
        if not solution.converged:
            warnings.warn(
                f"the importances still move by {solution.residual:.2g} after "
                f"max_iter={self.max_iter} iterations (tol={self.tol:g}); raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _report_missed(self, screening: Screening) -> None:
        if screening.n_missed:
            warnings.warn(
                f"{screening.n_missed} columns should have joined the {screening.columns.size} "
                f"of the critic when {screening.n_checks} checks were done; raise `screen` "
                f"(now {self.screen!r}) or `lam` ({self.lam_:g}).",
                ConvergenceWarning,
                stacklevel=5,
            )
