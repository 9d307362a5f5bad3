"""Shrinking finds small groups on which the condition still holds."""

from kassay.experiments.counterexamples.shrinking import shrink, smaller_groups
from kassay.reference.model.group import Group, Topic
from tests.conformance.groups import histories


def test_the_condition_holds_on_every_result() -> None:
    groups = histories("sticky")
    group = next(groups)
    shrunk = 0
    for _ in range(60):
        minimum = len(group.members) // 2

        def fails(g: Group, minimum: int = minimum) -> bool:
            return len(g.members) >= minimum and g.partition_count % 2 == 0

        if fails(group):
            smallest = shrink(group, fails, smaller_groups, attempts=5_000)
            assert len(smallest.members) == minimum
            assert smallest.partition_count == 0
            shrunk += 1
        group = groups.send(None)
    assert shrunk > 10


def test_the_number_of_attempts_is_limited() -> None:
    group = Group(topics=tuple(Topic(name=f"t{i}", partitions=1) for i in range(9)), members=())
    tried: list[Group] = []

    def fails(g: Group) -> bool:
        tried.append(g)
        return len(g.topics) > 2

    shrink(group, fails, smaller_groups, attempts=3)
    assert len(tried) <= 4
