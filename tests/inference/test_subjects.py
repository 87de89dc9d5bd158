"""Rows that belong together: subjects are not divided, and p-values come from their spread."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, audit, hrt_test, sic_test
from sobolev.conditionals import (
    AutoConditional,
    CategoricalConditional,
    ForestConditional,
    GaussianConditional,
    MixedConditional,
    ResidualConditional,
)
from sobolev.conditionals.base import fold_numbers, one_of_each
from sobolev.conditionals.forest import Leaves
from sobolev.inference import Forward, Split
from sobolev.inference.permutation import permutations
from sobolev.inference.planting import plant
from sobolev.inference.schemes import Forward as Scheme
from sobolev.inference.schemes import Robust, block_edges
from sobolev.inference.trial import Trial, WholeGroups, with_whole_groups

FAST = ConvexSIC(feature_map="landmark", lam=0.01)


def draw(n_subjects=40, size=5, d=6, seed=0):
    """Half the variance of all columns and of the noise is between subjects."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_subjects), size)

    def mixed(k):
        between, within = (
            rng.standard_normal((n_subjects, k)),
            rng.standard_normal((groups.size, k)),
        )
        return np.sqrt(0.5) * (between[groups] + within)

    X = mixed(d)
    return X, 1.5 * X[:, 0] + mixed(1)[:, 0], groups


def trial(X, y, groups, scheme):
    return Trial(X, y, [], FAST, None, scheme, Robust(), "risk", groups=groups)


# -- division of the rows --------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [Forward(), Split(), Forward(shuffle=False)])
def test_no_subject_is_divided(scheme):
    X, y, groups = draw()
    groups = np.random.default_rng(1).permutation(groups)
    order, edges = trial(X, y, groups, scheme).division(None, np.random.default_rng(0))
    assert sorted(order) == list(range(len(X)))
    parts = np.split(order, edges[:-1])
    seen = [set(groups[part]) for part in parts]
    assert sum(map(len, seen)) == len(set(groups))
    assert len(parts) == scheme.n_blocks + 1


def test_the_order_is_random_or_kept():
    X, y, groups = draw()
    kept, _ = trial(X, y, groups, Forward(shuffle=False)).division(None, np.random.default_rng(0))
    assert kept.tolist() == list(range(len(X)))
    shuffled, _ = trial(X, y, groups, Forward()).division(None, np.random.default_rng(0))
    assert shuffled.tolist() != kept.tolist()
    assert (np.diff(shuffled.reshape(-1, 5), axis=1) == 1).all()  # rows of a subject keep theirs
    alone, _ = trial(X, y, None, Split(shuffle=False)).division(None, np.random.default_rng(0))
    assert alone.tolist() == list(range(len(X)))


def test_subjects_of_many_rows_need_few_for_the_first_fit():
    assert block_edges(Scheme(), 20, None)[0] == 10
    assert block_edges(Scheme(), 20, None, rows_each=10.0)[0] == 6


def test_folds_divide_no_group():
    groups = np.repeat(np.arange(11), 3)
    folds = fold_numbers(33, 5, 0, groups)
    assert all(np.unique(folds[groups == g]).size == 1 for g in range(11))
    assert np.unique(folds).tolist() == [0, 1, 2, 3, 4]
    assert fold_numbers(33, 50, 0, groups).max() == 10
    rows = one_of_each(groups)
    assert groups[rows].tolist() == list(range(11))


@pytest.mark.parametrize("estimator", [LassoCV(), LassoCV(cv=3), ConvexSIC()])
def test_critics_choose_their_penalty_with_whole_groups(estimator):
    X, y, groups = draw()
    with_whole_groups(estimator, groups)
    assert isinstance(estimator.cv, WholeGroups)
    for train, test in estimator.cv.split():
        assert not set(groups[train]) & set(groups[test])
    estimator.fit(X, y)
    before = estimator.cv
    with_whole_groups(estimator, groups[:100])  # a later fit has other rows
    assert estimator.cv is not before
    assert estimator.cv.k == before.k
    own = LassoCV(cv=KFold(4))
    assert isinstance(with_whole_groups(own, groups).cv, KFold)


