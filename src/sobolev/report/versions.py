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


def versions(*others: str) -> dict[str, str]:
    """Versions of sobolev, Python, the packages that compute, torch if it is in use, and others."""
    from sobolev import __version__

    names = (*CORE, "torch", *others) if "torch" in sys.modules else (*CORE, *others)
    found = {name: version_of(name) for name in names}
    return {
        "sobolev": __version__,
        "python": platform.python_version(),
        **{name: number for name, number in found.items() if number is not None},
    }
