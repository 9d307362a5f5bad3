"""Completeness and consistency of the committed captures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.capture_scenarios import BUILT_IN_SCRIPTS, TOPICS
from tests.conformance.captures import CAPTURES, VIEWS

MANIFEST: dict[str, Any] = json.loads((CAPTURES / "manifest.json").read_text())
GROUPS: dict[str, Any] = MANIFEST["groups"]


def test_every_scenario_was_captured_in_its_final_state() -> None:
    assert {name: member["state"] for name, member in GROUPS.items()} == {
        scenario.name: scenario.final_state for scenario in BUILT_IN_SCRIPTS
    }
    assert {name: topic["partitions"] for name, topic in MANIFEST["topics"].items()} == TOPICS


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", GROUPS)
def test_captures_contain_the_group_and_its_members(name: str, view: str) -> None:
    text = (CAPTURES / GROUPS[name]["directory"] / f"{view}.txt").read_text()
    assert f"\n{name} " in text or (view.startswith("members") and not GROUPS[name]["members"])
    if not view.startswith("state"):
        for member in GROUPS[name]["members"]:
            assert member["id"] in text or (view.startswith("offsets") and not member["assigned"])


@pytest.mark.parametrize("name", [name for name in GROUPS if GROUPS[name]["state"] == "Stable"])
def test_manifest_contains_valid_assignments(name: str) -> None:
    members = GROUPS[name]["members"]
    group = Group(
        topics=tuple(Topic(name=topic, partitions=count) for topic, count in TOPICS.items()),
        members=tuple(
            Member(id=member["id"], subscription=tuple(member["topics"])) for member in members
        ),
    )
    assignment = Assignment(
        {
            member["id"]: [
                (topic, number)
                for topic, numbers in member["assigned"].items()
                for number in numbers
            ]
            for member in members
        }
    )
    assert list(violations(group, assignment)) == []


@pytest.mark.parametrize("name", ["search-sticky", "returns-sticky"])
def test_sticky_left_a_member_idle_unnecessarily(name: str) -> None:
    loads = sorted(sum(map(len, member["assigned"].values())) for member in GROUPS[name]["members"])
    assert loads == [0, 1, 2]
