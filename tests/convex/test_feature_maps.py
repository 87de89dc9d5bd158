"""Feature maps: what they span, how they scale, and that they refuse what they cannot use."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist
from scipy.special import comb
from scipy.stats import kstest

from sobolev.convex.choosing import AUTO_FOURIER_ROWS, AutoMap, resolve_feature_map
from sobolev.convex.feature_maps import (
    MAX_LANDMARKS,
    MAX_RESOLUTION,
    CustomMap,
    FourierMap,
    LandmarkMap,
    LinearMap,
    PolynomialMap,
    fourier_values,
    kernel_metric,
    median_squared_distance,
    orthogonal_gaussian,
    pivoted_landmarks,
    squared_distances,
    value_spacing,
    weighted_median,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def uniform(n):
    return np.full(n, 1 / n)


def test_squared_distances_agree_with_scipy(rng):
    X, Y, metric = rng.normal(size=(9, 4)), rng.normal(size=(5, 4)), rng.uniform(size=4)
    expected = cdist(X, Y, "sqeuclidean", w=metric)
    np.testing.assert_allclose(squared_distances(X, Y, metric), expected, atol=1e-12)
    assert np.all(squared_distances(X, X, metric) >= 0)


@pytest.mark.parametrize("n", [5, 6, 40])
def test_median_distance_agrees_with_scipy(rng, n):
    X, metric = rng.normal(size=(n, 3)), np.array([1.0, 0.5, 2.0])
    expected = np.median(pdist(X, "sqeuclidean", w=metric))
    assert median_squared_distance(X, metric, uniform(n)) == pytest.approx(expected, rel=1e-12)


def test_median_distance_reads_integer_weights_as_repetitions(rng):
    X, w = rng.normal(size=(15, 3)), rng.integers(1, 4, size=15)
    weighted = median_squared_distance(X, np.ones(3), w / w.sum())
    repeated = np.repeat(X, w, axis=0)
    assert weighted == pytest.approx(
        median_squared_distance(repeated, np.ones(3), uniform(len(repeated))), rel=1e-12
    )


def test_median_distance_of_equal_rows_is_one():
    assert median_squared_distance(np.ones((5, 2)), np.ones(2), uniform(5)) == 1.0


def test_landmarks_span_the_kernel_up_to_tol(rng):
    X = rng.normal(size=(80, 2))
    K = np.exp(-0.05 * cdist(X, X, "sqeuclidean"))
    for tol in (1e-2, 1e-6):
        rows = pivoted_landmarks(K, tol)
        assert 0 < rows.size < 80
        assert np.unique(rows).size == rows.size
        # Nyström: the squared norm of what the landmarks cannot represent of each k(., x_i).
        rest = np.diag(K - K[:, rows] @ np.linalg.solve(K[np.ix_(rows, rows)], K[rows]))
        assert rest.max() <= tol * (1 + 1e-4)
        fewer = rows[:-1]
        rest = np.diag(K - K[:, fewer] @ np.linalg.solve(K[np.ix_(fewer, fewer)], K[fewer]))
        assert rest.max() > tol  # none too many


def test_repeated_rows_give_one_landmark(rng):
    X = np.repeat(rng.normal(size=(10, 3)), 3, axis=0)
    assert LandmarkMap().bind(X, np.ones(3), uniform(30), rng).n_functions == 10


@pytest.mark.parametrize("kernel", ["gaussian", "cauchy"])
def test_landmark_values_are_the_kernel_at_the_median_bandwidth(rng, kernel):
    X, metric = rng.normal(size=(30, 3)), np.array([1.0, 0.2, 0.0])
    bound = LandmarkMap(kernel=kernel, bandwidth=0.7).bind(X, metric, uniform(30), rng)
    q = cdist(X, bound.centers, "sqeuclidean", w=metric)
    q /= 0.7 * np.median(pdist(X, "sqeuclidean", w=metric))
    expected = np.exp(-q / 2) if kernel == "gaussian" else 1 / (1 + q / 2)
    np.testing.assert_allclose(bound.nonlinear_values(X), expected, atol=1e-9)
    np.testing.assert_array_equal(bound.values(X)[:, bound.n_functions :], X)


def test_cauchy_has_the_heavier_tail_and_is_positive_definite(rng):
    X = rng.normal(size=(25, 2))
    far = np.array([[30.0, 0.0]])
    values = {}
    for kernel in ("gaussian", "cauchy"):
        bound = LandmarkMap(kernel=kernel).bind(X, np.ones(2), uniform(25), rng)
        values[kernel] = bound.nonlinear_values(far).max()
        assert np.linalg.eigvalsh(bound.nonlinear_values(bound.centers)).min() > 0
    assert values["cauchy"] > 1e-3 > values["gaussian"]


def test_landmarks_do_not_depend_on_the_generator_when_all_rows_are_candidates():
    X = np.random.default_rng(1).normal(size=(50, 3))
    first, second = (
        LandmarkMap().bind(X, np.ones(3), uniform(50), np.random.default_rng(seed))
        for seed in (0, 1)
    )
    np.testing.assert_array_equal(first.centers, second.centers)


def test_many_rows_give_a_subset_of_landmarks(rng):
    X = rng.normal(size=(200, 20))
    bound = LandmarkMap(n_components=30).bind(X, np.ones(20), uniform(200), rng)
    assert bound.n_functions == 30
    rows = {row.tobytes() for row in X}
    assert all(center.tobytes() in rows for center in bound.centers)
    X = rng.normal(size=(MAX_LANDMARKS + 1, 20))
    assert LandmarkMap().bind(X, np.ones(20), uniform(len(X)), rng).n_functions <= MAX_LANDMARKS


def test_rows_of_no_weight_are_not_drawn_as_landmarks(rng):
    X = rng.normal(size=(100, 5))
    p = np.where(np.arange(100) < 40, 1 / 40, 0.0)
    bound = LandmarkMap(n_components=20).bind(X, np.ones(5), p, rng)
    heavy = {row.tobytes() for row in X[:40]}
    assert all(center.tobytes() in heavy for center in bound.centers)


def test_unknown_kernel_is_named(rng):
    with pytest.raises(ValueError, match="kernel='laplace'"):
        LandmarkMap(kernel="laplace").bind(np.eye(4), np.ones(4), uniform(4), rng)


def test_fourier_products_approach_the_gaussian_kernel(rng):
    X, metric = rng.normal(size=(40, 3)), np.array([1.0, 0.3, 0.0])
    sigma2 = 0.4 * np.median(pdist(X, "sqeuclidean", w=metric))
    kernel = np.exp(-cdist(X, X, "sqeuclidean", w=metric) / (2 * sigma2))
    errors = []
    for m in (100, 10_000):
        bound = FourierMap(n_components=m, linear=False).bind(X, metric, uniform(40), rng)
        assert bound.n_functions == m
        phi = bound.values(X)
        np.testing.assert_allclose(np.sum(phi**2, axis=1), 1.0, rtol=1e-12)
        errors.append(np.abs(phi @ phi.T - kernel).max())
    assert errors[1] < 0.05
    assert errors[1] < errors[0] / 3


def test_fourier_values_come_in_pairs(rng):
    X, W = rng.normal(size=(6, 2)), rng.normal(size=(3, 2))
    phi = fourier_values(X, W) * np.sqrt(3)
    np.testing.assert_allclose(phi[:, :3], np.cos(X @ W.T))
    np.testing.assert_allclose(phi[:, 3:], np.sin(X @ W.T))


def test_orthogonal_gaussian_is_normal_and_orthogonal_in_blocks(rng):
    W = orthogonal_gaussian(10, 4, rng)
    assert W.shape == (10, 4)
    for block in (W[:4], W[4:8], W[8:]):
        gram = block @ block.T
        np.testing.assert_allclose(gram, np.diag(np.diag(gram)), atol=1e-12)
    many = orthogonal_gaussian(4000, 4, rng)
    # A correct generator fails either of these once in a thousand seeds; the seed is fixed.
    assert kstest(many[:, 0], "norm").pvalue > 1e-3
    assert kstest(many @ [0.5, 0.5, 0.5, -0.5], "norm").pvalue > 1e-3


@pytest.mark.parametrize(("degree", "d"), [(1, 3), (2, 4), (3, 5)])
def test_polynomials_have_all_monomials(rng, degree, d):
    X = rng.normal(size=(80, d))
    bound = PolynomialMap(degree).bind(X, np.ones(d), uniform(80), rng)
    values = bound.values(X)
    assert values.shape[1] == comb(d + degree, degree, exact=True) - 1  # without the constant
    # Any polynomial of this degree is a combination of them.
    target = (1 + X @ rng.normal(size=d)) ** degree
    design = np.column_stack([np.ones(80), values])
    residual = np.linalg.lstsq(design, target)[1]
    assert residual.size == 1
    assert residual[0] < 1e-18 * (target @ target)
    np.testing.assert_allclose(values[:, : bound.n_functions].std(axis=0), 1.0, rtol=1e-12)


def test_powers_alone_skip_interactions(rng):
    X = rng.normal(size=(50, 3))
    bound = PolynomialMap(3, interactions=False).bind(X, np.ones(3), uniform(50), rng)
    expected = np.hstack([X**2, X**3])
    expected = expected / expected.std(axis=0)
    np.testing.assert_allclose(bound.nonlinear_values(X), expected, rtol=1e-12)


@pytest.mark.parametrize("spec", [PolynomialMap(3), PolynomialMap(3, interactions=False)])
def test_too_many_monomials_are_refused(rng, spec):
    d = 3000
    with pytest.raises(ValueError, match=r"3000 features has \d+ monomials"):
        spec.bind(np.zeros((2, d)), np.ones(d), uniform(2), rng)


def test_polynomials_of_degree_one_are_the_linear_map(draw_sample, rng):
    X, psi, p = draw_sample()
    one = PolynomialMap(1).bind(X, np.ones(4), p, rng)
    linear = LinearMap().bind(X, np.ones(4), p, rng)
    np.testing.assert_array_equal(one.values(X), linear.values(X))
    weights = np.ones(4)
    np.testing.assert_array_equal(
        one.forms(X, psi, p).solve(weights, 0.1, 1, 1),
        linear.forms(X, psi, p).solve(weights, 0.1, 1, 1),
    )


class Shifted:
    """A map with state: x minus the mean that ``fit`` has seen."""

    def fit(self, X):
        self.mean = X.mean(axis=0)

    def values(self, X):
        return X - self.mean

    def derivative(self, X, j):
        return np.tile(np.eye(X.shape[1])[j], (X.shape[0], 1))


def test_own_map_is_fitted_on_a_copy(rng):
    own, X = Shifted(), rng.normal(size=(10, 3))
    first = CustomMap(own).bind(X, np.ones(3), uniform(10), rng)
    CustomMap(own).bind(X + 5, np.ones(3), uniform(10), rng)
    np.testing.assert_allclose(first.values(X), X - X.mean(axis=0))
    assert not hasattr(own, "mean")


class Wrong(Shifted):
    def __init__(self, values, derivative):
        self._values, self._derivative = values, derivative

    def values(self, X):
        return self._values(X)

    def derivative(self, X, j):
        return self._derivative(X)


@pytest.mark.parametrize(
    ("values", "derivative", "message"),
    [
        (lambda X: X[:, 0], lambda X: X, r"values must return \(n, m\)"),
        (lambda X: X[:2].repeat(3, 0), lambda X: X, r"values must return \(n, m\)"),
        (lambda X: X, lambda X: X[:, :1], r"derivative\(X, 0\) must have the shape of values"),
    ],
)
def test_own_map_of_the_wrong_shape_is_named(rng, values, derivative, message):
    X = rng.normal(size=(10, 3))
    with pytest.raises(ValueError, match=message):
        CustomMap(Wrong(values, derivative)).bind(X, np.ones(3), uniform(10), rng).forms(
            X, X[:, :1], uniform(10)
        )


@pytest.mark.parametrize(
    ("name", "n", "kind"),
    [
        ("auto", AUTO_FOURIER_ROWS, LandmarkMap),
        ("auto", AUTO_FOURIER_ROWS + 1, FourierMap),
        ("landmark", 10**6, LandmarkMap),
        ("fourier", 10, FourierMap),
        ("linear", 10, LinearMap),
        ("polynomial", 10, PolynomialMap),
        (Shifted(), 10, CustomMap),
    ],
)
def test_maps_by_name(name, n, kind):
    assert isinstance(resolve_feature_map(name, n), kind)


@pytest.mark.parametrize(("n", "kind"), [(10, LandmarkMap), (10**6, FourierMap)])
def test_the_map_for_any_number_of_rows_has_a_size(n, kind):
    assert resolve_feature_map(AutoMap(12), n) == kind(12)
    assert resolve_feature_map("auto", n) == kind()


def test_precision_is_that_of_the_solver():
    assert resolve_feature_map(FourierMap(12), 10, single=True) == FourierMap(12, single=True)
    assert resolve_feature_map("fourier", 10, single=True).single


def test_a_map_object_is_taken_as_it_is():
    spec = LandmarkMap(bandwidth=2.0)
    assert resolve_feature_map(spec, 10) is spec


def test_unknown_maps_are_named():
    with pytest.raises(ValueError, match="feature_map='spline' is unknown"):
        resolve_feature_map("spline", 10)
    with pytest.raises(TypeError, match=r"values\(X\) and derivative\(X, j\); got int"):
        resolve_feature_map(3, 10)


def test_value_spacing_of_discrete_and_continuous_columns():
    p = uniform(6)
    assert value_spacing(np.array([0.0, 0, 0, 1, 1, 1]), p) == 1
    assert value_spacing(np.array([0.0, 2, 4, 4, 6, 6]), p) == 2
    assert value_spacing(np.zeros(6), p) == 0
    many = np.random.default_rng(0).normal(size=5000)
    assert value_spacing(many, uniform(5000)) < 1e-2
    # Weights are repetitions.
    x, weights = np.array([0.0, 1, 5, 5.5]), np.array([1, 1, 3, 1])
    repeated = np.repeat(x, weights)
    assert value_spacing(x, weights / 6) == value_spacing(repeated, uniform(6)) == 0.5


def test_kernels_are_wide_beside_the_spacing_of_values():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 200) * 3.0, rng.normal(size=(200, 2))])
    metric = np.array([1.0, 1e-6, 1.0])
    g = kernel_metric(X, metric, uniform(200), bandwidth=1e-3)
    assert g[0] == pytest.approx(MAX_RESOLUTION / 9)
    plain = metric / (1e-3 * median_squared_distance(X, metric, uniform(200)))
    np.testing.assert_allclose(g[1:], plain[1:])  # continuous columns are left alone


def test_weighted_median_is_the_median_of_repetitions():
    rng = np.random.default_rng(0)
    for _ in range(20):
        values, weights = rng.normal(size=7), rng.integers(1, 5, size=7)
        expected = np.median(np.repeat(values, weights))
        assert weighted_median(values, weights / 7) == pytest.approx(expected, rel=1e-12)
