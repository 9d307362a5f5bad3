"""State transitions of a classic group: all pairs of states, and their causes."""

from __future__ import annotations

from itertools import product

import pytest

from kassay.reference.coordinator.classic_group import ClassicGroup, GroupState
from kassay.reference.model.errors import InternalError
from kassay.reference.protocol.group_messages import ErrorCode
from tests.reference.coordinator.driver import DELAY, REBALANCE, SESSION, Driver, offers

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState
LEGAL = {
    (EMPTY, PREPARING),
    (PREPARING, COMPLETING),
    (PREPARING, EMPTY),
    (COMPLETING, STABLE),
    (COMPLETING, PREPARING),
    (STABLE, PREPARING),
    *((state, DEAD) for state in GroupState),
}
PAIRS = tuple(product(GroupState, repeat=2))


@pytest.mark.parametrize(("before", "after"), [p for p in PAIRS if p in LEGAL])
def test_valid_transitions_change_the_state(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g")
    group.state = before
    group.transition_to(after, 7)
    assert (group.state, group.previous_state, group.state_changed_at) == (after, before, 7)


@pytest.mark.parametrize(("before", "after"), [p for p in PAIRS if p not in LEGAL])
def test_invalid_transitions_are_rejected(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g")
    group.state = before
    with pytest.raises(InternalError, match=f"from state {before} to {after}"):
        group.transition_to(after, 7)
    assert group.state is before


def test_empty_becomes_preparing_when_a_member_joins() -> None:
    driver = Driver()
    driver.join("a")
    assert driver.states == [PREPARING]


def test_preparing_becomes_completing_after_the_delay() -> None:
    driver = Driver()
    driver.join("a")
    driver.run(DELAY)
    assert driver.states == [PREPARING, COMPLETING]


def test_preparing_becomes_empty_when_the_last_member_leaves() -> None:
    driver = Driver()
    driver.join("a")
    driver.leave("a")
    driver.run(DELAY)
    assert driver.states == [PREPARING, EMPTY]
    assert driver.group.generation == 1


def test_completing_becomes_stable_when_the_leader_syncs() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    assert driver.states == [PREPARING, COMPLETING, STABLE]


def test_completing_becomes_preparing_when_a_member_joins() -> None:
    driver = Driver()
    driver.join("a")
    driver.run(DELAY)
    driver.join("b")
    assert driver.states == [PREPARING, COMPLETING, PREPARING]


def test_completing_becomes_preparing_when_a_member_changes_its_metadata() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    driver.join("b", offers=offers(topics=("t", "u")))
    assert driver.group.state is PREPARING


def test_completing_is_unchanged_when_a_member_repeats_its_join() -> None:
    driver = Driver()
    driver.join("a")
    driver.run(DELAY)
    response = driver.join("a")
    assert driver.group.state is COMPLETING
    assert response is not None
    assert [joined.member_id for joined in response.members] == [driver.ids["a"]]


def test_completing_becomes_preparing_when_a_member_leaves() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    driver.leave("b")
    assert driver.states[-1] is PREPARING


def test_completing_becomes_preparing_after_a_session_timeout() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    follower = "b" if driver.leader == "a" else "a"
    driver.sync(follower)
    driver.run(SESSION)
    # The follower waits for its assignment and needs no heartbeat; the leader is removed.
    assert driver.states[-1] is PREPARING
    assert list(driver.group.members) == [driver.ids[follower]]


def test_completing_becomes_preparing_when_the_leader_does_not_sync() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    leader, follower = ("a", "b") if driver.leader == "a" else ("b", "a")
    driver.sync(follower)
    for _ in range(REBALANCE // 5_000):
        assert driver.states[-1] is COMPLETING
        driver.run(5_000)
        driver.heartbeat(leader) if driver.ids[leader] in driver.group.members else None
    assert driver.states[-1] is PREPARING
    assert driver.ids[leader] not in driver.group.members
    assert driver.synced[follower][-1].code is ErrorCode.REBALANCE_IN_PROGRESS


def test_stable_becomes_preparing_when_a_member_joins() -> None:
    driver = Driver()
    driver.run_until_stable("a")
    driver.join("b")
    assert driver.states[-1] is PREPARING


def test_stable_becomes_preparing_when_a_member_leaves() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    driver.leave("b")
    assert driver.states[-1] is PREPARING


def test_stable_becomes_preparing_when_a_heartbeat_is_missed() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    for _ in range(4):
        driver.run(SESSION // 4)
        driver.heartbeat("a")
    driver.run(1)
    assert driver.states[-1] is PREPARING
    assert list(driver.group.members) == [driver.ids["a"]]


def test_stable_becomes_preparing_when_the_leader_joins_again() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    driver.join(driver.leader)
    assert driver.states[-1] is PREPARING


def test_stable_is_unchanged_when_a_follower_repeats_its_join() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    follower = "b" if driver.leader == "a" else "a"
    response = driver.join(follower)
    assert driver.states[-1] is STABLE
    assert response is not None
    assert (response.code, response.generation, response.members) == (ErrorCode.NONE, 1, ())


def test_stable_becomes_preparing_when_a_follower_changes_its_subscription() -> None:
    driver = Driver()
    driver.run_until_stable("a", "b")
    follower = "b" if driver.leader == "a" else "a"
    driver.join(follower, offers=offers(topics=("t", "u")))
    assert driver.states[-1] is PREPARING


@pytest.mark.parametrize("members", [0, 1, 2])
def test_every_state_becomes_dead_when_the_coordinator_is_unloaded(members: int) -> None:
    for step in range(4):
        driver = Driver()
        for client in "ab"[:members]:
            driver.join(client)
        if step:
            driver.run(2 * DELAY)
        if members and step > 1:
            driver.sync(driver.leader, assignments=driver.assignments())
        driver.coordinator.unload()
        assert driver.group.state is DEAD


def test_requests_to_a_dead_group_are_rejected() -> None:
    driver = Driver()
    driver.run_until_stable("a")
    driver.coordinator.unload()
    assert driver.join("b").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.sync("a").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.heartbeat("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.leave("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.group.state is DEAD
