"""Pictures of a selection: p-values with their line, knockoff statistics with their threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._numbers import FLOOR
from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._typing import Array, Index, Mask
from sobolev.plotting._ranks import name_points, name_room, rank_axis, rank_points
from sobolev.plotting.style import (
    ACCENT,
    ACCENT_AREA,
    BAND,
    INK,
    MAX_NAME,
    OTHER,
    SELECTED,
    SELECTED_AREA,
    check_mask,
    check_vector,
    clean,
    count_of,
    fitting_rows,
    make_axes,
    shown_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINES = {"bh": "Benjamini–Hochberg", "by": "Benjamini–Yekutieli", "storey": "Storey"}
# Characters of a name beside a point.
INLINE = 22


def plot_pvalues(
    pvalues: Any,
    feature_names: Sequence[str] | None = None,
    *,
    fdr: float | None = None,
    support: Mask | None = None,
    procedure: str | None = None,
    max_features: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Sorted p-values and the line of the step-up procedure, on a logarithmic axis.

    The procedure selects all features up to the last one that is left of the line.

    Parameters
    ----------
    pvalues : array of shape (d,) or fitted HRTSelector
        The p-values, NaN where not tested. With a selector its level, procedure, names, groups of
        columns and selection are shown, unless others are given.
    feature_names : sequence of str, optional
        Names of the columns.
    fdr : float, optional
        The false discovery rate, 0.1 by default.
    support : array of bool, shape (d,), optional
        The selected features; by default those that the procedure selects.
    procedure : {"bh", "by", "storey"}, optional
        See :func:`sobolev.inference.multiple_testing.qvalues`; "bh" by default.
    max_features : int, default=30
        Up to this number of tested features, each has a row with its name. Beyond it, the ranks
        are on a logarithmic axis and the smallest p-values have their names.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sobolev.plotting import plot_pvalues
    >>> ax = plot_pvalues([1e-4, 0.6, float("nan"), 0.02], ["a", "b", "c", "d"])
    >>> ax.get_title(loc="left")
    '2 selected at FDR 10 % · 3 of 4 features tested'
    """
    from sobolev.inference.multiple_testing import PROCEDURES, qvalues

    check_count("max_features", max_features)
    if hasattr(pvalues, "summary"):
        from sobolev.summary import without_covariates

        fitted, table = pvalues, without_covariates(pvalues.summary())
        fdr = fitted.fdr if fdr is None else fdr
        procedure = fitted.procedure if procedure is None else procedure
        # Another level or procedure than the fitted one selects anew.
        if support is None and (fdr, procedure) == (fitted.fdr, fitted.procedure):
            support = table["selected"]
        pvalues = table["pvalue"]
        feature_names = table["feature"] if feature_names is None else feature_names
    fdr, procedure = 0.1 if fdr is None else fdr, procedure or "bh"
    check_fraction("fdr", fdr, low=0.0, high=1.0)
    check_option("procedure", procedure, PROCEDURES)
    p = check_vector("pvalues", pvalues)
    if ((p < 0) | (p > 1)).any():
        raise ValueError("pvalues holds numbers outside of [0, 1]; pass p-values, NaN if untested.")
    if support is None:
        support = np.nan_to_num(qvalues(p, procedure), nan=2.0) <= fdr
    chosen = check_mask("support", support, p.size)
    order = np.argsort(p, kind="stable")[: int(np.isfinite(p).sum())]
    ax, names, many = _rows(ax, order, feature_names, p.size, max_features)
    _draw_pvalues(
        ax,
        *(p[order], chosen[order], names),
        slope=fdr / max(order.size * correction(p[order], procedure), 1.0),
        label=f"{LINES[procedure]} line at {100 * fdr:g} %",
        many=many,
    )
    tested = f"{order.size:,} of " if order.size < p.size else ""
    title = f"{int(chosen.sum()):,} selected at FDR {100 * fdr:g} %"
    clean(ax, f"{title} · {tested}{count_of(p.size, 'feature')} tested")
    return ax


def _draw_pvalues(
    ax: Axes, p: Array, chosen: Mask, names: list[str], slope: float, label: str, many: bool
) -> None:
    x, small = np.maximum(p, FLOOR), p < FLOOR  # smaller ones are arrows
    rank_axis(ax, names, many=many)
    bottom, top = ax.get_ylim()
    rank = np.geomspace(top, bottom, 200)
    low = float(min(x.min(initial=1.0), slope))
    room = name_room(ax, names) if many else 0.04
    left = low ** (1 / (1 - room)) / 2
    ax.fill_betweenx(rank, left, slope * rank, color=BAND, linewidth=0, zorder=0)
    ax.plot(slope * rank, rank, color=ACCENT, linewidth=1.4, linestyle="--", zorder=3, label=label)
    markers = np.where(small, "<", "o").tolist()
    rank_points(ax, x, np.where(chosen, SELECTED, OTHER), chosen, markers)
    ax.set_xscale("log")
    ax.set_xlim(left, 1.5)
    if many:
        name_points(ax, x, names, np.flatnonzero(chosen) if chosen.any() else np.arange(5), -1)
    ax.set_xlabel(f"p-value{f' (◂ below {FLOOR:.0e})' if small.any() else ''}")
    ax.legend(frameon=False, fontsize=8, loc="lower left")


