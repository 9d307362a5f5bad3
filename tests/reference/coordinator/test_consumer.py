"""The consumer protocol: epochs, reconciliation, time-outs, static members, fail-over."""

from __future__ import annotations

import pytest

from kassay.reference.coordinator import Clock, ConsumerCoordinator, CoordinatorConfig, Log
from kassay.reference.coordinator.consumer.coordinator import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    Heartbeat,
    HeartbeatResponse,
)
from kassay.reference.coordinator.consumer.reconciliation import MemberState
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.messages import ErrorCode

SESSION, REBALANCE = 45_000, 60_000


def _deal(group: Group) -> Assignment:
    """Give partition p to the member of rank p, by id, round and round."""
    ids = sorted(member.id for member in group.members)
    hands: dict[str, list[tuple[str, int]]] = {member: [] for member in ids}
    for topic in group.topics:
        for number in range(topic.partitions):
            hands[ids[number % len(ids)]].append((topic.name, number))
    return Assignment(hands)


class _Driver:
    def __init__(self, *, interval: int = 0) -> None:
        self.clock, self.log = Clock(), Log()
        self.topics = (Topic(name="t", partitions=4),)
        self.config = CoordinatorConfig(assignment_interval=interval)
        self.coordinator = ConsumerCoordinator(
            "g", self.clock, _deal, self.topics, self.log, config=self.config
        )

    @property
    def group(self):
        return self.coordinator.group

    def join(self, member: str, **fields: object) -> HeartbeatResponse:
        return self.coordinator.heartbeat(
            Heartbeat(member, 0, ("t",), frozenset(), REBALANCE, **fields)
        )

    def beat(self, member: str, epoch: int, *owned: int, says: bool = False) -> HeartbeatResponse:
        said = _t(*owned) if owned or says else None
        return self.coordinator.heartbeat(Heartbeat(member, epoch, owned=said))

    def reload(self) -> None:
        self.coordinator.unload()
        self.coordinator = ConsumerCoordinator.load(
            "g", self.clock, _deal, self.topics, self.log, config=self.config
        )


