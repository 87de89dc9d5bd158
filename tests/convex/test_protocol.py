"""ConvexSIC keeps the critic protocol: checked rows, refits, values on a grid of replacements."""

import numpy as np
import pytest
from sklearn.base import clone

from sobolev import ConvexSIC
from sobolev.convex import Alternating, BestMap, FourierMap, LandmarkMap
from sobolev.critic import as_critic
from sobolev.datasets import make_sinexp

DATA = make_sinexp(90, 6, random_state=0)
X, Y = DATA.data, DATA.target
LABELS = np.where(np.median(Y) < Y, "high", "low")


class Sines:
    """A map of a user's own."""

    def values(self, X):
        return np.sin(X)

    def derivative(self, X, j):
        out = np.zeros_like(X)
        out[:, j] = np.cos(X[:, j])
        return out


MAPS = {
    "landmark": LandmarkMap(30),
    "cauchy": LandmarkMap(30, kernel="cauchy"),
    "kernel alone": LandmarkMap(30, linear=False),
    "fourier": FourierMap(20),
    "linear": "linear",
    "polynomial": "polynomial",
    "own": Sines(),
}


def fitted(feature_map="auto", y=Y, **parameters):
    sic = ConvexSIC(lam=0.01, feature_map=feature_map, random_state=0, **parameters)
    return sic.fit_validated(X, y)


def with_values(rows, columns, values):
    out = rows.copy()
    out[:, columns] = values
    return out


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("y", [Y, LABELS], ids=["numbers", "labels"])
@pytest.mark.parametrize("statistic", ["risk", "witness"])
@pytest.mark.parametrize("columns", [[1], [0, 3]])
def test_values_on_a_grid_are_those_of_replaced_rows(name, y, statistic, columns):
    sic = fitted(MAPS[name], y)
    grid = np.random.default_rng(0).uniform(-0.5, 1.5, size=(4, len(columns)))
    evaluator = sic.evaluator(X, y, statistic)
    found = evaluator.at(np.array(columns), grid)
    expected = [getattr(sic, statistic)(with_values(X, columns, v), y) for v in grid]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-8)
    per_row = np.random.default_rng(1).uniform(size=(len(y), 3, len(columns)))
    found = evaluator.each(np.array(columns), per_row)
    expected = [
        getattr(sic, statistic)(with_values(X, columns, per_row[:, b]), y) for b in range(3)
    ]
    np.testing.assert_allclose(found, np.transpose(expected), atol=1e-8)
    assert not evaluator.slow


@pytest.mark.parametrize("name", MAPS)
def test_nodes_are_enough_for_interpolation(name):
    """The polynomial through the statistic at the nodes gives it everywhere between them."""
    sic = fitted(MAPS[name])
    evaluator = sic.evaluator(X, Y, "risk")
    knots, rule = evaluator.nodes(2, -0.2, 1.2)
    assert rule == "chebyshev"
    assert (knots[0], knots[-1]) == pytest.approx((-0.2, 1.2))
    at, column = np.linspace(-0.2, 1.2, 17), np.array([2])
    scaled = np.polynomial.chebyshev.chebfit(
        (knots - 0.5) / 0.7, evaluator.at(column, knots[:, None]).T, knots.size - 1
    )
    found = np.polynomial.chebyshev.chebval((at - 0.5) / 0.7, scaled)
    np.testing.assert_allclose(found, evaluator.at(column, at[:, None]), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_a_constant_column_does_not_change_the_statistic():
    rows = np.column_stack([X, np.ones(len(Y))])
    sic = ConvexSIC(lam=0.01).fit_validated(rows, Y)
    evaluator = sic.evaluator(rows, Y, "risk")
    knots, _ = evaluator.nodes(6, 0.0, 3.0)
    values = evaluator.at(np.array([6]), knots[:, None])
    np.testing.assert_allclose(values, sic.risk(rows, Y)[:, None].repeat(knots.size, axis=1))


def test_checked_rows_are_fitted_without_a_second_check():
    by_fit = ConvexSIC(lam=0.01).fit(X, Y)
    direct = ConvexSIC(lam=0.01).fit_validated(X, Y)
    # Not to the last bit: the fit copies the rows, and BLAS rounds by their place in memory.
    np.testing.assert_allclose(direct.feature_importances_, by_fit.feature_importances_, rtol=1e-9)
    assert direct.n_features_in_ == 6
    weights = np.arange(1.0, 91.0)
    weighted = ConvexSIC(lam=0.01).fit_validated(X, Y, weights / weights.sum())
    expected = ConvexSIC(lam=0.01).fit(X, Y, weights)
    np.testing.assert_allclose(
        weighted.feature_importances_, expected.feature_importances_, rtol=1e-9
    )


def test_refits_are_independent_unless_they_pass_something_on():
    assert ConvexSIC(random_state=0).independent_refits
    assert not ConvexSIC().independent_refits
    assert not ConvexSIC(random_state=np.random.default_rng(0)).independent_refits
    warm = ConvexSIC(random_state=0, solver=Alternating(warm_start=True))
    assert not warm.independent_refits
    assert as_critic(warm) is warm


def test_lam_falls_as_rows_grow():
    sic = fitted()
    assert sic.for_more_rows(100, 200).lam == pytest.approx(0.005)
    assert sic.lam == 0.01


def test_a_critic_for_testing_has_few_landmarks():
    given = fitted()
    critic = given.for_testing()
    assert critic.feature_map == BestMap(300, scores=True)
    assert not hasattr(critic, "feature_importances_")
    assert given.feature_map == "auto"
    own = ConvexSIC(feature_map=LandmarkMap(40)).for_testing()
    assert own.feature_map == LandmarkMap(40)
    assert clone(critic).feature_map == BestMap(300, scores=True)


def test_summary_has_one_row_for_each_feature_or_group():
    table = fitted().summary()
    assert list(table["feature"][:1]) == [f"x{np.argmax(fitted().feature_importances_)}"]
    assert table["importance"].sum() == pytest.approx(1.0)
    grouped = fitted(feature_groups={"both": [0, 1]}).summary()
    assert set(grouped["feature"]) == {"both", "x2", "x3", "x4", "x5"}
    assert grouped.set_index("feature").loc["both", "kind"] == "group"
