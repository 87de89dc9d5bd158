"""Samplers: the swap property of second moments, exact Gram identities, margins, contracts."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import OAS, EmpiricalCovariance
from sklearn.exceptions import NotFittedError

from sobolev.exceptions import DataWarning, SobolevWarning
from sobolev.knockoffs import (
    CopulaKnockoffs,
    FixedXKnockoffs,
    GaussianKnockoffs,
    LowRankKnockoffs,
    kkt_residual,
    s_equi,
)
from sobolev.knockoffs._latent import (
    Margin,
    latent_correlation,
    nearest_correlation,
    truncated_normal,
)
from sobolev.knockoffs.low_rank import _unbiased_spikes

METHODS = ["mvr", "sdp", "maxent", "equi"]
SAMPLERS = [
    GaussianKnockoffs(),
    GaussianKnockoffs(OAS(), method="sdp"),
    GaussianKnockoffs(feature_groups=[[0, 1]]),
    LowRankKnockoffs(),
    FixedXKnockoffs(),
    CopulaKnockoffs(),
]


def covariance(p=7, seed=0):
    """Not stationary, with scales from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    S = A @ A.T + 0.3 * np.eye(p)
    d = np.geomspace(0.1, 10, p) / np.sqrt(np.diag(S))
    return S * np.outer(d, d)


def normal(sigma, n, seed=0):
    rng = np.random.default_rng(seed)
    return 3 + rng.standard_normal((n, len(sigma))) @ np.linalg.cholesky(sigma).T


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6)) + rng.standard_normal((n, 1))
    X[:, 1] = X[:, 1] > 0
    X[:, 2] = np.digitize(X[:, 2], [-1, 1])
    return X


def assert_second_moments(X, K, target, n, deviations=5.5):
    """Every entry within 5.5 standard errors of a product moment.

    With fewer than 300 entries a correct program fails less than once in 10^5.
    """
    joint = np.hstack([X, K])
    joint = joint - joint.mean(axis=0)
    variance = np.diag(target)
    error = np.sqrt((np.outer(variance, variance) + target**2) / n)
    assert (np.abs(joint.T @ joint / n - target) <= deviations * error).all()


def swapped(target, columns):
    p = len(target) // 2
    order = np.arange(2 * p)
    order[columns], order[np.add(columns, p)] = np.add(columns, p), columns
    return target[np.ix_(order, order)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "options", [{}, {"feature_groups": [[0, 3], [1, 2, 5]]}, {"block_size": 3}]
)
def test_gaussian_knockoffs_have_the_swap_property(method, options):
    sigma, n = covariance(), 40_000
    X = normal(sigma, n)
    sampler = GaussianKnockoffs(sigma, method, **options).fit(X)
    S = getattr(sampler, "S_", np.diag(sampler.s_))
    target = np.block([[sigma, sigma - S], [sigma - S, sigma]])
    # The target is symmetric under swaps of whole groups, and the draw has it.
    groups = options.get("feature_groups", [[4]])
    for group in groups:
        np.testing.assert_allclose(swapped(target, group), target)
    assert_second_moments(X, sampler.sample(random_state=1), target, n)


def test_a_draw_that_ignores_x_fails_the_check():
    sigma, n = covariance(), 40_000
    X = normal(sigma, n)
    sampler = GaussianKnockoffs(sigma).fit(X)
    S = np.diag(sampler.s_)
    target = np.block([[sigma, sigma - S], [sigma - S, sigma]])
    with pytest.raises(AssertionError):
        assert_second_moments(X, normal(sigma, n, seed=1), target, n)


@pytest.mark.parametrize("method", METHODS)
def test_the_conditional_law_gives_the_joint_covariance_exactly(method):
    sigma = covariance()
    sampler = GaussianKnockoffs(sigma, method).fit(normal(sigma, 50))
    d, S = np.sqrt(np.diag(sigma)), np.diag(sampler.s_)
    B = np.eye(7) - np.linalg.solve(sigma, S)
    V = sampler._root.T @ sampler._root
    unit = np.outer(d, d)
    np.testing.assert_allclose((B.T @ sigma @ B + V) / unit, sigma / unit, atol=1e-7)
    np.testing.assert_allclose((sigma @ B) / unit, (sigma - S) / unit, atol=1e-9)


