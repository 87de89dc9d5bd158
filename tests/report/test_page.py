import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sobolev._numbers import FLOOR, shown_pvalue
from sobolev.report import Picture, render_report
from sobolev.report.html import page_data
from sobolev.skill import Skill

NASTY = "<script>alert(1)</script>"


def embedded(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def picture(points=3):
    figure, ax = plt.subplots()
    ax.plot(np.arange(points), np.random.default_rng(0).normal(size=points), ".")
    ax.set_title(NASTY)
    plt.close(figure)
    return Picture(NASTY, NASTY, figure)


def everywhere(make_result):
    """A result with the script in every text that a user can bring in."""
    return make_result(
        names=[NASTY, "x & y", "z"],
        targets=(NASTY,),
        data={"name": NASTY, "rows": 3, NASTY: NASTY, "set_aside": [(NASTY, NASTY)]},
        settings={NASTY: [NASTY], "critic": NASTY, "conditional": NASTY, "more": {NASTY: NASTY}},
        versions={NASTY: NASTY},
        warnings=(NASTY,),
        pictures=(picture(),),
    )


def test_user_text_is_escaped_everywhere(make_result):
    page = render_report(everywhere(make_result))
    assert "<script>alert" not in page
    assert page.count("<script") == 2
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 14
    assert embedded(page)["feature"].count(NASTY) == 1


def test_the_data_cannot_leave_their_element(make_result):
    names = ["</script>", "<!--<script>", "a&b", "line\u2028sep\u2029", "]]>", "\ud83d\ude00"]
    names[-1] = "😀"
    text = page_data(make_result(names=names))
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert set(json.loads(text)["feature"]) == set(names)


def test_the_page_asks_for_nothing(make_result):
    page = render_report(everywhere(make_result))
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"\b(src|href)=(?!\"#)", page.split("<script", 1)[0])
    assert "default-src 'none'" in page
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "unsafe-inline" not in page
    assert not re.search(r"<[^>]*\s(style|on\w+)=", page.split("<script", 1)[0])


