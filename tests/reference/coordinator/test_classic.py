"""Requests to the classic coordinator and its responses."""

from __future__ import annotations

import pytest

from kassay.reference.coordinator.classic_protocol_coordinator import GroupState
from kassay.reference.coordinator.runtime import CoordinatorConfig
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.group_messages import ErrorCode, JoinRequest, JoinResponse
from tests.reference.coordinator.driver import DELAY, SESSION, Driver, offers


def test_new_member_gets_an_id_first(driver: Driver) -> None:
    responses: list[JoinResponse] = []
    driver.coordinator.join(JoinRequest("", offers(), client="a"), responses.append)
    assert responses[0].code is ErrorCode.MEMBER_ID_REQUIRED
    assert list(driver.group.pending_joins) == [responses[0].member_id]
    assert driver.group.state is GroupState.EMPTY


def test_issued_member_id_expires_after_the_session_timeout(driver: Driver) -> None:
    driver.coordinator.join(
        JoinRequest("", offers(), client="a", session_timeout=SESSION), lambda _: None
    )
    driver.run(SESSION)
    assert not driver.group.pending_joins


def test_joins_within_the_initial_delay_cause_one_rebalance(driver: Driver) -> None:
    for client in "abcde":
        driver.join(client)
        driver.run(400)
    driver.run(2 * DELAY)
    assert driver.group.generation == 1
    assert len(driver.group.members) == 5


def test_each_join_extends_the_initial_delay_up_to_the_rebalance_timeout(driver: Driver) -> None:
    driver.join("a", rebalance_timeout=5_000)
    driver.run(1_000)
    driver.join("b", rebalance_timeout=5_000)
    driver.run(DELAY - 1_000)
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    driver.run(2_000)
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_first_member_is_leader_and_only_the_leader_gets_the_members(driver: Driver) -> None:
    driver.join_all("a", "b")
    assert driver.leader == "a"
    assert [m.member_id for m in driver.joined["a"][-1].members] == list(driver.ids.values())
    assert driver.joined["b"][-1].members == ()


def test_another_member_replaces_a_leader_that_leaves(driver: Driver) -> None:
    driver.run_until_stable("a", "b", "c")
    driver.leave("a")
    assert driver.group.leader in (driver.ids["b"], driver.ids["c"])


def test_rebalance_completes_after_the_loss_of_the_leader(driver: Driver) -> None:
    driver.run_until_stable("a", "b", "c")
    driver.join("b")  # A follower with unchanged metadata causes no rebalance.
    driver.join("d")
    for client in ("b", "c"):
        driver.join(client)
    driver.run(SESSION)
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert driver.leader != "a"
    for client in ("b", "c", "d"):
        driver.sync(client, assignments=driver.assignments() if client == driver.leader else None)
    assert driver.group.state is GroupState.STABLE
    assert len(driver.group.members) == 3


def test_protocol_with_most_votes_among_common_ones_is_selected(driver: Driver) -> None:
    driver.join("a", "sticky", "range")
    driver.join("b", "range", "sticky")
    driver.join("c", "roundrobin", "range", "sticky")
    driver.run(2 * DELAY)
    assert driver.group.protocol == "range"


def test_protocols_with_equal_votes_are_selected_in_the_order_of_javas_map() -> None:
    for first, second in (("sticky", "range"), ("range", "sticky")):
        driver = Driver()
        driver.join("a", first, second)
        driver.join("b", second, first)
        driver.run(2 * DELAY)
        assert driver.group.protocol == "sticky"


def test_member_without_a_common_protocol_is_rejected(driver: Driver) -> None:
    driver.run_until_stable("a")
    assert driver.join("b", "unknown").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.group.state is GroupState.STABLE


def test_each_rebalance_increases_the_generation_by_one(driver: Driver) -> None:
    driver.run_until_stable("a")
    for expected in (2, 3, 4):
        driver.run_until_stable("a")
        assert driver.group.generation == expected


def test_followers_wait_for_the_leaders_assignment(driver: Driver) -> None:
    driver.join_all("a", "b")
    assert driver.sync("b") is None
    driver.sync("a", assignments=driver.assignments())
    assert driver.synced["b"][-1].assignment == Partitions.of([("t", 1)])


def test_member_without_partitions_gets_an_empty_assignment(driver: Driver) -> None:
    driver.join_all("a")
    assert driver.sync("a", assignments={}).assignment == []


