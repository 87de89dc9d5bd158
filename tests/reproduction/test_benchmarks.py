"""The benchmarks run, resume after a kill, and leave the published results alone if quick."""

import numpy as np
import pytest

from reproduction import BENCH, OTHERS, __main__, load_study, pages
from reproduction.benchmarks import (
    genomics,
    hrt,
    hrt_speed,
    knockoffs,
    knockoffs_hiv,
    neural,
    plain_neural,
    ranking,
    survival,
)
from reproduction.benchmarks.paired import FIRST_SEED
from reproduction.engine import append_record, perform
from reproduction.paper.simulations import LEVELS


@pytest.mark.parametrize("name", [*BENCH, *OTHERS])
def test_plans(name):
    study = load_study(name)
    for quick in (True, False):
        tasks = study.tasks(quick)
        assert len({task.key for task in tasks}) == len(tasks) > 0
        needed = {study.NAME, *getattr(study, "NEEDS", ())}
        assert {task.experiment for task in tasks} <= needed
    assert len(study.tasks(True)) <= len(study.tasks(False))


def test_a_quick_run_leaves_the_results_alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    published = pages.home("solver_profile")
    before = {path: path.read_bytes() for path in published.rglob("*.*") if path.suffix != ".pyc"}
    assert __main__.main(["solver_profile", "--quick"]) == 0
    assert (tmp_path / "quick-sobolev" / "RESULTS.md").exists()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("name", ["sinexp", "moments"])
def test_speed_measures(run, results, name):
    (record,) = run("speed", "--quick", "--only", name)
    assert min(record["ours"] + record["theirs"]) > 0
    assert record["what"] in results()
    # The moments of four times the rows take the memory of one chunk all the same.
    assert len(set(record["notes"].values())) <= 1


def test_neural_resumes_and_renders(run, results):
    for only in (["SinExp, n = 60", "default"], ["small critic, d = 50"]):
        records = run("neural", "--quick", *(f"--only={word}" for word in only))
    again = run("neural", "--quick", "--only", "SinExp, n = 60", "--only", "default")
    assert again == records
    assert [r["seed"] for r in records if r["kind"] == "quality"] == [0, 1]
    assert all(min(r["milliseconds"]) > 0 for r in records if r["kind"] == "speed")
    text = results()
    assert "2 seeds" in text
    assert "ensemble of 16" in text


def test_the_default_of_neural_is_measured_by_the_ranking():
    """The same data, seed and estimator: one fit, two tables."""
    tasks = [task for task in neural.tasks(False) if task.experiment == ranking.NAME]
    settings = [task.settings for task in ranking.tasks(False)]
    assert all(task.settings in settings for task in tasks)
    assert max(task.seed for task in tasks) < FIRST_SEED
    assert {task.settings["method"] for task in tasks} == {"NeuralSIC"}
    assert len(tasks) == 3 * 50 + 10 + 5


def test_wide_resumes_and_renders(run, results):
    records = run("wide", "--quick", "--only", "ConvexSIC")
    assert [r["method"] for r in records] == ["ConvexSIC", "ConvexSIC, single precision"]
    assert all(r["columns"] >= 2000 and r["missed"] == 0 for r in records)
    assert records[0]["peak_gb"] > records[0]["data_gb"] > 0
    assert run("wide", "--quick", "--only", "ConvexSIC") == records
    assert "four shapes, 100 × 5,200 | ConvexSIC | 1 |" in results()


def test_solver_profile_counts_systems(run):
    (record,) = run("solver_profile", "--quick")
    assert record["profile"]["systems"] > record["profile"]["last"] > 0
    assert 0.5 < sum(record["profile"]["shares"].values()) < 1
    assert 0.2 < record["profile"]["validation"] < 1
    for plain, warm, accelerated in record["iterations"].values():
        assert 1 <= min(warm, accelerated) <= plain < 3000


