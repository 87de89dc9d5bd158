"""Choice of the knockoff sampler: by name, by object, or by what a swap needs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES
from sobolev.exceptions import SobolevWarning
from sobolev.knockoffs.base import KnockoffSampler
from sobolev.knockoffs.copula import CopulaKnockoffs
from sobolev.knockoffs.fixed import FixedXKnockoffs
from sobolev.knockoffs.gaussian import GaussianKnockoffs
from sobolev.knockoffs.groups import group_labels
from sobolev.knockoffs.low_rank import LowRankKnockoffs
from sobolev.knockoffs.matched import MatchedKnockoffs
from sobolev.knockoffs.sequential import SequentialKnockoffs
from sobolev.knockoffs.signs import FAIR, NullSigns, null_signs

SAMPLERS = {
    "gaussian": GaussianKnockoffs,
    "copula": CopulaKnockoffs,
    "sequential": SequentialKnockoffs,
    "matched": MatchedKnockoffs,
    "fixed": FixedXKnockoffs,
    "lowrank": LowRankKnockoffs,
}
# Samplers that draw the columns of a group together.
BY_GROUP = ("gaussian", "matched")
# Penalties of the matched sampler that are tried, relative to the one that predicts best. A smaller
# penalty makes knockoffs more similar to their columns, which is safer and has less power.
PENALTIES = (1.0, 0.3, 0.1, 0.03)
# Largest number of signs that the choice is based on: the fewer groups, the more draws.
N_SIGNS, MAX_DRAWS = 150, 5


def fitted_sampler(sampler: Any, X: Array, labels: Index, names: Sequence[str]) -> Any:
    """Return the sampler for a name or an object, fitted to X.

    Parameters
    ----------
    sampler : str or object
        As in :func:`resolve_sampler`. A fitted sampler in :class:`~sklearn.frozen.FrozenEstimator`
        is used as it is.
    X : array of shape (n, p)
        Columns that get knockoffs.
    labels : array of int, shape (p,)
        Group of each column.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    object
        Fitted sampler.
    """
    if isinstance(sampler, FrozenEstimator):
        found = sampler.estimator
        _check_frozen(found, X)
        check_groups(found, labels, names)
        return found
    found = resolve_sampler(sampler, X, labels)
    check_groups(found, labels, names)
    if isinstance(found, KnockoffSampler):
        return found.fit_validated(X, np.asarray(names, dtype=object))
    return found.fit(X) or found


def _check_frozen(sampler: Any, X: Array) -> None:
    seen = sampler.fitted_shape if isinstance(sampler, KnockoffSampler) else X.shape
    if seen != X.shape:
        raise ValueError(
            f"the frozen sampler was fitted to a table of {seen[0]} rows and {seen[1]} columns, "
            f"but X has {X.shape[0]} and {X.shape[1]}; fit it to the rows of X."
        )


def resolve_sampler(sampler: Any, X: Array, labels: Index | None = None) -> Any:
    """Return an unfitted sampler for a name or an object.

    Parameters
    ----------
    sampler : str or object
        Name of a sampler, or an object with ``fit(X)`` and ``sample(random_state)``. "auto" chooses
        by the signs of null columns, see :func:`choose_sampler`.
    X : array of shape (n, p)
        Columns that get knockoffs.
    labels : array of int, shape (p,), optional
        Group of each column. The samplers "gaussian" and "matched" then draw group knockoffs, which
        have more power if the columns of a group are similar. Knockoffs of single columns are also
        valid for groups.

    Returns
    -------
    object
        Sampler that is not fitted.
    """
    labels = np.arange(X.shape[1]) if labels is None else labels
    if isinstance(sampler, str):
        check_option("sampler", sampler, ["auto", *SAMPLERS])
        if sampler == "auto":
            return choose_sampler(X, labels)
        return SAMPLERS[sampler](**(_groups(labels) if sampler in BY_GROUP else {}))
    if hasattr(sampler, "fit") and hasattr(sampler, "sample"):
        return clone(sampler) if hasattr(sampler, "get_params") else sampler
    raise TypeError(
        "sampler must be a name or an object with fit(X) and sample(random_state); got "
        f"{sampler!r}."
    )


def choose_sampler(X: Array, labels: Index) -> Any:
    """Choose the first sampler whose null columns do not beat their knockoffs too often.

    Gaussian knockoffs come first if every column has more than ten values, then matched knockoffs
    with decreasing penalties. If none is fair, the one with the smallest share is chosen. The
    choice uses X alone, see :mod:`sobolev.knockoffs.signs`.

    Parameters
    ----------
    X : array of shape (n, p)
        Columns that get knockoffs.
    labels : array of int, shape (p,)
        Group of each column.

    Returns
    -------
    KnockoffSampler
        Sampler that is not fitted.
    """
    if not (np.ptp(X, axis=0) > 0).any():
        return GaussianKnockoffs()
    best, smallest = None, np.inf
    for candidate in _candidates(X, labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SobolevWarning)  # the chosen one is fitted once more
            candidate.fit_validated(X)
        found = _signs(candidate, X, labels)
        if found.mean < smallest:
            best, smallest = candidate, found.mean
        if found.fair:
            break
    return clone(best)


def _signs(sampler: Any, X: Array, labels: Index) -> NullSigns:
    """Signs of null columns over draws of a fitted sampler, as many as the decision needs."""
    draws: list[Array] = []
    most = int(np.clip(np.ceil(N_SIGNS / np.unique(labels).size), 1, MAX_DRAWS))
    while True:
        draws.append(sampler.sample(len(draws)))
        found = null_signs(X, draws, labels, np.random.default_rng(0))
        if len(draws) == most or abs(found.mean - FAIR) > 2 * found.error:
            return found


def _candidates(X: Array, labels: Index) -> Iterator[Any]:
    """Samplers to try, those with more power first."""
    groups = _groups(labels)
    if not has_categories(X):
        yield GaussianKnockoffs(**groups)
    matched = MatchedKnockoffs(**groups)
    yield matched
    for factor in PENALTIES[1:]:
        yield MatchedKnockoffs(**groups, penalty=factor * matched.penalty_)


def _groups(labels: Index) -> dict[str, Any]:
    """Parameter ``feature_groups`` of a sampler; empty if every column is on its own."""
    found, sizes = np.unique(labels, return_counts=True)
    if sizes.max(initial=1) == 1:
        return {}
    return {"feature_groups": [np.flatnonzero(labels == g).tolist() for g in found]}


def has_categories(X: Array) -> bool:
    """Whether some column that is not constant has at most ten distinct values."""
    counts = np.array([np.unique(column).size for column in X.T])
    return bool(((counts > 1) & (counts <= MAX_CATEGORIES)).any())


def check_groups(sampler: Any, labels: Index, names: Sequence[str]) -> None:
    """Raise an error if a group of the sampler is not part of one group of the selector.

    Group knockoffs are valid only if all columns of a group are swapped together.

    Parameters
    ----------
    sampler : object
        Sampler; one without ``feature_groups`` has no groups.
    labels : array of int, shape (p,)
        Group of each column in the selector.
    names : sequence of str
        Names of the columns.
    """
    if getattr(sampler, "feature_groups", None) is None:
        return
    own = group_labels(sampler.feature_groups, labels.size, names)
    for g in np.unique(own):
        members = np.flatnonzero(own == g)
        if np.unique(labels[members]).size > 1:
            raise ValueError(
                "the sampler makes group knockoffs of the columns "
                f"{[names[j] for j in members.tolist()]}, which may only be "
                "swapped together, but the selector treats them as separate; pass the same "
                "feature_groups to the selector, or use a sampler without groups."
            )
