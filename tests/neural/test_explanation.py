"""Explanations of neural critics: terms that add up to the witness, derivatives by differences."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import nn

from sobolev import NeuralSIC
from sobolev.exceptions import DataWarning
from sobolev.neural import BigCritic, BilinearCritic, Optimizer, SmallCritic

N, D = 80, 4
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 1] + X[:, 2] ** 2 + 0.1 * RNG.standard_normal(N)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [0.0, 1.0])]


class Module(nn.Module):
    """A smooth critic of a user's own, not homogeneous."""

    def __init__(self, n_features, n_targets):
        super().__init__()
        self.x, self.y = nn.Linear(n_features, 10), nn.Linear(n_targets, 10)

    def forward(self, x, y):
        return (torch.tanh(self.x(x)) * torch.tanh(self.y(y))).sum(1)


HOMOGENEOUS = {
    "bilinear": BilinearCritic(widths=(20, 20)),
    "small": SmallCritic(widths=(20, 20)),
    "leaky": SmallCritic(widths=(20,), slope=0.1),
    "big without bias": BigCritic((20,), (10,), (20,), bias=False),
    "list": [BilinearCritic(widths=(20,)), SmallCritic(widths=(20,))],
}
WITH_BIAS = {
    "bilinear with bias": BilinearCritic(widths=(20,), bias=True),
    "small with bias": SmallCritic(widths=(20,), bias=True),
    "big": BigCritic((20,), (10,), (20,)),
    "layers of y": BilinearCritic(widths=(20,), target_widths=(10,)),
    "module": Module,
}
CRITICS = HOMOGENEOUS | WITH_BIAS
FIELDS = {field.name for field in fields(Optimizer)}


def fit(critic, rows=X, y=Y, **parameters):
    parameters = {"max_iter": 40, "rounds": 2, "boosting": 2, "random_state": 0} | parameters
    training = {name: parameters.pop(name) for name in FIELDS & parameters.keys()}
    return NeuralSIC(critic=critic, optimizer=Optimizer(**training), **parameters).fit(rows, y)


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "labels"])
def test_terms_add_up_to_the_witness(critic, y):
    fitted = fit(critic, y=y)
    found = fitted.explain(X, y)
    assert found.features.shape == (N, D)
    total = found.features.sum(axis=1) + found.target + found.base
    np.testing.assert_allclose(total, fitted.witness(X, y), atol=1e-5)
    np.testing.assert_allclose(found.witness, total, atol=1e-9)


@pytest.mark.parametrize("critic", HOMOGENEOUS.values(), ids=HOMOGENEOUS)
@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "labels"])
def test_homogeneous_critics_have_no_base(critic, y):
    fitted = fit(critic, y=y)
    found = fitted.explain(X, y)
    np.testing.assert_allclose(found.base, 0, atol=1e-5)
    assert np.abs(found.features).max() > 1e-3


@pytest.mark.parametrize("name", ["bilinear with bias", "small with bias", "big"])
def test_biases_are_in_the_base(name):
    assert np.abs(fit(WITH_BIAS[name]).explain(X, Y).base).max() > 1e-4


@pytest.mark.parametrize("name", ["bilinear", "layers of y"])
def test_bilinear_critics_leave_nothing_to_the_response(name):
    np.testing.assert_array_equal(fit(CRITICS[name]).explain(X, Y).target, 0)


@pytest.mark.parametrize("critic", CRITICS.values(), ids=CRITICS)
def test_a_contribution_is_the_column_times_its_derivative(critic):
    """In standard units, by differences of the witness; kinks of the critic lie on few rows."""
    fitted, step = fit(critic), 1e-3
    center, scale = X.mean(axis=0), X.std(axis=0)
    found = fitted.explain(X, Y).features
    for j in range(D):
        shift = step * scale[j] * np.eye(D)[j]
        slope = (fitted.witness(X + shift, Y) - fitted.witness(X - shift, Y)) / (2 * step)
        expected = slope * (X[:, j] - center[j]) / scale[j]
        close = np.abs(found[:, j] - expected) <= 2e-3 + 0.01 * np.abs(expected)
        assert close.mean() > 0.8


@pytest.mark.parametrize("name", ["small", "big", "module"])
def test_the_target_term_is_the_response_times_its_derivative(name):
    fitted, step = fit(CRITICS[name]), 1e-3 * Y.std()
    found = fitted.explain(X, Y).target
    if name != "module":  # documented for homogeneous layers of y, zero for products
        slope = (fitted.witness(X, Y + step) - fitted.witness(X, Y - step)) / (2 * step)
        close = np.abs(found - slope * (Y - Y.mean())) <= 2e-3 + 0.01 * np.abs(found)
        assert close.mean() > 0.8
    assert np.abs(found).max() > 1e-4


def test_constant_columns_contribute_nothing():
    rows = np.insert(X, 1, 3.0, axis=1)
    with pytest.warns(DataWarning):
        fitted = fit("small", rows)
    found, without = fitted.explain(rows, Y), fit("small").explain(X, Y)
    assert found.features.shape == (N, D + 1)
    np.testing.assert_allclose(found.features, np.insert(without.features, 1, 0, axis=1), atol=1e-9)
    np.testing.assert_allclose(found.witness, fitted.witness(rows, Y), atol=1e-5)


@pytest.mark.parametrize("critic", ["bilinear", "small", Module], ids=["bilinear", "small", "mod"])
def test_many_rows_are_explained_one_by_one(critic):
    fitted = fit(critic, max_iter=10)
    rows = np.random.default_rng(1).standard_normal((1100, D))
    y = rows.sum(axis=1)
    together = fitted.explain(rows, y)
    for part in (slice(0, 3), slice(510, 514), slice(1097, 1100)):
        alone = fitted.explain(rows[part], y[part])
        np.testing.assert_allclose(alone.features, together.features[part], atol=1e-6)
        np.testing.assert_allclose(alone.target, together.target[part], atol=1e-6)
        np.testing.assert_allclose(alone.base, together.base[part], atol=1e-5)
    np.testing.assert_allclose(together.witness, fitted.witness(rows, y), atol=1e-5)
