"""Why nothing was selected, and what to do next, from what was measured."""

from __future__ import annotations

import math

from scipy.special import ndtri

from sobolev._numbers import shown_pvalue
from sobolev.report.result import SelectionResult
from sobolev.validation import list_some

# With larger p-values, the number of rows that would be enough says nothing.
PROMISING = 0.1
MAX_CLUSTERS = 3


def reasons(result: SelectionResult) -> list[str]:
    """Why nothing was selected, in sentences."""
    found = []
    if result.skill is not None:
        found.append(_of_skill(result))
    if result.method == "hrt":
        found += _of_pvalues(result)
    if result.method == "knockoffs":
        found += _of_knockoffs(result)
    clusters = _clusters(result)
    if clusters and (result.skill is None or result.skill.is_clear):
        found.append(f"Near copies share an effect, so each can be missed: {clusters}.")
    untested = int(result.table["pvalue"].isna().sum())
    if result.method == "hrt" and 0 < untested < len(result.table):
        found.append(
            f"{untested:,} features were not tested: they were less important in the training rows."
        )
    return found


def steps(result: SelectionResult) -> list[str]:
    """What to do next, in sentences."""
    found = []
    if result.skill is not None and not result.skill.is_clear:
        found.append(
            "Check that the response is the right column and was read as meant, and ask first "
            "whether it depends on the columns at all: sobolev test, or sobolev.sic_test."
        )
    if result.method == "hrt":
        found += _more_rows(result)
    if result.method == "knockoffs":
        found.append(
            "Use the holdout randomization test (--method hrt, HRTSelector): it can select a "
            "single feature."
        )
    if _clusters(result):
        found.append("Test near copies as one feature (--groups, feature_groups), or keep one.")
    found.append(
        "Nothing selected does not mean that nothing matters. A level that is raised after the "
        "result was seen does not keep its promise."
    )
    return found


def needed_finds(result: SelectionResult) -> int:
    """The smallest number of features that knockoffs can select at the level of the run."""
    fdr, offset = float(result.fdr or 1), int(result.settings.get("offset", 1))
    draws = int(result.settings.get("n_draws") or 1)
    if draws == 1:
        return math.ceil(1 / fdr - 1e-9) if offset else 1
    return math.ceil((2 if offset else 1) / fdr - 1e-9)


def _of_skill(result: SelectionResult) -> str:
    skill = result.skill
    assert skill is not None
    if not skill.is_clear:
        rows = result.data.get("rows")
        size = "the rows" if rows is None else f"{rows:,} rows"
        return (
            f"The model does not predict rows that it has not seen: {skill.short}. It learned "
            f"nothing about the response from {size}."
        )
    alone = ", but none adds enough to all the others" * (result.method == "hrt")
    return f"{skill.sentence} So the features matter together{alone}."


def _first(result: SelectionResult) -> tuple[str, float, int]:
    """The feature of the smallest p-value, the p-value, and the number of tests."""
    tested = result.table[result.table["pvalue"].notna()]
    if tested.empty:
        return "", 1.0, 0
    row = tested.loc[tested["pvalue"].astype(float).idxmin()]
    return (
        str(row["feature"]),
        float(row["pvalue"]),
        int(result.settings.get("n_tests", len(tested))),
    )


def _of_pvalues(result: SelectionResult) -> list[str]:
    name, p, m = _first(result)
    if not m:
        return ["No feature could be tested: the first fit gave all of them importance zero."]
    least = shown_pvalue((result.fdr or 0) / m)
    tests = "test" if m == 1 else "tests"
    return [
        f"The smallest p-value is {shown_pvalue(p)} ({name}). Of {m:,} {tests} at FDR "
        f"{100 * (result.fdr or 0):g} %, one alone must be at most {least}."
    ]


def _more_rows(result: SelectionResult) -> list[str]:
    """How many rows, or how few tests, would be enough for the smallest p-value."""
    name, p, m = _first(result)
    rows = result.data.get("rows")
    level = result.fdr or 0.1
    if not m or not 0 < p < PROMISING or rows is None:
        return ["More rows, or fewer features chosen before the response is looked at, may help."]
    # A test statistic grows as the square root of the number of rows.
    enough = float(ndtri(level / m) / ndtri(p)) ** 2 * int(rows)
    found = [
        f"More rows: about {float(f'{enough:.2g}'):,.0f} in place of {rows:,} if the effect of "
        f"{name} is as large as it looks, which the smallest of {m:,} p-values overstates."
    ]
    fewer = int(level / p + 1e-9)
    if 1 <= fewer < m:
        noun = "feature" if fewer == 1 else "features"
        found.append(
            f"Fewer features, chosen before the response is looked at: such a p-value is enough "
            f"among at most {fewer:,} {noun}."
        )
    return found


def _of_knockoffs(result: SelectionResult) -> list[str]:
    least, d = needed_finds(result), len(result.table)
    level = f"{100 * (result.fdr or 0):g} %"
    found = []
    if least > 1:
        found.append(f"At FDR {level} knockoffs select at least {least} features, or none.")
    if d < least:
        return [*found, f"The table has only {d}."]
    q = result.table["qvalue"].astype(float)
    if q.notna().any():
        count = int((q <= q.min()).sum())
        noun = "feature" if count == 1 else "features"
        found.append(f"The smallest q-value is {shown_pvalue(q.min())}, of {count} {noun}.")
    return found


def _clusters(result: SelectionResult) -> str:
    """Near copies, in words; empty if there are none."""
    found = [
        f"{list_some(list(names), 4)} (|r| up to {r:.2f})"
        for names, r in list(result.data.get("clusters") or ())[:MAX_CLUSTERS]
    ]
    return "; ".join(found)
