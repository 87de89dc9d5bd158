r"""Feature maps phi(x) of the convex critic: landmark, Fourier, polynomial, linear, or your own.

Every map works on standardised columns. A map is a small specification; ``bind(X, metric, p, rng)``
chooses landmarks or frequencies on the data under a metric and returns a *bound map* with

- ``values(X)``: phi at rows, (n, m + d) with the linear block last;
- ``forms(X, psi, p, omega)``: the :class:`~sobolev.convex.quadratics.QuadraticForms` of a sample;
- ``replaced(...)``: the functions at rows in which some columns are replaced.

A user's own map is any object with ``values(X)`` -> (n, m) and ``derivative(X, j)`` -> (n, m), and
optionally ``fit(X)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from scipy.linalg import lapack
from scipy.special import comb
from sklearn.preprocessing import PolynomialFeatures

from sobolev._parameters import check_count
from sobolev._sample import Sample
from sobolev._typing import Array, Index
from sobolev.convex.moments import FourierMoments, fourier_values
from sobolev.convex.quadratics import (
    CoupledForms,
    DensePart,
    LandmarkPart,
    LinearPart,
    Part,
    QuadraticForms,
)

# Largest number of landmarks by default.
MAX_LANDMARKS = 1000
# Rows from which second-order effects and the spacing of a column's values are read (up to a factor
# of two), rows for the median distance, and the largest squared spacing in units of the kernel's
# squared length.
SPACING_ROWS = 5000
MEDIAN_ROWS = 1000
MAX_RESOLUTION = 0.2


@runtime_checkable
class FeatureMap(Protocol):
    """A user's own map: values and derivatives on standardised columns."""

    def values(self, X: Array) -> Array:
        """phi at the rows, (n, m)."""

    def derivative(self, X: Array, j: int) -> Array:
        """∂phi/∂x_j at the rows, (n, m)."""


class MapSpec:
    """Base of the specifications of feature maps.

    Attributes
    ----------
    adapts : bool
        Whether the map has a metric that rounds can improve.
    screens : bool
        Whether a critic with this map can be fitted to candidate columns first.
    scores : bool
        Whether columns with heavy tails enter as normal scores of their ranks.
    """

    adapts: ClassVar[bool] = False
    screens: ClassVar[bool] = False
    scores: bool = False

    def bind(self, X: Array, metric: Array, p: Array, rng: np.random.Generator) -> BoundMap:
        """Choose landmarks, frequencies or scales on the data."""
        raise NotImplementedError

    def bind_sample(self, sample: Sample, metric: Array, rng: np.random.Generator) -> BoundMap:
        """As :meth:`bind`, for maps that also use the response."""
        return self.bind(sample.X, metric, sample.p, rng)


@dataclass(frozen=True)
class SizedMap(MapSpec):
    """Base of the maps with a number of functions.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of functions.
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks.
    """

    n_components: int | None = None
    _: KW_ONLY
    scores: bool = False

    def __post_init__(self) -> None:
        if self.n_components is not None:
            check_count("n_components", self.n_components)


class BoundMap:
    """Base of the bound maps: values, and forms made of a part and a linear block."""

    linear: bool
    n_functions: int

    def nonlinear_values(self, X: Array) -> Array:
        """phi without the linear block, (n, m)."""
        raise NotImplementedError

    def part(self, X: Array, psi: Array, p: Array, omega: Array) -> Part:
        """The nonlinear part's quadratic forms."""
        raise NotImplementedError

    def values(self, X: Array) -> Array:
        """phi at the rows, the linear block last."""
        if not self.linear:
            return self.nonlinear_values(X)
        return np.hstack([self.nonlinear_values(X), X])

    def nonlinear_gradient(self, X: Array, coefficients: Array) -> Array:
        """∂/∂x of the nonlinear functions, combined with each row's own coefficients (n, m)."""
        raise NotImplementedError

    def gradient(self, X: Array, coefficients: Array) -> Array:
        """∂/∂x of phi(x)' c for each row and its own coefficients c, (n, d)."""
        m = self.n_functions
        linear = coefficients[:, m:] if self.linear else np.zeros(X.shape)
        return self.nonlinear_gradient(X, coefficients[:, :m]) + linear

    def n_nodes(self, column: int, length: float) -> int:
        """Number of Chebyshev nodes for an interval of a column, in standard units."""
        return 64

    def fixed(self, X: Array) -> Any:
        """What :meth:`replaced` needs of the rows, computed once for all columns."""
        return X

    def replaced(self, X: Array, fixed: Any, columns: Index, values: Array, U: Array) -> Array:
        """The nonlinear functions times U (m, k) with columns replaced by values, (n, Q, k).

        Parameters
        ----------
        X, fixed
            The rows, and the result of :meth:`fixed` for them.
        columns : array of int, shape (c,)
            The columns that are replaced.
        values : array of shape (Q, c)
            Their values, the same for every row.
        U : array of shape (m, k)
            Coefficients of the functions.
        """
        if self.n_functions == 0:
            return np.zeros((X.shape[0], values.shape[0], U.shape[1]))
        found = [self.nonlinear_values(with_columns(X, columns, v)) @ U for v in values]
        return np.stack(found, axis=1)

    def forms(self, X: Array, psi: Array, p: Array, omega: Array | None = None) -> QuadraticForms:
        """The quadratic forms of a sample with row probabilities p.

        ``omega`` are the weights of the rows in the second moments: p for the product measure.
        X must be centred when the map has a linear block.
        """
        omega = p if omega is None else omega
        linear = LinearPart.from_rows(X, psi, p, omega) if self.linear else None
        return QuadraticForms(self.part(X, psi, p, omega), linear)


