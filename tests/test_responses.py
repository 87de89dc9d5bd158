"""How a response is read: one rule in all places, survival scores, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LassoCV, Ridge

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, audit, hrt_test, sic_test
from sobolev.responses import is_event, read_response, survival_scores, take_response
from sobolev.targets import TargetEncoder

RNG = np.random.default_rng(0)
N = 200
#: Responses as people have them, and what they are.
REAL = {
    "species of iris": (np.repeat([0, 1, 2], 50), "classes"),
    "digits": (np.arange(1000) % 10, "classes"),
    "quality of wine": (
        RNG.choice([3, 4, 5, 6, 7, 8], N, p=[0.01, 0.04, 0.4, 0.4, 0.1, 0.05]),
        "grades",
    ),
    "answers from 1 to 5": (RNG.integers(1, 6, N), "grades"),
    "number of children": (RNG.poisson(1.5, N), "grades"),
    "visits to a doctor": (RNG.negative_binomial(1, 0.05, N), "count"),
    "labels 1 and 2": (RNG.integers(1, 3, N), "classes"),
    "zero and one": (RNG.integers(0, 2, N), "classes"),
    "temperatures": (RNG.integers(-20, 30, N), "number"),
    "years of birth": (RNG.integers(1920, 2000, N), "count"),
    "a real number": (RNG.normal(size=N), "number"),
    "text": (np.array(["a", "b"])[RNG.integers(0, 2, N)], "classes"),
    "true and false": (RNG.random(N) < 0.3, "classes"),
}


@pytest.mark.parametrize("name", REAL)
def test_one_rule_for_integers(name):
    """Selectors, encoders and floats from a file with a gap agree."""
    y, kind = REAL[name]
    read = read_response(y)
    assert read.kind == kind
    is_labels = kind == "classes"
    assert (TargetEncoder().fit(y).classes_ is not None) == is_labels
    assert (TargetEncoder("typed").fit(read.values).classes_ is not None) == is_labels
    assert (read.values.dtype == float) != is_labels
    if y.dtype.kind == "i":
        again = read_response(y.astype(float))
        assert (again.kind, again.sentence) == (kind, read.sentence)
        np.testing.assert_array_equal(again.values, read.values)


def test_the_rule_does_not_hang_on_the_order_or_type_of_rows():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], 50))
    for same in (y.astype(np.int8), y.astype(float), pd.Series(y, dtype="Int64"), y.tolist()):
        assert read_response(same).kind == "classes"
    # Rare codes are counts: a first block of rows would lack them.
    assert read_response(np.r_[y, 3]).kind == "grades"


def test_the_sentence_says_how_to_change_the_reading():
    rng = np.random.default_rng(0)
    y = pd.Series(np.repeat([3, 4, 5], 20), name="quality")
    read = read_response(y)
    assert read.sentence == (
        'quality was read as grades from 3 to 5, in their order. Set response="classes" '
        "(--response classes) to change that."
    )
    changed = read_response(y, "classes")
    assert changed.sentence == "quality was read as 3 classes (3, 4, 5)."
    assert read_response(changed) is changed
    codes = read_response(np.repeat([0, 1, 2], 20))
    assert 'response="number"' in codes.sentence
    assert read_response(np.repeat([0, 1, 2], 20), "number").values.dtype == float
    several = read_response(pd.DataFrame({"a": rng.normal(size=60), "b": np.tile(["u", "v"], 30)}))
    assert several.sentence == "a was read as a number. b was read as 2 classes ('u', 'v')."
    assert read_response(rng.normal(size=(60, 9))).sentence == "9 responses were read: 9 as number."


def test_ordered_grades():
    rng = np.random.default_rng(0)
    levels = ["low", "medium", "high"]
    text = np.array(levels)[rng.integers(0, 3, N)]
    ordered = pd.Series(pd.Categorical(text, levels, ordered=True))
    expected = np.array([levels.index(t) + 1.0 for t in text])
    read = read_response(ordered)
    assert read.kind == "grades"
    np.testing.assert_array_equal(read.values, expected)
    np.testing.assert_array_equal(read_response(text, "grades=low,medium,high").values, expected)
    numbers = np.array([10, 20, 15])[rng.integers(0, 3, N)]
    found = read_response(numbers, "grades=20,10,15").values
    np.testing.assert_array_equal(found, pd.Series(numbers).map({20: 1, 10: 2, 15: 3}))
    np.testing.assert_allclose(
        TargetEncoder().fit(ordered).transform(ordered)[:, 0],
        (expected - expected.mean()) / expected.std(),
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="holds 'low', which is not among the grades"):
        read_response(text, "grades=lo,medium,high")
    with pytest.raises(ValueError, match="grades=low,medium,high"):
        read_response(text, "grades")


def test_other_rows_are_read_in_the_same_way():
    """Some rows of y may look otherwise; pictures and the report see the kind of the fit."""
    rng = np.random.default_rng(0)
    y = np.array(["low", "medium", "high"])[rng.integers(0, 3, N)]
    for whole, kind in ((y, "grades=low,medium,high"), (np.arange(N) % 4, "number"), (y, "auto")):
        read = read_response(whole, kind)
        some = read.read(whole[:20])
        assert (some.kind, some.names) == (read.kind, read.names)
        np.testing.assert_array_equal(some.values, read.values[:20])
    frame = pd.DataFrame({"a": y, "b": np.arange(N) % 2})
    read = read_response(frame)
    assert read.read(frame[:1]).kinds == ("classes", "classes")
    same_name = pd.concat([frame["b"], frame["b"] * 1.5], axis=1)
    assert read_response(same_name).values.shape == (N, 2)


def test_categories_without_an_order_are_classes_even_if_they_are_numbers():
    rng = np.random.default_rng(0)
    y = pd.Series(rng.integers(5, 9, N)).astype("category")
    assert read_response(y).kind == "classes"
    assert TargetEncoder().fit(y).classes_.tolist() == ["5", "6", "7", "8"]
    frame = pd.DataFrame({"a": y, "b": np.arange(N) / 7})
    assert read_response(frame).kinds == ("classes", "number")
    y[3] = np.nan
    with pytest.raises(ValueError, match="missing"):
        read_response(y)


@pytest.mark.parametrize(
    ("y", "kind", "message"),
    [
        (["a", "b", "a"], "number", "y holds labels, not numbers"),
        ([1.5, 2.0, 3.0], "count", "y is not a count"),
        ([-1, 2, 3], "count", "y is not a count"),
        ([1.0, 2.0, 3.0], "ordinal", 'response=\'ordinal\' is unknown; use "auto", "number"'),
        ([1.0, 2.0, 3.0], "survival", "needs two columns, time and event; y has 1"),
        (np.ones((4, 3)), "survival", "needs two columns, time and event; y has 3"),
        ([[1.0, 1], [-2.0, 0]], "survival", r"negative time \(-2, first in row 1\)"),
        ([[1.0, 0], [2.0, 0]], "survival", "all rows are censored"),
        ([[1.0, 1], [1.0, 1]], "survival", "all times are equal"),
        ([[1.0, 0], [2.0, np.nan]], "survival", "NaN"),
        ([["a", 0], ["b", 1]], "survival", "the time comes first"),
        ([[1.0, 0], [2.0, 1], [2.0, 2]], "survival", r'--event "event=2"'),
    ],
)
def test_what_cannot_be_read_is_named(y, kind, message):
    with pytest.raises(ValueError, match=message):
        read_response(y, kind)


# Survival times


def structured(time, event):
    y = np.empty(len(time), dtype=[("dead", bool), ("days", float)])
    y["dead"], y["days"] = event, time
    return y


def test_survival_times_in_every_form():
    rng = np.random.default_rng(0)
    time, event = rng.exponential(size=N).round(1), rng.random(N) < 0.6
    expected = survival_scores(time, event)
    frame = pd.DataFrame({"days": time, "status": event.astype(int)})
    forms = [
        (structured(time, event), "auto"),
        (frame, "survival"),
        (frame.assign(status=event + 1), "survival"),
        (frame.assign(status=np.where(event, "Dead", "Alive")), "survival"),
        (frame.assign(status=np.where(event, "1:DECEASED", "0:LIVING")), "survival"),
        (pd.DataFrame({"status": event, "days": time}), "survival"),
        (np.column_stack([time, event]), "survival"),
    ]
    for y, kind in forms:
        read = read_response(y, kind)
        assert read.kind == "survival"
        assert f"{event.sum()} events" in read.sentence
        np.testing.assert_array_equal(read.values, expected)
    assert read_response(frame).kind == "several"  # two columns are survival times only if asked
    assert "(status = 1)" in read_response(frame, "survival").sentence
    with pytest.raises(ValueError, match="structured array"):
        read_response(forms[0][0], "classes")


@pytest.mark.parametrize(
    ("values", "event"),
    [
        ([0, 1], 1),
        ([1, 2], 2),
        ([2.0, 5.0], 5.0),
        ([1, 1], 1),
        (["dead", "alive"], "dead"),
        (["Censored", "Recurrence"], "Recurrence"),
        (["no", "yes"], "yes"),
        (["censored", "C34"], "C34"),
    ],
)
def test_which_value_is_the_event(values, event):
    np.testing.assert_array_equal(is_event(np.array(values), "s"), np.array(values) == event)


@pytest.mark.parametrize("values", [["a", "b"], [0, 1, 2], [2, 2], ["dead", "died"]])
def test_unclear_events_are_refused_with_the_remedy(values):
    with pytest.raises(ValueError, match=r'--event "s='):
        is_event(np.array(values), "s")
    named = is_event(np.array(values), "s", event=str(values[0]))
    np.testing.assert_array_equal(named, np.array(values) == values[0])


def test_scores_are_martingale_residuals():
    """Against sums over risk sets by hand, and the log-rank test of scikit-survival."""
    rng = np.random.default_rng(0)
    time = rng.exponential(size=60).round(1)  # with ties
    event = rng.random(60) < 0.6
    scores = survival_scores(time, event)
    hazard = [
        sum(event[time == s].sum() / (time >= s).sum() for s in np.unique(time) if s <= t)
        for t in time
    ]
    np.testing.assert_allclose(scores, event - np.array(hazard))
    assert abs(scores.sum()) < 1e-10
    # A later time lowers the score.
    order = np.argsort(time[~event])
    assert (np.diff(scores[~event][order]) <= 0).all()
    compare = pytest.importorskip("sksurv.compare")
    group = rng.integers(0, 2, 60)
    _, _, table, _ = compare.compare_survival(structured(time, event), group, return_stats=True)
    assert scores[group == 1].sum() == pytest.approx(table["statistic"].iloc[1])


# Selectors


@pytest.fixture(scope="module")
def survival():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6))
    time = rng.exponential(np.exp(-1.5 * X[:, 0]))
    cut = rng.exponential(2.0, size=300)
    return pd.DataFrame(X, columns=list("abcdef")), np.minimum(time, cut), time <= cut


def test_selectors_take_survival_times(survival):
    X, time, event = survival
    y = structured(time, event)
    hrt = HRTSelector(random_state=0, diagnose=False).fit(X, y)
    assert hrt.response_.kind == "survival"
    assert hrt.support_[0]
    scores = survival_scores(time, event)
    plain = HRTSelector(statistic="witness", random_state=0, diagnose=False)
    witness = clone(plain).fit(X, y)
    np.testing.assert_array_equal(witness.pvalues_, plain.fit(X, scores).pvalues_)
    table = X.assign(time=time, status=event.astype(int))
    named = HRTSelector(random_state=0, diagnose=False, response="survival")
    named.fit(table, ("time", "status"))
    np.testing.assert_array_equal(named.pvalues_, hrt.pvalues_)
    assert list(named.feature_names_in_) == list("abcdef")
    assert "were read as survival times" in named._repr_html_()
    filtered = KnockoffSelector(LassoCV(), fdr=0.5, random_state=0).fit(X, y)
    assert filtered.response_.kind == "survival"
    assert filtered.statistics_.argmax() == 0
    assert hrt_test(X, y, "a", random_state=0).pvalue < 0.01
    assert sic_test(X, y, n_permutations=99, random_state=0).pvalue == 0.01
    assert sic_test(X, y, n_permutations=99, random_state=0).response.kind == "survival"


def test_holdout_rows_are_scored_with_the_others(survival):
    X, time, event = survival
    y = structured(time, event)
    hrt = HRTSelector(diagnose=False, random_state=0)
    hrt.fit(X[:200], y[:200], holdout=(X[200:], y[200:]))
    np.testing.assert_array_equal(hrt.response_.values, survival_scores(time, event))


def test_a_selector_reads_once():
    """Rows of a block may look like classes where the whole response does not."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 4))
    y = rng.poisson(np.exp(0.4 * X[:, 0]))
    assert read_response(y).kind == "grades"
    hrt = HRTSelector(random_state=0, diagnose=False).fit(X, y)
    numbers = HRTSelector(ConvexSIC(target="regression"), random_state=0, diagnose=False)
    np.testing.assert_array_equal(hrt.pvalues_, numbers.fit(X, y).pvalues_)
    as_classes = HRTSelector(random_state=0, diagnose=False, response="classes")
    assert as_classes.fit(X, (y > 0) + 0).response_.kind == "classes"


