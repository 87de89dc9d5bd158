r"""The formulas of SIC: the eta-trick, the mirror step, the risk, groups and the decomposition.

The gradient penalty of the paper,
:math:`\Omega_S(f) = \sum_j \sqrt{E |\partial_j f|^2}`, is not smooth. Its square is a minimum
over the simplex (Lemma 1),

.. math::

    \Omega_{S,\varepsilon}(f)^2 = \min_{\eta > 0,\ \sum_j \eta_j = 1}
        \sum_j \frac{E |\partial_j f|^2 + \varepsilon}{\eta_j},
    \qquad \eta_j = \frac{\beta_j}{\sum_k \beta_k},
    \quad \beta_j^2 = E |\partial_j f|^2 + \varepsilon,

and the minimiser :math:`\eta` is the vector of normalised importances. With groups of features the
same holds with :math:`\beta_k^2 = \sum_{j \in G_k} E |\partial_j f|^2 + \varepsilon`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from sobolev._typing import Array, Index, Mask

# Bounds that keep squares and quotients finite, also in single precision.
MAX_RATIO, SMALLEST = 1e15, 1e-30
# Groups of columns, by position or name.
GroupsLike = Mapping[str, Sequence[Any]] | Sequence[Sequence[Any]]


def normalized_importances(squared_gradients: Array, epsilon: float = 0.0) -> Array:
    """Eta from squared gradients: the minimiser in Lemma 1 of the paper.

    Parameters
    ----------
    squared_gradients : array of shape (d,)
        Mean squared partial derivatives of the critic.
    epsilon : float, default=0.0
        Perturbation that keeps every importance positive.

    Returns
    -------
    array of shape (d,)
        Nonnegative importances that sum to one; uniform if every gradient vanishes.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.criterion import normalized_importances
    >>> normalized_importances(np.array([9.0, 1.0, 0.0]))
    array([0.75, 0.25, 0.  ])
    """
    beta = np.sqrt(np.maximum(squared_gradients, 0.0) + epsilon)
    total = beta.sum()
    if total == 0.0:
        return np.full(beta.shape, 1.0 / max(beta.size, 1))
    return beta / total


def sobolev_penalty(squared_gradients: Array, eta: Array, epsilon: float = 0.0) -> float:
    """Sum of (squared gradient + epsilon) / eta, the right-hand side of Lemma 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.criterion import sobolev_penalty
    >>> float(sobolev_penalty(np.array([9.0, 1.0]), np.array([0.75, 0.25])))  # (3 + 1)^2
    16.0
    """
    positive = squared_gradients + epsilon > 0
    return float(np.sum((squared_gradients[positive] + epsilon) / eta[positive]))


def risk(joint: Any, second: Any, rho: float, mean: Any = 0.0) -> Any:
    """The penalised witness of a row: f(x, y) - E f(x, ỹ) - rho/2 E f(x, ỹ)², over responses ỹ.

    Its mean over new rows is the held-out criterion. With ``rho=1`` and one response it is half of
    the reduction of the squared error.

    Parameters
    ----------
    joint : array
        The critic at the row and its own response, f(x, y).
    second : array
        Mean of the squared critic over the distribution of the response.
    rho : float
        Weight of the squared critic.
    mean : array, default=0.0
        Mean of the critic over the distribution of the response; zero for centred critics.

    Returns
    -------
    array
        Risk of each row, as a numpy array or torch tensor like the input.
    """
    return joint - mean - 0.5 * rho * second


def choose_lam(risks: Array, lams: Sequence[float], reference: float) -> float:
    """The lam with the largest mean held-out risk, or the lam nearest to the reference.

    The former is chosen only if it is better by more than one standard error of the paired
    difference over folds: the risk is flat near its maximum, where the reference ranks well.
    """
    mean = risks.mean(axis=0)
    best = int(np.argmax(mean))
    nearest = int(np.argmin(np.abs(np.log(np.asarray(lams) / reference))))
    gain = risks[:, best] - risks[:, nearest]
    error = gain.std(ddof=1) / np.sqrt(gain.size) if gain.size > 1 else 0.0
    if mean[best] <= 0 or gain.mean() <= error:
        return float(lams[nearest])
    return float(lams[best])


def mirror_step(
    eta: Any,
    squared_gradients: Any,
    step: Any,
    epsilon: float = 0.0,
    *,
    relative: bool = True,
    max_move: float = 10.0,
    xp: Any = np,
) -> Any:
    """One step of mirror descent on the simplex, in the log domain (Alg. 2 and 3, eta-step).

    The gradient of the penalty in eta is -(squared gradient + epsilon) / eta². By default it is
    divided by its value at the optimum, so that ``step`` has no unit: 1/2 is the Newton step near
    the fixed point.

    Parameters
    ----------
    eta, squared_gradients : array of shape (..., d)
        Current importances (positive) and mean squared derivatives.
    step : float or array
        Step size.
    epsilon : float, default=0.0
        Perturbation.
    relative : bool, default=True
        Whether to divide the gradient by its value at the optimum, which the paper does not do.
    max_move : float, default=10.0
        Largest change of log eta in one step; keeps exp() finite if some eta is far too small.
    xp : module, default=numpy
        Module of the arrays, numpy or torch.

    Returns
    -------
    array of shape (..., d)
        New importances, positive and with sum one.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.criterion import mirror_step
    >>> mirror_step(np.array([0.5, 0.5]), np.array([9.0, 1.0]), step=0.5).round(3)
    array([0.731, 0.269])
    """
    root = xp.sqrt(squared_gradients + epsilon)
    ratio = xp.clip(root / eta, None, MAX_RATIO)
    if relative:
        ratio = ratio / xp.clip(root.sum(-1), SMALLEST, None)[..., None]
    logits = xp.log(eta) + xp.clip(step * ratio * ratio, None, max_move)
    new = xp.exp(logits - xp.amax(logits, -1)[..., None])
    return new / new.sum(-1)[..., None]


class Groups:
    """Groups of features, disjoint or overlapping, that enter or leave the critic together.

    A feature in no group is not penalised and has no importance: the critic is adjusted for it.

    Parameters
    ----------
    membership : sparse array of shape (n_groups, n_features)
        One where the feature belongs to the group.
    names : list of str
        One name for each group.

    See Also
    --------
    parse_groups : Build groups from lists of columns or from a mapping.
    """

    def __init__(self, membership: Any, names: Sequence[str]) -> None:
        self.membership = sp.csr_array(membership, dtype=float)
        self.names = list(names)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.membership.shape[0])

    @property
    def n_memberships(self) -> Index:
        """Number of groups that contain each feature."""
        return np.asarray(self.membership.sum(axis=0)).ravel().astype(np.intp)

    @property
    def adjusted(self) -> Mask:
        """Features in no group, which are not penalised."""
        return self.n_memberships == 0

    @property
    def only_adjust(self) -> bool:
        """Whether the groups are single features in their order, beside some in no group."""
        others = np.flatnonzero(~self.adjusted)
        is_single = np.array_equal(self.membership.indptr, np.arange(self.n_groups + 1))
        ordered = is_single and np.array_equal(self.membership.indices, others)
        return ordered and others.size < self.membership.shape[1]

    def squared_gradients(self, per_feature: Array) -> Array:
        """Sums of the squared gradients over the features of each group."""
        return self.membership @ per_feature

    def feature_weights(self, eta: Array) -> Array:
        """Weight of each feature's squared gradient: the sum of 1 / eta over its groups."""
        return self.membership.T @ (1.0 / eta)

    def feature_importances(self, eta: Array, per_feature: Array) -> Array:
        """Split each group's eta among its features in proportion to their squared gradients."""
        total = self.squared_gradients(per_feature)
        size = self.membership.sum(axis=1)
        share = np.divide(eta, total, out=np.zeros_like(eta), where=total > 0)
        split = per_feature * (self.membership.T @ share)
        # A group without gradients divides its (tiny) importance equally.
        flat = np.where(total > 0, 0.0, eta / size)
        return split + self.membership.T @ flat

    def restrict(self, columns: Index) -> Groups:
        """Keep the given columns; groups that lose all their features disappear."""
        kept = sp.csr_array(self.membership[:, columns])
        alive = np.flatnonzero(kept.sum(axis=1) > 0)
        return Groups(kept[alive], [self.names[i] for i in alive])

    def without(self, columns: Index) -> Groups:
        """Remove the groups that contain any of the columns, which are then in no group."""
        alive = np.flatnonzero(self.membership[:, columns].sum(axis=1) == 0)
        return Groups(self.membership[alive], [self.names[i] for i in alive])


