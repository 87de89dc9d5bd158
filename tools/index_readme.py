"""The README as a package index shows it: links into the repository get an address.

An index has no files beside the page, so relative links and pictures would be broken. They point to
the address ``Source`` of ``[project.urls]``; as long as there is none, a link becomes its text and
a picture is left out. Hatchling runs this when it builds.
"""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def absolute(text: str, source: str | None, version: str) -> str:
    """Replace relative links and pictures."""

    def replaced(found: re.Match[str]) -> str:
        is_picture, label, target = found.groups()
        if source is None:
            return "" if is_picture else label
        view = "raw" if is_picture else "blob"
        return f"{is_picture}[{label}]({source.rstrip('/')}/{view}/v{version}/{target})"

    return LINK.sub(replaced, text)


class IndexReadme(MetadataHookInterface):
    """Sets the description of the package."""

    def update(self, metadata: dict) -> None:
        """Read README.md and replace its links."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        text = absolute(text, source, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
