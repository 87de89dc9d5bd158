import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

from sobolev import ConvexSIC, sic_path
from sobolev.convex.path import SICPath
from sobolev.datasets import make_sinexp
from sobolev.plotting import OTHER, SELECTED, plot_importances, plot_path


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


@pytest.mark.parametrize("d", [1, 30, 3000])
def test_bars_are_the_largest_importances(d):
    eta = np.random.default_rng(0).dirichlet(np.ones(d))
    ax = plot_importances(eta, support=eta > np.median(eta), max_features=20)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, np.sort(eta)[::-1][: min(d, 20)])
    order = np.argsort(-eta)[:20]
    assert names_of(ax) == [f"x{j}" for j in order]


def test_selected_bars_are_coloured_and_names_shown_as_they_are():
    ax = plot_importances(
        np.array([0.7, 0.2, 0.1]), ["$a$", "<b_1>", "c"], support=np.array([True, False, False])
    )
    colors = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
    assert colors == [SELECTED.lower(), OTHER.lower(), OTHER.lower()]
    assert names_of(ax) == [r"\$a\$", "<b_1>", "c"]
    ax.figure.canvas.draw()  # a bad formula would fail here


def test_the_rest_is_told():
    eta = np.full(40, 0.01)
    eta[:4] = 0.16
    support = np.arange(40) < 6
    ax = plot_importances(eta, support=support, max_features=4)
    assert ax.get_title(loc="left") == "6 selected · 4 largest of 40 features"
    assert ax.get_xlabel().endswith("not shown: 36 features, together 36.0 %, 2 selected")
    assert "share" not in plot_importances(5 * eta).get_xlabel()
    assert "not shown" not in plot_importances(eta, max_features=40).get_xlabel()


def test_nan_has_no_bar():
    ax = plot_importances([0.2, np.nan, 0.5])
    assert names_of(ax) == ["x2", "x0"]


def test_a_small_picture_has_fewer_bars():
    fig, ax = plt.subplots(figsize=(4, 2))
    plot_importances(np.arange(30.0), ax=ax)
    assert 5 < len(ax.patches) < 20
    fig.set_size_inches(4, 12)
    plot_importances(np.arange(30.0), ax=fig.add_subplot())
    assert len(fig.axes[1].patches) == 30


def test_a_fitted_estimator_brings_names_and_selection():
    X, y = make_sinexp(80, 8, random_state=0, return_X_y=True, as_frame=True)
    sic = ConvexSIC(lam=0.03, n_features_to_select=2).fit(X, y)
    ax = plot_importances(sic)
    assert ax.get_title(loc="left") == "2 selected · 8 features"
    assert sorted(names_of(ax)) == sorted(X.columns)
    assert names_of(plot_importances(sic, [f"f{j}" for j in range(8)]))[0].startswith("f")


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="importances must hold one number for each feature"):
        plot_importances(np.ones((2, 2)))
    with pytest.raises(ValueError, match="feature_names has 1 names for 2 features"):
        plot_importances([0.1, 0.2], ["a"])
    with pytest.raises(ValueError, match="support must hold True or False"):
        plot_importances([0.1, 0.2], support=[0, 1])
    with pytest.raises(ValueError, match="max_features"):
        plot_importances([0.1, 0.2], max_features=0)
    with pytest.raises(ValueError, match="highlight"):
        plot_path(None, highlight=0)


def test_path_plot_has_a_line_for_each_feature():
    X, y = make_sinexp(80, 8, random_state=0, return_X_y=True)
    result = sic_path(X, y, lams=[0.1, 0.01, 0.03], cv=2)
    assert (np.diff(result.lams) < 0).all()
    np.testing.assert_allclose(result.importances.sum(axis=1), 1)
    assert result.risks.shape == (2, 3)
    ax = plot_path(result, highlight=3)
    order = np.argsort(-result.importances.max(axis=0))
    *named, best = ax.lines
    assert len(named) == 3
    drawn = {line.get_label(): line.get_ydata() for line in named}
    for j in order[:3]:
        np.testing.assert_array_equal(drawn[f"x{j}"], result.importances[:, j])
    others = next(c for c in ax.collections if isinstance(c, LineCollection))
    np.testing.assert_array_equal(others.get_segments()[0][:, 1], result.importances[:, order[3]])
    assert len(others.get_segments()) == 5
    assert best.get_xdata()[0] == result.lams[result.risks.mean(axis=0).argmax()]
    ends = [drawn[text.get_text()][-1] for text in ax.get_legend().get_texts()]
    assert ends == sorted(ends, reverse=True)


def test_path_of_many_features_and_of_one_lam():
    eta = np.random.default_rng(0).dirichlet(np.ones(3000), size=4)
    names = [f"$_{j}" for j in range(3000)]
    ax = plot_path(SICPath(np.array([1.0, 0.1, 0.01, 0.001]), eta, np.ones(4), eta[:, :4], names))
    assert ax.get_legend().get_title().get_text() == "7 largest of 3,000 features"
    ax.figure.canvas.draw()
    one = SICPath(np.array([0.1]), eta[:1, :3], np.ones(1), np.ones((2, 1)), ["a", "b", "c"])
    assert plot_path(one).lines[0].get_marker() == "o"
