"""Files of real data: from a folder of yours, or downloaded once into a cache and checked.

A folder that you name is only read, and its files are taken as they are. Downloads are compared
with their checksum before they come into place, and again whenever they are read.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from sobolev._files import write_atomic

VARIABLE = "SOBOLEV_DATA_HOME"
TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class RemoteFile:
    """A file of real data.

    Attributes
    ----------
    path : str
        Where it stands in a data folder, with forward slashes.
    url : str or None
        Its published address; None if it has none.
    sha256 : str or None
        The checksum of the published file, in hexadecimal.
    """

    path: str
    url: str | None = None
    sha256: str | None = None


def fetch(file: RemoteFile, data_home: str | Path | None = None) -> Path:
    """Find a file in the data folder, or download it into the cache of the user.

    Parameters
    ----------
    file : RemoteFile
    data_home : str, Path or None, default=None
        The folder; None is that of the environment variable ``SOBOLEV_DATA_HOME``, or, if it is not
        set, the cache, into which missing files are downloaded.

    Returns
    -------
    Path
        An existing file.

    Raises
    ------
    OSError
        The file is not in the folder, or cannot be downloaded.
    ValueError
        The downloaded file is not the published one.
    """
    folder = named_folder(data_home)
    if folder is not None:
        found = folder / file.path
        if not found.is_file():
            raise FileNotFoundError(_absent(file, folder))
        return found
    cached = cache_folder() / file.path
    if file.url is None:
        raise FileNotFoundError(_absent(file, None))
    if not (cached.is_file() and _matches(cached.read_bytes(), file)):
        write_atomic(cached, _download(file, file.url))
    return cached


def named_folder(data_home: str | Path | None = None) -> Path | None:
    """The folder that the caller or the environment names, if any."""
    home = data_home if data_home is not None else os.environ.get(VARIABLE) or None
    return None if home is None else Path(home).expanduser()


def cache_folder() -> Path:
    """Where downloads are kept: the place of the platform for what can be fetched again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sobolev"


def _download(file: RemoteFile, url: str) -> bytes:
    """The content of the address, checked."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:  # urllib's own are OSErrors
        raise OSError(
            f"could not download {url} into {cache_folder()} ({error!r}). Get it by other means, "
            f"place it as {file.path} in a folder, and pass that folder as data_home or in the "
            f"environment variable {VARIABLE}."
        ) from error
    if not _matches(content, file):
        raise ValueError(
            f"{file.path} from {url} has the sha256 {hashlib.sha256(content).hexdigest()} instead "
            f"of {file.sha256}: it was changed or cut short, and is not kept. Try again, or place "
            f"a file that you trust in a folder named by data_home or {VARIABLE}."
        )
    return content


def _matches(content: bytes, file: RemoteFile) -> bool:
    return file.sha256 is None or hashlib.sha256(content).hexdigest() == file.sha256


def _absent(file: RemoteFile, folder: Path | None) -> str:
    if folder is not None:
        source = f" It is published at {file.url}." if file.url else ""
        return (
            f"{file.path} is not in the data folder {folder}, named by data_home or the "
            f"environment variable {VARIABLE}.{source}"
        )
    return (
        f"{file.path} has no public address. Place it in a folder and pass that folder as "
        f"data_home or in the environment variable {VARIABLE}."
    )