def test_tuning_changes_one_thing_at_a_time(run, results):
    records = run("tuning", "--quick", "--only", "metric power 3")
    assert [(r["seed"], r["rows"]) for r in records] == [(1000, 125), (1001, 125), (1000, 250)]
    run("tuning", "--quick", "--only", "200")
    text = results()
    assert "| metric power 3 | " in text
    assert "| 200 | " in text


def test_the_plain_loop_finds_what_the_closed_form_finds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = X[:, [2]] + 0.1 * rng.standard_normal((200, 1))
    eta = plain_neural.train("small", X, (y - y.mean()) / y.std(), n_updates=150)
    assert eta.sum() == pytest.approx(1, abs=1e-5)
    assert eta.argmax() == 2


def test_survival_resumes_and_renders(run, results):
    pytest.importorskip("sksurv")
    for data in ("linear", "no effect", "whas500"):
        records = run("survival", "--quick", "--only", data, "--only", "lasso")
    assert run("survival", "--quick", "--only", "whas500", "--only", "lasso") == records
    assert {r["seed"] for r in records} == {survival.FIRST_SEED}
    text = results()
    assert "| linear, 30 % censored | Cox lasso, knockoffs | " in text
    assert "| no effect, 30 % censored | HRT, lasso of the scores | " in text
    assert "| whas500, 500 × 14, 57 % censored | Cox lasso, knockoffs | " in text


def test_genomics_measures_and_renders(run, results):
    (record,) = run("genomics", "--quick", "--only", "windows")
    assert record["tested"] == 8  # of 12 windows, four have a variant that matters
    assert record["small"] == sorted(record["small"])
    assert "| genotypes, windows of 5 | " in results()


def test_simulated_genotypes_and_counts():
    X, _, _ = genomics.genotypes(np.random.default_rng(0))
    assert set(np.unique(X)) == {0.0, 1.0, 2.0}
    near, far = (np.corrcoef(X[:, 30], X[:, 30 + lag])[0, 1] for lag in (1, 25))
    assert near > 0.4 > 0.25 > abs(far)
    counts, _, causal = genomics.counts(np.random.default_rng(0))
    assert counts.shape == (genomics.N_ROWS, genomics.N_GENES)
    assert counts.nnz < 0.4 * genomics.N_ROWS * genomics.N_GENES
    assert ((counts[:, causal] != 0).sum(axis=0) >= 10).all()


@pytest.mark.parametrize("censored", survival.CENSORED)
def test_simulated_survival_times_are_censored_as_planned(censored):
    for data in (*survival.HAZARDS, *survival.NULLS):
        _, y, support = survival.draw(data, censored, 0)
        assert np.mean(~y["event"]) == pytest.approx(censored, abs=0.01)
        assert support.sum() == {"no effect": 0, survival.NULLS[1]: 1}.get(data, 8)


def test_the_cox_lasso_maximises_the_partial_likelihood():
    """The gradient at the end of the path is near zero, and ties count in one risk set."""
    pytest.importorskip("sksurv")
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    X, y, _ = survival.draw("linear", 0.3, 0)
    X, y = X[:, :3], survival.outcomes(y["time"].round(1), y["event"])
    best = CoxPHSurvivalAnalysis(ties="breslow").fit(X, y).coef_
    nearby = best + 1e-3 * np.random.default_rng(0).normal(size=(200, 3))
    found = survival.log_likelihood(X @ np.vstack([best, nearby]).T, y)
    assert found.argmax() == 0


def test_bench_runs_every_study(monkeypatch):
    called = []
    monkeypatch.setattr(__main__, "run", lambda name, args: called.append((name, args.quick)))
    monkeypatch.setattr(__main__, "missing_data", lambda names: {})
    assert __main__.main(["bench", "--quick"]) == 0
    assert called == [(name, True) for name in BENCH]
    assert {"selection", "growth"} <= set(BENCH)


