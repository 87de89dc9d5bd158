"""The picture of an audit: false discoveries by response, and the null p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array
from sobolev.plotting.checks import two_panels
from sobolev.plotting.style import (
    ACCENT,
    ACCENT_AREA,
    BAND,
    INK,
    SELECTED,
    clean,
    count_of,
    shown_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev.inference.audit_result import AuditResult, NullCurve

# Distance of dots at the same place, in rows, and the end of the axis.
STEP, RIGHT = 0.16, 1.06
DOT: dict[str, Any] = {
    "marker": "o",
    "linestyle": "",
    "color": INK,
    "alpha": 0.65,
    "markersize": 5,
    "markeredgewidth": 0,
    "zorder": 3,
}
MEAN: dict[str, Any] = {
    "marker": "|",
    "linestyle": "",
    "markersize": 18,
    "markeredgewidth": 3,
    "zorder": 2,
}
LEGEND: dict[str, Any] = {
    "loc": "upper right",
    "bbox_to_anchor": (1.0, 1.02),
    "ncols": 3,
    "frameon": False,
    "fontsize": 8,
    "markerscale": 0.6,
    "handlelength": 1.1,
    "handletextpad": 0.4,
    "columnspacing": 1.2,
}
# Columns with a bar.
MAX_BARS = 10


def plot_audit(result: AuditResult, ax: Axes | None = None) -> Axes:
    """What an audit measured, beside the level.

    One row for each kind of planted response: a dot is the share of false features among those
    selected for one response, the large mark their mean. The second panel shows the distribution
    of the p-values of features without effect: valid p-values have a curve that is not above the
    diagonal. For a selector without p-values it shows the features that were selected falsely most
    often.

    Parameters
    ----------
    result : AuditResult
        From :func:`sobolev.audit`.
    ax : matplotlib Axes, optional
        Where to draw the first panel, without the second one.

    Returns
    -------
    matplotlib Axes
        The axes of the first panel.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import HRTSelector, audit
    >>> from sobolev.plotting import plot_audit
    >>> X = np.random.default_rng(0).standard_normal((100, 6))
    >>> result = audit(HRTSelector(scheme="split"), X, n_repeats=3, random_state=0)
    >>> ax = plot_audit(result)
    """
    ax, beside = two_panels(ax, 1.25)
    draw_rates(ax, result)
    if beside is not None:
        draw_nulls(beside, result)
    return ax


def draw_rates(ax: Axes, result: AuditResult) -> None:
    """Draw the false discovery proportions of every kind of response into axes."""
    table = result.table()
    fdps = {label: [r.fdp for r in result.runs if r.label == label] for label in table["response"]}
    color, last = SELECTED if result.passed else ACCENT, len(fdps)
    ax.axvspan(result.level, RIGHT, color=ACCENT_AREA, linewidth=0, zorder=0)
    ax.axvline(result.level, color=ACCENT, linewidth=1.4, linestyle="--", zorder=1)
    for row, values in enumerate(fdps.values()):
        x, lift = _stacked(values)
        ax.plot(x, row - lift, label="" if row else "one response", **DOT)
        ax.plot(np.mean(values), row, color=color, label="" if row else "their mean", **MEAN)
    ax.axhline(last - 0.5, color=INK, linewidth=0.6)
    ax.plot(result.band, [last, last], color=color, linewidth=2.2, label="95 % interval")
    ax.plot(result.fdr, last, color=color, **MEAN)
    beside, along = ax.get_yaxis_transform(), ax.get_xaxis_transform()
    for row, power in enumerate([*table["power"], result.power]):
        words = "" if np.isnan(power) else f"power {power:.2f}"
        ax.text(1.01, row, words, transform=beside, va="center", fontsize=8, color=INK)
    level = f"level {result.level:g}"
    ax.text(result.level + 0.01, 0.01, level, transform=along, fontsize=8, color=ACCENT)
    ax.set_yticks(range(last + 1), [*fdps, "all responses"])
    ax.get_yticklabels()[-1].set_fontweight("bold")
    ax.set(xlim=(-0.03, RIGHT), ylim=(last + 1.0, -0.9))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("share of false features among the selected")
    ax.legend(**LEGEND)
    held = "the level holds" if result.fdr <= result.level else "above the level, within chance"
    held = held if result.passed else "the level does NOT hold"
    error = f" ± {result.fdr_error:.2f}" if result.fdr_error > 0 else ""
    clean(ax, f"FDR {result.fdr:.2f}{error}: {held}")
    ax.spines["left"].set_visible(False)


def _stacked(values: list[float]) -> tuple[list[float], Array]:
    """Equal values on top of each other, each stack around the middle of its row."""
    ordered = sorted(values)
    lift = np.zeros(len(ordered))
    for value in set(ordered):
        own = np.flatnonzero(np.array(ordered) == value)
        step = min(STEP, 0.6 / own.size)
        lift[own] = step * (np.arange(own.size) - (own.size - 1) / 2)
    return ordered, lift


def draw_nulls(ax: Axes, result: AuditResult) -> None:
    """Draw the null p-values or, if there are none, the features that were found falsely."""
    curve = result.null_curve()
    if curve is None:
        _draw_false(ax, result)
    else:
        _draw_curve(ax, curve, result)


def _draw_curve(ax: Axes, curve: NullCurve, result: AuditResult) -> None:
    floor = curve.levels[0] / 2
    shown = np.maximum([curve.lower, curve.shares, curve.upper], floor)
    ax.fill_between(curve.levels, shown[0], shown[2], color=BAND, linewidth=0, zorder=1)
    ax.plot([floor, 1], [floor, 1], color=ACCENT, linewidth=1.4, linestyle="--", zorder=2)
    ax.plot(curve.levels, shown[1], color=SELECTED, linewidth=2, zorder=3)
    ax.set(xscale="log", yscale="log", xlim=(floor, 1), ylim=(floor, 1))
    found = result.null_shares
    for level, share in found.items():
        ax.plot(level, max(share, floor), "o", color=SELECTED, mec="white", markersize=7, zorder=4)
    said = [f"{100 * share:.2g} % are at most {level:g}" for level, share in found.items()]
    too_small = found[0.05] > 0.05  # then the lower corner is free
    ax.text(
        *((0.98, 0.04) if too_small else (0.03, 0.96)),
        "\n".join(said),
        transform=ax.transAxes,
        ha="right" if too_small else "left",
        va="bottom" if too_small else "top",
        fontsize=9,
        color=SELECTED,
    )
    along: dict[str, Any] = {"rotation": 45, "rotation_mode": "anchor", "va": "top"}
    ax.text(
        0.0006, 0.0005, "uniform", fontsize=8, color=ACCENT, transform_rotates_text=True, **along
    )
    ticks = [0.001, 0.01, 0.1, 1]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xlabel("p-value")
    ax.set_ylabel("share of p-values up to this one")
    n = sum(run.n_null for run in result.runs)
    clean(ax, f"{count_of(n, 'p-value')} of features without effect")


def _draw_false(ax: Axes, result: AuditResult) -> None:
    counts = dict(list(result.most_false.items())[:MAX_BARS])
    names = [shown_name(name, 22) for name in counts]
    ax.barh(range(len(counts)), list(counts.values()), color=ACCENT, height=0.62)
    for row, count in enumerate(counts.values()):
        ax.text(count, row, f" {count}", va="center", fontsize=9, color=INK)
    ax.set_yticks(range(len(counts)), names)
    ax.set(xlim=(0, len(result.runs)), ylim=(max(len(counts), 5) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"false finds in {count_of(len(result.runs), 'response')}")
    clean(ax, "Found falsely most often" if counts else "No feature was found falsely")
    ax.spines["left"].set_visible(False)
