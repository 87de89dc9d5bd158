"""The benchmarks of growth and of selection run, resume, and say what they find."""

import json

import numpy as np
import pytest

from reproduction.benchmarks import growth, selection
from reproduction.benchmarks import growth_report as report
from reproduction.child import in_child
from reproduction.engine import read_records, run_tasks


@pytest.fixture
def without_peers(monkeypatch):
    """The methods, of which the peers' packages are not installed."""
    methods = [
        m if m.package == "sobolev" else type(m)(m.name, m.select, f"no_{m.package}")
        for m in selection.METHODS
    ]
    monkeypatch.setattr(selection, "METHODS", methods)
    return methods


def test_selection_names_the_peers_that_are_missing(without_peers, run, results, tmp_path):
    first = run("selection", "--quick")
    figures = [r for r in first if "missing" not in r]
    assert [r["method"] for r in figures] == [
        "HRTSelector",
        "KnockoffSelector",
        "KnockoffSelector, lasso",
    ]
    assert len(first) == len(without_peers)
    text = results()
    assert "not installed (`pip install no_hidimstat`)" in text
    assert text.count("| knockpy, ") == 3

    # What has figures is kept; what failed is tried again.
    path = tmp_path / "data" / "selection.jsonl"
    lines = path.read_text().splitlines()
    run("selection", "--quick")
    again = path.read_text().splitlines()
    assert again[: len(lines)] == lines
    assert all("missing" in json.loads(line)["result"] for line in again[len(lines) :])
    assert len(again) == 2 * len(lines) - 3


def test_a_peer_that_fails_is_a_row(run, results, monkeypatch):
    def broken(X, y, seed, fdr):
        if seed == 1:
            raise RuntimeError("a matrix\nis singular")
        return np.arange(X.shape[1]) < 6

    def steady(X, y, seed, fdr):
        return np.arange(X.shape[1]) < 3

    made = [selection.Method(selection.REFERENCE, steady)]
    made.append(selection.Method("peer", broken, "numpy", 3))
    monkeypatch.setattr(selection, "METHODS", made)
    run("selection", "--quick", "--repetitions", "3")
    (line,) = [t for t in results().splitlines() if t.startswith("| peer |")]
    assert "failed on 1: RuntimeError: a matrix is singular" in line
    assert line.split("|")[5].strip() == "2"


def test_ours_may_not_fail(monkeypatch):
    def broken(X, y, seed, fdr):
        raise RuntimeError("ours")

    monkeypatch.setattr(selection, "METHODS", [selection.Method("us", broken)])
    with pytest.raises(RuntimeError, match="ours"):
        selection.measure({"design": selection.QUICK_DESIGNS[0].name, "method": "us"}, 0)


def _records(rates):
    """Twenty data sets of the quick design: (tpr, fdp, seconds) of each method."""
    name = selection.QUICK_DESIGNS[0].name
    return [
        {"design": name, "method": method, "seed": seed, "fdp": fdp}
        | {"tpr": tpr + 0.02 * (seed % 2), "seconds": seconds * (1 + seed % 2)}
        for method, (tpr, fdp, seconds) in rates.items()
        for seed in range(20)
    ]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"hidimstat d0CRT": (0.3, 0.0, 1.0)}, "**ours ahead**"),
        ({"hidimstat d0CRT": (0.9, 0.0, 1.0)}, "**the peer wins**"),
        ({"hidimstat d0CRT": (0.9, 0.4, 1.0)}, "Beyond the level: hidimstat d0CRT"),
        ({"hidimstat d0CRT": (0.5, 0.0, 1.0)}, "a tie"),
    ],
)
def test_the_verdict_is_that_of_the_figures(rates, said):
    design = selection.QUICK_DESIGNS[0]
    records = _records({"HRTSelector": (0.5, 0.05, 2.0)} | rates)
    if said == "a tie":  # a spread between data sets hides the difference
        for r in records:
            r["tpr"] += 0.3 * (r["seed"] % 3 - 1) * (r["method"] != "HRTSelector")
    found = selection.cells(records, design)
    assert said in selection.verdict(found)
    line = next(r for r in selection.lines(found) if r[0] == "hidimstat d0CRT")
    assert line[6] == "0.5 (0.5 to 0.5)"
    assert line[3] == ("**fails**" if "Beyond" in said else "holds")


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