def parse_groups(
    feature_groups: GroupsLike,
    n_features: int,
    feature_names: Sequence[str] | None = None,
) -> Groups:
    """Read groups given as lists of columns or as a mapping from a name to its columns.

    Columns are given by position or by name. A feature that no group mentions becomes a group of
    its own.

    Parameters
    ----------
    feature_groups : mapping or sequence of sequences
        Groups, for example ``{"dose": ["dose_1", "dose_2"]}`` or ``[[0, 1], [1, 2]]``.
    n_features : int
        Number of columns of X.
    feature_names : sequence of str, optional
        Names of the columns, for groups given by name.

    Returns
    -------
    Groups
        The parsed groups.

    Examples
    --------
    >>> from sobolev.criterion import parse_groups
    >>> parse_groups({"a": [0, 2]}, n_features=4).names
    ['a', 'x1', 'x3']
    """
    if isinstance(feature_groups, Mapping):
        names, members = [str(name) for name in feature_groups], list(feature_groups.values())
    elif isinstance(feature_groups, Sequence) and not isinstance(feature_groups, str):
        members = list(feature_groups)
        names = [f"group{i}" for i in range(len(members))]
    else:
        raise TypeError(
            "feature_groups must be a list of lists of columns or a mapping from group names to "
            f"lists of columns; got {type(feature_groups).__name__}."
        )
    position = {} if feature_names is None else {name: i for i, name in enumerate(feature_names)}
    rows: list[int] = []
    columns: list[int] = []
    for k, (name, group) in enumerate(zip(names, members, strict=True)):
        if isinstance(group, (str, Integral)):
            raise TypeError(f"group {name!r} is {group!r}; pass a list of columns, [{group!r}].")
        found = sorted({_column(c, f"group {name!r}", n_features, position) for c in group})
        if not found:
            raise ValueError(f"group {name!r} is empty; it needs at least one column.")
        rows += [k] * len(found)
        columns += found
    alone = sorted(set(range(n_features)) - set(columns))
    rows += list(range(len(names), len(names) + len(alone)))
    columns += alone
    names += [f"x{j}" if feature_names is None else str(feature_names[j]) for j in alone]
    membership = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), n_features))
    return Groups(membership, names)


