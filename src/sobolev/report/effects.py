"""Drawings of effects: a feature alone, and pairs that act together.

They show what :func:`~sobolev.plotting.plot_effect` and
:func:`~sobolev.plotting.plot_interactions` show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sobolev._typing import Array
from sobolev.plotting.partial_effects import MAX_POINTS, PartialEffect, rug_values
from sobolev.report.drawings import (
    Drawing,
    Scale,
    draw_line,
    draw_side,
    draw_text,
    draw_ticks,
    place_points,
    short,
)

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 46
LEGEND, LEGEND_ROW = 110, 18
CELL, N_COLORS = 52, 7


def draw_effect(effect: PartialEffect, limits: tuple[float, float]) -> Drawing:
    """The partial effect of a feature: a curve and a band, or a curve for each class or response.

    Parameters
    ----------
    effect : PartialEffect
    limits : (low, high)
        Of the vertical axis, the same for all panels.

    Returns
    -------
    Drawing
    """
    several = len(effect.labels) > 1
    points = np.unique(effect.values).size <= MAX_POINTS
    room = 0.25 * float(np.ptp(effect.grid)) if points else 0.0
    right = WIDTH - RIGHT - (LEGEND if several else 0)
    x = Scale(effect.grid[0] - room, effect.grid[-1] + room, LEFT, right)
    y = Scale(*limits, HEIGHT - BOTTOM, TOP)
    words = "witness of the class" if effect.is_classes else "shift of y, in sd"
    parts = [draw_side(y, LEFT, right, words)]
    parts.append(draw_line(LEFT, y.at(0.0), right, y.at(0.0), "zero"))
    if not several:
        parts.append(_spread(effect, x, y, points))
    for k, mean in enumerate(effect.means):
        parts.append(_curve(x(effect.grid), y(mean), k, points))
    parts.append(_shares(effect, x) if points else _rug(effect.values, x) + draw_ticks(x, y.start))
    parts.append(draw_text((LEFT + right) / 2, HEIGHT - 6, short(effect.feature), "middle"))
    if several:
        parts += _legend(effect.labels, right + 14)
    return Drawing("".join(parts), WIDTH, HEIGHT)


def effect_limits(effects: Iterable[PartialEffect]) -> tuple[float, float]:
    """A vertical axis that holds all effects and zero, with a little room."""
    ends = [0.0]
    for effect in effects:
        bands = (effect.lower, effect.upper) if len(effect.labels) == 1 else (effect.means,)
        ends += [float(value) for band in bands for value in (band.min(), band.max())]
    room = 0.06 * (max(ends) - min(ends)) or 1.0
    return min(ends) - room, max(ends) + room


def draw_interactions(names: Sequence[str], strengths: Array, top: float) -> Drawing:
    """The map of interactions: a cell for each pair, the darker the stronger, with its number.

    Parameters
    ----------
    names : sequence of str
    strengths : array of shape (k, k)
    top : float
        The strength of the full colour.

    Returns
    -------
    Drawing
    """
    shown = [short(name) for name in names]
    left = 16 + 7.2 * max(map(len, shown))
    slanted = max(map(len, shown)) > 6
    size = CELL * len(shown)
    digits = max(0, 1 - int(np.floor(np.log10(top)))) if top > 0 else 1
    parts = []
    for (a, b), value in np.ndenumerate(strengths):
        across, down = left + CELL * b, CELL * a
        if a == b:
            parts.append(_cell(across, down, "blank"))
            continue
        share = float(np.clip(value / top, 0.0, 1.0)) if top > 0 else 0.0
        parts.append(_cell(across, down, "heat", f' fill-opacity="{share:.3f}"'))
        said = f"{value:.{digits}f}" if round(float(value), digits) else "0"
        kind = "number dark" if share > 0.6 else "number"
        parts.append(draw_text(across + CELL / 2, down + CELL / 2 + 4, said, "middle", kind))
    for k, name in enumerate(shown):
        middle = CELL * k + CELL / 2
        parts.append(draw_text(left - 10, middle + 4, name, "end"))
        turn = f' transform="rotate(-40 {left + middle + 4:g} {size + 18})"' if slanted else ""
        anchor = "end" if slanted else "middle"
        across = left + middle + (4 if slanted else 0)
        parts.append(draw_text(across, size + 18, name, anchor, extra=turn))
    below = 26 + (4.9 * max(map(len, shown)) if slanted else 0)
    return Drawing("".join(parts), left + size + 4, size + below)


def _spread(effect: PartialEffect, x: Scale, y: Scale, points: bool) -> str:
    """Where 80 % of the rows lie."""
    across, low, high = x(effect.grid), y(effect.lower[0]), y(effect.upper[0])
    if points:
        pairs = zip(across, low, high, strict=True)
        return "".join(draw_line(a, b, a, c, "bar") for a, b, c in pairs)
    there = place_points(across, high)
    return f'<polygon class="band" points="{there} {place_points(across[::-1], low[::-1])}"/>'


def _curve(across: Array, down: Array, k: int, points: bool) -> str:
    kind = f"c{k % N_COLORS}"
    line = f'<polyline class="{"thin" if points else "curve"} {kind}" points="'
    drawn = f'{line}{place_points(across, down)}"/>'
    if points:
        dots = zip(across, down, strict=True)
        drawn += "".join(
            f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="5"/>' for a, b in dots
        )
    return drawn


def _rug(values: Array, x: Scale) -> str:
    """Ticks at the bottom."""
    shown = rug_values(values)
    shown = shown[(shown >= x.low) & (shown <= x.high)]
    path = "".join(f"M{place:.1f} {HEIGHT - BOTTOM}v-6" for place in x(shown))
    return f'<path class="rug" d="{path}"/>'


def _shares(effect: PartialEffect, x: Scale) -> str:
    """Each value with its share of the rows."""
    parts = []
    for value in effect.grid:
        place, share = x.at(value), float(np.mean(effect.values == value))
        row = HEIGHT - BOTTOM + 15
        parts.append(draw_text(place, row, f"{value:g} ({100 * share:.0f} %)", "middle", "value"))
    return "".join(parts)


def _legend(labels: Sequence[str], left: float) -> list[str]:
    parts = []
    for k, label in enumerate(labels):
        row = TOP + LEGEND_ROW * (k + 0.5)
        parts.append(f'<circle class="c{k % N_COLORS}" cx="{left}" cy="{row:g}" r="5"/>')
        parts.append(draw_text(left + 11, row + 4, short(label)[:14], "start", "value"))
    return parts


def _cell(across: float, down: float, kind: str, extra: str = "") -> str:
    place = f'x="{across + 1:g}" y="{down + 1:g}" width="{CELL - 2}" height="{CELL - 2}" rx="5"'
    return f'<rect class="{kind}" {place}{extra}/>'
