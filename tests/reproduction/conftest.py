"""Studies run in this process, into a folder of their own."""

import pytest

from reproduction.__main__ import main
from reproduction.engine import flat, read_records


@pytest.fixture
def rows(tmp_path):
    """The records of a study in the folder, as rows."""

    def call(name):
        return [flat(record) for record in read_records(tmp_path / "data" / f"{name}.jsonl")]

    return call


@pytest.fixture
def run(tmp_path, rows):
    """Run a study with options and return its rows."""

    def call(name, *options, code=0):
        assert main([name, "--out", str(tmp_path), *options]) == code
        return rows(name)

    return call


@pytest.fixture
def results(tmp_path):
    """The text of RESULTS.md."""
    return lambda: (tmp_path / "RESULTS.md").read_text()
