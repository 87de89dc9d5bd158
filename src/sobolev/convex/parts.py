r"""The critic of parts: a linear block, smooth functions of single columns, products of pairs.

.. math::

    f(x) = \sum_j v_j x_j + \sum_{j \in A} g_j(x_j) + \sum_{(a, b) \in B} h_{ab}(x_a, x_b)

All parts are in one convex problem: the gradient penalty takes the derivative of the whole sum in
each column, so importances keep their meaning. Where a response is additive, or has few
interactions, this critic needs fewer rows than a kernel of all columns.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtri

from sobolev._parameters import check_count
from sobolev._sample import Sample
from sobolev._typing import Array, Index
from sobolev.convex.feature_maps import DenseBoundMap, MapSpec, with_columns
from sobolev.convex.quadratics import DensePart
from sobolev.convex.screening import candidates

# Ridge penalties, relative to the median row, among which the additive fit before the choice of
# pairs takes the one with the smallest leave-one-out error.
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# Functions of a column that enter products: the column itself and its smoothest curves.
PAIR_FUNCTIONS = 4
# Pairs are chosen so many times, each time by what the earlier ones leave of the response.
PAIR_PASSES = 2
# A column has a share in pairs if its metric exceeds this multiple of the smallest one.
PAIR_METRIC = 1.5
# A pair is taken if the squared z-scores of its three simplest products add up to more than this:
# among pairs that do not matter, one in two hundred.
PAIR_SCORE = 12.8
# A pair of columns without effects of their own needs a score that only so many of all pairs reach
# by chance.
SPARE_PAIRS = 4
# Roughness of functions that the rows do not show, so that they come last.
LOST_ROUGHNESS = 1e6


@dataclass(frozen=True)
class PartsMap(MapSpec):
    """A linear block, smooth functions of single columns, and products of pairs of columns.

    Parameters
    ----------
    n_columns : int, default=60
        Largest number of columns with smooth functions, those of largest importance.
    n_knots : int, default=6
        Number of knots of the cubic splines of a column; they are linear beyond the outer knots.
    n_pairs : int, default=30
        Largest number of pairs of columns with products; 0 for an additive critic. Pairs are chosen
        by the products of their columns with what an additive fit leaves of the response.
    pair_columns : int, default=40
        Number of columns among which pairs are chosen: those of largest importance, then those
        whose products with another column agree best with the response.
    scores : bool, default=False
        Whether columns with heavy tails enter as normal scores of their ranks.
    """

    adapts: ClassVar[bool] = True
    screens: ClassVar[bool] = True

    _: KW_ONLY
    n_columns: int = 60
    n_knots: int = 6
    n_pairs: int = 30
    pair_columns: int = 40
    scores: bool = False

    def __post_init__(self) -> None:
        check_count("n_columns", self.n_columns)
        check_count("n_knots", self.n_knots, low=3)
        check_count("n_pairs", self.n_pairs, low=0)
        check_count("pair_columns", self.pair_columns, low=2)

    def bind(
        self,
        X: Array,
        metric: Array,
        p: Array,
        rng: np.random.Generator,
        psi: Array | None = None,
    ) -> BoundPartsMap:
        """Choose the columns with smooth functions by the metric, and pairs by the response."""
        curves = Curves.fit(X, self._columns(X, metric, p, psi), p, self.n_knots)
        pairs: list[tuple[int, int]] = []
        if self.n_pairs and psi is not None and np.ptp(metric) > 0:
            pairs = self._pairs(X, metric, p, psi, curves)
        return BoundPartsMap.scaled(curves, pairs, X, p)

    def bind_sample(self, sample: Sample, metric: Array, rng: np.random.Generator) -> BoundPartsMap:
        """Choose columns by the metric and pairs by the response."""
        return self.bind(sample.X, metric, sample.p, rng, sample.psi)

    def _columns(self, X: Array, metric: Array, p: Array, psi: Array | None) -> Index:
        """The columns of largest metric; of equal ones, candidates for effects come first."""
        d = X.shape[1]
        if d <= self.n_columns:
            return np.arange(d)
        likely = np.zeros(d)
        if psi is not None:
            likely[candidates(Sample(X, psi, p), self.n_columns)] = 1.0
        return np.sort(np.lexsort((-likely, -metric))[: self.n_columns])

    def _pairs(
        self, X: Array, metric: Array, p: Array, psi: Array, curves: Curves
    ) -> list[tuple[int, int]]:
        """Pairs whose products are related to what an additive fit leaves of the response.

        Columns need no effect of their own, but pairs of others need a larger score.
        """
        strong = metric > PAIR_METRIC * metric.min()
        most = self._pair_columns(X, np.where(strong, metric, 0.0), p, psi)
        first, second = np.triu_indices(most.size, 1)
        if not first.size:
            return []
        chance = 2 * SPARE_PAIRS / (metric.size * (metric.size - 1))
        least = max(PAIR_SCORE, float(chdtri(3, min(chance, 1.0))))
        asked = np.where(strong[most[first]] & strong[most[second]], PAIR_SCORE, least)
        pairs: list[tuple[int, int]] = []
        for _ in range(PAIR_PASSES):
            bound = BoundPartsMap.scaled(curves, pairs, X, p)
            residual = _residual(X, metric, p, psi, bound, most)
            found = _pair_scores(X, p, residual, curves, most)[first, second]
            order = np.argsort(-found, kind="stable")
            best = order[found[order] > asked[order]]
            new = [(int(most[first[i]]), int(most[second[i]])) for i in best]
            new = [pair for pair in new if pair not in pairs][: self.n_pairs - len(pairs)]
            pairs += new
            if not new:
                break
        return sorted(pairs)

    def _pair_columns(self, X: Array, metric: Array, p: Array, psi: Array) -> Index:
        """The columns among which pairs are chosen, in order.

        Those of largest metric, then those whose products with another column agree best with the
        response.
        """
        if metric.size <= self.pair_columns:
            return np.arange(metric.size)
        most = np.lexsort((-_best_products(X, p, psi), -metric))
        return np.sort(most[: self.pair_columns])


def _best_products(X: Array, p: Array, psi: Array) -> Array:
    """The largest squared correlation of the products of each column with the response."""
    weighted, variance = p[:, None] * X, p @ X**2
    score = sum((X.T @ (r[:, None] * weighted)) ** 2 for r in psi.T)
    # The variance of a product of independent columns is the product of their variances.
    score = score / np.maximum(np.outer(variance, variance), 1e-300)
    np.fill_diagonal(score, 0.0)
    return np.asarray(score.max(axis=0))


def _residual(
    X: Array, metric: Array, p: Array, psi: Array, bound: BoundPartsMap, most: Index
) -> Array:
    """What a ridge regression leaves of the response, (n, k).

    It is on the functions, on the columns that have curves, and on those that may be in pairs.

    The variance of a smooth function is its metric over its roughness, that of a product the
    geometric mean of the metrics. The penalty has the smallest leave-one-out error.
    """
    curves = bound.curves
    columns = np.union1d(most, np.array(list(curves.places), dtype=np.intp))
    values = np.hstack([bound.nonlinear_values(X), X[:, columns]])
    values -= p @ values
    own = metric[curves.of]  # the scales make up for the roughness
    pairs = np.array(bound.pairs, dtype=np.intp).reshape(-1, 2)
    joint = np.sqrt(metric[pairs[:, 0]] * metric[pairs[:, 1]])
    variance = np.concatenate([own, np.repeat(joint, PAIR_FUNCTIONS**2), metric[columns]])
    root = np.sqrt(p)[:, None]
    half = root * values * np.sqrt(variance)
    y = root * psi
    if half.shape[0] > half.shape[1]:
        values, axes = np.linalg.eigh(half.T @ half)
        scores = half @ axes  # of squared norms ``values``
        shares = np.ones(values.size)
    else:
        values, scores = np.linalg.eigh(half @ half.T)
        shares = np.maximum(values, 0.0)
    target, level = scores.T @ y, float(np.maximum(values, 0.0).sum()) / p.size
    best, residual = np.inf, psi
    for ridge in RIDGES:
        shrink = shares / (np.maximum(values, 0.0) + ridge * level + 1e-300)
        left = y - scores @ (shrink[:, None] * target)
        one_out = left / np.maximum(1 - scores**2 @ shrink, 1e-3)[:, None]
        if float(np.sum(one_out**2)) < best:
            best, residual = float(np.sum(one_out**2)), left / root
    return np.asarray(residual)


def _pair_scores(X: Array, p: Array, residual: Array, curves: Curves, columns: Index) -> Array:
    """Sum of squared z-scores of x_a x_b, s_a x_b and x_a s_b times the residual, (c, c)."""
    line = X[:, columns]
    curve = curves.all_factors(X, columns)[0][:, :, 1]
    score = np.zeros((columns.size, columns.size))
    for r in residual.T:
        spread = float(p @ r**2) * float(p @ p)
        for A, B in ((line, line), (curve, line), (line, curve)):
            covariance = A.T @ ((p * r)[:, None] * B)
            variance = (A**2).T @ (p[:, None] * B**2) * spread
            score += covariance**2 / np.maximum(variance, 1e-300) * (variance > 0)
    return score


@dataclass(frozen=True)
class Splines:
    """Smooth functions of some columns: natural cubic splines without their linear part.

    The functions of a column are orthonormal, orthogonal to lines, and ordered from smooth to
    rough. The columns have the same number of knots.

    Attributes
    ----------
    knots : array of shape (c, K)
    line : array of shape (2, c, K - 2)
        Intercepts and slopes of the regressions on the column.
    turn : array of shape (c, K - 2, K - 2)
        From splines to orthonormal functions.
    roughness : array of shape (c, K - 2)
        Mean square of the derivative of each function.
    """

    knots: Array
    line: Array
    turn: Array
    roughness: Array

    @classmethod
    def fit(cls, X: Array, p: Array, knots: Array) -> Splines:
        """Fit to columns (n, c) with probabilities p."""
        values, slopes = natural_splines(X, knots)
        mean = p @ X
        centred = X - mean
        slope = np.einsum("n,nc,ncm->cm", p, centred, values) / (p @ centred**2)[:, None]
        middle = np.einsum("n,ncm->cm", p, values)
        line = np.array([middle - slope * mean[:, None], slope])
        values = values - line[0] - X[:, :, None] * line[1]
        size, axes = np.linalg.eigh(np.einsum("ncm,n,ncl->cml", values, p, values, optimize=True))
        lost = size <= 1e-10 * size[:, -1:]  # functions that the values of the column do not show
        white = np.where(lost[:, None], 0.0, axes / np.sqrt(np.where(lost, 1.0, size))[:, None])
        slopes = (slopes - line[1]).transpose(1, 0, 2) @ white
        gram = slopes.transpose(0, 2, 1) @ (p[:, None] * slopes)
        gram += LOST_ROUGHNESS * lost[:, :, None] * np.eye(lost.shape[1])
        roughness, axes = np.linalg.eigh(gram)
        return cls(knots, line, white @ axes, np.maximum(roughness, 1e-6))

    def of(self, column: int) -> Splines:
        """The functions of one of the columns."""
        one = slice(column, column + 1)
        return Splines(self.knots[one], self.line[:, one], self.turn[one], self.roughness[one])

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """The functions and their derivatives at columns (n, c), (n, c, K - 2) each."""
        values, slopes = natural_splines(X, self.knots)
        values = values - self.line[0] - X[:, :, None] * self.line[1]
        slopes = slopes - self.line[1]
        return self._turned(values), self._turned(slopes)

    def _turned(self, values: Array) -> Array:
        return (values.transpose(1, 0, 2) @ self.turn).transpose(1, 0, 2)


def place_knots(X: Array, n_knots: int) -> list[Array]:
    """The knots of each column: its quantiles, or all its values if they are few.

    Quantiles of the distinct values are taken if too many rows share a value.
    """
    levels = np.linspace(0.02, 0.98, n_knots)
    ordered = np.sort(X, axis=0)
    n_values = 1 + (np.diff(ordered, axis=0) > 0).sum(axis=0)
    found = []
    for x, few, knots in zip(
        ordered.T, n_values <= n_knots, np.quantile(ordered, levels, axis=0).T, strict=True
    ):
        if few:
            found.append(np.unique(x))
        elif np.all(np.diff(knots) > 0):
            found.append(knots)
        else:
            found.append(np.quantile(np.unique(x), levels))
    return found


def natural_splines(X: Array, knots: Array) -> tuple[Array, Array]:
    """Cubic splines that are linear beyond the outer knots, and derivatives, (n, c, K - 2)."""
    above = np.maximum(X[:, :, None] - knots, 0.0)
    width = knots[:, -1:] - knots[:, :-1]
    squares = above**2
    above *= squares
    cubes = (above[:, :, :-1] - above[:, :, -1:]) / width
    squares = 3 * (squares[:, :, :-1] - squares[:, :, -1:]) / width
    return cubes[:, :, :-1] - cubes[:, :, -1:], squares[:, :, :-1] - squares[:, :, -1:]


class Curves:
    """The smooth functions of several columns, side by side.

    Attributes
    ----------
    groups : list of (array of int, Splines)
        Columns with the same number of knots, and their functions.
    places : dict
        Where the functions of a column stand.
    of, roughness : array of shape (m,)
        The column and the roughness of each function.
    """

    def __init__(self, groups: list[tuple[Index, Splines]]) -> None:
        self.groups = groups
        self.splines: dict[int, Splines] = {}
        self.places: dict[int, slice] = {}
        end = 0
        for columns, splines in groups:
            for i, j in enumerate(columns.tolist()):
                self.splines[j] = splines.of(i)
                self.places[j] = slice(end, end + splines.roughness.shape[1])
                end = self.places[j].stop
        sizes = [place.stop - place.start for place in self.places.values()]
        self.of = np.repeat(np.array(list(self.places), dtype=np.intp), sizes)
        self.roughness = np.concatenate([np.ones(0), *[s.roughness.ravel() for _, s in groups]])

    @classmethod
    def fit(cls, X: Array, columns: Index, p: Array, n_knots: int) -> Curves:
        """Fit to columns of the rows; those with fewer than three values have no curves."""
        knots = place_knots(X[:, columns], n_knots)
        sizes = np.array([k.size for k in knots], dtype=np.intp)
        groups = []
        for size in np.unique(sizes[sizes >= 3]):
            own = np.flatnonzero(sizes == size)
            group = columns[own]
            groups.append((group, Splines.fit(X[:, group], p, np.array([knots[i] for i in own]))))
        return cls(groups)

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """All smooth functions at the rows and their derivatives, (n, m) each."""
        n = X.shape[0]
        found = [splines(X[:, columns]) for columns, splines in self.groups]
        values = [v.reshape(n, -1) for v, _ in found]
        slopes = [s.reshape(n, -1) for _, s in found]
        none = np.empty((n, 0))
        return np.hstack([none, *values]), np.hstack([none, *slopes])

    def of_column(self, j: int, x: Array) -> tuple[Array, Array]:
        """The smooth functions of one column at values of it, and derivatives."""
        values, slopes = self.splines[j](x[:, None])
        return values[:, 0], slopes[:, 0]

    def factors(self, j: int, x: Array) -> tuple[Array, Array]:
        """The functions of one column that enter products, at values of it, (n, 4) each.

        They are the column itself and its smoothest curves, which are zero if there are none.
        """
        values, slopes = np.zeros((2, x.size, PAIR_FUNCTIONS))
        values[:, 0], slopes[:, 0] = x, 1.0
        if j in self.splines:
            curve, slope = self.of_column(j, x)
            few = min(PAIR_FUNCTIONS - 1, curve.shape[1])
            values[:, 1 : few + 1], slopes[:, 1 : few + 1] = curve[:, :few], slope[:, :few]
        return values, slopes

    def all_factors(self, X: Array, columns: Index) -> tuple[Array, Array]:
        """The functions of columns that enter products, and derivatives, (n, c, 4) each."""
        values, slopes = np.zeros((2, X.shape[0], columns.size, PAIR_FUNCTIONS))
        for i, j in enumerate(columns.tolist()):
            values[:, i], slopes[:, i] = self.factors(j, X[:, j])
        return values, slopes


class PartsPart(DensePart):
    """The quadratic forms of many functions of one or two columns each.

    The entries of all D_j are kept in one list, so that their weighted sum is one pass over it.
    """

    def __init__(
        self,
        values: Array,
        derivatives: list[tuple[int, Index, Array]],
        X: Array,
        psi: Array,
        p: Array,
        omega: Array,
    ) -> None:
        super().__init__(values, derivatives, X, psi, p, omega)
        none = np.empty(0)
        self.entries = np.concatenate([none, *[D.ravel() for _, _, D in self.D]])
        rows = [np.repeat(used, used.size) for _, used, _ in self.D]
        self.row = np.concatenate([none, *rows]).astype(np.intp)
        columns = [np.tile(used, used.size) for _, used, _ in self.D]
        self.column = np.concatenate([none, *columns]).astype(np.intp)
        features = [np.full(used.size**2, j) for j, used, _ in self.D]
        self.feature = np.concatenate([none, *features]).astype(np.intp)
        self.flat = self.row * values.shape[1] + self.column

    def penalty(self, weights: Array) -> Array:
        """The sum of w_j D_j."""
        m = self.C.shape[0]
        total = np.bincount(self.flat, weights[self.feature] * self.entries, minlength=m * m)
        return np.asarray(total, dtype=float).reshape(m, m)

    def gradient_products(self, U: Array, V: Array) -> Array:
        """tr U' D_j V for every feature j."""
        products = np.einsum("ek,ek->e", U[self.row], V[self.column]) * self.entries
        d = self.mean_derivative.shape[1]
        return np.asarray(np.bincount(self.feature, products, minlength=d), dtype=float)


