"""Files that hold a fitted neural estimator: numbers and text, nothing that runs.

A file is of torch's weights-only kind: named tensors, and one JSON text with everything else. Only
the types listed here are read back.
"""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from sobolev._files import write_atomic
from sobolev._standardize import Standardizer
from sobolev.criterion import Decomposition
from sobolev.neural import critics
from sobolev.neural.arrays import to_numpy
from sobolev.neural.fitting import Design, Ensemble, Moments
from sobolev.neural.networks import Wrapped
from sobolev.neural.objectives import CrossEntropy, ExactSIC, PairedSIC, SquaredError
from sobolev.neural.training import History
from sobolev.targets import TargetColumn, TargetEncoder

FORMAT, VERSION = "sobolev-neural", 1

_RECORDS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(Standardizer, Decomposition, Moments, History, TargetColumn),
        *(Design, ExactSIC, PairedSIC, SquaredError, CrossEntropy),
    )
}
_SPECIFICATIONS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        critics.SmallCritic,
        critics.BigCritic,
        critics.BilinearCritic,
        critics.DenseNetwork,
    )
}
_DAMAGED = (RuntimeError, OSError, EOFError, KeyError, TypeError, ValueError)
_EstimatorT = TypeVar("_EstimatorT")


def save_estimator(estimator: Any, path: str | Path) -> Path:
    """Write a fitted estimator; the file is complete or not there."""
    check_is_fitted(estimator, "feature_importances_")
    tensors: dict[str, torch.Tensor] = {}
    parameters = estimator.get_params(deep=False)
    defaults = type(estimator)().get_params(deep=False)
    # What cannot be written, such as a Generator or a splitter, comes back as the default.
    packed = {name: _pack(value, tensors) for name, value in parameters.items()}
    for name, value in parameters.items():
        if packed[name] is None and value is not None:
            packed[name] = _pack(defaults[name], tensors)
    fitted = {name: value for name, value in vars(estimator).items() if name not in parameters}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(estimator).__name__,
        "parameters": packed,
        "fitted": _pack(fitted, tensors),
    }
    buffer = io.BytesIO()
    torch.save({"content": json.dumps(content), "tensors": tensors}, buffer)
    return write_atomic(path, buffer.getvalue())


def load_estimator(cls: type[_EstimatorT], path: str | Path, module: Any) -> _EstimatorT:
    """Read what :func:`save_estimator` wrote; ``module`` stands in for a callable, if any."""
    name, data = Path(path).name, Path(path).read_bytes()
    foreign = ValueError(f"{name} is not a file written by save(), or it is damaged.")
    try:
        stored = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        content, tensors = json.loads(stored["content"]), stored["tensors"]
        version = int(content["version"])
        known = content["format"] == FORMAT
    except (*_DAMAGED, pickle.UnpicklingError) as error:
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
        estimator = cls(**{name: _unpack(value, tensors, given) for name, value in parameters})
        fitted = _unpack(content["fitted"], tensors, given)
    except (KeyError, TypeError, AttributeError) as error:
        raise foreign from error
    for attribute, value in fitted.items():
        setattr(estimator, attribute, value)
    return estimator