class SideBySide(BoundMap):
    """The functions of several bound maps, one map after the other, and one linear block."""

    def __init__(self, maps: Sequence[BoundMap]) -> None:
        self.maps = list(maps)
        self.linear = any(each.linear for each in maps)
        self.n_functions = sum(each.n_functions for each in maps)

    @property
    def places(self) -> list[slice]:
        """Where the functions of each map stand."""
        ends = np.cumsum([0, *[each.n_functions for each in self.maps]]).tolist()
        return [slice(*place) for place in pairwise(ends)]

    def nonlinear_values(self, X: Array) -> Array:
        """The functions of all maps."""
        return np.hstack([each.nonlinear_values(X) for each in self.maps])

    def nonlinear_gradient(self, X: Array, coefficients: Array) -> Array:
        """The sum of the gradients of the maps."""
        found = [
            each.nonlinear_gradient(X, coefficients[:, place])
            for each, place in zip(self.maps, self.places, strict=True)
        ]
        return np.asarray(sum(found))

    def n_nodes(self, column: int, length: float) -> int:
        """As many as the map that needs most."""
        return max(each.n_nodes(column, length) for each in self.maps)

    def fixed(self, X: Array) -> Any:
        """What each map needs of the rows."""
        return [each.fixed(X) for each in self.maps]

    def replaced(self, X: Array, fixed: Any, columns: Index, values: Array, U: Array) -> Array:
        """The sum of the maps with the columns replaced."""
        found = [
            each.replaced(X, own, columns, values, U[place])
            for each, own, place in zip(self.maps, fixed, self.places, strict=True)
        ]
        return np.asarray(sum(found))


def with_columns(X: Array, columns: Index, values: Array) -> Array:
    """A copy of the rows with columns replaced by values that broadcast to (n, c)."""
    out = np.array(X, dtype=float)
    out[:, columns] = values
    return out


def pivoted_landmarks(K: Array, tol: float) -> Index:
    """Rows that span the kernel matrix up to ``tol``, by pivoted Cholesky, in pivot order."""
    _, pivots, rank, _ = lapack.dpstrf(K, tol=tol, lower=1)
    return np.asarray(pivots[:rank] - 1, dtype=np.intp)


def squared_distances(X: Array, Y: Array, metric: Array) -> Array:
    """Sum of metric_j (x_j - y_j)² for all pairs of rows."""
    root = np.sqrt(metric)
    A, B = X * root, Y * root
    D = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    return np.maximum(D, 0.0, out=D)


def weighted_median(values: Array, weights: Array) -> float:
    """The weighted median; the mean of two values if half of the weight lies on either side.

    Half is meant within rounding, so that integer weights give what repetition gives.
    """
    if np.ptp(weights) == 0.0:
        return float(np.median(values))  # the same without a sort
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = 0.5 * below[-1] * (1 + 1e-9 * np.array([-1.0, 1.0]))
    return float(values[order][np.searchsorted(below, half)].mean())