def test_covariances_of_every_kind():
    X = normal(covariance(), 300)
    own = EmpiricalCovariance().fit(X).covariance_
    fitted = GaussianKnockoffs(EmpiricalCovariance()).fit(X)
    np.testing.assert_allclose(fitted.covariance_, own, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fitted.location_, X.mean(axis=0))
    given = GaussianKnockoffs(pd.DataFrame(own)).fit(X)
    np.testing.assert_allclose(given.sample(0), fitted.sample(0), rtol=1e-5, atol=1e-6)
    assert kkt_residual(own, fitted.s_) < 1e-6
    with pytest.raises(ValueError, match=r"covariance has shape \(2, 2\)"):
        GaussianKnockoffs(np.eye(2)).fit(X)
    with pytest.raises(ValueError, match="block_size"):
        GaussianKnockoffs(feature_groups=[[0, 1]], block_size=2).fit(X)


def test_a_singular_covariance_is_repaired_and_told():
    X = normal(covariance(), 60)
    X[:, 1] = X[:, 0]
    with pytest.warns(SobolevWarning, match="was added to the diagonal"):
        sampler = GaussianKnockoffs(EmpiricalCovariance()).fit(X)
    assert sampler.shift_ > 0
    assert np.isfinite(sampler.sample(0)).all()


def test_groups_by_name():
    X = pd.DataFrame(normal(covariance(3), 50), columns=["a", "b", "c"])
    S = GaussianKnockoffs(feature_groups={"pair": ["a", "c"]}).fit(X).S_
    assert S[0, 2] != 0
    assert S[0, 1] == S[1, 2] == 0


def test_groups_beside_constant_columns():
    X = np.insert(normal(covariance(4), 50), 0, 1.0, axis=1)
    with pytest.warns(DataWarning):
        S = GaussianKnockoffs(feature_groups=[[1, 2], [0, 3]]).fit(X).S_
    assert S[1, 2] != 0
    assert S[0, 3] == S[2, 3] == S[3, 4] == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n", "center"), [(15, True), (14, False), (60, True)])
def test_fixed_x_identities(method, n, center):
    X = normal(covariance(), n)
    sampler = FixedXKnockoffs(method, center=center).fit(X)
    K = sampler.sample(random_state=0)
    Xc, Kc = (X - X.mean(axis=0), K - X.mean(axis=0)) if center else (X, K)
    if center:
        np.testing.assert_allclose(K.mean(axis=0), X.mean(axis=0))
    G, unit = Xc.T @ Xc, np.outer(*[np.linalg.norm(Xc, axis=0)] * 2)
    np.testing.assert_allclose(Kc.T @ Kc / unit, G / unit, atol=1e-8)
    np.testing.assert_allclose(Xc.T @ Kc / unit, (G - np.diag(sampler.s_)) / unit, atol=1e-8)
    assert (sampler.s_ > 0).all()
    assert not np.allclose(K, sampler.sample(random_state=1))


def test_fixed_x_needs_rows():
    with pytest.raises(ValueError, match=r"14 rows and 7 columns .* 2p \+ 1 = 15"):
        FixedXKnockoffs().fit(normal(covariance(), 14))
    with pytest.raises(ValueError, match="2p = 14"):
        FixedXKnockoffs(center=False).fit(normal(covariance(), 13))


