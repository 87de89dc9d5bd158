"""Pictures drawn by the page: vectors in its colours, light and dark, without a plot library.

The report of a command must not wait for a library to load. The pictures show what
:func:`~sobolev.plotting.plot_effect` and :func:`~sobolev.plotting.plot_interactions` show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from sobolev._typing import Array

if TYPE_CHECKING:
    from sobolev.plotting import PartialEffect

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 12, 46
LEGEND, LEGEND_ROW = 110, 18
# Up to this many values of a feature are points, more are a line.
MAX_POINTS = 10
MAX_RUG, TAIL = 100, 0.01
CELL, N_COLORS = 52, 7
MAX_NAME = 20


@dataclass(frozen=True)
class Drawing:
    """A drawing for the page: the inside of an SVG element, and its size."""

    body: str
    width: float
    height: float

    def element(self, words: str) -> str:
        """The element, with words for those who do not see it."""
        return (
            f'<svg class="drawing" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" role="img" aria-label="{escape(words)}">{self.body}</svg>'
        )


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
    x = _Scale(effect.grid[0] - room, effect.grid[-1] + room, LEFT, right)
    y = _Scale(*limits, HEIGHT - BOTTOM, TOP)
    parts = [_vertical_axis(y, right), _line(LEFT, y.at(0.0), right, y.at(0.0), "zero")]
    if not several:
        parts.append(_spread(effect, x, y, points))
    for k, mean in enumerate(effect.means):
        parts.append(_curve(x(effect.grid), y(mean), k, points))
    parts.append(_shares(effect, x) if points else _rug(effect.values, x) + _ticks(x))
    parts.append(_text((LEFT + right) / 2, HEIGHT - 6, short(effect.feature), "middle"))
    parts.append(_side_text("witness of the class" if effect.is_classes else "shift of y, in sd"))
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
        parts.append(_text(across + CELL / 2, down + CELL / 2 + 4, said, "middle", kind))
    for k, name in enumerate(shown):
        middle = CELL * k + CELL / 2
        parts.append(_text(left - 10, middle + 4, name, "end"))
        turn = f' transform="rotate(-40 {left + middle + 4:g} {size + 18})"' if slanted else ""
        anchor = "end" if slanted else "middle"
        across = left + middle + (4 if slanted else 0)
        parts.append(_text(across, size + 18, name, anchor, extra=turn))
    below = 26 + (4.9 * max(map(len, shown)) if slanted else 0)
    return Drawing("".join(parts), left + size + 4, size + below)


def short(name: str) -> str:
    """A name on one line; a long one loses its middle."""
    text = " ".join(str(name).split())
    half = (MAX_NAME - 1) // 2
    return text if len(text) <= MAX_NAME else f"{text[:half]}…{text[-half:]}"


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers between the ends, at most so many."""
    span = high - low
    if not span > 0:
        return [low]
    unit = 10.0 ** np.floor(np.log10(span / most))
    step = next(unit * m for m in (1, 2, 5, 10, 20) if span / (unit * m) <= most)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [k * step for k in range(first, last + 1)]


@dataclass(frozen=True)
class _Scale:
    """From values to places in the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Array | float) -> Array:
        span = (self.high - self.low) or 1.0
        found = self.start + (np.asarray(value) - self.low) / span * (self.end - self.start)
        return np.asarray(found)

    def at(self, value: float) -> float:
        """The place of one value."""
        return float(self(value))


def _vertical_axis(y: _Scale, right: float) -> str:
    parts = []
    for tick in nice_ticks(y.low, y.high):
        parts.append(_line(LEFT, y.at(tick), right, y.at(tick), "grid"))
        parts.append(_text(LEFT - 8, y.at(tick) + 4, f"{tick:g}", "end", "value"))
    return "".join(parts)


def _ticks(x: _Scale) -> str:
    row = HEIGHT - BOTTOM + 17
    return "".join(
        _text(x.at(tick), row, f"{tick:g}", "middle", "value") for tick in nice_ticks(x.low, x.high)
    )


def _spread(effect: PartialEffect, x: _Scale, y: _Scale, points: bool) -> str:
    """Where 80 % of the rows lie."""
    across, low, high = x(effect.grid), y(effect.lower[0]), y(effect.upper[0])
    if points:
        pairs = zip(across, low, high, strict=True)
        return "".join(_line(a, b, a, c, "bar") for a, b, c in pairs)
    there = _points(across, high)
    return f'<polygon class="band" points="{there} {_points(across[::-1], low[::-1])}"/>'


def _curve(across: Array, down: Array, k: int, points: bool) -> str:
    kind = f"c{k % N_COLORS}"
    line = f'<polyline class="{"thin" if points else "curve"} {kind}" points="'
    drawn = f'{line}{_points(across, down)}"/>'
    if points:
        dots = zip(across, down, strict=True)
        drawn += "".join(
            f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="5"/>' for a, b in dots
        )
    return drawn


def _rug(values: Array, x: _Scale) -> str:
    """Ticks at the bottom, at quantiles of the values if there are many."""
    shown = np.sort(values)
    if shown.size > MAX_RUG:
        shown = np.quantile(values, np.linspace(0, 1, MAX_RUG))
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    shown = shown[(shown >= low) & (shown <= high) & (shown >= x.low) & (shown <= x.high)]
    path = "".join(f"M{place:.1f} {HEIGHT - BOTTOM}v-6" for place in x(shown))
    return f'<path class="rug" d="{path}"/>'


def _shares(effect: PartialEffect, x: _Scale) -> str:
    """Each value with its share of the rows."""
    parts = []
    for value in effect.grid:
        place, share = x.at(value), float(np.mean(effect.values == value))
        row = HEIGHT - BOTTOM + 15
        parts.append(_text(place, row, f"{value:g} ({100 * share:.0f} %)", "middle", "value"))
    return "".join(parts)


def _legend(labels: Sequence[str], left: float) -> list[str]:
    parts = []
    for k, label in enumerate(labels):
        row = TOP + LEGEND_ROW * (k + 0.5)
        parts.append(f'<circle class="c{k % N_COLORS}" cx="{left}" cy="{row:g}" r="5"/>')
        parts.append(_text(left + 11, row + 4, short(label)[:14], "start", "value"))
    return parts


def _points(across: Array, down: Array) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _cell(across: float, down: float, kind: str, extra: str = "") -> str:
    place = f'x="{across + 1:g}" y="{down + 1:g}" width="{CELL - 2}" height="{CELL - 2}" rx="5"'
    return f'<rect class="{kind}" {place}{extra}/>'


def _text(
    x: float, y: float, words: str, anchor: str, kind: str = "name", *, extra: str = ""
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def _side_text(words: str) -> str:
    middle = (HEIGHT - BOTTOM + TOP) / 2
    return _text(
        14, middle, words, "middle", "value", extra=f' transform="rotate(-90 14 {middle})"'
    )
