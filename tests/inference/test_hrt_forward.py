"""The forward scheme of the holdout randomization test, repetitions, and what users pass in."""

import random
import threading
import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest, norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sobolev import ConvexSIC
from sobolev.convex import Alternating
from sobolev.exceptions import ConditionalModelWarning, SobolevWarning
from sobolev.inference import Forward, HRTSelector, MonteCarlo, hrt_test
from sobolev.inference.multiple_testing import qvalues, smallest_qvalue
from sobolev.inference.orders import EXCESS, merged_pvalues
from sobolev.inference.saddlepoint import saddlepoint_pvalue
from sobolev.inference.studentised import studentised_pvalue

FAST = ConvexSIC(feature_map="landmark", lam=0.01)
LEVELS = np.array([-1.0, 0.0, 1.0])


def draw(n=160, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


class Scripted(RegressorMixin, BaseEstimator):
    """Predicts with fixed coefficients; its importances at each fit are given in advance."""

    seen: list = []  # noqa: RUF012 - shared by the clones; row numbers of each fit

    def __init__(self, coefficients, script):
        self.coefficients = coefficients
        self.script = script

    def fit(self, X, y):
        self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        self.seen.append(X[:, -1].astype(int))
        self.feature_importances_ = np.array(self.script[self.n_fits_ - 1], dtype=float)
        return self

    def predict(self, X):
        return X @ np.array(self.coefficients)


class Recording:
    """Columns are uniform on three values; remembers who was asked about which rows."""

    def __init__(self):
        self.asked = {}

    def fit(self, X):
        return self

    def grid(self, X, j):
        if len(X) < 100:  # the second look asks about all rows
            self.asked.setdefault(j, []).append(X[:, -1].astype(int))
        return np.tile(LEVELS, (X.shape[0], 1)), np.full((X.shape[0], 3), 1 / 3)


COEFFICIENTS = [1.0, 0.5, 0.0, 0.2, 0.7, 0.1, 0.4, 0.3, 0.0]
#: Eight columns and the row number; which of them each fit names, with a list of four (then two).
#: At most five are tested.
SCRIPT = [
    [0, 3, 2, 0, 0, 0, 0, 0, 0],  # 1, 2; two places stay empty
    [0, 0, 0, 1, 5, 4, 3, 0, 0],  # 4, 5
    [0, 9, 0, 0, 8, 0, 7, 0, 0],  # nobody new: column 6 is third
    [9, 0, 0, 0, 0, 0, 0, 8, 0],  # 0, and the list is full: not 7
    [0, 0, 0, 9, 0, 0, 0, 8, 0],  # nobody
]
JOINED = {0: 3, 1: 0, 2: 0, 4: 1, 5: 1}
EDGES = [30, 44, 58, 72, 86, 100]


@pytest.fixture
def scripted(request):
    """A forward run on scripted fits, the conditional that watched it, and the data."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(LEVELS, (100, 8)), np.arange(100)])
    y = X @ np.array(COEFFICIENTS) + rng.standard_normal(100)
    Scripted.seen.clear()
    watch = Recording()
    hrt = HRTSelector(
        Scripted(COEFFICIENTS, SCRIPT),
        conditional=watch,
        shortlist=4,
        pvalue=getattr(request, "param", "robust"),
        n_repeats=1,
        diagnose=False,
        random_state=0,
    ).fit(X, y)
    return hrt, watch, X, y


def test_each_fit_has_all_rows_before_its_block(scripted):
    fits = Scripted.seen
    assert [rows.size for rows in fits] == EDGES[:-1]
    for shorter, longer in pairwise(fits):
        np.testing.assert_array_equal(longer[: shorter.size], shorter)
    assert np.unique(fits[-1]).size == 86


def test_columns_are_tested_on_rows_after_they_joined_only(scripted):
    hrt, watch, _, _ = scripted
    np.testing.assert_array_equal(hrt.shortlist_, sorted(JOINED))
    assert sorted(watch.asked) == sorted(JOINED)
    for j, first in JOINED.items():
        assert len(watch.asked[j]) == 5 - first
        for b, rows in enumerate(watch.asked[j], start=first):
            assert rows.size == EDGES[b + 1] - EDGES[b]
            assert not set(rows) & set(Scripted.seen[b])  # unseen by the fit that tests them
            if b < 4:
                assert set(rows) <= set(Scripted.seen[b + 1])
        tested = np.concatenate(watch.asked[j])
        assert np.unique(tested).size == tested.size == 100 - EDGES[first]
    assert hrt.feature_importances_.tolist() == SCRIPT[0]
    assert hrt.estimator_.n_fits_ == 5


@pytest.mark.parametrize("scripted", ["saddlepoint", "studentised", "robust"], indirect=True)
def test_pvalues_combine_the_blocks(scripted):
    """Recomputed from the rows of each block with full predictions."""
    hrt, watch, X, y = scripted
    model = Scripted(COEFFICIENTS, SCRIPT)
    for j in JOINED:
        scores, statistics, sizes, null_sums, null_variances = [], [], [], [], []
        scaled = []
        for rows in watch.asked[j]:
            values = np.empty((rows.size, 3))
            for b, level in enumerate(LEVELS):
                moved = X[rows].copy()
                moved[:, j] = level
                values[:, b] = -((model.predict(moved) - y[rows]) ** 2)
            observed = -((model.predict(X[rows]) - y[rows]) ** 2)
            p = saddlepoint_pvalue(values, np.full(values.shape, 1 / 3), observed.sum())
            scores.append(norm.isf(min(p, 1 - 1e-15)))
            statistics.append(observed.sum())
            null_sums.append(values.mean(axis=1).sum())
            null_variances.append(values.var(axis=1).sum())
            sizes.append(rows.size)
            scaled.append((observed - values.mean(axis=1)) / np.sqrt(values.var(axis=1).mean()))
        if j == 2:  # the coefficient is zero: every table is flat
            assert hrt.pvalues_[j] == 1.0
            continue
        weights = np.sqrt(sizes)
        expected = {
            "saddlepoint": norm.sf(weights @ scores / np.sqrt(np.sum(sizes))),  # Stouffer
            "studentised": studentised_pvalue(np.concatenate(scaled)),
        }
        expected["robust"] = max(expected.values())
        assert hrt.pvalues_[j] == pytest.approx(expected[hrt.pvalue], rel=1e-6, abs=1e-14)
        n = np.sum(sizes)
        assert hrt.statistics_[j] == pytest.approx(np.sum(statistics) / n)
        assert hrt.null_means_[j] == pytest.approx(np.sum(null_sums) / n)
        assert hrt.null_deviations_[j] == pytest.approx(np.sqrt(np.sum(null_variances)) / n)
    assert np.isnan(hrt.pvalues_[[3, 6, 7, 8]]).all()
    assert hrt.pvalues_[4] < 1e-3  # something is there to be found


def test_scripted_blocks_of_unequal_size(monkeypatch):
    """Rows given as holdout: blocks of 10, 11, 11, 10, 11; scripted p-values for each block."""
    from sobolev.inference import trial as module

    X, y = draw(83, 3)
    blocks = []

    def fixed(self, evaluator, block, k, seed):
        rows = block.rows
        if k == 0:
            blocks.append(rows)
        p = [0.5, 0.02, 0.3, 1e-5, 0.9] if k else [1e-200] * 5
        log_pvalue = float(np.log(p[len(blocks) - 1]))
        block = module.BlockTest(log_pvalue, np.ones(rows.size), 1.0)
        return block, float(len(blocks)), 0.0, 1.0

    monkeypatch.setattr(module.Trial, "test_one", fixed)
    hrt = HRTSelector(LinearRegression(), pvalue="saddlepoint", random_state=0, n_jobs=1)
    hrt.fit(X[:30], y[:30], holdout=(X[30:], y[30:]))
    sizes = np.array([rows.size for rows in blocks])
    np.testing.assert_array_equal(np.concatenate(blocks), np.arange(30, 83))
    assert sizes.size == 5
    assert np.unique(sizes).size == 2
    scores = norm.isf([0.5, 0.02, 0.3, 1e-5, 0.9])
    expected = norm.sf(np.sqrt(sizes) @ scores / np.sqrt(53))
    np.testing.assert_allclose(hrt.pvalues_[1:], expected, rtol=1e-9)
    assert hrt.pvalues_[0] == 0.0 or hrt.pvalues_[0] < 1e-300
    np.testing.assert_allclose(hrt.statistics_, sizes @ np.arange(1, 6) / 53)
    np.testing.assert_allclose(hrt.null_deviations_, np.sqrt(np.sum(sizes**2)) / 53)


def test_null_pvalues_of_the_forward_scheme_are_uniform():
    """One null column in each of 40 independent data sets, by a Kolmogorov bound.

    A correct program breaks 2.23/sqrt(40) once in 10,000; 0.03 is for the learnt distribution.
    """
    p = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 2)) + rng.standard_normal((80, 1))
        y = X[:, 0] + rng.standard_normal(80)
        hrt = HRTSelector(LinearRegression(), diagnose=False, random_state=seed).fit(X, y)
        p.append(hrt.pvalues_[1])
    assert np.isfinite(p).all()
    assert kstest(p, "uniform").statistic < 2.23 / np.sqrt(40) + 0.03


class LamRecorder(ConvexSIC):
    """ConvexSIC that remembers what it was fitted with."""

    seen: list = []  # noqa: RUF012 - shared by the clones

    def fit_validated(self, X, y, weights=None):
        given = self.lam
        super().fit_validated(X, y, weights)
        self.seen.append((X.shape[0], given, self.lam_))
        return self


@pytest.mark.parametrize("lam", [0.02, None])
def test_refits_scale_lam_with_the_rows(lam):
    X, y = draw(100, 4)
    LamRecorder.seen.clear()
    asked_for = {} if lam is None else {"lam": lam}
    given = LamRecorder(feature_map="landmark", **asked_for)
    HRTSelector(given, n_repeats=1, random_state=0).fit(X, y)
    rows, asked, used = zip(*LamRecorder.seen, strict=True)
    assert list(rows) == EDGES[:-1]
    assert asked[0] == given.lam
    if lam is not None:
        assert used[0] == lam
    np.testing.assert_allclose(np.multiply(rows, used), rows[0] * used[0])
    np.testing.assert_allclose(asked[1:], used[1:])
    assert given.lam == LamRecorder().lam if lam is None else given.lam == lam  # not changed


class WhoFits(ConvexSIC):
    """Notes the thread of each fit."""

    threads: list = []  # noqa: RUF012 - shared by the clones

    def fit_validated(self, X, y, weights=None):
        self.threads.append(threading.current_thread() is threading.main_thread())
        return super().fit_validated(X, y, weights)


@pytest.mark.parametrize(
    ("settings", "n_jobs", "aside"),
    [
        ({"feature_map": "landmark"}, 2, True),
        ({"feature_map": "landmark"}, 1, False),
        ({}, 2, False),  # the maps are compared again before each refit
        # a stream goes from fit to fit
        ({"feature_map": "landmark", "random_state": np.random.default_rng(0)}, 2, False),
        ({"feature_map": "landmark", "solver": Alternating(warm_start=True)}, 2, False),
    ],
)
def test_later_fits_run_beside_the_tests_if_none_draws_on_another(settings, n_jobs, aside):
    X, y = draw(100, 4)
    WhoFits.threads.clear()
    critic = WhoFits(lam=0.02, **settings)
    HRTSelector(critic, n_repeats=1, random_state=0, n_jobs=n_jobs).fit(X, y)
    assert WhoFits.threads[0]
    assert WhoFits.threads[1:] == (len(WhoFits.threads) - 1) * [not aside]
    assert len(WhoFits.threads) >= 5


class SlowFits(WhoFits):
    """Is still at it when the first test of its fits is done."""

    def fit_validated(self, X, y, weights=None):
        time.sleep(0.2)
        return super().fit_validated(X, y, weights)


def test_no_fit_goes_on_after_an_interrupted_test(monkeypatch):
    from sobolev.inference import trial as module

    calls, test = [], module.Trial.test

    def stop_at_the_second(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return test(*arguments)

    monkeypatch.setattr(module.Trial, "test", stop_at_the_second)
    X, y = draw(100, 4)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        HRTSelector(SlowFits(lam=0.02), random_state=0, n_jobs=2).fit(X, y)
    assert threading.active_count() == before


# -- fitted estimators and rows of the user ------------------------------------------------------


class CountingForest(RandomForestRegressor):
    """Counts its fits."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        type(self).n_fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("scheme", ["split", "forward"])
def test_a_frozen_estimator_is_not_refitted(scheme):
    X, y = draw()
    forest = CountingForest(10, random_state=0).fit(X[:80], y[:80])
    before = CountingForest.n_fits
    hrt = HRTSelector(FrozenEstimator(forest), scheme=scheme, random_state=0)
    hrt.fit(X[:80], y[:80], holdout=(X[80:], y[80:]))
    assert CountingForest.n_fits == before
    assert hrt.support_[1]
    np.testing.assert_array_equal(hrt.feature_importances_, forest.feature_importances_)
    loss = -np.mean((forest.predict(X[80:]) - y[80:]) ** 2)
    # Interpolated between 24 quantiles, so not exactly the loss.
    np.testing.assert_allclose(hrt.statistics_, loss, rtol=0.2)


def frozen_critic(scheme):
    X, y = draw()
    critic = ConvexSIC(lam=0.01).fit(X[:80], y[:80])
    hrt = HRTSelector(FrozenEstimator(critic), scheme=scheme, random_state=0)
    hrt.fit(X[:80], y[:80], holdout=(X[80:], y[80:]))
    expected = critic.risk(X[80:], y[80:]).mean()
    np.testing.assert_allclose(hrt.statistics_[hrt.shortlist_], expected, atol=1e-4)
    assert critic.lam == 0.01
    assert hrt.support_[1]


def test_a_frozen_critic_with_a_split():
    frozen_critic("split")


def test_one_split_counts_only_the_columns_that_the_critic_uses():
    X, _ = draw()
    hrt = HRTSelector(LassoCV(), scheme="split", random_state=0).fit(X, 3 * X[:, 1])
    tested = np.isfinite(hrt.pvalues_)
    assert tested[1]
    assert tested.sum() < 6
    np.testing.assert_allclose(hrt.qvalues_[tested], qvalues(hrt.pvalues_[tested], "bh"))
    again = HRTSelector(LassoCV(), scheme="split", n_repeats=2, random_state=0).fit(X, 3 * X[:, 1])
    tested = np.isfinite(again.pvalues_)
    expected = qvalues(again.pvalues_[tested], "bh", n_tests=6)
    np.testing.assert_allclose(again.qvalues_[tested], expected)


def test_a_frozen_critic_with_the_forward_scheme():
    frozen_critic("forward")


def test_frames_as_holdout():
    X, y = draw()
    frame, series = pd.DataFrame(X, columns=list("abcdef")), pd.Series(y, index=range(500, 660))
    plain = HRTSelector(FAST, random_state=0).fit(X[:80], y[:80], holdout=(X[80:], y[80:]))
    framed = HRTSelector(FAST, random_state=0).fit(
        frame[:80], series[:80], holdout=(frame[80:], series[80:])
    )
    # A frame has another order in memory: rounding moves atoms to other bins of a convolution.
    np.testing.assert_allclose(framed.pvalues_, plain.pvalues_, rtol=0.01)
    assert list(framed.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        HRTSelector(FAST).fit(frame[:80], y[:80], holdout=(frame[80:][list("fedcba")], y[80:]))


@pytest.mark.parametrize("n", [79, 81])
def test_holdout_rows_and_responses_must_match(n):
    X, y = draw()
    with pytest.raises(ValueError, match="rows"):
        HRTSelector(FAST).fit(X[:80], y[:80], holdout=(X[80:], np.resize(y, n)))


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (FAST, np.asarray),
        (FAST, pd.Series),
        (LogisticRegression(), pd.Series),
        (LogisticRegression(), list),
        (RandomForestClassifier(10), np.asarray),
    ],
    ids=lambda value: str(value)[:8],
)
def test_labels_may_be_strings(estimator, kind):
    X, y = draw(240, 4)
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    hrt = HRTSelector(estimator, random_state=0).fit(X, kind(labels.tolist()))
    assert hrt.support_[1]
    assert hrt.support_.sum() <= 3
    given = HRTSelector(estimator, random_state=0)
    held_out = (X[120:], kind(labels[120:].tolist()))
    given.fit(X[:120], kind(labels[:120].tolist()), holdout=held_out)
    assert given.support_[1]


