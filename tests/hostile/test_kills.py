"""Processes killed at random moments: what is on disk is whole, nothing is lost, work goes on."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.base import BaseEstimator

import sobolev.cli.running
from reproduction import ROOT, load_study
from reproduction.engine import read_records
from reproduction.pages import records_file
from sobolev import ConvexSIC, audit
from sobolev.cli import app
from sobolev.inference.audit_log import AuditLog
from sobolev.streaming import fit_stream
from sobolev.tables import read_table

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill")

# Kills of each program, in the fast suite and by ``make verify``.
KILLS = {"select": (4, 70), "audit": (4, 70), "files": (4, 40), "reproduction": (0, 20)}
slow = pytest.mark.slow


def n_kills(program):
    few, many = KILLS[program]
    return pytest.mark.parametrize("kills", [few, pytest.param(many, marks=slow)])


def started(work, folder):
    """Work in a process of its own, which has loaded everything already."""
    child = os.fork()
    if child:
        return child
    try:
        os.chdir(folder)
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (it lives as long as we)
        os._exit(work() or 0)
    except BaseException:
        os._exit(1)


def whole_run(work, folder):
    """Seconds that the work takes if it is left alone."""
    begin = time.perf_counter()
    assert os.waitpid(started(work, folder), 0)[1] == 0
    return time.perf_counter() - begin


def killed(work, folder, seconds):
    child = started(work, folder)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def command(*asked):
    return lambda: app(list(asked), standalone_mode=False)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcy"))
    frame["y"] += 2 * frame["a"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    return (tmp_path / "t.csv").read_bytes()


def visible(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@n_kills("select")
def test_select_is_killed(kills, tmp_path, table):
    ranking = command("rank", "t.csv", "--target", "y", "--out", "o", "--quiet")
    seconds, random_ = whole_run(ranking, tmp_path), random.Random(0)
    expected = (tmp_path / "o" / "selection.csv").read_bytes()
    for path in (tmp_path / "o").iterdir():
        path.unlink()
    for _ in range(kills):
        killed(ranking, tmp_path, random_.uniform(0, 1.2 * seconds))
        assert (tmp_path / "t.csv").read_bytes() == table
        names = visible(tmp_path / "o")
        assert not names or "result.json" in names
        if "result.json" in names:
            assert json.loads((tmp_path / "o" / "result.json").read_text())["features"]
        if "selection.csv" in names:
            assert (tmp_path / "o" / "selection.csv").read_bytes() == expected
        if "report.html" in names:
            assert (tmp_path / "o" / "report.html").read_text().rstrip().endswith("</html>")
        if len(names) == 3 and random_.random() < 0.5:
            for name in names:
                (tmp_path / "o" / name).unlink()
    whole_run(ranking, tmp_path)  # the same command goes on
    assert visible(tmp_path / "o") == ["report.html", "result.json", "selection.csv"]
    assert (tmp_path / "o" / "selection.csv").read_bytes() == expected


@pytest.mark.parametrize("written", [1, 2])
def test_a_folder_with_some_of_the_files_belongs_to_its_command(written, tmp_path, table):
    ranking = command("rank", "t.csv", "--target", "y", "--out", "o", "--quiet")
    whole_run(ranking, tmp_path)
    for name in ("report.html", "selection.csv")[: 3 - written]:
        (tmp_path / "o" / name).unlink()
    whole_run(ranking, tmp_path)
    assert visible(tmp_path / "o") == ["report.html", "result.json", "selection.csv"]


@n_kills("audit")
def test_audit_is_killed(kills, tmp_path, table):
    settings = ["--method", "knockoffs", "--repeats", "4", "--n-jobs", "1", "--quiet"]
    work = command("audit", "t.csv", "--target", "y", "--out", "o", *settings)
    seconds, random_ = whole_run(work, tmp_path), random.Random(0)
    result, log = tmp_path / "o" / "audit.json", tmp_path / "o" / "audit.jsonl"
    expected = json.loads(result.read_text())["audits"]
    for path in (tmp_path / "o").iterdir():
        path.unlink()
    kept = 0
    for _ in range(kills):
        killed(work, tmp_path, random_.uniform(0, 1.2 * seconds))
        if result.exists():  # it was done before the kill
            assert json.loads(result.read_text())["audits"] == expected
            for path in (tmp_path / "o").iterdir():
                path.unlink()
            kept = 0
        elif log.exists():
            head = json.loads(log.read_text().splitlines()[0])
            found = len(AuditLog(log, head["fingerprint"], None).runs)
            assert found >= kept
            kept = found
        else:
            assert not kept
    whole_run(work, tmp_path)
    assert visible(tmp_path / "o") == ["audit.json", "audit.png"]
    assert json.loads(result.read_text())["audits"] == expected


@n_kills("files")
def test_a_reader_in_chunks_and_a_writer_are_killed(kills, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((1000, 5)), columns=list("abcdy"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    before = (tmp_path / "t.csv").read_bytes()

    def reading():
        fit_stream(ConvexSIC(lam=0.1, random_state=0), "t.csv", "y", chunk_rows=200)

    writing = command("simulate", "sinexp", "--rows", "2000", "--out", "s.csv", "--overwrite")
    seconds = [whole_run(work, tmp_path) for work in (reading, writing)]
    simulated, random_ = (tmp_path / "s.csv").read_bytes(), random.Random(0)
    for number in range(kills):
        if number % 4 == 1:
            (tmp_path / "s.csv").unlink(missing_ok=True)
        work = (reading, writing)[number % 2]
        killed(work, tmp_path, random_.uniform(0, 1.2 * seconds[number % 2]))
        assert (tmp_path / "t.csv").read_bytes() == before
        if (tmp_path / "s.csv").exists():
            assert (tmp_path / "s.csv").read_bytes() == simulated
    whole_run(reading, tmp_path)
    whole_run(writing, tmp_path)
    assert len(read_table(tmp_path / "s.csv")) == 2000


@slow
def test_the_reproduction_is_killed(tmp_path):
    pytest.importorskip("torch")
    asked = [sys.executable, "-m", "reproduction", "sinexp", "--quick", "--n-jobs", "1"]
    path, random_ = records_file(tmp_path, "sinexp"), random.Random(0)
    n_tasks, kept = len(load_study("sinexp").tasks(quick=True)), 0
    begin, first = time.perf_counter(), None
    for _ in range(KILLS["reproduction"][1]):
        process = subprocess.Popen(
            [*asked, "--out", str(tmp_path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
        )
        if first is None:
            while not (path.exists() and read_records(path)):
                assert process.poll() is None
                time.sleep(0.1)
            first = time.perf_counter() - begin  # seconds to the first record
        else:
            time.sleep(random_.uniform(0, 1.5 * first))
        process.kill()
        process.wait()
        found = len(read_records(path)) if path.exists() else 0
        assert max(1, kept) <= found <= n_tasks  # nothing lost, nothing twice
        kept = found


def test_verify_kills_often_enough():
    assert sum(many for _, many in KILLS.values()) >= 200


# -- killed workers ------------------------------------------------------------------------------


class Mortal(BaseEstimator):
    """A selector whose process is killed in a fit."""

    fdr = 0.1

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)

    def get_support(self):
        raise NotImplementedError


def test_a_killed_worker_ends_the_audit_with_an_error():
    X = np.random.default_rng(0).standard_normal((40, 3))
    with pytest.raises(TerminatedWorkerError, match="terminated"):
        audit(Mortal(), X, fdr=0.1, n_repeats=2, n_jobs=2, random_state=0)


def test_a_killed_worker_is_one_line_of_the_command(tmp_path, table, monkeypatch, capsys):
    def die(*arguments, **options):
        raise TerminatedWorkerError("A worker process was unexpectedly terminated.\nMore lines.")

    monkeypatch.setattr(sobolev.cli.running, "audit_and_choose", die)
    monkeypatch.chdir(tmp_path)
    code = app(["audit", "t.csv", "--target", "y", "--quiet"], standalone_mode=False)
    assert code == 2
    said = capsys.readouterr().err
    assert said.startswith("sobolev: a worker process was killed")
    assert said.count("\n") == 1
    assert visible(tmp_path) == ["t.csv"]
