"""Adjust p-values for the number of tests."""

from __future__ import annotations

import numpy as np
from scipy.stats import false_discovery_control

from sobolev._parameters import check_option
from sobolev._typing import Array

PROCEDURES = ("bh", "by", "storey")


def qvalues(pvalues: Array, procedure: str = "bh", n_tests: int | None = None) -> Array:
    """The smallest false discovery rate at which each hypothesis is rejected.

    Parameters
    ----------
    pvalues : array of shape (m,)
        P-values; NaN for hypotheses that were not tested.
    procedure : {"bh", "by", "storey"}, default="bh"
        Adjustment: Benjamini and Hochberg (independent or positively dependent tests), Benjamini
        and Yekutieli (any dependence), or Storey (Benjamini and Hochberg times an estimate of the
        share of true null hypotheses).
    n_tests : int or None, default=None
        Number of tests to count, if it is not the number of p-values: more if tests were planned
        but not made, which count as p-values of one; fewer if each of several orders of the rows
        made at most so many, and then no q-value is below its p-value.

    Returns
    -------
    array of shape (m,)
        Q-values; NaN where the p-value is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.multiple_testing import qvalues
    >>> qvalues(np.array([0.01, 0.02, np.nan, 0.5]))
    array([0.03, 0.03,  nan, 0.5 ])
    """
    check_option("procedure", procedure, PROCEDURES)
    found = np.full(pvalues.shape, np.nan)
    tested = np.isfinite(pvalues)
    p = pvalues[tested]
    if ((p < 0) | (p > 1)).any() or np.isinf(pvalues).any():
        raise ValueError("pvalues must lie in [0, 1], or be NaN for hypotheses not tested.")
    if not p.size:
        return found
    planned = np.append(p, np.ones(max(0, (n_tests or 0) - p.size)))
    adjusted = false_discovery_control(planned, method="by" if procedure == "by" else "bh")
    if procedure == "storey":
        adjusted = adjusted * null_share(planned)
    counted = (n_tests or p.size) / planned.size  # less than one if each order tests a part
    found[tested] = np.clip(adjusted[: p.size] * counted, p if counted < 1 else 0.0, 1.0)
    return found


def smallest_qvalue(pvalue: float, n_tests: int, procedure: str) -> float:
    """The q-value of one p-value if all other p-values are one."""
    return float(qvalues(np.array([pvalue] + [1.0] * (n_tests - 1)), procedure)[0])


def null_share(pvalues: Array, level: float = 0.5) -> float:
    """Storey's estimate of the share of true null hypotheses, at most one.

    The one in the numerator is needed to control the false discovery rate with finitely many tests.
    """
    above = 1 + np.count_nonzero(pvalues > level)
    return float(min(1.0, above / (pvalues.size * (1 - level))))
