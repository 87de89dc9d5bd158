"""Every quadratic form against sums over rows and differences of the map's values."""

import numpy as np
import pytest

from sobolev.convex import quadratics
from sobolev.convex.feature_maps import coupled_forms
from sobolev.convex.quadratics import LinearPart, ShiftedGram, cholesky

TOL = {"rtol": 1e-6, "atol": 1e-8}  # of the differences, not of the forms


def omegas(p, psi):
    """Weights of the second moments: the product measure's, and a block's with both signs."""
    return {"product": p, "signed": p * psi[:, 0] * psi[:, -1]}


@pytest.fixture(params=["product", "signed"])
def case(request, map_name, draw_sample, bind_map, brute_force):
    """Forms under unequal row weights, with the brute-force oracle."""
    X, psi, p = draw_sample(weighted=True)
    omega = omegas(p, psi)[request.param]
    assert (omega.min() < 0) == (request.param == "signed")
    bound = bind_map(map_name, X, p)
    return bound.forms(X, psi, p, omega), brute_force(bound, X, psi, p, omega)


def test_mean_difference(case):
    forms, (M, *_) = case
    np.testing.assert_allclose(forms.M, M, atol=1e-12)


def test_mean_of_the_map(map_name, draw_sample, bind_map):
    X, psi, p = draw_sample(weighted=True)
    bound = bind_map(map_name, X, p)
    np.testing.assert_allclose(bound.forms(X, psi, p).mean, p @ bound.values(X), atol=1e-12)


def test_covariance(case):
    forms, (_, C, _, _) = case
    np.testing.assert_allclose(forms.covariance_times(np.eye(C.shape[0])), C, atol=1e-12)


def test_norm(case):
    forms, (_, _, _, G) = case
    np.testing.assert_allclose(forms.norm_times(np.eye(G.shape[0])), G, atol=1e-12)


def test_each_squared_gradient(case):
    forms, (M, _, D, _) = case
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((2, *M.shape))
    np.testing.assert_allclose(
        forms.squared_gradients(U, V), [np.sum(U * (D_j @ V)) for D_j in D], **TOL
    )
    np.testing.assert_allclose(
        forms.squared_gradients(U), [np.sum(U * (D_j @ U)) for D_j in D], **TOL
    )


def test_weighted_sum_of_gradient_forms(case):
    forms, (_, _, D, _) = case
    weights = np.array([1.0, 0.0, 3.0, 100.0])
    np.testing.assert_allclose(
        forms.system(weights, 1.0, 0.0, 0.0), np.tensordot(weights, D, axes=1), **TOL
    )


def test_system_is_the_sum_of_the_three_penalties(case):
    forms, (_, C, D, G) = case
    weights = np.array([4.0, 1.0, 2.0, 8.0])
    expected = 0.7 * np.tensordot(weights, D, axes=1) + 0.3 * C + 0.2 * G
    np.testing.assert_allclose(forms.system(weights, 0.7, 0.3, 0.2), expected, **TOL)


def test_parts_alone(case):
    """The nonlinear part's own interface: penalty, products, mean, mean derivative, cross."""
    forms, (_, C, D, _) = case
    part, m = forms.part, forms.m
    weights = np.array([2.0, 1.0, 0.5, 3.0])
    expected = np.tensordot(weights, D, axes=1)[:m, :m]
    np.testing.assert_allclose(part.penalty(weights), expected, **TOL)
    np.testing.assert_allclose(part.C, C[:m, :m], atol=1e-12)
    U, V = np.random.default_rng(2).standard_normal((2, m, 2))
    products = [np.sum(U * (D_j[:m, :m] @ V)) for D_j in D]
    np.testing.assert_allclose(part.gradient_products(U, V), products, **TOL)
    if forms.linear is not None:
        # D_j couples the parts through the mean derivative of phi, in column j alone.
        np.testing.assert_allclose(
            part.mean_derivative,
            np.column_stack([D_j[:m, m + j] for j, D_j in enumerate(D)]),
            **TOL,
        )
        np.testing.assert_allclose(part.cross, C[:m, m:], atol=1e-12)


