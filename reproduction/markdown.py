"""Markdown tables and the numbers in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> str:
    """A Markdown table; if it is of numbers, all columns but the first are right-aligned.

    Examples
    --------
    >>> from reproduction.markdown import markdown_table
    >>> print(markdown_table(["method", "rate"], [["lasso", "0.5"]]))
    | method | rate |
    | --- | ---: |
    | lasso | 0.5 |
    """
    rule = "---:" if numbers else "---"
    lines = [header, ["---", *[rule] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """The mean and its standard error; NaN if there is one value only."""
    found = np.asarray(values, dtype=float)
    if found.size < 2:
        return float(found.mean()), float("nan")
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(found.size))


def mean_cell(values: ArrayLike) -> str:
    """A mean ± its standard error.

    Examples
    --------
    >>> from reproduction.markdown import mean_cell
    >>> mean_cell([0.5, 1.0]), mean_cell([0.5]), mean_cell([])
    ('0.750 ± 0.250', '0.500', '–')
    """
    found = np.asarray(values, dtype=float)
    if not found.size:
        return "–"
    mean, error = mean_and_error(found)
    return f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ± {error:.3f}"


def quartile_cell(values: ArrayLike) -> str:
    """Lower quartile, median and upper quartile."""
    found = np.asarray(values, dtype=float)
    if not found.size:
        return "–"
    return " / ".join(f"{q:.2f}" for q in np.quantile(found, [0.25, 0.5, 0.75]))


def exceeding(rates: Mapping[str, ArrayLike], level: float) -> str:
    """The rates whose mean is above the level by more than two standard errors, in words.

    Examples
    --------
    >>> from reproduction.markdown import exceeding
    >>> exceeding({"lasso": [0.4, 0.5, 0.4], "forest": [0.0, 0.3, 0.2]}, 0.1)
    'Above 10 % by more than two standard errors: lasso (0.433).'
    """
    found = []
    for name, values in rates.items():
        if np.size(values) < 2:
            continue
        mean, error = mean_and_error(values)
        if mean > level + 2 * error:
            found.append(f"{name} ({mean:.3f})")
    if not found:
        return ""
    return f"Above {100 * level:g} % by more than two standard errors: {'; '.join(found)}."
