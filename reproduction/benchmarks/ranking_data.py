"""The data sets of the ranking benchmark. Columns are scattered in every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1

from reproduction.benchmarks.paired import LEAST, MANY
from sobolev.datasets import load_plx4720, make_liang, make_sinexp, make_xor

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class DataSet:
    """A data set: how to draw it and how often.

    ``draw(seed, **options)`` returns X, y and the mask of the true columns. Where the truth is not
    known, the mask marks the column ``wanted``, whose rank is recorded.
    """

    name: str
    draw: Callable[..., Drawn]
    options: dict[str, Any]
    seeds: int = MANY
    trees: int = 500
    wanted: str | None = None

    @property
    def measure(self) -> str:
        """What a record holds of a ranking."""
        return "tpr" if self.wanted is None else "rank"


def sinexp(seed: int, **options: Any) -> Drawn:
    return _unpack(make_sinexp(**options, shuffle_features=True, random_state=seed))


def sinexp_labels(seed: int, *, n_classes: int, **options: Any) -> Drawn:
    """SinExp with text labels by quantiles of the response."""
    X, y, support = sinexp(seed, **options)
    levels = np.quantile(y, np.arange(1, n_classes) / n_classes)
    labels = np.array([f"level {c}" for c in range(n_classes)])
    return X, labels[np.searchsorted(levels, y)], support


def liang(seed: int, **options: Any) -> Drawn:
    return _unpack(make_liang(**options, shuffle_features=True, random_state=seed))


def xor(seed: int, **options: Any) -> Drawn:
    return _unpack(make_xor(**options, shuffle_features=True, random_state=seed))


def friedman(seed: int, **options: Any) -> Drawn:
    X, y = make_friedman1(**options, noise=1.0, random_state=seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    return X[:, order], y, order < 5


def plx4720(seed: int, **options: Any) -> Drawn:
    """Four fifths of the rows; the mask marks the mutation of BRAF, the drug's target."""
    found = load_plx4720(**options)
    n = found.target.size
    rows = np.random.default_rng(seed).choice(n, 4 * n // 5, replace=False)
    return found.data[rows], found.target[rows], found.feature_names == "BRAF_mut"


def _unpack(bunch: Any) -> Drawn:
    return bunch.data, bunch.target, bunch.support


DATA = (
    DataSet("SinExp, n = 125", sinexp, {"n_samples": 125}),
    DataSet("SinExp, n = 250", sinexp, {"n_samples": 250}),
    DataSet("SinExp, n = 500", sinexp, {"n_samples": 500}),
    DataSet("SinExp, n = 500, 2 classes", sinexp_labels, {"n_samples": 500, "n_classes": 2}),
    DataSet("SinExp, n = 500, 5 classes", sinexp_labels, {"n_samples": 500, "n_classes": 5}),
    DataSet("Liang, 40 of 500, n = 500", liang, {"n_samples": 500}, LEAST),
    DataSet("XOR, 2 of 200, n = 1000", xor, {"n_samples": 1000, "n_features": 200}, LEAST),
    DataSet(
        "XOR, 2 of 1000, n = 1000", xor, {"n_samples": 1000, "n_features": 1000}, LEAST, trees=100
    ),
    DataSet("Friedman 1, 5 of 200, n = 500", friedman, {"n_samples": 500, "n_features": 200}),
    DataSet(
        "plx4720, 287 of 359 rows",
        plx4720,
        {"min_correlation": 0.0},
        LEAST,
        trees=100,
        wanted="BRAF_mut",
    ),
)

QUICK = (
    DataSet("SinExp, n = 125", sinexp, {"n_samples": 125}, 2, trees=50),
    DataSet(
        "SinExp, n = 125, 2 classes", sinexp_labels, {"n_samples": 125, "n_classes": 2}, 2, trees=50
    ),
    DataSet(
        "Liang, 12 of 60, n = 150",
        liang,
        {"n_samples": 150, "n_features": 60, "n_informative": 12},
        seeds=2,
        trees=50,
    ),
    DataSet("XOR, 2 of 30, n = 300", xor, {"n_samples": 300, "n_features": 30}, 2, trees=50),
    DataSet(
        "Friedman 1, 5 of 30, n = 150", friedman, {"n_samples": 150, "n_features": 30}, 2, trees=50
    ),
    DataSet("plx4720, screened", plx4720, {"min_correlation": 0.3}, 1, trees=20, wanted="BRAF_mut"),
)
