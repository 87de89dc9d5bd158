"""The file of an audit that is under way: one line for each finished run, so that it can go on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sobolev._files import write_atomic
from sobolev._typing import Array, Index
from sobolev.inference.audit_result import SCHEMA, AuditRun

# Parameters that do not change a selection.
SILENT = ("n_jobs", "verbose")


class AuditLog:
    """Finished runs on disk.

    The first line holds the fingerprint of the audit and its seed, every other line one run. A line
    that a killed program left unfinished, or that is no run, is dropped.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps nothing.
    fingerprint : str
        See :func:`fingerprint`.
    seed : int or None
        Seed of the audit; None takes that of the file, or a new one.
    """

    def __init__(self, path: str | Path | None, fingerprint: str, seed: int | None) -> None:
        self.path = None if path is None else Path(path)
        lines = [] if self.path is None else _lines(self.path)
        if lines:
            head = lines[0]
            same = head.get("fingerprint") == fingerprint
            if not same or (seed is not None and head.get("seed") != seed):
                raise ValueError(
                    f"resume={str(path)!r} was written by another audit (other data, selector or "
                    "random_state, or no audit at all); delete the file or pass another one."
                )
            seed = int(head["seed"])
        self.seed = int(np.random.default_rng().integers(2**63)) if seed is None else seed
        self.runs = list({run.number: run for run in _runs(lines[1:])}.values())
        if self.path is not None:
            head = {"audit": SCHEMA, "fingerprint": fingerprint, "seed": self.seed}
            kept = [head, *map(asdict, self.runs)]
            write_atomic(self.path, "".join(map(_line, kept)))

    def add(self, run: AuditRun) -> None:
        """Keep a run; it is in the file when this returns."""
        self.runs.append(run)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(asdict(run)))


def has_runs(path: Path) -> bool:
    """Whether a file keeps a finished run."""
    return any(True for _ in _runs(_lines(path)[1:]))


def fingerprint(
    selector: Any, X: Array, names: list[str], y: Any, groups: Index | None, *, level: float
) -> str:
    """The same for the same data, selector and level, whatever process asks."""
    digest = hashlib.sha256(np.ascontiguousarray(X).tobytes())
    if y is not None:
        digest.update(pd.util.hash_pandas_object(pd.DataFrame(y), index=False).to_numpy().tobytes())
    if groups is not None:
        digest.update(groups.astype(np.int64).tobytes())
    settings = [type(selector).__name__, _parameters(selector), names, level]
    digest.update(json.dumps(settings).encode())
    return digest.hexdigest()


def _parameters(selector: Any) -> list[list[str]]:
    """Parameters by name, those of parts included; other objects by their classes."""
    if not hasattr(selector, "get_params"):
        return []
    found = selector.get_params(deep=True)
    return [
        [name, _shown(value)]
        for name, value in sorted(found.items())
        if name.split("__")[-1] not in SILENT
    ]


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (str, Real)):
        return repr(value)
    if hasattr(value, "tolist"):
        return repr(value.tolist())
    if is_dataclass(value) and not hasattr(value, "get_params"):  # a part, such as a scheme
        return repr(value)
    if isinstance(value, dict):
        return str([[_shown(k), _shown(v)] for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return str([_shown(item) for item in value])
    return type(value).__name__


def _runs(lines: list[dict[str, Any]]) -> Iterator[AuditRun]:
    """The lines that hold a run."""
    for line in lines:
        with suppress(ValueError):
            yield AuditRun.from_dict(line)


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False) + "\n"


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file that are whole; an existing file without any is no audit."""
    if not path.exists():
        return []
    found: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            content = None
        if isinstance(content, dict):
            found.append(content)
        elif not found:
            break
    return found or [{}]
