"""The ranking benchmark: resuming, peers that are absent or fail, ties, computed verdicts."""

import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def ranking(load, monkeypatch):
    """The script with the peers of scikit-learn alone, as where nothing else is installed."""
    script = load("ranking")
    absent = {p.name: f"{p.package} is not installed" for p in script.PEERS}
    monkeypatch.setattr(
        script, "missing", lambda peer: None if peer.module == "sklearn" else absent[peer.name]
    )
    return script


SKLEARN = ("mutual information", "HistGradientBoosting")


def test_a_run_resumes_and_renders(ranking, load, tmp_path):
    common = load("_common")
    argv = ["--quick", "--seeds", "2", "--only", "2 classes", "--output", str(tmp_path)]
    ranking.main(argv)
    path, costs = (tmp_path / "results" / f"ranking{end}.jsonl" for end in ("", "_costs"))
    records = common.read_records(path)
    methods = ("ConvexSIC", "NeuralSIC", "random forest", *SKLEARN)
    assert {(r["method"], r["seed"]) for r in records} == {(m, s) for m in methods for s in (0, 1)}
    assert {r["method"] for r in records if r["in_turn"]} == set(methods[:3])
    timed = common.read_records(costs)
    assert [(r["method"], r["seed"]) for r in timed] == [(m, s) for s in (0, 1) for m in SKLEARN]
    assert min(r["reference_seconds"] for r in timed) > 0

    # A kill in the middle of a line costs that fit alone; it is timed beside the reference.
    lines = path.read_bytes().splitlines(keepends=True)
    position = next(i for i, r in enumerate(records) if r["method"] == "random forest")
    cut = lines.pop(position)
    path.write_bytes(b"".join(lines) + cut[:20])
    ranking.main(argv)
    again = common.read_records(path)
    lost = records.pop(position)
    assert again[:-1] == records
    loose = {"seconds": 0, "in_turn": None}
    assert again[-1] | loose == lost | loose
    assert again[-1]["in_turn"] is False
    assert [r["method"] for r in common.read_records(costs)[len(timed) :]] == ["random forest"]

    ranking.main(argv)
    assert common.read_records(path) == again
    text = (tmp_path / "RESULTS.md").read_text()
    assert text.count("<!-- ranking:start -->") == text.count("<!-- ranking:end -->") == 1
    assert "- LassoNet: lassonet is not installed." in text
    assert "- elastic net: regression only." in text
    assert "(2, 50 trees)" in text


def test_one_method_alone(ranking, load, tmp_path):
    argv = ["--quick", "--seeds", "1", "--only", "Friedman", "--output", str(tmp_path)]
    ranking.main([*argv, "--method", "mutual"])
    records = load("_common").read_records(tmp_path / "results" / "ranking.jsonl")
    assert [r["method"] for r in records] == ["mutual information"]
    assert records[0]["package"].startswith("scikit-learn ")
    with pytest.raises(SystemExit, match="choose among ConvexSIC"):
        ranking.main([*argv, "--method", "nobody"])


def test_missing_peers_have_reasons(load, monkeypatch, tmp_path):
    peers = load("_ranking_peers")
    (tmp_path / "broken_peer.py").write_text("raise RuntimeError('no such symbol')")
    (tmp_path / "needy_peer.py").write_text("import not_there_either")
    monkeypatch.syspath_prepend(str(tmp_path))

    def reason(module):
        return peers.missing(peers.Peer("p", None, "", package="package", module=module))

    assert reason("not_there_at_all") == "package is not installed"
    assert "package does not import: No module named" in reason("needy_peer")
    assert reason("broken_peer") == "package does not import: RuntimeError: no such symbol"
    assert reason("sklearn") is None
    assert "broken_peer" not in sys.modules


def test_a_peer_that_fails_leaves_a_record(ranking, load, monkeypatch, tmp_path):
    peers = load("_ranking_peers")

    def fails(X, y, seed, quick):
        if seed == 0:
            raise ZeroDivisionError("loss is not finite")
        return np.full(X.shape[1], np.nan)

    bad = peers.Peer("bad", fails, "fails")
    monkeypatch.setattr(ranking, "PEER_OF", {"bad": bad})
    monkeypatch.setattr(ranking, "METHODS", (*ranking.CORE, "bad"))
    argv = ["--quick", "--seeds", "2", "--only", "XOR", "--method", "bad"]
    argv += ["--output", str(tmp_path)]
    ranking.main(argv)
    records = load("_common").read_records(tmp_path / "results" / "ranking.jsonl")
    assert [r["tpr"] for r in records] == [None, None]
    assert [r["error"].split(":")[0] for r in records] == ["ZeroDivisionError", "ValueError"]
    assert not (tmp_path / "results" / "ranking_costs.jsonl").exists()
    monkeypatch.setattr(
        ranking, "rank", lambda *args, **options: pytest.fail("a failed fit is not tried again")
    )
    ranking.main(argv)
    store = ranking.Store(tmp_path / "results")
    found = ranking.results(ranking.QUICK_TASKS, store, True)
    task = next(t for t in ranking.QUICK_TASKS if "XOR" in t.name)
    assert found.measured(task, "bad") == {}
    found.records[task.name, "ConvexSIC"] = {0: {"tpr": 1.0, "settings": {}}}
    assert "| bad | failed on 2 seeds |" in load("_ranking_report").quality_table(found)


