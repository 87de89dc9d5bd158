"""The pictures of the report: effects of the strongest features, and which act together."""

from __future__ import annotations

from sobolev.cli.selecting import Found
from sobolev.frames import Prepared
from sobolev.report import Picture, SelectionResult
from sobolev.report.drawings import draw_effect, draw_interactions, effect_limits

MAX_EFFECTS, MAX_TOGETHER = 4, 6
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


def draw(found: Found, data: Prepared, result: SelectionResult) -> tuple[Picture, ...]:
    """Pictures of the selected numeric features, if the critic knows the columns of the data.

    Parameters
    ----------
    found : Found
    data : Prepared
    result : SelectionResult

    Returns
    -------
    tuple of Picture
    """
    single = [data.variables[name][0] for name in result.selected if len(data.variables[name]) == 1]
    labels = data.y.dtypes.eq(object).any() if hasattr(data.y, "dtypes") else False
    if found.model is None or not single or labels:  # several responses, some of them labels
        return ()
    from sobolev.plotting.interactions import interaction_map
    from sobolev.plotting.partial import partial_effect

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
    return tuple(pictures)
