"""Which sampler: by name, by object, or by a look at the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from sobolev._parameters import check_option
from sobolev._typing import Array, Index
from sobolev.conditionals.mixed import MAX_CATEGORIES
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
    """A fresh sampler from a name or an object; "auto" looks at the columns.

    Parameters
    ----------
    sampler : str or object with ``fit(X)`` and ``sample(random_state)``
    X : array of shape (n, p)
    labels : array of int, shape (p,), optional
        The group of each column; "gaussian" makes group knockoffs, of more power if the columns
        of a group are alike. Knockoffs of single columns are valid for groups, too.

    Returns
    -------
    object
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
    """Whether a column that varies has at most ten values."""
    counts = np.array([np.unique(column).size for column in X.T])
    return bool(((counts > 1) & (counts <= MAX_CATEGORIES)).any())


def check_groups(sampler: Any, labels: Index, names: Sequence[str] | None = None) -> None:
    """Refuse group knockoffs whose groups are not selected together.

    Only whole groups of the sampler may be swapped, so each must lie within one group of the
    selector.

    Parameters
    ----------
    sampler : GaussianKnockoffs or any other sampler
    labels : array of int, shape (p,)
        The group of each column in the selector.
    names : sequence of str, optional
        Of the columns.
    """
    if not isinstance(sampler, GaussianKnockoffs) or sampler.feature_groups is None:
        return
    own = group_labels(sampler.feature_groups, labels.size, names)
    for g in np.unique(own):
        members = np.flatnonzero(own == g)
        if np.unique(labels[members]).size > 1:
            shown = [j if names is None else names[j] for j in members.tolist()]
            raise ValueError(
                f"the sampler makes group knockoffs of the columns {shown}, which may only be "
                "swapped together, but they are selected apart; pass the groups of the sampler as "
                "feature_groups of the selector, too, or a sampler without groups."
            )
