"""Merge the p-values of several orders of the rows."""

from __future__ import annotations

import numpy as np

from sobolev._typing import Array

# The largest p-value that counts: one order that says nothing must not outweigh the others.
LARGEST = 0.9
# Cauchy's rule of R normal scores exceeds its level by at most this factor per unit of log R.
EXCESS = 0.14


def merged_pvalues(pvalues: Array) -> Array:
    """One p-value for each unit from its p-values in several orders of the rows.

    Cauchy's rule (Liu and Xie 2020): the mean of cot(π p) over R orders has a standard Cauchy
    distribution if the p-values are independent and if they are equal, and its upper tail is that
    of a Cauchy distribution for normal scores of any correlation. In between, and with p-values
    above 0.9 counted as 0.9, a level is exceeded by a factor of up to 1.13 for R = 3; the p-value
    is multiplied by 1 + 0.14 log R, which is larger.

    Parameters
    ----------
    pvalues : array of shape (R, m)
        One row for each order; NaN where a unit was not tested, which counts as a p-value of one.

    Returns
    -------
    array of shape (m,)
        NaN where a unit was tested in no order.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.orders import merged_pvalues
    >>> merged_pvalues(np.array([[0.01, 0.4, np.nan], [0.001, np.nan, np.nan]])).round(4)
    array([0.002 , 0.8776,    nan])
    """
    if len(pvalues) == 1:
        return np.asarray(pvalues[0])
    tested = np.isfinite(pvalues).any(axis=0)
    counted = np.clip(np.nan_to_num(pvalues, nan=1.0), 1e-300, LARGEST)
    mean = np.mean(1 / np.tan(np.pi * counted), axis=0)
    merged = (1 + EXCESS * np.log(len(pvalues))) * np.arctan2(1.0, mean) / np.pi
    return np.where(tested, np.minimum(merged, 1.0), np.nan)
