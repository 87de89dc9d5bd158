"""The designs on which selectors are compared: ours, those of peers' documentation, textbook ones.

Every design says where it comes from and how the response is made. Designs of others are rebuilt
from their documentation; where every column would matter, columns that do not are added, so that
false discoveries can be counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from reproduction.benchmarks.knockoff_designs import NORMAL, Data, Design, chain
from reproduction.benchmarks.ranking_data import liang, sinexp

# Columns of the designs of Friedman.
N_COLUMNS = 100


@dataclass(frozen=True)
class Sourced(Design):
    """A design with its source and its formula."""

    source: str = ""


def scattered(X: np.ndarray, y: np.ndarray, n_true: int, seed: int) -> Data:
    """Columns in random order, of which the first ``n_true`` matter."""
    order = np.random.default_rng([seed, 1]).permutation(X.shape[1])
    return X[:, order], y, order < n_true


# -- ours ----------------------------------------------------------------------------------------


def _sinexp(n: int, d: int = 50) -> Sourced:
    return Sourced(
        f"SinExp, 6 of {d}, n = {n}",
        lambda seed: sinexp(seed, n_samples=n, n_features=d),
        "the paper: y = sin(x1 (x1 + x2)) cos(x3 + x4 x5) sin(e^x5 + e^x6 - x2) and noise",
    )


# -- documentation of hidimstat and knockpy ------------------------------------------------------


def linear_response(
    X: np.ndarray, columns: np.ndarray, snr: float, rng: np.random.Generator
) -> np.ndarray:
    """The sum of the columns, with noise scaled to a ratio of sums of squares."""
    signal = X[:, columns].sum(axis=1)
    noise = rng.standard_normal(signal.size)
    return signal + noise * np.linalg.norm(signal) / (np.linalg.norm(noise) * np.sqrt(snr))


def half_linear(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.permutation(chain(rng, 100, 10, 0.8), axis=1)
    y = np.maximum(linear_response(X, np.arange(2), 4.0, rng), 0.0)
    return scattered(X, y, 2, seed)


def strong_pairs(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    covariance = np.eye(10)
    covariance[0, 4] = covariance[4, 0] = covariance[1, 2] = covariance[2, 1] = 0.85
    X = rng.multivariate_normal(np.zeros(10), covariance, 200)
    y = X[:, :4] @ [2.0, 1.5, 1.5, 1.0] + rng.standard_normal(200)
    return scattered(X, y, 4, seed)


def chain_of_250(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = chain(rng, 400, 250, 0.7)
    columns = rng.choice(250, 25, replace=False)
    return X, linear_response(X, columns, 2.0, rng), np.isin(np.arange(250), columns)


def chain_of_500(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    X = chain(rng, 300, 500, 0.5)
    beta = np.zeros(500)
    beta[rng.choice(500, 50, replace=False)] = rng.choice([-1.0, 1.0], 50)
    return X, X @ beta + rng.standard_normal(300), beta != 0


# -- Friedman ------------------------------------------------------------------------------------


def friedman(make: Callable[..., tuple[np.ndarray, np.ndarray]], noise: float) -> Callable:
    """One of Friedman's functions, and uniform columns that do not matter."""

    def draw(seed: int) -> Data:
        X, y = make(500, noise=noise, random_state=seed)
        n_true = 5 if make is make_friedman1 else 4
        others = np.random.default_rng([seed, 2]).uniform(size=(500, N_COLUMNS - n_true))
        return scattered(np.hstack([X[:, :n_true], others]), y, n_true, seed)

    return draw


# -- designs of comparisons of conditional importances -------------------------------------------


def peak(seed: int, n: int = 500, n_true: int = 10, d: int = 20) -> Data:
    rng = np.random.default_rng(seed)
    radius = 3 * rng.uniform(size=(n, 1))
    direction = rng.standard_normal((n, n_true))
    points = radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    others = points.std() * rng.standard_normal((n, d - n_true))
    y = 25 * np.exp(-0.5 * radius[:, 0] ** 2)
    return scattered(np.hstack([points, others]), y, n_true, seed)


def ewald(seed: int, n: int = 500) -> Data:
    rng = np.random.default_rng(seed)
    x1, x3, x5 = rng.uniform(size=(3, n))
    x2 = x1 + 0.001 * rng.standard_normal(n)
    x4 = x3 + 0.1 * rng.standard_normal(n)
    y = x4 + x5 + x4 * x5 + 0.1 * rng.standard_normal(n)
    return scattered(np.column_stack([x4, x5, x1, x2, x3]), y, 2, seed)


