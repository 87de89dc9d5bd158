"""Knockoffs on HIV drug resistance: positions found at q = 0.2, against the treatment list.

    SOBOLEV_DATA_HOME=... python benchmarks/knockoffs_hiv.py [--quick] [--seeds N] [--only METHOD]
                                                             [--render]

One setting for all drugs; lam is chosen from the data, the list of true positions is only used to
count. Every finished fit is a line of results/knockoffs_hiv.jsonl at once; a run that was killed
goes on where it stopped. The rows of ``ConvexSIC`` come from ``sobolev reproduce hiv``, which
measures it (docs/results/data/hiv.jsonl); here are the others.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import _common as common
import numpy as np
from sklearn.linear_model import LassoCV

from sobolev import ConvexSIC, KnockoffSelector, NeuralSIC, __version__
from sobolev.convex import Alternating, LandmarkMap
from sobolev.datasets import HIV_DRUGS, count_positions, load_hiv
from sobolev.experiments._hiv_page import published_total
from sobolev.experiments.hiv import KNOCKOFFS, PUBLISHED, position_groups
from sobolev.inference.knockoff_filter import ebh, knockoff_evalues, knockoff_threshold
from sobolev.neural import Boosting, Optimizer

FDR, N_SEEDS, N_DRAWS = 0.2, 10, 5
DRUGS = {kind: [d for d in drugs if d in PUBLISHED] for kind, drugs in HIV_DRUGS.items()}
PAPER = {
    "GLM (paper)": published_total(0),
    "Boosted SIC (paper, offset 0)": published_total(1),
}


@dataclass(frozen=True)
class Method:
    """A statistic, knockoffs, how many draws, and whether positions or columns are the unit."""

    name: str
    statistic: str
    sampler: str = "gaussian"
    n_draws: int = 1
    positions: bool = True

    def estimator(self) -> Any:
        if self.statistic == "lasso":
            return LassoCV()
        if self.statistic == "neural":
            optimizer = Optimizer(batch_size=[10, 30, 50])
            return NeuralSIC(optimizer=optimizer, boosting=Boosting(aggregate="geometric"))
        return ConvexSIC(
            feature_map=LandmarkMap(200), solver=Alternating(rounds=1), lam="relaxed", cv=3
        )


MAIN = "ConvexSIC"
REPRODUCED = common.FOLDER.parent / "docs" / "results" / "data" / "hiv.jsonl"
METHODS = (
    Method("lasso", "lasso", n_draws=N_DRAWS),
    Method("Boosted NeuralSIC", "neural"),
    Method("ConvexSIC, copula", "convex", "copula"),
    Method("ConvexSIC, sequential", "convex", "sequential"),
    Method("ConvexSIC, by column", "convex", positions=False),
)


def reproduced() -> list[common.Record]:
    """The records of ``sobolev reproduce hiv`` in the form of the others."""
    return [
        {
            "drug": r["settings"]["drug"],
            "method": MAIN,
            "seed": r["seed"],
            "seconds": r["seconds"],
            "lam": r["result"]["lam"],
            **{f"draws{k}": [r["result"][f"draw{k}"]] for k in (0, 1)},
            **{f"ebh{k}": r["result"][f"ebh{k}"] for k in (0, 1)},
        }
        for r in common.read_records(REPRODUCED)
        if r["settings"]["method"] == KNOCKOFFS
    ]


def measure(drug: str, method: Method, seed: int) -> common.Record:
    """Positions of the list and others, with both offsets, draw by draw and derandomised."""
    data = load_hiv(drug, data_home=common.DATA_HOME)
    units = data.positions if method.positions else np.arange(data.data.shape[1])
    _, label = np.unique(units, return_inverse=True)
    groups = position_groups(units)
    selector = KnockoffSelector(
        method.estimator(),
        sampler=method.sampler,
        groups=groups if method.positions else None,
        fdr=FDR,
        n_draws=method.n_draws,
        random_state=seed,
        diagnose=False,
    )
    start = time.process_time()
    selector.fit(data.data, data.target)
    seconds = time.process_time() - start
    W = selector.draws_[:, [members[0] for members in groups]]
    record: common.Record = {
        "drug": drug,
        "method": method.name,
        "seed": seed,
        "version": __version__,
        "lam": getattr(selector.estimator_, "lam_", None),
        "seconds": round(seconds, 2),
    }
    for offset in (0, 1):
        kept = [w >= knockoff_threshold(w, FDR, offset) for w in W]
        record[f"draws{offset}"] = [_count(data, k[label]) for k in kept]
        if method.n_draws > 1:
            e = np.mean([knockoff_evalues(w, FDR / 2, offset) for w in W], axis=0)
            record[f"ebh{offset}"] = _count(data, ebh(e, FDR)[label])
    return record


def _count(data: Any, support: np.ndarray) -> list[int]:
    return [int(value) for value in count_positions(data, support)]


def totals(records: Sequence[common.Record], key: str, drugs: Sequence[str]) -> np.ndarray | None:
    """True and false positions over the drugs, (n_seeds, 2), of seeds with all of them.

    Of single draws the first is taken.
    """
    found: dict[int, dict[str, Any]] = {}
    for r in records:
        if key in r and r["drug"] in drugs:
            found.setdefault(r["seed"], {})[r["drug"]] = r[key][0] if "draws" in key else r[key]
    full = [np.sum(list(of.values()), axis=0) for of in found.values() if len(of) == len(drugs)]
    return np.array(full, dtype=float) if full else None


def _cell(values: np.ndarray | None) -> str:
    if values is None:
        return "–"
    return "{:.1f} / {:.1f}".format(*values.mean(axis=0))


KINDS = (
    ("ebh0", f"{N_DRAWS} draws, e-BH, offset 0"),
    ("ebh1", f"{N_DRAWS} draws, e-BH, offset 1"),
    ("draws1", "one draw, offset 1"),
    ("draws0", "one draw, offset 0"),
)


README_ROWS = (
    ("ebh0", f"`n_draws={N_DRAWS}, offset=0`"),
    ("ebh1", f"`n_draws={N_DRAWS}`"),
    ("draws1", "one draw"),
)


def render(records: Sequence[common.Record]) -> str:
    """The section of RESULTS.md."""
    every = [d for drugs in DRUGS.values() for d in drugs]
    rows = []
    for name in (MAIN, *(method.name for method in METHODS)):
        of = [r for r in records if r["method"] == name]
        for key, words in KINDS:
            all_drugs = totals(of, key, every)
            if all_drugs is None:
                continue
            true, false = all_drugs.mean(axis=0)
            spread = all_drugs.std(axis=0, ddof=1) if len(all_drugs) > 1 else (np.nan, np.nan)
            by_class = [_cell(totals(of, key, drugs)) for drugs in DRUGS.values()]
            rows.append(
                [
                    f"{name}, {words}",
                    f"**{true:.1f} / {false:.1f}**",
                    f"{false / (true + false):.3f}" if true + false else "–",
                    f"{spread[0]:.1f} / {spread[1]:.1f}",
                    *by_class,
                    str(len(all_drugs)),
                ]
            )
    for name, (true, false) in PAPER.items():
        rows.append([name, f"{true} / {false}", f"{false / (true + false):.3f}", *["–"] * 5])
    header = ["method", "true / false", "share false", "sd over seeds", *DRUGS, "seeds"]
    body = f"""