def test_fixed_x_with_collinear_columns():
    X = normal(covariance(), 40)
    X[:, 6] = X[:, 0] - 2 * X[:, 1]
    with pytest.warns(DataWarning, match=r"3 columns are collinear \(0, 1, 6\)"):
        sampler = FixedXKnockoffs().fit(X)
    K = sampler.sample(0)
    np.testing.assert_array_equal(K[:, [0, 1, 6]], X[:, [0, 1, 6]])
    np.testing.assert_array_equal(sampler.s_ > 0, [0, 0, 1, 1, 1, 1, 0])
    Xc, Kc = X - X.mean(axis=0), K - X.mean(axis=0)
    G, unit = Xc.T @ Xc, np.outer(*[np.linalg.norm(Xc, axis=0)] * 2)
    np.testing.assert_allclose(Kc.T @ Kc / unit, G / unit, atol=1e-8)
    np.testing.assert_allclose(Xc.T @ Kc / unit, (G - np.diag(sampler.s_)) / unit, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_fixed_x_with_nearly_collinear_columns(noise):
    X = normal(covariance(), 40)
    X[:, 1] = X[:, 0] * (1 + noise * np.random.default_rng(0).standard_normal(40))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SobolevWarning)
        sampler = FixedXKnockoffs().fit(X)
    K = sampler.sample(0)
    Xc, Kc = X - X.mean(axis=0), K - X.mean(axis=0)
    G, unit = Xc.T @ Xc, np.outer(*[np.linalg.norm(Xc, axis=0)] * 2)
    np.testing.assert_allclose(Kc.T @ Kc / unit, G / unit, atol=1e-8)
    np.testing.assert_allclose(Xc.T @ Kc / unit, (G - np.diag(sampler.s_)) / unit, atol=1e-8)


def factor_table(n, p=30, r=2, seed=0, strength=1.0):
    """Rows of a factor model with unequal loadings and scales, and its covariance."""
    rng = np.random.default_rng(seed)
    L, scale = strength * rng.standard_normal((p, r)), rng.uniform(0.5, 2, p)
    X = (rng.standard_normal((n, r)) @ L.T + rng.standard_normal((n, p))) * scale
    return X, (L @ L.T + np.eye(p)) * np.outer(scale, scale)


@pytest.mark.parametrize("method", ["mvr", "maxent", "equi"])
def test_low_rank_knockoffs_have_the_swap_property(method):
    n = 20_000
    X, sigma = factor_table(n)
    sampler = LowRankKnockoffs(method=method).fit(X)
    assert sampler.n_factors_ == 2
    unit = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    # Estimated covariances have errors of at most 5.5 sqrt(2 / n) relative to the deviations.
    assert (np.abs(sampler.covariance_ - sigma) / unit).max() < 5.5 * np.sqrt(2 / n)
    S = np.diag(sampler.s_)
    target = np.block([[sigma, sigma - S], [sigma - S, sigma]])
    # 60 × 60 entries, and the model is estimated from the same rows: 7 standard errors.
    assert_second_moments(X, sampler.sample(random_state=1), target, n, deviations=7)


@pytest.mark.parametrize("method", ["mvr", "maxent"])
def test_low_rank_s_is_that_of_the_dense_problem(method):
    sampler = LowRankKnockoffs(method=method).fit(factor_table(400)[0])
    assert kkt_residual(sampler.covariance_, sampler.s_, method) < 3e-6


def test_low_rank_equi_is_the_dense_one_below_the_unique_variances():
    sampler = LowRankKnockoffs(method="equi").fit(factor_table(400)[0])
    dense = np.minimum(s_equi(sampler.covariance_), 2 * sampler.unique_variances_)
    np.testing.assert_allclose(sampler.s_, dense, rtol=2e-3)  # it keeps a margin of 1e-3


def test_low_rank_rows_have_the_conditional_mean_and_noise_of_the_model():
    X, _ = factor_table(100)
    sampler = LowRankKnockoffs().fit(X)
    sigma, S = sampler.covariance_, np.diag(sampler.s_)
    mean = X - (X - sampler.location_) @ np.linalg.solve(sigma, S)
    np.testing.assert_allclose(sampler._mean, mean, atol=1e-9)
    V = np.diag(sampler._noise**2) + sampler._low @ sampler._low.T
    np.testing.assert_allclose(V, 2 * S - S @ np.linalg.solve(sigma, S), atol=1e-9)


