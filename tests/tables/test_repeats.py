"""Rows that are copies of earlier ones are no further evidence."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LassoCV, LinearRegression

from sobolev import HRTSelector, KnockoffSelector, audit, hrt_test, sic_test
from sobolev.exceptions import DataWarning
from sobolev.tables import prepare
from sobolev.tables.repeats import near_repeats, repeated_rows

SAID = "rows repeat earlier rows in every column and in the response"


def noise(n=120, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def twice(X, y):
    return np.vstack([X, X]), np.concatenate([y, y])


def test_the_later_copies_are_named():
    X, y = noise(50)
    order = np.random.default_rng(1).permutation(100)
    X2, y2 = (part[order] for part in twice(X, y))
    copies = repeated_rows(X2, y2)
    assert copies.sum() == 50
    assert not any(copies[np.flatnonzero(order % 50 == k)[0]] for k in range(50))
    assert np.unique(y2[~copies]).size == 50


def test_copies_of_rows_with_missing_cells_are_copies():
    X, y = noise(50)
    X[::3, 1] = np.nan
    assert repeated_rows(*twice(X, y)).sum() == 50


def test_rows_that_differ_in_the_response_are_no_copies():
    X, y = noise(50)
    assert not repeated_rows(np.vstack([X, X]), np.concatenate([y, y + 1])).any()
    two = pd.DataFrame({"a": np.tile(y, 2), "b": np.repeat(["u", "v"], 50)})
    assert not repeated_rows(np.vstack([X, X]), two).any()
    assert repeated_rows(np.vstack([X, X]), two.assign(b="u")).sum() == 50


@pytest.mark.parametrize(("n_copies", "found"), [(5, 0), (6, 6)])
def test_a_twentieth_of_the_rows_counts(n_copies, found):
    X, y = noise(114)
    rows = np.r_[np.arange(114), np.arange(n_copies)]
    assert repeated_rows(X[rows], y[rows]).sum() == found


def test_chance_may_make_equal_rows_of_few_values():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 4)).astype(float), rng.integers(0, 2, 300)
    assert pd.DataFrame(X).assign(y=y).duplicated().mean() > 0.05
    assert not repeated_rows(X, y).any()


def test_common_rows_of_rare_mutations_are_no_copies():
    rng = np.random.default_rng(0)
    wild = rng.random((400, 1)) < 0.5
    X = np.where(wild, 0.0, rng.random((400, 60)) < 0.1)
    y = rng.integers(0, 2, 400)
    assert pd.DataFrame(X).assign(y=y).duplicated().mean() > 0.3
    assert not repeated_rows(X, y).any()


def test_many_columns_of_few_values_tell_rows_apart():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 17, (200, 60)).astype(float), np.repeat(["a", "b"], 100)
    assert repeated_rows(*twice(X, y)).sum() == 200


@pytest.mark.parametrize("response", ["numbers", "classes", "survival"])
def test_a_test_of_doubled_rows_is_that_of_the_rows(response):
    X, y = noise(120, 4)
    if response == "classes":
        y = np.where(y > 0, "high", "low")
    if response == "survival":
        y = np.column_stack([np.exp(y), X[:, 0] > -1])
    kind = "survival" if response == "survival" else "auto"
    hrt = HRTSelector(LinearRegression(), response=kind, n_repeats=1, random_state=0)
    if response == "classes":
        hrt.set_params(estimator=None)
    hrt.set_params(diagnose=False)
    once = hrt.fit(X, y).pvalues_
    with pytest.warns(DataWarning, match=f"120 of 240 {SAID}"):
        doubled = hrt.fit(*twice(X, y)).pvalues_
    if response != "survival":  # the scores of tied times are others
        assert_array_equal(doubled, once)
    with pytest.warns(DataWarning, match=SAID):
        hrt_test(*twice(X, y), 0, estimator=hrt.estimator, response=kind, random_state=0)


def test_a_frame_and_weights_lose_the_same_rows():
    X, y = noise(120, 4)
    weights = np.random.default_rng(2).random(120) + 0.5
    hrt = HRTSelector(LassoCV(), diagnose=False, n_repeats=1, random_state=0)
    once = hrt.fit(X, y, sample_weight=weights).pvalues_
    X2, y2 = twice(X, y)
    frame = pd.DataFrame(X2, columns=list("abcd"))
    with pytest.warns(DataWarning, match=SAID):
        hrt.fit(frame, y2, sample_weight=np.tile(weights, 2))
    np.testing.assert_allclose(hrt.pvalues_, once, rtol=1e-9)


def test_a_prepared_table_has_no_copies_and_says_so():
    X, y = twice(*noise(60, 3))
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=np.tile(["u", "v"], 60), y=y)
    data = prepare(frame, "y")
    assert len(data.X) == len(data.rows) == 60
    assert any(f"60 of 120 {SAID}" in note for note in data.notes)
    frame["patient"] = np.arange(120) % 60
    assert len(prepare(frame, "y", subject="patient").X) == 120


def test_groups_say_which_rows_belong_together():
    X, y = twice(*noise(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        hrt = HRTSelector(LinearRegression(), diagnose=False, random_state=0)
        hrt.fit(X, y, groups=np.tile(np.arange(60), 2))
        sic_test(X, y, groups=np.tile(np.arange(60), 2), n_permutations=19, random_state=0)


def test_doubled_noise_is_not_found():
    """Copies would give every second null p-value less than 0.05."""
    small = []
    for seed in range(20):
        X, y = twice(*noise(100, 4, seed))
        hrt = HRTSelector(LinearRegression(), n_repeats=1, diagnose=False, random_state=seed)
        with pytest.warns(DataWarning, match=SAID):
            hrt.fit(X, y)
        small.append((hrt.pvalues_ <= 0.05).mean())
    assert np.mean(small) <= 0.15  # fails for one correct program in 1000


def test_an_audit_is_that_of_the_rows_without_copies():
    X, y = noise(100, 4)
    hrt = HRTSelector(LinearRegression(), scheme="split", diagnose=False)
    once = audit(hrt, X, y, n_repeats=3, random_state=0)
    with pytest.warns(DataWarning, match=SAID):
        doubled = audit(hrt, *twice(X, y), n_repeats=3, random_state=0)
    assert doubled.table().equals(once.table())


def test_knockoffs_and_the_test_of_independence_leave_copies_out():
    X, y = noise(120, 12)
    knockoffs = KnockoffSelector(LassoCV(), diagnose=False, random_state=0)
    once = knockoffs.fit(X, y).statistics_
    with pytest.warns(DataWarning, match=SAID):
        assert_array_equal(knockoffs.fit(*twice(X, y)).statistics_, once)
    one = sic_test(X, y, n_permutations=49, random_state=0)
    with pytest.warns(DataWarning, match=SAID):
        two = sic_test(*twice(X, y), n_permutations=49, random_state=0)
    assert two.pvalue == one.pvalue


# -- near copies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-6, 1e-3, 5e-3])
def test_rows_with_jitter_raise_a_question(size):
    X, y = twice(*noise())
    X = X + size * np.random.default_rng(1).standard_normal(X.shape)
    assert near_repeats(X, y).all()
    with pytest.warns(DataWarning, match=r"240 of 240 rows nearly repeat other rows.*pass groups"):
        HRTSelector(LinearRegression(), random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        groups = np.tile(np.arange(120), 2)
        HRTSelector(LinearRegression(), random_state=0).fit(X, y, groups=groups)


def test_independent_rows_raise_none():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = noise(400, 2, seed)
        assert not near_repeats(X, y).any()
        assert not near_repeats(np.exp(2 * X), y).any()
        steps = np.cumsum(rng.standard_normal((300, 3)), axis=0)  # neighbours in time are near
        assert not near_repeats(steps, rng.standard_normal(300)).any()


def test_too_few_continuous_columns_say_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (200, 6)).astype(float), rng.standard_normal(200)
    assert not near_repeats(np.vstack([X, X]), np.concatenate([y, y + 1e-6])).any()
