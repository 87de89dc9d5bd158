"""S-matrices: optima against references, certificates, repairs, blocks and groups."""

import time
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

from sobolev.exceptions import ConvergenceWarning, SobolevWarning
from sobolev.knockoffs import (
    kkt_residual,
    repair_covariance,
    solve_group_s,
    solve_s,
)
from sobolev.knockoffs._blocks import correlation_blocks
from sobolev.knockoffs._newton import MVR, Centre, MaxEnt, Ties, point_at

METHODS = ["mvr", "sdp", "maxent", "equi"]


def chain(p, seed=0):
    """Correlations of a Markov chain with unequal steps: not stationary."""
    steps = np.random.default_rng(seed).beta(3, 1, p - 1)
    place = np.concatenate([[0], np.cumsum(np.log(steps))])
    return np.exp(-np.abs(place[:, None] - place))


def factor(p, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p // 2))
    S = A @ A.T + np.diag(rng.uniform(0.1, 2, p))
    d = np.sqrt(np.diag(S))
    return S / np.outer(d, d)


def objective(sigma, s, method):
    M = 2 * sigma - np.diag(s)
    if method == "mvr":
        return np.trace(np.linalg.inv(M)) + np.sum(1 / s)
    return -np.linalg.slogdet(M)[1] - np.log(s).sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sigma", [chain(40), factor(40), np.eye(3), np.eye(1)])
def test_s_is_feasible_and_optimal(sigma, method):
    s = solve_s(sigma, method)
    assert (s > 0).all()
    assert np.linalg.eigvalsh(2 * sigma - np.diag(s))[0] > 0
    assert kkt_residual(sigma, s, method) < 3e-7


@pytest.mark.parametrize("method", ["mvr", "maxent"])
@pytest.mark.parametrize("sigma", [chain(30), factor(60)])
def test_smooth_optima_are_those_of_a_general_solver(sigma, method):
    s = solve_s(sigma, method)

    def value_and_slope(t):  # s = exp(t)
        x = np.exp(t)
        M = 2 * sigma - np.diag(x)
        if np.linalg.eigvalsh(M)[0] <= 0:
            return 1e10, np.zeros_like(t)
        A = np.linalg.inv(M)
        slope = np.diag(A @ A) - 1 / x**2 if method == "mvr" else np.diag(A) - 1 / x
        return objective(sigma, x, method), slope * x

    start = np.full(len(s), np.log(np.linalg.eigvalsh(sigma)[0]))
    found = minimize(
        value_and_slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 0}
    )
    assert objective(sigma, s, method) <= found.fun + 1e-9 * abs(found.fun)
    np.testing.assert_allclose(s, np.exp(found.x), atol=1e-5)


