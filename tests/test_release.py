"""What a release promises: tested lower bounds, metadata that agree, links that work."""

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

import sobolev

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_of_users_has_one_lower_bound():
    bounds = tool("lower_bounds").lower_bounds(PROJECT)
    assert bounds["numpy"].startswith("2.")
    assert {"scipy", "scikit-learn", "pandas", "torch", "pyarrow", "dask", "anndata"} <= set(bounds)


@pytest.mark.parametrize(
    ("dependencies", "message"),
    [(["numpy"], "no lower bound"), (["numpy>=2.0", "numpy>=2.1"], "two lower bounds")],
)
def test_missing_and_double_bounds_are_errors(dependencies, message):
    changed = PROJECT | {"dependencies": dependencies}
    with pytest.raises(ValueError, match=message):
        tool("lower_bounds").lower_bounds(changed)


def test_everything_that_is_imported_is_required():
    """No package of users is there only because another one needs it."""
    found = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for file in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    named = {re.split(r"[>=\[; ]", line)[0].replace("-", "_") for line in PROJECT["dependencies"]}
    known = named | {"sklearn", "sobolev", "__future__"}
    third_party = {name for name in found - known if name not in sys.stdlib_module_names}
    assert third_party <= {"torch", "pyarrow", "dask", "distributed", "anndata", "zstandard"}


def test_python_versions_are_said_once():
    listed = [c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if ":: 3." in c]
    assert PROJECT["requires-python"] == f">={listed[0]}"
    assert listed == sorted(listed, key=lambda v: int(v.partition(".")[2]))


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {sobolev.__version__}\n" in citation


def test_what_is_missing_for_a_release_is_said():
    missing = tool("release").missing
    ready = {"urls": {"Source": "https://example.org"}}
    citation = "a\nversion: 1.2.0\ndate-released: 2030-01-01\n"
    changelog = "\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n"
    assert missing(ready, "1.2.0", citation, changelog) == []
    assert len(missing(ready, "1.3.0", citation, changelog)) == 2
    assert "project.urls" in missing({}, "1.2.0", citation, changelog)[0]
    assert "development" in " ".join(missing(ready, "1.2.0.dev0", citation, changelog))


def test_links_of_the_readme_work_on_an_index():
    pytest.importorskip("hatchling")
    absolute = tool("index_readme").absolute
    text = "![plot](docs/a.png) [guide](docs/guide.md) [top](#top) [paper](https://arxiv.org)"
    kept = "[top](#top) [paper](https://arxiv.org)"
    assert absolute(text, None, "1.0") == f" guide {kept}"
    assert absolute(text, "https://example.org/s/", "1.0") == (
        "![plot](https://example.org/s/raw/v1.0/docs/a.png) "
        f"[guide](https://example.org/s/blob/v1.0/docs/guide.md) {kept}"
    )