def adjusted_groups(
    feature_groups: GroupsLike | None,
    adjust: Any,
    n_features: int,
    feature_names: Sequence[str] | None = None,
) -> Groups:
    """Groups of the features that are penalised.

    A group with a column that ``adjust`` names is left out, so its columns are not penalised unless
    they are in another group.

    Parameters
    ----------
    feature_groups : mapping, sequence of sequences or None
        As in :func:`parse_groups`; None is no group.
    adjust : sequence of int or str, or None
        Columns by position or name.
    n_features : int
        Number of columns of X.
    feature_names : sequence of str, optional
        Names of the columns.

    Returns
    -------
    Groups

    Examples
    --------
    >>> from sobolev.criterion import adjusted_groups
    >>> groups = adjusted_groups(None, ["age"], 3, ["dose", "age", "gene"])
    >>> groups.names, groups.adjusted.tolist()
    (['dose', 'gene'], [False, True, False])
    """
    given = [] if feature_groups is None else feature_groups
    columns = parse_columns(adjust, n_features, feature_names, "adjust")
    return parse_groups(given, n_features, feature_names).without(columns)


def disjoint_groups(
    feature_groups: GroupsLike,
    feature_names: Sequence[str],
) -> dict[str, Index]:
    """The columns of each group, for groups that are selected as one.

    Every column belongs to exactly one group; a column in two groups is an error.
    """
    parsed = parse_groups(feature_groups, len(feature_names), feature_names)
    twice = np.flatnonzero(parsed.n_memberships > 1)
    if twice.size:
        raise ValueError(
            f"column {feature_names[twice[0]]!r} is in {parsed.n_memberships[twice[0]]} groups; "
            "groups that are selected as one must be disjoint."
        )
    rows = parsed.membership
    return {
        name: rows.indices[rows.indptr[k] : rows.indptr[k + 1]].astype(np.intp)
        for k, name in enumerate(parsed.names)
    }


