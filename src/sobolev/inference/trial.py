"""One way through the rows of the holdout randomization test: fit, let columns join, test."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.special import log_ndtr, ndtri_exp
from threadpoolctl import threadpool_limits

from sobolev._random import seeded
from sobolev._typing import Array, Index, Mask
from sobolev.conditionals.joint import JointConditional
from sobolev.conditionals.mixed import resolve_conditional
from sobolev.convex.fitting import SMALL_SAMPLE
from sobolev.criterion import parse_groups
from sobolev.inference.null_distribution import NullTable
from sobolev.inference.tables import PredictorEvaluator, joint_table, make_evaluator, null_table
from sobolev.validation import take_rows

if TYPE_CHECKING:
    from sobolev.inference.hrt import HRTSelector

# The forward scheme: blocks, and the share of the rows that they hold.
N_BLOCKS = 5
# Landmarks of the default estimator: beyond them refits take longer and find no more.
N_LANDMARKS = 300
# The first fit has at least so many rows, or half of them.
MIN_TRAIN = 20
# Tests of fewer rows with a critic are so short that threads wait for each other.
THREAD_ROWS = 500
# The shortlist by default: a tenth of the number of rows, but at least this many columns.
MIN_SHORTLIST = 20


@dataclass(frozen=True)
class Forward:
    """Test in blocks, each with a critic refitted to all rows before it."""

    test_size: float = 0.7
    n_blocks: int = N_BLOCKS


@dataclass(frozen=True)
class Split:
    """Test on all held-out rows with one fit."""

    test_size: float = 0.5
    n_blocks: int = 1


def resolve_scheme(scheme: Any) -> Any:
    """The scheme behind its short form."""
    return {"forward": Forward(), "split": Split()}[scheme] if isinstance(scheme, str) else scheme


@dataclass(frozen=True)
class Run:
    """One way through the rows; arrays hold one entry for each unit, NaN where not tested."""

    pvalues: Array
    statistics: Array
    null_means: Array
    null_deviations: Array
    importances: Array
    model: Any


class Trial:
    """Rows, their conditional model, and the units (columns or groups) that are tested."""

    def __init__(self, settings: HRTSelector, X: Array, y: Any, units: list[Index]) -> None:
        self.settings, self.X, self.y, self.units = settings, X, y, units
        self.conditional = resolve_conditional(settings.conditional).fit(X)
        self.alone = np.zeros(X.shape[1], dtype=bool)
        self.alone[[unit[0] for unit in units if unit.size == 1]] = True
        self._joint: dict[int, Any] = {}
        self.tell: Any = lambda importances: None

    def edges(self, given: int | None) -> Index:
        """Where the blocks of test rows begin, and the end."""
        settings, n = self.settings, self.X.shape[0]
        scheme = resolve_scheme(settings.scheme)
        begin = (
            max(round((1 - scheme.test_size) * n), min(MIN_TRAIN, n // 2))
            if given is None
            else given
        )
        n_blocks = min(scheme.n_blocks, n - begin)
        return np.linspace(begin, n, n_blocks + 1).round().astype(np.intp)

    def list_size(self) -> int:
        """How many units the first fit names."""
        asked = self.settings.shortlist
        if asked is None:
            asked = max(MIN_SHORTLIST, self.X.shape[0] // 10)
        return min(int(asked), len(self.units))

    def run(self, given: int | None, rng: np.random.Generator) -> Run:
        """Go through the blocks: refit, let units join, test those that have joined."""
        n, edges = self.X.shape[0], self.edges(given)
        order = rng.permutation(n) if given is None else np.arange(n)
        size = self.list_size()
        scores, rows_seen, statistics, centres, variances = np.zeros((5, len(self.units)))
        joined, moved = np.zeros((2, len(self.units)), dtype=bool)
        first = None
        with closing(self.fits(order, edges[:-1], rng)) as models:
            for model, (begin, end) in zip(models, pairwise(edges), strict=True):
                importances = feature_importances(model)
                self.tell(importances)
                joined |= self._named(importances, size if first is None else -(-size // 2))
                first = importances if first is None else first
                tested, m = np.flatnonzero(joined), end - begin
                results = self.test(model, order[begin:end], tested, rng)
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
        assert first is not None
        with np.errstate(invalid="ignore"):
            pvalues = np.exp(log_ndtr(-scores / np.sqrt(rows_seen)))
            pvalues[joined & ~moved] = 1.0
            return Run(
                pvalues,
                statistics / rows_seen,
                centres / rows_seen,
                np.sqrt(variances) / rows_seen,
                first,
                model,
            )

    def fits(
        self, order: Index, sizes: Index, rng: np.random.Generator
    ) -> Generator[Any, None, None]:
        """The estimator fitted to the first rows, for each number of rows in turn.

        SIC chooses ``lam`` once: the sampling noise that it holds down falls like the number of
        rows grows, and so does ``lam``. Later fits do not start from the last one, which would
        keep out columns that it had set aside, so small ones run in threads beside the tests.
        """
        model = self.first_fit(order[: sizes[0]], rng)
        yield model
        if not self._independent(model):
            for before, n in pairwise(sizes):
                if hasattr(model, "lam_") and "lam" in model.get_params(deep=False):
                    model.set_params(lam=model.lam_ * before / n)
                yield self._fit(model, order[:n])
            return
        lam, models = model.lam_, []
        for before, n in pairwise(sizes):
            lam = lam * before / n
            models.append(copy(model).set_params(lam=lam))
        pool = ThreadPoolExecutor(effective_n_jobs(self.settings.n_jobs))
        try:
            with threadpool_limits(1, user_api="blas"):  # as each fit would set it by itself
                tasks = zip(models, (order[:n] for n in sizes[1:]), strict=True)
                for future in [pool.submit(self._fit, *task) for task in tasks]:
                    yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def first_fit(self, rows: Index, rng: np.random.Generator) -> Any:
        """A seeded copy of the estimator, fitted to the rows."""
        from sobolev.convex import ConvexSIC

        given = self.settings.estimator
        model = seeded(ConvexSIC() if given is None else given, rng)
        if isinstance(model, ConvexSIC) and model.n_components is None:
            model.set_params(n_components=N_LANDMARKS)
        return self._fit(model, rows)

    def _fit(self, model: Any, rows: Index) -> Any:
        return model.fit(self.X[rows], take_rows(self.y, rows))

    def _independent(self, model: Any) -> bool:
        """Whether later fits can run side by side: each on one core, none drawing on another."""
        from sobolev.convex import ConvexSIC

        return (
            isinstance(model, ConvexSIC)
            and self.X.shape[0] <= SMALL_SAMPLE
            and not model.warm_start
            and isinstance(model.random_state, Integral)
            and effective_n_jobs(self.settings.n_jobs) > 1
        )

    def test(
        self, model: Any, rows: Index, tested: Index, rng: np.random.Generator
    ) -> list[tuple[float, float, float, float]]:
        """Log p-value (NaN: flat), statistic, its null mean and deviation, of each unit."""
        evaluator = self.evaluator(model, rows)
        seeds = rng.integers(2**63, size=tested.size)
        threads = rows.size >= THREAD_ROWS or isinstance(evaluator, PredictorEvaluator)
        with threadpool_limits(1, user_api="blas"):
            run = Parallel(n_jobs=self.settings.n_jobs if threads else 1, prefer="threads")
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
        law = (table.statistic, table.mean, table.deviation)
        if table.is_flat:  # the critic of this block does not use the unit
            return np.nan, *law
        if self.settings.pvalue == "saddlepoint":
            return float(np.log(table.saddlepoint())), *law
        return float(np.log(table.montecarlo(self.settings.n_rounds, seed))), *law

    def evaluator(self, model: Any, rows: Index) -> Any:
        """The statistic on the given rows."""
        return make_evaluator(model, self.X[rows], take_rows(self.y, rows), self.settings.statistic)

    def table(self, evaluator: Any, rows: Index, k: int) -> NullTable:
        """The null distribution of unit k on the given rows."""
        unit, X = self.units[k], self.X[rows]
        if unit.size == 1:
            j = int(unit[0])
            return null_table(evaluator, j, X[:, j], *self.conditional.grid(X, j))
        return joint_table(evaluator, unit, X[:, unit], *self._group_law(X, k))

    def _group_law(self, X: Array, k: int) -> tuple[Array, Array]:
        """The joint law of group k: of the user's conditional if it has one."""
        unit = self.units[k]
        if hasattr(self.conditional, "joint_grid"):
            nodes, weights = self.conditional.joint_grid(X, unit)
            return np.asarray(nodes), np.asarray(weights)
        if k not in self._joint:
            self._joint[k] = JointConditional(unit).fit(self.X)
        nodes, weights = self._joint[k].grid(X)
        return nodes, weights

    def _named(self, importances: Array, size: int) -> Mask:
        """The units of largest positive importance."""
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


def make_units(groups: Any, d: int, names: Any) -> list[Index]:
    """The columns of each unit; every column belongs to one."""
    if groups is None:
        return [np.array([j]) for j in range(d)]
    parsed = parse_groups(groups, d, names)
    if parsed.n_memberships.max() > 1:
        column = int(parsed.n_memberships.argmax())
        label = repr(names[column]) if names is not None else column
        raise ValueError(f"column {label} is in two groups; groups that are tested are disjoint.")
    rows = parsed.membership
    return [rows.indices[a:b].astype(np.intp) for a, b in pairwise(rows.indptr)]


def feature_importances(model: Any) -> Array:
    """What a fitted estimator ranks columns by."""
    last = model[-1] if hasattr(model, "steps") else model
    if hasattr(last, "feature_importances_"):
        return np.asarray(last.feature_importances_, dtype=float)
    if hasattr(last, "coef_"):
        return np.abs(np.atleast_2d(last.coef_)).max(axis=0)
    raise TypeError(
        f"{type(last).__name__} has neither feature_importances_ nor coef_, which the shortlist "
        "is taken from."
    )
