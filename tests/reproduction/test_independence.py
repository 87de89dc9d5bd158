"""The comparison of independence tests: runs, resumes, and judges by the figures."""

import numpy as np
import pytest

from reproduction.benchmarks import independence
from reproduction.benchmarks.paired import FIRST_SEED, LEAST

pytest.importorskip("hyppo")


def test_a_run_renders_and_names_what_is_missing(run, results, monkeypatch):
    def missing(method):
        return "dcor is not installed" if method.startswith("dcor") else ""

    monkeypatch.setattr(independence, "absent", missing)
    records = run("independence", "--quick", "--skip", "MGC")
    assert {r["method"] for r in records if "pvalue" in r} == {"sic_test", "Dcorr", "Hsic"}
    assert {r["seed"] for r in records if "pvalue" in r} == {FIRST_SEED, FIRST_SEED + 1}
    text = results()
    assert "- dcor: dcor is not installed." in text
    assert "| linear (clean), 2 data sets | 1.00 | 1.00 | 1.00 | – | – | – |" in text
    again = run("independence", "--quick", "--skip", "MGC")
    assert [r for r in again if "pvalue" in r] == [r for r in records if "pvalue" in r]


@pytest.mark.parametrize("method", independence.METHODS)
def test_tests_see_a_line_and_no_more(method):
    if independence.absent(method):
        pytest.skip(independence.absent(method))
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 2))
    pvalue = independence.METHODS[method]
    assert pvalue(x, x[:, :1] + 0.1 * rng.standard_normal((60, 1)), 0) < 0.02
    # Six independent responses: a test of level 0.05 rejects three or more twice in 1,000 times.
    null = [pvalue(x, rng.standard_normal((60, 1)), seed) for seed in range(6)]
    assert np.sum(np.array(null) <= 0.05) <= 2


def test_one_seed_of_everything_comes_before_the_next():
    tasks = independence.tasks(False)
    assert [task.seed for task in tasks] == sorted(task.seed for task in tasks)
    counts = {}
    for task in tasks:
        key = task.settings["data"], task.settings["method"]
        counts[key] = counts.get(key, 0) + 1
    present = {key: n for key, n in counts.items() if not independence.absent(key[1])}
    assert min(present.values()) >= LEAST


def _records(powers, level):
    """Twenty data sets of "linear (clean)" and forty independent ones, by method."""
    rows = []
    for method, power in powers.items():
        for data, n, share in (
            ("linear (clean)", 20, power),
            ("independent Gaussian", 40, level.get(method, 0.0)),
        ):
            base = {"data": data, "method": method, "seconds": 1.0}
            rows += [
                base | {"seed": FIRST_SEED + k, "pvalue": 0.01 if k < share * n else 0.9}
                for k in range(n)
            ]
    return rows


def test_a_test_that_exceeds_its_level_is_no_winner():
    powers = {"sic_test": 0.5, "Dcorr": 0.9, "Hsic": 0.6}
    peer, gap = independence.compared(_records(powers, {}), "linear (clean)")
    assert peer == "Dcorr"
    assert gap.mean == pytest.approx(-0.4)
    assert gap.side == "behind"
    wild = _records(powers, {"Dcorr": 0.5})
    assert not independence.keeps_level(wild, "Dcorr")
    peer, gap = independence.compared(wild, "linear (clean)")
    assert (peer, gap.side) == ("Hsic", "level")
    assert "Behind: linear (clean) (Dcorr, -0.400 ± 0.112 (20))" in independence.verdict_text(
        _records(powers, {}), ["linear"]
    )
