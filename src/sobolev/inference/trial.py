"""One repetition of the holdout randomization test: fit, let columns join, test (Alg. 4)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import log_ndtr, ndtri_exp
from threadpoolctl import threadpool_limits

from sobolev._random import seeded
from sobolev._threads import SMALL_SAMPLE
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional
from sobolev.conditionals.joint import JointConditional
from sobolev.critic import as_critic
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.replacements import joint_table, null_table
from sobolev.inference.schemes import Forward, MonteCarlo, Saddlepoint, Split, block_edges
from sobolev.validation import take_rows

# Tests of fewer rows are so short that threads only wait for each other.
THREAD_ROWS = 500
# The default shortlist: a tenth of the number of rows, but at least this many columns.
MIN_SHORTLIST = 20


@dataclass(frozen=True)
class Run:
    """One repetition; arrays hold one entry for each unit, NaN where it was not tested."""

    pvalues: Array
    statistics: Array
    null_means: Array
    null_deviations: Array
    critic: Any


@dataclass(frozen=True)
class Trial:
    """Checked rows, their conditional model, and the units (columns or groups) to test.

    Attributes
    ----------
    X, y
        All rows. Row numbers travel from here, not copies of rows.
    units : list of array of int
        The columns of each unit.
    estimator : estimator
        Unfitted.
    conditional : Conditional
        Fitted to X.
    scheme, pvalue, statistic, shortlist, n_jobs
        As resolved by :class:`~sobolev.HRTSelector`.
    """

    X: Array
    y: Any
    units: list[Index]
    estimator: Any
    conditional: Conditional
    scheme: Split | Forward
    pvalue: Saddlepoint | MonteCarlo
    statistic: str
    shortlist: int | None = None
    n_jobs: int | None = None
    _joint: dict[int, JointConditional] = field(default_factory=dict)

    @property
    def list_size(self) -> int:
        """Number of units that the first fit puts on the shortlist (Alg. 4, the cutoff K)."""
        asked = self.shortlist
        if asked is None:
            asked = max(MIN_SHORTLIST, self.X.shape[0] // 10)
        return min(int(asked), len(self.units))

    def run(
        self, n_train: int | None, rng: np.random.Generator, heard: Callable[[Any], None]
    ) -> Run:
        """Go through the blocks: refit, let units join, test those that have joined.

        Parameters
        ----------
        n_train : int or None
            The first rows are for training, in their order; None draws an order.
        rng : numpy.random.Generator
        heard : callable
            Called with the critic after every fit.
        """
        n = self.X.shape[0]
        edges = block_edges(self.scheme, n, n_train)
        order = rng.permutation(n) if n_train is None else np.arange(n)
        size = self.list_size
        scores, rows_seen, statistics, centres, variances = np.zeros((5, len(self.units)))
        joined, moved = np.zeros((2, len(self.units)), dtype=bool)
        with closing(self.fits(order, edges[:-1], rng)) as critics:
            for critic, (begin, end) in zip(critics, pairwise(edges), strict=True):
                heard(critic)
                joined |= self._largest(critic.feature_importances_, size)
                size = -(-self.list_size // 2)  # later fits add from the upper half of the list
                tested, m = np.flatnonzero(joined), end - begin
                results = self.test(critic, order[begin:end], tested, rng)
                logs, means, null_means, null_deviations = np.array(results).reshape(-1, 4).T
                # A flat table says nothing: a score of zero for its share is conservative, where
                # the -8 of its p-value 1 would drown the other blocks.
                flat = np.isnan(logs)
                logs = np.where(flat, np.log(0.5), np.minimum(logs, -1e-15))
                scores[tested] -= np.sqrt(m) * ndtri_exp(logs)
                moved[tested] |= ~flat
                statistics[tested] += m * means
                centres[tested] += m * null_means
                variances[tested] += (m * null_deviations) ** 2
                rows_seen[tested] += m
        with np.errstate(invalid="ignore"):
            pvalues = np.exp(log_ndtr(-scores / np.sqrt(rows_seen)))  # Stouffer
            pvalues[joined & ~moved] = 1.0
            return Run(
                pvalues,
                statistics / rows_seen,
                centres / rows_seen,
                np.sqrt(variances) / rows_seen,
                critic,
            )

    def fits(
        self, order: Index, sizes: Index, rng: np.random.Generator
    ) -> Generator[Any, None, None]:
        """Critics fitted to the first rows, for each number of rows in turn.

        SIC chooses ``lam`` once. Later fits do not start from the last one, which would keep out
        columns that it had set aside, so small ones run in threads beside the tests.
        """
        critic = self.first_fit(order[: sizes[0]], rng)
        yield critic
        threads = effective_n_jobs(self.n_jobs)
        if not (critic.independent_refits and self.X.shape[0] <= SMALL_SAMPLE and threads > 1):
            for before, n in pairwise(sizes):
                critic = self._fit(critic.for_more_rows(before, n), order[:n])
                yield critic
            return
        critics = []
        for before, n in pairwise(sizes):  # all before the first fit, which forgets lam_
            critic = critic.for_more_rows(before, n)
            critics.append(critic)
        pool = ThreadPoolExecutor(threads)
        try:
            with threadpool_limits(1, user_api="blas"):  # as each fit would set it by itself
                tasks = zip(critics, (order[:n] for n in sizes[1:]), strict=True)
                for future in [pool.submit(self._fit, *task) for task in tasks]:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def first_fit(self, rows: Index, rng: np.random.Generator) -> Any:
        """A seeded copy of the estimator, fitted to the rows (Alg. 4, SIC on the training rows)."""
        return self._fit(as_critic(seeded(self.estimator, rng)).for_testing(), rows)

    def _fit(self, critic: Any, rows: Index) -> Any:
        return critic.fit_validated(self.X[rows], take_rows(self.y, rows))

    def test(
        self, critic: Any, rows: Index, tested: Index, rng: np.random.Generator
    ) -> list[tuple[float, float, float, float]]:
        """Log p-value (NaN: flat), statistic, its null mean and deviation, for each unit."""
        evaluator = self.evaluator(critic, rows)
        seeds = rng.integers(2**63, size=tested.size)
        threads = rows.size >= THREAD_ROWS or evaluator.slow
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.n_jobs if threads else 1, prefer="threads")
            return list(
                run(
                    delayed(self._test_one)(evaluator, rows, int(k), int(seed))
                    for k, seed in zip(tested, seeds, strict=True)
                )
            )

    def _test_one(
        self, evaluator: Any, rows: Index, k: int, seed: int
    ) -> tuple[float, float, float, float]:
        table = self.table(evaluator, rows, k)
        # The critic of this block does not use the unit if its table is flat.
        log_pvalue = np.nan if table.is_flat else float(np.log(self.pvalue(table, seed)))
        return log_pvalue, table.statistic, table.mean, table.deviation

    def evaluator(self, critic: Any, rows: Index) -> Any:
        """The statistic on the given rows."""
        return critic.evaluator(self.X[rows], take_rows(self.y, rows), self.statistic)

    def table(self, evaluator: Any, rows: Index, k: int) -> NullTable:
        """The null distribution of unit k on the given rows (Alg. 4, the simulated columns)."""
        unit, X = self.units[k], self.X[rows]
        if unit.size == 1:
            j = int(unit[0])
            return null_table(evaluator, j, X[:, j], *self.conditional.distribution(X, j, rows))
        if self.conditional.joint_grid is not None:
            nodes, weights = map(np.asarray, self.conditional.joint_grid(X, unit))
        else:
            if k not in self._joint:
                self._joint[k] = JointConditional(unit).fit(self.X)
            nodes, weights = self._joint[k].grid(X, rows)
        return joint_table(evaluator, unit, X[:, unit], nodes, weights)

    def _largest(self, importances: Array, size: int) -> Mask:
        """The units of largest positive importance (Alg. 4, IndexTopK)."""
        share = np.array([importances[unit].sum() for unit in self.units])
        named = np.zeros(share.size, dtype=bool)
        named[np.argsort(-share, kind="stable")[:size]] = True
        return named & (share > 0)

    def spread(self, per_unit: Array) -> Array:
        """From units to columns."""
        found = np.full(self.X.shape[1], np.nan)
        for unit, value in zip(self.units, per_unit, strict=True):
            found[unit] = value
        return found
