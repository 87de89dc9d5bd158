"""The holdout randomization test: null p-values, false discoveries and power.

SinExp and Liang are measured by the experiments of the paper, whose records are shown here. What
they do not have is measured here: further data sets of the default, which null p-values need,
NeuralSIC with its own critic on Liang, and the other designs. In the records of 0.1.0.dev0 the
tests shown here (``own``) come from other fits, of the same seeds, than the rest of the record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reproduction.benchmarks.hrt_designs import DESIGNS, Design
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table
from reproduction.methods import FORWARD, N_TREES, make_model
from reproduction.paper import liang, simulations, sinexp
from reproduction.paper.simulations import LEVELS, STATISTICS, counts_below, null_counts, rates
from sobolev import HRTSelector

NAME, NEEDS = "hrt", ("sinexp", "liang")
DEFAULT = f"{FORWARD}, risk"
N_CALIBRATION, N_POWER = 200, 100
HOLDS, FAILS = "holds", "**fails**"
# The levels at which null p-values are judged.
JUDGED = (0.05, 0.005)
# The designs that the experiments of the paper measure, by study and number of rows.
PAPER = {design.name: design for design in DESIGNS if design.name.startswith(("SinExp", "Liang"))}
# The critic of the paper's experiment on Liang is another one.
OWN = {("Liang, n = 500", "NeuralSIC")}


def split_methods() -> list[str]:
    """The names of the rows of one split, with the statistic."""
    return [label(name, statistic) for name, of in STATISTICS.items() for statistic in of]


def label(method: str, statistic: str) -> str:
    """A method and its statistic as a row of the table."""
    if method == FORWARD:
        return DEFAULT
    squared = method in ("elastic net", "random forest")
    return f"{method}, split, {'loss' if squared else statistic}"


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """The default on all designs; the methods of one split where the paper has figures."""
    default = repetitions or (2 if quick else N_CALIBRATION)
    power = min(default, N_POWER)
    planned = [
        task
        for study in (sinexp, liang)
        for task in study.tasks(False, power)
        if task.settings["method"] in (FORWARD, *STATISTICS)
        and (design_of(study.NAME, task.settings["n"]), task.settings["method"]) not in OWN
    ]
    for design in DESIGNS:
        first = power if design.name in PAPER else 0
        own = [method for name, method in OWN if name == design.name]
        for seed in range(default):
            wanted = ([FORWARD] if seed >= first else []) + (own if seed < power else [])
            planned += [Task(NAME, {"design": design.name, "method": m}, seed) for m in wanted]
    return planned


def measure(settings: Settings, seed: int) -> Record:
    """One method on one data set, as the experiments of the paper measure it."""
    design = next(design for design in DESIGNS if design.name == settings["design"])
    X, y, true = design.draw(seed)
    if settings["method"] == FORWARD:
        selector = HRTSelector(diagnose=False, random_state=seed).fit(X, y)
        return {"own": {"risk": rates(selector.support_, true) | null_counts(selector, true)}}
    train, test = simulations.halves(y.size, seed)
    model = make_model(settings["method"], seed).fit(X[train], y[train])
    own = {}
    for statistic in STATISTICS[settings["method"]]:
        selector = simulations.split_test(model, X, y, (train, test), statistic, None)
        own[statistic] = rates(selector.support_, true)
    return {"own": own}


def design_of(study: str, n: int) -> str:
    """The name of a design of the paper's experiments."""
    return f"{'SinExp' if study == 'sinexp' else 'Liang'}, n = {n}"


def tests(rows: Sequence[Record]) -> list[Record]:
    """One row for each test: design, method with statistic, seed and rates."""
    found = []
    for row in rows:
        own = row["study"] == NAME
        design = row["design"] if own else design_of(row["study"], row["n"])
        if not own and (design, row["method"]) in OWN:
            continue
        for statistic, rates_of in row.get("own", {}).items():
            name = {"design": design, "method": label(row["method"], statistic)}
            found.append(name | {"seed": row["seed"]} | rates_of)
    return found


def calibration_rows(designs: Sequence[Design], records: Sequence[Record]) -> dict[str, list[str]]:
    """Shares of null p-values below levels, with limits and the verdict, by design."""
    rows = {}
    for design in designs:
        found = _of(records, design.name, DEFAULT)
        if not found:
            continue
        below = np.array([[counts_below(r)[level] for level in LEVELS] for r in found], dtype=float)
        counts = np.array([r["n_null"] for r in found], dtype=float)
        share = below.sum(axis=0) / counts.sum()
        # P-values of one data set depend on each other: the error is between data sets.
        noise = below - share * counts[:, None]
        error = np.sqrt(np.sum(noise**2, axis=0)) / counts.sum()
        judged = [LEVELS.index(level) for level in JUDGED]
        limits = [LEVELS[k] + 2.576 * error[k] for k in judged] if len(found) > 1 else [np.nan] * 2
        verdict = HOLDS if np.all(share[judged] <= limits) else FAILS
        cells = [_share(value, level) for value, level in zip(share, LEVELS, strict=True)]
        cells += [_share(value, level) for value, level in zip(limits, JUDGED, strict=True)]
        rows[design.name] = [str(len(found)), f"{int(counts.sum()):,}", *cells, verdict]
    return rows


