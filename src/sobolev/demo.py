"""The demonstration behind ``make demo``: SinExp ranked by convex SIC, with a report."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sobolev import ConvexSIC, write_report
from sobolev._files import write_atomic
from sobolev.datasets import make_sinexp

SHOWN = 12


def run_demo(n_samples: int, seed: int, out: Path) -> pd.DataFrame:
    """Simulate, fit, print the table and write report.html and importances.csv.

    Returns
    -------
    DataFrame
        The summary of the fit: one row for each feature, most important first.
    """
    console = Console()
    data = make_sinexp(n_samples, shuffle_features=True, random_state=seed, as_frame=True)
    console.print(
        f"[bold]SinExp[/bold]: {n_samples} rows, {data.data.shape[1]} columns in random order, "
        "pairwise correlation 0.5, signal-to-noise 2."
    )
    console.print(
        "y = sin(x1 (x1 + x2)) · cos(x3 + x4 x5) · sin(exp(x5) + exp(x6) − x2) + noise\n"
        "Only x1 … x6 matter. Which ones does convex SIC rank first?\n"
    )
    begin = time.perf_counter()
    sic = ConvexSIC(n_features_to_select=6, verbose=1).fit(data.data, data.target)
    seconds = time.perf_counter() - begin
    table = sic.summary()
    truth = set(np.asarray(data.feature_names)[data.support])
    found = sum(name in truth for name in table["feature"][:6])
    _print(console, table, truth)
    headline = f"{found} of the 6 true features are among the first 6 of {len(table)} columns"
    console.print(
        f"\n{headline}. lam = {sic.lam_:g} by cross-validation, {sic.n_rounds_} rounds, "
        f"SIC = {sic.sic_:.3f}, {seconds:.1f} s."
    )
    report = write_report(
        sic,
        data.data,
        data.target,
        out / "report.html",
        data={
            "name": "SinExp, simulated",
            "truth": f"only x1 … x6 matter; {headline}",
            "made by": f"make_sinexp({n_samples}, shuffle_features=True, random_state={seed})",
        },
        settings={"estimator": "ConvexSIC(n_features_to_select=6)", "rounds": int(sic.n_rounds_)},
        seconds=seconds,
    )
    write_atomic(out / "importances.csv", table.to_csv(index=False))
    console.print(f"Report: {escape(str(report))}   table: {escape(str(out / 'importances.csv'))}")
    return table


def _print(console: Console, table: pd.DataFrame, truth: set[str]) -> None:
    view = Table("rank", "feature", "importance", "", "selected", "truth")
    view.title = f"The {SHOWN} largest importances"
    for number in (0, 2):
        view.columns[number].justify = "right"
    top = float(table["importance"].iloc[0])
    for rank, row in enumerate(table.head(SHOWN).itertuples(index=False), start=1):
        view.add_row(
            str(rank),
            escape(row.feature),
            f"{row.importance:.4f}",
            "█" * max(0, round(24 * row.importance / top)),
            "yes" if row.selected else "",
            "true" if row.feature in truth else "",
            style="bold" if row.selected else "",
        )
    console.print(view)