## Knockoffs on HIV drug resistance

Positions found at q = {FDR} over 15 drugs, true (on the list of treatment-selected mutations of the
class) and others, means over seeds. Positions are groups of columns: the false discovery rate is
controlled for what is counted ("by column": for single mutations, as in the paper). Gaussian
knockoffs unless said. ConvexSIC is
`ConvexSIC(feature_map=LandmarkMap(200), solver=Alternating(rounds=1), lam="relaxed", cv=3)`
for all drugs, "lasso" is `LassoCV`, Boosted NeuralSIC has batches of 10, 30 and 50 and geometric
means. The list is not the whole truth: positions beside it may matter.

{common.markdown_table(header, rows)}
"""
    first = [r for r in records if r["method"] == MAIN]
    if first:
        lines = []
        for drug in every:
            of = [r for r in first if r["drug"] == drug]
            if not of:
                continue
            cells = [
                "{:.1f} / {:.1f}".format(*np.mean([r[k] for r in of], axis=0))
                if "ebh" in k
                else "{:.1f} / {:.1f}".format(*np.mean([r[k][0] for r in of], axis=0))
                for k, _ in KINDS
            ]
            lams = sorted(r["lam"] for r in of)
            seconds = np.median([r["seconds"] for r in of])
            middle = f"{lams[len(lams) // 2]:g}"
            lines.append([drug, *cells, middle, f"{seconds:.0f}", str(len(of))])
        header = ["drug", *[words for _, words in KINDS], "median lam", "CPU s", "seeds"]
        body += f"\nConvexSIC by drug, true / false:\n\n{common.markdown_table(header, lines)}\n"
    return body + (
        f"\nsobolev {__version__}; regenerate with `sobolev reproduce hiv` (ConvexSIC) and "
        "`python benchmarks/knockoffs_hiv.py`.\n"
    )


def summary(records: Sequence[common.Record]) -> str:
    """The table of the README."""
    every = [d for drugs in DRUGS.values() for d in drugs]
    of = [r for r in records if r["method"] == MAIN]
    rows = []
    for key, words in README_ROWS:
        found = totals(of, key, every)
        if found is not None:
            true, false = found.mean(axis=0)
            spread = np.nan if len(found) < 2 else found.sum(axis=1).std(ddof=1)
            cells = [f"**{true:.0f} / {false:.0f}**", f"{false / (true + false):.2f}"]
            words = f"`KnockoffSelector`, {words} ({len(found)} seeds)"
            rows.append([words, *cells, f"{spread:.1f}"])
    for name, (true, false) in PAPER.items():
        rows.append([name, f"{true} / {false}", f"{false / (true + false):.2f}", "–"])
    header = [
        "15 drugs, q = 0.2",
        "true / false positions",
        "share false",
        "sd of finds over seeds",
    ]
    return common.markdown_table(header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    parser = common.argument_parser("Knockoffs on HIV drug resistance.")
    parser.add_argument("--seeds", type=int, help="seeds of each method")
    parser.add_argument("--render", action="store_true", help="only write the tables")
    args = parser.parse_args(argv)
    if not (common.DATA_HOME / "hiv").is_dir():
        print("The HIV data are missing: set SOBOLEV_DATA_HOME to the folder of the data.")
        return
    warnings.simplefilter("ignore")
    folder = common.output_folder(args)
    path = folder / "results" / "knockoffs_hiv.jsonl"
    keys = ("version", "drug", "method", "seed")
    finished = {tuple(r[k] for k in keys) for r in common.read_records(path)}
    drugs = ["ATV"] if args.quick else [d for of in DRUGS.values() for d in of]
    seeds = args.seeds or (1 if args.quick else N_SEEDS)
    exact = [method for method in METHODS if method.name == args.only]
    for seed in [] if args.render else range(seeds):
        for method in exact or common.choose(METHODS, args.only):
            for drug in drugs:
                if (__version__, drug, method.name, seed) not in finished:
                    record = measure(drug, method, seed)
                    common.append_record(path, record)
                    print(f"{drug} · {method.name} · {seed}: {record['draws1'][0]}", flush=True)
    records = reproduced() + common.read_records(path)
    section = render(records)
    common.write_section(folder / "RESULTS.md", "knockoffs-hiv", section)
    if folder == common.FOLDER:
        common.write_section(folder.parent / "README.md", "hiv", summary(records))
    print(section)


if __name__ == "__main__":
    main()
