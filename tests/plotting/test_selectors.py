"""Every picture takes a fitted selector."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LassoCV

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector
from sobolev.datasets import make_sinexp
from sobolev.plotting import (
    interaction_strengths,
    partial_effect,
    plot_conditional,
    plot_effect,
    plot_importances,
    plot_interactions,
    plot_knockoff_statistics,
    plot_knockoffs,
    plot_pvalues,
)


@pytest.fixture(scope="module")
def data():
    return make_sinexp(150, 8, random_state=1, as_frame=True, return_X_y=True)


@pytest.fixture(scope="module")
def hrt(data):
    groups = {"pair": ["x7", "x8"]}
    return HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), feature_groups=groups, random_state=0
    ).fit(*data)


@pytest.fixture(scope="module")
def knockoffs(data):
    return KnockoffSelector(statistic="lasso_path", fdr=0.4, random_state=0).fit(*data)


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_rows_of_the_pictures_are_those_of_the_summary(hrt, knockoffs):
    table = hrt.summary()
    bars = plot_importances(hrt)
    assert sorted(names_of(bars)) == sorted(table["feature"])
    np.testing.assert_allclose(
        [bar.get_width() for bar in bars.patches], np.sort(table["importance"])[::-1]
    )
    assert set(names_of(plot_pvalues(hrt))) == set(table["feature"][table["pvalue"].notna()])
    assert "pair" in names_of(bars)
    shown = names_of(plot_knockoff_statistics(knockoffs))
    assert set(shown) == set(knockoffs.summary().query("W != 0")["feature"])


def test_effects_are_those_of_the_last_critic(data, hrt):
    X, y = data
    mine = partial_effect(hrt, X, y, "x5", max_rows=20)
    same = partial_effect(hrt.estimator_, X.to_numpy(), y, 4, max_rows=20)
    np.testing.assert_allclose(mine.means, same.means)
    assert plot_effect(hrt, X, y, "x5", max_rows=20).get_xlabel() == "x5"
    found = interaction_strengths(hrt, X, y, ["x1", "x2"], max_rows=20)
    ax = plot_interactions(hrt, X, y, ["x1", "x2"], max_rows=20, ax=Figure().subplots())
    np.testing.assert_allclose(ax.collections[0].get_array().filled(0), found)


def test_checks_come_from_the_selector(hrt, knockoffs, data):
    for plot, selector in ((plot_conditional, hrt), (plot_knockoffs, knockoffs)):
        titles = [plot(given).get_title(loc="left") for given in (selector, selector.diagnostics_)]
        assert titles[0] == titles[1]
        assert "columns fail" in titles[0]
    silent = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), diagnose=False, random_state=0
    ).fit(*data)
    with pytest.raises(ValueError, match="diagnose=True"):
        plot_conditional(silent)


def test_critics_without_effects_are_refused(data, knockoffs):
    X, y = data
    both = KnockoffSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, fdr=0.4
    ).fit(X, y)
    with pytest.raises(TypeError, match="columns and knockoffs together"):
        plot_effect(both, X, y, "x1")
    with pytest.raises(TypeError, match="HRTSelector has no witness"):
        plot_effect(HRTSelector(LassoCV(), random_state=0).fit(X, y), X, y, "x1")
