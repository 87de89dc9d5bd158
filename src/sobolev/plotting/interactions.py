"""Which features act together: mixed second derivatives of the witness."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._parameters import check_count, check_number
from sobolev._typing import Array
from sobolev.plotting._rows import Rows, read_rows
from sobolev.plotting.style import (
    BLANK,
    SELECTED,
    clean,
    make_axes,
    row_font,
    set_plainly,
    shown_name,
    shown_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sobolev._random import RandomState

# Up to this many features each cell has its number.
MAX_NUMBERS = 12
# The colours reach at least this share of the standard deviation of the witness.
SCALE = 0.25
# The title if no pair acts together.
NO_INTERACTION = "no interaction"
# Distance of the differences, in standard deviations.
STEP = 0.5


def interaction_strengths(
    selector: Any,
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

    with columns in standard deviations. The derivative is a difference over ``step``, because a
    piecewise linear network has no second derivative at a point. A column of two values is moved
    from one to the other.

    Parameters
    ----------
    selector : fitted ConvexSIC, NeuralSIC or HRTSelector
        The critic of an HRTSelector is that of its last fit.
    X : array-like or DataFrame of shape (n, d)
    y : array-like of shape (n,) or (n, q)
    features : sequence of int or str, optional
        Positions or names of the columns; by default the selected ones.
    step : float, default=0.5
        Distance of the differences, in standard deviations.
    max_rows : int, default=200
        Number of rows to average over, drawn at random if there are more.
    random_state : int, Generator, RandomState or None, default=0
        Decides which rows are drawn.

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
    rows, positions = _asked(selector, X, y, features)
    return _strengths(rows, positions, step, max_rows, random_state)[0]


def plot_interactions(
    selector: Any,
    X: Any,
    y: Any,
    features: Sequence[Any] | None = None,
    *,
    step: float = STEP,
    max_rows: int = 200,
    max_features: int = 20,
    random_state: RandomState = 0,
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Map of the interactions between features, see :func:`interaction_strengths`.

    Parameters
    ----------
    selector, X, y, features, step, max_rows, random_state
        See :func:`interaction_strengths`.
    max_features : int, default=20
        If there are more features, those with the largest importances are shown.
    colorbar : bool, default=True
        Whether to draw the colour bar, which takes some of the room of ``ax``.
    ax : matplotlib Axes, optional
        Where to draw.

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
    rows, positions = _asked(selector, X, y, features)
    asked = len(positions)
    if asked > max_features:
        eta = rows.critic.feature_importances_
        kept = np.argsort(-eta[positions], kind="stable")[:max_features]
        positions = [positions[i] for i in sorted(kept.tolist())]
    strengths, top = _strengths(rows, positions, step, max_rows, random_state)
    names = shown_names([rows.names[j] for j in positions], len(positions), 20)
    k = len(positions)
    longest = 0.07 * max(map(len, names))
    height = max(3.6, 1.6 + 0.7 * longest + 0.36 * k)
    ax = make_axes(ax, height=height, width=height + 1.2 + 0.3 * longest)
    mesh = _cells(ax, strengths, top)
    if k <= MAX_NUMBERS:
        _numbers(ax, strengths, top)
    if colorbar:
        bar = ax.figure.colorbar(mesh, ax=ax, shrink=0.8, pad=0.02)
        bar.set_label("interaction strength\n(mean |mixed derivative|)", fontsize=8)
        bar.outline.set_visible(False)
        set_plainly(bar.ax)
    size = row_font(ax, k)
    short = max(map(len, names)) <= 4
    slant = {} if short else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(k), names, fontsize=size, **slant)  # type: ignore[arg-type]
    ax.set_yticks(range(k), names, fontsize=size)
    ax.tick_params(length=0)
    first, second = np.unravel_index(int(strengths.argmax()), strengths.shape)
    pair = [shown_name(rows.names[positions[i]], 16) for i in (first, second)]
    is_any = round(float(strengths.max()), _digits(top)) > 0  # not only rounding errors
    title = f"strongest: {pair[0]} × {pair[1]}" if is_any else NO_INTERACTION
    more = f" · {k} of {asked} features" if asked > k else ""
    clean(ax, title + more)
    ax.spines[["left", "bottom"]].set_visible(False)
    return ax


def _asked(selector: Any, X: Any, y: Any, features: Any) -> tuple[Rows, list[int]]:
    rows = read_rows(selector, X, y)
    if features is None:
        features = np.flatnonzero(selector.support_).tolist()
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


def _strengths(
    rows: Rows, positions: list[int], step: float, max_rows: int, random_state: RandomState
) -> tuple[Array, float]:
    """The strengths, and the strength of the full colour: a map of noise stays pale."""
    from sobolev._random import check_generator

    check_number("step", step, positive=True)
    check_count("max_rows", max_rows)
    drawn = rows.sample(max_rows, check_generator(random_state))
    evaluator = drawn.evaluator()
    scale = rows.X.std(axis=0)
    ends = {j: _ends(rows.X[:, j], drawn.X[:, j], step * scale[j]) for j in positions}
    found = np.zeros((len(positions), len(positions)))
    moving = [i for i, j in enumerate(positions) if scale[j] > 0]  # a constant column does nothing
    for a, b in combinations(moving, 2):
        pair = np.array([positions[a], positions[b]])
        low, high = np.stack([ends[j] for j in pair], axis=2)
        # The corners of a rectangle: low low, low high, high low, high high.
        corners = [np.where(up, high, low) for up in ([0, 0], [0, 1], [1, 0], [1, 1])]
        f = evaluator.each(pair, np.stack(corners, axis=1)).astype(float)
        mixed = f[:, 0] - f[:, 1] - f[:, 2] + f[:, 3]
        area = np.prod((high - low) / scale[pair], axis=1)
        found[a, b] = found[b, a] = np.mean(np.abs(mixed) / area)
    witness = evaluator.each(np.array([0]), drawn.X[:, None, :1])
    return found, max(float(found.max()), SCALE * float(witness.std())) or 1.0


def _ends(column: Array, drawn: Array, step: float) -> tuple[Array, Array]:
    """Where a column is moved to: half a step down and up, or its two values."""
    values = np.unique(column)
    if values.size == 2:
        return np.full(drawn.shape, values[0]), np.full(drawn.shape, values[1])
    return drawn - step / 2, drawn + step / 2


def _cells(ax: Axes, strengths: Array, top: float) -> Any:
    """Cells in the colour of selected features, the more opaque the stronger."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    shades = [to_rgba(SELECTED, 0.0), to_rgba(SELECTED, 1.0)]
    colors = LinearSegmentedColormap.from_list("strength", shades).with_extremes(bad=BLANK)
    masked = np.ma.masked_array(strengths, mask=np.eye(len(strengths), dtype=bool))
    edges = np.arange(len(strengths) + 1) - 0.5
    limits: dict[str, Any] = {"vmin": 0, "vmax": top, "edgecolors": "white", "linewidth": 1.5}
    mesh = ax.pcolormesh(edges, edges, masked, cmap=colors, **limits)
    ax.set(aspect="equal", ylim=(edges[-1], edges[0]))
    return mesh


def _digits(top: float) -> int:
    """Decimals with which strengths are shown."""
    return max(0, 1 - int(np.floor(np.log10(top))))


def _numbers(ax: Axes, strengths: Array, top: float) -> None:
    size = 0.8 * row_font(ax, len(strengths))
    digits = _digits(top)
    for (a, b), value in np.ndenumerate(strengths):
        if a != b:
            color = "white" if value > 0.6 * top else "black"
            said = f"{value:.{digits}f}" if round(value, digits) else "0"
            ax.text(b, a, said, ha="center", va="center", fontsize=min(size, 9), color=color)
