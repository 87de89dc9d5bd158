"""The benchmark of rows beyond memory runs and says what it found."""

import pytest

from reproduction.benchmarks import scale

pytest.importorskip("pyarrow", reason="the benchmark writes Parquet")


def test_a_small_table(run, results, monkeypatch, tmp_path):
    monkeypatch.setattr(scale, "SETTINGS", {"one round": scale.SETTINGS["one round"]})
    monkeypatch.setattr(scale, "QUICK_ROWS", 6000)
    apart = scale.apart

    def mostly_here(step, folder, settings=""):
        """Only the fit in a process of its own: starting one takes longer than the step."""
        if step == "fit":
            return apart(step, folder, settings)
        return scale.STEPS[step](folder, settings) | {"seconds": 1.0, "cpu_seconds": 1.0}

    monkeypatch.setattr(scale, "apart", mostly_here)
    table = tmp_path / "table"
    table.mkdir()
    monkeypatch.setattr(scale.tempfile, "tempdir", str(table))
    (record,) = run("scale", "--quick")
    fitted = record["fits"]["one round"]
    assert fitted["passes"] == 2
    assert 0.05 < fitted["peak_gb"] < scale.LIMIT_GB
    assert "6,000 × 50" in results()
    assert not list(table.iterdir())  # cleaned up
