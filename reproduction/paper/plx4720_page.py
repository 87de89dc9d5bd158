"""The page of the PLX4720 experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduction.engine import Record
from reproduction.markdown import markdown_table, mean_and_error
from reproduction.paper.plx4720 import (
    ALL,
    BASELINES,
    CORRELATION,
    FIRST_SPLIT,
    KNOCKOFFS,
    MIN_CORRELATION,
    N_SHORTLIST,
    NAME,
    REGRESSORS,
    ROWS,
    TOPS,
)

TARGET = "BRAF_mut"
OURS = tuple(method for method in TOPS if "SIC" in method)
# The table of the paper (479 cell lines, 7251 features): mean and deviation of the held-out MSE.
PUBLISHED = {
    (ALL, 0): ("1.160 ± 3.990", "0.783 ± 0.167"),
    ("elastic net", 7): ("0.864 ± 0.432", "0.931 ± 0.215"),
    ("elastic net", 10): ("0.663 ± 0.161", "0.830 ± 0.190"),
    ("SIC", 7): ("0.728 ± 0.166", "0.856 ± 0.189"),
    ("SIC", 10): ("0.706 ± 0.158", "0.817 ± 0.173"),
    ("SIC", 15): ("0.734 ± 0.168", "0.859 ± 0.202"),
}


def errors_of(
    records: Sequence[Record], method: str, top: int, rows: str, regressor: str
) -> dict[int, float]:
    """From the seed of a split to the error."""
    return {
        record["seed"]: record["result"]["errors"][str(top)][regressor]
        for record in records
        if record["settings"].get("rows") == rows and record["settings"]["method"] == method
    }


def page(records: Sequence[Record], folder: Path) -> str:
    """Tables, and a picture of the first features."""
    _draw(records, folder / f"{NAME}-top.png")
    tables = "\n".join(
        f"### Features chosen on {words}\n\n{error_table(records, rows)}\n"
        for rows, words in zip(
            ROWS,
            ("the training rows alone", "all rows, as in the paper: the held-out rows leak"),
            strict=True,
        )
    )
    return f"""\
The data are a **substitute** for the matrix of the paper (479 cell lines, 7251 features of CCLE),
which is no longer distributed: features of GDSC joined to the response (Amax) in CCLE. Errors are
not comparable with the published ones digit by digit. Features with an absolute correlation of less
than {MIN_CORRELATION} with the response are screened out first.

{reading(records)}

{gap_table(records)}

Means ± standard errors over the splits that both have, features chosen on the training rows alone.
These splits (seeds from {FIRST_SPLIT[ROWS[0]]}) had no part in any choice: the rule by which
ConvexSIC chooses `tau` where columns are many was found on other splits of the same rows. All
splits share their rows, so the errors do not say how it would be with other cell lines.

![Importances of the first features]({NAME}-top.png)

## Held-out error

Mean squared error on a random tenth of the rows ± its deviation over splits, in units of the
variance of the response: a network (three layers of 100, 100 and 1, dropout 0.3, 1000 updates,
batches of 16) and a random forest (the defaults of scikit-learn). "{CORRELATION}" takes the
features that are most correlated with the response, whatever they repeat of each other.

{tables}
## First features

On all screened rows, with their importances.

{top_table(records)}

## Tests

The test of [HRTSelector](../choosing.md) on all rows, after a screen that looks at the response, so
its numbers are not exact. Knockoffs are made of the {N_SHORTLIST} first features of ConvexSIC on a
third of the rows, and filtered on the others; to select at 10 % they must find at least ten.

