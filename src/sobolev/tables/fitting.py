"""Selectors that are fitted to a prepared table, and answer by the columns that came in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from sobolev.criterion import disjoint_groups, parse_columns
from sobolev.tables.prepared import Prepared


class TableMixin:
    """Fit to a prepared table.

    The selector itself is fitted to numbers, by ``_fit_numbers``. For a prepared table a copy,
    ``encoded_``, is fitted to the encoded columns, and what it finds is stored by input column.

    Attributes
    ----------
    table_ : Prepared
        The table as it was prepared, if it was not one of numbers only.
    encoded_ : selector
        The copy that was fitted to ``table_.X``.
    """

    table_: Prepared
    encoded_: Any

    # Attributes with one entry for each column, and their entry for columns that were set aside;
    # and attributes that are those of the encoded columns.
    _by_column: ClassVar[Mapping[str, Any]] = {}
    _as_encoded: ClassVar[tuple[str, ...]] = ()
    feature_groups: Any
    adjust: Any

    def encoded(self, data: Prepared) -> Self:
        """An unfitted copy for the encoded columns of a prepared table.

        Parameters
        ----------
        data : Prepared
            The columns of one variable are tested together; groups and covariates of the selector
            are inputs.

        Returns
        -------
        selector
        """
        groups: dict[str, Any] = {}
        names = list(data.inputs)
        if self.feature_groups is not None:
            for name, own in disjoint_groups(self.feature_groups, names).items():
                columns = [j for k in own for j in data.places.get(names[k], ())]
                groups |= {name: columns} if columns else {}
        elif data.has_groups:
            groups = dict(data.variables)
        copy: Any = self._with_groups(groups or None)
        covariates = [j for name in data.adjusted for j in data.variables[name]]
        own = parse_columns(self.adjust, len(names), names, "adjust")
        covariates += data.columns_of(own.tolist())
        found: Self = copy.set_params(adjust=sorted(set(covariates)) or None)
        return found

    def _with_groups(self, groups: dict[str, Any] | None) -> Self:
        copy: Self = clone(self)
        return copy.set_params(feature_groups=groups)  # type: ignore[attr-defined]

    def _fit_table(self, data: Prepared) -> Self:
        """Fit the copy and store what it finds by input."""
        if data.response is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        fitted: Any = self.encoded(data)
        self.encoded_, self.table_ = fitted, data
        with warnings.catch_warnings(record=True, action="always") as caught:
            fitted._fit_numbers(data.X, data.response, **data.beside)
        for item in caught:  # as warnings of this fit
            warnings.warn(item.message, item.category, stacklevel=3)
        self.n_features_in_ = len(data.inputs)
        self.__dict__.pop("feature_names_in_", None)
        if data.is_named:
            self.feature_names_in_ = np.asarray(data.inputs, dtype=object)
        for name, empty in self._by_column.items():
            setattr(self, name, data.by_input(getattr(fitted, name), empty))
        for name in self._as_encoded:
            setattr(self, name, getattr(fitted, name))
        self.feature_importances_ = data.sums(fitted.feature_importances_)
        self.units_ = {name: data.inputs_of(own) for name, own in fitted.units_.items()}
        self.adjusted_ = data.inputs_of(fitted.adjusted_)
        self.units_ |= {data.inputs[k]: np.array([k]) for k in self._set_aside()}
        return self

    def _forget_table(self) -> None:
        """Forget the table of an earlier fit."""
        for name in ("table_", "encoded_"):
            self.__dict__.pop(name, None)

    def _set_aside(self) -> dict[int, str]:
        """Why inputs were set aside, by position."""
        reasons = dict(self.table_.set_aside)
        return {k: reasons[n] for k, n in enumerate(self.table_.inputs) if n in reasons}

    def _notes_by_input(self) -> dict[int, str]:
        """The remarks of the copy, by position of an input."""
        found: dict[int, list[str]] = {}
        for j, note in self.encoded_._notes().items():
            for k in self.table_.inputs_of(np.array([j])):
                found.setdefault(int(k), []).append(note)
        joined = {k: "; ".join(dict.fromkeys(notes)) for k, notes in found.items()}
        return joined | {k: f"set aside: {reason}" for k, reason in self._set_aside().items()}
