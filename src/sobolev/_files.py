"""The one place that writes results to disk, so that a kill leaves nothing half written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Write a file so that a reader sees the old content or the new, never half of it.

    Parameters
    ----------
    path : str or Path
        The file; its folder is made if need be.
    content : str or bytes
        Text is encoded as UTF-8.

    Returns
    -------
    Path
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
