"""The designs on which knockoffs are measured: columns of a kind, and a response to some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from sobolev.datasets import load_hiv
from sobolev.datasets.synthetic import sinexp_signal

Data = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Design:
    """Rows, response and which columns matter, from a seed."""

    name: str
    draw: Callable[[int], Data]


def chain(rng: np.random.Generator, n: int, p: int, rho: float) -> np.ndarray:
    """AR(1) columns."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def equicorrelated(rng: np.random.Generator, n: int, p: int, rho: float) -> np.ndarray:
    """Columns with one common factor."""
    return np.sqrt(rho) * rng.standard_normal((n, 1)) + np.sqrt(1 - rho) * rng.standard_normal(
        (n, p)
    )


def respond(signal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noise of half the variance of the signal."""
    return signal + signal.std() * np.sqrt(0.5) * rng.standard_normal(signal.size)


def linear(X: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Equal effects of random sign, in standard units."""
    Z = (X[:, columns] - X[:, columns].mean(axis=0)) / X[:, columns].std(axis=0)
    return Z @ rng.choice([-1.0, 1.0], columns.size)


def waves(X: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The signal of SinExp in the ranks of six columns at a time."""
    U = norm.cdf(X[:, columns])
    return sum(sinexp_signal(U[:, k : k + 6]) for k in range(0, columns.size, 6))


def mixed(X: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Lines, and products of every second pair."""
    Z = (X[:, columns] - X[:, columns].mean(axis=0)) / X[:, columns].std(axis=0)
    pairs = sum(Z[:, k] * Z[:, k + 1] for k in range(0, columns.size - 1, 4))
    return linear(X, columns, rng) + 0.6 * pairs


def make(
    columns: Callable[[np.random.Generator], np.ndarray],
    response: Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray],
    n_true: int,
) -> Callable[[int], Data]:
    """A draw: columns, a random set of those that matter, a response."""

    def draw(seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X = columns(rng)
        common_enough = np.flatnonzero(X.std(axis=0) > 0.15)
        chosen = rng.choice(common_enough, n_true, replace=False)
        support = np.zeros(X.shape[1], dtype=bool)
        support[chosen] = True
        return X, respond(response(X, chosen, rng), rng), support

    return draw


def _binary(
    make_columns: Callable[..., np.ndarray], rho: float
) -> Callable[[np.random.Generator], np.ndarray]:
    """Normal columns cut so that 10 to 50 % are one."""

    def columns(rng: np.random.Generator) -> np.ndarray:
        X = make_columns(rng, 500, 60, rho)
        return (norm.ppf(1 - rng.uniform(0.1, 0.5, 60)) < X).astype(float)

    return columns


def _mutations(rng: np.random.Generator) -> np.ndarray:
    """The 0/1 mutations of the HIV data (3TC)."""
    try:
        return load_hiv("3TC").data
    except OSError as error:  # neither in a folder nor to be downloaded
        raise FileNotFoundError(str(error)) from error


NORMAL = (
    Design("AR(1) 0.5, linear", make(lambda rng: chain(rng, 300, 60, 0.5), linear, 15)),
    Design("AR(1) 0.5, SinExp", make(lambda rng: chain(rng, 1000, 50, 0.5), waves, 12)),
    Design(
        "equicorrelated 0.5, linear", make(lambda r: equicorrelated(r, 300, 60, 0.5), linear, 15)
    ),
    Design(
        "equicorrelated 0.5, SinExp", make(lambda r: equicorrelated(r, 1000, 50, 0.5), waves, 12)
    ),
)
BINARY = (
    Design("0/1 from AR(1) 0.8", make(_binary(chain, 0.8), mixed, 15)),
    Design("0/1 from equicorrelated 0.7", make(_binary(equicorrelated, 0.7), mixed, 15)),
    Design("HIV mutations (3TC), simulated response", make(_mutations, mixed, 20)),
)


def null_data(seed: int) -> Data:
    """Columns of an AR(1) and a response that does not know them."""
    rng = np.random.default_rng(seed)
    return chain(rng, 200, 60, 0.5), rng.standard_normal(200), np.zeros(60, dtype=bool)
