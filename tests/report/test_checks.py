import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import kstwo, norm

from sobolev.conditionals.diagnostics import ConditionalDiagnostics
from sobolev.inference.hrt import HRTResult
from sobolev.knockoffs.diagnostics import KnockoffDiagnostics
from sobolev.report.checks import band, draw_conditional, draw_knockoffs, misfit_scores, verdict
from sobolev.report.nulls import draw_null, null_limits

NASTY = '<script>alert(1)</script>"&'


def parsed(drawing):
    """The element as a tree: it is well formed, or this fails."""
    return ElementTree.fromstring(drawing.element("words"))


def texts(tree):
    return [text.text for text in tree.findall("text")]


def of_kind(tree, kind):
    return [item for item in tree.iter() if kind in (item.get("class") or "").split()]


def dots(path):
    return np.array(re.findall(r"M(-?\d+) (-?\d+)h0", path.get("d")), dtype=int)


def conditional(d=30, bad=(3,), n=400, names=None):
    """Diagnostics whose columns ``bad`` fail the first check, the others none."""
    rng = np.random.default_rng(0)
    pit = rng.uniform(size=(n, d))
    effects, q = np.full((d, 4), 0.04), np.full((d, 4), 0.9)
    effects[:, 3] = -0.3  # large, but chance
    for rank, j in enumerate(bad):
        pit[:, j] = pit[:, j] ** 3
        effects[j, 0], q[j, 0] = 0.4, 1e-30 * (1 + rank)
    names = tuple(f"x{j}" for j in range(d)) if names is None else names
    none = np.zeros(d)
    return ConditionalDiagnostics(
        np.arange(d) + 5, names, pit, effects, q / 10, q, none, none, none > 1
    )


def knockoffs(d=30, off=(), bad=(), names=None):
    effects, q, values = np.full((d, 3), 0.05), np.full((d, 3), 0.5), np.zeros(d)
    effects[list(bad), 2], q[list(bad), 2], values[list(off)] = -0.15, 1e-9, 0.3
    names = tuple(f"x{j}" for j in range(d)) if names is None else names
    return KnockoffDiagnostics(names, effects, effects * 9, q, values, np.linspace(-0.1, 0.7, d))


def test_the_line_stands_where_the_statistic_was_observed():
    tests = [HRTResult(0.5, 1e-9, 0.1, 0.05, "a"), HRTResult(0.2, 0.02, 0.1, 0.05, "b")]
    limits = null_limits(tests)
    places = []
    for test in tests:
        tree = parsed(draw_null(test, limits))
        (line,) = of_kind(tree, "observed")
        ticks = {t.text: float(t.get("x")) for t in tree.findall("text")}
        unit = (ticks["5"] - ticks["0"]) / 5
        places.append((float(line.get("x1")) - ticks["0"]) / unit)
        assert test.feature in texts(tree)
    np.testing.assert_allclose(places, [8, 2], atol=0.02)
    assert "p = 1e-09" in texts(parsed(draw_null(tests[0], limits)))


def test_the_tail_is_the_part_beyond_the_line():
    def area(element):
        x, y = np.array([p.split(",") for p in element.get("points").split()], float).T
        return abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2

    test = HRTResult(1.0, 0.2, 0.0, 1.0, "a")
    tree = parsed(draw_null(test, null_limits([test])))
    (hill,), (tail,) = of_kind(tree, "hill"), of_kind(tree, "tail")
    assert area(tail) / area(hill) == pytest.approx(norm.sf(1), abs=0.005)
    far = HRTResult(9.0, 0.0, 0.0, 1.0, "a")
    assert not of_kind(parsed(draw_null(far, null_limits([far]))), "tail")


def test_a_statistic_far_out_is_drawn_at_the_edge_and_one_that_cannot_move_in_words():
    far, flat = HRTResult(900.0, 0.0, 0.0, 1.0, "a"), HRTResult(0.0, 1.0, 0.0, 0.0, "b")
    low, high = null_limits([far, flat])
    assert high < 70
    assert low < -4
    tree = parsed(draw_null(far, (low, high)))
    assert {"observed: 900.0 →", "p < 1e-20"} <= set(texts(tree))
    assert float(of_kind(tree, "observed")[0].get("x1")) <= 420
    tree = parsed(draw_null(flat, (low, high)))
    assert not of_kind(tree, "observed")
    assert any("does not move" in text for text in texts(tree))


