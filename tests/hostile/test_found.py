"""Inputs on which earlier versions ended in a traceback or in a silently wrong result."""

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.conditionals.units import find_units
from sobolev.inference import AuditResult
from sobolev.inference.audit_log import AuditLog
from sobolev.inference.audit_result import AuditRun
from sobolev.inference.multiple_testing import qvalues
from sobolev.responses import read_response
from sobolev.streaming import open_source
from sobolev.streaming.summary import Summarise
from sobolev.tables import linkage_blocks, prepare, read_table, windows, write_table
from sobolev.targets import TargetEncoder


@pytest.mark.parametrize("kind", ["auto", "number", "classes"])
def test_a_response_without_rows_or_columns(kind):
    with pytest.raises(ValueError, match="y has no rows"):
        read_response([], kind)
    with pytest.raises(ValueError, match="y has no columns"):
        read_response(pd.DataFrame(index=range(5)), kind)


def test_survival_times_without_rows():
    with pytest.raises(ValueError, match="no rows"):
        read_response(np.zeros(0, dtype=[("event", bool), ("time", float)]))


def test_labels_that_are_neither_text_nor_numbers():
    months = pd.Series(pd.period_range("2024-01", periods=4, freq="M"))
    assert TargetEncoder().fit(months).classes_.tolist() == months.astype(str).tolist()
    zoned = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=4, tz="UTC")})
    with pytest.raises(ValueError, match="dates or durations"):
        TargetEncoder().fit(zoned)


@pytest.mark.parametrize("scale", [1e-200, 1e-320, 1e200, 1e300])
def test_columns_of_extreme_size_are_named(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1.0, scale, 1.0]
    for selector in (ConvexSIC(), HRTSelector()):
        with pytest.raises(ValueError, match=r"extreme size in column 1 .* rescale"):
            selector.fit(X, X[:, 0])
    with pytest.raises(ValueError, match="extreme size"):
        find_units(X)


def test_a_large_and_a_small_unit_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 1] + 0.1 * rng.standard_normal(80)
    plain = ConvexSIC(random_state=0).fit(X, y).feature_importances_
    scaled = ConvexSIC(random_state=0).fit(X * [2.0**300, 2.0**-300, 1.0], y)
    np.testing.assert_allclose(scaled.feature_importances_, plain, atol=1e-8)


def test_a_response_beyond_all_bounds():
    y = np.array([1e308, -1e308, 1.0, 2.5])
    with pytest.raises(ValueError, match=r"numbers beyond 1e\+100 in 2 rows"):
        TargetEncoder("regression").fit(y)


def test_whole_numbers_beyond_64_bits():
    assert TargetEncoder().fit([10**30, 2 * 10**30, 4 * 10**30]).classes_ is None
    with pytest.raises(ValueError, match=r"constant|one class"):
        TargetEncoder("typed").fit(np.array([10**30] * 4, dtype=object))


def test_weights_whose_sum_overflows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    heavy = ConvexSIC(random_state=0).fit(X, X[:, 0], np.full(40, 1.5e308))
    plain = ConvexSIC(random_state=0).fit(X, X[:, 0], np.ones(40))
    np.testing.assert_allclose(heavy.feature_importances_, plain.feature_importances_)


def test_no_rows_and_no_columns():
    with pytest.raises(ValueError, match="no rows"):
        find_units(np.empty((0, 2)))
    with pytest.raises(ValueError, match="no columns"):
        ConvexSIC().fit(pd.DataFrame(index=range(9)), np.arange(9.0))


def test_a_window_without_end_and_text_in_genotypes():
    with pytest.raises(ValueError, match="size=inf"):
        windows([1, 2, 3], np.inf, by="count")
    with pytest.raises(ValueError, match="not numbers: 'b'"):
        linkage_blocks(pd.DataFrame({"a": [0, 1], "b": ["A", "G"]}))


def test_pvalues_outside_their_range():
    with pytest.raises(ValueError, match=r"pvalues must lie in \[0, 1\]"):
        qvalues(np.array([0.5, 1.5]))


def test_missing_first_cells_and_large_whole_numbers():
    nullable = pd.Series(pd.array([None, *range(20)], dtype="Int64"))
    frame = pd.DataFrame({"a": nullable, "b": [1e20, 2e20, 3e20] * 7, "y": np.sin(np.arange(21))})
    data = prepare(frame, "y", categorical=["b"], keep=["a"])
    assert list(data.variables) == ["a", "b"]


