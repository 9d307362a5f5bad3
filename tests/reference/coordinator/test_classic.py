"""What members and the classic coordinator say to each other."""

from __future__ import annotations

import pytest

from kassay.reference.coordinator import CoordinatorConfig, GroupState
from kassay.reference.model.topic_partitions import Partitions, TopicPartition
from kassay.reference.protocol.messages import ErrorCode, JoinRequest, JoinResponse, MemberIdentity
from tests.reference.coordinator.driver import DELAY, SESSION, Driver, offers


def test_a_new_member_is_given_an_id_first() -> None:
    driver = Driver()
    answers: list[JoinResponse] = []
    driver.coordinator.join(JoinRequest("", offers(), client="a"), answers.append)
    assert answers[0].code is ErrorCode.MEMBER_ID_REQUIRED
    assert list(driver.group.pending_joins) == [answers[0].member_id]
    assert driver.group.state is GroupState.EMPTY


def test_an_id_that_never_joins_is_forgotten_with_its_session() -> None:
    driver = Driver()
    driver.coordinator.join(
        JoinRequest("", offers(), client="a", session_timeout=SESSION), lambda _: None
    )
    driver.run(SESSION)
    assert not driver.group.pending_joins


def test_joins_within_the_delay_merge_into_one_rebalance() -> None:
    driver = Driver()
    for client in "abcde":
        driver.join(client)
        driver.run(400)
    driver.run(2 * DELAY)
    assert driver.group.generation == 1
    assert len(driver.group.members) == 5


def test_every_late_join_prolongs_the_delay_up_to_the_rebalance_timeout() -> None:
    driver = Driver()
    driver.join("a", rebalance_timeout=5_000)
    driver.run(1_000)
    driver.join("b", rebalance_timeout=5_000)
    driver.run(DELAY - 1_000)
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    driver.run(2_000)
    assert driver.group.state is GroupState.COMPLETING_REBALANCE


def test_the_first_to_join_leads_and_alone_hears_of_the_others() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    assert driver.leader == "a"
    assert [m.member_id for m in driver.joined["a"][-1].members] == list(driver.ids.values())
    assert driver.joined["b"][-1].members == ()


def test_a_new_leader_follows_one_that_leaves() -> None:
    driver = Driver()
    driver.settle("a", "b", "c")
    driver.leave("a")
    assert driver.group.leader in (driver.ids["b"], driver.ids["c"])


def test_a_leader_that_is_lost_in_a_rebalance_is_replaced_and_the_rebalance_ends() -> None:
    driver = Driver()
    driver.settle("a", "b", "c")
    driver.join("b")  # not the leader, nothing new: no rebalance
    driver.join("d")
    for client in ("b", "c"):
        driver.join(client)
    driver.run(SESSION)
    assert driver.group.state is GroupState.COMPLETING_REBALANCE
    assert driver.leader != "a"
    for client in ("b", "c", "d"):
        driver.sync(client, assignments=driver.lead() if client == driver.leader else None)
    assert driver.group.state is GroupState.STABLE
    assert len(driver.group.members) == 3


def test_the_protocol_is_the_one_most_members_prefer_of_those_that_all_support() -> None:
    driver = Driver()
    driver.join("a", "sticky", "range")
    driver.join("b", "range", "sticky")
    driver.join("c", "roundrobin", "range", "sticky")
    driver.run(2 * DELAY)
    assert driver.group.protocol == "range"


def test_of_protocols_with_as_many_votes_javas_map_yields_one_first() -> None:
    for first, second in (("sticky", "range"), ("range", "sticky")):
        driver = Driver()
        driver.join("a", first, second)
        driver.join("b", second, first)
        driver.run(2 * DELAY)
        assert driver.group.protocol == "sticky"


def test_who_has_no_protocol_in_common_is_refused() -> None:
    driver = Driver()
    driver.settle("a")
    assert driver.join("b", "unheard-of").code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.group.state is GroupState.STABLE


def test_generations_rise_by_one_a_rebalance() -> None:
    driver = Driver()
    driver.settle("a")
    for expected in (2, 3, 4):
        driver.settle("a")
        assert driver.group.generation == expected


def test_followers_wait_for_the_leaders_assignment() -> None:
    driver = Driver()
    driver.join("a")
    driver.join("b")
    driver.run(2 * DELAY)
    assert driver.sync("b") is None
    driver.sync("a", assignments=driver.lead())
    assert driver.synced["b"][-1].assignment == Partitions.of([("t", 1)])


def test_who_was_assigned_nothing_hears_so() -> None:
    driver = Driver()
    driver.join("a")
    driver.run(DELAY)
    assert driver.sync("a", assignments={}).assignment == []


def test_a_stable_group_answers_a_sync_at_once() -> None:
    driver = Driver()
    driver.settle("a", "b")
    assert driver.sync("b").assignment == Partitions.of([("t", 1)])


