"""`sobolev audit` and `sobolev select --audit`."""

import json

import numpy as np
import pytest

from sobolev import HRTSelector
from sobolev.inference import AuditResult

SHORT = ("--scheme", "split", "--n-jobs", "1")


@pytest.fixture
def small(frame, here):
    """The first 60 rows without the identifier, the constant and the site."""
    frame.iloc[:60][["x1", "x2", "x3", "x4", "y"]].to_csv(here / "small.csv", index=False)
    return "small.csv"


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr("sobolev.cli.running.REPEATS", 5)


@pytest.fixture
def broken(monkeypatch, short):
    """A selector that selects everything, with an alternative that selects nothing if asked."""

    def support(self):
        return np.full(self.n_features_in_, self.procedure != "by")

    def break_it(*labels):
        monkeypatch.setattr(HRTSelector, "get_support", lambda self, indices=False: support(self))
        procedures = [(label, "by" if label == "gaussian" else "bh") for label in labels]
        others = [
            (label, HRTSelector(conditional=label, procedure=procedure, random_state=0))
            for label, procedure in procedures
        ]
        monkeypatch.setattr(HRTSelector, "alternatives", lambda self: others, raising=False)

    return break_it


def test_audit_prints_the_verdict_and_writes_its_files(run, small, here):
    done = run("audit", small, "--target", "y", "--repeats", "3", *SHORT)
    assert done.code == 0, done.err
    assert done.out.startswith("The false discovery rate measured on these columns is ")
    assert "additive, 1 active" in done.out
    folder = here / "small-audit"
    assert {path.name for path in folder.iterdir()} == {"audit.json", "audit.png"}
    assert (folder / "audit.png").read_bytes().startswith(b"\x89PNG")
    content = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert content["data"]["features"] == 4
    assert content["targets"] == ["y"]
    command = content["settings"]["command"]
    assert command.startswith("sobolev audit small.csv --target y --repeats 3 --method hrt")
    found = AuditResult.from_json(json.dumps(content["audits"][0]))
    assert found.verdict == content["verdict"]
    again = run("audit", small, "--target", "y", "--repeats", "3", *SHORT)
    assert again.code == 0, again.err  # our own files are replaced


def test_without_a_target_all_columns_are_features(run, small):
    done = run("audit", small, "--repeats", "2", *SHORT, "--json", "--no-report")
    content = json.loads(done.out)
    assert content["data"]["features"] == 5
    assert content["targets"] == []
    assert content["audits"][0]["signal_to_noise"] == 2.0
    same = run("audit", small, "--repeats", "2", *SHORT, "--format", "json", "--no-report")
    assert json.loads(same.out)["audits"] == content["audits"]


def test_categories_are_audited_as_a_whole(run, table):
    done = run("audit", table, "-t", "y", "--repeats", "2", *SHORT, "--json", "--no-report")
    assert done.code == 0, done.err
    runs = json.loads(done.out)["audits"][0]["runs"]
    assert all(run["n_selected"] <= 5 for run in runs)


