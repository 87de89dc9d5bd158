"""The parts of the page, from top to bottom; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from sobolev.report import text
from sobolev.report.pictures import audit_picture
from sobolev.report.result import Picture, SelectionResult
from sobolev.report.svg import inline_svg
from sobolev.summary import not_assured
from sobolev.validation import list_some

# Up to this number set-aside columns are listed openly; more are folded away.
MAX_LISTED = 12
_METHODS = {
    "hrt": "holdout randomization test",
    "knockoffs": "knockoffs",
    "rank": "ranking by importance",
}
_POINTS = {
    "hrt": "p-values by rank, and the line of the level",
    "knockoffs": "W by rank: importance less that of the knockoff",
}
_LABELS = {
    "name": "data",
    "rows_dropped": "rows removed",
    "test_size": "share of test rows",
    "seed": "random seed",
    "n_jobs": "parallel jobs",
    "fdr": "FDR level",
}


def levels(fdr: float | None) -> list[float]:
    """Positions of the slider: 1 to 50 per cent, and the level of the run."""
    if fdr is None:
        return []
    return sorted({k / 100 for k in range(1, 51)} | {float(fdr)})


def unbroken(words: str) -> str:
    """Escaped, with a number and its per cent sign on one line."""
    return escape(words).replace(" %", "\N{NO-BREAK SPACE}%")


def facts(result: SelectionResult) -> list[str]:
    """The method, the size of the data and the time of the run."""
    found = [_METHODS[result.method]]
    if result.data.get("rows") is not None:
        found.append(f"{result.data['rows']:,} rows")
    found.append(f"{len(result.table):,} features")
    tested = int(result.table["pvalue"].notna().sum())
    if result.method == "hrt" and tested < len(result.table):
        found.append(f"{tested:,} of them tested")
    return [*found, f"{result.seconds:.1f} s"] if result.seconds else found


def items(texts: Iterable[str]) -> str:
    """Texts as items of a list."""
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def warnings(warnings: Sequence[str]) -> str:
    """Warnings in a box; empty if there are none."""
    if not warnings:
        return ""
    title = "Warning" if len(warnings) == 1 else "Warnings"
    return f'<section class="warnings"><h2>{title}</h2><ul>{items(warnings)}</ul></section>\n'


def verdict(result: SelectionResult) -> str:
    """What is not assured, and the verdict of the audit, below the headline; or nothing."""
    found = ""
    if unsure := not_assured(result.table):
        found += f'<p class="verdict failed">Not assured for {escape(list_some(unsure))}.</p>\n'
    if result.audit is not None:
        kind = "verdict" if result.audit.passed else "verdict failed"
        found += f'<p class="{kind}">Audit: {unbroken(result.audit.verdict)}</p>\n'
    return found


def audit(result: SelectionResult) -> str:
    """The section of the audit: what was measured, by kind of response; empty without one."""
    if result.audit is None:
        return ""
    found = result.audit
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
        for row in text.audit_rows(found)
    )
    head = "".join(f"<th>{escape(name)}</th>" for name in text.AUDIT_COLUMNS)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    said = "".join(f"<p>{unbroken(words)}</p>" for words in text.audit(found))
    return (
        f'<section id="audit">\n<h2>Audit</h2>\n{said}{_figure(audit_picture(found))}'
        f'<div class="scroll">{table}</div>\n</section>\n'
    )


def slider(result: SelectionResult, template: Template) -> str:
    """The slider of the level with its guarantee; only the guarantee for a ranking."""
    words = unbroken(text.guarantee(result))
    if result.fdr is None:
        return f'<section class="level"><p>{words}</p></section>\n'
    stops = levels(result.fdr)
    return template.substitute(
        words=words,
        level=unbroken(text.percent(result.fdr)),
        last=len(stops) - 1,
        at=stops.index(float(result.fdr)),
    )


def points(method: str) -> str:
    """The place for the second plot that the script draws; a ranking has none."""
    if method not in _POINTS:
        return ""
    caption = f"<figcaption>{_POINTS[method]}</figcaption>"
    return f'<figure id="points">{caption}<svg role="img"></svg></figure>'


def pictures(pictures: Iterable[Picture]) -> str:
    """The figures, drawn into the page."""
    figures = [_figure(p) for p in pictures]
    return f"<section>\n<h2>Pictures</h2>\n{''.join(figures)}</section>\n" if figures else ""


def _figure(picture: Picture) -> str:
    return (
        f'<figure class="picture"><h3>{escape(picture.title)}</h3>{_images(picture)}'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>\n"
    )


def _images(picture: Picture) -> str:
    """The figure, or several in a grid."""
    if not isinstance(picture.figure, tuple):
        return inline_svg(picture.figure, picture.title)
    n = len(picture.figure)
    images = [
        inline_svg(figure, f"{picture.title}, {k} of {n}")
        for k, figure in enumerate(picture.figure, start=1)
    ]
    return f'<div class="panels">{"".join(images)}</div>'


def set_aside(columns: Iterable[Any]) -> str:
    """The columns that were set aside, with the reasons; empty if there are none."""
    aside = [c.values() if isinstance(c, Mapping) else c for c in columns]
    if not aside:
        return ""
    rows = "".join(
        f"<li><bdi>{escape(str(name))}</bdi> <span>{escape(str(reason))}</span></li>"
        for name, reason in aside
    )
    noun = "column was" if len(aside) == 1 else "columns were"
    title, rows = f"{len(aside):,} {noun} set aside", f'<ul class="aside">{rows}</ul>'
    if len(aside) > MAX_LISTED:
        return f"<details><summary>{title}</summary>{rows}</details>"
    return f"<h3>{title}</h3>{rows}"


def doubts(result: SelectionResult) -> str:
    """When not to trust the result."""
    return "".join(
        f"<li><strong>{escape(name)}</strong> {escape(words)}</li>"
        for name, words in text.doubts(result)
    )


def listed(facts: Mapping[str, Any]) -> str:
    """Facts as a list of names and values."""
    rows = "".join(
        f"<dt>{escape(_LABELS.get(str(k), str(k).replace('_', ' ')))}</dt>"
        f"<dd>{escape(_shown(v))}</dd>"
        for k, v in facts.items()
    )
    return f"<dl>{rows}</dl>"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {_shown(v)}" for k, v in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(_shown(v) for v in value) or "–"
    return str(value)
