"""The pictures of the report: effects of the strongest features, tests, and model checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

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

MAX_EFFECTS, MAX_TOGETHER, MAX_TESTS = 4, 6, 4
# Fewer points than in a picture of its own: the shape shows, and the report does not wait.
N_GRID, MAX_ROWS = 13, 40
# Width of a panel, smallest width of a map and width of its cells, in inches.
WIDTH, MIN_WIDTH, CELL = 4.6, 3.6, 0.58
# The axis of the tests ends here, in standard deviations.
FARTHEST = 60.0
SEVERAL = (
    "How the response changes with each of the strongest selected features, averaged over the "
    "other features as they are in the data. A wide band (80 % of the rows) means that the effect "
    "depends on other features. The effects come from the critic of the last fit and are shrunk "
    "towards zero: read the shape, not the size."
)
CLASSES = (
    "Which class becomes more likely as each of the strongest selected features changes, averaged "
    "over the other features as they are in the data. The effects come from the critic of the last "
    "fit and are shrunk towards zero: read the shape, not the size."
)
TOGETHER = (
    "How strongly pairs of selected features act together: the mean absolute mixed second "
    "derivative of the critic. Zero where effects only add up."
)
TESTS = (
    "The grey curve is the distribution of the test statistic if a feature does not matter given "
    "the others; the line is the observed statistic. A line far to the right of the curve is "
    "evidence, a line within it is not: the orange tail is the probability of a statistic at least "
    "as large. The p-value also accounts for blocks of rows and for the true shape of the curve, "
    "so it is close to that tail, not equal to it."
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
    pictures = _effects(selector, X, y, _drawable(X, units, result.selected))
    if result.method == "hrt":
        pictures += _tests(selector, units, result)
    if getattr(selector, "diagnostics_", None) is not None:
        pictures.append(_checks(result.method, selector.diagnostics_))
    return tuple(pictures)


def _drawable(X: Any, units: dict[str, Index], names: Sequence[str]) -> list[Any]:
    """Selected features with an effect to draw: single columns and categories, not groups."""
    if isinstance(X, Prepared):
        return [name for name in names if name in X.categories or len(X.places.get(name, ())) == 1]
    return [int(units[name][0]) for name in names if units[name].size == 1]


def _effects(selector: Any, X: Any, y: Any, features: Sequence[Any]) -> list[Picture]:
    """Effects of the selected features, if the critic shows effects."""
    from sobolev.plotting import partial_effect, plot_interactions
    from sobolev.plotting.partial_effects import NoEffectsError

    if not features or _has_mixed_responses(y):
        return []
    options = {"n_grid": N_GRID, "max_rows": MAX_ROWS}
    try:
        effects = [partial_effect(selector, X, y, j, **options) for j in features[:MAX_EFFECTS]]
    except NoEffectsError:
        return []
    words = CLASSES if effects[0].is_classes else SEVERAL
    pictures = [Picture("Effects", words, _effect_panels(effects))]
    if isinstance(X, Prepared):  # features of one column
        features = [name for name in features if len(X.places[name]) == 1]
    together = features[:MAX_TOGETHER]
    if len(together) > 1:
        names = feature_names(selector)
        shown = [j if isinstance(j, str) else names[j] for j in together]
        room = 0.3 + 0.075 * min(20, max(map(len, shown)))
        size = CELL * len(together)
        slanted = 0.35 if room < 0.65 else 0.75 * room
        width = max(room + size + 0.1, MIN_WIDTH)  # the title takes some room
        right = width - room - size
        figure, ax = panel(width, size + slanted + 0.35, left=room, right=right, bottom=slanted)
        plot_interactions(selector, X, y, together, max_rows=MAX_ROWS, colorbar=False, ax=ax)
        pictures.append(Picture("Interactions", TOGETHER, figure))
    return pictures


def _has_mixed_responses(y: Any) -> bool:
    """Whether y has several columns, some of them labels."""
    values = y.values if isinstance(y, Response) else y
    return np.ndim(values) == 2 and np.asarray(values).dtype.kind not in "fiub"


def _effect_panels(effects: Sequence[PartialEffect]) -> tuple[Figure, ...]:
    """One panel for each effect, with a common vertical axis that holds zero."""
    from sobolev.plotting.effects import draw_effect

    several = len(effects[0].labels) > 1
    drawn = [band for e in effects for band in ([e.means] if several else [e.lower, e.upper])]
    low = min(0.0, *(float(band.min()) for band in drawn))
    high = max(0.0, *(float(band.max()) for band in drawn))
    room = 0.06 * (high - low) or 1.0
    right = 1.2 if several else 0.12
    figures = []
    for effect in effects:
        figure, ax = panel(WIDTH, 3.1, left=0.9, bottom=0.6, top=0.15, right=right)
        draw_effect(ax, effect)
        ax.set_ylim(low - room, high + room)
        figures.append(figure)
    return tuple(figures)


def _tests(selector: Any, units: dict[str, Index], result: SelectionResult) -> list[Picture]:
    """Tests of the strongest features, and of the first that was not selected."""
    from sobolev.plotting.null import null_distribution

    table = result.table[result.table["pvalue"].notna()]
    chosen = [str(name) for name in table.loc[table["selected"], "feature"]]
    others = [str(name) for name in table.loc[~table["selected"], "feature"]]
    last, nulls = MAX_TESTS - 1, []
    for name in [*chosen[:last], *others[:1], *chosen[last:], *others[1:]][:MAX_TESTS]:
        null = null_distribution(selector.result(int(units[name][0])))
        # The last of several repetitions may have left a feature out.
        if np.isfinite([null.statistic, null.mean, null.deviation]).all():
            nulls.append(replace(null, feature=name).standardized())
    if not nulls:
        return []
    words = COMPARED + TESTS if chosen and others else TESTS
    return [Picture("Tests", words, _null_panels(nulls))]


def _null_panels(nulls: Sequence[NullDistribution]) -> tuple[Figure, ...]:
    """One panel for each test, with a common axis in standard deviations."""
    from sobolev.plotting.null import draw_null

    ends = np.clip([end for null in nulls for end in null.limits], -FARTHEST, FARTHEST)
    figures = []
    for null in nulls:
        figure, ax = panel(WIDTH, 2.2, left=0.15)
        draw_null(ax, null, (float(ends.min()), float(ends.max())))
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
