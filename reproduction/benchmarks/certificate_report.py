"""The page and the picture of the certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.benchmarks.hrt_designs import DESIGNS
from reproduction.benchmarks.real_tables import (
    MAX_COLUMNS,
    MAX_GAPS,
    MAX_ROWS,
    MIN_DIFFERENT,
    TABLES,
)
from reproduction.engine import Record
from reproduction.markdown import markdown_table, mean_and_error, mean_cell
from reproduction.paper.simulations import counts_below
from sobolev.inference.planting import KINDS, SHAPES
from sobolev.plotting import CYCLE

FDR = 0.1
OURS = ("HRTSelector", "KnockoffSelector")
# The kind of the responses of the designs.
OWN = "its own"
# The least standard deviation of a false discovery proportion that a verdict assumes. Few runs can
# agree by chance, and their standard error is then too small.
LEAST_SPREAD = 0.1
INK, PALE = "#444444", "#EEF0F3"
# No claim about a peer rests on fewer runs, which are fewer only if some failed.
MIN_RUNS = 20
MARKERS = "oDsv^>p"
COLORS = (*CYCLE[:5], *CYCLE[6:])  # without the second blue
PICTURE = "certificate.png"


# -- rows ----------------------------------------------------------------------------------------


def by_kind(rows: Iterable[Record]) -> list[Record]:
    """A row for each kind of response, from rows of tasks.

    The kind of a row without results, which says what is missing, is None. The seconds of the task
    are left out: those of single runs are in the results.
    """
    return [
        {name: value for name, value in row.items() if name not in ("kinds", "seconds")}
        | {"kind": kind}
        | result
        for row in rows
        for kind, result in row.get("kinds", {None: {}}).items()
    ]


# -- verdicts ------------------------------------------------------------------------------------


def values(rows: Iterable[Record], name: str) -> np.ndarray:
    """The figures of the rows that have them."""
    found = [row[name] for row in rows if row.get(name) is not None]
    return np.array(found, dtype=float)


def limit(fdp: np.ndarray, spread: float = LEAST_SPREAD) -> float:
    """The level plus two standard errors; infinite if there are fewer than two runs."""
    if fdp.size < 2:
        return float("inf")
    _, error = mean_and_error(fdp)
    return FDR + 2 * max(error, spread / np.sqrt(fdp.size))


def holds(rows: Iterable[Record], spread: float = LEAST_SPREAD) -> bool:
    """Whether the mean false discovery proportion is at most ``limit``."""
    fdp = values(rows, "fdp")
    return not fdp.size or bool(fdp.mean() <= limit(fdp, spread))


def pick(rows: Iterable[Record], **wanted: Any) -> list[Record]:
    """The rows with these values; a tuple lists alternatives."""
    choices = {k: v if isinstance(v, tuple) else (v,) for k, v in wanted.items()}
    return [row for row in rows if all(row[k] in v for k, v in choices.items())]


def cells(rows: Sequence[Record], method: str) -> dict[tuple[str, str], list[Record]]:
    """The runs of a method with figures by table and kind, in the order of the page."""
    made: dict[tuple[str, str], list[Record]] = {}
    kinds = [(table.name, kind) for table in TABLES for kind in KINDS]
    for key in [*kinds, *[(design.name, OWN) for design in DESIGNS]]:
        made[key] = []
    for row in rows:
        if row["method"] == method and "fdp" in row:
            made.setdefault((row["table"], row["kind"]), []).append(row)
    return {key: found for key, found in made.items() if found}


def beyond(rows: Sequence[Record], method: str, spread: float = LEAST_SPREAD) -> list[str]:
    """The cells in which a method exceeds the level, in words."""
    return [
        f"{table}, {kind} ({mean_cell(values(found, 'fdp'))})"
        for (table, kind), found in cells(rows, method).items()
        if not holds(found, spread)
    ]


def failures(rows: Sequence[Record]) -> list[str]:
    """The errors that our selectors raised, in words."""
    failed = [row for row in pick(rows, method=OURS) if "error" in row]
    return [
        f"{row['method']} on {row['table']}, {row['kind']}, seed {row['seed']}: {row['error']}"
        for row in failed
    ]


# -- text ----------------------------------------------------------------------------------------


def summary(rows: Sequence[Record]) -> str:
    """In how many cells our selectors keep the level."""
    said = []
    for method in OURS:
        found = cells(rows, method)
        if not found:
            continue
        wrong = beyond(rows, method)
        real = [table for table, kind in found if kind != OWN]
        where = [f"{_number(len(set(real)), 'real table')} by kind of response"] if real else []
        if len(found) > len(real):
            where.append(_number(len(found) - len(real), "design"))
        counts = [len(runs) for runs in found.values()]
        size = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{counts[0]}"
        said.append(
            f"`{method}` keeps the false discovery rate of {FDR:g}, within two standard errors, in "
            f"{len(found) - len(wrong)} of {_number(len(found), 'cell')} ({' and '.join(where)}; "
            f"{size} per cell)."
        )
        if wrong:
            said.append(f"It exceeds the level on: {'; '.join(wrong)}.")
    failed = failures(rows)
    if failed:
        said.append(f"{_number(len(failed), 'run')} of ours ended in an error.")
    return " ".join(said)


def evidence(rows: Sequence[Record]) -> list[str]:
    """The same for the default test in one row: the question, what was measured and the page."""
    found = cells(rows, OURS[0])
    kept = len(found) - len(beyond(rows, OURS[0]))
    real = {table for table, kind in found if kind != OWN}
    signal = [row for key, runs in found.items() if key[1] in SHAPES for row in runs]
    fdr, power = (values(signal, name).mean() for name in ("fdp", "tpr"))
    shares = f"{100 * fdr:.0f} %", f"{100 * power:.0f} %"
    return [
        "Does the level of 10 % hold on real columns?",
        f"Within two standard errors in {kept} of {len(found)} settings, with responses planted on "
        f"{len(real)} real tables and {sum(kind == OWN for _, kind in found)} designs. On the "
        f"tables the mean false discovery rate is {shares[0]}, and {shares[1]} of the columns "
        "that matter are found.",
        "[certificate](docs/certificate.md)",
    ]


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rate_cell(found: Sequence[Record]) -> str:
    """A false discovery rate ± its standard error, bold if it exceeds the level."""
    text = mean_cell(values(found, "fdp"))
    return text if holds(found) else f"**{text}**"


def share_below(found: Sequence[Record], level: float) -> str:
    """The share of null p-values below a level, pooled over runs."""
    counted = [row for row in found if row.get("n_null") and level in counts_below(row)]
    if not counted:
        return "–"
    below = sum(counts_below(row)[level] for row in counted)
    return f"{below / sum(row['n_null'] for row in counted):.4f}"


def selector_table(rows: Sequence[Record], method: str) -> str:
    """Tables by kinds: false discovery rates, and what else is known of the runs."""
    tested = method == "HRTSelector"
    header = ["table", *SHAPES, "noise: runs with a find", "FDR by column"]
    header += ["p < 0.005", "p < 0.05"] if tested else []
    lines = []
    for table in TABLES:
        found = [r for r in pick(rows, table=table.name, method=method) if "fdp" in r]
        if not found:
            lines.append([table.name, *["–"] * len(header)])
            continue
        shaped = pick(found, kind=SHAPES)
        line = [table.name, *[rate_cell(pick(found, kind=kind)) for kind in KINDS]]
        line.append(mean_cell(values(shaped, "column_fdp")))
        line += [share_below(found, level) for level in (0.005, 0.05)] if tested else []
        lines.append([*line, _warned(found)])
    return markdown_table([*header, "warned"], lines)


def _warned(found: Sequence[Record]) -> str:
    return _mean([bool(row["warned"]) for row in found if "warned" in row])


def design_table(rows: Sequence[Record], peers: Sequence[str]) -> str:
    """Power and false discovery rate on the designs."""
    shown = [m for m in (*OURS, *peers) if pick(rows, kind=OWN, method=m)]
    lines = []
    for design in DESIGNS:
        found = [r for r in pick(rows, table=design.name) if "fdp" in r]
        if found:
            runs = {method: pick(found, method=method) for method in shown}
            lines.append([design.name, *power_cells(runs)])
    return markdown_table(["design", *shown], lines)


def power_cells(runs: dict[str, list[Record]]) -> list[str]:
    """Power, with the false discovery rate in brackets; bold is best of those that keep the level.

    Italics are for methods that exceed the level. A method that failed so often that it has fewer
    than ``MIN_RUNS`` runs is not judged.
    """
    judged = with_enough(runs)
    keeping = {m: values(found, "tpr") for m, found in judged.items() if holds(found)}
    best = max((tpr.mean() for tpr in keeping.values() if tpr.size), default=0.0)
    made = []
    for method, found in runs.items():
        if not found:
            made.append("–")
            continue
        power = values(found, "tpr").mean()
        text = f"{power:.2f} ({values(found, 'fdp').mean():.2f})"
        if method not in judged:
            text += f", {len(found)} runs"
        elif method not in keeping:
            text = f"*{text}*"
        elif power > 0 and round(power, 2) == round(best, 2):
            text = f"**{text}**"
        made.append(text)
    return made


def with_enough(runs: dict[str, list[Record]]) -> dict[str, list[Record]]:
    """The methods with ``MIN_RUNS`` runs, or with as many as any has."""
    enough = min(MIN_RUNS, max(map(len, runs.values())))
    return {method: found for method, found in runs.items() if len(found) >= enough}


def common(rows: Sequence[Record], table: str, shown: Sequence[str]) -> dict[str, list[Record]]:
    """The runs with a signal on a table by method, on the responses that peers have, if any."""
    found = [r for r in pick(rows, table=table, kind=SHAPES) if "fdp" in r]
    used = {(r["kind"], r["seed"]) for r in found if r["method"] not in OURS}
    used = used or {(r["kind"], r["seed"]) for r in found}
    return {m: [r for r in pick(found, method=m) if (r["kind"], r["seed"]) in used] for m in shown}


def power_table(rows: Sequence[Record], peers: Sequence[str]) -> str:
    """Power of all methods on the same responses, table by table, and what it takes."""
    shown = [m for m in (*OURS, *peers) if pick(rows, method=m)]
    runs = {table.name: common(rows, table.name, shown) for table in TABLES}
    runs = {table: by_method for table, by_method in runs.items() if any(by_method.values())}
    lines = [
        [f"{table} ({max(map(len, by_method.values()))})", *power_cells(by_method)]
        for table, by_method in runs.items()
    ]
    judged = [with_enough(by_method) for by_method in runs.values()]
    per_table = {m: [of[m] for of in judged if m in of] for m in shown}
    power = [_mean([values(f, "tpr").mean() for f in per_table[m]]) for m in shown]
    kept = [f"{sum(map(holds, per_table[m]))} of {len(per_table[m])}" for m in shown]
    noise = [_share(values(pick(rows, method=m, kind="noise"), "fdp")) for m in shown]
    seconds = [_seconds(per_table[m]) for m in shown]
    lines += [
        ["mean power", *power],
        ["tables on which the level is kept", *kept],
        ["pure noise: runs with a find", *noise],
        ["CPU seconds (median)", *seconds],
    ]
    return markdown_table(["table (responses)", *shown], lines)


def _mean(found: Sequence[float]) -> str:
    return f"{np.mean(found):.2f}" if found else "–"


def _share(fdp: np.ndarray) -> str:
    return f"{np.count_nonzero(fdp)} of {fdp.size}" if fdp.size else "–"


def _seconds(found: Sequence[Sequence[Record]]) -> str:
    seconds = values([row for runs in found for row in runs], "seconds")
    return f"{np.median(seconds):.1f}" if seconds.size else "–"


def remarks(rows: Sequence[Record], peers: Sequence[str]) -> str:
    """What is missing or failed, one line for each reason."""
    lines = []
    for table in TABLES:
        reasons = {
            r["missing"] for r in pick(rows, table=table.name, method=OURS) if "missing" in r
        }
        if reasons and not any("fdp" in r for r in pick(rows, table=table.name)):
            lines.append(f"- The table {table.name} is missing: {min(reasons)}.")
    for peer in peers:
        found = pick(rows, method=peer)
        failed = [r["error"] for r in found if "error" in r]
        if failed:
            lines.append(f"- {peer} failed on {len(failed)} of {len(found)} runs: {failed[0]}.")
        elif found and all("missing" in r for r in found):
            lines.append(f"- {peer}: {found[0]['missing']}.")
    lines += [f"- {text}." for text in failures(rows)]
    return "\n".join(line.replace("..", ".") for line in lines)


def source_table(rows: Sequence[Record]) -> str:
    """What each table is and where it comes from."""
    lines = []
    for table in TABLES:
        shapes = [r["shape"] for r in pick(rows, table=table.name) if "shape" in r]
        size = f"{shapes[0][0]} × {shapes[0][1]}" if shapes else "–"
        lines.append([table.name, size, table.about, table.source])
    return markdown_table(["table", "rows × columns", "columns", "source"], lines, numbers=False)


def versions(rows: Sequence[Record]) -> str:
    """The packages that the runs used."""
    found = sorted({package for row in rows for package in row.get("packages", ())})
    return f"sobolev {rows[0]['version']}" + (f"; {', '.join(found)}" if found else "")


def section(rows: Sequence[Record], peers: Sequence[str]) -> str:
    """The section of RESULTS.md."""
    return f"""
