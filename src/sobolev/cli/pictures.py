"""The pictures of the report: effects of the strongest features, and which act together."""

from __future__ import annotations

import io
from typing import Any

from sobolev.cli.selecting import Found
from sobolev.frames import Prepared
from sobolev.report import Picture, SelectionResult

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


def load_drawing() -> None:
    """Draw a picture that nobody sees, beside the fit: modules and fonts are at hand at the end."""
    from matplotlib.figure import Figure

    import sobolev.plotting  # noqa: F401

    figure = Figure(layout="compressed")
    figure.colorbar(figure.subplots().imshow([[0.0, 1.0]]))
    figure.savefig(io.BytesIO(), format="svg")


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
    effects = _effects(found.model, data, single[:MAX_EFFECTS])
    classes = effects[0].axes[0].get_ylabel().startswith("witness of the class")
    pictures = [Picture("Effects", CLASSES if classes else SEVERAL, effects)]
    together = single[:MAX_TOGETHER]
    if len(together) > 1:
        pictures.append(
            Picture("Interactions", TOGETHER, _interactions(found.model, data, together))
        )
    return tuple(pictures)


def _effects(model: Any, data: Prepared, columns: list[int]) -> tuple[Any, ...]:
    """A figure for each column, so that a narrow page can stack them; one scale for all."""
    from matplotlib.figure import Figure

    from sobolev.plotting import plot_effect

    figures = [Figure(figsize=(4.6, 3.3)) for _ in columns]
    panels = [figure.subplots() for figure in figures]
    for axes, column in zip(panels, columns, strict=True):
        plot_effect(model, data.X, data.y, column, max_rows=MAX_ROWS, n_grid=N_GRID, ax=axes)
        axes.set_title("", loc="left")  # the caption says it once for all
    low, high = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for figure, axes in zip(figures, panels, strict=True):
        axes.set_ylim(min(low), max(high))
        if axes.get_legend() is None:  # quicker than a layout, and the same for all
            figure.subplots_adjust(left=0.2, right=0.97, bottom=0.19, top=0.96)
        else:
            figure.set_layout_engine("constrained")
            _settle(figure)
    return tuple(figures)


def _interactions(model: Any, data: Prepared, columns: list[int]) -> Any:
    from matplotlib.figure import Figure

    from sobolev.plotting import plot_interactions

    size = 1.7 + 0.5 * len(columns)
    figure = Figure(figsize=(size + 1.4, size), layout="compressed")
    plot_interactions(model, data.X, data.y, columns, max_rows=MAX_ROWS, ax=figure.subplots())
    _settle(figure)
    return figure


def _settle(figure: Any) -> None:
    """Put everything in its place, so that saving does not look for places again."""
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")
