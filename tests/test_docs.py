"""Every Python block of README and docs runs, page by page, and so does every example."""

import re
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in PAGES if BLOCK.search(page.read_text())]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What a reader has at hand: a table of cells, a response, and the patient of each row."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.standard_normal((120, 8)),
        columns=["dose", "age", "red", "green", "blue", "site_lung", "site_skin", "site_bone"],
    )
    y = table["dose"] + table["age"] * table["red"] + rng.standard_normal(120)
    table.assign(response=y).to_csv("cells.csv", index=False)
    patients = table[["dose", "age"]].assign(
        visit_no=np.arange(120),
        ward=rng.integers(1, 4, 120),
        comment=[f"case {k}" for k in range(120)],
        outcome=rng.choice(["good", "bad"], 120),
    )
    patients.where(rng.random(patients.shape) > 0.03).to_csv("patients.csv", index=False)
    sic = ConvexSIC(lam=0.03).fit(table, y)
    patient = np.repeat(np.arange(30), 4)
    given = {"X": table, "table": table, "y": y, "patient": patient, "sic": sic, "X_new": table}
    return given | {"pd": pd, "np": np}


@pytest.fixture
def plt():
    """Pictures that nobody sees."""
    with matplotlib.rc_context({"backend": "Agg", "figure.max_open_warning": 0}):
        import matplotlib.pyplot as plt

        yield plt
        plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
@pytest.mark.filterwarnings("ignore")
def test_every_block_runs(page, names, plt):
    for block in BLOCK.findall(page.read_text()):
        if "import anndata" in block and find_spec("anndata") is None:
            continue  # an extra that developers need not have
        exec(compile(block, f"{page.name}: {block.splitlines()[0]}", "exec"), names)


@pytest.mark.parametrize("script", EXAMPLES, ids=[script.stem for script in EXAMPLES])
def test_every_example_runs(script, plt, monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.get_fignums()))
    exec(compile(script.read_text(), script.name, "exec"), {"__name__": "__main__"})
    assert shown


def test_the_readme_is_short_and_has_no_broken_link():
    text = (ROOT / "README.md").read_text()
    assert len(text.split()) < 900
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 5
    assert all(link.startswith("https://") or (ROOT / link).exists() for link in links)


def test_pages_have_blocks():
    names = {page.name for page in PAGES}
    assert {"README.md", "guide.md", "howto.md", "index.md"} <= names
    assert EXAMPLES


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages <= set(index.split("```{toctree}")[1].split("```")[0].split())
