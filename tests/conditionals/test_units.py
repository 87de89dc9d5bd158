"""Units of columns: what cannot be told apart is joined, and nothing else."""

import time

import numpy as np
import pandas as pd
import pytest

from sobolev.conditionals.features import features
from sobolev.conditionals.units import find_units
from sobolev.datasets import make_liang, make_sinexp


def normal(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def one_hot(n, k, seed=0):
    return np.eye(k)[np.random.default_rng(seed).integers(0, k, n)]


def autoregressive(n, d, r, seed=0):
    X = normal(n, d, seed)
    for j in range(1, d):
        X[:, j] = r * X[:, j - 1] + np.sqrt(1 - r**2) * X[:, j]
    return X


def equicorrelated(n, d, r, seed=0):
    return np.sqrt(r) * normal(n, 1, seed + 1000) + np.sqrt(1 - r) * normal(n, d, seed)


def joined(X, groups=None):
    """Columns and reason of each unit of several columns."""
    units = find_units(X, groups)
    columns = np.concatenate([unit.columns for unit in units])
    assert sorted(columns) == list(range(X.shape[1]))
    assert all(unit.reason == "" for unit in units if unit.columns.size == 1)
    return {tuple(unit.columns.tolist()): unit.reason for unit in units if unit.columns.size > 1}


def partition(X, groups=None):
    return {frozenset(unit.columns.tolist()) for unit in find_units(X, groups)}


def various(n=300, seed=0):
    """One of everything, and three columns that stay alone."""
    x = normal(n, 9, seed)
    total = x[:, 3] + x[:, 4] + x[:, 5]
    return np.column_stack(
        [x, np.exp(x[:, 0]), x[:, 1] ** 2, x[:, 2] > 0.5, total, one_hot(n, 4, seed)]
    )


VARIOUS = {
    (0, 9): "copies",
    (1, 10): "one column is a function of another",
    (2, 11): "one column is a function of another",
    (3, 4, 5, 12): "linear combination",
    (13, 14, 15, 16): "full set of categories",
}


@pytest.mark.parametrize("n", [150, 500, 2000])
def test_each_kind_is_found_in_one_table(n):
    assert joined(various(n)) == VARIOUS


@pytest.mark.parametrize(
    "copy", [np.exp, lambda x: -3 * x + 1, lambda x: x**3, lambda x: 1 / (1 + np.exp(x))]
)
def test_monotone_functions_are_copies(copy):
    X = normal(200, 3)
    assert joined(np.column_stack([X, copy(X[:, 1])])) == {(1, 3): "copies"}


@pytest.mark.parametrize("n", [150, 300, 2000])
@pytest.mark.parametrize("seed", range(5))
def test_noisy_versions_of_one_column_are_near_copies(n, seed):
    noisy = normal(n, 1, seed) + 0.03 * normal(n, 4, seed + 100)
    X = np.column_stack([noisy, normal(n, 3, seed + 200)])
    assert joined(X) == {(0, 1, 2, 3): "near copies"}


def test_a_chain_of_near_copies_is_cut():
    """Each column is close to the next, but the first and the last are not."""
    X = autoregressive(300, 40, 0.9985)
    widths = [len(columns) for columns in joined(X)]
    assert len(widths) >= 3
    assert max(widths) <= 20


@pytest.mark.parametrize("n", [150, 300, 2000])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "function",
    [np.square, np.abs, lambda x: np.sin(3 * x), lambda x: x > 0.7, lambda x: np.abs(x) < 1],
    ids=["square", "abs", "sin", "threshold", "inside"],
)
def test_functions_of_one_column(n, seed, function):
    X = normal(n, 4, seed)
    found = joined(np.column_stack([X, function(X[:, 2])]))
    assert found == {(2, 4): "one column is a function of another"}


def test_a_function_of_a_column_with_few_values():
    rng = np.random.default_rng(0)
    year = rng.integers(1981, 1988, 300)
    X = np.column_stack([year, year == 1983, year % 2, normal(300, 2)])
    assert joined(X) == {(0, 1, 2): "one column is a function of another"}


