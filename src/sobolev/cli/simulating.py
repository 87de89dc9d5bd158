"""``sobolev simulate``: tables for which the true answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sobolev.datasets import make_liang, make_sine_radius, make_sinexp, make_xor
from sobolev.tables import write_table
from sobolev.tables.formats import suffixes

MAKERS: dict[str, Any] = {
    "sinexp": make_sinexp,
    "liang": make_liang,
    "xor": make_xor,
    "sine-radius": make_sine_radius,
}


def run_simulation(
    name: str, rows: int, features: int | None, seed: int, out: Path | None, *, overwrite: bool
) -> None:
    """Simulate a table, write it and print the true features."""
    path = Path(f"{name}.csv") if out is None else out
    suffixes(path)
    if path.is_dir():
        raise ValueError(f"--out {str(path)!r} is a folder; give a file.")
    if path.exists() and not overwrite:
        raise ValueError(f"{str(path)!r} exists already; pass --overwrite or another --out.")
    options = {} if features is None else {"n_features": features}
    data = MAKERS[name](rows, random_state=seed, as_frame=True, **options)
    write_table(data.data.assign(y=data.target), path)
    true = [str(column) for column in data.feature_names[data.support]]
    shown = ", ".join(true) if len(true) < 10 else f"{true[0]} to {true[-1]}"
    typer.echo(f"{path}: {rows} rows, {data.data.shape[1]} features and the target y.")
    typer.echo(f"True features: {shown}. Try: sobolev select {path} --target y")
