"""Partial effects: how the witness moves with one feature, averaged over rows."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._parameters import check_count
from sobolev._typing import AnyArray, Array, Index
from sobolev.plotting._rows import NoEffectsError, Rows, read_rows

if TYPE_CHECKING:
    from sobolev._random import RandomState

__all__ = ["NoEffectsError", "PartialEffect", "partial_effect", "rug_values"]

# A column with at most this many values is evaluated at each of them.
MAX_POINTS = 10
# Quantiles of a numeric response between which the witness is compared.
LOW, HIGH = 0.1, 0.9
# Share of the rows that the grid leaves out at either end.
TAIL = 0.02
# Smallest correlation with the first at which columns move as one.
AS_ONE = 0.9
# Number of values of the feature that a picture marks.
MAX_RUG = 100
# Share of the rows between lower and upper.
BAND_SHARE = 0.8
# Responses at which the witness is evaluated, with their weights.
Levels = list[tuple[AnyArray, float]]


@dataclass(frozen=True)
class PartialEffect:
    """Result of :func:`partial_effect`.

    Attributes
    ----------
    feature : str
        Name of the feature.
    grid : array of shape (g,)
        Values of the feature.
    means : array of shape (k, g)
        Mean effect at each value, for each response or class.
    lower, upper : array of shape (k, g)
        The effects of 80 % of the rows lie between them, each moved to the same mean over the grid:
        they are near ``means`` if the effect does not depend on other features.
    labels : list of str
        Names of the responses or classes.
    is_classes : bool
        Whether there is a curve for each class.
    values : array of shape (n,)
        Values of the feature in the data.
    categories : tuple of str
        Names of the values 0, 1, ... of a category; empty for a number.
    """

    feature: str
    grid: Array
    means: Array
    lower: Array
    upper: Array
    labels: list[str]
    is_classes: bool
    values: Array
    categories: tuple[str, ...] = ()


def partial_effect(
    selector: Any,
    X: Any,
    y: Any,
    feature: Any,
    *,
    n_grid: int = 25,
    max_rows: int = 200,
    random_state: RandomState = 0,
) -> PartialEffect:
    r"""The mean effect of a feature on the witness, at a grid of its values.

    The feature is set to each value v in a sample of rows. For a numeric response the effect is
    the mean of the difference

    .. math:: \frac{f(x_{j=v}, y_{0.9}) - f(x_{j=v}, y_{0.1})}{(y_{0.9} - y_{0.1}) / \mathrm{sd}(y)}

    between a high and a low response (quantiles of y): above zero where the feature makes high
    responses more likely. With the default encoding and ``rho=1`` it estimates the mean of y, in
    standard deviations from its overall mean, shrunk towards zero by the penalties. For labels it
    is the mean of f(x, c) for each class c: above zero where the class is more likely than overall.

    Parameters
    ----------
    selector : fitted ConvexSIC, NeuralSIC or HRTSelector
        The critic of an HRTSelector is that of its last fit.
    X : array-like or DataFrame of shape (n, d)
    y : array-like of shape (n,) or (n, q)
        Several numeric responses are moved one by one, the others at their medians.
    feature : int or str
        Position or name of the column; a category is evaluated at each of its values. Near copies
        that were tested together, by their joint name, move together along the first.
    n_grid : int, default=25
        Number of grid values, from the 2 % to the 98 % quantile of the column. A column with at
        most ten values is evaluated at each of them.
    max_rows : int, default=200
        Number of rows to average over, drawn at random if there are more.
    random_state : int, Generator, RandomState or None, default=0
        Decides which rows are drawn.

    Returns
    -------
    PartialEffect

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.plotting import partial_effect
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> sic = ConvexSIC(lam=0.01).fit(X, X[:, 1])
    >>> effect = partial_effect(sic, X, X[:, 1], feature=1)
    >>> bool((np.diff(effect.means[0]) > 0).all())
    True
    """
    from sobolev._random import check_generator

    check_count("n_grid", n_grid)
    check_count("max_rows", max_rows)
    rows = read_rows(selector, X, y)
    if isinstance(feature, Integral) and hasattr(selector, "table_"):
        feature = selector.table_.inputs[feature]
    name = str(feature)
    columns, categories = rows.sets.get(name, ([], ()))
    if categories:
        points = np.eye(len(categories))[:, -len(columns) :]  # two categories have one column
        column = rows.X[:, columns] @ np.arange(len(categories))[-len(columns) :]
    elif isinstance(feature, str) and name not in rows.names and name in _units(selector):
        columns = _units(selector)[name].tolist()
        if not move_as_one(rows.X[:, columns]):
            raise ValueError(f"feature {name!r} has several columns that do not move as one.")
        column = rows.X[:, columns[0]]
        points = _along_first(rows.X[:, columns], _grid(column, n_grid))
    else:
        columns = [rows.position(feature)]
        name, column = rows.names[columns[0]], rows.X[:, columns[0]]
        points = _grid(column, n_grid)[:, None]
    if rows.classes is None:
        labels, levels = rows.response_names, _response_levels(rows)
    else:
        labels = [str(label) for label in rows.classes]
        levels = [[(np.array([label]), 1.0)] for label in rows.classes]
    drawn = rows.sample(max_rows, check_generator(random_state))
    curves = np.stack([_curve(drawn, columns, points, weighted) for weighted in levels])
    tail = (1 - BAND_SHARE) / 2
    # Rows differ in their levels, which other features make; what is left are different shapes.
    shapes = curves - curves.mean(axis=2, keepdims=True) + curves.mean(axis=(1, 2), keepdims=True)
    return PartialEffect(
        feature=name,
        grid=np.arange(len(points), dtype=float) if categories else points[:, 0],
        means=curves.mean(axis=1),
        lower=np.quantile(shapes, tail, axis=1),
        upper=np.quantile(shapes, 1 - tail, axis=1),
        labels=labels,
        is_classes=rows.classes is not None,
        values=column,
        categories=categories,
    )


def _units(selector: Any) -> dict[str, Index]:
    """The columns that are tested together, by name."""
    from sobolev.summary import units_of

    fitted = getattr(selector, "encoded_", selector)
    return units_of(fitted) if hasattr(fitted, "feature_groups") else {}


def move_as_one(values: Array) -> bool:
    """Whether columns are so strongly correlated with the first that one axis shows them all."""
    whole = values[~np.isnan(values).any(axis=1)]
    if len(whole) < 3 or not np.ptp(whole, axis=0).all():
        return False
    r = np.atleast_2d(np.corrcoef(whole, rowvar=False))
    return bool((np.abs(r[0]) >= AS_ONE).all())


def _along_first(values: Array, grid: Array) -> Array:
    """The columns at values of the first, each on its regression line, (g, k)."""
    slope, intercept = np.polyfit(values[:, 0], values, 1)
    return np.asarray(np.outer(grid, slope) + intercept)


def _curve(rows: Rows, columns: list[int], points: Array, levels: Levels) -> Array:
    """The effect on each row at each of the points, (n, g)."""
    parts = [weight * rows.evaluator(y).at(np.array(columns), points) for y, weight in levels]
    return np.sum(parts, axis=0, dtype=float)


def _response_levels(rows: Rows) -> list[Levels]:
    """Each response at its low and high quantile, the others at their medians."""
    table, found = rows.numeric_responses(), []
    for k, column in enumerate(table.T):
        low, high = np.quantile(column, [LOW, HIGH])
        if low == high:
            low, high = column.min(), column.max()
        distance = (high - low) / column.std()
        levels = []
        for value, sign in ((high, 1.0), (low, -1.0)):
            row = np.median(table, axis=0, keepdims=True)
            row[0, k] = value
            levels.append((row[:, 0] if rows.one_response else row, sign / distance))
        found.append(levels)
    return found


def rug_values(values: Array) -> Array:
    """Values to mark below an effect: quantiles if there are many, without the tails."""
    shown = np.sort(values)
    if shown.size > MAX_RUG:
        shown = np.quantile(values, np.linspace(0, 1, MAX_RUG))
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return np.asarray(shown[(shown >= low) & (shown <= high)])


def _grid(column: Array, n_grid: int) -> Array:
    values = np.unique(column)
    if values.size == 1:
        raise ValueError("the feature is constant; it has no effect to show.")
    if values.size <= MAX_POINTS:
        return values
    low, high = np.quantile(column, [TAIL, 1 - TAIL])
    if low == high:
        low, high = values[0], values[-1]
    return np.linspace(low, high, n_grid)