def plot_knockoff_statistics(
    W: Any,
    feature_names: Sequence[str] | None = None,
    *,
    threshold: Any = None,
    support: Mask | None = None,
    max_features: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Knockoff statistics by size, the threshold, and its mirror image.

    A column without effect is as likely to lie left as right, so the points left of the mirrored
    threshold show how many of those right of the threshold to expect by chance.

    Parameters
    ----------
    W : array of shape (p,) or fitted KnockoffSelector
        The statistics, not drawn where NaN. With a selector its threshold, names, groups of
        columns and selection are shown, unless others are given.
    feature_names : sequence of str, optional
        Names of the columns.
    threshold : float or array, optional
        The smallest W that is selected; infinite if nothing is. Thresholds of several draws are
        thin lines.
    support : array of bool, shape (p,), optional
        The selected features; by default those at or above a single threshold.
    max_features : int, default=30
        Up to this number of features with W other than zero, each has a row with its name. Beyond
        it, the ranks are on a logarithmic axis and the largest statistics have their names.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sobolev.plotting import plot_knockoff_statistics
    >>> ax = plot_knockoff_statistics([5, 4, 3, 2, -1], threshold=2.0)
    >>> ax.get_title(loc="left")
    '4 of 5 features selected · 0 beyond the mirror'
    """
    check_count("max_features", max_features)
    if hasattr(W, "summary"):
        from sobolev.summary import without_covariates

        fitted, table = W, without_covariates(W.summary())
        if threshold is None:
            threshold = fitted.threshold_
            support = table["selected"] if support is None else support
        W = table["W"]
        feature_names = table["feature"] if feature_names is None else feature_names
    values = check_vector("W", W)
    given = np.atleast_1d(np.inf if threshold is None else threshold).astype(float)
    if not (given > 0).all():
        raise ValueError(
            f"threshold={threshold!r} must be positive; infinite if nothing is selected."
        )
    if support is None:
        support = values >= given[0] if given.size == 1 else np.zeros(values.size, dtype=bool)
    chosen = check_mask("support", support, values.size)
    lines = np.unique(given[np.isfinite(given)])
    mirrored = values <= -lines[0] if given.size == lines.size == 1 else np.zeros_like(chosen)
    size = np.nan_to_num(np.abs(values))
    order = np.argsort(-size, kind="stable")[: int(np.count_nonzero(size))]
    ax, names, many = _rows(ax, order, feature_names, values.size, max_features)
    _draw_statistics(ax, values[order], chosen[order], mirrored[order], names, lines, many)
    zeros = int(np.count_nonzero(values == 0))
    if zeros:  # they have no rank
        said = f"{zeros:,} more are zero"
        ax.text(0.01, 0.01, said, transform=ax.transAxes, fontsize=8, color=INK, va="bottom")
    title = f"{int(chosen.sum()):,} of {count_of(values.size, 'feature')} selected"
    if given.size == lines.size == 1:
        title += f" · {int(mirrored.sum()):,} beyond the mirror"
    elif threshold is not None and not lines.size:
        title += " · no threshold meets the level"
    clean(ax, title)
    return ax


def _draw_statistics(
    ax: Axes, W: Array, chosen: Mask, mirrored: Mask, names: list[str], lines: Array, many: bool
) -> None:
    top = float(np.abs(W[np.isfinite(W)]).max(initial=lines.max(initial=0.0))) or 1.0
    left = right = 1.08 * top
    if many:  # room for names on the sides that have some
        left = 1.08 * float(max(-W.min(initial=0.0), lines.max(initial=0.0)))
        room = name_room(ax, names) * np.array([mirrored.any(), True])
        left, right = np.array([left, right]) + room * (left + right) / (1 - room.sum())
    ax.axvline(0, color=INK, linewidth=0.8, zorder=1)
    if lines.size == 1:
        ax.axvspan(lines[0], right, color=SELECTED_AREA, linewidth=0, zorder=0)
        ax.axvspan(-left, -lines[0], color=ACCENT_AREA, linewidth=0, zorder=0)
    thin = 1.4 if lines.size == 1 else 0.6
    for i, t in enumerate(lines):
        label = ("threshold" if lines.size == 1 else "thresholds of the draws") if not i else None
        ax.axvline(t, color=SELECTED, linewidth=thin, zorder=2, label=label)
        mirror = "mirrored" if not i else None
        ax.axvline(-t, color=ACCENT, linewidth=thin, linestyle="--", zorder=2, label=mirror)
    colors = np.where(chosen, SELECTED, np.where(mirrored, ACCENT, OTHER))
    rank_points(ax, W, colors, chosen | mirrored, np.where(mirrored, "s", "o").tolist())
    ax.set_xlim(-left, right)
    rank_axis(ax, names, many=many)
    if many:
        front = chosen | mirrored
        asked = np.flatnonzero(front) if front.any() else np.arange(5)
        name_points(ax, W, names, asked, np.where(W < 0, -1, 1))
        ax.set_ylabel("rank of |W| (logarithmic)")
    ax.set_xlabel("W (positive: the feature beats its knockoff)")
    if lines.size:
        ax.legend(frameon=False, fontsize=8, loc="lower right")


def _rows(
    ax: Axes | None, order: Index, feature_names: Any, d: int, max_features: int
) -> tuple[Axes, list[str], bool]:
    """The axes, the names by rank, and whether there are too many rows for a name each."""
    rows = order.size
    many = rows > (max_features if ax is None else min(max_features, fitting_rows(ax)))
    ax = make_axes(ax, height=5.2 if many else 1.4 + 0.24 * max(rows, 4))
    shown = shown_names(feature_names, d, INLINE if many else MAX_NAME)
    return ax, [shown[j] for j in order], many


def correction(p: Array, procedure: str | None) -> float:
    """The c of level · k / (c m), with which a procedure compares the k-th smallest p-value."""
    from sobolev.inference.multiple_testing import null_share

    if procedure == "by" and p.size:
        return float(np.sum(1 / np.arange(1, p.size + 1)))
    return null_share(p) if procedure == "storey" and p.size else 1.0
