"""Parameters of the neural estimators that cannot be used are named in the error."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import nn

from sobolev import NeuralSIC, SobolevClassifier, SobolevRegressor
from sobolev.neural import (
    BigCritic,
    BilinearCritic,
    Boosting,
    DenseNetwork,
    EarlyStopping,
    Optimizer,
    SmallCritic,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)


class Critic(nn.Module):
    """A module of (x, y) with so many outputs for each row."""

    def __init__(self, n_features, n_targets, n_outputs):
        super().__init__()
        self.layer = nn.Linear(n_features + n_targets, n_outputs)

    def forward(self, x, y):
        return self.layer(torch.cat([x, y], dim=1))


OF_OPTIMIZER = {field.name for field in fields(Optimizer)}
OF_STOPPING = {field.name for field in fields(EarlyStopping)}
OF_BOOSTING = {field.name for field in fields(Boosting)}


def make(cls, parameters):
    """An estimator with each parameter where it belongs."""
    parameters = {"max_iter": 3, "rounds": 1} | parameters
    stopping, boosting, training = (
        {name: parameters.pop(name) for name in part & parameters.keys()}
        for part in (OF_STOPPING, OF_BOOSTING, OF_OPTIMIZER)
    )
    if stopping:
        training["early_stopping"] = EarlyStopping(**stopping)
    if boosting:
        parameters["boosting"] = Boosting(**boosting)
    return cls(**({"optimizer": Optimizer(**training)} | parameters))


SHARED = [
    ({"lam": -1}, ValueError, "lam=-1"),
    ({"lam": "x"}, ValueError, "lam='x'"),
    ({"lam": None}, TypeError, "lam must be"),
    ({"lam": np.nan}, TypeError, "lam must be"),
    ({"epsilon": 0.0}, ValueError, "epsilon=0.0"),
    ({"feature_groups": [[0, 99]]}, ValueError, "column 99"),
    ({"n_members": 0}, ValueError, "n_members=0"),
    ({"n_members": 1.5}, TypeError, "n_members"),
    ({"boosting": 0}, ValueError, "boosting=0"),
    ({"boosting": 1.5}, TypeError, "boosting must be a number of members"),
    ({"optimizer": "adam"}, TypeError, r"optimizer must be None or an Optimizer\(\); got 'adam'"),
    ({"early_stopping": True}, TypeError, "early_stopping must be None or an EarlyStopping"),
    ({"eta_rule": "newton"}, ValueError, "eta_rule='newton'"),
    ({"aggregate": "harmonic"}, ValueError, 'aggregate=.*"arithmetic", "geometric"'),
    ({"rounds": 0}, ValueError, "rounds=0"),
    ({"batch_size": 0}, ValueError, "batch_size=0"),
    ({"batch_size": [10, 0]}, ValueError, "batch_size=0"),
    ({"batch_size": []}, ValueError, "batch_size"),
    ({"batch_size": "many"}, TypeError, "batch_size"),
    ({"max_iter": 0}, ValueError, "max_iter=0"),
    ({"max_iter": True}, TypeError, "max_iter"),
    ({"learning_rate": 0.0}, ValueError, "learning_rate=0.0"),
    ({"learning_rate": "fast"}, TypeError, "learning_rate"),
    ({"betas": (0.5,)}, ValueError, "betas="),
    ({"betas": (0.5, 1.0)}, ValueError, "betas="),
    ({"betas": (-0.1, 0.9)}, ValueError, "betas="),
    ({"betas": 0.5}, (TypeError, ValueError), "betas"),
    ({"betas": ("a", 0.9)}, (TypeError, ValueError), "betas"),
    ({"weight_decay": -1e-3}, ValueError, "weight_decay=-0.001"),
    ({"schedule": "step"}, ValueError, "schedule='step'.*cosine"),
    ({"eta_step": -0.1}, ValueError, "eta_step=-0.1"),
    ({"validation_fraction": 0.9}, ValueError, "validation_fraction=0.9"),
    ({"validation_fraction": 0.0}, ValueError, "validation_fraction=0.0"),
    ({"validation_fraction": "half"}, (TypeError, ValueError), "validation_fraction"),
    ({"patience": 0}, ValueError, "patience=0"),
    ({"gradient": "x"}, ValueError, "gradient='x'.*autograd"),
    ({"device": "nope"}, ValueError, "device='nope'"),
    ({"device": None}, ValueError, "device=None"),
    ({"device": "meta"}, ValueError, "device='meta'"),
    ({"n_features_to_select": 99}, ValueError, "n_features_to_select=99"),
    ({"n_features_to_select": 2, "threshold": 0.1}, ValueError, "not both"),
    ({"cv": 1}, ValueError, "cv=1"),
    ({"cv": "five"}, TypeError, "cv must be"),
    ({"random_state": "seed"}, TypeError, "random_state"),
]
OF_SIC = [
    ({"rho": -1}, ValueError, "rho=-1"),
    ({"rho": None}, TypeError, "rho"),
    ({"measure": "uniform"}, ValueError, "measure='uniform'.*mixture"),
    ({"target": "count"}, ValueError, "target='count'"),
    ({"target": 3}, TypeError, "target must be"),
    ({"critic": "nope"}, ValueError, 'critic=.nope.*"small", "big", "bilinear"'),
    ({"critic": None}, TypeError, "critic must be"),
    ({"critic": []}, (TypeError, ValueError), "critic"),
    ({"critic": ["small", "nope"]}, ValueError, "critic='nope'"),
    ({"critic": DenseNetwork()}, TypeError, "critic must be"),
    ({"critic": nn.Linear(4, 1)}, TypeError, "critic is a torch.nn.Module; pass a callable"),
    ({"critic": lambda d, k: 3}, TypeError, "callable must return a torch.nn.Module"),
    ({"critic": lambda d, k: nn.ReLU()}, ValueError, "no trainable parameters"),
    ({"critic": lambda d, k: Critic(d, k, 2)}, ValueError, "critic .*one number for each row"),
    ({"critic": SmallCritic}, TypeError, "critic"),
    ({"critic": SmallCritic(widths=())}, ValueError, "SmallCritic: widths is empty"),
    ({"critic": SmallCritic(widths=5)}, ValueError, "SmallCritic: widths=5"),
    ({"critic": SmallCritic(widths=(10, 0))}, ValueError, "SmallCritic: widths"),
    ({"critic": BigCritic(target_widths=())}, ValueError, "BigCritic: target_widths"),
    ({"critic": BigCritic(joint_widths=())}, ValueError, "BigCritic: joint_widths"),
    ({"critic": BilinearCritic(target_widths="ab")}, ValueError, "BilinearCritic: target_widths"),
    ({"critic": SmallCritic(dropout=1.0)}, ValueError, "SmallCritic: dropout=1.0"),
    ({"critic": BilinearCritic(dropout=-0.1)}, ValueError, "BilinearCritic: dropout=-0.1"),
    ({"critic": SmallCritic(dropout="x")}, (TypeError, ValueError), "dropout"),
    ({"critic": BigCritic(slope=2.0)}, ValueError, "BigCritic: slope=2.0"),
]
OF_PREDICTORS = [
    ({"network": "dense"}, TypeError, "network must be"),
    ({"network": SmallCritic()}, TypeError, "network must be"),
    ({"network": nn.Linear(4, 1)}, TypeError, "network .*callable"),
    ({"network": lambda d, k: 3}, TypeError, "callable must return a torch.nn.Module of x"),
    ({"network": lambda d, k: nn.Linear(d, k + 1)}, ValueError, "outputs|shape"),
    ({"network": lambda d, k: nn.Sequential(nn.Linear(d, k), nn.Flatten(0))}, ValueError, "rows"),
    ({"network": DenseNetwork(widths=())}, ValueError, "DenseNetwork: widths is empty"),
    ({"network": DenseNetwork(dropout=1.5)}, ValueError, "DenseNetwork: dropout=1.5"),
]


@pytest.mark.parametrize(("parameters", "error", "message"), [*SHARED, *OF_SIC])
def test_wrong_parameters_of_neural_sic_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        make(NeuralSIC, parameters).fit(X, Y)


@pytest.mark.parametrize(("parameters", "error", "message"), [*SHARED, *OF_PREDICTORS])
def test_wrong_parameters_of_the_classifier_are_named(parameters, error, message):
    """Two classes: a module that flattens its outputs has twice as many rows."""
    with pytest.raises(error, match=message):
        make(SobolevClassifier, parameters).fit(X, Y > 0)


def test_a_module_with_too_many_outputs_is_refused_by_the_regressor():
    """Three columns would be compared with the one response by broadcasting."""
    with pytest.raises(ValueError, match=r"outputs|shape"):
        make(SobolevRegressor, {"network": lambda d, k: nn.Linear(d, 3)}).fit(X, Y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
def test_a_missing_device_is_named():
    with pytest.raises(ValueError, match=r"device='cuda': CUDA is not available.*auto"):
        NeuralSIC(optimizer=Optimizer(device="cuda")).fit(X, Y)


def with_value(value):
    rows = X.copy()
    rows[3, 2] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (with_value(np.nan), Y, "NaN .*column 2"),
        (with_value(np.inf), Y, "infinity .*column 2"),
        (X, np.full(40, 2.0), "y is constant"),
        (X, ["a"] * 40, "one class"),
        (X, Y[:-1], "40 rows but y has 39"),
        (X[:3], Y[:3], "at least 4"),
        (np.ones((40, 2)), Y, "every column of X is constant"),
        (X, None, "requires y"),
    ],
)
def test_data_that_cannot_be_used_are_named(rows, y, message):
    with pytest.raises(ValueError, match=message):
        make(NeuralSIC, {}).fit(rows, y)


def test_a_regressor_takes_numbers_and_a_classifier_labels():
    with pytest.raises(ValueError, match="text, not numbers"):
        make(SobolevRegressor, {}).fit(X, np.where(Y > 0, "high", "low"))
    with pytest.raises(ValueError, match="Unknown label type"):
        make(SobolevClassifier, {}).fit(X, Y)
