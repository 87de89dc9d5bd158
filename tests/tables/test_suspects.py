import numpy as np
import pandas as pd
import pytest

from sobolev.tables import prepare
from sobolev.tables.suspects import identifier, leaks, repeated, words, xi

N = 200


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def frame(rng):
    return pd.DataFrame({"x": rng.normal(size=N), "z": rng.normal(size=N), "y": rng.normal(size=N)})


def aside(data):
    return dict(data.set_aside)


# -- identifiers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "PATNO",
        "subj",
        "MRN",
        "pid",
        "case_no",
        "Unnamed: 0",
        "seqno",
        "idcase",
        "Subject No.",
        "obs",
    ],
)
def test_odd_names_of_identifiers(frame, rng, name):
    frame[name] = rng.permutation(10 * N)[:N]
    assert "the name of an identifier" in aside(prepare(frame, ["y"]))[name]
    assert name in prepare(frame, ["y"], keep=[name]).variables


@pytest.mark.parametrize(
    "name", ["NO", "acid", "number", "children number", "paid", "party", "PID score", "age", "key"]
)
def test_counts_with_other_names_are_features(frame, rng, name):
    frame[name] = rng.integers(0, 40, N)
    assert name in prepare(frame, ["y"]).variables


def test_a_party_scale_is_no_identifier(frame, rng):
    frame["PID"] = rng.integers(0, 7, N)
    assert "PID" in prepare(frame, ["y"]).variables


def test_rows_are_numbered_in_their_order_but_ranks_are_not(frame, rng):
    frame["counter"], frame["rank"] = np.arange(N) + 7, rng.permutation(N)
    data = prepare(frame, ["y"])
    assert "numbers the rows" in aside(data)["counter"]
    assert "--keep counter" in aside(data)["counter"]
    assert "rank" in data.variables


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("sorted_rows", [False, True])
def test_a_repeated_identifier_raises_a_question(frame, rng, as_text, sorted_rows):
    subject = np.repeat(np.arange(100, 150), 4)
    subject = subject if sorted_rows else rng.permutation(subject)
    frame["patient"] = [f"p{s}" for s in subject] if as_text else subject
    data = prepare(frame, ["y"])
    assert "patient" in aside(data)
    question = "'patient' looks like the subject of repeated rows: pass --subject patient if rows"
    assert sum(note.startswith(question) for note in data.notes) == 1
    kept = prepare(frame, ["y"], keep=["patient"])
    assert any("--subject" in note for note in kept.notes) == as_text
    frame["mrn"] = frame["patient"]
    (asked,) = [note for note in prepare(frame, ["y"]).notes if "--subject" in note]
    assert asked.startswith("'patient', 'mrn' look like the subject")


def test_blocks_of_rows_need_no_name_but_years_and_baselines_are_features(frame, rng):
    frame["unit"] = np.repeat(np.arange(40), 5)
    frame["year"] = np.repeat(np.arange(1960, 2000), 5)
    frame["income"] = np.repeat(rng.permutation(10**5)[:40], 5)  # constant for each unit
    frame["dose"] = np.repeat(np.arange(8), 25)
    data = prepare(frame, ["y"])
    assert set(data.variables) == {"x", "z", "year", "income", "dose"}
    assert "numbers blocks of rows" in aside(data)["unit"]
    assert any("--subject unit" in note for note in data.notes)


def test_codes_of_blocks_that_are_features_raise_a_question(frame, rng):
    """As the pigs of dietox: 4601, 4643, …, with 12 rows each, few with 11."""
    codes = rng.permutation(10**4)[:40]
    frame["pig"] = np.repeat(codes, 5)
    frame["z"] = np.repeat(rng.permutation(10**4)[:100], 2)
    asked = "Rows come in blocks with the same value of 'z', 'pig': pass --subject z if rows"
    assert any(note.startswith(asked) for note in prepare(frame, ["y"]).notes)
    del frame["z"]
    data = prepare(frame, ["y"])
    assert "pig" in data.variables
    assert any("--subject pig" in note for note in data.notes)
    assert not any("--subject" in note for note in prepare(frame, ["y"], keep=["pig"]).notes)
    frame["pig"] = np.sort(rng.integers(20, 80, len(frame)))  # a sorted table
    assert not any("--subject" in note for note in prepare(frame, ["y"]).notes)


def test_texts_with_a_few_large_values_are_no_subjects(rng):
    cities = pd.Series([f"c{int(v)}" for v in rng.zipf(1.5, 400).clip(max=300)], name="city")
    assert cities.nunique() > 32
    assert not repeated(cities)
    assert repeated(pd.Series([f"c{i % 40}" for i in range(400)], name="city"))


def test_few_values_are_no_identifier(rng):
    assert identifier(pd.Series(rng.integers(0, 5, 200), name="site_id"), "numeric") is None
    assert identifier(pd.Series(rng.normal(size=200), name="id"), "numeric") is None


def test_names_are_split_into_words():
    assert words("SampleName") == "sample name"
    assert words("patientID") == "patient id"
    assert words("Unnamed: 0") == "unnamed 0"
    assert words("case_no.") == "case no"


