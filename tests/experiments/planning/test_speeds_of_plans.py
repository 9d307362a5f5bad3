"""Plans of members with measured speeds print loads in the unit of the input."""

import re
from dataclasses import replace

import pytest

from kassay import Group
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.planning.render_plan import (
    plan_document,
    render_html,
    render_summary,
    render_ticket,
)
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
