import re
from xml.etree import ElementTree

import numpy as np
import pytest

from sobolev.plotting import PartialEffect
from sobolev.report.drawings import nice_ticks, short
from sobolev.report.effects import (
    draw_effect,
    draw_interactions,
    effect_limits,
)

NASTY = '<script>alert(1)</script>"&'


def parsed(drawing, words="words"):
    """The element as a tree: it is well formed, or this fails."""
    return ElementTree.fromstring(drawing.element(words))


def effect(grid, n_labels=1, values=None, feature="dose", is_classes=False):
    grid = np.asarray(grid, dtype=float)
    means = np.array([np.sin(grid + k) for k in range(n_labels)])
    values = np.repeat(grid, 3) if values is None else values
    labels = [f"label {k}" for k in range(n_labels)]
    return PartialEffect(feature, grid, means, means - 0.5, means + 0.5, labels, is_classes, values)


def points(element):
    return np.array([[float(v) for v in pair.split(",")] for pair in element.get("points").split()])


def test_a_curve_goes_where_the_effect_goes():
    rng = np.random.default_rng(0)
    one = effect(np.linspace(-2, 2, 13), values=rng.uniform(-2, 2, 500))
    limits = effect_limits([one])
    tree = parsed(draw_effect(one, limits))
    (curve,) = tree.findall("polyline")
    place = points(curve)
    assert np.all(np.diff(place[:, 0]) > 0)
    # Up on the page is less: the highest point of the curve is the largest mean.
    assert place[:, 1].argmin() == one.means[0].argmax()
    np.testing.assert_allclose(np.corrcoef(place[:, 1], one.means[0])[0, 1], -1, atol=1e-3)
    (band,) = tree.findall("polygon")
    assert len(points(band)) == 2 * 13
    assert points(band)[:, 1].min() < place[:, 1].min()
    assert len(tree.find("path").get("d").split("M")) > 50


def test_zero_is_a_line_and_the_axis_holds_everything():
    one = effect(np.linspace(0.1, 1, 13), values=np.linspace(0.1, 1, 50))
    low, high = effect_limits([one, effect([0.0, 1.0])])
    assert low < min(0, one.lower.min()) < max(0, one.upper.max()) < high
    tree = parsed(draw_effect(one, (low, high)))
    (zero,) = [line for line in tree.findall("line") if line.get("class") == "zero"]
    labelled = [t for t in tree.findall("text") if t.text == "0"]
    assert abs(float(labelled[0].get("y")) - 4 - float(zero.get("y1"))) < 0.2


def test_few_values_are_points_with_their_shares():
    one = effect([0.0, 1.0], values=np.array([0.0, 0.0, 0.0, 1.0]))
    tree = parsed(draw_effect(one, effect_limits([one])))
    assert len(tree.findall("circle")) == 2
    assert {"0 (75 %)", "1 (25 %)"} <= {t.text for t in tree.findall("text")}
    assert not tree.findall("polygon")


def test_classes_have_a_curve_and_a_name_each():
    rng = np.random.default_rng(0)
    one = effect(np.linspace(0, 1, 13), 3, rng.uniform(size=200), is_classes=True)
    tree = parsed(draw_effect(one, effect_limits([one])))
    kinds = [curve.get("class") for curve in tree.findall("polyline")]
    assert kinds == ["curve c0", "curve c1", "curve c2"]
    assert {"label 0", "label 1", "label 2", "witness of the class"} <= {
        t.text for t in tree.findall("text")
    }
    assert not tree.findall("polygon")


def test_the_map_is_darkest_at_the_strongest_pair():
    strengths = np.array([[0, 0.2, 0.05], [0.2, 0, 0.0], [0.05, 0.0, 0]])
    tree = parsed(draw_interactions(["a", "b", "c"], strengths, 0.2))
    heat = [float(r.get("fill-opacity")) for r in tree.findall("rect") if r.get("class") == "heat"]
    assert heat == [1.0, 0.25, 1.0, 0.0, 0.25, 0.0]
    assert sum(r.get("class") == "blank" for r in tree.findall("rect")) == 3
    said = [t.text for t in tree.findall("text")]
    assert said.count("0.20") == 2
    assert said.count("0.05") == 2
    assert said.count("0") == 2


def test_user_text_is_escaped_and_cut():
    one = effect(np.linspace(0, 1, 13), values=np.linspace(0, 1, 99), feature=NASTY)
    for drawing in (
        draw_effect(one, effect_limits([one])),
        draw_interactions([NASTY, "b" * 200], np.zeros((2, 2)), 1.0),
    ):
        assert "<script" not in drawing.element(NASTY)
        tree = parsed(drawing, NASTY)
        assert tree.get("aria-label") == NASTY
        texts = [t.text for t in tree.findall("text")]
        assert any(text.startswith("<script>") for text in texts)
        assert max(map(len, texts)) <= 20


def test_nothing_is_styled_by_attributes_that_the_page_forbids():
    one = effect(np.linspace(0, 1, 13), values=np.linspace(0, 1, 99))
    assert not re.search(r"\sstyle=", draw_effect(one, effect_limits([one])).element("w"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-1.2, 1.3, [-1, -0.5, 0, 0.5, 1]),
        (3, 1003, [200, 400, 600, 800, 1000]),
        (-3e-7, 2e-7, [-3e-7, -2e-7, -1e-7, 0, 1e-7, 2e-7]),
        (5, 5, [5]),
    ],
)
def test_ticks_are_round_and_few(low, high, expected):
    np.testing.assert_allclose(nice_ticks(low, high), expected, atol=1e-20)


def test_a_long_name_keeps_its_ends():
    assert short("a b\n c") == "a b c"
    assert short("x" * 30 + "end") == "x" * 9 + "…" + "xxxxxxend"


def test_a_flat_effect_is_drawn():
    flat = effect([0.0, 1.0])
    flat = PartialEffect(
        "x", flat.grid, 0 * flat.means, 0 * flat.lower, 0 * flat.upper, ["y"], False, flat.values
    )
    assert effect_limits([flat]) == (-1.0, 1.0)
    assert len(parsed(draw_effect(flat, (-1.0, 1.0))).findall("circle")) == 2