def _share(value: float, level: float) -> str:
    return f"{value:.4f}" if level < 0.01 else f"{value:.3f}"


def calibration(designs: Sequence[Design], records: Sequence[Record]) -> str:
    """The table of shares of null p-values below levels."""
    rows = [[name, *cells] for name, cells in calibration_rows(designs, records).items()]
    levels = [f"< {level:g}" for level in LEVELS]
    limits = [f"99 % limit at {level:g}" for level in JUDGED]
    return markdown_table(["design", "data sets", "p-values", *levels, *limits, "verdict"], rows)


def verdicts(designs: Sequence[Design], records: Sequence[Record]) -> str:
    """What the calibration says, in a sentence."""
    rows = calibration_rows(designs, records)
    columns = [2 + LEVELS.index(level) for level in JUDGED]
    failing = [
        f"{name} ({' and '.join(cells[k] for k in columns)})"
        for name, cells in rows.items()
        if cells[-1] != HOLDS
    ]
    held = f"hold their level on {len(rows) - len(failing)} of {len(rows)} designs"
    if not failing:
        return f"Null p-values {held}."
    at = " or ".join(f"{level:g}" for level in JUDGED)
    return (
        f"Null p-values {held}; the share below {at} is outside the 99 % limit on "
        f"{', '.join(failing)}."
    )


def power(designs: Sequence[Design], records: Sequence[Record]) -> str:
    """Mean true positive rate and false discovery rate of every method."""
    rows = []
    for method in [DEFAULT, *split_methods()]:
        cells = [_power_cell(_of(records, d.name, method)) for d in designs]
        if any(cell != "–" for cell in cells):
            rows.append([method, *cells])
    return markdown_table(["method", *[d.name for d in designs]], rows)


SCHEMES = (DEFAULT, "ConvexSIC, split, risk", "ConvexSIC, split, witness")


def schemes(designs: Sequence[Design], records: Sequence[Record]) -> str:
    """The ways to test with ConvexSIC, one below the other."""
    rows = [[m, *[_power_cell(_of(records, d.name, m)) for d in designs]] for m in SCHEMES]
    return markdown_table(["method", *[d.name for d in designs]], rows)


def _power_cell(records: Sequence[Record]) -> str:
    records = [r for r in records if r["seed"] < N_POWER]
    if not records:
        return "–"
    tpr, fdp = (np.array([r[name] for r in records]) for name in ("tpr", "fdp"))
    scale = np.sqrt(max(1, tpr.size - 1))
    return (
        f"**{tpr.mean():.3f}** ± {tpr.std() / scale:.3f}, FDR {fdp.mean():.3f} ± "
        f"{fdp.std() / scale:.3f} ({tpr.size})"
    )


def _of(records: Sequence[Record], design: str, method: str) -> list[Record]:
    return [r for r in records if (r["design"], r["method"]) == (design, method)]


def texts(rows: Sequence[Record]) -> tuple[str, str]:
    """The calibration table and the power table, with what they mean."""
    found = tests(rows)
    null = f"""
Null p-values of the default `HRTSelector()`: columns that do not matter given the others, pooled
over data sets. The share below each level should be the level or less. A limit is the level plus
2.576 standard errors between data sets.

{calibration(DESIGNS, found)}
"""
    power_text = f"""
Mean true positive rate ± standard error and mean false discovery rate at `fdr=0.1`, with the number
of seeds. All methods see the same 2n rows: "split" trains on n and tests on n, "forward" trains on
the first 30 % and goes on in five blocks. Elastic net and random forest ({N_TREES} trees) are
tested with their squared error. "forward" is the default with its robust p-values; the tests with a
split have saddlepoint p-values and linear conditional models, the setting of the paper.

{power(list(PAPER.values()), found)}
"""
    return null, power_text


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    null, power_text = texts(rows)
    body = f"## Holdout randomization test\n{power_text}\n### Null p-values\n{null}"
    return f"{body}\nsobolev {rows[0]['version']}; regenerate with `python -m reproduction hrt`."


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The tables of other pages."""
    null, power_text = texts(rows)
    found, designs = tests(rows), list(PAPER.values())
    return {
        ("docs/calibration.md", "calibration"): null,
        ("docs/calibration.md", "power"): power_text,
        ("docs/choosing.md", "hrt-verdicts"): verdicts(DESIGNS, found),
        ("docs/choosing.md", "hrt-schemes"): schemes(designs, found),
    }


def evidence(rows: Sequence[Record]) -> list[str]:
    """The row of the README: the default test beside tests of linear models and of forests."""
    found, design = tests(rows), "SinExp, n = 250"
    methods = (DEFAULT, "random forest, split, loss", "elastic net, split, loss")
    ours, forest, linear = (
        np.mean([r["tpr"] for r in _of(found, design, method) if r["seed"] < N_POWER])
        for method in methods
    )
    return [
        "Does it find nonlinear effects?",
        f"Of six columns among 50 correlated ones, in 500 rows, {100 * ours:.0f} %; with a random "
        f"forest in one split {100 * forest:.0f} %, with an elastic net {100 * linear:.0f} %.",
        "[calibration](docs/calibration.md)",
    ]
