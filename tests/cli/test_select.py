import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.datasets import make_sinexp
from sobolev.report import COLUMNS

FILES = {"selection.csv", "result.json", "report.html"}


def selected(path):
    written = pd.read_csv(path)
    return set(written.loc[written["selected"], "feature"])


def test_select_writes_three_files_and_prints_the_answer(run, table, here):
    done = run("select", table, "--target", "y")
    assert done.code == 0, done.err
    folder = here / "data-sobolev"
    assert {path.name for path in folder.iterdir()} == FILES
    assert selected(folder / "selection.csv") == {"x1", "x2", "site"}
    assert "3 of 5 features at FDR 10 %" in done.out
    assert "site" in done.out
    assert "yes" in done.out
    assert "2 columns set aside: sample_id (" in done.err
    assert "constant (constant)" in done.err
    assert "data-sobolev/report.html" in done.err
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Effects" in page
    assert "their effects only add up" in page
    # Four tests, of the categorical variable as well, and two panels of the model.
    assert page.count(">observed: ") == 4
    assert "<bdi>site</bdi> <span>p " in page
    assert "none of 4 columns fails" in page
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["settings"]["seed"] == 0
    assert result["settings"]["command"].startswith("sobolev select data.csv --target y")
    assert result["data"]["rows"] == 100
    assert {item["column"] for item in result["data"]["set_aside"]} == {"sample_id", "constant"}
    assert result["versions"]["numpy"] == np.__version__


def test_survival_times(run, here):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    time = rng.exponential(np.exp(-2 * X["b"]))
    table = X.assign(days=np.minimum(time, 3), status=np.where(time < 3, 2, 1))
    table.to_csv(here / "t.csv", index=False)
    done = run("select", "t.csv", "-t", "days", "--event", "status", "--out", "answer")
    assert done.code == 0, done.err
    said = "days and status were read as survival times"
    assert done.err.count(said) == 1
    assert "events (status = 2) in 200 rows" in done.err
    assert selected(here / "answer" / "selection.csv") == {"b"}
    assert said in (here / "answer" / "report.html").read_text(encoding="utf-8")
    result = json.loads((here / "answer" / "result.json").read_text(encoding="utf-8"))
    assert result["data"]["response"].startswith(said)
    assert result["targets"] == ["days", "status"]
    hrt = HRTSelector(random_state=0, response="survival").fit(table, ("days", "status"))
    found = {row["feature"]: row["pvalue"] for row in result["features"]}
    for name, p in zip(hrt.feature_names_in_, hrt.pvalues_, strict=True):
        assert found[name] == pytest.approx(p, rel=1e-6)
    assert run("rank", "t.csv", "-t", "days", "--event", "status", "--no-report").code == 0
    assert '"pvalue"' in run("test", "t.csv", "--y", "days", "--event", "status", "--json").out
    bad = run("select", "t.csv", "-t", "days", "--event", "a")
    assert bad.code == 2
    assert '--event "a=' in bad.err


def test_integers_are_read_in_one_way_and_said_in_one_line(run, here):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=list("abc"))
    for low, said in ((0, "3 classes (0, 1, 2)"), (1, "grades from 1 to 3")):
        X.assign(y=low + np.arange(90) % 3).to_csv(here / "t.csv", index=False)
        done = run("rank", "t.csv", "-t", "y", "--no-report")
        assert done.err.count(f"y was read as {said}") == 1
        model = ConvexSIC(random_state=0).fit(X, low + np.arange(90) % 3)
        assert hasattr(model, "classes_") == (low == 0)
    done = run("rank", "t.csv", "-t", "y", "--no-report", "--response", "classes")
    assert "y was read as 3 classes (1, 2, 3)" in done.err
    done = run("rank", "t.csv", "-t", "y", "--response", "grade")
    assert done.code == 2
    assert "--response='grade' is unknown" in done.err


def test_the_answer_is_that_of_the_selector_in_python(run, here):
    X, y = make_sinexp(400, 6, random_state=1, as_frame=True, return_X_y=True)
    X.assign(y=y).to_csv(here / "t.csv", index=False)  # more rows than landmarks: the seed counts
    done = run("select", "t.csv", "-t", "y", "--seed", "4", "--json", "--no-report", "--fdr", "0.2")
    features = {f["feature"]: f for f in json.loads(done.out)["features"]}
    read = pd.read_csv(here / "t.csv")
    hrt = HRTSelector(fdr=0.2, random_state=4).fit(read.drop(columns="y"), read["y"].to_numpy())
    for name, p, q, chosen in zip(
        hrt.feature_names_in_, hrt.pvalues_, hrt.qvalues_, hrt.support_, strict=True
    ):
        assert features[name]["pvalue"] == pytest.approx(p, rel=1e-6)
        assert features[name]["qvalue"] == pytest.approx(q, rel=1e-6)
        assert features[name]["selected"] == chosen
    assert not (here / "t-sobolev").exists()


