"""From a fitted selector to everything that the report shows."""

from __future__ import annotations

import warnings as warnings_module
from collections.abc import Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from sobolev.critic import as_critic, unwrapped
from sobolev.report.facts import missing_facts, near_copies, response_facts
from sobolev.report.pictures import draw_pictures
from sobolev.report.result import COLUMNS, SelectionResult
from sobolev.report.versions import versions
from sobolev.responses import Response, response_names, take_response
from sobolev.selection import select
from sobolev.summary import ADJUSTED, covariate_names, units_of, without_covariates
from sobolev.tables import Prepared
from sobolev.validation import feature_names

if TYPE_CHECKING:
    from sobolev.inference import AuditResult

# Short names of the critics of the package; others are called by the names of their classes.
CRITICS = {"ConvexSIC": "convex", "NeuralSIC": "neural"}
INTERRUPTED = (
    "Interrupted before the tests were done: these are importances of a first fit to part of the "
    "rows, without p-values."
)


def make_result(
    selector: Any,
    X: Any,
    y: Any,
    *,
    targets: Iterable[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    warnings: Iterable[str] | None = None,
    seconds: float = 0.0,
    pictures: bool = True,
    audit: AuditResult | None = None,
) -> SelectionResult:
    """Everything that the report shows, from a fitted selector and its data.

    Parameters
    ----------
    selector : fitted HRTSelector, KnockoffSelector, ConvexSIC or NeuralSIC
        An HRTSelector whose fit was interrupted after its first fit gives a ranking.
    X, y : array-like, DataFrame or Prepared
        The data that it was fitted to; a prepared table has its own y.
    targets : iterable of str, optional
        Names of the responses; by default those that y has.
    kinds : mapping, optional
        Kinds of features by name, such as "categorical"; by default those of ``summary()``.
    data : mapping, optional
        More facts about the table, such as ``{"name": "cells.csv", "set_aside": [("id",
        "identifier")]}``.
    settings : mapping, optional
        More settings of the run, such as ``{"seed": 0}``.
    warnings : iterable of str, optional
        Warnings of the run; by default the misfits that the selector has found.
    seconds : float, default=0
        Wall time of the run.
    pictures : bool, default=True
        Whether to draw pictures.
    audit : AuditResult, optional
        What :func:`sobolev.audit` measured for this selector on these columns.

    Returns
    -------
    SelectionResult
    """
    prepared = X if isinstance(X, Prepared) else getattr(selector, "table_", None)
    if prepared is not None:
        selector = getattr(selector, "encoded_", selector)
        X, y, kinds = prepared.X, prepared.response, kinds or prepared.kinds
        data = prepared.facts | dict(data or {})
    is_partial = not hasattr(selector, "support_")
    X, y = take_response(X, y)
    response = y if isinstance(y, Response) else getattr(selector, "response_", None)
    if response is not None:
        y = response.read(y)
    table = _ranking(selector) if is_partial else selector.summary()
    adjusted = covariate_names(table)
    table = without_covariates(table).rename(columns={"W": "statistic"})
    method = "hrt" if "pvalue" in table else "knockoffs" if "statistic" in table else "rank"
    if kinds is not None:
        table["kind"] = table["feature"].map(kinds).fillna(table["kind"])
    facts = {"name": "data", "rows": len(X), "columns": np.shape(X)[1], "features": len(table)}
    if response is not None:
        facts["response"] = response.description
    facts |= _profile(selector, X, response, prepared, table)
    found = {"hrt": _hrt, "knockoffs": _knockoffs, "rank": _rank}[method](selector)
    said = list(_misfits(selector, prepared) if warnings is None else warnings)
    if is_partial:
        said.insert(0, INTERRUPTED)
    seed = getattr(selector, "random_state", None)
    if isinstance(seed, Integral):
        found["seed"] = int(seed)
    given = {"adjust": adjusted} if adjusted else {}
    result = SelectionResult(
        method=method,
        targets=response_names(y) if targets is None else tuple(targets),
        fdr=None if method == "rank" else float(selector.fdr),
        table=table.reindex(columns=list(COLUMNS)),
        data=facts | dict(data or {}) | ({"partial": True} if is_partial else {}),
        settings=found | dict(settings or {}) | given,
        versions=versions(),
        warnings=(*said,),
        seconds=seconds,
        audit=audit,
        skill=None if is_partial else getattr(selector, "skill_", None),
    )
    if pictures and not is_partial:
        shown = X if prepared is None else prepared
        result = replace(result, pictures=draw_pictures(selector, shown, y, result))
    return result


def _ranking(selector: Any) -> pd.DataFrame:
    """The importances of a first fit, if the tests were interrupted."""
    units = units_of(selector)
    shares = np.array([selector.feature_importances_[c].sum() for c in units.values()])
    kinds = ["numeric" if c.size == 1 else "group" for c in units.values()]
    notes = [ADJUSTED if np.isin(c, selector.adjusted_).any() else "" for c in units.values()]
    table = {"feature": list(units), "kind": kinds, "importance": shares, "note": notes}
    found = pd.DataFrame(table | {"selected": select(shares)})
    return found.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _profile(
    selector: Any, X: Any, response: Response | None, prepared: Prepared | None, table: pd.DataFrame
) -> dict[str, Any]:
    """Classes or quartiles of the response, missing cells, and near copies."""
    values = np.asarray(X, dtype=float)
    if prepared is not None:
        shares = dict(prepared.missing)
    else:
        names = feature_names(selector)
        shares = dict(zip(names, np.isnan(values).mean(axis=0).tolist(), strict=True))
    found = response_facts(response) | missing_facts(shares)
    clusters = near_copies(values, units_of(selector), [str(name) for name in table["feature"]])
    return found | ({"clusters": clusters} if clusters else {})


def _hrt(selector: Any) -> dict[str, Any]:
    from sobolev.inference.schemes import resolve_scheme

    scheme = resolve_scheme(selector.scheme)
    return _critic(selector.estimator_) | {
        "scheme": _name(scheme).lower(),
        "test_size": scheme.test_size,
        "n_repeats": selector.n_repeats_,
        "conditional": _name(selector.conditional),
        "statistic": selector.statistic,
        "pvalue": _name(selector.pvalue).lower(),
        "procedure": selector.procedure,
        "n_tests": selector.n_tests_,
        "importance": "of the last fit",
    }


def _knockoffs(selector: Any) -> dict[str, Any]:
    critic = {"critic": "the lasso path"}
    if selector.statistic != "lasso_path":
        critic = _critic(selector.estimator_)
    return critic | {
        "sampler": _name(selector.sampler_).removesuffix("Knockoffs").lower(),
        "offset": selector.offset,
        "n_draws": selector.n_draws,
        "statistic": selector.statistic,
        "threshold": np.asarray(selector.threshold_, dtype=float).tolist(),
        "importance": "beside the knockoffs",
    }


def _rank(selector: Any) -> dict[str, Any]:
    if not hasattr(selector, "support_"):  # the tests were interrupted
        return {"critic": _critic(selector.estimator)["critic"], "asked_for": _name(selector)}
    found = _critic(selector) | {"sic": float(selector.sic_)}
    if selector.n_features_to_select is not None:
        found["top"] = selector.n_features_to_select
    return found


def _critic(estimator: Any) -> dict[str, Any]:
    """The short name of a critic and its main parameters."""
    if estimator is None:
        return {"critic": "convex"}
    model = unwrapped(as_critic(estimator))
    found: dict[str, Any] = {"critic": CRITICS.get(_name(model), _name(model))}
    for parameter in ("lam_", "rho", "tau_"):
        value = getattr(model, parameter, None)
        if isinstance(value, Real):
            found[parameter.rstrip("_")] = float(value)
    return found


def _name(part: Any) -> str:
    """The name of a part, which may be given by its short form."""
    return part if isinstance(part, str) else type(part).__name__


def _misfits(selector: Any, prepared: Prepared | None) -> list[str]:
    """What was done to the table, and features that a corrected model left out."""
    notes = [] if prepared is None else prepared.notes
    with warnings_module.catch_warnings(record=True, action="always") as caught:
        if hasattr(selector, "warn") and hasattr(selector, "support_"):  # it was not interrupted
            selector.warn()
    return [*notes, *(sentence(str(item.message)) for item in caught)]


def sentence(text: str) -> str:
    """A message with a capital letter at the beginning."""
    return text[:1].upper() + text[1:]
