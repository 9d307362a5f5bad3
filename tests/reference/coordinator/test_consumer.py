"""Consumer protocol: epochs, reconciliation, timeouts, static members, fail-over."""

from __future__ import annotations

import pytest

from kassay.reference.coordinator.consumer_protocol_coordinator import (
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerCoordinator,
    Heartbeat,
    HeartbeatResponse,
    MemberState,
)
from kassay.reference.coordinator.runtime import Clock, CoordinatorConfig, Log
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.group_messages import ErrorCode

SESSION, REBALANCE = 45_000, 60_000


def _assign_in_turn(group: Group) -> Assignment:
    """Assign the partitions to the members in turn, in order of their ids."""
    ids = sorted(member.id for member in group.members)
    assignment: dict[str, list[tuple[str, int]]] = {member: [] for member in ids}
    for topic in group.topics:
        for number in range(topic.partitions):
            assignment[ids[number % len(ids)]].append((topic.name, number))
    return Assignment(assignment)


class _Driver:
    def __init__(self, *, interval: int = 0) -> None:
        self.clock, self.log = Clock(), Log()
        self.topics = (Topic(name="t", partitions=4),)
        self.config = CoordinatorConfig(assignment_interval=interval)
        self.coordinator = self._create_coordinator()

    def _create_coordinator(self) -> ConsumerCoordinator:
        return ConsumerCoordinator(
            "g", self.clock, _assign_in_turn, self.topics, self.log, config=self.config
        )

    @property
    def group(self):
        return self.coordinator.group

    def join(self, member: str, **fields: object) -> HeartbeatResponse:
        return self.coordinator.heartbeat(
            Heartbeat(member, 0, ("t",), frozenset(), REBALANCE, **fields)
        )

    def heartbeat(self, member: str, epoch: int, *owned: int) -> HeartbeatResponse:
        reported = _t(*owned) if owned else None
        return self.coordinator.heartbeat(Heartbeat(member, epoch, owned=reported))

    def reload(self) -> None:
        self.coordinator.unload()
        self.coordinator = self._create_coordinator()


@pytest.fixture
def driver() -> _Driver:
    return _Driver()


def _t(*numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("t", number) for number in numbers)


def test_first_target_assignment_has_epoch_2(driver: _Driver) -> None:
    assert driver.join("a") == HeartbeatResponse(ErrorCode.NONE, 2, _t(0, 1, 2, 3))
    assert driver.group.state == "Stable"


def test_partition_is_assigned_only_after_its_revocation(driver: _Driver) -> None:
    driver.join("a")
    assert driver.join("b") == HeartbeatResponse(ErrorCode.NONE, 3, frozenset())
    assert driver.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert driver.group.state == "Reconciling"
    # Member a must revoke partitions and stays in its epoch until then.
    assert driver.heartbeat("a", 2) == HeartbeatResponse(ErrorCode.NONE, 2, _t(0, 2))
    assert driver.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert driver.heartbeat("b", 3).assigned is None
    assert driver.heartbeat("a", 2, 0, 2) == HeartbeatResponse(ErrorCode.NONE, 3)
    assert driver.heartbeat("b", 3) == HeartbeatResponse(ErrorCode.NONE, 3, _t(1, 3))
    assert driver.group.state == "Stable"


