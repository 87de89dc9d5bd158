"""Algorithms 1 and 2: Theorem 1, Theorem 2, the corollary, Remark 1, by independent solvers."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from sobolev.convex.feature_maps import LandmarkMap, coupled_forms
from sobolev.convex.solvers import (
    Alternating,
    BlockCoordinateDescent,
    Penalties,
    alternating,
    block_coordinate_descent,
    decomposition,
    resolve_solver,
)
from sobolev.criterion import normalized_importances, parse_groups
from sobolev.targets import TargetEncoder

SOLVERS = {"alternating": alternating, "bcd": block_coordinate_descent}
PENALTIES = Penalties(lam=0.1, rho=1.0, tau=0.01, epsilon=1e-6)
GROUPINGS = {
    "features": None,
    "disjoint": [[0, 1], [2, 3]],
    "overlapping": [[0, 1, 2], [2, 3]],
}


@pytest.fixture
def forms_of(draw_sample, bind_map):
    def make(name, **sample):
        X, psi, p = draw_sample(**({"n": 40, "weighted": True} | sample))
        return bind_map(name, X, p).forms(X, psi, p)

    return make


@pytest.fixture
def coupled(draw_sample, bind_map):
    """Forms under the joint distribution of x and y."""
    X, psi, p = draw_sample(n=40, k=2)
    omega = p[:, None, None] * psi[:, :, None] * psi[:, None, :]
    return coupled_forms(bind_map("fourier", X, p), X, psi, p, omega, p[:, None] * psi)


def grouping(name):
    return None if GROUPINGS[name] is None else parse_groups(GROUPINGS[name], 4)


def objective(forms, U, penalties, groups=None):
    """L_epsilon with eta eliminated, from the definition of the criterion."""
    squares = forms.squared_gradients(U)
    if groups is not None:
        squares = groups.squared_gradients(squares)
    roots = np.sqrt(squares + penalties.epsilon).sum()
    return (
        -np.sum(U * forms.M)
        + 0.5 * penalties.lam * roots**2
        + 0.5 * penalties.rho * np.sum(U * forms.covariance_times(U))
        + 0.5 * penalties.tau * np.sum(U * forms.norm_times(U))
    )


def assert_fixed_point(forms, solution, penalties, groups=None, tol=1e-6):
    """Theorem 1 (Alg. 1 and 2): eta is that of U, and U is that of eta, by a dense solve."""
    squares = forms.squared_gradients(solution.U)
    weights = 1 / solution.eta
    if groups is not None:
        squares, weights = groups.squared_gradients(squares), groups.feature_weights(solution.eta)
    eta = normalized_importances(squares, penalties.epsilon)
    assert np.abs(eta - solution.eta).max() <= tol * solution.eta.max()
    A = forms.system(weights, penalties.lam, penalties.rho, penalties.tau)
    U = np.linalg.solve(A, forms.M)
    assert np.linalg.norm(U - solution.U) <= tol * np.linalg.norm(U)


@pytest.mark.parametrize("grouped", GROUPINGS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_both_solvers_reach_the_fixed_point(solver, grouped, map_name, forms_of):
    forms, groups = forms_of(map_name), grouping(grouped)
    solution = SOLVERS[solver](forms, PENALTIES, groups, max_iter=5000, tol=1e-8)
    assert solution.converged
    assert solution.residual <= 1e-8
    assert_fixed_point(forms, solution, PENALTIES, groups)
    assert solution.eta.sum() == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_both_solvers_reach_the_fixed_point_of_a_coupled_system(solver, coupled):
    solution = SOLVERS[solver](coupled, PENALTIES, max_iter=5000, tol=1e-8)
    assert_fixed_point(coupled, solution, PENALTIES)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize("grouped", GROUPINGS)
def test_solvers_agree(grouped, epsilon, map_name, forms_of):
    forms, groups = forms_of(map_name), grouping(grouped)
    penalties = Penalties(0.1, 1.0, 0.01, epsilon)
    options = {"groups": groups, "max_iter": 5000, "tol": 1e-8}
    first = alternating(forms, penalties, **options)
    second = block_coordinate_descent(forms, penalties, **options)
    np.testing.assert_allclose(second.eta, first.eta, atol=1e-6)
    np.testing.assert_allclose(second.U, first.U, atol=1e-6 * np.abs(first.U).max())


@pytest.mark.parametrize("start", ["uniform", "corner", "random"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_objective_never_increases(solver, start, map_name, forms_of):
    forms = forms_of(map_name)
    eta = {
        "uniform": None,
        "corner": np.array([1.0, 0.0, 0.0, 0.0]),
        "random": np.random.default_rng(0).dirichlet(np.ones(4)),
    }[start]
    solution = SOLVERS[solver](forms, PENALTIES, eta=eta, max_iter=300, tol=1e-10)
    curve = solution.objective_curve
    assert curve.size == solution.n_iter + 1
    assert np.diff(curve).max() <= 1e-12 * np.abs(curve).max()
    assert curve[-1] == pytest.approx(objective(forms, solution.U, PENALTIES), rel=1e-7)


def test_the_solution_is_a_minimum_of_the_criterion(map_name, forms_of):
    """No direction leads down from it: the objective is convex, so this is the minimum."""
    forms = forms_of(map_name)
    U = alternating(forms, PENALTIES, max_iter=5000, tol=1e-9).U
    least = objective(forms, U, PENALTIES)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            direction = rng.standard_normal(U.shape) * np.abs(U).max()
            assert objective(forms, U + size * direction, PENALTIES) > least


@pytest.mark.parametrize("grouped", GROUPINGS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("tol", [1e-1, 1e-8])
def test_corollary(solver, grouped, tol, map_name, forms_of):
    """SIC = half the mean difference = the sum of the penalties, converged or not."""
    forms, groups = forms_of(map_name), grouping(grouped)
    solution = SOLVERS[solver](forms, PENALTIES, groups, max_iter=2000, tol=tol)
    terms = decomposition(forms, solution, PENALTIES, groups)
    assert terms.mean_difference == pytest.approx(np.sum(solution.U * forms.M), rel=1e-12)
    assert terms.sic == pytest.approx(0.5 * terms.mean_difference, rel=1e-8)
    # The terms themselves, from their definitions.
    squares = forms.squared_gradients(solution.U)
    by_group = squares if groups is None else groups.squared_gradients(squares)
    assert terms.gradient == pytest.approx(0.05 * np.sum(by_group / solution.eta), rel=1e-8)
    covariance = forms.covariance_times(solution.U)
    assert terms.function == pytest.approx(0.5 * np.sum(solution.U * covariance), rel=1e-8)


def test_at_the_fixed_point_each_part_is_in_proportion_to_its_importance(forms_of):
    """lam/2 E|d_j f|²/eta_j = eta_j times the whole gradient term when epsilon is negligible."""
    penalties = Penalties(0.05, 1.0, 0.01, 1e-14)
    forms = forms_of("fourier")
    solution = alternating(forms, penalties, max_iter=5000, tol=1e-10)
    terms = decomposition(forms, solution, penalties)
    np.testing.assert_allclose(terms.per_feature / terms.gradient, solution.eta, atol=1e-5)


def root(A):
    """B with B'B = A."""
    values, vectors = np.linalg.eigh((A + A.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0))).T


