"""The benchmark scripts run, resume after a kill, and leave the results alone if quick."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def test_a_quick_run_leaves_the_results_alone(load, monkeypatch, tmp_path):
    common = load("_common")
    monkeypatch.setattr(common.tempfile, "tempdir", str(tmp_path))
    parser = common.argument_parser("")
    assert common.output_folder(parser.parse_args([])) == FOLDER
    assert common.output_folder(parser.parse_args(["--quick"])).parent == tmp_path


@pytest.mark.parametrize("name", ["sinexp", "moments"])
def test_speed_measures(load, tmp_path, name):
    load("speed").main(["--quick", "--only", name, "--output", str(tmp_path)])
    (record,) = load("_common").read_records(tmp_path / "results" / "speed.jsonl")
    assert min(record["seconds"] + record["peer_seconds"]) > 0
    assert record["what"] in (tmp_path / "RESULTS.md").read_text()
    # The moments of four times the rows take the memory of one chunk all the same.
    assert len(set(record["notes"].values())) <= 1


def test_neural_resumes_and_renders(load, tmp_path):
    neural, common = load("neural"), load("_common")
    for only in ("SinExp, n = 60: default", "small critic, d = 50"):
        neural.main(["--quick", "--only", only, "--output", str(tmp_path)])
    records = common.read_records(tmp_path / "results" / "neural.jsonl")
    neural.main(["--quick", "--only", "SinExp, n = 60: default", "--output", str(tmp_path)])
    assert common.read_records(tmp_path / "results" / "neural.jsonl") == records
    assert [r["seed"] for r in records if r["kind"] == "quality"] == [0, 1]
    assert all(min(r["milliseconds"]) > 0 for r in records if r["kind"] == "speed")
    text = (tmp_path / "RESULTS.md").read_text()
    assert "2 seeds" in text
    assert "ensemble of 16" in text


def test_wide_resumes_and_renders(load, tmp_path):
    wide, common = load("wide"), load("_common")
    argv = ["--quick", "--only", "ConvexSIC", "--output", str(tmp_path)]
    wide.main(argv)
    records = common.read_records(tmp_path / "results" / "wide.jsonl")
    assert [r["method"] for r in records] == ["ConvexSIC", "ConvexSIC, single precision"]
    assert all(r["columns"] >= 2000 and r["missed"] == 0 for r in records)
    assert records[0]["peak_gb"] > records[0]["data_gb"] > 0
    wide.main(argv)
    assert common.read_records(tmp_path / "results" / "wide.jsonl") == records
    assert "four shapes, 100 × 5,200 | ConvexSIC | 1 |" in (tmp_path / "RESULTS.md").read_text()


def test_solver_profile_counts_systems(load, tmp_path):
    load("solver_profile").main(["--quick", "--output", str(tmp_path)])
    (record,) = load("_common").read_records(tmp_path / "results" / "solver_profile.jsonl")
    assert record["profile"]["systems"] > record["profile"]["last"] > 0
    assert 0.5 < sum(record["profile"]["shares"].values()) < 1
    for plain, warm, accelerated in record["iterations"].values():
        assert 1 <= min(warm, accelerated) <= plain < 3000


def test_the_plain_loop_finds_what_the_closed_form_finds(load):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    y = X[:, [2]] + 0.1 * rng.standard_normal((200, 1))
    eta = load("_plain_neural").train("small", X, (y - y.mean()) / y.std(), n_updates=150)
    assert eta.sum() == pytest.approx(1, abs=1e-5)
    assert eta.argmax() == 2


def test_run_calls_every_script(load, monkeypatch):
    run, called = load("run"), []
    for name in ("ranking", "speed"):
        module = load(name)
        monkeypatch.setattr(module, "main", lambda argv, name=name: called.append((name, argv)))
    monkeypatch.setattr(run, "SCRIPTS", ("ranking", "speed", "absent"))
    run.main(["--quick"])
    assert called == [("ranking", ["--quick"]), ("speed", ["--quick"])]


def test_sections_are_replaced_in_place(load, tmp_path):
    write = load("_common").write_section
    for name, body in (("a", "first"), ("b", "other"), ("a", "second")):
        write(tmp_path / "RESULTS.md", name, body)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "first" not in text
    assert text.index("second") < text.index("other")
    assert list(tmp_path.iterdir()) == [tmp_path / "RESULTS.md"]


def test_hrt_resumes_and_renders(load, tmp_path):
    hrt, common = load("hrt"), load("_common")
    argv = ["--quick", "--only", "n = 125", "--method", "ConvexSIC", "--output", str(tmp_path)]
    hrt.main([*argv, "--seeds", "1"])
    path = tmp_path / "results" / "hrt.jsonl"
    first = common.read_records(path)
    assert {r["method"] for r in first} == {
        "ConvexSIC, forward, risk",
        "ConvexSIC, split, risk",
        "ConvexSIC, split, witness",
    }
    hrt.main([*argv, "--seeds", "2"])
    again = common.read_records(path)
    assert again[:3] == first
    assert [r["seed"] for r in again[3:]] == [1, 1, 1]
    assert all(0 <= r["fdp"] <= 1 and r["below"][-1] <= r["n_null"] for r in again)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| SinExp, n = 125 | 2 |" in text


def test_calibration_says_what_fails(load):
    hrt = load("hrt")
    design = hrt.DESIGNS[0]
    records = [
        {"design": design.name, "method": hrt.DEFAULT, "seed": seed, "n_null": 40, "failing": 0}
        for seed in range(50)
    ]
    for below, verdict in (([0, 0, 2, 4, 20], "holds"), ([1, 3, 8, 10, 25], "fails")):
        found = [r | {"below": below} for r in records]
        found[0]["below"] = [0, 0, below[2] + 1, 4, 20]  # some spread between data sets
        assert verdict in hrt.calibration([design], found)
    assert "too conservative" in hrt.calibration(
        [design], [r | {"below": [0] * 5} for r in records]
    )


def test_the_plain_loop_finds_the_pvalues_of_the_tables(load):
    speed = load("_hrt_speed")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((160, 4))
    y = np.sin(X[:, 0]) + 0.15 * X[:, 1] + 0.5 * rng.standard_normal(160)
    model = speed.ConvexSIC(lam=0.01).fit(X[:80], y[:80])
    conditional = speed.MixedConditional().fit(X)
    loop = speed.plain_loop(model, conditional, X[80:], y[80:], range(4), n_rounds=400)
    tables = speed.tabulated(model, conditional, X[80:], y[80:], range(4))
    # Five standard errors of 400 rounds, four columns: once in 400,000 runs.
    error = np.sqrt(tables * (1 - tables) / 400) + 1 / 400
    assert np.all(np.abs(loop - tables) < 5 * error)


def test_knockoffs_resume_and_render(load, tmp_path):
    knockoffs, common = load("knockoffs"), load("_common")
    argv = ["--quick", "--method", "lasso", "--output", str(tmp_path)]
    for design in ("AR(1) 0.5, linear", "equicorrelated 0.7", "no response"):
        knockoffs.main([*argv, "--only", design, "--seeds", "1"])
    path = tmp_path / "results" / "knockoffs.jsonl"
    first = common.read_records(path)
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
    knockoffs.main([*argv, "--only", "no response", "--seeds", "1"])
    assert common.read_records(path) == first
    assert "| AR(1) 0.5, linear | lasso | " in (tmp_path / "RESULTS.md").read_text()


def test_knockoff_rates_say_what_fails(load):
    knockoffs = load("knockoffs")
    method = knockoffs.NULL_METHODS[0]
    null = {"design": knockoffs.NULL.name, "method": method.name, "tpr": None, "seconds": 1.0}
    records = [null | {"seed": s, "fdp": float(s % 2)} for s in range(100)]
    assert "| 0.500 | 0.177 | **fails** | 100 |" in knockoffs.null_table(records)
    records = [null | {"seed": s, "fdp": float(s % 10 == 0)} for s in range(100)]
    assert "| 0.100 | 0.177 | holds | 100 |" in knockoffs.null_table(records)


def test_hiv_totals_count_complete_seeds_only(load):
    hiv = load("knockoffs_hiv")
    draws = {"draws1": [[3, 1], [9, 9]], "ebh1": [2, 0]}
    records = [{"drug": d, "seed": s} | draws for s in (0, 1) for d in ("A", "B")]
    found = hiv.totals(records[:-1], "draws1", ["A", "B"])
    assert found.tolist() == [[6.0, 2.0]]
    assert hiv.totals(records, "ebh1", ["A", "B"]).tolist() == [[4.0, 0.0], [4.0, 0.0]]
    assert hiv.totals(records, "draws1", ["A", "C"]) is None


def test_hiv_without_data_says_so(load, tmp_path, monkeypatch, capsys):
    hiv = load("knockoffs_hiv")
    monkeypatch.setattr(hiv.common, "DATA_HOME", tmp_path)
    hiv.main(["--quick", "--output", str(tmp_path)])
    assert "SOBOLEV_DATA_HOME" in capsys.readouterr().out


def test_solvers_measure_and_render(load, tmp_path):
    solvers = load("knockoff_solvers")
    solvers.main(["--quick", "--only", "mvr1000", "--output", str(tmp_path)])
    assert "| mvr, p = 200 (sobolev" in (tmp_path / "RESULTS.md").read_text()
