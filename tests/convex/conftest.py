"""Small samples and feature maps that the tests of the convex package share."""

import numpy as np
import pytest

from sobolev.convex.feature_maps import (
    CustomMap,
    FourierMap,
    LandmarkMap,
    LinearMap,
    PolynomialMap,
)
from sobolev.convex.parts import PartsMap


class SineMap:
    """A user's map whose functions use one, two or all features."""

    def __init__(self, d):
        rng = np.random.default_rng(5)
        self.weights = np.vstack([np.eye(d)[0], np.eye(d)[0] + np.eye(d)[-1], rng.normal(size=d)])

    def values(self, X):
        return np.sin(X @ self.weights.T)

    def derivative(self, X, j):
        return np.cos(X @ self.weights.T) * self.weights[:, j]


def make_maps(d):
    return {
        "gaussian": LandmarkMap(),
        "gaussian alone": LandmarkMap(linear=False),
        "cauchy": LandmarkMap(kernel="cauchy"),
        "subset": LandmarkMap(n_components=6),
        "fourier": FourierMap(n_components=10),
        "fourier alone": FourierMap(n_components=10, linear=False),
        "linear": LinearMap(),
        "polynomial": PolynomialMap(degree=3),
        "powers": PolynomialMap(degree=3, interactions=False),
        "custom": CustomMap(SineMap(d)),
        "additive": PartsMap(n_pairs=0, n_knots=4),
        "parts": PartsMap(n_columns=2),
    }


MAP_NAMES = list(make_maps(1))


@pytest.fixture(params=MAP_NAMES)
def map_name(request):
    return request.param


@pytest.fixture
def draw_sample():
    """Centred rows, a centred white response and row probabilities."""

    def draw(n=20, d=4, k=2, weighted=False, seed=0):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(5 * np.ones(n)) if weighted else np.full(n, 1 / n)
        X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.2)
        raw = np.column_stack([X[:, 0] + X[:, 1 % d] ** 2, X[:, 0] * X[:, -1], X[:, 1 % d]])[:, :k]
        raw = raw + 0.5 * rng.standard_normal(raw.shape)
        X, raw = X - p @ X, raw - p @ raw
        X = X / np.sqrt(p @ X**2)
        psi = raw @ np.linalg.inv(np.linalg.cholesky(raw.T @ (p[:, None] * raw))).T
        return X, psi, p

    return draw


@pytest.fixture
def bind_map():
    """Place a map, given by its name, on a sample."""

    def bind(name, X, p, metric=None, seed=0):
        d = X.shape[1]
        metric = np.linspace(1.0, 0.3, d) if metric is None else metric
        return make_maps(d)[name].bind(X, metric, p, np.random.default_rng(seed))

    return bind


@pytest.fixture
def brute_force():
    """M, C, D_j and G from values alone: sums over rows, derivatives by differences."""

    def compute(bound, X, psi, p, omega, step=1e-5):
        values = bound.values(X)
        phi = values - p @ values
        M = phi.T @ (p[:, None] * psi)
        C = phi.T @ (omega[:, None] * phi)
        derivatives = []
        for e in np.eye(X.shape[1]):
            slope = bound.values(X + step * e) - bound.values(X - step * e)
            derivatives.append(slope / (2 * step))
        D = [s.T @ (omega[:, None] * s) for s in derivatives]
        G = np.eye(phi.shape[1])
        if hasattr(bound, "centers"):
            m = bound.centers.shape[0]
            G[:m, :m] = bound.values(bound.centers)[:, :m]
        return M, C, np.array(D), G

    return compute
