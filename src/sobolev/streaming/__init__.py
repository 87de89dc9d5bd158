"""Rows that do not fit in memory, or on one machine: chunks, passes over them, sums that merge."""

from sobolev.streaming.chunks import Chunk, Pass, Source
from sobolev.streaming.fit import fit_stream, partial_fit
from sobolev.streaming.sources import open_source

__all__ = ["Chunk", "Pass", "Source", "fit_stream", "open_source", "partial_fit"]
