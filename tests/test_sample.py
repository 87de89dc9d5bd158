"""The sample that solvers see: merged rows, folds of a user, constant columns, groups."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from sobolev._sample import (
    Sample,
    merge_equal_rows,
    report_constant,
    resolve_folds,
    spread,
    stratified_folds,
    varying_groups,
)
from sobolev.exceptions import DataWarning

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 3))
PSI = RNG.standard_normal((30, 1))
W = RNG.integers(1, 4, size=30)
P = W / W.sum()


def test_merged_rows_have_the_mass_of_their_copies():
    rows = np.repeat(np.arange(30), W)
    order = RNG.permutation(rows)
    merged = merge_equal_rows(X[order], PSI[order], np.full(rows.size, 1 / rows.size), ordered=True)
    direct = merge_equal_rows(X, PSI, P, ordered=True)
    for found, expected in zip(merged, direct, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert merged[2].sum() == pytest.approx(1)


def test_ordered_rows_do_not_depend_on_the_order_given():
    order = RNG.permutation(30)
    first = merge_equal_rows(X, PSI, P, ordered=True)
    second = merge_equal_rows(X[order], PSI[order], P[order], ordered=True)
    for found, expected in zip(second, first, strict=True):
        np.testing.assert_array_equal(found, expected)
    known = {tuple(row): (y, p) for row, y, p in zip(X, PSI[:, 0], P, strict=True)}
    for row, y, p in zip(first[0], first[1][:, 0], first[2], strict=True):
        assert known[tuple(row)] == (y, p)


def test_without_order_rows_stay_where_they_first_were():
    twice = np.concatenate([np.arange(30), [3, 3, 0]])
    x, psi, p = merge_equal_rows(X[twice], PSI[twice], np.full(33, 1 / 33))
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(psi, PSI)
    np.testing.assert_allclose(33 * p[[0, 1, 3]], [2, 1, 3])


def test_rows_with_other_responses_are_kept_apart():
    x, psi, p = merge_equal_rows(X[[0, 0]], PSI[[0, 1]], np.array([0.25, 0.75]), ordered=True)
    np.testing.assert_array_equal(x, X[[0, 0]])
    np.testing.assert_allclose(
        p[np.argsort(psi[:, 0])], np.array([0.25, 0.75])[PSI[:2, 0].argsort()]
    )


# Constant columns


def test_constant_columns_are_reported_by_name_or_position():
    varying = np.array([True, False, True, False])
    with pytest.warns(DataWarning, match=r"importance 0: 1, 3\.$"):
        report_constant(varying, None, stacklevel=2)
    with pytest.warns(DataWarning, match=r"importance 0: 'b', 'd'\.$"):
        report_constant(varying, list("abcd"), stacklevel=2)


def test_many_constant_columns_are_counted():
    with pytest.warns(DataWarning, match=r"1, 2, 3, 4, 5 and 2 more\.$"):
        report_constant(np.arange(8) < 1, None, stacklevel=2)


def test_nothing_to_report_and_nothing_left():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_constant(np.ones(3, dtype=bool), None, stacklevel=2)
    with pytest.raises(ValueError, match="every column of X is constant"):
        report_constant(np.zeros(3, dtype=bool), None, stacklevel=2)


def test_the_warning_points_at_the_caller():
    with pytest.warns(DataWarning) as caught:
        report_constant(np.array([True, False]), None, stacklevel=2)
    assert caught[0].filename == __file__


def test_spread_puts_zero_between():
    found = spread(np.array([0.4, 0.6]), np.array([False, True, False, True]))
    np.testing.assert_array_equal(found, [0, 0.4, 0, 0.6])


# Groups


def test_groups_lose_their_constant_columns():
    varying = np.array([True, False, True, True])
    groups = varying_groups({"pair": ["a", "b"], "rest": ["c", "d"]}, varying, list("abcd"))
    assert groups.names == ["pair", "rest"]
    np.testing.assert_array_equal(groups.membership.toarray(), [[1, 0, 0], [0, 1, 1]])
    assert varying_groups(None, varying, None) is None


def test_names_of_columns_that_are_not_text():
    groups = varying_groups({"pair": ["0", "2"]}, np.ones(3, dtype=bool), [0, 1, 2])
    assert groups.names[0] == "pair"
    np.testing.assert_array_equal(groups.membership.toarray()[0], [1, 0, 1])


# Folds


ALL = np.ones(30, dtype=bool)


def test_counts_splitters_and_splits():
    assert resolve_folds(np.int64(4), X, None, ALL) == 4
    splitter = KFold(3, shuffle=True, random_state=0)
    expected = [test for _, test in splitter.split(X)]
    for cv in (splitter, list(splitter.split(X)), splitter.split(X)):
        found = resolve_folds(cv, X, None, ALL)
        assert len(found) == 3
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_folds_count_among_the_rows_that_are_used():
    used = ALL.copy()
    used[[0, 5, 6, 7, 29]] = False
    folds = [(None, np.arange(10)), (None, [5, 6, 7]), (None, np.arange(25, 30))]
    found = resolve_folds(folds, X, None, used)
    kept = X[used]
    assert len(found) == 2  # the second has no row left
    np.testing.assert_array_equal(kept[found[0]], X[[1, 2, 3, 4, 8, 9]])
    np.testing.assert_array_equal(kept[found[1]], X[25:29])


@pytest.mark.parametrize(
    ("cv", "error", "message"),
    [
        (1, ValueError, "cv=1 must be at least 2"),
        (True, TypeError, "cv must be"),
        ("5", TypeError, "cv must be"),
        (2.5, TypeError, "cv must be"),
        (None, TypeError, "cv must be"),
    ],
)
def test_wrong_folds_are_named(cv, error, message):
    with pytest.raises(error, match=message):
        resolve_folds(cv, X, None, ALL)


def test_stratified_folds_part_the_rows_along_the_response():
    sample = Sample(X, PSI, np.full(30, 1 / 30))
    folds = stratified_folds(sample, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(30))
    ranks = PSI[:, 0].argsort().argsort()
    for fold in folds:
        # One of each three neighbours in the order of the response.
        np.testing.assert_array_equal(np.sort(ranks[fold] // 3), np.arange(10))
    assert stratified_folds(sample.rows(np.arange(3)), 3) == []
    assert len(stratified_folds(sample.rows(np.arange(5)), 3)) == 2
