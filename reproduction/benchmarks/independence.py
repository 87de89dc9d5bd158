"""Power, level and time of ``sic_test`` beside hyppo's Dcorr and Hsic, in one run.

Power: share of data sets with a permutation p-value of at most 0.05. Simulations: hyppo's 20 at
n = 100, p = 3, with and without noise; XOR and the circle at n = 100. Level: the share of
rejections under independence, Gaussian and heavy-tailed responses.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from reproduction.benchmarks.selection_peers import global_seed
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from sobolev import sic_test
from sobolev.datasets import make_xor

NAME = "independence"
N_ROWS, N_FEATURES, N_PERMUTATIONS, LEVEL = 100, 3, 200, 0.05
REPETITIONS, LEVEL_REPETITIONS = 20, 400
QUICK = ("linear", "quadratic", "multimodal_independence")
TAILS = ("Gaussian", "Cauchy")
Data = tuple[np.ndarray, np.ndarray]


def hyppo_simulation(name: str, noise: bool, seed: int) -> Data:
    """One data set of hyppo, which draws from numpy's global generator: it is put back after."""
    from hyppo.tools import SIMULATIONS

    function = SIMULATIONS[name]
    options = {"noise": noise} if "noise" in inspect.signature(function).parameters else {}
    with global_seed(1000 * seed + 17):
        x, y = function(N_ROWS, N_FEATURES, **options)
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


def independent(tail: str, seed: int) -> Data:
    """A response that does not know X."""
    rng = np.random.default_rng(10**6 + seed)
    X = rng.standard_normal((N_ROWS, N_FEATURES))
    y = rng.standard_normal(N_ROWS) if tail == "Gaussian" else rng.standard_cauchy(N_ROWS)
    return X, y[:, None]


RELATIONS = {"XOR, noise 1.5": xor, "noisy circle": circle}


def sobolev_pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    return sic_test(x, y, n_permutations=N_PERMUTATIONS, random_state=seed).pvalue


def hyppo_pvalue(test: str) -> Callable[[np.ndarray, np.ndarray, int], float]:
    def pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
        from hyppo.independence import Dcorr, Hsic

        test_class = {"Dcorr": Dcorr, "Hsic": Hsic}[test]
        options = {"reps": N_PERMUTATIONS, "workers": 1, "auto": False, "random_state": seed}
        return float(test_class().test(x, y, **options)[1])

    return pvalue


METHODS = {
    "sic_test": sobolev_pvalue,
    "Dcorr": hyppo_pvalue("Dcorr"),
    "Hsic": hyppo_pvalue("Hsic"),
}


def simulations() -> list[str]:
    """The names of hyppo's simulations."""
    from hyppo.tools import SIMULATIONS

    return list(SIMULATIONS)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Every method on every data set; under independence ours alone."""
    count = repetitions or (2 if quick else REPETITIONS)
    names = QUICK if quick else simulations()
    labels = [f"{name} ({kind})" for name in names for kind in ("noise", "clean")]
    counts = dict.fromkeys(labels, count) | dict.fromkeys(RELATIONS, 5 * count)
    planned = [
        Task(NAME, {"data": data, "method": method}, seed)
        for data, n_seeds in counts.items()
        for seed in range(n_seeds)
        for method in METHODS
    ]
    n_level = 4 if quick else LEVEL_REPETITIONS
    planned += [
        Task(NAME, {"data": f"independent {tail}", "method": "sic_test"}, seed)
        for tail in TAILS
        for seed in range(n_level)
    ]
    return planned


def draw(data: str, seed: int) -> Data:
    """A data set by name."""
    if data in RELATIONS:
        return RELATIONS[data](seed)
    if data.startswith("independent "):
        return independent(data.removeprefix("independent "), seed)
    name, kind = data.removesuffix(")").split(" (")
    return hyppo_simulation(name, kind == "noise", seed)


def measure(settings: Settings, seed: int) -> Record:
    """The p-value of a test, and its time by the clock."""
    x, y = draw(settings["data"], seed)
    begin = time.perf_counter()
    pvalue = METHODS[settings["method"]](x, y, seed)
    return {"pvalue": pvalue, "wall": time.perf_counter() - begin}


def rate(records: Sequence[Record], data: str, method: str) -> tuple[float, int]:
    p = [r["pvalue"] for r in records if r["data"] == data and r["method"] == method]
    return float(np.mean(np.array(p) <= LEVEL)), len(p)


def summary(records: Sequence[Record], simulations: Sequence[str]) -> list[list[str]]:
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
    times = [np.median([r["wall"] for r in simulated if r["method"] == m]) for m in METHODS]
    lines.append(["median time, relative to sic_test", *[f"{t / times[0]:.2f}×" for t in times]])
    return lines


def details(records: Sequence[Record], simulations: Sequence[str]) -> list[list[str]]:
    """The power on each simulation."""
    labels = [f"{s} ({kind})" for s in simulations for kind in ("clean", "noise")]
    rows = []
    for label in (*labels, *RELATIONS):
        rates = [rate(records, label, m) for m in METHODS]
        rows.append([f"{label}, {rates[0][1]} data sets", *[f"{v:.2f}" for v, _ in rates]])
    return rows


def levels(records: Sequence[Record]) -> list[str]:
    """The share of rejections under independence, with the band it should lie in."""
    lines = []
    for tail in TAILS:
        share, count = rate(records, f"independent {tail}", "sic_test")
        low, high = (binom.ppf(q, count, LEVEL) / count for q in (0.005, 0.995))
        lines.append(
            f"- independent, {tail} response: rejects {share:.4f} of {count} data sets at "
            f"{LEVEL} (99 % band {low:.4f} to {high:.4f})"
        )
    return lines


def shown(rows: Sequence[Record]) -> list[str]:
    """The simulations that have records."""
    ours = [name.split(" (")[0] for name in dict.fromkeys(row["data"] for row in rows)]
    return [name for name in simulations() if name in ours]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    names = shown(rows)
    lines = [*summary(rows, names), *details(rows, names)]
    return "\n".join(
        [
            "## Independence tests",
            "",
            f"`python -m reproduction independence`: n = {N_ROWS}, {N_PERMUTATIONS} permutations, "
            f"share of p-values ≤ {LEVEL}; hyppo's simulations have p = {N_FEATURES}. "
            f"Version {rows[0]['version']}, one thread.",
            "",
            markdown_table(["data", *METHODS], lines),
            "",
            "Level of `sic_test`:",
            "",
            *levels(rows),
        ]
    )


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The table of another page."""
    table = markdown_table(["power at 0.05", *METHODS], summary(rows, shown(rows)))
    return {("docs/guide.md", "independence"): table}