def test_ties_do_not_hide_variation():
    """Rows in an order that sorts the second column within the values of the first."""
    rng = np.random.default_rng(0)
    rows = np.array(sorted(zip(rng.integers(0, 3, 400), rng.standard_normal(400), strict=True)))
    assert joined(rows) == {}
    assert joined(np.column_stack([rows[:, 0], rows[:, 1] > 0])) == {}


@pytest.mark.parametrize("wrong", [0.01, 0.06])
def test_one_percent_of_the_rows_may_not_follow_the_function(wrong):
    X = normal(400, 3)
    y = X[:, 0] > 0
    rows = np.random.default_rng(1).permutation(400)[: int(wrong * 400)]
    y[rows] = ~y[rows]
    assert bool(joined(np.column_stack([X, y]))) == (wrong == 0.01)


@pytest.mark.parametrize("seed", range(5))
def test_rare_values_are_not_functions_by_chance(seed):
    X = (normal(300, 60, seed) > 2.3).astype(float)
    X[:, 30:] = normal(300, 30, seed + 100)
    found = joined(X)
    assert set(found.values()) <= {"copies"}
    assert all(len(np.unique(X[:, columns], axis=1).T) <= 2 for columns in found)


def test_several_sets_of_categories_are_separate_units():
    n = 200
    X = np.column_stack([one_hot(n, 5, 0), normal(n, 2), one_hot(n, 3, 1), 10 * one_hot(n, 2, 2)])
    assert set(joined(X).values()) == {"full set of categories"}
    assert set(joined(X)) == {(0, 1, 2, 3, 4), (7, 8, 9), (10, 11)}


def test_without_one_category_nothing_is_joined():
    assert joined(np.column_stack([one_hot(300, 5)[:, 1:], normal(300, 2)])) == {}


@pytest.mark.parametrize("d", [5, 120])
@pytest.mark.parametrize("make", [lambda x: x, np.exp], ids=["normal", "lognormal"])
def test_a_total_is_joined_with_its_parts(d, make):
    X = make(normal(150, d))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + X[:, 2]])
    assert joined(X) == {(0, 1, 2, d): "linear combination"}


def test_two_common_outliers_are_no_linear_combination():
    X = normal(300, 3)
    X[:2, :2] = 1000 * np.array([[1.0, 1.0], [2.0, 2.0]])
    assert joined(X) == {}


@pytest.mark.parametrize("n", [100, 500])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "make",
    [
        lambda n, seed: normal(n, 50, seed),
        lambda n, seed: autoregressive(n, 50, 0.9, seed),
        lambda n, seed: equicorrelated(n, 50, 0.9, seed),
        lambda n, seed: autoregressive(n, 5, 0.98, seed),
        lambda n, seed: np.random.default_rng(seed).standard_t(1.5, (n, 50)),
        lambda n, seed: np.random.default_rng(seed).poisson(1.0, (n, 50)),
        lambda n, seed: (equicorrelated(n, 50, 0.5, seed) > 0).astype(float),
        lambda n, seed: make_sinexp(n, random_state=seed).data,
        lambda n, seed: make_liang(n, n_features=60, random_state=seed).data,
    ],
    ids=["normal", "ar", "equi", "r98", "heavy", "counts", "binary", "sinexp", "liang"],
)
def test_columns_that_can_be_told_apart_stay_alone(make, n, seed):
    assert joined(make(n, seed)) == {}


@pytest.mark.parametrize("d", [100, 145, 300])
@pytest.mark.parametrize("seed", range(3))
def test_a_common_factor_with_few_rows_joins_nothing(d, seed):
    assert joined(equicorrelated(150, d, 0.7, seed)) == {}


@pytest.mark.parametrize("seed", range(5))
def test_a_permutation_of_the_columns_permutes_the_units(seed):
    X = various(seed=seed)
    order = np.random.default_rng(seed).permutation(X.shape[1])
    moved = {frozenset(order[list(unit)].tolist()) for unit in partition(X[:, order])}
    assert moved == partition(X)


def test_a_permutation_of_the_rows_changes_nothing():
    X = various()
    assert joined(X[np.random.default_rng(0).permutation(len(X))]) == VARIOUS


