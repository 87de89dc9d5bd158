"""Tasks: nothing is lost, nothing is repeated, and nothing depends on how they are run."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from reproduction import ROOT
from reproduction.engine import (
    Task,
    append_record,
    blas_name,
    forget,
    n_cores,
    perform,
    read_records,
    record_key,
    run_tasks,
)
from reproduction.progress import Bar
from sobolev import __version__

TASKS = [Task("tiny", {"k": k, "name": "a"}, seed) for seed in range(3) for k in (1, 2)]


def measure(settings, seed):
    """Cheap, but with a product whose last digits depend on the threads of BLAS."""
    A = np.random.default_rng(seed).standard_normal((300, 300))
    return {"value": float(np.linalg.norm(A @ A.T) * settings["k"])}


def failing(settings, seed):
    if seed == 2:
        raise ValueError("no such luck")
    return {"value": seed}


def counted(path):
    """A measure that leaves a trace of every call."""

    def measure(settings, seed):
        with path.open("a") as file:
            file.write("x")
        return {"value": seed}

    return measure


def results(path):
    return {record_key(record): record["result"] for record in read_records(path)}


def test_a_record_says_what_was_measured_on_what():
    record = perform(measure, TASKS[3])
    assert record["version"] == __version__
    assert record["experiment"] == "tiny"
    assert record["settings"] == {"k": 2, "name": "a"}
    assert record["seed"] == 1
    assert record["seconds"] >= 0
    assert record["cores"] == n_cores() >= 1
    assert record["blas"] == blas_name() != "unknown"
    assert record_key(record) == TASKS[3].key
    text = json.dumps(record)
    assert os.sep not in text
    assert os.uname().nodename not in text


def test_keys_tell_tasks_apart_and_ignore_the_order_of_settings():
    assert len({task.key for task in TASKS}) == len(TASKS)
    assert Task("tiny", {"name": "a", "k": 1}, 0).key == TASKS[0].key
    assert Task("other", {"k": 1, "name": "a"}, 0).key != TASKS[0].key


def test_finished_tasks_are_not_run_again(tmp_path):
    path, trace = tmp_path / "data" / "tiny.jsonl", tmp_path / "trace"
    assert run_tasks(counted(trace), TASKS[:4], path) == 4
    assert run_tasks(counted(trace), TASKS, path) == 2
    assert run_tasks(counted(trace), TASKS, path) == 0
    assert trace.read_text() == 6 * "x"
    assert [record_key(record) for record in read_records(path)] == [task.key for task in TASKS]


def test_records_of_another_version_do_not_count(tmp_path):
    path = tmp_path / "tiny.jsonl"
    append_record(path, perform(measure, TASKS[0]) | {"version": "0.0.1"})
    assert run_tasks(measure, TASKS[:1], path) == 1
    assert len(read_records(path)) == 2


def test_half_a_line_is_skipped_and_its_task_is_run_again(tmp_path):
    path = tmp_path / "tiny.jsonl"
    run_tasks(measure, TASKS, path)
    whole = results(path)
    content = path.read_bytes()
    for cut in (1, 2, 40, len(content.splitlines()[-1])):
        path.write_bytes(content[:-cut])
        n_missing = 0 if cut == 1 else 1  # without its newline alone the line is complete
        assert len(read_records(path)) == len(TASKS) - n_missing
        assert run_tasks(measure, TASKS, path) == n_missing
        assert results(path) == whole


@pytest.mark.parametrize("line", ["", "null", "[1]", '{"version": "1"}', "\x00", '"text"'])
def test_lines_that_are_no_records_are_skipped(tmp_path, line):
    path = tmp_path / "tiny.jsonl"
    path.write_text(f"{line}\n")
    append_record(path, perform(measure, TASKS[0]))
    assert len(read_records(path)) == 1


def test_the_first_record_of_a_task_stays(tmp_path):
    path = tmp_path / "tiny.jsonl"
    record = perform(measure, TASKS[0])
    append_record(path, record)
    append_record(path, record | {"result": {"value": 0.0}})
    assert read_records(path) == [record]


def test_a_task_that_lacked_something_is_run_again(tmp_path):
    path = tmp_path / "tiny.jsonl"
    run_tasks(lambda settings, seed: {"missing": "a package"}, TASKS[:2], path)
    assert [record["result"] for record in read_records(path)] == [{"missing": "a package"}] * 2
    assert run_tasks(measure, TASKS[:2], path) == 2
    assert run_tasks(measure, TASKS[:2], path) == 0
    assert all("value" in record["result"] for record in read_records(path))


def test_a_result_may_bring_its_own_time():
    record = perform(lambda settings, seed: {"value": 1, "seconds": 7.5}, TASKS[0])
    assert record["seconds"] == 7.5
    assert record["result"] == {"value": 1}


def test_what_is_forgotten_is_run_again(tmp_path):
    path = tmp_path / "tiny.jsonl"
    run_tasks(measure, TASKS, path)
    forget(path, TASKS[:2])
    assert [record_key(record) for record in read_records(path)] == [t.key for t in TASKS[2:]]
    assert run_tasks(measure, TASKS, path) == 2
    forget(tmp_path / "none.jsonl", TASKS)
    assert not (tmp_path / "none.jsonl").exists()


def test_numbers_that_json_lacks_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        append_record(tmp_path / "tiny.jsonl", {"value": float("nan")})
    assert not read_records(tmp_path / "tiny.jsonl")


def test_what_was_finished_before_an_error_is_kept(tmp_path):
    path = tmp_path / "tiny.jsonl"
    with pytest.raises(ValueError, match="no such luck"):
        run_tasks(failing, TASKS, path)
    assert len(read_records(path)) == 4


TINY = """
import os, sys, time
from pathlib import Path
from reproduction.engine import Task, run_tasks
import numpy as np

