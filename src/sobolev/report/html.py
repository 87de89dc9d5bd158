"""A result as one self-contained HTML page: nothing is fetched, every text is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template

from sobolev.plotting.selection import correction
from sobolev.report import sections, text
from sobolev.report.result import COLUMNS, SelectionResult, plain


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
    count, colon, names = result.answer.partition(": ")
    responses = "responses" if result.targets[1:] else "response"
    targets = ", ".join(result.targets)
    words = {
        "headline": result.answer,
        "source": str(result.data.get("name", "data")),
        "responses": responses,
        "targets": targets,
        "names": colon + names,
        "facts": " · ".join(sections.facts(result)),
        "nothing": text.nothing(result),
        "paragraph": text.methods(result),
    }
    table = {k: v for k, v in result.data.items() if k != "set_aside"}
    markup = {
        "policy": (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "count": sections.unbroken(count),
        "hidden": " hidden" if result.selected else "",
        "verdict": sections.verdict(result),
        "audit": sections.audit(result),
        "warnings": sections.warnings(result.warnings),
        "slider": sections.slider(result, Template(_asset("slider.html"))),
        "points": sections.points(result.method),
        "pictures": sections.pictures(result.pictures),
        "data": sections.listed(table | {responses: targets}),
        "aside": sections.set_aside(result.data.get("set_aside") or ()),
        "references": sections.items(text.references(result)),
        "doubts": sections.doubts(result),
        "settings": sections.listed(result.settings),
        "versions": sections.listed(result.versions),
        "numbers": page_data(result),
        "script": script,
    }
    escaped = {name: escape(said) for name, said in words.items()}
    return Template(_asset("page.html")).substitute(escaped, **markup)


def page_data(result: SelectionResult) -> str:
    """The numbers of the page as JSON that cannot end its script element."""
    table = result.table[list(COLUMNS)].assign(note=result.table["note"].fillna(""))
    tested = table["pvalue"].dropna().to_numpy(dtype=float)
    content = {
        "method": result.method,
        "fdr": result.fdr,
        "levels": sections.levels(result.fdr),
        "draws": int(result.settings.get("n_draws") or 1),
        "scale": correction(tested, result.settings.get("procedure")),
    } | table.to_dict(orient="list")
    # ASCII, so that U+2028 and its like are escaped as well.
    dumped = json.dumps(plain(content), allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        dumped = dumped.replace(sign, f"\\u{ord(sign):04x}")
    return dumped


def _asset(name: str) -> str:
    return (files("sobolev.report") / name).read_text(encoding="utf-8")


def _script() -> str:
    parts = "".join(_asset(name) for name in ("plots.js", "page.js"))
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