class BoundPartsMap(DenseBoundMap):
    """Smooth functions of columns, then products of pairs, sixteen for each pair."""

    linear = True

    def __init__(self, curves: Curves, pairs: list[tuple[int, int]], scales: Array) -> None:
        self.curves, self.pairs, self.scales = curves, pairs, scales
        self.n_functions = scales.size
        self.paired = np.unique(np.array(pairs, dtype=np.intp).ravel())
        self._at = {int(j): i for i, j in enumerate(self.paired)}

    @classmethod
    def scaled(
        cls, curves: Curves, pairs: list[tuple[int, int]], X: Array, p: Array
    ) -> BoundPartsMap:
        """The map with its scales: rough functions have a large norm, products norm one."""
        m = curves.roughness.size
        bound = cls(curves, pairs, np.ones(m + PAIR_FUNCTIONS**2 * len(pairs)))
        products = bound.nonlinear_values(X)[:, m:]
        spread = np.sqrt(p @ (products - p @ products) ** 2)
        bound.scales[:m] = 1 / np.sqrt(curves.roughness)
        bound.scales[m:] = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0.0)
        return bound

    def nonlinear_values(self, X: Array) -> Array:
        """Smooth functions and products at the rows."""
        values = [self.curves(X)[0]]
        if self.pairs:
            F = self.curves.all_factors(X, self.paired)[0]
            values += [self._product(F, F, pair) for pair in self.pairs]
        return np.hstack(values) * self.scales

    def _product(self, first: Array, second: Array, pair: tuple[int, int]) -> Array:
        """Products of the functions of a pair, (n, 16)."""
        A, B = first[:, self._at[pair[0]]], second[:, self._at[pair[1]]]
        return (A[:, :, None] * B[:, None, :]).reshape(A.shape[0], -1)

    def _place(self, number: int) -> slice:
        """Where the products of a pair stand."""
        begin = self.curves.roughness.size + PAIR_FUNCTIONS**2 * number
        return slice(begin, begin + PAIR_FUNCTIONS**2)

    def derivatives(self, X: Array) -> list[tuple[int, Index, Array]]:
        """For each column, its functions and products, and their derivatives."""
        found: dict[int, list[tuple[slice, Array]]] = {}
        slopes = self.curves(X)[1]
        for j, place in self.curves.places.items():
            found[j] = [(place, slopes[:, place])]
        if self.pairs:
            F, slopes = self.curves.all_factors(X, self.paired)
            for number, (a, b) in enumerate(self.pairs):
                place = self._place(number)
                found.setdefault(a, []).append((place, self._product(slopes, F, (a, b))))
                found.setdefault(b, []).append((place, self._product(F, slopes, (a, b))))
        derivatives = []
        for j, parts in sorted(found.items()):
            used = np.concatenate([np.arange(place.start, place.stop) for place, _ in parts])
            slope = np.hstack([derivative for _, derivative in parts])
            derivatives.append((j, used, slope * self.scales[used]))
        return derivatives

    def part(self, X: Array, psi: Array, p: Array, omega: Array) -> PartsPart:
        """Quadratic forms from values and derivatives."""
        return PartsPart(self.nonlinear_values(X), self.derivatives(X), X, psi, p, omega)

    def n_nodes(self, column: int, length: float) -> int:
        """A few nodes for each knot of a spline; the functions are at most quadratic otherwise."""
        return 48 if column in self.curves.splines else 8

    def fixed(self, X: Array) -> Any:
        """All functions at the rows, and the functions of the paired columns."""
        return self.nonlinear_values(X), self.curves.all_factors(X, self.paired)[0]

    def replaced(self, X: Array, fixed: Any, columns: Index, values: Array, U: Array) -> Array:
        """Exchange the functions of the columns, and the products that they are in."""
        touched, (phi, factors) = self._functions_of(columns), fixed
        rest = phi @ U - phi[:, touched] @ U[touched]
        h = np.repeat(rest[:, None], values.shape[0], axis=1)
        if columns.size == 1:
            return h + self._of_one(factors, int(columns[0]), values[:, 0], U)
        for q, value in enumerate(values):
            rows = with_columns(X, columns, value)
            h[:, q] += self.nonlinear_values(rows)[:, touched] @ U[touched]
        return h

    def _functions_of(self, columns: Index) -> Index:
        """The functions that some of the columns are in."""
        wanted = set(columns.tolist())
        places = [self.curves.places[j] for j in wanted if j in self.curves.places]
        places += [self._place(k) for k, pair in enumerate(self.pairs) if wanted & set(pair)]
        return np.concatenate([np.arange(0), *[np.arange(p.start, p.stop) for p in places]])

    def _of_one(self, F: Array, j: int, values: Array, U: Array) -> Array:
        """The functions and products of one column at values of it, times U, (n, Q, k).

        F (n, c, 4) are the functions of the paired columns at the rows.
        """
        h = np.zeros((F.shape[0], values.size, U.shape[1]))
        scaled = self.scales[:, None] * U
        if j in self.curves.splines:
            h += (self.curves.of_column(j, values)[0] @ scaled[self.curves.places[j]])[None]
        if j not in self._at:
            return h
        own = self.curves.factors(j, values)[0]
        factors = np.zeros((F.shape[0], PAIR_FUNCTIONS, U.shape[1]))
        for number, pair in enumerate(self.pairs):
            if j not in pair:
                continue
            other = pair[1] if pair[0] == j else pair[0]
            table = scaled[self._place(number)].reshape(PAIR_FUNCTIONS, PAIR_FUNCTIONS, -1)
            table = table if pair[0] == j else table.transpose(1, 0, 2)
            factors += np.einsum("nb,abk->nak", F[:, self._at[other]], table)
        return h + np.einsum("qa,nak->nqk", own, factors, optimize=True)
