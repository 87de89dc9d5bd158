"""The report in a real browser: what moves, what is downloaded, what must not happen."""

import shutil
from contextlib import contextmanager

import pandas as pd
import pytest

from sobolev import ConvexSIC, HRTSelector
from sobolev.datasets import make_sinexp
from sobolev.report import make_result as from_selector
from sobolev.report import render_report

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the package playwright is not installed (extra dev)"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the path")
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NASTY = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "<!--<script>",
    "a&lt;b\u2028c",
    "=HYPERLINK(1)",
    'comma, "quote"\nline',
    "-1+1",
    "@x",
    "+x",
]


# Of the module, not the session: while it is open no other test can start an event loop.
@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def open_report(browser, tmp_path):
    """Open a result; afterwards nothing was requested, no error came up and no dialog."""

    @contextmanager
    def opened(result, width=1280, **options):
        path = tmp_path / "report.html"
        path.write_text(render_report(result), encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        page, requests, trouble = context.new_page(), [], []
        page.set_default_timeout(10_000)
        context.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        yield page
        context.close()
        assert trouble == []
        left = [u for u in requests if u != path.as_uri() and not u.startswith(("data:", "blob:"))]
        assert left == []

    return opened


def text(page, selector):
    return page.inner_text(selector).replace("\N{NO-BREAK SPACE}", " ")


def column(page, label):
    labels = page.locator("thead th button").all_inner_texts()
    return page.locator(f"tbody td:nth-child({labels.index(label) + 1})").all_inner_texts()


def at_level(table, level):
    return list(table.loc[table["qvalue"].fillna(2) <= level, "feature"])


def move(page, index):
    page.locator("#slider").evaluate(
        "(s, i) => { s.value = i; s.dispatchEvent(new Event('input')); }", index
    )
    page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")


@pytest.mark.parametrize("method", ["hrt", "knockoffs", "rank"])
def test_the_page_says_what_the_result_says(open_report, make_result, method):
    result = make_result(method)
    with open_report(result) as page:
        assert text(page, "#headline") == result.headline
        assert column(page, "Feature") == list(result.table["feature"][:20])
        assert page.locator("tbody tr.on").count() == min(20, len(result.selected))
        assert page.locator("#slider").count() == (method != "rank")
        assert page.locator("#points path.dots").count() == (0 if method == "rank" else 2)
        page.click("#more")
        assert page.locator("tbody tr").count() == 40


@pytest.mark.parametrize("method", ["hrt", "knockoffs"])
def test_the_slider_moves_headline_counts_table_and_plots(open_report, make_result, method):
    result = make_result(method)
    with open_report(result) as page:
        assert page.get_attribute("#slider", "aria-valuetext").startswith("10")
        assert page.locator("#moved").is_hidden()
        page.click("#more")
        bound = page.get_attribute("#points .bound", "d")
        seen = set()
        for index in (0, 4, 29, 49):
            move(page, index)
            level = (index + 1) / 100
            names = at_level(result.table, level)
            seen.add(len(names))
            begin = f"{len(names)} of 40" if names else "None of 40"
            assert text(page, "#headline").startswith(begin)
            assert f"FDR {index + 1} %" in text(page, "#headline")
            assert text(page, "#level") == f"{index + 1} %"
            assert text(page, "#counts").startswith(f"{len(names)} selected")
            assert page.locator("tbody tr.on td.name").all_inner_texts() == names
            assert column(page, "Selected").count("✓") == len(names)
            bars = page.locator("#bars g.on title").all_text_contents()
            assert {bar.split(":")[0] for bar in bars} <= set(names)
            assert len(bars) >= min(len(names), 14)
            assert page.locator("#moved").is_visible()
            assert page.locator("#nothing").is_visible() == (not names)
        assert len(seen) > 2
        assert page.get_attribute("#points .bound", "d") != bound
        page.click("#back")
        assert text(page, "#headline") == result.headline
        assert page.input_value("#slider") == "9"
        assert page.locator("#moved").is_hidden()


def test_the_slider_obeys_the_keyboard_and_marks_a_level_between_the_stops(
    open_report, make_result
):
    with open_report(make_result(fdr=0.125)) as page:
        assert text(page, "#level") == "12.5 %"
        assert text(page, "#mark") == "run: 12.5 %"
        page.focus("#slider")
        page.keyboard.press("ArrowRight")
        playwright.expect(page.locator("#level")).to_have_text("13 %")
        page.keyboard.press("End")
        playwright.expect(page.locator("#level")).to_have_text("50 %")


def test_headers_sort_by_mouse_and_keyboard_with_missing_values_last(open_report, make_result):
    result = make_result()
    table = result.table
    with open_report(result) as page:
        page.click("#more")
        page.click("thead th:has-text('Importance')")
        down = table.sort_values("importance", ascending=False)["feature"]
        assert column(page, "Feature") == list(down)
        head = page.locator("thead th", has_text="Importance")
        assert head.get_attribute("aria-sort") == "descending"
        assert page.locator("thead th[aria-sort='none']").count() == 7
        head.locator("button").focus()
        page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert column(page, "Feature") == list(down[::-1])
        untested = int(table["pvalue"].isna().sum())
        for _ in range(2):
            page.get_by_role("button", name="p", exact=True).click()
            assert column(page, "p")[-untested:] == ["–"] * untested
        page.get_by_role("button", name="Feature").click()
        assert column(page, "Feature") == [f"x{j}" for j in range(40)]


def test_numbers_are_readable(open_report, make_result):
    result = make_result(d=40)
    values = [3e-14, 3.21e-5, 0.03125, 1.0, *([float("nan")] * 36)]
    table = result.table.assign(pvalue=values, qvalue=values)
    with open_report(make_result(table=table)) as page:
        assert column(page, "p")[:5] == ["<1e-12", "3.2e-05", "0.031", "1", "–"]


def test_the_search_looks_at_all_of_5000_features_and_the_page_is_quick(open_report, make_result):
    result = make_result(d=5000)
    with open_report(result) as page:
        # 0.2 s on two shared cores.
        ready = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
        assert ready < 3000
        assert page.locator("tbody tr").count() == 20
        last = result.table["feature"].iloc[-1]
        page.fill("#search", last.upper())
        assert last in column(page, "Feature")
        assert text(page, "#shown").endswith("of 5,000 features")
        page.fill("#search", "nowhere")
        assert page.locator("tbody tr").count() == 0
        page.fill("#search", "")
        page.check("#only")
        assert text(page, "#shown").startswith(f"The first 20 of {len(result.selected)} of 5,000")
        moved = page.evaluate(
            """() => { const begin = performance.now();
            document.getElementById('slider').value = 40;
            document.getElementById('slider').dispatchEvent(new Event('input'));
            return new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(
                () => go(performance.now() - begin)))); }"""
        )
        assert moved < 1000


def download(page, folder):
    with page.expect_download() as waiting:
        page.click("#csv")
    path = folder / "download.csv"
    waiting.value.save_as(path)
    return waiting.value.suggested_filename, path


def test_the_download_holds_the_table_at_the_level_of_the_slider(
    open_report, make_result, tmp_path
):
    result = make_result()
    with open_report(result) as page:
        name, path = download(page, tmp_path)
        assert name == "selection-fdr-0.1.csv"
        assert path.read_bytes().startswith(b"\xef\xbb\xbffeature,kind,importance")
        pd.testing.assert_frame_equal(
            pd.read_csv(path).fillna({"note": ""}), result.table, check_exact=False, rtol=1e-15
        )
        move(page, 29)
        page.fill("#search", "x1")
        name, path = download(page, tmp_path)
        assert name == "selection-fdr-0.3.csv"
        found = pd.read_csv(path)
        assert list(found.loc[found["selected"], "feature"]) == at_level(result.table, 0.3)
        assert len(found) == 40


def test_names_are_shown_as_they_are_and_run_nowhere(open_report, make_result, tmp_path):
    result = make_result(
        names=NASTY,
        targets=(NASTY[0], NASTY[1]),
        data={"name": NASTY[0], "rows": 5, "set_aside": [(NASTY[1], NASTY[2])], NASTY[0]: NASTY[2]},
        settings={NASTY[0]: NASTY[1], "critic": NASTY[2], "conditional": NASTY[0]},
        versions={NASTY[1]: NASTY[0]},
        warnings=(NASTY[0], NASTY[1], NASTY[2]),
    )
    with open_report(result) as page:
        shown = page.locator("tbody td.name").all_text_contents()
        assert shown == list(result.table["feature"])
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        for selector in (".warnings", ".eyebrow", ".aside", ".settings", "#methods"):
            assert "<" in page.inner_text(selector)
        page.click("thead th:has-text('Feature')")
        page.fill("#search", "<script>")
        _, path = download(page, tmp_path)
    names = pd.read_csv(path, keep_default_na=False)["feature"]
    guarded = [f"'{name}" if name[0] in "=+-@" else name for name in result.table["feature"]]
    assert list(names) == guarded


def test_the_policy_forbids_requests_and_foreign_scripts(browser, make_result, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render_report(make_result()), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    found = page.evaluate(
        """() => new Promise((go) => {
        const blocked = [];
        document.addEventListener('securitypolicyviolation', (event) => {
            blocked.push(event.effectiveDirective);
            if (blocked.length === 3) go(blocked.sort());
        });
        document.body.append(Object.assign(new Image(), { src: 'http://127.0.0.1:9/x.png' }));
        fetch('http://127.0.0.1:9/').catch(() => {});
        const script = document.createElement('script');
        script.textContent = 'window.ran = true';
        document.body.append(script);
        })"""
    )
    assert found == ["connect-src", "img-src", "script-src-elem"]
    assert page.evaluate("window.ran") is None
    page.close()


def test_dark_and_light_by_system_and_by_button(open_report, make_result):
    def brightness(page):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(c) for c in colour[4:-1].split(","))

    with open_report(make_result(), color_scheme="dark") as page:
        assert brightness(page) < 150
        page.click("#theme")
        assert brightness(page) > 700
        page.click("#theme")
        assert brightness(page) < 150
        page.emulate_media(media="print", color_scheme="dark")
        assert brightness(page) > 700
        assert page.locator(".tools").is_hidden()
        assert page.locator("h1").is_visible()
        assert page.locator("thead button").first.is_visible()
    with open_report(make_result(), color_scheme="light") as page:
        assert brightness(page) > 700
        page.click("#theme")
        assert brightness(page) < 150


@pytest.mark.parametrize("method", ["hrt", "knockoffs", "rank"])
def test_a_narrow_page_does_not_scroll_sideways(open_report, make_result, method):
    names = ["x" * 300, "a name of some words " * 8, *(f"gene_{j}" for j in range(60))]
    result = make_result(method, names=names, fdr=0.5, warnings=("w" * 200,), targets=("t" * 90,))
    with open_report(result, width=400) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        plot = page.locator("#bars svg")
        narrow = plot.get_attribute("viewBox")
        page.set_viewport_size({"width": 1000, "height": 900})
        playwright.expect(plot).not_to_have_attribute("viewBox", narrow)


def test_the_methods_text_is_copied_with_its_references(open_report, make_result):
    permissions = ["clipboard-read", "clipboard-write"]
    with open_report(make_result(), permissions=permissions) as page:
        page.click("#copy")
        playwright.expect(page.locator("#copy")).to_have_text("Copied")
        page.focus("#search")
        page.keyboard.press("Control+V")
        copied = page.input_value("#search")
        assert copied.startswith("We tested which of 40 features")
        assert "Tansey, W." in copied


def test_headers_are_explained_on_hover(open_report, make_result):
    with open_report(make_result()) as page:
        for button in page.locator("thead th button").all():
            assert len(button.get_attribute("title")) > 10


def test_long_names_lose_their_middle_stay_different_and_are_full_on_hover(
    open_report, make_result
):
    begin, end = "a long beginning of a name " * 4, " and a long end of it" * 4
    names = [f"{begin}{k}{end}" for k in range(3)] + [f"{begin}{k}" for k in range(3)]
    with open_report(make_result("rank", names=names), width=400) as page:
        shown = page.locator("#bars text.name").all_text_contents()
        assert len(set(shown)) == len(names)
        assert all("…" in name for name in shown)
        hover = page.locator("#bars g title").all_text_contents()
        assert {text.rpartition(":")[0] for text in hover} == set(names)


def test_all_selected_rows_are_printed(open_report, make_result):
    table = make_result(d=60).table.assign(selected=True)
    with open_report(make_result(table=table)) as page:
        assert page.locator("tbody tr").count() == 20
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("tbody tr").count() == 60
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("tbody tr").count() == 20


def test_twenty_features_fit_on_five_pages(open_report, make_result):
    X, y = make_sinexp(200, 20, random_state=0, as_frame=True, return_X_y=True)
    selector = HRTSelector(
        ConvexSIC(feature_map="landmark", lam=0.02), random_state=0, fdr=0.2
    ).fit(X, y)
    with open_report(from_selector(selector, X, y)) as page:
        pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert 2 <= pages <= 5


def test_the_report_prints(open_report, make_result):
    with open_report(make_result()) as page:
        before = page.evaluate("document.querySelector('#bars svg').viewBox.baseVal.width")
        assert page.pdf(format="A4").startswith(b"%PDF")
        after = page.evaluate("document.querySelector('#bars svg').viewBox.baseVal.width")
        assert before == after
