"""A result as one self-contained HTML page: nothing is fetched, every text is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from string import Template

from sobolev._numbers import FLOOR, shown_pvalue
from sobolev.plotting.selection import correction
from sobolev.report import sections, text
from sobolev.report.result import COLUMNS, SelectionResult, plain
from sobolev.summary import caution, headline

# Facts about the table that have places of their own.
_SHOWN_APART = (
    "set_aside",
    "classes",
    "quartiles",
    "missing_cells",
    "more_with_missing_cells",
    "clusters",
)


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
    first = caution(result.fdr, result.skill)
    count, colon, names = headline(result.table, result.fdr).partition(": ")
    responses = "responses" if result.targets[1:] else "response"
    targets = ", ".join(result.targets)
    words = {
        "headline": result.answer,
        "source": str(result.data.get("name", "data")),
        "responses": responses,
        "targets": targets,
        "method": sections.METHODS[result.method],
        "caution": first,
        "names": colon + names,
        "unsure": sections.unsure(result),
        "paragraph": text.methods(result),
    }
    table = {k: v for k, v in result.data.items() if k not in _SHOWN_APART}
    markup = {
        "policy": (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        "style": style,
        "count": sections.unbroken(count),
        "hidden": " hidden" if result.selected else "",
        "verdict": sections.verdict(result),
        "meaning": sections.meaning(result),
        "tiles": sections.tiles(result),
        "nothing": sections.nothing(result),
        "nav": _navigation(result),
        "audit": sections.audit(result),
        "warnings": sections.warnings(result.warnings),
        "slider": sections.slider(result, Template(_asset("slider.html"))),
        "points": sections.points(result.method),
        "pictures": sections.pictures(result.pictures),
        "mark": sections.mark_name(result).lower(),
        "data": sections.listed(table | {responses: targets}),
        "profile": "".join(
            part(result.data) for part in (sections.response, sections.missing, sections.clusters)
        ),
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


def _navigation(result: SelectionResult) -> str:
    """Links to the sections that the page has."""
    parts = {"features": "Features"}
    parts |= {p.title.lower().replace(" ", "-"): p.title for p in result.pictures}
    parts |= {"audit": "Audit"} if result.audit is not None else {}
    parts |= {"table": "Data", "methods": "Methods", "doubts": "When not to trust this"}
    return "".join(f'<a href="#{escape(k)}">{escape(v)}</a>' for k, v in parts.items())


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
        "floor": FLOOR,
        "tests": int(result.settings.get("n_tests") or tested.size),
        "hints": sections.HINTS | {"statistic": sections.STATISTICS[result.method][1]},
        "statisticName": sections.STATISTICS[result.method][0],
        "unsure": sections.unsure(result),
        "markName": sections.mark_name(result),
        "shownP": [shown_pvalue(float(p)) for p in table["pvalue"].astype(float)],
        "shownQ": [shown_pvalue(float(q)) for q in table["qvalue"].astype(float)],
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
