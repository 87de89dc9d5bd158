r"""Diagnostics of knockoffs: moments, values, correlations, and a classifier.

Swapping a column with its knockoff, in any row, must not change the distribution of the row. So
the terms of :math:`\sum_i (x_{ij} - \tilde x_{ij})\, g_i`, where g is any other column or
knockoff, may change their signs, and the sum in standard errors exceeds t with probability at most
:math:`2 e^{-t^2/2}` for any number of rows (Efron, 1969).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier

from sobolev._random import RandomState, check_generator, seeded
from sobolev._standardize import rank_scores
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.flexible import HeldOut
from sobolev.criterion import GroupsLike
from sobolev.exceptions import KnockoffModelWarning
from sobolev.inference.multiple_testing import qvalues
from sobolev.knockoffs._moments import correlation_gaps, correlations, in_errors, off_values
from sobolev.knockoffs.groups import group_labels
from sobolev.knockoffs.signs import NullSigns, null_signs
from sobolev.validation import list_some, validate_rows

# The checks and the smallest effect that counts as a failure: the difference of means in standard
# deviations, of variances relative to their mean, and of correlations.
THRESHOLDS = {"mean": 0.1, "variance": 0.2, "correlation": 0.1}
# Level of the false discovery rate over all columns and checks, and of the classifier test.
LEVEL = 0.01
MIN_ROWS = 10
# The differences of a column are predictable if a prediction is better by so many standard errors.
SURE = 4.0
SHOWN = 5
# Shares of planted responses in which a column beats its knockoff that give reason for doubt: if it
# also fails a check, and if all columns together win too often.
MOST, MANY = 0.75, 0.6
# The classifier predicts each of the last four of five blocks from the rows before it.
N_BLOCKS = 5
SWAPS = ("all", "half")


@dataclass(frozen=True, repr=False, eq=False)
class KnockoffDiagnostics:
    """How well knockoffs match their columns; returned by :func:`diagnose_knockoffs`.

    Attributes
    ----------
    names : tuple of str
        Names of the columns.
    effects : array of shape (p, 3)
        Differences between column and knockoff in the mean, the variance, and the correlation with
        another column or knockoff (the most significant one). NaN for constant columns.
    gaps : array of shape (p, 3)
        Absolute values of these differences in standard errors.
    qvalues : array of shape (p, 3)
        P-values of the differences, adjusted over all columns and checks.
    off_values : array of shape (p,)
        For columns with at most ten values, the share of rows in which the knockoff has a value
        that the column never takes; zero for other columns.
    correlations : array of shape (p,)
        Correlation between each column and its knockoff; values near one mean low power.
    signs : NullSigns or None
        How often columns that do not matter beat their knockoffs, with planted responses.
    missed : array of bool, shape (p,), or None
        Selected columns whose differences to their knockoffs the other columns predict.
    accuracies : array of shape (2,) or None
        Accuracies of a classifier that separates original rows from rows with swapped pairs: all
        pairs swapped, and a random half of them.
    classifier_pvalue : float or None
        P-value of the larger accuracy, corrected for two tests.
    """

    names: tuple[str, ...]
    effects: Array
    gaps: Array
    qvalues: Array
    off_values: Array
    correlations: Array
    signs: NullSigns | None = None
    missed: Mask | None = None
    accuracies: Array | None = None
    classifier_pvalue: float | None = None

    @property
    def misfit(self) -> Mask:
        """Checks that fail, (p, 3): adjusted p-value at most 0.01 and a relevant effect."""
        large = np.abs(self.effects) >= np.array(list(THRESHOLDS.values()))
        return np.asarray(large & (self.qvalues <= LEVEL))

    @property
    def failing(self) -> list[int]:
        """Positions of the columns whose knockoffs have other values or moments, worst first."""
        bad = np.flatnonzero(self.misfit.any(axis=1) | (self.off_values > 0))
        gaps = np.nan_to_num(self.gaps[bad]).max(axis=1, initial=0.0)
        return [int(j) for j in bad[np.lexsort((-gaps, -self.off_values[bad]))]]

    @property
    def failing_names(self) -> list[str]:
        """Names of the columns in ``failing``."""
        return [self.names[j] for j in self.failing]

    @property
    def doubtful(self) -> list[int]:
        """Positions of the columns for which the false discovery rate is in doubt, worst first.

        These are columns with few values whose knockoffs have others; columns that fail a check and
        beat their knockoffs in most planted responses; if all columns together beat their
        knockoffs too often, those that do so most often; and selected columns that depend on the
        others in a way that their knockoffs do not. A failed check alone is no reason for doubt:
        knockoffs that resemble the other columns too much cost power only.
        """
        bad = self.off_values > 0
        if self.missed is not None:
            bad = bad | self.missed
        if self.signs is not None:
            shares = np.nan_to_num(self.signs.shares)
            bad = bad | (self.misfit.any(axis=1) & (shares >= MOST))
            if self.signs.in_doubt:
                bad = bad | (shares >= min(MANY, float(shares.max())))
        else:
            shares = np.zeros(len(self.names))
        order = np.lexsort((-shares, -self.off_values))
        return [int(j) for j in order if bad[j]]

    @property
    def score(self) -> float:
        """Share of columns that pass all checks, in [0, 1]; constant columns pass."""
        return 1.0 - len(self.failing) / len(self.names)

    @property
    def off_share(self) -> float:
        """Share of columns whose knockoffs take values that the column never takes."""
        return float((self.off_values > 0).mean())

    @property
    def mean_correlation(self) -> float:
        """Mean correlation between column and knockoff over the columns that vary, or NaN."""
        varying = np.isfinite(self.correlations)
        return float(self.correlations[varying].mean()) if varying.any() else np.nan

    @property
    def told_apart(self) -> bool:
        """Whether the classifier separates swapped from original rows, at level 0.01."""
        return self.classifier_pvalue is not None and self.classifier_pvalue <= LEVEL

    def failed_checks(self, j: int) -> list[str]:
        """Names of the checks that fail for column j."""
        found = ["values"] if self.off_values[j] > 0 else []
        return found + [name for name, bad in zip(THRESHOLDS, self.misfit[j], strict=True) if bad]

    def table(self) -> pd.DataFrame:
        """DataFrame with one row for each column: effects, gaps, correlation, failed checks."""
        found = pd.DataFrame(self.effects, columns=list(THRESHOLDS), index=list(self.names))
        found.index.name = "feature"
        found["largest_gap"] = self.gaps.max(axis=1)
        found["qvalue"] = self.qvalues.min(axis=1)
        found["off_values"] = self.off_values
        found["correlation_with_knockoff"] = self.correlations
        if self.signs is not None:
            found["wins"] = self.signs.shares
        found["fails"] = [", ".join(self.failed_checks(j)) for j in range(len(self.names))]
        return found

    def __repr__(self) -> str:
        bad = self.failing_names
        more = ", …" if len(bad) > SHOWN else ""
        shown = ", ".join(repr(name) for name in bad[:SHOWN])
        accuracy = "" if self.accuracies is None else f", accuracy={self.accuracies.max():.3g}"
        return f"KnockoffDiagnostics(score={self.score:.3g}{accuracy}, failing=[{shown}{more}])"


def diagnose_knockoffs(
    X: Any,
    X_knockoff: Any,
    *,
    feature_groups: GroupsLike | None = None,
    classifier: Any = None,
    random_state: RandomState = 0,
) -> KnockoffDiagnostics:
    """Compare knockoffs with their columns.

    A column fails if it has at most ten values and its knockoff takes other values, or if a
    difference of moments has an adjusted p-value of at most 0.01 and reaches 0.1 (mean, in standard
    deviations; correlation) or 0.2 (variance, relative). If the knockoffs are valid, some column
    fails in less than 1 % of data sets.

    Parameters
    ----------
    X, X_knockoff : array-like or DataFrame of shape (n, p)
        Columns and their knockoffs, at least 10 rows.
    feature_groups : mapping or sequence of sequences, optional
        Disjoint groups of columns that are swapped together.
    classifier : estimator, False or None, default=None
        Classifier that separates original rows from rows with swapped pairs. None is a random
        forest, False skips this check. Each block of rows is predicted by a fit to the rows before
        it, so that the number of correct predictions is binomial if the knockoffs are valid.
    random_state : int, Generator, RandomState or None, default=0
        Seed or generator for the choice of the rows and pairs to swap.

    Returns
    -------
    KnockoffDiagnostics
        Result of all checks.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.knockoffs import GaussianKnockoffs, diagnose_knockoffs
    >>> X = np.random.default_rng(0).standard_normal((300, 4))
    >>> X[:, 2] = X[:, 2] > 0
    >>> X_knockoff = GaussianKnockoffs().fit(X).sample(random_state=0)
    >>> diagnose_knockoffs(X, X_knockoff, classifier=False)
    KnockoffDiagnostics(score=0.75, failing=['x2'])
    """
    reader = BaseEstimator()
    X = validate_rows(reader, X, reset=True)
    names = getattr(reader, "feature_names_in_", None)
    X_knockoff = validate_rows(BaseEstimator(), X_knockoff, reset=True)
    if X.shape != X_knockoff.shape:
        raise ValueError(
            f"X has shape {X.shape} and X_knockoff has shape {X_knockoff.shape}; they must agree."
        )
    n, p = X.shape
    if n < MIN_ROWS:
        raise ValueError(f"X has {n} rows; at least {MIN_ROWS} are needed for diagnostics.")
    labels = group_labels(feature_groups, p, names)
    found = compare(X, X_knockoff, labels)
    if names is not None:
        found = replace(found, names=tuple(str(name) for name in names))
    if classifier is False:
        return found
    rng = check_generator(random_state)
    accuracies, pvalue = classify_swapped(X, X_knockoff, labels, classifier, rng)
    return replace(found, accuracies=accuracies, classifier_pvalue=pvalue)


def compare(X: Array, X_knockoff: Array, labels: Index) -> KnockoffDiagnostics:
    """All checks except the classifier; ``labels`` holds the group of each column."""
    found = compare_moments(X, X_knockoff, labels)
    if not (np.ptp(X, axis=0) > 0).any():
        return found
    signs = null_signs(X, [X_knockoff], labels, np.random.default_rng(0))
    return replace(found, signs=signs)


def compare_moments(X: Array, X_knockoff: Array, labels: Index) -> KnockoffDiagnostics:
    """Values and moments; ``labels`` holds the group of each column."""
    n, p = X.shape
    both = np.vstack([X, X_knockoff])
    scale = both.std(axis=0)
    varying = np.ptp(both, axis=0) > 0
    center, scale = both.mean(axis=0), np.where(varying & (scale > 0), scale, 1.0)
    A, B = (X - center) / scale, (X_knockoff - center) / scale
    D = A - B
    mean = D.mean(axis=0)
    variance = (A**2 - B**2).mean(axis=0)
    z_mean = in_errors(D.sum(axis=0), (D**2).sum(axis=0))
    z_variance = in_errors(n * variance, ((A**2 - B**2) ** 2).sum(axis=0))
    correlation, z_correlation, count = correlation_gaps(A, B, labels)
    effects = np.column_stack([mean, variance, correlation])
    gaps = np.column_stack([np.abs(z_mean), np.abs(z_variance), z_correlation])
    tries = np.column_stack([np.ones(p), np.ones(p), np.maximum(count, 1)])
    pvalues = np.minimum(2 * tries * np.exp(-0.5 * gaps**2), 1.0)
    q = np.full((p, 3), np.nan)
    q[varying] = qvalues(pvalues[varying].ravel()).reshape(-1, 3)
    effects[~varying], gaps[~varying] = np.nan, np.nan
    return KnockoffDiagnostics(
        names=tuple(f"x{j}" for j in range(p)),
        effects=effects,
        gaps=gaps,
        qvalues=q,
        off_values=np.array([off_values(x, k) for x, k in zip(X.T, X_knockoff.T, strict=True)]),
        correlations=correlations(X, X_knockoff),
    )


def classify_swapped(
    X: Array, X_knockoff: Array, labels: Index, classifier: Any, rng: np.random.Generator
) -> tuple[Array, float]:
    """Accuracy of a classifier that separates original from swapped rows, and its p-value.

    A coin toss decides whether a row is swapped. If the knockoffs are valid, each prediction is
    correct with probability 1/2 given all earlier rows, so the number of correct ones is binomial.

    Returns
    -------
    accuracies : array of shape (2,)
        Accuracy with all pairs swapped, and with a random half of them.
    pvalue : float
        P-value of the larger accuracy, corrected for two tests.
    """
    if classifier is None:
        classifier = RandomForestClassifier(100, min_samples_leaf=5)
    n = X.shape[0]
    half = rng.integers(0, 2, int(labels.max()) + 1).astype(bool)[labels]
    hits, edges = [], np.linspace(0, n, N_BLOCKS + 1).round().astype(np.intp)
    for swapped in (np.ones(labels.size, dtype=bool), half):
        order = rng.permutation(n)
        coin = rng.integers(0, 2, n).astype(bool)
        move = coin[:, None] & swapped
        A, B = X[order], X_knockoff[order]
        rows = np.hstack([np.where(move, B, A), np.where(move, A, B)])
        found = 0
        for begin, end in pairwise(edges[1:]):
            guess = rng.integers(0, 2, end - begin).astype(bool)
            if np.unique(coin[:begin]).size == 2:
                model = seeded(classifier, rng).fit(rows[:begin], coin[:begin])
                guess = np.asarray(model.predict(rows[begin:end]), dtype=bool)
            found += int(np.count_nonzero(guess == coin[begin:end]))
        hits.append(found)
    tries = int(n - edges[1])
    pvalue = binomtest(max(hits), tries, alternative="greater").pvalue
    return np.array(hits) / tries, min(1.0, len(SWAPS) * float(pvalue))


def missed_dependence(X: Array, X_knockoff: Array, labels: Index, columns: Iterable[int]) -> Mask:
    """Columns whose differences to their knockoffs can be predicted from the other columns.

    Given the other columns, a column and its knockoff have the same mean, so their difference has
    mean zero. It has not if the column is a product or a wave of others and its knockoff ignores
    that.

    Parameters
    ----------
    X, X_knockoff : array of shape (n, p)
    labels : array of int, shape (p,)
        The group of each column; other columns are those of other groups.
    columns : iterable of int
        The columns to check.

    Returns
    -------
    array of bool, shape (p,)
    """
    found, Z = np.zeros(X.shape[1], dtype=bool), rank_scores(X)
    for j in columns:
        rest, difference = Z[:, labels != labels[j]], (X[:, j] - X_knockoff[:, j])[:, None]
        if rest.shape[1]:
            found[j] = HeldOut(rest, clear=SURE).mean(difference - difference.mean()).any()
    return found


def warn_if_misfit(diagnostics: KnockoffDiagnostics, stacklevel: int = 2) -> None:
    """Warn if the false discovery rate is in doubt, name the columns and say what to do.

    Parameters
    ----------
    diagnostics : KnockoffDiagnostics
        Result of :func:`diagnose_knockoffs`.
    stacklevel : int, default=2
        Stack level of the warning as in :func:`warnings.warn`, counted from the caller.
    """
    doubtful = diagnostics.doubtful
    if not doubtful:
        return
    causes = []
    if diagnostics.off_share > 0:
        causes.append("have few values, and their knockoffs have others")
    missed = diagnostics.missed
    missed = np.zeros(len(diagnostics.names), dtype=bool) if missed is None else missed
    if missed.any():
        causes.append("depend on the others in a way that their knockoffs do not")
    if ((diagnostics.off_values == 0) & ~missed)[doubtful].any():
        causes.append("beat their knockoffs too often in responses that do not depend on them")
    shown = list_some([repr(diagnostics.names[j]) for j in doubtful], SHOWN)
    warnings.warn(
        f"the false discovery rate may exceed its level: columns {' or '.join(causes)}: {shown}. "
        'Use sampler="auto", or, if it is used, HRTSelector (in the shell: --sampler auto or '
        "--method hrt); audit(selector, X) (in the shell: --audit) measures the rate.",
        KnockoffModelWarning,
        stacklevel=stacklevel + 1,
    )