def test_eigenvalues_of_a_sample_lose_their_bias():
    """A spike of l appears at l (1 + ratio / (l - 1)) if it is above 1 + sqrt(ratio)."""
    spikes, ratio = np.array([3.0, 10, 500]), 2.0
    np.testing.assert_allclose(_unbiased_spikes(spikes * (1 + ratio / (spikes - 1)), ratio), spikes)
    np.testing.assert_array_equal(_unbiased_spikes(np.array([0.5, 5.8]), ratio), 1)


def test_low_rank_finds_factors_among_more_columns_than_rows():
    X, sigma = factor_table(200, p=800, r=3, strength=0.3)
    sampler = LowRankKnockoffs().fit(X)
    assert sampler.n_factors_ == 3
    unit = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    ours = np.sqrt(np.mean(((sampler.covariance_ - sigma) / unit) ** 2))
    sample = np.sqrt(np.mean(((np.cov(X.T) - sigma) / unit) ** 2))
    assert ours < 0.65 * sample
    assert LowRankKnockoffs(n_factors=1).fit(X).n_factors_ == 1
    with pytest.raises(ValueError, match="n_factors"):
        LowRankKnockoffs(n_factors="all").fit(X)


def thresholds(n, seed=0):
    """Binary, ordinal, censored, skewed and normal columns of one latent chain."""
    rho = 0.7 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    rho[1] *= -1
    rho[:, 1] *= -1
    Z = np.random.default_rng(seed).standard_normal((n, 8)) @ np.linalg.cholesky(rho).T
    X = Z.copy()
    X[:, :3] = Z[:, :3] > [0, 0.5, -1.0]
    X[:, 3] = np.digitize(Z[:, 3], [-1, 0, 1.5])
    X[:, 4] = np.maximum(Z[:, 4], 0)
    X[:, 5] = np.exp(Z[:, 5])
    return X, rho


def test_latent_correlations_are_not_attenuated():
    """Standard errors of tetrachoric correlations are below 2 / sqrt(n) here: five of them."""
    n = 20_000
    X, rho = thresholds(n)
    sampler = CopulaKnockoffs(n_sweeps=1).fit(X)
    assert np.abs(sampler.latent_correlation_ - rho).max() < 10 / np.sqrt(n)
    assert np.abs(np.corrcoef(X.T) - rho).max() > 20 / np.sqrt(n)


def test_copula_knockoffs_have_the_swap_property():
    """Moments of the ranks agree within 5.5 standard errors, which are below 1.5 / sqrt(n)."""
    n = 30_000
    X, _ = thresholds(n)
    K = CopulaKnockoffs().fit(X).sample(random_state=0)
    order = [pd.DataFrame(A).rank().to_numpy() for A in (X, K)]
    R = np.corrcoef(np.hstack(order).T)
    p, bound = X.shape[1], 5.5 * 1.5 / np.sqrt(n)
    off = ~np.eye(p, dtype=bool)
    assert np.abs(R[p:, p:] - R[:p, :p]).max() < bound
    assert np.abs(R[:p, p:] - R[:p, :p])[off].max() < bound
    assert np.diag(R[:p, p:]).max() < 0.85  # a copy would have one
    # Third moments of binary columns, which the latent model fixes too.
    for A, B, C in [(K, K, K), (X, K, X), (K, X, K), (K, K, X)]:
        third = np.mean(A[:, 0] * B[:, 1] * C[:, 2])
        assert abs(third - np.mean(X[:, 0] * X[:, 1] * X[:, 2])) < 5.5 * np.sqrt(2 * 0.25 / n)


def test_randomised_scores_without_the_sweeps_would_fail(monkeypatch):
    """The sweeps matter: without them the knockoffs of binary columns lose correlation."""
    X, _ = thresholds(30_000)
    monkeypatch.setattr("sobolev.knockoffs.copula.gibbs", lambda Z, *args: Z)
    K = CopulaKnockoffs().fit(X).sample(random_state=0)
    off = ~np.eye(3, dtype=bool)
    gap = np.corrcoef(K[:, :3].T) - np.corrcoef(X[:, :3].T)
    assert np.abs(gap[off]).max() > 5.5 * 1.5 / np.sqrt(30_000)


