"""Small files that hold huge tables, fields without end, and disks without space."""

import csv
import errno
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sobolev import _memory
from sobolev.cli import app
from sobolev.inference.audit_log import AuditLog
from sobolev.tables import read_table
from tests.hostile.inputs import PACKERS, arrow_bytes


@pytest.fixture
def little_memory(monkeypatch):
    """1 MiB of free memory, and every table is compared with it."""
    monkeypatch.setattr(_memory, "CHECKED_BYTES", 0)
    monkeypatch.setattr(_memory, "free_bytes", lambda: 1 << 20)


@pytest.mark.parametrize("packed", sorted(PACKERS))
def test_an_archive_that_unpacks_to_more_than_the_memory(packed, tmp_path, little_memory):
    path = tmp_path / f"t.csv{packed}"
    path.write_bytes(PACKERS[packed](b"a,y\n" + b"1,2\n" * (1 << 19)))
    if packed:
        assert path.stat().st_size < 1 << 14
    with pytest.raises(MemoryError, match=r"about 0\.002 GiB, but 0\.00098 GiB"):
        read_table(path)


def test_a_parquet_file_of_one_value_many_times(tmp_path, little_memory):
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    path.write_bytes(arrow_bytes(pd.DataFrame({"a": np.zeros(200_000), "y": 1.0}), ".parquet"))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(MemoryError, match=r"about 0\.003 GiB"):
        read_table(path)
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    with pytest.raises(MemoryError, match="holds a table"):
        read_table(path.rename(tmp_path / "t.parquet.gz"))


@pytest.mark.parametrize("field", ["x" * 200_000, '"' + "x,\n" * 100_000, "9" * 150_000])
def test_a_field_without_end(field, tmp_path):
    (tmp_path / "t.csv").write_text(f"a,y\n1,2\n{field},3\n")
    before = csv.field_size_limit(131_072)  # the default, which other packages raise
    try:
        with pytest.raises(ValueError, match=r"'t\.csv' cannot be split into columns"):
            read_table(tmp_path / "t.csv")
    finally:
        csv.field_size_limit(before)


def test_a_disk_that_is_full_during_an_audit_keeps_what_is_done(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=list("aby"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    command = ["audit", "t.csv", "--target", "y", "--method", "knockoffs", "--repeats", "3"]
    command += ["--n-jobs", "1", "--quiet", "--out", "o"]
    add = AuditLog.add

    def full(log, run):
        if len(log.runs) == 2:
            with log.path.open("a") as file:
                file.write('{"number": 2, "ki')  # as much as there was space for
            raise OSError(errno.ENOSPC, "No space left on device", str(log.path))
        add(log, run)

    with monkeypatch.context() as patched:
        patched.setattr(AuditLog, "add", full)
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert done.stderr.startswith("sobolev: No space left on device")
    assert done.stderr.count("\n") == 1
    runs = []
    monkeypatch.setattr(AuditLog, "add", lambda log, run: (runs.append(run.number), add(log, run)))
    assert CliRunner().invoke(app, command).exit_code == 0
    assert runs == [2]  # the others were kept
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == ["audit.json", "audit.png"]
    assert len(json.loads((tmp_path / "o" / "audit.json").read_text())["audits"][0]["runs"]) == 3
