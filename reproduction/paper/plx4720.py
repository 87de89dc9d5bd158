"""Response to PLX4720: how well a few selected features predict it.

The data are a substitute for the matrix of the paper, which is no longer distributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.engine import Record, Settings, Task

NAME, TITLE = "plx4720", "PLX4720: drug response"
REPETITIONS, QUICK_REPETITIONS = 100, 2
TEST_SHARE, MIN_CORRELATION = 0.1, 0.1
ALL, CORRELATION, KNOCKOFFS = "all features", "correlation", "knockoffs of a shortlist"
BASELINES = {ALL: (0,), CORRELATION: (7, 10, 15)}
TOPS = {
    "elastic net": (7, 10),
    "ConvexSIC": (7, 10, 15),
    "NeuralSIC": (7, 10, 15),
}
# Where the features are chosen: the second looks at the rows that are predicted, as the paper did.
ROWS = ("training rows", "all rows")
# The seed of the first split. How ConvexSIC chooses tau was decided on splits with seeds from 0 to
# 109 and from 1000 to 1039; where features are chosen on the training rows, the splits are others.
FIRST_SPLIT = {"training rows": 200, "all rows": 0}
# Features of the tests that are kept, those of the smallest p-values or q-values.
N_TESTED = 50
# Features that knockoffs are made of.
N_SHORTLIST = 40
REGRESSORS = ("network", "forest")


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """What is found on all rows, once, then the splits."""
    found = [Task(NAME, {"part": "found", "method": method}, 0) for method in TOPS]
    found += [Task(NAME, {"part": "tested", "method": m}, 0) for m in ("HRT", KNOCKOFFS)]
    splits = [
        Task(
            NAME,
            {"part": "split", "method": method, "rows": rows, "first_split": FIRST_SPLIT[rows]},
            seed,
        )
        for seed in range(repetitions or (QUICK_REPETITIONS if quick else REPETITIONS))
        for rows in ROWS
        for method in (*BASELINES, *TOPS)
    ]
    return found + splits


def check_data() -> None:
    """The file is there, or an error that says where it should be."""
    _data()


def measure(settings: Settings, seed: int) -> Record:
    """One of the parts: what is found, what is tested, or a split."""
    if settings["part"] == "found":
        return _found(settings["method"])
    if settings["part"] == "tested":
        return _tested(settings["method"])
    return _split(settings["method"], settings["rows"], settings["first_split"] + seed)


@lru_cache(maxsize=1)
def _data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All features, the response in units of its deviation, and names."""
    from sobolev.datasets import load_plx4720

    data = load_plx4720(min_correlation=0.0)
    return data.data, data.target / data.target.std(), data.feature_names


def correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Absolute correlations of the columns with y; zero for constant columns."""
    Z, v = X - X.mean(axis=0), y - y.mean()
    size = np.linalg.norm(Z, axis=0) * np.linalg.norm(v)
    varying = np.ptp(X, axis=0) > 0
    return np.where(varying, np.abs(v @ Z) / np.where(varying, size, 1.0), 0.0)


def screened(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Columns with an absolute correlation of at least 0.1 with y."""
    return np.flatnonzero(correlations(X, y) >= MIN_CORRELATION)


def ranking(method: str, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The screened columns, most important first, and their importances."""
    kept = screened(X, y)
    if method == ALL:
        return kept, np.full(kept.size, np.nan)
    if method == CORRELATION:
        importances = correlations(X[:, kept], y)
    else:
        model = methods.make_model(method, seed)
        importances = methods.importances(model.fit(X[:, kept], y))
    order = np.argsort(-importances, kind="stable")
    return kept[order], importances[order]


@lru_cache(maxsize=8)
def _ranking_of_all(method: str) -> tuple[np.ndarray, np.ndarray]:
    """On all rows, the same for every split."""
    X, y, _ = _data()
    return ranking(method, X, y, seed=0)


def _found(method: str) -> Record:
    """The first features on all rows."""
    _, _, names = _data()
    order, importances = _ranking_of_all(method)
    top = [[str(names[j]), round(float(e), 6)] for j, e in zip(order, importances, strict=True)]
    return {"top": top[:15], "n_screened": int(order.size)}


def _tested(method: str) -> Record:
    """P-values or q-values of the features that were tested."""
    from sobolev import HRTSelector, KnockoffSelector

    X, y, names = _data()
    selector: Any
    if method == "HRT":
        columns = screened(X, y)
        selector = HRTSelector(diagnose=False, random_state=0).fit(X[:, columns], y)
        numbers, shown = selector.pvalues_, selector.shortlist_
    else:
        columns, rows = shortlist(X, y)
        selector = KnockoffSelector(sampler="gaussian", diagnose=False, random_state=0)
        selector.fit(X[np.ix_(rows, columns)], y[rows])
        numbers, shown = selector.qvalues_, np.arange(columns.size)
    order = shown[np.lexsort((-selector.statistics_[shown], numbers[shown]))]
    return {
        "features": [
            [str(names[columns[j]]), _significant(numbers[j]), _significant(selector.qvalues_[j])]
            for j in order[:N_TESTED]
        ],
        "selected": [str(name) for name in names[columns[selector.support_]]],
    }


def shortlist(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first columns of ConvexSIC on a third of the rows, and the rows that it has not seen."""
    order = np.random.default_rng(3).permutation(y.size).astype(np.intp)
    chosen_on, rows = order[: y.size // 3], order[y.size // 3 :]
    return ranking("ConvexSIC", X[chosen_on], y[chosen_on], seed=0)[0][:N_SHORTLIST], rows


def _significant(value: float) -> float:
    return float(f"{value:.4g}")


def _split(method: str, rows: str, seed: int) -> Record:
    """Held-out errors of both regressors on the features chosen, for every number of them."""
    X, y, names = _data()
    test, train = split_rows(y.size, seed)
    if rows == "all rows":
        order = _ranking_of_all(method)[0]
    else:
        order = ranking(method, X[train], y[train], seed)[0]
    errors = {}
    for top in (BASELINES | TOPS)[method]:
        chosen = order[:top] if top else order
        errors[str(top)] = held_out_errors(X[:, chosen], y, train, test, seed)
    first = None if method == ALL else str(names[order[0]])
    return {"errors": errors, "first": first, "n_screened": int(order.size)}


def split_rows(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A tenth of the rows to predict, and the others."""
    order = np.random.default_rng([seed, 2]).permutation(n_rows).astype(np.intp)
    n_test = round(TEST_SHARE * n_rows)
    return order[:n_test], order[n_test:]


def held_out_errors(
    X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, seed: int
) -> dict[str, float]:
    """Mean squared errors of the paper's network and of a random forest."""
    from sklearn.ensemble import RandomForestRegressor

    models = {
        "network": methods.plain_network(seed),
        "forest": RandomForestRegressor(random_state=seed, n_jobs=1),
    }
    errors = {}
    for name, model in models.items():
        predicted = model.fit(X[train], y[train]).predict(X[test])
        errors[name] = round(float(np.mean((predicted - y[test]) ** 2)), 5)
    return errors


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The errors of ten features in one line."""
    from reproduction.paper.plx4720_page import summary

    return summary(records)


def page(records: Sequence[Record], folder: Path) -> str:
    """Tables, and a picture of the first features."""
    from reproduction.paper.plx4720_page import page

    return page(records, folder)
