import pytest

from kassay import Group, InputError, Member, Topic
from kassay.experiments.planning.change_forecast import optimum_record, parse_sizes
from kassay.reference.model.errors import UsageError
from kassay.solver.capacity_planning import grown_topic
from tests.stored_cases import stored_cases

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


def changed_groups(**options) -> dict[str, Group]:
    return {one.name: one.changed(GROUP) for one in parse_sizes(GROUP, **options)}


def test_added_members_have_all_topics_or_copy_a_member_and_the_last_members_leave():
    [group] = changed_groups(members="+2").values()
    members = group.members
    assert [member.id for member in members] == ["a", "b", "new-1", "new-2"]
    assert [member.subscription for member in members[2:]] == [("t", "u"), ("t", "u")]
    [group] = changed_groups(members="+1", like="a").values()
    new = group.members[2]
    assert (new.subscription, new.capacity, new.rack, len(new.owned)) == (("t",), 9, "r", 0)
    [group] = changed_groups(members="-1").values()
    assert [member.id for member in group.members] == ["a"]


def test_new_partitions_get_the_mean_weight():
    topic, other = GROUP.topics
    grown = grown_topic(topic, 5)
    assert grown.weights == (5, 0, 2, 3, 3)
    assert grown.racks == (("r",), ("s",), ("r",), (), ())
    assert grown_topic(other, 4) == Topic(name="u", partitions=4)


def test_member_counts_are_absolute_relative_or_ranges():
    assert [*changed_groups(members="3")] == ["3 members"]
    assert [*changed_groups(members="+1,-1")] == ["members +1", "members -1"]
    names = ["2 members", "5 members", "8 members"]
    assert [*changed_groups(members="2..8:3")] == names
    assert [*changed_groups(members="+0..+1")] == ["members +0", "members +1"]


def test_all_changes_apply_together():
    [(name, group)] = changed_groups(partitions=["u=6"], members="+2", like="b").items()
    record = optimum_record(name, group, before=GROUP)
    assert record["configuration"] == "u 6 partitions, members +2"
    assert (record["members"], group.partition_count) == (4, 9)


@pytest.mark.parametrize(("options", "message"), stored_cases("invalid_group_changes"))
def test_invalid_options_are_quoted_in_the_error(options, message):
    with pytest.raises(UsageError, match=message):
        changed_groups(**options)


def test_impossible_changes_are_errors_of_the_group():
    with pytest.raises(InputError, match="has 3 partitions; Kafka cannot reduce them to 2"):
        changed_groups(partitions=["t=2"])
    with pytest.raises(InputError, match="no topic 'v'"):
        changed_groups(partitions=["v=2"])
    with pytest.raises(InputError, match="cannot remove 3 members"):
        changed_groups(members="-3")
