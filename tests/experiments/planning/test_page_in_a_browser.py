import pytest

from experiments.families import REMARKABLE
from experiments.planning import plan
from experiments.planning.page import render_html
from tests.experiments.report.browser import CHROMIUM, DRIVER, Browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="needs chromium and chromedriver (Debian: chromium chromium-driver)",
    ),
]

LOADS = "[...document.querySelector('table.loads').tBodies[0].rows]"
FAULTS = """
const faults = [];
const say = (what, element) => faults.push(what + ': ' + element.outerHTML.slice(0, 80));
if (!document.documentElement.lang) faults.push('no language');
if (!document.title) faults.push('no title');
for (const button of document.querySelectorAll('button, a'))
  if (!button.textContent.trim()) say('no name', button);
for (const cell of document.querySelectorAll('th')) if (!cell.scope) say('no scope', cell);
for (const region of document.querySelectorAll('[role=region], [role=img]'))
  if (!region.getAttribute('aria-label')) say('no label', region);
let level = 0;
for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) say('skips a level', heading);
  level = own;
}
return faults;
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "report.html"
    path.write_text(render_html(plan(REMARKABLE["D"].group, batch=3)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(page):
    with Browser() as opened:
        opened.width(1280)
        opened.open(page)
        yield opened


def test_the_loads_can_be_sorted(browser):
    browser.click("table.loads th:nth-child(3) button")
    then = browser.run(f"return {LOADS}.map(row => Number(row.cells[2].textContent))")
    assert then == sorted(then, reverse=True)


def test_whoever_cannot_see_it_can_read_it(browser):
    assert browser.run(FAULTS) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_reaches_past_the_edge_of_the_screen(browser, width):
    browser.width(width)
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_it_prints(browser):
    assert browser.pdf().startswith(b"%PDF")


def test_it_asks_the_network_for_nothing_and_complains_of_nothing(browser, page):
    assert browser.log("browser") == []
    asked = browser.requests()
    assert page.as_uri() in asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
