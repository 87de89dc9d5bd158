"""What the tests, knockoffs, plots and the report need from a critic, whatever it is.

:class:`~sobolev.ConvexSIC`, :class:`~sobolev.NeuralSIC` and the Sobolev-penalised predictors keep
the protocol :class:`Critic` themselves, and so may an object of your own. :func:`as_critic` adapts
any scikit-learn regressor or classifier to it; nothing else looks at what kind of estimator it
holds.
"""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from sobolev._typing import Array, Index
from sobolev.targets import resolve_target

# The statistics of a held-out row: the penalised witness, the witness of the paper, or the witness
# of the residual of the response given the other columns.
STATISTICS = ("risk", "witness", "residual")
# Values of a column between which the statistic of a predictor is interpolated linearly.
N_NODES = 24


class Evaluator(Protocol):
    """The statistic on fixed rows, as a function of some of the columns.

    Attributes
    ----------
    slow : bool
        Whether one evaluation takes so long that threads pay off even for few rows.
    """

    slow: bool

    def at(self, columns: Index, values: Array) -> Array:
        """The statistic of every row with the columns replaced by each of the values.

        ``values`` has shape (Q, len(columns)); the result has shape (n, Q).
        """

    def each(self, columns: Index, nodes: Array) -> Array:
        """The statistic of every row with the columns replaced by the row's own nodes.

        ``nodes`` has shape (n, B, len(columns)); the result has shape (n, B).
        """

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Where to evaluate between two values, and how to interpolate.

        The rule is "chebyshev" or "piecewise" (linear).
        """

    def residual(self, predicted: Array) -> Evaluator:
        """The same rows with the statistic (psi(y) - predicted)' h(x), for f = h(x)' psi(y).

        ``predicted`` has shape (n, k). Only ``statistic="residual"`` of the test needs it.
        """

    def predicting(self) -> Evaluator | None:
        """The same rows with the predicted number, up to a constant, in place of the statistic.

        None if the critic predicts no number. Only survival times need it.
        """


class Critic(Protocol):
    """A critic: fitted to rows, it ranks the columns and judges rows.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        Importances of the columns, after a fit.
    independent_refits : bool
        Whether refits may run side by side in threads: each runs on one core, and none draws
        random numbers that another one needs.
    """

    feature_importances_: Array
    independent_refits: bool

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> Any:
        """Fit to rows that were checked at the door; returns the fitted critic.

        ``weights`` are probabilities of the rows.
        """

    def for_testing(self) -> Any:
        """The critic as the tests fit it again and again: perhaps smaller, never worse at tests."""

    def for_more_rows(self, before: int, after: int) -> Any:
        """A copy for a fit to ``after`` rows, where this critic was for ``before`` rows."""

    def reads_labels(self, y: Any) -> bool:
        """Whether the critic takes y as labels, not as numbers."""

    def witness(self, X: Any, y: Any) -> Array:
        """The critic f(x, y) of each row."""

    def risk(self, X: Any, y: Any) -> Array:
        """The penalised witness of each row; for predictors minus the loss."""

    def evaluator(self, X: Array, y: Any, statistic: str) -> Evaluator:
        """The statistic of checked rows as a function of some of the columns."""

    def predict_without(self, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
        """Encoded responses (m, k) of new rows, predicted without some of the columns.

        X and y are the rows that the critic was fitted to. Only ``statistic="residual"`` of the
        test needs it.
        """


class CriticMixin:
    """Parts of :class:`Critic` that estimators with a penalty ``lam`` share."""

    lam_: float
    independent_refits: bool = False

    def for_testing(self) -> Any:
        """The estimator itself."""
        return self

    def for_more_rows(self, before: int, after: int) -> Any:
        """A copy for a fit to ``after`` rows, where this critic was for ``before`` rows.

        The sampling noise that ``lam`` holds down falls as the number of rows grows, and ``lam``
        with it.
        """
        found: Any = copy(self)
        found.lam_ = self.lam_ * before / after
        return found.set_params(lam=found.lam_)

    def reads_labels(self, y: Any) -> bool:
        """Whether the critic takes y as labels, not as numbers."""
        if hasattr(self, "target"):
            return resolve_target(self.target).fit(y).classes_ is not None
        return bool(is_classifier(self))


def allowed_kind(estimator: Any, kind: str) -> str:
    """How to read the response of a critic that reads numbers only, or labels only.

    Parameters
    ----------
    estimator : estimator or None
        A critic or predictor; None reads anything.
    kind : str
        As in :func:`~sobolev.responses.read_response`.

    Returns
    -------
    str
        The kind; "number" or "classes" if it was "auto" and the estimator allows no other.
    """
    own = _own_kind(estimator)
    if own is None or kind in ("auto", own):
        return own or kind
    if (own == "classes") != (kind == "classes"):
        raise ValueError(
            f"{type(estimator).__name__} reads {'labels' if own == 'classes' else 'numbers'}, "
            f"which response={kind!r} is not; use another estimator or response."
        )
    return kind


def _own_kind(estimator: Any) -> str | None:
    """What an estimator reads by its nature or by its parameter ``target``; None: anything."""
    model = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if hasattr(model, "target"):
        encoder = getattr(model, "encoder_", None) if model is not estimator else None
        if encoder is not None and encoder.n_outputs_ == 1:  # frozen: it has read its response
            return "number" if encoder.classes_ is None else "classes"
        target_type = resolve_target(model.target).target_type
        return {"regression": "number", "classification": "classes"}.get(target_type)
    if not hasattr(model, "__sklearn_tags__"):  # None, or a critic of your own
        return None
    if is_classifier(model):
        return "classes"
    return "number" if is_regressor(model) else None


def told_type(estimator: Any) -> Any:
    """A copy that takes floats as numbers and all else as labels, if it would guess otherwise."""
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "target"):
        return estimator
    encoder = resolve_target(estimator.target)
    if encoder.target_type != "auto":
        return estimator
    is_short = isinstance(estimator.target, str)
    told = "typed" if is_short else encoder.set_params(target_type="typed")
    return clone(estimator).set_params(target=told)


def told_covariates(estimator: Any, columns: Index) -> Any:
    """A copy that is adjusted for the columns, if it has a parameter ``adjust`` that is None."""
    if not columns.size or isinstance(estimator, FrozenEstimator):
        return estimator
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if parameters.get("adjust", columns) is not None:
        return estimator
    return clone(estimator).set_params(adjust=columns.tolist())


def as_critic(estimator: Any) -> Any:
    """The estimator itself if it keeps the protocol, otherwise an adapter around it."""
    if isinstance(estimator, FrozenEstimator):
        return FrozenCritic(estimator)
    return estimator if hasattr(estimator, "evaluator") else PredictorCritic(estimator)


def unwrapped(critic: Any) -> Any:
    """The estimator behind an adapter."""
    return critic.estimator if isinstance(critic, (PredictorCritic, FrozenCritic)) else critic


class PredictorCritic:
    """Any scikit-learn regressor (minus the squared error) or classifier (log-likelihood).

    Parameters
    ----------
    estimator : estimator
        With ``predict`` or, for classifiers, ``predict_proba``; a pipeline ends in one.
    """

    independent_refits: ClassVar[bool] = False

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def feature_importances_(self) -> Array:
        """Importances or absolute coefficients of the fitted estimator or pipeline."""
        last = self.estimator[-1] if hasattr(self.estimator, "steps") else self.estimator
        if hasattr(last, "feature_importances_"):
            return np.asarray(last.feature_importances_, dtype=float)
        if hasattr(last, "coef_"):
            return np.abs(np.atleast_2d(last.coef_)).max(axis=0)
        raise TypeError(
            f"{type(last).__name__} has neither feature_importances_ nor coef_, by which columns "
            "are ranked."
        )

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> PredictorCritic:
        """Fit the estimator; weights go to the last step of a pipeline."""
        if weights is None:
            self.estimator.fit(X, y)
            return self
        last = self.estimator[-1] if hasattr(self.estimator, "steps") else self.estimator
        if not has_fit_parameter(last, "sample_weight"):
            raise ValueError(
                f"{type(last).__name__} takes no sample_weight; fit without weights, or use an "
                "estimator that takes them."
            )
        name = "sample_weight"
        if hasattr(self.estimator, "steps"):
            name = f"{self.estimator.steps[-1][0]}__sample_weight"
        self.estimator.fit(X, y, **{name: weights * weights.size})
        return self

    def for_testing(self) -> PredictorCritic:
        """The estimator itself."""
        return self

    def for_more_rows(self, before: int, after: int) -> PredictorCritic:
        """A copy to be fitted again: predictors choose their own penalties."""
        return PredictorCritic(copy(self.estimator))

    def reads_labels(self, y: Any) -> bool:
        """Whether the estimator is a classifier."""
        return bool(is_classifier(self.estimator))

    def witness(self, X: Any, y: Any) -> Array:
        """The same as :meth:`risk`: a predictor has its loss only."""
        return self.risk(X, y)

    def risk(self, X: Any, y: Any) -> Array:
        """Minus the squared error, or the log-likelihood, of each row."""
        rows = np.asarray(X, dtype=float)
        return self.evaluator(rows, y, "risk").each(np.array([0]), rows[:, None, :1])[:, 0]

    def evaluator(self, X: Array, y: Any, statistic: str) -> PredictorEvaluator:
        """The statistic of checked rows as a function of some of the columns."""
        return PredictorEvaluator(self.estimator, X, y)

    def predict_without(self, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
        """Predictions, or probabilities, by a copy that was fitted without the columns."""
        fresh = clone(self.estimator).fit(np.delete(X, columns, axis=1), y)
        predict = fresh.predict_proba if is_classifier(fresh) else fresh.predict
        found: Array = np.asarray(predict(np.delete(X_new, columns, axis=1)), dtype=float)
        return found.reshape(X_new.shape[0], -1)


class FrozenCritic:
    """A fitted estimator in :class:`~sklearn.frozen.FrozenEstimator`: it is never fitted again."""

    independent_refits: ClassVar[bool] = False

    def __init__(self, estimator: FrozenEstimator) -> None:
        self.estimator = estimator
        self.critic = as_critic(estimator.estimator)

    @property
    def feature_importances_(self) -> Array:
        """Importances of the fitted estimator."""
        return np.asarray(self.critic.feature_importances_, dtype=float)

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> FrozenCritic:
        """Do nothing."""
        return self

    def for_testing(self) -> FrozenCritic:
        """The same critic."""
        return self

    def for_more_rows(self, before: int, after: int) -> FrozenCritic:
        """The same critic."""
        return self

    def reads_labels(self, y: Any) -> bool:
        """Whether the critic takes y as labels, not as numbers."""
        return bool(self.critic.reads_labels(y))

    def witness(self, X: Any, y: Any) -> Array:
        """The critic of each row."""
        return np.asarray(self.critic.witness(X, y))

    def risk(self, X: Any, y: Any) -> Array:
        """The risk of each row."""
        return np.asarray(self.critic.risk(X, y))

    def evaluator(self, X: Array, y: Any, statistic: str) -> Any:
        """The statistic of checked rows as a function of some of the columns."""
        return self.critic.evaluator(X, y, statistic)

    def predict_without(self, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
        """Not possible: a frozen estimator is not fitted again."""
        raise ValueError(
            'statistic="residual" fits the estimator again without each column, which a '
            'FrozenEstimator forbids; use statistic="risk".'
        )


class PredictorEvaluator:
    """Minus the squared error of a regressor, or the log-likelihood of a classifier."""

    slow: ClassVar[bool] = True

    def __init__(self, estimator: Any, X: Array, y: Any) -> None:
        check_is_fitted(estimator)
        self.estimator, self.X = estimator, X
        self.names = getattr(estimator, "feature_names_in_", None)
        self.codes: Index | None = None
        if is_classifier(estimator):
            if not hasattr(estimator, "predict_proba"):
                raise TypeError(
                    f"{type(estimator).__name__} has no predict_proba, which the test needs."
                )
            labels = np.asarray(y).ravel()
            unseen = np.setdiff1d(labels, estimator.classes_)
            if unseen.size:
                raise ValueError(
                    f"label {unseen[0]!r} is among the held-out rows, but no row that "
                    f"{type(estimator).__name__} was fitted to has it."
                )
            self.codes = np.searchsorted(estimator.classes_, labels)
        elif not hasattr(estimator, "predict"):
            raise TypeError(
                f"{type(estimator).__name__} cannot be tested: it has neither a critic nor predict."
            )
        self.y = np.asarray(y).reshape(X.shape[0], -1)
        self.residuals: Array | None = None

    def residual(self, predicted: Array) -> PredictorEvaluator:
        """See :class:`Evaluator`."""
        found = copy(self)
        y = self.y if self.codes is None else np.eye(predicted.shape[1])[self.codes]
        found.residuals = y.astype(float) - predicted
        return found

    def predicting(self) -> PredictorEvaluator | None:
        """See :class:`Evaluator`."""
        if self.codes is not None or self.y.shape[1] > 1:
            return None
        found = copy(self)
        found.residuals = np.ones_like(self.y, dtype=float)
        return found

    def nodes(self, column: int, low: float, high: float) -> tuple[Array, str]:
        """Quantiles of the column, where the data are, and both ends."""
        return quantile_nodes(self.X[:, column], low, high, N_NODES)

    def at(self, columns: Index, values: Array) -> Array:
        """See :class:`Evaluator`."""
        return self._copies(columns, values[:, None])

    def each(self, columns: Index, nodes: Array) -> Array:
        """See :class:`Evaluator`."""
        return self._copies(columns, nodes.transpose(1, 0, 2))

    def _copies(self, columns: Index, values: Array) -> Array:
        """The statistic of one copy of the rows for each entry of values (Q, n or 1, c)."""
        n, Q = self.X.shape[0], values.shape[0]
        stacked = np.tile(self.X.astype(float, copy=False), (Q, 1))
        stacked.reshape(Q, n, -1)[:, :, columns] = values
        rows = stacked if self.names is None else pd.DataFrame(stacked, columns=self.names)
        if self.residuals is not None:
            predict = self.estimator.predict if self.codes is None else self.estimator.predict_proba
            h = np.asarray(predict(rows), dtype=float).reshape(Q, n, -1)
            return np.einsum("qnk,nk->nq", h, self.residuals)
        if self.codes is not None:
            p = np.asarray(self.estimator.predict_proba(rows)).reshape(Q, n, -1)
            chosen = p[:, np.arange(n), self.codes]
            return np.log(np.maximum(chosen, 1e-12)).T
        predicted = np.asarray(self.estimator.predict(rows)).reshape(Q, n, -1)
        found: Array = -((predicted - self.y) ** 2).sum(axis=2).T
        return found


def quantile_nodes(x: Array, low: float, high: float, n: int) -> tuple[Array, str]:
    """Nodes for linear interpolation: quantiles of the values, and both ends."""
    inner = np.quantile(x, np.linspace(0, 1, n))
    return np.unique(np.concatenate([[low, high], inner])), "piecewise"
