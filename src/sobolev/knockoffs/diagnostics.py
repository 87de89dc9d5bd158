r"""Do knockoffs look like their columns? Moments, a classifier, values and correlations.

Swapping a column with its knockoff, in any row, must not change the law of the row. So the terms
of :math:`\sum_i (x_{ij} - \tilde x_{ij})\, g_i`, with g any other column or knockoff, may change
their signs, and the sum in standard errors exceeds t with a probability of at most
:math:`2 e^{-t^2/2}`, however few rows there are (Efron, 1969).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier

from sobolev._random import RandomState, check_generator, seeded
from sobolev._typing import Array, Index, Mask
from sobolev.exceptions import KnockoffModelWarning
from sobolev.inference.multiple_testing import qvalues
from sobolev.knockoffs._moments import correlation_gaps, correlations, in_errors, off_values
from sobolev.knockoffs.groups import GroupsLike, group_labels
from sobolev.validation import list_some, validate_rows

# What is checked, and the smallest effect that counts: the difference of means in standard
# deviations, of variances relative to their mean, and of correlations.
THRESHOLDS = {"mean": 0.1, "variance": 0.2, "correlation": 0.1}
# The false discovery rate over all columns and checks, and the level of the classifier.
LEVEL = 0.01
MIN_ROWS = 10
SHOWN = 5
# The classifier predicts each of the last four of five blocks from the rows before it.
N_BLOCKS = 5
SWAPS = ("all", "half")


@dataclass(frozen=True, repr=False, eq=False)
class KnockoffDiagnostics:
    """How well knockoffs match p columns in n rows; made by :func:`diagnose_knockoffs`.

    Attributes
    ----------
    names : tuple of str
    effects : array of shape (p, 3)
        Differences between column and knockoff: of means, of variances, and of the correlation
        with another column or knockoff that stands out most. NaN for constant columns.
    gaps : array of shape (p, 3)
        The largest of them in standard errors.
    qvalues : array of shape (p, 3)
        Adjusted over all columns and checks.
    off_values : array of shape (p,)
        The share of rows in which the knockoff of a column of at most ten values has another
        value; zero for other columns.
    correlations : array of shape (p,)
        Between column and knockoff; the nearer to one, the less power.
    accuracies : array of shape (2,) or None
        Of a classifier that tells rows from rows with swapped pairs: all pairs, and a random half.
    classifier_pvalue : float or None
        Of the better accuracy, for two tries.
    """

    names: tuple[str, ...]
    effects: Array
    gaps: Array
    qvalues: Array
    off_values: Array
    correlations: Array
    accuracies: Array | None = None
    classifier_pvalue: float | None = None

    @property
    def misfit(self) -> Mask:
        """Which moments fail, (p, 3): adjusted p-value at most 0.01, and an effect that matters."""
        large = np.abs(self.effects) >= np.array(list(THRESHOLDS.values()))
        return np.asarray(large & (self.qvalues <= LEVEL))

    @property
    def failing(self) -> list[int]:
        """Columns whose knockoffs have other values or moments, the worst first."""
        bad = np.flatnonzero(self.misfit.any(axis=1) | (self.off_values > 0))
        gaps = np.nan_to_num(self.gaps[bad]).max(axis=1, initial=0.0)
        return [int(j) for j in bad[np.lexsort((-gaps, -self.off_values[bad]))]]

    @property
    def failing_names(self) -> list[str]:
        """Their names."""
        return [self.names[j] for j in self.failing]

    @property
    def score(self) -> float:
        """The share of columns that pass, in [0, 1]; constant columns pass."""
        return 1.0 - len(self.failing) / len(self.names)

    @property
    def off_share(self) -> float:
        """The share of columns whose knockoffs leave the values of the column."""
        return float((self.off_values > 0).mean())

    @property
    def mean_correlation(self) -> float:
        """Between column and knockoff, over the columns that vary; NaN if none does."""
        varying = np.isfinite(self.correlations)
        return float(self.correlations[varying].mean()) if varying.any() else np.nan

    @property
    def told_apart(self) -> bool:
        """Whether the classifier tells swapped rows from others, at level 0.01."""
        return self.classifier_pvalue is not None and self.classifier_pvalue <= LEVEL

    def failed_checks(self, j: int) -> list[str]:
        """What fails for column j."""
        found = ["values"] if self.off_values[j] > 0 else []
        return found + [name for name, bad in zip(THRESHOLDS, self.misfit[j], strict=True) if bad]

    def table(self) -> pd.DataFrame:
        """One row for each column: effects, the largest gap, values, power, what fails."""
        found = pd.DataFrame(self.effects, columns=list(THRESHOLDS), index=list(self.names))
        found.index.name = "feature"
        found["largest_gap"] = self.gaps.max(axis=1)
        found["qvalue"] = self.qvalues.min(axis=1)
        found["off_values"] = self.off_values
        found["correlation_with_knockoff"] = self.correlations
        found["fails"] = [", ".join(self.failed_checks(j)) for j in range(len(self.names))]
        return found

    def __repr__(self) -> str:
        bad = self.failing_names
        more = ", …" if len(bad) > SHOWN else ""
        shown = ", ".join(repr(name) for name in bad[:SHOWN])
        told = "" if self.accuracies is None else f", accuracy={self.accuracies.max():.3g}"
        return f"KnockoffDiagnostics(score={self.score:.3g}{told}, failing=[{shown}{more}])"


def diagnose_knockoffs(
    X: Any,
    X_knockoff: Any,
    *,
    feature_groups: GroupsLike | None = None,
    classifier: Any = None,
    random_state: RandomState = 0,
) -> KnockoffDiagnostics:
    """Compare knockoffs with the columns that they are to stand in for.

    A column fails if its knockoff has values that a column of at most ten values does not have,
    or if a difference of moments has an adjusted p-value of at most 0.01 and reaches 0.1 (mean,
    in standard deviations; correlation) or 0.2 (variance, relative). With right knockoffs some
    column fails in less than 1 % of data sets.

    Parameters
    ----------
    X, X_knockoff : array-like or DataFrame of shape (n, p)
        At least 10 rows.
    feature_groups : mapping or sequence of sequences, optional
        Disjoint groups of columns that are swapped together.
    classifier : estimator, False or None, default=None
        Tells rows from rows with swapped pairs; None is a random forest, False leaves this out.
        Each block of rows is predicted by a fit to the rows before it, so that the number of hits
        is binomial if the knockoffs are right.
    random_state : int, Generator, RandomState or None, default=0
        For the rows and pairs that are swapped.

    Returns
    -------
    KnockoffDiagnostics

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
            f"X has the shape {X.shape} and X_knockoff {X_knockoff.shape}; they must agree."
        )
    n, p = X.shape
    if n < MIN_ROWS:
        raise ValueError(f"X has {n} rows; at least {MIN_ROWS} are needed to judge.")
    labels = np.arange(p) if feature_groups is None else group_labels(feature_groups, p, names)
    found = compare_moments(X, X_knockoff, labels)
    if names is not None:
        found = replace(found, names=tuple(str(name) for name in names))
    if classifier is False:
        return found
    accuracies, pvalue = tell_apart(
        X, X_knockoff, labels, classifier, check_generator(random_state)
    )
    return replace(found, accuracies=accuracies, classifier_pvalue=pvalue)


