"""``sobolev audit``: whether the false discovery rate holds on the columns of a table."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import typer

from sobolev._files import write_atomic
from sobolev.cli.ending import one_line
from sobolev.cli.output import AUDIT_FILES, choose_folder
from sobolev.cli.running import (
    LOG,
    check_table,
    choose,
    forget,
    keep_order,
    stem,
    tell_preparation,
)
from sobolev.cli.terminal import Reporter
from sobolev.inference import AuditChoice, AuditResult
from sobolev.report.result import plain
from sobolev.report.text import AUDIT_COLUMNS, audit_rows
from sobolev.report.text import audit as audit_text
from sobolev.report.versions import versions
from sobolev.tables import prepare, read_table

SCHEMA = 1


def run_audit(
    path: Path,
    targets: list[str],
    selector: Any,
    *,
    columns: dict[str, Any],
    reading: dict[str, Any],
    output: dict[str, Any],
    repeats: int,
    n_jobs: int | None,
    command: str,
) -> None:
    """Read the table, audit the selector, write and print what was measured."""
    begin = time.perf_counter()
    folder = None
    if not output["no_report"]:
        folder = choose_folder(output.get("out"), f"{stem(path)}-audit", command, AUDIT_FILES)
    log = None if folder is None else folder / LOG
    with Reporter(output["quiet"]) as reporter:
        reporter.stage("reading")
        data = prepare(read_table(path, **reading), targets, **columns)
        tell_preparation(data, reporter)
        check_table(selector, data)
        if columns.get("blocks_of"):
            keep_order(selector)
        choice = choose(
            selector, data, log, reporter, command=command, n_jobs=n_jobs, repeats=repeats
        )
        content = {
            "schema": SCHEMA,
            "verdict": choice.result.verdict,
            "passed": choice.passed,
            "chosen": choice.label,
            "tried": choice.sentence,
            "targets": list(data.targets),
            "data": {"name": path.name, **data.facts}
            | {"rows": len(data.X), "features": len(data.variables) - len(data.adjusted)},
            "settings": {"command": command, "seed": selector.random_state},
            "versions": versions(),
            "seconds": time.perf_counter() - begin,
            "audits": [{"label": label} | found.to_dict() for label, found in choice.audits],
        }
        said = json.dumps(plain(content), allow_nan=False, ensure_ascii=False, indent=1) + "\n"
        if folder is not None:
            write_atomic(folder / "audit.png", picture(choice.result))
            written = write_atomic(folder / "audit.json", said)
            forget(log, choice)
            reporter.say(f"Audit: {written} (and audit.png)")
    if output["json"] or output["format"] == "json":
        typer.echo(said, nl=False)
    else:
        print_audit(choice)


def picture(result: AuditResult) -> bytes:
    """The audit as a PNG file."""
    from matplotlib.figure import Figure

    from sobolev.plotting.audit import draw_nulls, draw_rates

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    rates, beside = figure.subplots(1, 2, width_ratios=[1.25, 1])
    draw_rates(rates, result)
    draw_nulls(beside, result)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def print_audit(choice: AuditChoice) -> None:
    """Print the verdict, the table by kind of response, and what was measured."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, result = Console(), choice.result
    verdict, *measured = audit_text(result)
    console.print(Text(one_line(verdict), style="bold"))
    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k, header in enumerate(AUDIT_COLUMNS):
        view.add_column(header, justify="right" if k else "left", no_wrap=not k)
    *kinds, total = audit_rows(result)
    for row in kinds:
        view.add_row(*row)
    view.add_section()
    view.add_row(*total, style="bold")
    console.print(view)
    for words in [*measured, *([choice.sentence] if choice.sentence else [])]:
        console.print(Text(one_line(words)))
