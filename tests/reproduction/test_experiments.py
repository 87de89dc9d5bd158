"""Every experiment once, on tiny settings; the real data only where they are."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from reproduction import PAPER, load_study, methods
from reproduction.paper import hiv, hiv_page, liang, plx4720, simulations, sinexp
from sobolev import ConvexSIC

TINY = {"n": 60, "features": 12, "top": 6, "shortlist": 8}
with_data = pytest.mark.skipif(
    not os.environ.get("SOBOLEV_DATA_HOME"), reason="SOBOLEV_DATA_HOME is not set"
)


@pytest.mark.parametrize("name", PAPER)
def test_plans(name):
    experiment = load_study(name)
    full, quick = experiment.tasks(False), experiment.tasks(True)
    assert name == experiment.NAME
    for tasks in (full, quick):
        assert len({task.key for task in tasks}) == len(tasks)
        assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
        assert json.loads(json.dumps([task.settings for task in tasks]))
    assert max(task.seed for task in full) + 1 == experiment.REPETITIONS
    assert max(task.seed for task in quick) < 3
    assert max(task.seed for task in experiment.tasks(False, 7)) == 6
    assert len(quick) < len(full)


def test_plans_are_those_of_the_paper():
    assert sinexp.REPETITIONS == liang.REPETITIONS == plx4720.REPETITIONS == 100
    assert {task.settings["n"] for task in sinexp.tasks(False)} == {125, 250, 500}
    assert {task.settings["top"] for task in sinexp.tasks(False)} == {6}
    assert {task.settings["shortlist"] for task in liang.tasks(False)} == {100}
    drugs = {task.settings["drug"] for task in hiv.tasks(False)}
    assert set(hiv.PUBLISHED) < drugs
    assert len(hiv.PUBLISHED) == 15
    # The totals of the published columns, as they are quoted elsewhere.
    assert hiv_page.published_total(0) == (196, 83)
    assert hiv_page.published_total(1) == (182, 63)


WITHOUT_SPLIT = (simulations.FORWARD, simulations.ORACLE)


@pytest.mark.parametrize("method", [*simulations.METHODS, simulations.ORACLE])
def test_sinexp_methods(method, monkeypatch):
    if method not in ("elastic net", "random forest", "ConvexSIC", *WITHOUT_SPLIT):
        pytest.importorskip("torch")
        from sobolev.neural import Optimizer

        monkeypatch.setattr(Optimizer, "paper", lambda: Optimizer(max_iter=50, rounds=1))
    settings = TINY | {"method": method}
    result = sinexp.measure(settings, 0)
    own = result.pop("own", {})
    kinds = {"hrt"} if method in WITHOUT_SPLIT else {"top", "hrt"}
    kinds |= {"witness"} if method == simulations.PAPER else set()
    assert set(result) == kinds
    tested = ("risk",) if method == simulations.FORWARD else simulations.STATISTICS.get(method, ())
    assert set(own) == set(tested)
    for rates in (*result.values(), *own.values()):
        assert 0 <= rates["tpr"] <= 1
        assert 0 <= rates["fdp"] <= 1
    if method in ("ConvexSIC", "NeuralSIC"):
        assert method == "NeuralSIC" or sinexp.measure(settings, 0) == result | {"own": own}
        assert result["top"]["tpr"] == pytest.approx(1 - result["top"]["fdp"], abs=2e-4)


@pytest.mark.parametrize(
    ("experiment", "settings"),
    [
        (sinexp, {"n": 250, "features": 20, "top": 6, "shortlist": 10}),
        (liang, {"n": 250, "features": 60, "top": 40, "shortlist": 50, "critic": "big"}),
    ],
    ids=["sinexp", "liang"],
)
def test_no_critic_finds_more_than_the_true_function(experiment, settings):
    found = {
        method: [experiment.measure(settings | {"method": method}, seed)["hrt"] for seed in (0, 1)]
        for method in WITHOUT_SPLIT
    }
    ours, truth = (np.mean([r["tpr"] for r in found[m]]) for m in WITHOUT_SPLIT)
    assert truth >= max(ours, 0.85)
    # A column that the function does not use has p-value one.
    assert all(rates["fdp"] == 0 for rates in found[simulations.ORACLE])


def test_liang_takes_the_critic_of_its_settings(monkeypatch):
    asked = []

    def make_model(method, seed, critic=None):
        asked.append(critic)
        return original("elastic net", seed)

    original = methods.make_model
    monkeypatch.setattr(methods, "make_model", make_model)
    settings = TINY | {"features": 50, "method": "NeuralSIC", "critic": "big"}
    assert set(liang.measure(settings, 0)) == {"top", "hrt", "own"}
    assert asked == ["big"]


def test_models_have_the_settings_of_the_paper():
    from sobolev.neural import Boosting, Optimizer

    boosted = methods.make_model("Boosted SIC", 3)
    assert boosted.optimizer.batch_size == [10, 30, 50]
    assert boosted.boosting == Boosting(1, "geometric")
    assert boosted.random_state == 3
    assert methods.make_model(simulations.PAPER, 0, "big").critic == "big"
    assert methods.make_model(simulations.PAPER, 0).optimizer == Optimizer.paper()
    assert methods.make_model("NeuralSIC", 0).optimizer == Optimizer()
    with pytest.raises(ValueError, match="magic"):
        methods.make_model("magic", 0)


def test_halves_are_those_of_the_benchmark_of_the_test():
    train, test = simulations.halves(10, seed=4)
    order = np.random.default_rng([4, 1]).permutation(10)
    np.testing.assert_array_equal(np.concatenate([train, test]), order)


def test_rates():
    true = np.array([True, True, False, False])
    found = np.array([True, False, True, False])
    assert simulations.rates(found, true) == {"tpr": 0.5, "fdp": 0.5}
    assert simulations.rates(np.zeros(4, dtype=bool), true) == {"tpr": 0.0, "fdp": 0.0}
    largest = simulations.largest(np.array([0.0, 3.0, 1.0, 2.0]), 2)
    assert largest.tolist() == [False, True, False, True]
    assert simulations.largest(np.array([0.0, 3.0]), 2).tolist() == [False, True]


@pytest.fixture
def small_plx(monkeypatch):
    """Cell lines of the same form, 30 features, two of which matter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    X[:, 0] = X[:, 0] > 0
    X[:, 7] = 1.0
    y = 4 * X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(80)
    names = np.array(["BRAF_mut", *(f"G{j}_EXP" for j in range(1, 30))], dtype=object)
    calls = []

    def load(min_correlation):
        calls.append(min_correlation)
        return Bunch(data=X, target=y, feature_names=names)

    monkeypatch.setattr("sobolev.datasets.load_plx4720", load)
    plx4720._data.cache_clear()
    plx4720._ranking_of_all.cache_clear()
    yield X, y / y.std()
    plx4720._data.cache_clear()
    plx4720._ranking_of_all.cache_clear()


