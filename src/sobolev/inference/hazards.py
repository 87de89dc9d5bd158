r"""The statistic of survival times: the log-likelihood of a proportional hazard.

A critic of log-rank scores (:func:`~sobolev.responses.survival_scores`) predicts them by
:math:`s(x)`. To first order a log hazard ratio g moves the expected score by g times the share of
events, so :math:`g = s / \bar\delta`. A row with event :math:`\delta` and cumulative baseline
hazard :math:`\Lambda` then has the statistic :math:`\delta g - \Lambda e^g`, with Breslow's
baseline of the rows that the critic was fitted to. Like any function of the columns and of y it may
be tested; unlike the risk of the scores it knows how much less a row says that is censored early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sobolev._typing import Array, Index, Mask
from sobolev.critic import Evaluator
from sobolev.inference.null_distribution import NullTable

# Log hazard ratios beyond this, against the mean row of the fit, are cut.
MAX_LOG_RATIO = 5.0


@dataclass(frozen=True)
class Hazard:
    """A critic of log-rank scores as a model of the hazard, on rows that are tested.

    Attributes
    ----------
    predicted : Evaluator
        Predicted scores.
    centre : float
        Mean prediction of the rows of the fit.
    share : float
        Share of events of the rows of the fit.
    happened : array of bool, shape (n,)
    baseline : array of shape (n,)
        Cumulative baseline hazard up to the time of each row.
    """

    predicted: Evaluator
    centre: float
    share: float
    happened: Mask
    baseline: Array

    @property
    def slow(self) -> bool:
        """See :class:`~sobolev.critic.Evaluator`."""
        return self.predicted.slow

    def of(self, scores: NullTable) -> NullTable:
        """The log-likelihood of each row, from a table of predicted scores.

        Scores are what is interpolated between the nodes of a column: they are as smooth as the
        critic, the likelihood is not.
        """
        values, observed = self._of(scores.values), self._of(scores.observed[:, None])[:, 0]
        return NullTable(values, scores.weights, observed)

    def _of(self, scores: Array) -> Array:
        g = log_ratios(scores, self.centre, self.share)
        found: Array = self.happened[:, None] * g - self.baseline[:, None] * np.exp(g)
        return found


def hazard_model(
    critic: Any, X: Array, scores: Array, happened: Mask, train: Index, rows: Index
) -> Hazard | None:
    """The log-likelihood of rows under the hazard of a critic that was fitted to others.

    Parameters
    ----------
    critic : Critic
        Fitted to the scores of ``train``.
    X : array of shape (n, d)
    scores : array of shape (n,)
        Log-rank scores of all rows.
    happened : array of bool, shape (n,)
        Whether the event happened.
    train, rows : array of int
        Rows of the fit, and rows to test.

    Returns
    -------
    Hazard or None
        None if the critic predicts no scores, or saw no event.
    """
    own = critic.evaluator(X[train], scores[train], "witness").predicting()
    predicted = critic.evaluator(X[rows], scores[rows], "witness").predicting()
    share = float(happened[train].mean())
    if own is None or predicted is None or share == 0:
        return None
    fitted = own.each(np.array([0]), X[train][:, None, :1])[:, 0]
    centre = float(fitted.mean())
    ratios = np.exp(log_ratios(fitted, centre, share))
    # The hazard that all rows share orders them as their times do, with the same ties but for the
    # last digits.
    times = np.round(happened - scores, 10)
    baseline = breslow(times[train], happened[train], ratios, times[rows])
    return Hazard(predicted, centre, share, happened[rows], baseline)


def log_ratios(scores: Array, centre: float, share: float) -> Array:
    """Log hazard ratios of predicted log-rank scores, to first order."""
    return np.clip((scores - centre) / share, -MAX_LOG_RATIO, MAX_LOG_RATIO)


def breslow(times: Array, happened: Mask, ratios: Array, asked: Array) -> Array:
    """Breslow's cumulative baseline hazard at the times asked for.

    Parameters
    ----------
    times : array of shape (n,)
    happened : array of bool, shape (n,)
    ratios : array of shape (n,)
        Hazard ratios.
    asked : array of shape (m,)

    Returns
    -------
    array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.inference.hazards import breslow
    >>> times, happened = np.array([1.0, 2.0, 3.0]), np.array([True, False, True])
    >>> breslow(times, happened, np.array([1.0, 1.0, 2.0]), np.array([0.5, 1.0, 9.0]))
    array([0.  , 0.25, 0.75])
    """
    distinct, place = np.unique(times, return_inverse=True)
    events = np.bincount(place, weights=happened)
    at_risk = np.cumsum(np.bincount(place, weights=ratios)[::-1])[::-1]
    hazard = np.concatenate([[0.0], np.cumsum(events / at_risk)])
    return np.asarray(hazard[np.searchsorted(distinct, asked, side="right")])
