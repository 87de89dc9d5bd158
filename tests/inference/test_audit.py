"""The audit: broken selectors fail, honest ones pass, and nothing depends on how it is run."""

import json
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectFdr, f_regression

from sobolev import HRTSelector, KnockoffSelector, audit
from sobolev.inference import AuditResult, AuditRun, audit_and_choose
from sobolev.inference.audit_log import AuditLog
from sobolev.inference.audit_result import LEVELS, mean_band
from sobolev.inference.auditing import SCHEDULE, compared, planted_response
from sobolev.inference.planting import Planted


class Plain:
    """A user's own selector: `fit` and `get_support`, nothing else."""

    def __init__(self, share):
        self.share = share

    def fit(self, X, y):
        self.mask = np.arange(np.shape(X)[1]) < self.share * np.shape(X)[1]

    def get_support(self):
        return self.mask


class Remembering(BaseEstimator):
    """Selects the given columns, and offers others if the audit fails."""

    def __init__(self, chosen=(), others=(), random_state=None):
        self.chosen = chosen
        self.others = others
        self.random_state = random_state

    def fit(self, X, y):
        self.draw_ = np.random.default_rng(self.random_state).uniform()
        self.mask_ = np.isin(np.arange(np.shape(X)[1]), self.chosen)
        return self

    def get_support(self):
        return self.mask_

    def alternatives(self):
        return [(f"choice {i}", Remembering(other)) for i, other in enumerate(self.others)]


class Listening(Remembering):
    """Keeps the responses that it was fitted to; they are read in this process."""

    heard = ()

    def fit(self, X, y):
        type(self).heard = (*type(self).heard, y)
        return super().fit(X, y)


class Prepared(Remembering):
    """Counts how often its model of the columns is fitted."""

    times = 0

    def for_table(self, X):
        type(self).times += 1
        assert isinstance(X, pd.DataFrame)
        return Remembering(self.chosen)


