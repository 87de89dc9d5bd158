"""The pictures of the report: effects of the strongest features, tests, and what they rest on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sobolev.cli.selecting import Found
from sobolev.report import Picture, SelectionResult
from sobolev.report.checks import draw_conditional, draw_knockoffs
from sobolev.report.effects import draw_effect, draw_interactions, effect_limits
from sobolev.report.nulls import draw_null, null_limits
from sobolev.tables import Prepared

MAX_EFFECTS, MAX_TOGETHER, MAX_TESTS = 4, 6, 4
# Fewer points than in a picture of its own: the shape shows, and the report does not wait.
N_GRID, MAX_ROWS = 13, 40
SEVERAL = (
    "How the response moves with each of the strongest selected features, the others as they are "
    "in the data. A wide band (80 % of the rows) means that the effect depends on other features. "
    "Read off the critic of the last fit, which is drawn towards zero: look at the shape, not at "
    "the size."
)
CLASSES = (
    "Which class becomes more likely as each of the strongest selected features moves, the others "
    "as they are in the data. Read off the critic of the last fit, which is drawn towards zero: "
    "look at the shape, not at the size."
)
TOGETHER = (
    "How strongly pairs of selected features act together: the mean absolute mixed second "
    "derivative of the critic. Zero where effects only add up."
)
TESTS = (
    "The hill is what the test gives by chance if a feature does not matter given the others, the "
    "line what was observed. A line far to the right of the hill is evidence, a line within it is "
    "none: the orange tail is the chance to get as much. The p-value allows for blocks of "
    "rows and the true shape of the hill, so it is near that tail, not equal to it."
)
COMPARED = "The strongest features and, to compare, the first that was not selected. "
CONDITIONAL = (
    "The p-values rest on a model of each tested column given all others. First panel: a dot for "
    "each column and check; zero is no misfit, or none that chance could not give. Good: all dots "
    "lie left of the line. Bad: coloured dots in the tinted part; the p-values of these columns "
    "may be too small. Second panel: a good model keeps the curves of all columns within the band; "
    "a column can stay there and still fail beside other columns."
)
KNOCKOFFS = (
    "The error rate rests on knockoffs that look like their columns. First panel: a dot for each "
    "column and check; zero is no misfit, or none that chance could not give. Good: all dots lie "
    "left of the line. Bad: coloured dots in the tinted part; more of the selected features may be "
    "false. Second panel: the lower a dot, the better a column can be told from its knockoff and "
    "be found; near 1, a feature that matters is missed."
)


def draw(found: Found, data: Prepared, result: SelectionResult) -> tuple[Picture, ...]:
    """Pictures of what was selected, of its tests, and of the checks of what they rest on.

    Parameters
    ----------
    found : Found
    data : Prepared
    result : SelectionResult

    Returns
    -------
    tuple of Picture
        Without those that there is nothing to draw from.
    """
    return (*_effects(found, data, result), *_tests(found, data), *_checks(found))


def _effects(found: Found, data: Prepared, result: SelectionResult) -> list[Picture]:
    """Of the selected numeric features, if the critic knows the columns of the data."""
    single = [data.variables[name][0] for name in result.selected if len(data.variables[name]) == 1]
    labels = data.y.dtypes.eq(object).any() if hasattr(data.y, "dtypes") else False
    if found.model is None or not single or labels:  # several responses, some of them labels
        return []
    from sobolev.plotting.interactions import interaction_map
    from sobolev.plotting.partial_effects import partial_effect

    effects = [
        partial_effect(found.model, data.X, data.y, column, max_rows=MAX_ROWS, n_grid=N_GRID)
        for column in single[:MAX_EFFECTS]
    ]
    limits = effect_limits(effects)
    words = CLASSES if effects[0].is_classes else SEVERAL
    pictures = [Picture("Effects", words, tuple(draw_effect(e, limits) for e in effects))]
    together = single[:MAX_TOGETHER]
    if len(together) > 1:
        found_map = interaction_map(found.model, data.X, data.y, together, max_rows=MAX_ROWS)
        names = [str(data.X.columns[column]) for column in together]
        pictures.append(Picture("Interactions", TOGETHER, draw_interactions(names, *found_map)))
    return pictures


def _tests(found: Found, data: Prepared) -> list[Picture]:
    """Of features with a p-value, the strongest and the first that was not selected."""
    if not hasattr(found.selector, "null_means_"):
        return []
    table = found.table[found.table["pvalue"].notna()]
    chosen = [str(name) for name in table.loc[table["selected"], "feature"]]
    others = [str(name) for name in table.loc[~table["selected"], "feature"]]
    last, tests = MAX_TESTS - 1, []
    for name in [*chosen[:last], *others[:1], *chosen[last:], *others[1:]][:MAX_TESTS]:
        test = replace(found.selector.result(data.variables[name][0]), feature=name)
        # The last of several repetitions may have left a feature out.
        if np.isfinite([test.statistic, test.null_mean, test.null_deviation]).all():
            tests.append(test)
    limits = null_limits(tests)
    drawn = tuple(draw_null(test, limits) for test in tests)
    words = COMPARED + TESTS if chosen and others else TESTS
    return [Picture("Tests", words, drawn)] if drawn else []


def _checks(found: Found) -> list[Picture]:
    """Of the model that the selector has checked."""
    diagnostics = getattr(found.selector, "diagnostics_", None)
    if diagnostics is None:
        return []
    if hasattr(found.selector, "null_means_"):
        return [Picture("Model of the columns", CONDITIONAL, draw_conditional(diagnostics))]
    return [Picture("Knockoffs", KNOCKOFFS, draw_knockoffs(diagnostics))]