def test_predictors_decide_what_they_can_read():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 4)), np.arange(120) % 3
    regressor = HRTSelector(Ridge(), diagnose=False, random_state=0).fit(X, y)
    assert regressor.response_.kind == "number"
    assert regressor.response_.values.dtype == float
    forest = RandomForestClassifier(5, random_state=0)
    assert HRTSelector(forest, diagnose=False).fit(X, y + 3).response_.kind == "classes"
    with pytest.raises(ValueError, match="Ridge reads numbers, which response='classes' is not"):
        HRTSelector(Ridge(), response="classes").fit(X, y)
    with pytest.raises(ValueError, match="RandomForestClassifier reads labels"):
        KnockoffSelector(forest, response="count").fit(X, y)


def test_names_of_columns_as_the_response():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=["a", "b", "y", "status=2"])
    X, y = take_response(frame, "y")
    assert list(X.columns) == ["a", "b", "status=2"]
    assert y.name == "y"
    hrt = HRTSelector(random_state=0, diagnose=False).fit(frame, "y")
    assert hrt.response_.names == ("y",)
    X, y = take_response(frame, ("a", "status=2"))  # a column may have such a name
    assert list(y.columns) == ["a", "status=2"]
    labels = ("u", "v", "u")
    assert take_response(frame, labels)[1] is labels
    with pytest.raises(ValueError, match="y: there is no column 'z'"):
        HRTSelector().fit(frame, "z")
    with pytest.raises(ValueError, match="X is not a pandas DataFrame"):
        KnockoffSelector().fit(frame.to_numpy(), "y")