def compare_moments(X: Array, X_knockoff: Array, labels: Index) -> KnockoffDiagnostics:
    """All checks but the classifier; ``labels`` holds the group of each column."""
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


def tell_apart(
    X: Array, X_knockoff: Array, labels: Index, classifier: Any, rng: np.random.Generator
) -> tuple[Array, float]:
    """Accuracy of a classifier of rows and rows with swapped pairs, and its p-value.

    The label of each row is a coin, so that given all earlier rows a hit is a coin as well, and
    the number of hits binomial.

    Returns
    -------
    accuracies : array of shape (2,)
        All pairs swapped, and a random half.
    pvalue : float
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


def warn_if_misfit(diagnostics: KnockoffDiagnostics, stacklevel: int = 2) -> None:
    """Warn of columns whose knockoffs do not fit, with the remedy; silent if there is none.

    Parameters
    ----------
    diagnostics : KnockoffDiagnostics
    stacklevel : int, default=2
        As of :func:`warnings.warn`, seen from the caller.
    """
    bad = diagnostics.failing_names
    if not bad:
        return
    remedies = []
    if diagnostics.off_share > 0:
        remedies.append('columns of few values need knockoffs on them: sampler="sequential"')
    if diagnostics.misfit[diagnostics.off_values == 0].any():
        remedies.append(
            "moments differ: another sampler, or SequentialKnockoffs with a regressor or "
            "classifier that follows the columns"
        )
    shown = list_some([repr(name) for name in bad], SHOWN)
    warnings.warn(
        f"the knockoffs do not look like {shown}; more than the nominal share of "
        f"discoveries may be false. Remedy: {'; '.join(remedies)}.",
        KnockoffModelWarning,
        stacklevel=stacklevel + 1,
    )
