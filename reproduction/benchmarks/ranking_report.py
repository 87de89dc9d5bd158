"""The tables of the ranking benchmark, all computed from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reproduction.benchmarks.paired import FIRST_SEED, difference
from reproduction.benchmarks.ranking_data import DataSet
from reproduction.engine import Record
from reproduction.markdown import markdown_table, mean_and_error

USUAL_TREES = 500
NONE = "–"

Name = tuple[str, str]


@dataclass
class Results:
    """What is known of each data set and method, by their names; records are by seed.

    ``memory`` is by method alone.
    """

    tasks: Sequence[DataSet]
    methods: Sequence[str]
    core: Sequence[str]
    notes: Mapping[str, str] = field(default_factory=dict)
    records: dict[Name, dict[int, Record]] = field(default_factory=dict)
    reasons: dict[Name, str] = field(default_factory=dict)
    memory: dict[str, int | None] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        return self.core[0]

    @property
    def peers(self) -> list[str]:
        """All but ours."""
        return [method for method in self.methods if not method.endswith("SIC")]

    def measured(self, task: DataSet, method: str) -> dict[int, float]:
        """Quality by seed, without fits that failed."""
        found = self.records.get((task.name, method), {})
        values = {seed: record.get(task.measure) for seed, record in found.items()}
        return {seed: value for seed, value in values.items() if value is not None}

    def ratios(self, task: DataSet, method: str) -> list[float]:
        """CPU times relative to the reference's on the same seeds."""
        base = self.records.get((task.name, self.reference), {})
        own = self.records.get((task.name, method), {})
        return [
            record["seconds"] / max(base[seed]["seconds"], 1e-3)
            for seed, record in own.items()
            if seed in base and "error" not in record
        ]

    def shown(self) -> list[DataSet]:
        """The data sets with any record."""
        return [t for t in self.tasks if any(self.measured(t, m) for m in self.methods)]


def report(found: Results, version: str) -> str:
    """The section of RESULTS.md."""
    return f"""
## Quality of rankings

The share of the k true features among the first k (TPR at k), mean ± standard error (number of
seeds, from {first_seed(found)}). Columns are scattered at random and ties count by their
expectation. Ours have their default settings, the random forest {USUAL_TREES} trees unless the cell
says otherwise, the elastic net is cross-validated on standardised columns. Of the real data the
truth is not known: the column has the rank of the mutation that the drug targets, in random parts
of the rows. The best mean of a column is bold.
sobolev {version}; regenerate with `python -m reproduction ranking`.

{quality_table(found)}

{reasons_list(found)}

How the peers rank:

{notes_list(found)}

### {found.reference} beside each peer

Differences of TPR are paired by seed. Ahead and behind mean by more than two standard errors; level
is all between, with the time of a fit relative to {found.reference}'s.

{verdict_table(found)}

{verdict_text(found)}

### Time and memory of a ranking

The median CPU time of a fit relative to {found.reference}'s on the same data (quartiles), each on
one thread, and the peak memory of a ranking of SinExp, the largest n, beyond that of
a process that only imports and draws the data.

{cost_table(found)}
"""


def first_seed(found: Results) -> int:
    """The lowest seed of a ranking that is shown."""
    seeds = [seed for records in found.records.values() for seed in records]
    return min(seeds, default=FIRST_SEED)


# -- quality -------------------------------------------------------------------------------------


def quality_table(found: Results) -> str:
    """Rows are methods, columns are data sets."""
    tasks = found.shown()
    best = {task.name: _best(found, task) for task in tasks}
    rows = []
    for method in found.methods:
        cells = [_quality_cell(found, task, method, best[task.name]) for task in tasks]
        rows.append([method, *cells])
    header = [t.name if t.wanted is None else f"{t.name}: rank of {t.wanted}" for t in tasks]
    return markdown_table(["method", *header], rows)


def _best(found: Results, task: DataSet) -> float:
    means = [np.mean(list(v.values())) for m in found.methods if (v := found.measured(task, m))]
    return float(max(means) if task.wanted is None else min(means))


