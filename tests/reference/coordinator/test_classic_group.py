"""State transitions of a classic group: all pairs of states, and their causes."""

from __future__ import annotations

from itertools import product

import pytest

from kassay.reference.coordinator.classic_protocol_coordinator import ClassicGroup, GroupState
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
TWO_TOPICS = offers(topics=("t", "u"))
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
    with pytest.raises(InternalError, match=f"from {before} to {after}"):
        group.transition_to(after, 7)
    assert group.state is before


NOTHING, TO_COMPLETING, TO_STABLE = (), (PREPARING, COMPLETING), (PREPARING, COMPLETING, STABLE)


@pytest.mark.parametrize(
    ("earlier", "event"),
    [
        (NOTHING, lambda driver: driver.join("a")),
        (TO_COMPLETING, lambda driver: driver.join("c")),
        (TO_COMPLETING, lambda driver: driver.join("b", offers=TWO_TOPICS)),
        (TO_COMPLETING, lambda driver: driver.leave("b")),
        (TO_STABLE, lambda driver: driver.join("c")),
        (TO_STABLE, lambda driver: driver.join(driver.leader)),
        (TO_STABLE, lambda driver: driver.join(driver.follower, offers=TWO_TOPICS)),
        (TO_STABLE, lambda driver: driver.leave("b")),
    ],
)
def test_joins_changes_and_leaves_of_members_start_a_rebalance(driver, earlier, event):
    if earlier:
        driver.join_all("a", "b")
    if earlier == TO_STABLE:
        driver.sync(driver.leader, assignments=driver.assignments())
    event(driver)
    assert driver.states == [*earlier, PREPARING]


def test_preparing_becomes_completing_after_the_delay(driver: Driver) -> None:
    driver.join("a")
    driver.run(DELAY)
    assert driver.states == [PREPARING, COMPLETING]


def test_preparing_becomes_empty_when_the_last_member_leaves(driver: Driver) -> None:
    driver.join("a")
    driver.leave("a")
    driver.run(DELAY)
    assert driver.states == [PREPARING, EMPTY]
    assert driver.group.generation == 1


def test_completing_is_unchanged_when_a_member_repeats_its_join(driver: Driver) -> None:
    driver.join_all("a")
    response = driver.join("a")
    assert driver.group.state is COMPLETING
    assert response is not None
    assert [joined.member_id for joined in response.members] == [driver.ids["a"]]


def test_completing_becomes_preparing_after_a_session_timeout(driver: Driver) -> None:
    driver.join_all("a", "b")
    follower = driver.follower
    driver.sync(follower)
    driver.run(SESSION)
    # The follower waits for its assignment and needs no heartbeat; the leader is removed.
    assert driver.states[-1] is PREPARING
    assert list(driver.group.members) == [driver.ids[follower]]


def test_completing_becomes_preparing_when_the_leader_does_not_sync(driver: Driver) -> None:
    driver.join_all("a", "b")
    leader, follower = driver.leader, driver.follower
    driver.sync(follower)
    for _ in range(REBALANCE // 5_000):
        assert driver.states[-1] is COMPLETING
        driver.run(5_000)
        driver.heartbeat(leader) if driver.ids[leader] in driver.group.members else None
    assert driver.states[-1] is PREPARING
    assert driver.ids[leader] not in driver.group.members
    assert driver.synced[follower][-1].code is ErrorCode.REBALANCE_IN_PROGRESS


def test_stable_becomes_preparing_when_a_heartbeat_is_missed(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    for _ in range(4):
        driver.run(SESSION // 4)
        driver.heartbeat("a")
    driver.run(1)
    assert driver.states[-1] is PREPARING
    assert list(driver.group.members) == [driver.ids["a"]]


def test_stable_is_unchanged_when_a_follower_repeats_its_join(driver: Driver) -> None:
    driver.run_until_stable("a", "b")
    follower = driver.follower
    response = driver.join(follower)
    assert driver.states[-1] is STABLE
    assert response is not None
    assert (response.code, response.generation, response.members) == (ErrorCode.NONE, 1, ())


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


def test_requests_to_a_dead_group_are_rejected(driver: Driver) -> None:
    driver.run_until_stable("a")
    driver.coordinator.unload()
    assert driver.join("b").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.sync("a").code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.heartbeat("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.leave("a") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.group.state is DEAD
