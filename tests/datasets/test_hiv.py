"""The HIV loader: every step on a table small enough to check by eye, sizes on the real one."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch

from sobolev.datasets.hiv import HIV_DRUGS, count_positions, load_hiv

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL = Path(os.environ.get("SOBOLEV_DATA_HOME") or BESIDE)
real_data = pytest.mark.skipif(not (REAL / "hiv").is_dir(), reason="the real data are not here")

SIZES = {
    "APV": (767, 201),
    "ATV": (328, 147),
    "IDV": (825, 206),
    "LPV": (515, 184),
    "NFV": (842, 207),
    "RTV": (793, 205),
    "SQV": (824, 206),
    "3TC": (629, 283),
    "ABC": (623, 283),
    "AZT": (626, 283),
    "D4T": (625, 281),
    "DDI": (628, 283),
    "TDF": (351, 215),
    "DLV": (730, 305),
    "EFV": (732, 312),
    "NVP": (744, 313),
}
# Columns: P2 before P10; P1 and P3 carry the same K; the last rows are unreadable or unmeasured.
ROWS = [
    "id APV ATV P1 P10 P2 P3 P4",
    "a 1.0 NA K F i K -",
    "b 2.0 NA K FR d K W",
    "c 4.0 NA KR R id K .",
    "d 8.0 NA - FR i . -",
    "e 0.5 NA - - id . W",
    "f 9.0 NA K F# d - W",
    "g NA 3.0 - F d - W",
]


def write(folder, rows=ROWS, drug_class="PI", truth="10\tF R\n4\tW\n"):
    (folder / "hiv").mkdir(exist_ok=True)
    table = "\n".join("\t".join(row.split(" ")) for row in rows) + "\n"
    (folder / "hiv" / f"{drug_class}_DATA.txt").write_text(table)
    (folder / "hiv" / f"{drug_class}_TSM.txt").write_text(truth)
    return folder


def test_every_step_of_the_preparation(tmp_path):
    hiv = load_hiv("APV", write(tmp_path))
    # P1.K and P3.K are the same and both go; P1.R, P4.W are too rare without rows f and g.
    assert hiv.feature_names.tolist() == ["P2.d", "P2.i", "P10.F", "P10.R"]
    expected = [[0, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 0, 0]]
    np.testing.assert_array_equal(hiv.data, expected)
    assert hiv.data.dtype == float
    np.testing.assert_allclose(hiv.target, np.log([1, 2, 4, 8, 0.5]))
    assert hiv.positions.tolist() == [2, 2, 10, 10]
    assert hiv.support.tolist() == [False, False, True, True]
    assert hiv.tsm_positions.tolist() == [4, 10]
    assert (hiv.drug, hiv.drug_class) == ("APV", "PI")
    assert "5 isolates, 4 mutations" in hiv.DESCR


def test_a_group_of_three_equal_columns_goes_entirely(tmp_path):
    rows = [*ROWS[:1], *(f"x 1.0 NA K F i K {last}" for last in "WWW-")]
    assert load_hiv("APV", write(tmp_path, rows)).feature_names.tolist() == ["P4.W"]


def test_frames_and_pairs(tmp_path):
    hiv = load_hiv("APV", write(tmp_path))
    X, y = load_hiv("APV", tmp_path, return_X_y=True)
    np.testing.assert_array_equal(X, hiv.data)
    np.testing.assert_array_equal(y, hiv.target)
    frame, series = load_hiv("APV", tmp_path, return_X_y=True, as_frame=True)
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == hiv.feature_names.tolist()
    assert series.name == "APV"
    np.testing.assert_array_equal(frame, hiv.data)


def test_the_variable_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(write(tmp_path)))
    assert load_hiv("APV").data.shape == (5, 4)


def test_each_class_has_files_of_its_own(tmp_path):
    rows = [ROWS[0].replace("APV", "EFV"), *ROWS[1:]]
    hiv = load_hiv("EFV", write(tmp_path, rows, "NNRTI", "2\td\n"))
    assert hiv.drug_class == "NNRTI"
    assert hiv.support.tolist() == [True, True, False, False]


def test_published_addresses(tmp_path, monkeypatch):
    asked = {}

    def remember(file, data_home):
        asked[file.path] = file.url
        return write(tmp_path, [ROWS[0].replace("APV", "3TC"), *ROWS[1:]], "NRTI") / file.path

    monkeypatch.setattr("sobolev.datasets.hiv.fetch", remember)
    load_hiv("3TC")
    base = "https://hivdb.stanford.edu/pages/published_analysis/genophenoPNAS2006/"
    assert asked == {
        "hiv/NRTI_DATA.txt": base + "DATA/NRTI_DATA.txt",
        "hiv/NRTI_TSM.txt": base + "MUTATIONLISTS/NP_TSM/NRTI",
    }


def test_errors_name_the_cause(tmp_path):
    with pytest.raises(ValueError, match=r"drug='apv' is unknown.*APV"):
        load_hiv("apv", tmp_path)
    with pytest.raises(FileNotFoundError, match="PI_DATA"):
        load_hiv("APV", tmp_path)
    with pytest.raises(ValueError, match="no column SQV"):
        load_hiv("SQV", write(tmp_path))
    with pytest.raises(ValueError, match="positive"):
        load_hiv("APV", write(tmp_path, [ROWS[0], ROWS[1].replace("1.0", "0.0")]))
    with pytest.raises(ValueError, match="<1"):
        load_hiv("APV", write(tmp_path, [ROWS[0], ROWS[1].replace("1.0", "<1")]))


def test_positions_are_counted_once():
    bunch = Bunch(positions=np.array([10, 10, 11, 12, 12]), tsm_positions=np.array([10, 90]))
    assert count_positions(bunch, np.array([True, True, False, False, False])) == (1, 0)
    assert count_positions(bunch, np.ones(5, dtype=bool)) == (1, 2)
    assert count_positions(bunch, [3, 4, 1]) == (1, 1)
    assert count_positions(bunch, []) == (0, 0)
    assert count_positions(bunch, np.zeros(5, dtype=bool)) == (0, 0)
    with pytest.raises(ValueError, match="support has 3 entries"):
        count_positions(bunch, [True, False, True])


def test_there_are_sixteen_drugs():
    assert sum(HIV_DRUGS.values(), ()) == tuple(SIZES)


@real_data
@pytest.mark.parametrize("drug", SIZES)
def test_the_published_sizes_come_out(drug):
    hiv = load_hiv(drug, REAL)
    assert hiv.data.shape == SIZES[drug]
    assert set(np.unique(hiv.data)) == {0.0, 1.0}
    assert hiv.data.sum(axis=0).min() >= 3
    assert np.isfinite(hiv.target).all()
    assert len(set(hiv.feature_names)) == hiv.data.shape[1]


@real_data
@pytest.mark.parametrize(
    ("drug", "expected"), [("APV", (34, 31)), ("3TC", (24, 81)), ("NVP", (14, 97))]
)
def test_positions_of_the_published_tables(drug, expected):
    hiv = load_hiv(drug, REAL)
    assert count_positions(hiv, np.ones(hiv.data.shape[1], dtype=bool)) == expected


@real_data
@pytest.mark.parametrize("name", [f"{c}_{k}" for c in HIV_DRUGS for k in ("DATA", "TSM")])
def test_checksums_are_those_of_the_files(name):
    import hashlib

    from sobolev.datasets.hiv import _CHECKSUMS

    content = (REAL / "hiv" / f"{name}.txt").read_bytes()
    assert hashlib.sha256(content).hexdigest() == _CHECKSUMS[name]
