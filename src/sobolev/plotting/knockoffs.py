"""The picture of knockoffs: how far they are from their columns, and how much power is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sobolev.plotting._style import INK, OTHER, clean
from sobolev.plotting.conditional import NAMED, failing_colors, legend, strip, verb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev.knockoffs.diagnostics import KnockoffDiagnostics

LABELS = {
    "values": "values that the\ncolumn never has\n(share of rows)",
    "mean": "mean\n(deviations)",
    "variance": "variance\n(relative)",
    "correlation": "correlation with\nother columns",
}


def plot_knockoffs(diagnostics: KnockoffDiagnostics, ax: Axes | None = None) -> Axes:
    """Differences between columns and knockoffs, a row of points for each check.

    A point is filled where its check fails: beyond the line, and clear of chance. Columns that fail
    are in colour, the worst six with their names. A second panel shows the correlation of each
    column with its knockoff: the nearer to one, the less power.

    Parameters
    ----------
    diagnostics : KnockoffDiagnostics
        Result of :func:`sobolev.knockoffs.diagnose_knockoffs`.
    ax : matplotlib Axes, optional
        Where to draw the differences, without the second panel.

    Returns
    -------
    matplotlib Axes
        Of the differences.
    """
    colors = failing_colors(diagnostics.failing)
    beside = None
    if ax is None:
        ax, beside = _panels()
        _power(beside, diagnostics, colors)
    _differences(ax, diagnostics, colors)
    dots = {"marker": "o", "linestyle": "", "markersize": 5}
    legend(beside or ax, diagnostics.names, colors, dots, handletextpad=0.2)
    return ax


def _panels() -> tuple[Axes, Axes]:
    import matplotlib.pyplot as plt

    ratio = {"width_ratios": [1.6, 1]}
    _, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained", gridspec_kw=ratio)
    return axes[0], axes[1]


def _differences(ax: Axes, diagnostics: KnockoffDiagnostics, colors: dict[int, str]) -> None:
    from sobolev.knockoffs.diagnostics import THRESHOLDS

    p = len(diagnostics.names)
    sizes = np.column_stack([diagnostics.off_values, np.abs(diagnostics.effects)])
    bad = np.column_stack([diagnostics.off_values > 0, diagnostics.misfit])
    for row, least in enumerate([0.0, *THRESHOLDS.values()]):
        strip(ax, sizes[:, row], row, bad[:, row], colors, clip=False)
        if least:
            ax.plot([least] * 2, [row - 0.36, row + 0.36], color=INK, linewidth=1.2, zorder=5)
        count = int(bad[:, row].sum())
        said = f"{count} {verb(count)}" if count else "none fails"
        side = ax.get_yaxis_transform()
        ax.text(1.01, row, said, transform=side, va="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(LABELS)), list(LABELS.values()), fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(LABELS) - 0.5, -0.5)
    top = float(np.nanmax(sizes, initial=0.0))
    ax.set_xlim(-0.015 * max(top, 0.25), 1.05 * max(top, 0.25))
    ax.set_xlabel(
        "difference between column and knockoff\n"
        "filled: fails, clear of chance · line: least that counts"
    )
    fail = verb(len(colors))
    title = f"{len(colors) or 'none'} of {p} columns {fail}{_classifier(diagnostics)}"
    ax.set_title(title, loc="left", fontsize=11)
    clean(ax)


def _power(ax: Axes, diagnostics: KnockoffDiagnostics, colors: dict[int, str]) -> None:
    """Correlations with the knockoff, ascending."""
    found = diagnostics.correlations
    order = np.argsort(found)[: int(np.isfinite(found).sum())]
    place = np.arange(1, order.size + 1)
    shade = np.array([colors.get(int(j), OTHER) for j in order])
    front = np.isin(order, list(colors)[:NAMED])
    size = float(np.clip(600 / max(order.size, 1), 6, 30))
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    for layer, here in enumerate((~front, front)):
        ax.scatter(
            *(place[here], found[order][here]),
            s=size * (1 + layer),
            c=shade[here].tolist(),
            linewidths=0,
            zorder=2 + layer,
            clip_on=False,
        )
    mean = diagnostics.mean_correlation
    if order.size:
        ax.axhline(mean, color=INK, linewidth=0.8, linestyle=":", zorder=1)
    ax.set_ylim(min(-0.15, 1.15 * float(np.nanmin(found, initial=0.0))), 1.0)
    ax.set_xlabel("columns, in order")
    ax.set_ylabel("correlation with own knockoff")
    ax.set_title(f"mean {mean:.2f} · the lower, the more power", loc="left", fontsize=9, color=INK)
    clean(ax)


def _classifier(diagnostics: KnockoffDiagnostics) -> str:
    if diagnostics.accuracies is None or diagnostics.classifier_pvalue is None:
        return ""
    p = diagnostics.classifier_pvalue
    shown = "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
    return f" · told apart in {100 * diagnostics.accuracies.max():.0f} % of rows ({shown})"
