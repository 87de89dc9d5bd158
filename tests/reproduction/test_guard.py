"""The guard of the speed: it passes equal speed and noise, and fails what is slower for good."""

import json
from itertools import cycle

import pytest

from reproduction.benchmarks import guard
from reproduction.benchmarks.speed import Measurement


def measured(monkeypatch, ratios):
    """One measurement whose turns give these ratios, over and over."""
    turns = cycle(ratios)

    def run(quick):
        assert quick
        return {"ours": [next(turns)], "theirs": [1.0]}

    monkeypatch.setattr(guard, "GUARDED", (Measurement("fit", run, most=1.0),))


@pytest.mark.parametrize(
    ("ratios", "worse"),
    [([1.0], []), ([1.24], []), ([1.26], ["fit"]), ([3.0, 3.0, 3.0, 3.0, 1.0], []), ([0.2], [])],
    ids=["equal", "tolerated", "slower", "noise", "faster"],
)
def test_only_what_is_slower_for_good_fails(ratios, worse, monkeypatch):
    measured(monkeypatch, ratios)
    assert guard.compare({"fit": 1.0}) == worse


def test_stored_ratios_are_those_of_the_measurements():
    stored = json.loads(guard.STORED.read_text(encoding="utf-8"))
    assert set(stored) == {m.name for m in guard.GUARDED}
    assert all(ratio > 0 for ratio in stored.values())


def test_update_stores_what_is_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(guard, "STORED", tmp_path / "stored.json")
    measured(monkeypatch, [1.0])
    assert guard.main(["--update"]) == 0
    measured(monkeypatch, [2.0])
    assert guard.main([]) == 1
    assert "25% slower than stored: fit" in capsys.readouterr().out.replace(" %", "%")