def test_member_that_does_not_revoke_in_time_is_fenced(driver: _Driver) -> None:
    driver.join("a")
    driver.join("b")
    driver.heartbeat("a", 2)
    for _ in range(6):
        driver.clock.run(driver.clock.now + REBALANCE // 6)
        if "a" in driver.group.members:
            driver.heartbeat("a", 2, 0, 1, 2, 3)
        driver.heartbeat("b", driver.group.members["b"].epoch)
    assert list(driver.group.members) == ["b"]
    assert driver.heartbeat("a", 2).code is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_is_fenced_after_its_session_timeout(driver: _Driver) -> None:
    driver.join("a")
    driver.clock.run(SESSION)
    assert driver.group.state == "Empty"
    assert driver.group.epoch == 3


def test_leave_increases_the_epoch_and_releases_the_partitions(driver: _Driver) -> None:
    driver.join("a")
    driver.join("b")
    assert driver.heartbeat("b", LEAVE_EPOCH).code is ErrorCode.NONE
    assert driver.group.epoch == 4
    assert driver.heartbeat("a", 2, 0, 1, 2, 3).epoch == 4
    assert driver.group.members["a"].assigned == _t(0, 1, 2, 3)


@pytest.mark.parametrize(("epoch", "owned"), [(7, None), (1, None), (2, (3,))])
def test_heartbeat_with_a_wrong_member_epoch_is_fenced(
    driver: _Driver, epoch: int, owned: object
) -> None:
    driver.join("a")
    driver.join("b")
    driver.heartbeat("a", 2)
    driver.heartbeat("a", 2, 0, 2)
    response = driver.heartbeat("a", epoch, *(owned or ()))
    assert response.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_heartbeat_with_the_previous_epoch_and_no_extra_partitions_is_accepted(
    driver: _Driver,
) -> None:
    driver.join("a")
    driver.join("b")
    driver.heartbeat("a", 2)
    driver.heartbeat("a", 2, 0, 2)
    assert driver.heartbeat("a", 2, 0) == HeartbeatResponse(ErrorCode.NONE, 3)


def test_assignment_interval_delays_the_next_target() -> None:
    driver = _Driver(interval=1_000)
    driver.join("a")
    driver.join("b")
    assert (driver.group.epoch, driver.group.target_epoch) == (3, 2)
    assert driver.group.state == "Assigning"
    driver.clock.run(1_000)
    driver.heartbeat("a", 2)
    assert driver.group.target_epoch == 3


def test_changed_subscription_revokes_partitions_at_once(driver: _Driver) -> None:
    driver.join("a")
    response = driver.coordinator.heartbeat(Heartbeat("a", 2, ("u",), _t(0, 1, 2, 3), REBALANCE))
    assert response.assigned == frozenset()
    assert driver.group.members["a"].revoking == _t(0, 1, 2, 3)


def test_grown_topic_increases_the_epoch_at_the_next_heartbeat(driver: _Driver) -> None:
    driver.join("a")
    driver.coordinator.update_topics((Topic(name="t", partitions=4),))
    assert driver.heartbeat("a", 2).epoch == 2
    driver.coordinator.update_topics((Topic(name="t", partitions=6),))
    assert driver.heartbeat("a", 2, 0, 1, 2, 3) == HeartbeatResponse(
        ErrorCode.NONE, 3, _t(0, 1, 2, 3, 4, 5)
    )


def test_returning_static_member_keeps_its_partitions_and_the_epoch(driver: _Driver) -> None:
    driver.join("a1", instance_id="a")
    leave = Heartbeat("a1", STATIC_LEAVE_EPOCH, instance_id="a")
    assert driver.coordinator.heartbeat(leave).code is ErrorCode.NONE
    assert driver.join("a2", instance_id="a") == HeartbeatResponse(
        ErrorCode.NONE, 2, _t(0, 1, 2, 3)
    )
    assert list(driver.group.members) == ["a2"]
    assert driver.group.epoch == 2


def test_static_member_is_replaced_only_after_it_left(driver: _Driver) -> None:
    driver.join("a1", instance_id="a")
    assert driver.join("a2", instance_id="a").code is ErrorCode.UNRELEASED_INSTANCE_ID
    driver.coordinator.heartbeat(Heartbeat("a1", STATIC_LEAVE_EPOCH, instance_id="a"))
    driver.join("a2", instance_id="a")
    old = driver.coordinator.heartbeat(Heartbeat("a1", 2, instance_id="a"))
    assert old.code is ErrorCode.FENCED_INSTANCE_ID


def test_offset_commit_requires_the_current_member_epoch(driver: _Driver) -> None:
    driver.join("a")
    offsets = {TopicPartition("t", 0): 9}
    assert driver.coordinator.commit("a", 1, offsets) is ErrorCode.STALE_MEMBER_EPOCH
    assert driver.coordinator.commit("z", 2, offsets) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.coordinator.commit("a", 2, offsets) is ErrorCode.NONE


def test_fail_over_during_a_reconciliation_keeps_the_group(driver: _Driver) -> None:
    driver.join("a", rack="left")
    driver.join("b", instance_id="b")
    driver.heartbeat("a", 2)
    driver.coordinator.commit("a", 2, {TopicPartition("t", 0): 9})
    before = driver.group
    driver.reload()
    after = driver.group
    assert after is not before
    for name in (
        "epoch",
        "target_epoch",
        "target_assigned_at",
        "metadata_hash",
        "members",
        "offsets",
    ):
        assert getattr(after, name) == getattr(before, name)
    assert {m: frozenset(p) for m, p in after.target.items()} == {
        m: frozenset(p) for m, p in before.target.items()
    }
    assert after.static_members == {"b": "b"}
    assert driver.heartbeat("a", 2, 0, 2).epoch == 3
    response = driver.coordinator.heartbeat(Heartbeat("b", 3, instance_id="b"))
    assert response.assigned == _t(1, 3)


def test_topic_that_grew_during_a_fail_over_is_detected(driver: _Driver) -> None:
    driver.join("a")
    driver.topics = (Topic(name="t", partitions=5),)
    driver.reload()
    assert driver.heartbeat("a", 2).epoch == 3


def test_member_that_left_is_absent_after_a_fail_over(driver: _Driver) -> None:
    driver.join("a")
    driver.join("b")
    driver.heartbeat("b", LEAVE_EPOCH)
    driver.reload()
    assert list(driver.group.members) == ["a"]
    assert list(driver.group.target) == ["a"]
