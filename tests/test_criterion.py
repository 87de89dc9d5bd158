"""The eta-trick against its definition: a minimum over the simplex."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from sobolev.criterion import (
    Decomposition,
    mirror_step,
    normalized_importances,
    parse_groups,
    sobolev_penalty,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1.0])
def test_importances_minimise_the_penalty_over_the_simplex(rng, epsilon):
    squares = rng.exponential(size=7) ** 3
    eta = normalized_importances(squares, epsilon)
    least = sobolev_penalty(squares, eta, epsilon)
    # Lemma 1: the minimum is the squared sum of roots, and no other point does better.
    assert least == pytest.approx(np.sqrt(squares + epsilon).sum() ** 2, rel=1e-12)
    for other in rng.dirichlet(np.ones(7), size=200):
        assert sobolev_penalty(squares, other, epsilon) > least


def test_importances_sum_to_one_and_ignore_the_scale(rng):
    squares = rng.exponential(size=9)
    eta = normalized_importances(squares)
    assert eta.sum() == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(normalized_importances(1e-30 * squares), eta, rtol=1e-12)


def test_without_gradients_importances_are_uniform():
    np.testing.assert_array_equal(normalized_importances(np.zeros(4)), np.full(4, 0.25))


def test_a_feature_without_gradient_has_the_importance_of_epsilon():
    eta = normalized_importances(np.array([1.0, 0.0]), epsilon=1e-12)
    assert eta[1] == pytest.approx(1e-6, rel=1e-5)
    assert normalized_importances(np.array([1.0, 0.0]))[1] == 0.0


def test_penalty_of_an_unused_feature_with_no_importance_is_zero():
    assert sobolev_penalty(np.array([4.0, 0.0]), np.array([1.0, 0.0])) == 4.0


@pytest.mark.parametrize("step", [0.01, 0.5, 3.0])
def test_mirror_step_stays_where_the_penalty_is_least(rng, step):
    squares = rng.exponential(size=6)
    eta = normalized_importances(squares, 1e-3)
    np.testing.assert_allclose(mirror_step(eta, squares, step, 1e-3), eta, rtol=1e-12)


def test_mirror_step_follows_the_gradient_in_the_log_domain(rng):
    squares, eta, epsilon = rng.exponential(size=5), rng.dirichlet(np.ones(5)), 1e-2

    def penalty(z):
        return sobolev_penalty(squares, z, epsilon)

    def gradient(z):
        return -(squares + epsilon) / z**2

    assert check_grad(penalty, gradient, eta, epsilon=1e-7) < 1e-3 * np.linalg.norm(gradient(eta))
    new = mirror_step(eta, squares, 1e-4, epsilon)
    # log(new / eta) = -step * gradient / optimum + a constant that normalises.
    move = np.log(new / eta)
    expected = -1e-4 * gradient(eta) / np.sqrt(squares + epsilon).sum() ** 2
    np.testing.assert_allclose(np.diff(move), np.diff(expected), rtol=1e-9)


def test_small_mirror_steps_descend_to_the_minimum(rng):
    squares, eta = rng.exponential(size=8), np.full(8, 1 / 8)
    values = []
    for _ in range(150):
        values.append(sobolev_penalty(squares, eta))
        eta = mirror_step(eta, squares, step=0.1)
        assert eta.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    np.testing.assert_allclose(eta, normalized_importances(squares), rtol=1e-8)


def test_half_a_mirror_step_is_newton_near_the_minimum(rng):
    squares = rng.exponential(size=5)
    best = normalized_importances(squares)
    direction = rng.standard_normal(5)
    errors = []
    for size in (1e-2, 1e-3):
        eta = best * np.exp(size * direction)
        new = mirror_step(eta / eta.sum(), squares, step=0.5)
        errors.append(np.abs(new - best).max())
    assert errors[1] < 0.02 * errors[0]  # quadratic: a tenth of the error gives a hundredth


def test_mirror_step_stays_finite_for_a_vanishing_importance():
    new = mirror_step(np.array([1e-10, 1.0 - 1e-10]), np.array([1.0, 1.0]), step=0.5)
    assert np.isfinite(new).all()
    assert new.sum() == pytest.approx(1.0)
    assert new[0] > 1e-10


GROUPS = {
    "disjoint": [[0, 1], [2, 3], [4]],
    "overlapping": [[0, 1, 2], [2, 3], [3, 4]],
    "partial": [[1, 3]],
}


@pytest.mark.parametrize("members", GROUPS.values(), ids=GROUPS)
def test_groups_agree_with_sums_over_their_members(rng, members):
    groups = parse_groups(members, n_features=5)
    full = members + [[j] for j in range(5) if not any(j in g for g in members)]
    squares = rng.exponential(size=5)
    by_group = np.array([squares[g].sum() for g in full])
    np.testing.assert_allclose(groups.squared_gradients(squares), by_group)

    eta = normalized_importances(by_group, 1e-3)
    weights = [sum(1 / eta[k] for k, g in enumerate(full) if j in g) for j in range(5)]
    np.testing.assert_allclose(groups.feature_weights(eta), weights)
    # The penalty is the same whether it is summed over groups or over weighted features.
    assert groups.feature_weights(eta) @ squares == pytest.approx(sobolev_penalty(by_group, eta))


@pytest.mark.parametrize("members", GROUPS.values(), ids=GROUPS)
def test_features_share_the_importance_of_their_groups(rng, members):
    groups = parse_groups(members, n_features=5)
    squares = rng.exponential(size=5)
    eta = normalized_importances(groups.squared_gradients(squares))
    shares = groups.feature_importances(eta, squares)
    assert shares.sum() == pytest.approx(1.0)
    assert np.all(shares > 0)
    if members == GROUPS["disjoint"]:
        for k, g in enumerate(members):
            assert shares[g].sum() == pytest.approx(eta[k])
            np.testing.assert_allclose(shares[g] / shares[g].sum(), squares[g] / squares[g].sum())


def test_a_group_without_gradient_shares_equally():
    groups = parse_groups([[0, 1], [2]], n_features=3)
    shares = groups.feature_importances(np.array([0.2, 0.8]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(shares, [0.1, 0.1, 0.8])


def test_singleton_groups_change_nothing(rng):
    groups = parse_groups([[2], [0], [1]], n_features=3)
    squares = rng.exponential(size=3)
    eta = normalized_importances(groups.squared_gradients(squares))
    np.testing.assert_allclose(
        groups.feature_importances(eta, squares), normalized_importances(squares)
    )


def test_groups_by_name_position_and_negative_position_are_the_same():
    names = ["a", "b", "c", "d"]
    by_name = parse_groups({"g": ["d", "b", "b"]}, 4, names)
    by_position = parse_groups({"g": [1, np.int64(-1)]}, 4, names)
    np.testing.assert_array_equal(by_name.membership.toarray(), by_position.membership.toarray())
    assert by_name.names == by_position.names == ["g", "a", "c"]
    assert by_name.n_groups == 3


def test_restricting_drops_columns_and_empty_groups():
    groups = parse_groups({"g": [0, 1], "h": [1, 2], "i": [3]}, 4).restrict(np.array([0, 2]))
    assert groups.names == ["g", "h"]
    np.testing.assert_array_equal(groups.membership.toarray(), np.eye(2))


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([[0, 9]], ValueError, "'group0' names column 9, but X has 4"),
        ({"g": ["z"]}, ValueError, "'g' names column 'z'"),
        ({"g": []}, ValueError, "'g' is empty"),
        ({"g": [1.5]}, TypeError, "'g' contains 1.5"),
        ({"g": [True]}, TypeError, "'g' contains True"),
        ({"g": "ab"}, TypeError, "'g' is 'ab'; pass a list"),
        ([0, 0, 1], TypeError, "'group0' is 0; pass a list"),
        ("abcd", TypeError, "feature_groups must be a list of lists"),
        (np.eye(2), TypeError, "got ndarray"),
    ],
)
def test_wrong_groups_are_named(groups, error, message):
    with pytest.raises(error, match=message):
        parse_groups(groups, 4, ["a", "b", "c", "d"])


def test_decomposition_adds_up():
    terms = Decomposition(2.0, np.array([0.3, 0.2]), 0.4, 0.1)
    assert terms.gradient == pytest.approx(0.5)
    assert terms.sic == pytest.approx(1.0)
    with_targets = Decomposition(2.0, np.array([0.3, 0.2]), 0.4, 0.1, np.array([0.25]))
    assert with_targets.sic == pytest.approx(1.25)
