"""Reports: one self-contained HTML file."""

from sobolev.report.html import ranking_report

__all__ = ["ranking_report"]
