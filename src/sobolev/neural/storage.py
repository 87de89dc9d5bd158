"""Files that hold a fitted neural estimator: numbers and text, nothing that runs.

A file is a numpy archive (.npz, read without pickle): named arrays, and one JSON text with
everything else. Only the types listed here are read back.
"""

from __future__ import annotations

import io
import json
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sobolev._files import write_atomic
from sobolev._standardize import NormalScores, Standardizer
from sobolev._typing import AnyArray
from sobolev.criterion import Decomposition
from sobolev.neural import critics, optimizer
from sobolev.neural.arrays import to_numpy
from sobolev.neural.fitting import Design, Ensemble, Moments
from sobolev.neural.objectives import CrossEntropy, ExactSIC, PairedSIC, SquaredError
from sobolev.neural.training import History
from sobolev.targets import TargetColumn, TargetEncoder

FORMAT, VERSION = "sobolev-neural", 2

_RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Standardizer, NormalScores, Decomposition, Moments, History, TargetColumn, TargetEncoder),
        *(Design, ExactSIC, PairedSIC, SquaredError, CrossEntropy),
        *(critics.SmallCritic, critics.BigCritic, critics.BilinearCritic, critics.DenseNetwork),
        *(optimizer.Optimizer, optimizer.EarlyStopping, optimizer.Boosting),
    )
}
_DAMAGED = (BadZipFile, OSError, EOFError, KeyError, TypeError, ValueError, AttributeError)
_Arrays = dict[str, AnyArray]
_EstimatorT = TypeVar("_EstimatorT")


def save_estimator(estimator: Any, path: str | Path) -> Path:
    """Write a fitted estimator; the file is complete or not there."""
    check_is_fitted(estimator, "feature_importances_")
    arrays: _Arrays = {}
    parameters = estimator.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False)
    # What cannot be written, such as a Generator or a splitter, comes back as the default.
    packed = {name: _pack(value, arrays) for name, value in parameters.items()}
    for name, value in parameters.items():
        if packed[name] is None and value is not None:
            packed[name] = _pack(defaults[name], arrays)
    fitted = {name: value for name, value in vars(estimator).items() if name not in parameters}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(estimator).__name__,
        "parameters": packed,
        "fitted": _pack(fitted, arrays),
    }
    buffer = io.BytesIO()
    np.savez(buffer, content=np.array(json.dumps(content)), **arrays)  # type: ignore[arg-type]
    return write_atomic(path, buffer.getvalue())


def load_estimator(cls: type[_EstimatorT], path: str | Path, module: Any) -> _EstimatorT:
    """Read what :func:`save_estimator` wrote; ``module`` stands in for a callable, if any."""
    name, data = Path(path).name, Path(path).read_bytes()
    foreign = ValueError(f"{name} is not a file written by save(), or it is damaged.")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
        content = json.loads(str(arrays.pop("content")))
        version = int(content["version"])
        known = content["format"] == FORMAT
    except _DAMAGED as error:
        raise foreign from error
    if not known:
        raise foreign
    if version > VERSION:
        raise ValueError(
            f"{name} has format version {version}; this version of sobolev reads up to {VERSION}. "
            "Install a newer one."
        )
    if content["class"] != cls.__name__:
        raise ValueError(f"{name} holds a {content['class']}; use {content['class']}.load.")
    given = [] if module is None else [module]
    try:
        parameters = content["parameters"].items()
        estimator = cls(**{name: _unpack(value, arrays, given) for name, value in parameters})
        fitted = _unpack(content["fitted"], arrays, given)
    except (KeyError, TypeError, AttributeError) as error:
        raise foreign from error
    for attribute, value in fitted.items():
        setattr(estimator, attribute, value)
    return estimator


def _pack(value: Any, arrays: _Arrays) -> Any:
    """JSON for a value; arrays go to ``arrays``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _pack_array(value, arrays)
    if isinstance(value, (list, tuple, range)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"$": kind, "items": [_pack(v, arrays) for v in value]}
    if isinstance(value, dict):
        pairs = [[_pack(k, arrays), _pack(v, arrays)] for k, v in value.items()]
        return {"$": "dict", "items": pairs}
    if isinstance(value, Ensemble):
        return _pack_ensemble(value, arrays)
    name = type(value).__name__
    if _RECORDS.get(name) is type(value):
        return {"$": name, "fields": {k: _pack(v, arrays) for k, v in vars(value).items()}}
    if name == "device":  # of torch
        return str(value)
    if callable(value):
        return {"$": "callable"}
    return None  # a Generator as random_state: not needed to use the estimator


def _pack_array(value: AnyArray, arrays: _Arrays) -> Any:
    if value.dtype.kind in "OUS":
        return {"$": "labels", "kind": value.dtype.kind, "items": [_plain(v) for v in value]}
    name = f"array{len(arrays)}"
    arrays[name] = value
    return {"$": "array", "name": name}


def _plain(label: Any) -> Any:
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return label if isinstance(label, (bool, int, float)) else str(label)


def _pack_ensemble(value: Ensemble, arrays: _Arrays) -> Any:
    network = value.network
    parts = {
        name: getattr(value, name) for name in ("design", "sizes", "eta", "moments", "history")
    }
    return {
        "$": "Ensemble",
        "parts": _pack(parts, arrays),
        "metric": _pack(getattr(network, "metric", None), arrays),
        "state": [_pack(to_numpy(p), arrays) for p in network.state],
    }


def _unpack(value: Any, arrays: _Arrays, given: list[Any]) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["$"]
    if kind == "array":
        return arrays[value["name"]]
    if kind == "labels":
        if value["kind"] == "S":
            return np.array([item.encode("latin-1") for item in value["items"]])
        return np.array(value["items"], dtype=object if value["kind"] == "O" else None)
    if kind in ("list", "tuple"):
        items = [_unpack(v, arrays, given) for v in value["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        pairs = [[_unpack(part, arrays, given) for part in pair] for pair in value["items"]]
        return dict(pairs)
    if kind == "callable":
        return given[0] if given else None
    if kind == "Ensemble":
        return _unpack_ensemble(value, arrays, given)
    if kind not in _RECORDS:
        raise ValueError(f"the file holds a {kind}, which is not known here.")
    cls, content = _RECORDS[kind], value["fields"]
    content = {name: _unpack(v, arrays, given) for name, v in content.items()}
    record = cls(**{name: content.pop(name) for name in signature(cls).parameters})
    vars(record).update(content)  # what a fit has added
    return record


def _unpack_ensemble(value: Any, arrays: _Arrays, given: list[Any]) -> Ensemble:
    parts = _unpack(value["parts"], arrays, given)
    if parts["design"].spec is None:
        raise ValueError("the critic came from a callable; pass the same callable to load().")
    rngs = [np.random.default_rng(0) for _ in range(parts["eta"].shape[0])]
    network = parts["design"].build(rngs, *parts["sizes"])
    state = [_unpack(p, arrays, given) for p in value["state"]]
    if [tuple(p.shape) for p in network.state] != [a.shape for a in state]:
        raise ValueError("the callable builds a module of another shape than the saved one.")
    network = network.with_state(state, _unpack(value["metric"], arrays, given))
    return Ensemble(network=network, **parts)
