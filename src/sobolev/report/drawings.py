"""Pictures drawn by the page: vectors in its colours, light and dark, without a plot library.

The report of a command must not wait for a library to load.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from sobolev._typing import Array

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
class Scale:
    """From values to places in the drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Array | float) -> Array:
        """The places of values."""
        span = (self.high - self.low) or 1.0
        found = self.start + (np.asarray(value) - self.low) / span * (self.end - self.start)
        return np.asarray(found)

    def at(self, value: float) -> float:
        """The place of one value."""
        return float(self(value))


def place_points(across: Array, down: Array) -> str:
    """Places as the corners of a line or an area."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))


def draw_line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line of a kind that the style sheet knows."""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def draw_text(
    x: float, y: float, words: str, anchor: str, kind: str = "name", *, extra: str = ""
) -> str:
    """Words at a place; whatever they hold is shown as it is."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}'
    return f'<text class="{kind}" {place}>{escape(words)}</text>'


def draw_bottom(x: Scale, base: float, words: str, height: float) -> str:
    """The ticks below a base line, and what the axis shows."""
    said = draw_text((x.start + x.end) / 2, height - 8, words, "middle", "value")
    return draw_ticks(x, base) + said


def draw_ticks(x: Scale, base: float) -> str:
    """Round numbers below a base line."""
    ticks = nice_ticks(x.low, x.high)
    return "".join(
        draw_text(x.at(tick), base + 17, f"{tick:g}", "middle", "value") for tick in ticks
    )


def draw_side(y: Scale, left: float, right: float, words: str) -> str:
    """Lines across at round numbers, the numbers, and what the axis shows, turned upwards."""
    parts = []
    for tick in nice_ticks(y.low, y.high):
        parts.append(draw_line(left, y.at(tick), right, y.at(tick), "grid"))
        parts.append(draw_text(left - 8, y.at(tick) + 4, f"{tick:g}", "end", "value"))
    middle = (y.start + y.end) / 2
    turned = f' transform="rotate(-90 14 {middle:g})"'
    return "".join([*parts, draw_text(14, middle, words, "middle", "value", extra=turned)])