TASKS = [Task("tiny", {"k": k}, seed) for seed in range(6) for k in (1, 2)]

def measure(settings, seed):
    with open("workers", "a") as file:
        file.write(f"{os.getpid()} ")
    time.sleep(float(os.environ["TINY_SLEEP"]) * (1 if seed < 2 else 200))
    A = np.random.default_rng(seed).standard_normal((300, 300))
    return {"value": float(np.linalg.norm(A @ A.T) * settings["k"])}

if __name__ == "__main__":
    import tiny
    run_tasks(tiny.measure, TASKS, Path(sys.argv[1]), n_jobs=2)
"""
TINY_TASKS = [Task("tiny", {"k": k}, seed) for seed in range(6) for k in (1, 2)]


@pytest.fixture
def start(tmp_path):
    """Start the tiny experiment in two processes, with BLAS threads that must be held back."""
    (tmp_path / "tiny.py").write_text(TINY)
    variables = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    paths = [str(tmp_path), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables |= {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "2"}

    def call(name, sleep=0.0):
        arguments = [sys.executable, "tiny.py", tmp_path / f"{name}.jsonl"]
        environment = variables | {"TINY_SLEEP": str(sleep)}
        return subprocess.Popen(arguments, env=environment, cwd=tmp_path, stderr=subprocess.PIPE)

    return call


@pytest.fixture
def whole(tmp_path):
    """The records of the tiny experiment in one process, this one."""
    path = tmp_path / "whole.jsonl"
    run_tasks(measure, TINY_TASKS, path, n_jobs=1)
    return results(path)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_processes_do_not_change_the_records(start, tmp_path, whole):
    process = start("two")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert results(tmp_path / "two.jsonl") == whole
    workers = (tmp_path / "workers").read_text().split()
    assert str(process.pid) not in workers  # others did the work


def test_a_killed_run_goes_on_to_the_same_records(start, tmp_path, whole):
    path = tmp_path / "killed.jsonl"
    process = start("killed", sleep=0.25)
    wait_for(lambda: len(read_records(path)) >= 3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    before = results(path)
    assert len(before) < 12
    if os.path.isdir("/proc/self"):  # the workers do not live on
        workers = set((tmp_path / "workers").read_text().split())
        wait_for(lambda: not any(is_alive(pid) for pid in workers), seconds=25)
    run = start("killed")
    _, errors = run.communicate(timeout=120)
    assert run.returncode == 0, errors
    assert before.items() <= results(path).items()
    assert results(path) == whole
    assert len(path.read_text().splitlines()) == 12  # nothing was run twice


def test_off_a_terminal_nothing_is_shown(tmp_path, capsys):
    with Bar("tiny") as bar:
        run_tasks(measure, TASKS[:2], tmp_path / "tiny.jsonl", step=bar.step)
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


def test_a_terminal_sees_the_tasks_and_the_time_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Bar("tiny") as bar:
        bar.begin -= 100.0
        bar.step(1, 4)
        bar.bar.refresh()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "tiny" in shown.err
    assert "1/4" in shown.err
    assert "5 min left" in shown.err


def test_steps_count_what_is_missing(tmp_path):
    heard = []
    path = tmp_path / "tiny.jsonl"
    run_tasks(measure, TASKS[:2], path)
    run_tasks(measure, TASKS[:4], path, step=lambda done, total: heard.append((done, total)))
    assert heard == [(0, 2), (1, 2), (2, 2)]
