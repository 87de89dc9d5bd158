"""Files of neural estimators: everything comes back, nothing in them is executed."""

import json
import os
import pickle
import zipfile
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from torch import nn

from sobolev import NeuralSIC, SobolevClassifier, SobolevRegressor, load, save
from sobolev.exceptions import DataWarning
from sobolev.neural import (
    BigCritic,
    BilinearCritic,
    Boosting,
    DenseNetwork,
    EarlyStopping,
    Optimizer,
    SmallCritic,
)
from sobolev.targets import TargetEncoder

N, D = 60, 5
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
Y = X[:, 1] + 0.1 * RNG.standard_normal(N)
NAMES = [f"gene{j}" for j in range(D)]
LABELS = np.array(["high", "low", "mid"])[np.digitize(Y, [-0.3, 0.6])]
FIELDS = {field.name for field in fields(Optimizer)}
SEVERAL = np.column_stack([Y, X[:, 0]])


class Plain(nn.Module):
    """A user's critic."""

    def __init__(self, n_features, n_targets):
        super().__init__()
        self.x, self.y = nn.Linear(n_features, 8), nn.Linear(n_targets, 8)

    def forward(self, x, y):
        return (torch.relu(self.x(x)) * self.y(y)).sum(1)


class Module(nn.Module):
    """A user's critic with buffers, one of them without dimensions."""

    def __init__(self, n_features, n_targets, width=8):
        super().__init__()
        self.first = nn.Linear(n_features + n_targets, width)
        self.norm = nn.BatchNorm1d(width)
        self.last = nn.Linear(width, 1)

    def forward(self, x, y):
        return self.last(torch.relu(self.norm(self.first(torch.cat([x, y], dim=1)))))


def wider(n_features, n_targets):
    return Module(n_features, n_targets, width=9)


def fit(cls=NeuralSIC, y=Y, rows=X, **parameters):
    parameters = {"max_iter": 10, "rounds": 2, "random_state": 0} | parameters
    training = {name: parameters.pop(name) for name in FIELDS & parameters.keys()}
    return cls(optimizer=Optimizer(**training), **parameters).fit(rows, y)


ESTIMATORS = {
    "bilinear": lambda: (fit(), Y),
    "small": lambda: (fit(critic=SmallCritic(widths=(20,), slope=0.1)), Y),
    "big": lambda: (fit(critic=BigCritic(widths=[20], dropout=0.1)), Y),
    "layers of y": lambda: (fit(critic=BilinearCritic(target_widths=(20,)), boosting=9), Y),
    "list": lambda: (fit(critic=["bilinear", "small"], batch_size=[20, 30], boosting=2), Y),
    "labels": lambda: (fit(y=LABELS), LABELS),
    "booleans": lambda: (fit(y=Y > 0), Y > 0),
    "mixture": lambda: (fit(y=LABELS, measure="mixture"), LABELS),
    "several": lambda: (fit(critic="small", y=SEVERAL), SEVERAL),
    "polynomial": lambda: (fit(target=TargetEncoder(basis="polynomial", degree=2)), Y),
    "normal scores": lambda: (fit(target=TargetEncoder(basis="normal_scores")), Y),
    "groups": lambda: (fit(feature_groups={"a": [0, 1], "b": (2, 3)}), Y),
    "early stopping": lambda: (fit(early_stopping=EarlyStopping(), boosting=2), Y),
    "auto": lambda: (fit(lam="auto", cv=2), Y),
    "generator": lambda: (fit(random_state=np.random.default_rng(0)), Y),
    "geometric": lambda: (fit(boosting=Boosting(2, "geometric")), Y),
    "paper": lambda: (NeuralSIC.paper(optimizer=Optimizer.paper(max_iter=10)).fit(X, Y), Y),
    "regressor": lambda: (fit(SobolevRegressor, boosting=2), Y),
    "regressor of several": lambda: (fit(SobolevRegressor, SEVERAL), SEVERAL),
    "network": lambda: (fit(SobolevRegressor, network=DenseNetwork(widths=(9,), bias=False)), Y),
    "classifier": lambda: (fit(SobolevClassifier, LABELS), LABELS),
}


