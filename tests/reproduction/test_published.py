"""The published pages are those that the published records give, word for word."""

import shutil

import pytest

from reproduction import BENCH, PAPER, ROOT, load_study, pages
from reproduction.paper import rates


def section(path, name):
    """What stands between the markers of a file."""
    text = path.read_text()
    return text.split(f"<!-- {name}:start -->\n")[1].split(f"\n<!-- {name}:end -->")[0]


@pytest.mark.parametrize("name", [*BENCH, "hrt"])
def test_tables_of_benchmarks(name):
    study = load_study(name)
    rows = pages.rows_of(name)
    if not rows:
        pytest.skip(f"{name} has not been run yet")
    assert study.render(rows).strip() == section(ROOT / "reproduction" / "RESULTS.md", name)
    quoted = study.quoted(rows) if hasattr(study, "quoted") else {}
    for (file, place), text in quoted.items():
        assert text.strip() == section(ROOT / file, place)


def test_evidence_of_the_readme():
    assert pages.evidence().strip() == section(ROOT / "README.md", "evidence")


@pytest.mark.parametrize("name", PAPER)
def test_pages_of_experiments(name, tmp_path, monkeypatch):
    published = pages.home(name)
    shutil.copytree(published, tmp_path / "results")
    # The pictures of the folder are there already.
    monkeypatch.setattr(rates, "draw_rates", lambda *_: None)
    monkeypatch.setattr("reproduction.paper.hiv_page._draw", lambda *_: None)
    monkeypatch.setattr("reproduction.paper.plx4720_page._draw", lambda *_: None)
    assert pages.write(name, tmp_path / "results") == (published / f"{name}.md").read_text()
    assert (tmp_path / "results" / "index.md").read_text() == (published / "index.md").read_text()