@pytest.mark.parametrize("label", ["aaa", "zzz"])
def test_labels_that_a_fit_has_not_seen_are_named(label):
    X, y = draw(200)
    labels = np.where(y > 0, "high", "low")
    labels[150:160] = label
    hrt = HRTSelector(LogisticRegression(), scheme="split", random_state=0)
    with pytest.raises(ValueError, match=label):
        hrt.fit(X[:100], labels[:100], holdout=(X[100:], labels[100:]))


# -- repetitions and Monte Carlo -----------------------------------------------------------------


def test_repetitions_go_on_with_the_same_generator():
    X, y = draw(60, 3)
    rng = np.random.default_rng(5)
    single = HRTSelector(FAST, n_repeats=1, random_state=rng)
    one, two = (single.fit(X, y).pvalues_ for _ in range(2))
    both = HRTSelector(FAST, n_repeats=2, random_state=5).fit(X, y)
    assert both.n_repeats_ == 2
    assert not np.array_equal(one, two)
    np.testing.assert_allclose(both.pvalues_, merged_pvalues(np.stack([one, two])), rtol=1e-9)


@pytest.mark.parametrize(
    ("n", "settings", "orders"),
    [
        (60, {}, 5),
        (400, {}, 1),
        (60, {"n_repeats": 2}, 2),
        (60, {"scheme": "split"}, 1),
        (60, {"scheme": Forward(shuffle=False)}, 1),
    ],
)
def test_small_tables_are_tested_in_five_orders(n, settings, orders):
    X, y = draw(n, 3)
    hrt = HRTSelector(LinearRegression(), **settings, diagnose=False, random_state=0)
    assert hrt.fit(X, y).n_repeats_ == orders


