"""Write a result to disk: the table, everything as JSON, the report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sobolev._files import write_atomic
from sobolev.report.html import render_report
from sobolev.report.making import make_result
from sobolev.report.result import COLUMNS, SCHEMA, SelectionResult, plain
from sobolev.tables.writing import without_formulas

if TYPE_CHECKING:
    from sobolev.inference import AuditResult


def write_report(
    selector: Any,
    X: Any,
    y: Any,
    path: str | Path,
    *,
    targets: Iterable[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    warnings: Iterable[str] | None = None,
    seconds: float = 0.0,
    audit: AuditResult | None = None,
) -> Path:
    """Write what a fitted selector found as one HTML page.

    The page holds the answer, the table, pictures of effects, tests and model checks, a paragraph
    for the methods section of a paper, and the settings. It needs no network.

    Parameters
    ----------
    selector : fitted HRTSelector, KnockoffSelector, ConvexSIC or NeuralSIC
    X, y : array-like or DataFrame
        The data that it was fitted to.
    path : str or Path
        The file, such as ``"report.html"``.
    targets, kinds, data, settings, warnings, seconds
        What only you know about the run, see :func:`sobolev.report.make_result`.
    audit : AuditResult, optional
        What :func:`sobolev.audit` measured; its verdict joins the headline, and the page gets a
        section.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sobolev import ConvexSIC, write_report
    >>> from sobolev.datasets import make_sinexp
    >>> X, y = make_sinexp(100, 8, random_state=0, as_frame=True, return_X_y=True)
    >>> sic = ConvexSIC(lam=0.02).fit(X, y)
    >>> path = write_report(sic, X, y, Path(tempfile.mkdtemp()) / "report.html")
    >>> path.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    result = make_result(
        selector,
        X,
        y,
        targets=targets,
        kinds=kinds,
        data=data,
        settings=settings,
        warnings=warnings,
        seconds=seconds,
        audit=audit,
    )
    return write_atomic(path, render_report(result))


def write_result(result: SelectionResult, folder: str | Path) -> dict[str, Path]:
    """Write ``selection.csv``, ``result.json`` and ``report.html``.

    All three are rendered before the first is written, and each appears whole or not at all. In
    ``selection.csv`` a name that a spreadsheet would run as a formula, such as "=1+1", has an
    apostrophe before it; :func:`sobolev.tables.writing.with_formulas` gives the names of the data,
    which ``result.json`` has as they are.

    Parameters
    ----------
    result : SelectionResult
    folder : str or Path
        Created if it does not exist.

    Returns
    -------
    dict of Path
        The files by name.
    """
    contents = {
        "result.json": result_json(result),  # first: it says whose folder this is
        "selection.csv": result_csv(result),
        "report.html": render_report(result),
    }
    return {name: write_atomic(Path(folder) / name, text) for name, text in contents.items()}


def result_csv(result: SelectionResult) -> str:
    """The table as CSV, without formulas; see :func:`write_result`."""
    return without_formulas(result.table[list(COLUMNS)]).to_csv(index=False)


def result_json(result: SelectionResult) -> str:
    """The result as strict JSON: missing and infinite values are null.

    Parameters
    ----------
    result : SelectionResult

    Returns
    -------
    str
        An object with "schema", the version of the layout, "features", a list of objects with the
        keys ``COLUMNS``, and the other fields of the result; pictures by title and caption only.
    """
    content = {
        "schema": SCHEMA,
        "headline": result.headline,
        "selected": result.selected,
        **vars(result),
        "features": result.table[list(COLUMNS)].to_dict(orient="records"),
        "pictures": [{"title": p.title, "caption": p.caption} for p in result.pictures],
        "audit": None if result.audit is None else result.audit.to_dict(),
        "skill": None if result.skill is None else result.skill.to_dict(),
    }
    del content["table"]
    return json.dumps(plain(content), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
