"""Data beyond memory and beyond one machine: chunks of rows, passes over them, sums that merge."""

from sobolev.streaming.chunks import Chunk, Pass, Source
from sobolev.streaming.sources import open_source

__all__ = ["Chunk", "Pass", "Source", "open_source"]
