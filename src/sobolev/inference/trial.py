"""One repetition of the holdout randomization test: fit, let columns join, test (Alg. 4)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from types import NoneType
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.model_selection import PredefinedSplit
from threadpoolctl import threadpool_limits

from sobolev._random import seeded
from sobolev._threads import SMALL_SAMPLE
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.base import Conditional, fold_numbers
from sobolev.critic import as_critic, unwrapped
from sobolev.inference import replacements
from sobolev.inference.hazards import Hazard, hazard_model
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.schemes import BlockTest, Forward, PValue, Split, block_edges
from sobolev.targets import as_columns
from sobolev.validation import take_rows

# Tests of fewer rows are so short that threads only wait for each other.
THREAD_ROWS = 500
# The default shortlist: a tenth of the number of rows, but at least this many columns.
MIN_SHORTLIST = 20
# Later fits may add one column for every so many of the shortlist.
LATE_SHARE = 4
# Number of folds of estimators that leave it open.
DEFAULT_FOLDS = 5

# A block (None: a flat table), the statistic, its mean and its deviation under the null hypothesis.
Tested = tuple[BlockTest | None, float, float, float]


@dataclass(frozen=True)
class Block:
    """A critic, the rows that it was fitted to, and the rows that it tests."""

    critic: Any
    train: Index
    rows: Index


@dataclass(frozen=True)
class Run:
    """One repetition; arrays hold one entry for each unit, NaN where it was not tested.

    ``joined`` is the number of the first block that tested a unit.
    """

    pvalues: Array
    statistics: Array
    null_means: Array
    null_deviations: Array
    critic: Any
    fits: list[Block]
    joined: Index


def with_every_class(order: Index, n_first: int, y: Any, groups: Index | None = None) -> Index:
    """Bring rows of classes that the first rows lack to the front.

    Parameters
    ----------
    order : array of int
        Order of the rows, or of the subjects if ``groups`` is given.
    n_first : int
        Number of first rows or subjects.
    y : array or DataFrame
        The response; columns of floats have no classes.
    groups : array of int, optional
        Number of the subject of each row.

    Returns
    -------
    array of int
        The same order if the first rows have all classes. Otherwise the first row of each class
        that they lack comes first, so the last of them are moved behind.
    """
    members = np.arange(len(y)) if groups is None else groups
    for column in as_columns(y):
        if column.dtype.kind == "f":
            continue
        codes = np.unique(column, return_inverse=True)[1]
        has = np.zeros((order.size, codes.max() + 1), dtype=bool)
        has[members, codes] = True
        for _ in range(has.shape[1]):  # a row that is moved behind may be the last of its class
            lacking = np.flatnonzero(~has[order[:n_first]].any(axis=0))[:n_first]
            ahead = dict.fromkeys(int(np.argmax(has[order, k])) for k in lacking)
            front = np.array(list(ahead), dtype=np.intp)
            order = np.concatenate([order[front], np.delete(order, front)])
    return order


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
    groups : array of int or None
        Number of the subject of each row, from 0 on, if rows belong together.
    weights : array or None
        Weights of the rows, of mean one.
    happened : array of bool or None
        Whether the event happened, if y holds the log-rank scores of survival times.
    gaps : array of bool, shape (n, d), or None
        Cells of X that were missing and hold draws.
    draws : tuple of (array, Conditional)
        Further tables, with other draws in the gaps, and the models fitted to them.
    """

    X: Array
    y: Any
    units: list[Index]
    estimator: Any
    conditional: Conditional
    scheme: Split | Forward
    pvalue: PValue
    statistic: str
    shortlist: int | None = None
    n_jobs: int | None = None
    groups: Index | None = None
    weights: Array | None = None
    happened: Mask | None = None
    gaps: Mask | None = None
    draws: tuple[tuple[Array, Conditional], ...] = ()

    @property
    def list_size(self) -> int:
        """Number of units that the first fit puts on the shortlist (Alg. 4, the cutoff K)."""
        asked = self.shortlist
        if asked is None:
            asked = max(MIN_SHORTLIST, self.X.shape[0] // 10)
        return min(int(asked), len(self.units))

    @property
    def n_tests(self) -> int:
        """Largest number of units that are tested, fixed before any held-out row is seen.

        The multiple testing procedure counts this number: how many units join depends on rows that
        also make p-values.
        """
        if self.scheme.n_blocks == 1:
            return self.list_size
        return min(self.list_size + -(-self.list_size // LATE_SHARE), len(self.units))

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
        order, edges = self.division(n_train, rng)
        rows_seen, statistics, centres, variances = np.zeros((4, len(self.units)))
        joined, since = np.zeros(len(self.units), dtype=bool), np.zeros(len(self.units), np.intp)
        blocks: list[list[BlockTest]] = [[] for _ in self.units]
        fits: list[Block] = []
        with closing(self.fits(order, edges[:-1], rng)) as critics:
            for critic, (begin, end) in zip(critics, pairwise(edges), strict=True):
                heard(critic)
                new = self._joining(critic.feature_importances_, joined)
                joined, since[new] = joined | new, len(fits)
                fits.append(Block(critic, order[:begin], order[begin:end]))
                tested, m = np.flatnonzero(joined), end - begin
                results = self.test(fits[-1], tested, rng)
                for k, (block, statistic, centre, deviation) in zip(tested, results, strict=True):
                    if block is not None:  # a flat table says nothing
                        blocks[k].append(block)
                    statistics[k] += m * statistic
                    centres[k] += m * centre
                    variances[k] += (m * deviation) ** 2
                rows_seen[tested] += m
        pvalues = np.full(len(self.units), np.nan)
        for k in np.flatnonzero(joined):
            pvalues[k] = self.pvalue.combined(blocks[k]) if blocks[k] else 1.0
        with np.errstate(invalid="ignore"):
            return Run(
                pvalues,
                statistics / rows_seen,
                centres / rows_seen,
                np.sqrt(variances) / rows_seen,
                critic,
                fits,
                since,
            )

    def division(self, n_train: int | None, rng: np.random.Generator) -> tuple[Index, Index]:
        """Order of the rows, and where the blocks begin in it; subjects are not divided.

        If rows are in random order, the first fit sees every class, as far as there is room. The
        order then depends on y, which does no harm: p-values are valid given y.
        """
        n, edges = self.X.shape[0], self._edges(n_train)
        if self.groups is None:
            if n_train is not None or not self.scheme.shuffle:
                return np.arange(n), edges
            return with_every_class(rng.permutation(n), int(edges[0]), self.y), edges
        sizes = np.bincount(self.groups)
        subjects = np.arange(sizes.size)
        if self.scheme.shuffle:
            shuffled = rng.permutation(sizes.size)
            subjects = with_every_class(shuffled, int(edges[0]), self.y, self.groups)
        place = np.empty(sizes.size, dtype=np.intp)
        place[subjects] = np.arange(sizes.size)
        ends = np.concatenate([[0], np.cumsum(sizes[subjects])])
        return np.argsort(place[self.groups], kind="stable"), ends[edges]

    def n_blocks(self, n_train: int | None) -> int:
        """Number of blocks of held-out rows."""
        return self._edges(n_train).size - 1

    def _edges(self, n_train: int | None) -> Index:
        """Where blocks begin, counted in rows or in subjects."""
        n = self.X.shape[0]
        if self.groups is None:
            return block_edges(self.scheme, n, n_train)
        n_subjects = int(self.groups.max()) + 1
        return block_edges(self.scheme, n_subjects, None, rows_each=n / n_subjects)

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
        X, y = self.X[rows], take_rows(self.y, rows)
        if self.groups is not None:
            critic = with_whole_groups(critic, self.groups[rows])
        if self.weights is None:
            return critic.fit_validated(X, y)
        return critic.fit_validated(X, y, self.weights[rows] / self.weights[rows].sum())

    def test(self, block: Block, tested: Index, rng: np.random.Generator) -> list[Tested]:
        """The block (None: a flat table), statistic, its null mean and deviation, by unit."""
        evaluators = self.evaluators(block)
        seeds = rng.integers(2**63, size=tested.size)
        threads = block.rows.size >= THREAD_ROWS or evaluators[0].slow
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.n_jobs if threads else 1, prefer="threads")
            return list(
                run(
                    delayed(self.test_one)(evaluators, block, int(k), int(seed))
                    for k, seed in zip(tested, seeds, strict=True)
                )
            )

    def test_one(self, evaluators: Sequence[Any], block: Block, k: int, seed: int) -> Tested:
        """The test of unit k on the rows of a block, with the mean of all draws of missing cells.

        Rows in which the unit itself is missing say nothing.
        """
        tables = [
            version.null_table(evaluator, block, k)
            for version, evaluator in zip(self.versions, evaluators, strict=True)
        ]
        found = None
        if not all(table.is_flat for table in tables):  # otherwise the critic leaves out the unit
            log_pvalue = float(np.log(self._pvalue_of(tables[0], block.rows, k, seed)))
            draws = np.array([self._differences(table, block.rows, k) for table in tables])
            differences, n = draws.mean(axis=0), block.rows.size
            spread = tables[0].deviation * np.sqrt(n) * np.sqrt(n / differences.size)
            found = BlockTest(log_pvalue, differences, spread, draws)
        moments = np.mean([(t.statistic, t.mean, t.deviation) for t in tables], axis=0)
        return found, float(moments[0]), float(moments[1]), float(moments[2])

    @property
    def versions(self) -> list[Trial]:
        """The trial with each draw of the missing cells."""
        return [self, *[replace(self, X=X, conditional=c, draws=()) for X, c in self.draws]]

    def evaluators(self, block: Block) -> list[Any]:
        """The statistic on the rows of a block, for each version."""
        return [version.evaluator(block) for version in self.versions]

    def null_table(self, evaluator: Any, block: Block, k: int) -> NullTable:
        """The null distribution of unit k on the rows of a block (Alg. 4, the simulated columns).

        The statistic is weighted, and of the residual of the response if this was asked for.
        """
        if self.statistic == "residual":  # of the response given the other columns
            y = take_rows(self.y, block.train)
            predicted = block.critic.predict_without(
                self.units[k], self.X[block.train], y, self.X[block.rows]
            )
            evaluator = evaluator.residual(predicted)
        table = self.table(evaluator, block.rows, k)
        return table if self.weights is None else table.weighted(self.weights[block.rows])

    def _pvalue_of(self, table: NullTable, rows: Index, k: int, seed: int) -> float:
        """The p-value given the conditional distribution, of rows that have values of unit k."""
        if self.gaps is None:
            return self.pvalue.of_table(table, seed)
        seen = ~self.gaps[rows][:, self.units[k]].any(axis=1)
        table = NullTable(table.values[seen], table.weights[seen], table.observed[seen])
        return 0.5 if table.is_flat else self.pvalue.of_table(table, seed)

    def _differences(self, table: NullTable, rows: Index, k: int) -> Array:
        """Differences between the statistic and its conditional mean, summed over subjects."""
        differences = table.observed - table.centres
        if self.gaps is not None:
            differences[self.gaps[rows][:, self.units[k]].any(axis=1)] = 0.0
        if self.groups is None:
            return differences
        _, subject = np.unique(self.groups[rows], return_inverse=True)
        return np.asarray(np.bincount(subject, weights=differences), dtype=float)

    def with_model(self, conditional: Conditional, rows: Mask | None = None) -> Trial:
        """The trial with another conditional model, and one draw of missing cells.

        With ``rows``, which tables with gaps have, other rows say nothing.
        """
        gaps = self.gaps if self.gaps is None or rows is None else self.gaps | ~rows[:, None]
        return replace(self, conditional=conditional, draws=(), gaps=gaps)

    def again(
        self, run: Run, units: Sequence[int], conditional: Conditional, rows: Mask | None = None
    ) -> list[float]:
        """P-values of units with another model, see :meth:`with_model`, and the same critics."""
        other = self.with_model(conditional, rows)
        evaluators = [self.evaluator(block) for block in run.fits]

        def pvalue(k: int) -> float:
            tests = [
                other.test_one([evaluator], block, k, seed=0)[0]
                for evaluator, block in list(zip(evaluators, run.fits, strict=True))[
                    run.joined[k] :
                ]
            ]
            blocks = [block for block in tests if block is not None]
            return self.pvalue.combined(blocks) if blocks else 1.0

        return [pvalue(k) for k in units]

    def complete_rows(self, importances: Array) -> Mask | None:
        """Rows in which important columns are not missing; None for tables without gaps.

        A draw in the place of such a cell may leave to other columns what the cell would explain.
        Columns are taken in the order of their importance, as long as half of the rows remain and
        no column loses its variation, as one that tells which cells are missing would.
        """
        if self.gaps is None:
            return None
        kept = np.ones(len(self.X), dtype=bool)
        for j in np.argsort(-importances, kind="stable"):
            seen = kept & ~self.gaps[:, j]
            enough = 2 * importances[j] * importances.size >= 1 and 2 * seen.sum() >= seen.size
            if enough and np.array_equal(self._varying(seen), self._varying(kept)):
                kept = seen
        return kept

    def _varying(self, rows: Mask) -> Mask:
        """The columns that are not constant in some rows."""
        found: Mask = np.ptp(self.X[rows], axis=0) > 0
        return found

    def evaluator(self, block: Block) -> Any:
        """The statistic on the rows of a block."""
        if self.happened is not None and self.statistic == "risk":
            found = hazard_model(
                block.critic, self.X, self.y, self.happened, block.train, block.rows
            )
            if found is not None:
                return found
        statistic = "witness" if self.statistic == "residual" else self.statistic
        return block.critic.evaluator(self.X[block.rows], take_rows(self.y, block.rows), statistic)

    def table(self, evaluator: Any, rows: Index, k: int) -> NullTable:
        """Values of the statistic with the columns of unit k replaced, on the given rows."""
        if isinstance(evaluator, Hazard):
            return evaluator.of(self.table(evaluator.predicted, rows, k))
        unit, X = self.units[k], self.X[rows]
        if unit.size == 1:
            j = int(unit[0])
            return replacements.null_table(
                evaluator, j, X[:, j], *self.conditional.distribution(X, j, rows)
            )
        nodes, weights = self.conditional.joint_distribution(X, unit, rows)
        return replacements.joint_table(evaluator, unit, X[:, unit], nodes, weights)

    def _joining(self, importances: Array, joined: Mask) -> Mask:
        """The units of largest positive importance that join (Alg. 4, IndexTopK).

        The first fit fills the shortlist. Later fits add units from its upper half, the most
        important first, as long as there are fewer than ``n_tests``.
        """
        share = np.array([importances[unit].sum() for unit in self.units])
        is_first = not joined.any()
        size = self.list_size if is_first else -(-self.list_size // 2)
        top = np.argsort(-share, kind="stable")[:size]
        new = top[(share[top] > 0) & ~joined[top]]
        found = np.zeros(share.size, dtype=bool)
        found[new[: self.n_tests - np.count_nonzero(joined)]] = True
        return found

    def spread(self, per_unit: Array) -> Array:
        """From units to columns."""
        found = np.full(self.X.shape[1], np.nan)
        for unit, value in zip(self.units, per_unit, strict=True):
            found[unit] = value
        return found


class WholeGroups(PredefinedSplit):
    """Splits into ``k`` folds, at most as many as there are groups, that divide no group."""

    def __init__(self, groups: Index, k: int) -> None:
        self.k = k
        labels = np.unique(groups, return_inverse=True)[1]
        super().__init__(fold_numbers(groups.size, k, 0, labels))


def with_whole_groups(critic: Any, groups: Index) -> Any:
    """The critic with folds that divide no group, if it has a number of folds, ``cv``."""
    estimator = unwrapped(critic)
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    for name, value in parameters.items():
        if name.split("__")[-1] == "cv" and isinstance(value, (int, NoneType, WholeGroups)):
            k = value.k if isinstance(value, WholeGroups) else value or DEFAULT_FOLDS
            estimator.set_params(**{name: WholeGroups(groups, k)})
    return critic
