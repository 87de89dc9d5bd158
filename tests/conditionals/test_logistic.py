"""The logistic regressions agree with scikit-learn's, for every shape of table and fold."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sobolev.conditionals import CategoricalConditional, logistic
from sobolev.conditionals.base import fold_numbers
from sobolev.conditionals.categorical import SMOOTHING, STRENGTHS, fitted_probabilities
from sobolev.conditionals.logistic import LogisticColumns


def table(n=150, d=8, n_values=2, seed=0):
    """Columns with a common factor; the first has few values."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    cuts = np.quantile(X[:, 0], np.linspace(0, 1, n_values + 1)[1:-1])
    X[:, 0] = np.digitize(X[:, 0], cuts)
    return X


def separable():
    X = table(seed=1)
    X[:, 0] = X[:, 1] > 0
    return X


def one_hot():
    """Each column of a category is determined by the others; two columns are constant."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 4, 150)
    return np.column_stack(
        [np.eye(4)[codes], codes + rng.standard_normal(150), np.full(150, 0.1), np.zeros(150)]
    )


def rare(counts, d=6):
    """The given number of rows for each value."""
    X = table(sum(counts), d, seed=3)
    X[:, 0] = np.repeat(np.arange(len(counts)), counts)
    X[:, 1] += X[:, 0]
    return X


def heavy():
    """Other columns with few rows that are not zero, some of which are constant in a fold."""
    rng = np.random.default_rng(4)
    X = table(n_values=3, seed=4)
    X[:, 2:] = np.where(rng.random((150, 6)) < 0.02, 1000 * X[:, 2:], 0.0)
    return X


TABLES = {
    "binary": table(),
    "five values": table(n_values=5),
    "many columns": table(40, 90),
    "many columns, four values": table(60, 90, n_values=4),
    "as many columns as rows": table(40, 40),
    "separable": separable(),
    "collinear and constant": one_hot(),
    "rare value": rare([120, 20, 9, 1]),
    "two of three values in a fold": rare([70, 60, 1]),
    "one of two values in a fold": rare([99, 1]),
    "one of three values in a fold": rare([97, 1, 1]),
    "sparse columns": heavy(),
    "two columns": table(d=2),
}


def coded(X, j=0):
    return np.unique(X[:, j], return_inverse=True)[1]


def oracle(X, C, train, test):
    """Probabilities of the first column by scikit-learn, standardised by all rows of X."""
    codes, Z = coded(X), StandardScaler().fit_transform(X)[:, 1:]
    classifier = LogisticRegression(C=C, tol=1e-10, max_iter=100_000)
    return fitted_probabilities(classifier, Z[train], codes[train], Z[test], codes.max() + 1)


def oracle_path(X, folds):
    path = np.empty((len(STRENGTHS), len(X), coded(X).max() + 1))
    for s, C in enumerate(STRENGTHS):
        for k in range(folds.max() + 1):
            path[s, folds == k] = oracle(X, C, folds != k, folds == k)
    return path


@pytest.fixture(params=[(None, 1e-3), (1e-13, 3e-6)], ids=["default", "converged"])
def accuracy(request, monkeypatch):
    """Largest difference in a probability, with the default tolerance and with a small one."""
    tolerance, difference = request.param
    if tolerance is not None:
        monkeypatch.setattr(logistic, "TOLERANCE", tolerance)
    return difference


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_held_out_probabilities_are_those_of_scikit_learn(X, accuracy):
    folds = fold_numbers(len(X), 5, 0)
    found = LogisticColumns.fit(X).held_out(0, coded(X), folds, STRENGTHS)
    np.testing.assert_allclose(found.sum(axis=2), 1)
    np.testing.assert_allclose(found, oracle_path(X, folds), atol=accuracy)


@pytest.mark.parametrize("X", TABLES.values(), ids=TABLES)
def test_new_rows_are_predicted_by_the_fit_to_all_rows_without_the_column(X, accuracy):
    everything = np.ones(len(X), dtype=bool)
    rows = X.copy()
    rows[:, 0] = 1e6  # not used
    found = LogisticColumns.fit(X).predict(0, coded(X), 0.3, rows)
    np.testing.assert_allclose(found, oracle(X, 0.3, everything, everything), atol=accuracy)


def test_every_column_has_the_same_fit_wherever_it_stands():
    X = table(n_values=3)
    folds, order = fold_numbers(len(X), 5, 0), [3, 1, 0, 2, 7, 6, 5, 4]
    first = LogisticColumns.fit(X).held_out(0, coded(X), folds, STRENGTHS)
    moved = LogisticColumns.fit(X[:, order]).held_out(2, coded(X), folds, STRENGTHS)
    np.testing.assert_allclose(moved, first, atol=1e-8)


def test_folds_may_be_fitted_in_parts(monkeypatch):
    X = table(n_values=3)
    folds, columns = fold_numbers(len(X), 5, 0), LogisticColumns.fit(X)
    whole = columns.held_out(0, coded(X), folds, STRENGTHS)
    monkeypatch.setattr(logistic, "MAX_LOGITS", 2 * 3 * len(X))
    parts = columns.held_out(0, coded(X), folds, STRENGTHS)
    np.testing.assert_allclose(parts, whole, atol=1e-3)


@pytest.mark.parametrize("name", ["binary", "five values", "many columns", "rare value"])
def test_the_penalty_has_the_largest_out_of_fold_likelihood(name):
    X = TABLES[name]
    codes = coded(X)
    model = CategoricalConditional().fit(X)
    frequencies = np.bincount(codes) / len(X)
    path = (1 - SMOOTHING) * oracle_path(X, model.folds_) + SMOOTHING * frequencies
    best = np.argmax(np.log(path[:, np.arange(len(X)), codes]).sum(axis=1))
    nodes, weights = model.grid(X, 0, np.arange(len(X)))
    np.testing.assert_array_equal(nodes[0], np.unique(X[:, 0]))
    np.testing.assert_allclose(weights, path[best], atol=1e-3)
    everything = np.ones(len(X), dtype=bool)
    expected = oracle(X, STRENGTHS[best], everything, everything)
    expected = (1 - SMOOTHING) * expected + SMOOTHING * frequencies
    np.testing.assert_allclose(model.grid(X, 0)[1], expected, atol=1e-3)


def test_strong_and_weak_dependence_choose_different_penalties():
    """The comparison above would not notice a rule that always takes the same penalty."""
    rng = np.random.default_rng(0)
    chosen = []
    for noise in (0.1, 10.0):
        X = table(300, 10)
        X[:, 0] = X[:, 1] - X[:, 2] + noise * rng.standard_normal(300) > 0
        model = CategoricalConditional().fit(X)
        path = LogisticColumns.fit(X).held_out(0, coded(X), model.folds_, STRENGTHS)
        weights = model.grid(X, 0, np.arange(300))[1]
        path = (1 - SMOOTHING) * path + SMOOTHING * np.bincount(coded(X)) / 300
        chosen.append(int(np.argmin(np.abs(path - weights).max(axis=(1, 2)))))
    assert chosen == [2, 0]


def test_without_other_columns_the_frequencies_remain():
    X = table()[:, :1]
    model = CategoricalConditional().fit(X)
    for rows in (None, np.arange(len(X))):
        weights = model.grid(X, 0, rows)[1]
        np.testing.assert_allclose(weights, np.tile(np.bincount(coded(X)) / len(X), (len(X), 1)))


def test_a_constant_column_has_one_value():
    X = table()
    X[:, 0] = 3.0
    model = CategoricalConditional().fit(X)
    for rows in (None, np.arange(len(X))):
        nodes, weights = model.grid(X, 0, rows)
        assert (nodes == 3).all()
        assert (weights == 1).all()
        assert nodes.shape == (len(X), 1)


def test_a_single_fold_is_refused():
    X = table()
    with pytest.raises(ValueError, match="n_folds=2"):
        CategoricalConditional(n_folds=1).fit(X).grid(X, 0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(20))
def test_small_tables_give_distributions(seed):
    """Few rows, scales far apart, copies of columns, and values that most folds lack."""
    rng = np.random.default_rng(seed)
    n, d, n_values = rng.choice([2, 3, 5, 12]), rng.choice([2, 4, 15]), rng.choice([2, 3, 6])
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-6, 6, d)
    X[:, 0] = rng.integers(0, n_values, n)
    X[:, -1] = X[:, 0] if seed % 2 else X[:, 1]
    model = CategoricalConditional(n_folds=int(rng.choice([2, 5, n]))).fit(X)
    for rows in (None, np.arange(n)):
        weights = model.grid(X, 0, rows)[1]
        assert (weights > 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1)