@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize(
    "shape",
    [{"n": 30, "d": 4}, {"n": 9, "d": 9}, {"n": 8, "d": 25}],
    ids=["tall", "square", "wide"],
)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["gaussian", "gaussian alone", "cauchy", "linear", "fourier"])
def test_solve_equals_the_dense_system(name, k, shape, rho, draw_sample, bind_map):
    X, psi, p = draw_sample(k=k, weighted=True, **shape)
    forms = bind_map(name, X, p).forms(X, psi, p)
    if name in ("gaussian", "linear"):  # more features than rows: Woodbury
        assert forms.linear.wide == (shape["d"] > shape["n"])
    weights = np.random.default_rng(0).uniform(1, 50, size=shape["d"])
    A = forms.system(weights, 0.1, rho, 0.01)
    U = forms.solve(weights, 0.1, rho, 0.01)
    assert U.shape == forms.M.shape == (A.shape[0], k)
    np.testing.assert_allclose(U, np.linalg.solve(A, forms.M), rtol=1e-7, atol=1e-9)
    other = np.random.default_rng(1).standard_normal((A.shape[0], 2))
    np.testing.assert_allclose(
        forms.solve(weights, 0.1, rho, 0.01, M=other),
        np.linalg.solve(A, other),
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.parametrize("mass", [0.25, 4.0])
@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_solve_under_weights_that_do_not_sum_to_one(name, mass, draw_sample, bind_map):
    X, psi, p = draw_sample(weighted=True)
    forms = bind_map(name, X, p).forms(X, psi, p, mass * p)
    assert forms.linear.mass == pytest.approx(mass)
    weights = np.array([1.0, 5.0, 2.0, 9.0])
    A = forms.system(weights, 0.3, 0.8, 0.1)
    np.testing.assert_allclose(A @ forms.solve(weights, 0.3, 0.8, 0.1), forms.M, atol=1e-9)


def test_both_forms_of_the_linear_block_agree(draw_sample):
    X, psi, p = draw_sample(n=8, d=25, weighted=True)
    few = LinearPart.from_rows(X, psi, p, p)
    gram = LinearPart(few.M, few.covariance())
    v = np.random.default_rng(0).standard_normal((25, 2))
    np.testing.assert_allclose(few.quadratic(v), gram.quadratic(v), atol=1e-12)
    B, shift = np.random.default_rng(1).standard_normal((5, 25)), np.linspace(1, 2, 25)
    A = ShiftedGram(few, shift, 0.7)
    reduction = A.quadratic_inverse(B)
    dense = np.diag(shift) + 0.7 * few.covariance()
    np.testing.assert_allclose(reduction, B @ np.linalg.solve(dense, B.T), atol=1e-10)
    other = ShiftedGram(gram, shift, 0.7).quadratic_inverse(B)
    np.testing.assert_allclose(other, reduction, atol=1e-10)
    np.testing.assert_allclose(A.solve(v), np.linalg.solve(dense, v), atol=1e-10)


def test_landmark_gradients_are_the_derivatives_of_the_critic(draw_sample, bind_map):
    X, psi, p = draw_sample()
    for name in ("gaussian alone", "cauchy"):
        bound = bind_map(name, X, p)
        part = bound.part(X, psi, p, p)
        u = np.random.default_rng(0).standard_normal(part.M.shape[0])
        for j, e in enumerate(np.eye(4)):
            up, down = (bound.nonlinear_values(X + s * 1e-5 * e) @ u for s in (1, -1))
            np.testing.assert_allclose(part.gradients(u)[:, j], (up - down) / 2e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["gaussian", "cauchy"])
def test_sums_of_many_rows_are_made_of_kept_forms(name, draw_sample, bind_map, monkeypatch):
    X, psi, p = draw_sample(n=40)
    weights = np.random.default_rng(1).exponential(size=(quadratics.FEW_SUMS + 3, 4))
    plain = bind_map(name, X, p).part(X, psi, p, p)
    expected = [plain.penalty(w) for w in weights]
    assert not plain._each.size
    monkeypatch.setattr(quadratics, "MANY_ROWS", 10)
    kept = bind_map(name, X, p).part(X, psi, p, p)
    np.testing.assert_allclose(kept.C, plain.C, atol=1e-14)
    np.testing.assert_allclose([kept.penalty(w) for w in weights], expected, atol=1e-12)
    assert kept._each.size


@pytest.mark.parametrize("k", [2, 3])
def test_coupled_forms_equal_those_of_kronecker_features(
    k, map_name, draw_sample, bind_map, brute_force
):
    """Under a general measure f = <U, phi ⊗ psi> has forms of size m k; build them row by row."""
    X, psi, p = draw_sample(k=k, weighted=True)
    bound = bind_map(map_name, X, p)
    outer = psi[:, :, None] * psi[:, None, :]
    omega = p[:, None, None] * (0.3 * outer + 0.7 * np.eye(k))
    difference = p[:, None] * (psi - psi[::-1])
    forms = coupled_forms(bound, X, psi, p, omega, difference)

    values = bound.values(X)
    phi, m = values - p @ values, values.shape[1]
    slopes = [(bound.values(X + 1e-5 * e) - bound.values(X - 1e-5 * e)) / 2e-5 for e in np.eye(4)]

    def moment(rows):
        return sum(np.kron(omega[i], np.outer(rows[i], rows[i])) for i in range(p.size))

    G = brute_force(bound, X, psi, p, p)[3]
    C, D = moment(phi), [moment(s) for s in slopes]
    weights = np.array([1.0, 5.0, 2.0, 9.0])
    A = 0.4 * sum(w * D_j for w, D_j in zip(weights, D, strict=True))
    A += 0.8 * C + 0.1 * np.kron(np.eye(k), G)
    np.testing.assert_allclose(forms.system(weights, 0.4, 0.8, 0.1), A, **TOL)
    np.testing.assert_allclose(forms.M[:, 0], np.ravel((phi.T @ difference).T), atol=1e-12)

    U = np.random.default_rng(0).standard_normal((m * k, 1))
    np.testing.assert_array_equal(forms.split(U), U.reshape(k, m).T)
    np.testing.assert_allclose(
        forms.squared_gradients(U), [np.sum(U * (D_j @ U)) for D_j in D], **TOL
    )
    np.testing.assert_allclose(forms.covariance_times(U), C @ U, atol=1e-10)
    np.testing.assert_allclose(forms.norm_times(U), np.kron(np.eye(k), G) @ U, atol=1e-12)
    solved = forms.solve(weights, 0.4, 0.8, 0.1)
    np.testing.assert_allclose(A @ solved, forms.M, rtol=1e-4, atol=1e-6)


def test_coupled_forms_of_a_product_measure_fall_apart(map_name, draw_sample, bind_map):
    X, psi, p = draw_sample(k=2)
    bound = bind_map(map_name, X, p)
    omega = p[:, None, None] * np.eye(2)
    coupled = coupled_forms(bound, X, psi, p, omega, p[:, None] * psi)
    product = bound.forms(X, psi, p)
    weights = np.array([1.0, 5.0, 2.0, 9.0])
    np.testing.assert_allclose(
        coupled.split(coupled.solve(weights, 0.1, 1.0, 0.01)),
        product.solve(weights, 0.1, 1.0, 0.01),
        rtol=1e-8,
        atol=1e-9,
    )


def test_cholesky_adds_the_least_ridge_that_rounding_needs():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((6, 6))
    definite = B @ B.T + np.eye(6)
    L = cholesky(definite)
    np.testing.assert_allclose(L @ L.T, definite, rtol=1e-12)
    singular = np.outer(B[0], B[0]) - 1e-13 * np.eye(6)
    L = cholesky(singular)
    assert np.abs(L @ L.T - singular).max() < 1e-7 * np.abs(singular).max()
    with pytest.raises(FloatingPointError, match="raise `tau`"):
        cholesky(-np.eye(3))