def test_given_holdout_rows_have_one_order():
    X, y = draw(60, 3)
    hrt = HRTSelector(LinearRegression(), random_state=0)
    assert hrt.fit(X[:30], y[:30], holdout=(X[30:], y[30:])).n_repeats_ == 1


def test_as_many_units_as_one_order_may_test_are_counted():
    """Of 40 columns each of five orders tests at most 13, together they test more."""
    X, y = draw(60, 40)
    hrt = HRTSelector(LinearRegression(), shortlist=10, diagnose=False, random_state=0).fit(X, y)
    assert np.isfinite(hrt.pvalues_).sum() > 13 == hrt.n_tests_
    np.testing.assert_allclose(hrt.qvalues_, qvalues(hrt.pvalues_, n_tests=13))


def floor(n_rounds, n_blocks):
    """All blocks, of equal size, at 1 / (n_rounds + 1)."""
    return norm.sf(norm.isf(1 / (n_rounds + 1)) * np.sqrt(n_blocks))


@pytest.mark.parametrize(
    ("settings", "smallest", "warned"),
    [
        ({}, floor(9, 5), False),
        ({"n_repeats": 2}, (1 + EXCESS * np.log(2)) * floor(9, 5), True),
        ({"procedure": "by"}, floor(9, 5), True),
        ({"shortlist": 39}, floor(9, 5), True),
        ({"scheme": "split"}, 0.1, True),
        ({"fdr": 0.08}, floor(9, 5), True),
        ({"pvalue": "saddlepoint", "fdr": 1e-6, "shortlist": 3}, 0.0, False),
    ],
)
def test_the_floor_of_monte_carlo_is_said_before_the_work(settings, smallest, warned):
    """Up to 48 of 60 columns are tested; 48 times 0.00208 is below 0.1, 49 times is not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 60)), rng.standard_normal(40)
    given = {"pvalue": MonteCarlo(9), "shortlist": 38, "n_repeats": 1, "diagnose": False}
    hrt = HRTSelector(LinearRegression(), **{**given, **settings}, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hrt.fit(X, y)
    said = [str(w.message) for w in caught if issubclass(w.category, SobolevWarning)]
    assert len(said) == warned
    if warned:
        assert f"MonteCarlo(n_draws=9) can give, {smallest:.2g}, is" in said[0]
        place = [w.filename for w in caught if issubclass(w.category, SobolevWarning)]
        assert place == [__file__]


def test_the_floor_is_reached():
    X, y = draw(100, 3)
    hrt = HRTSelector(FAST, pvalue=MonteCarlo(9), n_repeats=1, random_state=0).fit(X, y)
    assert hrt.pvalues_[1] == pytest.approx(floor(9, 5), rel=1e-9)


def test_smallest_qvalue_by_hand():
    assert smallest_qvalue(0.001, 20, "bh") == pytest.approx(0.02)
    assert smallest_qvalue(0.001, 1, "bh") == pytest.approx(0.001)
    harmonic = sum(1 / k for k in range(1, 21))
    assert smallest_qvalue(0.001, 20, "by") == pytest.approx(0.02 * harmonic)
    assert smallest_qvalue(0.001, 20, "storey") == pytest.approx(0.02)
    assert smallest_qvalue(0.2, 20, "bh") == 1.0


# -- reproducible, and nobody else's generator ---------------------------------------------------


@pytest.mark.parametrize("pvalue", ["saddlepoint", MonteCarlo(200)])
def test_any_number_of_jobs_with_groups(pvalue):
    rng = np.random.default_rng(0)
    X, y = draw(120, 4)
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, 120)], X])
    found = [
        HRTSelector(
            FAST,
            pvalue=pvalue,
            feature_groups=[[0, 1, 2], [3, 4]],
            n_jobs=jobs,
            diagnose=False,
            random_state=2,
        )
        .fit(X, y)
        .pvalues_
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*found)
    assert np.isfinite(found[0]).all()


def states():
    return random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002


@pytest.mark.parametrize("estimator", [None, RandomForestRegressor(5)], ids=["convex", "forest"])
def test_no_global_generator_is_touched_and_seeds_decide(estimator):
    X, y = draw(60, 3)
    before = states()
    settings = {"pvalue": MonteCarlo(50), "n_repeats": 2}
    runs = [
        HRTSelector(estimator, **settings, random_state=seed).fit(X, y).pvalues_
        for seed in (4, 4, 5)
    ]
    single = [hrt_test(X, y, [0, 1], estimator=estimator, random_state=1) for _ in range(2)]
    assert states() == before
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert single[0] == single[1]
    if estimator is not None:
        assert estimator.random_state is None
        assert not hasattr(estimator, "estimators_")


def test_no_global_generator_is_touched_by_a_pipeline():
    X, y = draw(100, 4)
    before = states()
    model = make_pipeline(StandardScaler(), RandomForestRegressor(5))
    runs = [HRTSelector(model, random_state=4).fit(X, y).pvalues_ for _ in range(2)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert states() == before


# -- does the conditional fit? -------------------------------------------------------------------


def binary_columns():
    X, y = draw(200, 5)
    X[:, 3] = X[:, 3] > 0
    return X, y


def test_a_normal_law_for_binary_columns_warns():
    X, y = binary_columns()
    hrt = HRTSelector(FAST, conditional="gaussian", pvalue="saddlepoint", random_state=0)
    with pytest.warns(ConditionalModelWarning, match=r"x3.*mixed") as caught:
        hrt.fit(X, y)
    assert [w.filename for w in caught] == [__file__]
    assert hrt.diagnostics_.failing_names == ["x3"]


@pytest.mark.parametrize(
    "settings", [{"diagnose": False, "pvalue": "saddlepoint"}, {"conditional": "auto"}]
)
def test_silent_if_not_asked_or_if_it_fits(settings):
    X, y = binary_columns()
    hrt = HRTSelector(FAST, **{"conditional": "gaussian", **settings}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hrt.fit(X, y)
    assert (hrt.diagnostics_ is None) == (settings.get("diagnose") is False)
