import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from reproduction.plot_rates import plot_rates


def simulated(methods=("HRT", "$k_1$"), groups=("n = 125", "n = 250"), repeats=8):
    rng = np.random.default_rng(0)
    rows = [(m, g, rng.random(), rng.random() / 3) for g in groups for m in methods] * repeats
    table = pd.DataFrame(rows, columns=["method", "group", "tpr", "fdp"])
    return table.assign(tpr=rng.random(len(table)), fdp=rng.random(len(table)) / 3)


def boxes(ax):
    """Quartiles of each box."""
    found = [np.unique(patch.get_path().vertices[:4, 1]) for patch in ax.patches]
    return np.array(found)


def diamonds(ax):
    scatters = [c for c in ax.collections if isinstance(c, PathCollection)]
    return np.array([c.get_offsets()[0] for c in scatters if len(c.get_offsets()) == 1])


def test_panels_hold_quartiles_and_means():
    table = simulated()
    axes = plot_rates(table, fdr=0.1)
    assert axes.shape == (2, 2)
    for row, rate in enumerate(["tpr", "fdp"]):
        for column, group in enumerate(["n = 125", "n = 250"]):
            part = table[table.group == group].groupby("method", sort=False)[rate]
            expected = np.column_stack([part.quantile(0.25), part.quantile(0.75)])
            np.testing.assert_allclose(boxes(axes[row, column]), expected)
            np.testing.assert_allclose(diamonds(axes[row, column])[:, 1], part.mean())
    assert [ax.get_title() for ax in axes[0]] == ["n = 125", "n = 250"]
    labels = [label.get_text() for label in axes[1, 0].get_xticklabels()]
    assert labels == ["HRT", r"\$k_1\$"]
    axes[0, 0].figure.canvas.draw()


def test_the_level_is_a_dashed_line_in_the_lower_panels():
    def dashed(ax):
        lines = [line for line in ax.lines if line.get_linestyle() == "--"]
        return [line.get_ydata()[0] for line in lines]

    axes = plot_rates(simulated(), fdr=0.2)
    assert [dashed(ax) for ax in axes.flat] == [[], [], [0.2], [0.2]]
    assert not any(dashed(ax) for ax in plot_rates(simulated(), fdr=None).flat)


def test_a_mapping_has_one_column_and_nan_is_left_out():
    axes = plot_rates({"a": ([0.5, np.nan, 1.0], [0.0, 0.1, 0.2]), "b": ([], [])})
    assert axes.shape == (2, 1)
    np.testing.assert_allclose(diamonds(axes[0, 0]), [[0, 0.75]])
    np.testing.assert_allclose(diamonds(axes[1, 0]), [[0, 0.1]])
    assert axes[0, 0].get_title() == ""


def test_false_discoveries_stay_inside_the_picture():
    axes = plot_rates({"a": ([0.5, 1.0], [0.0, 0.9])})
    assert axes[1, 0].get_ylim()[1] > 0.9
    assert plot_rates({"a": ([0.5], [0.0])}, fdr=0.1)[1, 0].get_ylim()[1] > 0.1


def test_given_axes_are_used():
    given = Figure().subplots(2, 2)
    assert (plot_rates(simulated(), axes=given) == given).all()
    one = Figure().subplots(2)
    assert plot_rates({"a": ([0.5], [0.1])}, axes=one)[1, 0] is one[1]
    with pytest.raises(ValueError, match="2 × 2 axes; got 2"):
        plot_rates(simulated(), axes=one)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="no column 'fdp'"):
        plot_rates(simulated().drop(columns="fdp"))
    with pytest.raises(ValueError, match="no column 'method'"):
        plot_rates([0.1])
    with pytest.raises(ValueError, match=r"rates\['a'\] must be a pair"):
        plot_rates({"a": [0.1, 0.2, 0.3]})
    with pytest.raises(ValueError, match="fdp of 'a' holds numbers outside"):
        plot_rates({"a": ([0.1], [10])})
    with pytest.raises(ValueError, match="rates is empty"):
        plot_rates({})
    with pytest.raises(ValueError, match="fdr"):
        plot_rates(simulated(), fdr=10)
