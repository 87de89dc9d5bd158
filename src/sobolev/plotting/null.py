"""The picture of one test: the statistic under the null, and the one that was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._parameters import check_count, check_fraction, check_number
from sobolev._typing import Array
from sobolev.plotting._style import ACCENT, INK, OTHER, SELECTED, clean, make_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState

BINS = 60


def plot_null(
    null: Any,
    statistic: float | None = None,
    *,
    pvalue: float | None = None,
    feature: str | None = None,
    n_draws: int = 10_000,
    random_state: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """The law of a statistic if the feature does not matter, and the observed statistic.

    Parameters
    ----------
    null : HRTResult, NullTable or array of draws
        ``hrt.result("dose")`` of a fitted :class:`~sobolev.HRTSelector`, or the result of
        :func:`sobolev.hrt_test`: of their law the mean and deviation are known, and a normal curve
        stands for it. A table of the randomization test, from which draws are taken. Or
        draws of the statistic under the null.
    statistic : float, optional
        The observed statistic; needed with draws only.
    pvalue : float, optional
        Shown with the observed statistic. By default that of the result or table; the share of
        draws that reach the statistic, the observed one counted in, if there are only draws.
    feature : str, optional
        The name of the feature; by default that of the result.
    n_draws : int, default=10000
        Draws from a table.
    random_state : int, Generator, RandomState or None, default=0
        Decides them.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.plotting import plot_null
    >>> ax = plot_null(np.random.default_rng(0).normal(size=999), 5.0, feature="dose")
    >>> ax.get_title(loc="left")
    'dose: p = 0.001'
    """
    found = _law(null, statistic, n_draws, random_state)
    if pvalue is None:
        pvalue = found.pvalue
    else:
        check_fraction("pvalue", pvalue, low=0.0, high=1.0)
    ax = make_axes(ax, height=3.6)
    low, high = _range(found)
    label, peak = "if the feature does not matter", 1.0
    if found.deviation == 0:
        label = "the statistic does not move with the feature"
        ax.axvline(found.mean, color=OTHER, linewidth=6)
    elif found.draws is None:
        label += "\n(normal curve)"
        x = np.union1d(np.linspace(low, high, 801), found.statistic)
        curve = np.exp(-0.5 * ((x - found.mean) / found.deviation) ** 2)
        for part, color in ((x <= found.statistic, OTHER), (x >= found.statistic, ACCENT)):
            ax.fill_between(x[part], curve[part], color=color, linewidth=0)
    else:
        heights, edges = np.histogram(found.draws, bins=_edges(found.draws, found.statistic))
        # The statistic is an edge, but for rounding.
        beyond = (edges[1:] + edges[:-1]) / 2 >= found.statistic
        colors = np.where(beyond, ACCENT, OTHER).tolist()
        ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color=colors)
        peak = float(heights.max())
    ax.axvline(found.statistic, color=SELECTED, linewidth=2, zorder=4)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
    where = (found.mean - low) / (high - low)
    ha, x_text = ("left", low) if where < 0.25 else ("center", found.mean)
    ha, x_text = ("right", high) if where > 0.75 else (ha, x_text)
    ax.text(x_text, 1.04 * peak, label, ha=ha, fontsize=8, color=INK, bbox=plain, zorder=5)
    _say_observed(ax, found, low, high)
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.42 * peak)
    ax.set_yticks([])
    ax.set_xlabel("mean statistic of the held-out rows")
    feature = getattr(null, "feature", None) if feature is None else feature
    name = "" if feature is None else f"{shown_name(feature)}: "
    ax.set_title(f"{name}p {_shown_pvalue(pvalue)}", loc="left", fontsize=11)
    clean(ax)
    ax.spines["left"].set_visible(False)
    return ax


@dataclass(frozen=True)
class _Law:
    statistic: float
    pvalue: float
    mean: float
    deviation: float
    draws: Array | None = None


def _law(null: Any, statistic: float | None, n_draws: int, random_state: Any) -> _Law:
    """What there is to draw, from each kind of input."""
    if hasattr(null, "null_mean") and hasattr(null, "null_deviation"):
        return _Law(null.statistic, null.pvalue, null.null_mean, null.null_deviation)
    if hasattr(null, "saddlepoint") and hasattr(null, "draw"):
        check_count("n_draws", n_draws)
        draws = null.draw(n_draws, random_state) / null.observed.size
        deviation = 0.0 if null.is_flat else null.deviation
        return _Law(null.statistic, null.saddlepoint(), null.mean, deviation, draws)
    draws = np.asarray(null, dtype=float)
    if draws.ndim != 1 or draws.size < 2 or not np.isfinite(draws).all():
        raise ValueError(
            "null must be the result of hrt_test, a NullTable, or two or more draws without NaN; "
            f"got {type(null).__name__} of shape {draws.shape}."
        )
    if statistic is None:
        raise ValueError("statistic is missing: draws do not tell what was observed; pass it.")
    check_number("|statistic|", abs(statistic))
    pvalue = (1 + np.count_nonzero(draws >= statistic)) / (1 + draws.size)
    return _Law(float(statistic), float(pvalue), float(draws.mean()), float(draws.std()), draws)


def _range(law: _Law) -> tuple[float, float]:
    """From left of the null to right of the observed statistic."""
    reach = 4 * law.deviation
    ends = [law.mean - reach, law.mean + reach]
    if law.draws is not None:
        ends = [float(law.draws.min()), float(law.draws.max())]
    low, high = min(*ends, law.statistic), max(*ends, law.statistic)
    room = 0.06 * (high - low) or 0.5 * max(abs(law.mean), 1e-3)
    return low - room, high + room


def _edges(draws: Array, statistic: float) -> Array:
    """Of bins that cover the draws, one of them at the statistic."""
    width = float(np.ptp(draws)) / BINS
    first = np.floor((draws.min() - statistic) / width)
    last = np.ceil((draws.max() - statistic) / width)
    return np.asarray(statistic + width * np.arange(first, last + 1))


def _say_observed(ax: Axes, law: _Law, low: float, high: float) -> None:
    said = f"observed: {law.statistic:.3g}"
    if law.deviation > 0:
        z = (law.statistic - law.mean) / law.deviation
        said += f"\n{abs(z):.1f} SD {'above' if z >= 0 else 'below'} the mean"
    at_right = law.statistic < low + 0.7 * (high - low)
    ax.annotate(
        said,
        (law.statistic, 0.99),
        xycoords=ax.get_xaxis_transform(),
        xytext=(5 if at_right else -5, 0),
        textcoords="offset points",
        ha="left" if at_right else "right",
        va="top",
        fontsize=9,
        color=SELECTED,
    )


def _shown_pvalue(p: float) -> str:
    return "< 1e-20" if p < 1e-20 else f"= {p:.2g}"
