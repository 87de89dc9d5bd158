"""Power, level and time of ``sic_test`` beside tests of hyppo and dcor, on the same data.

Power: share of data sets with a p-value of at most 0.05. Simulations: hyppo's 20 at n = 100, p = 3,
with and without noise; XOR and the circle at n = 100. Level: the share of rejections under
independence, Gaussian and heavy-tailed responses; a test that exceeds it cannot win.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable, Sequence

import numpy as np
from scipy.stats import binom

from reproduction.benchmarks.paired import (
    FIRST_SEED,
    LEAST,
    MANY,
    Difference,
    difference,
    published,
)
from reproduction.benchmarks.selection_peers import global_seed
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from sobolev import sic_test
from sobolev.datasets import make_xor

NAME = "independence"
N_ROWS, N_FEATURES, N_PERMUTATIONS, LEVEL = 100, 3, 200, 0.05
LEVEL_REPETITIONS = 400
REFERENCE = "sic_test"
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
        from hyppo.independence import MGC, Dcorr, Hsic

        options = {"reps": N_PERMUTATIONS, "workers": 1, "random_state": seed}
        if test == "MGC":
            return float(MGC().test(x, y, **options)[1])
        test_class = {"Dcorr": Dcorr, "Hsic": Hsic}[test]
        return float(test_class().test(x, y, auto=False, **options)[1])

    return pvalue


def dcor_pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    from dcor.independence import distance_covariance_test

    found = distance_covariance_test(x, y, num_resamples=N_PERMUTATIONS, random_state=seed)
    return float(found.pvalue)


def dcor_t_pvalue(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    from dcor.independence import distance_correlation_t_test

    return float(distance_correlation_t_test(x, y).pvalue)


METHODS = {
    REFERENCE: sobolev_pvalue,
    "Dcorr": hyppo_pvalue("Dcorr"),
    "Hsic": hyppo_pvalue("Hsic"),
    "MGC": hyppo_pvalue("MGC"),
    "dcor": dcor_pvalue,
    "dcor, t-test": dcor_t_pvalue,
}
# A test of MGC takes seconds, one of the others milliseconds.
SEEDS = dict.fromkeys(METHODS, MANY) | {"MGC": LEAST}
LEVEL_SEEDS = dict.fromkeys(METHODS, LEVEL_REPETITIONS) | {"MGC": 100}


def absent(method: str) -> str:
    """Why a test cannot run here, or nothing."""
    package = "dcor" if method.startswith("dcor") else ""
    if package and importlib.util.find_spec(package) is None:
        return f"{package} is not installed"
    return ""


def simulations() -> list[str]:
    """The names of hyppo's simulations."""
    from hyppo.tools import SIMULATIONS

    return list(SIMULATIONS)


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """Every test on one data set of each kind before the next; what is absent is tried once."""
    names = QUICK if quick else simulations()
    kinds = [f"{name} ({kind})" for name in names for kind in ("noise", "clean")]
    null = [f"independent {tail}" for tail in TAILS]
    counts = {}
    for data in (*kinds, *RELATIONS, *null):
        for method in METHODS:
            planned = LEVEL_SEEDS[method] if data in null else SEEDS[method]
            few = repetitions or (2 if quick else planned)
            counts[data, method] = 1 if absent(method) else few
    return [
        Task(NAME, {"data": data, "method": method}, FIRST_SEED + k)
        for k in range(max(counts.values()))
        for (data, method), count in counts.items()
        if k < count
    ]


def draw(data: str, seed: int) -> Data:
    """A data set by name."""
    if data in RELATIONS:
        return RELATIONS[data](seed)
    if data.startswith("independent "):
        return independent(data.removeprefix("independent "), seed)
    name, kind = data.removesuffix(")").split(" (")
    return hyppo_simulation(name, kind == "noise", seed)


def measure(settings: Settings, seed: int) -> Record:
    """The p-value of a test, and its CPU time."""
    if reason := absent(settings["method"]):
        return {"missing": reason}
    x, y = draw(settings["data"], seed)
    begin = time.process_time()
    pvalue = METHODS[settings["method"]](x, y, seed)
    return {"pvalue": pvalue, "seconds": time.process_time() - begin}


# -- the report ----------------------------------------------------------------------------------


def rejections(records: Sequence[Record], data: str, method: str) -> dict[int, float]:
    """Whether each data set is rejected, by seed."""
    return {
        r["seed"]: float(r["pvalue"] <= LEVEL)
        for r in records
        if r["data"] == data and r["method"] == method
    }


def rate(records: Sequence[Record], data: str, method: str) -> tuple[float, int]:
    found = list(rejections(records, data, method).values())
    return (float(np.mean(found)), len(found)) if found else (float("nan"), 0)


def measured(rows: Sequence[Record]) -> list[Record]:
    """The tests with a p-value, on the seeds of publication."""
    return published([row for row in rows if "pvalue" in row], REFERENCE)


def keeps_level(records: Sequence[Record], method: str) -> bool:
    """Whether the share of rejections under independence is within the 99 % limit."""
    for tail in TAILS:
        share, count = rate(records, f"independent {tail}", method)
        if count and share > binom.ppf(0.995, count, LEVEL) / count:
            return False
    return True


