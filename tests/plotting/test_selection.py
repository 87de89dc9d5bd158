from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sobolev import HRTSelector, KnockoffSelector
from sobolev.datasets import make_sinexp
from sobolev.inference.knockoff_filter import knockoff_threshold
from sobolev.inference.multiple_testing import qvalues
from sobolev.plotting import ACCENT, SELECTED, plot_knockoff_statistics, plot_pvalues


def points(ax, color=None):
    """x and rank of the points (of a colour), by rank."""
    found = []
    for scatter in ax.collections:
        if not isinstance(scatter, matplotlib.collections.PathCollection):
            continue
        for place, shade in zip(scatter.get_offsets(), scatter.get_facecolors(), strict=True):
            if color is None or matplotlib.colors.to_hex(shade) == color.lower():
                found.append(tuple(place))
    return np.array(sorted(found, key=lambda point: point[1])).reshape(-1, 2)


def names_beside(ax):
    return [text.get_text() for text in ax.texts if isinstance(text, matplotlib.text.Annotation)]


def simulated(d, seed=0, signals=6):
    p = np.random.default_rng(seed).random(d)
    p[:signals] = (10.0 ** -np.arange(10, 10 - signals, -1))[:d]
    return p


@pytest.mark.parametrize("d", [1, 30, 3000])
def test_pvalues_are_sorted_and_the_selected_coloured(d):
    p = simulated(d)
    ax = plot_pvalues(p, fdr=0.1)
    np.testing.assert_allclose(points(ax)[:, 0], np.sort(p))
    np.testing.assert_array_equal(points(ax)[:, 1], np.arange(1, d + 1))
    chosen = np.sort(p[qvalues(p) <= 0.1])
    np.testing.assert_allclose(points(ax, SELECTED)[:, 0], chosen)
    ax.figure.canvas.draw()


@pytest.mark.parametrize("procedure", ["bh", "by", "storey"])
def test_the_line_is_that_of_the_procedure(procedure):
    """Selected: all up to the last point left of the line."""
    for seed in range(3):
        p = np.random.default_rng(seed).beta(0.3, 1, 40)
        ax = plot_pvalues(p, fdr=0.15, procedure=procedure)
        x, rank = ax.lines[0].get_data()
        slope = x / rank
        np.testing.assert_allclose(slope, slope[0])
        left = np.flatnonzero(np.sort(p) <= slope[0] * np.arange(1, 41) * (1 + 1e-12))
        expected = 0 if not left.size else left[-1] + 1
        assert np.sum(qvalues(p, procedure) <= 0.15) == expected
        plt.close("all")


def test_what_is_not_tested_is_told_but_not_drawn():
    p = simulated(10)
    p[7:] = np.nan
    ax = plot_pvalues(p, [f"$g_{j}" for j in range(10)])
    assert len(points(ax)) == 7
    assert ax.get_title(loc="left").endswith("7 of 10 features tested")
    assert ax.get_yticklabels()[0].get_text() == r"\$g_0"
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xdata() / line.get_ydata(), 0.1 / 7)
    none = plot_pvalues(np.full(4, np.nan))
    assert none.get_title(loc="left") == "0 selected at FDR 10 % · 0 of 4 features tested"
    none.figure.canvas.draw()


def test_tiny_pvalues_are_arrows_at_the_floor():
    ax = plot_pvalues([0.0, 1e-300, 1e-5, 0.5])
    np.testing.assert_allclose(points(ax)[:, 0], [1e-12, 1e-12, 1e-5, 0.5])
    assert "below 1e-12" in ax.get_xlabel()
    assert "below" not in plot_pvalues([0.1, 0.5]).get_xlabel()


def test_names_beside_points_do_not_touch():
    p = simulated(3000, signals=0)
    p[:200] *= 1e-9
    ax = plot_pvalues(p, [f"gene {j}" for j in range(3000)])
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 5
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(ax.get_window_extent().x0 <= box.x0 for box in boxes)
    inside = ax.transData.transform(points(ax))
    assert not any(box.contains(*point) for box in boxes for point in inside)


def test_a_fitted_hrt_brings_its_settings():
    data = make_sinexp(n_samples=150, n_features=8, random_state=1, as_frame=True)
    hrt = HRTSelector(fdr=0.2, procedure="by", random_state=0).fit(data.data, data.target)
    ax = plot_pvalues(hrt)
    assert f"{int(hrt.support_.sum())} selected at FDR 20 %" in ax.get_title(loc="left")
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == sorted(data.data.columns)
    assert ax.lines[0].get_label() == "Benjamini–Yekutieli line at 20 %"
    stricter = plot_pvalues(hrt, fdr=0.001, procedure="bh")
    expected = int(np.sum(qvalues(hrt.pvalues_) <= 0.001))
    assert stricter.get_title(loc="left").startswith(f"{expected} selected at FDR 0.1 %")