def test_a_stopped_audit_goes_on(run, small, here, monkeypatch):
    fits, fit = [], HRTSelector.fit

    def stopping(self, X, y=None):
        if len(fits) == 2:
            fits.append("stop")
            raise KeyboardInterrupt
        fits.append("fit")
        return fit(self, X, y)

    monkeypatch.setattr(HRTSelector, "fit", stopping)
    asked = ("audit", small, "-t", "y", "--repeats", "4", *SHORT)
    done = run(*asked)
    assert done.code == 130
    assert "audit.jsonl keeps the finished runs, the same command goes on" in done.err
    assert done.err.strip().splitlines()[-1].startswith("sobolev: interrupted during the audit; ")
    kept = {path.name for path in (here / "small-audit").iterdir()}
    assert kept == {"audit.jsonl", "command.txt"}
    other = run(*asked, "--seed", "1", "--out", "small-audit")
    assert other.code == 2
    assert "holds results of another run (sobolev audit small.csv" in other.err
    done = run(*asked, "--json")
    assert done.code == 0
    assert fits == ["fit", "fit", "stop", "fit", "fit"]
    kept = {path.name for path in (here / "small-audit").iterdir()}
    assert kept == {"audit.json", "audit.png"}
    other = run(*asked, "--seed", "1")
    assert other.code == 0
    assert "small-audit-2" in other.err
    whole = run(*asked, "--json", "--no-report")
    assert json.loads(whole.out)["audits"] == json.loads(done.out)["audits"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "small.csv", "--method", "rank"), "--method rank does not control"),
        (("select", "small.csv", "-t", "y", "--method", "rank", "--audit"), "--method rank"),
        (("audit", "none.csv"), "there is no file 'none.csv'"),
        (("audit", "small.csv", "-t", "z"), "--target"),
        (("audit", "small.csv", "--fdr", "2"), "--fdr 2 must lie between 0 and 1"),
        (("audit", "small.csv", "--out", "small.csv"), "is a file; give a folder"),
    ],
)
def test_mistakes_are_one_line(run, small, arguments, words):
    done = run(*arguments)
    assert done.code == 2
    assert words in done.err
    assert done.err.startswith("sobolev: ")
    assert len(done.err.strip().splitlines()) == 1


def test_files_of_others_are_not_replaced(run, small, here):
    (here / "there").mkdir()
    (here / "there" / "audit.png").write_text("a picture of mine")
    done = run("audit", small, "--out", "there", "--repeats", "1", *SHORT)
    assert done.code == 2
    assert "was not written by sobolev" in done.err
    assert (here / "there" / "audit.png").read_text() == "a picture of mine"


# -- select --audit ------------------------------------------------------------------------------


def test_select_puts_the_verdict_into_the_headline(run, small, here, short):
    done = run("select", small, "-t", "y", "--audit", *SHORT)
    assert done.code == 0, done.err
    assert "The false discovery rate measured on these" in " ".join(done.out.split())
    folder = here / "small-sobolev"
    names = {path.name for path in folder.iterdir()}
    assert names == {"selection.csv", "result.json", "report.html"}
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["audit"]["verdict"].rstrip(".") in result["headline"]
    assert result["settings"]["command"].count("--audit") == 1
    assert "True" not in result["settings"]["command"]
    assert '<section id="audit">' in (folder / "report.html").read_text(encoding="utf-8")


def test_select_uses_the_alternative_that_passes(run, small, here, broken):
    broken("residual", "gaussian")
    done = run("select", small, "-t", "y", "--audit", *SHORT)
    assert done.code == 0, done.err
    said = "and passed for gaussian (FDR 0.00), which is used."
    assert sum(said in line for line in done.err.splitlines()) == 1
    result = json.loads((here / "small-sobolev" / "result.json").read_text(encoding="utf-8"))
    assert result["settings"]["conditional"] == "gaussian"
    assert result["audit"]["passed"]
    assert any(said in words for words in result["warnings"])
    assert not list((here / "small-sobolev").glob("*.jsonl"))


def test_select_says_that_no_alternative_passes(run, small, broken):
    broken("residual")
    done = run("select", small, "-t", "y", "--audit", *SHORT, "--no-report", "--json")
    assert done.code == 0, done.err
    assert "so the level is not assured on this table." in done.err
    result = json.loads(done.out)
    assert "does NOT hold" in result["headline"]
    assert result["settings"]["conditional"] == "auto"


def test_without_a_target_missing_values_are_handled(run, frame, here):
    frame.loc[3, "x1"] = np.nan
    frame.iloc[:60][["x1", "x2", "x3", "y"]].to_csv(here / "gaps.csv", index=False)
    asked = ("audit", "gaps.csv", "--repeats", "1", *SHORT, "--no-report", "--json")
    assert "'x1' 1" in run(*asked, "--missing", "error").err
    for missing, rows in (("drop", 59), ("draw", 60)):
        done = run(*asked, "--missing", missing)
        assert json.loads(done.out)["data"]["rows"] == rows