# -- conditional models ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        AutoConditional(),
        ForestConditional(),
        GaussianConditional(),
        MixedConditional(),
        ResidualConditional(),
        ResidualConditional(RandomForestRegressor(20, random_state=0)),
        CategoricalConditional(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_column_that_is_constant_within_subjects_is_not_read_off_its_other_rows(model):
    """The other columns give the subject away, but not what an unseen subject has."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    subject = rng.standard_normal((40, 2))
    binary = (subject[:, 0] > 0).astype(float)
    X = np.column_stack([binary[groups], subject[groups, 1], rng.standard_normal(400)])
    rows = np.arange(400)

    def spread(groups):
        nodes, weights = model.fit_validated(X, groups).distribution(X, 0, rows)
        mean = np.sum(weights * nodes, axis=1)
        return np.corrcoef(mean, X[:, 0])[0, 1] if np.ptp(mean) > 0 else 0.0

    assert spread(groups) < 0.35
    if isinstance(model, ForestConditional):
        assert spread(None) > 0.5


def test_trees_have_seen_whole_groups():
    X, _, groups = draw(20, 4)
    leaves = Leaves.grow(RandomForestRegressor(10, random_state=0), X[:, 1:], X[:, 0], groups)
    by_group = leaves.seen.reshape(20, 4, 10)
    assert (by_group == by_group[:, :1]).all()
    assert leaves.seen.any(axis=0).all()
    assert not leaves.seen.all(axis=0).any()
    assert len(leaves.forest.estimators_) == 10


def test_joint_distributions_leave_out_the_subject():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 10)
    subject = rng.standard_normal((40, 3))
    X = np.column_stack([subject[groups], rng.standard_normal(400)])
    model = ForestConditional().fit_validated(X, groups)
    nodes, weights = model.joint_distribution(X, np.array([0, 1]), np.arange(400))
    mean = np.einsum("nb,nbc->nc", weights, nodes)
    assert np.corrcoef(mean[:, 0], X[:, 0])[0, 1] < 0.35


# -- p-values --------------------------------------------------------------------------------------


def test_repeated_rows_count_once():
    X, y, _ = draw(80, 1)
    once = HRTSelector(FAST, pvalue="studentised", scheme=Split(shuffle=False)).fit(X, y)
    rows = np.repeat(np.arange(80), 6)
    again = HRTSelector(FAST, pvalue="studentised", scheme=Split(shuffle=False))
    again.fit(X[rows], y[rows], groups=rows)
    naive = HRTSelector(FAST, pvalue="studentised", scheme=Split(shuffle=False))
    naive.fit(X[rows], y[rows])
    found, expected, wrong = (np.log10(selector.pvalues_[0]) for selector in (again, once, naive))
    assert found == pytest.approx(expected, rel=0.2)
    assert wrong < 2 * expected


def test_a_response_of_subjects_is_not_found_in_columns_of_subjects():
    rng, groups = np.random.default_rng(3), np.repeat(np.arange(40), 10)
    finds = {"groups": 0, "rows": 0}
    for seed in range(6):
        X = rng.standard_normal((40, 6))[groups]
        y = rng.standard_normal(40)[groups] + 0.1 * rng.standard_normal(groups.size)
        for name, given in (("groups", groups), ("rows", None)):
            hrt = HRTSelector(FAST, diagnose=False, random_state=seed).fit(X, y, groups=given)
            finds[name] += int(np.nanmin(hrt.pvalues_) < 0.005)
    assert finds["groups"] <= 1
    assert finds["rows"] >= 4


def test_subjects_are_labels_of_any_kind():
    X, y, groups = draw()
    names = np.array([f"patient {g}" for g in groups], dtype=object)
    by_number = HRTSelector(FAST, random_state=0).fit(X, y, groups=groups)
    by_name = HRTSelector(FAST, random_state=0).fit(X, y, groups=pd.Series(names))
    np.testing.assert_array_equal(by_number.pvalues_, by_name.pvalues_)
    assert by_number.support_[0]


def test_units_are_found_among_subjects():
    """Two measures of a subject are functions of each other in repeated rows, not in subjects."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 20)
    X = np.column_stack([rng.standard_normal((40, 2))[groups], rng.standard_normal(800)])
    y = X[:, 0] + rng.standard_normal(800)
    assert len(HRTSelector(FAST, random_state=0).fit(X, y).units_) == 2
    assert len(HRTSelector(FAST, random_state=0).fit(X, y, groups=groups).units_) == 3


def test_what_groups_do_not_go_with():
    X, y, groups = draw()
    for pvalue in ("saddlepoint", "montecarlo"):
        with pytest.raises(ValueError, match="independent"):
            HRTSelector(FAST, pvalue=pvalue).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="holdout"):
        HRTSelector(FAST).fit(X, y, groups=groups, holdout=(X, y))
    with pytest.raises(ValueError, match="shape"):
        HRTSelector(FAST).fit(X, y, groups=groups[:-1])
    with pytest.raises(ValueError, match="at least 4 subjects"):
        HRTSelector(FAST).fit(X, y, groups=groups % 3)
    with pytest.raises(ValueError, match="no label in 1 of 200"):
        HRTSelector(FAST).fit(X, y, groups=np.where(np.arange(200) == 7, np.nan, groups))
    with pytest.raises(ValueError, match="independent rows"):
        KnockoffSelector().fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="independent rows"):
        KnockoffSelector().for_table(X, groups=groups)


