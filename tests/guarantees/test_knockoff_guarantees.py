"""What knockoffs promise, over many data sets; the bounds say how often a correct program fails."""

import numpy as np
import pytest
from scipy.stats import binom

from sobolev import ConvexSIC, KnockoffSelector
from sobolev.convex import LandmarkMap
from sobolev.knockoffs import solve_s

pytestmark = pytest.mark.slow

N_NULL, N_SEEDS = 200, 100


def chain(rng, n, p, rho=0.5):
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


@pytest.mark.parametrize(("n_draws", "offset"), [(1, 1), (5, 1), (5, 0)])
def test_nothing_is_found_where_nothing_is(n_draws, offset):
    """Every selection is false, so at most a share ``fdr`` of data sets may have one (1e-4)."""
    found = 0
    for seed in range(N_NULL):
        rng = np.random.default_rng([seed, n_draws])
        X, y = chain(rng, 150, 40), rng.standard_normal(150)
        selector = KnockoffSelector(
            statistic="lasso_path", n_draws=n_draws, offset=offset, random_state=seed
        )
        found += bool(selector.fit(X, y).support_.any())
    assert found <= binom.isf(1e-4, N_NULL, 0.1)


def test_nothing_is_found_where_nothing_is_by_a_kernel_critic():
    found = 0
    for seed in range(N_NULL):
        rng = np.random.default_rng([seed, 7])
        X, y = chain(rng, 150, 40), rng.standard_normal(150)
        sic = ConvexSIC(lam=0.03, feature_map=LandmarkMap(100))
        found += bool(KnockoffSelector(sic, random_state=seed).fit(X, y).support_.any())
    assert found <= binom.isf(1e-4, N_NULL, 0.1)


@pytest.mark.parametrize("statistic", ["lasso_path", "convex"])
def test_the_false_discovery_rate_is_held(statistic):
    """Within four standard errors of the level (3e-5), with power to speak of."""
    false, power = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng([seed, 3])
        X, support = chain(rng, 300, 60), np.zeros(60, dtype=bool)
        support[rng.choice(60, 15, replace=False)] = True
        signal = X[:, support] @ rng.choice([-1.0, 1.0], 15)
        y = signal + signal.std() * np.sqrt(0.5) * rng.standard_normal(300)
        kind = (
            {"statistic": "lasso_path"}
            if statistic == "lasso_path"
            else {"estimator": ConvexSIC(lam=0.03, feature_map=LandmarkMap(100))}
        )
        found = KnockoffSelector(fdr=0.2, random_state=seed, **kind).fit(X, y).support_
        false.append((found & ~support).sum() / max(1, found.sum()))
        power.append(found[support].mean())
    error = np.std(false, ddof=1) / np.sqrt(N_SEEDS)
    assert np.mean(false) <= 0.2 + 4 * error
    assert np.mean(power) > 0.7


@pytest.mark.parametrize("offset", [0, 1])
def test_the_false_discovery_rate_is_held_by_several_draws(offset):
    """Within four standard errors of the level (3e-5): both offsets carry the promise."""
    false, power = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng([seed, 11])
        X, support = chain(rng, 300, 60), np.zeros(60, dtype=bool)
        support[rng.choice(60, 20, replace=False)] = True
        signal = X[:, support] @ rng.choice([-1.0, 1.0], 20)
        y = signal + 0.5 * signal.std() * rng.standard_normal(300)
        selector = KnockoffSelector(
            statistic="lasso_path", fdr=0.2, offset=offset, n_draws=5, random_state=seed
        )
        found = selector.fit(X, y).support_
        false.append((found & ~support).sum() / max(1, found.sum()))
        power.append(found[support].mean())
    error = np.std(false, ddof=1) / np.sqrt(N_SEEDS)
    assert np.mean(false) <= 0.2 + 4 * error
    assert np.mean(power) > 0.3


@pytest.mark.parametrize("method", ["mvr", "maxent"])
def test_smooth_optima_are_those_of_cvxpy(method):
    """At 30 columns; a conic solver takes minutes at 60."""
    cp = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(1)
    loadings = rng.standard_normal((30, 3))
    sigma = loadings @ loadings.T + np.diag(rng.uniform(0.5, 2, 30))
    scale = 1 / np.sqrt(np.diag(sigma))
    sigma = sigma * np.outer(scale, scale)
    s = cp.Variable(30)
    A = 2 * sigma - cp.diag(s)
    loss = -cp.log_det(A) - cp.sum(cp.log(s))
    if method == "mvr":
        loss = cp.tr_inv(A) + cp.sum(cp.inv_pos(s))
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11)
    cp.Problem(cp.Minimize(loss)).solve(solver="CLARABEL", **tight)
    np.testing.assert_allclose(solve_s(sigma, method), s.value, atol=1e-5)
