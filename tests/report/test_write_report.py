"""A report from Python, for every selector, and its agreement with the command line."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LassoCV
from typer.testing import CliRunner

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC, write_report
from sobolev.cli import app
from sobolev.datasets import make_sinexp
from sobolev.plotting import partial_effect
from sobolev.report import COLUMNS, make_result


@pytest.fixture(scope="module")
def data():
    return make_sinexp(120, 12, random_state=1, as_frame=True, return_X_y=True)


SELECTORS = {
    "hrt": HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0),
    "knockoffs": KnockoffSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), fdr=0.3, random_state=0
    ),
    "convex": ConvexSIC(lam=0.02, n_features_to_select=4),
    "neural": NeuralSIC(n_features_to_select=4, random_state=0),
}
PICTURES = {
    "hrt": ["Effects", "Interactions", "Tests", "Model of the columns"],
    "knockoffs": ["Knockoffs"],
    "convex": ["Effects", "Interactions"],
    "neural": ["Effects", "Interactions"],
}


@pytest.mark.parametrize("name", SELECTORS)
def test_a_report_of_every_selector(data, tmp_path, name):
    X, y = data
    selector = SELECTORS[name].fit(X, y)
    path = write_report(selector, X, y, tmp_path / "new" / "report.html")
    page = path.read_text(encoding="utf-8")
    result = make_result(selector, X, y)
    assert [picture.title for picture in result.pictures] == PICTURES[name]
    for title in (*PICTURES[name], "Methods", "When not to trust this", "Settings", "Versions"):
        assert title in page
    assert result.headline.split(":")[0].replace(" %", "\N{NO-BREAK SPACE}%") in page
    assert tuple(result.table.columns) == COLUMNS
    table = selector.summary()
    assert list(result.table["feature"]) == list(table["feature"])
    assert list(result.table["note"]) == list(table["note"])
    assert page.count('<svg class="drawing"') >= 2
    assert "style=" not in page


def test_arrays_labels_and_frames_have_names(data):
    X, y = data
    sic = ConvexSIC(lam=0.02).fit(X.to_numpy(), y)
    result = make_result(sic, X.to_numpy(), y, pictures=False)
    assert result.targets == ("y",)
    assert set(result.table["feature"]) == {f"x{j}" for j in range(12)}
    assert result.data == {"name": "data", "rows": 120, "columns": 12, "features": 12}
    named = make_result(sic, X.to_numpy(), pd.Series(y, name="growth"), pictures=False)
    assert named.targets == ("growth",)
    pair = pd.DataFrame({"a": y, "b": -y})
    both = make_result(ConvexSIC(lam=0.02).fit(X, pair), X, pair, pictures=False)
    assert both.targets == ("a", "b")


def test_groups_are_selected_as_a_whole(data):
    X, y = data
    groups = {"true": ["x1", "x2", "x3"], "false": ["x7", "x8", "x9"]}
    sic = ConvexSIC(lam=0.02, feature_groups=groups, n_features_to_select=2).fit(X, y)
    result = make_result(sic, X, y)
    assert len(result.selected) == 2
    assert set(result.table["feature"]) >= {"true", "false", "x4"}
    largest = result.table["importance"].nlargest(2)
    assert list(result.table["importance"][:2]) == list(largest)


def test_a_predictor_as_critic_has_tests_but_no_effects(data):
    X, y = data
    result = make_result(HRTSelector(LassoCV(), random_state=0).fit(X, y), X, y)
    titles = [picture.title for picture in result.pictures]
    assert "Effects" not in titles
    assert "Tests" in titles
    assert result.settings["critic"] == "LassoCV"


def test_misfits_are_warned_of_unless_the_caller_says_otherwise(data):
    X, y = data
    X = X.assign(skewed=np.exp(4 * X["x7"] + np.random.default_rng(0).standard_normal(len(X))))
    settings = {"conditional": "gaussian", "pvalue": "saddlepoint", "copies": "keep"}
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, **settings)
    with pytest.warns(UserWarning, match="does not fit"):
        hrt.fit(X, y)
    (said,) = make_result(hrt, X, y, pictures=False).warnings
    assert said.startswith("The conditional model does not fit")
    assert "'skewed'" in said
    assert make_result(hrt, X, y, pictures=False, warnings=["mine"]).warnings == ("mine",)


def test_an_interrupted_fit_gives_a_ranking(data):
    X, y = data
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0).fit(X, y)
    for name in ("support_", "pvalues_", "qvalues_", "estimator_", "left_out_"):
        delattr(hrt, name)
    result = make_result(hrt, X, y)
    assert result.method == "rank"
    assert result.data["partial"] is True
    assert result.warnings[0].startswith("Interrupted before the tests were done")
    assert result.table["importance"].is_monotonic_decreasing
    assert not result.pictures


def test_the_page_of_the_command_line_is_that_of_python(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data
    X.assign(growth=y).to_csv("t.csv", index=False)
    done = CliRunner().invoke(app, ["select", "t.csv", "-t", "growth", "-q", "--json"])
    assert done.exit_code == 0, done.output
    read = pd.read_csv("t.csv")
    X, y = read.drop(columns="growth"), read["growth"]
    hrt = HRTSelector(ConvexSIC(n_jobs=-1), random_state=0, n_jobs=-1).fit(X, y)
    found = json.loads((tmp_path / "t-sobolev" / "result.json").read_text(encoding="utf-8"))
    path = write_report(
        hrt,
        X,
        y,
        "mine.html",
        kinds=dict.fromkeys(X.columns, "numeric"),
        data={**found["data"], "set_aside": []},
        settings=found["settings"],
        warnings=found["warnings"],
        seconds=found["seconds"],
    )
    pages = [p.read_text(encoding="utf-8") for p in (tmp_path / "t-sobolev/report.html", path)]
    numbers = [json.loads(re.search(r'id="data">(.*?)</script>', page).group(1)) for page in pages]
    np.testing.assert_allclose(numbers[0]["pvalue"], numbers[1]["pvalue"], rtol=1e-9)
    words = [re.sub(r"[-\d.]+", "#", re.sub(r'id="data">.*', "", p, flags=re.S)) for p in pages]
    assert words[0] == words[1]


def test_near_copies_have_one_effect_and_are_named():
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 200))
    X = pd.DataFrame({"a": x, "b": -2 * x + 1, "c": z, "d": rng.standard_normal(200)})
    y = x + 0.3 * rng.standard_normal(200)
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, n_repeats=1).fit(
        X, y
    )
    result = make_result(hrt, X, y)
    effects = next(picture for picture in result.pictures if picture.title == "Effects")
    assert "a, b" in [name for name, _ in effects.names]
    effect = partial_effect(hrt, X, y, "a, b")
    # Both move together, so the whole effect shows: the slope of y in standard deviations.
    slope = np.polyfit(effect.grid, effect.means[0], 1)[0]
    assert slope == pytest.approx(x.std() / y.std() / x.std(), rel=0.25)
    group = ConvexSIC(lam=0.02, feature_groups={"g": ["c", "d"]}).fit(X, y)
    with pytest.raises(ValueError, match="do not move as one"):
        partial_effect(group, X, y, "g")
    copies = ConvexSIC(lam=0.02, feature_groups={"g": ["a", "b"]}).fit(X, y)
    drawn = make_result(copies, X, y).pictures[0]
    assert [name for name, _ in drawn.names] == ["g"]


def test_effects_that_only_add_up_have_no_map_of_interactions():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((150, 3)), columns=["a", "b", "c"])
    sic = ConvexSIC(feature_map="linear", n_features_to_select=2).fit(X, X["a"] + X["b"])
    effects, *others = make_result(sic, X, X["a"] + X["b"]).pictures
    assert "their effects only add up" in effects.caption
    assert others == []


def test_categories_of_two_values_have_the_names_of_their_columns():
    rng = np.random.default_rng(0)
    drug, dose = rng.choice(["placebo", "verum"], 150), rng.standard_normal(150)
    X = pd.DataFrame({"drug": drug, "dose": dose})
    y = (drug == "verum") * (1 + dose) + 0.3 * rng.standard_normal(150)
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, n_repeats=1).fit(
        X, y
    )
    assert set(hrt.summary()["feature"]) == {"drug", "dose"}
    effects, together, *_ = make_result(hrt, X, y).pictures
    assert {name for name, _ in effects.names} == {"drug", "dose"}
    assert together.title == "Interactions"


def test_the_page_shows_the_table_behind_the_answer():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((150, 3))
    X = pd.DataFrame(x, columns=["u", "v", "w"])
    X["near"] = X["u"] + 0.35 * rng.standard_normal(150)
    X.loc[:20, "w"] = np.nan
    y = np.where(x[:, 1] > 0.5, "yes", "no")
    hrt = HRTSelector(ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, n_repeats=1).fit(
        X, y
    )
    data = make_result(hrt, X, y, pictures=False).data
    assert data["classes"] == {label: int((y == label).sum()) for label in ("no", "yes")}
    assert data["missing_cells"] == {"w": pytest.approx(21 / 150)}
    assert [sorted(names) for names, _ in data["clusters"]] == [["near", "u"]]
