"""The benchmark of growth runs, resumes, and says what it finds."""

import json

import numpy as np
import pytest

from reproduction.benchmarks import growth
from reproduction.benchmarks import growth_report as report
from reproduction.child import in_child
from reproduction.engine import read_records, run_tasks


def test_growth_measures_resumes_and_draws(run, results, tmp_path):
    records = run("growth", "--quick")
    assert [r["size"] for r in records] == [s for c in growth.QUICK_CURVES for s in c.sizes]
    assert all(r["seconds"] > 0 and r["bytes"] > 0 and r["rounds"] == 1 for r in records)
    assert run("growth", "--quick") == records
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    assert "| in d | landmark, n = 100, m = 100, one round |" in results()
    assert "](growth.png)" in results()


def test_a_fit_that_fails_is_named_and_larger_ones_are_left_out(monkeypatch, tmp_path):
    curve = growth.Curve("n", "fourier", (10, 20, 40), goal="linear")
    asked = []

    def in_child(function, task):
        asked.append(task.get("n"))
        if task.get("n") == 20:
            return {"error": "not within 150 s of CPU"}
        return {"seconds": 1.0, "peak": 5 * 10**6, "data": 80, "rounds": 1, "iterations": 2}

    monkeypatch.setattr(growth, "CURVES", (curve,))
    monkeypatch.setattr(growth, "_given_up", {})
    monkeypatch.setattr(growth, "in_child", in_child)
    monkeypatch.setattr(growth, "base_memory", lambda: 10**6)
    run_tasks(growth.measure, growth.tasks(False), tmp_path / "growth.jsonl")
    assert asked == [10, 20]
    records = [r["settings"] | r["result"] for r in read_records(tmp_path / "growth.jsonl")]
    assert records[0]["bytes"] == 4 * 10**6
    assert [r.get("error") for r in records[1:]] == ["not within 150 s of CPU"] * 2
    assert "not within 150 s" in report.table([curve], records)


def test_a_child_says_why_it_failed():
    assert "KeyError" in in_child(growth.fit, {"n": 10})["error"]


@pytest.mark.parametrize(("power", "said"), [(0.9, "holds"), (1.3, "fails")])
def test_slopes_are_those_of_the_upper_half(power, said):
    curve = growth.Curve("d", "landmark", growth.doubled(100, 8), n=500, m=None, goal="linear")
    noise = np.random.default_rng(0).normal(0, 0.01, 8)
    records = [
        {"curve": curve.name, "size": size, "rounds": 1, "data": 1}
        # Fixed costs hide the growth of the lower half.
        | {"seconds": (size**power if size > 1000 else 500.0) * np.exp(e), "iterations": 3}
        | {"bytes": 1e6 * size * np.exp(e)}
        for size, e in zip(curve.sizes, noise, strict=True)
    ]
    value, error = report.slope_of(records, "seconds")
    # Ten standard errors of four points with noise 0.01 over a factor of eight.
    assert value == pytest.approx(power, abs=0.07)
    assert 0 < error < 0.05
    text = report.conclusions([curve], records)
    assert text.startswith("- At most linear in the columns: " + ("2" if said == "holds" else "1"))
    assert ("beyond it: time of landmark" in text) == (said == "fails")
    line = report.row(curve, records)
    assert line[2] == "1,600 to 12,800 (4)"
    assert said in line[4]
    json.dumps(line)


def test_a_wide_error_leaves_the_verdict_open():
    verdict = report.verdict
    assert verdict("linear", 1.5, 0.3) == "open"
    assert verdict("linear", 1.04, 0.001) == "holds"
    assert verdict("linear", 1.2, 0.05) == "**fails**"
    assert verdict("", 3.0, 0.01) == "–"