def assert_equal(one, other):
    """The same numbers and text, whatever holds them."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert type(one) is type(other)
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_equal(left, right)
    elif isinstance(one, np.ndarray):
        assert one.dtype.kind == other.dtype.kind
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, np.random.Generator):
        assert other is None
    elif hasattr(one, "get_params"):
        assert type(one) is type(other)
        assert_equal(one.get_params(), other.get_params())
    elif hasattr(one, "__dict__") and not callable(one):
        assert type(one) is type(other)
        assert_equal(vars(one), vars(other))
    else:
        assert one == other


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_what_is_saved_comes_back(make, tmp_path):
    fitted, y = make()
    loaded = load(save(fitted, tmp_path / "model.npz"))
    assert_equal(fitted.get_params(), loaded.get_params())
    for name, value in vars(fitted).items():
        if name.endswith("_"):
            assert_equal(value, getattr(loaded, name))
    if isinstance(fitted, NeuralSIC):
        np.testing.assert_array_equal(loaded.witness(X, y), fitted.witness(X, y))
        np.testing.assert_array_equal(loaded.risk(X, y), fitted.risk(X, y))
        np.testing.assert_array_equal(loaded.explain(X, y).features, fitted.explain(X, y).features)
    else:
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))


def test_names_of_columns_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=NAMES).assign(flat=1.0)
    with pytest.warns(DataWarning):
        fitted = fit(rows=frame, feature_groups={"pair": ["gene0", "gene1"]})
    loaded = load(save(fitted, tmp_path / "model.npz"))
    assert loaded.feature_names_in_.tolist() == [*NAMES, "flat"]
    assert loaded.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    assert loaded.group_names_ == fitted.group_names_
    np.testing.assert_array_equal(loaded.witness(frame, Y), fitted.witness(frame, Y))


@pytest.mark.parametrize("cls", [NeuralSIC, SobolevRegressor])
def test_a_loaded_estimator_can_be_fitted_again(cls, tmp_path):
    fitted = fit(cls)
    loaded = load(save(fitted, tmp_path / "model.npz")).fit(X, Y)
    np.testing.assert_array_equal(loaded.feature_importances_, fitted.feature_importances_)


def test_a_loaded_estimator_goes_on_where_it_was(tmp_path):
    fitted = fit(warm_start=True)
    loaded = load(save(fitted, tmp_path / "model.npz"))
    np.testing.assert_array_equal(
        loaded.fit(X, Y).feature_importances_, fitted.fit(X, Y).feature_importances_
    )


# Modules of the user's own


@pytest.mark.parametrize("module", [Plain, Module], ids=["plain", "buffers"])
def test_a_module_comes_back_with_its_callable(module, tmp_path):
    fitted = fit(critic=module, boosting=2)
    path = save(fitted, tmp_path / "model.npz")
    loaded = load(path, module=module)
    np.testing.assert_array_equal(loaded.witness(X, Y), fitted.witness(X, Y))
    assert loaded.critic is module
    with pytest.raises(ValueError, match=r"from a callable; pass the same callable to load"):
        load(path)
    with pytest.raises(ValueError, match="module of another shape"):
        load(path, module=wider)


def test_a_module_among_other_critics_comes_back_in_its_place(tmp_path):
    fitted = fit(critic=["small", Plain])
    loaded = load(save(fitted, tmp_path / "model.npz"), module=Plain)
    np.testing.assert_array_equal(loaded.witness(X, Y), fitted.witness(X, Y))
    assert loaded.critic == ["small", Plain]


# Safety


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_files_hold_numbers_and_text_only(make, tmp_path):
    path = save(make()[0], tmp_path / "model.npz")
    with np.load(path, allow_pickle=False) as stored:
        kinds = {name: stored[name].dtype.kind for name in stored.files}
        assert isinstance(json.loads(str(stored["content"])), dict)
    assert kinds.pop("content") == "U"
    assert kinds  # arrays are there
    assert set(kinds.values()) <= set("fiub")
    with zipfile.ZipFile(path) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())


class Harmful:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("kind", ["plain pickle", "torch file", "object", "inside an array"])
def test_harmful_files_are_refused_and_not_executed(kind, tmp_path):
    path, harm = tmp_path / "model.npz", tmp_path / "harm"
    objects = np.array([Harmful(harm)], dtype=object)
    if kind == "plain pickle":
        path.write_bytes(pickle.dumps(Harmful(harm)))
    elif kind == "torch file":
        torch.save(Harmful(harm), path)
    elif kind == "object":
        with path.open("wb") as file:
            np.save(file, objects, allow_pickle=True)
    else:
        with np.load(save(fit(), path)) as stored:
            arrays = dict(stored)
        np.savez(path, **(arrays | {"array0": objects}))
        with zipfile.ZipFile(path) as archive:  # it is there, and would run
            assert b"mkdir" in archive.read("array0.npy")
    with pytest.raises(ValueError, match=r"model\.npz is not a file written by sobolev") as error:
        load(path)
    assert "\n" not in str(error.value)
    assert not harm.exists()


def rewrite(path, change):
    """Change the content of a saved file."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = dict(stored)
    content = json.loads(str(arrays.pop("content")))
    change(content, arrays)
    np.savez(path, content=np.array(json.dumps(content)), **arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content, arrays: content.update(version=99), "version 99.*newer"),
        (
            lambda content, arrays: content.update(format="other"),
            "not a file written by",
        ),
        (lambda content, arrays: content.pop("version"), "not a file written by"),
        (
            lambda content, arrays: content["parameters"].update(
                critic={"$": "Popen", "fields": {}}
            ),
            "Po",
        ),
        (lambda content, arrays: arrays.clear(), "not a file written by"),
    ],
    ids=["newer", "foreign", "no version", "unknown type", "no arrays"],
)
def test_files_that_cannot_be_read_give_one_line(change, message, tmp_path):
    path = save(fit(), tmp_path / "model.npz")
    rewrite(path, change)
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_truncated_files_give_one_line(share, tmp_path):
    path = save(fit(), tmp_path / "model.npz")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"model\.npz is not a file written by sobolev") as error:
        load(path)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.npz")