def test_sections_are_replaced_in_place(tmp_path):
    for name, body in (("a", "first"), ("b", "other"), ("a", "second")):
        pages.write_section(tmp_path / "RESULTS.md", name, body)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "first" not in text
    assert text.index("second") < text.index("other")
    assert list(tmp_path.iterdir()) == [tmp_path / "RESULTS.md"]


def test_what_is_measured_anew_replaces_what_was_there(run):
    run("knockoffs", "--quick", "--only", "AR(1) 0.5, linear", "--only", "lasso")
    (first,) = run("knockoffs", "--quick", "--only", "AR(1) 0.5, linear", "--only", "lasso")
    (again,) = run("knockoffs", "--quick", "--only=AR(1) 0.5, linear", "--only=lasso", "--fresh")
    assert first["seconds"] != again["seconds"]
    assert first | {"seconds": 0} == again | {"seconds": 0}


HRT_ROWS = {
    "ConvexSIC, forward, risk",
    "ConvexSIC, split, risk",
    "ConvexSIC, split, witness",
}


def test_hrt_resumes_and_renders(run, rows, results, tmp_path, monkeypatch):
    """The data sets of SinExp are measured by its experiment, and only once."""
    options = ["--quick", "--only", "ConvexSIC"]
    tasks = hrt.tasks

    def small(quick, repetitions=None):
        kept = ("125", "'n': 125", "mixed types")
        return [
            t
            for t in tasks(quick, repetitions)
            if t.settings.get("n") == 125 or t.settings.get("design") in kept
        ]

    monkeypatch.setattr(hrt, "tasks", small)
    run("hrt", *options, "--repetitions", "1")
    first = rows("sinexp")
    assert {r["method"] for r in first} == {"ConvexSIC", "ConvexSIC, forward"}
    run("hrt", *options, "--repetitions", "2")
    again = rows("sinexp")
    assert again[: len(first)] == first
    assert [r["seed"] for r in again[len(first) :]] == [1, 1]
    found = hrt.tests(pages.rows_of("hrt", tmp_path))
    assert {r["method"] for r in found if r["design"] == "SinExp, n = 125"} == HRT_ROWS
    assert all(0 <= r["fdp"] <= 1 for r in found)
    null = [r for r in found if r["method"] == hrt.DEFAULT]
    assert len(null) == 4
    assert all(r["below"][-1] <= r["n_null"] for r in null)
    assert "| SinExp, n = 125 | 2 |" in results()


def test_a_data_set_of_the_test_is_measured_in_one_place():
    tasks = hrt.tasks(False)
    own = [task for task in tasks if task.experiment == "hrt"]
    paper = [task for task in tasks if task.experiment != "hrt"]
    planned = {t.key for name in ("sinexp", "liang") for t in load_study(name).tasks(False)}
    assert {task.key for task in paper} <= planned
    for task in own:
        if task.settings["design"] in hrt.PAPER:
            new_seed = task.seed >= load_study("sinexp").REPETITIONS
            assert new_seed or (task.settings["design"], task.settings["method"]) in hrt.OWN


def test_calibration_says_what_fails():
    design = hrt.DESIGNS[0]
    records = [
        {"design": design.name, "method": hrt.DEFAULT, "seed": seed, "n_null": 40}
        for seed in range(50)
    ]
    for below, verdict in (
        ([0, 0, 0, 2, 4, 20], "holds"),
        ([0, 0, 3, 8, 10, 25], "fails"),  # at 0.05
        ([0, 1, 1, 2, 4, 20], "fails"),  # at 0.005
    ):
        found = [r | {"levels": list(LEVELS), "below": below} for r in records]
        found[0]["below"] = [0, 0, 0, below[3] + 1, 10, 20]  # some spread between data sets
        assert verdict in hrt.calibration([design], found)
        assert (verdict == "fails") == ("outside" in hrt.verdicts([design], found))


