"""Pictures of a fit. Every function takes ``ax`` and returns it; no global style is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev.convex.path import SICPath

# Okabe and Ito's palette, safe for colour-blind readers.
SELECTED, OTHER, ACCENT = "#0072B2", "#B8BDC4", "#D55E00"
CYCLE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_importances(
    importances: Array,
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
    importances : array of shape (d,)
        The importances.
    feature_names : sequence of str, optional
        Names of the columns.
    support : array of bool, optional
        The selected features.
    threshold : float, optional
        A line at the selection threshold.
    max_features : int, default=30
        How many bars at most; the rest is said in the title.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    order = np.argsort(-importances, kind="stable")[:max_features]
    chosen = np.zeros(importances.size, dtype=bool) if support is None else np.asarray(support)
    names = _names(feature_names, importances.size)
    ax = _axes(ax, height=1.0 + 0.26 * order.size)
    colors = [SELECTED if chosen[j] else OTHER for j in order]
    ax.barh(np.arange(order.size), importances[order], color=colors, height=0.72)
    ax.set_yticks(np.arange(order.size), [names[j] for j in order])
    ax.set_ylim(order.size - 0.4, -0.6)
    ax.set_xlabel("importance η (share of the dependence)")
    if threshold is not None:
        ax.axvline(threshold, color=ACCENT, linestyle="--", linewidth=1.2)
        ax.text(threshold, order.size - 0.6, f" {threshold:.3g}", color=ACCENT, va="bottom")
    hidden = importances.size - order.size
    shown = f"{order.size} largest of {importances.size} features" if hidden else "all features"
    title = f"{int(chosen.sum())} selected · {shown}" if support is not None else shown
    ax.set_title(title, loc="left", fontsize=11)
    _clean(ax)
    return ax


def plot_path(path: SICPath, *, highlight: int = 7, ax: Axes | None = None) -> Axes:
    """Importances along lam, the largest in colour, with the lam of the best held-out risk.

    Parameters
    ----------
    path : SICPath
        Result of :func:`sobolev.sic_path`.
    highlight : int, default=7
        How many features are named.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax, height=4.2)
    order = np.argsort(-path.importances.max(axis=0), kind="stable")
    named = order[:highlight]
    for j in order[highlight:]:
        ax.plot(path.lams, path.importances[:, j], color=OTHER, linewidth=0.8, zorder=1)
    for color, j in zip(_cycle(named.size), named, strict=True):
        label = _escape(path.feature_names[j])
        ax.plot(path.lams, path.importances[:, j], color=color, linewidth=1.8, label=label)
    best = path.lams[path.risks.mean(axis=0).argmax()]
    ax.axvline(best, color="#444444", linestyle=":", linewidth=1.2)
    ax.text(best, ax.get_ylim()[1], " best held-out risk", va="top", fontsize=8, color="#444444")
    ax.set_xscale("log")
    ax.invert_xaxis()
    ax.set_xlabel("λ (sparse → dense)")
    ax.set_ylabel("importance η")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _clean(ax)
    return ax


def _axes(ax: Axes | None, height: float) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(7.0, min(height, 14.0)), layout="constrained")[1]


def _names(feature_names: Any, d: int) -> list[str]:
    names = [f"x{j}" for j in range(d)] if feature_names is None else list(feature_names)
    return [_escape(str(name)) for name in names]


def _escape(name: str) -> str:
    """Show a name as it is: a dollar sign would start a formula."""
    shown = name.replace("$", r"\$")
    return shown if len(shown) <= 40 else shown[:37] + "…"


def _cycle(count: int) -> list[str]:
    return [CYCLE[i % len(CYCLE)] for i in range(count)]


def _clean(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