# -- dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%b %d, %Y", "%Y%m%d", "%d-%b-%y", "%Y/%m/%d %H:%M"],
)
def test_forms_of_dates(frame, form):
    when = pd.date_range("2020-01-01", periods=N, freq="3D").strftime(form)
    frame["when"] = pd.to_numeric(when) if form == "%Y%m%d" else when
    assert "dates" in aside(prepare(frame, ["y"]))["when"]
    kept = prepare(frame, ["y"], keep=["when"])
    assert ("when" in kept.variables) == (form == "%Y%m%d")


def test_numbers_as_large_as_dates_are_numbers(frame, rng):
    frame["when"] = 20_000_000 + rng.permutation(10**6)[:N]
    assert "when" in prepare(frame, ["y"]).variables
    frame["when"] = [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N - 1)] + ["None"]
    assert "dates" in aside(prepare(frame, ["y"]))["when"]


# -- event flags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "flag"),
    [("time", "status"), ("os_days", "dead"), ("Survival_in_days", "cens"), ("futime", "event")],
)
def test_an_event_flag_beside_a_time_is_set_aside(frame, rng, time, flag):
    frame[time], frame[flag] = rng.exponential(300, N), rng.integers(0, 2, N)
    data = prepare(frame, [time])
    assert f"flag of the time {time!r}; --keep {flag} uses it" == aside(data)[flag]
    assert any(note.startswith(f"{flag!r} looks like the event") for note in data.notes)
    kept = prepare(frame, [time], keep=[flag])
    assert flag in kept.variables
    assert flag in prepare(frame, ["y"]).variables


def test_other_flags_and_scales_stay(frame, rng):
    frame["time"], frame["treated"] = rng.exponential(300, N), rng.integers(0, 2, N)
    frame["status"] = rng.normal(size=N)
    assert {"treated", "status"} <= set(prepare(frame, ["time"]).variables)


# -- leaks ---------------------------------------------------------------------------------------


def test_copies_functions_and_bins_of_a_number_are_leaks(frame):
    y = frame["y"]
    frame["grams"], frame["log"] = 1000 * y + 3, np.log(5 + y)
    frame["rounded"], frame["low"] = y.round(2), (y < -1).astype(int)
    frame["third"] = pd.qcut(y, 3, labels=["a", "b", "c"]).astype(str)
    names = ["grams", "log", "rounded", "low", "third"]
    data = prepare(frame, ["y"])
    assert set(names) <= set(data.variables)
    said = [note for note in data.notes if "almost perfectly" in note]
    assert len(said) == 1
    assert said[0].endswith("pass --exclude grams,log,rounded,low,third.")
    assert not any("perfectly" in n for n in prepare(frame, ["y"], exclude=names).notes)


def test_other_names_of_a_class_are_leaks(frame, rng):
    frame["class"] = np.where(frame["x"] + frame["z"] > 0, "sick", "well")
    frame["code"] = (frame["class"] == "sick") * 7
    frame["label"] = frame["class"].map({"sick": "S", "well": "W"})
    frame["score"] = frame["code"] + rng.uniform(size=N)
    assert leaks(frame[["x", "z", "code", "label", "score"]], frame["class"].astype(object)) == [
        "code",
        "label",
        "score",
    ]
    assert leaks(frame[["x", "z", "score"]], frame["code"]) == ["score"]


@pytest.mark.parametrize("seed", range(20))
def test_strong_effects_are_no_leaks(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 3))
    y = 5 * x[:, 0] + 0.3 * rng.normal(size=N)  # explains 99.6 per cent
    treated = rng.integers(0, 2, N)
    features = {
        "x": pd.Series(x[:, 0]),
        "treated": pd.Series(treated.astype(float)),
        "site": pd.Series(rng.choice(["a", "b"], N), dtype=object),
        "many": pd.Series([f"s{i % 30}" for i in range(N)], dtype=object),
    }
    assert leaks(features, pd.Series(y)) == []
    shifted = 3 * treated + rng.normal(size=N)  # by three standard deviations
    assert leaks(features, pd.Series(shifted)) == []
    noisy = pd.Series(x[:, 0] + 0.15 * rng.normal(size=N) > 0).map({True: "p", False: "q"})
    assert leaks(features, noisy.astype(object)) == []


def test_rare_classes_and_few_rows_say_nothing(rng):
    y = pd.Series(["a"] * 196 + ["b"] * 4, dtype=object)
    x = {"x": pd.Series(np.r_[np.zeros(196), np.ones(4)])}
    assert leaks(x, y) == []
    short = pd.Series(np.arange(10.0))
    assert leaks({"x": short}, short) == []


def test_xi_of_independent_columns_and_of_functions(rng):
    x, y = rng.normal(size=(2, 2000))
    assert abs(xi(x, y)) < 0.1
    assert xi(x, x**2) > 0.98
    rho = 0.9
    mixed = rho * x + np.sqrt(1 - rho**2) * y  # Chatterjee (2021): its limit for normal pairs
    limit = 3 / np.pi * np.arcsin((1 + rho**2) / 2) - 0.5
    assert abs(xi(x, mixed) - limit) < 0.05
