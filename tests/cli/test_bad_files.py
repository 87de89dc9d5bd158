"""Bad files and folders: one line on standard error, exit code 2, nothing half-written."""

import errno
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

GOOD = "a,b,y\n" + "".join(f"{i % 7}.5,{(i * i) % 11},{i % 5}.25\n" for i in range(30))
CASES = {
    "empty": ("", "is empty"),
    "header only": ("a,b,y\n", "header but no rows"),
    "ragged": (GOOD + "1,2\n", "line 32 of 't.csv' has 2 fields"),
    "long row": (GOOD + "1,2,3,4\n", "line 32 of 't.csv' has 4 fields"),
    "duplicates": (GOOD.replace("a,b", "a,a"), "several columns named 'a'"),
    "no target": (GOOD.replace("y", "z"), "no column 'y'"),
    "text": (GOOD + "low,2,3\n", "column 'a' holds numbers in 30 of 31 rows, but 'low' in 1"),
    "infinite": (GOOD + "inf,2,3\n", "column 'a' holds infinity in 1 of 31 rows"),
    "encoding": (GOOD.replace("b", "größe").encode("latin-1"), "--encoding latin-1"),
    "binary": (b"\x00\x01\x02" * 50, "is not text"),
    "one column": ("y\n1\n2\n3\n", "no column is left"),
    "few rows": ("a,y\n1.5,1\n2.5,2\n", "2"),
}


def errors(done):
    """The lines on standard error, without the one that says how y was read."""
    return [line for line in done.err.strip().splitlines() if " was read as " not in line]


def check(done, here, message, before=("t.csv",)):
    assert done.code == 2
    assert message in done.err
    assert len(errors(done)) == 1
    assert errors(done)[0].startswith("sobolev: ")
    assert done.out == ""
    assert sorted(path.name for path in here.iterdir()) == sorted(before)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", ["select", "rank"])
def test_bad_text(run, here, case, command):
    content, message = CASES[case]
    (here / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    check(run(command, "t.csv", "--target", "y"), here, message)


def test_the_same_for_the_test_of_independence(run, here):
    for content, message in (CASES["ragged"], CASES["text"]):
        (here / "t.csv").write_text(content)
        check(run("test", "t.csv", "--y", "y"), here, message)


def test_no_file_and_a_folder(run, here):
    (here / "folder.csv").mkdir()
    check(run("select", "folder.csv", "-t", "y"), here, "is a folder", ["folder.csv"])
    check(run("select", "no.csv", "-t", "y"), here, "there is no file 'no.csv'", ["folder.csv"])


def test_a_truncated_parquet(run, here):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=list("aby"))
    frame.to_parquet(here / "t.parquet")
    whole = (here / "t.parquet").read_bytes()
    (here / "t.parquet").write_bytes(whole[:-300])
    check(run("select", "t.parquet", "-t", "y"), here, "cut short", ["t.parquet"])


@pytest.fixture
def good(here):
    (here / "t.csv").write_text(GOOD)
    return "t.csv"


def test_out_is_a_file(run, here, good):
    (here / "o").write_text("mine")
    check(run("rank", good, "-t", "y", "--out", "o"), here, "is a file", ["t.csv", "o"])
    check(run("rank", good, "-t", "y", "--out", "o/sub"), here, "", ["t.csv", "o"])
    assert (here / "o").read_text() == "mine"


def test_no_permission_to_write(run, here, good, monkeypatch):
    locked = here / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    if os.geteuid() == 0:  # root may write anywhere: the system is asked, so let it say no
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked)
    done = run("rank", good, "-t", "y", "--out", locked / "o")
    check(done, here, "no permission to write to", ["t.csv", "locked"])
    assert list(locked.iterdir()) == []


def test_permission_is_lost_on_the_way(run, here, good, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied", str(here / "o"))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    check(run("rank", good, "-t", "y", "--out", "o"), here, "Permission denied: ")


@pytest.mark.parametrize("name", ["selection.csv", "result.json", "report.html"])
def test_the_disk_is_full_at_any_file(run, here, good, monkeypatch, name):
    replace = os.replace

    def full(source, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    check(run("rank", good, "-t", "y", "--out", "deep/o"), here, "No space left on device")


def test_a_full_disk_leaves_the_results_of_the_last_run(run, here, good, monkeypatch):
    assert run("rank", good, "-t", "y", "--out", "o").code == 0
    before = {path.name: path.read_bytes() for path in (here / "o").iterdir()}
    replace = os.replace

    def full(source, target):
        if Path(target).name == "report.html":
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    assert "No space" in run("rank", good, "-t", "y", "--out", "o").err
    assert {path.name: path.read_bytes() for path in (here / "o").iterdir()} == before


def test_a_small_disk(run, here, good):
    disk = here / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no right to mount a small disk; the full disk is faked above")
    try:
        done = run("rank", good, "-t", "y", "--out", disk / "o")
        assert done.code == 2
        assert "No space left on device" in done.err
        assert len(errors(done)) == 1
        assert list(disk.iterdir()) == []
        assert run("simulate", "sinexp", "--out", disk / "x.csv").code == 2
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_results_of_another_run_or_file_are_never_replaced(run, here, good):
    first = run("rank", good, "-t", "y")
    assert first.code == 0
    assert "t-sobolev/report.html" in first.err
    result = (here / "t-sobolev" / "result.json").read_bytes()
    assert "t-sobolev-2/report.html" in run("rank", good, "-t", "y", "--seed", "1").err
    pd.read_csv(good).to_parquet(here / "t.parquet")
    assert "t-sobolev-3/report.html" in run("rank", "t.parquet", "-t", "y").err
    assert "t-sobolev-2/report.html" in run("rank", good, "-t", "y", "--seed", "1").err  # the same
    refused = run("rank", good, "-t", "y", "--seed", "2", "--out", "t-sobolev")
    assert refused.code == 2
    assert "'t-sobolev' holds results of another run (sobolev rank t.csv" in refused.err
    assert (here / "t-sobolev" / "result.json").read_bytes() == result
    assert run("rank", good, "-t", "y", "--out", "t-sobolev").code == 0
    (here / "u-sobolev").mkdir()
    (here / "u-sobolev" / "report.html").write_text("mine")
    (here / "t.csv").rename(here / "u.csv")
    assert "u-sobolev-2/report.html" in run("rank", "u.csv", "-t", "y").err
    assert (here / "u-sobolev" / "report.html").read_text() == "mine"
