"""Figures in the page: well-formed, in the colours of the theme, without styles."""

import re
import warnings
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure

from sobolev.plotting import ACCENT, CYCLE, OTHER, SELECTED
from sobolev.report.svg import THEME, inline_svg

NASTY = '<script>alert(1)</script>"&'


def figure(name="dose", n=20):
    ax = Figure(figsize=(4, 3)).subplots()
    ax.plot(np.arange(n), np.arange(n), "o", color=SELECTED)
    ax.plot([0, n], [0, 1], color=CYCLE[2])
    ax.fill_between([0, 1], [1, 2], color=ACCENT)
    ax.axhline(0.5, color=OTHER)
    ax.set_title(name)
    return ax.figure


def test_colours_are_variables_of_the_page_and_others_stay():
    found = inline_svg(figure(), "words")
    for variable in ("--on", "--bound", "--off", "--ink"):
        assert f"var({variable})" in found
    for color in (SELECTED, ACCENT, OTHER):
        assert color.lower() not in found
    assert CYCLE[2].lower() in found


def test_every_variable_of_the_theme_is_in_the_style_sheet():
    from importlib.resources import files

    css = (files("sobolev.report") / "page.css").read_text(encoding="utf-8")
    for name in THEME.values():
        assert f"  {name}: light-dark(" in css


def test_the_element_is_well_formed_and_has_no_style():
    found = inline_svg(figure(NASTY), NASTY)
    tree = ElementTree.fromstring(found)
    assert tree.get("aria-label") == NASTY
    assert NASTY in [text.text for text in tree.iter("text")]
    assert "<script" not in found
    assert "style" not in found
    assert "font-family" not in found
    assert "xlink" not in found


def test_references_point_to_elements_and_two_figures_share_none():
    ids = []
    for words in ("one", "two"):
        found = inline_svg(figure(), words)
        own = re.findall(r'id="(\w+)"', found)
        used = re.findall(r'(?:href="#|url\(#)(\w+)', found)
        assert set(used) == set(own)
        ids += own
    assert len(set(ids)) == len(ids)


def test_marks_that_look_alike_share_their_attributes():
    tree = ElementTree.fromstring(inline_svg(figure(n=50), "words"))
    marks = [g for g in tree.iter("g") if len(g.findall("use")) == 50]
    assert len(marks) == 1
    assert marks[0].get("fill") == "var(--on)"
    assert set(marks[0].find("use").keys()) == {"href", "x", "y"}


def test_letters_without_a_glyph_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "漢字" in inline_svg(figure("漢字"), "words")


def test_a_figure_is_the_same_each_time():
    assert inline_svg(figure(), "words") == inline_svg(figure(), "words")