def _pack(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """JSON for a value; arrays go to ``tensors``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _pack_array(value, tensors)
    if isinstance(value, (list, tuple, range)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"$": kind, "items": [_pack(v, tensors) for v in value]}
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, dict):
        pairs = [[_pack(k, tensors), _pack(v, tensors)] for k, v in value.items()]
        return {"$": "dict", "items": pairs}
    if isinstance(value, slice):
        return None
    if isinstance(value, Ensemble):
        return _pack_ensemble(value, tensors)
    name = type(value).__name__
    if name in _RECORDS and is_dataclass(value):
        own = {f.name: getattr(value, f.name) for f in fields(value)}
        return {"$": name, "fields": {k: _pack(v, tensors) for k, v in own.items()}}
    if name in _SPECIFICATIONS and hasattr(value, "get_params"):
        return {"$": name, "fields": {k: _pack(v, tensors) for k, v in value.get_params().items()}}
    if isinstance(value, TargetEncoder):
        return {
            "$": "TargetEncoder",
            "fields": {k: _pack(v, tensors) for k, v in vars(value).items()},
        }
    if callable(value):
        return {"$": "callable"}
    return None  # a Generator as random_state, a device: not needed to use the estimator


def _pack_array(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if value.dtype.kind in "OUS":
        return {"$": "labels", "kind": value.dtype.kind, "items": [_plain(v) for v in value]}
    name = str(len(tensors))
    tensors[name] = torch.from_numpy(np.array(value, order="C"))
    return {"$": "array", "name": name}


def _plain(label: Any) -> Any:
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return label if isinstance(label, (bool, int, float)) else str(label)


def _pack_ensemble(value: Ensemble, tensors: dict[str, torch.Tensor]) -> Any:
    network = value.network
    d, k = value.sizes
    return {
        "$": "Ensemble",
        "design": _pack(value.design, tensors),
        "sizes": [d, k],
        "metric": _pack(getattr(network, "metric", None), tensors),
        "parameters": [_pack(to_numpy(p), tensors) for p in _weights(network)],
        "eta": _pack(value.eta, tensors),
        "moments": _pack(value.moments, tensors),
        "history": _pack(value.history, tensors),
    }


def _weights(network: Any) -> list[Any]:
    """Everything that a network has learned; of a module also its buffers."""
    if isinstance(network, Wrapped):
        return list(network.module.state_dict().values())
    return list(network.parameters)


def _unpack(value: Any, tensors: dict[str, torch.Tensor], given: list[Any]) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["$"]
    if kind == "array":
        return tensors[value["name"]].numpy()
    if kind == "labels":
        if value["kind"] == "S":
            return np.array([item.encode("latin-1") for item in value["items"]])
        return np.array(value["items"], dtype=object if value["kind"] == "O" else None)
    if kind in ("list", "tuple"):
        items = [_unpack(v, tensors, given) for v in value["items"]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        pairs = [[_unpack(part, tensors, given) for part in pair] for pair in value["items"]]
        return dict(pairs)
    if kind == "callable":
        return given[0] if given else None
    if kind == "Ensemble":
        return _unpack_ensemble(value, tensors, given)
    content = {name: _unpack(v, tensors, given) for name, v in value["fields"].items()}
    if kind in _SPECIFICATIONS:
        return _SPECIFICATIONS[kind](**content)
    if kind == "TargetEncoder":
        encoder = TargetEncoder()
        encoder.__dict__.update(content)
        return encoder
    if kind in _RECORDS:
        return _RECORDS[kind](**content)
    raise ValueError(f"the file holds a {kind}, which is not known here.")


def _unpack_ensemble(value: Any, tensors: dict[str, torch.Tensor], given: list[Any]) -> Ensemble:
    parts = {
        name: _unpack(value[name], tensors, given)
        for name in ("design", "metric", "eta", "moments", "history")
    }
    design, metric = parts["design"], parts.pop("metric")
    if design.spec is None:
        raise ValueError("the critic came from a callable; pass the same callable to load().")
    d, k = value["sizes"]
    rngs = [np.random.default_rng(0) for _ in range(parts["eta"].shape[0])]
    network = design.build(rngs, d, k)
    weights = [_unpack(p, tensors, given) for p in value["parameters"]]
    expected = [tuple(p.shape) for p in _weights(network)]
    if expected != [tuple(w.shape) for w in weights]:
        raise ValueError("the callable builds a module of another shape than the saved one.")
    if isinstance(network, Wrapped):
        state = network.module.state_dict()
        network.module.load_state_dict(
            {name: torch.as_tensor(w) for name, w in zip(state, weights, strict=True)}
        )
        network.metric = metric
    else:
        network = network.replace(weights)
    return Ensemble(network=network, sizes=(d, k), **parts)
