"""Files of users: reading tables, and preparing their columns for the estimators."""

from sobolev.frames.preparing import Prepared, prepare
from sobolev.frames.reading import read_table
from sobolev.frames.writing import write_table

__all__ = ["Prepared", "prepare", "read_table", "write_table"]
