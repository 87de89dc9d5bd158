"""Pages from records that are made up: every number on them comes from the records."""

import re

import numpy as np
import pytest

from reproduction import load_study, pages
from reproduction.engine import append_record, latest
from reproduction.paper import hiv, hiv_page, plx4720, plx4720_page, rates, simulations, sinexp
from sobolev import __version__


def made_up(task, rng):
    """A result of the form of the experiment."""
    method = task.settings["method"]
    if task.experiment in ("sinexp", "liang"):
        kinds = ("hrt",) if method in (simulations.FORWARD, simulations.ORACLE) else ("top", "hrt")
        kinds += ("witness",) if method == "NeuralSIC, paper" else ()
        return {k: {"tpr": round(rng.random(), 3), "fdp": round(rng.random(), 3)} for k in kinds}
    if task.experiment == "hiv":
        columns = ("hrt",) if method.startswith("HRT") else ("draw0", "draw1", "ebh0", "ebh1")
        found = {c: [int(v) for v in rng.integers(0, 20, 2)] for c in columns}
        return {"simulated": found, "n_true": 20} if method.endswith(hiv.SIMULATED) else found
    if task.settings["part"] == "found":
        return {"top": [[f"G{k}", 0.1 / (k + 1)] for k in range(15)], "n_screened": 100}
    if task.settings["part"] == "tested":
        return {"features": [["BRAF_mut", 0.001, 0.02], ["G1", 0.5, 0.9]], "selected": ["BRAF_mut"]}
    tops = (plx4720.BASELINES | plx4720.TOPS)[method]
    errors = {str(t): {"network": rng.random(), "forest": rng.random()} for t in tops}
    return {"errors": errors, "first": "BRAF_mut", "n_screened": 100}


def record(task, result, **changes):
    return {
        "version": __version__,
        "experiment": task.experiment,
        "settings": task.settings,
        "seed": task.seed,
        "result": result,
        "seconds": 2.0,
        "cores": 2,
        "blas": "openblas 1.0",
    } | changes


