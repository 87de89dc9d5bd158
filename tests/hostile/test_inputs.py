"""Whatever comes in, a result keeps its promises or an error says what is wrong.

Each property is run on a few inputs in the fast suite and on many by ``make verify``. An error of
the promised kind is as good as a result; anything else, such as an IndexError, fails.
"""

import json
import warnings
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from sobolev import ConvexSIC, HRTSelector, KnockoffSelector, NeuralSIC, sic_test
from sobolev.cli import app
from sobolev.cli.ending import one_line
from sobolev.conditionals.units import find_units
from sobolev.exceptions import DivergenceError
from sobolev.inference import AuditResult
from sobolev.inference.audit_log import AuditLog
from sobolev.inference.audit_result import LEVELS, AuditRun
from sobolev.inference.multiple_testing import qvalues
from sobolev.neural import Optimizer
from sobolev.report.result import plain
from sobolev.responses import read_response
from sobolev.selection import select
from sobolev.streaming import open_source
from sobolev.streaming.summary import Summarise
from sobolev.summary import headline
from sobolev.tables import linkage_blocks, prepare, read_table, windows, write_table
from sobolev.tables.writing import with_formulas, without_formulas
from sobolev.targets import TargetEncoder
from tests.hostile import inputs as some

PROMISED = (ValueError, TypeError, DivergenceError)

PROPERTIES = {}


def holds(strategy, few, many):
    """Register a property with its inputs, and how many of them are tried fast and slowly."""

    def register(check):
        PROPERTIES[check.__name__] = SimpleNamespace(
            check=check, strategy=strategy, few=few, many=many
        )
        return check

    return register


def simplex(importances, d):
    assert importances.shape == (d,)
    assert np.isfinite(importances).all()
    assert (importances >= 0).all()
    assert importances.sum() == pytest.approx(1) or importances.sum() == 0


def probabilities(values, d):
    assert values.shape == (d,)
    known = values[~np.isnan(values)]
    assert ((known >= 0) & (known <= 1)).all()


def columns_of(values):
    """The columns of an array or DataFrame."""
    if hasattr(values, "columns"):
        return [values.iloc[:, j].to_numpy() for j in range(values.shape[1])]
    return list(np.atleast_2d(np.asarray(values).T))


