"""The picture of a conditional model: its checks, and the calibration of every column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array
from sobolev.plotting.checks import (
    MORE,
    NAMED,
    diagnostics_of,
    draw_checks,
    failing_colors,
    misfit_scores,
    name_failing,
    two_panels,
    verdict,
)
from sobolev.plotting.style import BAND, INK, OTHER, clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

    from sobolev.conditionals.diagnostics import ConditionalDiagnostics

# Number of points of a curve, and of passing columns with a curve.
POINTS, MAX_CURVES = 100, 60
LABELS = {
    "uniform": "shape or width",
    "location": "mean depends\non other columns",
    "spread": "width depends\non other columns",
    "correlation": "draws change\ncorrelations",
}


def plot_conditional(diagnostics: Any, ax: Axes | None = None) -> Axes:
    """How well the conditional distributions of the columns fit.

    The curves show the share of rows below the u-quantile of the model, minus u: zero for a model
    that fits. If the model is right, the band holds all columns at once in 99 % of data sets.
    Columns that fail a check are in colour, the worst six with their names. A column can stay
    inside the band and fail beside other columns: a second panel shows every check.

    Parameters
    ----------
    diagnostics : ConditionalDiagnostics or fitted HRTSelector
        Result of :func:`sobolev.conditionals.diagnostics.diagnose_conditional`, or a selector that
        was fitted with ``diagnose=True``.
    ax : matplotlib Axes, optional
        Where to draw the curves, without the second panel.

    Returns
    -------
    matplotlib Axes
        The axes of the curves.
    """
    diagnostics = diagnostics_of(diagnostics)
    ax, beside = two_panels(ax, 1.35)
    if beside is not None:
        draw_conditional_checks(beside, diagnostics)
    draw_calibration(ax, diagnostics)
    n, m = diagnostics.pit.shape
    colors = failing_colors(_failing(diagnostics))
    clean(ax, f"{verdict(len(colors), m)} · {n} rows")
    name_failing(beside or ax, diagnostics.names, colors)
    return ax


def draw_conditional_checks(ax: Axes, diagnostics: ConditionalDiagnostics) -> dict[int, str]:
    """Draw a row of dots for each check; returns the colours of the failing columns."""
    from sobolev.conditionals.diagnostics import LEVEL, THRESHOLDS

    least = [THRESHOLDS[check] for check in LABELS]
    scores = misfit_scores(diagnostics.effects, diagnostics.qvalues, least, LEVEL)
    return draw_checks(ax, list(LABELS.values()), scores, _failing(diagnostics))


def draw_calibration(ax: Axes, diagnostics: ConditionalDiagnostics) -> None:
    """Draw the calibration curves into axes."""
    from scipy.stats import kstwo

    n, m = diagnostics.pit.shape
    colors = failing_colors(_failing(diagnostics))
    u = np.linspace(0, 1, min(n, POINTS) + 1)
    judged = np.isfinite(diagnostics.pit[0]) if n else np.zeros(m, dtype=bool)
    fine = [int(i) for i in np.flatnonzero(judged) if i not in colors]
    if len(fine) > MAX_CURVES:
        fine = [fine[k] for k in np.linspace(0, len(fine) - 1, MAX_CURVES).astype(int)]
    curves = {i: _deviation(diagnostics.pit[:, i], u) for i in [*fine, *colors]}
    half = float(kstwo.isf(0.01 / max(m, 1), n))
    ax.fill_between([0, 1], -half, half, color=BAND, linewidth=0, zorder=0)
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    thin = float(np.clip(8 / np.sqrt(max(m, 1)), 0.35, 1.0))
    more = list(colors)[NAMED:][:MAX_CURVES]
    ax.add_collection(_bundle(u, [curves[i] for i in fine], OTHER, thin, 2))
    ax.add_collection(_bundle(u, [curves[i] for i in more], MORE, max(thin, 0.7), 3))
    for rank, (i, color) in enumerate(list(colors.items())[:NAMED]):
        ax.plot(u, curves[i], color=color, linewidth=1.7, zorder=10 - rank)
    top = 1.15 * max([half, *(float(np.abs(curve).max()) for curve in curves.values())])
    ax.set(xlim=(0, 1), ylim=(-top, top))
    ax.set_xlabel("u: probability of a smaller value under the model")
    ax.set_ylabel("share of rows below u, minus u")
    ax.text(0.01, -half, "99 % band", va="bottom", fontsize=8, color=INK, zorder=11)
    clean(ax)


def _failing(diagnostics: ConditionalDiagnostics) -> list[int]:
    """Positions of the failing columns among the diagnosed columns."""
    position = {int(j): i for i, j in enumerate(diagnostics.columns)}
    return [position[j] for j in diagnostics.failing]


def _deviation(pit: Array, u: Array) -> Array:
    """The empirical distribution function of a column at u, minus u."""
    return np.asarray(np.searchsorted(np.sort(pit), u, side="right") / pit.size - u)


def _bundle(u: Array, curves: list[Array], color: str, width: float, order: int) -> LineCollection:
    from matplotlib.collections import LineCollection

    lines = [np.column_stack([u, curve]) for curve in curves]
    return LineCollection(lines, colors=color, linewidths=width, alpha=0.8, zorder=order)
