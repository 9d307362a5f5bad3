"""The committed captures are whole, and agree with what was run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.captures import CAPTURES, VIEWS
from tests.conformance.scenarios import SCENARIOS, TOPICS

MANIFEST: dict[str, Any] = json.loads((CAPTURES / "manifest.json").read_text())
GROUPS: dict[str, Any] = MANIFEST["groups"]


def test_every_scenario_was_captured_in_the_state_it_ends_in() -> None:
    assert {name: truth["state"] for name, truth in GROUPS.items()} == {
        scenario.name: scenario.ends for scenario in SCENARIOS
    }
    assert {name: topic["partitions"] for name, topic in MANIFEST["topics"].items()} == TOPICS


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", GROUPS)
def test_the_text_names_the_group_and_whoever_has_partitions(name: str, view: str) -> None:
    text = (CAPTURES / GROUPS[name]["directory"] / f"{view}.txt").read_text()
    assert f"\n{name} " in text or (view.startswith("members") and not GROUPS[name]["members"])
    if not view.startswith("state"):
        for member in GROUPS[name]["members"]:
            assert member["id"] in text or (view.startswith("offsets") and not member["assigned"])


@pytest.mark.parametrize("name", [name for name in GROUPS if GROUPS[name]["state"] == "Stable"])
def test_the_manifest_tells_of_a_valid_assignment(name: str) -> None:
    truths = GROUPS[name]["members"]
    group = Group(
        topics=tuple(Topic(name=topic, partitions=count) for topic, count in TOPICS.items()),
        members=tuple(
            Member(id=truth["id"], subscription=tuple(truth["topics"])) for truth in truths
        ),
    )
    assignment = Assignment(
        {
            truth["id"]: [
                (topic, number)
                for topic, numbers in truth["assigned"].items()
                for number in numbers
            ]
            for truth in truths
        }
    )
    assert list(violations(group, assignment)) == []


@pytest.mark.parametrize("name", ["search-sticky", "returns-sticky"])
def test_real_sticky_left_a_member_idle_that_could_have_had_a_partition(name: str) -> None:
    loads = sorted(sum(map(len, member["assigned"].values())) for member in GROUPS[name]["members"])
    assert loads == [0, 1, 2]
