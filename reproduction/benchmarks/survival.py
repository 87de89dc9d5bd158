"""Survival times: selection beside a Cox lasso with knockoffs, and the level under censoring.

Simulated: 40 columns of an AR(1), 8 of which act on a Weibull hazard, linearly or not; or none.
Real: tables of scikit-survival, for which it is shown what each method selects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binom
from sklearn.linear_model import LassoCV
from sklearn.model_selection import StratifiedKFold

from reproduction.benchmarks.knockoff_designs import chain
from reproduction.engine import Record, Settings, Task
from reproduction.markdown import markdown_table, mean_cell
from reproduction.paper.simulations import rates
from sobolev import HRTSelector, KnockoffSelector
from sobolev.inference.knockoff_filter import knockoff_threshold
from sobolev.knockoffs import GaussianKnockoffs

NAME = "survival"
FIRST_SEED, N_SEEDS, N_REAL_SEEDS = 7000, 60, 5
# Seeds of the methods are others than those of the data: knockoffs must not repeat their noise.
METHOD_SEED = 10**6
N_ROWS, N_COLUMNS, N_ACTIVE, CORRELATION, SHAPE = 400, 40, 8, 0.5, 1.5
# Eight columns matter, and knockoff+ selects at least 1 / fdr columns or none.
FDR, LEVEL = 0.2, 0.05
CENSORED = (0.3, 0.7)
HAZARDS = ("linear", "nonlinear")
NULLS = ("no effect", "no effect, censoring depends on a column")
REAL = {"gbsg2": "load_gbsg2", "whas500": "load_whas500"}
TESTS = ("HRT, default", "HRT, lasso of the scores")
PEER = "Cox lasso, knockoffs"
Survival = tuple[np.ndarray, np.ndarray]


def log_hazard(hazard: str, Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The logarithm of the hazard ratio: lines, or waves, squares and products."""
    if hazard == "linear":
        return Z @ rng.choice([-0.5, 0.5], N_ACTIVE)
    waves = np.sin(2 * Z[:, :2]).sum(axis=1)
    squares = (Z[:, 2:4] ** 2 - 1).sum(axis=1) / np.sqrt(2)
    return waves + squares + Z[:, 4] * Z[:, 5] + Z[:, 6] * Z[:, 7]


