"""Members of the classic protocol in a group of the consumer protocol."""

import pytest

from kassay import Topic
from kassay.reference.coordinator.classic_protocol_coordinator import numbered_member_ids
from kassay.reference.coordinator.consumer_protocol_coordinator import (
    ClassicMembers,
    ConsumerCoordinator,
    ConsumerMember,
    Heartbeat,
    UpgradeRefusedError,
    converted_members,
)
from kassay.reference.coordinator.runtime import Clock
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.topic_partitions import NO_PARTITIONS, Partitions, TopicPartition
from kassay.reference.protocol.group_messages import (
    ConsumerSubscription,
    JoinRequest,
    SupportedProtocol,
    SyncRequest,
)
from tests.reference.coordinator.driver import Driver

T = [TopicPartition("t", number) for number in range(4)]


def halves(group):
    """Assign the partitions in blocks of equal size, in the order of the member ids."""
    members = sorted(member.id for member in group.members)
    size = len(T) // len(members)
    return Assignment({m: T[n * size : (n + 1) * size] for n, m in enumerate(members)})


@pytest.fixture
def coordinator():
    """Group in epoch 7 whose classic member a owns all partitions."""
    created = ConsumerCoordinator("g", Clock(), halves, [Topic(name="t", partitions=4)])
    member = ConsumerMember(
        id="a", subscription=("t",), epoch=7, previous_epoch=7, assigned=frozenset(T)
    )
    created.adopt([member], epoch=7)
    return created


@pytest.fixture
def members(coordinator):
    return ClassicMembers(coordinator, numbered_member_ids())


def join(members, member_id, owned):
    offers = (SupportedProtocol("range", ConsumerSubscription(("t",), Partitions.of(owned))),)
    answers = []
    members.join(JoinRequest(member_id, offers), answers.append)
    return answers[0]


def sync(members, member_id, generation):
    answers = []
    members.sync(SyncRequest(member_id, generation), answers.append)
    return answers[0]


def test_adopted_members_keep_their_epoch_and_partitions(coordinator, members):
    assert (str(coordinator.group.state), coordinator.group.epoch) == ("Stable", 7)
    assert str(members.heartbeat("a", 7)) == "NONE"
    assert list(sync(members, "a", 7).assignment) == T


def test_a_cooperative_member_revokes_before_it_reaches_the_new_epoch(coordinator, members):
    coordinator.heartbeat(Heartbeat("b", 0, ("t",), frozenset(), 1_000))
    assert str(members.heartbeat("a", 7)) == "REBALANCE_IN_PROGRESS"
    first = join(members, "a", T)
    assert (first.generation, first.members) == (7, ())
    assert list(sync(members, "a", 7).assignment) == T[:2]
    assert str(members.heartbeat("a", 7)) == "REBALANCE_IN_PROGRESS"
    assert join(members, "a", T[:2]).generation == 8
    assert str(members.heartbeat("a", 8)) == "NONE"
    # The new member receives the revoked partitions with its next heartbeat.
    assert coordinator.heartbeat(Heartbeat("b", 8)).assigned == frozenset(T[2:])


def test_an_eager_member_owns_nothing_when_it_joins(coordinator, members):
    coordinator.heartbeat(Heartbeat("b", 0, ("t",), frozenset(), 1_000))
    assert join(members, "a", []).generation == 8
    assert list(sync(members, "a", 8).assignment) == T[:2]


def test_a_member_joins_again_when_partitions_of_its_target_are_free(coordinator, members):
    new = join(members, "", [])
    assert str(new.code) == "MEMBER_ID_REQUIRED"
    assert join(members, new.member_id, []).generation == 8
    assert sync(members, new.member_id, 8).assignment == NO_PARTITIONS
    assert str(members.heartbeat(new.member_id, 8)) == "NONE"  # a has not revoked
    join(members, "a", T)
    join(members, "a", sync(members, "a", 7).assignment)
    assert str(members.heartbeat(new.member_id, 8)) == "REBALANCE_IN_PROGRESS"
    join(members, new.member_id, [])
    assert len(sync(members, new.member_id, 8).assignment) == 2


def test_requests_with_an_unknown_member_or_generation_fail(members):
    assert str(members.heartbeat("x", 7)) == "UNKNOWN_MEMBER_ID"
    assert str(members.heartbeat("a", 6)) == "ILLEGAL_GENERATION"
    assert str(sync(members, "a", 6).code) == "ILLEGAL_GENERATION"
    assert str(join(members, "x", []).code) == "UNKNOWN_MEMBER_ID"


def test_a_member_that_leaves_increases_the_epoch(coordinator, members):
    members.leave("a")
    assert (str(coordinator.group.state), coordinator.group.epoch) == ("Empty", 8)


def consumer(coordinator, member_id, *, assignor=None, instance_id=None, epoch=0):
    owned = frozenset() if epoch == 0 else None
    return coordinator.heartbeat(
        Heartbeat(
            member_id,
            epoch,
            ("t",) if epoch == 0 else None,
            owned,
            1_000 if epoch == 0 else None,
            instance_id,
            assignor=assignor,
        )
    )


def test_a_static_classic_member_is_replaced_without_having_left():
    created = ConsumerCoordinator("g", Clock(), halves, [Topic(name="t", partitions=4)])
    request = JoinRequest("a", (SupportedProtocol("range", ConsumerSubscription(("t",))),))
    created.adopt(
        [
            ConsumerMember(
                id="a",
                subscription=("t",),
                instance_id="i",
                epoch=7,
                previous_epoch=7,
                assigned=frozenset(T),
                joined=request,
            )
        ],
        epoch=7,
    )
    answer = consumer(created, "new", instance_id="i")
    assert (str(answer.code), answer.epoch, answer.assigned) == ("NONE", 7, frozenset(T))
    # Between two members of the consumer protocol, the first one must have left.
    assert str(consumer(created, "newer", instance_id="i").code) == "UNRELEASED_INSTANCE_ID"


def test_most_members_select_the_assignor_of_the_broker(coordinator):
    group = coordinator.group
    assert group.preferred_assignor() == "uniform"
    for member_id, preferred in (("b", "range"), ("c", "range")):
        consumer(coordinator, member_id, assignor="range")
        assert group.preferred_assignor() == preferred
    consumer(coordinator, "d", assignor="uniform")
    assert group.preferred_assignor() == "range"
    epoch = group.epoch
    consumer(coordinator, "e", assignor="uniform")
    assert group.preferred_assignor() == "uniform"  # the first of two in the order of a Java map
    assert group.epoch == epoch + 1


def test_the_last_member_of_the_consumer_protocol_downgrades_the_group():
    converted = []
    created = ConsumerCoordinator(
        "g", Clock(), halves, [Topic(name="t", partitions=4)], downgrade=converted.append
    )
    classic = ClassicMembers(created, numbered_member_ids())
    consumer(created, "modern")
    new = join(classic, "", [])
    join(classic, new.member_id, [])
    assert not converted
    epoch = created.group.epoch
    consumer(created, "modern", epoch=-1)
    assert converted == [created.group]
    assert (list(created.group.members), created.group.epoch) == ([new.member_id], epoch)


def test_assignments_with_data_of_the_assignor_are_not_converted():
    driver = Driver()
    driver.run_until_stable("c0", "c1")
    assert len(converted_members(driver.group)) == 2
    driver.group.has_user_data = True
    with pytest.raises(UpgradeRefusedError, match="adds user data"):
        converted_members(driver.group)
