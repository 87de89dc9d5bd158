"""Genotypes and sparse counts: null p-values, power and false discovery rate of the test.

Simulated: genotypes are sums of two haplotypes, each an AR(1) that is cut at the frequency of the
allele; counts are negative binomial with a size factor that all columns of a row share.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from reproduction.benchmarks.knockoff_designs import chain
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from sobolev import HRTSelector
from sobolev.tables import matrices, windows

NAME = "genomics"
FIRST_SEED, N_SEEDS = 9000, 20
METHOD_SEED = 10**6
N_ROWS, N_VARIANTS, CORRELATION, N_GENES, N_KEPT = 300, 60, 0.9, 3000, 300
LEVELS = (0.01, 0.05, 0.1)
FDR = 0.1
# Number of seeds of designs that take long.
DESIGNS = {
    "genotypes": N_SEEDS,
    "genotypes, windows of 5": N_SEEDS,
    "genotypes, 5 % missing": 10,
    "counts, all columns": 5,
    "counts, chosen columns": N_SEEDS,
}


def genotypes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Genotypes, a response, and the four variants that it depends on."""
    cut = norm.ppf(rng.uniform(0.1, 0.5, N_VARIANTS))
    X = sum((chain(rng, N_ROWS, N_VARIANTS, CORRELATION) < cut).astype(float) for _ in range(2))
    causal = np.array([5, 20, 35, 50])
    y = X[:, causal] @ [0.6, -0.6, 0.6, -0.6] + rng.standard_normal(N_ROWS)
    return X, y, causal


def counts(rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Counts, a response, and the five columns that it depends on."""
    depth = np.exp(0.3 * rng.standard_normal(N_ROWS))
    mean = np.exp(rng.normal(-1.5, 1.0, N_GENES))
    causal = np.flatnonzero(mean > 0.3)[:5]
    X = rng.poisson(rng.gamma(1.0, depth[:, None] * mean)).astype(float)
    y = np.log1p(X[:, causal]) @ [1.5, -1.5, 1.5, -1.5, 1.5] + rng.standard_normal(N_ROWS)
    return sp.csr_array(X), y, causal


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All seeds of a design before the next."""
    plan = {name: repetitions or (1 if quick else n) for name, n in DESIGNS.items()}
    return [
        Task(NAME, {"design": name}, FIRST_SEED + k) for name, n in plan.items() for k in range(n)
    ]


def measure(settings: Settings, seed: int) -> Record:
    """What is selected, and how many null p-values are small; columns count as features."""
    design, rng = settings["design"], np.random.default_rng(seed)
    X, y, causal = genotypes(rng) if "genotypes" in design else counts(rng)
    groups = windows(np.arange(N_VARIANTS), 5, by="count") if "windows" in design else None
    if "missing" in design:
        X[rng.random(X.shape) < 0.05] = np.nan
    bytes_kept = 8 * N_ROWS * N_KEPT if "chosen" in design else matrices.MAX_BYTES
    with mock.patch.object(matrices, "MAX_BYTES", bytes_kept):
        hrt = HRTSelector(
            shortlist=N_VARIANTS, fdr=FDR, feature_groups=groups, random_state=METHOD_SEED + seed
        ).fit(X, y)
    units = list(hrt.units_.values())
    true = np.array([np.isin(own, causal).any() for own in units])
    first = np.array([own[0] for own in units])
    found, null = hrt.support_[first], hrt.pvalues_[first[~true]]
    null = null[np.isfinite(null)]
    return {
        "tpr": float(found[true].mean()),
        "fdp": float(found[~true].sum() / max(found.sum(), 1)),
        "tested": int(null.size),
        "small": [int((null <= level).sum()) for level in LEVELS],
    }


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    lines = []
    for design in DESIGNS:
        of = [row for row in rows if row["design"] == design]
        if not of:
            continue
        count = sum(row["tested"] for row in of)
        shares = np.sum([row["small"] for row in of], axis=0) / count
        lines.append(
            [
                design,
                *(f"{share:.3f}" for share in shares),
                str(count),
                *(mean_cell([row[name] for row in of]) for name in ("tpr", "fdp")),
                str(len(of)),
                f"{np.median([row['seconds'] for row in of]):.1f}",
            ]
        )
    header = ["design", *(f"p ≤ {level}" for level in LEVELS), "p-values"]
    table = markdown_table([*header, "power", "FDR", "seeds", "CPU s"], lines)
    return f"""
## Genotypes and sparse counts

`python -m reproduction genomics`: `HRTSelector(fdr={FDR})`, {N_ROWS} rows. Genotypes 0, 1, 2:
{N_VARIANTS} variants, neighbouring haplotypes with a latent correlation of {CORRELATION}, four of
the variants matter. Counts: {N_GENES} columns as a sparse matrix, five of which matter; "chosen
columns" has memory for {N_KEPT} columns only, which are chosen in the first training rows. Shares
of small p-values are those of features that do not matter; power and false discovery rate count
features. Seeds from {FIRST_SEED}, means with standard errors, version {rows[0]["version"]}, one
thread.

{table}
"""
