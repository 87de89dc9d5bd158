"""--adjust: covariates in the shell."""

import json

import numpy as np
import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.inference import Forward
from sobolev.tables import prepare

SHORT = ("--no-report", "--n-jobs", "1")


def pvalues(text):
    found = json.loads(text)["features"]
    return {row["feature"]: row["pvalue"] for row in found}


def test_the_shell_and_python_agree(run, table, frame):
    done = run("select", table, "-t", "y", "--adjust", "x1,site", "--json", *SHORT)
    assert done.code == 0, done.err
    indicators = pd.get_dummies(frame["site"], prefix="site", prefix_sep="=", dtype=float)
    X = pd.concat([frame[["x1", "x2", "x3", "x4"]], indicators], axis=1)
    groups = {"site": [4, 5, 6]}
    hrt = HRTSelector(
        ConvexSIC(n_jobs=1, feature_groups=groups),
        scheme=Forward(),
        adjust=["x1", *indicators],
        feature_groups=groups,
        random_state=0,
    ).fit(X, frame["y"])
    expected = dict(zip(["x2", "x3", "x4"], hrt.pvalues_[1:4], strict=True))
    assert pvalues(done.out) == pytest.approx(expected, rel=1e-9)
    assert json.loads(done.out)["settings"]["adjust"] == ["x1", "site"]


def test_select_names_covariates_and_does_not_count_them(run, table, here):
    done = run("select", table, "-t", "y", "--adjust", "x1", "--adjust", "si*", "--out", "found")
    assert done.code == 0, done.err
    assert "1 of 3 features at FDR 10 %: x2." in done.out
    page = (here / "found" / "report.html").read_text(encoding="utf-8")
    assert (
        "given all other features and given x1 and site, which were always in the model and not "
        "penalised or tested"
    ) in page
    assert set(pd.read_csv(here / "found" / "selection.csv")["feature"]) == {"x2", "x3", "x4"}
    result = json.loads((here / "found" / "result.json").read_text(encoding="utf-8"))
    assert result["data"]["features"] == 3
    assert "--adjust x1 --adjust 'si*'" in result["settings"]["command"]


@pytest.mark.parametrize("method", ["knockoffs", "rank"])
def test_the_other_methods(run, table, method):
    done = run("select", table, "-t", "y", "--method", method, "--adjust", "x1,site", *SHORT)
    assert done.code == 0, done.err
    assert "of 3 features" in done.out


def test_rank_and_audit(run, table):
    done = run("rank", table, "-t", "y", "--adjust", "x1,x2", "--json", *SHORT)
    assert json.loads(done.out)["features"][0]["feature"] == "site"
    done = run("rank", table, "-t", "y", "--adjust", "x1", "--top", "5", *SHORT)
    assert done.code == 2
    assert "--top 5 is more than the 4 features" in done.err
    options = ("--repeats", "2", "--scheme", "split", "--json")
    done = run("audit", table, "-t", "y", "--adjust", "x1,site", *options, *SHORT)
    assert done.code == 0, done.err
    assert json.loads(done.out)["data"]["features"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--adjust", "x9"], "--adjust: there is no column 'x9'"),
        (["--adjust", "y"], "column 'y' is both in --adjust and in --target"),
        (["--adjust", "x1", "--exclude", "x1"], "is both in --adjust and in --exclude"),
        (["--adjust", "site", "--subject", "site"], "is both in --adjust and in --subject"),
        (["--adjust", "x1", "--weights", "x1"], "is both in --adjust and in --weights"),
        (["--adjust", "x*,site"], "--adjust leaves no column to test"),
        (["--adjust", "sample_id"], "--adjust: column 'sample_id' cannot be used: "),
    ],
)
def test_mistakes_are_one_line(run, table, options, said):
    done = run("select", table, "-t", "y", *options, *SHORT)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_a_covariate_is_kept_as_with_keep():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((60, 3)), columns=["a", "b", "y"])
    frame["patient_id"] = np.arange(60) + 100
    assert "patient_id" not in prepare(frame, ["y"]).variables
    data = prepare(frame, ["y"], adjust=["patient_id"])
    assert data.adjusted == ("patient_id",)
    assert "patient_id" in data.variables
    data = prepare(frame, ["y"], adjust=["a"], groups=["two=a,b"], keep=["patient_id"])
    assert data.adjusted == ("two",)
    assert prepare(frame.assign(c=1), ["y"], adjust=["c"]).adjusted == ()
    frame["when"] = pd.date_range("2020-01-01", periods=60)
    with pytest.raises(ValueError, match="--adjust: column 'when' cannot be used: dates"):
        prepare(frame, ["y"], adjust=["when"])