def test_the_latent_law_gives_the_joint_correlation_exactly():
    sampler = CopulaKnockoffs(n_sweeps=1).fit(thresholds(200)[0])
    R, s = sampler.latent_correlation_, sampler.s_
    B, V = np.eye(8) - sampler._coefficients, sampler._root.T @ sampler._root
    np.testing.assert_allclose(B.T @ R @ B + V, R, atol=1e-9)
    np.testing.assert_allclose(R @ B, R - np.diag(s), atol=1e-9)


def test_shrinkage_scales_the_correlations_of_normal_scores():
    X = normal(covariance(3), 200)
    full, half = (CopulaKnockoffs(shrinkage=k).fit(X).latent_correlation_ for k in (0.0, 0.5))
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(half[off], 0.5 * full[off], atol=5e-3)


def test_noise_is_shrunk_and_strong_correlation_is_not():
    """Rare binary columns: most pairs vanish, neighbours keep their correlation in the draw."""
    rng, n, p = np.random.default_rng(0), 800, 60
    Z = rng.standard_normal((n, p))
    Z[:, 1::2] = 0.8 * Z[:, ::2] + 0.6 * Z[:, 1::2]
    cuts = rng.uniform(0.3, 1.8, p)
    X = np.greater(Z, cuts).astype(float)
    sampler = CopulaKnockoffs().fit(X)
    assert sampler.shrinkage_ > 0.9
    assert sampler.s_.mean() > 0.2
    pairs = np.arange(0, p, 2), np.arange(1, p, 2)
    draws = [sampler.sample(random_state=k) for k in range(3)]
    kept = np.mean([np.corrcoef(K.T)[pairs].mean() for K in draws])
    # 30 pairs in three draws: the standard error is below 1 / sqrt(30 n), six of them and a bias.
    assert abs(kept - np.corrcoef(X.T)[pairs].mean()) < 6 / np.sqrt(30 * n) + 0.02
    assert sampler.latent_correlation_[pairs].mean() == pytest.approx(0.8, abs=0.08)


def test_correlations_that_contradict_each_other_are_lifted():
    R = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    lifted, change = nearest_correlation(R, 0.01)
    assert np.linalg.eigvalsh(lifted)[0] > 0.005
    np.testing.assert_allclose(np.diag(lifted), 1)
    assert change == np.abs(lifted - R).max() > 0.1
    assert nearest_correlation(np.eye(3), 0.01)[1] == 0


def test_copula_draws_stay_in_the_value_sets():
    X, _ = thresholds(300)
    K = CopulaKnockoffs().fit(X).sample(random_state=0)
    for x, k in zip(X.T, K.T, strict=True):
        assert np.isin(k, x).all()
    assert set(K[:, 0]) == {0, 1}


def test_margins_go_there_and_back():
    x = np.array([3.0, 1, 1, 2, 5, 1, 2, 2, 9, 1])
    margin = Margin.fit(x)
    np.testing.assert_array_equal(margin.back(margin.middle()), x)
    shares = np.array([4, 3, 1, 1, 1]) / 10
    np.testing.assert_allclose(shares @ margin.scores, 0, atol=1e-12)
    # A Hermite series of squared coefficients sums to the variance.
    assert margin.hermite() @ margin.hermite() == pytest.approx(shares @ margin.scores**2, abs=0.04)


def test_tetrachoric_correlation_of_medians_is_known():
    """For two medians P(both above) = 1/4 + arcsin(rho) / (2 pi)."""
    margins = [Margin.fit(np.array([0.0, 1.0]))] * 2
    for rho in (-0.8, -0.3, 0.0, 0.5, 0.9):
        agreement = 4 * np.arcsin(rho) / (2 * np.pi)
        products = np.full((2, 2), agreement * margins[0].scores[1] ** 2)
        found = latent_correlation(margins, products)[0, 1]
        assert found == pytest.approx(rho, abs=2e-3)


def test_truncated_normals_stay_between_their_ends():
    low = np.array([-np.inf, -1, 3, 40, -50, 0.5])
    high = np.array([-30, 1, np.inf, 41, -45, 0.5 + 1e-9])
    for level in (1e-12, 0.5, 1 - 1e-12):
        z = truncated_normal(low, high, np.full(6, level))
        assert np.isfinite(z).all()
        assert ((z >= low) & (z <= high)).all()


