"""What the report says about the table: classes, events, missing cells, near copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from sobolev._typing import Array, Index
from sobolev.responses import Response

# Features of a larger rank correlation are called near copies; at most so many are compared.
NEAR, MAX_COMPARED = 0.8, 300
# Classes that are listed, and columns with missing cells.
MAX_CLASSES, MAX_GAPS = 12, 12


def response_facts(response: Response | None) -> dict[str, Any]:
    """Numbers of rows of the classes, numbers of events, or quartiles."""
    if response is None or response.kind == "several":
        return {}
    if response.kind == "classes":
        counts = pd.Series(np.asarray(response.values).ravel()).value_counts()
        shown = {str(label): int(n) for label, n in counts.head(MAX_CLASSES).items()}
        rest = int(counts.iloc[MAX_CLASSES:].sum())
        return {"classes": shown | ({"others": rest} if rest else {})}
    if response.kind == "survival":
        if response.events is None:
            return {}
        n = int(response.events.sum())
        return {"classes": {"event": n, "censored": len(response.events) - n}}
    values = np.asarray(response.values, dtype=float)
    low, first, middle, third, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return {
        "quartiles": {
            "least": low,
            "first quartile": first,
            "median": middle,
            "third quartile": third,
            "largest": high,
        }
    }


def missing_facts(shares: dict[str, float]) -> dict[str, Any]:
    """Shares of missing cells of the columns that have some, largest first."""
    some = {name: float(share) for name, share in shares.items() if share > 0}
    if not some:
        return {}
    first = sorted(some, key=lambda name: -some[name])
    return {"missing_cells": {name: some[name] for name in first[:MAX_GAPS]}} | (
        {"more_with_missing_cells": len(first) - MAX_GAPS} if len(first) > MAX_GAPS else {}
    )


def near_copies(X: Array, units: dict[str, Index], strongest: Sequence[str]) -> list[Any]:
    """Clusters of features with a rank correlation of at least 0.8, largest first.

    Parameters
    ----------
    X : array of shape (n, d)
        With NaN for missing cells.
    units : dict of str to array of int
        The columns of every feature; those of several columns are left out.
    strongest : sequence of str
        Names of the features to compare.

    Returns
    -------
    list of (list of str, float)
        The features of each cluster, and the largest correlation between two of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.report.facts import near_copies
    >>> x, z = np.random.default_rng(0).normal(size=(2, 200))
    >>> table = np.column_stack([x, z, x + 0.3 * z])
    >>> [names for names, r in near_copies(table, {"a": [0], "b": [1], "c": [2]}, ["a", "b", "c"])]
    [['a', 'c']]
    """
    names = [name for name in strongest if len(units.get(name, ())) == 1][:MAX_COMPARED]
    columns = X[:, [int(units[name][0]) for name in names]]
    gaps = np.isnan(columns)
    ranks = rankdata(np.where(gaps, -np.inf, columns), axis=0)
    ranks = np.where(gaps, np.nan, ranks)
    ranks -= np.nanmean(ranks, axis=0) if gaps.any() else ranks.mean(axis=0)
    ranks = np.nan_to_num(ranks)
    size = np.sqrt((ranks**2).sum(axis=0))
    ranks = ranks[:, size > 0] / size[size > 0]
    names = [name for name, s in zip(names, size, strict=True) if s > 0]
    if len(names) < 2:
        return []
    r = np.abs(ranks.T @ ranks)
    np.fill_diagonal(r, 0.0)
    count, label = connected_components(r >= NEAR, directed=False)
    found = []
    for k in range(count):
        own = np.flatnonzero(label == k)
        if own.size > 1:
            largest = float(min(r[np.ix_(own, own)].max(), 1.0))
            found.append(([names[i] for i in own], largest))
    return sorted(found, key=lambda cluster: -len(cluster[0]))
