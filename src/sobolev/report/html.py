"""A self-contained HTML page for a ranking: headline, picture, table; light and dark."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --paper: #ffffff; --line: #d9dde2;
        --soft: #5d666f; --chosen: #0072B2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --paper: #16191d; --line: #363c44; --soft: #9aa3ad; --chosen: #56B4E9; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 54rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin-bottom: .3rem; }
p.soft, dt, footer { color: var(--soft); }
img { max-width: 100%; background: #fff; border-radius: 6px; padding: .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; }
tr.chosen td:first-child { border-left: 4px solid var(--chosen); }
dl { display: grid; grid-template-columns: max-content auto; gap: .2rem 1rem; }
dd { margin: 0; }
@media print { body { margin: 0; max-width: none; } }
"""


def ranking_report(
    title: str,
    headline: str,
    table: pd.DataFrame,
    figure: Figure | SubFigure,
    facts: Mapping[str, object],
) -> str:
    """The page as text. Every text is escaped.

    Parameters
    ----------
    title : str
        Title of the page.
    headline : str
        The answer in a sentence.
    table : DataFrame
        The ranking; a boolean column "selected" marks rows.
    figure : matplotlib Figure
        The picture, embedded.
    facts : mapping
        Settings and versions, shown below.

    Returns
    -------
    str
    """
    buffer = io.BytesIO()
    figure.figure.savefig(buffer, format="png", dpi=160)
    picture = base64.b64encode(buffer.getvalue()).decode()
    listed = "".join(
        f"<dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
        f'<h1>{escape(headline)}</h1><p class="soft">{escape(title)}</p>'
        f'<p><img alt="{escape(headline)}" src="data:image/png;base64,{picture}"></p>'
        f"{_table(table)}<h2>Settings</h2><dl>{listed}</dl>"
        "<footer><p>Importances rank features; by themselves they carry no error guarantee. "
        "Method: Mroueh, Sercu, Rigotti, Padhi, dos Santos, “Sobolev Independence Criterion”, "
        "NeurIPS 2019.</p></footer></html>\n"
    )


def _table(table: pd.DataFrame) -> str:
    numeric = [pd.api.types.is_float_dtype(table[c]) for c in table.columns]
    head = "".join(
        f"<th{' class=number' if n else ''}>{escape(str(c))}</th>"
        for c, n in zip(table.columns, numeric, strict=True)
    )
    rows = []
    for values in table.itertuples(index=False, name=None):
        cells = "".join(_cell(v, n) for v, n in zip(values, numeric, strict=True))
        chosen = dict(zip(table.columns, values, strict=True)).get("selected", False)
        rows.append(f"<tr{' class=chosen' if chosen else ''}>{cells}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value: object, numeric: bool) -> str:
    if isinstance(value, bool):
        return f"<td>{'yes' if value else ''}</td>"
    if numeric:
        return f"<td class=number>{value:.4f}</td>"
    return f"<td>{escape(str(value))}</td>"