def test_an_audit_plants_scores(survival):
    X, time, event = survival
    found = audit(
        HRTSelector(scheme="split", diagnose=False),
        X,
        structured(time, event),
        n_repeats=5,
        random_state=0,
    )
    assert len(found.runs) == 5
    given = HRTSelector(scheme="split", diagnose=False, response="classes")
    grades = np.tile([1, 2, 3], 100)
    assert len(audit(given, X, grades, n_repeats=5, random_state=0).runs) == 5


def test_null_pvalues_are_uniform_under_censoring():
    """Censoring that depends on other columns than the tested one does no harm.

    60 tables of 8 null columns. A correct program fails in one of 1,000 runs: Kolmogorov's test
    of 480 p-values, which are valid but not exactly uniform, against small values only.
    """
    pvalues = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 10))
        X[:, 1:] += 0.5 * X[:, :1]
        time = rng.exponential(np.exp(-X[:, 0]))
        cut = rng.exponential(0.5 * np.exp(0.8 * X[:, 1]))
        selector = HRTSelector(
            LassoCV(cv=3), scheme="split", conditional="gaussian", diagnose=False, random_state=seed
        )
        selector.fit(X, structured(np.minimum(time, cut), time <= cut))
        pvalues.append(selector.pvalues_[2:])
    found = np.concatenate(pvalues)
    found = found[np.isfinite(found)]
    assert kstest(found, "uniform", alternative="greater").pvalue > 0.001
