"""What SinExp and Liang share: methods, ways of selecting, and rates.

Every method trains on half of the rows. Selected are the k most important columns, which takes
knowledge that users do not have, and those of the holdout randomization test on the other half.
"ConvexSIC, forward" is the default ``HRTSelector()`` on all rows; "the true function" is the same
with the function that made the response in place of the critic: as much as a critic can find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from reproduction import methods
from reproduction.engine import Record, Settings, Task
from reproduction.methods import FORWARD, METHODS, PAPER

FDR = 0.1
ORACLE = "the true function"
# Levels at which null p-values are counted; records that name no levels have the first ones.
LEVELS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5)
# The statistics of the tests that keep their own number of columns, for the benchmark of the test.
STATISTICS = {
    "ConvexSIC": ("risk", "witness"),
    "NeuralSIC": ("risk", "witness"),
    "elastic net": ("risk",),
    "random forest": ("risk",),
}


def make_tasks(name: str, sizes: Sequence[Settings], repetitions: int) -> list[Task]:
    """All methods on all data sets; a repetition is complete before the next begins."""
    return [
        Task(name, {**size, "method": method}, seed)
        for seed in range(repetitions)
        for size in sizes
        for method in (*METHODS, ORACLE)
    ]


class TrueFunction(RegressorMixin, BaseEstimator):
    """Predicts what the response would be without noise, and ranks the true columns first.

    Parameters
    ----------
    signal : callable
        From rows to that response.
    support : array of bool
        The true columns. The others come after them, so that as many are tested as with a critic.
    """

    def __init__(self, signal: Callable[[np.ndarray], np.ndarray], support: np.ndarray) -> None:
        self.signal = signal
        self.support = support

    def fit(self, X: np.ndarray, y: np.ndarray) -> TrueFunction:
        """Nothing is learned."""
        self.feature_importances_ = np.where(self.support, 1.0, 1e-6)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The response without noise."""
        return self.signal(X)


def measure(
    data: Any, signal: Callable[[np.ndarray], np.ndarray], settings: Settings, seed: int
) -> Record:
    """Rates of one method on one data set of 2n rows.

    Parameters
    ----------
    data : Bunch
        With ``data``, ``target`` and ``support``.
    signal : callable
        The response of rows without noise.
    settings : dict
        ``n``, ``method``, ``top``, ``shortlist`` and perhaps ``critic``.
    seed : int

    Returns
    -------
    dict
        From each way of selecting to ``tpr`` and ``fdp``: ``top``; ``hrt``, the test of
        ``shortlist`` columns; ``witness``, the same with the paper's statistic; ``own``, from a
        statistic to the test of as many columns as ``HRTSelector`` takes by itself.
    """
    from sobolev import HRTSelector

    X, y, true = data.data, data.target, data.support
    method = settings["method"]
    if method == FORWARD:
        selector = HRTSelector(fdr=FDR, random_state=seed).fit(X, y)
        own = {"risk": rates(selector.support_, true) | null_counts(selector, true)}
        return {"hrt": rates(selector.support_, true), "own": own}
    if method == ORACLE:
        critic = TrueFunction(signal, true)
        selector = HRTSelector(critic, fdr=FDR, diagnose=False, random_state=seed).fit(X, y)
        return {"hrt": rates(selector.support_, true)}
    train, test = halves(y.size, seed)
    model = methods.make_model(method, seed, settings.get("critic")).fit(X[train], y[train])

    def tested(statistic: str, shortlist: int | None) -> Any:
        return split_test(model, X, y, (train, test), statistic, shortlist)

    own = {statistic: tested(statistic, None) for statistic in STATISTICS.get(method, ())}
    same = "risk" in own and own["risk"].shortlist_.size == settings["shortlist"]
    found = {"hrt": own["risk"] if same else tested("risk", settings["shortlist"])}
    if method == PAPER:
        found["witness"] = tested("witness", settings["shortlist"])
    result: Record = {"top": rates(largest(methods.importances(model), settings["top"]), true)}
    result |= {name: rates(selector.support_, true) for name, selector in found.items()}
    if own:
        result["own"] = {name: rates(selector.support_, true) for name, selector in own.items()}
    return result


def split_test(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    parts: tuple[np.ndarray, np.ndarray],
    statistic: str,
    shortlist: int | None,
) -> Any:
    """The test of a model, fitted to the first part of the rows, on the second.

    As in the paper, p-values rely on the conditional model alone.
    """
    from sklearn.frozen import FrozenEstimator

    from sobolev import HRTSelector

    train, test = parts
    selector = HRTSelector(
        FrozenEstimator(model),
        fdr=FDR,
        statistic=statistic,
        scheme="split",
        pvalue="saddlepoint",
        conditional="mixed",
        copies="keep",
        shortlist=shortlist,
        diagnose=False,
    )
    return selector.fit(X[train], y[train], holdout=(X[test], y[test]))


def null_counts(selector: Any, true: np.ndarray) -> Record:
    """How the p-values of columns that do not matter fall, and what the diagnostics say."""
    null = selector.pvalues_[~true]
    null = null[np.isfinite(null)]
    return {
        "levels": list(LEVELS),
        "below": [int(np.count_nonzero(null < level)) for level in LEVELS],
        "n_null": int(null.size),
    }


def counts_below(record: Record) -> dict[float, int]:
    """From a level to the number of null p-values below it."""
    return dict(zip(record["levels"], record["below"], strict=True))


def share_cells(records: Sequence[Record], levels: Sequence[float]) -> list[str]:
    """The share of null p-values below each level, with its 99 % limit; bold beyond it.

    The limit is the level plus 2.576 standard errors between data sets.
    """
    counts = np.array([record["n_null"] for record in records], dtype=float)
    cells = []
    for level in levels:
        below = np.array([counts_below(record)[level] for record in records], dtype=float)
        share = below.sum() / counts.sum()
        limit = level + 2.576 * np.sqrt(np.sum((below - share * counts) ** 2)) / counts.sum()
        sign = "" if share <= limit else "**"
        cells.append(f"{sign}{share:.4f}{sign} ({limit:.4f})")
    return cells


def halves(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to test on."""
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    return order[: n_rows // 2], order[n_rows // 2 :]


def largest(importances: np.ndarray, k: int) -> np.ndarray:
    """The k most important columns, but none without importance."""
    chosen = np.zeros(importances.size, dtype=bool)
    chosen[np.argsort(-importances, kind="stable")[:k]] = True
    return chosen & (importances > 0)


def rates(found: np.ndarray, true: np.ndarray) -> dict[str, float]:
    """The share of true columns that were found, and of found columns that are not true."""
    return {
        "tpr": round(float(found[true].mean()), 4),
        "fdp": round(float((found & ~true).sum() / max(1, found.sum())), 4),
    }
