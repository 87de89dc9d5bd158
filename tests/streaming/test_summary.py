"""Sums over chunks: columns and responses as if all rows were seen at once."""

import numpy as np
import pandas as pd
import pytest

from sobolev._standardize import Standardizer
from sobolev.streaming.response import ResponseMoments
from sobolev.streaming.summary import ColumnMoments
from sobolev.targets import TargetEncoder


def merged(parts):
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.merge(part)
    return whole


@pytest.mark.parametrize("weighted", [False, True])
def test_columns(weighted):
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.standard_normal(9000) + 1e6,
            np.full(9000, 0.1),
            np.arange(9000) < 100,  # constant in every chunk, highest in the first
            np.arange(9000) >= 100,
        ]
    )
    w = rng.exponential(size=9000) if weighted else np.ones(9000)
    cuts = [slice(0, 100), slice(100, 5000), slice(5000, None)]
    found = merged([ColumnMoments.of(X[c], w[c]) for c in cuts])
    expected = Standardizer.fit(X, w / w.sum())
    np.testing.assert_allclose(found.standardizer().center, expected.center, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(found.standardizer().scale, expected.scale, rtol=1e-9)
    np.testing.assert_array_equal(found.standardizer().varying, [True, False, True, True])


def encoders(y, target_type="auto", size=10, weight=None):
    """Of chunks, and of all rows."""
    take = (lambda s: y.iloc[s]) if hasattr(y, "iloc") else (lambda s: y[s])
    cuts = [slice(i, i + size) for i in range(0, len(y), size)]
    weight = np.ones(len(y)) if weight is None else weight
    parts = [ResponseMoments.of(take(c), weight[c], target_type) for c in cuts]
    found = merged(parts).encoder(TargetEncoder(target_type))
    return found, TargetEncoder(target_type).fit(y, weight / weight.sum())


RNG = np.random.default_rng(1)
RESPONSES = {
    "numbers": RNG.standard_normal(95) * 1e3 + 1e5,
    "labels, last first": np.repeat(["d", "c", "b", "a"], [30, 30, 30, 5]),
    "few integers": np.repeat([3, 1, 2], [40, 15, 40]),
    "many integers, few in a chunk": np.arange(95) // 3,
    "integers of few rows": np.arange(14),
    "booleans": np.arange(95) > 80,
    "mixed": pd.DataFrame(
        {"a": RNG.standard_normal(95), "b": np.repeat(["y", "x"], [50, 45]), "c": range(95)}
    ),
    "dependent": np.column_stack([np.arange(95.0), 2 * np.arange(95.0)]),
}


@pytest.mark.parametrize("name", RESPONSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_responses(name, weighted):
    y = RESPONSES[name]
    weight = np.random.default_rng(2).exponential(size=len(y)) if weighted else None
    found, expected = encoders(y, weight=weight)
    np.testing.assert_allclose(found.transform(y), expected.transform(y), atol=1e-10)
    if expected.classes_ is None:
        assert found.classes_ is None
    else:
        np.testing.assert_array_equal(found.classes_, expected.classes_)


@pytest.mark.parametrize("target_type", ["regression", "classification"])
def test_the_user_says_what_integers_are(target_type):
    y = np.repeat([3, 1, 2], [40, 15, 40])
    found, expected = encoders(y, target_type)
    np.testing.assert_allclose(found.transform(y), expected.transform(y), atol=1e-12)


def test_text_is_no_number_and_labels_have_a_limit():
    with pytest.raises(ValueError, match="holds text"):
        ResponseMoments.of(np.array(["a", "b"]), np.ones(2), "regression")
    with pytest.raises(ValueError, match="more than 1,000 labels"):
        encoders(np.arange(1500), "classification", size=100)
    one, two = (ResponseMoments.of(np.ones(shape), np.ones(3), "auto") for shape in (3, (3, 2)))
    with pytest.raises(ValueError, match="2 columns in some chunks and 1 in others"):
        two.merge(one)
