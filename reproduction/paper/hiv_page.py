"""The page of the HIV experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduction.engine import Record
from reproduction.markdown import exceeding, markdown_table, mean_and_error, mean_cell
from reproduction.paper.hiv import FDR, N_DRAWS, NAME, OTHERS, PUBLISHED

GOAL = (210, 55)
# The setting that is drawn and judged: several draws promise the same with either offset.
MAIN = "ebh0"
COLUMNS = {
    "ebh0": f"{N_DRAWS} draws, e-BH, offset 0",
    "ebh1": f"{N_DRAWS} draws, e-BH, offset 1",
    "draw1": "one draw, offset 1",
    "draw0": "one draw, offset 0",
    "hrt": "HRT",
}


def counts(records: Sequence[Record], drug: str, column: str) -> np.ndarray:
    """True and false positions of one drug, (n_seeds, 2)."""
    found = [
        record["result"][column]
        for record in records
        if record["settings"]["drug"] == drug and column in record["result"]
    ]
    return np.array(found, dtype=float).reshape(-1, 2)


def totals(records: Sequence[Record], column: str) -> np.ndarray:
    """True and false positions over the paper's drugs, (n_seeds, 2), of seeds with all of them."""
    by_seed: dict[int, dict[str, list[int]]] = {}
    for record in records:
        if column in record["result"] and record["settings"]["drug"] in PUBLISHED:
            of = by_seed.setdefault(record["seed"], {})
            of[record["settings"]["drug"]] = record["result"][column]
    full = [
        np.sum(list(of.values()), axis=0) for of in by_seed.values() if len(of) == len(PUBLISHED)
    ]
    return np.array(full, dtype=float).reshape(-1, 2)


def page(records: Sequence[Record], folder: Path) -> str:
    """The paper's table with our columns, totals, and a picture of them."""
    _draw(records, folder / f"{NAME}-positions.png")
    found = {len(counts(records, drug, column)) for drug in PUBLISHED for column in COLUMNS} - {0}
    ends = sorted({min(found, default=0), max(found, default=0)})
    seeds = f"{' to '.join(map(str, ends))} seed{'' if ends == [1] else 's'}"
    return f"""\
Positions of the virus that matter for resistance to a drug, found at a false discovery rate of
20 %: true (on the list of treatment-selected mutations of the drug's class) / others. Positions are
groups of columns, in knockoffs and in tests, so that what is controlled is what is counted.
Knockoffs are Gaussian with `ConvexSIC(feature_map=LandmarkMap(200),
solver=Alternating(rounds=1), lam="relaxed", cv=3)` for every drug. With several draws either offset keeps the promise (see [the theory](../theory.md));
offset 0 became the main setting after the counts of both had been seen, so both are shown. The
holdout randomization test is the default one, with the categorical distribution of each position
given all others. The list is not the whole truth: positions beside it may matter.

{reading(records)}

![True and other positions of each drug]({NAME}-positions.png)

{drug_table(records)}

Means over {seeds}. Published: knockoffs with a generalised linear model and with Boosted SIC, the
table of the paper, which has {len(PUBLISHED)} drugs; {", ".join(OTHERS)} is not among them and not
in the totals.

## Where the truth is known

The columns of {", ".join(simulated_drugs(records)) or "no drug yet"} with a simulated response:
linear, with normal noise, in twenty random positions. The false discovery rate is to be at most
{FDR:.0%}.

{simulated_table(records)}

{simulated_excesses(records)}
"""


def simulated_drugs(records: Sequence[Record]) -> list[str]:
    """The drugs whose columns have a simulated response."""
    found = [r["settings"]["drug"] for r in records if "simulated" in r["result"]]
    return list(dict.fromkeys(found))


def simulated_rates(records: Sequence[Record], column: str) -> tuple[np.ndarray, np.ndarray]:
    """The false discovery proportion and the share of true positions found, of each data set."""
    found = [
        (*record["result"]["simulated"][column], record["result"]["n_true"])
        for record in records
        if column in record["result"].get("simulated", ())
    ]
    true, false, n_true = np.array(found, dtype=float).reshape(-1, 3).T
    return false / np.maximum(1, true + false), true / n_true


def simulated_table(records: Sequence[Record]) -> str:
    """Rates of every setting where the truth is known."""
    lines = []
    for column, words in COLUMNS.items():
        fdp, power = simulated_rates(records, column)
        if fdp.size:
            lines.append([words, mean_cell(fdp), mean_cell(power), str(fdp.size)])
    header = ["setting", "FDR (mean FDP)", "true positions found", "data sets"]
    return markdown_table(header, lines) if lines else "Not run yet."


def simulated_excesses(records: Sequence[Record]) -> str:
    """Which settings do not keep the level where the truth is known."""
    rates = {words: simulated_rates(records, column)[0] for column, words in COLUMNS.items()}
    said = exceeding(rates, FDR)
    if said and COLUMNS["draw0"] in said:
        said += " Knockoffs with offset 0 promise that for several draws alone."
    return said


