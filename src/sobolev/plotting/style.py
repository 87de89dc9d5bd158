"""What the pictures share: colours, axes, and names as they are in the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from colorsys import hls_to_rgb
from typing import TYPE_CHECKING, Any

import numpy as np

from sobolev._typing import Array, Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, safe for colour-blind readers; brown stands in for its pale yellow.
SELECTED, OTHER, ACCENT = "#0072B2", "#B8BDC4", "#D55E00"
CYCLE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#7F4F24"),
)
INK, BAND = "#444444", "#E9EDF2"
# Lines of a grid, and cells without a value.
GRID, BLANK = "#EEF0F3", "#E3E6EA"
# Light forms of the colours of selected features and of accents, for areas.
SELECTED_AREA, ACCENT_AREA = "#DCEAF5", "#FBE9DC"
# Number of characters of a name; longer names lose their middle.
MAX_NAME = 32
# Shares of the end in a name without its middle; the first that keeps most names apart is taken.
END_SHARES = (0.5, 0.7, 0.85, 0.3)
# Size of the smallest readable text, in points.
MIN_FONT = 7.0


def make_axes(ax: Axes | None, height: float, width: float = 7.0) -> Axes:
    """The given axes, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, min(height, 14.0)), layout="constrained")[1]


def shown_name(name: Any, most: int = MAX_NAME) -> str:
    """A name on one line, not too long, in which a dollar sign does not start a formula."""
    return _shortened(name, most).replace("$", r"\$")


def _shortened(name: Any, most: int, tag: str = "", share: float = 0.5) -> str:
    """A long name without its middle, or with a tag for its end; ``share`` is that of the end."""
    text = " ".join(str(name).split())
    if len(text) <= most:
        return text
    end = tag or text[-int(share * (most - 1)) :]
    return f"{text[: most - 1 - len(end)]}…{end}"


def shown_names(feature_names: Sequence[str] | None, d: int, most: int = MAX_NAME) -> list[str]:
    """A name for each of d columns."""
    names = [f"x{j}" for j in range(d)] if feature_names is None else list(feature_names)
    if len(names) != d:
        raise ValueError(f"feature_names has {len(names)} names for {d} features; give one each.")
    found = [[_shortened(name, most, share=share) for name in names] for share in END_SHARES]
    short = max(found, key=lambda each: len(set(each)))  # of equal ones the first
    counts = Counter(short)
    for j, name in enumerate(names):
        if counts[short[j]] > 1:  # told apart by their middle only: by position, then
            short[j] = _shortened(name, most, tag=f"#{j}")
    return [text.replace("$", r"\$") for text in short]


def cycle(count: int) -> list[str]:
    """As many different colours as asked for: the palette or, if it is too small, hues in turn."""
    if count <= len(CYCLE):
        return list(CYCLE[:count])
    found = []
    for i in range(count):  # neighbours differ in lightness, too
        shade = hls_to_rgb(0.55 + i / count, (0.36, 0.58)[i % 2], 0.7)
        found.append("#" + "".join(f"{round(255 * part):02X}" for part in shade))
    return found


def clean(ax: Axes, title: str | None = None) -> None:
    """A quiet frame at the left and below only, and a title; no text is set by TeX."""
    if title is not None:
        ax.set_title(title, loc="left", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(INK)
    ax.tick_params(color=INK)
    set_plainly(ax)


def legend(ax: Axes, *entries: Any, title: str | None = None, **options: Any) -> None:
    """A legend without a frame, beside the axes by default."""
    look: dict[str, Any] = {"frameon": False, "fontsize": 8, "title_fontsize": 8}
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} | options
    ax.legend(*entries, title=title, alignment="left", **look, **place)


def set_plainly(ax: Axes) -> None:
    """Keep TeX, which would read names as commands, away from the texts of the axes."""
    from matplotlib import rcParams
    from matplotlib.text import Text

    if rcParams["text.usetex"]:
        for text in ax.findobj(Text):
            text.set_usetex(False)


def size_inches(ax: Axes) -> tuple[float, float]:
    """Width and height, before names and labels take their room."""
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width / dpi), float(box.height / dpi)


def fitting_rows(ax: Axes) -> int:
    """Number of lines of the smallest readable text that fit into the height."""
    return max(1, int(72 * size_inches(ax)[1] / (1.15 * MIN_FONT)))


def row_font(ax: Axes, n_rows: int) -> float:
    """The font size, in points, at which ``n_rows`` lines of text fit into the height."""
    return float(np.clip(72 * size_inches(ax)[1] / (1.15 * max(n_rows, 1)), MIN_FONT, 10.0))


def count_of(count: int, noun: str) -> str:
    """A number with its noun: ``1 feature``, ``3,000 features``."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def check_mask(name: str, mask: Any, d: int) -> Mask:
    """An array with True or False for each feature."""
    found = np.asarray(mask)
    if found.dtype != bool or found.shape != (d,):
        raise ValueError(
            f"{name} must hold True or False for each of {d} features; got {found.dtype} of shape "
            f"{found.shape}."
        )
    return found


def check_vector(name: str, values: Any) -> Array:
    """An array with one number for each feature."""
    found = np.asarray(values, dtype=float)
    if found.ndim != 1 or not found.size:
        raise ValueError(f"{name} must hold one number for each feature; got shape {found.shape}.")
    return found
