"""Pictures of importances: bars of one fit, lines along lam."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._parameters import check_count
from sobolev._typing import Array, Index, Mask
from sobolev.plotting.style import (
    ACCENT,
    INK,
    OTHER,
    SELECTED,
    check_mask,
    check_vector,
    clean,
    count_of,
    cycle,
    fitting_rows,
    legend,
    make_axes,
    row_font,
    shown_name,
    shown_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev.convex.path import SICPath


def plot_importances(
    importances: Any,
    feature_names: Sequence[str] | None = None,
    *,
    support: Mask | None = None,
    threshold: float | None = None,
    max_features: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Bars of the largest importances, the selected ones in colour.

    Parameters
    ----------
    importances : array of shape (d,), or fitted selector or estimator
        The importances, not drawn where NaN. With a selector its names, groups of columns and
        selection are shown, unless others are given.
    feature_names : sequence of str, optional
        Names of the columns.
    support : array of bool, optional
        The selected features.
    threshold : float, optional
        A line at the selection threshold.
    max_features : int, default=30
        Largest number of bars; the picture says what is left out.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sobolev.plotting import plot_importances
    >>> ax = plot_importances([0.1, 0.7, 0.2], ["a", "b", "c"], support=[False, True, False])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['b', 'c', 'a']
    """
    check_count("max_features", max_features)
    if hasattr(importances, "summary"):
        from sobolev.summary import without_covariates

        table = without_covariates(importances.summary())
        importances = table["importance"]
        feature_names = table["feature"] if feature_names is None else feature_names
        support = table["selected"] if support is None else support
    elif hasattr(importances, "fit"):
        from sobolev.critic import as_critic
        from sobolev.validation import feature_names as names_of

        feature_names = names_of(importances) if feature_names is None else feature_names
        importances = as_critic(importances).feature_importances_
    values = check_vector("importances", importances)
    d = values.size
    names = shown_names(feature_names, d)
    chosen = None if support is None else check_mask("support", support, d)
    ranked = np.argsort(-values, kind="stable")[: int(np.isfinite(values).sum())]
    # A small picture has room for fewer names.
    room = max_features if ax is None else min(max_features, fitting_rows(ax))
    order = ranked[:room]
    ax = make_axes(ax, height=1.1 + 0.24 * order.size)
    place = np.arange(order.size)
    colors = SELECTED if chosen is None else np.where(chosen[order], SELECTED, OTHER).tolist()
    ax.barh(place, values[order], color=colors, height=0.72)
    ax.set_yticks(place, [names[j] for j in order], fontsize=row_font(ax, order.size))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(order.size - 0.4, -0.6)
    is_share = bool(abs(np.nansum(values) - 1) < 1e-6)
    label = "importance η (share of the dependence)" if is_share else "importance"
    ax.set_xlabel(label + _rest(values, order, chosen, is_share))
    if threshold is not None:
        ax.axvline(threshold, color=ACCENT, linestyle="--", linewidth=1.2)
        at_bottom = ax.get_xaxis_transform()
        ax.text(
            threshold, 0.01, f" {threshold:.3g}", color=ACCENT, va="bottom", transform=at_bottom
        )
    clean(ax, _title(d, order, chosen))
    return ax


def plot_path(path: SICPath, *, highlight: int = 7, ax: Axes | None = None) -> Axes:
    """Importances along lam, the largest in colour, and the lam with the best held-out risk.

    Parameters
    ----------
    path : SICPath
        Result of :func:`sobolev.sic_path`.
    highlight : int, default=7
        Number of features that are named.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.collections import LineCollection

    check_count("highlight", highlight)
    ax = make_axes(ax, height=4.2)
    order = np.argsort(-path.importances.max(axis=0), kind="stable")
    others = [np.column_stack([path.lams, path.importances[:, j]]) for j in order[highlight:]]
    width = float(np.clip(8 / np.sqrt(max(len(others), 1)), 0.4, 0.9))
    ax.add_collection(LineCollection(others, colors=OTHER, linewidths=width, zorder=1))
    colors = dict(zip(order[:highlight].tolist(), cycle(highlight), strict=False))
    # The legend in the order in which the lines end.
    for j in sorted(colors, key=lambda j: -path.importances[-1, j]):
        style = {"marker": "o" if path.lams.size == 1 else "", "linewidth": 1.8}
        label = shown_name(path.feature_names[j], 24)
        ax.plot(path.lams, path.importances[:, j], color=colors[j], label=label, **style)  # type: ignore[arg-type]
    best = path.lams[path.risks.mean(axis=0).argmax()]
    ax.axvline(best, color=INK, linestyle=":", linewidth=1.2, zorder=1.5)
    at_top = ax.get_xaxis_transform()
    ax.text(best, 1.01, "best held-out risk", transform=at_top, ha="center", fontsize=8, color=INK)
    ax.set_xscale("log")
    if not ax.xaxis_inverted():
        ax.invert_xaxis()
    ax.set_ylim(bottom=0)
    ax.set_xlabel("λ (sparse → dense)")
    ax.set_ylabel("importance η (share of the dependence)")
    title = f"{len(colors)} largest of {count_of(order.size, 'feature')}" if others else None
    legend(ax, title=title)
    clean(ax)
    return ax


def _title(d: int, order: Index, chosen: Mask | None) -> str:
    shown = f"{order.size} largest of {d:,} features" if order.size < d else count_of(d, "feature")
    return shown if chosen is None else f"{int(chosen.sum()):,} selected · {shown}"


def _rest(values: Array, order: Index, chosen: Mask | None, is_share: bool) -> str:
    """What is said about the features without a bar."""
    hidden = values.size - order.size
    if not hidden:
        return ""
    said = f"\nnot shown: {count_of(hidden, 'feature')}"
    if is_share:
        said += f", together {100 * max(0.0, 1 - float(values[order].sum())):.1f} %"
    lost = 0 if chosen is None else int(chosen.sum() - chosen[order].sum())
    return f"{said}, {lost:,} selected" if lost else said
