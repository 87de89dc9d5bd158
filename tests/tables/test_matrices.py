"""Sparse matrices: the same answers as from dense tables, and a valid choice of columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, audit, hrt_test
from sobolev.exceptions import DataWarning
from sobolev.inference.trial import Trial
from sobolev.tables import matrices
from sobolev.tables.matrices import dense, most_columns, strengths

FAST = ConvexSIC(feature_map="landmark", lam=0.03)


def counts(rng, n, d):
    """Zero-inflated negative binomial counts, of which about a quarter is not zero."""
    return (rng.negative_binomial(2, 0.4, (n, d)) * (rng.random((n, d)) < 0.3)).astype(float)


@pytest.fixture(scope="module")
def data():
    """200 rows of 20 counts; the first two columns matter."""
    rng = np.random.default_rng(0)
    X = counts(rng, 200, 20)
    return X, np.log1p(X[:, 0]) + (X[:, 1] > 0) + 0.3 * rng.standard_normal(200)


@pytest.fixture(scope="module")
def plain(data):
    return HRTSelector(FAST, random_state=0).fit(*data)


@pytest.fixture
def budget(monkeypatch):
    """Room for so many columns of 200 rows."""
    return lambda n_columns: monkeypatch.setattr(matrices, "MAX_BYTES", 8 * 200 * n_columns)


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_and_dense_give_the_same(form, data, plain):
    X, y = data
    found = HRTSelector(FAST, random_state=0).fit(form(X), y)
    np.testing.assert_array_equal(found.pvalues_, plain.pvalues_)
    assert found.support_[:2].all()
    np.testing.assert_array_equal(found.support_, plain.support_)
    assert list(found.units_) == list(plain.units_)
    assert not hasattr(found, "feature_names_in_")
    assert found.transform(form(X).tocsr()).shape == (200, plain.support_.sum())


def test_knockoffs_take_sparse_matrices(data):
    X, y = data
    first = KnockoffSelector(FAST, fdr=0.3, random_state=0).fit(X, y)
    second = KnockoffSelector(FAST, fdr=0.3, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(first.statistics_, second.statistics_)


def test_columns_with_few_nonzero_rows_are_set_aside(data, plain):
    X, y = data
    rare, same = np.zeros(200), np.full(200, 2.0)
    rare[:9] = 1.0
    wide = sp.csc_array(np.column_stack([rare, X, same]))
    wide.data[:3] = 0.0  # cells that are stored but zero
    with pytest.warns(DataWarning, match=r"'x0' \(nonzero in 6 rows, fewer than 10\)"):
        found = HRTSelector(FAST, random_state=0).fit(wide, y)
    np.testing.assert_array_equal(found.pvalues_[1:-1], plain.pvalues_)
    assert np.isnan(found.pvalues_[[0, -1]]).all()
    notes = found.summary().set_index("feature")["note"]
    assert notes["x21"] == "set aside: constant"
    assert wide.nnz == 9 + np.count_nonzero(X) + 200  # the matrix of the user is not changed


def test_missing_cells(data):
    X, y = data
    wide = sp.csc_array(X)
    wide.data[:7] = np.nan
    found = HRTSelector(FAST, random_state=0).fit(wide, y)
    assert found.missing_[0] == 7 / 200
    assert np.isfinite(found.pvalues_[0])


def test_bad_matrices(data):
    X, y = data
    broken = sp.csr_array(X)
    broken.data[-1] = np.inf
    with pytest.raises(ValueError, match="infinity in column 'x1"):
        HRTSelector(FAST).fit(broken, y)
    with pytest.raises(ValueError, match="y='grown' names a column, but X is a sparse matrix"):
        HRTSelector(FAST).fit(sp.csr_array(X), "grown")
    with pytest.raises(TypeError, match="complex"):
        HRTSelector(FAST).fit(sp.csr_array(X).astype(complex), y)
    with pytest.raises(ValueError, match="none of 20 columns can be used"):
        HRTSelector(FAST).fit(sp.csr_array((200, 20)), y)
    with pytest.raises(ValueError, match="200 rows but y has 199"):
        HRTSelector(FAST).fit(sp.csr_array(X), y[1:])
    with pytest.raises(TypeError, match=r"Sparse X .*toarray"):
        ConvexSIC().fit(sp.csr_array(X), y)


def test_other_doors(data):
    X, y = data
    found = hrt_test(sp.csr_array(X), y, 1, estimator=FAST, random_state=0)
    assert found == hrt_test(X, y, 1, estimator=FAST, random_state=0)
    assert len(audit(HRTSelector(FAST, scheme="split"), sp.csr_array(X), n_repeats=2).runs) == 2


def test_columns_are_densified_block_by_block(data, monkeypatch):
    X, _ = data
    monkeypatch.setattr(matrices, "_BLOCK", 700)
    columns = np.array([5, 1, 19, 7])
    np.testing.assert_array_equal(dense(sp.csc_array(X), columns), X[:, columns])


def test_most_columns_bounds_table_and_correlations():
    for n in (1, 1000, 100_000):
        d = most_columns(n)
        assert 8 * d * max(n, d) <= matrices.MAX_BYTES < 8 * (d + 1) * max(n, d + 1)


@pytest.mark.parametrize("classes", [False, True])
def test_strengths_are_correlations(data, classes):
    X, y = data
    y = np.where(y > 1, "high", "low") if classes else y
    numbers = (y == "high").astype(float) if classes else y
    oracle = [max(abs(np.corrcoef(z, numbers)[0, 1]) for z in (np.log1p(x), x > 0)) for x in X.T]
    np.testing.assert_allclose(strengths(sp.csc_array(X), y), oracle, rtol=1e-10)


# -- more columns than fit in memory --------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_only_kept_columns_are_densified(data, budget, monkeypatch):
    X, y = data
    budget(6)
    seen, plain_form = [], sp.csc_array.toarray
    monkeypatch.setattr(
        sp.csc_array, "toarray", lambda self: seen.append(self.shape) or plain_form(self)
    )
    found = HRTSelector(FAST, random_state=0).fit(sp.csr_array(X), y)
    assert seen == [(200, 6)]
    assert found.table_.X.shape == (200, 6)
    assert found.support_[:2].all()
    assert (
        found.summary()
        .set_index("feature")["note"]
        .eq("set aside: weak in the training rows")
        .sum()
        == 14
    )


def test_the_null_hypothesis_is_said(data, budget):
    budget(6)
    with pytest.warns(DataWarning, match="given these columns, not given all of them"):
        HRTSelector(FAST, scheme="split", random_state=0).fit(sp.csr_array(data[0]), data[1])


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
@pytest.mark.parametrize("scheme", ["forward", "split"])
def test_columns_are_chosen_in_the_training_rows(data, budget, scheme, monkeypatch):
    """Responses of later rows do not take part, and the first critic is fitted to these rows."""
    X, y = data
    budget(6)
    trained, first_fit = [], Trial.first_fit

    def recorded(self, rows, rng):
        trained.append(rows)
        return first_fit(self, rows, rng)

    monkeypatch.setattr(Trial, "first_fit", recorded)
    selector = HRTSelector(FAST, scheme=scheme, random_state=0)
    table = selector.fit(sp.csr_array(X), y).table_
    later = table.rows[table.n_train :]
    other = y.copy()
    other[later] = np.random.default_rng(1).standard_normal(later.size)
    again = selector.fit(sp.csr_array(X), other).table_
    assert list(again.X) == list(table.X)
    np.testing.assert_array_equal(again.rows, table.rows)
    for rows in trained:
        np.testing.assert_array_equal(rows, np.arange(table.n_train))
    np.testing.assert_array_equal(table.y, y[table.rows])
    np.testing.assert_array_equal(table.X["x0"], X[table.rows, 0])


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_subjects_are_not_divided(data, budget):
    X, y = data
    budget(6)
    patient = np.random.default_rng(0).permutation(np.repeat(np.arange(50), 4))
    selector = HRTSelector(FAST, random_state=0)
    table = selector.fit(sp.csr_array(X), y, groups=patient, sample_weight=1.0 + patient).table_
    assert not {*table.groups[: table.n_train]} & {*table.groups[table.n_train :]}
    np.testing.assert_array_equal(table.groups.astype(int), patient[table.rows])
    np.testing.assert_array_equal(table.weights, 1.0 + patient[table.rows])
    assert {0, 1} <= {*selector.get_support(indices=True)}


def test_what_needs_the_whole_table_is_refused(data, budget):
    X, y = sp.csr_array(data[0]), data[1]
    budget(6)
    figures = r"200 rows and 20 columns .* GiB; the limit is .* or 6 columns"
    with pytest.raises(ValueError, match=figures):
        KnockoffSelector(FAST).fit(X, y)
    with pytest.raises(ValueError, match=figures):
        audit(HRTSelector(FAST), X, n_repeats=2)
    with pytest.raises(ValueError, match="n_repeats=3 takes other training rows"):
        HRTSelector(FAST, n_repeats=3).fit(X, y)


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_null_pvalues_of_chosen_columns(monkeypatch):
    """300 rows, 3000 columns, 30 of which are kept; a correct program fails once in 10,000 runs.

    The kept columns correlate most with the response in the training rows. If they were chosen in
    all rows, a quarter of the p-values would be below 0.1 and three quarters below 0.5.
    """
    monkeypatch.setattr(matrices, "MAX_BYTES", 8 * 300 * 30)
    null = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = sp.csr_array(counts(rng, 300, 3000))
        selector = HRTSelector(
            FAST, conditional="mixed", shortlist=30, scheme="split", random_state=seed
        )
        null.append(selector.fit(X, rng.standard_normal(300)).pvalues_)
    null = np.concatenate(null)
    null = null[np.isfinite(null)]
    assert null.size > 200
    for level in (0.01, 0.1, 0.5):
        assert (null < level).sum() <= binom.ppf(1 - 3e-5, null.size, level)
