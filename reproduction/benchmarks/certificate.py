"""The certificate: false discoveries of the selectors on real columns with planted responses.

Nobody designed the columns of the real tables, and the truth is known because the response is
planted (``sobolev.inference.planting``). Beside them are the designs of the study ``hrt``, with
their own responses.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV

from reproduction.benchmarks import certificate_report as report
from reproduction.benchmarks.gcm import gcm
from reproduction.benchmarks.hrt_designs import DESIGNS
from reproduction.benchmarks.knockoff_designs import Data
from reproduction.benchmarks.real_tables import TABLES
from reproduction.benchmarks.selection_peers import Method, cfi_folds, d0crt, knockpy, quietly
from reproduction.engine import Record, Settings, Task
from reproduction.paper.simulations import null_counts
from sobolev import HRTSelector, KnockoffSelector
from sobolev.exceptions import SobolevWarning
from sobolev.inference.planting import KINDS, N_ACTIVE, SHAPES, plant

NAME = "certificate"
FDR = report.FDR
# Beyond the seeds of the study ``tuning``, from 1000, which chose defaults on SinExp.
FIRST_SEED = 3000
REPETITIONS = 50
# The response of a design is its own.
OWN = report.OWN
# Every second response depends on a third of the columns, at most on this many.
MANY = 20

OURS: dict[str, Callable[..., Any]] = dict(
    zip(report.OURS, (HRTSelector, KnockoffSelector), strict=True)
)
# Designs of many columns, on which some peers take minutes for each response: left out there.
WIDE = {"Liang, n = 500": 0, "AR(1) 0.9, 200 columns": 0}
PEERS = (
    Method("hidimstat d0CRT", d0crt(10), "hidimstat", few=WIDE),
    Method("hidimstat d0CRT, no screening", d0crt(None), "hidimstat", few=WIDE),
    Method("hidimstat CFI-CV, forest", cfi_folds, "hidimstat", few=WIDE),
    Method("knockpy, lasso", knockpy("lasso"), "knockpy"),
    Method("GCM, forest", gcm, "sklearn", few=WIDE),
)
PEER_NAMES = tuple(peer.name for peer in PEERS)
# Peers are slow: the repetitions that they get of each kind, 21 with a signal and three without,
# and as many of a design as ``Method.seeds`` says.
PEER_REPETITIONS = {
    **{kind: range(7 * k, 7 * k + 7) for k, kind in enumerate(SHAPES)},
    "noise": range(21, 24),
}
QUICK_TABLES = ("wine", "diabetes")


@dataclass(frozen=True)
class Source:
    """What responses are drawn on: a real table or a design."""

    name: str
    kinds: Sequence[str]
    draw: Callable[[str, int], Data]
    missing: Callable[[], str]
    package: str


def _table_source(table: Any) -> Source:
    def draw(kind: str, seed: int) -> Data:
        X = table.rows(seed)
        n_active = N_ACTIVE if seed % 2 == 0 else max(N_ACTIVE, min(MANY, X.shape[1] // 3))
        rng = np.random.default_rng([seed, 2, KINDS.index(kind)])
        planted = plant(X, kind, rng, n_active=n_active)
        return X, planted.y, np.isin(np.arange(X.shape[1]), planted.active)

    return Source(table.name, KINDS, draw, table.missing, table.package)


SOURCES = {
    **{table.name: _table_source(table) for table in TABLES},
    **{
        design.name: Source(
            design.name, (OWN,), lambda _, seed, d=design: d.draw(seed), lambda: "", "sobolev"
        )
        for design in DESIGNS
    },
}


# -- tasks ---------------------------------------------------------------------------------------


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All sources and methods for one seed before the next; what is missing is tried once."""
    most = repetitions or (1 if quick else REPETITIONS)
    sources = [SOURCES[name] for name in (QUICK_TABLES if quick else SOURCES)]
    here = [source for source in sources if not source.missing()]
    absent = [source for source in sources if source not in here]
    peers = {peer.name: peer for peer in PEERS if not peer.missing()}
    planned = [
        _task(source, kind, method, repetition)
        for repetition in range(most)
        for source in here
        for kind in source.kinds
        for method in _methods(source, kind, repetition, most, peers)
    ]
    planned += [_task(source, source.kinds[0], next(iter(OURS)), 0) for source in absent]
    first = here[0] if here else None
    if first is not None:
        unknown = [peer.name for peer in PEERS if peer.name not in peers]
        planned += [_task(first, first.kinds[0], name, 0) for name in unknown]
    return planned


def _methods(
    source: Source, kind: str, repetition: int, most: int, peers: dict[str, Method]
) -> Iterator[str]:
    yield from OURS
    for name, peer in peers.items():
        count = peer.seeds_on(source.name)
        chosen = range(count) if kind == OWN else PEER_REPETITIONS[kind][:count]
        if repetition in chosen[:most]:
            yield name


def _task(source: Source, kind: str, method: str, repetition: int) -> Task:
    settings = {"table": source.name, "kind": kind, "method": method}
    return Task(NAME, settings, FIRST_SEED + repetition)


