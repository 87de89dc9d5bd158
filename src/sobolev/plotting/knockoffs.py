"""The picture of knockoffs: how far they are from their columns, and how much power is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev.plotting.checks import (
    diagnostics_of,
    dot_size,
    draw_checks,
    failing_colors,
    layers,
    misfit_scores,
    name_failing,
    two_panels,
    verdict,
)
from sobolev.plotting.style import INK, OTHER, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev.knockoffs.diagnostics import KnockoffDiagnostics

LABELS = (
    "values that the\ncolumn never has",
    "mean",
    "variance",
    "correlation with\nother columns",
)
# A share of rows with wrong values that weighs as much as the smallest effect that counts.
OFF_UNIT = 0.1
# About the number of dots in a colour; the curve shows as well with every k-th.
MAX_DOTS = 300


def plot_knockoffs(diagnostics: Any, ax: Axes | None = None) -> Axes:
    """Differences between columns and knockoffs, a row of dots for each check.

    Columns that fail a check are in colour, the worst six with their names. A second panel shows
    the correlation of each column with its knockoff: the nearer to one, the less power.

    Parameters
    ----------
    diagnostics : KnockoffDiagnostics or fitted KnockoffSelector
        Result of :func:`sobolev.knockoffs.diagnose_knockoffs`, or a selector that was fitted with
        ``diagnose=True``.
    ax : matplotlib Axes, optional
        Where to draw the checks, without the second panel.

    Returns
    -------
    matplotlib Axes
        The axes of the checks.
    """
    diagnostics = diagnostics_of(diagnostics)
    ax, beside = two_panels(ax, 1.4)
    if beside is not None:
        draw_likeness(beside, diagnostics)
    colors = draw_knockoff_checks(ax, diagnostics)
    clean(ax, verdict(len(colors), len(diagnostics.names)) + _classifier(diagnostics))
    name_failing(beside or ax, diagnostics.names, colors)
    return ax


def draw_knockoff_checks(ax: Axes, diagnostics: KnockoffDiagnostics) -> dict[int, str]:
    """Draw a row of dots for each check; returns the colours of the failing columns."""
    from sobolev.knockoffs.diagnostics import LEVEL, THRESHOLDS

    least = list(THRESHOLDS.values())
    moments = misfit_scores(diagnostics.effects, diagnostics.qvalues, least, LEVEL)
    off = diagnostics.off_values
    values = np.where(off > 0, 1 + off / OFF_UNIT, 0.0)
    values[np.isnan(moments[:, 0])] = np.nan
    scores = np.column_stack([values, moments])
    return draw_checks(ax, LABELS, scores, diagnostics.failing)


def draw_likeness(ax: Axes, diagnostics: KnockoffDiagnostics) -> None:
    """Draw the correlation of each column with its knockoff, ascending, into axes."""
    found = diagnostics.correlations
    order = np.argsort(found)[: int(np.isfinite(found).sum())]
    colors = failing_colors(diagnostics.failing)
    shades = np.array([colors.get(int(j), OTHER) for j in order])
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    for color in layers():
        at = np.flatnonzero(shades == color)
        at = at[:: 1 + at.size // MAX_DOTS]
        if at.size:  # a line without points would spoil the layout
            ax.plot(at + 1, found[order[at]], "o", color=color, clip_on=False, **dot_size(color))
    if order.size:
        ax.axhline(diagnostics.mean_correlation, color=INK, linewidth=0.8, linestyle=":")
    ax.set_ylim(min(-0.15, 1.15 * float(np.nanmin(found, initial=0.0))), 1.0)
    ax.set_xlabel("columns, in order")
    ax.set_ylabel("correlation with own knockoff")
    title = f"mean {diagnostics.mean_correlation:.2f} · the lower, the more power"
    ax.set_title(title, loc="left", fontsize=9, color=INK)
    clean(ax)


def _classifier(diagnostics: KnockoffDiagnostics) -> str:
    if diagnostics.accuracies is None or diagnostics.classifier_pvalue is None:
        return ""
    p = diagnostics.classifier_pvalue
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    return f" · told apart in {100 * diagnostics.accuracies.max():.0f} % of rows ({shown})"
