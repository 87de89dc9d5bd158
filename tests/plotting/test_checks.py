"""Pictures of model checks: which dots and curves fail, and what is said about it."""

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from sobolev.conditionals.diagnostics import ConditionalDiagnostics
from sobolev.knockoffs.diagnostics import KnockoffDiagnostics
from sobolev.plotting import OTHER, plot_conditional, plot_knockoffs
from sobolev.plotting.checks import misfit_scores, verdict
from sobolev.plotting.conditional import draw_calibration, draw_conditional_checks
from sobolev.plotting.knockoffs import draw_knockoff_checks, draw_likeness


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


def drawn(draw, diagnostics):
    ax = Figure().subplots()
    draw(ax, diagnostics)
    return ax


def dots(ax, failing):
    """Places of the dots that fail, or of those that pass."""
    lines = [line for line in ax.lines if line.get_marker() == "o"]
    chosen = [line for line in lines if (line.get_color() != OTHER) == failing]
    return np.concatenate([np.column_stack(line.get_data()) for line in chosen])


def texts(ax):
    return [text.get_text() for text in ax.texts]


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
    found = conditional(bad=(3, 7))
    ax = drawn(draw_conditional_checks, found)
    assert len(dots(ax, failing=True)) == 2
    assert dots(ax, failing=True)[:, 0].min() > 1
    assert dots(ax, failing=False)[:, 0].max() < 1
    assert texts(ax) == ["2 fail", "all pass", "all pass", "all pass"]
    both = plot_conditional(found)
    assert both.get_title(loc="left").startswith("2 of 30 columns fail")
    legend = both.figure.axes[1].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["x3", "x7"]


def test_curves_of_failing_columns_leave_the_band():
    ax = drawn(draw_calibration, conditional(bad=(3, 7)))
    band = ax.collections[0].get_paths()[0].vertices
    half = band[:, 1].max()
    named = [line.get_ydata() for line in ax.lines if len(line.get_xdata()) > 2]
    assert len(named) == 2
    assert all(np.abs(curve).max() > half for curve in named)
    passing = next(c for c in ax.collections if isinstance(c, LineCollection))
    assert len(passing.get_segments()) == 28
    # Right models leave the band in 1 % of data sets; the seed is fixed.
    assert all(np.abs(curve[:, 1]).max() < half for curve in passing.get_segments())


def test_columns_that_fit_are_said_to_pass():
    ax = drawn(draw_conditional_checks, conditional(bad=()))
    assert texts(ax) == ["all pass"] * 4
    assert not len(dots(ax, failing=True))
    assert verdict(1, 9) == "1 of 9 columns fails"
    assert verdict(2, 9) == "2 of 9 columns fail"
    assert verdict(0, 9) == "none of 9 columns fails"


def test_many_columns_have_few_dots_and_only_the_worst_have_names():
    found = conditional(3000, bad=range(100, 400))
    ax = drawn(draw_conditional_checks, found)
    assert len(dots(ax, failing=False)) < 200
    labels = [t.get_text() for t in plot_conditional(found).figure.axes[1].get_legend().get_texts()]
    assert len(labels) == 7
    assert labels[-1] == "and 294 more"
    assert len(dots(drawn(draw_likeness, knockoffs(3000)), failing=False)) <= 600


def test_constant_columns_are_left_out():
    found = conditional(4, bad=(1,))
    for values in (found.pit.T, found.effects, found.qvalues, found.pvalues):
        values[2] = np.nan
    ax = drawn(draw_calibration, found)
    passing = next(c for c in ax.collections if isinstance(c, LineCollection))
    assert len(passing.get_segments()) == 2
    for draw in (draw_calibration, draw_conditional_checks):
        drawn(draw, found).figure.canvas.draw()


@pytest.mark.parametrize("ax", [True, False])
def test_knockoffs_that_leave_the_values_or_correlations_fail(ax):
    found = knockoffs(off=(4,), bad=(9,))
    checks = plot_knockoffs(found, ax=Figure().subplots() if ax else None)
    assert checks.get_title(loc="left") == "2 of 30 columns fail"
    assert texts(checks) == ["1 fails", "all pass", "all pass", "1 fails"]
    assert dots(checks, failing=True)[:, 0].min() > 1
    assert drawn(draw_knockoff_checks, found).get_yticks().size == 4


def test_likeness_is_in_ascending_order():
    ax = drawn(draw_likeness, knockoffs(off=(4,), bad=(9,)))
    places = dots(ax, failing=False)
    assert len(places) == 28
    assert np.all(np.diff(places[:, 1]) > 0)
    assert len(dots(ax, failing=True)) == 2
    assert ax.get_title(loc="left").startswith("mean 0.30")
    shades = {matplotlib.colors.to_hex(line.get_color()) for line in ax.lines}
    assert len(shades) > 2
