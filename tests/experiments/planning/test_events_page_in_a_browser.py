import pytest

from kassay.experiments.planning.planned_events import (
    forecast_events,
    load_planned_events,
    planned_rebalances,
    render_events,
)
from kassay.reference import Group, Member, Topic
from tests.experiments.report.accessibility import SCREENS, faults_of_page
from tests.experiments.report.browser import BROWSER_MARKS, PAPER_WIDTH, Browser

pytestmark = BROWSER_MARKS

EVENTS = """
events:
  - {at: 0s, do: restart, member: "checkout-service-pod-*", for: 10s, every: 40s}
  - {at: 20m, do: join, member: {id: new-, count: 12, topics: [t]}}
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    folder = tmp_path_factory.mktemp("events")
    (folder / "events.yaml").write_text(EVENTS)
    names = [f"checkout-service-pod-{n}" for n in range(12)]
    group = Group(
        id="checkout",
        topics=(Topic(name="t", partitions=96),),
        members=tuple(Member(id=name, subscription=("t",)) for name in names),
    )
    found = forecast_events(
        planned_rebalances(group, load_planned_events(folder / "events.yaml", group))
    )
    page = folder / "events.html"
    page.write_text(render_events(found, group, current="range"), encoding="utf-8")
    with Browser() as opened:
        opened.width(1280)
        opened.open(page)
        yield opened


@SCREENS
def test_the_page_is_accessible_and_fits_the_screen(browser, width, scheme, tmp_path):
    assert faults_of_page(browser, tmp_path, width=width, scheme=scheme) == []


def test_the_names_of_members_stay_visible_when_the_picture_scrolls(browser):
    browser.width(390)
    browser.run("document.querySelector('.pictures .scroll').scrollLeft = 600")
    left = browser.run(
        "return document.querySelector('.over-time tbody th').getBoundingClientRect().left"
    )
    assert 0 <= left < 40


def test_the_printed_page_fits_the_paper(browser):
    browser.width(PAPER_WIDTH)
    browser.medium("print")
    width = browser.run("return document.documentElement.scrollWidth")
    browser.medium("")
    assert width <= PAPER_WIDTH
