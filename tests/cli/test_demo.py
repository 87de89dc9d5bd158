import json
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd

from sobolev import __version__
from sobolev._numbers import shown_pvalue
from sobolev.demo import own_command

QUICK = ("--repeats", 2)


def test_version(run):
    result = run("--version")
    assert result.code == 0
    assert __version__ in result.out


def test_the_demo_shows_everything_it_promises(here, run):
    result = run("demo", *QUICK)
    assert result.code == 0, result.err
    table = pd.read_csv(here / "sobolev-demo" / "selection.csv")
    truth = {f"x{i}" for i in range(1, 7)}
    assert truth <= set(table.loc[table["selected"], "feature"])
    for words in ("importance", "selected", "truth", "matters", "noise", "6 of the 6"):
        assert words in " ".join(result.out.split())
    found = json.loads((here / "sobolev-demo" / "result.json").read_text(encoding="utf-8"))
    first = found["features"][0]
    assert shown_pvalue(first["pvalue"]) in result.out
    assert shown_pvalue(first["qvalue"]) in result.out
    assert found["fdr"] == 0.1
    assert len(found["audit"]["runs"]) == 2
    assert "Audit: The false discovery rate measured on these columns" in result.out
    assert "sobolev-demo/report.html" in result.out
    page = (here / "sobolev-demo" / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert f"{own_command()} select FILE.csv --target COLUMN" in result.out


def test_the_demo_is_what_select_does_on_its_file(here, run):
    assert run("demo", *QUICK, "--rows", 120, "--out", "demo").code == 0
    again = run("select", "demo/sinexp.csv", "--target", "y", "--out", "again")
    assert again.code == 0, again.err
    demo, own = (pd.read_csv(here / name / "selection.csv") for name in ("demo", "again"))
    np.testing.assert_allclose(demo["pvalue"], own["pvalue"])
    assert list(demo["feature"]) == list(own["feature"])


def test_the_real_demo_reads_a_table_with_plain_names(here, run):
    result = run("demo", "--real", *QUICK)
    assert result.code == 0, result.err
    table = pd.read_csv(here / "sobolev-demo" / "selection.csv").set_index("feature")
    assert table.loc["body mass index", "selected"]
    assert not table.loc["age", "selected"]
    page = (here / "sobolev-demo" / "report.html").read_text(encoding="utf-8")
    assert "measure the level" not in result.err + page  # the demo audits
    assert "truth" not in result.out.replace("nobody knows the truth", "")
    assert pd.read_csv(here / "sobolev-demo" / "diabetes.csv").shape == (442, 11)


def test_another_demo_does_not_replace_the_first(here, run):
    assert run("demo", "--rows", 60, "--repeats", 1).code == 0
    before = (here / "sobolev-demo" / "result.json").read_bytes()
    assert run("demo", "--rows", 61, "--repeats", 1).code == 0
    assert (here / "sobolev-demo" / "result.json").read_bytes() == before
    assert (here / "sobolev-demo-2" / "report.html").exists()


def test_an_output_folder_that_cannot_be_made_is_one_line_and_exit_code_2(here, run):
    (here / "file").write_text("")
    result = run("demo", "--rows", 60, "--out", here / "file" / "sub")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1


def test_the_next_command_runs_as_it_is_printed():
    called = subprocess.run(
        [*shlex.split(own_command()), "--version"], capture_output=True, text=True, check=True
    )
    assert called.stdout.startswith("sobolev ")


def test_the_next_command_is_short_where_it_can_be(tmp_path, monkeypatch):
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    script = scripts / ("sobolev.exe" if sys.platform == "win32" else "sobolev")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(scripts))
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert own_command() == shlex.join([sys.executable, "-m", "sobolev"])
    script.write_text("")
    assert own_command() == shlex.quote(str(script))
    monkeypatch.chdir(tmp_path)
    assert own_command() == str(script.relative_to(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: str(script))
    assert own_command() == "sobolev"
