import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from sobolev import sic_test
from sobolev.convex.kernel_family import kernel_family, response_bases
from sobolev.datasets import make_xor
from sobolev.exceptions import DataWarning
from sobolev.inference.independence import _permuted_sic


@pytest.fixture
def noise():
    rng = np.random.default_rng(3)
    return rng.normal(size=(80, 3)), rng.normal(size=80)


@pytest.mark.parametrize("kind", ["linear", "xor", "circle", "variance", "labels", "responses"])
def test_finds_dependence(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    if kind == "linear":
        y = X[:, 0] + 0.5 * rng.normal(size=150)
    elif kind == "xor":
        X, y = make_xor(150, 2, noise=0.3, random_state=0, return_X_y=True)
    elif kind == "circle":
        angle = rng.uniform(0, 2 * np.pi, 150)
        X, y = np.cos(angle)[:, None], np.sin(angle)
    elif kind == "variance":
        y = np.abs(X[:, 0]) * rng.normal(size=150)
    elif kind == "labels":
        y = np.where(np.abs(X[:, 1]) > 0.7, "far", "near")
    else:
        y = np.column_stack([rng.normal(size=150), X[:, 0] ** 2, rng.normal(size=150)])
    assert sic_test(X, y, n_permutations=199, random_state=0).pvalue == 1 / 200


def test_importances_name_the_feature_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    result = sic_test(X, np.sin(2 * X[:, 4]), n_permutations=99, random_state=0)
    assert result.importances.argmax() == 4
    assert result.importances.sum() == pytest.approx(1.0)
    assert result.importances[4] > 0.5


def test_repeatable_and_apart_without_a_seed(noise):
    X, y = noise
    first = sic_test(X, y, n_permutations=99, random_state=1)
    again = sic_test(X, y, n_permutations=99, random_state=1)
    generator = sic_test(X, y, n_permutations=99, random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(first.null, again.null)
    np.testing.assert_array_equal(first.null, generator.null)
    assert first.pvalue == again.pvalue == generator.pvalue
    null = sic_test(X, y, n_permutations=99).null
    assert not np.array_equal(null, sic_test(X, y, n_permutations=99).null)


def test_scale_and_shift_change_nothing(noise):
    X, y = noise
    base = sic_test(X, y, n_permutations=99, random_state=0)
    X, y = X * [1e6, 1e-6, 1] + [0, 0, 50], 1e4 * y - 3
    moved = sic_test(X, y, n_permutations=99, random_state=0)
    assert moved.pvalue == base.pvalue
    np.testing.assert_allclose(moved.null, base.null, rtol=1e-6)


def test_statistic_equals_its_definition(noise):
    """|F' psi|² / (2 n²) is half the mean difference at uniform importances."""
    X, y = noise
    X = (X - X.mean(0)) / X.std(0)
    p = np.full(80, 1 / 80)
    psi = ((y - y.mean()) / y.std())[:, None]
    critics = kernel_family(X, p, np.random.default_rng(0))
    order = np.array([np.random.default_rng(1).permutation(80)])
    values = _permuted_sic(critics, psi, order)
    for critic, (observed, permuted) in zip(critics, values, strict=True):
        columns = critic.columns
        for response, value in ((psi, observed), (psi[order[0]], permuted)):
            forms = critic.bound.forms(X[:, columns], response, p)
            U = forms.solve(np.full(columns.size, float(columns.size)), 1e-3, 1.0, 0.01)
            assert value == pytest.approx(0.5 * np.sum(U * forms.M), rel=1e-6)


def test_response_bases_are_centred_projections(noise):
    _, y = noise
    psi = ((y - y.mean()) / y.std())[:, None]
    for basis in response_bases(psi, np.full(80, 1 / 80), numeric=True).values():
        np.testing.assert_allclose(basis.mean(axis=0), 0, atol=1e-8)
        assert np.linalg.eigvalsh(basis.T @ basis / 80).max() <= 1 + 1e-8


def test_blocks_remove_dependence_between_batches():
    """A batch effect on X and y is no dependence within batches."""
    rng = np.random.default_rng(0)
    batch = np.repeat([0.0, 5.0], 60)
    X, y = rng.normal(size=(120, 2)) + batch[:, None], rng.normal(size=120) + batch
    assert sic_test(X, y, n_permutations=99, random_state=0).pvalue == 0.01
    within = sic_test(X, y, blocks=batch, n_permutations=99, random_state=0)
    assert within.pvalue > 0.05


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:3], y[:3]), "at least 4"),
        (lambda X, y: (X, y[:50]), "inconsistent numbers of samples"),
        (lambda X, y: (X, np.ones(80)), "constant"),
        (lambda X, y: (X * np.nan, y), "no number"),
        (lambda X, y: (np.ones((80, 2)), y), "constant"),
        (lambda X, y: (pd.DataFrame({"a": ["t"] * 80}), y), "no column is left"),
    ],
)
def test_bad_input_is_named(noise, change, message):
    with pytest.raises(ValueError, match=message):
        sic_test(*change(*noise), n_permutations=9)


def test_bad_arguments_are_named(noise):
    with pytest.raises(ValueError, match="n_permutations"):
        sic_test(*noise, n_permutations=0)
    with pytest.raises(ValueError, match="blocks"):
        sic_test(*noise, n_permutations=9, blocks=[1, 2])


def test_constant_column_has_no_importance(noise):
    X, y = noise
    with pytest.warns(DataWarning, match="constant"):
        result = sic_test(np.column_stack([X, np.ones(80)]), y, n_permutations=9, random_state=0)
    assert result.importances[3] == 0


def test_level_over_a_few_data_sets():
    """Rejections at 0.1 among 100 independent data sets; the band fails once in 10,000."""
    rejections = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 2)), rng.standard_t(2, size=40)
        rejections += sic_test(X, y, n_permutations=19, random_state=seed).pvalue <= 0.1
    assert rejections <= binom.ppf(1 - 1e-4, 100, 0.1)
