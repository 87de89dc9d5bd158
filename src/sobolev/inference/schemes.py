"""How the holdout randomization test uses the rows, and how it finds a p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._typing import Array, Index
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.studentised import rubin_pvalue, studentised_pvalue

# The first fit has at least this many rows, or half of them.
MIN_TRAIN = 20


@dataclass(frozen=True)
class Split:
    """One fit, tested on all held-out rows (Alg. 4).

    Parameters
    ----------
    test_size : float, default=0.5
        Share of rows that are held out, in (0, 0.9].
    shuffle : bool, default=True
        Whether to divide the rows at random; False holds out the last rows, for time series.
    """

    test_size: float = 0.5
    shuffle: bool = True
    n_blocks: ClassVar[int] = 1


@dataclass(frozen=True)
class Forward:
    """Held-out rows in blocks, each tested by a critic that is refitted to all rows before it.

    Parameters
    ----------
    test_size : float, default=0.7
        Share of rows that are held out, in (0, 0.9].
    n_blocks : int, default=5
        Number of blocks.
    shuffle : bool, default=True
        Whether to put the rows in random order; False keeps their order, for time series.
    """

    test_size: float = 0.7
    n_blocks: int = 5
    shuffle: bool = True


@dataclass(frozen=True)
class BlockTest:
    """What a block of held-out rows says of one unit.

    Attributes
    ----------
    log_pvalue : float
        Logarithm of the p-value given the conditional distribution; NaN if it was not asked for.
    differences : array of shape (m,)
        Statistic of each row less its conditional mean, summed over the rows of a subject.
    deviation : float
        Root mean square of the standard deviations that the conditional model gives them.
    """

    log_pvalue: float
    differences: Array
    deviation: float
    draws: Array | None = None


class PValue:
    """Base of the ways to find a p-value.

    A block is tested by :meth:`of_table` as soon as it is reached; :meth:`combined` makes one
    p-value of all blocks of a unit.
    """

    smallest: float = 0.0
    # Whether the whole conditional distribution must be right, not only its mean.
    needs_distribution: ClassVar[bool] = False
    # Whether units that would be selected are tested with a corrected model of the columns, too.
    looks_twice: ClassVar[bool] = False

    def of_table(self, table: NullTable, seed: int) -> float:
        """The p-value of a block given the conditional distribution; NaN if it is not used."""
        return np.nan

    def combined(self, blocks: Sequence[BlockTest]) -> float:
        """The p-value of all blocks, of which there is at least one."""
        raise NotImplementedError


@dataclass(frozen=True)
class Saddlepoint(PValue):
    """P-values by the saddlepoint approximation: no Monte Carlo error and no smallest value.

    Valid if the conditional distribution of the column is right.
    """

    needs_distribution: ClassVar[bool] = True

    def of_table(self, table: NullTable, seed: int) -> float:
        """The p-value of a block given the conditional distribution."""
        return table.saddlepoint()

    def combined(self, blocks: Sequence[BlockTest]) -> float:
        """Stouffer's combination of the blocks, weighted by the root of their numbers of rows."""
        sizes = np.array([block.differences.size for block in blocks])
        logs = np.minimum([block.log_pvalue for block in blocks], -1e-15)
        score = -np.sqrt(sizes) @ ndtri_exp(logs) / np.sqrt(sizes.sum())
        return float(np.exp(log_ndtr(-score)))


@dataclass(frozen=True)
class MonteCarlo(Saddlepoint):
    """P-values by random draws from the null distribution (Alg. 4, the R rounds).

    Valid if the conditional distribution of the column is right.

    Parameters
    ----------
    n_draws : int, default=1000
        Number of Monte Carlo draws.
    """

    n_draws: int = 1000

    @property
    def smallest(self) -> float:  # type: ignore[override]
        """The smallest p-value that the draws can give."""
        return 1 / (self.n_draws + 1)

    def of_table(self, table: NullTable, seed: int) -> float:
        """The p-value of a block given the conditional distribution."""
        return table.montecarlo(self.n_draws, seed)


