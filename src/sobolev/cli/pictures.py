"""The pictures of the report: effects of the strongest features, and which act together."""

from __future__ import annotations

from typing import Any

from sobolev.cli.selecting import Found
from sobolev.frames import Prepared
from sobolev.report import Picture, SelectionResult

MAX_EFFECTS, MAX_TOGETHER = 4, 6
# Fewer points than in a picture of its own: the shape shows, and the report does not wait.
N_GRID, MAX_ROWS = 13, 40
ACROSS = 2
SEVERAL = (
    "How the response moves with each of the strongest selected features, the others as they are "
    "in the data. A wide band (80 % of the rows) means that the effect depends on other features. "
    "Read off the critic of the last fit, which is drawn towards zero: look at the shape, not at "
    "the size."
)
TOGETHER = (
    "How strongly pairs of selected features act together: the mean absolute mixed second "
    "derivative of the critic. Zero where effects only add up."
)


def load_drawing() -> None:
    """Import what the pictures need, beside the fit: half a second less to wait at the end."""
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401


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
    pictures = [Picture("Effects", SEVERAL, _effects(found.model, data, single[:MAX_EFFECTS]))]
    together = single[:MAX_TOGETHER]
    if len(together) > 1:
        pictures.append(
            Picture("Interactions", TOGETHER, _interactions(found.model, data, together))
        )
    return tuple(pictures)


def _effects(model: Any, data: Prepared, columns: list[int]) -> Any:
    from matplotlib.figure import Figure

    from sobolev.plotting import plot_effect

    across = min(ACROSS, len(columns))
    down = -(-len(columns) // across)
    figure = Figure(figsize=(4.6 * across, 3.4 * down), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=True).ravel()
    for place, (axes, column) in enumerate(zip(grid, columns, strict=False)):
        plot_effect(model, data.X, data.y, column, max_rows=MAX_ROWS, n_grid=N_GRID, ax=axes)
        axes.set_title("", loc="left")  # the caption says it once for all
        if place % across:
            axes.set_ylabel("")
    for axes in grid[len(columns) :]:
        axes.set_axis_off()
    return figure


def _interactions(model: Any, data: Prepared, columns: list[int]) -> Any:
    from matplotlib.figure import Figure

    from sobolev.plotting import plot_interactions

    size = len(columns)
    figure = Figure(figsize=(9.2, 2.0 + 0.5 * size), layout="constrained")
    plot_interactions(model, data.X, data.y, columns, max_rows=MAX_ROWS, ax=figure.subplots())
    return figure