def correlated(seed: int, n: int = 500, rho: float = 0.9) -> Data:
    rng = np.random.default_rng(seed)
    x1, x3, x4, rest = rng.standard_normal((4, n))
    x2 = rho * x1 + np.sqrt(1 - rho**2) * rest
    y = 2 * x1 + x3 + 0.2 * rng.standard_normal(n)
    return scattered(np.column_stack([x1, x3, x2, x4]), y, 2, seed)


def interactions(seed: int, n: int = 500) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    y = 2 * X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(n)
    return scattered(X, y, 3, seed)


LIANG = "Liang, 40 of 500, n = 500"
AGGREGATION = "hidimstat, AR(1) 0.7, 25 of 250, n = 400"
TUTORIAL = "knockpy, AR(1) 0.5, 50 of 500, n = 300"
# The designs of so many columns that some peers, which fit models column by column, take too long.
WIDE = (LIANG, AGGREGATION, TUTORIAL)
FRIEDMAN = tuple(f"Friedman {k}, {5 if k == 1 else 4} of {N_COLUMNS}, n = 500" for k in (1, 2, 3))
UNIFORM = f"and uniform columns that do not matter, {N_COLUMNS} in all"
IMPORTANCES = "simulation of the R package xplainfi, used in its comparison of importances"

DESIGNS = (
    *[_sinexp(n) for n in (125, 250, 500)],
    Sourced(
        LIANG,
        lambda seed: liang(seed, n_samples=500),
        "the paper: ten sums of two columns and of the tanh of two more, random weights, noise; "
        "each pair of columns has correlation 0.5",
    ),
    Sourced(
        "AR(1) 0.5, linear, 15 of 60, n = 300",
        NORMAL[0].draw,
        "our study of knockoffs: effects ±1, noise of half the variance of the signal",
    ),
    Sourced(
        "hidimstat, AR(1) 0.8, ReLU, 2 of 10, n = 100",
        half_linear,
        "hidimstat's example of dCRT with lasso and forest: y = max(0, x1 + x2 + noise), "
        "signal-to-noise 4",
    ),
    Sourced(
        "hidimstat, two pairs, 4 of 10, n = 200",
        strong_pairs,
        "hidimstat's comparison of its methods: y = 2 x1 + 1.5 x2 + 1.5 x3 + x4 + N(0, 1); x2 and "
        "x3, and x1 and a column that does not matter, have correlation 0.85",
    ),
    Sourced(
        AGGREGATION,
        chain_of_250,
        "hidimstat's example of aggregated knockoffs: the sum of the columns, signal-to-noise 2",
    ),
    Sourced(
        TUTORIAL,
        chain_of_500,
        "knockpy's tutorial: effects ±1, noise N(0, 1)",
    ),
    Sourced(
        FRIEDMAN[0],
        friedman(make_friedman1, 1.0),
        f"Friedman (1991), noise N(0, 1), {UNIFORM}",
    ),
    Sourced(
        FRIEDMAN[1],
        friedman(make_friedman2, 125.0),
        f"Friedman (1991), noise N(0, 125²), {UNIFORM}; what x1 and x4 add is small",
    ),
    Sourced(
        FRIEDMAN[2],
        friedman(make_friedman3, 0.1),
        f"Friedman (1991), noise N(0, 0.1²), {UNIFORM}; what x4 adds is small",
    ),
    Sourced(
        "Peak, 10 of 20, n = 500",
        peak,
        "mlbench's peak, used with xplainfi: y = 25 exp(-r²/2), r uniform on (0, 3), ten columns "
        "uniform on the sphere of radius r; ten normal columns of the same variance are added",
    ),
    Sourced(
        "Ewald, 2 of 5, n = 500",
        ewald,
        f"Ewald et al. (2024), {IMPORTANCES}: y = x4 + x5 + x4 x5 + N(0, 0.1²), x4 = x3 + "
        "N(0, 0.1²), x2 = x1 + N(0, 0.001²), others uniform on (0, 1)",
    ),
    Sourced(
        "Correlated, 2 of 4, n = 500",
        correlated,
        f"{IMPORTANCES}: y = 2 x1 + x3 + N(0, 0.2²), x1 and x2 with correlation 0.9",
    ),
    Sourced(
        "Interactions, 3 of 5, n = 500",
        interactions,
        f"{IMPORTANCES}: y = 2 x1 x2 + x3 + N(0, 0.5²), normal columns",
    ),
)
QUICK_DESIGNS = (_sinexp(80, 12),)
