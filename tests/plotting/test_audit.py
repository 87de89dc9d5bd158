import matplotlib.pyplot as plt
import numpy as np
import pytest

from sobolev.inference import AuditResult, AuditRun
from sobolev.inference.audit_result import LEVELS
from sobolev.plotting import ACCENT, SELECTED, plot_audit


def make(false=(), n_null=0, runs=8):
    """Half of the responses have two active columns, the others none."""
    p = np.random.default_rng(0).uniform(size=(runs, n_null))
    return AuditResult(
        0.1,
        tuple(
            AuditRun(
                i,
                *(("additive", 2, 2, 2 + len(false)) if i % 2 else ("noise", 0, 0, len(false))),
                false=tuple(false),
                n_null=n_null,
                null_counts=tuple((p[i] <= t).sum() for t in LEVELS) if n_null else (),
            )
            for i in range(runs)
        ),
        2.0,
        "Plain",
    )


def rows(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_a_row_for_each_kind_and_one_for_all():
    ax = plot_audit(make(n_null=30))
    assert rows(ax) == ["additive, 2 active", "noise", "all responses"]
    assert ax.get_title(loc="left") == "FDR 0.00: the level holds"
    (beside,) = [other for other in ax.figure.axes if other is not ax]
    assert beside.get_title(loc="left") == "240 p-values of features without effect"
    means = [line for line in ax.lines if line.get_marker() == "|"]
    assert {line.get_color() for line in means} == {SELECTED}


def test_a_failed_audit_is_loud():
    ax = plot_audit(make(false=["a"], n_null=30))
    assert ax.get_title(loc="left").endswith("the level does NOT hold")
    means = [line for line in ax.lines if line.get_marker() == "|"]
    assert {line.get_color() for line in means} == {ACCENT}
    assert [line.get_xdata()[0] for line in means] == pytest.approx([1 / 3, 1, 2 / 3])


def test_without_pvalues_the_false_features_are_named():
    ax = plot_audit(make(false=["cost in $", "b"]))
    beside = ax.figure.axes[1]
    assert rows(beside) == [r"cost in \$", "b"]
    assert [bar.get_width() for bar in beside.patches] == [8, 8]
    ax.figure.canvas.draw()
    empty = plot_audit(make()).figure.axes[1]
    assert empty.get_title(loc="left") == "No feature was found falsely"


def test_given_axes_have_one_panel():
    ax = plt.figure().add_subplot()
    assert plot_audit(make(n_null=5), ax=ax) is ax
    assert len(ax.figure.axes) == 1


def test_one_run_is_drawn():
    plot_audit(make(n_null=5, runs=1)).figure.canvas.draw()
