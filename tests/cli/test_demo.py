import pandas as pd
from typer.testing import CliRunner

from sobolev import __version__
from sobolev.cli import app


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert __version__ in result.output


def test_demo_puts_the_true_features_on_top_and_writes_the_report(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--rows", "400", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    table = pd.read_csv(tmp_path / "importances.csv")
    assert set(table["feature"][:6]) == {f"x{i}" for i in range(1, 7)}
    assert "6 of the 6" in result.output
    assert {"kind", "selected", "note"} <= set(table.columns)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_an_output_folder_that_cannot_be_made_is_one_line_and_exit_code_2(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    result = CliRunner().invoke(app, ["demo", "--rows", "60", "--out", str(blocked / "sub")])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
