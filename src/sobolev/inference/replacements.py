r"""The statistic of every row at every value that a column may take.

A test of column j needs the critic at rows in which :math:`x_j` is replaced by the nodes of its
conditional distribution. Those rows are never formed: an evaluator (:mod:`sobolev.critic`) gives
the statistic at a few common values of :math:`x_j`, which is interpolated to the nodes of each row.
The observed value passes through the same interpolation, so that interpolation error can cost
power, not validity.
"""

from __future__ import annotations

import numpy as np

from sobolev._typing import Array, Index
from sobolev.critic import Evaluator
from sobolev.inference.null_distribution import NullTable

# Columns with at most this many distinct nodes are evaluated at each of them.
MAX_EXACT = 24
# A group is evaluated at all joint nodes for all rows up to this many nodes.
MAX_PATTERNS = 64


def null_table(
    evaluator: Evaluator, column: int, x: Array, nodes: Array, weights: Array
) -> NullTable:
    """The table of one column: the statistic at the nodes of each row and at the observed values.

    Parameters
    ----------
    evaluator : Evaluator
    column : int
    x : array of shape (n,)
        The observed values of the column.
    nodes, weights : array of shape (n, B)
        The conditional distribution of each row.
    """
    few = np.unique(nodes[0]).size <= MAX_EXACT
    distinct = np.unique(nodes) if few else np.array([nodes.min(), nodes.max()])
    if few and distinct.size <= MAX_EXACT:
        distinct = np.union1d(distinct, x) if np.unique(x).size <= MAX_EXACT else distinct
        table = evaluator.at(np.array([column]), distinct[:, None])
        values = np.take_along_axis(table, np.searchsorted(distinct, nodes), axis=1)
        place = np.minimum(np.searchsorted(distinct, x), distinct.size - 1)
        return NullTable(values, weights, np.take_along_axis(table, place[:, None], axis=1)[:, 0])
    low = min(float(distinct[0]), float(x.min()))
    high = max(float(distinct[-1]), float(x.max()))
    knots, rule = evaluator.nodes(column, low, high)
    table = evaluator.at(np.array([column]), knots[:, None])
    both = np.column_stack([nodes, x])
    coordinate = getattr(evaluator, "coordinate", None)
    if coordinate is not None:
        knots, both = coordinate(column, knots), coordinate(column, both)
    both = (_chebyshev if rule == "chebyshev" else _piecewise)(knots, table, both)
    return NullTable(both[:, :-1], weights, both[:, -1])


def joint_table(
    evaluator: Evaluator, columns: Index, x: Array, nodes: Array, weights: Array
) -> NullTable:
    """The table of several columns that are replaced together.

    Parameters
    ----------
    evaluator : Evaluator
    columns : array of int
    x : array of shape (n, len(columns))
        The observed values.
    nodes : array of shape (n, B, len(columns))
        Joint nodes of each row.
    weights : array of shape (n, B)
    """
    patterns = nodes[0]
    if patterns.shape[0] <= MAX_PATTERNS and (nodes == patterns).all():
        same = (x[:, None] == patterns).all(axis=2)
        if same.any(axis=1).all():
            values = evaluator.at(columns, patterns)
            return NullTable(values, weights, values[np.arange(x.shape[0]), same.argmax(axis=1)])
    # The observed values go with the nodes, so that rounding is the same for both.
    both = evaluator.each(columns, np.concatenate([nodes, x[:, None]], axis=1))
    return NullTable(both[:, :-1], weights, both[:, -1])


def _chebyshev(knots: Array, table: Array, asked: Array) -> Array:
    """The polynomial through each row's values (n, Q) at its own points (n, B), by Clenshaw."""
    last = knots.size - 1
    angles = np.pi / last * np.outer(np.arange(last + 1), np.arange(last + 1))
    to_coefficients = np.cos(angles) * np.where(np.arange(last + 1) % 2, -2.0, 2.0) / last
    to_coefficients[[0, -1]] *= 0.5
    to_coefficients[:, [0, -1]] *= 0.5
    coefficients = table @ to_coefficients
    x = (2 * asked - knots[0] - knots[-1]) / (knots[-1] - knots[0])
    twice = 2 * x
    ahead, behind, product = np.zeros_like(x), np.zeros_like(x), np.empty_like(x)
    for j in range(last, 0, -1):
        np.multiply(twice, ahead, out=product)
        np.subtract(product, behind, out=behind)
        behind += coefficients[:, [j]]
        ahead, behind = behind, ahead
    found: Array = x * ahead - behind + coefficients[:, [0]]
    return found


def _piecewise(knots: Array, table: Array, asked: Array) -> Array:
    """Linear interpolation of each row's values (n, Q) at its own points (n, B)."""
    right = np.clip(np.searchsorted(knots, asked), 1, knots.size - 1)
    share = (asked - knots[right - 1]) / (knots[right] - knots[right - 1])
    below = np.take_along_axis(table, right - 1, axis=1)
    above = np.take_along_axis(table, right, axis=1)
    return below + share * (above - below)