@pytest.mark.parametrize("p", [30, 60])
def test_sdp_optimum_is_that_of_cvxpy(p):
    cp = pytest.importorskip("cvxpy")
    sigma = factor(p, seed=1)
    s = cp.Variable(p)
    problem = cp.Problem(cp.Maximize(cp.sum(s)), [s >= 0, s <= 1, 2 * sigma - cp.diag(s) >> 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL")
    np.testing.assert_allclose(solve_s(sigma, "sdp"), s.value, atol=1e-5)


@pytest.mark.parametrize("sigma", [chain(30), factor(30)])
def test_sdp_optimum_is_above_every_feasible_direction(sigma):
    """No other method, scaled to the boundary, has a larger sum."""
    s = solve_s(sigma, "sdp")
    for other in (solve_s(sigma, "mvr"), solve_s(sigma, "maxent"), solve_s(sigma, "equi")):
        d = 1 / np.sqrt(other)
        scale = 2 * np.linalg.eigvalsh(sigma * np.outer(d, d))[0]
        assert np.minimum(scale * other, 1).sum() < s.sum() + 1e-5


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("p", [2, 7])
def test_equal_correlations_have_known_answers(p, rho):
    sigma = np.full((p, p), rho) + (1 - rho) * np.eye(p)
    limit = min(1, 2 * (1 - rho))
    np.testing.assert_allclose(solve_s(sigma, "sdp"), limit, atol=1e-5)
    np.testing.assert_allclose(solve_s(sigma, "equi"), limit, atol=1e-7)
    # maxent: 1/s = A_jj with A = inverse of (2 (1 - rho) - s) I + 2 rho 11'.
    s = solve_s(sigma, "maxent")
    A = np.linalg.inv(2 * sigma - s[0] * np.eye(p))
    np.testing.assert_allclose(s * np.diag(A), 1, atol=1e-6)
    np.testing.assert_allclose(s, s[0])


@pytest.mark.parametrize("objective", [MaxEnt(), MVR(), Centre(0.1)], ids=["maxent", "mvr", "sdp"])
@pytest.mark.parametrize("labels", [[0, 1, 2, 3, 4], [0, 0, 1, 1, 1]])
def test_gradients_and_hessians_are_derivatives(objective, labels):
    twice, ties = np.asfortranarray(2 * factor(5)), Ties(np.array(labels))
    g = 0.3 * np.linalg.eigvalsh(twice)[0] * np.linspace(0.5, 1, max(labels) + 1)

    def at(x):
        return point_at(twice, x, ties)

    slope = objective.gradient(at(g), ties)[0]
    H = objective.hessian(at(g), ties)
    H = np.tril(H) + np.tril(H, -1).T
    for k in range(g.size):
        e = np.zeros(g.size)
        e[k] = 1e-6 * g[k]
        up, down = at(g + e), at(g - e)
        value = (objective.value(up, ties) - objective.value(down, ties)) / (2 * e[k])
        np.testing.assert_allclose(slope[k], value, rtol=1e-4)
        column = (objective.gradient(up, ties)[0] - objective.gradient(down, ties)[0]) / (2 * e[k])
        np.testing.assert_allclose(H[:, k], column, rtol=1e-4, atol=1e-5 * np.abs(H).max())


@pytest.mark.parametrize("method", ["mvr", "maxent", "sdp"])
def test_a_thousand_columns(method):
    """The limit is a few times the seconds that a slow core takes."""
    sigma = chain(1000)
    start = time.process_time()
    s = solve_s(sigma, method)
    assert time.process_time() - start < 60
    assert kkt_residual(sigma, s, method) <= 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_scale_and_order_of_the_columns_do_not_matter(method):
    sigma, rng = factor(12), np.random.default_rng(0)
    s, units, order = solve_s(sigma, method), rng.uniform(0.01, 100, 12), rng.permutation(12)
    scaled = sigma * np.outer(units, units)
    np.testing.assert_allclose(solve_s(scaled, method), s * units**2, rtol=1e-5)
    np.testing.assert_allclose(solve_s(sigma[np.ix_(order, order)], method), s[order], rtol=1e-5)
    assert kkt_residual(scaled, s * units**2, method) < 1e-6


def test_the_residual_sees_wrong_answers():
    sigma = factor(20)
    for method in METHODS:
        s = solve_s(sigma, method)
        assert kkt_residual(sigma, 0.9 * s, method) > 1e-3
        assert kkt_residual(sigma, 3 * s, method) > 0.1  # outside of the cone, or far
    assert kkt_residual(sigma, solve_s(sigma, "mvr"), "maxent") > 1e-2
    assert kkt_residual(sigma, solve_s(sigma, "mvr"), "sdp") > 1e-2
    with pytest.raises(ValueError, match="shape"):
        kkt_residual(sigma, np.ones(3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["singular", "indefinite", "nearly"])
def test_bad_covariances_are_repaired_and_told(method, kind):
    sigma = chain(6)
    if kind == "singular":
        sigma[0] = sigma[1]
        sigma[:, 0] = sigma[:, 1]
        sigma[0, 0] = 1
    elif kind == "indefinite":
        sigma = np.eye(6)
        sigma[0, 1] = sigma[1, 0] = sigma[1, 2] = sigma[2, 1] = 0.9
        sigma[0, 2] = sigma[2, 0] = -0.9
    else:
        sigma[0, 1] = sigma[1, 0] = 1 - 1e-9
        sigma[0, 2:] = sigma[1, 2:]
        sigma[2:, 0] = sigma[2:, 1]
    with pytest.warns(SobolevWarning, match="was added to the diagonal"):
        s = solve_s(sigma, method)
    with pytest.warns(SobolevWarning):
        repaired, shift = repair_covariance(sigma)
    assert shift > 0
    np.testing.assert_allclose(np.diag(repaired), 1)
    assert np.linalg.eigvalsh(repaired)[0] > 0.99e-6
    assert (s > 0).all()
    assert np.linalg.eigvalsh(2 * repaired - np.diag(s))[0] > 0


def test_good_covariances_are_left_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        repaired, shift = repair_covariance(3 * factor(10))
        for method in METHODS:
            solve_s(factor(10), method)
    assert shift == 0
    np.testing.assert_allclose(repaired, 3 * factor(10))


@pytest.mark.parametrize("method", ["mvr", "maxent", "sdp"])
def test_too_few_steps_are_told(method):
    with pytest.warns(ConvergenceWarning):
        solve_s(chain(60), method, max_iter=1)


def test_few_steps_are_enough():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sigma in (chain(100), factor(100)):
            solve_s(sigma, "mvr", max_iter=10)
            solve_s(sigma, "maxent", max_iter=8)
            solve_s(sigma, "sdp", max_iter=9)


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_the_duality_gap_bounds_the_distance_from_the_optimum(tol):
    sigma = np.full((6, 6), 0.8) + 0.2 * np.eye(6)  # the optimum is 0.4
    s = solve_s(sigma, "sdp", tol=tol)
    assert 0 < 0.4 - s.mean() <= kkt_residual(sigma, s, "sdp") < 3 * tol


@pytest.mark.parametrize(
    ("sigma", "match"),
    [
        (np.ones((2, 3)), "square"),
        ([[1, np.nan], [np.nan, 1]], "NaN"),
        ([[1, 0.5], [0.2, 1]], "symmetric"),
        ([[0, 0], [0, 1]], "variance of column 0"),
    ],
)
def test_bad_matrices_are_refused(sigma, match):
    with pytest.raises(ValueError, match=match):
        solve_s(sigma)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="method"):
        solve_s(np.eye(2), "best")
    with pytest.raises(ValueError, match="block_size"):
        solve_s(np.eye(2), block_size=0)
    with pytest.raises(ValueError, match="tol"):
        solve_s(np.eye(2), tol=0)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_stay_in_the_cone_and_lose_little(method):
    sigma = chain(90)
    whole, blocks = solve_s(sigma, method), solve_s(sigma, method, block_size=30)
    assert np.linalg.eigvalsh(2 * sigma - np.diag(blocks))[0] > 0
    assert blocks.sum() > (0.6 if method == "sdp" else 0.9) * whole.sum()
    if method in ("mvr", "maxent"):
        best = objective(sigma, blocks, method)
        for factor_ in (0.98, 1.02):
            s = factor_ * blocks
            if np.linalg.eigvalsh(2 * sigma - np.diag(s))[0] > 0:
                assert objective(sigma, s, method) > best
        assert best >= objective(sigma, whole, method)


@pytest.mark.parametrize("method", METHODS)
def test_blocks_without_correlation_between_them_are_exact(method):
    sigma = np.zeros((20, 20))
    sigma[::2, ::2], sigma[1::2, 1::2] = chain(10), factor(10)
    np.testing.assert_allclose(
        solve_s(sigma, method, block_size=10), solve_s(sigma, method), rtol=2e-3
    )


def test_blocks_gather_correlated_columns():
    sigma = np.eye(12)
    for k in range(4):
        sigma[k::4, k::4] = 0.8
    np.fill_diagonal(sigma, 1)
    for block in correlation_blocks(sigma, 3):
        assert len(set(block % 4)) == 1


@pytest.mark.parametrize("method", METHODS)
def test_groups_of_one_are_no_groups(method):
    sigma = factor(8)
    np.testing.assert_allclose(
        solve_group_s(sigma, [[j] for j in range(8)], method),
        np.diag(solve_s(sigma, method)),
        atol=1e-6,
    )


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_blocks_of_the_covariance(method):
    sigma = factor(9) * np.outer(np.arange(1, 10), np.arange(1, 10))
    groups = [[0, 4, 8], [1, 2]]
    S = solve_group_s(sigma, groups, method)
    for group in [*groups, [3], [5], [6], [7]]:
        block = np.ix_(group, group)
        np.testing.assert_allclose(
            S[block] / sigma[block], S[group[0], group[0]] / sigma[group[0], group[0]]
        )
        others = np.setdiff1d(np.arange(9), group)
        assert (S[np.ix_(group, others)] == 0).all()
    assert np.linalg.eigvalsh(2 * sigma - S)[0] > 0
    if method == "equi":
        ratios = np.diag(S) / np.diag(sigma)
        np.testing.assert_allclose(ratios, ratios[0])


def test_groups_keep_power_among_collinear_columns():
    sigma = np.full((4, 4), 0.0)
    sigma[:2, :2] = sigma[2:, 2:] = [[1, 0.999], [0.999, 1]]
    for method in METHODS:
        assert solve_s(sigma, method).max() < 0.01
        assert np.diag(solve_group_s(sigma, [[0, 1], [2, 3]], method)).min() > 0.9


def test_maxent_groups_reach_the_optimum_over_the_factors():
    sigma, groups = factor(6), [[0, 1, 2], [3, 4, 5]]
    S = solve_group_s(sigma, groups, "maxent")

    def entropy(S):
        sign, value = np.linalg.slogdet(2 * sigma - S)
        return value + np.linalg.slogdet(S)[1] if sign > 0 else -np.inf

    for k in (0, 3):
        for change in (0.99, 1.01):
            moved = S.copy()
            moved[k : k + 3, k : k + 3] *= change
            assert entropy(moved) < entropy(S)


def test_groups_that_overlap_are_refused():
    with pytest.raises(ValueError, match="column 'x1' is in 2 groups"):
        solve_group_s(np.eye(3), [[0, 1], [1, 2]])


def test_blocks_of_one_column_share_one_factor():
    """A column alone has s = 1 for every objective; only the common factor is left."""
    sigma = chain(12)
    for method in ("mvr", "sdp", "maxent"):
        s = solve_s(sigma, method, block_size=1)
        np.testing.assert_allclose(s, s[0], rtol=1e-6)
        assert 0 < s[0] < 2 * np.linalg.eigvalsh(sigma)[0]
        assert np.ptp(solve_s(sigma, method)) > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_one_block_is_the_whole(method):
    sigma = chain(12)
    for size in (12, 13):
        np.testing.assert_array_equal(
            solve_s(sigma, method, block_size=size), solve_s(sigma, method)
        )


def test_the_residual_is_that_of_the_worst_column():
    sigma = np.full((3, 3), 0.8) + 0.2 * np.eye(3)  # min(1, 2 lambda_min) is 0.4
    assert kkt_residual(sigma, [0.4, 0.4, 0.1], "equi") == pytest.approx(0.3)
    assert kkt_residual(sigma, [0.4, 0.6, 0.4], "equi") == pytest.approx(0.2)
    assert kkt_residual(np.eye(2), [0.7, 1.0], "equi") == pytest.approx(0.3)


def test_the_residual_at_the_edges_of_the_cone():
    assert kkt_residual(np.eye(3), np.ones(3), "sdp") < 1e-6  # one is the largest s allowed
    for method in ("mvr", "sdp", "maxent"):
        assert kkt_residual(np.eye(3), [1.0, 0.0, 1.0], method) == np.inf
        assert kkt_residual(np.eye(3), [1.0, 2.5, 1.0], method) == np.inf