def dense(product, size):
    """The matrix of a product that is given for single columns."""
    return np.hstack([product(e[:, None]) for e in np.eye(size)])


def solve_with_cvxpy(forms, penalties, members, T=None):
    """The criterion as a second-order cone program, from D_j, C and G as dense matrices.

    The unknown is B U with B'B = rho C + tau G and the objective is scaled, for a precise answer.
    """
    cvxpy = pytest.importorskip("cvxpy")
    size, d = forms.M.shape[0], forms.n_features
    D = [root(forms.system(e, 1.0, 0.0, 0.0)) for e in np.eye(d)]
    C = dense(forms.covariance_times, size)
    G = dense(forms.norm_times, size)
    inverse = np.linalg.inv(root(penalties.rho * C + penalties.tau * G))
    BU = cvxpy.Variable(forms.M.shape)
    U = inverse @ BU
    eps = [np.sqrt(penalties.epsilon) * np.ones(1)]

    def norms(lists):
        return [cvxpy.norm(cvxpy.hstack(terms + eps)) for terms in lists]

    betas = norms([[cvxpy.vec(D[j] @ U, order="F") for j in group] for group in members])
    loss = -cvxpy.sum(cvxpy.multiply(inverse.T @ forms.M, BU)) + 0.5 * cvxpy.sum_squares(BU)
    loss += penalties.lam / 2 * cvxpy.square(cvxpy.sum(cvxpy.hstack(betas)))
    if T is not None:  # Remark 1
        y_betas = norms([[root(C) @ U @ t] for t in T])
        loss += penalties.lam / 2 * cvxpy.square(cvxpy.sum(cvxpy.hstack(y_betas)))
    problem = cvxpy.Problem(cvxpy.Minimize(1000 * loss))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")  # than 1e-10
        problem.solve(solver="CLARABEL", **tight)
    beta = np.array([b.value for b in betas]).ravel()
    return problem.value / 1000, inverse @ BU.value, beta / beta.sum()