def test_a_sync_in_a_rebalance_is_told_to_join() -> None:
    driver = Driver()
    driver.settle("a", "b")
    driver.leave("b")
    driver.join("c")
    assert driver.group.state is GroupState.PREPARING_REBALANCE
    assert driver.sync("a").code is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_heartbeat_tells_of_a_rebalance() -> None:
    driver = Driver()
    driver.settle("a", "b")
    assert driver.beat("a") is ErrorCode.NONE
    driver.join("c")
    assert driver.beat("a") is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("drift", [-1, 1])
def test_an_illegal_generation_is_refused_everywhere(drift: int) -> None:
    driver = Driver()
    driver.settle("a")
    generation = driver.group.generation + drift
    assert driver.beat("a", generation) is ErrorCode.ILLEGAL_GENERATION
    assert driver.sync("a", generation).code is ErrorCode.ILLEGAL_GENERATION
    offsets = {TopicPartition("t", 0): 5}
    code = driver.coordinator.commit(driver.ids["a"], generation, offsets)
    assert code is ErrorCode.ILLEGAL_GENERATION


def test_an_unknown_member_is_refused_everywhere() -> None:
    driver = Driver()
    driver.settle("a")
    driver.ids["z"] = "z-99999999"
    assert driver.beat("z") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.sync("z").code is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.leave("z") is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.join("z").code is ErrorCode.UNKNOWN_MEMBER_ID
    code = driver.coordinator.commit("z-99999999", 1, {TopicPartition("t", 0): 5})
    assert code is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_rejoin_within_the_rebalance_timeout_is_out() -> None:
    driver = Driver()
    driver.settle("a", "b")
    driver.join("a", rebalance_timeout=20_000)
    for _ in range(12):
        driver.run(5_000)
        if driver.ids["b"] in driver.group.members:
            driver.beat("b")
    assert list(driver.group.members) == [driver.ids["a"]]
    assert driver.group.generation == 2


def test_a_full_group_refuses_another_member() -> None:
    driver = Driver(config=CoordinatorConfig(initial_rebalance_delay=DELAY, max_size=2))
    driver.settle("a", "b")
    assert driver.join("c").code is ErrorCode.GROUP_MAX_SIZE_REACHED


# ---- Static members --------------------------------------------------------------------


def _static(driver: Driver, client: str) -> JoinResponse | None:
    driver.ids.pop(client, None)
    return driver.join(client, instance_id=client)


def _settled_static() -> Driver:
    driver = Driver()
    _static(driver, "s")
    driver.join("a")
    driver.run(2 * DELAY)
    driver.learn_ids()
    driver.sync("a")
    driver.sync("s", instance_id="s", assignments=driver.lead())
    assert driver.group.state is GroupState.STABLE
    return driver


def test_a_static_members_return_causes_no_rebalance() -> None:
    driver = _settled_static()
    old, had = driver.ids["s"], driver.group.members[driver.ids["s"]].assignment
    answer = _static(driver, "s")
    assert driver.group.state is GroupState.STABLE
    assert answer is not None
    assert (answer.code, answer.generation) == (ErrorCode.NONE, 1)
    assert answer.member_id != old
    assert driver.sync("s", instance_id="s").assignment == had


def test_a_returning_static_leader_still_leads_and_skips_the_assignment() -> None:
    driver = _settled_static()
    assert driver.leader == "s"
    answer = _static(driver, "s")
    assert answer is not None
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


def test_a_static_members_former_self_is_fenced() -> None:
    driver = _settled_static()
    old = driver.ids["s"]
    _static(driver, "s")
    driver.ids["old"] = old
    assert driver.beat("old", instance="s") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.sync("old", instance_id="s").code is ErrorCode.FENCED_INSTANCE_ID
    assert driver.join("old", instance_id="s").code is ErrorCode.FENCED_INSTANCE_ID
    assert driver.coordinator.leave(MemberIdentity(old, "s")) == (ErrorCode.FENCED_INSTANCE_ID,)


def test_a_static_member_that_stays_away_is_out_after_its_session() -> None:
    driver = _settled_static()
    for _ in range(5):
        driver.run(SESSION // 4)
        driver.beat("a")
    assert driver.group.static_members == {}


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    driver = _settled_static()
    assert driver.coordinator.leave(MemberIdentity("", "s")) == (ErrorCode.NONE,)
    assert driver.coordinator.leave(MemberIdentity("", "s")) == (ErrorCode.UNKNOWN_MEMBER_ID,)


def test_a_static_member_that_returns_with_another_protocol_causes_a_rebalance() -> None:
    driver = Driver()
    driver.join("s", "range", "sticky", instance_id="s")
    driver.run(DELAY)
    driver.learn_ids()
    driver.sync("s", instance_id="s", assignments={})
    driver.ids.pop("s")
    driver.join("s", "sticky", "range", instance_id="s")
    assert driver.group.state is not GroupState.STABLE
