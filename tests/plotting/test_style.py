"""What every picture keeps: no global state, names as they are."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from sobolev import plotting
from sobolev.convex.path import SICPath
from sobolev.plotting.conditional import plot_conditional
from sobolev.plotting.style import MAX_NAME, cycle, row_font, shown_name, shown_names

from .test_effects import Known, rows

NAMES = ["$a$", "b_1", "100 %", "\\frac{"]


def draw(name, ax):
    X, y = rows()
    model = Known(lambda X: X[:, 0] * X[:, 1]).fit()
    ones = np.ones(4)
    calls = {
        "plot_importances": lambda: plotting.plot_importances([0.4, 0.3, 0.2, 0.1], NAMES, ax=ax),
        "plot_path": lambda: plotting.plot_path(
            SICPath(np.array([0.1, 0.01]), np.ones((2, 4)) / 4, ones[:2], np.ones((2, 2)), NAMES),
            ax=ax,
        ),
        "plot_pvalues": lambda: plotting.plot_pvalues([0.1, 0.2, np.nan, 0], NAMES, ax=ax),
        "plot_knockoff_statistics": lambda: plotting.plot_knockoff_statistics(
            [3, 2, -1, 1], NAMES, threshold=2.0, ax=ax
        ),
        "plot_null": lambda: plotting.plot_null(y, NAMES[0], statistic=1.0, ax=ax),
        "plot_effect": lambda: plotting.plot_effect(model, X, y, 0, ax=ax),
        "plot_interactions": lambda: plotting.plot_interactions(model, X, y, [0, 1], ax=ax),
    }
    return calls[name]()


ONE_AXES = [
    "plot_importances",
    "plot_path",
    "plot_pvalues",
    "plot_knockoff_statistics",
    "plot_null",
    "plot_effect",
    "plot_interactions",
]


@pytest.mark.parametrize("name", ONE_AXES)
def test_draws_into_the_given_axes_and_leaves_no_trace(name):
    before = dict(matplotlib.rcParams)
    figure = Figure()
    ax = figure.subplots()
    assert draw(name, ax) is ax
    assert plt.get_fignums() == []
    current = plt.figure().add_subplot()
    draw(name, figure.add_subplot())
    assert plt.gca() is current
    assert dict(matplotlib.rcParams) == before
    figure.savefig("/dev/null", format="png")


@pytest.mark.parametrize("name", ONE_AXES)
def test_makes_one_figure_otherwise(name):
    ax = draw(name, None)
    assert plt.get_fignums() == [1]
    assert ax.figure is plt.figure(1)


@pytest.mark.parametrize("name", ONE_AXES)
def test_tex_never_reads_names(name):
    with matplotlib.rc_context({"text.usetex": True}):
        ax = draw(name, Figure().subplots())
        texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), *ax.texts]
        texts += [ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        written = [text for text in texts if any(n in text.get_text() for n in ("a\\$", "b_1"))]
        assert not any(text.get_usetex() for text in written)
        assert not ax._left_title.get_usetex()


@pytest.mark.parametrize("name", ["a_b", "$", "$x$", r"\$", "<script>", "100 %", "ü{}^&#~"])
def test_a_name_is_shown_as_it_is(name):
    figure = Figure()
    text = figure.text(0.5, 0.5, shown_name(name))
    shown, is_math = text._preprocess_math(text.get_text())
    assert shown == name
    assert not is_math


def test_long_names_lose_their_middle_but_stay_different():
    name = "a" * 100 + "z" * 100
    short = shown_name(name)
    assert len(short) == MAX_NAME
    assert short.startswith("aaa")
    assert short.endswith("zzz")
    assert shown_name("$" * 100).replace(r"\$", "$") == "$" * 16 + "…" + "$" * 15
    assert shown_name("two\nlines\tof text") == "two lines of text"
    names = ["a" * 50 + str(j) + "z" * 50 for j in range(3)]
    assert [n[-3:] for n in shown_names(names, 3)] == ["…#0", "…#1", "…#2"]
    units = [f"serum protein {k:02d} (ng/ml)" for k in range(12)]
    assert shown_names(units, 12, most=15)[7] == "ser… 07 (ng/ml)"
    assert shown_names(["same", "same"], 2) == ["same", "same"]
    assert shown_names(None, 2) == ["x0", "x1"]


@pytest.mark.parametrize("count", [1, 8, 9, 25])
def test_there_are_as_many_colours_as_asked_for(count):
    assert len(set(cycle(count))) == count


def test_text_shrinks_with_the_rows():
    ax = Figure(figsize=(4, 4)).subplots()
    assert row_font(ax, 3) == 10
    assert 7 < row_font(ax, 24) < 10
    assert row_font(ax, 1000) == 7


def test_everything_is_exported_and_the_import_is_light():
    assert all(hasattr(plotting, name) for name in plotting.__all__)
    assert plotting.plot_conditional is plot_conditional
    heavy = ("matplotlib", "pandas", "scipy", "sklearn")
    code = f"import sys, sobolev.plotting; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
