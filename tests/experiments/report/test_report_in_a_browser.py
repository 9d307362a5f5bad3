import pytest

from tests.experiments.report.accessibility import FAINT, SCREENS, faults_of_page
from tests.experiments.report.browser import BROWSER_MARKS, Browser

pytestmark = BROWSER_MARKS

TABLE = "document.querySelector('table.sortable')"
EXCESSES = f"return [...{TABLE}.tBodies[0].rows].map(row => parseFloat(row.cells[5].textContent))"
HEADING = "table.sortable th:nth-child(6) button"
ENTER = "\ue007"


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report.html, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page):
    with Browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def _fresh(browser, page):
    browser.width(1280)
    browser.open(page)


def test_a_click_sorts_a_table_and_a_key_reverses_it(browser):
    browser.click(HEADING)
    falling = browser.run(EXCESSES)
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 1
    browser.press(HEADING, ENTER)
    assert browser.run(EXCESSES) == falling[::-1]
    assert browser.run(f"return {TABLE}.querySelector('[aria-sort]').ariaSort") == "ascending"


def test_a_table_is_copied_in_the_order_shown(browser):
    browser.run(
        "Object.defineProperty(navigator, 'clipboard', "
        "{value: {writeText: async text => {window.copied = text}}})"
    )
    browser.click("button.copy")
    lines = browser.run("return window.copied").splitlines()
    assert [line.split("\t")[0] for line in lines] == browser.run(
        f"return [...{TABLE}.rows].map(row => row.cells[0].textContent.trim())"
    )
    assert browser.run("return document.querySelector('button.copy').textContent") == "Copied"


@SCREENS
def test_the_page_is_accessible_and_fits_the_screen(browser, width, scheme, tmp_path):
    assert faults_of_page(browser, tmp_path, width=width, scheme=scheme) == []


@pytest.mark.parametrize(
    ("colour", "background", "ratio"),
    [("#777", "#fff", "4.48"), ("#00000080", "#fff", "3.98"), ("#000", "#00000099", "3.66")],
)
def test_the_contrast_check_finds_faint_text(browser, colour, background, ratio):
    style = f"color:{colour};background:{background}"
    page = f"<div style='background:#fff'><p style='{style}'>words</p></div>"
    browser.run(f'document.body.innerHTML = "{page}"')
    assert browser.run(FAINT) == {"checked": 1, "faint": [f"{ratio}: P words"]}


def test_the_page_makes_no_requests_and_logs_no_errors(browser, page):
    browser.click(HEADING)
    browser.click("button.copy")
    assert browser.log("browser") == []
    asked = browser.requests()
    assert page.as_uri() in asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