def in_file(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


# -- tables and responses ------------------------------------------------------------------------


@st.composite
def preparations(draw):
    frame = draw(some.tables())
    columns = [str(name) for name in frame.columns] or ["y"]
    name = st.one_of(st.sampled_from(columns), some.names)
    few = st.lists(name, max_size=2)
    offered = {
        **dict.fromkeys(["only", "exclude", "keep", "adjust", "categorical"], few),
        **dict.fromkeys(["subject", "weights", "event"], name),
        "groups": st.dictionaries(some.names, st.lists(name, min_size=1, max_size=2), max_size=2),
        "blocks_of": st.integers(1, 5),
        "missing": st.sampled_from(["draw", "error", "drop", "x"]),
        "offer_missing": st.just(["*"]),
        "response": st.sampled_from(["number", "count", "grades", "classes", "survival"]),
        "reference": st.booleans(),
    }
    asked = {k: draw(v) for k, v in offered.items() if draw(st.integers(0, 11)) == 0}
    target = draw(st.sampled_from(columns) if draw(st.integers(0, 7)) else name)
    return frame, target, asked


@holds(preparations(), 100, 9000)
def prepared_tables(given, folder):
    frame, target, asked = given
    data = prepare(frame, target, **asked)
    X = data.X.to_numpy()
    assert X.dtype == float
    assert not np.isinf(X).any()
    assert not np.isnan(X).all(axis=0).any()
    assert len(set(data.X.columns)) == X.shape[1] > 0
    assert sorted(j for own in data.variables.values() for j in own) == list(range(X.shape[1]))
    assert data.rows.size == len(X)
    assert all(0 < share < 1 for share in data.missing.values())
    if data.weights is not None:
        assert np.isfinite(data.weights).all()
        assert data.weights.shape == (len(X),)
    if data.response is not None:
        assert len(data.response) == len(X)
        for column in columns_of(data.y):
            assert not pd.isna(column).any()
            assert len(set(column.tolist())) > 1
    assert one_line(" ".join([*data.notes, *map(str, data.set_aside)])).isprintable()


kinds = st.one_of(
    st.sampled_from(["auto", "number", "count", "grades", "classes", "survival", "grades=a,b", ""]),
    st.lists(st.sampled_from(["number", "classes"]), max_size=2),
)


@holds(st.tuples(st.integers(0, 20).flatmap(some.responses), kinds), 100, 9000)
def read_responses(given, folder):
    y, kind = given
    found = read_response(y, kind)
    for column in columns_of(found.values):
        assert not pd.isna(column).any()
        assert column.dtype.kind != "f" or np.isfinite(column).all()
    assert one_line(found.sentence).isprintable()
    assert found.read(y).kind == found.kind


@holds(
    st.tuples(
        st.integers(0, 20).flatmap(some.responses),
        st.sampled_from(["standard", "normal_scores", "auto", "polynomial"]),
        st.sampled_from(["auto", "regression", "classification", "typed"]),
    ),
    100,
    6000,
)
def encoded_responses(given, folder):
    y, basis, kind = given
    psi = TargetEncoder(kind, basis=basis).fit(y).transform(y)
    assert psi.shape[1] > 0
    np.testing.assert_allclose(psi.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(psi.T @ psi / len(psi), np.eye(psi.shape[1]), atol=1e-5)


# -- files ---------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": np.arange(30.0), "b": np.arange(30)[::-1], "y": np.linspace(0, 1, 30)})


def whole_files():
    text = FRAME.to_csv(index=False).encode()
    found = {f".csv{packed}": pack(text) for packed, pack in some.PACKERS.items()}
    pytest.importorskip("pyarrow")
    return found | {kind: some.arrow_bytes(FRAME, kind) for kind in (".parquet", ".feather")}


damaged_files = st.deferred(
    lambda: st.sampled_from(sorted(whole_files())).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.one_of(st.just(whole_files()[kind]), some.damaged(whole_files()[kind])),
        )
    )
)
odd_texts = st.tuples(
    st.sampled_from([".csv", ".csv", ".tsv", ".txt", ".csv.gz", ".csv.zip"]), some.text_tables()
)
reading = st.fixed_dictionaries(
    {},
    optional={
        "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16", "rot13", "x", "", "utf-32"]),
        "sep": st.sampled_from([",", "tab", "", "ab", '"', "\n", "é", "\0", "\r"]),
        "decimal": st.sampled_from([",", ".", "", "ab", '"', "1", "-", "\n", "e"]),
        "na": st.just(["a"]),
        "not_na": st.just(["NA"]),
    },
)


def is_table(frame):
    assert len(frame)
    assert len(set(frame.columns)) == frame.shape[1] > 0
    assert all(isinstance(name, str) for name in frame.columns)


@holds(st.tuples(odd_texts, st.one_of(st.just({}), reading)), 100, 8000)
def text_files(given, folder):
    (kind, content), options = given
    pack = some.PACKERS[Path(f"t{kind}").suffix if kind.count(".") == 2 else ""]
    is_table(read_table(in_file(folder, f"t{kind}", pack(content)), **options))


@holds(damaged_files, 60, 4000)
def damaged_tables(given, folder):
    kind, content = given
    is_table(read_table(in_file(folder, f"t{kind}", content)))


@holds(st.one_of(damaged_files, odd_texts.filter(lambda t: t[0].count(".") == 1)), 60, 3000)
def files_in_chunks(given, folder):
    kind, content = given
    source = open_source(str(in_file(folder, f"t{kind}", content)), "y", None, 7)
    assert source.run(Summarise("auto")).n_rows > 0


@holds(some.tables(), 40, 1500)
def written_tables(frame, folder):
    back = read_table(write_table(frame, folder / "t.parquet"))
    assert back.shape[0] == len(frame)


RUNS = (
    AuditRun(0, "additive", 2, 2, 3, ("=a",), 5, (1,) * len(LEVELS)),
    AuditRun(1, "noise", 0, 0, 0, (), 5, (1,) * len(LEVELS)),
)
AUDIT = AuditResult(0.1, RUNS, 1.0, "HRTSelector").to_json().encode()


