"""Held-out skill: how well a critic predicts rows that it was not fitted to, against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from sobolev._typing import AnyArray, Array, Index, Mask
from sobolev.critic import FrozenCritic, PredictorCritic
from sobolev.responses import Response
from sobolev.validation import take_rows

# Skill is clear if chance exceeds it with a probability of at most 5 %.
LEVEL = 0.95
CLEAR = float(norm.ppf(LEVEL))
# Pairs of at most this many rows of a block are compared.
MAX_PAIRED = 2000
BASELINES = {
    "R²": "0 is no better than the mean of the response",
    "AUC": "0.5 is chance",
    "concordance": "0.5 is chance",
}


@dataclass(frozen=True)
class Skill:
    """How well the response of rows that were not used in a fit is predicted.

    Attributes
    ----------
    name : {"R²", "AUC", "concordance"}
        R² for numbers; the mean area under the ROC curves of the classes; the share of pairs of
        rows in the right order for survival times.
    value : float
    baseline : float
        The value without skill: 0 or 0.5.
    is_clear : bool
        Whether the value is above the baseline by more than chance explains.
    n_rows : int or None
        Number of held-out rows; None for cross-validation, which holds out all of them in turn.

    Examples
    --------
    >>> from sobolev.skill import Skill
    >>> Skill("AUC", 0.714, 0.5, is_clear=True).short
    'held-out AUC 0.71 (0.5 is chance)'
    """

    name: str
    value: float
    baseline: float
    is_clear: bool
    n_rows: int | None = None

    @property
    def shown(self) -> str:
        """The value as text."""
        return f"{self.value:.2f}".replace("-0.00", "0.00").replace("-", "−")

    @property
    def short(self) -> str:
        """The value with its baseline."""
        return f"held-out {self.name} {self.shown} ({BASELINES[self.name]})"

    @property
    def sentence(self) -> str:
        """What the value means, in one sentence."""
        if self.is_clear:
            return f"The model predicts rows that it has not seen: {self.short}."
        return f"The model does not predict rows that it has not seen: {self.short}."

    def to_dict(self) -> dict[str, Any]:
        """The fields, and the sentence, for JSON."""
        return vars(self) | {"sentence": self.sentence}


def cross_validated_skill(estimator: Any) -> Skill | None:
    """Skill of a fitted ConvexSIC from the cross-validation that chose ``lam``.

    Twice the risk, with ``rho=1``, is the share of the variance of the encoded response that is
    explained; for classes, of their whitened indicators.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    Skill or None
        None without cross-validation, and for other estimators.

    Examples
    --------
    >>> from sobolev import ConvexSIC
    >>> from sobolev.datasets import make_sinexp
    >>> from sobolev.skill import cross_validated_skill
    >>> X, y = make_sinexp(300, 8, random_state=0, return_X_y=True)
    >>> cross_validated_skill(ConvexSIC().fit(X, y)).is_clear
    True
    """
    risks = getattr(estimator, "lam_risks_", None)
    if risks is None or len(risks) < 2 or not hasattr(estimator, "critic_"):
        return None
    at = int(np.argmin(np.abs(estimator.lam_path_ - estimator.lam_)))
    n_outputs = estimator.encoder_.whitener_.shape[1]
    explained = 2 * estimator.rho * risks[:, at] / n_outputs
    error = float(explained.std(ddof=1)) / np.sqrt(len(explained))
    value = float(explained.mean())
    is_clear = value > float(student.ppf(LEVEL, len(explained) - 1)) * error
    return Skill("R²", value, 0.0, bool(is_clear))


def held_out_skill(
    runs: Sequence[Sequence[tuple[Any, Index, Index]]],
    X: Array,
    y: Any,
    response: Response,
    groups: Index | None = None,
) -> Skill | None:
    """Skill of critics on blocks of rows that they were not fitted to.

    Parameters
    ----------
    runs : sequence of sequences of (critic, train, rows)
        The blocks of each repetition: a fitted critic, the rows that it was fitted to, and others.
    X : array of shape (n, d)
    y : array or DataFrame of n rows
        The response as critics see it.
    response : Response
        How y was read.
    groups : array of int, optional
        The subject of each row; rows of a subject count as one in the judgement of chance.

    Returns
    -------
    Skill or None
        The mean over repetitions; None if the critics do not say what they predict.
    """
    found = [_of_run(run, X, y, response, groups) for run in runs]
    if not found or any(each is None for each in found):
        return None
    name = found[0][0]  # type: ignore[index]
    value, score = np.mean([each[1:] for each in found], axis=0)  # type: ignore[index]
    baseline = 0.0 if name == "R²" else 0.5
    n_rows = sum(rows.size for _, _, rows in runs[0])
    return Skill(name, float(value), baseline, bool(score > CLEAR and value > baseline), n_rows)


def _of_run(
    run: Sequence[tuple[Any, Index, Index]],
    X: Array,
    y: Any,
    response: Response,
    groups: Index | None,
) -> tuple[str, float, float] | None:
    """Name and value of the skill in one repetition, and how many deviations it is from chance."""
    gains, weights, witnesses, subjects, name = [], [], [], [], ""
    for critic, train, rows in run:
        block = _Block(critic, X[rows], take_rows(y, rows), take_rows(y, train))
        happened = None if response.events is None else response.events[rows]
        measured = block.skill(response.kind, happened)
        if measured is None:
            return None
        name, gain, weight, witness = measured
        gains.append(gain)
        weights.append(weight)
        witnesses.append(witness)
        subjects.append(rows if groups is None else groups[rows])
    if not sum(weights) > 0:
        return None
    own = np.unique(np.concatenate(subjects), return_inverse=True)[1]
    sums = np.bincount(own, weights=np.concatenate(witnesses))
    size = float(np.sqrt(np.sum(sums**2)))
    return name, sum(gains) / sum(weights), float(sums.sum()) / size if size else 0.0


@dataclass(frozen=True)
class _Block:
    """A critic, rows that it was not fitted to, and the responses that it was fitted to."""

    critic: Any
    X: Array
    y: Any
    known: Any

    def skill(self, kind: str, happened: Mask | None) -> tuple[str, float, float, Array] | None:
        """Name of the measure, its sum, its weight, and the witness of each row."""
        if kind == "classes":
            return self._area()
        if kind == "survival":
            return self._concordance(happened)
        if hasattr(self._estimator, "predict"):
            y, predicted = self._predicted()
            gain = float(np.sum(y**2) - np.sum((y - predicted) ** 2))
            return "R²", gain, float(np.sum(y**2)), np.sum(y * predicted, axis=1)
        evaluator = self._evaluator(self.y, "risk")
        if hasattr(evaluator, "psi") and getattr(evaluator, "exact", True):  # f = h(x)' psi(y)
            gain = 2 * evaluator.rho * float(self._values(evaluator).sum())
            return "R²", gain, float(np.sum(evaluator.psi**2)), self._witness(self.y)
        return self._concordance(None) if np.ndim(self.y) == 1 else None

    @property
    def _estimator(self) -> Any:
        found = self.critic.critic if isinstance(self.critic, FrozenCritic) else self.critic
        return found.estimator if isinstance(found, PredictorCritic) else found

    def _evaluator(self, y: Any, statistic: str) -> Any:
        return self.critic.evaluator(self.X, y, statistic)

    def _values(self, evaluator: Any) -> Array:
        """The statistic of the rows as they are."""
        return np.asarray(evaluator.each(np.array([0]), self.X[:, None, :1])[:, 0], dtype=float)

    def _witness(self, y: Any) -> Array:
        return self._values(self._evaluator(y, "witness"))

    def _predicted(self) -> tuple[Array, Array]:
        """Responses and predictions of a regressor, less the mean of the rows of its fit."""
        known = np.asarray(self.known, dtype=float).reshape(len(self.known), -1)
        spread = known.std(axis=0)
        pair = np.asarray(self.y, dtype=float), self._estimator.predict(self.X)
        y, predicted = (
            (np.asarray(each, dtype=float).reshape(len(self.X), -1) - known.mean(axis=0))
            / np.where(spread > 0, spread, 1.0)
            for each in pair
        )
        return y, predicted

    def _concordance(self, happened: Mask | None) -> tuple[str, float, float, Array]:
        """Pairs in the right order: events by their times, or numbers if no event is known."""
        values = np.asarray(self.y, dtype=float)
        if hasattr(self._estimator, "predict"):
            y, predicted = self._predicted()
            scores, witness = predicted[:, 0], np.sum(y * predicted, axis=1)
        else:
            ends = np.quantile(np.asarray(self.known, dtype=float), [0.1, 0.9])
            low, high = (self._witness(np.full(values.size, end)) for end in ends)
            scores, witness = high - low, self._witness(self.y)
        events = np.ones(values.size, dtype=bool) if happened is None else happened
        times = -values if happened is None else happened - values  # the cumulative hazard
        return "concordance", *concordant_pairs(scores, times, events), witness

    def _area(self) -> tuple[str, float, float, Array]:
        """The mean AUC of the classes, each against all others."""
        labels, known = np.asarray(self.y).ravel(), np.asarray(self.known).ravel()
        if hasattr(self._estimator, "predict_proba"):
            classes = self._estimator.classes_
            scores = np.asarray(self._estimator.predict_proba(self.X), dtype=float)
        else:
            classes = np.unique(known)
            scores = np.column_stack([self._witness(np.repeat(c, labels.size)) for c in classes])
        is_own = labels[:, None] == classes[None, :]
        areas = np.array([area_under_curve(*pair) for pair in zip(scores.T, is_own.T, strict=True)])
        shares = np.array([np.mean(known == label) for label in classes])
        witness = np.sum(scores * is_own, axis=1) - scores @ shares
        weight = float(labels.size) if np.isfinite(areas).any() else 0.0
        return "AUC", weight * float(np.nanmean(areas)) if weight else 0.0, weight, witness


def area_under_curve(scores: Array, is_own: Mask) -> float:
    """The share of pairs of a row of the class and another row that are in the right order.

    NaN if one of both is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.skill import area_under_curve
    >>> area_under_curve(np.array([0.1, 0.4, 0.3, 0.9]), np.array([False, False, True, True]))
    0.75
    """
    n_own = int(is_own.sum())
    n_others = is_own.size - n_own
    if not (n_own and n_others):
        return float("nan")
    ranks = rankdata(scores)[is_own].sum()
    return float((ranks - n_own * (n_own + 1) / 2) / (n_own * n_others))


def concordant_pairs(scores: Array, times: AnyArray, happened: Mask) -> tuple[float, float]:
    """Number of pairs in the right order, and number of pairs that can be compared (Harrell).

    A pair can be compared if the event of the first row happened before the time of the second.
    It is in the right order if the first has the larger score; a tie counts half.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.skill import concordant_pairs
    >>> times, happened = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    >>> concordant_pairs(np.array([0.9, 0.1, 0.3]), times, happened)
    (2.0, 2.0)
    """
    some = slice(MAX_PAIRED)
    s, t, e = scores[some], np.asarray(times)[some], happened[some]
    later = (t[None, :] > t[:, None]) | ((t[None, :] == t[:, None]) & ~e[None, :])
    comparable = e[:, None] & later
    right = (s[:, None] > s[None, :]) + 0.5 * (s[:, None] == s[None, :])
    return float(right[comparable].sum()), float(comparable.sum())
