import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from sobolev import HRTSelector
from sobolev._numbers import pvalue_equation
from sobolev.datasets import make_sinexp
from sobolev.inference import HRTResult
from sobolev.inference.null_distribution import NullTable
from sobolev.plotting import ACCENT, SELECTED, plot_null
from sobolev.plotting.null import draw_null, null_distribution


def observed_line(ax):
    lines = [line for line in ax.lines if line.get_color() == SELECTED]
    return lines[0].get_xdata()[0]


def test_draws_beyond_the_statistic_are_coloured():
    draws = np.random.default_rng(0).gamma(3, size=999)
    ax = plot_null(draws, "$a_b", statistic=4.0)
    assert observed_line(ax) == 4.0
    heights = np.array([bar.get_height() for bar in ax.patches])
    beyond = [matplotlib.colors.to_hex(b.get_facecolor()) == ACCENT.lower() for b in ax.patches]
    assert heights.sum() == 999
    assert heights[beyond].sum() == np.sum(draws >= 4.0)
    p = (1 + np.sum(draws >= 4.0)) / 1000
    assert ax.get_title(loc="left") == rf"\$a_b: {pvalue_equation(p)}"
    ax.figure.canvas.draw()
    assert plot_null(draws[:4], statistic=100.0).get_title(loc="left") == "p = 0.200"  # never zero


def test_a_table_is_drawn_from():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 9))
    table = NullTable(values, np.full((50, 9), 1 / 9), values[:, 0] + 0.3)
    ax = plot_null(table, n_draws=500)
    assert observed_line(ax) == pytest.approx(table.statistic)
    assert sum(bar.get_height() for bar in ax.patches) == 500
    assert ax.get_title(loc="left") == pvalue_equation(table.saddlepoint())
    middle = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    mean = np.average(middle, weights=[bar.get_height() for bar in ax.patches])
    # The mean of 500 draws, five standard errors: a correct program fails once in 1e6 seeds.
    assert abs(mean - table.mean) < 5 * table.deviation / np.sqrt(500) + ax.patches[0].get_width()
    again = plot_null(table, n_draws=500)
    assert [b.get_height() for b in again.patches] == [b.get_height() for b in ax.patches]


def test_a_result_is_a_normal_curve():
    ax = plot_null(HRTResult(0.5, 1e-30, 0.1, 0.1))
    assert ax.get_title(loc="left") == "p < 1e-12"
    assert observed_line(ax) == 0.5
    texts = " ".join(text.get_text() for text in ax.texts)
    assert "normal curve" in texts
    assert "4.0 SD above" in texts
    outline = ax.collections[0].get_paths()[0].vertices
    assert outline[outline[:, 1].argmax(), 0] == pytest.approx(0.1, abs=0.002)
    low, high = ax.get_xlim()
    assert low < -0.29
    assert high > 0.5


def test_a_result_brings_its_name():
    named = HRTResult(0.5, 0.01, 0.1, 0.1, "dose")
    assert plot_null(named).get_title(loc="left") == "dose: p = 0.010"
    assert plot_null(named, feature="age").get_title(loc="left") == "age: p = 0.010"


def test_a_selector_brings_the_test_of_a_column():
    X, y = make_sinexp(120, 6, random_state=0, as_frame=True, return_X_y=True)
    hrt = HRTSelector(random_state=0).fit(X, y)
    ax = plot_null(hrt, "x5")
    assert ax.get_title(loc="left") == plot_null(hrt.result("x5")).get_title(loc="left")
    assert observed_line(ax) == hrt.statistics_[4]
    assert plot_null(hrt, 4).get_title(loc="left") == ax.get_title(loc="left")
    with pytest.raises(ValueError, match="feature is missing"):
        plot_null(hrt)


def test_in_standard_deviations_a_far_statistic_stands_at_the_edge():
    null = null_distribution(HRTResult(900.0, 0.0, 100.0, 10.0, "a")).standardized()
    assert (null.statistic, null.mean, null.deviation) == (80.0, 0.0, 1.0)
    ax = Figure().subplots()
    draw_null(ax, null, (-4.0, 60.0))
    assert observed_line(ax) == 60.0
    assert "observed: 80 →" in [text.get_text() for text in ax.texts]


def test_a_statistic_that_does_not_move():
    table = NullTable(np.ones((5, 2)), np.full((5, 2), 0.5), np.ones(5))
    ax = plot_null(table)
    assert ax.get_title(loc="left") == "p = 1"
    assert "does not move" in " ".join(text.get_text() for text in ax.texts)
    ax.figure.canvas.draw()


def test_text_stays_inside():
    for statistic in (-50.0, 0.0, 50.0):
        ax = plot_null(np.random.default_rng(0).normal(size=200), statistic=statistic)
        ax.figure.canvas.draw()
        frame = ax.get_window_extent()
        for text in ax.texts:
            box = text.get_window_extent()
            assert frame.x0 - 2 <= box.x0
            assert box.x1 <= frame.x1 + 2


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="statistic is missing"):
        plot_null([0.1, 0.2])
    with pytest.raises(ValueError, match="two or more draws"):
        plot_null([0.1, np.nan], statistic=1.0)
    with pytest.raises(ValueError, match="pvalue"):
        plot_null([0.1, 0.2], statistic=1.0, pvalue=2.0)
    with pytest.raises(TypeError, match="statistic"):
        plot_null([0.1, 0.2], statistic=np.nan)