def measure(settings: Settings, seed: int) -> Record:
    """One selection, counted."""
    source = SOURCES[settings["table"]]
    peer = next((peer for peer in PEERS if peer.name == settings["method"]), None)
    reason = source.missing() or (peer.missing() if peer else "")
    if reason:
        return {"missing": reason}
    X, y, active = source.draw(settings["kind"], seed)
    made = {"shape": list(X.shape), "packages": _packages(source, peer)}
    try:
        if peer is None:
            return made | _ours(settings["method"], X, y, active, seed)
        return made | _peer(peer, X, y, active, seed, units_of(source, seed))
    except Exception as error:  # told on the page, and judged there if it is ours
        return made | {"error": " ".join(f"{type(error).__name__}: {error}".split())[:160]}


def _ours(method: str, X: np.ndarray, y: np.ndarray, active: np.ndarray, seed: int) -> Record:
    selector = OURS[method](fdr=FDR, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        selector.fit(X, y)
        seconds = time.process_time() - start
    units = unit_positions(selector, X.shape[1])
    result = counted(selector.support_, active, units, by_unit=True)
    if hasattr(selector, "pvalues_"):
        # A unit without active columns counts once.
        null = [unit[0] for unit in units if not active[unit].any()]
        result |= null_counts(selector, ~np.isin(np.arange(X.shape[1]), null))
    raised = {w.category.__name__ for w in caught if issubclass(w.category, SobolevWarning)}
    made = {"n_units": len(units), "warned": sorted(raised), "seconds": round(seconds, 3)}
    return result | made


def _peer(
    peer: Method,
    X: np.ndarray,
    y: np.ndarray,
    active: np.ndarray,
    seed: int,
    units: Sequence[np.ndarray],
) -> Record:
    with quietly():
        start = time.process_time()
        found = np.asarray(peer.select(X, y, seed, FDR), dtype=bool)
        seconds = time.process_time() - start
    return counted(found, active, units, by_unit=False) | {"seconds": round(seconds, 3)}


def _packages(source: Source, peer: Method | None) -> list[str]:
    """The packages, with versions, of the columns and of the method."""
    names = {source.package, peer.package if peer else "sobolev"} - {"sobolev"}
    found = []
    for name in sorted("scikit-learn" if name == "sklearn" else name for name in names):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(name)
    return found


# -- counting ------------------------------------------------------------------------------------


def unit_positions(selector: Any, n_columns: int) -> list[np.ndarray]:
    """The columns of each unit of a fitted selector; columns without a unit are on their own."""
    named = getattr(selector, "units_", None) or {}
    units = [np.asarray(unit, dtype=int) for unit in named.values()]
    alone = np.setdiff1d(np.arange(n_columns), np.concatenate(units) if units else [])
    return units + [np.array([j], dtype=int) for j in alone]


@lru_cache(maxsize=64)
def _units(name: str, seed: int) -> list[np.ndarray]:
    source = SOURCES[name]
    X, _, _ = source.draw(source.kinds[0], seed)
    y = np.random.default_rng(seed).standard_normal(len(X))
    selector = KnockoffSelector(LassoCV(), diagnose=False, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unit_positions(selector.fit(X, y), X.shape[1])


def units_of(source: Source, seed: int) -> list[np.ndarray]:
    """The units of our selectors on the columns of a seed; they do not depend on the response."""
    return _units(source.name, seed)


def counted(
    found: np.ndarray, active: np.ndarray, units: Sequence[np.ndarray], *, by_unit: bool
) -> Record:
    """True and false discoveries where copies cannot be told apart.

    Parameters
    ----------
    found, active : arrays of bool
        The selected and the active columns.
    units : sequence of arrays of int
        The columns of each unit: copies, and columns that determine each other.
    by_unit : bool
        Whether discoveries are units, of which those with an active column are true. Otherwise they
        are columns, and a column that is not active but shares a unit with an active one counts
        neither as true nor as false.

    Returns
    -------
    dict
        ``tpr`` is None if nothing is active. ``column_fdp`` counts every selected column that is
        not active as false. ``n_selected`` is the number of units or columns.
    """
    if by_unit:
        selected = np.array([found[unit].any() for unit in units])
        true = np.array([active[unit].any() for unit in units])
    else:
        shared = np.zeros(active.size, dtype=bool)
        for unit in units:
            shared[unit] = active[unit].any()
        judged = active | ~shared
        selected, true = found[judged], active[judged]
    n_selected = selected.sum() if by_unit else found.sum()
    return {
        "tpr": round(float(selected[true].mean()), 4) if true.any() else None,
        "fdp": round(float((selected & ~true).sum() / max(1, selected.sum())), 4),
        "column_fdp": round(float((found & ~active).sum() / max(1, found.sum())), 4),
        "n_selected": int(n_selected),
    }


# -- pages ---------------------------------------------------------------------------------------


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    return report.section(rows, PEER_NAMES)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The page of the documentation."""
    return {("docs/certificate.md", NAME): report.page(rows, PEER_NAMES)}


def save_picture(rows: Sequence[Record], folder: Path) -> None:
    """Draw false discoveries and power by table."""
    report.save(rows, PEER_NAMES, folder / report.PICTURE)
