"""Versions of what a result depends on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

CORE = ("numpy", "scipy", "scikit-learn", "pandas")


def version_of(name: str) -> str | None:
    """Of an installed package, None if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions(critic: str) -> dict[str, str]:
    """Of the package and what it stands on."""
    from sobolev import __version__

    names = (*CORE, "torch") if critic == "neural" else CORE
    found = {name: version_of(name) for name in names}
    return {
        "sobolev": __version__,
        "python": platform.python_version(),
        **{name: number for name, number in found.items() if number is not None},
    }
