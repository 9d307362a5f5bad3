"""What groups go through in a script, and what it is booked as."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from kassay.experiments.simulation.cost import cost_of
from kassay.experiments.simulation.policies import POLICIES, GroupProtocol, Policy
from kassay.experiments.simulation.scenarios import SCENARIOS, load_script
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    Settings,
    TopicPlan,
)
from kassay.experiments.simulation.simulation import Simulation, simulate
from kassay.experiments.simulation.timeline_figure import draw_timeline
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignor_result import LivelockError
from kassay.reference.model.group import Group

ALL = tuple(POLICIES)


def _script(*events: ScriptEvent, members: int = 3, **fields: object) -> Script:
    plain = Script(
        name="test",
        topics=(TopicPlan(name="t", partitions=12, rate=10),),
        members=tuple(MemberPlan(id=f"c{n}", topics=("t",)) for n in range(members)),
        events=events,
        until=300_000,
    )
    return replace(plain, **fields)


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_ready_made_scripts_end_stable_and_fully_consumed(scenario: str, policy: str) -> None:
    world = Simulation(load_script(scenario), POLICIES[policy])
    world.run()
    assert world.broker.state == "Stable"
    assert world.ledger.unowned(world.topics) == []
    assert world.traffic.lag(world.clock.now) < 60 * 1_500


def test_a_static_members_restart_costs_no_rebalance() -> None:
    history = simulate(load_script("rolling-restart-static"), POLICIES["sticky"])
    assert len(history.settled) == 1
    assert history.moves == 0


def test_a_crash_stops_what_the_member_had_until_its_session_ends() -> None:
    script = _script(ScriptEvent(at=60_000, act=Action.CRASH, member="c1"))
    history = simulate(script, POLICIES["cooperative-sticky"])
    # Four partitions; the session began with the last heartbeat, at most 3.1 s before.
    assert 4 * 41_000 < history.stopped_ms < 4 * 50_000
    assert history.unread == pytest.approx(history.stopped_ms // 100, abs=20)


def test_what_was_read_since_the_last_commit_is_read_again_after_a_crash() -> None:
    script = _script(ScriptEvent(at=60_000, act=Action.CRASH, member="c1"))
    history = simulate(script, POLICIES["sticky"])
    assert 0 < history.rereads <= 4 * 10 * 5
    leaves = _script(ScriptEvent(at=60_000, act=Action.LEAVE, member="c1"))
    assert simulate(leaves, POLICIES["sticky"]).rereads == 0


def test_eager_stops_everything_and_cooperative_only_what_moves() -> None:
    joins = MemberPlan(id="d", topics=("t",))
    script = _script(ScriptEvent(at=60_000, act=Action.JOIN, member="d", joins=joins))
    stopped = {
        name: {
            stretch.partition
            for stretch in simulate(script, POLICIES[name], keep=True).stretches
            if stretch.end > 60_000 and stretch.end < 120_000
        }
        for name in ("sticky", "cooperative-sticky")
    }
    assert len(stopped["sticky"]) == 12
    assert len(stopped["cooperative-sticky"]) == 3


def test_cooperative_rebalancing_takes_two_rounds_where_something_moves() -> None:
    joins = MemberPlan(id="d", topics=("t",))
    script = _script(ScriptEvent(at=60_000, act=Action.JOIN, member="d", joins=joins))
    history = simulate(script, POLICIES["cooperative-sticky"])
    assert [len(episode) for episode in history.episodes()] == [1, 2]
    assert not history.settled[1].complete


def _stuck(group: Group) -> Assignment:
    if len(group.members) > 3:
        raise LivelockError(Assignment({}), 2, ())
    return POLICIES["range"].assign(group)


def test_an_assignor_that_never_returns_costs_one_leader_after_the_other() -> None:
    joins = MemberPlan(id="d", topics=("t",))
    script = _script(
        ScriptEvent(at=60_000, act=Action.JOIN, member="d", joins=joins),
        settings=Settings(max_poll=20_000),
    )
    history = simulate(script, Policy("stuck", GroupProtocol.EAGER, _stuck))
    assert any(step.assignment is None for step in history.steps)
    assert len(history.settled[-1].group.members) == 3


def test_a_static_leader_that_was_away_never_notices_a_grown_topic() -> None:
    grow = ScriptEvent(at=62_000, act=Action.GROW, topic="t", partitions=14)
    away = ScriptEvent(at=60_000, act=Action.RESTART, member="c0", lasts=8_000)
    members = tuple(MemberPlan(id=f"c{n}", topics=("t",), static=True) for n in range(2))
    left_out = {}
    for events in ((grow,), (away, grow)):
        script = replace(_script(*events, settings=Settings(metadata=10_000)), members=members)
        world = Simulation(script, POLICIES["sticky"])
        world.run()
        left_out[events] = [tp.partition for tp in world.ledger.unowned(["t"])]
    assert left_out == {(grow,): [], (away, grow): [12, 13]}


def test_costs_are_measured_from_the_first_event_on() -> None:
    script = _script(ScriptEvent(at=60_000, act=Action.LEAVE, member="c1"))
    history = simulate(script, POLICIES["roundrobin"])
    cost = cost_of(history, POLICIES["roundrobin"], begins=script.begins)
    assert cost.rebalances == 1
    assert cost.needed == 0
    assert cost.unnecessary == cost.moves > 0
    assert cost.proven


def test_the_optimum_never_moves_more_than_is_needed() -> None:
    script = load_script("scale-out")
    for name in ("optimum-eager", "optimum-cooperative", "optimum-consumer"):
        cost = cost_of(simulate(script, POLICIES[name]), POLICIES[name], begins=script.begins)
        assert (cost.unnecessary, cost.imbalance_gap) == (0, 0)
        assert cost.moves == cost.needed


def test_the_same_history_draws_the_same_picture(tmp_path) -> None:
    script = load_script("crash")
    for name in ("one.svg", "two.svg"):
        draw_timeline(simulate(script, POLICIES["sticky"], keep=True), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("policy", ["range", "uniform"])
def test_a_member_that_has_started_meanwhile_is_not_started_again(policy: str) -> None:
    script = _script(ScriptEvent(at=5_000, act=Action.RESTART, member="c0", lasts=30_000))
    late, *others = script.members
    history = simulate(
        replace(script, members=(replace(late, starts=20_000), *others)), POLICIES[policy]
    )
    ids = {member for step in history.steps for member, name in step.names.items() if name == "c0"}
    assert len(ids) == 1


def test_a_run_leaves_the_garbage_collector_as_it_was() -> None:
    before = gc.get_threshold()
    during: list[tuple[int, int, int]] = []

    def assign(group: Group) -> Assignment:
        during.append(gc.get_threshold())
        return POLICIES["range"].assign(group)

    simulate(_script(), Policy("range", GroupProtocol.EAGER, assign))
    assert during[0][0] > before[0]
    assert gc.get_threshold() == before
