"""Versions of the packages that a result depends on."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

CORE = ("numpy", "scipy", "scikit-learn", "pandas")


def version_of(name: str) -> str | None:
    """Version of an installed package, None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Versions of sobolev, Python and the packages that compute; of torch if it is in use."""
    from sobolev import __version__

    names = (*CORE, "torch") if "torch" in sys.modules else CORE
    found = {name: version_of(name) for name in names}
    return {
        "sobolev": __version__,
        "python": platform.python_version(),
        **{name: number for name, number in found.items() if number is not None},
    }
