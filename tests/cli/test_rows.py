"""Rows that belong together, consecutive rows and weights from the shell."""

import json

import numpy as np
import pandas as pd
import pytest

from sobolev import HRTSelector
from sobolev.inference import Forward


@pytest.fixture
def visits(here):
    """Thirty patients with four visits; y follows x0."""
    rng = np.random.default_rng(1)
    patient = np.repeat(np.arange(30), 4)
    frame = pd.DataFrame(rng.standard_normal((120, 3)), columns=["x0", "x1", "x2"])
    frame["weight"] = rng.random(120).round(3)
    frame["patient"] = [f"p{k}" for k in patient]
    frame["y"] = 2 * frame["x0"] + rng.standard_normal(30)[patient] + rng.standard_normal(120)
    frame.to_csv(here / "visits.csv", index=False)
    return frame


def found(run, *options):
    done = run("select", "visits.csv", "-t", "y", "--json", "--no-report", *options)
    assert done.code == 0, done.err
    return {f["feature"]: f["pvalue"] for f in json.loads(done.out)["features"]}


def test_subjects_and_weights_are_those_of_python(run, visits):
    shell = found(run, "--subject", "patient", "--weights", "weight")
    hrt = HRTSelector(random_state=0).fit(
        visits[["x0", "x1", "x2"]],
        visits["y"].to_numpy(),
        groups=visits["patient"],
        sample_weight=visits["weight"],
    )
    assert shell == pytest.approx(dict(zip(hrt.feature_names_in_, hrt.pvalues_, strict=True)))
    assert shell["x0"] < 0.01


def test_consecutive_rows_keep_their_order(run, visits):
    columns = ("--exclude", "patient,weight")
    shell = found(run, "--blocks-of", "4", *columns)
    hrt = HRTSelector(scheme=Forward(shuffle=False), random_state=0).fit(
        visits[["x0", "x1", "x2"]], visits["y"].to_numpy(), groups=np.arange(120) // 4
    )
    assert shell == pytest.approx(dict(zip(hrt.feature_names_in_, hrt.pvalues_, strict=True)))


def test_rows_without_a_response_leave_their_subject(run, visits, here):
    visits.loc[[0, 17], "y"] = np.nan
    visits.to_csv(here / "visits.csv", index=False)
    shell = found(run, "--subject", "patient", "--missing", "drop", "--exclude", "weight")
    kept = visits.dropna()
    hrt = HRTSelector(random_state=0).fit(
        kept[["x0", "x1", "x2"]], kept["y"].to_numpy(), groups=kept["patient"]
    )
    assert shell == pytest.approx(dict(zip(hrt.feature_names_in_, hrt.pvalues_, strict=True)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--subject", "patient", "--blocks-of", "4"], "not both"),
        (["--subject", "nobody"], "--subject: there is no column 'nobody'"),
        (["--subject", "x0,x1"], "--subject takes one column"),
        (["--subject", "y"], "'y' is --target"),
        (["--weights", "patient"], "'patient' must hold numbers"),
        (["--weights", "x1"], "'x1' must hold numbers of zero or more"),
        (["--subject", "patient", "--method", "knockoffs"], "independent rows"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, visits, options, message):
    done = run("select", "visits.csv", "-t", "y", "--no-report", *options)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) <= 2  # perhaps a note before it


def test_a_ranking_refuses_subjects(run, visits):
    done = run("rank", "visits.csv", "-t", "y", "--no-report", "--subject", "patient")
    assert done.code == 2
    assert "--method hrt" in done.err


def test_missing_subjects_are_counted(run, visits, here):
    visits.loc[[3, 5], "patient"] = None
    visits.to_csv(here / "visits.csv", index=False)
    done = run("select", "visits.csv", "-t", "y", "--no-report", "--subject", "patient")
    assert done.code == 2
    assert "no value in 2 of 120 rows" in done.err


def test_audit_and_independence_take_subjects(run, visits):
    options = ("--no-report", "--subject", "patient", "--exclude", "weight")
    done = run("audit", "visits.csv", "-t", "y", "--repeats", "2", "--n-jobs", "1", *options)
    assert done.code == 0, done.err
    done = run("test", "visits.csv", "--y", "y", "--subject", "patient", "--permutations", "49")
    assert done.code == 0, done.err
    assert "depends on" in done.out
