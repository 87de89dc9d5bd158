"""A fit to chunks is the fit to all rows at once, however they are cut and wherever they lie."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sobolev import ConvexSIC
from sobolev.convex import Alternating, FourierMap
from sobolev.exceptions import DataWarning
from sobolev.streaming import fit_stream
from sobolev.streaming.stream import fold_rows
from sobolev.targets import TargetEncoder

FAST = {
    "lam": 0.03,
    "feature_map": FourierMap(32),
    "solver": Alternating(rounds=2),
    "random_state": 0,
}


@pytest.fixture(scope="module")
def whole(rows):
    return ConvexSIC(**FAST).fit(*rows)


@pytest.mark.parametrize("sizes", [[], [3000], [1, 2047, 2049], [700] * 8, [0, 5000, 0, 1000]])
def test_the_cut_does_not_matter(rows, cut, same, whole, sizes):
    found = fit_stream(ConvexSIC(**FAST), cut(*rows, sizes))
    same(found, whole, *rows)
    assert found.n_passes_ == 4  # rows unknown: sums, sample; then two rounds


def test_a_function_gives_the_chunks_anew(rows, cut, same, whole):
    def chunks():
        yield from cut(*rows, [1000, 4000])

    same(fit_stream(ConvexSIC(**FAST), chunks), whole, *rows)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_bit(rows, cut, n_jobs):
    chunks = cut(*rows, [500] * 9)
    one, more = (fit_stream(ConvexSIC(**FAST, n_jobs=k), chunks) for k in (1, n_jobs))
    np.testing.assert_array_equal(one.feature_importances_, more.feature_importances_)
    np.testing.assert_array_equal(one.critic_.U, more.critic_.U)


def test_weights(rows, weights, cut, same):
    X, y = rows
    expected = ConvexSIC(**FAST).fit(X, y, weights)
    same(fit_stream(ConvexSIC(**FAST), cut(X, y, [100, 3000], weights)), expected, X, y)
    assert np.abs(expected.sic_ - ConvexSIC(**FAST).fit(X, y).sic_) > 1e-6


@pytest.mark.parametrize("kind", ["text", "integers", "booleans"])
def test_labels(rows, cut, same, kind):
    X, y = rows
    code = np.digitize(y, [-0.8, 0.9])
    labels = {"text": np.array(["low", "mid", "top"])[code], "integers": code, "booleans": y > 0}
    y = labels[kind]
    order = np.argsort(y, kind="stable")  # the first chunks lack some labels
    X, y = X[order], y[order]
    expected = ConvexSIC(**FAST).fit(X, y)
    found = fit_stream(ConvexSIC(**FAST), cut(X, y, [500, 3000, 500]))
    same(found, expected, X, y)
    np.testing.assert_array_equal(found.classes_, expected.classes_)


def test_integers_of_many_values_are_numbers(rows, cut, same):
    X, y = rows
    y = np.round(10 * y).astype(int)
    order = np.argsort(np.abs(y), kind="stable")  # few values at first
    X, y = X[order], y[order]
    expected = ConvexSIC(**FAST).fit(X, y)
    found = fit_stream(ConvexSIC(**FAST), cut(X, y, [200, 300]))
    assert not hasattr(found, "classes_")
    same(found, expected, X, y)


@pytest.mark.parametrize("mixed", [False, True])
def test_several_responses(rows, cut, same, mixed):
    X, y = rows
    second = np.where(X[:, 0] > 0, "pos", "neg") if mixed else X[:, 4] + y
    Y = pd.DataFrame({"a": y, "b": second})
    settings = FAST | {"target": TargetEncoder(select=not mixed)}
    expected = ConvexSIC(**settings).fit(X, Y)
    found = fit_stream(
        ConvexSIC(**settings),
        [(X[p], Y.iloc[p]) for p in (slice(0, 100), slice(100, 4000), slice(4000, None))],
    )
    same(found, expected, X, Y)
    if not mixed:
        np.testing.assert_allclose(
            found.target_importances_, expected.target_importances_, atol=1e-8
        )


@pytest.mark.parametrize(("lam", "weighted"), [("auto", True), ("relaxed", False)])
def test_lam_is_chosen_on_folds_by_position(rows, weights, cut, same, lam, weighted):
    X, y = rows
    w = weights if weighted else np.ones(y.size)
    used = np.flatnonzero(w)  # positions count rows of positive weight
    folds = [used[f] for f in fold_rows(0, used.size, 3)]
    assert [f.size for f in folds] == pytest.approx([used.size / 3] * 3, rel=0.05)
    splits = [(np.setdiff1d(np.arange(y.size), f), f) for f in folds]
    settings = FAST | {"lam": lam}
    expected = ConvexSIC(**settings, cv=splits).fit(X, y, w)
    chunks = cut(X, y, [1111, 2222], weights if weighted else None)
    found = fit_stream(ConvexSIC(**settings, cv=3), chunks)
    np.testing.assert_allclose(found.lam_risks_, expected.lam_risks_, atol=1e-8)
    same(found, expected, X, y)


@pytest.mark.parametrize("other", [{"solver": "alternating"}, {"feature_map": "linear"}])
def test_other_settings(rows, cut, same, other):
    settings = FAST | other
    found = fit_stream(ConvexSIC(**settings), cut(*rows, [4000]))
    same(found, ConvexSIC(**settings).fit(*rows), *rows)


def test_groups_and_constant_columns(rows, cut, same):
    X, y = rows
    X = np.column_stack([X, np.full(y.size, 0.1)])
    settings = FAST | {"feature_groups": [[0, 1], [2], [3, 4, 5]]}
    with pytest.warns(DataWarning, match="constant columns"):
        expected = ConvexSIC(**settings).fit(X, y)
    with pytest.warns(DataWarning, match="constant columns"):
        found = fit_stream(ConvexSIC(**settings), cut(X, y, [10, 4000]))
    same(found, expected, X, y)
    np.testing.assert_allclose(found.group_importances_, expected.group_importances_, atol=1e-8)


def test_few_rows_are_fitted_as_in_memory(rows):
    X, y = rows[0][:300], rows[1][:300]
    chunks = [(X[:100], y[:100]), (X[100:], y[100:])]
    expected, found = ConvexSIC().fit(X, y), fit_stream(ConvexSIC(), chunks)
    np.testing.assert_array_equal(found.feature_importances_, expected.feature_importances_)
    assert found.n_passes_ == 2


def test_first_rounds_on_a_subsample(rows, cut, whole):
    settings = FAST | {"solver": Alternating(rounds=4)}
    found = fit_stream(ConvexSIC(**settings), cut(*rows, [2000]), round_rows=1000)
    assert found.n_passes_ == 3  # sums, sample, the last round
    assert found.n_rounds_ > 2
    np.testing.assert_array_equal(found.support_, whole.support_)
    auto = clone(found).set_params(lam="auto")
    fit_stream(auto, cut(*rows, [2000]), round_rows=1000)
    assert auto.n_passes_ == 4  # and the folds


def test_a_stream_that_changes_is_noticed(rows, cut):
    left = [cut(*rows, [3000]) for _ in range(2)] + [cut(*rows, [3000])[:1]]
    with pytest.raises(ValueError, match="same rows in the same order"):
        fit_stream(ConvexSIC(**FAST), lambda: iter(left.pop(0)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"feature_map": "landmark"}, 'feature_map="fourier"'),
        ({"feature_map": "polynomial"}, "PolynomialMap needs all rows"),
        ({"measure": "permuted"}, 'use measure="product"'),
        ({"target": TargetEncoder(basis="normal_scores")}, "transform y before"),
        ({"cv": [([0], [1])]}, "number of folds"),
        ({"n_features_to_select": 9}, "between 1 and the number"),
    ],
)
def test_settings_that_need_all_rows(rows, cut, settings, message):
    with pytest.raises(ValueError, match=message):
        fit_stream(ConvexSIC(**FAST | settings), cut(*rows, [3000]))


@pytest.mark.parametrize("name", ["chunk_rows", "round_rows"])
def test_numbers_of_rows_are_checked(rows, cut, name):
    with pytest.raises(ValueError, match=f"{name}=0 must be at least 1"):
        fit_stream(ConvexSIC(**FAST), cut(*rows, [3000]), **{name: 0})


def test_rows_in_memory_are_fitted_as_they_are(rows, whole):
    found = fit_stream(ConvexSIC(**FAST), *rows)
    np.testing.assert_array_equal(found.feature_importances_, whole.feature_importances_)


def test_fit_of_a_path_points_to_the_stream():
    with pytest.raises(TypeError, match=r"'table\.csv'.*sobolev\.streaming\.fit_stream"):
        ConvexSIC().fit("table.csv", "y")


def test_memory_is_that_of_chunks():
    def chunks(n):
        for seed in range(n):
            X = np.random.default_rng(seed).standard_normal((4000, 20))
            yield X, X[:, 0]

    peaks = []
    for n in (4, 16):
        tracemalloc.start()
        fit_stream(ConvexSIC(**FAST), lambda n=n: chunks(n))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