{tests_table(records)}
"""


def error_table(records: Sequence[Record], rows: str) -> str:
    """Errors of both regressors for every set of features, beside the published ones."""
    lines = []
    for method, tops in (BASELINES | TOPS).items():
        for top in tops:
            cells = []
            for regressor in REGRESSORS:
                found = list(errors_of(records, method, top, rows, regressor).values())
                cells.append(_with_deviation(found))
            count = len(errors_of(records, method, top, rows, REGRESSORS[0]))
            theirs = "SIC" if "SIC" in method else method
            published = PUBLISHED.get((theirs, top), ("–", "–"))
            if count:
                name = f"{method} top-{top}" if top else method
                lines.append([name, *cells, *published, str(count)])
    header = ["features", "network", "random forest", "published NN", "published RF", "splits"]
    return markdown_table(header, lines)


def _with_deviation(found: Sequence[float]) -> str:
    if not found:
        return "–"
    deviation = f" ± {np.std(found, ddof=1):.3f}" if len(found) > 1 else ""
    return f"{np.mean(found):.3f}{deviation}"


def _tops(records: Sequence[Record]) -> dict[str, list[tuple[str, float]]]:
    """The ten most important features of each method, with their importances."""
    found = {
        r["settings"]["method"]: r["result"]["top"][:10]
        for r in records
        if r["settings"]["part"] == "found"
    }
    return {method: found[method] for method in TOPS if method in found}


def top_table(records: Sequence[Record]) -> str:
    """The ten most important features of each method."""
    tops = _tops(records)
    if not tops:
        return "Not run yet."
    lines = [
        [
            str(k + 1),
            *(f"`{top[k][0]}` {top[k][1]:.4f}" if k < len(top) else "" for top in tops.values()),
        ]
        for k in range(10)
    ]
    return markdown_table(["", *tops], lines)


def tests_table(records: Sequence[Record]) -> str:
    """P-values of the holdout randomization test, and q-values of both ways."""
    of = {
        r["settings"]["method"]: r["result"] for r in records if r["settings"]["part"] == "tested"
    }
    if not of:
        return "Not run yet."
    hrt = {name: (p, q) for name, p, q in of.get("HRT", {}).get("features", ())}
    knockoffs = {name: q for name, _, q in of.get(KNOCKOFFS, {}).get("features", ())}
    names = list(dict.fromkeys([*list(hrt)[:15], *list(knockoffs)[:5]]))
    lines = [
        [
            f"`{name}`",
            *(f"{value:.2g}" for value in hrt.get(name, (np.nan, np.nan))),
            f"{knockoffs.get(name, np.nan):.2g}",
        ]
        for name in names
    ]
    header = ["feature", "HRT p-value", "HRT q-value", "knockoff q-value"]
    said = "; ".join(
        f"{method}: {', '.join(f'`{name}`' for name in found['selected']) or 'nothing'}"
        for method, found in of.items()
    )
    table = markdown_table(header, lines).replace("nan", "–")
    return f"{table}\n\nSelected at a false discovery rate of 10 %, {said}."


def gaps_between(
    records: Sequence[Record], method: str, other: str = "elastic net"
) -> dict[str, tuple[float, float]]:
    """The error of ten features less that of another method's on the same splits.

    Mean and standard error for each regressor, if there are such splits.
    """
    found = {}
    for regressor in REGRESSORS:
        ours = errors_of(records, method, 10, ROWS[0], regressor)
        theirs = errors_of(records, other, 10, ROWS[0], regressor)
        gaps = [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]
        if gaps:
            found[regressor] = mean_and_error(gaps)
    return found


def signed(gap: tuple[float, float]) -> str:
    """A gap and its standard error."""
    mean, error = gap
    return f"{mean:+.3f}" if np.isnan(error) else f"{mean:+.3f} ± {error:.3f}"


def verdict(records: Sequence[Record]) -> str:
    """Which forms of SIC choose ten features of smaller error than elastic net's, by both."""
    reached = []
    for method in OURS:
        gaps = gaps_between(records, method).values()
        if gaps and all(mean < 0 for mean, _ in gaps):
            clear = all(mean + 2 * error < 0 for mean, error in gaps)
            reached.append(method if clear else f"{method} (within two standard errors)")
    return f"reached by {' and '.join(reached)}" if reached else "not reached"