def test_a_score_of_one_is_failure():
    rng = np.random.default_rng(0)
    effects, q = rng.normal(0, 0.1, (500, 4)), 10.0 ** -rng.uniform(0, 4, (500, 4))
    q[0], effects[1], q[2] = 0.0, np.nan, np.nan
    found = conditional(500)
    found = ConditionalDiagnostics(
        found.columns, found.names, found.pit, effects, q, q, *[np.zeros(500)] * 3
    )
    scores = misfit_scores(effects, q, [0.05, 0.1, 0.1, 0.1], 0.01)
    assert 100 < found.misfit.sum() < 1900
    np.testing.assert_array_equal(scores >= 1, found.misfit)


def test_failing_columns_are_in_colour_beyond_the_line_and_named():
    checks, curves = map(parsed, draw_conditional(conditional(bad=(3, 7))))
    assert "2 of 30 checked columns fail" in texts(checks)
    assert {"x3", "x7", "2 fail"} <= set(texts(checks))
    assert texts(checks).count("all pass") == 3
    (line,) = of_kind(checks, "least")
    edge = float(line.get("x1"))
    assert len(of_kind(checks, "fail")) == 2
    assert all(dots(path)[:, 0].min() > edge for path in of_kind(checks, "fail"))
    assert all(dots(path)[:, 0].max() < edge for path in of_kind(checks, "pass"))
    assert [c.get("class") for c in of_kind(curves, "curve")] == ["curve c0", "curve c1"]
    assert len(of_kind(curves, "law")) == 28
    (area,) = of_kind(curves, "band99")
    top, height = float(area.get("y")), float(area.get("height"))

    def outside(line):
        y = np.array([p.split(",")[1] for p in line.get("points").split()], float)
        return y.min() < top or y.max() > top + height

    assert all(map(outside, of_kind(curves, "curve")))
    # Right laws leave the band in 1 % of data sets; the seed is fixed.
    assert not any(map(outside, of_kind(curves, "law")))


def test_columns_that_fit_are_said_to_pass():
    checks, _ = map(parsed, draw_conditional(conditional(bad=())))
    assert "All 30 checked columns pass" in texts(checks)
    assert not of_kind(checks, "fail")
    assert verdict(1, 9) == "1 of 9 checked columns fails"
    assert verdict(0, 1) == "The column passes"
    assert verdict(0, 0).startswith("No column")


def test_many_columns_stay_small_and_only_the_worst_have_names():
    found = draw_conditional(conditional(3000, bad=range(100, 400)))
    checks = parsed(found[0])
    assert "and 294 more" in texts(checks)
    assert sum(text.startswith("x1") for text in texts(checks)) == 6
    assert sum(len(drawing.body) for drawing in found) < 100_000
    found = draw_knockoffs(knockoffs(3000, off=range(50)))
    assert sum(len(drawing.body) for drawing in found) < 100_000


def test_constant_columns_are_left_out():
    found = conditional(4, bad=(1,))
    for values in (found.pit.T, found.effects, found.qvalues, found.pvalues):
        values[2] = np.nan
    checks, curves = map(parsed, draw_conditional(found))
    assert "1 of 3 checked columns fails" in texts(checks)
    assert len(of_kind(curves, "law")) == 2
    assert "nan" not in draw_conditional(found)[1].body


@pytest.mark.parametrize(("n", "m"), [(30, 1), (300, 30), (1000, 3000)])
def test_the_band_is_that_of_kolmogorov(n, m):
    assert band(n, m) == pytest.approx(kstwo.isf(0.01 / m, n), rel=0.03)


def test_knockoffs_that_leave_the_values_or_correlations_fail():
    checks, likeness = map(parsed, draw_knockoffs(knockoffs(off=(4,), bad=(9,))))
    assert "2 of 30 checked columns fail" in texts(checks)
    assert {"x4", "x9"} <= set(texts(checks))
    assert texts(checks).count("1 fails") == 2
    edge = float(of_kind(checks, "least")[0].get("x1"))
    assert all(dots(path)[:, 0].min() > edge for path in of_kind(checks, "fail"))
    assert "mean 0.30" in texts(likeness)
    places = dots(of_kind(likeness, "pass")[0])
    assert len(places) == 28
    assert np.all(np.diff(places[:, 1]) <= 0)  # ascending: up on the page is less
    assert len(of_kind(likeness, "fail")) == 2


def test_user_text_is_escaped_and_nothing_has_a_style():
    names = (NASTY, "b" * 200, *"cdef")
    test = HRTResult(3.0, 0.01, 0.0, 1.0, NASTY)
    for drawing in (
        draw_null(test, null_limits([test])),
        draw_conditional(conditional(6, bad=(0, 1), names=names))[0],
        draw_knockoffs(knockoffs(6, off=(0, 1), names=names))[0],
    ):
        assert "<script" not in drawing.body
        assert "style=" not in drawing.body
        assert any(text.startswith("<script>a…") for text in texts(parsed(drawing)))
        assert max(map(len, texts(parsed(drawing)))) < 50