def _quality_cell(found: Results, task: DataSet, method: str, best: float) -> str:
    values = np.array(list(found.measured(task, method).values()))
    failed = len(found.records.get((task.name, method), {})) - values.size
    if not values.size:
        return f"failed on {failed} seeds" if failed else NONE
    mark = "**" if values.mean() == best else ""
    if task.wanted is not None:
        return f"{mark}{values.mean():,.4g}{mark}" + _note(found, task, method)
    error = f" ± {mean_and_error(values)[1]:.3f}" if values.size > 1 else ""
    count = f"{values.size}" + (f", failed on {failed} more" if failed else "")
    return f"{mark}{values.mean():.3f}{mark}{error} ({count}{_note(found, task, method)})"


def _note(found: Results, task: DataSet, method: str) -> str:
    record = next(iter(found.records[task.name, method].values()))
    trees = record.get("n_trees", USUAL_TREES)
    return f", {trees} trees" if trees != USUAL_TREES else ""


def reasons_list(found: Results) -> str:
    """Every empty cell that has a reason, reasons of a whole row or column once."""
    shown = found.shown()
    lines = []
    for method in found.methods:
        given: dict[str, list[str]] = {}
        for task in shown:
            if reason := found.reasons.get((task.name, method)) or _failure(found, task, method):
                given.setdefault(reason, []).append(task.name)
        for reason, names in given.items():
            where = "" if len(names) == len(shown) else f" on {'; '.join(names)}"
            lines.append(f"- {method}{where}: {reason}.")
    for task in found.tasks:
        if task.wanted is not None and task not in shown:
            lines.append(f"- {task.name}: `SOBOLEV_DATA_HOME` must name the folder of the data.")
    return "Not run:\n\n" + "\n".join(lines) if lines else "Everything ran."


def _failure(found: Results, task: DataSet, method: str) -> str | None:
    records = found.records.get((task.name, method), {}).values()
    errors = [record["error"] for record in records if record.get("error")]
    return f"fails with `{errors[0]}`" if errors else None


def notes_list(found: Results) -> str:
    return "\n".join(f"- {name}: {note}." for name, note in found.notes.items())


# -- verdicts ------------------------------------------------------------------------------------


def verdicts(found: Results, task: DataSet) -> dict[str, list[tuple[str, float, float]]]:
    """The peers that the reference is ahead of, level with and behind, and by how much."""
    sorted_out: dict[str, list[tuple[str, float, float]]] = {"ahead": [], "level": [], "behind": []}
    ours = found.measured(task, found.reference)
    for peer in found.peers:
        compared = difference(ours, found.measured(task, peer))
        if compared is not None:
            sorted_out[compared.side].append((peer, compared.mean, compared.error))
    return sorted_out


def _compared(found: Results) -> list[tuple[DataSet, dict[str, list[tuple[str, float, float]]]]]:
    tasks = [task for task in found.shown() if task.wanted is None]
    return [(t, v) for t in tasks if any((v := verdicts(found, t)).values())]


def verdict_table(found: Results) -> str:
    rows = []
    for task, sides in _compared(found):
        level = [f"{peer}{_time_note(found, task, peer)}" for peer, _, _ in sides["level"]]
        behind = [f"{p} by {-mean:.3f} ± {error:.3f}" for p, mean, error in sides["behind"]]
        ahead = [peer for peer, _, _ in sides["ahead"]]
        if len(ahead) > 1 and not level and not behind:
            ahead = [f"every peer ({len(ahead)})"]
        rows.append([task.name, *("; ".join(names) or NONE for names in (ahead, level, behind))])
    return markdown_table(["data", "ahead of", "level with", "behind"], rows)


def _time_note(found: Results, task: DataSet, peer: str) -> str:
    ratios = found.ratios(task, peer)
    return f" ({_ratio(float(np.median(ratios)))} time)" if ratios else ""