## Certificate: planted responses on real columns

{summary(rows)}

Power with the false discovery rate in brackets, on the same responses; bold is the best of those
that keep the level, italics exceed it. All tables are in `docs/certificate.md`.

{power_table(rows, peers)}

{versions(rows)}; regenerate with `python -m reproduction certificate`.
"""


def page(rows: Sequence[Record], peers: Sequence[str]) -> str:
    """The page of the documentation, without its title."""
    notes = remarks(rows, peers)
    parts = [
        f"""
{summary(rows)}

![False discovery rate and power by table]({PICTURE})

False discovery rate (left; bars are two standard errors, the dashed line is the level) and power
(right) on the responses with a signal, by table. Hollow marks are peers, on fewer responses.
"""
    ]
    for method in OURS:
        if cells(rows, method):
            parts.append(f"## {method}\n\n{_reading(method)}\n\n{selector_table(rows, method)}")
    parts.append(
        f"""
## Power and time, beside peers

Power with the false discovery rate in brackets, over the three kinds with a signal, on the
responses that the peers have. Bold is the best of those that keep the level on the table; italics
exceed it. For peers, a false column in the same unit as an active column counts neither as true nor
as false. d0CRT and CFI-CV are hidimstat's: the distilled test with a lasso, which tests the tenth
of the columns with the largest coefficients unless it says "no screening", and conditional feature
importance with forests in five folds. knockpy draws Gaussian knockoffs and uses a lasso. GCM is the
generalised covariance measure with residuals of out-of-bag forests. P-values of peers go through
Benjamini-Hochberg. CPU seconds are those of a single run, as a user starts it: for ours, only of
the runs from scratch, with all checks. On tables with more than 60 columns the slowest peers (d0CRT
without screening, CFI-CV, GCM) have {MIN_RUNS} responses, none of them noise.

