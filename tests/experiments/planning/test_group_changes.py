import pytest

from kassay.experiments.planning import what_if as group_changes
from kassay.reference import Group, InputError, Member, Topic

GROUP = Group(
    id="g",
    topics=(
        Topic(name="t", partitions=3, weights=(5, 0, 2), racks=(("r",), ("s",), ("r",))),
        Topic(name="u", partitions=1),
    ),
    members=(
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1)], capacity=9, rack="r"),
        Member(id="b", subscription=("t", "u"), owned=[("t", 2)]),
    ),
)


def test_added_members_subscribe_to_all_consumed_topics():
    members = group_changes.add_members(GROUP, 2).members
    assert [member.id for member in members] == ["a", "b", "new-1", "new-2"]
    assert [member.subscription for member in members[2:]] == [("t", "u"), ("t", "u")]


def test_added_members_can_copy_an_existing_member():
    new = group_changes.add_members(GROUP, 1, like="a").members[2]
    assert (new.subscription, new.capacity, new.rack, len(new.owned)) == (("t",), 9, "r", 0)


def test_a_negative_count_removes_the_last_members():
    assert [member.id for member in group_changes.add_members(GROUP, -1).members] == ["a"]


def test_new_partitions_get_the_mean_weight():
    topic = group_changes.repartition(GROUP, "t", 5).topics[0]
    assert topic.weights == (5, 0, 2, 3, 3)
    assert topic.racks == (("r",), ("s",), ("r",), (), ())
    assert group_changes.repartition(GROUP, "u", 4).topics[1] == Topic(name="u", partitions=4)


def test_the_partition_count_cannot_decrease():
    with pytest.raises(InputError, match="has 3 partitions; Kafka cannot reduce them to 2"):
        group_changes.repartition(GROUP, "t", 2)
    with pytest.raises(InputError, match="no topic 'v'"):
        group_changes.repartition(GROUP, "v", 2)
