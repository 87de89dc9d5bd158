"""Data beyond memory and beyond one machine: chunks of rows, passes over them, sums that merge."""

from sobolev.scale.chunks import Chunk, Pass, Source
from sobolev.scale.sources import open_source

__all__ = ["Chunk", "Pass", "Source", "open_source"]