def test_categories_are_tested_jointly(run, table):
    found = json.loads(run("select", table, "-t", "y", "--json", "--no-report").out)["features"]
    site = [feature for feature in found if feature["feature"].startswith("site")]
    assert [f["feature"] for f in site] == ["site"]
    assert site[0]["kind"] == "categorical"
    assert site[0]["pvalue"] < 0.01
    assert site[0]["selected"]


def test_standard_output_is_only_json_or_only_csv(run, table):
    done = run("rank", table, "--target", "y", "--json")
    result = json.loads(done.out)
    assert result["schema"] == 3
    assert set(result["features"][0]) == set(COLUMNS)
    assert "set aside" in done.err
    done = run("rank", table, "--target", "y", "--format", "csv", "--no-report")
    lines = done.out.splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == 6
    assert run("rank", table, "-t", "y", "--format", "json", "--quiet").err == ""


def test_rank_agrees_with_the_estimator_and_takes_the_largest(run, frame, here):
    frame = frame[["x1", "x2", "x3", "x4", "y"]]
    frame.to_csv(here / "t.csv", index=False)
    done = run("rank", "t.csv", "-t", "y", "--top", "2", "--format", "csv", "--out", "there")
    assert {path.name for path in (here / "there").iterdir()} == FILES
    assert selected(here / "there" / "selection.csv") == {"x1", "x2"}
    read = pd.read_csv(here / "t.csv")
    sic = ConvexSIC(random_state=0).fit(read.drop(columns="y"), read["y"])
    table = pd.read_csv(here / "there" / "selection.csv").set_index("feature")
    np.testing.assert_allclose(
        table.loc[sic.feature_names_in_, "importance"], sic.feature_importances_, rtol=1e-6
    )
    assert table["importance"].is_monotonic_decreasing
    assert table["pvalue"].isna().all()
    assert "p " not in done.out.splitlines()[0]
    assert run("rank", "t.csv", "-t", "y", "--top", "9").code == 2


def test_knockoffs_say_when_nothing_can_be_selected(run, table, here):
    done = run("select", table, "-t", "y", "--method", "knockoffs", "--out", "k", "--fdr", "0.1")
    assert done.code == 0
    assert "None of 5 features selected" in done.out
    warning = "Nothing can be selected: 5 groups vary"
    assert warning in done.err
    assert "use the holdout randomization test" in done.err
    assert "HRTSelector" not in done.err
    result = json.loads((here / "k" / "result.json").read_text(encoding="utf-8"))
    assert any(warning in text for text in result["warnings"])
    assert result["settings"]["sampler"] == "matched"
    assert [picture["title"] for picture in result["pictures"]] == ["Knockoffs"]
    page = (here / "k" / "report.html").read_text(encoding="utf-8")
    assert "correlation with own knockoff" in page


def test_tests_without_columns_of_their_own_have_no_check(run, frame, here):
    frame.to_csv(here / "t.csv", index=False)
    done = run("select", "t.csv", "-t", "y", "--groups", "a=x1,x2", "--groups", "b=x3,x4", "--json")
    result = json.loads(done.out)
    titles = [picture["title"] for picture in result["pictures"]]
    assert "Tests" in titles
    assert "Model of the columns" not in titles
    page = (here / "t-sobolev" / "report.html").read_text(encoding="utf-8")
    assert page.count(">observed: ") == len(result["features"]) == 3


def test_knockoffs_select_among_many_columns(run, here):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(12)])
    frame.assign(y=X[:, :6].sum(axis=1)).to_csv(here / "t.csv", index=False)
    done = run("select", "t.csv", "-t", "y", "--method", "knockoffs", "--fdr", "0.3", "--json")
    result = json.loads(done.out)
    assert {f"g{j}" for j in range(6)} <= set(result["selected"])
    assert all(f["pvalue"] is None and f["statistic"] is not None for f in result["features"])


