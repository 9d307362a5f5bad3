"""Shrinking finds small groups on which the condition still holds."""

import pytest

from kassay.experiments.counterexamples.shrinking import shrink
from kassay.reference.model.group import Group, Member, Topic
from tests.conformance.groups import histories


def _claims_of(group: Group, name: str) -> int:
    return sum(tp.topic == name for member in group.members for tp in member.owned)


def test_only_the_required_claim_remains() -> None:
    group = Group(
        topics=tuple(Topic(name=f"t{i}", partitions=9) for i in range(5)),
        members=tuple(
            Member(
                id=f"c{i}",
                subscription=tuple(f"t{j}" for j in range(5)),
                owned=[(f"t{i}", p) for p in range(9)],
                generation=4,
                rack="a",
            )
            for i in range(5)
        ),
    )

    smallest = shrink(group, lambda g: _claims_of(g, "t3") >= 1)

    assert smallest == Group(
        topics=(), members=(Member(id="c3", subscription=(), owned=[smallest.members[0].owned[0]]),)
    )
    assert _claims_of(smallest, "t3") == 1


def test_partitions_of_required_claims_remain() -> None:
    group = Group(
        topics=(Topic(name="t", partitions=8, racks=tuple(("a", "b") for _ in range(8))),),
        members=(Member(id="c", subscription=("t",), owned=[("t", 7), ("t", 1)]),),
    )

    def claims_within_its_topic(g: Group) -> bool:
        table = g.topic_table()
        claims = [tp for member in g.members for tp in member.owned]
        return any(tp.topic in table and tp[1] < table[tp.topic].partitions for tp in claims)

    smallest = shrink(group, claims_within_its_topic)

    assert smallest.topics == (Topic(name="t", partitions=1),)
    assert smallest.members[0].owned == [("t", 0)]


def test_the_condition_holds_on_every_result() -> None:
    groups = histories("sticky")
    group = next(groups)
    shrunk = 0
    for _ in range(60):
        minimum = len(group.members) // 2

        def fails(g: Group, minimum: int = minimum) -> bool:
            return len(g.members) >= minimum and g.partition_count % 2 == 0

        if fails(group):
            smallest = shrink(group, fails)
            assert len(smallest.members) == minimum
            assert smallest.partition_count == 0
            shrunk += 1
        group = groups.send(None)
    assert shrunk > 10


def test_a_group_on_which_the_condition_is_false_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot shrink the group"):
        shrink(Group(topics=(), members=()), lambda _: False)


def test_the_number_of_attempts_is_limited() -> None:
    group = Group(topics=tuple(Topic(name=f"t{i}", partitions=1) for i in range(9)), members=())
    tried: list[Group] = []

    def fails(g: Group) -> bool:
        tried.append(g)
        return len(g.topics) > 2

    shrink(group, fails, attempts=3)
    assert len(tried) <= 4
