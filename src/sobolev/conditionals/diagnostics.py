r"""Diagnostics of conditional models: calibration of distributions, correlations of draws.

If the conditional distribution of column j given the others is correct, the probability integral
transform :math:`u_i` of :math:`x_{ij}` is uniform and independent of the other columns. Then
:math:`\Phi^{-1}(u_i)` (the position of x in its distribution) and :math:`\Phi^{-1}(|2 u_i - 1|)`
(its distance from the middle) are standard normal, and their correlation with any function of the
other columns has exactly the distribution of a correlation of independent normal samples, so no
permutations are needed. Moreover, a draw :math:`\tilde x_{ij}` may be swapped with
:math:`x_{ij}` in any row, so that the signs of the terms of
:math:`\sum_i (\tilde x_{ij} - x_{ij}) x_{ik}` are independent coin tosses.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control
from sklearn.base import BaseEstimator

from sobolev._random import RandomState
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals._checks import (
    Others,
    Seen,
    normal_scores,
    uniform_test,
    unseen_distributions,
)
from sobolev.exceptions import ConditionalModelWarning
from sobolev.validation import list_some, validate_rows

# The checks and the smallest effect that counts as a failure, for any number of rows: the distance
# of the transforms from uniform (0.05 if a width is wrong by a fifth), and correlations.
THRESHOLDS = {"uniform": 0.05, "location": 0.1, "spread": 0.1, "correlation": 0.1}
# Level of the false discovery rate over all columns and checks.
LEVEL = 0.01
MIN_ROWS = 10
SHOWN = 5
REMEDIES = {
    "values": 'for columns with few values use conditional="mixed"',
    "spread": "the width must depend on the other columns; use ResidualConditional with "
    'scale="auto" or a regressor as scale',
    "location": "the mean must depend on the other columns in another way; use another regressor "
    "in ResidualConditional",
    "uniform": "the width or shape is wrong; use ResidualConditional, which takes them from "
    "out-of-fold residuals",
}


@dataclass(frozen=True, repr=False, eq=False)
class ConditionalDiagnostics:
    """How well conditional distributions fit; returned by :func:`diagnose_conditional`.

    The checks are ``uniform`` (is the probability integral transform uniform?), ``location`` and
    ``spread`` (do its position and its distance from the middle depend on the other columns?) and
    ``correlation`` (does a draw have the correlations of the column?).

    Attributes
    ----------
    columns : array of int, shape (m,)
        Positions of the columns.
    names : tuple of str
        Names of the columns.
    pit : array of shape (n, m)
        Probability integral transforms; NaN for constant columns, which are not checked.
    effects : array of shape (m, 4)
        Effect sizes, one column for each check: the Kolmogorov-Smirnov distance, the strongest
        correlation (twice), and the most significant difference between the correlations of draw
        and column.
    pvalues, qvalues : array of shape (m, 4)
        P-values of the checks, before and after adjustment over all columns and checks.
    largest_gap, rms_gap : array of shape (m,)
        Largest and root mean square difference of correlations in standard errors; the second is
        about 1 if the model is correct.
    off_values : array of bool, shape (m,)
        True for columns with few values whose distributions have other values.
    """

    columns: Index
    names: tuple[str, ...]
    pit: Array
    effects: Array
    pvalues: Array
    qvalues: Array
    largest_gap: Array
    rms_gap: Array
    off_values: Mask

    @property
    def misfit(self) -> Mask:
        """Checks that fail, (m, 4): adjusted p-value at most 0.01 and a relevant effect."""
        large = np.abs(self.effects) >= np.array(list(THRESHOLDS.values()))
        return np.asarray(large & (self.qvalues <= LEVEL))

    @property
    def failing(self) -> list[int]:
        """Positions of the columns that fail a check, smallest p-value first."""
        bad = np.flatnonzero(self.misfit.any(axis=1))
        order = np.lexsort((-self._severity[bad], self.pvalues[bad].min(axis=1)))
        return [int(self.columns[i]) for i in bad[order]]

    @property
    def failing_names(self) -> list[str]:
        """Names of the columns in ``failing``."""
        name = dict(zip(self.columns.tolist(), self.names, strict=True))
        return [name[j] for j in self.failing]

    @property
    def score(self) -> float:
        """Share of columns that pass every check, in [0, 1]; constant columns pass."""
        return 1.0 - float(self.misfit.any(axis=1).mean())

    @property
    def _severity(self) -> Array:
        """The largest effect relative to its threshold."""
        return np.asarray(np.max(np.abs(self.effects) / list(THRESHOLDS.values()), axis=1))

    def table(self) -> pd.DataFrame:
        """DataFrame with one row for each column: effects, gaps, q-value, failed checks."""
        found = pd.DataFrame(self.effects, columns=list(THRESHOLDS), index=list(self.names))
        found.index.name = "feature"
        found["largest_gap"] = self.largest_gap
        found["rms_gap"] = self.rms_gap
        found["qvalue"] = self.qvalues.min(axis=1)
        found["fails"] = [", ".join(self.failed_checks(i)) for i in range(len(self.names))]
        return found

    def failed_checks(self, i: int) -> list[str]:
        """Names of the checks that the i-th diagnosed column fails."""
        return [check for check, bad in zip(THRESHOLDS, self.misfit[i], strict=True) if bad]

    def __repr__(self) -> str:
        bad = self.failing_names
        more = ", …" if len(bad) > SHOWN else ""
        shown = ", ".join(repr(name) for name in bad[:SHOWN])
        return f"ConditionalDiagnostics(score={self.score:.3g}, failing=[{shown}{more}])"


def diagnose_conditional(
    conditional: Any,
    X: Any,
    columns: Sequence[int | str] | None = None,
    *,
    refit: bool | None = None,
    random_state: RandomState = 0,
) -> ConditionalDiagnostics:
    """Check the distributions of a fitted conditional model against the rows of X.

    A column fails a check if the p-value, adjusted by Benjamini and Hochberg over all columns and
    checks, is at most 0.01 and the effect reaches 0.05 (distance from uniform) or 0.1
    (correlations). If the model is correct, some column fails in about 1 % of data sets.

    Parameters
    ----------
    conditional : object with ``grid(X, j)``
        Fitted model, see :mod:`sobolev.conditionals`.
    X : array-like of shape (n, d)
        At least 10 rows: the fitted rows in the same order, or new rows with ``refit=False``.
    columns : sequence of int or str, optional
        Columns to check, by position or name; all by default.
    refit : bool or None, default=None
        Whether to check five copies of the model, each fitted to X without one fold, because an
        overfitted model looks correct on its own rows. None refits objects that are not a
        :class:`~sobolev.conditionals.Conditional`; a Conditional predicts fitted rows out of fold
        already. Pass False if the model was not fitted to X.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for draws from the distributions.

    Returns
    -------
    ConditionalDiagnostics
        Result of all checks.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.conditionals import GaussianConditional
    >>> from sobolev.conditionals.diagnostics import diagnose_conditional
    >>> X = np.random.default_rng(0).standard_normal((300, 4))
    >>> X[:, 2] = X[:, 2] > 0
    >>> diagnose_conditional(GaussianConditional().fit(X), X)
    ConditionalDiagnostics(score=0.75, failing=['x2'])
    """
    table, names = _rows(conditional, X)
    chosen = _positions(columns, names)
    return judge(conditional, table, names, chosen, refit=refit, random_state=random_state)


def judge(
    conditional: Any,
    table: Any,
    names: Sequence[str],
    chosen: Index,
    *,
    refit: bool | None = None,
    random_state: RandomState = 0,
    others: Others | None = None,
    fitted: Index | None = None,
) -> ConditionalDiagnostics:
    """Same as :func:`diagnose_conditional` for validated rows; ``others`` saves time.

    ``fitted`` are the positions of the rows among those that the model was fitted to, if these are
    some of them.
    """
    rows = np.asarray(table)
    others = Others.of(rows) if others is None else others
    distributions = unseen_distributions(conditional, table, refit, fitted)
    seen = Seen.of(distributions, rows, chosen[others.varying[chosen]], random_state)
    judged = np.isin(chosen, seen.columns)
    unseen = others.candidates(seen.columns, seen.means, seen.widths)
    uniform = uniform_test(seen.pit)
    location = others.dependence(normal_scores(seen.pit), unseen, seen.columns)
    spread = others.dependence(normal_scores(np.abs(2 * seen.pit - 1)), unseen, seen.columns)
    gap, largest, rms, gap_pvalue = others.gaps(rows, seen.drawn, seen.columns)
    pvalues = np.column_stack([uniform[1], location[1], spread[1], gap_pvalue])
    return ConditionalDiagnostics(
        columns=chosen,
        names=tuple(names[j] for j in chosen),
        pit=_among(judged, seen.pit.T).T,
        effects=_among(judged, np.column_stack([uniform[0], location[0], spread[0], gap])),
        pvalues=_among(judged, pvalues),
        qvalues=_among(judged, _adjusted(pvalues)),
        largest_gap=_among(judged, largest),
        rms_gap=_among(judged, rms),
        off_values=_among(judged, seen.off_values) == 1,
    )


def warn_if_misfit(diagnostics: ConditionalDiagnostics, stacklevel: int = 2) -> None:
    """Warn about columns that the model does not fit, and say how to fix it.

    Parameters
    ----------
    diagnostics : ConditionalDiagnostics
        Result of :func:`diagnose_conditional`.
    stacklevel : int, default=2
        Stack level of the warning as in :func:`warnings.warn`, counted from the caller: 2 points to
        the caller of the function that calls this one.
    """
    bad = diagnostics.failing_names
    if not bad:
        return
    shown = list_some([repr(name) for name in bad], SHOWN)
    warnings.warn(
        f"the conditional model does not fit {shown}; their p-values may be too small. "
        f"Remedy in Python: {'; '.join(_remedies(diagnostics))}.",
        ConditionalModelWarning,
        stacklevel=stacklevel + 1,
    )


def _remedies(diagnostics: ConditionalDiagnostics) -> list[str]:
    """One remedy for each type of failure; columns with wrong values need no other."""
    misfit = diagnostics.misfit
    off = diagnostics.off_values & misfit.any(axis=1)
    failed = misfit[~off]
    uniform, location, spread, correlation = (bool(failed[:, c].any()) for c in range(4))
    wanted = {
        "values": bool(off.any()),
        "spread": spread,
        "location": location or correlation,
        "uniform": uniform and not (spread or location or correlation),
    }
    return [REMEDIES[kind] for kind, needed in wanted.items() if needed]


def _rows(conditional: Any, X: Any) -> tuple[Any, list[str]]:
    """Validated rows (with names if the model was fitted with names), and names of all columns."""
    if not hasattr(conditional, "grid"):
        raise TypeError(f"conditional must have grid(X, j); got {conditional!r}.")
    reader = BaseEstimator()
    rows = validate_rows(reader, X, reset=True)
    if rows.shape[0] < MIN_ROWS:
        raise ValueError(
            f"X has {rows.shape[0]} rows; at least {MIN_ROWS} are needed for diagnostics."
        )
    names = getattr(reader, "feature_names_in_", None)
    if names is None:
        return rows, [f"x{j}" for j in range(rows.shape[1])]
    named = hasattr(conditional, "feature_names_in_")
    return pd.DataFrame(rows, columns=names) if named else rows, [str(name) for name in names]


def _positions(columns: Sequence[int | str] | None, names: list[str]) -> Index:
    d = len(names)
    if columns is None:
        return np.arange(d)
    found: list[int] = []
    for column in [columns] if isinstance(columns, (str, Integral)) else columns:
        if isinstance(column, str) and column in names:
            found.append(names.index(column))
        elif isinstance(column, Integral) and -d <= int(column) < d:
            found.append(int(column) % d)
        else:
            raise ValueError(
                f"columns holds {column!r}, but X with {d} columns has no such column."
            )
    if len(set(found)) < len(found) or not found:
        raise ValueError("columns must contain at least one column, and each only once.")
    return np.array(found, dtype=np.intp)


def _adjusted(pvalues: Array) -> Array:
    """Benjamini and Hochberg over all columns and checks."""
    if not pvalues.size:
        return pvalues
    return np.asarray(false_discovery_control(pvalues.ravel())).reshape(pvalues.shape)


def _among(judged: Mask, values: Any) -> Array:
    """Values of the checked columns extended to all columns, with NaN for the others."""
    found = np.full((judged.size, *np.shape(values)[1:]), np.nan)
    found[judged] = values
    return found
