"""Power, level and time of ``sic_test`` beside hyppo's Dcorr and Hsic, in one run.

    python benchmarks/independence.py [--quick] [--replications N]

Power: share of data sets with a permutation p-value of at most 0.05. Simulations: hyppo's 20 at
n = 100, p = 3, with and without noise; XOR and the circle at n = 100. Level: the share of
rejections under independence, Gaussian and heavy-tailed responses.
"""

from __future__ import annotations

from _common import (
    FOLDER,
    Record,
    append_record,
    argument_parser,
    markdown_table,
    output_folder,
    read_records,
    write_section,
)

# isort: split
import inspect
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from sobolev import __version__, sic_test
from sobolev.datasets import make_xor

N_ROWS, N_FEATURES, N_PERMUTATIONS, LEVEL = 100, 3, 200, 0.05
Data = tuple[np.ndarray, np.ndarray]


def hyppo_simulation(name: str, noise: bool, seed: int) -> Data:
    """One data set of hyppo, which draws from numpy's global generator: it is put back after."""
    from hyppo.tools import SIMULATIONS

    function = SIMULATIONS[name]
    options = {"noise": noise} if "noise" in inspect.signature(function).parameters else {}
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1000 * seed + 17)  # noqa: NPY002
        x, y = function(N_ROWS, N_FEATURES, **options)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return np.asarray(x, float), np.asarray(y, float)


def xor(seed: int) -> Data:
    data = make_xor(N_ROWS, 2, noise=1.5, random_state=seed)
    return data.data, data.target[:, None]


def circle(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, N_ROWS)
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    points += 0.3 * rng.standard_normal(points.shape)
    return points[:, :1], points[:, 1:]


def independent(tail: str) -> Callable[[int], Data]:
    def draw(seed: int) -> Data:
        rng = np.random.default_rng(10**6 + seed)
        X = rng.standard_normal((N_ROWS, N_FEATURES))
        y = rng.standard_normal(N_ROWS) if tail == "Gaussian" else rng.standard_cauchy(N_ROWS)
        return X, y[:, None]

    return draw


RELATIONS = {"XOR, noise 1.5": xor, "noisy circle": circle}


def sobolev_pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    return sic_test(x, y, n_permutations=N_PERMUTATIONS, random_state=seed).pvalue


def hyppo_pvalue(test: str) -> Callable[[np.ndarray, np.ndarray, int], float]:
    def pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
        from hyppo.independence import Dcorr, Hsic

        test_class = {"Dcorr": Dcorr, "Hsic": Hsic}[test]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(
                test_class().test(
                    x, y, reps=N_PERMUTATIONS, workers=1, auto=False, random_state=seed
                )[1]
            )

    return pvalue


METHODS = {
    "sic_test": sobolev_pvalue,
    "Dcorr": hyppo_pvalue("Dcorr"),
    "Hsic": hyppo_pvalue("Hsic"),
}


def run(path, name: str, draw: Callable[[int], Data], seeds: Sequence[int], methods) -> None:
    """Every method on every data set; what is on disk already is not done again."""
    done = {(r["data"], r["method"], r["seed"]) for r in read_records(path)}
    for seed in seeds:
        todo = [m for m in methods if (name, m, seed) not in done]
        if not todo:
            continue
        x, y = draw(seed)
        for method in todo:
            begin = time.perf_counter()
            pvalue = METHODS[method](x, y, seed)
            append_record(
                path,
                {
                    "data": name,
                    "method": method,
                    "seed": seed,
                    "pvalue": pvalue,
                    "seconds": time.perf_counter() - begin,
                    "version": __version__,
                },
            )


def rate(records: list[Record], data: str, method: str) -> tuple[float, int]:
    p = [r["pvalue"] for r in records if r["data"] == data and r["method"] == method]
    return float(np.mean(np.array(p) <= LEVEL)), len(p)


