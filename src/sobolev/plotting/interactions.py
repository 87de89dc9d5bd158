"""Which features act together: mixed second derivatives of the witness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._parameters import check_count, check_number
from sobolev._typing import Array
from sobolev.plotting._style import INK, clean, make_axes, row_font, set_plainly, shown_name
from sobolev.plotting._witness import Rows, read_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState

# Up to so many features each cell has its number.
MAX_NUMBERS = 12
# The colours reach at least this share of the standard deviation of the witness.
SCALE = 0.25
# The distance of differences, in standard deviations.
STEP = 0.5


def interaction_strengths(
    estimator: Any,
    X: Any,
    y: Any,
    features: Sequence[Any] | None = None,
    *,
    step: float = STEP,
    max_rows: int = 200,
    random_state: RandomState = 0,
) -> Array:
    r"""Mean absolute mixed second derivatives of the witness, zero for features that only add up.

    .. math:: I_{jk} = E \left| \frac{\partial^2 f(x, y)}{\partial x_j \partial x_k} \right|

    with columns in standard deviations. The derivative is a difference over ``step``: a network of
    linear pieces has no second derivatives, but bends over a distance. A column of two values is
    moved from one to the other.

    Parameters
    ----------
    estimator : fitted ConvexSIC or NeuralSIC
    X : array-like or DataFrame of shape (n, d)
    y : array-like of shape (n,) or (n, q)
    features : sequence of int or str, optional
        Positions or names of the columns; by default the selected ones.
    step : float, default=0.5
        The distance of the differences, in standard deviations.
    max_rows : int, default=200
        Rows that are averaged over, drawn at random if there are more.
    random_state : int, Generator, RandomState or None, default=0
        Decides them.

    Returns
    -------
    array of shape (k, k)
        Symmetric, with a diagonal of zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.plotting import interaction_strengths
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> sic = ConvexSIC(lam=0.01).fit(X, y)
    >>> found = interaction_strengths(sic, X, y, [0, 1, 2])
    >>> bool(found[0, 1] > 3 * found[0, 2])
    True
    """
    rows, positions = _asked(estimator, X, y, features)
    return _strengths(rows, _sample(rows, max_rows, random_state), positions, step)


def interaction_map(
    estimator: Any, X: Any, y: Any, features: Sequence[Any], *, max_rows: int = 200
) -> tuple[Array, float]:
    """The strengths of :func:`interaction_strengths`, and that of the full colour of a map."""
    rows, positions = _asked(estimator, X, y, features)
    drawn = _sample(rows, max_rows, 0)
    strengths = _strengths(rows, drawn, positions, STEP)
    return strengths, _full_colour(strengths, drawn)


def plot_interactions(
    estimator: Any,
    X: Any,
    y: Any,
    features: Sequence[Any] | None = None,
    *,
    step: float = STEP,
    max_rows: int = 200,
    max_features: int = 20,
    random_state: RandomState = 0,
    ax: Axes | None = None,
) -> Axes:
    """Map of the interactions between features, see :func:`interaction_strengths`.

    Parameters
    ----------
    estimator, X, y, features, step, max_rows, random_state
        See :func:`interaction_strengths`.
    max_features : int, default=20
        If there are more features, those of the largest importances are shown.
    ax : matplotlib Axes, optional
        Where to draw; the colour bar takes some of its room.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev import ConvexSIC
    >>> from sobolev.plotting import plot_interactions
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> y = X[:, 0] * X[:, 1] + X[:, 2]
    >>> ax = plot_interactions(ConvexSIC(lam=0.01).fit(X, y), X, y, [0, 1, 2])
    >>> ax.get_title(loc="left")
    'strongest: x0 × x1'
    """
    check_count("max_features", max_features)
    rows, positions = _asked(estimator, X, y, features)
    asked = len(positions)
    if asked > max_features:
        eta = np.asarray(estimator.feature_importances_)
        kept = np.argsort(-eta[positions], kind="stable")[:max_features]
        positions = [positions[i] for i in sorted(kept.tolist())]
    drawn = _sample(rows, max_rows, random_state)
    strengths = _strengths(rows, drawn, positions, step)
    top = _full_colour(strengths, drawn)
    names = [shown_name(rows.names[j], 20) for j in positions]
    k = len(positions)
    longest = 0.07 * max(map(len, names))
    height = max(3.6, 1.6 + 0.7 * longest + 0.36 * k)
    ax = make_axes(ax, height=height, width=height + 1.2 + 0.3 * longest)
    masked = np.ma.masked_array(strengths, mask=np.eye(k, dtype=bool))
    image = ax.imshow(masked, cmap=_colors(), vmin=0, vmax=top)
    if k <= MAX_NUMBERS:
        _numbers(ax, strengths, top)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02)
    bar.set_label("interaction strength\n(mean |mixed derivative|)", fontsize=8)
    bar.outline.set_visible(False)
    size = row_font(ax, k)
    short = max(map(len, names)) <= 4
    slant = {} if short else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(k), names, fontsize=size, **slant)  # type: ignore[arg-type]
    ax.set_yticks(range(k), names, fontsize=size)
    ax.tick_params(length=0)
    first, second = np.unravel_index(int(strengths.argmax()), strengths.shape)
    pair = [shown_name(rows.names[positions[i]], 16) for i in (first, second)]
    title = f"strongest: {pair[0]} × {pair[1]}" if strengths.any() else "no interaction"
    more = f" · {k} of {asked} features" if asked > k else ""
    ax.set_title(title + more, loc="left", fontsize=11)
    set_plainly(bar.ax)
    clean(ax)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax


def _asked(estimator: Any, X: Any, y: Any, features: Any) -> tuple[Rows, list[int]]:
    rows = read_rows(estimator, X, y)
    if features is None:
        features = np.flatnonzero(estimator.support_).tolist()
    if isinstance(features, str):
        raise TypeError(f"features must be a list of columns; got {features!r}.")
    positions = [rows.position(feature) for feature in features]
    if len(set(positions)) < len(positions):
        raise ValueError("features names a column twice; give each once.")
    if len(positions) < 2:
        raise ValueError(
            f"an interaction needs two features or more; got {len(positions)}. Pass features."
        )
    return rows, positions


def _sample(rows: Rows, max_rows: int, random_state: RandomState) -> Rows:
    from sobolev._random import check_generator

    check_count("max_rows", max_rows)
    return rows.sample(max_rows, check_generator(random_state))


def _strengths(rows: Rows, drawn: Rows, positions: list[int], step: float) -> Array:
    check_number("step", step, positive=True)
    scale = rows.X.std(axis=0)
    ends = [_ends(rows.X[:, j], drawn.X[:, j], step * scale[j]) for j in positions]
    found = np.zeros((len(positions), len(positions)))
    moving = [i for i, j in enumerate(positions) if scale[j] > 0]  # a constant column does nothing
    pairs = list(combinations(moving, 2))
    corners = [
        {positions[a]: at_a, positions[b]: at_b}
        for a, b in pairs
        for at_a in ends[a]
        for at_b in ends[b]
    ]
    f = drawn.witness(corners).reshape(len(pairs), 4, -1)
    for (a, b), mixed in zip(pairs, f[:, 0] - f[:, 1] - f[:, 2] + f[:, 3], strict=True):
        area = np.prod([(ends[i][1] - ends[i][0]) / scale[positions[i]] for i in (a, b)], axis=0)
        found[a, b] = found[b, a] = np.mean(np.abs(mixed) / area)
    return found


def _full_colour(strengths: Array, drawn: Rows) -> float:
    """The strength at the end of the colours: a map of noise stays pale."""
    return max(float(strengths.max()), SCALE * float(drawn.witness([{}]).std())) or 1.0


def _ends(column: Array, drawn: Array, step: float) -> tuple[Array, Array]:
    """Where a column is moved to: half a step down and up, or its two values."""
    values = np.unique(column)
    if values.size == 2:
        return np.full(drawn.shape, values[0]), np.full(drawn.shape, values[1])
    return drawn - step / 2, drawn + step / 2


def _colors() -> Any:
    from matplotlib import colormaps

    return colormaps["Blues"].with_extremes(bad="#E3E6EA")


def _numbers(ax: Axes, strengths: Array, top: float) -> None:
    size = 0.8 * row_font(ax, len(strengths))
    digits = max(0, 1 - int(np.floor(np.log10(top))))
    for (a, b), value in np.ndenumerate(strengths):
        if a != b:
            color = "white" if value > 0.6 * top else INK
            said = f"{value:.{digits}f}" if round(value, digits) else "0"
            ax.text(b, a, said, ha="center", va="center", fontsize=min(size, 9), color=color)
