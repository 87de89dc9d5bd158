"""The PLX4720 loader: a small file of the same form, and facts of the real one."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sobolev.datasets.plx4720 import load_plx4720

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
REAL = Path(os.environ.get("SOBOLEV_DATA_HOME") or BESIDE)
real_data = pytest.mark.skipif(not (REAL / "plx4720").is_dir(), reason="the real data are not here")
NAME = "plx4720_ccle_response_gdsc_features.npz"


def write(folder, **changes):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(40)
    X = np.column_stack([y + 0.5 * rng.standard_normal(40), np.ones(40), -y, rng.random(40)])
    content = {
        "X": X.astype(np.float32),
        "features": np.array(["BRAF_mut", "one", "A_EXP", "B_EXP"]),
        "cell_lines": np.array([f"line{i}" for i in range(40)]),
        "tissue": np.array(["skin"] * 40),
        "Amax": y,
        "ActArea": np.where(np.arange(40) == 3, np.nan, -y),
        "IC50": rng.standard_normal(40),
    }
    (folder / "plx4720").mkdir(exist_ok=True)
    np.savez(folder / "plx4720" / NAME, **(content | changes))
    return folder


def test_features_of_small_correlation_and_constants_go(tmp_path):
    plx = load_plx4720(write(tmp_path), min_correlation=0.5)
    assert plx.feature_names.tolist() == ["BRAF_mut", "A_EXP"]
    expected = [np.corrcoef(x, plx.target)[0, 1] for x in plx.data.T]
    np.testing.assert_allclose(plx.correlations, expected)
    assert plx.data.shape == (40, 2)
    assert plx.data.dtype == float
    assert plx.cell_lines[3] == "line3"
    assert plx.tissue[3] == "skin"
    names = load_plx4720(tmp_path, min_correlation=0).feature_names
    assert names.tolist() == ["BRAF_mut", "A_EXP", "B_EXP"]


def test_cell_lines_without_the_response_go(tmp_path):
    plx = load_plx4720(write(tmp_path), response="ActArea", min_correlation=0.5)
    assert plx.data.shape == (39, 2)
    assert plx.cell_lines.size == plx.tissue.size == plx.target.size == 39
    assert "line3" not in plx.cell_lines
    np.testing.assert_allclose(plx.data[:, 1], plx.target, rtol=1e-6)


def test_frames_and_pairs(tmp_path):
    X, y = load_plx4720(write(tmp_path), return_X_y=True, as_frame=True)
    assert isinstance(X, pd.DataFrame)
    assert X.index.equals(y.index)
    assert y.name == "Amax"
    plx = load_plx4720(tmp_path, as_frame=True)
    pd.testing.assert_frame_equal(plx.data, X)


def test_the_description_calls_it_a_substitute(tmp_path):
    assert "substitute for the data of the paper" in load_plx4720(write(tmp_path)).DESCR


def test_errors_name_the_cause(tmp_path, monkeypatch):
    monkeypatch.delenv("SOBOLEV_DATA_HOME", raising=False)
    with pytest.raises(FileNotFoundError, match=r"no public address.*SOBOLEV_DATA_HOME"):
        load_plx4720()
    with pytest.raises(FileNotFoundError, match=NAME):
        load_plx4720(tmp_path)
    with pytest.raises(ValueError, match="response='AUC' is unknown"):
        load_plx4720(write(tmp_path), response="AUC")
    with pytest.raises(ValueError, match=r"min_correlation=1\.5"):
        load_plx4720(tmp_path, min_correlation=1.5)


def test_no_object_of_a_file_is_unpickled(tmp_path):
    write(tmp_path, features=np.array(["BRAF_mut", 1, 2, 3], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_plx4720(tmp_path)


@real_data
@pytest.mark.parametrize(("response", "d"), [("Amax", 1321), ("ActArea", 2134), ("IC50", 1431)])
def test_the_target_of_the_drug_stands_out_in_the_real_file(response, d):
    plx = load_plx4720(REAL, response)
    assert plx.data.shape == (359, d)
    assert np.abs(plx.correlations).min() >= 0.1
    assert plx.feature_names[np.abs(plx.correlations).argmax()] == "BRAF_mut"