def winner_table(found: Results) -> str:
    """The reference beside the best peer, chosen after the fact: shares, CPU times, difference."""
    rows = []
    for task in found.shown():
        peers = [peer for peer in found.peers if found.measured(task, peer)]
        if task.wanted is not None or not peers:
            continue
        best = max(peers, key=lambda peer: np.mean(list(found.measured(task, peer).values())))
        gap = difference(found.measured(task, found.reference), found.measured(task, best))
        outcome = NONE if gap is None else gap.side
        rows.append(
            [
                task.name,
                _with_time(found, task, found.reference),
                f"{best}: {_with_time(found, task, best)}",
                NONE if gap is None else str(gap),
                f"**{outcome}**" if outcome == "behind" else outcome,
            ]
        )
    header = ["data", found.reference, "best peer", "difference ± se (seeds)", "outcome"]
    return markdown_table(header, rows, numbers=False)


def _with_time(found: Results, task: DataSet, method: str) -> str:
    values = list(found.measured(task, method).values())
    if not values:
        return NONE
    records = found.records[task.name, method].values()
    seconds = [record["seconds"] for record in records if "error" not in record]
    return f"{np.mean(values):.3f} ({np.median(seconds):.2g} s)"


def verdict_text(found: Results) -> str:
    """Who wins, and who is as good in less time."""
    winners = [f"{p} on {t.name}" for t, sides in _compared(found) for p, _, _ in sides["behind"]]
    faster = [
        f"{peer} on {task.name}"
        for task, sides in _compared(found)
        for peer, _, _ in sides["level"]
        if (ratios := found.ratios(task, peer)) and np.median(ratios) < 1
    ]
    first = f"Peers that win: {'; '.join(winners)}." if winners else "No peer wins."
    second = f"Level and faster: {'; '.join(faster)}." if faster else "None is level and faster."
    return f"{first} {second}"


# -- costs ---------------------------------------------------------------------------------------


def cost_table(found: Results) -> str:
    tasks = found.shown()
    rows = []
    for method in found.methods:
        if method == found.reference:
            cells = [_reference_seconds(found, task) for task in tasks]
        else:
            cells = [_ratio_cell(found.ratios(task, method)) for task in tasks]
        taken = found.memory.get(method)
        rows.append([method, *cells, NONE if taken is None else f"{taken / 2**20:.0f} MiB"])
    return markdown_table(["method", *(task.name for task in tasks), "peak memory"], rows)


def _reference_seconds(found: Results, task: DataSet) -> str:
    own = found.records.get((task.name, found.reference), {}).values()
    seconds = [row["seconds"] for row in own]
    return f"{np.median(seconds):.2g} s" if seconds else NONE


def _ratio_cell(ratios: Sequence[float]) -> str:
    if not ratios:
        return NONE
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    spread = f" ({_ratio(low)[:-1]}–{_ratio(high)[:-1]})" if len(ratios) > 1 else ""
    return _ratio(middle) + spread


def _ratio(value: float) -> str:
    return f"{value:,.0f}×" if value >= 10 else f"{value:.2g}×"


# -- the short table of other pages --------------------------------------------------------------


def core_table(found: Results) -> str:
    """Rows are data sets, columns the methods of the core."""
    rows = []
    for task in found.tasks:
        if task.wanted is None and any(found.measured(task, m) for m in found.core):
            rows.append([task.name, *(_core_cell(found, task, method) for method in found.core)])
    return markdown_table(["data", *found.core], rows)


def _core_cell(found: Results, task: DataSet, method: str) -> str:
    values = np.array(list(found.measured(task, method).values()))
    if not values.size:
        return NONE
    error = f" ± {mean_and_error(values)[1]:.3f}" if values.size > 1 else ""
    ratios = found.ratios(task, method)
    time_note = f", {_ratio(float(np.median(ratios)))} time" if ratios else ""
    note = _note(found, task, method)
    return f"**{values.mean():.3f}**{error} ({values.size} seeds{time_note}{note})"
