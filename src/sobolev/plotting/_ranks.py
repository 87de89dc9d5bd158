"""What pictures of ranked features share: points by rank, and names where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array, Index, Mask
from sobolev.plotting.style import GRID, INK, row_font, size_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The least distance between two names, as a share of the height, and inches of a letter.
NAME_GAP, LETTER = 0.034, 0.068


def rank_points(ax: Axes, x: Array, colors: Any, front: Mask, markers: str | Sequence[str]) -> None:
    """Points by rank, from the top; those in front are larger."""
    size = float(np.clip(1200 / max(x.size, 1), 8, 40))
    shapes = np.broadcast_to(np.array(markers), x.shape)
    shades, rank = np.asarray(colors), np.arange(1, x.size + 1)
    for layer, here in enumerate((~front, front)):
        for shape in np.unique(shapes[here]):
            same = here & (shapes == shape)
            ax.scatter(
                *(x[same], rank[same]),
                s=max(size, 22) if layer else size,
                c=shades[same].tolist(),
                marker=str(shape),
                linewidths=0,
                zorder=4 + layer,
            )


def rank_axis(ax: Axes, names: Sequence[str], *, many: bool) -> None:
    """A row with a name for each, or ranks on a logarithmic axis."""
    m = len(names)
    ax.set_axisbelow(True)
    if many:
        ax.set_yscale("log")
        ax.set_ylim(1.25 * m, 0.8)
        ax.yaxis.set_major_formatter(lambda rank, _: f"{rank:,.0f}")
        ax.set_ylabel("rank (logarithmic)")
        return
    ax.set_yticks(np.arange(1, m + 1), list(names), fontsize=row_font(ax, m))
    ax.set_ylim(m + 0.6, 0.4)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color=GRID, linewidth=0.8)


def name_room(ax: Axes, names: Sequence[str]) -> float:
    """The share of the width that the longest name takes."""
    inches = LETTER * max(map(len, names), default=0) + 0.15
    return min(0.4, inches / size_inches(ax)[0])


def name_points(ax: Axes, x: Array, names: Sequence[str], asked: Index, side: Any) -> None:
    """Names beside points of a logarithmic rank axis, from the top, as far as they fit.

    ``asked`` are positions in rank order; ``side`` is -1 (name at the left) or 1 for each point.
    Limits of the axes must be set.
    """
    sides = np.broadcast_to(side, x.shape)
    seen = np.column_stack([x, np.arange(1, x.size + 1)])
    across, up = ax.transAxes.inverted().transform(ax.transData.transform(seen)).T
    last = {-1: np.inf, 1: np.inf}
    for i in asked:
        key, width = int(sides[i]), LETTER * len(names[i]) / size_inches(ax)[0]
        aside = key * (across - across[i])
        covered = (np.abs(up - up[i]) < 0.5 * NAME_GAP) & (aside > 0.005) & (aside < width + 0.02)
        if last[key] - up[i] < NAME_GAP or covered.any():
            continue
        last[key] = up[i]
        ax.annotate(
            names[i],
            (x[i], i + 1),
            xytext=(6 * key, 0),
            textcoords="offset points",
            ha="left" if key > 0 else "right",
            va="center",
            fontsize=8,
            color=INK,
        )
