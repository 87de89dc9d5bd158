"""What the pictures of model checks share: a row of dots for each check, and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array
from sobolev.plotting.style import ACCENT, ACCENT_AREA, INK, OTHER, clean, cycle, legend, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Failing columns with a colour and a name of their own; the others share a colour.
NAMED = 6
MORE = "#E8B08A"
TINY = 1e-300
# Places of dots along and across a row; of dots at the same place only one is drawn.
PLACES, HEIGHTS = 150, 12


def misfit_scores(effects: Array, q: Array, thresholds: Sequence[float], level: float) -> Array:
    """How far each check goes towards failure, which begins at one.

    The smaller of two ratios: the effect over the smallest effect that counts, and the logarithm of
    the adjusted p-value over that of its level. So a check fails if and only if its score is at
    least one.
    """
    clear = np.log(np.maximum(q, TINY)) / np.log(level)
    return np.asarray(np.minimum(np.abs(effects) / np.asarray(thresholds), clear))


def verdict(failing: int, total: int) -> str:
    """How many columns fail, in words."""
    return f"{failing or 'none'} of {total} columns {verb(failing)}"


def verb(count: int) -> str:
    """The verb for this number of columns."""
    return "fail" if count > 1 else "fails"


def failing_colors(failing: Sequence[int]) -> dict[int, str]:
    """A colour of its own for each of the worst columns, one for all others."""
    colors = dict(zip(failing[:NAMED], cycle(len(failing[:NAMED])), strict=True))
    colors.update(dict.fromkeys(failing[NAMED:], MORE))
    return colors


def layers() -> list[str]:
    """Colours from the back to the front: columns that pass, others that fail, the worst."""
    return [OTHER, MORE, *cycle(NAMED)[::-1]]


def dot_size(color: str) -> dict[str, Any]:
    """The size of a dot: columns that fail are larger."""
    return {"markersize": 3.5 if color == OTHER else 5.5, "markeredgewidth": 0}


def draw_checks(
    ax: Axes, labels: Sequence[str], scores: Array, failing: Sequence[int]
) -> dict[int, str]:
    """A row of dots for each check; dots in the tinted part fail and are in colour.

    Parameters
    ----------
    ax : matplotlib Axes
    labels : sequence of str
        What each check looks at.
    scores : array of shape (n_columns, n_checks)
        See :func:`misfit_scores`; not drawn where NaN.
    failing : sequence of int
        Positions of the columns that fail, the worst first.

    Returns
    -------
    dict
        Colours of the columns that fail.
    """
    colors = failing_colors(failing)
    right = 1.06 * max(2.0, float(np.nanmax(scores, initial=0.0)))
    # Heights are fixed and spread evenly, so that dots hide each other less.
    height = 0.6 * ((np.arange(len(scores)) * 0.618) % 1 - 0.5)
    for row, score in enumerate(scores.T):
        fails = score >= 1
        ax.fill_between([1, right], row - 0.42, row + 0.42, color=ACCENT_AREA, linewidth=0)
        shades = np.array([colors.get(i, OTHER) if fails[i] else OTHER for i in range(score.size)])
        for color in layers():
            here = np.isfinite(score) & (shades == color)
            place = _places(score[here], height[here], right, row)
            ax.plot(*place, "o", color=color, **dot_size(color))
        count = int(fails.sum())
        said = f"{count} {verb(count)}" if count else "all pass"
        side = ax.get_yaxis_transform()
        ax.text(1.02, row, said, transform=side, va="center", fontsize=8, color=INK)
    ax.axvline(1, color=ACCENT, linewidth=1.4)
    ax.set_yticks(range(len(labels)), labels, fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(-0.02 * right, right), ylim=(len(labels) - 0.5, -0.5))
    ax.set_xlabel("misfit: a check fails from 1 on")
    clean(ax)
    return colors


def _places(scores: Array, heights: Array, right: float, row: int) -> tuple[Array, Array]:
    """Where dots stand, each place once."""
    step = np.array([right / PLACES, 1 / HEIGHTS])
    exact = np.column_stack([scores, heights])
    _, first = np.unique((exact / step).round().astype(int), axis=0, return_index=True)
    return exact[first, 0], row + exact[first, 1]


def name_failing(ax: Axes, names: Sequence[str], colors: Mapping[int, str], **options: Any) -> None:
    """Names of the worst columns, and how many more fail; beside the axes by default."""
    from matplotlib.lines import Line2D

    if not colors:
        return
    named = list(colors.items())[:NAMED]
    labels = [shown_name(names[i]) for i, _ in named]
    shades = [color for _, color in named]
    if len(colors) > len(named):
        labels.append(f"and {len(colors) - len(named)} more")
        shades.append(MORE)
    dots = {"marker": "o", "linestyle": "", "markersize": 5}
    lines = [Line2D([], [], color=shade, **dots) for shade in shades]  # type: ignore[arg-type]
    legend(ax, lines, labels, handletextpad=0.2, **options)


def diagnostics_of(given: Any) -> Any:
    """The diagnostics that are given, or those of a fitted selector."""
    if not hasattr(given, "fit"):
        return given
    if given.diagnostics_ is None:
        raise ValueError("there are no diagnostics to draw; fit with diagnose=True.")
    return given.diagnostics_


def two_panels(ax: Axes | None, width: float) -> tuple[Axes, Axes | None]:
    """The given axes alone, or two of a new figure, the first ``width`` times as wide."""
    if ax is not None:
        return ax, None
    import matplotlib.pyplot as plt

    ratio = {"width_ratios": [width, 1]}
    _, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained", gridspec_kw=ratio)
    return axes[0], axes[1]
