"""Verdicts on groups with assumed subscriptions, and on groups that rebalance."""

from __future__ import annotations

import json
import re

import pytest

from kassay import Group, Member, Topic
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.plan_sentences import verdict
from kassay.experiments.planning.render_plan import (
    plan_document,
    render_html,
    render_summary,
    render_ticket,
)
from kassay.experiments.planning.survey import SurveyedGroup, survey_group
from kassay.reference.model.group import Assumed, GroupStatus
from kassay.reference.model.group_remarks import AssumedSubscriptions, condition, with_assumption
from kassay.solver.limits import SearchLimits
from kassay.solver.solve import solve

ASSIGNED = "every member subscribes only to the topics of its partitions"
EQUAL = "every member subscribes to every topic of the group"
CLAIMS = re.compile(r"nothing to do|proof|proven|optimal", re.IGNORECASE)


def two_topics(*assumed: Assumed) -> Group:
    """Return a group in which one member has all the traffic, because of its partitions."""
    topics = (
        Topic(name="lowrate", partitions=6, weights=(0,) * 6),
        Topic(name="orders", partitions=6, weights=(76, 75, 75, 75, 75, 75)),
    )
    members = tuple(
        Member(
            id=id,
            subscription=(topic,),
            owned=[(topic, number) for number in range(6)],
            generation=1,
            assumed=assumed,
        )
        for id, topic in (("a", "orders"), ("b", "lowrate"))
    )
    return Group(id="two", topics=topics, members=members)


def test_both_readings_are_solved_and_stated_with_their_conditions() -> None:
    result = plan(two_topics(Assumed.TOPICS), limits=SearchLimits(time=10))
    first, second = verdict(result).split(" If ")
    assert first.startswith(f"If {ASSIGNED}: nothing to do; ")
    assert second.startswith(f"{EQUAL}: 3 moves lower the maximum load from 451 to 226 (-50%)")
    assert result.condition == ASSIGNED
    assert result.other_reading is not None
    assert (result.other_reading.moves, result.other_reading.makespan.value) == (3, 226)
    document = plan_document(result)
    assert document["condition"] == ASSIGNED
    assert json.loads(json.dumps(document))["other_reading"]["condition"] == EQUAL
    for text in (render_ticket(result), render_html(result), render_summary(result, directory="x")):
        assert ASSIGNED in text
        assert f"If {EQUAL}: 3 moves" in text


@pytest.mark.parametrize("reading", AssumedSubscriptions)
def test_no_sentence_claims_something_without_its_condition(reading: AssumedSubscriptions) -> None:
    group = with_assumption(two_topics(Assumed.TOPICS), reading)
    result = plan(group, limits=SearchLimits(time=10))
    surveyed = survey_group(group)
    assert isinstance(surveyed, SurveyedGroup)
    for text in (verdict(result), str(surveyed.verdict), str(surveyed.other_reading.verdict)):
        for sentence in re.split(r"(?<=\.) (?=If )", text):
            assert not CLAIMS.search(sentence) or sentence.startswith("If every member subscribes")
    assert f"optimal if {condition(group)}" in repr(solve(group))
    assert f"optimal if {condition(group)}" in repr(result)


def test_a_reconciling_group_starts_from_its_partitions_and_is_not_optimal() -> None:
    members = (
        Member(
            id="a",
            subscription=("t",),
            owned=[("t", number) for number in range(18)],
            target=[("t", number) for number in range(9)],
        ),
        Member(id="b", subscription=("t",), target=[("t", number) for number in range(9, 18)]),
    )
    status = GroupStatus(state="Reconciling")
    topics = (Topic(name="t", partitions=18),)
    result = plan(Group(id="g", topics=topics, members=members, status=status))
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
    members = tuple(
        Member(id=id, subscription=("t",), owned=[("t", number)]) for number, id in enumerate("ab")
    )
    group = Group(
        topics=(Topic(name="t", partitions=2),), members=members, status=GroupStatus(state=state)
    )
    result = plan(group)
    text = verdict(result)
    assert result.moves == ()
    assert "still rebalancing" in text
    assert "optimal" not in text
    assert "proof" not in text
