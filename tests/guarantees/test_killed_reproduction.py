"""A quick run that is killed in the middle and run again ends in the same tables."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from reproduction import PAPER, ROOT, load_study
from reproduction.engine import read_records
from reproduction.pages import records_file

pytestmark = pytest.mark.slow


def start(name, folder):
    command = [sys.executable, "-m", "reproduction", name, "--quick", "--n-jobs", "2"]
    return subprocess.Popen(
        [*command, "--out", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )


def tables(name, folder):
    """The page up to its times."""
    text = (folder / f"{name}.md").read_text()
    assert "\n## How to repeat it\n" in text
    return re.split(r"\n## (?:Time|How to repeat it)\n", text)[0]


def results(name, folder):
    lines = read_records(records_file(folder, name))
    return {(r["seed"], str(r["settings"])): r["result"] for r in lines}


@pytest.mark.parametrize("name", PAPER)
def test_a_killed_quick_run_ends_in_the_same_tables(name, tmp_path):
    pytest.importorskip("torch")
    if name in ("plx4720", "hiv") and not os.environ.get("SOBOLEV_DATA_HOME"):
        pytest.skip("SOBOLEV_DATA_HOME is not set")
    assert start(name, tmp_path / "whole").wait() == 0

    n_tasks = len(load_study(name).tasks(quick=True))
    kept = 0
    for share in (0.2, 0.6):  # killed twice
        process = start(name, tmp_path / "killed")
        while len(results(name, tmp_path / "killed")) < share * n_tasks:
            assert process.poll() is None
            time.sleep(0.2)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        found = len(results(name, tmp_path / "killed"))
        assert kept < found < n_tasks
        kept = found
    assert start(name, tmp_path / "killed").wait() == 0

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert len(records_file(killed, name).read_text().splitlines()) == n_tasks  # none twice
    assert results(name, killed) == results(name, whole)
    assert tables(name, killed) == tables(name, whole)