def test_a_group_is_one_point():
    fitted = SimpleNamespace(
        summary=lambda: pd.DataFrame(
            {"feature": ["x0", "color"], "pvalue": [0.01, 0.3], "selected": [True, False]}
        ),
        fdr=0.1,
        procedure="bh",
    )
    ax = plot_pvalues(fitted)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x0", "color"]
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xdata() / line.get_ydata(), 0.1 / 2)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"pvalues holds numbers outside of \[0, 1\]"):
        plot_pvalues([0.1, 1.5])
    with pytest.raises(ValueError, match="fdr"):
        plot_pvalues([0.1], fdr=0)
    with pytest.raises(ValueError, match="procedure"):
        plot_pvalues([0.1], procedure="bonferroni")
    with pytest.raises(ValueError, match="support"):
        plot_pvalues([0.1, 0.2], support=[True])
    with pytest.raises(ValueError, match="W must hold one number"):
        plot_knockoff_statistics([])
    with pytest.raises(ValueError, match="threshold=-1"):
        plot_knockoff_statistics([1.0, 2.0], threshold=-1)
    with pytest.raises(ValueError, match="threshold=nan"):
        plot_knockoff_statistics([1.0, 2.0], threshold=np.nan)


def vertical(ax):
    """Where vertical lines over the whole height stand."""
    return sorted(line.get_xdata()[0] for line in ax.lines)


@pytest.mark.parametrize("p", [30, 3000])
def test_statistics_stand_by_size_with_threshold_and_mirror(p):
    rng = np.random.default_rng(0)
    W = np.where(rng.random(p) < 0.7, rng.laplace(0, 0.1, p), 0.0)
    W[:12], W[12] = rng.uniform(1, 2, 12), -1.5
    threshold = knockoff_threshold(W, 0.2)
    ax = plot_knockoff_statistics(W, threshold=threshold)
    drawn = W[W != 0]
    np.testing.assert_allclose(points(ax)[:, 0], drawn[np.argsort(-np.abs(drawn))])
    np.testing.assert_allclose(vertical(ax), [-threshold, 0, threshold])
    n_above, n_below = np.sum(threshold <= W), np.sum(threshold <= -W)
    assert len(points(ax, SELECTED)) == n_above
    assert len(points(ax, ACCENT)) == n_below >= 1
    assert f"{n_below} beyond the mirror" in ax.get_title(loc="left")
    assert f"{np.sum(W == 0):,} more are zero" in [text.get_text() for text in ax.texts]
    ax.figure.canvas.draw()
    if p == 3000:
        named = names_beside(ax)
        assert "x12" in named
        assert set(named) <= {f"x{j}" for j in np.flatnonzero(np.abs(W) >= threshold)}
        right = ax.get_window_extent().x1
        assert all(text.get_window_extent().x1 <= right for text in ax.texts)


def test_no_threshold_several_thresholds_and_nan():
    W = np.array([3.0, -2.0, np.nan, 1.0, 0.0])
    ax = plot_knockoff_statistics(W, threshold=np.inf)
    assert ax.get_title(loc="left") == "0 of 5 features selected · no threshold meets the level"
    assert vertical(ax) == [0]
    assert len(points(ax)) == 3
    ax = plot_knockoff_statistics(W)
    assert ax.get_title(loc="left") == "0 of 5 features selected"
    support = np.array([True, False, False, False, False])
    ax = plot_knockoff_statistics(W, threshold=[2.5, np.inf, 2.0], support=support)
    assert vertical(ax) == [-2.5, -2.0, 0, 2.0, 2.5]
    assert points(ax, SELECTED)[:, 0] == [3.0]
    plot_knockoff_statistics(np.zeros(3), threshold=np.inf).figure.canvas.draw()


def test_a_fitted_knockoff_selector_brings_its_settings():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    y = X[:, :6].sum(axis=1) + 0.5 * rng.standard_normal(150)
    fitted = KnockoffSelector(statistic="lasso_path", fdr=0.2, random_state=0).fit(X, y)
    ax = plot_knockoff_statistics(fitted)
    assert np.isfinite(fitted.threshold_)
    assert len(points(ax, SELECTED)) == fitted.support_.sum()
    assert fitted.threshold_ in vertical(ax)
    higher = float(np.sort(fitted.statistics_)[-2])
    again = plot_knockoff_statistics(fitted, threshold=higher)
    assert len(points(again, SELECTED)) == 2
