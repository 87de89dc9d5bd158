"""NeuralSIC: the neural form of the Sobolev Independence Criterion as a scikit-learn selector."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from sobolev._parameters import check_number, check_option
from sobolev._random import RandomState
from sobolev._sample import Sample, spread
from sobolev._typing import AnyArray, Array
from sobolev.criterion import Decomposition, Explanation, Groups
from sobolev.neural._base import NeuralEstimator, Training
from sobolev.neural.critics import BilinearCritic, resolve_critic
from sobolev.neural.explanation import explain_witness
from sobolev.neural.fitting import Design, network_values
from sobolev.neural.objectives import ExactSIC, PairedSIC
from sobolev.targets import TargetEncoder
from sobolev.validation import plain_target

MEASURES = {"product": 0.0, "mixture": 0.5, "joint": 1.0}

# The settings of the paper (its appendix on networks; lam and rho from the authors' script, whose
# 0.01 times the sum of f² over 50 rows is rho = 1 here).
PAPER: dict[str, Any] = {
    "critic": "small",
    "lam": 0.01,
    "rho": 1.0,
    "epsilon": 1e-6,
    "recursions": 1,
    "batch_size": 100,
    "max_iter": 4000,
    "learning_rate": 1e-3,
    "betas": (0.5, 0.999),
    "weight_decay": 1e-4,
    "schedule": "constant",
    "eta_step": 0.1,
    "eta_rule": "mirror",
}
PRESETS = {"paper": PAPER}

# Responses that stand for the law of y in the risk of critics without an exact product.
REFERENCE_RESPONSES = 32


class NeuralSIC(NeuralEstimator):
    r"""Feature selection by neural SIC: a network as critic, trained by stochastic descent.

    Trains a critic f to tell the joint law of (x, y) from the product of the marginals,

    .. math::

        \sup_f\ E_{p_{xy}} f - E_{p_x p_y} f
          - \frac{\lambda}{2} \sum_j \frac{E |\partial_j f|^2 + \varepsilon}{\eta_j}
          - \frac{\rho}{2} E f^2 ,

    by Adam on the weights and mirror descent on the importances :math:`\eta` (Algorithm 3 of the
    paper). Several members give Boosted SIC.

    Parameters
    ----------
    critic : str, specification, callable or list of these, default="bilinear"
        "bilinear" is h(x)' psi(y) with the fixed encoding psi of the response, for which
        expectations over the product of the marginals are exact in y; "small" and "big" are the
        critics of the paper. :class:`~sobolev.neural.SmallCritic`,
        :class:`~sobolev.neural.BigCritic` and :class:`~sobolev.neural.BilinearCritic` take widths,
        dropout and slope. A callable ``(n_features, n_targets) -> torch.nn.Module`` brings a module
        of (x, y) of your own. A list boosts over critics.
    lam : float or "auto", default=0.01
        Weight of the sparsity-inducing gradient penalty. "auto" chooses it by cross-validated
        risk, all folds and values trained as one ensemble.
    rho : float, default=1.0
        Weight of E f².
    epsilon : float, default=1e-12
        Perturbation that keeps importances positive.
    measure : {"product", "mixture", "joint"}, default="product"
        The measure of the penalties.
    groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    n_members : int, default=1
        Members for each critic and batch size.
    aggregate : {"arithmetic", "geometric"}, default="arithmetic"
        The mean of the members' importances.
    recursions : int, default=4
        Rounds of the recursive metric: columns are rescaled by their importance and the critic is
        trained afresh. 1 is the paper. Rounds before the last take a quarter of ``max_iter``.
    batch_size : int or list of int, default=100
        Rows of a minibatch. A list boosts over batch sizes.
    max_iter : int, default=1000
        Updates of the last round.
    learning_rate : float, default=1e-3
        Step of Adam.
    betas : tuple of two floats, default=(0.5, 0.999)
        Decay of Adam's moments.
    weight_decay : float, default=1e-4
        Decay of the weights.
    schedule : {"constant", "linear", "cosine"}, default="constant"
        Course of the learning rate.
    eta_step : float, default=0.1
        Step of the mirror descent on the importances.
    eta_rule : {"averaged", "mirror"}, default="averaged"
        "mirror" is the paper: a step along the gradient of the minibatch, and the last eta as
        importances. "averaged" averages the squared gradients over about 100 updates, makes the
        step free of units, and takes the importances of the trained critic on all rows.
    early_stopping : bool, default=False
        Hold out rows (other rows for each member), stop when their risk no longer grows and keep
        the best iterate.
    validation_fraction : float, default=0.2
        Share of held-out rows.
    patience : int, default=10
        Looks at the held-out risk without progress before stopping; there are about 40 looks in
        ``max_iter`` updates.
    preset : None or "paper", default=None
        "paper" replaces every parameter that is left at its default by the setting of the paper:
        small critic, permuted responses, 4,000 updates, one round, the mirror rule.
    gradient : {"auto", "closed", "autograd"}, default="auto"
        How to differentiate the gradient penalty: in closed form (every critic here), or by double
        back-propagation (modules of your own).
    device : str, default="auto"
        "auto" takes CUDA or MPS if there is one. On the CPU numpy does the work.
    target_type, target_basis, target_degree
        The encoding of y, as in :class:`~sobolev.ConvexSIC`.
    n_features_to_select : int, float or None, default=None
        Select so many features, or this fraction.
    threshold : float or None, default=None
        Select features with a larger importance. By default those above the mean, 1/d.
    cv : int or splitter or iterable, default=5
        Folds for ``lam="auto"``, as in :class:`~sobolev.ConvexSIC`.
    warm_start : bool, default=False
        Go on from the last fit: its critics and importances, one round.
    random_state : int, Generator, RandomState or None, default=None
        Decides the initial weights, the minibatches and dropout.
    n_jobs : int or None, default=None
        Threads for chunks of eight members; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar with the current SIC, 2 prints a line every 50 updates.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        eta, of sum one; zero for constant columns.
    member_importances_ : array of shape (n_members, d)
        eta of every member.
    group_importances_, group_names_
        eta of each group, if ``groups`` is given.
    support_ : array of bool, shape (d,)
        The selected features.
    sic_ : float
        The criterion that the critic attains on the training rows, averaged over members.
    decomposition_ : Decomposition
        Its terms and each feature's part.
    lam_ : float
        The weight used; ``lam_path_`` and ``lam_risks_`` if it was chosen.
    n_iter_ : int
        Updates of the last round.
    objective_curve_ : array, one entry for each update
        The loss of each update, averaged over members.
    validation_curve_ : array or None
        Held-out risks (looks, members), if ``early_stopping``; NaN after a member has stopped.
    classes_ : array
        The labels, if y was a single column of labels.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    sobolev.ConvexSIC : the kernel form, convex and without torch.
    sobolev.SobolevRegressor : a regressor with the same penalty.

    Notes
    -----
    Columns are standardised inside. Training runs on one thread, so that the same ``random_state``
    gives the same importances whatever the number of threads; the order of rows does not matter up
    to 5,000 rows. A Generator passed as ``random_state`` moves on.

    References
    ----------
    Y. Mroueh, T. Sercu, M. Rigotti, I. Padhi, C. dos Santos (2019). Sobolev Independence
    Criterion. Advances in Neural Information Processing Systems 32.

    Examples
    --------
    >>> from sobolev import NeuralSIC
    >>> from sobolev.datasets import make_sinexp
    >>> data = make_sinexp(n_samples=400, n_features=12, random_state=0)
    >>> sic = NeuralSIC(n_features_to_select=6, random_state=0).fit(data.data, data.target)
    >>> sic.get_support(indices=True)
    array([0, 1, 2, 3, 4, 5])
    """

    def __init__(
        self,
        *,
        critic: Any = "bilinear",
        lam: float | str = 0.01,
        rho: float = 1.0,
        epsilon: float = 1e-12,
        measure: str = "product",
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
        eta_rule: str = "averaged",
        early_stopping: bool = False,
        validation_fraction: float = 0.2,
        patience: int = 10,
        preset: str | None = None,
        gradient: str = "auto",
        device: Any = "auto",
        target_type: str = "auto",
        target_basis: str = "standard",
        target_degree: int = 3,
        n_features_to_select: int | float | None = None,
        threshold: float | None = None,
        cv: Any = 5,
        warm_start: bool = False,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.critic = critic
        self.lam = lam
        self.rho = rho
        self.epsilon = epsilon
        self.measure = measure
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
        self.eta_rule = eta_rule
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.preset = preset
        self.gradient = gradient
        self.device = device
        self.target_type = target_type
        self.target_basis = target_basis
        self.target_degree = target_degree
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.cv = cv
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NeuralSIC:
        """Train the critics and the importances.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
            Numeric columns without missing values.
        y : array-like of shape (n,) or (n, q)
            Numbers or labels.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights: rows are drawn in proportion to them.

        Returns
        -------
        self
        """
        plan = self._with_preset()
        plan._check_parameters()
        for name in ("classes_", "group_importances_", "group_names_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        encoder = TargetEncoder(self.target_type, self.target_basis, self.target_degree)
        data = self._prepare(X, y, sample_weight, encoder, whiten=True, stacklevel=4)
        if encoder.classes_ is not None:
            self.classes_ = encoder.classes_
        critics = plan.critic if isinstance(plan.critic, (list, tuple)) else [plan.critic]
        if not critics:
            raise ValueError("critic is an empty list; name at least one critic.")
        designs = [plan._design(critic, data.sample.psi.shape[1]) for critic in critics]
        start = getattr(self, "_ensembles", None) if self.warm_start else None
        training = plan._train(data, designs, start, mirror=plan.eta_rule == "mirror")
        self._store(training, data.groups, plan.aggregate)
        self.rho_ = float(plan.rho)
        self.reference_ = _reference(data.sample, training.seed)
        self._store_decomposition(training, data.groups)
        return self

    def witness(self, X: Any, y: Any) -> Array:
        """The critic f(x, y) for each row, averaged over members.

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._pairs(X, y)
        return self._witness(x, psi[None])[0]

    def risk(self, X: Any, y: Any) -> Array:
        """The penalised witness f(x, y) - E_ỹ f(x, ỹ) - rho/2 E_ỹ f(x, ỹ)² for each row.

        Its mean on new rows is the held-out criterion. The expectations are exact for bilinear
        critics, where E_ỹ f(x, ỹ) = 0, and over a few values that stand for the training responses
        otherwise (``reference_``).

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._pairs(X, y)
        if not any(e.network.pairs for e in self._ensembles):
            h = np.mean([v for values in self._member_values(x, None) for v in values], axis=0)
            return np.sum(h * psi.T, axis=0) - 0.5 * self.rho_ * np.sum(h**2, axis=0)
        drawn = np.repeat(self.reference_[:, None], x.shape[0], axis=1)
        f = self._witness(x, np.concatenate([psi[None], drawn]))
        return f[0] - (f[1:] + 0.5 * self.rho_ * f[1:] ** 2).mean(axis=0)

    def evaluator(self, X: Array, y: Any, statistic: str) -> Any:
        """The statistic of checked rows as a function of some of the columns."""
        from sobolev.inference.tables import make_evaluator

        return make_evaluator(self, X, y, statistic)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean risk, the held-out criterion."""
        return float(np.average(self.risk(X, y), weights=sample_weight))

    def explain(self, X: Any, y: Any) -> Explanation:
        """Contributions of the features to the witness of each row, which add up to it.

        Without biases the critic is homogeneous, f = ⟨∂f/∂x, x⟩ + ⟨∂f/∂y, y⟩ (Euler), with x and y
        in standard units: feature j contributes x_j ∂f/∂x_j. What biases add is in ``base``.

        Returns
        -------
        Explanation
        """
        x, psi = self._pairs(X, y)
        found = explain_witness([e.network for e in self._ensembles], x, psi)
        return found.among(self.standardizer_.varying)

    # -- details ---------------------------------------------------------------------------------

    def _with_preset(self) -> NeuralSIC:
        """The estimator, or a shallow copy in which defaults are those of the preset."""
        if self.preset is None:
            return self
        check_option("preset", self.preset, PRESETS)
        default = type(self)().get_params(deep=False)
        plan = copy(self)
        for name, value in PRESETS[self.preset].items():
            if _equal(getattr(self, name), default[name]):
                setattr(plan, name, value)
        return plan

    def _check_parameters(self) -> None:
        self._check_training()
        check_number("rho", self.rho)
        check_option("measure", self.measure, MEASURES)
        check_option("eta_rule", self.eta_rule, ["averaged", "mirror"])

    def _design(self, critic: Any, n_targets: int) -> Design:
        spec = resolve_critic(critic)
        rho, joint = float(self.rho), MEASURES[self.measure]
        if isinstance(spec, BilinearCritic) and not len(spec.target_widths) and joint == 0:
            return Design(spec, ExactSIC(rho), n_targets)
        return Design(spec, PairedSIC(rho, joint))

    def _pairs(self, X: Any, y: Any) -> tuple[Array, Array]:
        x = self._standardized_rows(X)
        psi = self.encoder_.transform(plain_target(y))
        if psi.shape[0] != x.shape[0]:
            raise ValueError(f"X has {x.shape[0]} rows but y has {psi.shape[0]}.")
        return x, psi

    def _witness(self, x: Array, psi: Array) -> Array:
        """The mean over members of f at x with each of the responses psi (C, n, k), (C, n)."""
        members: list[AnyArray] = []
        for ensemble in self._ensembles:
            if ensemble.network.pairs:
                members += list(network_values(ensemble.network, x, psi))
            else:
                h = network_values(ensemble.network, x, None)
                members += list(np.einsum("ekn,cnk->ecn", h, psi))
        return np.mean(members, axis=0, dtype=float)

    def _store_decomposition(self, training: Training, groups: Groups | None) -> None:
        """The terms of the criterion, averaged over members."""
        parts, differences, seconds = [], [], []
        for e in training.ensembles:
            weights = (
                1 / e.eta
                if groups is None
                else np.stack([groups.feature_weights(eta) for eta in e.eta])
            )
            parts.append(0.5 * self.lam_ * e.moments.squared * weights)
            differences.append(e.moments.difference)
            seconds.append(e.moments.second)
        per_feature = np.concatenate(parts).mean(axis=0)
        self.decomposition_ = Decomposition(
            mean_difference=float(np.concatenate(differences).mean()),
            per_feature=spread(per_feature, self.standardizer_.varying),
            function=float(0.5 * self.rho_ * np.concatenate(seconds).mean()),
            norm=0.0,
        )
        self.sic_ = self.decomposition_.mean_difference - self.decomposition_.sic


def _equal(value: Any, default: Any) -> bool:
    return isinstance(value, type(default)) and bool(value == default)


def _reference(sample: Sample, seed: int) -> Array:
    """Responses that stand for their law: quantiles of a single column, or weighted draws."""
    psi = sample.psi
    if psi.shape[1] == 1:
        order = np.argsort(psi[:, 0])
        levels = (np.arange(REFERENCE_RESPONSES) + 0.5) / REFERENCE_RESPONSES
        position = np.searchsorted(np.cumsum(sample.p[order]), levels)
        return psi[order[np.minimum(position, order.size - 1)]]
    rng = np.random.default_rng(seed)
    return psi[rng.choice(psi.shape[0], 2 * REFERENCE_RESPONSES, p=sample.p)]