def summary(records: list[Record], simulations: Sequence[str]) -> list[list[str]]:
    """Mean power over the dependent simulations, and the time of a test."""
    dependent = [s for s in simulations if s != "multimodal_independence"]
    lines = []
    for kind in ("clean", "noise"):
        cells = []
        for method in METHODS:
            rates = [rate(records, f"{s} ({kind})", method) for s in dependent]
            share = np.array([v for v, _ in rates])
            error = np.sqrt(np.sum(share * (1 - share) / rates[0][1])) / len(rates)
            cells.append(f"**{share.mean():.3f}** ± {error:.3f}")
        lines.append([f"mean of {len(dependent)} dependent ({kind})", *cells])
    simulated = [r for r in records if not r["data"].startswith("independent")]
    times = [np.median([r["seconds"] for r in simulated if r["method"] == m]) for m in METHODS]
    lines.append(["median time, relative to sic_test", *[f"{t / times[0]:.2f}×" for t in times]])
    return lines


def details(records: list[Record], simulations: Sequence[str]) -> list[list[str]]:
    """The power on each simulation."""
    labels = [f"{s} ({kind})" for s in simulations for kind in ("clean", "noise")]
    rows = []
    for label in (*labels, *RELATIONS):
        rates = [rate(records, label, m) for m in METHODS]
        rows.append([f"{label}, {rates[0][1]} data sets", *[f"{v:.2f}" for v, _ in rates]])
    return rows


def levels(records: list[Record]) -> list[str]:
    """The share of rejections under independence, with the band it should lie in."""
    lines = []
    for tail in ("Gaussian", "Cauchy"):
        share, count = rate(records, f"independent {tail}", "sic_test")
        low, high = (binom.ppf(q, count, LEVEL) / count for q in (0.005, 0.995))
        lines.append(
            f"- independent, {tail} response: rejects {share:.4f} of {count} data sets at "
            f"{LEVEL} (99 % band {low:.4f} to {high:.4f})"
        )
    return lines


def render(records: list[Record], simulations: Sequence[str]) -> str:
    rows = [*summary(records, simulations), *details(records, simulations)]
    return "\n".join(
        [
            "## Independence tests",
            "",
            f"`python benchmarks/independence.py`: n = {N_ROWS}, {N_PERMUTATIONS} permutations, "
            f"share of p-values ≤ {LEVEL}; hyppo's simulations have p = {N_FEATURES}. "
            f"Version {__version__}, one thread.",
            "",
            markdown_table(["data", *METHODS], rows),
            "",
            "Level of `sic_test`:",
            "",
            *levels(records),
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    from hyppo.tools import SIMULATIONS

    parser = argument_parser(__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=20)
    parser.add_argument("--level-replications", type=int, default=400)
    args = parser.parse_args(argv)
    folder = output_folder(args)
    path = folder / "results" / "independence.jsonl"
    simulations = list(SIMULATIONS)
    replications, level_replications = args.replications, args.level_replications
    if args.quick:
        simulations = ["linear", "quadratic", "multimodal_independence"]
        replications, level_replications = 2, 4
    for name in simulations:
        for noise in (True, False):
            label = f"{name} ({'noise' if noise else 'clean'})"
            print(label, flush=True)

            def draw(seed: int, name: str = name, noise: bool = noise) -> Data:
                return hyppo_simulation(name, noise, seed)

            run(path, label, draw, range(replications), METHODS)
    for name, draw in RELATIONS.items():
        run(path, name, draw, range(5 * replications), METHODS)
    for tail in ("Gaussian", "Cauchy"):
        seeds = range(level_replications)
        run(path, f"independent {tail}", independent(tail), seeds, ("sic_test",))
    records = read_records(path)
    body = render(records, simulations)
    write_section(folder / "RESULTS.md", "independence", body)
    if folder == FOLDER:
        table = markdown_table(["power at 0.05", *METHODS], summary(records, simulations))
        write_section(folder.parent / "README.md", "independence", table)
    print(body)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