def test_the_records_of_the_folder_keep_their_keys(ranking, load):
    keys = {
        ranking.task_key(task, method, False) for task in ranking.TASKS for method in ranking.CORE
    }
    for record in load("_common").read_records(FOLDER / "results" / "ranking.jsonl"):
        if record["method"] in ranking.CORE:
            assert (
                load("_ranking_store").record_key(record | {"version": ranking.__version__}) in keys
            )


def test_without_data_a_run_says_so(ranking, load, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(load("_common"), "DATA_HOME", tmp_path)
    ranking.main(["--quick", "--only", "plx4720", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert "plx4720, screened is left out" in out
    assert "- plx4720, screened: `SOBOLEV_DATA_HOME` must name" in out


def test_ties_count_by_their_expectation(ranking):
    rate, rank = ranking.true_positive_rate, ranking.mean_rank
    support = np.array([True, True, False, False])
    assert rate(np.array([2.0, 1.0, 0.0, 0.0]), support) == 1.0
    assert rate(np.zeros(4), support) == 0.5
    assert rate(np.array([0.0, 1.0, 0.0, 0.0]), support) == pytest.approx((1 + 1 / 3) / 2)
    assert rate(np.array([np.inf, 0.0, np.inf, 0.0]), support) == 0.5
    wanted = np.array([False, True, False, False])
    assert rank(np.array([3.0, 5.0, 1.0, 0.0]), wanted) == 1
    assert rank(np.array([3.0, 0.0, 0.0, 0.0]), wanted) == 3


def test_ranks_that_tie_fall_with_the_importance(load):
    scores = load("_ranking_peers").break_ties([1, 1, 2, 3, 3], np.array([0.1, 0.4, 0.9, 0.0, 0.0]))
    assert np.argsort(-scores)[:3].tolist() == [1, 0, 2]
    assert scores[3] == scores[4] < scores[2]


@pytest.mark.parametrize(("n", "size"), [(500, 20), (125, 25), (150, 15), (359, 20)])
def test_blocks_divide_the_rows_where_they_can(load, n, size):
    assert load("_ranking_peers").block_size(n) == size


def test_what_does_not_run_names_a_data_set_and_a_method(ranking):
    names = {task.name for task in ranking.TASKS}
    for method, data in ranking.NOT_RUN:
        assert method in ranking.PEER_OF
        assert data in names
    task = next(task for task in ranking.TASKS if task.name == ranking.WIDE)
    assert "9 minutes" in ranking.obstacle(task, "STG")
    assert ranking.obstacle(task, "mutual information") is None


def test_slow_peers_have_fewer_seeds(ranking):
    names = ("SinExp, n = 125", "Liang, 40 of 500, n = 500", "XOR, 2 of 1000, n = 1000")
    tasks = [task for task in ranking.TASKS if task.name in names]
    for method, most in {"ConvexSIC": [50, 10, 5], "LassoNet": [5, 2, 2]}.items():
        assert [ranking.n_seeds(task, method, False) for task in tasks] == most
    assert ranking.n_seeds(tasks[0], "LassoNet", True) == 1


def test_times_compare_what_ran_in_turn(ranking, load, tmp_path):
    common = load("_common")
    base = {"dataset": "d", "settings": {}, "version": "1", "tpr": 1.0}
    late = {"in_turn": False}
    # Of seed 1 the forest, of seed 3 the reference was fitted later than the rest.
    for seed, reference, forest in ((0, {}, {}), (1, {}, late), (3, late, {})):
        for method, taken, turn in (("ConvexSIC", 2.0, reference), ("forest", 6.0, forest)):
            record = base | {"method": method, "seed": seed, "seconds": taken} | turn
            common.append_record(tmp_path / "ranking.jsonl", record)
    cost = base | {"kind": "time", "method": "forest", "seed": 2}
    cost |= {"seconds": 3.0, "reference_seconds": 4.0}
    common.append_record(tmp_path / "ranking_costs.jsonl", cost)
    store, key = ranking.Store(tmp_path), load("_ranking_store").key
    own, reference = (key("1", "d", method, {}) for method in ("forest", "ConvexSIC"))
    assert store.ratios(own, reference) == {0: 3.0, 2: 0.75}


def made_up(load, shares, ratios):
    """Results on one data set from shares by seed."""
    report, data = load("_ranking_report"), load("_ranking_data")
    task = data.TASKS[0]
    found = report.Results([task], list(shares), ["ConvexSIC"])
    for method, values in shares.items():
        found.records[task.name, method] = {
            seed: {"tpr": value, "settings": {}, "seconds": 1.0} for seed, value in values.items()
        }
        found.ratios[task.name, method] = ratios.get(method, [])
    return report, task, found


def test_verdicts_are_computed_from_pairs(load):
    ours = {seed: 0.5 + 0.1 * (seed % 2) for seed in range(10)}
    shares = {
        "ConvexSIC": ours,
        "worse": {s: v - 0.2 - 0.01 * (s % 3) for s, v in ours.items()},
        # Three standard errors below ours, and one and a half above.
        "slightly": {s: v - 0.02 + 0.02 * (-1) ** s for s, v in ours.items()},
        "level": {s: v + 0.01 + 0.02 * (-1) ** s for s, v in ours.items()} | {99: 1.0},
        "better": {s: v + 0.05 + 0.01 * (s % 3) for s, v in ours.items()},
        "once": {0: 1.0},
        "NeuralSIC": dict.fromkeys(ours, 1.0),
    }
    report, task, found = made_up(load, shares, {"level": [0.5, 0.6, 9.0], "better": [0.1]})
    sides = report.verdicts(found, task)
    assert {side: [name for name, _, _ in rows] for side, rows in sides.items()} == {
        "ahead": ["worse", "slightly"],
        "level": ["level"],
        "behind": ["better"],
    }
    ((_, mean, error),) = sides["behind"]
    differences = np.array([shares["better"][s] - ours[s] for s in ours])
    assert -mean == pytest.approx(differences.mean())
    assert error == pytest.approx(differences.std(ddof=1) / np.sqrt(10))
    assert "| worse; slightly | level (0.6× time) | better by 0.059 ± 0.003 |" in (
        report.verdict_table(found)
    )
    assert report.verdict_text(found) == (
        f"Peers that win: better on {task.name}. Level and faster: level on {task.name}."
    )


def test_a_clean_sheet_says_every_peer(load):
    shares = {
        "ConvexSIC": {0: 1.0, 1: 1.0},
        "a": {0: 0.5, 1: 0.5},
        "b": {0: 0.0, 1: 0.0},
    }
    report, _, found = made_up(load, shares, {"a": [2.0, 3.0, 40.0]})
    assert "| every peer (2) | – | – |" in report.verdict_table(found)
    assert report.verdict_text(found) == "No peer wins. None is level and faster."
    assert "| a | 3× (2.5–22) | – |" in report.cost_table(found)
    assert "| **1.000** ± 0.000 (2) |" in report.quality_table(found)
    assert report.core_table(found).endswith("| **1.000** ± 0.000 (2 seeds) |")


def test_equal_shares_are_level(load):
    thirds = {0: 1 / 3, 1: 2 / 3}
    shares = {"ConvexSIC": thirds, "same": {s: v + 1e-16 for s, v in thirds.items()}}
    report, task, found = made_up(load, shares, {})
    assert [name for name, _, _ in report.verdicts(found, task)["level"]] == ["same"]


def test_peers_rank_what_matters_first(load):
    peers = load("_ranking_peers")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12))
    y = 2 * X[:, 4] + 0.3 * rng.standard_normal(200)
    labels = np.array(["low", "high"])[(y > 0).astype(int)]
    for peer in peers.PEERS:
        if peers.missing(peer) is not None:
            continue
        for response in (y, labels):
            scores = peer.scores(X, response, 0, quick=True)
            assert scores.shape == (12,)
            assert not np.isnan(scores).any()
            if peer.name not in ("STG", "LassoNet"):  # a few steps are not enough for networks
                assert scores.argmax() == 4, peer.name


def test_memory_is_that_of_a_child(load):
    taken = load("_ranking_memory")._child("elastic net", "SinExp, n = 125", "import", True)
    assert 2**20 < taken < 2**33