@dataclass(frozen=True)
class Studentised(PValue):
    """P-values from the spread of the statistic that the held-out rows themselves show.

    Valid if the conditional mean of the statistic is right, whatever the spread and shape of the
    conditional distribution.
    """

    def combined(self, blocks: Sequence[BlockTest]) -> float:
        """Tail of the studentised sum of all differences.

        The differences of a block are divided by the deviation that the conditional model gives
        them, which does not depend on the column, so that late blocks with larger critics do not
        decide alone.
        """
        scaled = [block.differences / max(block.deviation, 1e-300) for block in blocks]
        return studentised_pvalue(np.concatenate(scaled))


@dataclass(frozen=True)
class Robust(Saddlepoint):
    """The larger of the saddlepoint and the studentised p-value: valid if either is.

    What would be selected is tested with a corrected model of the columns, too, see
    :class:`~sobolev.conditionals.derived.CorrectedConditional`: a p-value above 0.05 counts.
    """

    needs_distribution: ClassVar[bool] = False
    looks_twice: ClassVar[bool] = True

    def combined(self, blocks: Sequence[BlockTest]) -> float:
        """The larger of the two p-values."""
        return max(super().combined(blocks), Studentised().combined(blocks))


@dataclass(frozen=True)
class Imputed(Robust):
    """P-values for tables with missing cells, of which there are several draws.

    The largest of three p-values: the two of :class:`Robust`, of which the saddlepoint p-value is
    that of the first draw in the rows in which the column is not missing, and the studentised one
    that of the differences averaged over the draws; and that of Rubin's rules, whose variance adds
    the variance between draws, since what is not known of the models of the missing cells is an
    error that all rows share.
    """

    def combined(self, blocks: Sequence[BlockTest]) -> float:
        """The largest of the three p-values."""
        scaled = [b.draws / max(b.deviation, 1e-300) for b in blocks if b.draws is not None]
        return max(super().combined(blocks), rubin_pvalue(np.concatenate(scaled, axis=1)))


SCHEMES: dict[str, Split | Forward] = {"forward": Forward(), "split": Split()}
PVALUES: dict[str, PValue] = {
    "robust": Robust(),
    "saddlepoint": Saddlepoint(),
    "studentised": Studentised(),
    "montecarlo": MonteCarlo(),
}


def resolve_scheme(scheme: Any) -> Split | Forward:
    """The scheme that a parameter stands for: a name, :class:`Forward` or :class:`Split`."""
    if isinstance(scheme, str):
        check_option("scheme", scheme, SCHEMES)
        return SCHEMES[scheme]
    if not isinstance(scheme, (Split, Forward)):
        raise TypeError(f'scheme must be "forward", "split", Forward or Split; got {scheme!r}.')
    check_fraction("test_size", scheme.test_size, low=0.0, high=0.9)
    check_count("n_blocks", scheme.n_blocks)
    return scheme


def resolve_pvalue(pvalue: Any) -> PValue:
    """The method that a parameter stands for: a name, or an object such as :class:`MonteCarlo`."""
    if isinstance(pvalue, str):
        check_option("pvalue", pvalue, PVALUES)
        return PVALUES[pvalue]
    if not isinstance(pvalue, PValue):
        options = ", ".join(f'"{name}"' for name in PVALUES)
        raise TypeError(f"pvalue must be {options} or MonteCarlo; got {pvalue!r}.")
    if isinstance(pvalue, MonteCarlo):
        check_count("n_draws", pvalue.n_draws)
    return pvalue


def block_edges(
    scheme: Split | Forward, n: int, n_train: int | None, rows_each: float = 1.0
) -> Index:
    """Where the blocks of held-out rows begin, and the number of rows.

    Parameters
    ----------
    scheme : Split or Forward
    n : int
        Number of rows, or of subjects.
    n_train : int or None
        Number of training rows, if the caller gave held-out rows.
    rows_each : float, default=1.0
        Mean number of rows of a subject.
    """
    begin = n_train
    if begin is None:
        begin = max(
            round((1 - scheme.test_size) * n), min(int(np.ceil(MIN_TRAIN / rows_each)), n // 2)
        )
    n_blocks = min(scheme.n_blocks, n - begin)
    return np.linspace(begin, n, n_blocks + 1).round().astype(np.intp)
