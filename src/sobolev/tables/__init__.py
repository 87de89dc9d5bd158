"""Tables of users: reading, writing, and preparing columns for the estimators."""

from sobolev.tables.annotated import annotate
from sobolev.tables.genotypes import linkage_blocks, windows
from sobolev.tables.prepared import Prepared
from sobolev.tables.preparing import prepare
from sobolev.tables.reading import read_table
from sobolev.tables.writing import write_table

__all__ = [
    "Prepared",
    "annotate",
    "linkage_blocks",
    "prepare",
    "read_table",
    "windows",
    "write_table",
]
