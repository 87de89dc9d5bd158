"""The picture of one test: the statistic under the null hypothesis, and the observed statistic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._numbers import pvalue_equation
from sobolev._parameters import check_count, check_fraction, check_number
from sobolev._typing import Array
from sobolev.plotting.style import ACCENT, INK, OTHER, SELECTED, clean, make_axes, shown_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState

BINS = 60
# An observed statistic nearer to the mean, as a share of the axis, would cross the label.
CLOSE = 0.2


def plot_null(
    null: Any,
    feature: Any = None,
    *,
    statistic: float | None = None,
    pvalue: float | None = None,
    n_draws: int = 10_000,
    random_state: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """The null distribution of a test statistic, and the observed statistic.

    Parameters
    ----------
    null : fitted HRTSelector, HRTResult, NullTable or array of draws
        A selector with a ``feature``, its ``result(feature)`` or the result of
        :func:`sobolev.hrt_test`: a normal curve with the mean and the standard deviation of the
        null distribution is drawn. A table of the randomization test: draws are taken from it. Or
        draws of the statistic under the null hypothesis.
    feature : int or str, optional
        Position or name of a tested column of the selector; otherwise a name for the title.
    statistic : float, optional
        The observed statistic; needed with draws only.
    pvalue : float, optional
        Shown with the observed statistic. By default that of the result or table. With draws, the
        share of draws that reach the statistic, counting the observed one.
    n_draws : int, default=10000
        Number of draws from a table.
    random_state : int, Generator, RandomState or None, default=0
        Decides the draws from a table.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.plotting import plot_null
    >>> draws = np.random.default_rng(0).normal(size=999)
    >>> plot_null(draws, "dose", statistic=5.0).get_title(loc="left")
    'dose: p = 0.001'
    """
    from sobolev.inference import HRTSelector

    if isinstance(null, HRTSelector):
        if feature is None:
            raise ValueError("feature is missing; name the test of the selector to draw.")
        null, feature = null.result(feature), None
    found = null_distribution(null, statistic, n_draws, random_state)
    if pvalue is not None:
        check_fraction("pvalue", pvalue, low=0.0, high=1.0)
        found = replace(found, pvalue=pvalue)
    if feature is not None:
        found = replace(found, feature=str(feature))
    ax = make_axes(ax, height=3.6)
    draw_null(ax, found, found.limits)
    return ax


@dataclass(frozen=True)
class NullDistribution:
    """What the picture of a test shows; without draws the distribution is taken as normal."""

    statistic: float
    pvalue: float
    mean: float
    deviation: float
    draws: Array | None = None
    feature: str | None = None
    is_standardized: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """An axis that holds the null distribution and the observed statistic."""
        reach = 4 * self.deviation
        ends = [self.mean - reach, self.mean + reach]
        if self.draws is not None:
            ends = [float(self.draws.min()), float(self.draws.max())]
        low, high = min(*ends, self.statistic), max(*ends, self.statistic)
        room = 0.06 * (high - low) or 0.5 * max(abs(self.mean), 1e-3)
        return low - room, high + room

    def standardized(self) -> NullDistribution:
        """The same in standard deviations from the null mean."""
        unit = self.deviation or 1.0
        return replace(
            self,
            statistic=(self.statistic - self.mean) / unit,
            mean=0.0,
            deviation=self.deviation / unit,
            draws=None if self.draws is None else (self.draws - self.mean) / unit,
            is_standardized=True,
        )


def null_distribution(
    null: Any, statistic: float | None = None, n_draws: int = 10_000, random_state: Any = 0
) -> NullDistribution:
    """What there is to draw, from a result, a table or draws."""
    from sobolev.inference import HRTResult
    from sobolev.inference.null_distribution import NullTable

    if isinstance(null, HRTResult):
        moments = (null.null_mean, null.null_deviation)
        return NullDistribution(null.statistic, null.pvalue, *moments, feature=null.feature)
    if isinstance(null, NullTable):
        check_count("n_draws", n_draws)
        draws = null.draw(n_draws, random_state) / null.observed.size
        deviation = 0.0 if null.is_flat else null.deviation
        return NullDistribution(null.statistic, null.saddlepoint(), null.mean, deviation, draws)
    draws = np.asarray(null, dtype=float)
    if draws.ndim != 1 or draws.size < 2 or not np.isfinite(draws).all():
        raise ValueError(
            "null must be a fitted HRTSelector, the result of hrt_test, a NullTable, or two or "
            f"more draws without NaN; got {type(null).__name__} of shape {draws.shape}."
        )
    if statistic is None:
        raise ValueError("statistic is missing: draws do not tell what was observed; pass it.")
    check_number("|statistic|", abs(statistic))
    pvalue = (1 + np.count_nonzero(draws >= statistic)) / (1 + draws.size)
    moments = (float(draws.mean()), float(draws.std()))
    return NullDistribution(float(statistic), float(pvalue), *moments, draws)


def draw_null(ax: Axes, null: NullDistribution, limits: tuple[float, float]) -> None:
    """Draw a null distribution into axes with the given limits.

    An observed statistic beyond them stands at the edge, with an arrow.
    """
    low, high = limits
    label, peak = "if the feature does not matter", 1.0
    if null.is_standardized:
        label = "null distribution"
    if null.deviation == 0:
        label = "the statistic does not move with the feature"
        ax.axvline(null.mean, color=OTHER, linewidth=6)
    elif null.draws is None:
        label += "" if null.is_standardized else "\n(normal curve)"
        reach = 4.5 * null.deviation
        x = np.linspace(max(low, null.mean - reach), min(high, null.mean + reach), 201)
        x = np.union1d(x, np.clip(null.statistic, x[0], x[-1]))
        curve = np.exp(-0.5 * ((x - null.mean) / null.deviation) ** 2)
        for part, color in ((x <= null.statistic, OTHER), (x >= null.statistic, ACCENT)):
            ax.fill_between(x[part], curve[part], color=color, linewidth=0)
    else:
        heights, edges = np.histogram(null.draws, bins=_edges(null.draws, null.statistic))
        # The statistic is an edge, but for rounding.
        beyond = (edges[1:] + edges[:-1]) / 2 >= null.statistic
        colors = np.where(beyond, ACCENT, OTHER).tolist()
        ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color=colors)
        peak = float(heights.max())
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85}
    where = (null.mean - low) / (high - low)
    ha, x_text = ("left", low) if where < 0.25 else ("center", null.mean)
    ha, x_text = ("right", high) if where > 0.75 else (ha, x_text)
    beside = null.statistic - null.mean
    if ha == "center" and abs(beside) < CLOSE * (high - low):  # not across the observed line
        ha = "right" if beside >= 0 else "left"
        x_text = null.statistic - np.copysign(0.02 * (high - low), beside)
    ax.text(x_text, 1.04 * peak, label, ha=ha, fontsize=8, color=INK, bbox=plain, zorder=5)
    _say_observed(ax, null, low, high)
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.42 * peak)
    ax.set_yticks([])
    ax.set_xlabel(
        "standard deviations from the null mean"
        if null.is_standardized
        else "mean statistic of the held-out rows"
    )
    name = "" if null.feature is None else f"{shown_name(null.feature)}: "
    clean(ax, f"{name}{pvalue_equation(null.pvalue)}")
    ax.spines["left"].set_visible(False)


def _edges(draws: Array, statistic: float) -> Array:
    """Edges of bins that cover the draws, one of them at the statistic."""
    width = float(np.ptp(draws)) / BINS
    first = np.floor((draws.min() - statistic) / width)
    last = np.ceil((draws.max() - statistic) / width)
    return np.asarray(statistic + width * np.arange(first, last + 1))


def _say_observed(ax: Axes, null: NullDistribution, low: float, high: float) -> None:
    place = float(np.clip(null.statistic, low, high))
    ax.axvline(place, color=SELECTED, linewidth=2, zorder=4)
    said = f"observed: {null.statistic:.3g}"
    if null.deviation > 0 and not null.is_standardized:
        z = (null.statistic - null.mean) / null.deviation
        said += f"\n{abs(z):.1f} SD {'above' if z >= 0 else 'below'} the mean"
    if place != null.statistic:
        said += " →" if null.statistic > high else " ←"
    at_right = place < low + 0.7 * (high - low)
    ax.annotate(
        said,
        (place, 0.99),
        xycoords=ax.get_xaxis_transform(),
        xytext=(5 if at_right else -5, 0),
        textcoords="offset points",
        ha="left" if at_right else "right",
        va="top",
        fontsize=9,
        color=SELECTED,
    )
