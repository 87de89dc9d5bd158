"""The designs on which the holdout randomization test is measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reproduction.benchmarks.knockoff_designs import Data, Design, chain
from sobolev.datasets import make_liang, make_sinexp


def _synthetic(make: Callable[..., object], n: int) -> Callable[[int], Data]:
    def draw(seed: int) -> Data:
        data = make(n_samples=2 * n, random_state=seed)
        return data.data, data.target, data.support

    return draw


def _with_response(
    make: Callable[[np.random.Generator, int], np.ndarray], n: int
) -> Callable[[int], Data]:
    """Columns of a kind, and a response to four of them: a wave, a product, a line."""

    def draw(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X = make(rng, 2 * n)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        signal = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2] + Z[:, 3]
        y = signal + signal.std() * rng.standard_normal(2 * n)
        return X, y, np.arange(X.shape[1]) < 4

    return draw


def _equicorrelated(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    return np.sqrt(0.5) * (rng.standard_normal((n, 1)) + rng.standard_normal((n, d)))


def _chain(rng: np.random.Generator, n: int) -> np.ndarray:
    """AR(1) with correlation 0.9, columns in random order."""
    X = chain(rng, n, 200, 0.9)
    return X[:, rng.permutation(200)]


def _binary(rng: np.random.Generator, n: int) -> np.ndarray:
    """Every second column is cut at its mean."""
    X = _equicorrelated(rng, n, 50)
    X[:, ::2] = X[:, ::2] > 0
    return X


def _common_scale(rng: np.random.Generator, n: int) -> np.ndarray:
    """Multivariate t with three degrees of freedom: rows far out in all columns at once."""
    return _equicorrelated(rng, n, 50) / np.sqrt(rng.chisquare(3, (n, 1)) / 3)


def _own_scale(rng: np.random.Generator, n: int) -> np.ndarray:
    """A t factor and t columns, three degrees of freedom each."""
    return np.sqrt(0.5) * (rng.standard_t(3, (n, 1)) + rng.standard_t(3, (n, 50)))


def _mixed(rng: np.random.Generator, n: int) -> np.ndarray:
    """In turn normal, binary, five levels, log-normal and counts, of one normal factor model."""
    X = _equicorrelated(rng, n, 50)
    X[:, 1::5] = X[:, 1::5] > 0.5
    X[:, 2::5] = np.digitize(X[:, 2::5], [-1.0, -0.3, 0.3, 1.0])
    X[:, 3::5] = np.exp(X[:, 3::5])
    X[:, 4::5] = rng.poisson(np.exp(0.7 * X[:, 4::5]))
    return X


DESIGNS = (
    Design("SinExp, n = 125", _synthetic(make_sinexp, 125)),
    Design("SinExp, n = 250", _synthetic(make_sinexp, 250)),
    Design("SinExp, n = 500", _synthetic(make_sinexp, 500)),
    Design("Liang, n = 500", _synthetic(make_liang, 500)),
    Design("AR(1) 0.9, 200 columns", _with_response(_chain, 200)),
    Design("equicorrelated 0.5, half binary", _with_response(_binary, 200)),
    Design("multivariate t(3)", _with_response(_common_scale, 200)),
    Design("t(3) factor and columns", _with_response(_own_scale, 200)),
    Design("mixed types", _with_response(_mixed, 200)),
)
