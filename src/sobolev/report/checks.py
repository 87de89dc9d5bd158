"""Drawings of checks: the model of the columns that tests rest on, and knockoffs.

They show what :func:`~sobolev.plotting.plot_conditional` and
:func:`~sobolev.plotting.plot_knockoffs` show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import kolmogi

from sobolev._typing import Array
from sobolev.report.drawings import (
    Drawing,
    Scale,
    draw_bottom,
    draw_line,
    draw_side,
    draw_text,
    place_points,
    short,
)

if TYPE_CHECKING:
    from sobolev.conditionals.diagnostics import ConditionalDiagnostics
    from sobolev.knockoffs.diagnostics import KnockoffDiagnostics

WIDTH, HEIGHT = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 34, 46
# The left edge of rows of dots, whose labels are long, and the place of their counts.
ROWS_LEFT, COUNT = 128, 50
# Colours of the worst failing columns, in order; the others share one.
NAMED = ("c1", "c0", "c2", "c3", "c4", "c6")
MORE = "more"
# A share of rows with wrong values that weighs as much as an effect that counts.
OFF_UNIT = 0.1
TINY = 1e-300
LEGEND_ROW = 18
# Passing columns with a curve of their own, its steps, and the most values that are counted.
MAX_CURVES, STEPS, MAX_COUNTED = 60, 40, 2_000_000
CONDITIONAL_ROWS = {
    "uniform": ("shape or width",),
    "location": ("place depends", "on other columns"),
    "spread": ("width depends", "on other columns"),
    "correlation": ("draws change", "correlations"),
}
KNOCKOFF_ROWS = {
    "values": ("values that the", "column never has"),
    "mean": ("mean",),
    "variance": ("variance",),
    "correlation": ("correlation with", "other columns"),
}


def draw_conditional(diagnostics: ConditionalDiagnostics) -> tuple[Drawing, Drawing]:
    """Columns that the model of the columns fits, and columns that it does not.

    Parameters
    ----------
    diagnostics : ConditionalDiagnostics

    Returns
    -------
    tuple of Drawing
        The checks, a dot for each column; and the law of each column against the one expected.
    """
    from sobolev.conditionals.diagnostics import LEVEL, THRESHOLDS

    position = {int(j): i for i, j in enumerate(diagnostics.columns)}
    kinds = _kinds([position[j] for j in diagnostics.failing])
    scores = misfit_scores(
        diagnostics.effects, diagnostics.qvalues, list(THRESHOLDS.values()), LEVEL
    )
    strips = _strips(list(CONDITIONAL_ROWS.values()), scores, diagnostics.names, kinds)
    return strips, _curves(diagnostics, kinds)


def draw_knockoffs(diagnostics: KnockoffDiagnostics) -> tuple[Drawing, Drawing]:
    """How far knockoffs are from their columns, and how much they look like them.

    Parameters
    ----------
    diagnostics : KnockoffDiagnostics

    Returns
    -------
    tuple of Drawing
        The checks, a dot for each column; and the correlation of each column with its knockoff.
    """
    from sobolev.knockoffs.diagnostics import LEVEL, THRESHOLDS

    kinds = _kinds(diagnostics.failing)
    moments = misfit_scores(
        diagnostics.effects, diagnostics.qvalues, list(THRESHOLDS.values()), LEVEL
    )
    off = diagnostics.off_values
    values = np.where(
        np.isfinite(moments[:, 0]), np.where(off > 0, 1 + off / OFF_UNIT, 0.0), np.nan
    )
    scores = np.column_stack([values, moments])
    strips = _strips(list(KNOCKOFF_ROWS.values()), scores, diagnostics.names, kinds)
    return strips, _likeness(diagnostics.correlations, kinds)


def misfit_scores(effects: Array, q: Array, thresholds: Sequence[float], level: float) -> Array:
    """How far each check goes towards failure, which begins at one.

    The smaller of two ratios: of the effect to the least that counts, and of the logarithms of the
    adjusted p-value and its level. So a check fails if and only if its score is at least one.
    """
    clear = np.log(np.maximum(q, TINY)) / np.log(level)
    return np.asarray(np.minimum(np.abs(effects) / np.asarray(thresholds), clear))


def verdict(failing: int, checked: int) -> str:
    """How many columns fail, in words."""
    if not checked:
        return "No column varies: nothing to check"
    if not failing:
        return f"All {checked:,} checked columns pass" if checked > 1 else "The column passes"
    return f"{failing:,} of {checked:,} checked columns {'fails' if failing == 1 else 'fail'}"


def _strips(
    rows: Sequence[tuple[str, ...]], scores: Array, names: Sequence[str], kinds: Mapping[int, str]
) -> Drawing:
    """A row of dots for each check, the part of failure tinted, and the names of the worst."""
    legend = _legend(names, kinds)
    below = LEGEND_ROW * ((len(legend) + 1) // 2) + 6 if legend else 0
    base, right = HEIGHT - BOTTOM - below, WIDTH - RIGHT - COUNT
    top = 1.06 * max(2.0, float(np.nanmax(scores, initial=0.0)))
    x, height = Scale(0.0, top, ROWS_LEFT, right), (base - TOP) / len(rows)
    checked = int(np.isfinite(scores).any(axis=1).sum())
    parts = [draw_text(RIGHT, 16, verdict(len(kinds), checked), "start", "title")]
    for k, words in enumerate(rows):
        parts.append(_strip(words, scores[:, k], kinds, x, TOP + height * (k + 0.5), height - 5))
    parts.append(draw_line(ROWS_LEFT, TOP, ROWS_LEFT, base, "zero"))
    parts.append(draw_line(x.at(1.0), TOP, x.at(1.0), base, "least"))
    parts.append(draw_bottom(x, base, "misfit: from 1 on it fails", base + BOTTOM))
    for k, (name, kind) in enumerate(legend):
        across, down = RIGHT + 5 + (k % 2) * 200, base + BOTTOM + 16 + LEGEND_ROW * (k // 2)
        parts.append(f'<circle class="{kind}" cx="{across}" cy="{down - 4:g}" r="4.5"/>')
        parts.append(draw_text(across + 11, down, name, "start", "value"))
    return Drawing("".join(parts), WIDTH, HEIGHT)


def _strip(
    words: Sequence[str],
    scores: Array,
    kinds: Mapping[int, str],
    x: Scale,
    middle: float,
    height: float,
) -> str:
    """The dots of one check; their heights are spread evenly, so that they hide each other less."""
    first, top, bad = x.at(1.0), middle - height / 2, scores >= 1
    parts = [
        f'<rect class="danger" x="{first:.1f}" y="{top:.1f}" '
        f'width="{x.end - first:.1f}" height="{height:.1f}"/>'
    ]
    spread = np.modf(np.arange(scores.size) * 0.618)[0] - 0.5
    across, down = x(scores), np.asarray(middle + (height - 9) * spread)
    fine = np.isfinite(scores) & ~bad
    parts.append(_dots(across[fine], down[fine], "pass"))
    for kind, members in _by_kind(kinds):
        here = members[bad[members]]
        parts.append(_dots(across[here], down[here], f"fail {kind}"))
    for k, line in enumerate(words):
        row_down = middle + 4 + 13 * (k - (len(words) - 1) / 2)
        parts.append(draw_text(ROWS_LEFT - 9, row_down, line, "end", "value"))
    count = int(bad.sum())
    said = f"{count:,} {'fails' if count == 1 else 'fail'}" if count else "all pass"
    parts.append(draw_text(x.end + 7, middle + 4, said, "start", "name" if count else "value"))
    return "".join(parts)


def _curves(diagnostics: ConditionalDiagnostics, kinds: Mapping[int, str]) -> Drawing:
    """Share of rows below u, less u: flat where the law of a column is right."""
    n, m = diagnostics.pit.shape
    judged = np.isfinite(diagnostics.pit[0])
    fine = [i for i in np.flatnonzero(judged) if i not in kinds]
    most = max(1, min(MAX_CURVES, MAX_COUNTED // n, len(fine)))
    shown = (
        [fine[k] for k in np.unique(np.linspace(0, len(fine) - 1, most).astype(int))]
        if fine
        else []
    )
    named = list(kinds)[: len(NAMED)]
    excess = {int(i): _excess(diagnostics.pit[:, i]) for i in [*shown, *named]}
    half = band(n, m)
    top = 1.12 * max([half, *(float(np.abs(curve).max()) for curve in excess.values())])
    right, base = WIDTH - RIGHT, HEIGHT - BOTTOM
    x, y = Scale(0.0, 1.0, LEFT, right), Scale(-top, top, base, TOP)
    across = x(np.linspace(0, 1, STEPS + 1))
    edge = f'x="{LEFT}" y="{y.at(half):.1f}" width="{right - LEFT}"'
    parts = [
        draw_text(RIGHT, 16, "Calibration: near zero is right", "start", "title"),
        f'<rect class="band99" {edge} height="{y.at(-half) - y.at(half):.1f}"/>',
        draw_side(y, LEFT, right, "share of rows below, less the level"),
        draw_line(LEFT, y.at(0.0), right, y.at(0.0), "zero"),
        "".join(_curve(across, y(excess[int(i)]), "law") for i in shown),
    ]
    for i in reversed(named):
        parts.append(_curve(across, y(excess[i]), f"curve {kinds[i]}"))
    parts.append(draw_text(LEFT + 7, y.at(-half) - 7, "99 % band of chance", "start", "value"))
    parts.append(draw_bottom(x, base, "level: probability of a smaller value", HEIGHT))
    return Drawing("".join(parts), WIDTH, HEIGHT)


def band(n: int, m: int) -> float:
    """Half the width that holds the curves of m right laws of n rows in 99 % of data sets.

    The limit law of Kolmogorov, with the correction of Stephens (1970) for few rows.
    """
    root = np.sqrt(n)
    return float(kolmogi(0.01 / max(m, 1)) / (root + 0.12 + 0.11 / root))


def _excess(transforms: Array) -> Array:
    """The empirical distribution function at equal steps, less the uniform one."""
    steps = np.clip((transforms * STEPS).astype(int), 0, STEPS - 1)
    below = np.concatenate([[0], np.bincount(steps, minlength=STEPS).cumsum()])
    return np.asarray(below / transforms.size - np.linspace(0, 1, STEPS + 1))


def _likeness(correlations: Array, kinds: Mapping[int, str]) -> Drawing:
    """Correlations with the own knockoff, in ascending order, and their mean."""
    order = np.argsort(correlations)[: int(np.isfinite(correlations).sum())]
    found = correlations[order]
    right, base = WIDTH - RIGHT, HEIGHT - BOTTOM / 2
    x = Scale(0.5, order.size + 0.5, LEFT, right)
    y = Scale(min(-0.1, 1.15 * float(found.min(initial=0.0))), 1.0, base, TOP)
    across, down = x(np.arange(1.0, order.size + 1)), y(found)
    fine = ~np.isin(order, list(kinds))
    parts = [draw_text(RIGHT, 16, "Likeness of columns and knockoffs", "start", "title")]
    parts.append(draw_side(y, LEFT, right, "correlation with own knockoff"))
    parts.append(draw_line(LEFT, y.at(0.0), right, y.at(0.0), "zero"))
    parts.append(_dots(across[fine], down[fine], "pass large"))
    for kind, members in _by_kind(kinds):
        here = np.isin(order, members)
        parts.append(_dots(across[here], down[here], f"fail {kind}"))
    if order.size:
        mean = float(found.mean())
        parts.append(draw_line(LEFT, y.at(mean), right, y.at(mean), "bound"))
        row = y.at(mean) + (-7 if mean < 0.9 else 16)
        parts.append(draw_text(LEFT + 6, row, f"mean {mean:.2f}", "start", "name halo"))
    parts.append(draw_text((LEFT + right) / 2, base + 18, "columns, in order", "middle", "value"))
    return Drawing("".join(parts), WIDTH, HEIGHT)


def _kinds(failing: Sequence[int]) -> dict[int, str]:
    """A colour of its own for each of the worst, one for all others."""
    return {j: NAMED[k] if k < len(NAMED) else MORE for k, j in enumerate(failing)}


def _by_kind(kinds: Mapping[int, str]) -> list[tuple[str, Array]]:
    """Columns of each colour, the worst last, so that they are on top."""
    found = [
        (kind, [j for j, own in kinds.items() if own == kind]) for kind in (MORE, *NAMED[::-1])
    ]
    return [(kind, np.array(members)) for kind, members in found if members]


def _legend(names: Sequence[str], kinds: Mapping[int, str]) -> list[tuple[str, str]]:
    listed = [(short(names[j]), kind) for j, kind in kinds.items() if kind != MORE]
    rest = len(kinds) - len(listed)
    return [*listed, (f"and {rest:,} more", MORE)] if rest else listed


def _dots(across: Array, down: Array, kind: str) -> str:
    """Dots as one path; of those at the same place only one."""
    if not across.size:
        return ""
    places = np.unique(across.round().astype(int) * HEIGHT + down.round().astype(int))
    path = "".join(f"M{place // HEIGHT} {place % HEIGHT}h0" for place in places.tolist())
    return f'<path class="{kind}" d="{path}"/>'


def _curve(across: Array, down: Array, kind: str) -> str:
    return f'<polyline class="{kind}" points="{place_points(across, down)}"/>'
