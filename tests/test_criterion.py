"""The eta-trick against its definition: a minimum over the simplex."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from sobolev.criterion import (
    Decomposition,
    Explanation,
    adjusted_groups,
    choose_lam,
    disjoint_groups,
    mirror_step,
    normalized_importances,
    parse_columns,
    parse_groups,
    risk,
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


def test_many_mirror_steps_at_once_are_those_of_each_row(rng):
    eta, squares = rng.dirichlet(np.ones(4), size=(3, 2)), rng.exponential(size=(3, 2, 4))
    found = mirror_step(eta, squares, 0.3, 1e-2)
    for i, j in np.ndindex(3, 2):
        np.testing.assert_allclose(found[i, j], mirror_step(eta[i, j], squares[i, j], 0.3, 1e-2))


def test_the_mirror_step_of_the_paper_is_not_divided(rng):
    squares, eta = rng.exponential(size=5), rng.dirichlet(np.ones(5))
    expected = eta * np.exp(0.1 * np.minimum((squares + 1e-2) / eta**2, 100.0))
    found = mirror_step(eta, squares, 0.1, 1e-2, relative=False)
    np.testing.assert_allclose(found, expected / expected.sum())


def test_the_mirror_step_moves_no_further_than_it_may():
    found = mirror_step(np.array([1e-9, 1 - 1e-9]), np.ones(2), 0.5, max_move=2.0)
    assert found[0] / found[1] == pytest.approx(1e-9 * np.exp(2.0 - 0.125), rel=1e-6)


def test_risk_by_hand():
    assert risk(3.0, 2.0, 0.5) == 2.5
    assert risk(3.0, 2.0, 0.5, mean=1.0) == 1.5


@pytest.mark.parametrize("spread", [0.5, 1.1, 2.0])
def test_another_lam_needs_a_gain_of_more_than_one_standard_error(spread):
    """Gains with mean 1 and standard error ``spread``; levels far above and below do not matter."""
    gains = 1.0 + spread * np.sqrt(3) * np.array([-1.0, 0.0, 1.0])
    level = np.array([20.0, 50.0, 80.0])
    risks = np.column_stack([level, level - 1.0, level + gains])
    assert choose_lam(risks, [0.1, 0.01, 1.0], 0.09) == (1.0 if spread < 1 else 0.1)
    assert choose_lam(risks - 100.0, [0.1, 0.01, 1.0], 0.09) == 0.1  # no lam has a positive risk
    assert choose_lam(risks[:1] + 5.0, [0.1, 0.01, 1.0], 0.12) == (1.0 if gains[0] > 0 else 0.1)


@pytest.mark.parametrize(("risk_of_best", "gain"), [(1e-9, 1.0), (0.0, 1.0), (1.0, 0.0)])
def test_a_tie_goes_to_the_reference(risk_of_best, gain):
    risks = np.array([[risk_of_best - gain, risk_of_best]])
    expected = 1.0 if risk_of_best > 0 and gain > 0 else 0.1
    assert choose_lam(risks, [0.1, 1.0], 0.1) == expected


@pytest.mark.parametrize(
    ("groups", "adjust", "only"),
    [
        (None, [1], True),
        (None, None, False),  # nothing is adjusted for
        ([[2], [0]], [1], False),  # another order
        ([[0, 2]], [1], False),
        ([[0, 2], [2]], [1, 3], False),
    ],
)
def test_single_features_in_order_beside_some_in_no_group(groups, adjust, only):
    assert adjusted_groups(groups, adjust, 4).only_adjust == only


def test_groups_without_a_column_leave_it_in_none():
    groups = parse_groups({"g": [0, 1], "h": [1, 2]}, 4)
    np.testing.assert_array_equal(groups.n_memberships, [1, 2, 1, 1])
    left = groups.without(np.array([0]))
    assert left.names == ["h", "x3"]
    np.testing.assert_array_equal(left.adjusted, [True, False, False, False])


def test_disjoint_groups_name_their_columns():
    found = disjoint_groups({"g": ["c", "a"]}, ["a", "b", "c", "d"])
    assert {name: columns.tolist() for name, columns in found.items()} == {
        "g": [0, 2],
        "b": [1],
        "d": [3],
    }
    with pytest.raises(ValueError, match="column 'b' is in 2 groups"):
        disjoint_groups([["a", "b"], ["b", "c"]], ["a", "b", "c"])


def test_positions_count_from_both_ends():
    names = ["a", "b", "c"]
    assert parse_columns(["c", 0, -2], 3, names, "adjust").tolist() == [0, 1, 2]
    assert parse_columns([-3, 2], 3, None, "adjust").tolist() == [0, 2]
    assert parse_columns(None, 3, names, "adjust").size == 0
    for wrong in (3, -4):
        with pytest.raises(ValueError, match=f"adjust names column {wrong}"):
            parse_columns([wrong], 3, names, "adjust")
    with pytest.raises(TypeError, match="must be a list"):
        parse_columns("a", 3, names, "adjust")


def test_contributions_add_up_to_the_witness():
    terms = Explanation(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 20.0]), np.ones(2))
    np.testing.assert_array_equal(terms.witness, [14.0, 28.0])
    more = terms.among(np.array([False, True, True]))
    np.testing.assert_array_equal(more.features, [[0.0, 1.0, 2.0], [0.0, 3.0, 4.0]])
    np.testing.assert_array_equal(more.witness, terms.witness)
