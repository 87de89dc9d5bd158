import pytest

from sobolev.report import sections, text
from sobolev.tables.suspects import ask_subject


def test_the_methods_of_the_randomization_test(make_result):
    words = text.methods(make_result())
    for part in (
        "We tested which of 40 features are associated with “y”",
        "holdout randomization test (Tansey et al. 2022)",
        "ConvexSIC",
        "a random 30 % of 500 rows",
        "Stouffer",
        "Only the 20 features most important on the training rows",
        "saddlepoint",
        "Benjamini and Hochberg (1995) at a false discovery rate of 10 %",
        "tested again with a model of the columns corrected",
        "sobolev 1.2.3 (random seed 0)",
    ):
        assert part in words
    assert "nan" not in words
    assert "None" not in words


def test_the_settings_change_the_methods(make_result):
    settings = {
        "critic": "neural",
        "scheme": "split",
        "test_size": 0.4,
        "conditional": "gaussian",
        "pvalue": "montecarlo",
        "procedure": "by",
        "n_repeats": 5,
        "groups": {"a": ["x1", "x2"]},
    }
    drawn = "Missing cells were drawn given the other columns and the target ('x1' 5 %)."
    result = make_result(settings=settings, fdr=0.05, warnings=(drawn,))
    words = text.methods(result)
    for part in (
        "NeuralSIC",
        "a random 40 % was held out",
        "a joint normal distribution",
        "simulation",
        "Yekutieli (2001) at a false discovery rate of 5 %",
        "5 orders of the rows",
        "columns of a group were tested together",
        "Rubin's rules",
    ):
        assert part in words
    assert "Stouffer" not in words
    assert "tested again" not in words
    assert "seed" not in words
    assert any("Yekutieli" in entry for entry in text.references(result))
    assert any("Cauchy combination" in entry for entry in text.references(result))


def test_rows_that_seem_to_belong_together_are_said_beside_the_promise(make_result):
    (note,) = ask_subject(["patient"])
    asked = make_result(warnings=(note,))
    assert "the level does not hold" in text.meaning(asked)
    assert sections.unsure(asked) == "; not assured if rows belong together"
    assert "the level does not hold" not in text.meaning(make_result())


def test_survival_times_are_one_response(make_result):
    data = {"classes": {"event": 30, "censored": 10}}
    result = make_result(data=data, targets=("months", "died"))
    assert "something about “months” until “died” that" in text.meaning(result)
    assert "associated with “months” until “died” given" in text.methods(result)


@pytest.mark.parametrize(
    ("settings", "said", "unsaid"),
    [
        ({"sampler": "gaussian"}, ["Gaussian", "offset 1 (knockoff+)", "one draw"], "e-BH"),
        ({"n_draws": 11}, ["11 draws", "level 5 %", "e-BH", "Ren and Barber 2024"], "one draw"),
        ({"offset": 0}, ["controls a modified rate only"], "knockoff+"),
    ],
)
def test_the_methods_of_knockoffs(make_result, settings, said, unsaid):
    result = make_result("knockoffs", settings=settings)
    words = text.methods(result)
    for part in [*said, "Candès et al. 2018", "Mroueh et al. 2019", "10 %"]:
        assert part in words
    assert unsaid not in words
    cited = " ".join(text.references(result))
    assert "Panning for gold" in cited
    assert ("Derandomised" in cited) == ("n_draws" in settings)


@pytest.mark.parametrize("method", ["hrt", "knockoffs"])
def test_a_predictor_is_not_called_sic(make_result, method):
    result = make_result(method, settings={"critic": "LassoCV"})
    words = text.methods(result)
    assert "LassoCV" in words
    assert "Mroueh" not in words
    assert not any("Mroueh" in entry for entry in text.references(result))


def test_a_ranking_promises_nothing(make_result):
    result = make_result("rank")
    assert "controls no error rate" in text.methods(result)
    assert "no error guarantee" in text.meaning(result)
    assert "not p-values" in text.no_meaning(result)
    assert "was not measured" in text.meaning(result)
    assert len(text.references(result)) == 1
    assert "Any cut" in text.doubts(result)[0][0]


@pytest.mark.parametrize("method", ["hrt", "knockoffs", "rank"])
def test_every_citation_has_its_reference(make_result, method):
    for settings in ({}, {"n_draws": 3}, {"procedure": "storey"}, {"procedure": "by"}):
        result = make_result(method, settings=settings)
        words, cited = text.methods(result), text.references(result)
        for entry in cited:
            first, year = entry.split(",")[0], entry.split("(")[1][:4]
            assert first in words
            assert year in words


def test_moving_the_level_is_said_to_lose_the_promise(make_result):
    assert "does not keep its promise" in text.exploring(make_result())
    several = make_result("knockoffs", settings={"n_draws": 5, "offset": 0})
    assert "threshold of each draw stays" in text.exploring(several)
    assert "only approximately" not in text.meaning(several)  # e-BH keeps the rate with either
    assert "only approximately" in text.meaning(make_result("knockoffs", settings={"offset": 0}))


def test_one_draw_of_knockoffs_is_a_doubt(make_result):
    def named(**settings):
        result = make_result("knockoffs", settings=settings)
        return [name for name, _ in text.doubts(result)]

    assert "One random draw." in named()
    assert "One random draw." not in named(n_draws=5)


def test_near_copies_are_named_where_a_feature_may_be_missed(make_result):
    data = {"name": "d", "clusters": [(["a", "b"], 0.9), (["c", "d"], 0.85), (["e", "f"], 0.8)]}
    words = text.no_meaning(make_result(data=data))
    assert "shared with other columns (near copies: a, b; c, d and 1 more)." in words
    assert "near copies" not in text.no_meaning(make_result())


def test_targets_are_listed_or_counted(make_result):
    assert "“a”, “b” and “c”" in text.methods(make_result(targets=("a", "b", "c")))
    assert "5 responses jointly" in text.methods(make_result(targets=tuple("abcde")))
