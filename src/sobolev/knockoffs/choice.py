"""Choice of the knockoff sampler, by name, by object or by the types of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.conditionals.base import MAX_CATEGORIES
from sobolev.knockoffs.copula import CopulaKnockoffs
from sobolev.knockoffs.fixed import FixedXKnockoffs
from sobolev.knockoffs.gaussian import GaussianKnockoffs
from sobolev.knockoffs.groups import group_labels
from sobolev.knockoffs.low_rank import LowRankKnockoffs
from sobolev.knockoffs.sequential import SequentialKnockoffs

SAMPLERS = {
    "gaussian": GaussianKnockoffs,
    "copula": CopulaKnockoffs,
    "sequential": SequentialKnockoffs,
    "fixed": FixedXKnockoffs,
    "lowrank": LowRankKnockoffs,
}


def resolve_sampler(sampler: Any, X: Array, labels: Index | None = None) -> Any:
    """Return an unfitted sampler for a name or an object.

    Parameters
    ----------
    sampler : str or object
        Name of a sampler, or an object with ``fit(X)`` and ``sample(random_state)``. "auto" chooses
        by the types of the columns.
    X : array of shape (n, p)
        Columns that get knockoffs.
    labels : array of int, shape (p,), optional
        Group of each column. The sampler "gaussian" then draws group knockoffs, which have more
        power if the columns of a group are similar. Knockoffs of single columns are also valid for
        groups.

    Returns
    -------
    object
        Sampler that is not fitted.
    """
    if isinstance(sampler, str) and sampler == "auto":
        sampler = "sequential" if has_categories(X) else "gaussian"
    if isinstance(sampler, str):
        check_option("sampler", sampler, ["auto", *SAMPLERS])
        if sampler == "gaussian" and labels is not None:
            members = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels)]
            return GaussianKnockoffs(feature_groups=members)
        return SAMPLERS[sampler]()
    if hasattr(sampler, "fit") and hasattr(sampler, "sample"):
        return clone(sampler) if hasattr(sampler, "get_params") else sampler
    raise TypeError(
        "sampler must be a name or an object with fit(X) and sample(random_state); got "
        f"{sampler!r}."
    )


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
        Sampler; only :class:`GaussianKnockoffs` may have groups.
    labels : array of int, shape (p,)
        Group of each column in the selector.
    names : sequence of str
        Names of the columns.
    """
    if not isinstance(sampler, GaussianKnockoffs) or sampler.feature_groups is None:
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
