"""The picture of a partial effect: how the response moves with one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._numbers import shown_share
from sobolev._typing import Array
from sobolev.plotting.partial_effects import MAX_POINTS, PartialEffect, partial_effect, rug_values
from sobolev.plotting.style import (
    GRID,
    INK,
    SELECTED_AREA,
    clean,
    cycle,
    legend,
    make_axes,
    row_font,
    shown_name,
    shown_names,
    size_inches,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState

# Width of a letter, in inches.
LETTER = 0.085
# What the axis of the effect shows, and its unit.
NUMBERS = ("shift of the response", "standard deviations")
CLASSES = ("how much more likely a class is", "0: as in all rows, 1: twice")


def plot_effect(
    selector: Any,
    X: Any,
    y: Any,
    feature: Any,
    *,
    n_grid: int = 25,
    max_rows: int = 200,
    random_state: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """How the response moves with one feature: the effect of :func:`partial_effect`.

    There is a line for each class, or for each response with a band that holds 80 % of the rows,
    each moved to the same mean: a wide band means that the effect depends on other features. The
    ticks below are values in the data.

    Parameters
    ----------
    selector, X, y, feature, n_grid, max_rows, random_state
        See :func:`partial_effect`.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.plotting import plot_effect
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> sic = ConvexSIC(lam=0.01).fit(X, X[:, 1])
    >>> plot_effect(sic, X, X[:, 1], feature=1).get_xlabel()
    'x1'
    """
    effect = partial_effect(
        selector, X, y, feature, n_grid=n_grid, max_rows=max_rows, random_state=random_state
    )
    ax = make_axes(ax, height=max(4.2, 1.2 + 0.2 * len(effect.categories)))
    draw_effect(ax, effect)
    band = " and middle 80 %" if len(effect.labels) == 1 else ""
    clean(ax, f"partial effect: mean{band} of rows")
    return ax


def draw_effect(ax: Axes, effect: PartialEffect, *, named: bool = True) -> None:
    """Draw a computed effect into axes, without a title.

    Categories whose names do not fit side by side have a row each. With ``named=False`` there is
    neither the name of the feature nor a legend.
    """
    discrete = bool(effect.categories) or np.unique(effect.values).size <= MAX_POINTS
    listed = discrete and not fits_across(effect, size_inches(ax)[0])
    zero = ax.axvline if listed else ax.axhline
    zero(0, color=INK, linewidth=0.8, zorder=1)
    _curves(ax, effect, discrete, listed)
    if discrete:
        _shares(ax, effect, listed)
    else:
        _rug(ax, effect.values)
    name, said = shown_name(effect.feature), CLASSES if effect.is_classes else NUMBERS
    if listed:
        ax.set_xlabel(" ".join(said) if named else said[1])
        ax.set_ylabel(name if named else "")
    else:
        ax.set_xlabel(name if named else "")
        ax.set_ylabel("\n".join(said) if named else said[1])
    if named and len(effect.labels) > 1:
        legend(ax, title="class" if effect.is_classes else "response")
    clean(ax)


def fits_across(effect: PartialEffect, width: float) -> bool:
    """Whether the names of the values fit side by side into a width in inches."""
    names = _value_names(effect)
    widest = max([*map(len, names), len("100 %")])
    return len(names) * (widest + 1) * LETTER <= width


def _value_names(effect: PartialEffect) -> list[str]:
    """Names of the values, each different, or the values themselves."""
    if effect.categories:
        return shown_names(effect.categories, len(effect.categories), 20)
    return [f"{value:g}" for value in effect.grid]


def _curves(ax: Axes, effect: PartialEffect, discrete: bool, listed: bool) -> None:
    alone = len(effect.labels) == 1
    for k, color in enumerate(cycle(len(effect.labels))):
        label = shown_name(effect.labels[k], 24)
        ends = (effect.lower[k], effect.upper[k])
        style: dict[str, Any] = {"linewidth": 2.2}
        if discrete:
            style = {"marker": "o", "markersize": 6, "linewidth": 0.8, "linestyle": ":"}
        if alone and discrete:
            bars = ax.hlines if listed else ax.vlines
            bars(effect.grid, *ends, color=SELECTED_AREA, linewidth=9, zorder=0)
        elif alone:
            ax.fill_between(effect.grid, *ends, color=SELECTED_AREA, linewidth=0, zorder=0)
        place = (effect.grid, effect.means[k])
        if listed:
            place, style["linestyle"] = place[::-1], ""
        ax.plot(*place, color=color, label=label, zorder=3, **style)


def _rug(ax: Axes, values: Array) -> None:
    """Ticks at the bottom."""
    shown = rug_values(values)
    ax.plot(
        *(shown, np.zeros(shown.size)),
        "|",
        color=INK,
        alpha=0.4,
        markersize=9,
        markeredgewidth=0.7,
        transform=ax.get_xaxis_transform(),
        label="_rug",
        zorder=1,
    )


def _shares(ax: Axes, effect: PartialEffect, listed: bool) -> None:
    """A tick for each value, with its share of the rows."""
    counts = np.array([np.mean(effect.values == value) for value in effect.grid])
    names, shares = _value_names(effect), [shown_share(count) for count in counts]
    if listed:
        both = [f"{name} · {share}" for name, share in zip(names, shares, strict=True)]
        ax.set_yticks(effect.grid, both, fontsize=row_font(ax, len(names)))
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=GRID, linewidth=0.8)
        ax.set_axisbelow(True)
        step = np.diff(effect.grid).min() if effect.grid.size > 1 else 1.0
        ax.set_ylim(effect.grid[-1] + 0.6 * step, effect.grid[0] - 0.6 * step)
        return
    both = [f"{name}\n{share}" for name, share in zip(names, shares, strict=True)]
    ax.set_xticks(effect.grid, both)
    room = 0.25 * np.ptp(effect.grid)
    ax.set_xlim(effect.grid[0] - room, effect.grid[-1] + room)