def drug_table(records: Sequence[Record]) -> str:
    """Our columns and the published ones, drug by drug."""
    lines = []
    for drug in (*PUBLISHED, *OTHERS):
        cells = [_mean_counts(counts(records, drug, column)) for column in COLUMNS]
        if all(cell == "–" for cell in cells):
            continue
        published = PUBLISHED.get(drug)
        theirs = [f"{t} / {f}" for t, f in published] if published else ["–", "–"]
        lines.append([drug, *cells, *theirs])
    sums = [_mean_counts(totals(records, column)) for column in COLUMNS]
    theirs = ["{} / {}".format(*published_total(k)) for k in (0, 1)]
    lines.append(["**total**", *(f"**{cell}**" for cell in sums), *(f"**{c}**" for c in theirs)])
    errors = [_error(totals(records, column)) for column in COLUMNS]
    lines.append(["± standard error", *errors, "–", "–"])
    shares = [_share(totals(records, column)) for column in COLUMNS]
    theirs = [_share(np.array([published_total(k)], dtype=float)) for k in (0, 1)]
    lines.append(["share of others", *shares, *theirs])
    return markdown_table(["drug", *COLUMNS.values(), "published GLM", "published SIC"], lines)


def published_total(k: int) -> tuple[int, int]:
    """Of the linear model (0) or of Boosted SIC (1)."""
    true, false = np.sum([pair[k] for pair in PUBLISHED.values()], axis=0)
    return int(true), int(false)


def _mean_counts(found: np.ndarray) -> str:
    return "{:.1f} / {:.1f}".format(*found.mean(axis=0)) if len(found) else "–"


def _error(found: np.ndarray) -> str:
    if len(found) < 2:
        return "–"
    return "{:.1f} / {:.1f}".format(*found.std(axis=0, ddof=1) / np.sqrt(len(found)))


def _share(found: np.ndarray) -> str:
    if not len(found) or not found.sum():
        return "–"
    return f"{found[:, 1].sum() / found.sum():.3f}"


def verdict(ours: np.ndarray) -> str:
    """Whether numbers of true and other positions reach the goal."""
    return "reached" if ours[0] >= GOAL[0] and ours[1] <= GOAL[1] else "not reached"


def summary(records: Sequence[Record]) -> tuple[str, str, str]:
    """The totals in one line, beside the published ones."""
    found = totals(records, MAIN)
    glm, sic = ("{} / {}".format(*published_total(k)) for k in (0, 1))
    goal = f"at least {GOAL[0]} / at most {GOAL[1]}"
    return (
        f"{_mean_counts(found)} true / other positions (± {_error(found)}; {COLUMNS[MAIN]})",
        f"published SIC {sic}, GLM {glm}",
        f"{goal}: {verdict(found.mean(axis=0)) if len(found) else '–'}",
    )


def reading(records: Sequence[Record]) -> str:
    """What the numbers say, in words."""
    said = []
    found = totals(records, MAIN)
    if len(found):
        ours, published = found.mean(axis=0), published_total(1)
        said.append(
            f"Knockoffs with five draws and offset 0 find {ours[0]:.1f} true and {ours[1]:.1f} "
            f"other positions over the {len(PUBLISHED)} drugs, "
            f"{'more' if ours[0] > published[0] else 'fewer'} true and "
            f"{'fewer' if ours[1] < published[1] else 'more'} others than the paper's SIC "
            f"({published[0]} / {published[1]}). The goal of at least {GOAL[0]} true and at most "
            f"{GOAL[1]} others is {verdict(ours)}."
        )
    found = totals(records, "hrt")
    if len(found):
        true, false = found.mean(axis=0)
        said.append(
            f"The test finds {true:.1f} true and {false:.1f} others, {_share(found)} of all it "
            "finds."
        )
    fdp, _ = simulated_rates(records, "hrt")
    if fdp.size > 1:
        mean, error = mean_and_error(fdp)
        judged = (
            "at most the level: many of the others may matter without being on the list"
            if mean <= FDR + 2 * error
            else "too large: the model of the columns is not quite right"
        )
        said.append(
            "Where the truth is known, on the same columns, its false discovery rate is "
            f"{mean:.3f} ± {error:.3f}, {judged}."
        )
    if not said:
        drugs = sorted({record["settings"]["drug"] for record in records})
        said.append(f"Only {', '.join(drugs)} so far, so there are no totals of ours yet.")
    return " ".join(said)


def _draw(records: Sequence[Record], path: Path) -> None:
    """Bars of true positions to the right and others to the left, ours and the paper's."""
    import matplotlib

    drugs = [drug for drug in PUBLISHED if len(counts(records, drug, MAIN))]
    if not drugs:
        return
    with matplotlib.rc_context({"backend": "Agg"}):
        import matplotlib.pyplot as plt

        from sobolev.plotting import CYCLE

        series = {
            f"knockoffs, {COLUMNS[MAIN]}": [counts(records, d, MAIN).mean(axis=0) for d in drugs],
            "published SIC": [PUBLISHED[d][1] for d in drugs],
        }
        tested = [counts(records, d, "hrt") for d in drugs]
        if all(len(found) for found in tested):
            series["HRT"] = [found.mean(axis=0) for found in tested]
        figure, ax = plt.subplots(figsize=(8, 1.6 + 0.5 * len(drugs)), layout="constrained")
        height = 0.8 / len(series)
        for k, (name, pairs) in enumerate(series.items()):
            places = np.arange(len(drugs)) + (k - (len(series) - 1) / 2) * height
            pair = np.array(pairs, dtype=float)
            ax.barh(places, pair[:, 0], height, color=CYCLE[k], label=name)
            ax.barh(places, -pair[:, 1], height, color=CYCLE[k], alpha=0.45)
        ax.axvline(0, color="#444444", linewidth=1)
        ax.set_yticks(range(len(drugs)), drugs)
        ax.set_ylim(len(drugs) - 0.4, -0.6)
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.set_xlabel("other positions ← → true positions")
        ax.legend(frameon=False, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
        ax.spines[["top", "right", "left"]].set_visible(False)
        figure.savefig(path, dpi=110)
        plt.close(figure)