@holds(st.one_of(some.damaged(AUDIT), some.changed_json(AUDIT)), 40, 2000)
def audit_results(content, folder):
    result = AuditResult.from_json(content.decode("utf-8", errors="replace"))
    assert 0 <= result.fdr <= 1
    assert all(0 <= end <= 1 for end in result.band)
    json.loads(result.to_json())
    result.table()
    assert result.verdict


def log_lines(folder):
    path = folder / "whole.jsonl"
    path.unlink(missing_ok=True)
    log = AuditLog(path, "f", 3)
    for run in RUNS:
        log.add(run)
    return path.read_bytes().splitlines()


changes = st.data()


@holds(changes, 40, 1500)
def audit_logs(data, folder):
    lines = log_lines(folder)
    if data.draw(st.booleans()):
        k = data.draw(st.integers(0, len(lines) - 1))
        lines[k] = data.draw(some.changed_json(lines[k]))
        content = b"\n".join(lines) + b"\n"
    else:
        content = data.draw(some.damaged(b"\n".join(lines) + b"\n"))
    path = in_file(folder, "log.jsonl", content)
    try:
        log = AuditLog(path, "f", 3)
    except ValueError:
        assert path.read_bytes() == content  # a foreign file is left alone
        raise
    AuditResult(0.1, (*log.runs, RUNS[0]), 1.0, "HRTSelector").to_json()
    new = AuditRun(9, "noise", 0, 0, 0)
    log.add(new)
    assert AuditLog(path, "f", 3).runs[-1] == new


# -- numbers and names ---------------------------------------------------------------------------

pvalues = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, np.nan, 5e-324, 1.5, -1.0, np.inf]))


@holds(
    st.tuples(
        st.lists(pvalues, max_size=30),
        st.sampled_from(["bh", "by", "storey", "x"]),
        st.one_of(st.none(), st.integers(-3, 100)),
    ),
    100,
    8000,
)
def adjusted_pvalues(given, folder):
    p = np.array(given[0], dtype=float)
    q = qvalues(p, *given[1:])
    probabilities(q, p.size)
    assert (np.isnan(q) == np.isnan(p)).all()
    assert (np.diff(q[np.argsort(p)][: np.isfinite(p).sum()]) >= -1e-12).all()


@st.composite
def matrices(draw, least=0, most=40):
    n, d = draw(st.integers(least, most)), draw(st.integers(1, 5))
    finite = draw(st.integers(0, 5)) < 5
    found = [draw(some.number_columns(n, finite=finite)) for _ in range(d)]
    if d > 1 and draw(st.integers(0, 2)) == 0:
        found[0] = found[1]
    return np.column_stack(found)


groups = st.one_of(
    st.none(),
    st.lists(st.lists(st.integers(-1, 6), max_size=3), max_size=2),
    st.dictionaries(some.names, st.lists(st.sampled_from(["x0", "x1", "x9"])), max_size=2),
)


@holds(st.tuples(matrices(), groups), 60, 4000)
def units_of_columns(given, folder):
    X, grouped = given
    found = find_units(X, grouped)
    assert sorted(int(j) for unit in found for j in unit.columns) == list(range(X.shape[1]))


@holds(
    st.tuples(
        st.one_of(
            st.lists(st.integers(0, 100), min_size=1, max_size=6),
            st.lists(st.sampled_from(["chr1:5", "1:7:A:G", "X_9", "rs1"]), max_size=6),
            st.lists(some.floats, max_size=6),
            st.lists(some.names, max_size=6),
        ),
        st.one_of(st.integers(1, 50), some.floats, st.integers(-1, 5), st.none()),
        st.sampled_from(["distance", "count", "x"]),
        st.one_of(st.none(), st.lists(st.sampled_from(["1", "X", None, 1]), max_size=6)),
    ),
    60,
    2000,
)
def windows_of_columns(given, folder):
    columns, size, by, chromosome = given
    found = windows(columns, size, chromosome, by=by)
    assert all(2 <= len(members) <= len(columns) for members in found.values())


@holds(st.one_of(matrices(), some.tables()), 40, 1500)
def blocks_of_columns(X, folder):
    assert all(len(members) >= 2 for members in linkage_blocks(X).values())


