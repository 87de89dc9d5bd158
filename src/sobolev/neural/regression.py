"""Predictors with a Sobolev penalty: networks that select features while they learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sobolev._random import RandomState
from sobolev._typing import AnyArray, Array
from sobolev.critic import PredictorCritic, PredictorEvaluator
from sobolev.neural._base import NeuralEstimator
from sobolev.neural.critics import resolve_network
from sobolev.neural.fitting import Design, network_values
from sobolev.neural.objectives import CrossEntropy, Objective, SquaredError
from sobolev.neural.optimizer import Optimizer
from sobolev.targets import TargetEncoder


@dataclass(eq=False, repr=False, kw_only=True)
class _SobolevPredictor(NeuralEstimator):
    """What the regressor and the classifier share."""

    _objective: ClassVar[Objective]
    _target_type: ClassVar[str]

    network: Any = None
    lam: float | str = 0.02
    optimizer: Optimizer | None = None
    boosting: Any = 1
    feature_groups: Any = None
    adjust: Any = None
    n_features_to_select: int | float | None = None
    threshold: float | None = None
    cv: Any = 5
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    def witness(self, X: Any, y: Any) -> Array:
        """The same as :meth:`risk`: a predictor has its loss only."""
        return self.risk(X, y)

    def risk(self, X: Any, y: Any) -> Array:
        """Minus the squared error, or the log-likelihood, of each row.

        Returns
        -------
        array of shape (n,)
        """
        return PredictorCritic(self).risk(X, y)

    def evaluator(self, X: Array, y: Any, statistic: str) -> PredictorEvaluator:
        """The statistic of checked rows as a function of some of the columns."""
        return PredictorEvaluator(self, X, y)

    def _encode(self, y: Any, p: Array) -> Array:
        self.encoder_ = TargetEncoder(self._target_type).fit(y, p)
        return self.encoder_.standardized(y)

    def _designs(self, n_targets: int) -> list[Design]:
        return [Design(resolve_network(self.network), self._objective, n_targets)]

    def _outputs(self, X: Any) -> AnyArray:
        """Outputs of every member, (members, n, k)."""
        x = self._standardized_rows(X)
        values = [network_values(e.network, x, None) for e in self._ensembles]
        return np.concatenate(values).swapaxes(1, 2)


class SobolevRegressor(RegressorMixin, _SobolevPredictor):
    r"""Regression by a network with a Sobolev penalty; it selects features as it learns.

    Minimises

    .. math::

        E |y - h(x)|^2 + \frac{\lambda}{2} \sum_j \frac{E |\partial_j h|^2 + \varepsilon}{\eta_j}

    over the weights and the importances :math:`\eta` on the simplex: the supervised variant of
    the paper.

    Parameters
    ----------
    network : None, DenseNetwork or callable, default=None
        The architecture; None is :class:`~sobolev.neural.DenseNetwork` with two hidden layers of
        100. A callable ``(n_features, n_outputs) -> torch.nn.Module`` makes a module of x of your
        own, which needs PyTorch.
    lam : float or "auto", default=0.02
        Weight of the gradient penalty, for a response in standard units. "auto" chooses it by
        cross-validation.
    optimizer : None or Optimizer, default=None
        How the networks are trained; None is :class:`~sobolev.neural.Optimizer` with its defaults.
    boosting : int or Boosting, default=1
        Number of members for each batch size, or a :class:`~sobolev.neural.Boosting`, which also
        says how importances are averaged.
    feature_groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the network, see
        :class:`~sobolev.ConvexSIC`.
    n_features_to_select : int, float or None, default=None
        Number of features to select, or their fraction.
    threshold : float or None, default=None
        Select features with a larger importance. By default those above the mean, 1/d.
    cv : int or splitter or iterable, default=5
        Folds for ``lam="auto"``, as in :class:`~sobolev.ConvexSIC`.
    random_state : int, Generator, RandomState or None, default=None
        Determines the initial weights, the minibatches and dropout.
    n_jobs : int or None, default=None
        Number of threads for chunks of eight members; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 prints a line every 50 updates.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        Importances eta, which sum to one; zero for constant columns and for those of ``adjust``.
    member_importances_ : array of shape (n_members, d)
        Importances of every member.
    support_ : array of bool, shape (d,)
        Mask of the selected features.
    lam_ : float
        The weight used.
    objective_curve_ : array, one entry for each update
        The loss of each update.

    Examples
    --------
    >>> from sobolev import SobolevRegressor
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=0)
    >>> model = SobolevRegressor(random_state=0).fit(data.data, data.target)
    >>> sorted((-model.feature_importances_).argsort()[:6].tolist())
    [0, 1, 2, 3, 4, 5]
    >>> model.predict(data.data).shape
    (400,)
    """

    _objective = SquaredError()
    _target_type = "regression"

    def predict(self, X: Any) -> Array:
        """The mean prediction of the members, in the units of y.

        Returns
        -------
        array of shape (n,) or (n, q)
        """
        outputs = self._outputs(X).mean(axis=0)
        found = self.encoder_.unstandardized(outputs)
        return found[:, 0] if self._single else found

    def _encode(self, y: Any, p: Array) -> Array:
        self._single = np.ndim(y) == 1
        return super()._encode(y, p)


class SobolevClassifier(ClassifierMixin, _SobolevPredictor):
    r"""Classification by a network with a Sobolev penalty; it selects features as it learns.

    The same as :class:`~sobolev.SobolevRegressor` with the cross-entropy in place of the squared
    error. The penalty is on the derivatives of the scores of the classes.

    Parameters
    ----------
    network : None, DenseNetwork or callable, default=None
        The architecture; None is :class:`~sobolev.neural.DenseNetwork` with two hidden layers of
        100. A callable ``(n_features, n_classes) -> torch.nn.Module`` makes a module of x of your
        own, which needs PyTorch.
    lam : float or "auto", default=0.02
        Weight of the gradient penalty. "auto" chooses it by cross-validation.
    optimizer : None or Optimizer, default=None
        How the networks are trained; None is :class:`~sobolev.neural.Optimizer` with its defaults.
    boosting : int or Boosting, default=1
        Number of members for each batch size, or a :class:`~sobolev.neural.Boosting`, which also
        says how importances are averaged.
    feature_groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the network, see
        :class:`~sobolev.ConvexSIC`.
    n_features_to_select : int, float or None, default=None
        Number of features to select, or their fraction.
    threshold : float or None, default=None
        Select features with a larger importance. By default those above the mean, 1/d.
    cv : int or splitter or iterable, default=5
        Folds for ``lam="auto"``, as in :class:`~sobolev.ConvexSIC`.
    random_state : int, Generator, RandomState or None, default=None
        Determines the initial weights, the minibatches and dropout.
    n_jobs : int or None, default=None
        Number of threads for chunks of eight members; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar, 2 prints a line every 50 updates.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    feature_importances_ : array of shape (d,)
        Importances eta, which sum to one; zero for constant columns and for those of ``adjust``.
    member_importances_ : array of shape (n_members, d)
        Importances of every member.
    support_ : array of bool, shape (d,)
        Mask of the selected features.
    lam_ : float
        The weight used.
    objective_curve_ : array, one entry for each update
        The loss of each update.

    Examples
    --------
    >>> from sobolev import SobolevClassifier
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=0)
    >>> model = SobolevClassifier(random_state=0).fit(data.data, data.target > 0)
    >>> model.predict_proba(data.data).shape
    (400, 2)
    """

    _objective = CrossEntropy()
    _target_type = "classification"

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, averaged over members.

        Returns
        -------
        array of shape (n, n_classes)
        """
        return np.asarray(softmax(self._outputs(X), axis=2).mean(axis=0))

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _encode(self, y: Any, p: Array) -> Array:
        check_classification_targets(y)
        psi = super()._encode(column_or_1d(y, warn=True), p)
        assert self.encoder_.classes_ is not None
        self.classes_ = self.encoder_.classes_
        return psi

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
