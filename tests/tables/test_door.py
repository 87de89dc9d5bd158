"""One door: selectors take a DataFrame as it is, and answer as the command line does."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

from sobolev import (
    ConvexSIC,
    HRTSelector,
    KnockoffSelector,
    audit,
    hrt_test,
    sic_test,
    write_report,
)
from sobolev.exceptions import DataWarning
from sobolev.plotting import partial_effect, plot_effect
from sobolev.tables import prepare
from sobolev.tables.opening import in_python, open_table

FAST = ConvexSIC(feature_map="landmark", lam=0.03)


@pytest.fixture(scope="module")
def frame():
    """200 rows: y follows site, sex and dose."""
    rng = np.random.default_rng(0)
    n = 200
    found = pd.DataFrame(
        {
            "patient": np.arange(n) + 1000,
            "age": rng.normal(50, 10, n),
            "sex": rng.choice(["female", "male"], n),
            "site": pd.Categorical(rng.choice(["north", "south", "west"], n)),
            "dose": rng.normal(size=n),
            "smokes": rng.random(n) < 0.3,
            "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
        }
    )
    strong = 2.0 * (found["site"] == "west") + 1.5 * (found["sex"] == "male") + found["dose"]
    return found.assign(y=strong + rng.normal(size=n))


@pytest.fixture(scope="module")
def fitted(frame):
    with pytest.warns(DataWarning, match="set aside: 'patient' .*'born'"):
        return HRTSelector(FAST, random_state=0).fit(frame, "y")


def test_results_are_those_of_the_inputs(frame, fitted):
    X = frame.drop(columns="y")
    assert list(fitted.feature_names_in_) == list(X)
    assert fitted.pvalues_.shape == fitted.support_.shape == (7,)
    assert np.isnan(fitted.pvalues_[[0, 6]]).all()
    assert {"sex", "site", "dose"} <= set(fitted.get_feature_names_out())
    assert fitted.transform(X).shape == (200, fitted.support_.sum())
    table = fitted.summary().set_index("feature")
    assert table.loc["site", "kind"] == "categorical"
    assert table.loc["patient", "note"].startswith("set aside: ")
    np.testing.assert_allclose(table["importance"].sum(), 1)
    assert fitted.result("site").pvalue == fitted.pvalues_[3] < 0.01
    assert fitted.units_["site"].tolist() == [3]


def test_the_encoded_columns_give_the_same(frame, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = prepare(frame, "y")
        groups = dict(data.variables)
        critic = ConvexSIC(feature_map="landmark", lam=0.03, feature_groups=groups)
        plain = HRTSelector(critic, feature_groups=groups, random_state=0).fit(data.X, data.y)
        again = HRTSelector(FAST, random_state=0).fit(data)
    first = [data.places[name][0] for name in ("age", "sex", "site", "dose", "smokes")]
    np.testing.assert_array_equal(fitted.pvalues_[1:6], plain.pvalues_[first])
    np.testing.assert_array_equal(fitted.pvalues_, again.pvalues_)


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_polars_and_arrays_of_the_response(frame, fitted):
    X = frame.drop(columns="y").assign(site=frame["site"].astype(str))
    for table in (X, pl.from_pandas(X)):
        again = HRTSelector(FAST, random_state=0).fit(table, frame["y"].to_numpy())
        np.testing.assert_array_equal(again.pvalues_, fitted.pvalues_)


def test_plain_tables_are_left_alone():
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = X[:, 0] + 0.1 * X[:, 3]
    table = pd.DataFrame(X, columns=list("abcd"))
    assert open_table(X, y) is None
    assert open_table(table, y) is None
    first = HRTSelector(FAST, random_state=0).fit(X, y)
    second = HRTSelector(FAST, random_state=0).fit(table, y)
    np.testing.assert_array_equal(first.pvalues_, second.pvalues_)
    assert not hasattr(second, "table_")


def test_a_second_fit_forgets_the_first(frame):
    selector = HRTSelector(FAST, random_state=0)
    with pytest.warns(DataWarning):
        selector.fit(frame, "y")
    selector.fit(frame[["age", "dose"]], frame["y"])
    assert not hasattr(selector, "table_")
    assert len(selector.summary()) == 2


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_subjects_and_weights_by_name(frame):
    table = frame.assign(visit=np.repeat(np.arange(50), 4), w=1.0)
    named = HRTSelector(FAST, random_state=0)
    named.fit(table, "y", groups="visit", sample_weight="w")
    given = HRTSelector(FAST, random_state=0)
    given.fit(frame, "y", groups=table["visit"], sample_weight=table["w"])
    np.testing.assert_array_equal(named.pvalues_, given.pvalues_)
    assert "visit" not in named.feature_names_in_


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_rows_without_a_response_are_left_out(frame):
    y = frame["y"].where(np.arange(200) >= 10)
    weights = np.linspace(1, 2, 200)
    gaps = HRTSelector(FAST, random_state=0).fit(frame.assign(y=y), "y", sample_weight=weights)
    rest = HRTSelector(FAST, random_state=0).fit(frame[10:], "y", sample_weight=weights[10:])
    np.testing.assert_array_equal(gaps.pvalues_[1:6], rest.pvalues_[1:6])


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_groups_of_inputs(frame):
    selector = HRTSelector(FAST, feature_groups={"person": ["age", "sex"]}, random_state=0)
    selector.fit(frame, "y")
    assert selector.units_["person"].tolist() == [1, 2]
    assert selector.pvalues_[1] == selector.pvalues_[2] < 0.01


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_covariates_are_inputs(frame):
    adjusted = HRTSelector(FAST, adjust=["site", "age"], random_state=0).fit(frame, "y")
    assert adjusted.adjusted_.tolist() == [1, 3]
    assert np.isnan(adjusted.pvalues_[[1, 3]]).all()
    assert adjusted.pvalues_[2] < 0.01
    assert list(adjusted.encoded_.estimator_.adjust) == [0, 2, 3, 4]
    data = prepare(frame, "y", adjust=["site", "age"])
    again = HRTSelector(FAST, random_state=0).fit(data)
    np.testing.assert_array_equal(again.pvalues_, adjusted.pvalues_)
    found = hrt_test(frame, "y", "sex", estimator=FAST, adjust=["site"], random_state=0)
    assert found.pvalue < 0.01


@pytest.mark.filterwarnings("ignore::sobolev.exceptions.DataWarning")
def test_other_doors(frame, tmp_path, fitted):
    assert hrt_test(frame, "y", "site", estimator=FAST, random_state=0).feature == "site"
    with pytest.raises(ValueError, match="'patient' was set aside"):
        hrt_test(frame, "y", "patient", estimator=FAST)
    found = sic_test(frame, "y", n_permutations=49, random_state=0)
    assert found.pvalue == 0.02
    assert found.importances.shape == (7,)
    gaps = frame[["age", "dose"]].mask(np.random.default_rng(0).random((200, 2)) < 0.1)
    assert sic_test(gaps, frame["y"], n_permutations=49, random_state=0).pvalue == 0.02
    found = audit(HRTSelector(FAST, scheme="split"), frame, "y", n_repeats=2, random_state=0)
    assert len(found.runs) == 2
    kept = prepare(frame, "y", keep=["patient"])
    for selector in (HRTSelector(FAST, scheme="split"), KnockoffSelector(FAST, fdr=0.5)):
        assert len(audit(selector, kept, n_repeats=1, random_state=0).runs) == 1
    filtered = KnockoffSelector(FAST, fdr=0.5, random_state=0).fit(frame, "y")
    assert filtered.statistics_[3] > 0 == filtered.statistics_[0]
    notes = filtered.summary().set_index("feature")["note"]
    assert notes["born"].startswith("set aside: dates")
    page = write_report(fitted, frame, "y", tmp_path / "report.html").read_text(encoding="utf-8")
    assert "north" in page
    assert "the name of an identifier" in page


def test_effects_of_categories(frame, fitted):
    effect = partial_effect(fitted, frame, "y", "site")
    assert effect.categories == ("north", "south", "west")
    assert effect.means[0].argmax() == 2
    effect = partial_effect(fitted, frame, "y", 2)  # sex, one column
    assert effect.categories == ("female", "male")
    assert effect.means[0, 1] > effect.means[0, 0]
    np.testing.assert_allclose(np.mean(effect.values == 1), (frame["sex"] == "male").mean())
    ticks = [t.get_text() for t in plot_effect(fitted, frame, "y", "sex").get_xticklabels()]
    assert [text.split("\n")[0] for text in ticks] == ["female", "male"]


def test_errors_speak_python(frame):
    with pytest.raises(ValueError, match="requires y to be passed"):
        HRTSelector().fit(prepare(frame))
    with pytest.raises(ValueError, match="y is given beside a prepared table"):
        HRTSelector().fit(prepare(frame, "y"), frame["y"])
    with pytest.raises(ValueError, match=r"prepare\(..., exclude='dose'\)"):
        HRTSelector().fit(frame.assign(dose=np.inf), "y")
    with pytest.raises(ValueError, match="X has 200 rows but y has 3"):
        HRTSelector().fit(frame, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="several columns of the name 'age'"):
        HRTSelector().fit(pd.concat([frame, frame[["age"]]], axis=1), "y")
    with pytest.raises(ValueError, match="holdout needs a table of numbers"):
        HRTSelector().fit(frame, "y", holdout=(frame, "y"))
    with pytest.raises(TypeError, match="DataFrame of pandas or polars"):
        prepare(np.ones((3, 3)))
    table = frame.drop(columns=["patient", "born"]).assign(dog_id=np.repeat(np.arange(50), 4))
    with pytest.warns(DataWarning) as caught:
        HRTSelector(FAST, scheme="split").fit(table, "y")
    assert any("pass groups='dog_id' if rows belong" in str(item.message) for item in caught)


def test_messages_in_python():
    assert (
        in_python("or --exclude to leave out the columns") == "or exclude to leave out the columns"
    )
    assert in_python("pass --missing draw to draw them").startswith(
        "pass sobolev.tables.prepare(..., missing='draw') to"
    )


def test_one_hot_columns_find_what_the_table_finds(frame):
    """Columns that a ColumnTransformer encoded are tested as sets."""
    coder = ColumnTransformer(
        [("hot", OneHotEncoder(sparse_output=False), ["sex", "site", "smokes"])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    X = frame.drop(columns=["y", "patient", "born"])
    encoded = coder.fit_transform(X)
    whole = HRTSelector(FAST, random_state=0).fit(X, frame["y"])
    expected = set(whole.get_feature_names_out())
    assert {"sex", "site", "dose"} <= expected
    for table in (encoded, encoded.to_numpy()):
        hot = HRTSelector(FAST, random_state=0).fit(table, frame["y"])
        names = [list(encoded)[j].rsplit("_", 1)[0] for j in np.flatnonzero(hot.support_)]
        assert set(names) == expected
        assert sorted(own.size for own in hot.units_.values()) == [1, 1, 2, 2, 3]


def test_missingness_as_a_feature():
    rng = np.random.default_rng(1)
    n = 300
    gone = rng.random(n) < 0.4
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    frame["income"] = np.where(gone, np.nan, rng.normal(size=n))
    frame["y"] = 2.0 * gone + rng.normal(size=n)
    data = prepare(frame, "y", offer_missing=["*"])
    assert list(data.variables) == ["a", "b", "income", "income is missing"]
    assert data.missing == {"income": pytest.approx(gone.mean())}
    selector = HRTSelector(FAST, random_state=0).fit(data)
    assert selector.get_feature_names_out().tolist() == ["income is missing"]
    note = selector.summary().set_index("feature").loc["income", "note"]
    assert note == f"{100 * gone.mean():.0f} % missing"


def test_a_prepared_table_is_not_prepared_again(frame):
    """A column that was asked for is used, though it looks like an identifier."""
    data = prepare(frame, "y", keep=["patient"], exclude=["born"])
    found = HRTSelector(FAST, random_state=0).fit(data)
    assert np.isfinite(found.pvalues_[list(found.feature_names_in_).index("patient")])
    assert not hasattr(found.encoded_, "table_")


def test_ordered_categories_are_numbers():
    rng = np.random.default_rng(2)
    size = pd.Categorical(rng.choice(["S", "M", "L"], 60), ["S", "M", "L"], ordered=True)
    frame = pd.DataFrame({"size": size, "x": rng.normal(size=60), "y": rng.normal(size=60)})
    data = prepare(frame, "y")
    assert data.kinds["size"] == "numeric"
    np.testing.assert_array_equal(data.X["size"], size.codes + 1)
    assert prepare(frame, "y", categorical=["size"]).variables["size"] == [0, 1, 2]
