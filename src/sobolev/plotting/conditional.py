"""The picture of a conditional model: transforms of all columns, and what fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array, Mask
from sobolev.plotting._style import BAND, INK, OTHER, clean, cycle, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

    from sobolev.conditionals.diagnostics import ConditionalDiagnostics

# Failing columns with a colour and a name of their own; the others share a colour.
NAMED = 6
MORE = "#E8B08A"
# Points of a curve, however many rows there are.
POINTS = 400
LABELS = {
    "uniform": "distance\nfrom uniform",
    "location": "place depends\non other columns",
    "spread": "width depends\non other columns",
    "correlation": "draws change\ncorrelations",
}


def plot_conditional(diagnostics: ConditionalDiagnostics, ax: Axes | None = None) -> Axes:
    """Share of transforms below u, less u: zero for a law that fits.

    The band holds all columns at once in 99 % of data sets if the laws are right. Columns that
    fail are in colour, the worst six with their names. Some fail only beside other columns, with a
    curve inside the band: a second panel shows the effect of each check against its threshold.

    Parameters
    ----------
    diagnostics : ConditionalDiagnostics
        Result of :func:`sobolev.conditionals.diagnostics.diagnose_conditional`.
    ax : matplotlib Axes, optional
        Where to draw the curves, without the second panel.

    Returns
    -------
    matplotlib Axes
        Of the curves.
    """
    position = {int(j): i for i, j in enumerate(diagnostics.columns)}
    colors = failing_colors([position[j] for j in diagnostics.failing])
    beside = None
    if ax is None:
        ax, beside = _panels()
        _effects(beside, diagnostics, colors)
    _curves(ax, diagnostics, colors)
    legend(beside or ax, diagnostics.names, colors, {"linewidth": 2.2}, handlelength=1.4)
    return ax


def _panels() -> tuple[Axes, Axes]:
    import matplotlib.pyplot as plt

    ratio = {"width_ratios": [1.35, 1]}
    _, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained", gridspec_kw=ratio)
    return axes[0], axes[1]


def _curves(ax: Axes, diagnostics: ConditionalDiagnostics, colors: dict[int, str]) -> None:
    from scipy.stats import kstwo

    n, m = diagnostics.pit.shape
    u = np.linspace(0, 1, min(n, POINTS) + 1)
    curves = _deviations(diagnostics.pit, u)
    half = float(kstwo.isf(0.01 / max(m, 1), n))
    ax.fill_between([0, 1], -half, half, color=BAND, linewidth=0, zorder=0)
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    thin = float(np.clip(8 / np.sqrt(max(m, 1)), 0.35, 1.0))
    fine = [i for i in range(m) if i not in colors and np.isfinite(curves[i]).all()]
    more = list(colors)[NAMED:]
    ax.add_collection(_bundle(u, curves[fine], OTHER, thin, 2))
    ax.add_collection(_bundle(u, curves[more], MORE, max(thin, 0.7), 3))
    for rank, (i, color) in enumerate(list(colors.items())[:NAMED]):
        ax.plot(u, curves[i], color=color, linewidth=1.7, zorder=10 - rank)
    top = 1.15 * max(half, float(np.nanmax(np.abs(curves), initial=0.0)))
    ax.set(xlim=(0, 1), ylim=(-top, top))
    ax.set_xlabel("u: probability of a smaller value under the model")
    ax.set_ylabel("share of rows below u, minus u")
    count = f"{len(colors)} of {m}" if colors else f"none of {m}"
    ax.set_title(f"{count} columns {verb(len(colors))} · {n} rows", loc="left", fontsize=11)
    ax.text(0.01, -half, "99 % band", va="bottom", fontsize=8, color=INK, zorder=11)
    clean(ax)


def _effects(ax: Axes, diagnostics: ConditionalDiagnostics, colors: dict[int, str]) -> None:
    """A row of points for each check, filled where the check fails, and its threshold."""
    from sobolev.conditionals.diagnostics import THRESHOLDS

    effects = np.abs(diagnostics.effects)
    for row, threshold in enumerate(THRESHOLDS.values()):
        bad = diagnostics.misfit[:, row]
        strip(ax, effects[:, row], row, bad, colors)
        ax.plot([threshold] * 2, [row - 0.38, row + 0.38], color=INK, linewidth=1.2, zorder=5)
        share = int(bad.sum())
        at_right = ax.get_yaxis_transform()
        said = f"{share} {verb(share)}"
        ax.text(1, row, said, transform=at_right, ha="right", va="center", fontsize=8, color=INK)
    ax.set_yticks(range(len(THRESHOLDS)), [LABELS[check] for check in THRESHOLDS], fontsize=8)
    ax.set_ylim(len(THRESHOLDS) - 0.5, -0.5)
    ax.set_xlim(0, 1.25 * max(0.12, float(np.nanmax(effects, initial=0.0))))
    ax.set_xlabel("size of the effect")
    ax.set_title(
        "filled: fails, clear of chance · line: least effect that counts",
        loc="left",
        fontsize=9,
        color=INK,
    )
    ax.tick_params(axis="y", length=0)
    clean(ax)


def verb(count: int) -> str:
    """Of so many columns."""
    return "fails" if count == 1 else "fail"


def _deviations(pit: Array, u: Array) -> Array:
    """The empirical distribution function of each column at u, less u; (m, points)."""
    n = pit.shape[0]
    found = [np.searchsorted(np.sort(column), u, side="right") / n - u for column in pit.T]
    curves = np.array(found).reshape(pit.shape[1], u.size)
    curves[np.isnan(pit).any(axis=0)] = np.nan
    return curves


def _bundle(u: Array, curves: Array, color: str, width: float, order: int) -> LineCollection:
    from matplotlib.collections import LineCollection

    lines = [np.column_stack([u, curve]) for curve in curves]
    return LineCollection(lines, colors=color, linewidths=width, alpha=0.8, zorder=order)


def failing_colors(failing: Sequence[int]) -> dict[int, str]:
    """A colour of its own for each of the first few, one for all others."""
    colors = dict(zip(failing[:NAMED], cycle(len(failing[:NAMED])), strict=True))
    colors.update(dict.fromkeys(failing[NAMED:], MORE))
    return colors


def strip(
    ax: Axes, values: Array, row: int, bad: Mask, colors: dict[int, str], *, clip: bool = True
) -> None:
    """Points of all columns around a row, filled where they are bad, those in colour on top.

    Their heights are fixed and spread evenly, so that points do not hide each other.
    """
    m = values.size
    height = 0.5 * ((np.arange(m) * 0.618) % 1 - 0.5)
    shade = np.array([colors.get(i, OTHER) for i in range(m)])
    face = np.where(bad, shade, "none")
    front = np.isin(np.arange(m), list(colors))
    size = float(np.clip(400 / max(m, 1), 6, 30))
    for layer, here in enumerate((~front, front)):
        ax.scatter(
            *(values[here], row + height[here]),
            s=size * (1 + layer),
            facecolors=face[here].tolist(),
            edgecolors=shade[here].tolist(),
            linewidths=0.9,
            zorder=2 + layer,
            clip_on=clip,
        )


def legend(
    ax: Axes, names: Sequence[str], colors: dict[int, str], style: dict[str, Any], **spacing: float
) -> None:
    """Names beside the axes, the worst first, and how many more fail."""
    from matplotlib.lines import Line2D

    if not colors:
        return
    named = list(colors.items())[:NAMED]
    labels = [shown_name(names[i]) for i, _ in named]
    shades = [color for _, color in named]
    if len(colors) > len(named):
        labels.append(f"and {len(colors) - len(named)} more")
        shades.append(MORE)
    ax.legend(
        [Line2D([], [], color=shade, **style) for shade in shades],
        labels,
        frameon=False,
        fontsize=8,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        **spacing,
    )
