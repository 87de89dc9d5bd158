"""The ranking benchmark: resuming, peers that are absent or fail, ties, computed verdicts."""

import sys

import numpy as np
import pytest

from reproduction import pages
from reproduction.benchmarks import ranking, ranking_data
from reproduction.benchmarks import ranking_peers as peers
from reproduction.benchmarks import ranking_report as report
from reproduction.benchmarks.paired import FIRST_SEED, LEAST
from reproduction.child import in_child
from reproduction.engine import read_records, record_key


@pytest.fixture
def sklearn_alone(monkeypatch):
    """The peers of scikit-learn alone, as where nothing else is installed."""
    absent = {p.name: f"{p.package} is not installed" for p in ranking.PEERS}
    monkeypatch.setattr(
        ranking, "missing", lambda peer: None if peer.module == "sklearn" else absent[peer.name]
    )


SKLEARN = ("mutual information", "HistGradientBoosting")


def test_a_run_resumes_and_renders(sklearn_alone, run, results, tmp_path):
    options = ["--quick", "--repetitions", "2", "--only", "2 classes"]
    records = [r for r in run("ranking", *options) if "missing" not in r]
    methods = ("ConvexSIC", "NeuralSIC", "random forest", *SKLEARN)
    seeds = (FIRST_SEED, FIRST_SEED + 1)
    assert {(r["method"], r["seed"]) for r in records} == {(m, s) for m in methods for s in seeds}
    assert min(r["seconds"] for r in records) > 0

    # A kill in the middle of a line costs that fit alone.
    path = tmp_path / "data" / "ranking.jsonl"
    kept = [r for r in read_records(path) if "missing" not in r["result"]]
    lines = [ln for ln in path.read_bytes().splitlines(keepends=True) if b'"missing"' not in ln]
    position = next(i for i, r in enumerate(kept) if r["settings"]["method"] == "random forest")
    cut = lines.pop(position)
    path.write_bytes(b"".join(lines) + cut[:20])
    run("ranking", *options)
    again = [r for r in read_records(path) if "missing" not in r["result"]]
    lost = kept.pop(position)
    assert again[:-1] == kept
    assert record_key(again[-1]) == record_key(lost)
    assert again[-1]["result"]["tpr"] == lost["result"]["tpr"]

    run("ranking", *options)
    assert [r for r in read_records(path) if "missing" not in r["result"]] == again
    text = results()
    assert text.count("<!-- ranking:start -->") == text.count("<!-- ranking:end -->") == 1
    assert "- LassoNet: lassonet is not installed." in text
    assert "- elastic net: regression only." in text
    assert "(2, 50 trees)" in text


def test_one_method_alone(sklearn_alone, run, capsys):
    options = ["--quick", "--repetitions", "1", "--only", "Friedman"]
    records = run("ranking", *options, "--only", "mutual")
    assert [r["method"] for r in records] == ["mutual information"]
    assert records[0]["package"].startswith("scikit-learn ")
    run("ranking", *options, "--only", "nobody", code=2)
    assert "no task has this in its settings" in capsys.readouterr().err


def test_missing_peers_have_reasons(monkeypatch, tmp_path):
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


def test_a_peer_that_fails_leaves_a_record(sklearn_alone, run, monkeypatch, tmp_path):
    def fails(X, y, seed, quick):
        if seed == FIRST_SEED:
            raise ZeroDivisionError("loss is not finite")
        return np.full(X.shape[1], np.nan)

    bad = peers.Peer("bad", fails, "fails")
    monkeypatch.setattr(ranking, "PEER_OF", {"bad": bad})
    monkeypatch.setattr(ranking, "METHODS", (*ranking.CORE, "bad"))
    options = ["--quick", "--repetitions", "2", "--only", "XOR", "--only", "bad"]
    records = run("ranking", *options)
    assert [r["tpr"] for r in records] == [None, None]
    assert [r["error"].split(":")[0] for r in records] == ["ZeroDivisionError", "ValueError"]
    monkeypatch.setattr(
        ranking, "rank", lambda *args, **options: pytest.fail("a failed fit is not tried again")
    )
    run("ranking", *options)
    found = ranking.results(pages.rows_of("ranking", tmp_path))
    data = next(data for data in ranking.QUICK if "XOR" in data.name)
    assert found.measured(data, "bad") == {}
    row = {"dataset": data.name, "method": "ConvexSIC", "quick": True, "tpr": 1.0, "seconds": 1.0}
    ours = row | {"seed": FIRST_SEED}
    found = ranking.results([ours, *pages.rows_of("ranking", tmp_path)])
    assert "| bad | failed on 2 seeds |" in report.quality_table(found)


def test_the_published_records_keep_their_keys():
    keys = {task.key for task in ranking.tasks(False)}
    for record in read_records(pages.records_file(pages.home("ranking"), "ranking")):
        if record["settings"]["method"] in ranking.CORE and record["seed"] >= FIRST_SEED:
            assert record_key(record) in keys


