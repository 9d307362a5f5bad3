"""Ports compared with Kafka's classes on generated groups. Needs a JDK and Maven.

``SOAK=100000 make conformance`` sets the number of groups per assignor.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pytest

from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.groups import histories
from tests.conformance.port_comparison import compare_port, shrink_mismatch
from tests.conformance.upstream import NAMES, upstream_assign

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


def test_names_with_surrogate_pairs_survive_a_round_trip() -> None:
    group = Group(
        topics=(Topic(name="t😀", partitions=1),),
        members=(Member(id="𝒳Ａ", subscription=("t😀",)),),
    )
    assert upstream_assign(group, "range").lists == {"𝒳Ａ": [["t😀", 0]]}


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
