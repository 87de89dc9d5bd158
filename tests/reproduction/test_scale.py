"""The benchmark of rows beyond memory runs and says what it found."""

import pytest

pytest.importorskip("pyarrow", reason="the benchmark writes Parquet")


def test_a_small_table(load, monkeypatch, tmp_path):
    scale, common = load("scale"), load("_common")
    monkeypatch.setattr(scale, "SETTINGS", {"one round": scale.SETTINGS["one round"]})
    in_child = scale.in_child

    def mostly_here(task, folder, settings=""):
        """Only the fit in a process of its own: starting one takes longer than the task."""
        if task == "fit":
            return in_child(task, folder, settings)
        return scale.TASKS[task](folder, settings) | {"seconds": 1.0, "cpu_seconds": 1.0}

    monkeypatch.setattr(scale, "in_child", mostly_here)
    table = tmp_path / "table"
    table.mkdir()
    argv = ["--quick", "--rows", "6000", "--folder", str(table), "--output", str(tmp_path)]
    scale.main(argv)
    (record,) = common.read_records(tmp_path / "results" / "scale.jsonl")
    assert record["fit"]["passes"] == 2
    assert 0.05 < record["fit"]["peak_gb"] < scale.LIMIT_GB
    assert "6,000 × 50" in (tmp_path / "RESULTS.md").read_text()
    assert not list(table.iterdir())  # cleaned up
