"""The drawing of a test: what chance gives, and what was observed.

It shows what :func:`~sobolev.plotting.plot_null` shows, in deviations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from sobolev._typing import Array
from sobolev.report.drawings import (
    Drawing,
    Scale,
    draw_bottom,
    draw_line,
    draw_text,
    place_points,
    short,
)

if TYPE_CHECKING:
    from sobolev.inference.hrt import HRTResult

WIDTH, HEIGHT, EDGE, BOTTOM = 420, 190, 14, 46
# The null reaches so many deviations; an observed statistic beyond the last is drawn there.
REACH, FARTHEST = 4.0, 60.0


def draw_null(test: HRTResult, limits: tuple[float, float]) -> Drawing:
    """What chance gives, as a normal curve, and what was observed, in deviations from its mean.

    Parameters
    ----------
    test : HRTResult
    limits : (low, high)
        Of the horizontal axis, the same for all panels.

    Returns
    -------
    Drawing
    """
    right, base = WIDTH - EDGE, HEIGHT - BOTTOM
    x, y = Scale(*limits, EDGE, right), Scale(0.0, 1.0, base, 74)
    said = "p < 1e-20" if test.pvalue < 1e-20 else f"p = {test.pvalue:.2g}"
    parts = [
        draw_text(EDGE, 16, short(str(test.feature)), "start", "title"),
        draw_text(right, 16, said, "end"),
    ]
    if not test.null_deviation > 0:
        words = "the statistic does not move with this feature"
        return Drawing(
            "".join([*parts, draw_text(WIDTH / 2, 96, words, "middle", "value")]),
            WIDTH,
            HEIGHT,
        )
    z = _deviations(test)
    place = float(np.clip(z, *limits))
    grid = np.linspace(-REACH, REACH, 81)
    parts.append(_hill(grid, x, y, "hill"))
    if z < REACH:
        parts.append(_hill(np.linspace(max(place, -REACH), REACH, 61), x, y, "tail"))
    parts.append(draw_line(EDGE, base, right, base, "zero"))
    parts.append(draw_line(x.at(place), 34, x.at(place), base, "observed"))
    at_right = x.at(place) < WIDTH / 2
    aside = x.at(place) + (7 if at_right else -7)
    arrow = "" if limits[0] <= z <= limits[1] else " →" if z > 0 else " ←"
    parts.append(
        draw_text(aside, 44, f"observed: {z:.1f}{arrow}", "start" if at_right else "end", "seen")
    )
    parts.append(_chance(x.at(0.0), x.at(place)))
    parts.append(draw_bottom(x, base, "standard deviations from the mean of chance", HEIGHT))
    return Drawing("".join(parts), WIDTH, HEIGHT)


def null_limits(tests: Iterable[HRTResult]) -> tuple[float, float]:
    """A horizontal axis that holds the null and what was observed, with a little room."""
    found = [_deviations(test) for test in tests if test.null_deviation > 0]
    low, high = min([-REACH, *found]), max([REACH, *found])
    low, high = max(low, -FARTHEST), min(high, FARTHEST)
    room = 0.04 * (high - low)
    return low - room, high + room


def _deviations(test: HRTResult) -> float:
    return (test.statistic - test.null_mean) / test.null_deviation


def _chance(middle: float, line: float) -> str:
    """The name of the hill, above it or beside a line that would cross it."""
    if abs(line - middle) > 36:
        return draw_text(middle, 68, "by chance", "middle", "value")
    aside = (line - 7, "end") if line >= middle else (line + 7, "start")
    return draw_text(aside[0], 68, "by chance", aside[1], "value")


def _hill(grid: Array, x: Scale, y: Scale, kind: str) -> str:
    across, down = x(grid), y(np.exp(-0.5 * grid**2))
    feet = f"{across[0]:.1f},{y.start:.1f} {{}} {across[-1]:.1f},{y.start:.1f}"
    return f'<polygon class="{kind}" points="{feet.format(place_points(across, down))}"/>'