def test_the_script_never_writes_html():
    for name in ("page.js", "plots.js"):
        source = (files("sobolev.report") / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", source)


@pytest.mark.parametrize("method", ["hrt", "knockoffs", "rank"])
def test_the_page_holds_the_numbers_and_the_words(make_result, method):
    result = make_result(method)
    page = render_report(result)
    data = embedded(page)
    for column in ("importance", "statistic", "pvalue", "qvalue"):
        np.testing.assert_array_equal(
            np.array(data[column], dtype=float), result.table[column].to_numpy()
        )
    assert data["selected"] == list(result.table["selected"])
    assert ('id="slider"' in page) == (method != "rank")
    for words in ("Methods", "When not to trust this", "Settings", "Versions", "cells.csv"):
        assert words in page
    assert page.startswith("<!doctype html>")


def test_the_slider_has_the_level_of_the_run_among_its_stops(make_result):
    assert embedded(render_report(make_result(fdr=0.1)))["levels"] == [
        k / 100 for k in range(1, 51)
    ]
    levels = embedded(render_report(make_result(fdr=0.125)))["levels"]
    assert levels[12] == 0.125
    assert len(levels) == 51
    assert embedded(render_report(make_result(fdr=0.7)))["levels"][-1] == 0.7
    assert embedded(render_report(make_result("rank")))["levels"] == []


def test_the_line_follows_the_procedure(make_result):
    def scale(procedure):
        result = make_result(settings={"procedure": procedure})
        return embedded(render_report(result))["scale"]

    assert scale("bh") == 1.0
    assert scale("by") == pytest.approx(sum(1 / k for k in range(1, 21)))
    assert 0 < scale("storey") <= 1.0


def test_nothing_selected_is_explained(make_result):
    table = make_result().table.assign(selected=False, qvalue=1.0)
    page = render_report(make_result(table=table))
    assert "None of 40 features selected at FDR 10\N{NO-BREAK SPACE}%" in page
    assert '<section id="nothing">' in page
    assert "What to do next" in page
    assert '<section id="nothing" hidden>' in render_report(make_result())


def test_missing_values_of_pandas_are_taken(make_result):
    table = make_result().table
    table = table.assign(pvalue=table["pvalue"].astype("Float64"), statistic=pd.NA)
    data = embedded(render_report(make_result(table=table)))
    assert data["statistic"] == [None] * 40
    assert sum(p is None for p in data["pvalue"]) == 20


def test_no_feature_at_all(make_result):
    table = make_result().table.iloc[:0]
    assert "None of 0 features" in render_report(make_result(table=table))


def test_several_targets_and_categorical_features(make_result):
    table = make_result().table
    table["kind"] = ["categorical"] * 3 + ["numeric"] * 37
    page = render_report(make_result(table=table, targets=("height", "weight")))
    assert "responses <bdi>height, weight</bdi>" in page
    assert "“height” and “weight”" in page
    assert "Categorical columns were one-hot coded and tested as a whole." in page
    assert embedded(page)["kind"][:4] == ["categorical"] * 3 + ["numeric"]


def test_warnings_stand_before_the_slider_and_the_table(make_result):
    page = render_report(make_result(warnings=("Two columns are copies.",)))
    assert page.index("Two columns are copies.") < page.index('id="slider"')
    assert 'class="warnings"' not in render_report(make_result())


@pytest.mark.parametrize(
    "aside", [[("id", "like an id")], [{"column": "id", "reason": "like an id"}]]
)
def test_columns_set_aside_are_named_with_the_reason(make_result, aside):
    page = render_report(make_result(data={"name": "d", "set_aside": aside}))
    assert "1 column was set aside" in page
    assert "<bdi>id</bdi> <span>like an id</span>" in page
    many = render_report(make_result(data={"name": "d", "set_aside": aside * 50}))
    assert "<details><summary>50 columns were set aside" in many


def test_several_figures_of_a_picture_stand_side_by_side(make_result):
    one = picture()
    result = make_result(pictures=(replace(one, figure=(one.figure,) * 3),))
    page = render_report(result)
    assert page == render_report(result)
    panels = re.search(r'<div class="panels two">(.*?)</div>', page).group(1)
    assert panels.count("<svg ") == 3
    assert f'aria-label="{html.escape(NASTY)}, 3 of 3"' in panels
    width = 96 * one.figure.get_size_inches()[0]
    assert panels.count(f'width="{width:g}" role="img"') == 3


def test_a_page_of_5000_features_is_small(make_result):
    assert len(render_report(make_result(d=5000))) < 1_000_000


def test_figures_have_full_names_and_a_key_to_their_colours(make_result):
    one = picture()
    long = "a name that is never cut " * 4
    named = replace(
        one,
        figure=(one.figure,) * 2,
        names=((long, "q = 0.010"), (NASTY, "")),
        key=(("red", "#F00"),),
    )
    page = render_report(make_result(pictures=(named,)))
    assert f"<bdi>{long}</bdi> <span>q = 0.010</span>" in page
    assert f"<bdi>{html.escape(NASTY)}</bdi>" in page
    assert 'fill="#F00"' in page
    assert "<bdi>red</bdi>" in page


def test_the_top_says_what_the_answer_means_and_what_not(make_result):
    page = render_report(make_result(skill=Skill("AUC", 0.9, 0.5, is_clear=True)))
    header = page.partition("</header>")[0]
    for words in (
        "What this means",
        "What it does not mean",
        "held-out AUC",
        "need not be a cause",
    ):
        assert words in header


def test_a_ranking_without_skill_says_so_first(make_result):
    page = render_report(make_result("rank", skill=Skill("R²", -0.1, 0.0, is_clear=False)))
    assert '<h1 id="headline"><span id="caution">No skill on held-out rows (R² −0.10)' in page
    clear = render_report(make_result("rank", skill=Skill("R²", 0.4, 0.0, is_clear=True)))
    assert '<span id="caution"></span>' in clear


def test_classes_missing_cells_and_near_copies_are_shown(make_result):
    data = {
        "name": "d",
        "rows": 100,
        "classes": {"a": 75, NASTY: 25},
        "missing_cells": {"x1": 0.25},
        "clusters": [(["x1", "x2"], 0.93)],
    }
    page = render_report(make_result(data=data))
    for words in ("75 (75 %)", "25.0 %", "x1, x2", "rank correlation up to 0.93"):
        assert words in page
    assert "<script>alert" not in page


def test_tiny_p_values_have_one_floor(make_result):
    table = make_result().table.assign(pvalue=1e-30, qvalue=1e-30)
    data = embedded(render_report(make_result(table=table)))
    assert set(data["shownP"]) == set(data["shownQ"]) == {shown_pvalue(1e-30)} == {"<1e-12"}
    assert data["floor"] == FLOOR
