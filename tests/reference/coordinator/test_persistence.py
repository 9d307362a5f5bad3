"""Log records of a classic group: when and how they are written and loaded."""

from __future__ import annotations

import struct

from benchmarks.record_encoder import encode_record
from kassay.reference.coordinator.classic_protocol_coordinator import GroupState
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.reference.protocol.group_messages import ErrorCode, GroupMetadata, OffsetCommit
from tests.reference.coordinator.driver import DELAY, SESSION, Driver


def test_group_metadata_has_the_layout_of_version_3() -> None:
    record = GroupMetadata("g", "consumer", 7, "range", "a", 99, ())
    key, value = encode_record(record)
    assert key == b"\x00\x02\x00\x01g"
    assert value == b"".join(
        (
            b"\x00\x03\x00\x08consumer",
            struct.pack(">i", 7),
            b"\x00\x05range\x00\x01a",
            struct.pack(">q", 99),
            b"\x00\x00\x00\x00",
        )
    )


def test_a_committed_offset_has_the_layout_of_version_3() -> None:
    record = OffsetCommit("g", TopicPartition("t", 5), 41, 99)
    key, value = encode_record(record)
    assert key == b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x05"
    assert value == struct.pack(">hqi", 3, 41, -1) + b"\x00\x00" + struct.pack(">q", 99)


def _metadata(driver: Driver) -> list[GroupMetadata]:
    return [record for record in driver.log.history if isinstance(record, GroupMetadata)]


def test_group_is_written_when_it_is_created_and_when_the_leader_syncs(driver: Driver) -> None:
    driver.join("a")
    driver.join("b")
    assert [len(record.members) for record in _metadata(driver)] == [0]
    driver.run(2 * DELAY)
    driver.sync("b")
    assert len(_metadata(driver)) == 1
    driver.sync("a", assignments=driver.assignments())
    written = _metadata(driver)
    assert [record.generation for record in written] == [0, 1]
    assert [member.assignment for member in written[-1].members] == list(
        driver.assignments().values()
    )


def test_group_is_written_when_it_becomes_empty(driver: Driver) -> None:
    driver.run_until_stable("a")
    driver.leave("a")
    last = _metadata(driver)[-1]
    assert (last.generation, last.members, last.protocol) == (2, (), None)


def test_assignment_is_written_before_members_receive_it(driver: Driver) -> None:
    driver.join_all("a", "b")
    seen: list[int] = []
    driver.synced["b"] = _Spy(lambda: seen.append(len(_metadata(driver))))
    driver.sync("b")
    driver.sync("a", assignments=driver.assignments())
    assert seen == [2]


class _Spy(list):
    def __init__(self, action) -> None:
        super().__init__()
        self._action = action

    def append(self, item: object) -> None:
        self._action()
        super().append(item)


def test_stable_group_is_equal_after_a_fail_over(driver: Driver) -> None:
    driver.run_until_stable("a", "b", "c")
    before = driver.group
    driver.coordinator.commit(driver.ids["a"], 1, {TopicPartition("t", 0): 17})
    driver.reload()
    after = driver.group
    assert after is not before
    assert after.state is GroupState.STABLE
    for name in ("generation", "protocol", "leader", "protocol_type"):
        assert getattr(after, name) == getattr(before, name)
    assert {m.id: m.assignment for m in after.members.values()} == {
        m.id: m.assignment for m in before.members.values()
    }
    assert driver.coordinator.offsets == {TopicPartition("t", 0): 17}
    assert driver.heartbeat("b") is ErrorCode.NONE


def test_static_members_remain_static_after_a_fail_over(driver: Driver) -> None:
    driver.join("s", instance_id="s")
    driver.run(DELAY)
    driver.update_ids()
    driver.sync("s", instance_id="s", assignments={})
    driver.reload()
    assert driver.group.static_members == {"s": driver.ids["s"]}


def test_pending_requests_fail_when_the_coordinator_is_unloaded(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    driver.join("c")
    driver.reload()
    assert driver.joined["c"][-1].code is ErrorCode.NOT_COORDINATOR


def test_interrupted_rebalance_restarts_from_the_last_assignment(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    driver.join("c")
    driver.reload()
    assert (driver.group.generation, driver.group.state) == (1, GroupState.STABLE)
    driver.ids.pop("c")
    driver.join("c")
    for client in ("a", "b"):
        driver.join(client)
    driver.update_ids()
    for client in ("b", "c", "a"):
        driver.sync(client, assignments=driver.assignments() if client == driver.leader else None)
    assert (driver.group.generation, driver.group.state) == (2, GroupState.STABLE)


def test_sessions_restart_after_a_fail_over(driver: Driver) -> None:
    driver.run_until_stable("a")
    driver.run(SESSION - 1)
    driver.reload()
    driver.run(SESSION - 1)
    assert driver.ids["a"] in driver.group.members
    driver.run(1)
    assert not driver.group.members


def test_offset_commits_are_rejected_during_the_sync_phase(driver: Driver) -> None:
    driver.join_all("a")
    code = driver.coordinator.commit(driver.ids["a"], 1, {TopicPartition("t", 0): 1})
    assert code is ErrorCode.REBALANCE_IN_PROGRESS


def test_empty_group_accepts_offset_commits_without_a_generation(driver: Driver) -> None:
    assert driver.coordinator.commit("", -1, {TopicPartition("t", 0): 1}) is ErrorCode.NONE
    driver.reload()
    assert driver.coordinator.offsets == {TopicPartition("t", 0): 1}
