"""The command ``python -m reproduction``."""

from types import SimpleNamespace

import pytest

from reproduction.__main__ import main
from reproduction.engine import Task, read_records
from reproduction.paper import liang, plx4720, sinexp


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = main([*map(str, arguments)])
        shown = capsys.readouterr()
        return SimpleNamespace(code=code, out=shown.out, err=shown.err)

    return call


@pytest.fixture
def tiny(monkeypatch):
    """SinExp with one cheap method on few rows."""
    settings = {"n": 40, "features": 8, "top": 6, "shortlist": 8, "method": "elastic net"}

    def tasks(quick, repetitions=None):
        count = repetitions or (2 if quick else 3)
        return [Task("sinexp", settings, seed) for seed in range(count)]

    monkeypatch.setattr(sinexp, "tasks", tasks)
    monkeypatch.setattr("reproduction.paper.rates.draw_rates", lambda *_: None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["magic"], "no study 'magic'; use paper, bench, sinexp, liang, plx4720, hiv"),
        (["sinexp", "--n-jobs", "0"], "--n-jobs 0"),
        (["sinexp", "--repetitions", "0"], "--repetitions"),
        (["sinexp", "--out", "file"], "is a file"),
    ],
)
def test_mistakes_end_in_one_line(run, tmp_path, arguments, message):
    (tmp_path / "file").write_text("mine")
    result = run(*arguments)
    assert result.code == 2
    assert message in result.err
    assert result.out == ""
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["plx4720", "hiv"])
def test_missing_data_end_in_one_line(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "nowhere"))
    plx4720._data.cache_clear()
    result = run(name, "--quick")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert result.err.startswith(f"reproduction: {name}: ")
    assert "SOBOLEV_DATA_HOME" in result.err
    assert not (tmp_path / "quick-sobolev").exists()


def test_all_runs_what_it_has_data_for(run, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setattr(liang, "tasks", lambda quick, repetitions=None: [])
    plx4720._data.cache_clear()
    result = run("paper", "--quick", "--n-jobs", "1")
    assert result.code == 2
    assert "(plx4720, hiv left out)" in result.err.splitlines()[-1]
    assert (tmp_path / "quick-sobolev" / "sinexp.md").exists()


def test_a_second_run_only_shows_what_was_found(run, tiny, tmp_path):
    first = run("sinexp", "--quick", "--n-jobs", "1")
    assert first.code == 0
    assert "ran 2 tasks" in first.err
    path = tmp_path / "quick-sobolev" / "data" / "sinexp.jsonl"
    assert len(read_records(path)) == 2
    second = run("sinexp", "--quick", "--n-jobs", "1")
    assert "ran 0 tasks" in second.err
    assert second.out == first.out
    assert "elastic net, top 6" in first.out


def test_more_repetitions_add_to_those_that_are_there(run, tiny, tmp_path):
    run("sinexp", "--repetitions", "1", "--n-jobs", "1", "--out", "there")
    result = run("sinexp", "--n-jobs", "1", "--out", "there")
    assert "ran 2 tasks" in result.err
    seeds = [r["seed"] for r in read_records(tmp_path / "there" / "data" / "sinexp.jsonl")]
    assert seeds == [0, 1, 2]


def test_nothing_is_shown_on_standard_error_but_two_lines(run, tiny):
    result = run("sinexp", "--quick", "--n-jobs", "1")
    assert len(result.err.splitlines()) == 2
