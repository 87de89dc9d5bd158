from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sobolev.responses import read_response, survival_scores
from sobolev.tables import prepare
from sobolev.tables.columns import kind_of, labels
from sobolev.tables.names import known, parse_group_options

N = 60


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "id": np.arange(100, 100 + N),
            "name": [f"s{i}" for i in range(N)],
            "x": rng.normal(size=N),
            "count": rng.permutation(10 * N)[:N],
            "site": np.tile(["a", "b", "c"], N // 3),
            "sex": np.tile(["f", "m"], N // 2),
            "flag": np.tile([True, False, False], N // 3),
            "same": 1,
            "when": pd.date_range("2024-01-01", periods=N),
            "day": [f"2024-02-{1 + i % 28:02d}" for i in range(N)],
            "many": [f"t{i % 40}" for i in range(N)],
            "y": rng.normal(size=N),
            "label": np.tile(["p", "q", "r", "q"], N // 4),
        }
    )


def aside(data):
    return dict(data.set_aside)


def test_columns_become_numbers_groups_or_are_set_aside(frame):
    data = prepare(frame, ["y"], exclude=["label"])
    assert list(data.X.columns) == [
        "x",
        "count",
        "site=a",
        "site=b",
        "site=c",
        "sex=m",
        "flag=True",
    ]
    assert data.variables == {"x": [0], "count": [1], "site": [2, 3, 4], "sex": [5], "flag": [6]}
    assert data.kinds == {
        "x": "numeric",
        "count": "numeric",
        "site": "categorical",
        "sex": "categorical",
        "flag": "categorical",
    }
    np.testing.assert_array_equal(data.X["site=b"], frame["site"] == "b")
    np.testing.assert_array_equal(data.X["flag=True"], frame["flag"])
    assert data.X.dtypes.eq(float).all()
    assert set(aside(data)) == {"id", "name", "same", "when", "day", "many", "label"}
    assert aside(data)["same"] == "constant"
    assert "date" in aside(data)["when"]
    assert "date" in aside(data)["day"]
    assert "40 different values" in aside(data)["many"]
    assert "identifier" in aside(data)["name"]
    np.testing.assert_array_equal(data.y, frame["y"])
    assert (data.rows_read, data.columns_read) == (N, 13)


def test_a_reference_category_leaves_no_indicator_that_follows_from_the_others(frame):
    frame.loc[:30, "site"] = "b"
    data = prepare(frame, ["y"], exclude=["label"], reference=True)
    assert [c for c in data.X.columns if c.startswith("site")] == ["site=a", "site=c"]


def test_identifiers_can_be_kept_and_numbers_taken_as_categories(frame):
    data = prepare(frame, ["y"], keep=["id"], categorical=["same", "x"], exclude=["x"])
    assert "id" in data.variables
    frame["code"] = np.tile([1, 2, 3], N // 3)
    data = prepare(frame, ["y"], categorical=["code"])
    assert data.kinds["code"] == "categorical"
    assert len(data.variables["code"]) == 3
    assert "code=1" in data.X.columns


@pytest.mark.parametrize("name", ["id", "patientID", "sample_id", "Index", "column 1", "uuid"])
def test_numbers_with_the_name_of_an_identifier(frame, name):
    frame[name] = np.random.default_rng(0).permutation(10 * N)[:N]
    assert name in aside(prepare(frame, ["y"]))


@pytest.mark.parametrize("name", ["acid", "liquid", "hybrid", "grid"])
def test_words_that_end_like_an_identifier_are_none(frame, name):
    frame[name] = np.random.default_rng(0).permutation(10 * N)[:N]
    assert name in prepare(frame, ["y"]).variables


def test_counts_that_differ_in_every_row_are_features(frame):
    assert frame["count"].is_unique
    assert "count" in prepare(frame, ["y"]).variables


def test_targets(frame):
    assert prepare(frame, ["label"]).y.dtype.kind == "U"
    two = prepare(frame, ["y,x"])
    assert two.targets == ("y", "x")
    assert two.y.shape == (N, 2)
    assert "x" not in two.variables
    mixed = prepare(frame, ["y", "label"]).y
    assert [mixed[c].dtype == float for c in mixed] == [True, False]
    frame["grade"] = np.tile([1, 2, 3], N // 3)
    grades = prepare(frame, ["grade"])
    assert grades.y.dtype == float
    assert "--response classes" in grades.response.sentence
    assert set(prepare(frame, ["grade"], response="classes").y) == {1, 2, 3}
    assert set(prepare(frame, ["grade"], categorical=["grade"]).y) == {"1", "2", "3"}
    with pytest.raises(ValueError, match="holds labels"):
        prepare(frame, ["label"], response="number")
    with pytest.raises(ValueError, match="--response='regression' is unknown"):
        prepare(frame, ["label"], response="regression")
    with pytest.raises(ValueError, match="60 classes"):
        prepare(frame, ["name"])
    with pytest.raises(ValueError, match="one value only"):
        prepare(frame, ["same"])
    with pytest.raises(ValueError, match="dates"):
        prepare(frame, ["when"])
    frame.loc[0, "label"] = "z"
    data = prepare(frame, ["label"])
    assert set(data.y) == {"p", "q", "r"}
    assert len(data.X) == len(data.y) == N - 1
    assert "Classes of the target 'label' with a single row were left out: 'z'." in data.notes
    frame["label"] = ["z", *["p"] * (N - 1)]
    assert set(prepare(frame, ["label"]).y) == {"p", "z"}  # two classes must be left


def test_the_command_line_reads_a_response_as_python_does(frame):
    """A gap makes floats of integers; they are read as if there was none."""
    columns = {
        "codes": np.tile([0, 1, 2], N // 3),
        "scale": np.tile([1, 2, 3, 4, 5], N // 5),
        "two": np.tile([1, 2], N // 2),
        "many": np.random.default_rng(0).poisson(20, N),
        "real": np.random.default_rng(0).normal(size=N),
        "text": np.tile(["a", "b", "c"], N // 3),
        "ordered": pd.Categorical(np.tile(["lo", "hi"], N // 2), ["lo", "hi"], ordered=True),
    }
    for name, values in columns.items():
        frame["new"] = values
        found, expected = prepare(frame, ["new"]).response, read_response(frame["new"])
        assert (found.kind, found.sentence) == (expected.kind, expected.sentence), name
        assert found.values.dtype == expected.values.dtype
        assert (found.values == expected.values).all()
        if frame["new"].dtype == np.int64:
            frame["new"] = frame["new"].where(frame.index != 7)
            gap = prepare(frame, ["new"], missing="drop").response
            assert (gap.kind, len(gap)) == (expected.kind, N - 1)


def test_survival_times(frame):
    frame["days"] = np.random.default_rng(0).exponential(100, N)
    frame["status"] = np.tile([1, 2, 2], N // 3)
    found = prepare(frame, ["days"], event="status")
    assert found.targets == ("days", "status")
    assert not {"days", "status"} & set(found.variables)
    assert "40 events (status = 2)" in found.response.sentence
    np.testing.assert_array_equal(
        found.y, survival_scores(frame["days"].to_numpy(), frame["status"] == 2)
    )
    assert "20 events" in prepare(frame, ["days"], event="status=1").response.sentence
    assert found.y.tolist() == prepare(frame, ["days,status"], response="survival").y.tolist()
    frame.loc[3, "status"] = np.nan
    assert len(prepare(frame, ["days"], event="status", missing="drop").y) == N - 1
    frame["status"] = np.tile([0, 1, 2], N // 3)
    with pytest.raises(ValueError, match=r'--event "status=2"'):
        prepare(frame, ["days"], event="status")
    with pytest.raises(ValueError, match="status has no value '3'; its values: 0, 1, 2"):
        prepare(frame, ["days"], event="status=3")
    with pytest.raises(ValueError, match="--event: there is no column 'statu'; did you mean"):
        prepare(frame, ["days"], event="statu")
    with pytest.raises(ValueError, match="--event needs one --target"):
        prepare(frame, ["days", "y"], event="status")
    with pytest.raises(ValueError, match="--event is for survival times"):
        prepare(frame, ["days"], event="status", response="classes")


def test_names_are_checked_and_similar_ones_proposed(frame):
    with pytest.raises(ValueError, match=r"--target: there is no column 'Y'; did you mean 'y'\?"):
        prepare(frame, ["Y"])
    with pytest.raises(ValueError, match="--exclude: there is no column 'zzzzzz'; the columns are"):
        prepare(frame, ["y"], exclude=["zzzzzz"])
    with pytest.raises(ValueError, match="both --target and in --exclude"):
        prepare(frame, ["y"], exclude=["y"])
    with pytest.raises(ValueError, match="no column is left"):
        prepare(frame, ["y"], only=["same"])
    with pytest.raises(ValueError, match="first line"):
        known(["y"], ["1.5", "2", "-3"], "--target")
    assert known(["a,b"], ["a,b", "c"], "--x") == ["a,b"]
    assert known(["s*"], list(frame.columns), "--x") == ["site", "sex", "same"]


def test_missing_values_are_counted_dropped_or_filled_in(frame):
    frame = frame.drop(columns="label")
    frame.loc[[3, 4, 5], "x"] = np.nan
    frame.loc[[5, 6], "site"] = None
    frame.loc[7, "y"] = np.nan
    frame["flag"] = frame["flag"].astype(object)
    frame.loc[8, "flag"] = None
    with pytest.raises(ValueError, match=r"'x' 3, 'site' 2, 'flag' 1, 'y' 1.*--missing drop"):
        prepare(frame, ["y"], missing="error")
    dropped = prepare(frame, ["y"], missing="drop")
    assert len(dropped.X) == len(dropped.y) == N - 6
    assert any("6 of 60 rows with missing values" in note for note in dropped.notes)
    drawn = prepare(frame, ["y"])
    sites = ["site=a", "site=b", "site=c"]
    assert len(drawn.X) == N - 1
    assert drawn.X["x"].isna().tolist() == frame["x"].drop(7).isna().tolist()
    assert drawn.X.iloc[6][sites].isna().all()
    assert any("Missing cells were drawn" in note and "'x' 5 %" in note for note in drawn.notes)
    np.testing.assert_array_equal(drawn.y, frame["y"].drop(7))
    for filled in (drawn.filled(), drawn.filled(with_response=False)):
        assert filled.notna().to_numpy().all()
        assert filled.iloc[6][sites].sum() == 1
        assert (filled.to_numpy() == drawn.X.to_numpy())[drawn.X.notna().to_numpy()].all()


def test_columns_with_few_values_are_set_aside(frame):
    frame["rare"] = np.where(np.arange(N) < 5, np.arange(N) * 1.5, np.nan)
    data = prepare(frame, ["y"])
    assert aside(data)["rare"] == "values in 5 rows only"


def test_columns_without_values(frame):
    frame["void"] = np.nan
    with pytest.raises(ValueError, match=r"column 'void' has no values; .*--exclude void"):
        prepare(frame, ["y"], missing="error")
    for missing in ("drop", "draw"):
        data = prepare(frame, ["y"], missing=missing)
        assert aside(data)["void"] == "no values"
        assert len(data.X) == N
    with pytest.raises(ValueError, match="target 'void' has no values"):
        prepare(frame, ["void"])


def test_too_few_rows_are_left(frame):
    frame.loc[5:, "x"] = np.nan
    with pytest.raises(ValueError, match=r"only 5 of 60 rows"):
        prepare(frame, ["y"], missing="drop")


def test_blank_rows_are_left_out(frame):
    frame = pd.concat([frame, pd.DataFrame(index=range(3))], ignore_index=True)
    data = prepare(frame, ["y"])
    assert len(data.X) == N
    assert "3 blank rows were left out." in data.notes
    frame = pd.concat([frame.tail(2), frame.head(N)], ignore_index=True)
    np.testing.assert_array_equal(prepare(frame, ["y"]).X["x"], frame["x"].dropna())
    frame["x"] = frame["x"].astype(object)
    frame.loc[5, "x"] = "low"
    with pytest.raises(ValueError, match="row 6 after the header"):
        prepare(frame, ["y"])


def test_infinity_names_the_column(frame):
    frame.loc[[2, 3], "x"] = np.inf
    with pytest.raises(ValueError, match="column 'x' holds infinity in 2 of 60 rows"):
        prepare(frame, ["y"])
    assert "x" in aside(prepare(frame, ["y"], exclude=["x"]))
    with pytest.raises(ValueError, match="target 'x' holds infinity"):
        prepare(frame, ["x"])


def test_text_among_numbers_is_counted(frame):
    frame["x"] = frame["x"].astype(str)
    frame.loc[[17, 19], "x"] = "<5"
    frame.loc[18, "x"] = "n.d."
    words = (
        r"column 'x' holds numbers in 57 of 60 rows, but '<5' in 2, 'n.d.' in 1 \(first in row 18 "
        r"after the header\); .*--na '<5' .*--categorical x .*--exclude x\."
    )
    with pytest.raises(ValueError, match=words):
        prepare(frame, ["y"])
    assert "x" in aside(prepare(frame, ["y"], exclude=["x"]))


def test_kinds_of_unusual_columns():
    assert kind_of(pd.Series([Decimal("1.5"), Decimal("2")], dtype=object)) == "numeric"
    assert kind_of(pd.Series(["1", "2", None], dtype=object)) == "numeric"
    assert kind_of(pd.Series([True, None, False], dtype=object)) == "categorical"
    assert kind_of(pd.Series([1, 2]).astype("category")) == "categorical"
    assert kind_of(pd.Series([[1], [2]])) == "other"
    assert kind_of(pd.Series([1j, 2j])) == "other"
    assert kind_of(pd.to_timedelta(pd.Series([1, 2]), unit="s")) == "date"
    assert kind_of(pd.Series([pd.Timestamp("2024-01-01").date()] * 2, dtype=object)) == "date"
    assert kind_of(pd.Series(["1", "a", "b"], dtype=object)) == "categorical"
    assert kind_of(pd.Series([1, 2, None], dtype="Int64")) == "numeric"
    assert labels(pd.Series([1.0, 2.0, np.nan])).tolist() == ["1", "2", None]
    assert labels(pd.Series([" a ", "", "b"])).tolist() == ["a", None, "b"]


def test_nullable_and_text_numbers_are_converted(frame):
    frame["nullable"] = frame["count"].astype("Int64")
    frame["text"] = frame["x"].astype(str).astype(object)
    frame["decimal"] = [Decimal(f"{v:.3f}") for v in frame["x"]]
    data = prepare(frame, ["y"])
    np.testing.assert_array_equal(data.X["nullable"], frame["count"])
    np.testing.assert_allclose(data.X["text"], frame["x"])
    np.testing.assert_allclose(data.X["decimal"], frame["x"], atol=1e-3)


def test_indicators_do_not_take_the_name_of_a_column(frame):
    frame["site=a"] = frame["x"]
    data = prepare(frame, ["y"])
    assert data.X.columns.is_unique
    assert data.X.columns[data.variables["site=a"][0]] == "site=a"
    np.testing.assert_array_equal(data.X.iloc[:, data.variables["site=a"]].squeeze(), frame["x"])


def test_groups(frame, tmp_path):
    data = prepare(frame, ["y"], groups=["both=x,count", "clinic=site,sex"])
    assert data.variables["both"] == [0, 1]
    assert data.variables["clinic"] == [2, 3, 4, 5]
    assert (data.kinds["both"], data.kinds["clinic"]) == ("numeric", "categorical")
    assert "x" not in data.variables
    lines = tmp_path / "groups.txt"
    lines.write_text("# comment\nboth = x, count\n\nclinic=s*\n")
    names = list(frame.columns)
    assert parse_group_options([str(lines)], names) == {
        "both": ["x", "count"],
        "clinic": ["site", "sex", "same"],
    }
    lines.write_text('{"both": ["x", "count"]}')
    assert parse_group_options([str(lines)], names) == {"both": ["x", "count"]}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["g=x,nope"], "--groups g: there is no column 'nope'"),
        (["g=x", "h=x,count"], "column 'x' is in 'g' and in 'h'"),
        (["g=x", "g=count"], "given twice"),
        (["g="], "no columns"),
        (["nothing"], "neither a file nor"),
        (["site=x,count"], "has the name of a column"),
    ],
)
def test_bad_groups(frame, groups, message):
    with pytest.raises(ValueError, match=message):
        prepare(frame, ["y"], groups=groups)
