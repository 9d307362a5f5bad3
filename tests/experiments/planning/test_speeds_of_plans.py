"""Plans of members with measured speeds print loads in the unit of the input."""

import json
import re
from dataclasses import replace

import pytest

from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.planning.render_plan import (
    plan_document,
    render_html,
    render_summary,
    render_ticket,
)
from kassay.reference import Group, Member, Topic
from kassay.reference.model.metrics import loads
from kassay.solver.limits import SearchLimits
from tests.log_normal_groups import log_normal_group

SPEEDS = (97, 89, 83, 79, 73, 71, 67, 100)
_SCRIPTS = re.compile(r"<script.*?</script>|<style.*?</style>|href=\"data:[^\"]*\"", re.DOTALL)


@pytest.fixture(scope="module")
def group() -> Group:
    found = log_normal_group(60, 8, seed=1)
    pairs = zip(found.members, SPEEDS, strict=True)
    return replace(found, members=tuple(replace(one, speed=speed) for one, speed in pairs))


@pytest.fixture(scope="module")
def result(group):
    return plan(group, limits=SearchLimits(time=2))


def _relative(group, member_loads):
    return max(
        load * max(SPEEDS) / speed
        for load, speed in zip(member_loads.values(), SPEEDS, strict=True)
    )


def test_the_verdict_states_loads_of_the_fastest_member(group, result):
    before, after = (
        round(_relative(group, each))
        for each in (result.current.loads, loads(group, result.assignment))
    )
    assert f"from {before:,} to {after:,}" in verdict(result)
    document = plan_document(result)
    assert document["planned"]["measures"]["makespan"] > 10**12  # exact


def test_no_text_shows_the_common_multiple_of_the_speeds(result):
    texts = (
        render_ticket(result),
        render_summary(result, directory=None),
        _SCRIPTS.sub("", render_html(result)),
    )
    for text in texts:
        digits = re.sub(r"(?<=\d)[,\u202f](?=\d)", "", text)
        assert not re.search(r"\d{12}", digits)


def test_bars_and_highlights_compare_loads_relative_to_the_speeds(result):
    page = render_html(result)
    widths = [float(one) for one in re.findall(r'class="after" style="width:([\d.]+)%', page)]
    assert max(widths) > 50
    assert 'class="hot"' in page


def test_the_slider_has_the_speeds_and_the_points_of_the_frontier(result):
    [text] = re.findall(r'id="move-data">(.*?)</script>', render_html(result))
    data = json.loads(text)
    assert sorted(data["speeds"]) == sorted(SPEEDS)
    points = {moves: load for moves, load, _ in data["frontier"]}
    shown = round(_relative(result.group, result.planned.loads))
    assert points[result.movement] == shown


@pytest.mark.parametrize("speed", [1, 3])
def test_only_equal_weights_and_speeds_have_one_optimum_for_all_measures(speed):
    members = [
        Member(id="a", subscription=("t",), owned=[("t", at) for at in range(6)], speed=speed),
        Member(id="b", subscription=("t",)),
    ]
    group = Group(topics=(Topic(name="t", partitions=6),), members=members)
    page = render_html(plan(group, limits=SearchLimits(time=1)))
    assert ("implies the minimum of every other measure" in page) is (speed == 1)