def test_blank_rows_before_a_category_with_gaps():
    rng = np.random.default_rng(0)
    sex = pd.Series(["f", "m", None, "f"] * 10)
    y = pd.Series(rng.standard_normal(40))
    blank = pd.DataFrame({"sex": [None] * 3, "y": [np.nan] * 3})
    frame = pd.concat([blank, pd.DataFrame({"sex": sex, "y": y})], ignore_index=True)
    data = prepare(frame, "y")
    assert data.rows.tolist() == list(range(3, 43))
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.X["sex=m"], sex.map({"f": 0.0, "m": 1.0}))


def test_a_constant_target_is_shown_as_the_user_wrote_it():
    frame = pd.DataFrame({"a": np.random.default_rng(0).standard_normal(20), "y": 1.0})
    with pytest.raises(ValueError, match=r"one value only, 1\.0;"):
        prepare(frame, "y")


def test_a_name_that_the_reader_gives_itself(tmp_path):
    (tmp_path / "t.csv").write_text("column 2,\n1,2\n")
    with pytest.raises(ValueError, match="several columns named 'column 2'"):
        read_table(tmp_path / "t.csv")


def test_archives_with_a_wrong_place_or_a_password(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("t.csv", "a,b\n1,2\n")
    data = bytearray(buffer.getvalue())
    entry = data.index(b"PK\x01\x02")
    locked, moved = data.copy(), data.copy()
    locked[6] |= 1
    locked[entry + 8] |= 1  # encrypted
    moved[entry + 42 : entry + 46] = b"\xff\xff\xff\x7f"  # far behind the end
    for content in (locked, moved):
        (tmp_path / "t.csv.zip").write_bytes(content)
        with pytest.raises(ValueError, match=r"'t\.csv\.zip' is damaged"):
            read_table(tmp_path / "t.csv.zip")


@pytest.mark.parametrize("kind", [".parquet", ".feather"])
def test_a_damaged_file_in_chunks_is_named(kind, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": np.arange(500.0), "y": np.arange(500.0)})
    path = write_table(frame, tmp_path / f"t{kind}")
    path.write_bytes(path.read_bytes()[:-60])
    with pytest.raises(ValueError, match=f"'t{kind}' cannot be read as {kind[1:]}; it is cut sho"):
        open_source(str(path), "y", None, 50).run(Summarise("auto"))


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a,y\n1,\xff\n", "is not UTF-8 text"), (b'a,y\n1,2\n"1,2,3\n', "cannot be split")],
)
def test_a_bad_text_in_chunks_is_named(content, said, tmp_path):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=f"'t.csv' {said}"):
        open_source(str(tmp_path / "t.csv"), "y", None, 50).run(Summarise("auto"))


def test_what_parquet_cannot_hold(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="cannot be written as parquet"):
        write_table(pd.DataFrame({"a": [1j]}), tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


RUN = AuditRun(0, "noise", 0, 0, 1, ("a",))


@pytest.mark.parametrize(
    "change",
    [{"level": None}, {"level": 7}, {"selector": ...}, {"runs": []}, {"runs": [{}]}, {"runs": 3}],
)
def test_the_json_of_an_audit_that_lacks_something(change):
    content = json.loads(AuditResult(0.1, (RUN,), 1.0, "HRTSelector").to_json()) | change
    content = {name: value for name, value in content.items() if value is not ...}
    with pytest.raises(ValueError, match="this is not"):
        AuditResult.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "change",
    [{"number": ...}, {"false": None}, {"n_selected": 10**400}, {"n_selected": 0}, {"kind": 3}],
)
def test_a_line_of_a_log_that_is_no_run_is_done_again(change, tmp_path):
    log = AuditLog(tmp_path / "log", "f", 3)
    log.add(RUN)
    log.add(AuditRun(1, "noise", 0, 0, 0))
    head, first, second = (tmp_path / "log").read_text().splitlines()
    broken = {k: v for k, v in (json.loads(first) | change).items() if v is not ...}
    (tmp_path / "log").write_text("\n".join([head, json.dumps(broken), second]) + "\n")
    assert [run.number for run in AuditLog(tmp_path / "log", "f", 3).runs] == [1]
