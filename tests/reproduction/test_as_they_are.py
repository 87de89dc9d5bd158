"""Public tables as they are: what is planted on them, and what the page says."""

import numpy as np
import pandas as pd
import pytest

from reproduction.benchmarks import as_they_are
from reproduction.benchmarks.as_they_are import KINDS, RESPONSES, Effects
from sobolev.tables import prepare


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    site = rng.choice(["north", "south", "west"], 300)
    dose = rng.lognormal(size=300)
    dose[rng.random(300) < 0.1] = np.nan
    numbers = pd.DataFrame(rng.standard_normal((300, 4))).add_prefix("g")
    return pd.concat([pd.DataFrame({"site": site, "dose": dose}), numbers], axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_response_names_the_columns_it_depends_on(frame, kind):
    y, active = RESPONSES[kind](Effects(prepare(frame)), np.random.default_rng(1))
    assert y.shape == (300,)
    assert len(np.unique(y)) > 1
    assert set(active) <= set(frame.columns)
    assert len(active) in ((0,) if kind == "noise" else (2, 4))


def test_an_effect_of_a_category_is_one_number_for_each(frame):
    effect = Effects(prepare(frame)).of("site", np.random.default_rng(0))
    assert pd.Series(effect).groupby(frame["site"]).nunique().tolist() == [1, 1, 1]
    assert effect.std() == pytest.approx(1)


def test_finds_are_counted_by_column_of_the_table(frame, monkeypatch):
    def response(effects, rng):
        return effects.of("g0", rng) + 0.2 * rng.standard_normal(300), ["g0"]

    monkeypatch.setitem(RESPONSES, "classes", response)
    found = as_they_are.run(frame, Effects(prepare(frame)), "classes", 0)
    assert found["tpr"] == 1.0
    assert found["n_null"] == 5


def test_the_page_marks_what_exceeds_the_level():
    def row(table, fdp):
        result = {"tpr": 0.5, "fdp": fdp, "levels": [0.005, 0.05], "below": [0, 1], "n_null": 20}
        kinds = dict.fromkeys(as_they_are.SIGNALS, result | {"fdp": 0.0})
        return {
            "table": table,
            "seed": 0,
            "categories": table == "a",
            "gaps": False,
            "kinds": kinds | {"noise": result | {"tpr": None, "fdp": fdp}},
        }

    small = {"table": "c", "seed": 0, "left_out": as_they_are.TOO_SMALL}
    text = as_they_are.body([row("a", 1.0), row("b", 1.0), small])
    lines = text.splitlines()
    assert "2 tables with" in lines[0]
    assert "(1 are smaller)" in lines[0]
    everything = next(line for line in lines if line.startswith("| all "))
    assert "**1.000 ± 0.000**" in everything
    assert everything.split("|")[-3:] == [" 0.0000 ", " 0.0500 ", ""]
    assert any(line.startswith("| with categories | 1 |") for line in lines)
