import json
import math
import os
import stat

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from sobolev.report import COLUMNS, SCHEMA, Picture, render_report, write_result
from sobolev.report.files import result_json
from sobolev.report.result import plain
from sobolev.tables.writing import with_formulas

METHODS = ["hrt", "knockoffs", "rank"]


def strict(text):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("method", METHODS)
def test_the_three_files_hold_the_result(make_result, tmp_path, method):
    result = make_result(method)
    written = write_result(result, tmp_path / "new" / "folder")
    assert set(written) == {"selection.csv", "result.json", "report.html"}
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == set(written)
    table = pd.read_csv(
        written["selection.csv"], keep_default_na=False, float_precision="round_trip"
    )
    assert list(table.columns) == list(COLUMNS)
    assert list(table.pop("note")) == list(result.table["note"])
    table = pd.read_csv(written["selection.csv"], float_precision="round_trip").drop(columns="note")
    pd.testing.assert_frame_equal(table, result.table.drop(columns="note"), check_exact=True)
    found = strict(written["result.json"].read_text(encoding="utf-8"))
    assert found["schema"] == SCHEMA
    assert found["selected"] == result.selected
    assert found["headline"] == result.headline
    assert found["fdr"] == result.fdr
    assert [f["feature"] for f in found["features"]] == list(result.table["feature"])
    assert set(found["features"][0]) == set(COLUMNS)
    assert written["report.html"].read_text(encoding="utf-8") == render_report(result)


def test_names_survive_the_csv(make_result, tmp_path):
    names = ['a "b", c', "=1+1", "'=x", "-1", "@a", "line\nbreak", "é漢😀", "  blank ", "'x"]
    result = make_result(names=names)
    written = write_result(result, tmp_path)
    table = pd.read_csv(
        written["selection.csv"], keep_default_na=False, float_precision="round_trip"
    )
    assert not table["feature"].str.match(r"[=+\-@\t\r]").any()
    assert list(with_formulas(table)["feature"]) == list(result.table["feature"])


def test_what_is_missing_or_infinite_is_null(make_result):
    result = make_result(
        settings={"lam": np.float32(0.5), "threshold": math.inf, "seed": np.int64(3), "none": None},
        data={"rows": np.int64(5), "share": float("nan"), "set_aside": [("id", "like an id")]},
    )
    found = strict(result_json(result))
    missing = [f["pvalue"] is None for f in found["features"]]
    assert missing == list(result.table["pvalue"].isna())
    assert found["settings"] == {"lam": 0.5, "threshold": None, "seed": 3, "none": None}
    assert found["data"] == {"rows": 5, "share": None, "set_aside": [["id", "like an id"]]}
    assert isinstance(found["features"][0]["selected"], bool)


def test_plain_keeps_truth_values_and_names_other_objects():
    value = {1: np.array([True, False]), "path": pd.Timestamp("2020-01-01"), "na": pd.NA}
    assert plain(value) == {"1": [True, False], "path": "2020-01-01 00:00:00", "na": None}
    assert plain(np.bool_(True)) is True


def test_pictures_leave_their_words_in_the_json(make_result):
    result = make_result(pictures=(Picture("title", "caption", Figure()),))
    assert strict(result_json(result))["pictures"] == [{"title": "title", "caption": "caption"}]


def test_nothing_is_written_if_the_page_cannot_be_made(make_result, tmp_path):
    result = make_result(data={"name": "x", "set_aside": [("only a name",)]})
    with pytest.raises(ValueError, match="unpack"):
        write_result(result, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_the_files_can_be_read_by_others(make_result, tmp_path):
    for path in write_result(make_result(), tmp_path).values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