def test_sync_request_in_a_stable_group_is_answered_at_once(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    assert driver.sync("b").assignment == Partitions.of([("t", 1)])


def test_sync_request_during_a_join_phase_fails(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    driver.leave("b")
    driver.join("c")
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.sync("a").code is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeat_reports_a_rebalance(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    assert driver.heartbeat("a") is ErrorCode.NONE
    driver.join("c")
    assert driver.heartbeat("a") is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("drift", [-1, 1])
def test_requests_with_a_wrong_generation_are_rejected(drift: int) -> None:
    driver = Driver()
    driver.run_until_stable("a")
    generation = driver.group.generation + drift
    assert driver.heartbeat("a", generation) is ErrorCode.ILLEGAL_GENERATION
    assert driver.sync("a", generation).code is ErrorCode.ILLEGAL_GENERATION
    offsets = {TopicPartition("t", 0): 5}
    code = driver.coordinator.commit(driver.ids["a"], generation, offsets)
    assert code is ErrorCode.ILLEGAL_GENERATION


def test_requests_of_an_unknown_member_are_rejected(driver: Driver) -> None:
    driver.run_until_stable("a")
    driver.ids["z"] = "z-99999999"
    assert driver.heartbeat("z") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.sync("z").code is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.leave("z") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.join("z").code is ErrorCode.UNKNOWN_MEMBER_ID
    code = driver.coordinator.commit("z-99999999", 1, {TopicPartition("t", 0): 5})
    assert code is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_does_not_rejoin_in_time_is_removed(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    driver.join("a", rebalance_timeout=20_000)
    for _ in range(12):
        driver.run(5_000)
        if driver.ids["b"] in driver.group.members:
            driver.heartbeat("b")
    assert list(driver.group.members) == [driver.ids["a"]]
    assert driver.group.generation == 2


def test_full_group_rejects_another_member() -> None:
    driver = Driver(config=CoordinatorConfig(initial_rebalance_delay=DELAY, max_size=2))
    driver.run_until_stable("a", "b")
    assert driver.join("c").code is ErrorCode.GROUP_MAX_SIZE_REACHED


# ---- Static members --------------------------------------------------------------------


def _static(driver: Driver, client: str) -> JoinResponse | None:
    driver.ids.pop(client, None)
    return driver.join(client, instance_id=client)


def _stable_group_with_static_leader() -> Driver:
    driver = Driver()
    _static(driver, "s")
    driver.join_all("a")
    driver.sync("a")
    driver.sync("s", instance_id="s", assignments=driver.assignments())
    assert driver.group.state is GroupState.STABLE
    return driver


def test_return_of_a_static_member_causes_no_rebalance() -> None:
    driver = _stable_group_with_static_leader()
    old, assignment = driver.ids["s"], driver.group.members[driver.ids["s"]].assignment
    response = _static(driver, "s")
    assert driver.group.state is GroupState.STABLE
    assert response is not None
    assert (response.code, response.generation) == (ErrorCode.NONE, 1)
    assert response.member_id != old
    assert driver.sync("s", instance_id="s").assignment == assignment


def test_returning_static_leader_stays_leader_and_skips_the_assignment() -> None:
    driver = _stable_group_with_static_leader()
    assert driver.leader == "s"
    response = _static(driver, "s")
    assert response is not None
    assert response.leader == response.member_id
    assert response.skip_assignment
    assert len(response.members) == 2


def test_previous_id_of_a_static_member_is_fenced() -> None:
    driver = _stable_group_with_static_leader()
    old = driver.ids["s"]
    _static(driver, "s")
    driver.ids["old"] = old
    assert driver.heartbeat("old", instance="s") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.sync("old", instance_id="s").code is ErrorCode.FENCED_INSTANCE_ID
    assert driver.join("old", instance_id="s").code is ErrorCode.FENCED_INSTANCE_ID
    assert driver.coordinator.leave(old, "s") is ErrorCode.FENCED_INSTANCE_ID


def test_absent_static_member_is_removed_after_the_session_timeout() -> None:
    driver = _stable_group_with_static_leader()
    for _ in range(5):
        driver.run(SESSION // 4)
        driver.heartbeat("a")
    assert driver.group.static_members == {}


def test_static_member_can_be_removed_by_instance_id() -> None:
    driver = _stable_group_with_static_leader()
    assert driver.coordinator.leave("", "s") is ErrorCode.NONE
    assert driver.coordinator.leave("", "s") is ErrorCode.UNKNOWN_MEMBER_ID


def test_static_member_that_changes_the_protocol_causes_a_rebalance(driver: Driver) -> None:
    driver.join("s", "range", "sticky", instance_id="s")
    driver.run(DELAY)
    driver.update_ids()
    driver.sync("s", instance_id="s", assignments={})
    driver.ids.pop("s")
    driver.join("s", "sticky", "range", instance_id="s")
    assert driver.group.state is not GroupState.STABLE
