"""Diagnostics of conditional models: correct ones pass, wrong ones fail the matching check."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import kstest
from sklearn.linear_model import LinearRegression

from sobolev.conditionals import (
    Conditional,
    GaussianConditional,
    MixedConditional,
    ResidualConditional,
)
from sobolev.conditionals._checks import transform
from sobolev.conditionals.diagnostics import THRESHOLDS, diagnose_conditional, warn_if_misfit
from sobolev.exceptions import ConditionalModelWarning
from sobolev.plotting import plot_conditional

LEVELS = (np.arange(100) + 0.5) / 100
CHECKS = list(THRESHOLDS)
NAMES = ["truth", "gaussian", "residual"]


def correlated(n=300, d=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) + rng.standard_normal((n, 1))


def binary(seed=0):
    X = correlated(seed=seed)
    X[:, ::2] = X[:, ::2] > 0
    return X


def heavy(n=600, seed=0):
    rng = np.random.default_rng(100 + seed)
    return correlated(n, 8, seed) / np.sqrt(rng.chisquare(4, (n, 1)) / 4)


class Truth:
    """The distribution of ``correlated``, shifted along one column by ``shift`` and rescaled."""

    def __init__(self, d=8, shift=0.0, stretch=1.0):
        self.precision = np.linalg.inv(np.eye(d) + 1)
        self.shift, self.stretch = shift, stretch

    def grid(self, X, j):
        variance = 1 / self.precision[j, j]
        mean = X[:, j] - X @ self.precision[:, j] * variance + self.shift * X[:, j - 1]
        nodes = mean[:, None] + self.stretch * np.sqrt(variance) * ndtri(LEVELS)
        return nodes, np.full(nodes.shape, 0.01)


class InSample:
    """Least squares with the residuals of its own rows."""

    def fit(self, X):
        self.X = X
        return self

    def grid(self, X, j):
        rest = np.delete(self.X, j, axis=1)
        model = LinearRegression().fit(rest, self.X[:, j])
        residuals = self.X[:, j] - model.predict(rest)
        nodes = model.predict(np.delete(X, j, axis=1))[:, None] + np.quantile(residuals, LEVELS)
        return nodes, np.full(nodes.shape, 0.01)


class Marginal(Conditional):
    """The values of the column, whatever the others are."""

    def learn(self, X):
        self.X_ = X

    def distribution(self, X, j, rows):
        nodes = np.tile(self.X_[:, j], (X.shape[0], 1))
        return nodes, np.full(nodes.shape, 1 / nodes.shape[1])


def failed(found, check):
    return found.misfit[:, CHECKS.index(check)]


@pytest.mark.parametrize(
    "model", [Truth(), GaussianConditional(), ResidualConditional()], ids=NAMES
)
def test_a_right_model_passes(model):
    """Alarms in 1 % of data sets, so four or more in 20 four times in 100,000."""
    alarms = 0
    for seed in range(20):
        X = correlated(200, seed=seed)
        fitted = model.fit(X) if hasattr(model, "fit") else model
        alarms += diagnose_conditional(fitted, X, random_state=seed).score < 1
    assert alarms <= 3


def test_pvalues_of_the_truth_are_uniform():
    """The smallest distance that a correct program exceeds once in 10,000; independent rows."""
    found = [
        diagnose_conditional(Truth(), correlated(100, seed=seed), [0], random_state=seed).pvalues[0]
        for seed in range(200)
    ]
    pvalues = np.array(found)
    assert kstest(pvalues[:, 0], "uniform").pvalue > 1e-4
    # Bonferroni, and normal tails of sums of random signs: not too small. Binomial (200, 0.1).
    assert (np.mean(pvalues[:, 1:] <= 0.1, axis=0) <= 0.19).all()
    assert (np.mean(pvalues[:, 1:3] <= 0.5, axis=0) >= 0.2).all()


def test_a_normal_model_of_binary_columns_fails_and_a_mixed_one_passes():
    X = binary()
    found = diagnose_conditional(GaussianConditional().fit(X), X)
    assert sorted(found.failing) == [0, 2, 4, 6]
    assert found.score == 0.5
    np.testing.assert_array_equal(found.off_values, [True, False] * 4)
    right = diagnose_conditional(MixedConditional().fit(X), X)
    assert right.score == 1
    assert not right.off_values.any()


def test_an_overfitted_model_fails_although_it_fits_its_own_rows():
    X = correlated(120, 80)
    model = InSample().fit(X)
    assert diagnose_conditional(model, X, refit=False).score == 1  # what a refit is for
    found = diagnose_conditional(model, X, range(10))
    assert failed(found, "uniform").all()
    fresh = diagnose_conditional(model, correlated(120, 80, seed=1), range(10), refit=False)
    assert fresh.score == 0
    assert diagnose_conditional(ResidualConditional().fit(X), X, range(10)).score == 1


def test_means_that_are_mostly_noise_fail():
    X = correlated(120, 80)
    model = ResidualConditional(LinearRegression()).fit(X)
    found = diagnose_conditional(model, X, range(10))
    assert failed(found, "location").all()
    assert not failed(found, "uniform").any()  # residuals of unseen rows: the width is right


def test_a_model_that_ignores_the_other_columns_fails():
    X = correlated()
    found = diagnose_conditional(Marginal().fit(X), X)
    assert found.effects[:, 0].max() < 0.06  # calibrated, taken alone
    assert failed(found, "location").all()
    assert failed(found, "correlation").all()
    # Real correlations are 1/2, of draws 0.
    assert found.effects[:, 3].mean() == pytest.approx(-0.5, abs=0.15)
    assert found.rms_gap.min() > 3


def test_a_constant_width_under_heavy_tails_fails():
    for seed in range(3):
        X = heavy(seed=seed)
        flat = diagnose_conditional(ResidualConditional(scale=None).fit(X), X)
        scaled = diagnose_conditional(ResidualConditional().fit(X), X)
        assert failed(flat, "spread").all()
        # 0.26 to 0.29 with how far out the row is in all columns; 0.22 to 0.24 with one alone.
        assert np.abs(flat.effects[:, 2]).mean() > 0.25
        assert not failed(scaled, "spread").any()
        assert np.abs(scaled.effects[:, 2]).mean() < 0.4 * np.abs(flat.effects[:, 2]).mean()
        assert scaled.score > flat.score


def test_a_small_misfit_of_many_rows_is_no_failure():
    X = correlated(15_000, 3)
    found = diagnose_conditional(Truth(3, shift=0.04, stretch=1.03), X)
    assert found.qvalues.min(axis=1).max() < 1e-4
    assert found.score == 1
    assert diagnose_conditional(Truth(3, shift=0.3), X).score == 0
    assert failed(diagnose_conditional(Truth(3, stretch=1.4), X), "uniform").all()


def test_the_transform_of_slices_is_the_distribution_function():
    x = np.linspace(-2.3, 2.3, 50)
    nodes = np.tile(ndtri(LEVELS), (50, 1))
    u, at_atom = transform(nodes, np.full(nodes.shape, 0.01), x, np.full(50, 0.5))
    np.testing.assert_allclose(u, ndtr(x), atol=2e-3)
    assert not at_atom.any()


def test_the_transform_beyond_the_nodes_is_drawn_from_what_is_left():
    nodes, weights = np.tile([0.0, 1.0], (2, 1)), np.tile([0.4, 0.6], (2, 1))
    u, _ = transform(nodes, weights, np.array([-5.0, 5.0]), np.array([0.25, 0.25]))
    np.testing.assert_allclose(u, [0.25 * 0.2, 0.7 + 0.25 * 0.3])


def test_the_transform_at_an_atom_is_spread_over_its_mass():
    nodes = np.tile([0.0, 1.0, 1.0, 2.0], (3, 1))
    weights = np.tile([0.1, 0.2, 0.3, 0.4], (3, 1))
    u, at_atom = transform(nodes, weights, np.array([0.0, 1.0, 2.0]), np.full(3, 0.5))
    np.testing.assert_allclose(u, [0.05, 0.35, 0.8])
    assert at_atom.all()


def test_unordered_nodes_and_weights_of_any_sum_are_accepted():
    class Uneven(Truth):
        def grid(self, X, j):
            nodes, weights = super().grid(X, j)
            return nodes, weights * np.linspace(0.5, 1.5, 100)

    class Shuffled(Uneven):
        def grid(self, X, j):
            nodes, weights = super().grid(X, j)
            return nodes[:, ::-1], 7 * weights[:, ::-1]

    X = correlated()
    expected = diagnose_conditional(Uneven(), X)
    found = diagnose_conditional(Shuffled(), X)
    np.testing.assert_allclose(found.pit, expected.pit)
    np.testing.assert_allclose(found.effects, expected.effects)


def test_columns_by_name_and_position_give_the_same_numbers_as_all():
    X = pd.DataFrame(binary(), columns=list("abcdefgh"))
    model = MixedConditional().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole, some = diagnose_conditional(model, X), diagnose_conditional(model, X, ["c", -1])
    assert some.names == ("c", "h")
    np.testing.assert_array_equal(some.columns, [2, 7])
    np.testing.assert_array_equal(some.pit, whole.pit[:, [2, 7]])
    np.testing.assert_allclose(some.pvalues, whole.pvalues[[2, 7]])
    again = diagnose_conditional(model, X, random_state=1)
    assert (again.pit[:, 0] != whole.pit[:, 0]).any()


def test_the_table_names_columns_and_reasons():
    X = pd.DataFrame(binary(), columns=list("abcdefgh"))
    found = diagnose_conditional(GaussianConditional().fit(X), X)
    table = found.table()
    assert list(table.index) == list("abcdefgh")
    assert set(table.index[table["fails"] != ""]) == set(found.failing_names) == set("aceg")
    assert {*THRESHOLDS, "largest_gap", "rms_gap", "qvalue", "fails"} == set(table.columns)
    smallest = found.pvalues.min(axis=1)[found.failing]
    assert (np.diff(smallest) >= 0).all()
    assert "score=0.5" in repr(found)


@pytest.mark.parametrize("model", [GaussianConditional(), MixedConditional()], ids=repr)
def test_constant_columns_and_lonely_columns(model):
    X = correlated(60, 3)
    X[:, 1] = 4.0
    found = diagnose_conditional(model.fit(X), X)
    assert np.isnan(found.pvalues[1]).all()
    assert np.isfinite(found.pvalues[[0, 2]]).all()
    assert found.score == 1
    lonely = diagnose_conditional(ResidualConditional().fit(X[:, :1]), X[:, :1])
    assert lonely.score == 1
    nothing = diagnose_conditional(model.fit(X[:, [1, 1]]), X[:, [1, 1]])
    assert nothing.score == 1
    plot_conditional(nothing).figure.canvas.draw()
    plt.close("all")


def test_the_warning_names_columns_and_remedy():
    X = binary()
    found = diagnose_conditional(GaussianConditional().fit(X), X)
    with pytest.warns(ConditionalModelWarning, match=r'"mixed"\.$') as caught:
        warn_if_misfit(found, stacklevel=1)
    assert caught[0].filename == __file__
    assert all(f"'x{j}'" in str(caught[0].message) for j in (0, 2, 4, 6))
    X = heavy()
    found = diagnose_conditional(ResidualConditional(scale=None).fit(X), X)
    with pytest.warns(ConditionalModelWarning, match=r'and 3 more; .*scale="auto"'):
        warn_if_misfit(found)
    X = correlated()
    with pytest.warns(ConditionalModelWarning, match="the mean must depend"):
        warn_if_misfit(diagnose_conditional(Marginal().fit(X), X))
    with pytest.warns(ConditionalModelWarning, match="width or shape"):
        warn_if_misfit(diagnose_conditional(Truth(stretch=0.5), X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_misfit(diagnose_conditional(Truth(), X))


def test_errors_name_the_remedy():
    X, model = correlated(), Truth()
    with pytest.raises(ValueError, match="refit=False for new rows"):
        diagnose_conditional(GaussianConditional().fit(X), X[:50])
    with pytest.raises(TypeError, match="grid"):
        diagnose_conditional(3, X)
    with pytest.raises(ValueError, match="holds 'z'"):
        diagnose_conditional(model, X, ["z"])
    with pytest.raises(ValueError, match="holds 8"):
        diagnose_conditional(model, X, [8])
    with pytest.raises(ValueError, match="only once"):
        diagnose_conditional(model, X, [0, -8])
    with pytest.raises(ValueError, match="at least 10"):
        diagnose_conditional(model, X[:9])
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="column 2"):
        diagnose_conditional(model, X)


@pytest.mark.parametrize("d", [5, 300])
def test_the_plot_names_the_worst_columns(d):
    X = correlated(100, d)
    X[:, ::2] = X[:, ::2] > 0
    names = [f"$c{j}" for j in range(d)]
    model = Marginal().fit(X)
    found = diagnose_conditional(model, pd.DataFrame(X, columns=names))
    assert len(found.failing) == d
    ax = plot_conditional(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that collapses would warn here
        ax.figure.canvas.draw()  # a bad formula would fail here
    labels = [text.get_text() for text in ax.figure.axes[1].get_legend().get_texts()]
    shown = min(d, 6)
    assert labels[:shown] == [rf"\{name}" for name in found.failing_names[:shown]]
    assert labels[shown:] == ([f"and {d - 6} more"] if d > 6 else [])
    assert ax.get_title(loc="left").startswith(f"{d} of {d} columns fail")
    _, given = plt.subplots()
    assert plot_conditional(found, given) is given
    assert len(given.figure.axes) == 1
    worst = found.pit[:, list(found.columns).index(found.failing[0])]
    line = given.lines[1]  # after the line at zero
    share = np.mean(worst[:, None] <= line.get_xdata(), axis=0)
    np.testing.assert_allclose(line.get_ydata(), share - line.get_xdata(), atol=1e-12)
    plt.close("all")
