"""The certificate: false discoveries of the selectors on real columns with planted responses.

Nobody designed the columns of the real tables, and the truth is known because the response is
planted (``sobolev.inference.planting``). Beside them are the designs of the study ``hrt``, with
their own responses.

A task is a table, a method and a seed, with a response of each kind on the same rows, so that our
selectors model the columns once for all of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from reproduction.benchmarks import certificate_report as report
from reproduction.benchmarks.gcm import gcm
from reproduction.benchmarks.hrt_designs import DESIGNS
from reproduction.benchmarks.knockoff_designs import Data
from reproduction.benchmarks.real_tables import TABLES
from reproduction.benchmarks.selection_peers import Method, cfi_folds, d0crt, knockpy, quietly
from reproduction.engine import Record, Settings, Task
from reproduction.paper.simulations import null_counts
from sobolev import HRTSelector, KnockoffSelector
from sobolev.conditionals.units import find_units
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
# On tables of more columns the slowest peers get fewer responses, all with a signal.
MANY_COLUMNS, FEW_REPETITIONS = 60, 20
SLOWEST = ("hidimstat d0CRT, no screening", "hidimstat CFI-CV, forest", "GCM, forest")
QUICK_TABLES = ("wine", "diabetes")


@dataclass(frozen=True)
class Source:
    """What responses are drawn on: a real table or a design."""

    name: str
    kinds: Sequence[str]
    draw: Callable[[str, int], Data]
    missing: Callable[[], str]
    package: str

    def columns(self, seed: int) -> np.ndarray:
        """The columns of a seed, the same for all kinds."""
        return self.draw(self.kinds[0], seed)[0]


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
    peers = [peer for peer in PEERS if not peer.missing()]
    planned = [
        _task(source, method, repetition)
        for repetition in range(most)
        for source in here
        for method in (*OURS, *[peer.name for peer in peers if due(source, peer, repetition)])
    ]
    planned += [_task(source, next(iter(OURS)), 0) for source in absent]
    unknown = [peer.name for peer in PEERS if peer not in peers]
    planned += [_task(source, name, 0) for source in here[:1] for name in unknown]
    return planned


def _task(source: Source, method: str, repetition: int) -> Task:
    return Task(NAME, {"table": source.name, "method": method}, FIRST_SEED + repetition)


def due(source: Source, peer: Method, repetition: int) -> list[str]:
    """The kinds of response that a peer gets in a repetition."""
    if source.kinds == (OWN,):
        return [OWN] if repetition < peer.seeds_on(source.name) else []
    kinds = [kind for kind in KINDS if repetition in PEER_REPETITIONS[kind]]
    if kinds and peer.name in SLOWEST and repetition >= FEW_REPETITIONS:
        is_wide = source.columns(FIRST_SEED).shape[1] > MANY_COLUMNS
        return [] if is_wide else kinds
    return kinds


def measure(settings: Settings, seed: int) -> Record:
    """The selections of a method from one table, counted: ``kinds`` has the result of each kind."""
    source = SOURCES[settings["table"]]
    peer = next((peer for peer in PEERS if peer.name == settings["method"]), None)
    reason = source.missing() or (peer.missing() if peer else "")
    if reason:
        return {"missing": reason}
    made = {"shape": list(source.columns(seed).shape), "packages": _packages(source, peer)}
    if peer is None:
        return made | {"kinds": ours(source, OURS[settings["method"]], seed)}
    return made | {"kinds": _peers(source, peer, seed)}


def ours(source: Source, make: Callable[..., Any], seed: int) -> dict[str, Record]:
    """The results of one of our selectors by kind.

    The first kind, which rotates with the seed, gets a run from scratch with all checks; only its
    result has ``seconds`` and ``warned``. The others use its model of the columns.
    """
    k = seed % len(source.kinds)
    first, *others = (*source.kinds[k:], *source.kinds[:k])
    selector = make(fdr=FDR, random_state=seed)
    results = {first: _tried(_own_run, selector, *source.draw(first, seed))}
    for kind in others:
        results[kind] = _tried(_own_run, sharing(selector), *source.draw(kind, seed))
    return results


def sharing(selector: Any) -> Any:
    """An unfitted copy of a fitted selector, with its model of the columns and without checks.

    The model of a run is used rather than ``for_table``, which would fit it again, and to columns
    that are not tested, too. A selector whose fit failed is copied as it is.
    """
    copy = clone(selector)
    for part in ("conditional", "sampler"):
        fitted = getattr(selector, f"{part}_", None)
        if fitted is not None:
            copy.set_params(**{part: FrozenEstimator(fitted), "diagnose": False})
    return copy


def _own_run(selector: Any, X: np.ndarray, y: np.ndarray, active: np.ndarray) -> Record:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        selector.fit(X, y)
        seconds = time.process_time() - start
    units = unit_positions(selector, X.shape[1])
    result = counted(selector.support_, active, units, by_unit=True) | {"n_units": len(units)}
    if hasattr(selector, "pvalues_"):
        # A unit without active columns counts once.
        null = [unit[0] for unit in units if not active[unit].any()]
        result |= null_counts(selector, ~np.isin(np.arange(X.shape[1]), null))
    if not selector.diagnose:
        return result
    raised = {w.category.__name__ for w in caught if issubclass(w.category, SobolevWarning)}
    return result | {"warned": sorted(raised), "seconds": round(seconds, 3)}


def _peers(source: Source, peer: Method, seed: int) -> dict[str, Record]:
    """The results of a peer by kind, of those that are due."""
    units = [unit.columns for unit in find_units(source.columns(seed))]

    def run(X: np.ndarray, y: np.ndarray, active: np.ndarray) -> Record:
        with quietly():
            start = time.process_time()
            found = np.asarray(peer.select(X, y, seed, FDR), dtype=bool)
            seconds = time.process_time() - start
        return counted(found, active, units, by_unit=False) | {"seconds": round(seconds, 3)}

    kinds = due(source, peer, seed - FIRST_SEED)
    return {kind: _tried(run, *source.draw(kind, seed)) for kind in kinds}


def _tried(run: Callable[..., Record], *arguments: Any) -> Record:
    try:
        return run(*arguments)
    except Exception as error:  # told on the page, and judged there if it is ours
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:160]}


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
    return report.section(report.by_kind(rows), PEER_NAMES)


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The page of the documentation."""
    return {("docs/certificate.md", NAME): report.page(report.by_kind(rows), PEER_NAMES)}


def evidence(rows: Sequence[Record]) -> list[str]:
    """The row of the README."""
    return report.evidence(report.by_kind(rows))


def save_picture(rows: Sequence[Record], folder: Path) -> None:
    """Draw false discoveries and power by table."""
    report.save(report.by_kind(rows), PEER_NAMES, folder / report.PICTURE)
