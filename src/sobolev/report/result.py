"""What a selection found, as the report, the table on screen and the files show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sobolev.report.drawings import Drawing

# The version of the layout of result.json; raised when a field changes its meaning or goes.
SCHEMA = 1
COLUMNS = ("feature", "kind", "importance", "statistic", "pvalue", "qvalue", "selected")


@dataclass(frozen=True)
class Picture:
    """A figure of the report, or several side by side, with what they show in words."""

    title: str
    caption: str
    figure: Figure | Drawing | tuple[Figure | Drawing, ...]


@dataclass(frozen=True)
class SelectionResult:
    """What was selected, from what, and how.

    Attributes
    ----------
    method : {"hrt", "knockoffs", "rank"}
        The p-values of "hrt", the W of "knockoffs", or importances alone.
    targets : tuple of str
        The response columns.
    fdr : float or None
        The level; None for "rank".
    table : DataFrame
        One row for each variable that could be selected, strongest first, with the columns
        ``COLUMNS``: its name; "numeric" or "categorical"; its importance; the test statistic or W;
        p-value and q-value (missing where there is none); whether it is selected.
    data : mapping
        "name", "rows", "rows_dropped", "columns", "set_aside" (a list of column and reason), and
        what else describes the table.
    settings : mapping
        What to repeat the run with: critic, conditional model or sampler, seed and so on.
    versions : mapping
        Of the package and what it stands on.
    warnings : tuple of str
        In plain words.
    seconds : float
        Wall time.
    pictures : tuple of Picture
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

    @property
    def selected(self) -> list[str]:
        """Names of the selected variables, strongest first."""
        return [str(name) for name in self.table.loc[self.table["selected"], "feature"]]

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        total, names = len(self.table), self.selected
        level = "by importance" if self.fdr is None else f"at FDR {100 * self.fdr:g} %"
        if not names:
            return f"None of {total} features selected {level}"
        listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        return f"{len(names)} of {total} features {level}: {listed}"
