"""Write and read estimators: a numpy archive with arrays, and one JSON text for everything else.

The archive (.npz) is read without pickle. The text names classes, which are looked up in
:mod:`sobolev.storage.records`; no other class is made and no name in a file is imported.

Version 3 of the format holds all estimators. Version 2 (before 0.1.0) held the neural ones, in the
same layout, and is read. There is no file of version 1 that could be read without torch.
"""

from __future__ import annotations

import io
import json
import math
import warnings
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sobolev._files import write_atomic
from sobolev._typing import AnyArray
from sobolev._version import __version__
from sobolev.exceptions import SobolevWarning
from sobolev.storage.records import ESTIMATORS, KNOWN, LEFT_OUT

FORMATS, FORMAT, VERSION, OLDEST = ("sobolev", "sobolev-neural"), "sobolev", 3, 2
_CLASSES: dict[str, Any] = {cls.__name__: cls for cls in ESTIMATORS}
_DAMAGED = (
    *(BadZipFile, OSError, EOFError, KeyError, TypeError, ValueError, AttributeError),
    *(MemoryError, RecursionError, OverflowError, IndexError),
)


class _NotStorable(TypeError):
    """A value of a class that files do not hold."""


def save(estimator: Any, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a fitted estimator to a file that holds numbers and text, no code.

    Parameters
    ----------
    estimator : fitted ConvexSIC, NeuralSIC, SobolevRegressor, SobolevClassifier, HRTSelector or \
            KnockoffSelector
        Of a selector, the results are saved: everything that :meth:`summary`, ``transform`` and
        ``result`` need, and the critic; not the rows of the table, and not the model of the columns
        (``conditional_``, ``sampler_``).
    path : str or Path
        The file, such as ``"model.npz"``. It is complete or not there.
    overwrite : bool, default=False
        Whether to replace a file that exists.

    Returns
    -------
    Path

    Notes
    -----
    The landmarks of a :class:`~sobolev.ConvexSIC` are rows of the training table, in standard
    units: treat its file as you treat the table. A feature map of your own cannot be saved. A
    network of your own is saved by its weights; pass the callable that makes it to :func:`load`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sobolev
    >>> from sobolev.datasets import make_sinexp
    >>> X, y = make_sinexp(100, 8, random_state=0, return_X_y=True)
    >>> sic = sobolev.ConvexSIC(lam=0.03).fit(X, y)
    >>> path = sobolev.save(sic, Path(tempfile.mkdtemp()) / "model.npz")
    >>> again = sobolev.load(path)
    >>> bool((again.feature_importances_ == sic.feature_importances_).all())
    True
    """
    name = type(estimator).__name__
    if _CLASSES.get(name) is not type(estimator):
        raise TypeError(f"{name} cannot be saved; the estimators are {', '.join(_CLASSES)}.")
    check_is_fitted(estimator, "feature_importances_")
    if not overwrite and Path(path).exists():
        raise FileExistsError(f"{str(path)!r} exists already; pass overwrite=True or another path.")
    writer = _Writer()
    content = {"format": FORMAT, "version": VERSION, "written_by": f"sobolev {__version__}"}
    content |= writer.estimator(estimator)
    if writer.lost:
        warnings.warn(
            f"not saved: {', '.join(writer.lost)}. Parameters come back as their defaults.",
            SobolevWarning,
            stacklevel=2,
        )
    buffer = io.BytesIO()
    text = np.array(json.dumps(content, allow_nan=False))
    np.savez(buffer, content=text, **writer.arrays)  # type: ignore[arg-type]
    return write_atomic(path, buffer.getvalue())


def load(path: str | Path, module: Any = None) -> Any:
    """Read an estimator that :func:`save` wrote; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
    module : callable, optional
        What makes the critic or network of your own, if there was one.

    Returns
    -------
    estimator

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sobolev
    >>> from sobolev.datasets import make_sinexp
    >>> X, y = make_sinexp(100, 8, random_state=0, return_X_y=True)
    >>> hrt = sobolev.HRTSelector(sobolev.ConvexSIC(lam=0.03), random_state=0).fit(X, y)
    >>> path = sobolev.save(hrt, Path(tempfile.mkdtemp()) / "selection.npz")
    >>> bool((sobolev.load(path).support_ == hrt.support_).all())
    True
    """
    name, data = Path(path).name, Path(path).read_bytes()
    foreign = ValueError(f"{name} is not a file written by sobolev.save(), or it is damaged.")
    try:
        arrays = _read_arrays(data)
        content = json.loads(str(arrays.pop("content")))
        version, known = int(content["version"]), content["format"] in FORMATS
        writer = str(content.get("written_by", "an early version of sobolev"))
    except _DAMAGED as error:
        raise foreign from error
    if not known:
        raise foreign
    if version > VERSION:
        raise ValueError(
            f"{name} has format version {version}, written by {writer}; this version of sobolev "
            f"({__version__}) reads up to {VERSION}. Install a newer one."
        )
    if version < OLDEST:
        raise ValueError(
            f"{name} has format version {version}, from before the first release, which is no "
            "longer read; fit the estimator again and save it."
        )
    try:
        return _Reader(arrays, module).estimator(content)
    except _Told as error:
        raise ValueError(f"{name}: {error}") from error
    except _DAMAGED as error:
        raise foreign from error


def _read_arrays(data: bytes) -> dict[str, AnyArray]:
    with ZipFile(io.BytesIO(data)) as archive:
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise ValueError("compressed")  # save() compresses nothing, so sizes are what they say
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


class _Writer:
    """JSON for values; arrays are collected beside, each once."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self.lost: list[str] = []
        self._names: dict[int, str] = {}
        self._kept: list[AnyArray] = []  # keeps the numbers of arrays unique

    def estimator(self, estimator: Any) -> dict[str, Any]:
        """Class, parameters and fitted attributes."""
        parameters = estimator.get_params(deep=False)
        defaults = type(estimator)().get_params(deep=False)
        packed = {k: self._parameter(k, v, defaults[k]) for k, v in parameters.items()}
        fitted = {k: v for k, v in vars(estimator).items() if k not in parameters}
        found = {}
        for name, value in fitted.items():
            if name in LEFT_OUT:
                if name == "partial_moments_":  # partial_fit would begin anew
                    self._lose(name, value)
                continue
            try:
                found[name] = self.pack(value)
            except _NotStorable as error:
                if name != "estimator_":  # a predictor of another package
                    raise TypeError(
                        f"{type(estimator).__name__} cannot be saved: {name} holds a {error}, and "
                        "a file holds no code; use one of the feature maps of sobolev.convex, or "
                        "pickle for files that only you read."
                    ) from error
                self._lose(name, value)
        pairs = [[name, value] for name, value in found.items()]
        return {
            "class": type(estimator).__name__,
            "parameters": packed,
            "fitted": {"$": "dict", "items": pairs},
        }

    def _parameter(self, name: str, value: Any, default: Any) -> Any:
        try:
            return self.pack(value)
        except _NotStorable:  # a Generator, a splitter, a predictor of another package
            self._lose(name, value)
            return self.pack(default)

    def _lose(self, name: str, value: Any) -> None:
        said = f"{name} ({type(value).__name__})"
        if said not in self.lost:
            self.lost.append(said)

    def pack(self, value: Any) -> Any:
        """JSON for a value."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"$": "float", "value": str(float(value))}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, (list, tuple, range)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"$": kind, "items": [self.pack(v) for v in value]}
        if isinstance(value, dict):
            pairs = [[self.pack(k), self.pack(v)] for k, v in value.items()]
            return {"$": "dict", "items": pairs}
        name = type(value).__name__
        if name in KNOWN and KNOWN[name].cls is type(value):
            fields = KNOWN[name].fields(value)
            return {"$": name, "fields": {k: self.pack(v) for k, v in fields.items()}}
        if _CLASSES.get(name) is type(value):
            return {"$": "estimator", **self.estimator(value)}
        if name == "device":  # of torch
            return str(value)
        if callable(value):
            return {"$": "callable"}
        raise _NotStorable(name)

    def _array(self, value: AnyArray) -> Any:
        if value.dtype.kind in "OUS":
            items = [_plain(v) for v in value.ravel()]
            return {"$": "labels", "kind": value.dtype.kind, "items": items, "shape": value.shape}
        if id(value) not in self._names:
            self._names[id(value)] = f"array{len(self.arrays)}"
            self.arrays[self._names[id(value)]] = value
            self._kept.append(value)
        return {"$": "array", "name": self._names[id(value)]}


def _plain(label: Any) -> Any:
    if isinstance(label, bytes):
        return label.decode("latin-1")
    return label if isinstance(label, (bool, int, float)) else str(label)


class _Told(ValueError):
    """An error of a file that says more than that the file is damaged."""


class _Reader:
    """Values from JSON and arrays."""

    def __init__(self, arrays: dict[str, AnyArray], module: Any) -> None:
        self.arrays, self.module = arrays, module

    def estimator(self, content: dict[str, Any]) -> Any:
        """An estimator with its fitted attributes."""
        if content["class"] not in _CLASSES:
            raise _Told(f"the file holds a {content['class']}, which is not known here.")
        parameters = {k: self.unpack(v) for k, v in content["parameters"].items()}
        estimator = _CLASSES[content["class"]](**parameters)
        vars(estimator).update(self.unpack(content["fitted"]))
        return estimator

    def unpack(self, value: Any) -> Any:
        """A value of the file."""
        if not isinstance(value, dict):
            return value
        kind = value["$"]
        if kind == "float":
            return float(value["value"])
        if kind == "array":
            return self.arrays[value["name"]]
        if kind == "labels":
            return self._labels(value)
        if kind in ("list", "tuple"):
            items = [self.unpack(v) for v in value["items"]]
            return items if kind == "list" else tuple(items)
        if kind == "dict":
            return {self.unpack(k): self.unpack(v) for k, v in value["items"]}
        if kind == "callable":
            return self.module
        if kind == "estimator":
            return self.estimator(value)
        if kind == "Ensemble" and "fields" not in value:  # format version 2
            value = {"fields": {k: value[k] for k in ("parts", "metric", "state")}}
            value["fields"]["state"] = {"$": "list", "items": value["fields"]["state"]}
        if kind not in KNOWN:
            raise _Told(f"the file holds a {kind}, which is not known here.")
        fields = {k: self.unpack(v) for k, v in value["fields"].items()}
        try:
            return KNOWN[kind].build(fields)
        except ValueError as error:
            raise _Told(str(error)) from error

    def _labels(self, value: dict[str, Any]) -> AnyArray:
        items = value["items"]
        if value["kind"] == "S":
            found: AnyArray = np.array([item.encode("latin-1") for item in items])
        else:
            found = np.array(items, dtype=object if value["kind"] == "O" else None)
        return found.reshape(value.get("shape", [len(items)]))
