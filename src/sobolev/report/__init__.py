"""Reports: the answer, the table behind it and how it was found, in one HTML file."""

from sobolev.report.files import write_report, write_result
from sobolev.report.html import render_report
from sobolev.report.making import make_result
from sobolev.report.result import COLUMNS, SCHEMA, Picture, SelectionResult

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "Picture",
    "SelectionResult",
    "make_result",
    "render_report",
    "write_report",
    "write_result",
]
