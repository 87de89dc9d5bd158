"""The estimators behind ``sobolev select``, and what they found, variable by variable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sobolev._typing import Array, Mask
from sobolev.convex.estimator import TEST_LANDMARKS
from sobolev.inference.hrt import HRTSelector
from sobolev.inference.trial import HOLDOUT, N_BLOCKS, feature_importances
from sobolev.selection import select
from sobolev.tables import Prepared
from sobolev.tables.encoding import refuse_mixed_groups

UNSEEN = ("unseen in fit", "one class only", "is constant (")


@dataclass(frozen=True)
class Plan:
    """How to select."""

    method: str
    critic: str
    fdr: float
    draws: int
    top: int | None
    scheme: str
    holdout: float | None
    seed: int
    n_jobs: int | None
    tell: Teller | None = None

    def n_fits(self, n_rows: int) -> int:
        """How often the critic is fitted."""
        if self.method == "rank":
            return 1
        blocks = N_BLOCKS if self.method == "hrt" and self.scheme == "forward" else 1
        return self.draws * blocks

    @property
    def threads(self) -> int:
        """Jobs that share memory: all cores unless fewer are asked for."""
        return -1 if self.n_jobs is None else self.n_jobs


@dataclass(frozen=True)
class Found:
    """The answer for each variable, and what was fitted.

    The critic is there if its columns are those of the data, the selector if there were tests.
    """

    table: pd.DataFrame
    settings: dict[str, Any]
    model: Any = None
    selector: Any = None
    partial: bool = False
    remarks: list[str] = field(default_factory=list)


class Teller:
    """Hears of every fit: shows progress and keeps the first ranking.

    Parameters
    ----------
    plan : Plan
    data : Prepared
    step : callable
        Takes a text and how many fits are done.
    """

    def __init__(self, plan: Plan, data: Prepared, step: Callable[[str, float], None]) -> None:
        self.plan, self.data, self.step = plan, data, step
        self.done = 0
        self.first: tuple[Array, int] | None = None

    def __call__(self, model: Any, n_rows: int) -> None:
        """A fit to so many rows has ended."""
        if self.first is None and self.plan.method == "hrt":
            self.first = (feature_importances(model), n_rows)
        total = self.plan.n_fits(len(self.data.X))
        self.done = min(self.done + 1, total)
        if total > 1:
            what = "testing, block" if self.plan.method == "hrt" else "draw"
            self.step(f"{what} {self.done} of {total}", self.done - 0.5)

    def partial(self) -> Found | None:
        """The ranking of the first fit."""
        if self.first is None:
            return None
        importances, n_rows = self.first
        remark = (
            "Interrupted before the tests were done: these are importances of a first fit to "
            f"{n_rows} of {len(self.data.X)} rows, without p-values."
        )
        table = ranked(self.data, importances, top=self.plan.top)
        settings = {"critic": self.plan.critic, "asked_for": self.plan.method}
        return Found(table, settings, partial=True, remarks=[remark])


def find(plan: Plan, data: Prepared) -> Found:
    """Select by the method of the plan.

    Parameters
    ----------
    plan : Plan
    data : Prepared

    Returns
    -------
    Found
    """
    return {"hrt": _hrt, "knockoffs": _knockoffs, "rank": _rank}[plan.method](plan, data)


def _hrt(plan: Plan, data: Prepared) -> Found:
    groups = _groups(data)
    refuse_mixed_groups(data.X, data.variables)
    critic = make_critic(plan, groups, TEST_LANDMARKS)
    selector = HRTSelector(
        telling(critic, plan.tell),
        fdr=plan.fdr,
        scheme=plan.scheme,
        holdout=plan.holdout,
        n_repeats=plan.draws,
        groups=groups,
        random_state=plan.seed,
        n_jobs=plan.threads,
    )
    try:
        selector.fit(data.X, data.y)
    except ValueError as error:
        if not any(text in str(error) for text in UNSEEN):
            raise
        raise ValueError(
            "a class or value of the target is so rare that the first rows do not hold it; merge "
            "rare classes, drop them, or use --method knockoffs."
        ) from error
    first = _first_columns(data)
    table = _table(
        data,
        importance=_shares(data, feature_importances(selector.estimator_)),
        statistic=selector.statistics_[first],
        pvalue=selector.pvalues_[first],
        qvalue=selector.qvalues_[first],
        selected=selector.support_[first],
    )
    tested = int(table["pvalue"].notna().sum())
    settings = _critic_settings(plan, selector.estimator_) | {
        "scheme": plan.scheme,
        "holdout": HOLDOUT[plan.scheme] if plan.holdout is None else plan.holdout,
        "n_repeats": plan.draws,
        "conditional": selector.conditional,
        "statistic": selector.statistic,
        "pvalue": selector.pvalue,
        "procedure": selector.procedure,
        "tested": tested,
        "importance": "of the last fit",
    }
    return Found(_sorted(table, "pvalue", True), settings, selector.estimator_, selector)


def _knockoffs(plan: Plan, data: Prepared) -> Found:
    from sobolev.knockoffs import KnockoffSelector

    processes = plan.n_jobs if plan.draws > 1 else None
    critic = make_critic(plan, None, TEST_LANDMARKS)
    selector = KnockoffSelector(
        critic if processes not in (None, 1) else telling(critic, plan.tell),
        fdr=plan.fdr,
        n_draws=plan.draws,
        groups=_groups(data),
        random_state=plan.seed,
        n_jobs=processes,
    ).fit(data.X, data.y)
    first = _first_columns(data)
    table = _table(
        data,
        importance=_shares(data, selector.feature_importances_),
        statistic=selector.statistics_[first],
        qvalue=selector.qvalues_[first],
        selected=selector.support_[first],
    )
    sampler = type(selector.sampler_).__name__.removesuffix("Knockoffs").lower()
    threshold = np.asarray(selector.threshold_, dtype=float)
    settings = _critic_settings(plan, selector.estimator_) | {
        "sampler": sampler,
        "offset": selector.offset,
        "n_draws": plan.draws,
        "statistic": selector.statistic,
        "threshold": float(threshold) if threshold.ndim == 0 else threshold.tolist(),
        "importance": "beside the knockoffs",
    }
    return Found(_sorted(table, "statistic", False), settings, selector=selector)


def _rank(plan: Plan, data: Prepared) -> Found:
    critic = make_critic(plan, _groups(data), None)
    model = telling(critic, plan.tell).fit(data.X, data.y)
    settings = _critic_settings(plan, model) | {"sic": float(model.sic_)}
    if plan.top is not None:
        settings["top"] = plan.top
    return Found(ranked(data, model.feature_importances_, top=plan.top), settings, model)


def ranked(data: Prepared, importances: Array, top: int | None) -> pd.DataFrame:
    """Importances alone; those above the mean, or the largest, are selected."""
    shares = _shares(data, importances)
    if top is not None and top > shares.size:
        raise ValueError(f"--top {top} is more than the {shares.size} features.")
    return _sorted(
        _table(data, importance=shares, selected=select(shares, top)), "importance", False
    )


def make_critic(plan: Plan, groups: list[list[int]] | None, n_components: int | None) -> Any:
    """The estimator whose importances count."""
    options: dict[str, Any] = {"n_jobs": plan.threads}
    if plan.method == "rank":  # the others seed it as they do in Python
        options["random_state"] = plan.seed
    if plan.critic == "neural":
        from sobolev.neural import NeuralSIC

        return NeuralSIC(feature_groups=groups, **options)
    from sobolev.convex import AutoMap, ConvexSIC

    return ConvexSIC(feature_map=AutoMap(n_components), feature_groups=groups, **options)


def telling(estimator: Any, tell: Teller | None) -> Any:
    """The same estimator, which tells of every fit, as its clones do."""
    if tell is None:
        return estimator
    base = type(estimator)

    def fit(self: Any, X: Any, y: Any) -> Any:
        base.fit(self, X, y)
        tell(self, len(X))
        return self

    kind = type(base.__name__, (base,), {"fit": fit, "__module__": base.__module__})
    return kind(**estimator.get_params(deep=False))


def _groups(data: Prepared) -> list[list[int]] | None:
    return list(data.variables.values()) if data.has_groups else None


def _first_columns(data: Prepared) -> list[int]:
    """Columns of a variable share what was found; the first stands for all."""
    return [columns[0] for columns in data.variables.values()]


def _shares(data: Prepared, importances: Array) -> Array:
    return np.array([importances[columns].sum() for columns in data.variables.values()])


def _table(
    data: Prepared,
    *,
    importance: Array,
    selected: Mask,
    statistic: Array | None = None,
    pvalue: Array | None = None,
    qvalue: Array | None = None,
) -> pd.DataFrame:
    none = np.full(importance.size, np.nan)
    return pd.DataFrame(
        {
            "feature": list(data.variables),
            "kind": [data.kinds[name] for name in data.variables],
            "importance": importance,
            "statistic": none if statistic is None else statistic,
            "pvalue": none if pvalue is None else pvalue,
            "qvalue": none if qvalue is None else qvalue,
            "selected": np.asarray(selected, dtype=bool),
        }
    )


def _sorted(table: pd.DataFrame, column: str, ascending: bool) -> pd.DataFrame:
    """Strongest first: the selected, then by the column, ties by importance."""
    return table.sort_values(
        ["selected", column, "importance"],
        ascending=[False, ascending, False],
        kind="stable",
        ignore_index=True,
    )


def _critic_settings(plan: Plan, model: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"critic": plan.critic}
    for name in ("lam_", "rho", "tau"):
        value = getattr(model, name, None)
        if isinstance(value, (int, float)):
            settings[name.rstrip("_")] = value
    n_components = getattr(getattr(model, "feature_map", None), "n_components", None)
    if n_components is not None:
        settings["n_components"] = n_components
    return settings
