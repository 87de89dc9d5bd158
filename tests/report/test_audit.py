"""The audit in the report and in result.json."""

import json

import pytest
from sklearn.linear_model import LassoCV

from sobolev import HRTSelector, write_report
from sobolev.datasets import make_sinexp
from sobolev.inference import AuditResult, AuditRun
from sobolev.report import make_result, render_report
from sobolev.report.files import result_json
from sobolev.report.text import meaning

NASTY = "<script>alert(1)</script>"


def audited(false=(), runs=10):
    n = len(false)
    signal = [AuditRun(i, "additive", 2, 2, 2 + n, tuple(false)) for i in range(runs)]
    noise = [AuditRun(runs + i, "noise", 0, 0, n, tuple(false)) for i in range(runs)]
    return AuditResult(0.1, (*signal, *noise), 2.0, "HRTSelector")


def test_the_verdict_is_in_the_headline_and_in_a_section(make_result):
    result = make_result(audit=audited())
    page = render_report(result)
    words = "the level of 0.10 holds"
    assert result.headline.endswith(words)
    assert result.headline.startswith(f"{result.answer}. The false discovery rate measured")
    header, _, rest = page.partition("</header>")
    assert f'<p class="verdict">Audit: {audited().verdict}' in header
    section = rest.partition('<section id="audit">')[2].partition("</section>")[0]
    assert words in section
    assert section.count('<svg class="drawing"') == 2
    assert "<td>additive, 2 active</td><td>10</td><td>0.00</td><td>1.00</td>" in section
    assert "at most 10 % of the features that are selected in this way are false" in meaning(result)


def test_a_failed_audit_takes_the_promise_back(make_result):
    result = make_result(audit=audited(["a"]))
    page = render_report(result)
    assert '<p class="verdict failed">' in page
    assert "does NOT hold" in page
    assert "is not assured on this table" in meaning(result)
    assert "selected in this way are false" not in meaning(result)
    assert '<span id="unsure">; the level is not assured on this table</span></h1>' in page


def test_an_audit_above_the_level_within_chance_asks_for_more(make_result):
    runs = audited(["a"]).runs[:1] + audited(runs=4).runs[1:4]
    found = AuditResult(0.05, runs, 2.0, "HRTSelector")
    assert found.passed
    assert found.fdr > found.level
    said = meaning(make_result(audit=found))
    assert "does not settle it: 8 % is above the level" in said
    assert "as 12 (audit(selector, X, y, n_repeats=12)), before you rely on the level" in said
    command = "sobolev select a.csv --target y --audit --subject who"
    said = meaning(make_result(audit=found, settings={"command": command}))
    assert "(sobolev audit a.csv --target y --subject who --repeats 12)" in said
    assert "does not settle" not in meaning(make_result(audit=audited()))


def test_names_in_an_audit_are_escaped(make_result):
    page = render_report(make_result(audit=audited([NASTY])))
    assert "<script>alert" not in page
    assert page.count("<script") == 2
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_without_an_audit_nothing_is_said(make_result):
    page = render_report(make_result())
    assert 'id="audit"' not in page
    assert 'class="verdict' not in page
    assert json.loads(result_json(make_result()))["audit"] is None


def test_result_json_holds_the_audit(make_result):
    audit = audited(["a"])
    content = json.loads(result_json(make_result(audit=audit)))
    assert content["headline"].endswith("do not rely on it for a")
    assert AuditResult.from_json(json.dumps(content["audit"])) == audit


@pytest.mark.filterwarnings("ignore")
def test_write_report_takes_an_audit(tmp_path):
    X, y = make_sinexp(80, 6, random_state=1, as_frame=True, return_X_y=True)
    hrt = HRTSelector(LassoCV(), scheme="split", random_state=0).fit(X, y)
    path = write_report(hrt, X, y, tmp_path / "report.html", audit=audited())
    assert '<section id="audit">' in path.read_text(encoding="utf-8")
    assert make_result(hrt, X, y, pictures=False, audit=audited()).audit == audited()


def test_options_of_commands_stay_on_one_line(make_result):
    page = render_report(make_result(settings={"command": "sobolev select <a>.csv --target y-z"}))
    assert '&lt;a&gt;.csv <span class="option">--target</span> y-z' in page
    page = render_report(make_result(settings={"command": "sobolev select a.csv --target '5 %'"}))
    assert "</span> &#x27;5 %&#x27;" in page  # a plain space: the command can be copied