# Writing


def test_writing_leaves_one_file_and_replaces_it_whole(tmp_path, monkeypatch):
    fitted = fit()
    path = save(fitted, str(tmp_path / "folder" / "model.npz"))
    assert [p.name for p in path.parent.iterdir()] == ["model.npz"]
    before = path.read_bytes()

    def full(*arguments):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        save(fit(random_state=1), path, overwrite=True)
    assert [p.name for p in path.parent.iterdir()] == ["model.npz"]
    assert path.read_bytes() == before


def test_only_fitted_estimators_are_saved(tmp_path):
    with pytest.raises(NotFittedError):
        save(NeuralSIC(), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("feature_groups", {"pair": range(2)}, {"pair": [0, 1]}),
        ("device", torch.device("cpu"), "cpu"),
        ("cv", KFold(3), 5),
    ],
    ids=["range", "device", "splitter"],
)
def test_parameters_come_back_so_that_a_refit_works(name, value, expected, tmp_path):
    fitted = fit(**{name: value})
    loaded = load(save(fitted, tmp_path / "model.npz"))
    assert getattr(loaded.optimizer if name in FIELDS else loaded, name) == expected
    np.testing.assert_array_equal(
        loaded.fit(X, Y).feature_importances_, fitted.feature_importances_
    )


def test_labels_of_bytes_come_back(tmp_path):
    labels = (Y > 0).astype("S5")
    fitted = fit(y=labels, max_iter=5, rounds=1)
    loaded = load(save(fitted, tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.classes_, fitted.classes_)
    np.testing.assert_array_equal(loaded.witness(X, labels), fitted.witness(X, labels))
