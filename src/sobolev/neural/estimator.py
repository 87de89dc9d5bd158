"""NeuralSIC: the neural form of the Sobolev Independence Criterion as a scikit-learn selector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from sobolev._parameters import check_number, check_option
from sobolev._random import RandomState
from sobolev._sample import Sample, spread
from sobolev._typing import AnyArray, Array, Index
from sobolev.criterion import Decomposition, Explanation, Groups, adjusted_groups
from sobolev.neural._base import NeuralEstimator
from sobolev.neural.critics import BilinearCritic, resolve_critic
from sobolev.neural.evaluation import NeuralEvaluator
from sobolev.neural.explanation import explain_witness
from sobolev.neural.fitting import Design, network_values
from sobolev.neural.objectives import ExactSIC, PairedSIC
from sobolev.neural.optimizer import Optimizer
from sobolev.targets import resolve_target
from sobolev.validation import feature_names, plain_target

if TYPE_CHECKING:
    from typing import Self

MEASURES = {"product": 0.0, "mixture": 0.5, "joint": 1.0}

# Number of responses that represent the distribution of y in the risk of a critic of (x, y).
REFERENCE_RESPONSES = 32


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralSIC(NeuralEstimator):
    r"""Feature selection by the neural Sobolev Independence Criterion.

    Trains a critic f to separate the joint distribution of (x, y) from the product of the
    marginals,

    .. math::

        \sup_f\ E_{p_{xy}} f - E_{p_x p_y} f
          - \frac{\lambda}{2} \sum_j \frac{E |\partial_j f|^2 + \varepsilon}{\eta_j}
          - \frac{\rho}{2} E f^2 ,

    by Adam on the weights and mirror descent on the importances :math:`\eta` (Algorithm 3 of the
    paper). Several members give Boosted SIC. The built-in critics need numpy only.

    Parameters
    ----------
    critic : str, specification, callable or list of these, default="bilinear"
        "bilinear" is h(x)' psi(y) with the fixed encoding psi of the response, for which
        expectations over the product of the marginals are exact in y; "small" and "big" are the
        critics of the paper. :class:`~sobolev.neural.SmallCritic`,
        :class:`~sobolev.neural.BigCritic` and :class:`~sobolev.neural.BilinearCritic` take widths,
        dropout and slope. A callable ``(n_features, n_targets) -> torch.nn.Module`` makes a module
        of (x, y) of your own, which needs PyTorch. With a list, Boosted SIC trains members for
        each critic.
    lam : float or "auto", default=0.01
        Weight of the sparsity-inducing gradient penalty. "auto" chooses it by cross-validated
        risk; all folds and values are trained as one ensemble.
    rho : float, default=1.0
        Weight of E f².
    measure : {"product", "mixture", "joint"}, default="product"
        The measure of the penalties.
    optimizer : None or Optimizer, default=None
        How the networks are trained; None is :class:`~sobolev.neural.Optimizer` with its defaults.
    boosting : int or Boosting, default=1
        Number of members for each critic and batch size, or a
        :class:`~sobolev.neural.Boosting`, which also says how importances are averaged.
    target : str or TargetEncoder, default="auto"
        "auto", "regression" or "classification", or a :class:`~sobolev.targets.TargetEncoder`.
    feature_groups : mapping or sequence of sequences, optional
        Groups of columns, by name or position, that share one importance.
    adjust : sequence of str or int, optional
        Covariates, by name or position: columns that are always in the critic, see
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
        1 shows a progress bar with the current SIC, 2 prints a line every 50 updates.

    Attributes
    ----------
    feature_importances_ : array of shape (d,)
        Importances eta, which sum to one; zero for constant columns and for those of ``adjust``.
    member_importances_ : array of shape (n_members, d)
        Importances of every member.
    group_importances_, group_names_
        Importance and name of each group, if ``feature_groups`` is given.
    support_ : array of bool, shape (d,)
        Mask of the selected features.
    sic_ : float
        The criterion that the critic attains on the training rows, averaged over members.
    decomposition_ : Decomposition
        Its terms and each feature's part.
    lam_ : float
        The weight used; ``lam_path_`` and ``lam_risks_`` if it was chosen.
    n_iter_ : int
        Number of updates of the last round.
    objective_curve_ : array, one entry for each update
        The loss of each update, averaged over members.
    validation_curve_ : array or None
        Held-out risks (checks, members) with early stopping; NaN after a member has stopped.
    classes_ : array
        The labels, if y was a single column of labels.
    n_features_in_ : int
    feature_names_in_ : array
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    sobolev.ConvexSIC : the kernel form, which is convex.
    sobolev.SobolevRegressor : a regressor with the same penalty.

    Notes
    -----
    Columns are standardised inside. Training runs on one thread, so that the same ``random_state``
    gives the same importances whatever the number of threads; the order of rows does not matter up
    to 5,000 rows. A Generator passed as ``random_state`` advances.

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

    critic: Any = "bilinear"
    lam: float | str = 0.01
    rho: float = 1.0
    measure: str = "product"
    optimizer: Optimizer | None = None
    boosting: Any = 1
    target: Any = "auto"
    feature_groups: Any = None
    adjust: Any = None
    n_features_to_select: int | float | None = None
    threshold: float | None = None
    cv: Any = 5
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The estimator with the settings of the paper; what you pass wins.

        Small critic with permuted responses and
        :meth:`Optimizer.paper <sobolev.neural.Optimizer.paper>`; lam = 0.01 and rho = 1 are those
        of the authors' script (0.01 times the sum of f² over 50 rows is rho = 1 here).

        Examples
        --------
        >>> from sobolev import NeuralSIC
        >>> from sobolev.neural import Optimizer
        >>> sic = NeuralSIC.paper(lam=0.1, optimizer=Optimizer.paper(max_iter=100))
        >>> sic.critic, sic.lam, sic.optimizer.rounds
        ('small', 0.1, 1)
        """
        paper: dict[str, Any] = {"critic": "small", "optimizer": Optimizer.paper()}
        return cls(**(paper | parameters))

    def fit_validated(self, X: Array, y: Any, weights: Array | None = None) -> Self:
        """Fit to rows that were checked at the door; ``weights`` are probabilities."""
        check_number("rho", self.rho)
        check_option("measure", self.measure, MEASURES)
        sample, recipe = self._fit(X, y, weights)
        self.rho_ = float(self.rho)
        self.reference_ = _reference(sample, recipe.seed)
        self._store_decomposition(recipe.groups)
        return self

    def witness(self, X: Any, y: Any) -> Array:
        """The critic f(x, y) of each row, averaged over members.

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._pairs(X, y)
        return self._witness(x, psi[None])[0]

    def risk(self, X: Any, y: Any) -> Array:
        """The penalised witness f(x, y) - E_ỹ f(x, ỹ) - rho/2 E_ỹ f(x, ỹ)² of each row.

        Its mean over new rows is the held-out criterion. The expectations are exact for bilinear
        critics, where E_ỹ f(x, ỹ) = 0. For other critics they are means over a few values that
        represent the training responses (``reference_``).

        Returns
        -------
        array of shape (n,)
        """
        x, psi = self._pairs(X, y)
        if not any(e.network.pairs for e in self._ensembles):
            members = [h for e in self._ensembles for h in network_values(e.network, x, None)]
            h = np.mean(members, axis=0)
            return np.asarray(ExactSIC(self.rho_).risk(h[None], psi[None, None])[0])
        drawn = np.repeat(self.reference_[:, None], x.shape[0], axis=1)
        f = self._witness(x, np.concatenate([psi[None], drawn]))
        return np.asarray(PairedSIC(self.rho_).risk(f[None], psi)[0])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean risk, the held-out criterion."""
        return float(np.average(self.risk(X, y), weights=sample_weight))

    def explain(self, X: Any, y: Any) -> Explanation:
        """Contributions of the features to the witness of each row, which add up to it.

        Without biases the critic is homogeneous, f = ⟨∂f/∂x, x⟩ + ⟨∂f/∂y, y⟩ (Euler), with x and y
        in standard units: feature j contributes x_j ∂f/∂x_j. ``base`` holds what biases add.

        Returns
        -------
        Explanation
        """
        x, psi = self._pairs(X, y)
        found = explain_witness([e.network for e in self._ensembles], x, psi)
        return found.among(self.standardizer_.varying)

    def evaluator(self, X: Array, y: Any, statistic: str) -> NeuralEvaluator:
        """The statistic of checked rows as a function of some of the columns."""
        return NeuralEvaluator(self, X, y, statistic)

    def predict_without(self, columns: Index, X: Array, y: Any, X_new: Array) -> Array:
        """Encoded responses of new rows, by a copy that was fitted without the columns."""
        groups = adjusted_groups(self.feature_groups, self.adjust, X.shape[1], feature_names(self))
        adjusted = np.delete(groups.adjusted, columns)
        adjust = None if adjusted.all() else np.flatnonzero(adjusted)  # one must be penalised
        fresh = clone(self).set_params(lam=self.lam_, feature_groups=None, adjust=adjust)
        fresh.fit_validated(np.delete(X, columns, axis=1), y)
        if any(e.network.pairs for e in fresh._ensembles):
            raise ValueError(
                'statistic="residual" needs a critic h(x)\' psi(y), but this one is a critic of '
                '(x, y); use statistic="risk".'
            )
        z = fresh.standardizer_.transform(np.delete(X_new, columns, axis=1))
        h = np.concatenate([network_values(e.network, z, None) for e in fresh._ensembles])
        found: Array = fresh.rho_ * np.asarray(h.mean(axis=0), dtype=float).T
        return found

    # -- details ---------------------------------------------------------------------------------

    def _encode(self, y: Any, p: Array) -> Array:
        self.encoder_ = resolve_target(self.target).fit(y, p)
        if self.encoder_.classes_ is not None:
            self.classes_ = self.encoder_.classes_
        return self.encoder_.transform(y)

    def _designs(self, n_targets: int) -> list[Design]:
        critics = self.critic if isinstance(self.critic, (list, tuple)) else [self.critic]
        if not critics:
            raise ValueError("critic is an empty list; name at least one critic.")
        return [self._design(resolve_critic(critic), n_targets) for critic in critics]

    def _design(self, spec: Any, n_targets: int) -> Design:
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

    def _store_decomposition(self, groups: Groups | None) -> None:
        """The terms of the criterion, averaged over members."""
        moments = [e.moments for e in self._ensembles]
        eta = np.concatenate([e.eta for e in self._ensembles])
        weights = 1 / eta
        if groups is not None:
            weights = np.stack([groups.feature_weights(row) for row in eta])
        squared = np.concatenate([m.squared for m in moments])
        per_feature = np.mean(0.5 * self.lam_ * squared * weights, axis=0)
        self.decomposition_ = Decomposition(
            mean_difference=float(np.concatenate([m.difference for m in moments]).mean()),
            per_feature=spread(per_feature, self.standardizer_.varying),
            function=float(0.5 * self.rho_ * np.concatenate([m.second for m in moments]).mean()),
            norm=0.0,
        )
        self.sic_ = self.decomposition_.mean_difference - self.decomposition_.sic


def _reference(sample: Sample, seed: int) -> Array:
    """Responses that represent their distribution: quantiles of one column, or weighted draws."""
    psi = sample.psi
    if psi.shape[1] == 1:
        order = np.argsort(psi[:, 0])
        levels = (np.arange(REFERENCE_RESPONSES) + 0.5) / REFERENCE_RESPONSES
        position = np.searchsorted(np.cumsum(sample.p[order]), levels)
        return psi[order[np.minimum(position, order.size - 1)]]
    rng = np.random.default_rng(seed)
    return psi[rng.choice(psi.shape[0], 2 * REFERENCE_RESPONSES, p=sample.p)]
