import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from sobolev import sic_path
from sobolev.datasets import make_sinexp
from sobolev.plotting import SELECTED, plot_importances, plot_path


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("d", [1, 30, 3000])
def test_bars_are_the_largest_importances(d):
    eta = np.random.default_rng(0).dirichlet(np.ones(d))
    ax = plot_importances(eta, support=eta > np.median(eta), max_features=20)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(eta)[::-1][: min(d, 20)])


def test_selected_bars_are_coloured_and_names_shown_as_they_are():
    ax = plot_importances(
        np.array([0.7, 0.2, 0.1]), ["$a$", "<b>", "c"], support=np.array([True, False, False])
    )
    assert matplotlib.colors.to_hex(ax.patches[0].get_facecolor()) == SELECTED.lower()
    assert [t.get_text() for t in ax.get_yticklabels()] == [r"\$a\$", "<b>", "c"]
    ax.figure.canvas.draw()  # a bad formula would fail here


def test_draws_into_the_given_axes_and_leaves_the_style_alone():
    before = dict(matplotlib.rcParams)
    _, ax = plt.subplots()
    assert plot_importances(np.array([0.5, 0.5]), threshold=0.4, ax=ax) is ax
    assert dict(matplotlib.rcParams) == before


def test_path_plot_has_a_line_for_each_feature():
    X, y = make_sinexp(80, 8, random_state=0, return_X_y=True)
    result = sic_path(X, y, lams=[0.1, 0.01, 0.03], cv=2)
    assert (np.diff(result.lams) < 0).all()
    np.testing.assert_allclose(result.importances.sum(axis=1), 1)
    assert result.risks.shape == (2, 3)
    ax = plot_path(result, highlight=3)
    assert len(ax.get_legend().get_texts()) == 3
    assert len(ax.lines) == 9  # eight features and the best lam
