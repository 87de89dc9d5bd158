"""The parts of the page, from top to bottom; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from sobolev.report import text
from sobolev.report.result import Picture, SelectionResult
from sobolev.report.svg import inline_svg

# Up to this number set-aside columns are listed openly; more are folded away.
MAX_LISTED = 12
_METHODS = {
    "hrt": "holdout randomization test",
    "knockoffs": "knockoffs",
    "rank": "ranking by importance",
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


def head(result: SelectionResult) -> str:
    """The answer, the data and the method."""
    count, colon, names = result.headline.partition(": ")
    source = escape(str(result.data.get("name", "data")))
    plural = "response" if len(result.targets) == 1 else "responses"
    targets = escape(", ".join(result.targets))
    facts = [_METHODS[result.method], *_sizes(result)]
    return (
        '<header>\n<div class="bar"><span>sobolev report</span>'
        '<button type="button" id="theme" hidden>Dark</button></div>\n'
        f'<p class="eyebrow"><bdi>{source}</bdi> · {plural} <bdi>{targets}</bdi></p>\n'
        f'<h1 id="headline"><span id="count">{_unbroken(count)}</span>'
        f'<span id="names">{colon}{escape(names)}</span></h1>\n'
        f'<p class="facts">{escape(" · ".join(facts))}</p>\n'
        f'<p id="nothing"{"" if not result.selected else " hidden"}>'
        f"{escape(text.nothing(result))}</p>\n"
        "<noscript><p>The table and the plots need JavaScript; selection.csv holds the same "
        "numbers.</p></noscript>\n</header>\n"
    )


def _unbroken(words: str) -> str:
    """Escaped, with a number and its per cent sign on one line."""
    return escape(words).replace(" %", "\N{NO-BREAK SPACE}%")


def _sizes(result: SelectionResult) -> list[str]:
    facts = [f"{len(result.table):,} features"]
    if result.data.get("rows") is not None:
        facts.insert(0, f"{result.data['rows']:,} rows")
    tested = int(result.table["pvalue"].notna().sum())
    if result.method == "hrt" and tested < len(result.table):
        facts.append(f"{tested:,} of them tested")
    return [*facts, f"{result.seconds:.1f} s"] if result.seconds else facts


def warnings(warnings: Iterable[str]) -> str:
    """Warnings in a box; empty if there are none."""
    listed = [f"<li>{escape(str(warning))}</li>" for warning in warnings]
    if not listed:
        return ""
    title = "Warning" if len(listed) == 1 else "Warnings"
    return f'<section class="warnings"><h2>{title}</h2><ul>{"".join(listed)}</ul></section>\n'


def slider(result: SelectionResult) -> str:
    """The slider of the level with its guarantee; only the guarantee for a ranking."""
    words = _unbroken(text.guarantee(result))
    if result.fdr is None:
        return f'<section class="level"><p>{words}</p></section>\n'
    stops = levels(result.fdr)
    at, level = stops.index(float(result.fdr)), _unbroken(text.percent(result.fdr))
    return (
        '<section class="level" aria-label="False discovery rate">\n'
        '<div class="row"><label for="slider">False discovery rate</label>'
        f'<output id="level" for="slider">{level}</output></div>\n'
        f'<div class="track"><input type="range" id="slider" min="0" max="{len(stops) - 1}" '
        f'value="{at}"><span id="mark">run: {level}</span></div>\n'
        f'<p id="counts" aria-live="polite"></p>\n<p class="soft">{words}</p>\n'
        '<p id="moved" hidden><strong>Exploring:</strong> this is not the level of the run. '
        f'<button type="button" id="back">Back to {level}</button></p>\n</section>\n'
    )


def plots(result: SelectionResult) -> str:
    """Places for the plots that the script draws."""
    second = {
        "hrt": "p-values by rank, and the line of the level",
        "knockoffs": "W by rank: importance less that of the knockoff",
    }.get(result.method)
    figures = '<figure id="bars"><figcaption></figcaption><svg role="img"></svg></figure>'
    if second:
        figures += (
            f'<figure id="points"><figcaption>{escape(second)}</figcaption>'
            '<svg role="img"></svg></figure>'
        )
    return (
        f'<section class="plots" aria-label="Plots">{figures}</section>\n'
        '<p class="key soft"><span class="dot on"></span>selected'
        '<span class="dot"></span>not selected</p>\n'
    )


def table() -> str:
    """The place for the table that the script fills, with search and download."""
    return (
        '<section id="features">\n<h2>All features</h2>\n<div class="tools">'
        '<input type="search" id="search" placeholder="Search features" '
        'aria-label="Search features">'
        '<label class="check"><input type="checkbox" id="only"> Selected only</label>'
        '<button type="button" id="csv">Download CSV</button></div>\n'
        '<p id="shown" class="soft" aria-live="polite"></p>\n'
        '<div class="scroll"><table><thead><tr></tr></thead><tbody></tbody></table></div>\n'
        '<button type="button" id="more" hidden>Show more</button>\n</section>\n'
    )


def pictures(pictures: Iterable[Picture]) -> str:
    """The figures, drawn into the page."""
    figures = [
        f'<figure class="picture"><h3>{escape(p.title)}</h3>{_images(p)}'
        f"<figcaption>{escape(p.caption)}</figcaption></figure>\n"
        for p in pictures
    ]
    return f"<section>\n<h2>Pictures</h2>\n{''.join(figures)}</section>\n" if figures else ""


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


def data_summary(result: SelectionResult) -> str:
    """Facts about the table, and the columns that were set aside."""
    facts = {k: v for k, v in result.data.items() if k != "set_aside"}
    aside = [_aside(item) for item in result.data.get("set_aside") or ()]
    listed = "".join(
        f"<li><bdi>{escape(name)}</bdi> <span>{escape(reason)}</span></li>"
        for name, reason in aside
    )
    words = ""
    if aside:
        noun = "column was" if len(aside) == 1 else "columns were"
        title = f"{len(aside):,} {noun} set aside"
        words = f'<h3>{title}</h3><ul class="aside">{listed}</ul>'
        if len(aside) > MAX_LISTED:
            words = f'<details><summary>{title}</summary><ul class="aside">{listed}</ul></details>'
    responses = {"responses" if result.targets[1:] else "response": ", ".join(result.targets)}
    return f"<section>\n<h2>Data</h2>\n{_facts(facts | responses)}{words}</section>\n"


def _aside(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping):
        return str(item.get("column", "")), str(item.get("reason", ""))
    name, reason = item
    return str(name), str(reason)


def methods(result: SelectionResult) -> str:
    """The paragraph for a paper and its references."""
    cited = "".join(f"<li>{escape(r)}</li>" for r in text.references(result))
    return (
        '<section id="methods">\n<div class="row"><h2>Methods</h2>'
        '<button type="button" id="copy" hidden>Copy text</button></div>\n'
        f'<p id="paragraph">{escape(text.methods(result))}</p>\n'
        f'<ul id="references">{cited}</ul>\n</section>\n'
    )


def doubts(result: SelectionResult) -> str:
    """When not to trust the result."""
    listed = "".join(
        f"<li><strong>{escape(name)}</strong> {escape(words)}</li>"
        for name, words in text.doubts(result)
    )
    return f"<section>\n<h2>When not to trust this</h2>\n<ul>{listed}</ul>\n</section>\n"


def settings(result: SelectionResult) -> str:
    """What is needed to repeat the run."""
    return (
        f'<section class="settings">\n<div><h2>Settings</h2>{_facts(result.settings)}</div>\n'
        f"<div><h2>Versions</h2>{_facts(result.versions)}</div>\n</section>\n"
    )


def _facts(facts: Mapping[str, Any]) -> str:
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