def test_without_data_a_run_says_so(sklearn_alone, run, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SOBOLEV_DATA_HOME", str(tmp_path / "nowhere"))
    records = run("ranking", "--quick", "--only", "plx4720")
    assert all("missing" in r for r in records)
    assert "- plx4720, screened: `SOBOLEV_DATA_HOME` must name" in capsys.readouterr().out


def test_ties_count_by_their_expectation():
    rate, rank = ranking.true_positive_rate, ranking.mean_rank
    support = np.array([True, True, False, False])
    assert rate(np.array([2.0, 1.0, 0.0, 0.0]), support) == 1.0
    assert rate(np.zeros(4), support) == 0.5
    assert rate(np.array([0.0, 1.0, 0.0, 0.0]), support) == pytest.approx((1 + 1 / 3) / 2)
    assert rate(np.array([np.inf, 0.0, np.inf, 0.0]), support) == 0.5
    wanted = np.array([False, True, False, False])
    assert rank(np.array([3.0, 5.0, 1.0, 0.0]), wanted) == 1
    assert rank(np.array([3.0, 0.0, 0.0, 0.0]), wanted) == 3


def test_ranks_that_tie_fall_with_the_importance():
    scores = peers.break_ties([1, 1, 2, 3, 3], np.array([0.1, 0.4, 0.9, 0.0, 0.0]))
    assert np.argsort(-scores)[:3].tolist() == [1, 0, 2]
    assert scores[3] == scores[4] < scores[2]


@pytest.mark.parametrize(("n", "size"), [(500, 20), (125, 25), (150, 15), (359, 20)])
def test_blocks_divide_the_rows_where_they_can(n, size):
    assert peers.block_size(n) == size


def test_what_does_not_run_names_a_data_set_and_a_method():
    names = {data.name for data in ranking.DATA}
    for method, data in ranking.NOT_RUN:
        assert method in ranking.PEER_OF
        assert data in names
    wide = next(data for data in ranking.DATA if data.name == ranking.WIDE)
    assert "9 minutes" in ranking.obstacle(wide, "STG")
    assert ranking.obstacle(wide, "mutual information") is None


def test_slow_peers_have_fewer_seeds():
    names = ("SinExp, n = 125", "Liang, 40 of 500, n = 500", "XOR, 2 of 1000, n = 1000")
    sets = [data for data in ranking.DATA if data.name in names]
    for method, most in {"ConvexSIC": [50, 20, 20], "LassoNet": [20, 20, 20]}.items():
        assert [ranking.n_seeds(data, method, False) for data in sets] == most
    assert ranking.n_seeds(sets[0], "LassoNet", True) == 1


def test_one_seed_of_everything_comes_before_the_next(monkeypatch):
    monkeypatch.setattr(ranking, "missing", lambda peer: None)
    tasks = [task for task in ranking.tasks(False) if "kind" not in task.settings]
    assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
    counts = {}
    for task in tasks:
        key = task.settings["dataset"], task.settings["method"]
        counts[key] = counts.get(key, 0) + 1
    assert min(counts.values()) >= LEAST
    assert counts["SinExp, n = 125", "mutual information"] == 50


def test_times_are_those_of_the_records():
    base = {"dataset": "SinExp, n = 125", "tpr": 1.0, "version": "1"}
    rows = [
        base | {"method": "ConvexSIC", "seed": FIRST_SEED + k, "seconds": 4.0} for k in range(3)
    ]
    peer = base | {"method": "random forest"}
    rows += [peer | {"seed": FIRST_SEED, "seconds": 12.0}]
    rows += [peer | {"seed": FIRST_SEED + 2, "seconds": 3.0}]
    rows += [peer | {"seed": FIRST_SEED + 9, "seconds": 99.0}]  # without a fit of the reference
    found = ranking.results(rows)
    assert found.ratios(ranking.DATA[0], "random forest") == [3.0, 0.75]
    assert "| ConvexSIC | 4 s | – |" in report.cost_table(found)


def made_up(shares, seconds):
    """Results on one data set from shares by seed; the reference takes a second."""
    task = ranking_data.DATA[0]
    found = report.Results([task], list(shares), ["ConvexSIC"])
    for method, values in shares.items():
        found.records[task.name, method] = {
            seed: {"tpr": value, "seconds": seconds.get(method, 1.0)}
            for seed, value in values.items()
        }
    return task, found


def test_verdicts_are_computed_from_pairs():
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
    task, found = made_up(shares, {"level": 0.6, "better": 0.1})
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


def test_a_clean_sheet_says_every_peer():
    shares = {
        "ConvexSIC": {0: 1.0, 1: 1.0},
        "a": {0: 0.5, 1: 0.5},
        "b": {0: 0.0, 1: 0.0},
    }
    _, found = made_up(shares, {"a": 3.0})
    assert "| every peer (2) | – | – |" in report.verdict_table(found)
    assert report.verdict_text(found) == "No peer wins. None is level and faster."
    assert "| a | 3× (3–3) | – |" in report.cost_table(found)
    assert "| **1.000** ± 0.000 (2) |" in report.quality_table(found)
    assert report.core_table(found).endswith("| **1.000** ± 0.000 (2 seeds, 1× time) |")


def test_the_best_peer_is_named_with_its_time():
    shares = {"ConvexSIC": {0: 0.5, 1: 0.6}, "a": {0: 0.7, 1: 0.8, 2: 0.9}, "b": {0: 0.1, 1: 0.1}}
    task, found = made_up(shares, {"a": 3.0})
    line = f"| {task.name} | 0.550 (1 s) | a: 0.800 (3 s) | -0.200 ± 0.000 (2) | **behind** |"
    assert line in report.winner_table(found)


def test_equal_shares_are_level():
    thirds = {0: 1 / 3, 1: 2 / 3}
    shares = {"ConvexSIC": thirds, "same": {s: v + 1e-16 for s, v in thirds.items()}}
    task, found = made_up(shares, {})
    assert [name for name, _, _ in report.verdicts(found, task)["level"]] == ["same"]


def test_peers_rank_what_matters_first():
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


def test_memory_is_that_of_a_child():
    settings = ranking.settings_of(ranking.QUICK[0], "elastic net", True)
    assert 2**20 < in_child(ranking.once, settings, False)["peak"] < 2**33
