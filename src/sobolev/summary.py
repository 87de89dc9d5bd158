"""The answer of a fitted selector: a table with one row for each feature, a headline, HTML."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from sobolev._numbers import shown_share
from sobolev._typing import Array, Index, Mask
from sobolev.criterion import disjoint_groups, parse_groups
from sobolev.skill import Skill
from sobolev.validation import feature_names, list_some

# Selected features that a headline names, and rows of the table in a notebook.
MAX_NAMED, MAX_ROWS = 8, 20
# The note of a feature that is not selected because a corrected model of the columns disagrees.
LEFT_OUT = "left out: its p-value was small with the first model of the columns only"
# The note of a covariate begins with this.
ADJUSTED = "adjusted for"


def feature_units(feature_groups: Any, names: list[str]) -> dict[str, Index]:
    """The columns of every feature: single columns, and the groups of columns by their names.

    Overlapping groups have no rows of their own; then every column is a feature.
    """
    single = {name: np.array([j]) for j, name in enumerate(names)}
    if feature_groups is None:
        return single
    overlap = parse_groups(feature_groups, len(names), names).n_memberships.max() > 1
    return single if overlap else disjoint_groups(feature_groups, names)


def without_covariates(table: pd.DataFrame) -> pd.DataFrame:
    """The table of a selector without the covariates, which are neither ranked nor tested."""
    return table[~_adjusted(table)].reset_index(drop=True)


def covariate_names(table: pd.DataFrame) -> list[str]:
    """The covariates in the table of a selector."""
    return [str(name) for name in table.loc[_adjusted(table), "feature"]]


def _adjusted(table: pd.DataFrame) -> pd.Series:
    if "note" not in table:
        return pd.Series(False, index=table.index)
    return table["note"].fillna("").str.startswith(ADJUSTED)


def units_of(selector: Any) -> dict[str, Index]:
    """The columns of every feature of a fitted selector, by name.

    A selector that joins columns has them in ``units_``; otherwise they are its groups.
    """
    found: dict[str, Index] | None = getattr(selector, "units_", None)
    return (
        feature_units(selector.feature_groups, feature_names(selector)) if found is None else found
    )


def headline(table: pd.DataFrame, fdr: float | None, skill: Skill | None = None) -> str:
    """The answer in one sentence, from the table of a selector.

    A ranking whose critic predicts held-out rows no better than chance says that first.

    Parameters
    ----------
    table : DataFrame
        From ``summary()``.
    fdr : float or None
        The level; None for a ranking.
    skill : Skill, optional
        The held-out skill.

    Examples
    --------
    >>> import pandas as pd
    >>> from sobolev.summary import headline
    >>> headline(pd.DataFrame({"feature": ["a", "b"], "selected": [True, False]}), fdr=0.1)
    '1 of 2 features at FDR 10 %: a'
    """
    table = without_covariates(table)
    names = [str(name) for name in table.loc[table["selected"], "feature"]]
    level = "by importance" if fdr is None else f"at FDR {100 * fdr:g} %"
    first = caution(fdr, skill)
    if not names:
        return f"{first}None of {len(table)} features selected {level}"
    return f"{first}{len(names)} of {len(table)} features {level}: {list_some(names, MAX_NAMED)}"


def caution(fdr: float | None, skill: Skill | None) -> str:
    """What a headline says first of a ranking without held-out skill; otherwise nothing."""
    if fdr is not None or skill is None or skill.is_clear:
        return ""
    return f"No skill on held-out rows ({skill.name} {skill.shown}): this order may be chance. "


class SummaryMixin:
    """``summary()`` and the answer in a notebook, for selectors with ``get_support``.

    A selector with evidence overrides :meth:`_evidence`, :meth:`_summary_importances` and
    :meth:`_notes`.
    """

    feature_groups: Any
    feature_importances_: Array
    n_features_in_: int

    def summary(self) -> pd.DataFrame:
        """The answer as a table with one row for each feature, strongest first.

        A group of columns that is selected together has one row.

        Returns
        -------
        DataFrame
            With the columns feature, kind ("numeric", "categorical" or "group"), importance, the
            evidence of the selector (statistic, pvalue and qvalue, or W and qvalue), selected and
            note. The statistic of a test is how much of the response is no longer explained if the
            feature is replaced by draws given the others: the drop of R², for survival times of the
            mean log-likelihood, and for critics without R² of the mean held-out statistic.
        """
        check_is_fitted(self, "feature_importances_")
        units = units_of(self)
        first = np.array([columns[0] for columns in units.values()])
        importances, notes = self._summary_importances(), self._notes()
        shares = np.array([importances[columns].sum() for columns in units.values()])
        evidence = {name: values[first] for name, values in self._evidence().items()}
        table = pd.DataFrame(
            {
                "feature": list(units),
                "kind": self._kinds(units),
                "importance": shares,
                **evidence,
                "selected": self._selected_units(list(units.values()), shares),
                "note": [_joined(notes, c) for c in units.values()],
            }
        )
        # Small p-values and large W, statistics and importances are strong.
        keys = ["selected", *(name for name in ("pvalue", "W") if name in table), "importance"]
        return table.sort_values(
            keys, ascending=[key == "pvalue" for key in keys], kind="stable", ignore_index=True
        )

    def _kinds(self, units: dict[str, Index]) -> list[str]:
        """The kind of each feature."""
        known = self.table_.kinds if hasattr(self, "table_") else {}
        return [
            known.get(name, "numeric" if own.size == 1 else "group") for name, own in units.items()
        ]

    def _evidence(self) -> dict[str, Array]:
        """Columns of the table beside the importances, one entry for each column of X."""
        return {}

    def _selected_units(self, units: list[Index], shares: Array) -> Mask:
        """Whether each feature, with its columns and its importance, is selected."""
        support = self.get_support()  # type: ignore[attr-defined]
        return np.array([support[columns].any() for columns in units])

    def _summary_importances(self) -> Array:
        return self.feature_importances_

    def _notes(self) -> dict[int, str]:
        """Remarks by position of a column."""
        return {}

    def _repr_html_inner(self) -> str:
        """The answer above the parameters, in a notebook and in the gallery."""
        return self._answer_html() + str(super()._repr_html_inner())  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        found: dict[str, Any] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in found:
            found["text/html"] = self._answer_html() + found["text/html"]
        return found

    def _answer_html(self) -> str:
        """The headline and the first rows of the table; nothing before a fit."""
        if not hasattr(self, "feature_importances_"):
            return ""
        table = self.summary()
        shown = table.head(MAX_ROWS)
        more = f"<p>… and {len(table) - MAX_ROWS} more</p>" if len(table) > MAX_ROWS else ""
        skill = getattr(self, "skill_", None)
        title = escape(headline(table, getattr(self, "fdr", None), skill))
        response = getattr(self, "response_", None)
        read = "" if response is None else f"<p>{escape(response.sentence)}</p>"
        read += "" if skill is None else f"<p>{escape(skill.sentence)}</p>"
        return f"<p><strong>{title}</strong></p>{read}{shown.to_html(index=False)}{more}"


def with_missing(notes: dict[int, str], shares: Array) -> dict[int, str]:
    """Notes by position of a column, with the share of missing cells of each column behind."""
    found = dict(notes)
    for j in np.flatnonzero(shares):
        found[int(j)] = "; ".join(
            filter(None, [found.get(int(j)), f"{shown_share(shares[j])} missing"])
        )
    return found


def _joined(notes: dict[int, str], columns: Index) -> str:
    return "; ".join(dict.fromkeys(notes[int(j)] for j in columns if int(j) in notes))