def outcomes(time: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """Survival times as scikit-survival takes them."""
    y = np.empty(len(time), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = happened, time
    return y


def draw(hazard: str, censored: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, survival times with the given share of censored rows, and the active columns.

    A column that only censoring depends on is active: time and event depend on it.
    """
    rng = np.random.default_rng(seed)
    X = chain(rng, N_ROWS, N_COLUMNS, CORRELATION)
    active = rng.choice(N_COLUMNS, N_ACTIVE, replace=False)
    cut = rng.exponential(size=N_ROWS)
    if hazard in HAZARDS:
        eta = log_hazard(hazard, X[:, active], rng)
    else:
        eta = np.zeros(N_ROWS)
        active = active[:1] if hazard == NULLS[1] else active[:0]
        cut = cut * np.exp(X[:, active].sum(axis=1))
    time = (rng.exponential(size=N_ROWS) * np.exp(-eta)) ** (1 / SHAPE)
    cut = cut * np.quantile(time / cut, 1 - censored)
    support = np.isin(np.arange(N_COLUMNS), active)
    return X, outcomes(np.minimum(time, cut), time <= cut), support


def load(table: str) -> tuple[pd.DataFrame, np.ndarray]:
    """A real table; categories, which have two values or an order, as numbers."""
    from sksurv import datasets

    X, y = getattr(datasets, REAL[table])()
    codes = {n: X[n].cat.codes for n in X if isinstance(X[n].dtype, pd.CategoricalDtype)}
    event, time = y.dtype.names
    return X.assign(**codes).astype(float), outcomes(y[time], y[event])


# -- the Cox lasso ---------------------------------------------------------------------------------


def log_likelihood(eta: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Breslow's partial likelihood of each column of linear predictors."""
    order = np.argsort(-y["time"], kind="stable")
    eta, time = eta[order], -y["time"][order]
    at_risk = np.logaddexp.accumulate(eta, axis=0)[np.searchsorted(time, time, side="right") - 1]
    found: np.ndarray = (eta - at_risk)[y["event"][order]].sum(axis=0)
    return found


def cox_lasso(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Coefficients of the Cox lasso, with the penalty of the largest cross-validated likelihood."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    path = CoxnetSurvivalAnalysis(l1_ratio=1.0, n_alphas=50, alpha_min_ratio=0.01).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    total = np.zeros(len(path.alphas_))
    for rows, _ in folds.split(X, y["event"]):
        fold = CoxnetSurvivalAnalysis(l1_ratio=1.0, alphas=path.alphas_).fit(X[rows], y[rows])
        # Verweij and van Houwelingen: the likelihood of all rows less that of the training rows.
        total += log_likelihood(X @ fold.coef_, y) - log_likelihood(X[rows] @ fold.coef_, y[rows])
    coefficients: np.ndarray = path.coef_[:, total.argmax()]
    return coefficients


def cox_knockoffs(X: np.ndarray, y: np.ndarray, seed: int) -> Survival:
    """Gaussian knockoffs, differences of absolute coefficients, knockoff+."""
    X_knockoff = GaussianKnockoffs().fit(X).sample(seed)
    design = np.hstack([X, X_knockoff])
    importances = np.abs(cox_lasso((design - design.mean(axis=0)) / design.std(axis=0), y, seed))
    W = importances[: X.shape[1]] - importances[X.shape[1] :]
    return knockoff_threshold(W, FDR, 1) <= W, np.full(W.size, np.nan)


def randomized(X: np.ndarray, y: np.ndarray, seed: int, estimator: object = None) -> Survival:
    hrt = HRTSelector(estimator, fdr=FDR, diagnose=False, random_state=seed).fit(X, y)
    return hrt.support_, hrt.pvalues_


def filtered(X: np.ndarray, y: np.ndarray, seed: int, estimator: object = None) -> Survival:
    knockoffs = KnockoffSelector(estimator, fdr=FDR, diagnose=False, random_state=seed).fit(X, y)
    return knockoffs.support_, np.full(X.shape[1], np.nan)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], Survival]] = {
    TESTS[0]: randomized,
    TESTS[1]: lambda X, y, seed: randomized(X, y, seed, LassoCV()),
    "knockoffs, default": filtered,
    "knockoffs, lasso of the scores": lambda X, y, seed: filtered(X, y, seed, LassoCV()),
    PEER: cox_knockoffs,
}


def tasks(quick: bool, repetitions: int | None = None) -> list[Task]:
    """All methods on a data set before the next; where nothing matters, those with p-values."""
    count = repetitions or (1 if quick else N_SEEDS)
    shares = CENSORED[:1] if quick else CENSORED
    plan: list[tuple[Settings, Sequence[str], int]] = [
        ({"data": hazard, "censored": share}, list(METHODS), count)
        for hazard in HAZARDS
        for share in shares
    ]
    plan += [
        ({"data": null, "censored": share}, TESTS, count) for null in NULLS for share in shares
    ]
    plan += [({"data": name}, list(METHODS), min(count, N_REAL_SEEDS)) for name in REAL]
    return [
        Task(NAME, settings | {"method": method}, FIRST_SEED + k)
        for settings, methods, n_seeds in plan
        for k in range(n_seeds)
        for method in methods
    ]


def measure(settings: Settings, seed: int) -> Record:
    """What a method selects; of p-values, how many of the null columns are small."""
    select, own = METHODS[settings["method"]], METHOD_SEED + seed
    try:
        if settings["data"] in REAL:
            table, y = load(settings["data"])
            support, _ = select(table.to_numpy(), y, own)
            names = [str(name) for name in table.columns[support]]
            shape = [*table.shape, int((~y["event"]).sum())]
            return {"selected": names, "shape": shape}
        X, y, true = draw(settings["data"], settings["censored"], seed)
        found, pvalues = select(X, y, own)
    except ImportError as error:
        return {"missing": f"not installed (`pip install scikit-survival`): {error}"}
    null = pvalues[~true & np.isfinite(pvalues)]
    counts = {"tested": int(null.size), "small": int((null <= LEVEL).sum())}
    if settings["data"] in NULLS:
        return counts
    return rates(found, true) | counts


def power_table(rows: Sequence[Record]) -> list[list[str]]:
    """Power and false discovery rate on each hazard."""
    lines = []
    for hazard in HAZARDS:
        for share in CENSORED:
            for method in METHODS:
                of = [r for r in rows if (r["data"], r.get("censored")) == (hazard, share)]
                of = [r for r in of if r["method"] == method]
                if of:
                    cells = [mean_cell([r[name] for r in of]) for name in ("tpr", "fdp")]
                    seconds = f"{np.median([r['seconds'] for r in of]):.1f}"
                    name = f"{hazard}, {100 * share:.0f} % censored"
                    lines.append([name, method, *cells, str(len(of)), seconds])
    return lines


def level_table(rows: Sequence[Record]) -> list[list[str]]:
    """Shares of small p-values of null columns, beside the band of independent p-values."""
    lines = []
    for data in (*NULLS, *HAZARDS):
        for share in CENSORED:
            for method in TESTS:
                of = [r for r in rows if (r["data"], r.get("censored")) == (data, share)]
                of = [r for r in of if r["method"] == method]
                count = sum(r["tested"] for r in of)
                if not count:
                    continue
                found = sum(r["small"] for r in of) / count
                low, high = (binom.ppf(q, count, LEVEL) / count for q in (0.005, 0.995))
                lines.append(
                    [
                        f"{data}, {100 * share:.0f} % censored",
                        method,
                        f"{found:.4f}",
                        f"{low:.4f} to {high:.4f}",
                        "holds" if found <= high else "**fails**",
                        str(count),
                    ]
                )
    return lines


def real_table(rows: Sequence[Record]) -> list[list[str]]:
    """The columns that each method selects, with the number of seeds if not all."""
    lines = []
    for data in REAL:
        for method in METHODS:
            of = [r for r in rows if (r["data"], r["method"]) == (data, method)]
            if not of:
                continue
            counts = Counter(name for r in of for name in r["selected"])
            cells = [
                name if count == len(of) else f"{name} ({count} of {len(of)})"
                for name, count in counts.most_common()
            ]
            n, d, censored = of[0]["shape"]
            label = f"{data}, {n} × {d}, {100 * censored / n:.0f} % censored"
            lines.append([label, method, ", ".join(cells) or "nothing"])
    return lines


POWER = ["hazard", "method", "power", "FDR", "seeds", "CPU s"]
REAL_HEADER = ["table", "method", "selected"]


def render(rows: Sequence[Record]) -> str:
    """The section of RESULTS.md."""
    rows = [row for row in rows if "missing" not in row]
    power = markdown_table(POWER, power_table(rows))
    header = ["data", "method", f"share of p ≤ {LEVEL}", "99 % band", "verdict", "p-values"]
    level = markdown_table(header, level_table(rows))
    real = markdown_table(REAL_HEADER, real_table(rows), numbers=False)
    return f"""
## Survival times

`python -m reproduction survival`: {N_ROWS} rows, {N_COLUMNS} columns of an AR(1) with correlation
{CORRELATION:g}, a Weibull hazard that {N_ACTIVE} columns act on, independent exponential censoring;
`fdr={FDR}`, seeds from {FIRST_SEED}, means with standard errors. "HRT, default" is
`HRTSelector(response="survival")`, "knockoffs, default" `KnockoffSelector(response="survival")`;
"lasso of the scores" stands for `LassoCV` as the estimator. "{PEER}" is scikit-survival's
Cox lasso of columns and Gaussian knockoffs, with the penalty of the largest cross-validated partial
likelihood, differences of absolute coefficients, and knockoff+. Version {rows[0]["version"]}, one
thread.

{power}

P-values of columns that neither time nor event depend on given the others; valid ones are at most
{LEVEL} in {100 * LEVEL:g} % of the cases or fewer. The band is that of independent p-values.

{level}

Real tables, {N_REAL_SEEDS} seeds, which also draw the knockoffs and the splits of the rows:

{real}
"""


def quoted(rows: Sequence[Record]) -> dict[tuple[str, str], str]:
    """The tables of the comparison page."""
    rows = [row for row in rows if "missing" not in row]
    power = markdown_table(POWER, power_table(rows))
    real = markdown_table(REAL_HEADER, real_table(rows), numbers=False)
    return {("docs/comparison.md", "survival"): f"{power}\n\n{real}"}
