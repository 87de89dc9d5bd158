import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import sobolev
from sobolev.datasets import make_sinexp


def command(*arguments, **options):
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run([sys.executable, "-m", "sobolev", *arguments], **options)


@pytest.mark.parametrize("arguments", [["--help"], ["select", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\nfrom sobolev.cli import main\n"
        f"sys.argv = ['sobolev', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'sklearn', 'torch', 'matplotlib', 'joblib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "sobolev" in done.stdout


def test_every_option_is_explained(run):
    names = ["select", "rank", "test", "simulate", "doctor", "demo"]
    listed = run("--help").out
    for name in names:
        assert f"\n  {name} " in listed
        text = run(name, "--help").out
        assert "Example: " in text or name in ("doctor", "demo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["selct"], "No such command"),
        (["select"], "Missing"),
        (["select", "t.csv"], "--target"),
        (["select", "t.csv", "-t", "y", "--method", "magic"], "magic"),
        (["select", "t.csv", "-t", "y", "--fdr", "much"], "--fdr"),
        (["rank", "t.csv", "-t", "y", "--nothing"], "--nothing"),
        (["select", "t.csv", "-t", "y"], "there is no file 't.csv'"),
    ],
)
def test_wrong_usage_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    from sobolev.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["sobolev", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert len(written.err.strip().splitlines()) == 1
    assert written.err.startswith("sobolev: ")
    assert message in written.err


def test_the_test_of_independence(run, table):
    done = run("test", table, "--x", "x1,x2", "--y", "y", "--permutations", "199")
    assert done.code == 0, done.err
    assert done.out.startswith("p ≤ 0.005: y depends on the 2 features.")
    done = run("test", table, "--x", "x*", "--y", "y", "--json", "--permutations", "99")
    result = json.loads(done.out)
    assert result["pvalue"] == 0.01
    assert result["x"] == ["x1", "x2", "x3", "x4"]
    assert result["importances"][0]["feature"] in ("x1", "x2")
    done = run("test", table, "--y", "y", "--exclude", "x1,x2,site", "--permutations", "99")
    assert "no sign that y depends on the 2 features" in done.out
    done = run("test", table, "--y", "site", "--x", "y,x1", "--json", "--permutations", "99")
    assert json.loads(done.out)["y"] == ["site"]


def test_blocks_of_the_test(run, frame, here):
    rng = np.random.default_rng(0)
    batch = np.repeat(["p", "q"], 50)
    shift = 3.0 * (batch == "q")
    mixed = pd.DataFrame(
        {"batch": batch, "u": shift + rng.normal(size=100), "v": shift + rng.normal(size=100)}
    )
    mixed.to_csv(here / "t.csv", index=False)
    common = ("test", "t.csv", "--x", "u", "--y", "v", "--json", "--permutations", "199")
    assert json.loads(run(*common).out)["pvalue"] < 0.01
    assert json.loads(run(*common, "--blocks", "batch").out)["pvalue"] > 0.05
    assert run(*common, "--blocks", "bach").code == 2


@pytest.mark.parametrize("name", ["sinexp", "liang", "xor", "sine-radius"])
def test_simulations_are_those_of_the_package(run, here, name):
    done = run("simulate", name, "--rows", "20", "--seed", "3", "--out", "t.csv")
    assert done.code == 0, done.err
    read = pd.read_csv(here / "t.csv")
    assert read.shape[0] == 20
    assert list(read.columns)[-1] == "y"
    if name == "sinexp":
        made = make_sinexp(20, random_state=3)
        np.testing.assert_allclose(read.drop(columns="y"), made.data)
        np.testing.assert_allclose(read["y"], made.target)
        assert "x1, x2, x3, x4, x5, x6" in done.out
    refused = run("simulate", name, "--out", "t.csv")
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert len(pd.read_csv(here / "t.csv")) == 20
    assert run("simulate", name, "--rows", "9", "--out", "t.csv", "--overwrite").code == 0
    assert len(pd.read_csv(here / "t.csv")) == 9


def test_simulation_by_suffix_and_its_mistakes(run, here):
    assert run("simulate", "xor", "--rows", "9", "--columns", "3", "--out", "t.tsv.gz").code == 0
    assert pd.read_csv(here / "t.tsv.gz", sep="\t").shape == (9, 4)
    for out in ("t.xlsx", "t", "t.csv.zip"):
        assert run("simulate", "xor", "--out", out).code == 2
    assert run("simulate", "sinexp", "--columns", "3", "--out", "u.csv").code == 2
    assert sorted(path.name for path in here.iterdir()) == ["t.tsv.gz"]
    pytest.importorskip("pyarrow")
    assert run("simulate", "xor", "--rows", "9", "--out", "t.parquet").code == 0
    assert len(pd.read_parquet(here / "t.parquet")) == 9


def test_doctor(run):
    done = run("doctor")
    assert done.code == 0
    assert f"numpy          {np.__version__}" in done.out
    found = json.loads(run("doctor", "--json").out)
    assert found["versions"]["numpy"] == np.__version__
    assert found["cores"] >= 1
    assert any(pool["kind"] == "blas" for pool in found["threads"])


def test_show_versions_is_the_doctor_in_python(run, capsys):
    sobolev.show_versions()
    assert capsys.readouterr().out == run("doctor").out


def test_completion_offers_commands_and_choices():
    environment = os.environ | {"_SOBOLEV_COMPLETE": "complete_bash"}
    code = (
        "import sys\nsys.argv[0] = 'sobolev'\nfrom sobolev.cli import app\napp(prog_name='sobolev')"
    )

    def offered(words):
        extra = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | extra,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.split()

    assert {"select", "simulate"} <= set(offered("sobolev s"))
    assert offered("sobolev select --method k") == ["knockoffs"]


def test_a_pipe_that_closes_early_is_no_traceback(table, here):
    done = subprocess.run(
        f"{sys.executable} -m sobolev rank {table} -t y --no-report -q | head -n 0",
        shell=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr


def test_progress_shows_on_a_terminal_only_and_ctrl_c_ends_with_130(here):
    X, y = make_sinexp(400, 40, random_state=0, as_frame=True, return_X_y=True)
    X.assign(y=y).to_csv(here / "t.csv", index=False)
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sobolev", "select", "t.csv", "-t", "y", "--draws", "20"],
        stdout=subprocess.PIPE,
        stderr=side,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(side)
    seen, begin = b"", time.monotonic()
    while b" left" not in seen and time.monotonic() - begin < 90:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    while select.select([terminal], [], [], 60)[0]:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
    out, _ = process.communicate(timeout=60)
    os.close(terminal)
    assert process.returncode == 130, seen
    assert b"reading" in seen
    assert b"left" in seen
    assert b"interrupted before the tests were done" in seen
    assert b"Traceback" not in seen
    assert out == b""
    result = json.loads((here / "t-sobolev" / "result.json").read_text(encoding="utf-8"))
    kept = result["data"].get("partial") or result["settings"]["n_repeats"] < 20
    assert kept
    assert sorted(p.name for p in (here / "t-sobolev").iterdir()) == [
        "report.html",
        "result.json",
        "selection.csv",
    ]


def test_imports_are_not_searched_for_garbage_and_collection_goes_on_afterwards():
    import gc

    from sobolev.cli.loading import loading

    with loading():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