def test_scales_and_signs_change_nothing():
    X = various()
    scale = np.random.default_rng(0).uniform(-5, 5, X.shape[1])
    assert partition(scale * X + 3) == partition(X)
    assert partition(1e-12 * X) == partition(1e12 * X) == partition(X)


@pytest.mark.parametrize("column", [0, 1, 2, 6, 9, 10, 11, 13])
def test_monotone_maps_of_a_column_change_nothing(column):
    X = various()
    X[:, column] = -np.exp(X[:, column])
    assert partition(X) == partition(various())


def test_groups_stay_together():
    X = various()
    found = joined(X, [[6, 7], [0, 8]])
    assert found[(6, 7)] == "group"
    assert found[(0, 8, 9)] == "group, copies"
    others = {columns: VARIOUS[columns] for columns in VARIOUS if columns != (0, 9)}
    assert others.items() <= found.items()


def test_a_group_with_one_free_column_is_not_determined():
    """The square joins its column; together with a free column it is testable as it is."""
    X = various()
    found = joined(X, [[6, 10]])
    assert found[(6, 10)] == "group"
    assert not any(1 in columns for columns in found)


def test_groups_by_name_and_their_errors():
    X, names = normal(50, 3), ["a", "b", "c"]
    assert [unit.columns.tolist() for unit in find_units(X, [["a", "c"]], names=names)] == [
        [0, 2],
        [1],
    ]
    with pytest.raises(ValueError, match="column 'a' is in 2 groups"):
        find_units(X, [[0, 1], [0, 2]], names=names)
    with pytest.raises(ValueError, match="names has 3 entries, but X has 2 columns"):
        find_units(X[:, :2], names=names)


def test_constant_columns_are_units_of_one():
    X = np.column_stack([np.ones(100), normal(100, 2), np.zeros(100)])
    assert joined(X) == {}
    assert joined(np.ones((100, 2))) == {}
    assert joined(normal(100, 1)) == {}


def test_with_few_rows_only_copies_are_found():
    X = normal(20, 3)
    assert joined(np.column_stack([X, X[:, 0] ** 2, -X[:, 1]])) == {(1, 4): "copies"}


def test_missing_values_are_reported_by_column():
    X = pd.DataFrame(normal(50, 2), columns=["a", "b"])
    X.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match=r"NaN .* in column 'b' \(1 of 50 rows\)"):
        find_units(X)


def test_a_feature_is_named_after_at_most_three_columns():
    x, z = normal(50, 2).T
    names = ["Energy", "Mass", "TotalEnergy", "Spin", "Charge"]
    found = features(np.column_stack([x, z, 2 * x, -x, 3 * x]), None, names, "join")
    assert [feature.name for feature in found] == ["Energy, TotalEnergy, Spin and 1 more", "Mass"]


def test_one_hot_columns_are_recognised_by_their_names():
    rng = np.random.default_rng(0)
    site = rng.integers(0, 4, 200)
    hot = (site[:, None] == [1, 2, 3]).astype(float)  # the first category was dropped
    sex = rng.integers(0, 2, 200)
    X = np.column_stack([hot, sex == 0, sex == 1, rng.integers(0, 2, (200, 2))])
    names = ["site_b", "site_c", "site_d", "sex=female", "sex=male", "drug_1", "drug_2"]
    found = features(X, None, names, "join")
    assert [feature.name for feature in found] == ["site", "sex", "drug_1", "drug_2"]
    assert [feature.note for feature in found][:2] == [
        "categories: b / c / d",
        "categories: female / male",
    ]
    assert len(features(X, None, names, "keep")) == 7
    assert len(features(X[:, :3], None, ["b", "c", "d"], "join")) == 3
    rare = np.zeros((200, 2))
    rare[:3, 0] = rare[5:9, 1] = 1  # never together, but that may be chance
    assert len(features(rare, None, ["gene_1", "gene_2"], "join")) == 2


def test_large_tables_take_a_moment():
    """Measured 0.01 s and 0.25 s on one core; ten times as long allows for a busy machine."""
    for shape, most in (((500, 50), 0.1), ((1000, 500), 2.5)):
        X = normal(*shape)
        start = time.process_time()
        find_units(X)
        assert time.process_time() - start < most
