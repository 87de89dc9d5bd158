"""The folder of results: all files or none, and never in place of other files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from sobolev._files import write_atomic
from sobolev.inference.audit_log import has_runs
from sobolev.report import SelectionResult, write_result

FILES = ("selection.csv", "result.json", "report.html")
AUDIT_FILES = ("audit.png", "audit.json")
# Keys of the JSON files that tell ours from others.
KEYS = {"result.json": {"schema", "method", "features"}, "audit.json": {"schema", "audits"}}
# The command of an audit that is not done; its log stands beside it.
COMMAND = "command.txt"


def choose_folder(
    asked: Path | None, default: str, command: str, files: Sequence[str] = FILES
) -> Path:
    """The folder for the results of a command, checked before the work.

    Parameters
    ----------
    asked : Path or None
        The folder that the user named. It must not hold the results of another command.
    default : str
        Name of the folder otherwise; a number is added if that one holds other results.
    command : str
        The same command as before replaces its results, and continues its audit.
    files : sequence of str
        Names of the files to write.
    """
    if asked is None:
        names = (default if number == 1 else f"{default}-{number}" for number in count(1))
        folder = next(f for f in map(Path, names) if _obstacle(f, command, files) is None)
    else:
        folder, obstacle = asked, _obstacle(asked, command, files)
        if obstacle is not None:
            raise ValueError(obstacle)
    parent = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"no permission to write to {str(parent)!r}; choose another --out.")
    return folder


def _obstacle(folder: Path, command: str, files: Sequence[str]) -> str | None:
    """Why the results of a command must not be written to a folder, or None."""
    if folder.exists() and not folder.is_dir():
        return f"--out {str(folder)!r} is a file; give a folder."
    present = [name for name in files if (folder / name).exists()]
    started = folder / COMMAND
    if started.is_file():
        owner = started.read_text(encoding="utf-8", errors="replace").strip()
    elif present:
        found = _ours(folder / next(name for name in files if name in KEYS))
        if found is None:
            return (
                f"{str(folder / present[0])!r} exists already and was not written by sobolev; "
                "choose another folder with --out."
            )
        owner = str((found.get("settings") or {}).get("command"))
    else:
        return None
    if owner == command:
        return None
    return f"{str(folder)!r} holds results of another run ({owner}); choose another --out."


def _ours(path: Path) -> dict[str, Any] | None:
    """The content of a JSON file that sobolev has written, otherwise None."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and KEYS[path.name] <= found.keys() else None


@contextmanager
def marking(log: Path | None, command: str) -> Iterator[None]:
    """Keep the folder of an audit for the command that can continue it, until it is done."""
    if log is None:
        yield
        return
    made = [p for p in (log.parent, *log.parent.parents) if not p.exists()]
    mark = log.with_name(COMMAND)
    log.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(mark, command + "\n")
    try:
        yield
    except BaseException:
        if not has_runs(log):  # nothing to continue
            log.unlink(missing_ok=True)
            mark.unlink(missing_ok=True)
            _remove_empty(made)
        raise


def _remove_empty(folders: Sequence[Path]) -> None:
    for path in folders:
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def save(result: SelectionResult, folder: Path) -> dict[str, Path]:
    """Write the files to a hidden folder, then move them into place.

    Parameters
    ----------
    result : SelectionResult
    folder : Path
        Created if it does not exist, and removed again if nothing could be written.

    Returns
    -------
    dict of Path
        The files by name.
    """
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=folder, prefix=".sobolev-", ignore_cleanup_errors=True
        ) as staging:
            written = write_result(result, staging)
            return {name: path.replace(folder / name) for name, path in written.items()}
    except BaseException:
        _remove_empty(made)
        raise
