"""Our ports against Kafka's own classes, on groups made afresh. Needs a JDK and Maven.

``SOAK=100000 make conformance`` puts more groups to them than the default.
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
"""Groups put to each assignor."""

pytestmark = pytest.mark.kafka


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_port_does_what_the_real_class_does(name: str) -> None:
    groups = histories(name)
    group = next(groups)
    for _ in range(SOAK):
        checked = compare_port(group, name)
        if not checked.agree:
            smallest = shrink_mismatch(group, name)
            pytest.fail(f"{name} differs on {group.id}, shrunk to\n{smallest.document()}")
        group = groups.send(checked.real.lists)


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_the_real_class_never_returns_on_the_known_livelock(name: str) -> None:
    checked = compare_port(_livelock(), name)
    assert not checked.real.terminated
    assert checked.agree


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_the_real_class_never_returns_on_the_smallest_livelock_found(name: str) -> None:
    owned = {
        "c0": ("t1", [("t1", number) for number in (1, 3, 4, 5, 7, 8)]),
        "c1": ("t0", [("t0", number) for number in (2, 3, 4)]),
        "c2": ("t0", [("t0", number) for number in (0, 1)]),
        "c3": ("t0 t1", []),
        "c4": ("t1", [("t1", number) for number in (0, 2, 6, 9)]),
    }
    checked = compare_port(_owning({"t0": 5, "t1": 10}, owned), name)
    assert not checked.real.terminated
    assert checked.agree


@pytest.mark.parametrize("name", CLIENT_ASSIGNORS)
def test_one_call_of_the_real_class_leaves_nothing_behind_for_the_next(name: str) -> None:
    groups = histories(name, first=10_000)
    group = next(groups)
    cases = []
    for _ in range(60):
        answer = upstream_assign(group, name, limit=port_comparison.ENDLESS_LIMIT)
        cases.append((group, answer))
        group = groups.send(answer.lists)
    for again, answer in random.Random(1).sample(cases, len(cases)):
        if answer.terminated:
            assert upstream_assign(again, name) == answer


def test_names_beyond_the_basic_plane_survive_the_way_to_java_and_back() -> None:
    group = Group(
        topics=(Topic(name="t😀", partitions=1),),
        members=(Member(id="𝒳Ａ", subscription=("t😀",)),),
    )
    assert upstream_assign(group, "range").lists == {"𝒳Ａ": [["t😀", 0]]}


def test_a_port_that_is_wrong_is_caught_and_the_group_shrunk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = port_comparison.port_output

    def wrong(group: Group, name: str) -> AssignorOutput:
        answer = right(group, name)
        if answer.lists is None:
            return answer
        backwards = {member: pairs[::-1] for member, pairs in answer.lists.items()}
        return replace(answer, lists=backwards)

    monkeypatch.setattr(port_comparison, "port_output", wrong)
    groups = histories("range", first=3)
    group = next(groups)
    while compare_port(group, "range").agree:
        group = groups.send(None)

    smallest = shrink_mismatch(group, "range")

    # Two partitions in one list are what it takes to see that lists are backwards.
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
