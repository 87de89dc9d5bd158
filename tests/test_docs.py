"""Every Python block of README and docs runs, page by page, from top to bottom."""

import re
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


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What a reader has at hand: a table of cells and a response."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.standard_normal((120, 8)),
        columns=["dose", "age", "red", "green", "blue", "site_lung", "site_skin", "site_bone"],
    )
    y = table["dose"] + table["age"] * table["red"] + rng.standard_normal(120)
    table.assign(response=y).to_csv("cells.csv", index=False)
    sic = ConvexSIC(lam=0.03).fit(table, y)
    return {"X": table, "table": table, "y": y, "sic": sic, "pd": pd, "np": np, "X_new": table}


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
@pytest.mark.filterwarnings("ignore")
def test_every_block_runs(page, names):
    with matplotlib.rc_context({"backend": "Agg", "figure.max_open_warning": 0}):
        for block in BLOCK.findall(page.read_text()):
            exec(compile(block, f"{page.name}: {block.splitlines()[0]}", "exec"), names)
        import matplotlib.pyplot as plt

        plt.close("all")


def test_pages_have_blocks():
    assert {"README.md", "guide.md"} <= {page.name for page in PAGES}
