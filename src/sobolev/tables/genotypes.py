"""Groups of neighbouring genotypes, by distance, by number, or by linkage disequilibrium."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from sobolev._parameters import check_fraction, check_option
from sobolev._typing import Array, Index
from sobolev.validation import list_some, reject_text_columns

WINDOWS = ("distance", "count")
# Chromosome and position in a name: chr1:12345, 1:12345:A:G, chrX_12345_A_G.
_NAME = re.compile(r"(?:chr)?(\w+?)[:_.-](\d+)(?:[:_.-].*)?", re.IGNORECASE)

Groups = dict[str, list[Any]]


def windows(columns: Any, size: float, chromosome: Any = None, *, by: str = "distance") -> Groups:
    """Groups of neighbouring columns, such as genotypes, to be tested together.

    Parameters
    ----------
    columns : Series, sequence of numbers or sequence of str
        The position of each column on its chromosome, in the order of the table; the index of a
        Series has the names of the columns, such as ``adata.var["position"]``. Or names that
        contain chromosome and position, such as "chr1:12345" or "1:12345:A:G".
    size : number
        Width of a window, in the units of the positions, or number of columns.
    chromosome : sequence, optional
        Chromosome of each column. Windows never contain columns of two chromosomes.
    by : {"distance", "count"}, default="distance"
        "distance" begins windows at the multiples of ``size``, so they do not depend on which
        columns are in the table. "count" puts ``size`` neighbouring columns together; for names
        without positions, in the order of the table.

    Returns
    -------
    dict of str to list
        ``feature_groups`` of a selector: the windows with two columns or more, by name or, if
        ``columns`` are numbers, by position in the table.

    Examples
    --------
    >>> from sobolev.tables import windows
    >>> windows(["1:100:A:G", "1:900:C:T", "1:1200:G:A", "2:950:T:C"], 1000)
    {'1:100:A:G to 1:900:C:T': ['1:100:A:G', '1:900:C:T']}
    >>> windows([100, 900, 1200, 1300], 2, by="count")
    {'100 to 900': [0, 1], '1200 to 1300': [2, 3]}
    """
    check_option("by", by, WINDOWS)
    is_size = isinstance(size, Real) and np.isfinite(size) and size > 0
    if not is_size or (by == "count" and size != int(size)):
        whole = "a whole number of columns" if by == "count" else "a number"
        raise ValueError(f"size={size!r} must be {whole}, and positive.")
    names, positions, own = _places(columns, by)
    chromosomes = _chromosomes(own if chromosome is None else chromosome, len(positions))
    order = np.lexsort((positions, chromosomes))
    if by == "distance":
        number: Any = positions[order] // size
    else:
        first = np.searchsorted(chromosomes[order], chromosomes[order])
        number = (np.arange(order.size) - first) // int(size)
    cuts = (np.diff(number) != 0) | (np.diff(chromosomes[order]) != 0)
    return _named(np.split(order, np.flatnonzero(cuts) + 1), names, positions)


def linkage_blocks(X: Any, chromosome: Any = None, *, r2: float = 0.8) -> Groups:
    """Groups of neighbouring columns in linkage disequilibrium, to be tested together.

    Parameters
    ----------
    X : DataFrame or array of shape (n, d)
        Genotypes, in the order of their positions; NaN is a missing cell.
    chromosome : sequence, optional
        Chromosome of each column. Groups never contain columns of two chromosomes.
    r2 : float, default=0.8
        Two neighbouring columns are in one group if their squared correlation is at least this.

    Returns
    -------
    dict of str to list
        ``feature_groups`` of a selector: the groups of two columns or more. They depend on X alone,
        so tests of them are valid.

    Examples
    --------
    >>> import numpy as np
    >>> from sobolev.tables import linkage_blocks
    >>> a, b = np.random.default_rng(0).integers(0, 3, (2, 100))
    >>> linkage_blocks(np.column_stack([a, a, b]))
    {'0 to 1': [0, 1]}
    """
    check_fraction("r2", r2, low=0.0, high=1.0)
    table = pd.DataFrame(X)
    reject_text_columns(table)
    names = [str(name) for name in table.columns] if hasattr(X, "columns") else None
    chromosomes = _chromosomes(chromosome, table.shape[1])
    values = table.to_numpy(dtype=float)
    linked = [_squared_correlation(a, b) >= r2 for a, b in pairwise(values.T)]
    cuts = ~np.array(linked, dtype=bool) | (np.diff(chromosomes) != 0)
    order = np.arange(table.shape[1])
    return _named(np.split(order, np.flatnonzero(cuts) + 1), names, order)


def _squared_correlation(a: Array, b: Array) -> float:
    """Of the rows in which neither is missing; zero if one of them is constant there."""
    seen = ~(np.isnan(a) | np.isnan(b))
    a, b = a[seen], b[seen]
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1] ** 2)


def _places(columns: Any, by: str) -> tuple[list[str] | None, Array, Any]:
    """Names, positions and chromosomes of the columns; None where they are not known."""
    values = np.asarray(columns)
    if values.ndim != 1 or not values.size:
        raise ValueError("columns must be a sequence with one position or name for each column.")
    if values.dtype.kind in "iuf":
        is_series = isinstance(columns, pd.Series)
        names = [str(name) for name in columns.index] if is_series else None
        if not np.isfinite(values).all():
            raise ValueError("columns has positions that are missing or infinite; drop them.")
        return names, values.astype(float), None
    names = [str(name) for name in values]
    found = [_NAME.fullmatch(name) for name in names]
    unread = [repr(name) for name, match in zip(names, found, strict=True) if match is None]
    if not unread:
        parts = [match.groups() for match in found if match is not None]
        return names, np.array([float(p) for _, p in parts]), [c for c, _ in parts]
    if by == "count":
        return names, np.arange(len(names), dtype=float), None
    raise ValueError(
        f"{len(unread)} names have no position, such as {list_some(unread, 3)}; pass positions "
        'instead of names, or by="count" for windows of so many columns.'
    )


def _chromosomes(given: Any, n: int) -> Index:
    """The number of the chromosome of each column, in the order of their first columns."""
    if given is None:
        return np.zeros(n, dtype=np.intp)
    labels = pd.Series(given)
    if len(labels) != n:
        raise ValueError(f"chromosome has {len(labels)} entries, but there are {n} columns.")
    if labels.isna().any():
        raise ValueError(
            f"chromosome is missing for {int(labels.isna().sum())} of {n} columns; fill it in, or "
            "leave these columns out."
        )
    return np.asarray(pd.factorize(labels.astype(str).to_numpy(dtype=object))[0], dtype=np.intp)


def _named(parts: Sequence[Index], names: list[str] | None, positions: Array) -> Groups:
    """Parts of two columns or more, by the names or positions of their first and last column."""
    found: Groups = {}
    for part in parts:
        if part.size < 2:
            continue
        ends = [f"{positions[j]:.12g}" if names is None else names[j] for j in (part[0], part[-1])]
        label = " to ".join(ends)
        while label in found:  # the same positions on another chromosome
            label += "'"
        found[label] = part.tolist() if names is None else [names[j] for j in part]
    return found
