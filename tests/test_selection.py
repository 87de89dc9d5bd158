"""The selection rule, and the errors of validation: what is wrong, where, and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from sobolev._standardize import Standardizer
from sobolev.selection import SICSelectorMixin, select
from sobolev.validation import plain_target, validate_rows, validate_training

IMPORTANCES = np.array([0.1, 0.5, 0.0, 0.3, 0.1])


def test_default_keeps_importances_above_the_mean():
    np.testing.assert_array_equal(select(IMPORTANCES), IMPORTANCES > 0.2)


def test_equal_importances_are_not_above_their_mean():
    eta = np.full(7, 1 / 7) * (1 + 1e-15 * np.arange(7))
    assert not select(eta).any()


def test_a_single_feature_is_kept_unless_a_threshold_forbids_it():
    assert select(np.array([1.0])).tolist() == [True]
    assert select(np.array([0.0])).tolist() == [False]
    assert select(np.array([1.0]), threshold=1.0).tolist() == [False]


def test_threshold_is_exclusive():
    assert np.flatnonzero(select(IMPORTANCES, threshold=0.1)).tolist() == [1, 3]
    assert np.flatnonzero(select(IMPORTANCES, threshold=0)).tolist() == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("number", "kept"),
    [(1, [1]), (np.int64(2), [1, 3]), (0.4, [1, 3]), (0.01, [1]), (1.0, [0, 1, 3, 4])],
)
def test_number_of_features(number, kept):
    assert np.flatnonzero(select(IMPORTANCES, number)).tolist() == kept


@pytest.mark.parametrize("rule", [{"n_features_to_select": 5}, {"threshold": -1.0}, {}])
def test_zero_importance_is_never_selected(rule):
    assert not select(IMPORTANCES, **rule)[2]


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ({"n_features_to_select": 2, "threshold": 0.1}, ValueError, "not both"),
        ({"n_features_to_select": 6}, ValueError, "n_features_to_select=6 .* 5"),
        ({"n_features_to_select": 0}, ValueError, "n_features_to_select=0"),
        ({"n_features_to_select": 1.5}, ValueError, "n_features_to_select .*1.5"),
        ({"n_features_to_select": True}, ValueError, "n_features_to_select .*True"),
        ({"n_features_to_select": "all"}, ValueError, "n_features_to_select .*'all'"),
        ({"threshold": "mean"}, TypeError, "threshold must be a number; got 'mean'"),
    ],
)
def test_wrong_rules_are_named(rule, error, message):
    with pytest.raises(error, match=message):
        select(IMPORTANCES, **rule)


class Fixed(SICSelectorMixin, BaseEstimator):
    def __init__(self, n_features_to_select=None, threshold=None):
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold

    def fit(self, X, y):
        validate_training(self, X, y)
        self.feature_importances_ = IMPORTANCES
        return self


def test_mixin_selects_columns_and_names():
    X = pd.DataFrame(np.arange(20.0).reshape(4, 5), columns=list("abcde"))
    selector = Fixed().fit(X, [1.0, 2.0, 3.0, 4.0])
    assert selector.get_feature_names_out().tolist() == ["b", "d"]
    np.testing.assert_array_equal(selector.transform(X), X[["b", "d"]])
    np.testing.assert_array_equal(selector.support_, selector.get_support())
    selector.set_params(n_features_to_select=1)
    assert selector.get_feature_names_out().tolist() == ["b"]


def test_support_before_fit_is_an_error():
    with pytest.raises(NotFittedError):
        Fixed().support_  # noqa: B018


X = np.random.default_rng(0).standard_normal((6, 3))
Y = np.arange(6.0)


def with_value(value, dtype=float):
    out = X.astype(dtype)
    out[2, 1] = value
    return out


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (with_value(np.nan), "NaN .*column 1 .1 of 6 rows.; impute"),
        (with_value(np.inf), "infinity .*column 1 .1 of 6"),
        (np.where(np.eye(6, 3), [[np.inf, -np.inf, np.inf]], X), "infinity .*column 0 .*column 2"),
        (pd.DataFrame(with_value(np.nan), columns=["a", "b", "c"]), "NaN .*column 'b'"),
        (pl.DataFrame(with_value(np.nan), schema=["a", "b", "c"]), "NaN .*column 'b'"),
        (pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 3}), "not numbers: 'b'.*prepare"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=6)}), "not numbers: 'a'"),
        (pd.DataFrame({"a": pd.Categorical(["u", "v"] * 3)}), "not numbers: 'a'"),
        (pl.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 3}), "not numbers: 'b'"),
        (with_value("text", object), "not numbers: 1.*prepare"),
        (with_value("text", object).tolist(), "not numbers: 1"),
        (X + 1j, "Complex data not supported"),
        (X[0], "Expected 2D array"),
    ],
)
def test_rows_that_cannot_be_used_are_named(rows, message):
    with pytest.raises(ValueError, match=message):
        validate_rows(Fixed(), rows, reset=True)


@pytest.mark.filterwarnings("error")
def test_opposite_infinities_raise_without_a_numpy_warning():
    rows = X.copy()
    rows[0, 0], rows[1, 0] = np.inf, -np.inf
    with pytest.raises(ValueError, match=r"column 0 \(2 of 6"):
        validate_rows(Fixed(), rows, reset=True)


def test_large_finite_numbers_are_accepted():
    rows = np.full((4, 2), 1e99)
    np.testing.assert_array_equal(validate_rows(Fixed(), rows, reset=True), rows)


@pytest.mark.parametrize("matrix", [sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_sparse_rows_are_refused_with_the_remedy(matrix):
    with pytest.raises(TypeError, match=r"Sparse X .*toarray"):
        validate_rows(Fixed(), matrix(X), reset=True)


@pytest.mark.parametrize(
    "rows",
    [
        X.astype(np.float32),
        (X > 0),
        (10 * X).astype(int),
        X.astype(object),
        X.tolist(),
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": pd.array([1, 2] * 3, dtype="Int64")}),
        pl.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": [1, 2] * 3}),
    ],
    ids=["float32", "bool", "int", "object", "list", "pandas", "polars"],
)
def test_numbers_of_any_kind_become_floats(rows):
    checked = validate_rows(Fixed(), rows, reset=True)
    assert checked.dtype == np.float64
    assert checked.shape == (6, 3)


@pytest.mark.parametrize(
    ("y", "weight", "error", "message"),
    [
        (None, None, ValueError, "requires y"),
        (Y[:-1], None, ValueError, "X has 6 rows but y has 5"),
        (3.0, None, ValueError, "y must have one or two dimensions"),
        (sp.csr_array(Y[:, None]), None, TypeError, r"Sparse y .*toarray"),
        (Y, np.ones(5), ValueError, "sample_weight"),
        (Y, -np.ones(6), ValueError, "sample_weight"),
        (Y, np.full(6, np.nan), ValueError, "sample_weight contains NaN"),
        (Y, np.zeros(6), ValueError, "(?i)sample.weight"),
        (Y, [1, 1, 1, 0, 0, 0], ValueError, "n_samples = 3 is too few .*at least 4"),
    ],
)
def test_responses_and_weights_that_cannot_be_used_are_named(y, weight, error, message):
    with pytest.raises(error, match=message):
        validate_training(Fixed(), X, y, weight)


def test_three_rows_are_too_few():
    with pytest.raises(ValueError, match="n_samples = 3 is too few"):
        validate_training(Fixed(), X[:3], Y[:3])


def test_weights_become_probabilities():
    p = validate_training(Fixed(), X, Y, [1, 2, 3, 4, 0, 0])[2]
    np.testing.assert_allclose(p, np.array([1, 2, 3, 4, 0, 0]) / 10)
    np.testing.assert_allclose(validate_training(Fixed(), X, Y)[2], 1 / 6)


def test_tables_of_responses_keep_the_types_of_their_columns():
    table = pl.DataFrame({"u": [1.5, 2.5], "v": ["a", "b"]})
    kept = plain_target(table)
    assert kept["u"].dtype == np.float64
    assert kept["v"].tolist() == ["a", "b"]


def test_standardizer_equals_weighted_moments():
    rng = np.random.default_rng(0)
    rows, p = 5 + 3 * rng.standard_normal((50, 4)), rng.dirichlet(np.ones(50))
    z = Standardizer.fit(rows, p).transform(rows)
    np.testing.assert_allclose(p @ z, 0, atol=1e-14)
    np.testing.assert_allclose(p @ z**2, 1, rtol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -1e-9])
def test_standardizer_leaves_constant_columns_out(value):
    rows = np.column_stack([np.arange(9.0), np.full(9, value)])
    rows[0, 1] = np.nextafter(value, 1) if value else 0.0  # rounding is not variation
    standardizer = Standardizer.fit(rows, np.full(9, 1 / 9))
    assert standardizer.varying.tolist() == [True, False]
    assert standardizer.transform(rows).shape == (9, 1)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_standardizer_ignores_unit_and_origin(scale, shift):
    rng = np.random.default_rng(0)
    rows, p = rng.standard_normal((50, 4)), np.full(50, 0.02)
    z = Standardizer.fit(rows, p).transform(rows)
    moved = scale * (rows + shift)
    np.testing.assert_allclose(Standardizer.fit(moved, p).transform(moved), z, atol=1e-8)


def test_standardizer_does_not_depend_on_its_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    rows, p = rng.standard_normal((50, 4)), rng.dirichlet(np.ones(50))
    whole = Standardizer.fit(rows, p)
    monkeypatch.setattr("sobolev._standardize._CHUNK_ROWS", 7)
    chunked = Standardizer.fit(rows, p)
    np.testing.assert_allclose(chunked.center, whole.center, atol=1e-15)
    np.testing.assert_allclose(chunked.scale, whole.scale, rtol=1e-14)
