"""Which weight of the norm, tau: small, or so large that every column counts by itself.

With a small tau a critic asks what a column adds to the others. With many more columns than rows
that is hard to tell, and the answer changes with the rows. With tau as large as the number of
columns, the sum of their variances, no direction of the rows outweighs the norm: the critic is
nearly the witness function of a kernel test, and a column counts by its own dependence on y.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sobolev._sample import Folds
from sobolev._typing import Array
from sobolev.convex.choosing import CLEARLY, BestMap
from sobolev.convex.cross_validation import cross_validate, squared_correlation
from sobolev.convex.fitting import TAU, Settings
from sobolev.convex.rows import Data, Rows

# Tau is chosen where there are more columns than this for each row.
MANY_COLUMNS = 2


def is_open(data: Data, settings: Settings) -> bool:
    """Whether there are so many columns that tau="auto" has to be chosen.

    Covariates rule out a large tau, which would take them out of the critic; several maps are
    compared at the small one; rows in chunks are many; and a number of candidate columns asks for
    a sparse critic.
    """
    return (
        isinstance(data, Rows)
        and data.X.shape[1] > MANY_COLUMNS * data.n_rows
        and not settings.adjusted.size
        and not isinstance(settings.map, BestMap)
        and settings.solver.screen in (None, "auto")
        and not data.by_moments(settings.map, settings.measure)
    )


def with_tau(
    data: Data, settings: Settings, lam: float, folds: Folds, n_jobs: int | None = None
) -> Settings:
    """Settings whose tau is the number of columns, unless the small one predicts clearly better.

    Both are fitted at the same lam. They are compared by the squared correlation of the critic with
    held-out responses, which does not depend on how much a critic is shrunk.
    """
    assert isinstance(data, Rows)
    stiff = float(data.X.shape[1])
    small, large = (
        cross_validate(
            data, replace(settings, tau=tau), (lam,), folds, n_jobs, score=squared_correlation
        )[:, 0]
        for tau in (TAU, stiff)
    )
    if is_clear(small - large):
        return settings
    return replace(settings, tau=stiff, screen=None)  # a large tau leaves no column out


def is_clear(gains: Array) -> bool:
    """Whether the mean of paired differences over folds is above zero by two standard errors."""
    if gains.size < 2:
        return True
    return bool(gains.mean() > CLEARLY * gains.std(ddof=1) / np.sqrt(gains.size))
