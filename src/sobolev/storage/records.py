"""What may be in a file: the one list of the classes that are written and read back.

A new class, such as a feature map and its bound map, is one name in :data:`RECORDS`. An object is
written as its attributes. It is read by its constructor, from the attributes that are named as the
parameters; the other attributes are what a fit has added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from sobolev._standardize import NormalScores, Standardizer
from sobolev.conditionals import ConditionalDiagnostics
from sobolev.convex import (
    ConvexSIC,
    choosing,
    feature_maps,
    fitting,
    parts,
    screening,
    solvers,
)
from sobolev.criterion import Decomposition
from sobolev.inference import HRTSelector, schemes
from sobolev.knockoffs import KnockoffDiagnostics, KnockoffSelector, signs
from sobolev.neural import NeuralSIC, SobolevClassifier, SobolevRegressor, critics, optimizer
from sobolev.neural.arrays import to_numpy
from sobolev.neural.fitting import Design, Ensemble, Moments
from sobolev.neural.objectives import CrossEntropy, ExactSIC, PairedSIC, SquaredError
from sobolev.neural.training import History
from sobolev.responses import Response
from sobolev.skill import Skill
from sobolev.tables.prepared import Prepared
from sobolev.targets import TargetColumn, TargetEncoder

Fields = dict[str, Any]

RECORDS: tuple[type, ...] = (
    # tables, responses and columns
    *(Standardizer, NormalScores, TargetColumn, TargetEncoder, Decomposition),
    # convex
    *(choosing.AutoMap, choosing.BestMap, choosing.Rival, choosing.Contest),
    feature_maps.SideBySide,
    *(feature_maps.LandmarkMap, feature_maps.BoundLandmarkMap),
    *(feature_maps.FourierMap, feature_maps.BoundFourierMap, feature_maps.LinearMap),
    *(feature_maps.PolynomialMap, feature_maps.BoundPolynomialMap),
    *(parts.PartsMap, parts.BoundPartsMap, parts.Splines),
    *(solvers.Alternating, solvers.BlockCoordinateDescent, fitting.Critic, screening.Screening),
    # neural
    *(Design, Moments, History, ExactSIC, PairedSIC, SquaredError, CrossEntropy),
    *(critics.SmallCritic, critics.BigCritic, critics.BilinearCritic, critics.DenseNetwork),
    *(optimizer.Optimizer, optimizer.EarlyStopping, optimizer.Boosting),
    # tests and knockoffs
    *(schemes.Forward, schemes.Split, schemes.MonteCarlo),
    *(ConditionalDiagnostics, KnockoffDiagnostics, signs.NullSigns, Skill),
)
ESTIMATORS: tuple[type, ...] = (
    *(ConvexSIC, NeuralSIC, SobolevRegressor, SobolevClassifier, HRTSelector, KnockoffSelector),
)
# Fitted attributes of the selectors that hold the rows of a fit, or models of any class. A file has
# the results without them.
LEFT_OUT = {"conditional_", "sampler_", "partial_moments_"}


@dataclass(frozen=True)
class Record:
    """How objects of a class become fields, and how they come back."""

    cls: type
    fields: Callable[[Any], Fields]
    build: Callable[[Fields], Any]


def _by_constructor(cls: type) -> Record:
    def build(content: Fields) -> Any:
        given = {name: content.pop(name) for name in signature(cls).parameters if name in content}
        record = cls(**given)
        vars(record).update(content)  # what a fit has added
        return record

    return Record(cls, lambda value: dict(vars(value)), build)


def _ensemble_fields(value: Ensemble) -> Fields:
    own = {k: getattr(value, k) for k in ("design", "sizes", "eta", "moments", "history")}
    state = [to_numpy(p) for p in value.network.state]
    return {"parts": own, "metric": getattr(value.network, "metric", None), "state": state}


def _build_ensemble(content: Fields) -> Ensemble:
    own, state = content["parts"], content["state"]
    if own["design"].spec is None:
        raise ValueError("the critic came from a callable; pass the same callable to load().")
    rngs = [np.random.default_rng(0) for _ in range(own["eta"].shape[0])]
    network = own["design"].build(rngs, *own["sizes"])
    if [tuple(p.shape) for p in network.state] != [a.shape for a in state]:
        raise ValueError("the callable builds a module of another shape than the saved one.")
    return Ensemble(network=network.with_state(state, content["metric"]), **own)


def _prepared_fields(value: Prepared) -> Fields:
    """The table without its rows: names, kinds, places and what was set aside."""
    fields = {name: part for name, part in vars(value).items() if not name.startswith("_")}
    names = [str(name) for name in value.X]
    return fields | {"X": names, "rows": np.empty(0, np.intp), "groups": None, "weights": None}


def _build_prepared(content: Fields) -> Prepared:
    names = pd.DataFrame(columns=content.pop("X"), dtype=float)
    return Prepared(X=names, **content)


def _response_fields(value: Response) -> Fields:
    return vars(value) | {"values": np.empty(0)}


_SPECIAL = (
    Record(parts.Curves, lambda value: {"groups": value.groups}, lambda c: parts.Curves(**c)),
    Record(Ensemble, _ensemble_fields, _build_ensemble),
    Record(Prepared, _prepared_fields, _build_prepared),
    Record(Response, _response_fields, lambda content: Response(**content)),
)
KNOWN: dict[str, Record] = {
    record.cls.__name__: record for record in (*map(_by_constructor, RECORDS), *_SPECIAL)
}
