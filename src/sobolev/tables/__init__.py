"""Tables of users: reading, writing, and preparing columns for the estimators."""

from sobolev.tables.preparing import Prepared, prepare
from sobolev.tables.reading import read_table
from sobolev.tables.writing import write_table

__all__ = ["Prepared", "prepare", "read_table", "write_table"]