def _t(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", number) for number in numbers)


def test_the_first_target_is_of_epoch_2_as_groups_begin_in_epoch_1() -> None:
    driver = _Driver()
    assert driver.join("a") == HeartbeatResponse(ErrorCode.NONE, 2, _t(0, 1, 2, 3))
    assert driver.group.state == "Stable"


def test_a_partition_is_given_away_only_when_it_was_given_up() -> None:
    driver = _Driver()
    driver.join("a")
    assert driver.join("b") == HeartbeatResponse(ErrorCode.NONE, 3, frozenset())
    assert driver.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert driver.group.state == "Reconciling"
    # a is told what to give up, and stays in its epoch until it has.
    assert driver.beat("a", 2) == HeartbeatResponse(ErrorCode.NONE, 2, _t(0, 2))
    assert driver.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert driver.beat("b", 3).assigned is None
    assert driver.beat("a", 2, 0, 2) == HeartbeatResponse(ErrorCode.NONE, 3)
    assert driver.beat("b", 3) == HeartbeatResponse(ErrorCode.NONE, 3, _t(1, 3))
    assert driver.group.state == "Stable"


def test_who_does_not_give_up_in_time_is_fenced() -> None:
    driver = _Driver()
    driver.join("a")
    driver.join("b")
    driver.beat("a", 2)
    for _ in range(6):
        driver.clock.run(driver.clock.now + REBALANCE // 6)
        if "a" in driver.group.members:
            driver.beat("a", 2, 0, 1, 2, 3)
        driver.beat("b", driver.group.members["b"].epoch)
    assert list(driver.group.members) == ["b"]
    assert driver.beat("a", 2).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_not_heard_of_is_fenced_after_its_session() -> None:
    driver = _Driver()
    driver.join("a")
    driver.clock.run(SESSION)
    assert driver.group.state == "Empty"
    assert driver.group.epoch == 3


def test_a_leave_bumps_the_epoch_and_frees_the_partitions() -> None:
    driver = _Driver()
    driver.join("a")
    driver.join("b")
    assert driver.beat("b", LEAVE_EPOCH).code is ErrorCode.NONE
    assert driver.group.epoch == 4
    assert driver.beat("a", 2, 0, 1, 2, 3).epoch == 4
    assert driver.group.members["a"].assigned == _t(0, 1, 2, 3)


@pytest.mark.parametrize(("epoch", "owned"), [(7, None), (1, None), (2, (3,))])
def test_an_epoch_that_is_not_the_members_fences_it(epoch: int, owned: object) -> None:
    driver = _Driver()
    driver.join("a")
    driver.join("b")
    driver.beat("a", 2)
    driver.beat("a", 2, 0, 2)
    answer = driver.beat("a", epoch, *(owned or ()))
    assert answer.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_previous_epoch_is_taken_from_who_owns_no_more_than_it_should() -> None:
    driver = _Driver()
    driver.join("a")
    driver.join("b")
    driver.beat("a", 2)
    driver.beat("a", 2, 0, 2)
    assert driver.beat("a", 2, 0) == HeartbeatResponse(ErrorCode.NONE, 3)


def test_targets_are_made_no_more_often_than_the_interval_allows() -> None:
    driver = _Driver(interval=1_000)
    driver.join("a")
    driver.join("b")
    assert (driver.group.epoch, driver.group.target_epoch) == (3, 2)
    assert driver.group.state == "Assigning"
    driver.clock.run(1_000)
    driver.beat("a", 2)
    assert driver.group.target_epoch == 3


def test_a_changed_subscription_takes_partitions_at_once() -> None:
    driver = _Driver()
    driver.join("a")
    answer = driver.coordinator.heartbeat(Heartbeat("a", 2, ("u",), _t(0, 1, 2, 3), REBALANCE))
    assert answer.assigned == frozenset()
    assert driver.group.members["a"].revoking == _t(0, 1, 2, 3)


def test_a_grown_topic_bumps_the_epoch_at_the_next_heartbeat_and_only_then() -> None:
    driver = _Driver()
    driver.join("a")
    driver.coordinator.update_topics((Topic(name="t", partitions=4),))
    assert driver.beat("a", 2).epoch == 2
    driver.coordinator.update_topics((Topic(name="t", partitions=6),))
    assert driver.beat("a", 2, 0, 1, 2, 3) == HeartbeatResponse(
        ErrorCode.NONE, 3, _t(0, 1, 2, 3, 4, 5)
    )


def test_a_static_member_that_comes_back_gets_its_partitions_without_a_new_epoch() -> None:
    driver = _Driver()
    driver.join("a1", instance_id="a")
    beat = Heartbeat("a1", STATIC_LEAVE_EPOCH, instance_id="a")
    assert driver.coordinator.heartbeat(beat).code is ErrorCode.NONE
    assert driver.join("a2", instance_id="a") == HeartbeatResponse(
        ErrorCode.NONE, 2, _t(0, 1, 2, 3)
    )
    assert list(driver.group.members) == ["a2"]
    assert driver.group.epoch == 2


def test_a_static_members_place_is_not_free_before_it_left_and_its_former_self_is_fenced() -> None:
    driver = _Driver()
    driver.join("a1", instance_id="a")
    assert driver.join("a2", instance_id="a").code is ErrorCode.UNRELEASED_INSTANCE_ID
    driver.coordinator.heartbeat(Heartbeat("a1", STATIC_LEAVE_EPOCH, instance_id="a"))
    driver.join("a2", instance_id="a")
    old = driver.coordinator.heartbeat(Heartbeat("a1", 2, instance_id="a"))
    assert old.code is ErrorCode.FENCED_INSTANCE_ID


def test_a_commit_must_come_in_the_members_epoch() -> None:
    driver = _Driver()
    driver.join("a")
    offsets = {TopicPartition("t", 0): 9}
    assert driver.coordinator.commit("a", 1, offsets) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.coordinator.commit("z", 2, offsets) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.coordinator.commit("a", 2, offsets) is ErrorCode.NONE


def test_nothing_is_lost_over_a_fail_over_in_the_middle_of_a_reconciliation() -> None:
    driver = _Driver()
    driver.join("a", rack="left")
    driver.join("b", instance_id="b")
    driver.beat("a", 2)
    driver.coordinator.commit("a", 2, {TopicPartition("t", 0): 9})
    before = driver.group
    driver.reload()
    after = driver.group
    assert after is not before
    for name in ("epoch", "target_epoch", "target_made", "metadata_hash", "members", "offsets"):
        assert getattr(after, name) == getattr(before, name)
    assert {m: frozenset(p) for m, p in after.target.items()} == {
        m: frozenset(p) for m, p in before.target.items()
    }
    assert after.static_members == {"b": "b"}
    assert driver.beat("a", 2, 0, 2).epoch == 3
    answer = driver.coordinator.heartbeat(Heartbeat("b", 3, instance_id="b"))
    assert answer.assigned == _t(1, 3)


def test_a_topic_that_grew_while_nobody_coordinated_is_noticed() -> None:
    driver = _Driver()
    driver.join("a")
    driver.topics = (Topic(name="t", partitions=5),)
    driver.reload()
    assert driver.beat("a", 2).epoch == 3


def test_who_left_is_not_there_after_a_fail_over() -> None:
    driver = _Driver()
    driver.join("a")
    driver.join("b")
    driver.beat("b", LEAVE_EPOCH)
    driver.reload()
    assert list(driver.group.members) == ["a"]
    assert list(driver.group.target) == ["a"]
