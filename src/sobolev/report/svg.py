"""Figures as part of the page: vector graphics whose colours follow its light and dark theme."""

from __future__ import annotations

import io
import re
import warnings
from html import escape
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sobolev.plotting import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colours of the pictures, and the variables of the style sheet that stand for them.
THEME = {
    style.SELECTED: "--on",
    style.OTHER: "--off",
    style.ACCENT: "--bound",
    style.INK: "--soft",
    style.BAND: "--band",
    style.GRID: "--line",
    style.BLANK: "--line",
    style.SELECTED_AREA: "--on-area",
    style.ACCENT_AREA: "--bound-area",
    "#000000": "--ink",
    "#ffffff": "--card",
}
VARIABLES = {color.lower(): f"var({name})" for color, name in THEME.items()}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def inline_svg(figure: Figure, words: str) -> str:
    """A figure as an SVG element of the page.

    Styles become attributes, because the page forbids styles of its elements. Letters stay text in
    the font of the page.

    Parameters
    ----------
    figure : matplotlib Figure
    words : str
        What the figure shows, for readers who do not see it. Figures of a page have different
        words.

    Returns
    -------
    str
    """
    root = ElementTree.fromstring(_drawn(figure, words))
    used = set(re.findall(r"#(\w+)", " ".join(_references(root))))
    for parent in root.iter():
        for child in list(parent):
            child.tag = child.tag.rpartition("}")[2]
            if child.tag == "style":
                parent.remove(child)
    for element in root.iter():
        _use_attributes(element, used)
    for group in root.iter("g"):
        _share_attributes(group)
    body = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    body = re.sub(r">\s+<", "><", body).strip()
    box = root.get("viewBox", "")
    width = 4 / 3 * float(box.split()[2])
    return (
        f'<svg class="drawing" viewBox="{box}" width="{width:g}" role="img" '
        f'aria-label="{escape(words)}">{body}</svg>'
    )


def color_dot(color: str) -> str:
    """A dot of a colour of the pictures, for a key beside them."""
    fill = VARIABLES.get(color.lower(), color)
    return (
        '<svg viewBox="0 0 10 10" width="10" aria-hidden="true">'
        f'<circle cx="5" cy="5" r="5" fill="{escape(fill)}"/></svg>'
    )


def _drawn(figure: Figure, salt: str) -> str:
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the browser has other fonts
        FigureCanvasSVG(figure).print_svg(buffer, metadata=NO_METADATA)
    return buffer.getvalue()


def _references(root: ElementTree.Element) -> list[str]:
    """Attributes that point to other elements."""
    return [v for e in root.iter() for k, v in e.items() if k.endswith("href") or "url(" in v]


def _use_attributes(element: ElementTree.Element, used: set[str]) -> None:
    """Write the style and the rest of an element as short attributes."""
    for name, value in list(element.items()):
        del element.attrib[name]
        if name == "style":
            for rule in filter(None, value.split("; ")):
                key, _, content = rule.partition(": ")
                if key != "font-family":
                    element.set(key, VARIABLES.get(content, content))
        elif name == "d":
            element.set(name, re.sub(r"(\.\d\d)\d+", r"\1", " ".join(value.split())))
        elif name != "id" or value in used:
            element.set(name.rpartition("}")[2], value)


def _share_attributes(group: ElementTree.Element) -> None:
    """Give what all marks of a group have in common to the group."""
    marks = list(group)
    if len(marks) < 2 or any(mark.tag != "use" for mark in marks):
        return
    for name, value in list(marks[0].items()):
        if name not in ("x", "y", "href") and all(mark.get(name) == value for mark in marks):
            group.set(name, value)
            for mark in marks:
                del mark.attrib[name]
