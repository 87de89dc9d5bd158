"""HIV-1 drug resistance: positions that knockoffs and the randomization test find at 20 %."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import methods
from reproduction.engine import Record, Settings, Task

NAME, TITLE = "hiv", "HIV-1 drug resistance"
REPETITIONS, QUICK_REPETITIONS = 10, 1
FDR, N_DRAWS = 0.2, 5
KNOCKOFFS, HRT = "knockoffs", "HRT"
# The paper's table: true and false positions of knockoffs with a generalised linear model and with
# Boosted SIC (offset 0).
PUBLISHED = {
    "APV": ((19, 3), (17, 5)),
    "ATV": ((22, 8), (19, 1)),
    "IDV": ((19, 12), (15, 3)),
    "LPV": ((16, 1), (14, 2)),
    "NFV": ((24, 7), (19, 5)),
    "RTV": ((19, 8), (12, 2)),
    "SQV": ((17, 4), (14, 8)),
    "3TC": ((0, 0), (7, 0)),
    "ABC": ((10, 1), (11, 1)),
    "AZT": ((16, 4), (12, 5)),
    "D4T": ((6, 1), (8, 0)),
    "DDI": ((0, 0), (8, 0)),
    "DLV": ((10, 13), (8, 10)),
    "EFV": ((11, 11), (11, 10)),
    "NVP": ((7, 10), (7, 11)),
}
# Not in the paper's table; measured, but not in the totals.
OTHERS = ("TDF",)
QUICK_DRUGS = ("ATV", "LPV")
# The same columns with a response whose truth is known: one drug of each class.
SIMULATED = ", simulated response"
SIMULATED_DRUGS, QUICK_SIMULATED = ("LPV", "AZT", "NVP"), ("LPV",)
N_TRUE, MIN_MUTATED, NOISE = 20, 20, 0.7


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Every drug, and responses that are simulated, by knockoffs and by the test."""
    settings = [
        {"drug": drug, "method": method, "fdr": FDR}
        for drug in (QUICK_DRUGS if quick else (*PUBLISHED, *OTHERS))
        for method in (KNOCKOFFS, HRT)
    ]
    settings += [
        {"drug": drug, "method": f"{method}{SIMULATED}", "fdr": FDR}
        for drug in (QUICK_SIMULATED if quick else SIMULATED_DRUGS)
        for method in (KNOCKOFFS, HRT)
    ]
    seeds = range(repetitions or (QUICK_REPETITIONS if quick else REPETITIONS))
    return [Task(NAME, each, seed) for seed in seeds for each in settings]


def check_data() -> None:
    """The files are there or can be downloaded, or an error that says where they should be."""
    from sobolev.datasets import load_hiv

    for drug in ("ATV", "DDI", "EFV"):  # one of each class
        load_hiv(drug)


def measure(settings: Settings, seed: int) -> Record:
    """True and false positions of one drug."""
    from sobolev.datasets import load_hiv

    data = load_hiv(settings["drug"])
    method = settings["method"].removesuffix(SIMULATED)
    run = by_knockoffs if method == KNOCKOFFS else by_tests
    if method == settings["method"]:
        return run(data, settings["fdr"], seed)
    data = simulate(data, seed)
    return {"simulated": run(data, settings["fdr"], seed), "n_true": len(data.tsm_positions)}


def simulate(data: Any, seed: int) -> Any:
    """The same columns with a linear response; its positions take the place of the list."""
    from sklearn.utils import Bunch

    rng = np.random.default_rng([seed, 4])
    groups = position_groups(data.positions)
    common = [group for group in groups if data.data[:, group].any(axis=1).sum() >= MIN_MUTATED]
    chosen = rng.choice(len(common), min(N_TRUE, len(common) // 2), replace=False)
    columns = np.concatenate([common[k] for k in chosen])
    weights = rng.choice([-1.0, 1.0], columns.size) + rng.standard_normal(columns.size)
    signal = data.data[:, columns] @ weights
    noise = NOISE * signal.std() * rng.standard_normal(signal.size)
    return Bunch(
        data=data.data,
        target=signal + noise,
        positions=data.positions,
        tsm_positions=np.unique(data.positions[columns]),
    )


def position_groups(positions: np.ndarray) -> list[list[int]]:
    """The columns of each position: what is counted is what is selected."""
    return [np.flatnonzero(positions == p).tolist() for p in np.unique(positions)]


def by_knockoffs(data: Any, fdr: float, seed: int) -> Record:
    """Gaussian group knockoffs: five draws with e-values, and the first draw alone."""
    selector, found = filtered(
        data,
        position_groups(data.positions),
        methods.hiv_critic(),
        sampler="gaussian",
        fdr=fdr,
        n_draws=N_DRAWS,
        random_state=seed,
    )
    kept: Record = {"lam": round(float(selector.estimator_.lam_), 6)}
    for offset in (0, 1):
        kept[f"draw{offset}"] = found[f"draws{offset}"][0]
        kept[f"ebh{offset}"] = found[f"ebh{offset}"]
    return kept


def filtered(
    data: Any, groups: list[list[int]] | None, estimator: Any, *, fdr: float, **options: Any
) -> tuple[Any, Record]:
    """Knockoffs of groups of columns, or of single ones, by both offsets.

    Returns
    -------
    selector : KnockoffSelector
    counts : dict
        True and other positions: ``draws0`` and ``draws1`` of each draw, and of several draws
        ``ebh0`` and ``ebh1``.
    """
    from sobolev.inference.knockoff_filter import ebh, knockoff_evalues, knockoff_threshold

    selector = methods.position_knockoffs(groups, estimator, fdr=fdr, **options)
    selector.fit(data.data, data.target)
    units = [[j] for j in range(data.data.shape[1])] if groups is None else groups
    label = np.empty(data.data.shape[1], dtype=int)
    for k, members in enumerate(units):
        label[members] = k
    W = selector.draws_[:, [members[0] for members in units]]
    found: Record = {}
    for offset in (0, 1):
        kept = [w >= knockoff_threshold(w, fdr, offset) for w in W]
        found[f"draws{offset}"] = [_counts(data, k[label]) for k in kept]
        if len(W) > 1:
            e = np.mean([knockoff_evalues(w, fdr / 2, offset) for w in W], axis=0)
            found[f"ebh{offset}"] = _counts(data, ebh(e, fdr)[label])
    return selector, found


def by_tests(data: Any, fdr: float, seed: int) -> Record:
    """The default test of positions, with the categorical distribution of each given the others."""
    groups = position_groups(data.positions)
    selector = methods.position_tests(groups, fdr=fdr, random_state=seed)
    return {"hrt": _counts(data, selector.fit(data.data, data.target).support_)}


def _counts(data: Any, support: Any) -> list[int]:
    from sobolev.datasets import count_positions

    return [int(count) for count in count_positions(data, support)]


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The totals in one line."""
    from reproduction.paper.hiv_page import summary

    return summary(records)


def page(records: Sequence[Record], folder: Path) -> str:
    """The paper's table with our columns, totals, and a picture of them."""
    from reproduction.paper.hiv_page import page

    return page(records, folder)
