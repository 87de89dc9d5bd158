"""Print the lower bounds of pyproject.toml as pip constraints: ``numpy>=2.0`` gives ``numpy==2.0``.

Used by ``make test-lowest``; the bounds are written in pyproject.toml and nowhere else.
"""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
BOUND = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*>=\s*([0-9][^,;\s]*)")
# Extras for users. The others are tools of developers, whose newest versions are used.
EXTRAS = ("neural", "parquet", "streaming", "genomics")


def lower_bounds(project: dict) -> dict[str, str]:
    """The lowest version of each run-time dependency that has a lower bound."""
    extras = project["optional-dependencies"]
    requirements = project["dependencies"] + [line for extra in EXTRAS for line in extras[extra]]
    bounds: dict[str, str] = {}
    for requirement in requirements:
        found = BOUND.match(requirement)
        if found is None:
            raise ValueError(
                f"{requirement!r} in pyproject.toml has no lower bound (name>=version)."
            )
        name, version = found.groups()
        if bounds.setdefault(name.lower(), version) != version:
            raise ValueError(f"pyproject.toml has two lower bounds for {name}; use one.")
    return bounds


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    for name, version in lower_bounds(project).items():
        print(f"{name}=={version}")
