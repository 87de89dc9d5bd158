"""Slopes, verdicts and the picture of the growth of time and memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.engine import Record
from reproduction.markdown import markdown_table
from sobolev.plotting import CYCLE

SLACK, WIDE = 0.05, 0.5  # of a slope: what is still linear, and an error that decides nothing
MEGABYTE = 1e6
INK = "#444444"
AXES = {"n": "rows n", "d": "columns d", "m": "components m"}
FIELDS = {"seconds": ("CPU seconds", 1.0), "bytes": ("peak memory, MB", MEGABYTE)}
COLORS = {"fourier": CYCLE[0], "landmark": CYCLE[1]}


def by_size(records: Sequence[Record], curve: Any) -> dict[int, Record]:
    """The record of each size of a curve."""
    found = {r["size"]: r for r in records if r["curve"] == curve.name}
    return {size: found[size] for size in curve.sizes if size in found}


def measured(records: Sequence[Record], curve: Any) -> list[Record]:
    """The records of a curve that have figures, by size."""
    return [r for r in by_size(records, curve).values() if "error" not in r]


def upper_half(sizes: np.ndarray) -> np.ndarray:
    """Which sizes are at least the middle of their range, on the log scale."""
    return np.log(sizes) >= np.log(sizes[[0, -1]]).mean() - 1e-9


def slope(sizes: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Of log values in log sizes by least squares, with its standard error."""
    x, y = np.log(sizes), np.log(values)
    if x.size < 2:
        return float("nan"), float("nan")
    x, y = x - x.mean(), y - y.mean()
    found = float(x @ y / (x @ x))
    if x.size < 3:
        return found, float("nan")
    residual = y - found * x
    return found, float(np.sqrt(residual @ residual / (x.size - 2) / (x @ x)))


def slope_of(records: Sequence[Record], field: str) -> tuple[float, float]:
    """The slope on the upper half of the sizes."""
    sizes = np.array([r["size"] for r in records], dtype=float)
    values = np.array([r[field] for r in records], dtype=float)
    upper = upper_half(sizes)
    return slope(sizes[upper], values[upper])


def slope_cell(value: float, error: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:.2f}" if np.isnan(error) else f"{value:.2f} ± {error:.2f}"


def verdict(goal: str, found: float, error: float) -> str:
    """Whether growth is at most linear, within two standard errors or ``SLACK``."""
    if not goal:
        return "–"
    if np.isnan(error) or 2 * error > WIDE:
        return "open"
    return "holds" if found <= 1 + max(2 * error, SLACK) else "**fails**"


def row(curve: Any, records: Sequence[Record]) -> list[str] | None:
    """A line of the table; nothing where nothing was measured."""
    found = measured(records, curve)
    head = [f"in {curve.axis}", f"{curve.feature_map}, {curve.fixed}, {curve.rounds}"]
    left_out = [r for r in by_size(records, curve).values() if "error" in r]
    beyond = f" (then {left_out[0]['error']})" if left_out else ""
    if len(found) < 2:
        return [*head, *["–"] * 8, beyond.strip() or "–"] if left_out else None
    cells = []
    for field in ("seconds", "bytes"):
        value, error = slope_of(found, field)
        cells += [slope_cell(value, error), verdict(curve.goal, value, error)]
    upper = [r for r, use in zip(found, upper_half(_sizes(found)), strict=True) if use]
    last = found[-1]
    return [
        *head,
        f"{upper[0]['size']:,} to {last['size']:,} ({len(upper)}){beyond}",
        *cells,
        f"{last['seconds']:.1f} s, {last['bytes'] / MEGABYTE:,.0f} MB",
        f"{last['data'] / MEGABYTE:,.1f} MB",
        _range(r["rounds"] for r in upper),
        _range(r["iterations"] for r in upper),
    ]


def _sizes(records: Sequence[Record]) -> np.ndarray:
    return np.array([r["size"] for r in records], dtype=float)


def _range(values: Iterable[int]) -> str:
    found = list(values)
    low, high = min(found), max(found)
    return str(low) if low == high else f"{low} to {high}"


def table(curves: Sequence[Any], records: Sequence[Record]) -> str:
    """Slopes of all curves."""
    header = [
        "growth",
        "fit",
        "sizes of the slopes",
        "slope of CPU time",
        "at most linear",
        "slope of memory",
        "at most linear",
        "at the largest size",
        "of which data",
        "rounds",
        "iterations",
    ]
    rows = [row(curve, records) for curve in curves]
    return markdown_table(header, [r for r in rows if r])


