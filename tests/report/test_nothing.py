"""Why nothing was selected, and what to do next: from measured quantities."""

import numpy as np
import pytest

from sobolev import HRTSelector
from sobolev.report import make_result as from_selector
from sobolev.report.facts import near_copies
from sobolev.report.nothing import needed_finds, reasons, steps
from sobolev.skill import Skill

CLEAR = Skill("R²", 0.4, 0.0, is_clear=True)
NONE = Skill("R²", -0.1, 0.0, is_clear=False)


def empty(make_result, method="hrt", least=0.02, **fields):
    """A result without a selection; the smallest p-value is given."""
    table = make_result(method).table.assign(selected=False)
    if method == "hrt":
        table["pvalue"] = table["pvalue"].where(table["pvalue"].isna(), 0.9)
        table.loc[0, "pvalue"] = least
    return make_result(method, table=table, **fields)


def test_without_skill_the_response_is_to_be_checked(make_result):
    result = empty(make_result, skill=NONE)
    assert reasons(result)[0].startswith("The model does not predict rows")
    assert "sobolev test" in steps(result)[0]


def test_with_skill_near_copies_share_the_effect(make_result):
    data = {"name": "d", "rows": 500, "clusters": [(["a", "b"], 0.95)]}
    result = empty(make_result, skill=CLEAR, data=data)
    said = " ".join(reasons(result))
    assert "none adds enough to all the others" in said
    assert "Near copies share an effect, so each can be missed: a, b (|r| up to 0.95)." in said
    assert any("--groups" in step for step in steps(result))
    assert "Near copies" not in " ".join(reasons(empty(make_result, skill=NONE, data=data)))


def test_the_numbers_are_those_of_the_procedure(make_result):
    result = empty(make_result, least=0.02, settings={"n_tests": 25, "critic": "convex"})
    said, then = " ".join(reasons(result)), " ".join(steps(result))
    assert "The smallest p-value is 0.020" in said
    assert "25 tests at FDR 10 %, one alone must be at most 0.004" in said
    assert "at most 5 features" in then
    # (2.652 / 2.054)² times 500 rows.
    assert "about 830 in place of 500" in then
    assert "20 features were not tested" in said


def test_a_large_p_value_promises_nothing(make_result):
    assert "about" not in steps(empty(make_result, least=0.5))[0]


@pytest.mark.parametrize(
    ("settings", "least"),
    [({}, 10), ({"offset": 0}, 1), ({"n_draws": 5}, 20), ({"n_draws": 5, "offset": 0}, 10)],
)
def test_knockoffs_need_a_number_of_finds(make_result, settings, least):
    result = empty(make_result, "knockoffs", settings=settings)
    assert needed_finds(result) == least
    assert (f"at least {least} features" in " ".join(reasons(result))) == (least > 1)
    assert any("--method hrt" in step for step in steps(result))


def test_a_permuted_response_is_explained():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((120, 6)), rng.standard_normal(120)
    selector = HRTSelector(random_state=0, n_repeats=1).fit(X, y)
    result = from_selector(selector, X, y, pictures=False)
    assert not result.selected
    assert result.skill == selector.skill_
    assert result.settings["n_tests"] == 6
    assert any("does not predict" in said for said in reasons(result))


def test_near_copies_are_found_with_gaps_and_either_sign():
    rng = np.random.default_rng(0)
    x, z, w = rng.standard_normal((3, 300))
    X = np.column_stack([x, z, -np.exp(x) + 0.01 * w, w])
    X[:40, 0] = np.nan
    units = {name: np.array([j]) for j, name in enumerate("abcd")}
    ((names, r),) = near_copies(X, units, list("abcd"))
    assert names == ["a", "c"]
    assert 0.8 <= r <= 1
    assert near_copies(X[:, 1:2], {"b": np.array([0])}, ["b"]) == []
