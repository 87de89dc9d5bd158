"""A fit that does not fit in memory is refused before the work, with an estimate."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, _memory
from sobolev._memory import check_memory, fit_bytes, free_bytes


def test_the_estimate_grows_with_rows_columns_and_pairs():
    assert fit_bytes(2000, 50) > fit_bytes(1000, 50) > fit_bytes(1000, 20)
    assert fit_bytes(100, 5000, pairs=True) >= fit_bytes(100, 5000) + 8 * 5000**2
    assert fit_bytes(10**6, 10) >= 8 * 10**7  # no less than a copy of the table


def test_free_memory_is_positive_and_at_most_that_of_the_machine():
    free = free_bytes()
    if free is None:
        pytest.skip("this system does not say how much memory is free")
    assert 0 < free <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_container_limits_memory(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 100\ninactive_file 50\n")
    assert _memory._of_container(str(tmp_path)) == 350
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory._of_container(str(tmp_path)) is None


def test_only_a_fit_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(_memory, "free_bytes", lambda: 2**30)
    check_memory(1000, 100, pairs=True)
    with pytest.raises(MemoryError, match=r"50 rows and 20,000 columns needs about 2\d GiB .* 1 G"):
        check_memory(50, 20_000, pairs=True)
    monkeypatch.setattr(_memory, "free_bytes", lambda: None)
    check_memory(50, 20_000, pairs=True)


@pytest.mark.parametrize("selector", [ConvexSIC(), HRTSelector(), KnockoffSelector()])
def test_selectors_refuse_before_the_work(selector, monkeypatch):
    monkeypatch.setattr(_memory, "CHECKED_BYTES", 0)
    monkeypatch.setattr(_memory, "free_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match="needs about"):
        selector.fit(np.random.default_rng(0).standard_normal((30, 3)), np.arange(30.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_limit_of_a_process_is_met_by_a_message_not_by_the_kernel():
    resource = pytest.importorskip("resource")
    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not say how much memory a process has")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = b"no error"
        try:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, used + 2**30))
            X = np.random.default_rng(0).standard_normal((40, 9000))
            HRTSelector().fit(X, X[:, 0])
        except BaseException as error:
            said = repr(error).encode()
        os.write(write, said)
        os._exit(0)
    os.waitpid(child, 0)
    assert b"MemoryError('a fit to 40 rows and 9,000 columns needs about" in os.read(read, 1000)


def test_the_command_says_it_in_one_line(tmp_path, monkeypatch, capsys):
    from sobolev.cli import app

    rng = np.random.default_rng(0)
    pd.DataFrame(rng.standard_normal((30, 3)), columns=list("aby")).to_csv(
        tmp_path / "t.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_memory, "CHECKED_BYTES", 0)
    monkeypatch.setattr(_memory, "free_bytes", lambda: 20_000)
    assert app(["select", "t.csv", "--target", "y", "--quiet"], standalone_mode=False) == 2
    said = capsys.readouterr().err
    assert said.startswith("sobolev: a fit to 30 rows and 2 columns needs about")
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
