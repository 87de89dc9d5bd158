"""ConvexSIC: the kernel form of the Sobolev Independence Criterion as a scikit-learn selector."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from sobolev._random import RandomState
from sobolev._standardize import Standardizer
from sobolev._typing import Array, Index
from sobolev.convex.choosing import BestMap, Contest
from sobolev.convex.evaluation import ConvexEvaluator
from sobolev.convex.fitting import TAU, Critic, row_risk
from sobolev.convex.refit import predict_without
from sobolev.convex.relevance import all_relevant
from sobolev.convex.solvers import resolve_solver
from sobolev.convex.training import check_parameters, forget, judge, prepare, train
from sobolev.criterion import Explanation
from sobolev.critic import CriticMixin
from sobolev.selection import SICSelectorMixin
from sobolev.targets import TargetEncoder
from sobolev.validation import plain_target, validate_rows, validate_training

# Landmarks of a critic that is refitted for a test: with more, fits take longer and find no more.
TEST_LANDMARKS = 300


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexSIC(CriticMixin, SICSelectorMixin, BaseEstimator):
    r"""Feature selection by convex SIC: a kernel critic and importances that sum to one.

    Finds the critic f that best distinguishes the joint distribution of (x, y) from the product of
    the marginal distributions,

    .. math::

        \mathrm{SIC} = \sup_f\ E_{p_{xy}} f - E_{p_x p_y} f
          - \frac{\lambda}{2} \Big(\sum_j \sqrt{E |\partial_j f|^2}\Big)^2
          - \frac{\rho}{2} E f^2 - \frac{\tau}{2} \|f\|^2 ,

    a convex problem for :math:`f(x, y) = \phi(x)^\top U \psi(y)`. The importance of feature j is
    its share of the gradient penalty.

    Parameters
    ----------
    lam : float, "auto" or "relaxed", default="auto"
        Weight of the gradient penalty, which makes the critic sparse. "auto" chooses it by
        cross-validated risk. "relaxed" refits the critic, at a smaller lam, to the importances of
        each lam before it is judged: each lam is judged by the columns that it picks, not by how
        much it shrinks the critic. It chooses larger values where many columns have small effects.
    rho : float, default=1.0
        Weight of E f². At 1 the risk is half the explained variance.
    tau : float or "auto", default="auto"
        Weight of the squared norm of f in its function space. "auto" is 1e-4. If there are more
        than twice as many columns as rows, it is the number of columns, so that a column counts by
        what it says by itself, unless 1e-4 predicts held-out rows clearly better; see the notes.
    feature_map : str or object, default="auto"
        The map phi: "auto", "landmark", "fourier", "linear", "polynomial", "parts" or "best", or an
        object with its own parameters, for example ``LandmarkMap(n_components=200)``. "auto" uses
        landmarks (kernel functions at the rows) and a linear block up to 5,000 rows, and Fourier
        features and a linear block for more. "parts" has splines of single columns and products
        of pairs. "best" is a sum of critics with linear, parts and landmark maps, without those of
        clearly smaller held-out risk. An object with ``values(X)`` and ``derivative(X, j)`` on
        standardised columns is a map of your own.
    solver : {"alternating", "bcd"}, Alternating or BlockCoordinateDescent, default="alternating"
        Algorithm 1 or Algorithm 2 of the paper, by name or as an object with tolerance, number of
        iterations and rounds, for example ``Alternating(rounds=1)``.
    measure : {"product", "permuted", "mixture", "joint"}, default="product"
        Measure of the penalties. "product" is exact; "permuted" is the paper's estimator with
        one permuted copy of the response.
    target : {"auto", "regression", "classification"} or TargetEncoder, default="auto"
        How to read y. "auto" reads text, booleans and integers with at most 20 distinct values as
        labels, everything else as numbers. A :class:`~sobolev.targets.TargetEncoder` has further
        encodings; with ``select=True`` the columns of y get importances, too.
    feature_groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the critic. The gradient penalty
        leaves them out, and they have no importance. A group with such a column is left out as a
        whole.
    n_features_to_select : int, float or None, default=None
        Number of features to select, or the fraction of all features.
    threshold : float or None, default=None
        Select features with a larger importance. By default those above the mean, 1/d.
    cv : int, splitter or iterable, default=5
        Folds for choosing lam. An int deals rows out along the sorted response. Of a splitter
        only the test rows are used; all other rows train.
    random_state : int, Generator, RandomState or None, default=None
        Used for Fourier frequencies, for landmarks of more than 1,000 rows and for
        ``measure="permuted"``.
    n_jobs : int or None, default=None
        Number of threads for the folds; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 prints every iteration.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        eta, of sum one; zero for constant columns and for those of ``adjust``.
    group_importances_ : array of shape (n_groups,)
        eta of each group, if ``feature_groups`` is given; their names are in ``group_names_``.
    target_importances_ : array of shape (n_outputs,)
        Importances of the columns of y, for ``TargetEncoder(select=True)``.
    support_ : array of bool, shape (d,)
        The selected features.
    sic_ : float
        The criterion, half the mean difference.
    decomposition_ : Decomposition
        The three terms of the corollary and the part of each feature.
    lam_, tau_ : float
        The values of lam and tau that were used.
    feature_map_ : object
        The feature map that was used.
    lam_risks_ : array of shape (n_folds, n_lams) or None
        Held-out risk along ``lam_path_`` if lam was chosen; with "relaxed", of the refits; with
        ``tau="auto"``, of critics with tau=1e-4.
    n_iter_, n_rounds_ : int
        Number of iterations of the last round and number of rounds.
    objective_curve_ : array
        Objective along the last round.
    screening_ : Screening or None
        The columns that the critic was fitted on, if not all, and the check of the others.
    classes_ : array
        The labels, if y was a single column of labels.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    sic_path : importances and risk along lam.
    sobolev.streaming.fit_stream : fit to rows that do not fit in memory.
    sobolev.sic_test : test of independence.

    Notes
    -----
    Columns are standardised inside, so rescaling or shifting a column changes nothing. Duplicated
    columns share their importance equally. With landmarks and linear maps the result depends
    neither on a seed (up to 1,000 rows) nor on the order of rows or columns. Importances rank
    features; by themselves they do not control the number of false discoveries.

    With ``tau="auto"`` and more than twice as many columns as rows, lam is chosen at tau=1e-4. At
    this lam, tau=1e-4 is then kept if its critic has a larger squared correlation with held-out
    responses than that of tau=d, by more than two standard errors over the folds. With tau=d the
    critic is shrunk so much that columns hardly adjust for each other: columns that repeat each
    other all come first, and ``sic_`` and ``score`` are small. Give ``tau=1e-4`` for a critic that
    predicts, or for what each column adds to the others. "auto" is 1e-4 with ``adjust``, with
    ``feature_map="best"``, with a number of candidate columns (``Alternating(screen=500)``), with
    Fourier features, in ``sic_path``, in the refits of tests and for rows that are read in chunks.

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

    lam: float | str = "auto"
    rho: float = 1.0
    tau: float | str = "auto"
    feature_map: Any = "auto"
    solver: Any = "alternating"
    measure: str = "product"
    target: Any = "auto"
    feature_groups: Any = None
    adjust: Any = None
    n_features_to_select: int | float | None = None
    threshold: float | None = None
    cv: Any = 5
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    encoder_: TargetEncoder = field(init=False)
    standardizer_: Standardizer = field(init=False)
    critic_: Critic = field(init=False)
    _contest: Contest = field(init=False)
    _n_before: int = field(init=False)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ConvexSIC:
        """Fit the critic and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Numeric columns without missing values. For files, Dask collections and other rows that
            do not fit in memory use :func:`sobolev.streaming.fit_stream`.
        y : array-like of shape (n,) or (n, q)
            Numbers or labels.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights; an integer weight is the same as repeating the row.

        Returns
        -------
        self
        """
        if isinstance(X, (str, os.PathLike)):
            raise TypeError(
                f"X is a path, {os.fspath(X)!r}; read the table first, or use "
                "sobolev.streaming.fit_stream(estimator, X, y) to read it in chunks."
            )
        return self.fit_validated(*validate_training(self, X, y, sample_weight))

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> ConvexSIC:
        """Fit to rows that were checked before.

        Parameters
        ----------
        X : array of float, shape (n, d)
            Numeric columns without missing values.
        y : array or DataFrame
            Responses.
        weights : array of shape (n,), optional
            Probabilities of the rows; equal by default.

        Returns
        -------
        self
        """
        check_parameters(self)
        p = np.full(X.shape[0], 1.0 / X.shape[0]) if weights is None else weights
        contest, n_before = (self.__dict__.pop(name, None) for name in ("_contest", "_n_before"))
        seen = contest is not None and n_before is not None
        contest = judge(self, contest, X, y, p, n_before) if seen else None
        forget(self)
        self.n_features_in_ = X.shape[1]
        train(self, *prepare(self, X, y, p), contest)
        return self

    @property
    def independent_refits(self) -> bool:  # type: ignore[override]
        """Whether refits may run in threads side by side: none depends on another."""
        warm_start = resolve_solver(self.solver).warm_start
        is_chosen = isinstance(self.feature_map, BestMap) or self.feature_map == "best"
        return not (warm_start or is_chosen) and isinstance(self.random_state, Integral)

    def for_more_rows(self, before: int, after: int) -> ConvexSIC:
        """A copy for a fit to ``after`` rows, of which this critic has seen the first ``before``.

        If there are several feature maps to choose from, the new rows help to judge them.
        """
        found: ConvexSIC = super().for_more_rows(before, after)
        found._n_before = before
        return found

    def for_testing(self) -> ConvexSIC:
        """An unfitted copy for the refits of a test.

        ``feature_map="auto"`` then is the best of a linear, an additive and a kernel map, with at
        most 300 landmarks or Fourier features. Columns and responses with heavy tails enter as
        normal scores: which columns matter is a question that increasing maps do not change.
        ``tau="auto"`` is 1e-4: a test asks what a column adds to the others.
        """
        critic: ConvexSIC = clone(self)
        if critic.tau == "auto":
            critic.tau = TAU
        if critic.feature_map == "auto":
            critic.feature_map = BestMap(TEST_LANDMARKS, scores=True)
        if isinstance(critic.target, str):
            critic.target = TargetEncoder(critic.target, basis="auto")
        return critic

    def witness(self, X: Any, y: Any) -> Array:
        """The critic f(x, y) of each row: high where the pair looks dependent.

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._rows(X, y)
        return np.sum(self.critic_(x) * psi, axis=1)

    def risk(self, X: Any, y: Any) -> Array:
        """The penalised witness f(x, y) - rho/2 E_ỹ f(x, ỹ)² of each row.

        Its mean on new rows is the held-out criterion; with ``rho=1`` and one response it is half
        the reduction of the squared error.

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._rows(X, y)
        return row_risk(self.critic_(x), psi, self.rho)

    def risk_validated(self, X: Array, y: Any) -> Array:
        """As :meth:`risk`, for rows that were checked before.

        Returns
        -------
        array of shape (n,)
        """
        psi = self.encoder_.transform(y)
        return row_risk(self.critic_(self.standardizer_.transform(X)), psi, self.rho)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean risk, the held-out criterion."""
        return float(np.average(self.risk(X, y), weights=sample_weight))

    def explain(self, X: Any, y: Any) -> Explanation:
        """Contributions of the features to the witness of each row, which add up to it.

        Gradients are integrated along the line from the mean row to x; ``base`` is the witness of
        the mean row with the response of the row itself.

        Returns
        -------
        Explanation
        """
        found = self.critic_.explain(*self._rows(X, y))
        return found.among(self.standardizer_.varying)

    def relevance(self, X: Any) -> Array:
        """Importances of all relevant columns, redundant ones included; they sum to one.

        ``feature_importances_`` are sparse: of several columns with the same information, one is
        enough. Here a column counts by its correlation with the directions in which the critic
        varies, so columns that repeat what others say come before noise, too. A critic that
        shrinks more, ``ConvexSIC(tau=1, lam=0.1)``, finds these directions best. No error rate is
        controlled.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The rows of the fit.

        Returns
        -------
        array of shape (d,)

        Examples
        --------
        >>> import numpy as np
        >>> from sobolev import ConvexSIC
        >>> rng = np.random.default_rng(0)
        >>> factor = rng.standard_normal((300, 1))
        >>> X = np.hstack([factor + 0.5 * rng.standard_normal((300, 3)), rng.random((300, 5))])
        >>> sic = ConvexSIC(tau=1, lam=0.1).fit(X, factor[:, 0] ** 3)
        >>> sorted(np.argsort(-sic.relevance(X))[:3].tolist())
        [0, 1, 2]
        """
        check_is_fitted(self, "feature_importances_")
        return all_relevant(self, validate_rows(self, X, reset=False))

    def evaluator(self, X: Array, y: Any, statistic: str) -> ConvexEvaluator:
        """The statistic of checked rows as a function of some of the columns.

        Parameters
        ----------
        X, y
            Rows that were checked before.
        statistic : {"risk", "witness"}
            The statistic of a row.

        Returns
        -------
        Evaluator
        """
        check_is_fitted(self, "feature_importances_")
        return ConvexEvaluator(self, X, y, statistic)

    def predict_without(self, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
        """Encoded responses of new rows, predicted by a critic of the other columns only."""
        return predict_without(self, columns, X, y, X_new)

    def _rows(self, X: Any, y: Any) -> tuple[Array, Array]:
        """Standardised rows and the encoded response."""
        check_is_fitted(self, "feature_importances_")
        X = validate_rows(self, X, reset=False)
        psi = self.encoder_.transform(plain_target(y))
        if psi.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {psi.shape[0]}.")
        return self.standardizer_.transform(X), psi
