"""Verdicts on groups with assumed subscriptions, and on groups that rebalance."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from kassay import Group
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.planning.render_plans import PAGE, TEXT, TICKET, plan_document, render_plan
from kassay.experiments.planning.survey import SurveyedGroup, survey_group
from kassay.reference.model.group import Assumed, GroupStatus
from kassay.reference.model.group_remarks import AssumedSubscriptions, condition, with_assumption
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve
from tests.notation import changed, group

ASSIGNED = "every member subscribes only to the topics of its partitions"
EQUAL = "every member subscribes to every topic of the group"
CLAIMS = re.compile(r"nothing to do|proof|proven|optimal", re.IGNORECASE)


def two_topics(*assumed: Assumed) -> Group:
    """Return a group in which one member has all the traffic, because of its partitions."""
    topics = "lowrate:0,0,0,0,0,0 orders:76,75,75,75,75,75"
    found = group(topics, a="orders | orders-0..5", b="lowrate | lowrate-0..5")
    return changed(found, a={"assumed": assumed}, b={"assumed": assumed})


def test_both_readings_are_solved_and_stated_with_their_conditions() -> None:
    result = plan(two_topics(Assumed.TOPICS), limits=SearchLimits(time=10))
    first, second = verdict(result).split(" If ")
    assert first.startswith(f"If {ASSIGNED}: no moves; ")
    assert second.startswith(f"{EQUAL}: 3 moves lower the maximum load from 451 to 226 (-50%)")
    assert result.condition == ASSIGNED
    assert result.other_reading is not None
    other = result.other_reading.verdict
    assert (other.moves, other.makespan.value) == (3, 226)
    document = plan_document(result)
    assert document["condition"] == ASSIGNED
    assert json.loads(json.dumps(document))["other_reading"]["condition"] == EQUAL
    for text in (
        render_plan(result, TICKET),
        render_plan(result, PAGE),
        render_plan(result, TEXT, directory="x"),
    ):
        assert text.count(ASSIGNED) == text.count(EQUAL) == 1
        assert f"If {EQUAL}: 3 moves" in text


@pytest.mark.parametrize("reading", AssumedSubscriptions)
def test_no_sentence_claims_something_without_its_condition(reading: AssumedSubscriptions) -> None:
    read = with_assumption(two_topics(Assumed.TOPICS), reading)
    result = plan(read, limits=SearchLimits(time=10))
    surveyed = survey_group(read)
    assert isinstance(surveyed, SurveyedGroup)
    for text in (verdict(result), str(surveyed.verdict), str(surveyed.other_reading.verdict)):
        for sentence in re.split(r"(?<=\.) (?=If )", text):
            assert not CLAIMS.search(sentence) or sentence.startswith("If every member subscribes")
    assert f"optimal if {condition(read)}" in repr(solve(read))
    assert f"optimal if {condition(read)}" in repr(result)


def test_a_reconciling_group_starts_from_its_partitions_and_is_not_optimal() -> None:
    targets = [[("t", number) for number in range(at, at + 9)] for at in (0, 9)]
    found = group("t:18", a="t | t-0..17", b="t @1")
    found = changed(found, a={"target": targets[0]}, b={"target": targets[1]})
    result = plan(replace(found, status=GroupStatus(state="Reconciling")))
    assert (result.current.makespan, result.planned.makespan, result.movement) == (18, 9, 9)
    target = {"makespan": 9, "moves": 9}
    assert plan_document(result)["target"] == target
    assert "The group is reconciling" in verdict(result)
    surveyed = survey_group(result.group)
    assert isinstance(surveyed, SurveyedGroup)
    assert (surveyed.record()["state"], surveyed.record()["target"]) == ("Reconciling", target)
    assert "The group is reconciling" in str(surveyed.record()["verdict"])


@pytest.mark.parametrize("state", ["Reconciling", "PreparingRebalance"])
def test_a_balanced_group_that_rebalances_is_not_called_optimal(state: str) -> None:
    balanced = group("t:2", a="t | t-0", b="t | t-1")
    result = plan(replace(balanced, status=GroupStatus(state=state)))
    text = verdict(result)
    assert result.moves == ()
    assert "still rebalancing" in text
    assert "optimal" not in text
    assert "proof" not in text
