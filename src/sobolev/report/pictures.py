"""The pictures of the report: effects of the strongest features, tests, and model checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri_exp

from sobolev._numbers import FLOOR, pvalue_equation
from sobolev._typing import Index
from sobolev.report.result import Picture, SelectionResult
from sobolev.responses import Response
from sobolev.summary import units_of
from sobolev.tables import Prepared
from sobolev.validation import feature_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sobolev.inference import AuditResult
    from sobolev.plotting import PartialEffect
    from sobolev.plotting.null import NullDistribution

MAX_EFFECTS, MAX_TOGETHER, MAX_TESTS = 24, 8, 6
# Fewer points than in a picture of its own: the shape shows, and the report does not wait.
N_GRID, MAX_ROWS = 13, 40
# Width of a panel and of one of a row of three, and width of the cells of a map, in inches.
WIDTH, THIRD, CELL = 4.6, 3.3, 0.5
# Room at the left of a panel, and height of a row of a list of categories, in inches.
LEFT, LINE = 0.62, 0.19
# The p-values that have a normal score.
SMALLEST, LARGEST = 1e-300, 1 - 1e-4
SEVERAL = (
    "How the response shifts with each selected feature, in its standard deviations, averaged over "
    "the other features as they are in the data. A wide band (80 % of the rows) means that the "
    "effect depends on other features. Ticks at the bottom are values in the data, percentages are "
    "shares of the rows. Effects come from the critic of the last fit and are shrunk towards zero: "
    "read the shape, not the size."
)
SURVIVAL = (
    "How the risk shifts with each selected feature, in standard deviations of the log-rank score: "
    "above zero events come earlier. Averaged over the other features as they are in the data. A "
    "wide band (80 % of the rows) means that the effect depends on other features. Effects come "
    "from the critic of the last fit and are shrunk towards zero: read the shape, not the size."
)
CLASSES = (
    "How much more likely each class becomes as a selected feature changes, averaged over the "
    "other features as they are in the data: 0 is as likely as in all rows, 1 twice as likely. "
    "Effects come from the critic of the last fit and are shrunk towards zero: read the shape, not "
    "the size."
)
NO_SKILL = "The model does not predict rows that it has not seen: these shapes may be noise."
TOGETHER = (
    "How strongly pairs of selected features act together: the mean absolute mixed second "
    "derivative of the critic. Zero where effects only add up."
)
ADDITIVE = "The critic has no interaction between them: their effects only add up."
TESTS = (
    "The grey curve is the distribution of the evidence if a feature does not matter given the "
    "others; the line is the evidence that was observed. Both are on the scale of a normal "
    "distribution, on which the orange tail is the p-value. A line far to the right of the curve "
    "is strong evidence, a line within it is none."
)
AUDIT = (
    "Responses with a known answer were planted on the columns of this table, and the selector was "
    "run on each. First panel: a dot is the share of false features among those selected for one "
    "response; the level is a promise about the mean. Responses called noise and permuted depend "
    "on no column, so that every find is false. Second panel, with p-values: those of features "
    "without effect, with a 95 % band; a curve above the line means that p-values are too small. "
    "Without p-values: the features that were selected falsely most often."
)
COMPARED = "The strongest features and, for comparison, the first that was not selected. "
CONDITIONAL = (
    "The p-values rely on a model of each tested column given all others. First panel: one dot for "
    "each column and check; zero means no misfit, or none beyond chance. All dots should lie left "
    "of the line. Coloured dots in the tinted part fail: the p-values of these columns may be too "
    "small. Second panel: if the model fits, the curves of all columns stay within the band; a "
    "column can stay within it and still fail a check that involves other columns."
)
KNOCKOFFS = (
    "The false discovery rate relies on knockoffs that look like their columns. First panel: one "
    "dot for each column and check; zero means no misfit, or none beyond chance. All dots should "
    "lie left of the line. Coloured dots in the tinted part fail: more of the selected features "
    "may be false. Second panel: the lower a dot, the better a column can be told from its "
    "knockoff and be found; near 1, a feature that matters is missed."
)


def draw_pictures(selector: Any, X: Any, y: Any, result: SelectionResult) -> tuple[Picture, ...]:
    """Pictures of the selected features, of their tests, and of the model checks.

    Parameters
    ----------
    selector : fitted selector
    X, y
        The data that it was fitted to; y may be a Response.
    result : SelectionResult

    Returns
    -------
    tuple of Picture
        Without those for which there is nothing to draw.
    """
    units = units_of(selector)
    pictures = _effects(selector, X, y, _drawable(X, units, result.selected), result)
    if result.method == "hrt":
        pictures += _tests(result)
    if getattr(selector, "diagnostics_", None) is not None:
        pictures.append(_checks(result.method, selector.diagnostics_))
    return tuple(pictures)


def _drawable(X: Any, units: dict[str, Index], names: Sequence[str]) -> list[Any]:
    """Selected features with an effect to draw: columns, categories and near copies.

    Columns of a table of numbers are given by position.
    """
    from sobolev.plotting.partial_effects import move_as_one

    found: list[Any] = []
    is_table = isinstance(X, Prepared)
    values = np.asarray(X.X if is_table else X, dtype=float)
    for name in names:
        own = units[name]
        if is_table and (name in X.categories or len(X.places.get(name, ())) == 1):
            found.append(name)
        elif own.size == 1:
            found.append(name if is_table else int(own[0]))
        elif move_as_one(values[:, own]):
            found.append(name)
    return found


def _effects(
    selector: Any, X: Any, y: Any, features: Sequence[Any], result: SelectionResult
) -> list[Picture]:
    """Effects of the selected features, if the critic shows effects."""
    from sobolev.plotting import partial_effect, plot_interactions
    from sobolev.plotting.interactions import NO_INTERACTION
    from sobolev.plotting.partial_effects import NoEffectsError
    from sobolev.plotting.style import cycle

    if not features or _has_mixed_responses(y):
        return []
    options = {"n_grid": N_GRID, "max_rows": MAX_ROWS}
    try:
        effects = [partial_effect(selector, X, y, j, **options) for j in features[:MAX_EFFECTS]]
    except NoEffectsError:
        return []
    words = SURVIVAL if getattr(y, "kind", "") == "survival" else SEVERAL
    words = CLASSES if effects[0].is_classes else words
    if result.skill is not None and not result.skill.is_clear:
        words = f"{NO_SKILL} {words}"
    left = len(result.selected) - len(effects)
    if left:
        words += f" Not drawn: {left:,} selected features, the weakest and groups of columns."
    qvalues = result.table.set_index("feature")["qvalue"]
    names = tuple((e.feature, _remark(qvalues.get(e.feature))) for e in effects)
    key: tuple[tuple[str, str], ...] = ()
    if len(effects[0].labels) > 1:
        key = tuple(zip(effects[0].labels, cycle(len(effects[0].labels)), strict=True))
    pictures = [Picture("Effects", words, _effect_panels(effects), names, key)]
    units = units_of(selector)
    alone = [j for j in features if not isinstance(j, str) or units[j].size == 1]
    together = alone[:MAX_TOGETHER]
    if len(together) > 1:
        columns = feature_names(selector)
        shown = [j if isinstance(j, str) else columns[j] for j in together]
        room = 0.3 + 0.075 * min(20, max(map(len, shown)))
        size = CELL * len(together)
        slanted = 0.35 if room < 0.65 else 0.75 * room
        width = room + size + 0.1
        figure, ax = panel(width, size + slanted + 0.1, left=room, bottom=slanted, top=0.1)
        plot_interactions(selector, X, y, together, max_rows=MAX_ROWS, colorbar=False, ax=ax)
        first = ax.get_title(loc="left").replace(r"\$", "$").partition(" · ")[0]
        ax.set_title("", loc="left")
        if first == NO_INTERACTION:
            words += f" {ADDITIVE}"
            pictures = [replace(pictures[0], caption=words)]
        else:
            said = f"{first[:1].upper()}{first[1:]}. {TOGETHER}"
            pictures.append(Picture("Interactions", said, figure))
    return pictures


def _remark(q: Any) -> str:
    """The q-value behind the name of a feature, if it has one."""
    return "" if q is None or q != q else pvalue_equation(float(q), "q")


def _has_mixed_responses(y: Any) -> bool:
    """Whether y has several columns, some of them labels."""
    values = y.values if isinstance(y, Response) else y
    return np.ndim(values) == 2 and np.asarray(values).dtype.kind not in "fiub"


def _effect_panels(effects: Sequence[PartialEffect]) -> tuple[Figure, ...]:
    """One panel for each effect, with a common vertical axis that holds zero."""
    from sobolev.plotting.effects import draw_effect, fits_across
    from sobolev.plotting.partial_effects import MAX_POINTS

    several = len(effects[0].labels) > 1
    drawn = [band for e in effects for band in ([e.means] if several else [e.lower, e.upper])]
    low = min(0.0, *(float(band.min()) for band in drawn))
    high = max(0.0, *(float(band.max()) for band in drawn))
    room = 0.06 * (high - low) or 1.0
    figures = []
    for effect in effects:
        across = fits_across(effect, THIRD - LEFT) or not effect.categories
        if across:
            two_lines = effect.categories or np.unique(effect.values).size <= MAX_POINTS
            figure, ax = panel(THIRD, 2.1, left=LEFT, bottom=0.5 if two_lines else 0.32, top=0.1)
        else:
            names = [f"{name} · 100 %" for name in effect.categories]
            left = min(0.2 + 0.068 * min(28, max(map(len, names))), 0.55 * THIRD)
            height = max(2.1, 0.6 + LINE * len(names))
            figure, ax = panel(THIRD, height, left=left, bottom=0.5, top=0.1)
        draw_effect(ax, effect, named=False)
        (ax.set_ylim if across else ax.set_xlim)(low - room, high + room)
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_fontsize(8)
        ax.yaxis.label.set_fontsize(8)
        figures.append(figure)
    return tuple(figures)


def _tests(result: SelectionResult) -> list[Picture]:
    """Tests of the strongest features, and of the first that was not selected.

    A null distribution may be skew; on the scale of normal scores its tail is the p-value.
    """
    from sobolev.plotting.null import NullDistribution

    table = result.table[result.table["pvalue"].notna()]
    chosen = [str(name) for name in table.loc[table["selected"], "feature"]]
    others = [str(name) for name in table.loc[~table["selected"], "feature"]]
    nulls = []
    pvalues = table.set_index("feature")["pvalue"].astype(float)
    for name in [*chosen[: MAX_TESTS - 1], *others[: 1 if chosen else MAX_TESTS // 2]]:
        p = float(pvalues[name])
        score = -float(ndtri_exp(np.log(np.clip(p, SMALLEST, LARGEST))))
        nulls.append(NullDistribution(score, p, 0.0, 1.0, feature=name, is_standardized=True))
    if not nulls:
        return []
    words = COMPARED + TESTS if chosen and others else TESTS
    names = tuple((str(null.feature), pvalue_equation(null.pvalue)) for null in nulls)
    return [Picture("Tests", words, _null_panels(nulls), names)]


def _null_panels(nulls: Sequence[NullDistribution]) -> tuple[Figure, ...]:
    """One panel for each test, with a common axis in standard deviations."""
    from sobolev.plotting.null import draw_null

    farthest = -float(ndtri_exp(np.log(FLOOR)))
    ends = np.clip([end for null in nulls for end in null.limits], -farthest, farthest)
    figures = []
    for null in nulls:
        figure, ax = panel(THIRD, 1.55, left=0.1, right=0.1, top=0.05, bottom=0.42)
        draw_null(ax, null, (float(ends.min()), float(ends.max())))
        ax.set_title("", loc="left")
        ax.set_xlabel("evidence, in standard deviations")
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_fontsize(8)
        figures.append(figure)
    return tuple(figures)


def _checks(method: str, diagnostics: Any) -> Picture:
    """Model checks, with the names of failing columns below, and a panel of every column."""
    from sobolev.plotting.checks import NAMED, name_failing, verdict
    from sobolev.plotting.conditional import draw_calibration, draw_conditional_checks
    from sobolev.plotting.knockoffs import draw_knockoff_checks, draw_likeness

    below = 0.2 * ((min(len(diagnostics.failing), NAMED + 1) + 1) // 2)
    checks, ax = panel(WIDTH, 3.1 + below, left=1.25, right=0.65, bottom=0.55 + below)
    columns, beside = panel(WIDTH, 3.1, left=0.9)
    if method == "hrt":
        title, caption = "Model of the columns", CONDITIONAL
        colors = draw_conditional_checks(ax, diagnostics)
        draw_calibration(beside, diagnostics)
        beside.set_title("Calibration: near zero is right", loc="left", fontsize=11)
    else:
        title, caption = "Knockoffs", KNOCKOFFS
        colors = draw_knockoff_checks(ax, diagnostics)
        draw_likeness(beside, diagnostics)
    ax.set_title(verdict(len(colors), len(diagnostics.names)), loc="left", fontsize=11)
    place = {"loc": "lower left", "bbox_to_anchor": (0, 0), "bbox_transform": checks.transFigure}
    name_failing(ax, diagnostics.names, colors, ncols=2, **place)
    return Picture(title, caption, (checks, columns))


def audit_picture(audit: AuditResult) -> Picture:
    """What the audit measured, and the null p-values or the false features."""
    from sobolev.plotting.audit import draw_nulls, draw_rates

    height = 1.5 + 0.3 * len(audit.table())
    rates, ax = panel(1.25 * WIDTH, max(height, 3.1), left=1.6, right=0.85)
    draw_rates(ax, audit)
    has_curve = audit.null_curve() is not None
    beside, second = panel(WIDTH, max(height, 3.1), left=0.9 if has_curve else 1.9, right=0.3)
    draw_nulls(second, audit)
    return Picture("Planted responses", AUDIT, (rates, beside))


def panel(
    width: float,
    height: float,
    *,
    left: float,
    right: float = 0.12,
    top: float = 0.35,
    bottom: float = 0.55,
) -> tuple[Figure, Axes]:
    """A figure without background with one axes; sizes and margins in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), frameon=False)
    place = (left / width, bottom / height, (width - left - right) / width)
    ax = figure.add_axes((*place, (height - bottom - top) / height))
    ax.patch.set_visible(False)
    ax.locator_params(nbins=5)
    return figure, ax
