"""psi(y) is centred and white, for every kind of response."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sobolev.targets import TargetEncoder

N = 60


def responses():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(N)
    text = np.array(["a", "b", "c", "d"])[rng.integers(4, size=N)]
    return {
        "numbers": (x, 1),
        "heavy tails": (rng.standard_t(1.5, size=N), 1),
        "far from zero": (1e9 + x, 1),
        "tiny": (1e-200 * x, 1),
        "many integers": (rng.permutation(N), 1),
        "few integers": (rng.integers(3, size=N), 2),
        "booleans": (x > 0.5, 1),
        "text": (text, 3),
        "text list": (text.tolist(), 3),
        "text objects": (text.astype(object), 3),
        "categorical": (pd.Series(text, dtype="category"), 3),
        "mixed labels": (np.array([1, "a"] * (N // 2), dtype=object), 1),
        "number objects": (x.astype(object), 1),
        "one column": (x[:, None], 1),
        "several": (rng.standard_normal((N, 3)) @ rng.standard_normal((3, 3)), 3),
        "dependent": (np.column_stack([x, 2 * x + 1, x**2]), 2),
        "mixed table": (pd.DataFrame({"u": x, "v": text, "w": x > 0}), 5),
    }


RESPONSES = responses()


def assert_white(psi, p, k):
    assert psi.shape == (p.size, k)
    np.testing.assert_allclose(p @ psi, 0.0, atol=1e-9)
    np.testing.assert_allclose(psi.T @ (p[:, None] * psi), np.eye(k), atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("kind", RESPONSES)
def test_psi_is_centred_and_white(kind, weighted):
    y, k = RESPONSES[kind]
    w = np.random.default_rng(1).exponential(size=N) if weighted else None
    p = np.full(N, 1 / N) if w is None else w / w.sum()
    assert_white(TargetEncoder().fit(y, w).transform(y), p, k)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("degree", [1, 3, 10])
@pytest.mark.parametrize("kind", ["numbers", "heavy tails", "far from zero"])
def test_polynomial_basis_is_white_and_complete(kind, degree, weighted):
    y, _ = RESPONSES[kind]
    w = np.random.default_rng(1).exponential(size=N) if weighted else np.ones(N)
    p = w / w.sum()
    psi = TargetEncoder(basis="polynomial", degree=degree).fit(y, w).transform(y)
    assert_white(psi, p, degree)
    # The span is that of the powers of y: each low power is reproduced by its projection.
    z = (y - p @ y) / np.sqrt(p @ (y - p @ y) ** 2)
    for power in range(1, min(degree, 3) + 1):
        target = z**power - p @ z**power
        fitted = psi @ (psi.T @ (p * target))
        assert p @ (fitted - target) ** 2 < 1e-10 * (p @ target**2)


def test_polynomials_stop_at_the_number_of_distinct_values():
    y = np.array([0.0, 1.0, 2.0] * 10)
    psi = TargetEncoder(basis="polynomial", degree=5).fit(y).transform(y)
    assert_white(psi, np.full(30, 1 / 30), 2)


def test_standard_basis_is_the_standardised_response():
    y, _ = RESPONSES["numbers"]
    psi = TargetEncoder().fit(y).transform(y)
    np.testing.assert_allclose(psi[:, 0], (y - y.mean()) / y.std(), atol=1e-12)


def test_psi_of_numbers_ignores_unit_and_origin():
    y, _ = RESPONSES["numbers"]
    psi = TargetEncoder().fit(y).transform(y)
    np.testing.assert_allclose(TargetEncoder().fit(1e9 * y).transform(1e9 * y), psi, rtol=1e-9)
    np.testing.assert_allclose(TargetEncoder().fit(y + 5).transform(y + 5), psi, atol=1e-12)


def test_normal_scores_are_the_quantiles_of_ranks():
    y, _ = RESPONSES["heavy tails"]
    scores = norm.ppf((np.argsort(np.argsort(y)) + 0.5) / N)
    psi = TargetEncoder(basis="normal_scores").fit(y).transform(y)
    np.testing.assert_allclose(psi[:, 0], scores / scores.std(), atol=1e-12)


@pytest.mark.parametrize("transform", [np.exp, np.tanh, lambda v: v**3, lambda v: 7 * v - 2])
def test_normal_scores_ignore_monotone_transforms(transform):
    y = RESPONSES["numbers"][0].round(1)  # with ties
    w = np.random.default_rng(2).exponential(size=N)

    def encode(v):
        return TargetEncoder(basis="normal_scores").fit(v, w).transform(v)

    np.testing.assert_allclose(encode(transform(y)), encode(y), atol=1e-12)


def test_normal_scores_are_white_and_clamp_new_values():
    y = RESPONSES["heavy tails"][0]
    w = np.random.default_rng(3).exponential(size=N)
    encoder = TargetEncoder(basis="normal_scores").fit(y, w)
    psi = encoder.transform(y)
    assert_white(psi, w / w.sum(), 1)
    ends = encoder.transform([y.max() + 1e6, y.min() - 1e6])[:, 0]
    np.testing.assert_allclose(ends, [psi.max(), psi.min()])


@pytest.mark.parametrize("basis", ["standard", "normal_scores", "polynomial"])
@pytest.mark.parametrize("kind", RESPONSES)
def test_integer_weights_are_repetitions(kind, basis):
    y, _ = RESPONSES[kind]
    w = np.random.default_rng(4).integers(1, 4, size=N)
    rows = np.repeat(np.arange(N), w)
    repeated = y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y)[rows]
    weighted = TargetEncoder(basis=basis).fit(y, w.astype(float)).transform(y)
    psi = TargetEncoder(basis=basis).fit(repeated).transform(y)
    # White bases may differ by a rotation; what enters SIC does not.
    np.testing.assert_allclose(psi @ psi.T, weighted @ weighted.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", RESPONSES)
def test_new_rows_are_encoded_like_old_ones(kind):
    y, _ = RESPONSES[kind]
    encoder = TargetEncoder().fit(y)
    rows = np.array([5, 3, 3, 40])
    some = y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y)[rows]
    np.testing.assert_allclose(encoder.transform(some), encoder.transform(y)[rows], atol=1e-12)


def test_two_classes_become_one_standardised_indicator():
    y = np.array(["no", "yes", "no", "no"])
    psi = TargetEncoder().fit(y).transform(y)[:, 0]
    z = (y == "yes") - 0.25
    np.testing.assert_allclose(psi * np.sign(psi[1]), z / z.std(), atol=1e-12)


def test_classes_span_all_functions_of_the_label():
    y, k = RESPONSES["text"]
    psi = TargetEncoder().fit(y).transform(y)
    onehot = (y[:, None] == np.unique(y)).astype(float)
    onehot -= onehot.mean(axis=0)
    np.testing.assert_allclose(psi @ (psi.T @ onehot) / N, onehot, atol=1e-10)
    assert k == np.unique(y).size - 1


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b", "a"], ["a", "b"]),
        ([True, False, True, False], [False, True]),
        ([3, 1, 3, 1], [1, 3]),
        ([0.5, 1.5, 0.5, 1.5], None),
        ([1, 2, 3, 4], None),
    ],
)
def test_auto_recognises_labels(y, classes):
    found = TargetEncoder().fit(y).classes_
    assert (found is None) if classes is None else found.tolist() == classes


def test_target_type_overrides_the_guess():
    assert TargetEncoder("regression").fit([1, 2, 1, 2]).classes_ is None
    assert TargetEncoder("classification").fit([0.5, 1.5, 0.5]).classes_.tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="holds text"):
        TargetEncoder("regression").fit(["a", "b"])


def test_mixed_labels_are_known_by_their_text():
    encoder = TargetEncoder().fit(np.array([1, "a", 2, "a"], dtype=object))
    expected = encoder.transform(np.array([1, "a", 2], dtype=object))[[0, 2]]
    np.testing.assert_array_equal(encoder.transform(np.array([1, 2])), expected)


def test_output_weights_are_the_derivatives_of_psi():
    y, _ = RESPONSES["several"]
    encoder = TargetEncoder().fit(y)
    step = 1e-4 * y.std(axis=0)
    for column, t in enumerate(encoder.output_weights):
        moved = y.copy()
        moved[:, column] += step[column]
        slope = (encoder.transform(moved) - encoder.transform(y)) / 1e-4
        np.testing.assert_allclose(slope, np.tile(t, (N, 1)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["text", "mixed table"])
def test_labels_have_no_output_weights(kind):
    encoder = TargetEncoder().fit(RESPONSES[kind][0])
    with pytest.raises(ValueError, match=r"select=True\) needs numeric"):
        encoder.output_weights  # noqa: B018


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones(5), "y is constant"),
        (["a"] * 5, "one class only .'a'."),
        (np.zeros(5, dtype=int), "y is constant"),
        ([1.0, np.nan, 2.0], "NaN or infinity in 1 rows .first in row 1."),
        ([1.0, 2.0, np.inf], "NaN or infinity"),
        ([1.0, None, 2.0], "missing values .first in row 1."),
        (pd.Series(["a", None, "b"]), "missing values"),
        (pd.Series([1, None, 2], dtype="Int64"), r"y .*row 1"),
        (pd.Series(["a", pd.NA, "b"], dtype=object), "missing values"),
        (pd.date_range("2020-01-01", periods=4), "dates"),
        (np.array([1j, 2j]), "Complex data not supported"),
        (np.ones((2, 2, 2)), "one or two dimensions"),
        (np.column_stack([np.arange(5.0), np.ones(5)]), r"y\[1\] is constant"),
        (pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["u", "v", "u"]}), r"y\[0\].*NaN"),
    ],
)
def test_responses_that_cannot_be_encoded_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        TargetEncoder().fit(y)


@pytest.mark.parametrize(
    ("fitted", "new", "message"),
    [
        (["a", "b"], ["a", "z"], "label 'z', unseen in fit; known labels: 'a', 'b'"),
        ([1, 2, 1, 2], [3], "label 3"),
        ([1, 2, 1, 2], ["a"], "label 'a'"),
        ([1.0, 2.5], [np.nan], "NaN"),
        ([1.0, 2.5], ["a"], "holds text"),
        ([1.0, 2.5], [[1.0, 2.0]], "y has 2 columns, but 1"),
    ],
)
def test_new_responses_that_cannot_be_encoded_are_named(fitted, new, message):
    encoder = TargetEncoder().fit(fitted)
    with pytest.raises(ValueError, match=message):
        encoder.transform(new)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"target_type": "ordinal"}, "target='ordinal'"),
        ({"basis": "spline"}, "basis='spline'"),
        ({"basis": "polynomial", "degree": 0}, "degree=0"),
        ({"basis": "polynomial", "degree": 2.5}, "degree=2.5"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        TargetEncoder(**parameters).fit([1.0, 2.0, 3.0])


# The columns before whitening


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_standard_units_and_back(scale, n_outputs):
    rng = np.random.default_rng(0)
    y = scale * (rng.standard_normal((N, n_outputs)) @ rng.standard_normal((n_outputs,) * 2) + 2)
    w = rng.exponential(size=N)
    encoder = TargetEncoder("regression").fit(y, w)
    z = encoder.standardized(y)
    np.testing.assert_allclose(np.average(z, axis=0, weights=w), 0, atol=1e-12)
    np.testing.assert_allclose(np.average(z**2, axis=0, weights=w), 1)
    np.testing.assert_allclose(encoder.unstandardized(z), y, rtol=1e-9, atol=1e-12 * scale)
    new = y[:5] * 1.5
    np.testing.assert_allclose(encoder.unstandardized(encoder.standardized(new)), new, rtol=1e-9)


def test_labels_before_whitening_are_indicators():
    encoder = TargetEncoder("classification").fit(["b", "a", "c", "a"])
    np.testing.assert_array_equal(encoder.standardized(["c", "a"]), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("n_classes", [3, 5])
def test_order_of_rows_does_not_matter_for_classes_of_equal_size(n_classes):
    """Their covariance has equal eigenvalues; the basis must not be left to rounding."""
    y = np.repeat(np.arange(n_classes), 12).astype(str)
    labels = np.unique(y)
    first = TargetEncoder().fit(y).transform(labels)
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(y)
        np.testing.assert_allclose(
            TargetEncoder().fit(shuffled).transform(labels), first, atol=1e-9
        )