def test_labels_several_targets_groups_and_the_split_scheme(run, frame, here):
    frame["class"] = np.where(frame["y"] > frame["y"].median(), "high", "low")
    frame["z"] = frame["x3"] * 2
    frame.to_csv(here / "t.csv", index=False)
    common = ("--json", "--no-report")
    done = run("select", "t.csv", "-t", "y,z", "--exclude", "class", "--scheme", "split", *common)
    result = json.loads(done.out)
    assert result["targets"] == ["y", "z"]
    assert {"x1", "x3"} <= set(result["selected"])
    assert result["settings"]["test_size"] == 0.5
    done = run(
        *("select", "t.csv", "-t", "y", "--exclude", "class,z", "--test-size", "0.5", *common),
        *("--groups", "pair=x3,x4"),
    )
    assert "pair" in [f["feature"] for f in json.loads(done.out)["features"]]
    done = run("rank", "t.csv", "-t", "y", "-t", "class", "--exclude", "z", "--out", "mixed")
    assert done.code == 0, done.err
    done = run("rank", "t.csv", "-t", "class", "--exclude", "y,z", "--out", "labels", "--json")
    assert json.loads(done.out)["targets"] == ["class"]
    assert [picture["title"] for picture in json.loads(done.out)["pictures"]] == [
        "Effects",
        "Interactions",
    ]


def test_missing_values_are_told(run, frame, here):
    frame.loc[:4, "x3"] = np.nan
    frame.to_csv(here / "t.csv", index=False)
    done = run("rank", "t.csv", "-t", "y", "--missing", "error")
    assert done.code == 2
    assert "'x3' 5" in done.err
    done = run("rank", "t.csv", "-t", "y", "--missing", "drop", "--json", "--no-report")
    result = json.loads(done.out)
    assert (result["data"]["rows"], result["data"]["rows_dropped"]) == (95, 5)
    for command in ("rank", "select"):
        done = run(command, "t.csv", "-t", "y", "--json", "--no-report")
        assert done.code == 0, done.err
        result = json.loads(done.out)
        assert result["data"]["rows"] == 100
        assert any("Missing cells were drawn" in text for text in result["warnings"])
        assert "note: Missing cells were drawn" in done.err


def test_gaps_in_numbers_and_categories_reach_the_report(run, frame, here):
    rng = np.random.default_rng(0)
    frame.loc[rng.random(100) < 0.1, "x1"] = np.nan
    frame.loc[rng.random(100) < 0.1, "site"] = None
    frame.to_csv(here / "t.csv", index=False)
    done = run("select", "t.csv", "-t", "y")
    assert done.code == 0, done.err
    assert "x1" in selected(here / "t-sobolev" / "selection.csv")
    page = (here / "t-sobolev" / "report.html").read_text(encoding="utf-8")
    assert "Rubin" in page
    assert "Effects" in page
    done = run("test", "t.csv", "--y", "y", "--permutations", "49")
    assert done.code == 0, done.err


def test_names_are_shown_as_they_are(run, frame, here):
    names = {"x1": "[red]x1[/red]", "x2": "<script>alert(1)</script>", "x3": "a\x1b[31mb\nc"}
    frame.rename(columns=names).to_csv(here / "t.csv", index=False)
    done = run("rank", "t.csv", "-t", "y")
    assert done.code == 0, done.err
    assert done.out.count("[red]x1[/red]") == 2  # in the headline and in the table
    assert "<script>alert(1)</script>" in done.out
    assert "\x1b" not in done.out
    page = (here / "t-sobolev" / "report.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page


def test_a_wide_table_is_cut_on_screen_but_not_in_the_file(run, here):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 40)), columns=[f"g{j}" for j in range(40)])
    frame.assign(y=frame["g0"]).to_csv(here / "t.csv", index=False)
    done = run("rank", "t.csv", "-t", "y")
    assert "… and 20 more." in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert len(pd.read_csv(here / "t-sobolev" / "selection.csv")) == 40


def test_results_are_renewed_but_files_of_others_are_kept(run, table, here):
    assert run("rank", table, "-t", "y", "--out", "o").code == 0
    (here / "o" / "notes.txt").write_text("mine")
    assert run("rank", table, "-t", "y", "--out", "o").code == 0
    assert (here / "o" / "notes.txt").read_text() == "mine"
    (here / "p").mkdir()
    (here / "p" / "report.html").write_text("mine")
    done = run("rank", table, "-t", "y", "--out", "p")
    assert done.code == 2
    assert "was not written by sobolev" in done.err
    assert [path.name for path in (here / "p").iterdir()] == ["report.html"]
    assert (here / "p" / "report.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "rank", "--test-size", "0.5"], "--test-size belongs to --method hrt"),
        (["--method", "knockoffs", "--scheme", "split"], "--scheme belongs to --method hrt"),
        (["--method", "rank", "--draws", "3"], "--draws belongs to"),
        (["--sampler", "matched"], "--sampler belongs to --method knockoffs"),
        (["--fdr", "1.5"], "--fdr 1.5 must lie"),
        (["--test-size", "0.95"], "--test-size 0.95 must lie"),
        (["--method", "knockoffs", "--conditional", "forest"], "--conditional belongs to"),
        (["--method", "rank", "--copies", "keep"], "--copies belongs to"),
    ],
)
def test_options_that_do_not_go_together(run, table, here, options, message):
    done = run("select", table, "-t", "y", *options)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()[-1:]) == 1
    assert not (here / "data-sobolev").exists()