def compared(records: Sequence[Record], data: str) -> tuple[str, Difference] | None:
    """The most powerful peer that keeps its level, and how far ours is ahead of it."""
    powers = {
        method: rate(records, data, method)[0]
        for method in METHODS
        if method != REFERENCE and rejections(records, data, method)
    }
    able = [method for method in powers if keeps_level(records, method)]
    if not able:
        return None
    peer = max(able, key=lambda method: powers[method])
    gap = difference(rejections(records, data, REFERENCE), rejections(records, data, peer))
    return None if gap is None else (peer, gap)


def summary(records: Sequence[Record], simulations: Sequence[str]) -> list[list[str]]:
    """Mean power over the dependent simulations, and the time of a test."""
    dependent = [s for s in simulations if s != "multimodal_independence"]
    lines = []
    for kind in ("clean", "noise"):
        cells = []
        for method in METHODS:
            rates = [rate(records, f"{s} ({kind})", method) for s in dependent]
            share = np.array([v for v, _ in rates])
            error = np.sqrt(np.sum(share * (1 - share) / max(1, rates[0][1]))) / len(rates)
            cells.append("–" if np.isnan(error) else f"**{share.mean():.3f}** ± {error:.3f}")
        lines.append([f"mean of {len(dependent)} dependent ({kind})", *cells])
    lines.append(["median CPU time, relative to sic_test", *_times(records)])
    return lines


def _times(records: Sequence[Record]) -> list[str]:
    simulated = [r for r in records if not r["data"].startswith("independent")]
    times = {
        method: [r["seconds"] for r in simulated if r["method"] == method and r["seconds"]]
        for method in METHODS
    }
    base = np.median(times[REFERENCE]) if times[REFERENCE] else np.nan
    return [f"{np.median(of) / base:.2f}×" if of and base > 0 else "–" for of in times.values()]


def details(records: Sequence[Record], simulations: Sequence[str]) -> list[list[str]]:
    """The power on each simulation, and ours less that of the best peer."""
    labels = [f"{s} ({kind})" for s in simulations for kind in ("clean", "noise")]
    rows = []
    for label in (*labels, *RELATIONS):
        rates = [rate(records, label, m) for m in METHODS]
        if not any(count for _, count in rates):
            continue
        found = compared(records, label)
        gap = "–" if found is None else f"{found[1]} to {found[0]}"
        if found is not None and found[1].side == "behind":
            gap = f"**{gap}**"
        cells = [f"{v:.2f}" if count else "–" for v, count in rates]
        rows.append([f"{label}, {rates[0][1]} data sets", *cells, gap])
    return rows


def levels(records: Sequence[Record]) -> str:
    """The share of rejections under independence, with the limit that it should not exceed."""
    lines = []
    for method in METHODS:
        cells = []
        for tail in TAILS:
            share, count = rate(records, f"independent {tail}", method)
            limit = binom.ppf(0.995, count, LEVEL) / count if count else np.nan
            cells.append(f"{share:.4f} of {count} (limit {limit:.4f})" if count else "–")
        verdict = "holds" if keeps_level(records, method) else "**fails**"
        lines.append([method, *cells, verdict])
    return markdown_table(["test", *[f"{tail} response" for tail in TAILS], "level"], lines)


def verdict_text(records: Sequence[Record], simulations: Sequence[str]) -> str:
    """How often ours is ahead of, level with and behind the best peer, and where it is behind."""
    labels = [f"{s} ({kind})" for s in simulations for kind in ("clean", "noise")]
    sides: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for label in (*labels, *RELATIONS):
        if not label.startswith("multimodal_independence") and (found := compared(records, label)):
            peer, gap = found
            sides[gap.side].append(f"{label} ({peer}, {gap})")
    counts = ", ".join(f"{side} on {len(of)}" for side, of in sides.items())
    text = (
        f"Against the best of the peers that keep the level, chosen after the fact, `{REFERENCE}` "
        f"is {counts} of {sum(map(len, sides.values()))} kinds of dependence."
    )
    return f"{text} Behind: {'; '.join(sides['behind'])}." if sides["behind"] else text


def shown(rows: Sequence[Record]) -> list[str]:
    """The simulations that have records."""
    ours = [name.split(" (")[0] for name in dict.fromkeys(row["data"] for row in rows)]
    return [name for name in simulations() if name in ours]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    found = measured(rows)
    names, first = shown(found), min(row["seed"] for row in found)
    lines = [[*line, "–"] for line in summary(found, names)] + details(found, names)
    missing = sorted({f"{r['method']}: {r['missing']}" for r in rows if "missing" in r})
    return "\n\n".join(
        [
            "## Independence tests",
            f"`python -m reproduction independence`: n = {N_ROWS}, {N_PERMUTATIONS} permutations "
            f"(the t-test has none), share of p-values ≤ {LEVEL}, seeds from {first}; hyppo's "
            f"simulations have p = {N_FEATURES}. Dcorr, Hsic and MGC are hyppo's, the others "
            "dcor's. The last column is the difference in power to the best peer that keeps its "
            "level, paired by data set ± its standard error (data sets), bold where the peer is "
            f"ahead by more than two. Version {rows[0]['version']}, one thread.",
            verdict_text(found, names),
            markdown_table(["data", *METHODS, "sic_test less the best peer"], lines),
            "Level under independence:",
            levels(found),
            *[f"- {line}." for line in missing],
        ]
    )


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The tables of other pages."""
    found = measured(rows)
    names = shown(found)
    table = markdown_table(["power at 0.05", *METHODS], summary(found, names))
    return {
        ("docs/guide.md", NAME): table,
        ("docs/comparison.md", NAME): f"{table}\n\n{verdict_text(found, names)}",
    }
