r"""P-values that need the conditional mean of the statistic only.

Let :math:`d_i = r(x_i, y_i) - E[r(x_i, y_i) \mid x_{i,-j}, y_i]` be the difference between the
statistic of a row and its mean under the conditional model of column j. If that mean is right, the
differences have mean zero under the null hypothesis, whatever the spread and shape of the
conditional distribution, and their sum divided by the root of the sum of their squares is
asymptotically standard normal. Two refinements make the p-value usable in small samples.

- The tail of the sum is that of :math:`\sum_i \pm |d_i|` with random signs, given all
  :math:`|d_i|`. This is exact if the differences are symmetric, with any number of rows: also where
  one row dominates the others, where few rows count, and on a lattice.
- A left-skewed sample makes studentised sums too large. The skewness is corrected by Hall's
  transformation, only where this makes the p-value larger.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtri_exp
from scipy.stats import t as student

from sobolev._typing import Array
from sobolev.inference.saddlepoint import saddlepoint_pvalue

# Differences below this share of the largest one are rounding error.
NEGLIGIBLE = 1e-9


def studentised_pvalue(differences: Array) -> float:
    """P-value of the hypothesis that the differences have mean zero, against a positive mean.

    Parameters
    ----------
    differences : array of shape (n,)
        Statistic of each row less its conditional mean. Rows that were tested by different critics
        are divided by the standard deviation that each model gives them.

    Returns
    -------
    float
        P-value in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.studentised import studentised_pvalue
    >>> round(studentised_pvalue(np.ones(3)), 6)  # one of eight patterns of signs
    0.125
    >>> one_large = np.r_[1000.0, np.resize([1.0, -1.0], 50)]
    >>> round(studentised_pvalue(one_large), 2)  # one row says little, however large
    0.28
    """
    size = np.abs(differences)
    kept = size > NEGLIGIBLE * size.max(initial=0.0)
    d, size = differences[kept], size[kept]
    if not d.size:
        return 1.0
    values = np.column_stack([-size, size])
    pvalue = saddlepoint_pvalue(values, np.full(values.shape, 0.5), float(d.sum()))
    return max(pvalue, _skewness_corrected(pvalue, d))


def _skewness_corrected(pvalue: float, d: Array) -> float:
    """The tail after Hall's transformation of the score, which removes the effect of skewness."""
    if pvalue >= 0.5:
        return pvalue
    z = -float(ndtri_exp(np.log(pvalue)))
    a = float(np.mean(d**3) / np.mean(d**2) ** 1.5 / np.sqrt(d.size))
    corrected = z + a * z**2 / 3 + a**2 * z**3 / 27 + a / 6
    return float(np.exp(log_ndtr(-corrected)))


def rubin_pvalue(draws: Array) -> float:
    """P-value of a sum whose terms were computed with several draws of missing cells.

    Parameters
    ----------
    draws : array of shape (M, n)
        Differences of each row, for each draw.

    Returns
    -------
    float
        Tail of a t distribution at the mean of the sums over the root of Rubin's variance, the mean
        variance within draws plus (1 + 1/M) times the variance between them.
    """
    m = draws.shape[0]
    sums = draws.sum(axis=1)
    within = float(np.mean(np.sum(draws**2, axis=1)))
    between = (1 + 1 / m) * float(sums.var(ddof=1)) if m > 1 else 0.0
    if within + between <= 0:
        return 1.0
    share = max(between / (within + between), 1e-6)
    freedom = (m - 1) / share**2 if m > 1 else np.inf
    return float(student.sf(sums.mean() / np.sqrt(within + between), freedom))