def median_squared_distance(X: Array, metric: Array, p: Array) -> float:
    """Weighted median of the squared distances between distinct rows under a metric."""
    step = max(1, -(-X.shape[0] // MEDIAN_ROWS))
    rows, weights = X[::step], p[::step]
    D = squared_distances(rows, rows, metric)
    upper = np.triu_indices_from(D, k=1)
    distance = D[upper]
    positive = distance > 1e-12 * max(float(distance.max(initial=0.0)), 1e-300)
    if not positive.any():
        return 1.0
    return weighted_median(distance[positive], (weights[:, None] * weights)[upper][positive])


def value_spacing(x: Array, p: Array) -> float:
    """Weighted median, over rows, of the distance to the nearest different value of a column."""
    values, code = np.unique(x, return_inverse=True)
    if values.size < 2:
        return 0.0
    step = np.diff(values)
    nearest = np.minimum(np.append(np.inf, step), np.append(step, np.inf))
    mass = np.zeros(values.size)
    np.add.at(mass, code.ravel(), p)
    return weighted_median(nearest, mass)


def kernel_metric(X: Array, metric: Array, p: Array, bandwidth: float) -> Array:
    """The metric over the squared bandwidth, with a kernel wider than the spacing of the values.

    A gradient penalty sees derivatives at the rows only. A critic that is flat at both values of a
    binary column and steps between them would have no penalty, and the column that matters most
    would get no importance. With a kernel wider than the gap such a step has a large norm.
    Continuous columns are not affected.
    """
    step = max(1, X.shape[0] // SPACING_ROWS)
    median = median_squared_distance(X, metric, p)
    return spaced_metric(metric / (bandwidth * median), X[::step], p[::step])


def spaced_metric(g: Array, rows: Array, weights: Array) -> Array:
    """A metric over a squared bandwidth whose kernel is wider than the spacing of the values."""
    g = g.copy()
    for j in np.flatnonzero(g * np.ptp(rows, axis=0) ** 2 > MAX_RESOLUTION):
        spacing = value_spacing(rows[:, j], weights)
        g[j] = min(g[j], MAX_RESOLUTION / max(spacing, 1e-150) ** 2)
    return g


@dataclass(frozen=True)
class LandmarkMap(SizedMap):
    """Gaussian (or heavier-tailed) kernel functions centred at rows of the data.

    Parameters
    ----------
    n_components : int or None, default=None
        Largest number of landmarks; None is 1,000. With fewer rows every row is a landmark.
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks.
    bandwidth : float, default=0.4
        The squared bandwidth is this times the median squared distance.
    kernel : {"gaussian", "cauchy"}, default="gaussian"
        exp(-q/2), or the heavier-tailed 1 / (1 + q/2).
    linear : bool, default=True
        Whether to add a linear block to the kernel functions.
    tol : float, default=1e-6
        Landmarks that the others represent up to this squared norm are left out.
    """

    adapts: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    bandwidth: float = 0.4
    kernel: str = "gaussian"
    linear: bool = True
    tol: float = 1e-6

    def bind(self, X: Array, metric: Array, p: Array, rng: np.random.Generator) -> BoundLandmarkMap:
        """Choose bandwidth and landmarks on data."""
        g = kernel_metric(X, metric, p, self.bandwidth)
        most = MAX_LANDMARKS if self.n_components is None else self.n_components
        candidates = X
        if X.shape[0] > most:
            candidates = X[np.sort(rng.choice(X.shape[0], size=most, replace=False, p=p))]
        kernel = _kernel_matrix(self.kernel, candidates, candidates, g)[0]
        centers = candidates[np.sort(pivoted_landmarks(kernel, self.tol))]
        return BoundLandmarkMap(self, centers, g)


class BoundLandmarkMap(BoundMap):
    """A landmark map with its landmarks and metric."""

    def __init__(self, spec: LandmarkMap, centers: Array, g: Array) -> None:
        self.spec, self.centers, self.g = spec, centers, g
        self.linear = spec.linear
        self.n_functions = centers.shape[0]

    def nonlinear_values(self, X: Array) -> Array:
        """The kernel between rows and landmarks."""
        return self.kernel(X)[0]

    def kernel(self, X: Array) -> tuple[Array, Array]:
        """The kernel between rows and landmarks, and minus its derivative in q/2."""
        return _kernel_matrix(self.spec.kernel, X, self.centers, self.g)

    def nonlinear_gradient(self, X: Array, coefficients: Array) -> Array:
        """Of a sum of kernels: -g_j (x_j Σ h_k c_k - Σ h_k c_k C_kj)."""
        weights = self.kernel(X)[1] * coefficients
        return -self.g * (X * weights.sum(axis=1)[:, None] - weights @ self.centers)

    def n_nodes(self, column: int, length: float) -> int:
        """More nodes for a narrower kernel."""
        return 16 + int(np.ceil(2.0 * length * np.sqrt(self.g[column])))

    def fixed(self, X: Array) -> Array:
        """Squared distances to the landmarks."""
        return squared_distances(X, self.centers, self.g)

    def replaced(self, X: Array, fixed: Any, columns: Index, values: Array, U: Array) -> Array:
        """Exchange the contribution of the columns to the squared distances."""
        centers, g = self.centers[:, columns], self.g[columns]
        rest = fixed - squared_distances(X[:, columns], centers, g)
        np.maximum(rest, 0.0, out=rest)
        own = squared_distances(values, centers, g)
        h = np.empty((rest.shape[0], values.shape[0], U.shape[1]))
        if self.spec.kernel == "gaussian":  # exp of a sum is a product
            rest *= -0.5
            np.exp(rest, out=rest)
            factor = np.exp(-0.5 * own)
            for k in range(h.shape[2]):
                h[:, :, k] = rest @ (factor * U[:, k]).T
        else:
            for q in range(values.shape[0]):
                h[:, q] = (1.0 / (1.0 + 0.5 * (rest + own[q]))) @ U
        return h

    def part(self, X: Array, psi: Array, p: Array, omega: Array) -> LandmarkPart:
        """The kernel's quadratic forms."""
        return LandmarkPart(self, X, psi, p, omega)


def _kernel_matrix(kernel: str, X: Array, C: Array, g: Array) -> tuple[Array, Array]:
    """The kernel and minus its derivative in q/2; the same array for the Gaussian."""
    q = squared_distances(X, C, g)
    q *= 0.5
    if kernel == "gaussian":
        np.negative(q, out=q)
        np.exp(q, out=q)
        return q, q
    if kernel == "cauchy":
        K = 1.0 / (1.0 + q)
        return K, K**2
    raise ValueError(f'kernel={kernel!r} is unknown; use "gaussian" or "cauchy".')


@dataclass(frozen=True)
class FourierMap(SizedMap):
    """Random Fourier features of the Gaussian kernel, in pairs cos(w·x), sin(w·x).

    The frequencies are orthogonal in blocks, which lowers the variance of the kernel estimate.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of features, two for each frequency; None is 1,024.
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks, if the rows are in
        memory.
    bandwidth : float, default=0.4
        The squared bandwidth is this times the median squared distance.
    linear : bool, default=True
        Whether to add a linear block.
    single : bool, default=False
        Whether to compute the features of a chunk of rows and their products in single precision;
        sums over chunks are double. ``ConvexSIC`` sets it from the precision of its solver.
    """

    adapts: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    bandwidth: float = 0.4
    linear: bool = True
    single: bool = False

    def bind(self, X: Array, metric: Array, p: Array, rng: np.random.Generator) -> BoundFourierMap:
        """Draw the frequencies for the bandwidth of the data."""
        return self.place(kernel_metric(X, metric, p, self.bandwidth), rng)

    def place(self, g: Array, rng: np.random.Generator) -> BoundFourierMap:
        """Draw the frequencies for a metric over the squared bandwidth."""
        m = 1024 if self.n_components is None else self.n_components
        frequencies = orthogonal_gaussian(max(1, m // 2), g.size, rng) * np.sqrt(g)
        return BoundFourierMap(frequencies, self.linear, self.single)


class BoundFourierMap(BoundMap):
    """A Fourier map with its frequencies, (m / 2, d)."""

    def __init__(self, frequencies: Array, linear: bool, single: bool = False) -> None:
        self.frequencies, self.linear, self.single = frequencies, linear, single
        self.n_functions = 2 * frequencies.shape[0]

    def nonlinear_values(self, X: Array) -> Array:
        """Cosines, then sines, scaled so that phi·phi = 1."""
        return fourier_values(X, self.frequencies)

    def nonlinear_gradient(self, X: Array, coefficients: Array) -> Array:
        """Cosines become minus sines, sines cosines."""
        cosines, sines = np.hsplit(fourier_values(X, self.frequencies), 2)
        of_cosines, of_sines = np.hsplit(coefficients, 2)
        return (cosines * of_sines - sines * of_cosines) @ self.frequencies

    def n_nodes(self, column: int, length: float) -> int:
        """More nodes for higher frequencies."""
        highest = np.abs(self.frequencies[:, column]).max(initial=0.0)
        return 24 + int(np.ceil(0.6 * length * highest))

    def fixed(self, X: Array) -> Array:
        """The angles of the rows."""
        return X @ self.frequencies.T

    def replaced(self, X: Array, fixed: Any, columns: Index, values: Array, U: Array) -> Array:
        """Turn each pair of cosine and sine by the angle of the columns."""
        frequencies = self.frequencies[:, columns]
        rest = fixed - X[:, columns] @ frequencies.T
        cosine, sine = np.cos(rest), np.sin(rest)
        turn = values @ frequencies.T
        turn_cosine, turn_sine = np.cos(turn), np.sin(turn)
        scale = 1 / np.sqrt(max(1, frequencies.shape[0]))
        of_cosine, of_sine = np.vsplit(scale * U, 2)
        h = np.empty((rest.shape[0], values.shape[0], U.shape[1]))
        for k in range(h.shape[2]):
            c, s = of_cosine[:, k], of_sine[:, k]
            h[:, :, k] = cosine @ (turn_cosine * c + turn_sine * s).T
            h[:, :, k] += sine @ (turn_cosine * s - turn_sine * c).T
        return h

    def forms(self, X: Array, psi: Array, p: Array, omega: Array | None = None) -> QuadraticForms:
        """The quadratic forms, through one pass of moments."""
        moments = FourierMoments.empty(self, psi.shape[1])
        return moments.update(X, psi, p, omega).forms()


def orthogonal_gaussian(h: int, d: int, rng: np.random.Generator) -> Array:
    """Rows that are standard normal each, and orthogonal within blocks of d."""
    blocks: list[Array] = []
    while sum(b.shape[0] for b in blocks) < h:
        rows = min(d, h - sum(b.shape[0] for b in blocks))
        basis, triangle = np.linalg.qr(rng.standard_normal((d, rows)))
        basis *= np.sign(np.diag(triangle))  # LAPACK's signs are not random
        blocks.append(basis.T * np.sqrt(rng.chisquare(d, size=rows))[:, None])
    return np.vstack(blocks)


class DenseBoundMap(BoundMap):
    """Base of the bound maps that give the derivatives of all functions."""

    def derivatives(self, X: Array) -> list[tuple[int, Index, Array]]:
        """For columns j that functions depend on, j, these functions and their derivatives."""
        raise NotImplementedError

    def part(self, X: Array, psi: Array, p: Array, omega: Array) -> DensePart:
        """Quadratic forms from values and derivatives."""
        return DensePart(self.nonlinear_values(X), self.derivatives(X), X, psi, p, omega)

    def nonlinear_gradient(self, X: Array, coefficients: Array) -> Array:
        """The derivatives combined with the coefficients of each row, (n, d)."""
        gradient = np.zeros(X.shape)
        for j, used, derivative in self.derivatives(X):
            gradient[:, j] = np.sum(derivative * coefficients[:, used], axis=1)
        return gradient


@dataclass(frozen=True)
class LinearMap(MapSpec):
    """The linear map phi(x) = x: SIC is then close to a group lasso on standardised columns."""

    screens: ClassVar[bool] = True

    def bind(
        self, X: Array, metric: Array, p: Array, rng: np.random.Generator
    ) -> BoundPolynomialMap:
        """The linear block, and no monomials of a higher degree."""
        return BoundPolynomialMap(np.empty((0, X.shape[1]), dtype=int), np.empty(0))


@dataclass(frozen=True)
class PolynomialMap(MapSpec):
    """Monomials of the standardised columns up to a degree.

    Parameters
    ----------
    degree : int, default=2
        Highest total degree.
    interactions : bool, default=True
        Whether to include products of different columns.
    max_functions : int, default=5000
        Largest number of monomials; more are an error.
    """

    degree: int = 2
    interactions: bool = True
    max_functions: int = 5000

    def bind(
        self, X: Array, metric: Array, p: Array, rng: np.random.Generator
    ) -> BoundPolynomialMap:
        """List the monomials and their scales on the data."""
        d = X.shape[1]
        per_degree = comb(d + self.degree, self.degree, exact=True)
        count = per_degree if self.interactions else d * self.degree
        if count > self.max_functions:
            raise ValueError(
                f"a polynomial map of degree {self.degree} in {d} features has {count} monomials; "
                "use interactions=False, a lower degree or the landmark map."
            )
        if self.interactions:
            exponents = PolynomialFeatures(self.degree).fit(X[:1]).powers_
        else:
            exponents = np.vstack([k * np.eye(d, dtype=int) for k in range(self.degree + 1)])
        exponents = exponents[exponents.sum(axis=1) > 1]
        bound = BoundPolynomialMap(exponents, np.ones(exponents.shape[0]))
        values = bound.nonlinear_values(X)
        spread = np.sqrt(p @ (values - p @ values) ** 2)
        bound.scales = np.where(spread > 1e-12, spread, 1.0)
        return bound


class BoundPolynomialMap(DenseBoundMap):
    """Monomials with their exponents and scales; the linear ones are the linear block."""

    linear = True

    def __init__(self, exponents: Array, scales: Array) -> None:
        self.exponents, self.scales = exponents, scales
        self.n_functions = exponents.shape[0]

    def _monomials(self, X: Array, exponents: Array) -> Array:
        out = np.ones((X.shape[0], exponents.shape[0]))
        for j in np.flatnonzero(exponents.any(axis=0)):
            for power in np.unique(exponents[:, j]):
                if power > 0:
                    out[:, exponents[:, j] == power] *= X[:, [j]] ** power
        return out

    def nonlinear_values(self, X: Array) -> Array:
        """The monomials of degree two and more."""
        return self._monomials(X, self.exponents) / self.scales

    def derivatives(self, X: Array) -> list[tuple[int, Index, Array]]:
        """For each column, the monomials that contain it and their derivatives."""
        derivatives = []
        for j in np.flatnonzero(self.exponents.any(axis=0)).tolist():
            columns = np.flatnonzero(self.exponents[:, j] > 0)
            lowered = self.exponents[columns].copy()
            lowered[:, j] -= 1
            factor = self.exponents[columns, j] / self.scales[columns]
            derivatives.append((j, columns, self._monomials(X, lowered) * factor))
        return derivatives


class BoundCustomMap(DenseBoundMap):
    """A user's own map."""

    linear = False

    def __init__(self, own: FeatureMap, X: Array) -> None:
        self.own = own
        self.n_functions = self.nonlinear_values(X[:1]).shape[1]

    def nonlinear_values(self, X: Array) -> Array:
        """The user's values, checked."""
        values = np.asarray(self.own.values(X), dtype=float)
        if values.ndim != 2 or values.shape[0] != X.shape[0]:
            raise ValueError(
                f"feature_map.values must return (n, m) values; got shape {values.shape} for "
                f"{X.shape[0]} rows."
            )
        return values

    def derivatives(self, X: Array) -> list[tuple[int, Index, Array]]:
        """For each column, the functions that depend on it and their derivatives, checked."""
        derivatives = []
        for j in range(X.shape[1]):
            derivative = np.asarray(self.own.derivative(X, j), dtype=float)
            if derivative.shape != (X.shape[0], self.n_functions):
                raise ValueError(
                    f"feature_map.derivative(X, {j}) must have the shape of values, "
                    f"{(X.shape[0], self.n_functions)}; got {derivative.shape}."
                )
            used = np.flatnonzero(np.any(derivative != 0, axis=0))
            derivatives.append((j, used, derivative[:, used]))
        return derivatives


@dataclass(frozen=True)
class CustomMap(MapSpec):
    """A user's own map, which binds like the others."""

    own: Any

    def bind(self, X: Array, metric: Array, p: Array, rng: np.random.Generator) -> BoundCustomMap:
        """Fit a copy of the user's map if it has a ``fit``: folds must not share its state."""
        if not hasattr(self.own, "fit"):
            return BoundCustomMap(self.own, X)
        own = deepcopy(self.own)
        own.fit(X)
        return BoundCustomMap(own, X)


def coupled_forms(
    bound: BoundMap, X: Array, psi: Array, p: Array, omega: Array, difference: Array
) -> CoupledForms:
    """Forms under a measure that is not a product: one for each pair of columns of psi.

    Parameters
    ----------
    bound, X, psi, p
        The map, the rows, the encoded response and the probabilities of the rows.
    omega : array of shape (n, k, k)
        Weight of each row in the second moments of the pair (a, b).
    difference : array of shape (n, k)
        Row weights whose product with the centred values is the mean difference.
    """
    k = psi.shape[1]
    blocks = {(a, b): bound.forms(X, psi, p, omega[:, a, b]) for a in range(k) for b in range(a, k)}
    values = bound.values(X)
    return CoupledForms(blocks, (values - p @ values).T @ difference)
