"""The demonstration behind ``make demo``: SinExp ranked by convex SIC, with a report."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sobolev import ConvexSIC, __version__
from sobolev._files import write_atomic
from sobolev.datasets import make_sinexp
from sobolev.report import COLUMNS, SelectionResult, render_report

SHOWN = 12


def run_demo(n_samples: int, seed: int, out: Path) -> pd.DataFrame:
    """Simulate, fit, print the table and write report.html and importances.csv.

    Returns
    -------
    DataFrame
        One row a feature, by falling importance.
    """
    console = Console()
    data = make_sinexp(n_samples, shuffle_features=True, random_state=seed, as_frame=True)
    console.print(
        f"[bold]SinExp[/bold]: {n_samples} rows, {data.data.shape[1]} columns in random order, "
        "pairwise correlation 0.5, signal-to-noise 2."
    )
    console.print(
        "y = sin(x1 (x1 + x2)) · cos(x3 + x4 x5) · sin(exp(x5) + exp(x6) − x2) + noise\n"
        "Only x1 … x6 matter. Which ones does convex SIC put on top?\n"
    )
    begin = time.perf_counter()
    sic = ConvexSIC(n_features_to_select=6, verbose=1).fit(data.data, data.target)
    seconds = time.perf_counter() - begin
    table = ranking(sic)
    truth = set(np.asarray(data.feature_names)[data.support])
    found = sum(name in truth for name in table["feature"][:6])
    _print(console, table, truth)
    headline = f"{found} of the 6 true features stand in the top 6 of {len(table)} columns"
    console.print(
        f"\n{headline}. lam = {sic.lam_:g} by cross-validation, {sic.n_rounds_} rounds, "
        f"SIC = {sic.sic_:.3f}, {seconds:.1f} s."
    )
    page = render_report(_result(sic, table, headline, n_samples, seed, seconds))
    report = write_atomic(out / "report.html", page)
    write_atomic(out / "importances.csv", table.to_csv(index=False))
    console.print(f"Report: {escape(str(report))}   table: {escape(str(out / 'importances.csv'))}")
    return table


def ranking(sic: ConvexSIC) -> pd.DataFrame:
    """The fitted importances as a table, by falling importance."""
    names = getattr(sic, "feature_names_in_", [f"x{j}" for j in range(sic.n_features_in_)])
    table = pd.DataFrame(
        {
            "feature": [str(name) for name in names],
            "importance": sic.feature_importances_,
            "selected": sic.support_,
        }
    )
    return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _result(
    sic: ConvexSIC, table: pd.DataFrame, found: str, n_samples: int, seed: int, seconds: float
) -> SelectionResult:
    """The ranking as the report takes it."""
    return SelectionResult(
        method="rank",
        targets=("y",),
        fdr=None,
        table=table.assign(kind="numeric").reindex(columns=list(COLUMNS)),
        data={
            "name": "SinExp, simulated",
            "rows": n_samples,
            "columns": len(table) + 1,
            "truth": f"only x1 … x6 matter; {found}",
            "made by": f"make_sinexp({n_samples}, shuffle_features=True, random_state={seed})",
        },
        settings={
            "critic": "convex",
            "estimator": "ConvexSIC(n_features_to_select=6)",
            "lam (cross-validated)": float(sic.lam_),
            "SIC": float(sic.sic_),
            "rounds of the metric": int(sic.n_rounds_),
        },
        versions={"sobolev": __version__},
        seconds=seconds,
    )


def _print(console: Console, table: pd.DataFrame, truth: set[str]) -> None:
    view = Table(title=f"The {SHOWN} largest importances")
    view.add_column("rank", justify="right")
    view.add_column("feature")
    view.add_column("importance", justify="right")
    view.add_column("")
    view.add_column("selected")
    view.add_column("truth")
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