def parse_columns(
    columns: Any, n_features: int, feature_names: Sequence[str] | None, parameter: str
) -> Index:
    """Positions of columns that a parameter names or numbers, in increasing order.

    Parameters
    ----------
    columns : sequence of int or str, or None
        Columns by position or name; None is no column.
    n_features : int
        Number of columns of X.
    feature_names : sequence of str or None
        Names of the columns, for columns given by name.
    parameter : str
        Name of the parameter, for messages.

    Returns
    -------
    array of int

    Examples
    --------
    >>> from sobolev.criterion import parse_columns
    >>> parse_columns(["age", 0], 3, ["sex", "dose", "age"], "adjust")
    array([0, 2])
    """
    if columns is None:
        return np.zeros(0, dtype=np.intp)
    if isinstance(columns, (str, Integral)):
        raise TypeError(f"{parameter}={columns!r} must be a list of columns, [{columns!r}].")
    position = {} if feature_names is None else {name: i for i, name in enumerate(feature_names)}
    found = {_column(c, parameter, n_features, position) for c in columns}
    return np.array(sorted(found), dtype=np.intp)


def _column(column: Any, where: str, n_features: int, position: Mapping[str, int]) -> int:
    if isinstance(column, Integral) and not isinstance(column, bool):
        index = int(column)
        if not -n_features <= index < n_features:
            raise ValueError(
                f"{where} names column {column}, but X has {n_features} columns "
                f"(0 to {n_features - 1})."
            )
        return index % n_features
    if isinstance(column, str):
        if column not in position:
            raise ValueError(
                f"{where} names column {column!r}, but X has no such column; "
                "pass a DataFrame with that column or use positions."
            )
        return position[column]
    raise TypeError(f"{where} contains {column!r}; give columns by position (int) or name (str).")


@dataclass(frozen=True)
class Decomposition:
    """The decomposition of SIC: half the mean difference equals the sum of three penalties.

    Attributes
    ----------
    mean_difference : float
        Mean of f under the joint distribution minus its mean under the product of the marginals.
    per_feature : array of shape (d,)
        Contribution of each feature to the gradient penalty, lam/2 E|∂_j f|² / eta_j: the part of
        the dependence that it explains.
    gradient : float
        lam/2 times the squared Sobolev penalty, the sum of ``per_feature``.
    function : float
        Penalty on the function values, rho/2 E f².
    norm : float
        Penalty on the norm, tau/2 times the squared norm of f in its function space.
    per_target : array of shape (n_outputs,) or (0,)
        Contribution of each response, lam/2 E|∂f/∂y_l|² / zeta_l, if responses are selected.
    """

    mean_difference: float
    per_feature: Array
    function: float
    norm: float
    per_target: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def gradient(self) -> float:
        """The sum of ``per_feature``."""
        return float(self.per_feature.sum())

    @property
    def sic(self) -> float:
        """SIC, the sum of the penalties."""
        return self.gradient + self.function + self.norm + float(self.per_target.sum())


@dataclass(frozen=True)
class Explanation:
    """Contributions that add up to the witness of each row.

    Attributes
    ----------
    features : array of shape (n, d)
        Contribution of each feature.
    target : array of shape (n,)
        Contribution of the response by itself.
    base : array of shape (n,)
        Remainder: the witness of the mean row for kernel critics, the contribution of the biases
        for neural critics, zero for homogeneous critics.
    """

    features: Array
    target: Array
    base: Array

    @property
    def witness(self) -> Array:
        """The sum of all terms."""
        return self.features.sum(axis=1) + self.target + self.base

    def among(self, columns: Mask) -> Explanation:
        """Extend to all columns, with zero contributions where ``columns`` is False."""
        features = np.zeros((self.features.shape[0], columns.size))
        features[:, columns] = self.features
        return replace(self, features=features)