@pytest.fixture(scope="module")
def X():
    """Columns that share two factors, so that correlation with y is not a cause."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((150, 2)) @ rng.standard_normal((2, 12))
    return pd.DataFrame(factors + 0.5 * rng.standard_normal((150, 12))).add_prefix("g")


MARGINAL = SelectFdr(f_regression, alpha=0.1)


# -- verdicts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("selector", [MARGINAL, Plain(1.0)])
def test_a_broken_selector_fails(X, selector):
    result = audit(selector, X, random_state=0)
    assert not result.passed
    assert result.fdr > 0.3
    assert "the level of 0.10 does NOT hold; do not rely on it for g" in result.verdict
    assert max(result.most_false.values()) <= 20


@pytest.mark.parametrize("selector", [Plain(0.0), Remembering()])
def test_a_selector_that_finds_nothing_passes(X, selector):
    result = audit(selector, X, random_state=0)
    assert result.passed
    assert result.fdr == result.power == result.noise_finds == 0
    assert result.null_shares == {}
    assert result.null_curve() is None
    assert result.verdict == (
        "The false discovery rate measured on these columns is 0.00, at most 0.17 (20 planted "
        "responses): the level of 0.10 holds."
    )


def test_the_randomization_test_passes_on_its_own_ground():
    """Independent columns, which its model of the columns describes exactly."""
    X = np.random.default_rng(1).standard_normal((150, 8))
    result = audit(HRTSelector(scheme="split"), X, n_repeats=10, random_state=0)
    assert result.passed
    assert result.power > 0.2
    assert set(result.null_shares) == {0.005, 0.05}
    curve = result.null_curve()
    assert (np.diff(curve.shares) >= 0).all()
    assert curve.shares[-1] == 1
    assert ((curve.lower <= curve.shares) & (curve.shares <= curve.upper)).all()


def test_knockoffs_are_audited():
    X = np.random.default_rng(1).standard_normal((120, 12))
    selector = KnockoffSelector(statistic="lasso_path", fdr=0.25)
    result = audit(selector, X, n_repeats=10, random_state=0)
    assert result.level == 0.25
    assert result.passed
    assert result.null_shares == {}


def test_finds_in_noise_alone_are_enough_to_fail():
    runs = [AuditRun(i, "additive", 2, 2, 4) for i in range(60)]
    noisy = [AuditRun(60 + i, "noise", 0, 0, 1, ("a",)) for i in range(6)]
    result = AuditResult(0.1, (*runs, *noisy), 2.0, "Plain")
    assert result.band[0] < 0.1
    assert not result.passed
    assert "(6 of 6 responses without a signal had finds)" in result.verdict


def test_quiet_noise_does_not_hide_false_finds():
    wrong = [AuditRun(i, "additive", 2, 2, 5, ("a",)) for i in range(20)]
    quiet = [AuditRun(20 + i, "noise", 0, 0, 0) for i in range(40)]
    result = AuditResult(0.1, (*wrong, *quiet), 2.0, "Plain")
    assert result.fdr < 0.1
    assert not result.passed
    assert "(the rate is 0.20 for responses with a signal)" in result.verdict


def test_a_little_above_the_level_is_chance():
    runs = [AuditRun(i, "additive", 2, 2, 2, ("a", "b") if i < 3 else ()) for i in range(20)]
    result = AuditResult(0.1, tuple(runs), 2.0, "Plain")
    assert result.passed
    assert "0.15 ± 0.08 (20 planted responses): above the level of 0.10, but not" in result.verdict


# -- counting ------------------------------------------------------------------------------------


def test_groups_are_counted_as_one():
    """A group is true if one of its columns is active, and false as a whole otherwise."""
    selector = Remembering([0, 1, 2, 3, 4]).fit(np.zeros((1, 6)), None)
    selector.feature_groups = {"a": [0, 1], "b": [2, 3]}
    selector.pvalues_ = np.array([0.001, 0.001, 0.004, 0.004, 0.04, np.nan])
    names = [f"x{j}" for j in range(6)]
    run = compared(7, Planted("additive", None, np.array([1, 5])), selector, names)
    assert (run.number, run.n_active, run.n_true, run.n_selected) == (7, 2, 2, 3)
    assert run.false == ("b", "x4")
    assert run.fdp == 2 / 3
    assert run.power == 1 / 2
    assert run.n_null == 2  # of the group b and of x4; x5 is true and has none
    assert run.null_counts[LEVELS.index(0.005)] == 1
    assert run.null_counts[LEVELS.index(0.05)] == 2


def test_units_of_the_fitted_selector_come_first():
    selector = Remembering([0]).fit(np.zeros((1, 3)), None)
    selector.units_ = {"copies": np.array([0, 1]), "x2": np.array([2])}
    run = compared(0, Planted("product", None, np.array([1])), selector, ["x0", "x1", "x2"])
    assert run.false == ()
    assert run.power == 1


def test_groups_by_the_parameter(X):
    groups = {"first": ["g0", "g1", "g2"]}
    selector = HRTSelector(scheme="split", feature_groups=groups)
    result = audit(selector, X, n_repeats=2, random_state=0)
    assert all(run.n_true <= 10 for run in result.runs)


def test_twenty_are_balanced(X):
    y = np.arange(150)
    rng = np.random.default_rng(0)
    kinds = [planted_response(i, X.to_numpy(), y, 2.0, rng) for i in range(20)]
    counts = pd.Series([(k.kind, k.active.size) for k in kinds]).value_counts()
    assert counts.to_dict() == {
        **{(shape, n): 2 for shape in ("additive", "product", "threshold") for n in (2, 4)},
        ("noise", 0): 4,
        ("permuted", 0): 4,
    }


# -- the real response ---------------------------------------------------------------------------


def test_the_real_response_is_permuted_and_its_values_are_planted(X):
    Listening.heard = ()
    y = np.where(X["g0"] > 0.5, "high", "low")
    result = audit(Listening(), X, y, n_repeats=10, random_state=0)
    kinds = [run.kind for run in result.runs]
    assert kinds == [kind for kind, _ in SCHEDULE]
    for kind, heard in zip(kinds, Listening.heard, strict=True):
        if kind == "noise":
            assert np.unique(heard).size == 150
        else:
            assert sorted(heard) == sorted(y)
            assert (heard != y).any()
    assert result.signal_to_noise == 4.0  # a response without noise


def test_without_a_response_noise_takes_the_place_of_the_permutation(X):
    kinds = {run.kind for run in audit(Remembering(), X, n_repeats=10, random_state=0).runs}
    assert kinds == {"additive", "product", "threshold", "noise"}


@pytest.mark.parametrize("selector", [Remembering(), HRTSelector(scheme="split")])
def test_the_response_may_be_a_column_of_the_table(X, selector):
    noise = np.random.default_rng(1).standard_normal(150)
    y = (X["g0"] ** 2 + noise).rename("dose")
    by_name = audit(selector, X.assign(dose=y), "dose", n_repeats=2, random_state=0)
    assert by_name == audit(selector, X, y, n_repeats=2, random_state=0)
    with pytest.raises(ValueError, match="no column 'doze'"):
        audit(selector, X, "doze", n_repeats=2)


# -- how it is run -------------------------------------------------------------------------------


def test_processes_do_not_change_the_result(X):
    selector = HRTSelector(scheme="split", n_jobs=2)
    one = audit(selector, X, n_repeats=4, random_state=3, n_jobs=1)
    assert audit(selector, X, n_repeats=4, random_state=3, n_jobs=2) == one
    assert audit(selector, X, n_repeats=4, random_state=4) != one


def test_a_killed_audit_goes_on(X, tmp_path):
    path = tmp_path / "new" / "audit.jsonl"
    whole = audit(MARGINAL, X, n_repeats=8, random_state=0, resume=path)
    lines = path.read_text().splitlines()
    assert len(lines) == 9
    path.write_text("\n".join(lines[:5]) + "\n" + lines[5][:20])  # half of a line
    asked = audit(MARGINAL, X, n_repeats=8, random_state=0, resume=path)
    assert asked == whole
    assert len(path.read_text().splitlines()) == 9
    for fewer in (path, None):
        first = audit(MARGINAL, X, n_repeats=3, random_state=0, resume=fewer)
        assert first.runs == whole.runs[:3]


def test_finished_runs_are_not_repeated(X, tmp_path):
    Listening.heard = ()
    audit(Listening(), X, n_repeats=6, random_state=0, resume=tmp_path / "a.jsonl")
    audit(Listening(), X, n_repeats=9, random_state=0, resume=tmp_path / "a.jsonl")
    assert len(Listening.heard) == 9


def test_an_audit_that_stops_leaves_the_settings_of_joblib_alone(X, monkeypatch):
    def stop(log, run):
        raise KeyboardInterrupt

    def backend():
        return type(joblib.parallel.get_active_backend(prefer="threads")[0])  # as a fit asks

    before = backend()
    monkeypatch.setattr(AuditLog, "add", stop)
    with pytest.raises(KeyboardInterrupt) as held:  # as a notebook keeps the last traceback
        audit(MARGINAL, X, n_repeats=3, random_state=0)
    assert backend() is before, held


def test_without_a_seed_the_file_keeps_it(X, tmp_path):
    path = tmp_path / "a.jsonl"
    first = audit(MARGINAL, X, n_repeats=6, resume=path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:3]) + "\n")
    assert audit(MARGINAL, X, n_repeats=6, resume=path) == first


@pytest.mark.parametrize("change", ["X", "names", "selector", "random_state", "y", "file"])
def test_a_file_of_another_audit_is_refused(X, tmp_path, change):
    path = tmp_path / "a.jsonl"
    call = {"selector": MARGINAL, "X": X, "random_state": 0}
    audit(**call, n_repeats=2, resume=path)
    if change == "file":
        path.write_text("my notes\n")
    other = {
        "X": X + 1,
        "names": X.add_prefix("a"),
        "selector": SelectFdr(f_regression, alpha=0.2),
        "random_state": 1,
        "y": X["g0"].to_numpy(),
        "file": X,
    }
    before = path.read_text()
    key = "X" if change in ("names", "file") else change
    with pytest.raises(ValueError, match=r"resume=.* was written by another audit"):
        audit(**(call | {key: other[change]}), n_repeats=2, resume=path)
    assert path.read_text() == before


def test_the_model_of_the_columns_is_fitted_once(X):
    Prepared.times = 0
    audit(Prepared(), X, n_repeats=5, random_state=0)
    assert Prepared.times == 1


def test_the_selector_is_left_alone(X):
    selector = Remembering([0], random_state=5)
    audit(selector, X, n_repeats=2, random_state=0)
    assert not hasattr(selector, "mask_")
    assert selector.random_state == 5


def test_arrays_have_names(X):
    result = audit(Plain(1.0), X.to_numpy(), n_repeats=3, random_state=0)
    assert set(result.most_false) <= {f"x{j}" for j in range(12)}


# -- choosing ------------------------------------------------------------------------------------


def test_the_first_alternative_that_passes_is_chosen(X, tmp_path):
    selector = Remembering(range(12), others=(range(6), (), (0,)))
    choice = audit_and_choose(
        selector, X, n_repeats=10, random_state=0, resume=tmp_path / "a.jsonl"
    )
    assert choice.label == "choice 1"
    assert choice.passed
    assert choice.selector.chosen == ()
    assert [label for label, _ in choice.audits] == ["as given", "choice 0", "choice 1"]
    assert "passed for choice 1 (FDR 0.00), which is used." in choice.sentence
    assert len(list(tmp_path.iterdir())) == 3


def test_if_no_alternative_passes_the_choice_says_so(X):
    selector = Remembering(range(12), others=(range(12),))
    choice = audit_and_choose(selector, X, n_repeats=10, random_state=0)
    assert not choice.passed
    assert choice.selector is selector
    assert "so the level is not assured on this table." in choice.sentence
    assert not audit_and_choose(Plain(1.0), X, n_repeats=10, random_state=0).passed


def test_a_selector_that_passes_is_kept(X):
    choice = audit_and_choose(Plain(0.0), X, n_repeats=3, random_state=0)
    assert (choice.label, choice.sentence) == ("as given", "")


# -- bands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [0.02, 0.1, 0.3])
def test_bands_cover_the_mean(mean):
    """Skewed proportions, mostly zero: 400 samples; a 95 % band misses more than 50 with p < 1e-8.

    (Binomial with rate 0.05: mean 20, standard deviation 4.4.)
    """
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(400):
        values = rng.choice([0.0, 0.5, 1.0], 20, p=[1 - 1.5 * mean, mean, mean / 2])
        low, high = mean_band(values)
        missed += not low <= mean <= high
    assert missed <= 50


def test_the_null_curve_band_takes_whole_runs():
    """Ten runs of identical p-values know no more than ten p-values."""
    counts = [tuple(int(p <= t) * 50 for t in LEVELS) for p in np.linspace(0.05, 0.95, 10)]
    runs = tuple(
        AuditRun(i, "noise", 0, 0, 0, n_null=50, null_counts=c) for i, c in enumerate(counts)
    )
    curve = AuditResult(0.1, runs, 2.0, "Plain").null_curve()
    half = LEVELS.index(0.5)
    assert curve.shares[half] == 0.5
    assert curve.upper[half] - curve.lower[half] > 0.5


# -- files and errors ----------------------------------------------------------------------------


def test_json_round_trip(X):
    result = audit(MARGINAL, X, n_repeats=6, random_state=0)
    text = result.to_json()
    assert AuditResult.from_json(text) == result
    content = json.loads(text)
    assert content["verdict"] == result.verdict
    assert content["passed"] is result.passed
    assert content["runs"][1]["power"] is None  # noise
    single = replace(result, runs=result.runs[1:2])
    assert json.loads(single.to_json())["fdr_error"] is None
    with pytest.raises(ValueError, match="not the JSON of an audit"):
        AuditResult.from_json('{"schema": 99}')


def test_a_printed_result_is_short(X):
    result = audit(Plain(1.0), X, n_repeats=10, random_state=0)
    assert str(result).startswith(result.verdict)
    assert "noise" in str(result)
    assert len(repr(result)) < 100


def test_the_table_has_a_row_for_each_kind(X):
    table = audit(MARGINAL, X, random_state=0).table()
    assert list(table["runs"]) == [2] * 6 + [8]
    assert table["response"].iloc[0] == "additive, 2 active"
    assert table["response"].iloc[-1] == "noise"
    assert np.isnan(table["power"].iloc[-1])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"selector": object()}, TypeError, "selector has no method fit"),
        ({"n_repeats": 0}, ValueError, "n_repeats=0 must be at least 1"),
        ({"fdr": 2}, ValueError, "fdr=2 must lie in"),
        ({"y": [1, 2]}, ValueError, "X has 150 rows but y has 2"),
        ({"X": np.ones((20, 3))}, ValueError, "all columns of X are constant"),
        ({"X": np.eye(3)}, ValueError, "X has 3 rows"),
        ({"X": pd.DataFrame({"a": ["2020-01-01"] * 18})}, ValueError, "no column is left"),
        ({"X": pd.DataFrame({"a": [np.inf, 1.0] * 9})}, ValueError, "column 'a'"),
    ],
)
def test_errors_say_what_is_wrong(X, change, error, words):
    with pytest.raises(error, match=words):
        audit(**({"selector": Remembering(), "X": X} | change))


@pytest.mark.parametrize("selector", [HRTSelector(scheme="split"), Remembering()])
def test_missing_cells_go_to_selectors_that_take_them(X, selector, monkeypatch):
    seen = []

    def fit(self, table, y, **options):
        seen.append(np.isnan(np.asarray(table)).any())
        self.support_ = np.zeros(table.shape[1], dtype=bool)
        return self

    monkeypatch.setattr(type(selector), "fit", fit)
    monkeypatch.setattr(type(selector), "get_support", lambda self: self.support_)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    audit(selector, gaps, n_repeats=1, n_jobs=1, random_state=0)
    assert seen == [isinstance(selector, HRTSelector)]


def test_a_support_that_is_no_mask_is_an_error(X):
    class Positions(Plain):
        def get_support(self):
            return np.array([0, 1])

    with pytest.raises(ValueError, match=r"get_support\(\) of Positions must return True or False"):
        audit(Positions(0), X, n_repeats=1)
