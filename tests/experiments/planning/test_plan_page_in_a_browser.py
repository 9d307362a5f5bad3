import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from examples.write_shop_cluster import SHOP_CLUSTER
from kassay import Imbalance, Movement
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.notebook_helpers import load_captures
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.render_pages import PAGE, render_plan
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.objective import HostImbalance
from tests.experiments.report.accessibility import SCREENS, faults_of_page
from tests.experiments.report.browser import BROWSER_MARKS, PAPER_WIDTH, Browser
from tests.log_normal_groups import log_normal_group

pytestmark = BROWSER_MARKS

LOADS = "[...document.querySelector('table.loads').tBodies[0].rows]"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "report.html"
    path.write_text(
        render_plan(plan(NAMED_GROUPS["D"].group, batch_size=3), PAGE), encoding="utf-8"
    )
    return path


@pytest.fixture(scope="module")
def browser(page):
    with Browser() as opened:
        opened.width(1280)
        opened.open(page)
        yield opened


def test_the_loads_can_be_sorted(browser):
    browser.run("document.querySelector('table.loads').scrollIntoView({behavior: 'instant'})")
    browser.click("table.loads th:nth-child(3) button")
    planned = browser.run(f"return {LOADS}.map(row => Number(row.cells[2].textContent))")
    assert planned == sorted(planned, reverse=True)


CHOOSE = (Path(__file__).parent / "choose_moves.js").read_text(encoding="utf-8")


def test_the_slider_shows_the_loads_after_the_first_moves(browser, page, tmp_path):
    result = plan(random_plan_group())
    path = tmp_path / "plan.html"
    path.write_text(render_plan(result, PAGE), encoding="utf-8")
    browser.open(path)
    assert result.movement > 3
    for count, batch in enumerate(result.batches, 1):
        shown = browser.run(CHOOSE, count)
        assert max(shown["loads"]) == batch.makespan
        assert sum(load * load for load in shown["loads"]) == batch.imbalance
        assert shown["later"] == result.movement - count
        assert shown["text"].startswith(f"{count} of {result.movement} moves: maximum load")
    assert sorted(shown["loads"]) == sorted(result.planned.loads.values())
    first = browser.run(CHOOSE, 0)
    assert sorted(first["loads"]) == sorted(result.current.loads.values())
    best = {point.movement.value: point.imbalance.value for point in result.frontier.points}
    assert first["text"].endswith(f"minimum with 0 moves: {best[0]}")
    browser.open(page)


def random_plan_group():
    """Return a group of 8 members with equal weights, of which one owns most partitions."""
    group = log_normal_group(40, 8)
    (topic,) = (replace(topic, weights=None) for topic in group.topics)
    owned = {member.id: list(member.owned) for member in group.members}
    first, last = group.members[0].id, group.members[-1].id
    owned[first] += owned.pop(last)
    members = tuple(replace(m, owned=owned.get(m.id, ())) for m in group.members)
    return replace(group, topics=(topic,), members=members)


@SCREENS
def test_the_page_is_accessible_and_fits_the_screen(browser, width, scheme, tmp_path):
    assert faults_of_page(browser, tmp_path, width=width, scheme=scheme) == []


CLIPPED_BARS = (Path(__file__).parent / "clipped_bars.js").read_text(encoding="utf-8")
SPLIT_NAMES = (Path(__file__).parent / "split_names.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [1280, 390])
def test_long_names_and_loads_of_many_digits_are_complete(browser, page, width, tmp_path):
    members = tuple(
        Member(f"checkout-of-the-region-{name}-consumer-{number}", ("t",))
        for number, name in enumerate(("north", "south", "east"))
    )
    weights = tuple(900_000_000 // (number + 1) for number in range(12))
    owner = replace(members[0], owned=[("t", number) for number in range(12)])
    group = Group((Topic("t", 12, weights=weights),), (owner, *members[1:]))
    path = tmp_path / "long.html"
    path.write_text(render_plan(plan(group, limits=5), PAGE), encoding="utf-8")
    browser.open(path)
    browser.width(width)
    clipped, split = browser.run(CLIPPED_BARS), browser.run(SPLIT_NAMES)
    shown = browser.run("return document.documentElement.scrollWidth")
    browser.open(page)
    assert (clipped, split) == (0, 0)
    assert shown <= width


@pytest.fixture(scope="module")
def page_with_hosts(tmp_path_factory):
    groups = load_captures(SHOP_CLUSTER, subscriptions="equal")
    group = next(group for group in groups if group.id == "orders")
    levels = (HostImbalance(), Imbalance(), Movement())
    path = tmp_path_factory.mktemp("hosts") / "report.html"
    path.write_text(render_plan(plan(group, levels=levels), PAGE), encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_with_hosts_is_accessible_and_fits_the_screen(
    browser, page, page_with_hosts, width, tmp_path
):
    browser.open(page_with_hosts)
    faults = faults_of_page(browser, tmp_path, width=width)
    rows = browser.run(
        "return [...document.querySelector('table.hosts').tBodies[0].rows]"
        ".map(row => [...row.cells].map(cell => cell.textContent))"
    )
    browser.open(page)
    assert [row[:3] for row in rows] == [
        [f"10.42.1.{pod}", "3", load]
        for pod, load in ((11, "27"), (18, "27"), (25, "24"), (32, "16"))
    ]
    assert sorted(row[3] for row in rows) == ["23", "23", "24", "24"]
    assert faults == []


def test_a_printed_page_with_hosts_fits_the_paper(browser, page, page_with_hosts):
    browser.open(page_with_hosts)
    browser.width(PAPER_WIDTH)
    browser.medium("print")
    width = browser.run("return document.documentElement.scrollWidth")
    browser.medium("")
    browser.open(page)
    assert width <= PAPER_WIDTH


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="needs pdftotext")
def test_a_printed_table_repeats_its_headings_on_each_page(browser, page, tmp_path):
    group = log_normal_group(300, 60)
    wide = tmp_path / "wide.html"
    limits = CaseLimits(time=0)
    wide.write_text(render_plan(plan(group, limits=limits), PAGE), encoding="utf-8")
    browser.open(wide)
    pdf = browser.pdf()
    browser.open(page)
    printed = subprocess.run(
        ["pdftotext", "-layout", "-", "-"], input=pdf, capture_output=True, check=True
    )
    pages = printed.stdout.decode().split("\f")
    with_loads = [text for text in pages if "c0" in text and "comparison" in text]
    assert len(with_loads) > 2
    assert all("current" in text and "planned" in text for text in with_loads)


def test_the_page_uses_no_network_and_logs_nothing(browser, page):
    assert browser.log("browser") == []
    asked = browser.requests()
    assert page.as_uri() in asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)
