"""Predictors with a Sobolev penalty: networks that select features while they learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from sobolev._random import RandomState
from sobolev._typing import AnyArray, Array
from sobolev.neural._base import NeuralEstimator
from sobolev.neural.critics import DenseNetwork
from sobolev.neural.fitting import Design
from sobolev.neural.objectives import CrossEntropy, Objective, SquaredError
from sobolev.targets import TargetEncoder
from sobolev.validation import plain_target


class _SobolevPredictor(NeuralEstimator):
    """What the regressor and the classifier share."""

    def __init__(
        self,
        *,
        network: Any = None,
        lam: float | str = 0.02,
        epsilon: float = 1e-12,
        feature_groups: Any = None,
        n_members: int = 1,
        aggregate: str = "arithmetic",
        recursions: int = 4,
        batch_size: int | Sequence[int] = 100,
        max_iter: int = 1000,
        learning_rate: float = 1e-3,
        betas: tuple[float, float] = (0.5, 0.999),
        weight_decay: float = 1e-4,
        schedule: str = "constant",
        eta_step: float = 0.1,
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        patience: int = 10,
        gradient: str = "auto",
        device: Any = "auto",
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        cv: Any = 5,
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.network = network
        self.lam = lam
        self.epsilon = epsilon
        self.feature_groups = feature_groups
        self.n_members = n_members
        self.aggregate = aggregate
        self.recursions = recursions
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.betas = betas
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.eta_step = eta_step
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.gradient = gradient
        self.device = device
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.cv = cv
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, target_type: str, objective: Objective
    ) -> None:
        self._check_training()
        for name in ("group_importances_", "group_names_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        encoder = TargetEncoder(target_type)
        data = self._prepare(X, y, sample_weight, encoder, whiten=False, stacklevel=5)
        design = Design(self._resolved_network(), objective, data.sample.psi.shape[1])
        start = getattr(self, "_ensembles", None) if self.warm_start else None
        self._store(self._train(data, [design], start), data.groups, self.aggregate)

    def _resolved_network(self) -> Any:
        if self.network is None:
            return DenseNetwork()
        known = isinstance(self.network, type) and hasattr(self.network, "build_network")
        if isinstance(self.network, torch.nn.Module) or known:
            raise TypeError(
                f"network is {self.network!r}; pass a DenseNetwork(), or a callable that returns "
                "a new module, so that members and refits start afresh."
            )
        if hasattr(self.network, "build_network") or callable(self.network):
            return self.network
        raise TypeError(
            "network must be None, a DenseNetwork or a callable that takes (n_features, "
            f"n_outputs) and returns a torch.nn.Module of x; got {self.network!r}."
        )

    def _outputs(self, X: Any) -> AnyArray:
        """Outputs of every member, (members, n, k)."""
        x = self._standardized_rows(X)
        return np.concatenate(self._member_values(x, None)).swapaxes(1, 2)


class SobolevRegressor(RegressorMixin, _SobolevPredictor):
    r"""Regression by a network under a Sobolev penalty; a selector at the same time.

    Minimises

    .. math::

        E |y - h(x)|^2 + \frac{\lambda}{2} \sum_j \frac{E |\partial_j h|^2 + \varepsilon}{\eta_j}

    over the weights and the importances :math:`\eta` on the simplex: the supervised variant of
    the paper.

    Parameters
    ----------
    network : None, DenseNetwork or callable, default=None
        The architecture; None is :class:`~sobolev.neural.DenseNetwork` with two hidden layers of
        100. A callable ``(n_features, n_outputs) -> torch.nn.Module`` brings a module of x.
    lam : float or "auto", default=0.02
        Weight of the gradient penalty, for a response in standard units. "auto" chooses it by
        cross-validation.
    **others
        ``epsilon``, ``groups``, ``n_members``, ``aggregate``, ``recursions``, ``batch_size``,
        ``max_iter``, ``learning_rate``, ``betas``, ``weight_decay``, ``schedule``, ``eta_step``,
        ``early_stopping``, ``validation_fraction``, ``patience``, ``gradient``, ``device``,
        ``n_features_to_select``, ``threshold``, ``cv``, ``warm_start``, ``random_state``,
        ``n_jobs`` and ``verbose`` are those of :class:`~sobolev.NeuralSIC`.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        eta, of sum one; zero for constant columns.
    member_importances_ : array of shape (n_members, d)
        eta of every member.
    support_ : array of bool, shape (d,)
        The selected features.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SobolevRegressor:
        """Train the networks and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Numeric columns without missing values.
        y : array-like of shape (n,) or (n, q)
            Numbers.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights: rows are drawn in proportion to them.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, "regression", SquaredError())
        self._single = plain_target(y).ndim == 1
        return self

    def predict(self, X: Any) -> Array:
        """The mean prediction of the members, in the units of y.

        Returns
        -------
        array of shape (n,) or (n, q)
        """
        outputs = self._outputs(X).mean(axis=0)
        found = self.encoder_.unstandardized(outputs)
        return found[:, 0] if self._single else found


class SobolevClassifier(ClassifierMixin, _SobolevPredictor):
    """Classification by a network under a Sobolev penalty; a selector at the same time.

    As :class:`~sobolev.SobolevRegressor` with the cross-entropy for the squared error; the penalty
    is on the derivatives of the scores of the classes.

    Parameters
    ----------
    **parameters
        Those of :class:`~sobolev.SobolevRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    feature_importances_ : array of shape (d,)
        eta, of sum one; zero for constant columns.
    support_ : array of bool, shape (d,)
        The selected features.

    Examples
    --------
    >>> from sobolev import SobolevClassifier
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=0)
    >>> model = SobolevClassifier(random_state=0).fit(data.data, data.target > 0)
    >>> model.predict_proba(data.data).shape
    (400, 2)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SobolevClassifier:
        """Train the networks and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Numeric columns without missing values.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights: rows are drawn in proportion to them.

        Returns
        -------
        self
        """
        if y is not None:
            y = plain_target(y)
            check_classification_targets(y)
            y = column_or_1d(y, warn=True)
        self._fit(X, y, sample_weight, "classification", CrossEntropy())
        assert self.encoder_.classes_ is not None
        self.classes_ = self.encoder_.classes_
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, averaged over members.

        Returns
        -------
        array of shape (n, n_classes)
        """
        scores = self._outputs(X)
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.asarray((scores / scores.sum(axis=2, keepdims=True)).mean(axis=0))

    def predict(self, X: Any) -> AnyArray:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