def critic_distance(forms, U, V):
    """Relative distance of two critics in L2."""
    gap = U - V
    return np.sqrt(
        np.sum(gap * forms.covariance_times(gap)) / np.sum(V * forms.covariance_times(V))
    )


@pytest.mark.parametrize("grouped", GROUPINGS)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["gaussian", "cauchy", "fourier", "linear", "polynomial"])
def test_agrees_with_a_generic_convex_solver(name, k, grouped, forms_of):
    forms, groups = forms_of(name, n=25, k=k), grouping(grouped)
    solution = alternating(forms, PENALTIES, groups, max_iter=5000, tol=1e-9)
    members = GROUPINGS[grouped] or [[j] for j in range(4)]
    value, U, eta = solve_with_cvxpy(forms, PENALTIES, members)
    assert solution.objective_curve[-1] == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(solution.eta, eta, atol=1e-5)
    assert critic_distance(forms, solution.U, U) < 1e-5


def test_coupled_system_agrees_with_a_generic_convex_solver(coupled):
    solution = alternating(coupled, PENALTIES, max_iter=5000, tol=1e-9)
    value, _, eta = solve_with_cvxpy(coupled, PENALTIES, [[j] for j in range(4)])
    assert solution.objective_curve[-1] == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(solution.eta, eta, atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["gaussian", "fourier", "linear"])
def test_one_feature_has_all_the_importance(solver, name, forms_of):
    solution = SOLVERS[solver](forms_of(name, d=1), PENALTIES)
    np.testing.assert_allclose(solution.eta, [1.0], rtol=1e-12)
    assert solution.converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_singleton_groups_are_no_groups(solver, map_name, forms_of):
    forms = forms_of(map_name)
    plain = SOLVERS[solver](forms, PENALTIES)
    single = SOLVERS[solver](forms, PENALTIES, parse_groups([[0], [1], [2], [3]], 4))
    np.testing.assert_allclose(single.eta, plain.eta, rtol=1e-9)
    np.testing.assert_allclose(single.U, plain.U, rtol=1e-6, atol=1e-9)


def test_the_least_shrunk_linear_critic_is_ridge_regression(draw_sample, bind_map):
    """Limit lam → 0 of the linear map: U = (rho Cov + tau)^-1 Cov(x, psi)."""
    X, psi, p = draw_sample(n=40, k=1)
    forms = bind_map("linear", X, p).forms(X, psi, p)
    solution = alternating(forms, Penalties(1e-10, 1.0, 0.1, 1e-6))
    ridge = np.linalg.solve(X.T @ X / 40 + 0.1 * np.eye(4), X.T @ psi / 40)
    np.testing.assert_allclose(solution.U, ridge, atol=1e-6)


