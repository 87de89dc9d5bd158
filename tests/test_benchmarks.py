"""The benchmark scripts run, resume after a kill, and leave the committed results alone."""

import importlib
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """Import a script as ``python benchmarks/script.py`` would find it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def committed():
    files = [FOLDER / "RESULTS.md", *(FOLDER / "results").glob("*")]
    before = {file: file.read_bytes() for file in files if file.exists()}
    yield
    assert before == {file: file.read_bytes() for file in files if file.exists()}


@pytest.mark.usefixtures("committed")
def test_ranking_resumes_and_renders(load, tmp_path):
    ranking, common = load("ranking"), load("_common")
    argv = ["--quick", "--seeds", "2", "--only", "2 classes", "--output", str(tmp_path)]
    ranking.main(argv)
    path = tmp_path / "results" / "ranking.jsonl"
    records = common.read_records(path)
    assert {(r["method"], r["seed"]) for r in records} == {
        (method, seed) for method in ("ConvexSIC", "random forest") for seed in range(2)
    }

    # A kill in the middle of the last line costs that fit alone.
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    ranking.main(argv)
    again = common.read_records(path)
    assert again[:-1] == records[:-1]
    assert again[-1] | {"seconds": 0} == records[-1] | {"seconds": 0}

    text = (tmp_path / "RESULTS.md").read_text()
    assert text.count("<!-- ranking:start -->") == text.count("<!-- ranking:end -->") == 1
    assert "2 seeds" in text


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("name", ["sinexp", "moments"])
def test_speed_measures(load, tmp_path, name):
    load("speed").main(["--quick", "--only", name, "--output", str(tmp_path)])
    (record,) = load("_common").read_records(tmp_path / "results" / "speed.jsonl")
    assert min(record["seconds"] + record["peer_seconds"]) > 0
    assert record["what"] in (tmp_path / "RESULTS.md").read_text()


def test_memory_of_moments_is_one_chunk(load):
    speed = load("speed")
    rng = np.random.default_rng(0)
    X, psi = rng.standard_normal((60_000, 10)), rng.standard_normal((60_000, 1))
    bound = speed.FourierMap(n_components=512).bind(
        X[:500], np.ones(10), np.full(500, 1 / 500), np.random.default_rng(0)
    )
    small, large = (speed._peak_of_update(bound, X[:n], psi[:n]) for n in (15_000, 60_000))
    assert large <= 1.01 * small


def test_run_calls_every_script(load, monkeypatch):
    run, called = load("run"), []
    for name in ("ranking", "speed"):
        module = load(name)
        monkeypatch.setattr(module, "main", lambda argv, name=name: called.append((name, argv)))
    monkeypatch.setattr(run, "SCRIPTS", ("ranking", "speed", "absent"))
    run.main(["--quick"])
    assert called == [("ranking", ["--quick"]), ("speed", ["--quick"])]


def test_ties_count_by_their_expectation(load):
    rate = load("ranking").true_positive_rate
    support = np.array([True, True, False, False])
    assert rate(np.array([2.0, 1.0, 0.0, 0.0]), support) == 1.0
    assert rate(np.zeros(4), support) == 0.5
    assert rate(np.array([0.0, 1.0, 0.0, 0.0]), support) == pytest.approx((1 + 1 / 3) / 2)


def test_sections_are_replaced_in_place(load, tmp_path):
    write = load("_common").write_section
    for name, body in (("a", "first"), ("b", "other"), ("a", "second")):
        write(tmp_path / "RESULTS.md", name, body)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "first" not in text
    assert text.index("second") < text.index("other")
    assert list(tmp_path.iterdir()) == [tmp_path / "RESULTS.md"]
