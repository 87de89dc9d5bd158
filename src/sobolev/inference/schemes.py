"""How the holdout randomization test uses the rows, and how it finds a p-value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sobolev._parameters import check_count, check_fraction, check_option
from sobolev._typing import Index
from sobolev.inference.null_distribution import NullTable

# The first fit has at least this many rows, or half of them.
MIN_TRAIN = 20


@dataclass(frozen=True)
class Split:
    """One fit, tested on all held-out rows (Alg. 4).

    Parameters
    ----------
    test_size : float, default=0.5
        Share of rows that are held out, in (0, 0.9].
    """

    test_size: float = 0.5
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
    """

    test_size: float = 0.7
    n_blocks: int = 5


@dataclass(frozen=True)
class Saddlepoint:
    """P-values by the saddlepoint approximation: no Monte Carlo error and no smallest value."""

    smallest: ClassVar[float] = 0.0

    def __call__(self, table: NullTable, seed: int) -> float:
        """The p-value of a table."""
        return table.saddlepoint()


@dataclass(frozen=True)
class MonteCarlo:
    """P-values by random draws from the null distribution (Alg. 4, the R rounds).

    Parameters
    ----------
    n_draws : int, default=1000
        Number of Monte Carlo draws.
    """

    n_draws: int = 1000

    @property
    def smallest(self) -> float:
        """The smallest p-value that the draws can give."""
        return 1 / (self.n_draws + 1)

    def __call__(self, table: NullTable, seed: int) -> float:
        """The p-value of a table."""
        return table.montecarlo(self.n_draws, seed)


SCHEMES: dict[str, Split | Forward] = {"forward": Forward(), "split": Split()}
PVALUES: dict[str, Saddlepoint | MonteCarlo] = {
    "saddlepoint": Saddlepoint(),
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


def resolve_pvalue(pvalue: Any) -> Saddlepoint | MonteCarlo:
    """The method that a parameter stands for: a name, or :class:`MonteCarlo`."""
    if isinstance(pvalue, str):
        check_option("pvalue", pvalue, PVALUES)
        return PVALUES[pvalue]
    if not isinstance(pvalue, (Saddlepoint, MonteCarlo)):
        raise TypeError(
            f'pvalue must be "saddlepoint", "montecarlo" or MonteCarlo; got {pvalue!r}.'
        )
    if isinstance(pvalue, MonteCarlo):
        check_count("n_draws", pvalue.n_draws)
    return pvalue


def block_edges(scheme: Split | Forward, n: int, n_train: int | None) -> Index:
    """Where the blocks of held-out rows begin, and the number of rows.

    Parameters
    ----------
    scheme : Split or Forward
    n : int
        Number of rows.
    n_train : int or None
        Number of training rows, if the caller gave held-out rows.
    """
    begin = n_train
    if begin is None:
        begin = max(round((1 - scheme.test_size) * n), min(MIN_TRAIN, n // 2))
    n_blocks = min(scheme.n_blocks, n - begin)
    return np.linspace(begin, n, n_blocks + 1).round().astype(np.intp)
