"""The parts of the page, from top to bottom; every text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from sobolev._numbers import shown_share
from sobolev.report import text
from sobolev.report.nothing import reasons, steps
from sobolev.report.pictures import audit_picture
from sobolev.report.result import Picture, SelectionResult
from sobolev.report.svg import color_dot, inline_svg
from sobolev.validation import list_some

# Up to this number set-aside columns are listed openly; more are folded away.
MAX_LISTED = 12
METHODS = {
    "hrt": "holdout randomization test",
    "knockoffs": "knockoffs",
    "rank": "ranking by importance",
}
_POINTS = {
    "hrt": "p-values by rank, and the line of the level",
    "knockoffs": "W by rank: importance less that of the knockoff",
}
# What the columns of the table mean, shown on hover.
HINTS = {
    "rank": "Place in the table: selected features first, then by evidence",
    "feature": "Name of the column or group of columns",
    "kind": "numeric, categorical, or a group of columns that is judged as one",
    "importance": "Share of the feature in the criterion; the shares of all features sum to one",
    "pvalue": "Probability of evidence at least as strong if the feature does not matter given "
    "the others",
    "qvalue": "Smallest false discovery rate at which the feature is selected",
    "selected": "Whether the feature is selected at the level of the slider",
    "note": "What is special about the feature",
}
STATISTICS = {
    "hrt": (
        "drop",
        "How much of the response is no longer explained if the feature is replaced by draws given "
        "the others: the drop of R² (for survival times of the mean log-likelihood, for other "
        "critics of the mean held-out statistic). It exceeds R² where the draws mislead the model",
    ),
    "knockoffs": (
        "W",
        "Importance of the feature less that of its knockoff; positive and large is evidence",
    ),
    "rank": ("", ""),
}
_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")
_PER_CENT = re.compile(r"(?<=\d) %")
_LABELS = {
    "name": "data",
    "rows_dropped": "rows removed",
    "test_size": "share of test rows",
    "seed": "random seed",
    "n_repeats": "orders of rows",
    "n_tests": "tests",
    "n_draws": "draws",
    "n_jobs": "parallel jobs",
    "fdr": "FDR level",
}


def levels(fdr: float | None) -> list[float]:
    """Positions of the slider: 1 to 50 per cent, and the level of the run."""
    if fdr is None:
        return []
    return sorted({k / 100 for k in range(1, 51)} | {float(fdr)})


def unbroken(words: str) -> str:
    """Escaped; a number and its per cent sign, and an option of a command, stay on one line."""
    return _PER_CENT.sub("\N{NO-BREAK SPACE}%", _copied(words))


def _copied(words: str) -> str:
    """Escaped, with options on one line, and no other characters than given: to be copied."""
    return _OPTION.sub(r'<span class="option">\g<0></span>', escape(words))


def tiles(result: SelectionResult) -> str:
    """The main figures at a glance: what was selected, skill, rows, features, missing cells."""
    chosen = len(result.selected)
    found = [("selected" if result.fdr is not None else "first", f"{chosen:,}", _of_tested(result))]
    if result.skill is not None:
        skill = result.skill
        beside = f"chance: {skill.baseline:g}"
        found.append((f"held-out {skill.name}", skill.shown, beside))
    rows, dropped = result.data.get("rows"), result.data.get("rows_dropped")
    if rows is not None:
        found.append(("rows", f"{rows:,}", f"{dropped:,} removed" if dropped else ""))
    gaps = result.data.get("missing_cells")
    if gaps:
        most = max(gaps.values())
        found.append(("missing cells", shown_share(most), "of a column at most"))
    if result.seconds:
        found.append(("time", f"{result.seconds:.1f} s", ""))
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}"
        + (f" <small>{escape(beside)}</small>" if beside else "")
        + "</dd></div>"
        for name, value, beside in found
    )


def _of_tested(result: SelectionResult) -> str:
    d, tested = len(result.table), int(result.table["pvalue"].notna().sum())
    if result.method == "hrt" and tested < d:
        return f"of {d:,} features, {tested:,} of them tested"
    return f"of {d:,} features"


def items(texts: Iterable[str]) -> str:
    """Texts as items of a list."""
    return "".join(f"<li>{unbroken(text)}</li>" for text in texts)


def warnings(warnings: Sequence[str]) -> str:
    """Warnings in a box; empty if there are none."""
    if not warnings:
        return ""
    return f'<section class="warnings"><h2>To note</h2><ul>{items(warnings)}</ul></section>\n'


def unsure(result: SelectionResult) -> str:
    """What the headline adds if the level is not assured; or nothing."""
    if result.audit is not None and not result.audit.passed:
        return "; the level is not assured on this table"
    if text.rows_in_question(result):
        return "; not assured if rows belong together"
    return ""


def verdict(result: SelectionResult) -> str:
    """The verdict of the audit, below the headline; or nothing."""
    if result.audit is None:
        return ""
    kind = "verdict" if result.audit.passed else "verdict failed"
    return f'<p class="{kind}">Audit: {unbroken(result.audit.verdict)}</p>\n'


def meaning(result: SelectionResult) -> str:
    """What the answer means, and what it does not."""
    said = {
        "What this means": text.meaning(result),
        "What it does not mean": text.no_meaning(result),
    }
    return "".join(
        f"<div><h2>{escape(title)}</h2><p>{unbroken(words)}</p></div>"
        for title, words in said.items()
    )


def nothing(result: SelectionResult) -> str:
    """Why nothing was selected, and what to do next."""
    lists = {"Why nothing was selected": reasons(result), "What to do next": steps(result)}
    return "".join(
        f"<h2>{title}</h2><ul>{items(words)}</ul>" for title, words in lists.items() if words
    )


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
    """The slider of the level; a ranking has none."""
    if result.fdr is None:
        return ""
    stops = levels(result.fdr)
    return template.substitute(
        words=unbroken(text.exploring(result)),
        level=unbroken(text.percent(result.fdr)),
        last=len(stops) - 1,
        at=stops.index(float(result.fdr)),
    )


def mark_name(result: SelectionResult) -> str:
    """What the marked features are: selected or, in a ranking, above the mean or the first."""
    top = result.settings.get("top")
    if result.fdr is not None:
        return "Selected"
    return "Above mean" if top is None else f"First {top}"


def points(method: str) -> str:
    """The place for the second plot that the script draws; a ranking has none."""
    if method not in _POINTS:
        return ""
    caption = f"<figcaption>{_POINTS[method]}</figcaption>"
    return f'<figure id="points">{caption}<svg role="img"></svg></figure>'


def pictures(pictures: Iterable[Picture]) -> str:
    """The figures, drawn into the page, a section each."""
    return "".join(
        f'<section id="{escape(picture.title.lower().replace(" ", "-"))}">\n'
        f"<h2>{escape(picture.title)}</h2>\n{_figure(picture)}</section>\n"
        for picture in pictures
    )


def _figure(picture: Picture) -> str:
    """The figure or figures, a key to their colours, and what they show."""
    alone = "" if isinstance(picture.figure, tuple) else " alone"
    return (
        f'<div class="picture{alone}">{_key(picture.key)}{_images(picture)}'
        f'<p class="caption soft">{unbroken(picture.caption)}</p></div>\n'
    )


def _key(key: Iterable[tuple[str, str]]) -> str:
    entries = "".join(f"<li>{color_dot(color)}<bdi>{escape(n)}</bdi></li>" for n, color in key)
    return f'<ul class="colours">{entries}</ul>' if entries else ""


def _images(picture: Picture) -> str:
    """The figure, or several in a grid, with their names."""
    if not isinstance(picture.figure, tuple):
        return inline_svg(picture.figure, picture.title)
    n = len(picture.figure)
    names = picture.names or (("", ""),) * n
    images = []
    for k, (figure, (name, remark)) in enumerate(zip(picture.figure, names, strict=True), start=1):
        words = f"{picture.title}, {k} of {n}" + f": {name}" * bool(name)
        title = f"<figcaption><bdi>{escape(name)}</bdi> <span>{escape(remark)}</span></figcaption>"
        images.append(
            f'<figure class="panel">{title if name else ""}{inline_svg(figure, words)}</figure>'
        )
    few = "panels" if picture.names else "panels two"
    return f'<div class="{few}">{"".join(images)}</div>'


def response(data: Mapping[str, Any]) -> str:
    """How many rows the classes have, or the quartiles of a number; empty if neither is known."""
    counts = data.get("classes")
    if counts:
        total = sum(counts.values())
        shares = {
            str(k): (n / total, f"{n:,} ({shown_share(n / total)})") for k, n in counts.items()
        }
        return f"<h3>Rows by response</h3>{_bars(shares)}"
    if data.get("quartiles"):
        return f"<h3>Response</h3>{listed(data['quartiles'])}"
    return ""


def missing(data: Mapping[str, Any]) -> str:
    """Shares of missing cells; empty if there are none."""
    gaps = data.get("missing_cells")
    if not gaps:
        return ""
    rest = data.get("more_with_missing_cells")
    more = f'<p class="soft">… and {rest:,} more columns.</p>' if rest else ""
    shares = {str(name): (share, f"{100 * share:.1f} %") for name, share in gaps.items()}
    return f"<h3>Missing cells</h3>{_bars(shares)}{more}"


def clusters(data: Mapping[str, Any]) -> str:
    """Features that are nearly copies; empty if there are none."""
    found = list(data.get("clusters") or ())
    if not found:
        return ""
    rows = "".join(
        f"<li><bdi>{escape(list_some([str(n) for n in names], MAX_LISTED))}</bdi> "
        f"<span>rank correlation up to {r:.2f}</span></li>"
        for names, r in found[:MAX_LISTED]
    )
    rest = len(found) - MAX_LISTED
    more = f'<p class="soft">… and {rest:,} more.</p>' if rest > 0 else ""
    return (
        f'<h3>Near copies</h3><ul class="aside">{rows}</ul>{more}<p class="soft">They share what '
        "they say about the response, so each of them can be missed.</p>"
    )


def _bars(shares: Mapping[str, tuple[float, str]]) -> str:
    """Shares as bars with names and numbers."""
    rows = "".join(
        f'<li><bdi>{escape(name)}</bdi><svg viewBox="0 0 100 10" '
        f'preserveAspectRatio="none" aria-hidden="true"><rect width="100" height="10" '
        f'fill="var(--band)"/><rect width="{100 * share:.1f}" height="10" fill="var(--on)"/></svg>'
        f"<span>{escape(said)}</span></li>"
        for name, (share, said) in shares.items()
    )
    return f'<ul class="bars">{rows}</ul>'


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
        f"<dd>{_copied(_shown(v))}</dd>"
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
