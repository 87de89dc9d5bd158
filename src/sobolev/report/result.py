"""What a selector found, as the report, the table on screen and the files show it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from sobolev.skill import Skill
from sobolev.summary import headline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sobolev.inference import AuditResult

# Version of the layout of result.json; raised when a field changes its meaning or goes.
SCHEMA = 3
COLUMNS = ("feature", "kind", "importance", "statistic", "pvalue", "qvalue", "selected", "note")


@dataclass(frozen=True)
class Picture:
    """A figure of the report, or several side by side, with what they show in words.

    Attributes
    ----------
    title, caption : str
    figure : Figure or tuple of Figure
    names : tuple of (str, str)
        Name of each of several figures, and a remark behind it; empty if they have none.
    key : tuple of (str, str)
        Labels and their colours, if the figures share them.
    """

    title: str
    caption: str
    figure: Figure | tuple[Figure, ...]
    names: tuple[tuple[str, str], ...] = ()
    key: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class SelectionResult:
    """What was selected, from what, and how.

    Attributes
    ----------
    method : {"hrt", "knockoffs", "rank"}
        The p-values of "hrt", the W of "knockoffs", or importances alone.
    targets : tuple of str
        Names of the responses.
    fdr : float or None
        The level; None for "rank".
    table : DataFrame
        One row for each feature, strongest first, without covariates, with the columns ``COLUMNS``:
        its name; its kind, such as "numeric", "categorical" or "group"; its importance; the
        drop of R² (or of another mean statistic) if the feature is replaced by draws, or W; p-value
        and q-value (missing where there is none); whether it is selected; a note.
    data : mapping
        Facts about the table: "name", "rows", "rows_dropped", "columns", "set_aside" (a list of
        column and reason), "classes" (number of rows of each), "missing_cells" (share of each
        column that has some), "clusters" (features that are nearly copies, and their largest rank
        correlation), and others.
    settings : mapping
        What is needed to repeat the run: critic, conditional model or sampler, seed and so on.
    versions : mapping
        Versions of the packages used.
    warnings : tuple of str
    seconds : float
        Wall time of the run, zero if unknown.
    pictures : tuple of Picture
    audit : AuditResult or None
        The audit of the selector on these columns, if one was run.
    skill : Skill or None
        How well held-out rows are predicted, if it was measured.
    """

    method: str
    targets: tuple[str, ...]
    fdr: float | None
    table: pd.DataFrame
    data: Mapping[str, Any]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
    pictures: tuple[Picture, ...] = field(default=(), repr=False)
    audit: AuditResult | None = None
    skill: Skill | None = None

    @property
    def selected(self) -> list[str]:
        """Names of the selected features, strongest first."""
        return [str(name) for name in self.table.loc[self.table["selected"], "feature"]]

    @property
    def answer(self) -> str:
        """The answer in one sentence."""
        return headline(self.table, self.fdr, self.skill)

    @property
    def headline(self) -> str:
        """The answer and, if there was an audit, its verdict."""
        if self.audit is None:
            return self.answer
        return f"{self.answer}. {self.audit.verdict.rstrip('.')}"


def plain(value: Any) -> Any:
    """Values that JSON can hold: NumPy numbers become numbers, other objects text."""
    if hasattr(value, "tolist"):  # arrays, numbers of NumPy, columns
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, (int, float)) else str(value)
