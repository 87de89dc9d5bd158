"""Quality and time of rankings, ours beside their peers.

Times are CPU times of one thread, compared on the same data. The peak memory of a ranking is that
of a process that fits less that of one that only imports.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence

import numpy as np

from reproduction import methods
from reproduction.benchmarks.paired import FIRST_SEED, published
from reproduction.benchmarks.ranking_data import DATA, QUICK, DataSet
from reproduction.benchmarks.ranking_peers import PEERS, missing, version, warm_up
from reproduction.benchmarks.ranking_report import (
    Results,
    core_table,
    quality_table,
    report,
    verdict_text,
    winner_table,
)
from reproduction.child import in_child
from reproduction.engine import Record, Settings, Task

NAME = "ranking"
CORE = ("ConvexSIC", "NeuralSIC", "random forest", "elastic net")
PEER_OF = {peer.name: peer for peer in PEERS}
METHODS = (*CORE, *PEER_OF)
REFERENCE = CORE[0]
# The data set of the memory.
MEMORY_DATA, QUICK_MEMORY_DATA = "SinExp, n = 500", "SinExp, n = 125"
# A fit of these takes many minutes; the CPU times are measured ones.
WIDE = "plx4720, 287 of 359 rows"
NOT_RUN = {
    ("Boruta", WIDE): "the first of up to 99 forests takes 24 s",
    ("STG", WIDE): "an epoch takes 0.18 s, the 3,000 of a fit 9 minutes",
    ("LassoNet", WIDE): "an epoch takes 0.07 s, and a path has thousands",
}


# -- the plan ------------------------------------------------------------------------------------


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """One draw of all data for all methods before the next draw, then the memory."""
    cells = []
    for data in QUICK if quick else DATA:
        for method in METHODS:
            if obstacle(data, method) is None:
                absent = method in PEER_OF and missing(PEER_OF[method])
                count = 1 if absent else repetitions or n_seeds(data, method, quick)
                cells.append((settings_of(data, method, quick), count))
    planned = [
        Task(NAME, settings, FIRST_SEED + k)
        for k in range(max(count for _, count in cells))
        for settings, count in cells
        if k < count
    ]
    name = QUICK_MEMORY_DATA if quick else MEMORY_DATA
    (data,) = (data for data in (QUICK if quick else DATA) if data.name == name)
    # The processes take a second or more each: a quick run starts two.
    for method in METHODS[:1] if quick else METHODS:
        if obstacle(data, method) is None:
            settings = settings_of(data, method, quick)
            planned.append(Task(NAME, settings | {"kind": "memory"}, 0))
    return planned


def settings_of(data: DataSet, method: str, quick: bool) -> Settings:
    """What decides a result besides the version and the seed."""
    settings = {"dataset": data.name, "method": method, **data.options}
    if method == "random forest":
        settings["n_trees"] = data.trees
    return settings | ({"quick": True} if quick else {})


def n_seeds(data: DataSet, method: str, quick: bool) -> int:
    """Number of seeds of a method: the slow peers have fewer."""
    if method not in PEER_OF:
        return data.seeds
    return 1 if quick else min(data.seeds, PEER_OF[method].most)


def obstacle(data: DataSet, method: str) -> str | None:
    """Why a method is never run on a data set; None if it is."""
    if method == "elastic net" and "n_classes" in data.options:
        return "regression only"
    return NOT_RUN.get((method, data.name))


def data_set(settings: Settings) -> DataSet:
    """The data set of a task."""
    of = QUICK if settings.get("quick") else DATA
    return next(data for data in of if data.name == settings["dataset"])


# -- one ranking ---------------------------------------------------------------------------------


def measure(settings: Settings, seed: int) -> Record:
    """The quality of a ranking and its CPU time."""
    method = settings["method"]
    if method in PEER_OF and (reason := missing(PEER_OF[method])):
        return {"missing": reason}
    if settings.get("kind") == "memory":
        return memory(settings)
    data = data_set(settings)
    X, y, support = data.draw(seed, **data.options)
    found: Record = prepare(method)
    start = time.process_time()
    try:
        scores, details = rank(settings, X, y, seed)
        found |= quality(data, scores, support) | details
    except Exception as error:
        if method not in PEER_OF:
            raise
        message = f"{type(error).__name__}: {error}"[:300]
        return found | {data.measure: None, "error": message}
    return found | {"seconds": time.process_time() - start}


def prepare(method: str) -> dict[str, str]:
    """Import what a ranking imports; of a peer, say its version."""
    if method in PEER_OF:
        warm_up(PEER_OF[method])
        return {"package": version(PEER_OF[method])}
    if method == "NeuralSIC":
        importlib.import_module("sobolev.neural")
    return {}


def rank(settings: Settings, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, Record]:
    """The scores of the columns, and what the record says of the fit."""
    method = settings["method"]
    if method in PEER_OF:
        return PEER_OF[method].scores(X, y, seed, quick=settings.get("quick", False)), {}
    if method == "random forest":
        labels = y.dtype.kind == "U"
        model = methods.random_forest(settings["n_trees"], seed, classification=labels)
    else:
        model = methods.make_model(method, seed)
    model.fit(X, y)
    lam, rounds = getattr(model, "lam_", None), getattr(model, "n_rounds_", None)
    return methods.importances(model), {"lam": lam, "rounds": rounds}


def quality(data: DataSet, scores: np.ndarray, support: np.ndarray) -> dict[str, float]:
    """What a record holds of a ranking."""
    if np.isnan(scores).any():
        raise ValueError("some scores are no numbers")
    found = true_positive_rate if data.wanted is None else mean_rank
    return {data.measure: found(scores, support)}


def true_positive_rate(scores: np.ndarray, support: np.ndarray) -> float:
    """The share of the k true features among the first k; ties count by their expectation."""
    k = int(support.sum())
    last = np.sort(scores)[-k]
    above, tied = scores > last, scores == last
    found = support[above].sum() + (k - above.sum()) * support[tied].mean()
    return float(found / k)


def mean_rank(scores: np.ndarray, support: np.ndarray) -> float:
    """The rank, from one, of the only marked column; ties count by their expectation."""
    (own,) = scores[support]
    return float(1 + np.sum(scores > own) + (np.sum(scores == own) - 1) / 2)


# -- memory --------------------------------------------------------------------------------------


def memory(settings: Settings) -> Record:
    """Bytes that a ranking takes beyond its imports and the data."""
    fitted, imported = (in_child(once, settings, fit) for fit in (True, False))
    if "error" in fitted | imported:
        return fitted | imported
    return {"bytes": max(fitted["peak"] - imported["peak"], 0)}


def once(settings: Settings, fit: bool) -> Record:
    """Draw the data and rank them, or only import what that takes."""
    data = data_set(settings)
    X, y, _ = data.draw(0, **data.options)
    if fit:
        rank(settings, X, y, 0)
    else:
        prepare(settings["method"])
    return {}


# -- the report ----------------------------------------------------------------------------------


def results(rows: Sequence[Record]) -> Results:
    """What the rows say, by name of data set and method."""
    quick = any(row.get("quick") for row in rows)
    data = QUICK if quick else DATA
    found = Results(data, METHODS, CORE, notes={p.name: p.note for p in PEERS})
    for row in rows:
        if row.get("kind") == "memory":
            found.memory[row["method"]] = row.get("bytes")
    ranked = [row for row in rows if row.get("kind") != "memory"]
    for row in published(ranked, REFERENCE):
        if "missing" in row:
            found.reasons[row["dataset"], row["method"]] = row["missing"]
        else:
            found.records.setdefault((row["dataset"], row["method"]), {})[row["seed"]] = row
    for each in data:
        for method in METHODS:
            if (reason := obstacle(each, method)) is not None:
                found.reasons[each.name, method] = reason
    return found


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return report(results(rows), rows[0]["version"])


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The tables of other pages."""
    found = results(rows)
    core = core_table(found)
    return {
        ("docs/choosing.md", "ranking"): core,
        ("docs/comparison.md", "peers"): "\n\n".join(
            [verdict_text(found), winner_table(found), quality_table(found)]
        ),
    }