def gap_table(records: Sequence[Record]) -> str:
    """The gaps of all methods."""
    lines = [
        [method, *(signed(gaps[name]) if name in gaps else "–" for name in REGRESSORS)]
        for method in (*OURS, CORRELATION)
        if (gaps := gaps_between(records, method))
    ]
    header = ["error of ten features less that of elastic net's ten", "network", "random forest"]
    return markdown_table(header, lines) if lines else ""


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The errors of ten features less those of elastic net, in one line."""
    found = "; ".join(
        f"{method} {' and '.join(f'{signed(gap)} ({name})' for name, gap in gaps.items())}"
        for method in OURS
        if (gaps := gaps_between(records, method))
    )
    ours, theirs = (
        " / ".join(cell.split()[0] for cell in PUBLISHED[key, 10]) for key in ("SIC", "elastic net")
    )
    return (
        f"error of ten features less that of elastic net's ten: {found}" if found else "–",
        f"published errors: SIC {ours}, elastic net {theirs} (network / forest)",
        f"negative with both: {verdict(records) if found else '–'}",
    )


def reading(records: Sequence[Record]) -> str:
    """What the numbers say, in words."""
    said = []
    if any(gaps_between(records, method) for method in OURS):
        said.append(
            "The goal, ten features of SIC that predict better than those of elastic net with both "
            f"regressors, is {verdict(records)}; the published figures do not reach it with the "
            "network."
        )
    gaps = gaps_between(records, "ConvexSIC", CORRELATION)
    if gaps:
        said.append(
            "The error of ConvexSIC's ten features less that of the ten of largest correlation is "
            f"{' and '.join(f'{signed(gap)} ({name})' for name, gap in gaps.items())}. Features "
            "that repeat each other predict well, probably because they average out noise; elastic "
            "net and NeuralSIC look for what each adds to the others."
        )
    firsts = {method: _share_first(records, method) for method in OURS}
    shares = [f"{share:.0%} ({method})" for method, share in firsts.items() if share is not None]
    if shares:
        said.append(
            f"The mutation of the drug's target, `{TARGET}`, is ranked first in "
            f"{', '.join(shares)} of the splits."
        )
    leaking = errors_of(records, "ConvexSIC", 10, ROWS[1], "network")
    clean = errors_of(records, "ConvexSIC", 10, ROWS[0], "network")
    if leaking and clean:
        said.append(
            f"Choosing the features on all rows would have shown {_mean(leaking):.3f} instead of "
            f"{_mean(clean):.3f} for ConvexSIC top-10 and the network (other splits)."
        )
    return " ".join(said)


def _share_first(records: Sequence[Record], method: str) -> float | None:
    """How often a method ranks the target first, features chosen on the training rows."""
    first = [
        record["result"]["first"] == TARGET
        for record in records
        if record["settings"].get("rows") == ROWS[0] and record["settings"]["method"] == method
    ]
    return float(np.mean(first)) if first else None


def _mean(errors: dict[int, float]) -> float:
    return float(np.mean(list(errors.values())))


def _draw(records: Sequence[Record], path: Path) -> None:
    """The importances of the first features of each method."""
    import matplotlib

    tops = _tops(records)
    if not tops:
        return
    with matplotlib.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        from sobolev.plotting import OTHER, SELECTED

        n_rows = -(-len(tops) // 2)
        figure, axes = plt.subplots(
            n_rows, 2, figsize=(8, 3.1 * n_rows), layout="constrained", squeeze=False
        )
        for ax in axes.flat[len(tops) :]:
            ax.remove()
        for ax, (method, top) in zip(axes.flat, tops.items(), strict=False):
            names, shares = [name for name, _ in top][::-1], [share for _, share in top][::-1]
            colors = [SELECTED if name == TARGET else OTHER for name in names]
            ax.barh(range(len(names)), shares, color=colors)
            ax.set_yticks(range(len(names)), names, fontsize=8)
            ax.set_title(method, fontsize=11)
            ax.set_xlabel("importance" if method != "elastic net" else "absolute weight")
            ax.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=110)
        plt.close(figure)
