import json
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
from kassay.experiments.planning.render_plans import PAGE, render_plan
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.documents.json_codec import parse_group
from kassay.solver.objective import HostImbalance
from tests.experiments.report.accessibility import SCREENS, faults_of_page
from tests.experiments.report.browser import BROWSER_MARKS, Browser
from tests.log_normal_groups import log_normal_group

pytestmark = BROWSER_MARKS


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
    browser.click("table.loads th:nth-child(3) button")
    planned = browser.run(CHOOSE, 10**6)["loads"]
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
MEMBER_ORDERS = (Path(__file__).parent / "member_orders.js").read_text(encoding="utf-8")
SPLIT_NAMES = (Path(__file__).parent / "split_names.js").read_text(encoding="utf-8")


EXTREME = (Path(__file__).parent / "extreme_groups.jsonl").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module", params=EXTREME, ids=("long", "wide", "right-to-left", "many"))
def extreme_page(request, tmp_path_factory):
    """Page of a group with such names of members, and loads of 5 to 16 digits in 24 windows."""
    group = parse_group(json.loads(request.param))
    path = tmp_path_factory.mktemp("extreme") / "report.html"
    path.write_text(render_plan(plan(group, limits=CaseLimits(work=0.5)), PAGE), encoding="utf-8")
    return path


@SCREENS
def test_texts_of_extreme_groups_do_not_overlap(
    browser, page, extreme_page, width, scheme, tmp_path
):
    browser.open(extreme_page)
    faults = faults_of_page(browser, tmp_path, width=width, scheme=scheme)
    browser.open(page)
    assert faults == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("extreme_page", EXTREME[:1], indirect=True)
def test_long_names_and_bars_are_complete(browser, page, extreme_page, width):
    browser.open(extreme_page)
    browser.width(width)
    clipped, split = browser.run(CLIPPED_BARS), browser.run(SPLIT_NAMES)
    browser.open(page)
    assert (clipped, split) == (0, 0)


def test_drawings_list_the_members_in_the_order_of_the_table(browser, page, extreme_page):
    browser.open(extreme_page)
    table, *drawings = browser.run(MEMBER_ORDERS)
    browser.open(page)
    assert drawings == [table] * 3


@pytest.fixture(scope="module")
def page_with_hosts(tmp_path_factory):
    groups = load_captures(SHOP_CLUSTER, subscriptions="equal")
    group = next(group for group in groups if group.id == "orders")
    levels = (HostImbalance(), Imbalance(), Movement())
    path = tmp_path_factory.mktemp("hosts") / "report.html"
    path.write_text(render_plan(plan(group, levels=levels), PAGE), encoding="utf-8")
    return path


@SCREENS
def test_a_page_with_hosts_is_accessible_and_fits_the_screen(
    browser, page, page_with_hosts, width, scheme, tmp_path
):
    browser.open(page_with_hosts)
    faults = faults_of_page(browser, tmp_path, width=width, scheme=scheme)
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
