"""The folder of results: all files or none, and never in place of other files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sobolev.report import SelectionResult, write_result

FILES = ("selection.csv", "result.json", "report.html")
AUDIT_FILES = ("audit.png", "audit.json")
# Keys of the JSON files that tell ours from others.
KEYS = {"result.json": {"schema", "method", "features"}, "audit.json": {"schema", "audits"}}


def check_folder(folder: Path, files: Sequence[str] = FILES) -> None:
    """Fail before the work if the results could not be written: no permission, or other files."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {str(folder)!r} is a file; give a folder.")
    present = [name for name in files if (folder / name).exists()]
    if present and not _is_ours(folder / next(name for name in files if name in KEYS)):
        raise ValueError(
            f"{str(folder / present[0])!r} exists already and was not written by sobolev; choose "
            "another folder with --out."
        )
    parent = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not os.access(parent, os.W_OK | os.X_OK):
        raise ValueError(f"no permission to write to {str(parent)!r}; choose another --out.")


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and KEYS[path.name] <= found.keys()


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
        for path in made:
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        raise