def test_screening_keeps_columns_of_some_correlation(small_plx):
    X, y = small_plx
    r = np.array([0.0 if np.ptp(x) == 0 else np.corrcoef(x, y)[0, 1] for x in X.T])
    np.testing.assert_array_equal(plx4720.screened(X, y), np.flatnonzero(np.abs(r) >= 0.1))


def test_plx4720_split(small_plx, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(plx4720.TOPS, "ConvexSIC", (1, 5))
    settings = {"part": "split", "method": "ConvexSIC", "rows": "training rows", "first_split": 0}
    result = plx4720.measure(settings, 1)
    assert result["first"] == "BRAF_mut"
    assert set(result["errors"]) == {"1", "5"}
    for regressor in plx4720.REGRESSORS:  # the second feature explains what the first leaves
        one, five = (result["errors"][top][regressor] for top in ("1", "5"))
        assert 0 < five < one < 1
    assert plx4720.measure(settings, 1) == result
    assert plx4720.measure(settings | {"first_split": 1}, 0) == result


def test_plx4720_rankings(small_plx):
    X, y = small_plx
    r = np.abs([np.corrcoef(X[:, j], y)[0, 1] for j in plx4720.screened(X, y)])
    order, values = plx4720.ranking(plx4720.CORRELATION, X, y, 0)
    np.testing.assert_allclose(values, np.sort(r)[::-1])
    assert sorted(order) == list(plx4720.screened(X, y))
    kept = np.sort(order)
    sic = ConvexSIC(random_state=0).fit(X[:, kept], y)
    order, values = plx4720.ranking("ConvexSIC", X, y, 0)
    np.testing.assert_array_equal(values, np.sort(sic.feature_importances_)[::-1])


def test_rows_that_are_predicted_choose_nothing(small_plx, monkeypatch):
    """Unless the rows are all, which the paper's are."""
    seen = []
    monkeypatch.setattr(plx4720, "held_out_errors", lambda *_: {})
    original = plx4720.ranking

    def ranking(method, X, y, seed):
        seen.append(y.size)
        return original(method, X, y, seed)

    monkeypatch.setattr(plx4720, "ranking", ranking)
    for rows in plx4720.ROWS:
        settings = {"part": "split", "method": "elastic net", "rows": rows, "first_split": 0}
        plx4720.measure(settings, 0)
    assert seen == [72, 80]
    test, train = plx4720.split_rows(80, 0)
    assert sorted([*test, *train]) == list(range(80))
    assert test.size == 8


def test_plx4720_finds_and_tests(small_plx):
    found = plx4720.measure({"part": "found", "method": "ConvexSIC"}, 0)
    assert found["top"][0][0] == "BRAF_mut"
    tested = plx4720.measure({"part": "tested", "method": "HRT"}, 0)
    pvalues = [pvalue for _, pvalue, _ in tested["features"]]
    assert pvalues == sorted(pvalues)
    assert all(pvalue <= qvalue for _, pvalue, qvalue in tested["features"])
    assert "BRAF_mut" in tested["selected"]
    knockoffs = plx4720.measure({"part": "tested", "method": plx4720.KNOCKOFFS}, 0)
    assert knockoffs["features"][0][0] == "BRAF_mut"


def test_the_shortlist_of_knockoffs_is_chosen_on_other_rows(small_plx):
    X, y, _ = plx4720._data()
    columns, rows = plx4720.shortlist(X, y)
    y = y.copy()
    y[rows] = 0.0
    again, same = plx4720.shortlist(X, y)
    np.testing.assert_array_equal(again, columns)
    np.testing.assert_array_equal(same, rows)
    assert rows.size == y.size - y.size // 3


@pytest.fixture
def small_hiv(monkeypatch):
    """Twelve positions of two mutations each; four matter."""
    rng = np.random.default_rng(0)
    X = (rng.random((100, 24)) < 0.3).astype(float)
    positions = np.repeat(np.arange(10, 22), 2)
    y = X[:, :8] @ np.full(8, 1.5) + 0.3 * rng.standard_normal(100)
    data = Bunch(data=X, target=y, positions=positions, tsm_positions=np.arange(10, 14))
    monkeypatch.setattr("sobolev.datasets.load_hiv", lambda drug: data)


@pytest.mark.parametrize("method", ["knockoffs", "HRT"])
def test_hiv(small_hiv, method):
    settings = {"drug": "ATV", "method": method, "fdr": 0.2}
    result = hiv.measure(settings, 0)
    counted = ["ebh1", "ebh0", "draw1", "draw0"] if method == "knockoffs" else ["hrt"]
    for name in counted:
        true, false = result[name]
        assert 0 <= true <= 4
        assert 0 <= false <= 8
    assert max(result[name][0] for name in counted) == 4
    if method == "knockoffs":
        assert hiv.measure(settings, 0) == result


def test_hiv_with_a_simulated_response(small_hiv, monkeypatch):
    from sobolev.datasets import load_hiv

    real = load_hiv("ATV")
    data, again, other = (hiv.simulate(real, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(data.target, again.target)
    assert not np.array_equal(data.target, other.target)
    assert len(data.tsm_positions) == 6  # half of the twelve, which is fewer than twenty
    beside = ~np.isin(data.positions, data.tsm_positions)
    changed = Bunch(**{**real, "data": np.where(beside, 1 - real.data, real.data)})
    monkeypatch.setattr(hiv, "MIN_MUTATED", 0)
    np.testing.assert_array_equal(hiv.simulate(changed, 0).target, hiv.simulate(real, 0).target)
    settings = {"drug": "ATV", "method": f"HRT{hiv.SIMULATED}", "fdr": 0.2}
    result = hiv.measure(settings, 0)
    assert result["n_true"] == 6
    assert 0 < result["simulated"]["hrt"][0] <= 6


@with_data
def test_the_real_data_are_found():
    plx4720._data.cache_clear()
    plx4720.check_data()
    hiv.check_data()
    X, y, names = plx4720._data()
    assert X.shape[0] == y.size == 359
    assert y.std() == pytest.approx(1)
    assert "BRAF_mut" in names


@with_data
def test_published_drugs_are_drugs():
    from sobolev.datasets import HIV_DRUGS

    known = {drug for drugs in HIV_DRUGS.values() for drug in drugs}
    assert {*hiv.PUBLISHED, *hiv.OTHERS} == known


def test_the_table_of_the_paper_is_that_of_the_reference():
    folder = os.environ.get("SOBOLEV_DATA_HOME")
    path = Path(folder or ".") / "hiv" / "reference_results_q020.csv"
    if not path.exists():
        pytest.skip("the reference is not here")
    import pandas as pd

    table = pd.read_csv(path).dropna(subset=["paperSIC_TD"]).set_index("drug")
    assert set(table.index) == set(hiv.PUBLISHED)
    for drug, (glm, sic) in hiv.PUBLISHED.items():
        row = table.loc[drug]
        assert (row["paperGLM_TD"], row["paperGLM_FD"]) == glm
        assert (row["paperSIC_TD"], row["paperSIC_FD"]) == sic
