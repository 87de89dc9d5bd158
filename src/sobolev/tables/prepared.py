"""A table that is ready for the estimators, and the way back from its columns to the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from sobolev._typing import Array, Index
from sobolev.conditionals.completing import completions
from sobolev.responses import Response


@dataclass(frozen=True)
class Prepared:
    """A table that is ready for the estimators.

    Attributes
    ----------
    X : DataFrame of float
        Numeric columns and indicators of categories, with NaN for missing cells.
    response : Response or None
        The response as it was read; None if there is none.
    targets : tuple of str
        Names of the responses.
    variables : mapping
        Positions in X of every variable that is ranked or tested.
    kinds : mapping
        Type of each variable, "numeric" or "categorical".
    set_aside : list of (column, reason)
        Columns that are not used.
    notes : list of str
        Changes to the data, in sentences.
    rows_read, columns_read : int
        Number of rows and columns of the file.
    inputs : tuple of str
        Names of the columns that might be features, also of those that were set aside.
    places : mapping
        Positions in X of every column that is used.
    rows : array of int
        Positions of the rows that are used.
    missing : mapping
        Share of missing cells of the columns that have some.
    categories : mapping
        The categories of columns that have them. Two have one column in X, which is 1 for the
        second.
    groups, weights : array or None
        Subject and weight of each row.
    adjusted : tuple of str
        The variables that are covariates: neither ranked nor tested.
    is_named : bool
        Whether the inputs came with names.
    n_train : int or None
        Number of first rows that decided which columns are used; None if the response did not
        take part in that.
    """

    X: pd.DataFrame
    response: Response | None
    targets: tuple[str, ...]
    variables: Mapping[str, list[int]]
    kinds: Mapping[str, str]
    set_aside: list[tuple[str, str]]
    notes: list[str]
    rows_read: int
    columns_read: int
    inputs: tuple[str, ...]
    places: Mapping[str, list[int]]
    rows: Index
    missing: Mapping[str, float]
    categories: Mapping[str, tuple[str, ...]]
    groups: Any = None
    weights: Any = None
    adjusted: tuple[str, ...] = ()
    is_named: bool = True
    n_train: int | None = None

    @property
    def y(self) -> Any:
        """Values of the response: numbers, labels, or a table of both; None if there is none."""
        return None if self.response is None else self.response.values

    @property
    def is_plain(self) -> bool:
        """Whether X is the table as it came: numbers, and nothing left out."""
        return (
            self.rows_read == len(self.X)
            and list(self.X) == list(self.inputs)
            and set(self.kinds.values()) == {"numeric"}
        )

    def with_response(self, response: Response) -> Prepared:
        """The same table with another response."""
        return replace(self, response=response, targets=response.names)

    def by_input(self, values: Any, empty: Any) -> Any:
        """Values of the columns of X, along the last axis, as values of the inputs.

        A category has the value of its first indicator, inputs that were set aside are ``empty``.
        """
        values = np.asarray(values)
        found = np.full((*values.shape[:-1], len(self.inputs)), empty, dtype=values.dtype)
        for k, name in enumerate(self.inputs):
            if name in self.places:
                found[..., k] = values[..., self.places[name][0]]
        return found

    def sums(self, values: Array) -> Array:
        """Sums over the columns of X that stand for each input."""
        return np.array([values[self.places.get(name, [])].sum() for name in self.inputs])

    def columns_of(self, asked: Iterable[int | str]) -> list[int]:
        """Positions in X of inputs, given by position or name."""
        found = []
        for each in asked:
            name = self.inputs[int(each)] if isinstance(each, Integral) else str(each)
            if name not in self.places:
                reasons = dict(self.set_aside)
                why = f"was set aside: {reasons[name]}" if name in reasons else "is not a column"
                raise ValueError(f"{name!r} {why}.")
            found += self.places[name]
        return found

    def inputs_of(self, columns: Index) -> Index:
        """Positions of the inputs that columns of X stand for."""
        return np.unique(self._input_of[np.asarray(columns, dtype=np.intp)])

    @cached_property
    def _input_of(self) -> Index:
        """Position of the input of each column of X."""
        found = np.empty(self.X.shape[1], dtype=np.intp)
        for k, name in enumerate(self.inputs):
            found[self.places.get(name, [])] = k
        return found

    @property
    def has_groups(self) -> bool:
        """Whether some variable is not one column of X with the same name."""
        names = list(self.X)
        return any([names[j] for j in own] != [name] for name, own in self.variables.items())

    def filled(self, *, with_response: bool = True) -> pd.DataFrame:
        """X with draws in the place of missing cells, given the other columns and the response."""
        if not len(self.X):
            raise ValueError(
                "the table has no rows: a selector that was loaded from a file has results only; "
                "pass a prepared table, sobolev.tables.prepare(X, y), in the place of X."
            )
        if not self.X.isna().to_numpy().any():
            return self.X
        sets = [np.array(own) for own in self.variables.values() if len(own) > 1]
        y = self.y if with_response else None
        (found,) = completions(self.X.to_numpy(), y, [np.random.default_rng(0)], sets=sets)
        return pd.DataFrame(found, columns=self.X.columns)

    @property
    def facts(self) -> dict[str, Any]:
        """What a report says about the table."""
        return {
            "rows_dropped": self.rows_read - len(self.X),
            "columns": self.columns_read,
            "categorical": sum(kind == "categorical" for kind in self.kinds.values()),
            "set_aside": [{"column": name, "reason": reason} for name, reason in self.set_aside],
        }

    @property
    def beside(self) -> dict[str, Any]:
        """What ``fit`` gets beside X and y."""
        found = {"groups": self.groups, "sample_weight": self.weights}
        return {name: value for name, value in found.items() if value is not None}


def of_numbers(X: Array, names: Sequence[str], response: Response, groups: Any = None) -> Prepared:
    """A table of numbers that is used as it is: every column is a feature, none is set aside.

    Parameters
    ----------
    X : array of shape (n, d)
    names : sequence of str
        Names of the columns.
    response : Response
    groups : array of shape (n,), optional
        The subject of each row.

    Returns
    -------
    Prepared
    """
    n, d = X.shape
    places = {name: [j] for j, name in enumerate(names)}
    shares = np.isnan(X).mean(axis=0)
    return Prepared(
        X=pd.DataFrame(X, columns=list(names)),
        response=response,
        targets=response.names,
        variables=places,
        kinds=dict.fromkeys(names, "numeric"),
        set_aside=[],
        notes=[],
        rows_read=n,
        columns_read=d,
        inputs=tuple(names),
        places=places,
        rows=np.arange(n),
        missing={name: float(share) for name, share in zip(names, shares, strict=True) if share},
        categories={},
        groups=groups,
    )
