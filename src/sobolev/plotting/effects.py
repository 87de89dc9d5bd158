"""The picture of a partial effect: how the response moves with one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array
from sobolev.plotting.partial_effects import MAX_POINTS, PartialEffect, partial_effect, rug_values
from sobolev.plotting.style import (
    CYCLE,
    INK,
    SELECTED_AREA,
    clean,
    cycle,
    legend,
    make_axes,
    shown_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState


# With more values than this, the names of categories are slanted.
MAX_LEVEL = 5


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

    There is a line for each class, or for each response with a band that holds 80 % of the rows: a
    wide band means that the effect depends on other features. The ticks below are values in the
    data.

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
    ax = make_axes(ax, height=4.2)
    draw_effect(ax, effect)
    band = " and middle 80 %" if len(effect.labels) == 1 else ""
    clean(ax, f"partial effect: mean{band} of rows")
    return ax


def draw_effect(ax: Axes, effect: PartialEffect) -> None:
    """Draw a computed effect into axes, without a title."""
    discrete = bool(effect.categories) or np.unique(effect.values).size <= MAX_POINTS
    ax.axhline(0, color=INK, linewidth=0.8, zorder=1)
    _curves(ax, effect, discrete)
    if discrete:
        _shares(ax, effect)
    else:
        _rug(ax, effect.values)
    ax.set_xlabel(shown_name(effect.feature))
    ax.set_ylabel(
        "witness of the class\n(0: as likely as in all rows)"
        if effect.is_classes
        else "shift of the response\n(in standard deviations)"
    )
    if len(effect.labels) > 1:
        legend(ax, title="class" if effect.is_classes else "response")
    clean(ax)


def _curves(ax: Axes, effect: PartialEffect, discrete: bool) -> None:
    alone = len(effect.labels) == 1
    dashes = ("-", "--", ":")
    for k, color in enumerate(cycle(len(effect.labels))):
        label = shown_name(effect.labels[k], 24)
        ends = (effect.lower[k], effect.upper[k])
        style: dict[str, Any] = {"linewidth": 2.2, "linestyle": dashes[k // len(CYCLE) % 3]}
        if discrete:
            style = {"marker": "o", "markersize": 8, "linewidth": 0.8, "linestyle": ":"}
        if alone and discrete:
            ax.vlines(effect.grid, *ends, color=SELECTED_AREA, linewidth=9, zorder=0)
        elif alone:
            ax.fill_between(effect.grid, *ends, color=SELECTED_AREA, linewidth=0, zorder=0)
        ax.plot(effect.grid, effect.means[k], color=color, label=label, zorder=3, **style)


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


def _shares(ax: Axes, effect: PartialEffect) -> None:
    """A tick for each value, with its share of the rows."""
    counts = np.array([np.mean(effect.values == value) for value in effect.grid])
    unit = "% of rows" if counts.size <= 3 else "%"
    names = [shown_name(name, 14) for name in effect.categories] or [f"{v:g}" for v in effect.grid]
    shares = [f"{100 * count:.0f} {unit}" for count in counts]
    if len(names) > MAX_LEVEL:  # no room side by side
        both = [f"{name} · {share}" for name, share in zip(names, shares, strict=True)]
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "fontsize": 8}
        ax.set_xticks(effect.grid, both, **slant)  # type: ignore[arg-type]
    else:
        both = [f"{name}\n{share}" for name, share in zip(names, shares, strict=True)]
        ax.set_xticks(effect.grid, both)
    room = 0.25 * np.ptp(effect.grid)
    ax.set_xlim(effect.grid[0] - room, effect.grid[-1] + room)