def test_rare_classes_are_in_the_first_fit_or_explained(run, frame, here):
    frame["class"] = np.where(np.arange(100) >= 98, "rare", np.where(frame["y"] > 0, "a", "b"))
    frame.drop(columns="y").to_csv(here / "t.csv", index=False)
    for seed in range(4):  # each would leave both rows out of the first fit with chance 0.49
        assert run("select", "t.csv", "-t", "class", "--no-report", "--seed", seed).code == 0
    done = run("select", "t.csv", "-t", "class", "--no-report", "--blocks-of", 5)  # in order
    assert done.code == 2
    assert "such as 'rare' (2 rows), " in done.err
    assert "merge rare classes" in done.err


def test_neural_critic(run, table):
    pytest.importorskip("torch")
    done = run("rank", table, "-t", "y", "--critic", "neural", "--json", "--no-report", "--top", 3)
    assert set(json.loads(done.out)["selected"]) == {"x1", "x2", "site"}


def test_an_interrupted_run_keeps_the_ranking(run, table, here, monkeypatch):
    from sobolev.inference.trial import Trial

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "test", stop)
    done = run("select", table, "-t", "y")
    assert done.code == 130
    assert "interrupted before the tests were done; the ranking so far is in" in done.err
    result = json.loads((here / "data-sobolev" / "result.json").read_text(encoding="utf-8"))
    assert result["data"]["partial"] is True
    assert result["method"] == "rank"
    assert all(f["pvalue"] is None for f in result["features"])
    assert {f["feature"] for f in result["features"][:2]} <= {"x1", "x2", "site"}
    assert result["warnings"][0].startswith("Interrupted before the tests were done")
    assert result["settings"]["asked_for"] == "HRTSelector"
    assert not result["pictures"]
    assert "Report:" not in done.err


def test_an_interrupted_run_keeps_the_orders_that_are_done(run, table, here, monkeypatch):
    from sobolev.inference.trial import Trial

    done_runs, whole = [], Trial.run

    def stop(self, *arguments):
        if done_runs:
            raise KeyboardInterrupt
        done_runs.append(whole(self, *arguments))
        return done_runs[0]

    monkeypatch.setattr(Trial, "run", stop)
    said = run("select", table, "-t", "y", "--draws", "3")
    assert said.code == 130
    assert "interrupted before the tests were done; the answer so far is in" in said.err
    assert said.out == ""
    result = json.loads((here / "data-sobolev" / "result.json").read_text(encoding="utf-8"))
    assert result["method"] == "hrt"
    assert result["settings"]["n_repeats"] == 1
    assert result["warnings"][-1].startswith("Interrupted; orders of the rows tested: 1.")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    once = run("select", table, "-t", "y", "--draws", "1", "--json", "--no-report")
    first = {f["feature"]: f["pvalue"] for f in json.loads(once.out)["features"]}
    assert {f["feature"]: f["pvalue"] for f in result["features"]} == pytest.approx(first)


def test_pictures_are_drawn_without_pyplot(table, here):
    code = (
        "import sys\nfrom sobolev.cli import main\n"
        f"sys.argv = ['sobolev', 'select', {str(table)!r}, '-t', 'y', '-q']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    page = (here / "data-sobolev" / "report.html").read_text(encoding="utf-8")
    assert page.count('<svg class="drawing"') >= 2


def test_interrupted_before_there_is_anything_to_keep(run, table, here, monkeypatch):
    import sobolev.cli.running

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sobolev.cli.running, "read_table", stop)
    done = run("select", table, "-t", "y")
    assert done.code == 130
    assert done.err.strip() == "sobolev: interrupted"
    assert not (here / "data-sobolev").exists()


def test_a_group_may_mix_kinds(run, table, here):
    done = run("select", table, "-t", "y", "--groups", "g=x1,site", "--no-report", "--json")
    assert done.code == 0, done.err
    (row,) = [r for r in json.loads(done.out)["features"] if r["feature"] == "g"]
    assert row["pvalue"] is not None


@pytest.mark.parametrize("option", [["--conditional", "forest"], ["--copies", "keep"]])
def test_the_model_of_the_columns_can_be_chosen(run, table, option):
    done = run("select", table, "-t", "y", *option, "--no-report", "--json")
    assert done.code == 0, done.err
    assert " ".join(option) in json.loads(done.out)["settings"]["command"]