def test_rare_values_and_copies_do_not_break_the_copula():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (100, 8)).astype(float)
    X[:, 0] = 0
    X[0, 0] = 1  # one positive row
    X[:, 1] = X[:, 2]  # copies
    X[:, 3] = 1 - X[:, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SobolevWarning)
        K = CopulaKnockoffs().fit(X).sample(random_state=0)
    assert np.isin(K, [0, 1]).all()
    with pytest.raises(ValueError, match="shrinkage"):
        CopulaKnockoffs(shrinkage="none").fit(X)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
class TestContract:
    def test_draws_are_reproducible(self, sampler):
        X = table()
        a, b = clone(sampler).fit(X), clone(sampler).fit(X)
        draw = a.sample(random_state=3)
        assert draw.shape == X.shape
        np.testing.assert_array_equal(draw, a.sample(random_state=3))
        np.testing.assert_array_equal(draw, b.sample(random_state=3))
        assert not np.array_equal(draw, a.sample(random_state=4))
        copy = pickle.loads(pickle.dumps(a))
        np.testing.assert_array_equal(draw, copy.sample(random_state=3))

    def test_the_global_generator_is_left_alone(self, sampler):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        clone(sampler).fit(table()).sample()
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002

    def test_constant_columns_are_their_own_knockoffs(self, sampler):
        X = np.insert(table(), [2, 6], [7.0, 0.1], axis=1)
        with pytest.warns(DataWarning, match="2 constant columns .* 'x2', 'x7'"):
            fitted = clone(sampler).fit(X)
        draw = fitted.sample(random_state=0)
        np.testing.assert_array_equal(draw[:, [2, 7]], X[:, [2, 7]])
        assert (draw[:, [0, 1, 3, 4, 5, 6]] != X[:, [0, 1, 3, 4, 5, 6]]).any(axis=0).all()
        np.testing.assert_array_equal(fitted.s_ == 0, [0, 0, 1, 0, 0, 0, 0, 1])

    def test_only_constant_columns(self, sampler):
        sampler = clone(sampler)
        X = np.ones((10, 2))
        with pytest.warns(DataWarning):
            np.testing.assert_array_equal(sampler.fit(X).sample(0), X)

    def test_one_column(self, sampler):
        sampler = clone(sampler)
        if getattr(sampler, "feature_groups", None) is not None:
            sampler.set_params(feature_groups=[[0]])
        assert sampler.fit(table()[:, :1]).sample(0).shape == (120, 1)

    def test_frames_and_bad_input(self, sampler):
        X = pd.DataFrame(table(), columns=list("abcdef"))
        fitted = clone(sampler).fit(X)
        assert list(fitted.feature_names_in_) == list("abcdef")
        np.testing.assert_array_equal(fitted.sample(0), clone(sampler).fit(X.to_numpy()).sample(0))
        with pytest.raises(NotFittedError):
            clone(sampler).sample()
        with pytest.raises(ValueError, match="column 'b'"):
            clone(sampler).fit(X.assign(b=np.nan))
        with pytest.raises(ValueError, match="too few"):
            clone(sampler).fit(X[:2])


@pytest.mark.parametrize("sampler", SAMPLERS[:1] + SAMPLERS[3:], ids=repr)
def test_data_of_the_same_seed_do_not_share_the_noise(sampler):
    """Independent columns: their correlations with knockoffs stay below 5.5 / sqrt(n)."""
    X = np.random.default_rng(0).standard_normal((400, 5))
    K = clone(sampler).fit(X).sample(random_state=0)
    assert np.abs(np.corrcoef(np.hstack([X, K]).T)[:5, 5:]).max() < 5.5 / 20


def test_fit_ignores_the_response():
    X = table()
    np.testing.assert_array_equal(
        GaussianKnockoffs().fit(X, X[:, 0]).sample(0), GaussianKnockoffs().fit(X).sample(0)
    )
