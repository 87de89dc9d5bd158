"""Box plots of true positive and false discovery rates, for several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sobolev._parameters import check_fraction
from sobolev._typing import Array
from sobolev.plotting.style import BLANK, INK, clean, cycle, shown_name, size_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cells = dict[tuple[str, str], Array]
TITLES = ("true positive rate", "false discovery\nproportion")


def plot_rates(rates: Any, *, fdr: float | None = 0.1, axes: Any = None) -> NDArray[Any]:
    """Box plots of the rates over repetitions: true positives above, false discoveries below.

    A box spans the quartiles, its line is the median, the dots are the repetitions, the diamond is
    their mean. The false discovery rate is a mean: a method keeps its promise if the diamond of
    the lower panel is not above the dashed line.

    Parameters
    ----------
    rates : mapping or DataFrame
        From the name of a method to a pair of arrays: true positive rates and false discovery
        proportions of the repetitions. Or a DataFrame with the columns ``method``, ``tpr``, ``fdp``
        and perhaps ``group``, such as the number of rows: one column of panels for each.
    fdr : float or None, default=0.1
        The nominal level; None draws no line.
    axes : array of matplotlib Axes, shape (2, n_groups), optional
        Where to draw; two axes if there is one group.

    Returns
    -------
    array of matplotlib Axes, shape (2, n_groups)

    Examples
    --------
    >>> from reproduction.plot_rates import plot_rates
    >>> axes = plot_rates({"HRT": ([0.8, 1.0], [0.0, 0.1]), "lasso": ([0.5, 0.6], [0.3, 0.2])})
    >>> axes.shape
    (2, 1)
    """
    if fdr is not None:
        check_fraction("fdr", fdr, low=0.0, high=1.0)
    tpr, fdp, methods, groups = _cells(rates)
    grid = _grid(axes, len(methods), len(groups))
    colors = cycle(len(methods))
    for column, group in enumerate(groups):
        for row, cells in enumerate((tpr, fdp)):
            ax = grid[row, column]
            values = [cells.get((method, group), np.empty(0)) for method in methods]
            _boxes(ax, values, colors)
            top = 1.0 if row == 0 else _top(cells, fdr)
            ax.set_ylim(-0.04 * top, 1.04 * top)
            if row == 1 and fdr is not None:
                ax.axhline(fdr, color=INK, linestyle="--", linewidth=1.2, zorder=2.5)
            _label(ax, methods, row, column)
            if row == 0 and group:
                ax.set_title(shown_name(group), fontsize=11)
            clean(ax)
    _legend(grid[0, -1])
    if fdr is not None:
        side = grid[1, -1].get_yaxis_transform()
        said = f" {100 * fdr:g} %"
        grid[1, -1].text(1, fdr, said, transform=side, va="center", fontsize=8, color=INK)
    return grid


def _cells(rates: Any) -> tuple[Cells, Cells, list[str], list[str]]:
    """Rates of each method and group, methods and groups in order of appearance."""
    if isinstance(rates, Mapping):
        pairs = {str(method): pair for method, pair in rates.items()}
        for method, pair in pairs.items():
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                raise ValueError(f"rates[{method!r}] must be a pair (tpr, fdp).")
        tpr = {(m, ""): _checked(pair[0], m, "tpr") for m, pair in pairs.items()}
        fdp = {(m, ""): _checked(pair[1], m, "fdp") for m, pair in pairs.items()}
        methods, groups = list(pairs), [""]
    else:
        missing = [c for c in ("method", "tpr", "fdp") if c not in getattr(rates, "columns", ())]
        if missing:
            raise ValueError(
                f"rates has no column {missing[0]!r}; pass a mapping from a method to (tpr, fdp) "
                "or a DataFrame with the columns method, tpr and fdp."
            )
        table = rates.assign(method=rates["method"].astype(str))
        table["group"] = table["group"].astype(str) if "group" in table else ""
        methods, groups = list(dict.fromkeys(table["method"])), list(dict.fromkeys(table["group"]))
        parts = dict(iter(table.groupby(["method", "group"], sort=False)))
        tpr = {key: _checked(part["tpr"], key[0], "tpr") for key, part in parts.items()}
        fdp = {key: _checked(part["fdp"], key[0], "fdp") for key, part in parts.items()}
    if not methods:
        raise ValueError("rates is empty; give at least one method.")
    return tpr, fdp, methods, groups


def _checked(values: Any, method: str, name: str) -> Array:
    """Finite rates; NaN is left out."""
    found = np.asarray(values, dtype=float).ravel()
    found = found[~np.isnan(found)]
    if ((found < 0) | (found > 1)).any():
        raise ValueError(f"{name} of {method!r} holds numbers outside of [0, 1]; pass proportions.")
    return found


def _grid(axes: Any, n_methods: int, n_groups: int) -> NDArray[Any]:
    if axes is not None:
        given = np.asarray(axes, dtype=object)
        if given.size != 2 * n_groups:
            raise ValueError(f"axes must hold 2 × {n_groups} axes; got {given.size}.")
        return given.reshape(2, n_groups)
    import matplotlib.pyplot as plt

    width = float(np.clip(1.1 + n_groups * (0.6 + 0.62 * n_methods), 4.5, 16))
    _, made = plt.subplots(
        *(2, n_groups),
        figsize=(width, 5.6),
        layout="constrained",
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    return np.asarray(made)


def _top(cells: Cells, fdr: float | None) -> float:
    """The end of the axis of false discoveries: little room above the largest."""
    largest = max((float(found.max()) for found in cells.values() if found.size), default=0.0)
    return min(1.0, max(largest, 2.0 * (fdr or 0.0), 0.1))


def _legend(ax: Axes) -> None:
    from matplotlib.lines import Line2D

    mean = Line2D([], [], marker="D", linestyle="", markersize=5, color=INK)
    median = Line2D([], [], color=INK, linewidth=2.2)
    ax.legend(
        [mean, median],
        ["mean", "median"],
        frameon=False,
        fontsize=8,
        handlelength=1.0,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )


def _boxes(ax: Axes, values: Sequence[Array], colors: Sequence[str]) -> None:
    for place, (found, color) in enumerate(zip(values, colors, strict=True)):
        if not found.size:
            continue
        drawn = ax.boxplot(
            [found],
            positions=[place],
            widths=0.56,
            patch_artist=True,
            showfliers=False,
            manage_ticks=False,
            medianprops={"color": color, "linewidth": 2.2},
            whiskerprops={"color": color},
            capprops={"color": color},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=(color, 0.22), edgecolor=color)
        # Fixed places, spread evenly, so that equal rates do not hide each other.
        aside = 0.34 * ((np.arange(found.size) * 0.618) % 1 - 0.5)
        size = float(np.clip(300 / found.size, 3, 14))
        ax.scatter(place + aside, found, s=size, color=color, alpha=0.55, linewidths=0, zorder=3)
        ax.scatter(place, found.mean(), s=42, marker="D", color=color, edgecolors="white", zorder=4)


def _label(ax: Axes, methods: Sequence[str], row: int, column: int) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlim(-0.6, len(methods) - 0.4)
    names = [shown_name(method, 24) for method in methods]
    slanted = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
    # Letters are about 0.085 inches wide.
    long = 0.085 * max(map(len, names)) > 0.9 * size_inches(ax)[0] / len(methods)
    ax.set_xticks(range(len(methods)), names, **(slanted if long else {}))  # type: ignore[arg-type]
    ax.tick_params(axis="x", length=0, labelbottom=row == 1)
    ax.grid(axis="y", color=BLANK, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.yaxis.set_major_locator(MaxNLocator(5))
    if column == 0:
        ax.set_ylabel(TITLES[row])