def fill(folder, name, *, quick=False, repetitions=2, **changes):
    rng = np.random.default_rng(0)
    for task in load_study(name).tasks(quick, repetitions):
        append_record(pages.records_file(folder, name), record(task, made_up(task, rng), **changes))


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes longer than all the rest."""
    monkeypatch.setattr(rates, "draw_rates", lambda *_: None)


@pytest.mark.parametrize(
    ("name", "quick"), [("liang", True), ("plx4720", False), ("hiv", True), ("hiv", False)]
)
def test_every_page(tmp_path, name, quick):
    fill(tmp_path, name, quick=quick)
    text = pages.write_page(tmp_path, name)
    pages.write_index(tmp_path)
    assert text == (tmp_path / f"{name}.md").read_text()
    assert text.startswith("# ")
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert pictures
    for picture in pictures:
        assert (tmp_path / picture).stat().st_size > 1000
    assert f"$ python -m reproduction {name} " in text
    assert ("--quick" in text) == (quick and name in ("liang",))
    assert "```{note}" in text
    assert "nan" not in text
    assert "{" not in text.replace("{note}", "")
    index = (tmp_path / "index.md").read_text()
    assert f"]({name}.md)" in index
    assert f"\n{name}\n" in index


def test_no_records_no_page(tmp_path):
    assert pages.write_page(tmp_path, "sinexp") is None
    assert pages.write("sinexp", tmp_path) is None
    assert pages.write("hrt", tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_full_run_has_no_note(tmp_path):
    fill(tmp_path, "hiv", repetitions=None)
    text = pages.write_page(tmp_path, "hiv")
    assert "{note}" not in text
    assert "$ python -m reproduction hiv\n" in text


def test_notes_say_how_much_is_there(tmp_path, no_figures):
    fill(tmp_path, "sinexp", repetitions=3)
    text = pages.write_page(tmp_path, "sinexp")
    assert "81 of 2,700 records" in text
    assert "3 of 100 repetitions" in text
    assert "--repetitions 3" in text
    assert text.startswith("# SinExp")
    assert text.count("\n## n = ") == 3
    assert "![" not in text  # nothing was drawn
    assert "nan" not in text
    assert "{" not in text.replace("{note}", "")


def test_versions_are_not_mixed(tmp_path, no_figures):
    fill(tmp_path, "sinexp", repetitions=3, version="0.0.1")
    fill(tmp_path, "sinexp", repetitions=1)
    records = latest(pages.read_records(pages.records_file(tmp_path, "sinexp")))
    assert len(records) == 27
    assert "0.0.1" not in pages.write_page(tmp_path, "sinexp")


def test_the_order_of_records_does_not_matter(tmp_path, no_figures):
    fill(tmp_path / "a", "sinexp", repetitions=2)
    lines = pages.records_file(tmp_path / "a", "sinexp").read_bytes().splitlines(keepends=True)
    other = pages.records_file(tmp_path / "b", "sinexp")
    other.parent.mkdir(parents=True)
    other.write_bytes(b"".join(reversed(lines)))
    written = [pages.write_page(tmp_path / name, "sinexp") for name in "ab"]
    assert written[0] == written[1]
    records = pages.read_records(other)
    assert latest(records) == latest(records[::-1])


def sinexp_records(method, n, tprs, fdps, seconds=2.0):
    tasks = [t for t in sinexp.tasks(False, len(tprs)) if t.settings["method"] == method]
    tasks = [t for t in tasks if t.settings["n"] == n]
    return [
        record(task, {"hrt": {"tpr": tpr, "fdp": fdp}}, seconds=seconds)
        for task, tpr, fdp in zip(tasks, tprs, fdps, strict=True)
    ]


def test_tables_hold_quartiles_means_and_errors():
    tprs, fdps = [0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 0.0, 0.1, 0.1, 0.3]
    records = sinexp_records("elastic net", 250, tprs, fdps)
    row = rates.rates_table(records, 250, sinexp.PUBLISHED).splitlines()[-1]
    assert row == (
        "| elastic net, HRT | 0.40 / 0.60 / 0.80 | 0.600 ± 0.141 | 0.00 / 0.10 / 0.10 | "
        "0.100 ± 0.055 | 0.17 / 0.33 / 0.50 | – | 5 |"
    )


@pytest.mark.parametrize(
    ("tpr", "fdps", "reached", "kept"),
    [
        (0.9, [0.1, 0.1], "yes", "yes"),
        (0.7, [0.3, 0.31], "no", "no"),
        (0.8, [0, 0.4], "yes", "yes"),
    ],
)
def test_goals_are_judged(tpr, fdps, reached, kept):
    records = sinexp_records("ConvexSIC, forward", 125, [tpr, tpr], fdps)
    cells = rates.goal_table(records, sinexp.GOALS).splitlines()[-1].split(" | ")
    assert cells[3] == reached
    assert cells[5] == kept
    found, _, goal = sinexp.summary(records)
    error = abs(fdps[0] - fdps[1]) / 2  # of the mean of two
    rate = f"FDR {np.mean(fdps):.3f} ± {error:.3f}"
    assert found == f"TPR {tpr:.3f} ± 0.000, {rate} at n = 125"
    assert goal.endswith(": reached" if reached == kept == "yes" else ": not reached")


def test_too_many_false_discoveries_are_named():
    calm = sinexp_records("elastic net", 125, [0.5, 0.5], [0.1, 0.0])
    wild = sinexp_records("random forest", 125, [0.5, 0.5], [0.5, 0.6])
    assert rates.excesses(calm) == ""
    said = rates.excesses(calm + wild)
    assert "random forest at n = 125 (0.550)" in said
    assert "elastic net" not in said


def test_the_time_of_the_authors_is_compared():
    records = sinexp_records("ConvexSIC, forward", 500, [1.0], [0.0], seconds=4.8)
    assert "on one thread, 100 times that of ConvexSIC, forward." in sinexp._ratio(records)


def test_hiv_totals_need_all_drugs_of_a_seed():
    rng = np.random.default_rng(0)
    records = [record(task, made_up(task, rng)) for task in hiv.tasks(False, 2)]
    expected = np.sum(
        [r["result"]["hrt"] for r in records if r["seed"] == 1 and "hrt" in r["result"]
         and r["settings"]["drug"] != "TDF"], axis=0
    )  # fmt: skip
    totals = hiv_page.totals(records, "hrt")
    assert totals.shape == (2, 2)
    np.testing.assert_array_equal(totals[1], expected)
    assert hiv_page.totals(records[:-10], "hrt").shape == (1, 2)  # two drugs are missing


@pytest.mark.parametrize(("ours", "word"), [((300, 10), "reached"), ((150, 10), "not reached")])
def test_hiv_goal(ours, word):
    each = [ours[0] // 15, ours[1] // 15]
    records = [record(task, {"ebh0": each}) for task in hiv.tasks(False, 1)]
    assert f"is {word}." in hiv_page.reading(records)
    found, beside, goal = hiv.summary(records)
    assert found.startswith(f"{ours[0]:.1f} / {each[1] * 15:.1f} true")
    assert beside == "published SIC 182 / 63, GLM 196 / 83"
    assert goal == f"at least 210 / at most 55: {word}"


@pytest.mark.parametrize(
    ("false", "words"),
    [([1, 2, 1], "0.133 ± 0.033, at most the level"), ([6, 9, 8], "too large")],
    ids=["kept", "exceeded"],
)
def test_hiv_judges_the_test_where_the_truth_is_known(false, words):
    tasks = [t for t in hiv.tasks(False, 3) if t.settings["method"] == f"HRT{hiv.SIMULATED}"]
    by_seed = {
        seed: {"simulated": {"hrt": [10 - count, count]}, "n_true": 20}
        for seed, count in enumerate(false)
    }
    records = [record(t, by_seed[t.seed]) for t in tasks if t.settings["drug"] == "LPV"]
    assert words in hiv_page.reading(records)
    assert ("HRT (0.767)" in hiv_page.simulated_excesses(records)) == (words == "too large")
    fdp, power = hiv_page.simulated_rates(records, "hrt")
    np.testing.assert_allclose(fdp, np.array(false) / 10)
    np.testing.assert_allclose(power, (10 - np.array(false)) / 20)
    assert not hiv_page.totals(records, "hrt").size


def plx4720_records(errors):
    """Three splits; from a method to the errors of its ten features by both regressors."""
    return [
        record(
            task,
            {
                "errors": {"10": {"network": pair[0][task.seed], "forest": pair[1][task.seed]}},
                "first": "BRAF_mut",
            },
        )
        for method, pair in errors.items()
        for task in plx4720.tasks(False, 3)
        if task.settings["part"] == "split" and task.settings["method"] == method
    ]


@pytest.mark.parametrize(
    ("forest", "verdict"),
    [
        ([0.4] * 3, "reached by ConvexSIC"),
        ([0.2, 0.6, 0.4], "reached by ConvexSIC (within two standard errors)"),
        ([0.6] * 3, "not reached"),
    ],
    ids=["clearly", "in the mean", "by one"],
)
def test_plx4720_goal_needs_both_regressors(forest, verdict):
    records = plx4720_records(
        {
            "elastic net": ([0.5] * 3, [0.5] * 3),
            "ConvexSIC": ([0.4] * 3, forest),
            "NeuralSIC": ([0.6] * 3, [0.4] * 3),
        }
    )
    assert f"with both regressors, is {verdict};" in plx4720_page.reading(records)
    found, _, goal = plx4720.summary(records)
    assert "ConvexSIC -0.100 ± 0.000 (network) and " in found
    assert goal == f"negative with both: {verdict}"
    assert "| ConvexSIC | -0.100 ± 0.000 | " in plx4720_page.gap_table(records)


def test_plx4720_compares_with_correlation_on_the_same_splits():
    errors = {"ConvexSIC": ([0.5] * 3, [0.3] * 3), "correlation": ([0.4] * 3, [0.4] * 3)}
    said = plx4720_page.reading(plx4720_records(errors))
    assert "largest correlation is +0.100 ± 0.000 (network) and -0.100 ± 0.000 (forest)." in said
    del errors["correlation"]
    assert "largest correlation" not in plx4720_page.reading(plx4720_records(errors))


def test_plx4720_publishes_splits_that_had_no_part_in_a_choice():
    """Those with seeds from 0 to 109 and from 1000 to 1039 had."""
    first = plx4720.FIRST_SPLIT["training rows"]
    published = {
        task.settings["first_split"] + task.seed
        for task in plx4720.tasks(False)
        if task.settings.get("rows") == "training rows"
    }
    assert published == set(range(first, first + plx4720.REPETITIONS))
    assert not published & {*range(110), *range(1000, 1040)}
