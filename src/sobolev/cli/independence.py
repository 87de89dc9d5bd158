"""``sobolev test``: whether y depends on x at all."""

from __future__ import annotations

import json as json_module
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from sobolev._progress import listening
from sobolev.cli.ending import one_line
from sobolev.cli.running import plain_words, tell_preparation
from sobolev.cli.terminal import Reporter
from sobolev.inference import sic_test
from sobolev.report.result import plain
from sobolev.report.versions import versions
from sobolev.tables import Prepared, prepare, read_table
from sobolev.tables.names import known

SHOWN = 10


def run_test(
    path: Path,
    y: list[str],
    *,
    columns: dict[str, Any],
    reading: dict[str, Any],
    permutations: int,
    seed: int,
    json: bool,
    quiet: bool,
    x: Sequence[str] = (),
    blocks: str | None = None,
    subject: str | None = None,
) -> None:
    """Read the table, test and print the result."""
    with Reporter(quiet) as reporter:
        reporter.stage("reading")
        frame = read_table(path, **reading)
        labels = None
        if blocks is not None:
            names = known([blocks], list(frame.columns), "--blocks")
            if frame[names[0]].isna().any():
                raise ValueError(f"--blocks: column {names[0]!r} has missing values; fill them in.")
            columns = columns | {"exclude": [*columns.get("exclude", []), *names]}
            labels = frame[names[0]].astype(str).to_numpy()
        data = prepare(frame, y, only=x, subject=subject, **columns)
        tell_preparation(data, reporter)
        if labels is not None and len(labels) != len(data.X):
            raise ValueError("--blocks needs all rows; use --missing draw, not drop.")
        reporter.stage("testing")
        with warnings.catch_warnings(record=True, action="always") as caught, listening(reporter):
            result = sic_test(
                data.filled(with_response=False),
                data.response,
                n_permutations=permutations,
                blocks=labels,
                groups=data.groups,
                random_state=seed,
            )
        said = plain_words(caught)
        for text in said:
            reporter.say(f"warning: {text}")
    sums = {name: result.importances[cols].sum() for name, cols in data.variables.items()}
    shares = pd.Series(sums).sort_values(ascending=False, kind="stable")
    if json:
        content = {
            "schema": 1,
            "x": list(data.variables),
            "y": list(data.targets),
            "response": result.response.description,
            "rows": len(data.X),
            "statistic": result.statistic,
            "pvalue": result.pvalue,
            "sic": result.sic,
            "kernel": result.kernel,
            "permutations": permutations,
            "importances": [
                {"feature": name, "importance": share} for name, share in shares.items()
            ],
            "set_aside": [{"column": name, "reason": reason} for name, reason in data.set_aside],
            "seed": seed,
            "versions": versions(),
            "warnings": [*data.notes, *said],
        }
        typer.echo(json_module.dumps(plain(content), indent=1, ensure_ascii=False))
    else:
        _print(result, data, shares, permutations)


def _print(result: Any, data: Prepared, shares: pd.Series, permutations: int) -> None:
    responses = one_line(", ".join(data.targets))
    features = "the feature" if len(shares) == 1 else f"the {len(shares)} features"
    least = 1 / (permutations + 1)
    sign = "≤" if result.pvalue <= least * (1 + 1e-9) else "="
    verdict = (
        f"{responses} depends on {features}"
        if result.pvalue <= 0.05
        else f"no sign that {responses} depends on {features}"
    )
    typer.echo(f"p {sign} {result.pvalue:.3g}: {verdict}.")
    typer.echo(f"statistic {result.statistic:.3f}, {permutations} permutations, {len(data.X)} rows")
    typer.echo("\nimportance  feature")
    for name, share in shares.head(SHOWN).items():
        typer.echo(f"{share:10.4f}  {one_line(name)}")
    if len(shares) > SHOWN:
        typer.echo(f"… and {len(shares) - SHOWN} more")
