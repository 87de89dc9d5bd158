"""partial_fit: chunks seen once add up to the fit of all rows under the same frequencies."""

import pickle

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC
from sobolev.convex import Alternating, FourierMap
from sobolev.convex.fitting import solve
from sobolev.convex.moments import FourierMoments
from sobolev.convex.training import prepare
from sobolev.exceptions import DataWarning
from sobolev.streaming import partial_fit
from sobolev.streaming.stream import fold_rows
from sobolev.targets import TargetEncoder

FAST = {
    "lam": 0.03,
    "feature_map": FourierMap(32),
    "solver": Alternating(rounds=1),
    "random_state": 0,
}


def partial(settings, chunks, **options):
    model = ConvexSIC(**settings)
    for chunk in chunks[:-1]:
        partial_fit(model, *chunk, solve=False, **options)
    return partial_fit(model, *chunks[-1], **options)


def refit(model, settings, X, y, weight=None):
    """Importances and witness of all rows at once under the frequencies of a fitted model."""
    reference = ConvexSIC(**settings | {"lam": model.lam_})
    weight = np.ones(len(y)) if weight is None else weight
    sample, options, _ = prepare(reference, X, y, weight / weight.sum())
    bound = model.critic_.bound
    moments = FourierMoments.empty(bound, sample.psi.shape[1])
    forms = moments.update(sample.X, sample.psi, sample.p).forms()
    solution = solve(forms, options, model.lam_)
    h = (bound.values(reference.standardizer_.transform(X)) - forms.mean) @ solution.U
    eta = np.zeros(X.shape[1])
    eta[reference.standardizer_.varying] = solution.eta
    return eta, np.sum(h * reference.encoder_.transform(y), axis=1)


def assert_refit(model, settings, X, y, weight=None):
    eta, witness = refit(model, settings, X, y, weight)
    np.testing.assert_allclose(model.feature_importances_, eta, atol=1e-8)
    np.testing.assert_allclose(model.witness(X, y), witness, atol=1e-8)


@pytest.fixture(scope="module")
def drifting(rows):
    """Rows whose columns and response move and spread: the first chunk misjudges all units."""
    X, y = rows
    t = np.linspace(0, 1, y.size)
    return X * (1 + t[:, None]) + 3 * t[:, None], 5 * y + 20 * t


def test_chunks_add_up(drifting, cut):
    X, y = drifting
    assert_refit(partial(FAST, cut(X, y, [1000, 3, 2000])), FAST, X, y)


def test_one_chunk_is_a_fit(rows, same):
    expected = ConvexSIC(**FAST).fit(*rows)
    same(partial_fit(ConvexSIC(**FAST), *rows), expected, *rows)


@pytest.mark.parametrize("map_name", ["linear", "fourier"])
def test_weights_and_maps(drifting, weights, cut, map_name):
    X, y = drifting
    settings = FAST | {"feature_map": map_name}
    chunks = cut(X, y, [1000, 2000], weights)
    assert_refit(partial(settings, chunks), settings, X, y, weights)


def test_several_responses(drifting):
    X, y = drifting
    Y = np.column_stack([y, X[:, 2] - y])
    settings = FAST | {"target": TargetEncoder(select=True)}
    model = partial(settings, [(X[:1000], Y[:1000]), (X[1000:], Y[1000:])])
    p = np.full(len(Y), 1 / len(Y))
    expected = prepare(ConvexSIC(**settings), X, Y, p)[1].output_weights
    np.testing.assert_allclose(model.encoder_.output_weights, expected, atol=1e-8)
    plain = partial(FAST, [(X[:1000], Y[:1000]), (X[1000:], Y[1000:])])
    assert_refit(plain, FAST, X, Y)


def test_labels(drifting, cut):
    X, y = drifting
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [0.0, y[:1000].max() + 1])]
    assert set(labels[:1000]) != set(labels)
    model = partial(FAST, cut(X, labels, [1000, 3000]), classes=["low", "mid", "top"])
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert_refit(model, FAST, X, labels)
    with pytest.raises(ValueError, match="holds the label 'top', unseen"):
        partial(FAST, cut(X, labels, [1000, 3000]))
    with pytest.raises(ValueError, match="not among classes"):
        partial_fit(ConvexSIC(**FAST), X, labels, classes=["low", "mid"])
    with pytest.raises(ValueError, match="classes is for one response of labels"):
        partial_fit(ConvexSIC(**FAST), X, y, classes=[1, 2])


def test_lam_on_folds_by_position(drifting, cut):
    X, y = drifting
    settings = FAST | {"lam": "auto", "cv": 3}
    first, second = (partial(settings, cut(X, y, sizes)) for sizes in ([1000], [1000, 77, 2000]))
    np.testing.assert_allclose(first.lam_risks_, second.lam_risks_, atol=1e-8)
    assert first.lam_ == second.lam_
    held = fold_rows(0, y.size, 3)[0]
    train = np.setdiff1d(np.arange(y.size), held)
    assert first.lam_risks_.shape == (3, 6)
    assert first.lam_risks_[0].max() < 0.5
    assert first.score(X[train], y[train]) > 0


def test_few_rows_have_few_folds(rows):
    X, y = rows
    model = partial_fit(ConvexSIC(**FAST | {"lam": "auto", "cv": 50}), X[:60], y[:60])
    assert 1 < len(model.lam_risks_) < 50
    assert np.isfinite(model.lam_risks_).all()


def test_rounds_are_those_of_the_first_chunk(rows, cut):
    settings = FAST | {"solver": "alternating"}
    model = partial(settings, cut(*rows, [3000]))
    plain = partial(FAST, cut(*rows, [3000]))
    assert model.sic_ > plain.sic_  # the metric sees the columns that matter
    assert_refit(model, settings, *rows)


def test_each_call_leaves_a_fitted_model(rows, cut):
    model = ConvexSIC(**FAST)
    for chunk in cut(*rows, [2000, 2000]):
        before = getattr(model, "sic_", None)
        assert partial_fit(model, *chunk).sic_ != before
    again = pickle.loads(pickle.dumps(model))
    partial_fit(again, *rows)
    assert again.partial_moments_.n_rows == 2 * rows[1].size
    partial_fit(model, rows[0][:0], rows[1][:0])  # nothing happens
    assert model.partial_moments_.n_rows == rows[1].size
    assert not hasattr(model.fit(rows[0][:300], rows[1][:300]), "partial_moments_")


def test_columns_that_begin_constant(rows):
    X, y = rows[0].copy(), rows[1]
    X[:1000, 0] = 7.0
    with pytest.warns(DataWarning, match="columns 0 are constant in the first chunk"):
        model = partial(FAST, [(X[:1000], y[:1000]), (X[1000:], y[1000:])])
    assert_refit(model, FAST, X, y)
    assert not model.critic_.bound.frequencies[:, 0].any()


def test_errors(rows, frame):
    X, y = rows
    model = partial_fit(ConvexSIC(**FAST), frame[list("abcde")], y)
    with pytest.raises(ValueError, match="feature names"):
        partial_fit(model, frame[list("bcdey")], y)
    hole = frame[list("abcde")].copy()
    hole.loc[7, "d"] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*column 'd'"):
        partial_fit(model, hole, y)
    with pytest.raises(ValueError, match="6203 rows but y has 2"):
        partial_fit(model, frame[list("abcde")], pd.Series(y[:2]))
    with pytest.raises(ValueError, match="not negative"):
        partial_fit(model, frame[list("abcde")], y, -np.abs(y))
    with pytest.raises(ValueError, match='feature_map="fourier"'):
        partial_fit(ConvexSIC(feature_map="landmark"), X, y)