@holds(
    st.tuples(
        st.lists(st.floats(0, 1), min_size=1, max_size=8),
        st.one_of(st.none(), st.integers(-1, 9), st.floats(), st.just("a")),
        st.one_of(st.none(), some.floats, st.just("a")),
    ),
    60,
    3000,
)
def selections(given, folder):
    importances, count, threshold = np.array(given[0]), *given[1:]
    mask = select(importances, count, threshold)
    assert mask.shape == importances.shape
    assert not mask[importances == 0].any()
    if isinstance(count, int):
        assert mask.sum() == min(count, np.count_nonzero(importances))


@holds(st.lists(st.one_of(some.names, st.text()), min_size=1, max_size=5), 100, 7000)
def shown_names(names, folder):
    assert all(one_line(name).isprintable() for name in names)
    frame = pd.DataFrame({"feature": names, "W": -1.5})
    guarded = without_formulas(frame)
    assert not any(name.startswith(tuple("=+-@\t\r")) for name in guarded["feature"])
    pd.testing.assert_frame_equal(with_formulas(guarded), frame, check_dtype=False)
    assert (guarded["W"] == -1.5).all()
    table = frame.assign(selected=True, qvalue=0.0, importance=0.1, note="")
    assert one_line(headline(table, 0.1)).isprintable()
    json.dumps(plain({"names": names, "odd": [np.nan, pd.NA, pd.NaT, np.float32(np.inf), 1j]}))


# -- fits ----------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """X, y and weights of a fit; about half of them can be fitted."""
    weights = None
    if draw(st.integers(0, 2)) == 0:
        X = draw(some.tables(most_rows=40, most_columns=4))
        n = len(X)
        if X.shape[1] and draw(st.booleans()):
            return X, X.columns[draw(st.integers(0, X.shape[1] - 1))], weights
    else:
        X = draw(matrices(least=draw(st.sampled_from([20, 20, 12, 0]))))
        n = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    match draw(st.integers(0, 4)):
        case 0:
            y = draw(some.responses(n))
        case 1:
            y = draw(some.number_columns(n, finite=True))
        case 2:
            y = rng.integers(0, draw(st.integers(1, 4)), n)
        case 3:
            y = X.iloc[:, 0] if hasattr(X, "iloc") and X.shape[1] else np.asarray(X)[:, :1].ravel()
        case _:
            y = np.array(["a", "b"], dtype=object)[rng.integers(0, 2, n)]
    if draw(st.integers(0, 4)) == 0:
        few = (np.arange(n) >= n - 3).astype(float)
        odd = [np.zeros(n), few, rng.random(n) * 1e300, -np.ones(n), np.ones(n + 1), few * np.nan]
        weights = draw(st.sampled_from([*odd, rng.integers(0, 3, n).astype(float)]))
    return X, y, weights


def taken_out(X, y):
    """A response that is named, as values: the critics take arrays only."""
    return (X.drop(columns=y), X[y]) if hasattr(X, "columns") and isinstance(y, str) else (X, y)


@holds(problems(), 25, 600)
def convex_fits(given, folder):
    X, y = taken_out(*given[:2])
    sic = ConvexSIC(random_state=0).fit(X, y, given[2])
    simplex(sic.feature_importances_, X.shape[1])
    assert np.isfinite(sic.risk(X, y)).all()
    assert sic.get_support().shape == (X.shape[1],)
    assert len(sic.summary()) == X.shape[1]


@holds(problems(), 4, 80)
def neural_fits(given, folder):
    X, y = taken_out(*given[:2])
    sic = NeuralSIC(optimizer=Optimizer(max_iter=20), random_state=0).fit(X, y, given[2])
    simplex(sic.feature_importances_, X.shape[1])


@holds(problems(), 8, 250)
def randomization_tests(given, folder):
    X, y, weights = given
    hrt = HRTSelector(random_state=0, n_repeats=1).fit(X, y, sample_weight=weights)
    d = hrt.n_features_in_
    probabilities(hrt.pvalues_, d)
    probabilities(hrt.qvalues_, d)
    simplex(hrt.feature_importances_, d)
    tested = ~np.isnan(hrt.pvalues_)
    assert np.isfinite(hrt.statistics_[tested]).all()
    assert np.isfinite(hrt.null_deviations_[tested]).all()
    assert (hrt.support_ == (np.nan_to_num(hrt.qvalues_, nan=2) <= 0.1)).all()
    assert hrt.summary()["importance"].notna().all()


