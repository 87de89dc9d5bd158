"""Writing of results to disk, such that an interrupted program leaves no partial file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Write a file so that a reader sees either the old content or the new, never a part.

    Parameters
    ----------
    path : str or Path
        File to write; its folder is created if it does not exist.
    content : str or bytes
        Content; text is encoded as UTF-8.

    Returns
    -------
    Path
        The written file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # a full disk may be reported only here
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