def test_one_column_is_tested_over_subjects():
    X, y, groups = draw()
    assert hrt_test(X, y, 0, estimator=FAST, groups=groups, random_state=0).pvalue < 0.01
    shared = np.random.default_rng(0).standard_normal(40)[groups]
    X = np.column_stack([X, shared])
    naive = hrt_test(X, shared + X[:, 1], 6, estimator=FAST, random_state=0).pvalue
    found = hrt_test(X, shared + X[:, 1], 6, estimator=FAST, groups=groups, random_state=0).pvalue
    assert naive < found < 0.05


# -- audit -----------------------------------------------------------------------------------------


def test_planted_noise_has_subjects():
    groups = np.repeat(np.arange(200), 5)
    X = np.random.default_rng(0).standard_normal((1000, 4))
    y = plant(X, "noise", np.random.default_rng(1), groups=groups).y.reshape(200, 5)
    assert y.var() == pytest.approx(1, abs=0.15)
    assert y.mean(axis=1).var() == pytest.approx(0.6, abs=0.12)


def test_the_audit_passes_subjects_on(tmp_path):
    X, _, groups = draw(24, 5)
    log = tmp_path / "audit.jsonl"
    selector = HRTSelector(FAST, scheme="split")
    with_groups = audit(selector, X, groups=groups, n_repeats=3, random_state=0, resume=log)
    assert len(with_groups.runs) == 3
    with pytest.raises(ValueError, match="another"):
        audit(selector, X, n_repeats=3, random_state=0, resume=log)
    with pytest.raises(ValueError, match="independent rows"):
        audit(KnockoffSelector(), X, groups=groups, n_repeats=1)


# -- independence ----------------------------------------------------------------------------------


def test_groups_of_one_size_are_permuted_as_a_whole():
    groups = np.array([0, 1, 0, 2, 1, 2, 3])
    found = permutations(7, 50, np.random.default_rng(0), groups=groups)
    assert (np.sort(found, axis=1) == np.arange(7)).all()
    assert (found[:, 6] == 6).all()  # alone with its size
    source = groups[found]
    assert (source[:, [0, 1, 3]] == source[:, [2, 4, 5]]).all()
    assert (np.diff(found[:, [0, 2]]) > 0).all()
    assert len({tuple(row) for row in source[:, [0, 1, 3]]}) == 6


def test_independence_of_subjects():
    _, _, groups = draw()
    rng = np.random.default_rng(5)
    pvalues = {"groups": [], "rows": []}
    for _ in range(6):
        x, y = rng.standard_normal((2, 40))[:, groups]
        X = (x + 0.1 * rng.standard_normal(200))[:, None]
        options = {"n_permutations": 99, "random_state": 0}
        pvalues["rows"].append(sic_test(X, y, **options).pvalue)
        pvalues["groups"].append(sic_test(X, y, groups=groups, **options).pvalue)
    assert np.median(pvalues["rows"]) <= 0.02
    assert np.median(pvalues["groups"]) > 0.1
    assert sic_test(X, x, groups=groups, **options).pvalue == 0.01


def test_exchanges_that_change_nothing_are_refused():
    X, y, groups = draw()
    labels = np.array(["a", "b"])[groups % 2]
    with pytest.raises(ValueError, match="does not vary within any block"):
        sic_test(X, labels, blocks=groups, n_permutations=9)
    with pytest.raises(ValueError, match="not both"):
        sic_test(X, y, blocks=groups, groups=groups, n_permutations=9)
    uneven = np.repeat(np.arange(5), [2, 3, 4, 5, 186])
    with pytest.raises(ValueError, match="different numbers of rows"):
        sic_test(X, y, groups=uneven, n_permutations=9)
