r"""Does a conditional model fit? Calibration of its distributions, correlations of its draws.

Where the conditional distribution of column j given the others is right, the probability integral
transform :math:`u_i` of :math:`x_{ij}` is uniform and independent of the other columns. Then
:math:`\Phi^{-1}(u_i)` (the position of x in its distribution) and :math:`\Phi^{-1}(|2 u_i - 1|)`
(how far out it is) are standard normal, and their correlation with any function of the other
columns has exactly the distribution of a correlation of independent normal samples: no
permutations are needed. A draw :math:`\tilde x_{ij}` may then be swapped with :math:`x_{ij}` in
any row, so that
:math:`\sum_i (\tilde x_{ij} - x_{ij}) x_{ik}` is as likely with any other signs of its terms.
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

# What is checked, and the smallest effect that counts however many rows prove it: the distance of
# the transforms from uniform (a width wrong by a fifth has 0.05), and correlations.
THRESHOLDS = {"uniform": 0.05, "location": 0.1, "spread": 0.1, "correlation": 0.1}
# The false discovery rate over all columns and checks.
LEVEL = 0.01
MIN_ROWS = 10
SHOWN = 5
REMEDIES = {
    "values": 'columns of few values need a distribution on these values: conditional="mixed"',
    "spread": 'the width must follow the other columns: scale="auto" or a regressor as scale in '
    "ResidualConditional",
    "location": "the mean must follow the other columns: another regressor in ResidualConditional",
    "uniform": "the width or shape is wrong: ResidualConditional takes them from unseen residuals",
}


@dataclass(frozen=True, repr=False, eq=False)
class ConditionalDiagnostics:
    """How well the distributions of m columns fit n rows; see :func:`diagnose_conditional`.

    The checks are ``uniform`` (is the probability integral transform uniform?), ``location`` and
    ``spread`` (do its place and its distance from the middle depend on the other columns?) and
    ``correlation`` (does a draw have the correlations of the column?).

    Attributes
    ----------
    columns : array of int, shape (m,)
        Positions of the columns.
    names : tuple of str
        Their names.
    pit : array of shape (n, m)
        Probability integral transforms; NaN for constant columns, which are not judged.
    effects : array of shape (m, 4)
        One column for each check: the Kolmogorov-Smirnov distance, the correlation farthest from
        zero (twice), and the difference between the correlations of draw and column that stands
        out most.
    pvalues, qvalues : array of shape (m, 4)
        Of the checks, before and after the adjustment over all columns and checks.
    largest_gap, rms_gap : array of shape (m,)
        Differences of correlations in standard errors; the second is about 1 for a right model.
    off_values : array of bool, shape (m,)
        Columns of few values whose distribution has other values.
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
        """Which checks fail, (m, 4): adjusted p-value at most 0.01, and an effect that matters."""
        large = np.abs(self.effects) >= np.array(list(THRESHOLDS.values()))
        return np.asarray(large & (self.qvalues <= LEVEL))

    @property
    def failing(self) -> list[int]:
        """Positions of the columns that fail a check, the smallest p-value first."""
        bad = np.flatnonzero(self.misfit.any(axis=1))
        order = np.lexsort((-self._severity[bad], self.pvalues[bad].min(axis=1)))
        return [int(self.columns[i]) for i in bad[order]]

    @property
    def failing_names(self) -> list[str]:
        """Their names."""
        name = dict(zip(self.columns.tolist(), self.names, strict=True))
        return [name[j] for j in self.failing]

    @property
    def score(self) -> float:
        """The share of columns that pass every check, in [0, 1]; constant columns pass."""
        return 1.0 - float(self.misfit.any(axis=1).mean())

    @property
    def _severity(self) -> Array:
        """The largest effect relative to its threshold."""
        return np.asarray(np.max(np.abs(self.effects) / list(THRESHOLDS.values()), axis=1))

    def table(self) -> pd.DataFrame:
        """One row for each column: effects, gaps, the smallest adjusted p-value, what fails."""
        found = pd.DataFrame(self.effects, columns=list(THRESHOLDS), index=list(self.names))
        found.index.name = "feature"
        found["largest_gap"] = self.largest_gap
        found["rms_gap"] = self.rms_gap
        found["qvalue"] = self.qvalues.min(axis=1)
        found["fails"] = [", ".join(self.failed_checks(i)) for i in range(len(self.names))]
        return found

    def failed_checks(self, i: int) -> list[str]:
        """The checks that the i-th diagnosed column fails."""
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
    (correlations). With the right model some column fails in about 1 % of data sets.

    Parameters
    ----------
    conditional : object with ``grid(X, j)``
        A fitted model, see :mod:`sobolev.conditionals`.
    X : array-like of shape (n, d)
        At least 10 rows: those that the model was fitted to, in the same order, or new rows with
        ``refit=False``.
    columns : sequence of int or str, optional
        Which columns to check, by position or name; all by default.
    refit : bool or None, default=None
        Whether to judge five copies of the model, fitted to X without a fold each. An overfitted
        model looks right on its own rows, so None does this for objects that are not a
        :class:`~sobolev.conditionals.Conditional`, whose predictions of fitted rows are out of
        fold already. Pass False if the model was not fitted to X.
    random_state : int, Generator, RandomState or None, default=0
        Draws positions within atoms, and columns from their distributions.

    Returns
    -------
    ConditionalDiagnostics

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
) -> ConditionalDiagnostics:
    """:func:`diagnose_conditional` of rows that were checked at the door."""
    rows = np.asarray(table)
    others = Others.of(rows)
    distributions = unseen_distributions(conditional, table, refit)
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
    """Warn of the columns that the model does not fit, with the remedy; silent if there are none.

    Parameters
    ----------
    diagnostics : ConditionalDiagnostics
        Result of :func:`diagnose_conditional`.
    stacklevel : int, default=2
        As of :func:`warnings.warn`, seen from the caller: 2 blames the caller of the function that
        calls this one.
    """
    bad = diagnostics.failing_names
    if not bad:
        return
    shown = list_some([repr(name) for name in bad], SHOWN)
    warnings.warn(
        f"the conditional model does not fit {shown}; their p-values may be too small. "
        f"Remedy: {'; '.join(_remedies(diagnostics))}.",
        ConditionalModelWarning,
        stacklevel=stacklevel + 1,
    )


def _remedies(diagnostics: ConditionalDiagnostics) -> list[str]:
    """One piece of advice for each kind of failure; columns on wrong values need only theirs."""
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
    """Checked rows, with their names where the model knows names; names for the table."""
    if not hasattr(conditional, "grid"):
        raise TypeError(f"conditional must have grid(X, j); got {conditional!r}.")
    reader = BaseEstimator()
    rows = validate_rows(reader, X, reset=True)
    if rows.shape[0] < MIN_ROWS:
        raise ValueError(f"X has {rows.shape[0]} rows; at least {MIN_ROWS} are needed to judge.")
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
            raise ValueError(f"columns holds {column!r}, which X with {d} columns does not have.")
    if len(set(found)) < len(found) or not found:
        raise ValueError("columns must hold at least one column, and each only once.")
    return np.array(found, dtype=np.intp)


def _adjusted(pvalues: Array) -> Array:
    """Benjamini and Hochberg over all columns and checks."""
    if not pvalues.size:
        return pvalues
    return np.asarray(false_discovery_control(pvalues.ravel())).reshape(pvalues.shape)


def _among(judged: Mask, values: Any) -> Array:
    """Values of the judged columns among all, NaN for the others."""
    found = np.full((judged.size, *np.shape(values)[1:]), np.nan)
    found[judged] = values
    return found