@holds(problems(), 8, 250)
def knockoff_fits(given, folder):
    X, y, _ = given
    found = KnockoffSelector(random_state=0).fit(X, y)
    d = found.n_features_in_
    assert found.support_.shape == found.feature_importances_.shape == (d,)
    assert np.isfinite(found.feature_importances_).all()
    assert not np.isinf(found.statistics_).any()


@holds(problems(), 20, 500)
def independence_tests(given, folder):
    X, y, _ = given
    found = sic_test(X, y, n_permutations=19, random_state=0)
    assert 0 < found.pvalue <= 1
    assert np.isfinite(found.statistic)
    simplex(found.importances, found.importances.size)


@pytest.mark.parametrize(
    "slow", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest.mark.parametrize("name", PROPERTIES)
def test_inputs_end_in_a_result_or_a_promised_error(name, slow, tmp_path):
    asked = PROPERTIES[name]
    n = asked.many if slow else asked.few
    seen = results = 0

    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=not slow,
    )
    @given(asked.strategy)
    def run(value):
        nonlocal seen, results
        seen += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(*PROMISED):
                asked.check(value, tmp_path)
                results += 1

    run()
    assert seen >= n
    assert results >= max(1, n // 200)  # errors alone would say nothing of the results


def test_verify_tries_enough_inputs():
    assert sum(asked.many for asked in PROPERTIES.values()) >= 60_000


# -- the command line ----------------------------------------------------------------------------

VALUES = {
    "--groups": ["g=x0,x1", "=", "a", "g=", "t.csv"],
    "--missing": ["draw", "drop", "error", "x"],
    "--response": ["number", "classes", "count", "grades", "survival", "grades=a", "x"],
    "--fdr": ["0.1", "0", "nan", "-1", "x"],
    "--seed": ["0", "-1", "99999999999999999999"],
    "--sep": [",", ";", "ab", "\n"],
    "--encoding": ["latin-1", "x"],
    "--blocks-of": ["1", "2", "0", "100"],
    "--decimal": [",", "x", "1"],
    "--test-size": ["0.5", "0.01", "nan"],
    "--draws": ["1", "0"],
    "--top": ["1", "0", "99"],
}
NAMED = ["--exclude", "--keep", "--adjust", "--categorical", "--subject", "--weights", "--event"]


@st.composite
def commands(draw):
    """The options of a command, and the bytes of its table."""
    if draw(st.integers(0, 2)):
        frame = draw(some.tables(most_rows=30, most_columns=4))
        names = [str(name).replace("\0", "") for name in frame.columns] or ["y"]
        content = frame.to_csv(index=False).encode(errors="replace")
    else:
        names, content = ["y", "a"], draw(some.text_tables())
    name = st.sampled_from([*names, "y", "*", "-", "=1+1", "\x1b[31m"])
    command = draw(st.sampled_from(["rank", "rank", "select", "test"]))
    asked = [command, "t.csv", "--y" if command == "test" else "--target", draw(name)]
    for option, values in VALUES.items():
        if draw(st.integers(0, 19)) == 0:
            asked += [option, draw(st.sampled_from(values))]
    for option in NAMED:
        if draw(st.integers(0, 19)) == 0:
            asked += [option, draw(name)]
    return asked + draw(st.sampled_from([[], ["--json"]])), content


@pytest.mark.parametrize("n", [15, pytest.param(600, marks=pytest.mark.slow)], ids=["few", "many"])
def test_a_command_ends_in_a_result_or_one_line(n, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @settings(
        max_examples=n,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        derandomize=n < 100,
    )
    @given(commands())
    def run(given):
        asked, content = given
        (tmp_path / "t.csv").write_bytes(content)
        asked += ["--no-report"] if asked[0] != "test" else []
        done = CliRunner().invoke(app, asked)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in (0, 2)
        if done.exit_code == 0:
            assert "--json" not in asked or json.loads(done.stdout)
        elif "Usage:" not in done.stderr:  # of an option that the command does not have
            *_, last = done.stderr.splitlines()
            assert last.startswith("sobolev: ")
            assert done.stderr.count("sobolev: ") == 1 + last.count("sobolev: ") - 1
            assert done.stdout == ""
        assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]

    run()
