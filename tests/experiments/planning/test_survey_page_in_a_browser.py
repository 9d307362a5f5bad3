from dataclasses import replace

import pytest

from kassay.experiments.planning.render_surveys import render_survey
from kassay.experiments.planning.survey import Survey, UnsurveyedGroup, survey_groups
from tests.experiments.report.accessibility import SCREENS, faults_of_page
from tests.experiments.report.browser import BROWSER_MARKS, Browser
from tests.random_groups import random_group

pytestmark = BROWSER_MARKS

ROWS = "[...document.querySelector('table.survey').tBodies[0].rows]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    groups = [
        replace(random_group(seed), id=f"team-{seed % 7}.orders-{seed}") for seed in range(40)
    ]
    survey = Survey.of([*survey_groups(groups), UnsurveyedGroup(id="broken", reason="no members")])
    path = tmp_path_factory.mktemp("survey") / "survey.html"
    plans = {group.id: f"{group.id}/report.html" for group in groups[:20]}
    path.write_text(render_survey(survey, source="captures", plans=plans), encoding="utf-8")
    with Browser() as opened:
        opened.width(1280)
        opened.open(path)
        yield opened


def test_the_filter_shows_only_the_rows_that_contain_its_text(browser):
    browser.press(".filter input", "team-3")
    shown = browser.run(f"return {ROWS}.filter(row => !row.hidden).map(row => row.textContent)")
    assert shown
    assert all("team-3." in text for text in shown)
    assert browser.run("return document.querySelector('.filter [role=status]').textContent") == (
        f"{len(shown)} of 40"
    )
    browser.run(
        "const field = document.querySelector('.filter input');"
        "field.value = ''; field.dispatchEvent(new Event('input'));"
    )


def test_the_maximum_loads_are_sorted_by_their_decrease(browser):
    browser.click("table.survey th:nth-child(4) button")
    decreases = browser.run(f"return {ROWS}.map(row => Number(row.cells[3].dataset.value))")
    assert decreases == sorted(decreases, reverse=True)


@SCREENS
def test_the_page_is_accessible_and_fits_the_screen(browser, width, scheme, tmp_path):
    assert faults_of_page(browser, tmp_path, width=width, scheme=scheme) == []


def test_the_printed_page_has_no_filter(browser):
    browser.medium("print")
    hidden = browser.run("return !document.querySelector('.filter').checkVisibility()")
    browser.medium("")
    assert hidden
