"""Files of users: reading tables, and preparing their columns for the estimators."""

from sobolev.tables.preparing import Prepared, prepare
from sobolev.tables.reading import read_table
from sobolev.tables.writing import write_table

__all__ = ["Prepared", "prepare", "read_table", "write_table"]
