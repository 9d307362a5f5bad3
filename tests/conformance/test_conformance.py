"""Ports compared with Kafka's classes on generated groups. Needs a JDK and Maven.

``SOAK=100000 make conformance`` sets the number of groups per assignor.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance import port_comparison
from tests.conformance.groups import histories
from tests.conformance.port_comparison import AssignorOutput, compare_port, shrink_mismatch
from tests.conformance.upstream import CLIENT_ASSIGNORS, NAMES, upstream_assign

SOAK = int(os.environ.get("SOAK", "5000"))
"""Number of groups per assignor."""

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("name", NAMES)
def test_port_agrees_with_kafkas_class(name: str) -> None:
    groups = histories(name)
    group = next(groups)
    for _ in range(SOAK):
        comparison = compare_port(group, name)
        if not comparison.agree:
            smallest = shrink_mismatch(group, name)
            pytest.fail(f"{name} differs on {group.id}, shrunk to\n{smallest.document()}")
        group = groups.send(comparison.real.lists)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_kafkas_class_does_not_terminate_on_the_known_livelock(name: str) -> None:
    comparison = compare_port(_livelock(), name)
    assert not comparison.real.terminated
    assert comparison.agree


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_kafkas_class_does_not_terminate_on_the_smallest_livelock(name: str) -> None:
    owned = {
        "c0": ("t1", [("t1", number) for number in (1, 3, 4, 5, 7, 8)]),
        "c1": ("t0", [("t0", number) for number in (2, 3, 4)]),
        "c2": ("t0", [("t0", number) for number in (0, 1)]),
        "c3": ("t0 t1", []),
        "c4": ("t1", [("t1", number) for number in (0, 2, 6, 9)]),
    }
    comparison = compare_port(_owning({"t0": 5, "t1": 10}, owned), name)
    assert not comparison.real.terminated
    assert comparison.agree


@pytest.mark.parametrize("name", CLIENT_ASSIGNORS)
def test_calls_of_kafkas_class_are_independent(name: str) -> None:
    groups = histories(name, first=10_000)
    group = next(groups)
    cases = []
    for _ in range(60):
        output = upstream_assign(group, name, limit=port_comparison.NONTERMINATION_LIMIT)
        cases.append((group, output))
        group = groups.send(output.lists)
    for again, output in random.Random(1).sample(cases, len(cases)):
        if output.terminated:
            assert upstream_assign(again, name) == output


def test_names_with_surrogate_pairs_survive_a_round_trip() -> None:
    group = Group(
        topics=(Topic(name="t😀", partitions=1),),
        members=(Member(id="𝒳Ａ", subscription=("t😀",)),),
    )
    assert upstream_assign(group, "range").lists == {"𝒳Ａ": [["t😀", 0]]}


def test_wrong_port_is_detected_and_the_group_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port_output = port_comparison.port_output

    def wrong(group: Group, name: str) -> AssignorOutput:
        output = port_output(group, name)
        if output.lists is None:
            return output
        backwards = {member: pairs[::-1] for member, pairs in output.lists.items()}
        return replace(output, lists=backwards)

    monkeypatch.setattr(port_comparison, "port_output", wrong)
    groups = histories("range", first=3)
    group = next(groups)
    while compare_port(group, "range").agree:
        group = groups.send(None)

    smallest = shrink_mismatch(group, "range")

    # A reversed list needs two partitions to be detected.
    assert smallest.group.partition_count == 2
    assert len(smallest.group.members) == 1
    assert '"port": {"assignment"' in smallest.document()


def _livelock() -> Group:
    owned = {
        "c01": ("t13 t6", [("t6", 0), ("t6", 1), ("t6", 3), ("t6", 5)]),
        "c02": ("t0 t5", [("t0", 0), ("t0", 2), ("t0", 4)]),
        "c07": ("t2 t6", [("t6", 2), ("t6", 4)]),
        "c08": ("t0 t5", [("t0", 1), ("t0", 3)]),
        "cNEW": ("t0 t6", []),
    }
    return _owning({"t0": 5, "t13": 3, "t2": 5, "t5": 2, "t6": 6}, owned)


def _owning(
    counts: Mapping[str, int], owned: Mapping[str, tuple[str, Sequence[tuple[str, int]]]]
) -> Group:
    return Group(
        topics=tuple(Topic(name=name, partitions=count) for name, count in counts.items()),
        members=tuple(
            Member(id=name, subscription=topics.split(), owned=pairs, generation=7 if pairs else -1)
            for name, (topics, pairs) in owned.items()
        ),
    )
