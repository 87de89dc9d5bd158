"""What SinExp and Liang share: methods, two ways of selecting, rates and their tables.

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

from sobolev._typing import AnyArray, Array, Mask
from sobolev.experiments._engine import Record, Settings, Task

FDR, N_TREES = 0.1, 100
FORWARD, PAPER, ORACLE = "ConvexSIC, forward", "NeuralSIC, paper", "the true function"
METHODS = (
    "elastic net",
    "random forest",
    "MSE + Sobolev penalty",
    PAPER,
    "NeuralSIC",
    "Boosted SIC",
    "ConvexSIC",
    FORWARD,
)


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

    def __init__(self, signal: Callable[[Array], Array], support: Mask) -> None:
        self.signal = signal
        self.support = support

    def fit(self, X: Array, y: Array) -> TrueFunction:
        """Nothing is learned."""
        self.feature_importances_ = np.where(self.support, 1.0, 1e-6)
        return self

    def predict(self, X: Array) -> Array:
        """The response without noise."""
        return self.signal(X)


def make_model(method: str, seed: int, critic: str | None = None) -> Any:
    """A method by name.

    Parameters
    ----------
    method : str
        One of ``METHODS`` but the forward one.
    seed : int
    critic : str or None
        The architecture of neural critics; None is that of the preset or the default.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import ElasticNetCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if method == "elastic net":
        return make_pipeline(StandardScaler(), ElasticNetCV())
    if method == "random forest":
        return RandomForestRegressor(N_TREES, random_state=seed, n_jobs=1)
    if method == "ConvexSIC":
        from sobolev.convex import ConvexSIC

        return ConvexSIC(random_state=seed)
    from sobolev.neural import Boosting, NeuralSIC, Optimizer, SobolevRegressor

    if method == "MSE + Sobolev penalty":
        return SobolevRegressor(random_state=seed)
    options: dict[str, Any] = {} if critic is None else {"critic": critic}
    if method == PAPER:
        return NeuralSIC.paper(random_state=seed, **options)
    if method == "Boosted SIC":
        options["optimizer"] = Optimizer(batch_size=[10, 30, 50])
        options["boosting"] = Boosting(aggregate="geometric")
    elif method != "NeuralSIC":
        raise ValueError(f"method={method!r} is unknown; use one of {', '.join(METHODS)}.")
    return NeuralSIC(random_state=seed, **options)


def measure(data: Any, signal: Callable[[Array], Array], settings: Settings, seed: int) -> Record:
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
        From each way of selecting to ``tpr`` and ``fdp``.
    """
    from sklearn.frozen import FrozenEstimator

    from sobolev.inference.hrt import HRTSelector
    from sobolev.inference.trial import feature_importances

    X, y, true = data.data, data.target, data.support
    if settings["method"] in (FORWARD, ORACLE):
        critic = TrueFunction(signal, true) if settings["method"] == ORACLE else None
        found = HRTSelector(critic, fdr=FDR, diagnose=False, random_state=seed).fit(X, y)
        return {"hrt": rates(found.support_, true)}
    train, test = halves(y.size, seed)
    model = make_model(settings["method"], seed, settings.get("critic"))
    model.fit(X[train], y[train])
    result = {"top": rates(largest(feature_importances(model), settings["top"]), true)}
    statistics = {"hrt": "risk"}
    if settings["method"] == PAPER:
        statistics["witness"] = "witness"
    for name, statistic in statistics.items():
        selector = HRTSelector(
            FrozenEstimator(model),
            fdr=FDR,
            statistic=statistic,
            scheme="split",
            shortlist=settings["shortlist"],
            diagnose=False,
        )
        selector.fit(X[train], y[train], holdout=(X[test], y[test]))
        result[name] = rates(selector.support_, true)
    return result


def halves(n_rows: int, seed: int) -> tuple[AnyArray, AnyArray]:
    """Rows to train on and rows to test on."""
    order = np.random.default_rng([seed, 1]).permutation(n_rows)
    return order[: n_rows // 2], order[n_rows // 2 :]


def largest(importances: Array, k: int) -> Mask:
    """The k most important columns, but none without importance."""
    chosen = np.zeros(importances.size, dtype=bool)
    chosen[np.argsort(-importances, kind="stable")[:k]] = True
    return chosen & (importances > 0)


def rates(found: Mask, true: Mask) -> dict[str, float]:
    """The share of true columns that were found, and of found columns that are not true."""
    return {
        "tpr": round(float(found[true].mean()), 4),
        "fdp": round(float((found & ~true).sum() / max(1, found.sum())), 4),
    }
