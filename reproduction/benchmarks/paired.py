"""Comparisons of methods on the same data sets, and the seeds of the published ones."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from reproduction.engine import Record
from reproduction.markdown import mean_and_error

# The published comparisons have seeds from here on. Lower ones have served to choose defaults (the
# study ``tuning`` has those from 1000) or were looked at while methods were built.
FIRST_SEED = 5000
# Every published cell has at least this many data sets, and this many if the method is fast.
LEAST, MANY = 20, 50


@dataclass(frozen=True)
class Difference:
    """The mean difference over common data sets, its standard error, and their number."""

    mean: float
    error: float
    count: int

    @property
    def side(self) -> str:
        """On which side of zero it is by more than two standard errors."""
        # Rounding of equal shares must not look like a difference.
        if abs(self.mean) <= 2 * self.error + 1e-9:
            return "level"
        return "ahead" if self.mean > 0 else "behind"

    def __str__(self) -> str:
        return f"{self.mean:+.3f} ± {self.error:.3f} ({self.count})"


def difference(
    ours: Mapping[Hashable, float], theirs: Mapping[Hashable, float]
) -> Difference | None:
    """Ours less theirs by data set; None if fewer than two data sets are common."""
    common = [key for key in ours if key in theirs]
    if len(common) < 2:
        return None
    values = [ours[key] - theirs[key] for key in common]
    return Difference(*mean_and_error(values), len(common))


def published(rows: Sequence[Record], reference: str) -> list[Record]:
    """The rows on the seeds of publication.

    While the reference has fewer than ``LEAST`` of these seeds, earlier rows are shown if there are
    any; the two are never mixed.
    """
    new = [row for row in rows if row["seed"] >= FIRST_SEED]
    old = [row for row in rows if row["seed"] < FIRST_SEED]
    seeds = {row["seed"] for row in new if row["method"] == reference}
    return new if len(seeds) >= LEAST or not old else old
