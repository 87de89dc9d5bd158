"""Covariates of the critic: never penalised, always in it, without importance."""

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, NeuralSIC, SobolevRegressor, load, save, sic_path
from sobolev.convex import Alternating, FourierMap
from sobolev.criterion import adjusted_groups, parse_columns, parse_groups
from sobolev.neural import Optimizer
from sobolev.streaming import partial_fit

LAM = 0.1


def data(n=120, d=6, seed=0):
    """The last column, a covariate, has a large effect; the first has a small one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 5 * X[:, -1] + 0.7 * X[:, 0] + rng.standard_normal(n)


def test_the_optimality_conditions_of_the_penalised_columns_alone():
    """With linear functions: M - (rho C + tau) u is lam S sign(u_j), or zero for covariates."""
    X, y = data()
    solver = Alternating(tol=1e-10, max_iter=5000)
    sic = ConvexSIC(lam=LAM, feature_map="linear", solver=solver, adjust=[-1]).fit(X, y)
    Z, psi = sic.standardizer_.transform(X), sic.encoder_.transform(y)
    u = sic.critic_.U[:, 0]
    force = (Z.T @ psi)[:, 0] / len(Z) - (Z.T @ Z / len(Z) + sic.tau_ * np.eye(6)) @ u
    S = np.abs(u[:-1]).sum()
    assert force[-1] == pytest.approx(0, abs=1e-8)
    assert u[0] > 1e-3
    assert force[0] == pytest.approx(LAM * S, rel=1e-4)
    assert (np.abs(force[:-1]) <= LAM * S * (1 + 1e-3)).all()
    np.testing.assert_allclose(sic.feature_importances_[:-1], np.abs(u[:-1]) / S, atol=1e-4)


@pytest.mark.parametrize("feature_map", ["landmark", FourierMap(32), "linear", "polynomial"])
@pytest.mark.parametrize("solver", ["alternating", "bcd"])
def test_the_corollary_holds_without_the_covariate(feature_map, solver):
    X, y = data()
    settings = {"lam": LAM, "feature_map": feature_map, "solver": solver, "random_state": 0}
    sic = ConvexSIC(adjust=[5], **settings).fit(X, y)
    assert sic.feature_importances_[5] == 0
    assert sic.feature_importances_.sum() == pytest.approx(1)
    assert sic.feature_importances_.argmax() == 0
    assert sic.decomposition_.per_feature[5] == 0
    assert sic.decomposition_.sic == pytest.approx(sic.sic_)
    assert sic.sic_ > ConvexSIC(**settings).fit(X, y).sic_


def test_a_large_lam_leaves_the_covariate_in_the_critic():
    (X, y), (X_new, y_new) = data(), data(1000, seed=1)
    plain = ConvexSIC(lam=10.0).fit(X, y).score(X_new, y_new)
    adjusted = ConvexSIC(lam=10.0, adjust=[5]).fit(X, y).score(X_new, y_new)
    assert plain < 0.2
    assert adjusted > 0.4


def test_the_kernel_follows_a_covariate_by_its_slope():
    X, _ = data()
    noise = np.random.default_rng(0).standard_normal(len(X))
    for slope, scale in ((0, 0.5), (6, 1.0)):
        y = 3 * X[:, 0] + slope * X[:, 5] + noise
        metric = ConvexSIC(lam=LAM, adjust=[5]).fit(X, y)._state[0]
        assert (metric[5] == metric.max()) == (scale == 1.0)
        assert metric[5] <= scale * metric.max()


@pytest.mark.parametrize("feature_map", ["landmark", FourierMap(32)])
def test_screening_never_drops_a_covariate(feature_map):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = X[:, 0] + 0.5 * rng.standard_normal(100)
    settings = {"feature_map": feature_map, "adjust": [17], "random_state": 0}
    sic = ConvexSIC(solver=Alternating(screen=4), **settings).fit(X, y)
    assert 17 in sic.screening_.columns
    assert sic.screening_.columns.size < 40
    assert sic.feature_importances_[17] == 0
    assert sic.feature_importances_.sum() == pytest.approx(1)
    without = ConvexSIC(solver=Alternating(screen=4), lam=sic.lam_, feature_map=feature_map)
    assert 17 not in without.set_params(random_state=0).fit(X, y).screening_.columns
    path = sic_path(X, y, [0.1], solver=Alternating(screen=4), **settings)
    assert path.importances[0].argmax() == 0
    assert path.importances[0, 17] == 0


def test_a_screened_fit_is_that_of_all_columns():
    X, y = data(d=10)
    settings = {"lam": LAM, "feature_map": "linear", "adjust": [9]}
    some = ConvexSIC(solver=Alternating(screen=3, tol=1e-8), **settings).fit(X, y)
    every = ConvexSIC(solver=Alternating(tol=1e-8, max_iter=1000), **settings).fit(X, y)
    assert some.screening_.columns.size < 10
    np.testing.assert_allclose(some.feature_importances_, every.feature_importances_, atol=2e-3)


def test_nothing_changes_without_covariates():
    X, y = data()
    plain = ConvexSIC().fit(X, y).feature_importances_
    np.testing.assert_array_equal(ConvexSIC(adjust=[]).fit(X, y).feature_importances_, plain)
    X[:, 2] = 1.0
    with pytest.warns(match="constant"):
        plain = ConvexSIC().fit(X, y).feature_importances_
    with pytest.warns(match="constant"):
        found = ConvexSIC(adjust=[2]).fit(X, y).feature_importances_
    np.testing.assert_array_equal(found, plain)


def test_names_notes_and_groups():
    X, y = data()
    table = pd.DataFrame(X, columns=list("abcdef"))
    sic = ConvexSIC(lam=LAM, adjust=["f"], feature_groups={"pair": ["e", "f"], "two": ["a", "b"]})
    found = sic.fit(table, y).summary().set_index("feature")
    assert found.loc["pair", "note"] == "adjusted for"  # one column stands for its group
    assert found.loc["pair", "importance"] == 0
    assert sic.group_names_ == ["two", "c", "d"]
    assert "of 3 features" in sic._answer_html()
    assert not hasattr(ConvexSIC(lam=LAM, adjust=["f"]).fit(table, y), "group_names_")


def test_a_critic_without_a_column_keeps_the_covariate():
    (X, y), (X_new, y_new) = data(), data(500, seed=1)
    for columns in ([0, 1, 2, 3, 4, 5], [0, 5]):
        sic = ConvexSIC(lam=LAM, adjust=[len(columns) - 1]).fit(X[:, columns], y)
        found = sic.predict_without(np.array([0]), X[:, columns], y, X_new[:, columns])
        assert np.corrcoef(found[:, 0], y_new)[0, 1] > 0.95


def test_chunks_have_covariates():
    X, y = data(2000)
    sic = ConvexSIC(lam=LAM, feature_map=FourierMap(32), adjust=[5], random_state=0)
    for rows in np.split(np.arange(2000), 2):
        sic = partial_fit(sic, X[rows], y[rows])
    assert sic.feature_importances_[5] == 0
    assert sic.feature_importances_.argmax() == 0


@pytest.mark.parametrize("estimator", [NeuralSIC, SobolevRegressor])
def test_networks_have_covariates(estimator, tmp_path):
    X, y = data()
    short = Optimizer(max_iter=150)
    settings = {"lam": 1.0, "optimizer": short, "random_state": 0}
    plain = estimator(**settings).fit(X, y)
    network = estimator(adjust=[5], **settings).fit(X, y)
    assert network.feature_importances_[5] == 0
    assert network.feature_importances_.sum() == pytest.approx(1, abs=1e-5)
    assert network.risk(X, y).mean() > plain.risk(X, y).mean()
    again = load(save(network, tmp_path / "net.npz"))
    assert again.adjust == [5]


def test_a_network_without_a_column_keeps_the_covariate():
    X, y = data()
    sic = NeuralSIC(lam=1.0, adjust=[5], optimizer=Optimizer(max_iter=150), random_state=0)
    found = sic.fit(X, y).predict_without(np.array([0]), X, y, X)
    assert np.corrcoef(found[:, 0], y)[0, 1] > 0.9
    sic.set_params(adjust=[1]).fit(X[:, [0, 5]], y)
    assert sic.predict_without(np.array([0]), X[:, [0, 5]], y, X[:, [0, 5]]).shape == (120, 1)


@pytest.mark.parametrize(
    ("adjust", "error", "said"),
    [
        (["age"], ValueError, "adjust names column 'age', but X has no such column"),
        ([9], ValueError, r"adjust names column 9, but X has 6 columns"),
        (range(6), ValueError, "adjust names all columns of X that vary"),
        ("x1", TypeError, r"must be a list of columns, \['x1'\]"),
        ([1.5], TypeError, "give columns by position"),
    ],
)
def test_errors_name_the_parameter(adjust, error, said):
    with pytest.raises(error, match=said):
        ConvexSIC(lam=LAM, adjust=adjust).fit(*data())


def test_groups_without_columns():
    groups = parse_groups([[0, 1], [1, 2], [3]], 5)
    found = groups.without(np.array([1]))
    np.testing.assert_array_equal(found.adjusted, [True, True, True, False, False])
    assert found.names == ["group2", "x4"]
    np.testing.assert_array_equal(found.feature_weights(np.array([0.5, 0.25])), [0, 0, 0, 2, 4])
    assert found.only_adjust
    assert not groups.only_adjust
    assert not adjusted_groups([[3], [0]], [1], 4).only_adjust  # another order
    assert parse_columns(None, 3, None, "adjust").size == 0