{power_table(rows, peers)}
"""
    )
    if pick(rows, kind=OWN):
        parts.append(f"## Designs\n\n{_DESIGNS}\n\n{design_table(rows, peers)}")
    if notes:
        parts.append(f"## Remarks\n\n{notes}")
    parts.append(
        f"""
## The tables

Numeric columns, rows without gaps. A column is left out if more than {100 * MAX_GAPS:g} % of it is
missing, or if fewer than {MIN_DIFFERENT} of {MAX_ROWS} rows differ from its most frequent value.
From more than {MAX_COLUMNS} columns as many are taken at equal distances; from more than {MAX_ROWS}
rows as many are drawn for each seed.

{source_table(rows)}

{versions(rows)}.
"""
    )
    return "\n\n".join(part.strip() for part in parts)


_DESIGNS = (
    "The designs of {doc}`calibration`, each with its own response: power with the false discovery "
    "rate in brackets. Peers that take minutes on many columns are left out there."
)


def _reading(method: str) -> str:
    text = (
        "False discovery rate ± standard error by kind of response; bold exceeds the level by more "
        "than two standard errors. With pure noise every find is false. Discoveries are units: "
        'copies and columns that determine each other count once. "FDR by column" counts every '
        'selected column that is not active as false; "warned" is the share of runs with a warning '
        "among the runs from scratch, one for each seed."
    )
    if method == "HRTSelector":
        return text + " The shares of p-values are those of units without an active column."
    return text + " Knockoffs at this level select at least ten units or none."


# -- picture -------------------------------------------------------------------------------------


def save(rows: Sequence[Record], peers: Sequence[str], path: Path) -> None:
    """Draw the false discovery rate and the power of all methods by table."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    signal = [r for r in pick(rows, kind=SHAPES) if "fdp" in r]
    tables = [t.name for t in TABLES if pick(signal, table=t.name)]
    shown = [m for m in (*OURS, *peers) if pick(signal, method=m)]
    if not tables:
        return
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11.5, 1.6 + 0.52 * len(tables)), sharey=True, layout="constrained"
    )
    for ax in (left, right):
        for place in range(0, len(tables), 2):
            ax.axhspan(place - 0.5, place + 0.5, color=PALE, linewidth=0, zorder=0)
    offsets = np.linspace(-0.34, 0.34, len(shown)) if len(shown) > 1 else np.zeros(1)
    for k, method in enumerate(shown):
        style = {
            "color": COLORS[k % len(COLORS)],
            "marker": MARKERS[k % len(MARKERS)],
            "markersize": 6.0 if method in OURS else 4.8,
            "markerfacecolor": COLORS[k % len(COLORS)] if method in OURS else "white",
            "linestyle": "none",
            "elinewidth": 1.6 if method in OURS else 0.9,
            "label": method,
            "zorder": 3 if method in OURS else 2,
        }
        for ax, name in ((left, "fdp"), (right, "tpr")):
            found = [values(pick(signal, table=t, method=method), name) for t in tables]
            there = [i for i, column in enumerate(found) if column.size]
            means, errors = np.array([mean_and_error(found[i]) for i in there]).T
            ax.errorbar(means, offsets[k] + there, xerr=2 * np.nan_to_num(errors), **style)
    left.axvline(FDR, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    left.set_yticks(range(len(tables)), tables)
    left.set_ylim(len(tables) - 0.5, -0.5)
    for ax, label in ((left, "false discovery rate"), (right, "power (true positive rate)")):
        ax.set_xlim(left=-0.015)
        ax.set_xlabel(label, color=INK, fontsize=11)
        ax.tick_params(colors=INK, length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(INK)
        ax.grid(axis="x", color="#D9DDE3", linewidth=0.6, zorder=0)
        ax.set_axisbelow(True)
    left.annotate(
        f"level {FDR:g}",
        (FDR, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontsize=9,
    )
    handles, labels = left.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=min(4, len(shown)),
        frameon=False,
        labelcolor=INK,
        handletextpad=0.2,
        columnspacing=1.4,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
