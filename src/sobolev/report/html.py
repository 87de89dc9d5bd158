"""A result as one self-contained HTML page: nothing is fetched, every text is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from sobolev.report import sections
from sobolev.report.result import SelectionResult


def render_report(result: SelectionResult) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    result : SelectionResult

    Returns
    -------
    str
        A page that needs no network: it holds style, script, data and pictures, and a content
        security policy forbids every request. Names and other texts of the user are shown as they
        are, never interpreted as HTML.
    """
    style, script = _asset("page.css"), _script()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    body = [
        sections.head(result),
        sections.warnings(result.warnings),
        sections.slider(result),
        sections.plots(result),
        sections.table(),
        sections.pictures(result.pictures),
        sections.data_summary(result),
        sections.methods(result),
        sections.doubts(result),
        sections.settings(result),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(result.headline)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<main>\n{''.join(body)}</main>\n"
        f'<script type="application/json" id="data">{page_data(result)}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def page_data(result: SelectionResult) -> str:
    """The numbers of the page as JSON that cannot end its script element."""
    table = result.table
    content = {
        "method": result.method,
        "fdr": result.fdr,
        "levels": sections.levels(result.fdr),
        "draws": int(result.settings.get("n_draws") or 1),
        "scale": _bh_scale(result),
        "feature": [str(name) for name in table["feature"]],
        "kind": [str(kind) for kind in table["kind"]],
        "selected": [bool(chosen) for chosen in table["selected"]],
        "note": [str(note) for note in table["note"].fillna("")],
    } | {
        column: _numbers(table[column])
        for column in ("importance", "statistic", "pvalue", "qvalue")
    }
    # ASCII, so that U+2028 and its like are escaped as well.
    dumped = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        dumped = dumped.replace(sign, f"\\u{ord(sign):04x}")
    return dumped


def _bh_scale(result: SelectionResult) -> float:
    """The c of level · k / (c m), with which the k-th smallest p-value is compared."""
    pvalues = np.asarray(_numbers(result.table["pvalue"]), dtype=float)
    pvalues = pvalues[np.isfinite(pvalues)]
    procedure = result.settings.get("procedure")
    if procedure == "by" and pvalues.size:
        return float((1 / np.arange(1, pvalues.size + 1)).sum())
    if procedure == "storey" and pvalues.size:
        from sobolev.inference.multiple_testing import null_share

        return null_share(pvalues)
    return 1.0


def _numbers(column: Any) -> list[float | None]:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    return [float(v) if np.isfinite(v) else None for v in values]


def _asset(name: str) -> str:
    return (files("sobolev.report") / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = "".join(_asset(name) for name in ("plots.js", "page.js"))
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
