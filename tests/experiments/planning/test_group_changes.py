import pytest

from kassay.experiments.planning import what_if as group_changes
from kassay.reference import Group, InputError, Member, Topic
from kassay.reference.model.assignment import movement
from kassay.reference.model.ownership import rejoin
from kassay.solver import solve

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


def test_removing_more_members_than_exist_is_an_error():
    with pytest.raises(InputError, match="cannot remove 3 members from group 'g', which has 2"):
        group_changes.add_members(GROUP, -3)


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


def test_new_weights_must_cover_every_topic():
    assert group_changes.reweigh(GROUP, {"t": [1, 2, 3], "u": [4]}).topics[1].weights == (4,)
    with pytest.raises(InputError, match="no weights for topic 'u'"):
        group_changes.reweigh(GROUP, {"t": [1, 2, 3]})
    reweighed = group_changes.reweigh(GROUP, {"t": [1, 2, 3], "u": [4], "v": [1]})
    assert reweighed.topics[1].weights == (4,)
    with pytest.raises(InputError):
        group_changes.reweigh(GROUP, {"t": [1, 2], "u": [4]})


def test_a_carried_out_plan_needs_no_move():
    plan = solve(GROUP).assignment
    assert movement(rejoin(GROUP, plan), plan) == 0
    assert solve(rejoin(GROUP, plan)).movement.value == 0