def test_a_large_lam_shrinks_the_criterion_to_zero(map_name, forms_of):
    forms = forms_of(map_name)
    sics = [-alternating(forms, Penalties(lam)).objective_curve[-1] for lam in (0.01, 0.1, 1e4)]
    assert sics[0] > sics[1] > sics[2]
    assert sics[2] < 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_warm_start_from_the_solution_takes_no_iteration(solver, forms_of):
    forms = forms_of("gaussian")
    cold = SOLVERS[solver](forms, PENALTIES, max_iter=2000, tol=1e-7)
    warm = SOLVERS[solver](forms, PENALTIES, eta=cold.eta, max_iter=2000, tol=1e-6)
    assert warm.n_iter < cold.n_iter
    assert warm.n_iter <= 1
    np.testing.assert_allclose(warm.eta, cold.eta, atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_max_iter_is_reported(solver, forms_of):
    solution = SOLVERS[solver](forms_of("gaussian"), PENALTIES, max_iter=2, tol=1e-12)
    assert not solution.converged
    assert solution.n_iter == 2
    assert solution.residual > 1e-12


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_sparsity_in_y_responses_have_no_importance(solver, forms_of):
    solution = SOLVERS[solver](forms_of("linear"), PENALTIES)
    assert solution.zeta.size == solution.target_squares.size == 0
    assert decomposition(forms_of("linear"), solution, PENALTIES).per_target.size == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_callback_sees_every_iteration(solver, forms_of):
    seen = []
    solution = SOLVERS[solver](
        forms_of("gaussian"), PENALTIES, callback=lambda i, value: seen.append((i, value))
    )
    assert [i for i, _ in seen] == list(range(solution.n_iter + 1))
    np.testing.assert_allclose([v for _, v in seen], solution.objective_curve, rtol=1e-3)


# Theorem 2


@pytest.fixture
def with_noise(draw_sample, bind_map):
    """Forms of two true features and two of noise, weakly correlated with the response."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 4))
    y = np.tanh(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(200)
    X, psi, p = X - X.mean(axis=0), (y - y.mean())[:, None] / y.std(), np.full(200, 1 / 200)
    return lambda name: bind_map(name, X, p).forms(X, psi, p)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", ["linear", "powers", "polynomial"])
def test_irrelevant_features_vanish_with_epsilon(name, solver, with_noise):
    """In maps that can leave a feature out; every kernel function uses all of them."""
    forms, penalties = with_noise(name), Penalties(0.3, 1.0, 0.01)
    epsilons = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
    settings = replace(resolve_solver(solver), max_iter=5000, tol=1e-9)
    noise = np.array(
        [
            replace(settings, epsilon=epsilons[: i + 1]).solve(forms, penalties).eta[2:].max()
            for i in range(len(epsilons))
        ]
    )
    assert np.all(np.diff(noise) < 0)
    assert noise[-1] < 1e-3
    # An unused feature keeps only the share of epsilon: a hundredth of it divides eta by ten.
    assert noise[-1] < 0.2 * noise[-2]
    final = replace(settings, epsilon=epsilons).solve(forms, penalties)
    assert final.eta[:2].min() > 0.05


def test_continuation_reaches_the_same_point_as_a_direct_solve(with_noise):
    forms, penalties = with_noise("fourier"), Penalties(0.1, 1.0, 0.01, 1e-8)
    direct = alternating(forms, penalties, max_iter=5000, tol=1e-10)
    path = Alternating(epsilon=(1e-2, 1e-5, 1e-8), max_iter=5000, tol=1e-10).solve(forms, penalties)
    np.testing.assert_allclose(path.eta, direct.eta, atol=1e-7)
    assert path.objective_curve[-1] == pytest.approx(direct.objective_curve[-1], rel=1e-9)
    assert path.objective_curve.size == path.n_iter + 3


@pytest.mark.parametrize("name", ["subset", "fourier", "linear", "polynomial"])
def test_solutions_tend_to_that_of_the_unperturbed_problem(name, with_noise):
    forms, penalties = with_noise(name), Penalties(0.3, 1.0, 0.01, 0.0)
    value, _, eta = solve_with_cvxpy(forms, penalties, [[j] for j in range(4)])
    for epsilon, tol in ((1e-4, 3e-2), (1e-8, 3e-4), (1e-12, 3e-6)):
        solver = Alternating(epsilon=(1e-2, epsilon), max_iter=20_000, tol=1e-10)
        solution = solver.solve(forms, penalties)
        assert abs(solution.objective_curve[-1] - value) < tol
        np.testing.assert_allclose(solution.eta, eta, atol=30 * tol)


# Remark 1


@pytest.fixture
def joint_problem(draw_sample, bind_map):
    X, psi, p = draw_sample(n=40, k=3)
    forms = bind_map("fourier", X, p).forms(X, psi, p)
    return forms, np.random.default_rng(0).standard_normal((3, 3))


@pytest.mark.parametrize("grouped", GROUPINGS)
def test_joint_solution_solves_the_kronecker_system(joint_problem, grouped):
    forms, T = joint_problem
    groups = grouping(grouped)
    solution = alternating(forms, PENALTIES, groups, max_iter=5000, tol=1e-9, output_weights=T)
    assert solution.converged
    eta, zeta = solution.eta, solution.zeta
    size, k = forms.M.shape
    C = forms.covariance_times(np.eye(size))
    weights = 1 / eta if groups is None else groups.feature_weights(eta)
    A = forms.system(weights, PENALTIES.lam, PENALTIES.rho, PENALTIES.tau)
    Q = (T.T / zeta) @ T
    # vec stacks the columns of U: A U + lam C U Q = M.
    system = np.kron(np.eye(k), A) + PENALTIES.lam * np.kron(Q, C)
    U = np.linalg.solve(system, forms.M.ravel(order="F")).reshape(size, k, order="F")
    np.testing.assert_allclose(solution.U, U, atol=1e-8 * np.abs(U).max())
    squares = forms.squared_gradients(U)
    squares = squares if groups is None else groups.squared_gradients(squares)
    y_squares = np.array([t @ U.T @ C @ U @ t for t in T])
    np.testing.assert_allclose(eta, normalized_importances(squares, 1e-6), atol=1e-8)
    np.testing.assert_allclose(zeta, normalized_importances(y_squares, 1e-6), atol=1e-8)


def test_joint_objective_never_increases_and_the_corollary_holds(joint_problem):
    forms, T = joint_problem
    solution = alternating(forms, PENALTIES, max_iter=200, tol=1e-9, output_weights=T)
    curve = solution.objective_curve
    assert np.diff(curve).max() <= 1e-12 * np.abs(curve).max()
    terms = decomposition(forms, solution, PENALTIES)
    assert terms.per_target.shape == (3,)
    assert terms.sic == pytest.approx(0.5 * terms.mean_difference, rel=1e-8)


def test_joint_problem_agrees_with_a_generic_convex_solver(joint_problem):
    forms, T = joint_problem
    solution = alternating(forms, PENALTIES, max_iter=5000, tol=1e-9, output_weights=T)
    value, U, eta = solve_with_cvxpy(forms, PENALTIES, [[j] for j in range(4)], T)
    assert solution.objective_curve[-1] == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(solution.eta, eta, atol=1e-5)
    assert critic_distance(forms, solution.U, U) < 1e-5


def test_an_irrelevant_response_has_little_importance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    Y = np.column_stack([X[:, 0] + X[:, 1], rng.standard_normal(400), np.sin(2 * X[:, 0])])
    X, p = X - X.mean(axis=0), np.full(400, 1 / 400)
    encoder = TargetEncoder().fit(Y)
    forms = LandmarkMap(60).bind(X, np.ones(4), p, rng).forms(X, encoder.transform(Y), p)
    solution = alternating(
        forms, Penalties(0.3), output_weights=encoder.output_weights, max_iter=1000, tol=1e-6
    )
    assert solution.zeta[1] < 0.05
    assert solution.zeta[[0, 2]].min() > 0.3
    assert solution.zeta.sum() == pytest.approx(1.0)


# The solvers as parts of an estimator


@pytest.mark.parametrize("part", [Alternating, BlockCoordinateDescent])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("tol", -1.0),
        ("epsilon", 0.0),
        ("epsilon", []),
        ("epsilon", [1e-8, 1e-2]),
        ("epsilon", [1e-2, 1e-2]),
        ("rounds", "many"),
        ("rounds", 0),
        ("screen", 2.5),
        ("precision", "half"),
    ],
)
def test_wrong_fields_are_named(part, name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        part(**{name: value})


def test_the_step_of_algorithm_2_is_checked():
    with pytest.raises(ValueError, match="step=0 must be positive"):
        BlockCoordinateDescent(step=0)


def test_solvers_are_resolved_by_name():
    assert resolve_solver("alternating") == Alternating()
    assert resolve_solver("bcd") == BlockCoordinateDescent()
    own = Alternating(rounds=1)
    assert resolve_solver(own) is own
    with pytest.raises(ValueError, match=r'solver=3 is unknown; use "alternating", "bcd"'):
        resolve_solver(3)
