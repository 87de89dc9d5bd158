"""Files of real data, from a local folder or downloaded once into a cache.

Files in a local folder are used as they are. Downloads are compared with their checksum before
they are stored, and again whenever they are read.
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
        Path in a data folder, with forward slashes.
    url : str or None
        Public address; None if there is none.
    sha256 : str or None
        Checksum of the published file, in hexadecimal.
    """

    path: str
    url: str | None = None
    sha256: str | None = None


def fetch(file: RemoteFile, data_home: str | Path | None = None) -> Path:
    """Find a file in the data folder, or download it into the cache of the user.

    Parameters
    ----------
    file : RemoteFile
        File to find.
    data_home : str, Path or None, default=None
        Data folder. None is the folder in the environment variable ``SOBOLEV_DATA_HOME``; if that
        is not set, the cache is used, and missing files are downloaded into it.

    Returns
    -------
    Path
        Path of the file.

    Raises
    ------
    OSError
        The file is not in the folder, or cannot be downloaded.
    ValueError
        The downloaded file is not the published one.
    """
    home = data_home if data_home is not None else os.environ.get(VARIABLE) or None
    if home is not None:
        folder = Path(home).expanduser()
        found = folder / file.path
        if not found.is_file():
            source = f" It is published at {file.url}." if file.url else ""
            raise FileNotFoundError(
                f"{file.path} is not in the data folder {folder}, which is set by data_home or the "
                f"environment variable {VARIABLE}.{source}"
            )
        return found
    if file.url is None:
        raise FileNotFoundError(
            f"{file.path} has no public address. Put it in a folder and pass that folder as "
            f"data_home or in the environment variable {VARIABLE}."
        )
    cached = cache_folder() / file.path
    if not (cached.is_file() and _matches(cached.read_bytes(), file)):
        write_atomic(cached, _download(file, file.url))
    return cached


def cache_folder() -> Path:
    """Folder of downloads: the cache folder of the platform."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "sobolev"


def _download(file: RemoteFile, url: str) -> bytes:
    """Download a file and compare it with its checksum."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            content: bytes = response.read()
    except (OSError, http.client.HTTPException) as error:  # errors of urllib are OSErrors
        raise OSError(
            f"could not download {url} into {cache_folder()} ({error!r}). Download it in another "
            f"way, save it as {file.path} in a folder, and pass that folder as data_home or in the "
            f"environment variable {VARIABLE}."
        ) from error
    if not _matches(content, file):
        raise ValueError(
            f"{file.path} from {url} has the sha256 {hashlib.sha256(content).hexdigest()} instead "
            f"of {file.sha256}: it was changed or cut short, and was not saved. Try again, or put "
            f"a file that you trust in the folder given by data_home or {VARIABLE}."
        )
    return content


def _matches(content: bytes, file: RemoteFile) -> bool:
    return file.sha256 is None or hashlib.sha256(content).hexdigest() == file.sha256
