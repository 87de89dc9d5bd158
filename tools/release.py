"""Check what a release needs and print what is left to do by hand: ``make release``.

It changes nothing: no tag, no upload, no version.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = re.compile(r'__version__ = "([^"]+)"')
STEPS = """
By hand, in this order:
  1. src/sobolev/_version.py and CITATION.cff: the version, without ".dev0"; in CITATION.cff also
     date-released. constraints.txt needs no change.
  2. CHANGELOG.md: a heading "## [{final}] - <date>" below "## [Unreleased]", which stays, empty.
  3. make test test-lowest test-newest verify bench-guard docs
  4. make release: it must end with "Nothing is missing".
  5. git tag -s v{final} && git push --tags; upload dist/* to the package index; attach dist/*
     and the hashes above to the release notes.
  6. In an empty environment: pip install sobolev=={final} && sobolev demo
  7. _version.py and CITATION.cff: the next version with ".dev0".
"""


def missing(project: dict, version: str, citation: str, changelog: str) -> list[str]:
    """What stands in the way of a release, in sentences."""
    found = []
    if "urls" not in project:
        found.append(
            "pyproject.toml has no [project.urls]: give Homepage, Documentation, Source, Issues "
            "and Changelog once there is a public repository. The links of the README on the "
            "index follow from Source."
        )
    if ".dev" in version:
        found.append(f"the version is {version}, a development version.")
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff does not say version: {version}.")
    if "\ndate-released: " not in citation:
        found.append("CITATION.cff has no date-released.")
    if f"\n## [{version}] - " not in changelog:
        found.append(f'CHANGELOG.md has no heading "## [{version}] - <date>".')
    if "## [Unreleased]" not in changelog:
        found.append('CHANGELOG.md has no heading "## [Unreleased]".')
    return found


def main() -> int:
    """Print what is missing and the steps; 1 if something is missing."""
    text = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "src/sobolev/_version.py")
    }
    project = tomllib.loads(text["pyproject.toml"])["project"]
    version = VERSION.search(text["src/sobolev/_version.py"])[1]
    found = missing(project, version, text["CITATION.cff"], text["CHANGELOG.md"])
    print("Missing:" if found else "Nothing is missing.")
    for sentence in found:
        print(f"  - {sentence}")
    print(STEPS.format(final=version.partition(".dev")[0]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