def test_the_plain_loop_finds_the_pvalues_of_the_tables():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 4))
    y = np.sin(X[:, 0]) + 0.15 * X[:, 1] + 0.5 * rng.standard_normal(160)
    model = hrt_speed.ConvexSIC(lam=0.01).fit(X[:80], y[:80])
    conditional = hrt_speed.MixedConditional().fit(X)
    held_out = (X[80:], y[80:], np.arange(80, 160))
    loop = hrt_speed.plain_loop(model, conditional, *held_out, range(4), n_rounds=400)
    tables = hrt_speed.tabulated(model, conditional, *held_out, range(4))
    # Five standard errors of 400 rounds, four columns: once in 400,000 runs.
    error = np.sqrt(tables * (1 - tables) / 400) + 1 / 400
    assert np.all(np.abs(loop - tables) < 5 * error)


def test_knockoffs_resume_and_render(run, results):
    options = ["--quick", "--repetitions", "1", "--only", "lasso", "--only"]
    for design in ("AR(1) 0.5, linear", "equicorrelated 0.7", "no response"):
        first = run("knockoffs", *options, design)
    assert [r["method"] for r in first] == [
        "lasso",
        "lasso, gaussian",
        "lasso, copula",
        "lasso, sequential",
        "lasso, 1 draw",
        "lasso, 5 draws",
    ]
    assert first[0]["tpr"] > 0.5
    assert first[-1]["tpr"] is None
    assert run("knockoffs", *options, "no response") == first
    assert "| AR(1) 0.5, linear | lasso | " in results()


def test_knockoff_rates_say_what_fails():
    method = knockoffs.NULL_METHODS[0]
    null = {"design": knockoffs.NULL.name, "method": method.name, "tpr": None, "seconds": 1.0}
    records = [null | {"seed": s, "fdp": float(s % 2)} for s in range(100)]
    assert "| 0.500 | 0.177 | **fails** | 100 |" in knockoffs.null_table(records)
    records = [null | {"seed": s, "fdp": float(s % 10 == 0)} for s in range(100)]
    assert "| 0.100 | 0.177 | holds | 100 |" in knockoffs.null_table(records)


def test_hiv_totals_count_complete_seeds_only():
    draws = {"draws1": [[3, 1], [9, 9]], "ebh1": [2, 0]}
    records = [{"drug": d, "seed": s} | draws for s in (0, 1) for d in ("A", "B")]
    found = knockoffs_hiv.totals(records[:-1], "draws1", ["A", "B"])
    assert found.tolist() == [[6.0, 2.0]]
    both = knockoffs_hiv.totals(records, "ebh1", ["A", "B"])
    assert both.tolist() == [[4.0, 0.0], [4.0, 0.0]]
    assert knockoffs_hiv.totals(records, "draws1", ["A", "C"]) is None


def test_hiv_without_data_says_so(run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "nowhere"))
    assert run("knockoffs_hiv", "--quick") == []
    assert "SOBOLEV_DATA_HOME" in capsys.readouterr().err


def test_the_knockoffs_of_hiv_are_measured_by_its_experiment():
    tasks = knockoffs_hiv.tasks(False)
    planned = {task.key for task in load_study("hiv").tasks(False)}
    paper = [task for task in tasks if task.experiment == "hiv"]
    assert {task.key for task in paper} <= planned
    assert len(paper) == 15 * 10
    assert knockoffs_hiv.MAIN not in {m.name for m in knockoffs_hiv.METHODS}


def test_tasks_without_data_are_tried_again(tmp_path, monkeypatch, rows):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "nowhere"))
    task = next(t for t in load_study("speed").tasks(True) if t.settings["name"] == "plx4720")
    record = perform(load_study("speed").measure, task)
    assert "SOBOLEV_DATA_HOME" in record["result"]["missing"]
    path = tmp_path / "data" / "speed.jsonl"
    append_record(path, record)
    append_record(path, record | {"result": {"what": "found"}})
    (row,) = rows("speed")
    assert row["what"] == "found"


def test_solvers_measure_and_render(run, results):
    run("knockoff_solvers", "--quick", "--only", "mvr1000")
    assert "| mvr, p = 200 (sobolev" in results()