def conclusions(curves: Sequence[Any], records: Sequence[Record]) -> str:
    """Whether growth in n and in d is at most linear, in a sentence each."""
    lines = []
    for axis, what in (("n", "rows"), ("d", "columns")):
        judged: dict[str, list[str]] = {}
        for curve in curves:
            found = measured(records, curve)
            if curve.axis != axis or not curve.goal or len(found) < 2:
                continue
            for field, quantity in (("seconds", "time"), ("bytes", "memory")):
                value, error = slope_of(found, field)
                cell = f"{quantity} of {curve.feature_map}, {curve.fixed}, {curve.rounds}"
                key = verdict(curve.goal, value, error).strip("*")
                judged.setdefault(key, []).append(f"{cell} ({slope_cell(value, error)})")
        total = sum(map(len, judged.values()))
        if not total:
            continue
        line = f"At most linear in the {what}: {len(judged.get('holds', []))} of {total}"
        for key, text in (("fails", "beyond it"), ("open", "open")):
            if key in judged:
                line += f"; {text}: {', '.join(judged[key])}"
        lines.append(f"- {line}.")
    return "\n".join(lines)


def report(curves: Sequence[Any], records: Sequence[Record], lam: float) -> str:
    """The section of RESULTS.md."""
    return f"""
## Growth in rows, columns and components

`ConvexSIC.fit` in memory with `lam={lam}` on one thread; CPU seconds (median of three if short) and
the peak of resident memory of a process of its own, minus that of one that has imported all and
made a small fit. Memory includes the data. "One round" is `rounds=1`. Slopes are those of
least squares on log-log scale, with standard errors, on the upper half of each range, where fixed
costs no longer matter. "At most linear" holds if a slope exceeds 1 by no more than two standard
errors or {SLACK}; it is open if two standard errors are beyond {WIDE}. Iterations are those of the
last round: where their number changes, the slope of time has both in it. The landmark map is the
default up to 5,000 rows, Fourier features beyond.

{conclusions(curves, records)}

{table(curves, records)}

![Time and memory against rows, columns and components](../docs/growth.png)

sobolev {records[0]["version"]}; regenerate with `python -m reproduction growth`.
"""


def save(series: Sequence[tuple[Any, list[Record]]], path: Path) -> None:
    """Draw time above memory, against rows, columns and components."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = [axis for axis in AXES if any(curve.axis == axis for curve, _ in series)]
    if not shown:
        return
    figure, grid = plt.subplots(
        2,
        len(shown),
        figsize=(5.0 * len(shown) + 0.5, 8.0),
        layout="constrained",
        squeeze=False,
        sharex="col",
        sharey="row",
    )
    for column, axis in enumerate(shown):
        drawn = [(curve, found) for curve, found in series if curve.axis == axis]
        for ax, field in zip(grid[:, column], FIELDS, strict=True):
            _draw(ax, drawn, field)
            if column == 0:
                ax.set_ylabel(FIELDS[field][0], color=INK, fontsize=11)
        top = grid[0, column]
        top.legend(
            loc="lower left",
            bbox_to_anchor=(-0.03, 1.0),
            fontsize=8.2,
            frameon=False,
            handletextpad=0.2,
            labelspacing=0.3,
            labelcolor=INK,
            title=f"in {AXES[axis]}: slopes of time, memory",
            title_fontproperties={"weight": "bold", "size": 11},
            alignment="left",
        )
        grid[1, column].set_xlabel(AXES[axis], color=INK, fontsize=11)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw(ax: Any, drawn: Sequence[tuple[Any, list[Record]]], field: str) -> None:
    """The curves of one panel, their fitted lines, and a line of slope one."""
    scale = FIELDS[field][1]
    for curve, found in drawn:
        sizes, values = _sizes(found), np.array([r[field] for r in found]) / scale
        once = curve.recursions == 1
        color = CYCLE[2] if curve.axis == "n" and curve.few_landmarks else COLORS[curve.feature_map]
        slopes = ", ".join(slope_cell(*slope_of(found, name)) for name in FIELDS)
        ax.plot(
            sizes,
            values,
            linestyle="none",
            marker="o" if once else "s",
            markersize=5.5,
            color=color,
            markerfacecolor=color if once else "white",
            label=f"{curve.feature_map}, {curve.short}, {curve.rounds}: {slopes}",
        )
        value, _ = slope_of(found, field)
        upper = upper_half(sizes)
        x = np.log(sizes[upper])
        line = np.exp(np.log(values[upper]).mean() + value * (x - x.mean()))
        ax.plot(sizes[upper], line, color=color, linewidth=1.8, linestyle="-" if once else "--")
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = ax.get_xlim()
    start = min(min(r[field] for r in found) for _, found in drawn) / scale
    ax.autoscale(False)
    ends = np.array([np.sqrt(low * high), high])
    ax.plot(ends, start * ends / ends[0], color="#9AA1AA", linewidth=1.2, linestyle=":")
    ax.annotate(
        "slope 1",
        (np.sqrt(ends.prod()), start * np.sqrt(ends[1] / ends[0])),
        xytext=(7, -9),
        textcoords="offset points",
        fontsize=9,
        color="#7A828C",
    )
    ax.grid(True, which="major", color="#E4E7EB", linewidth=0.8)
    ax.tick_params(labelsize=9.5, colors=INK)
    ax.spines[["top", "right"]].set_visible(False)
