"""Simulation of scripts: rebalances, moves, unowned time and messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kassay.experiments.simulation import script as scripts
from kassay.experiments.simulation.assignor_policies import POLICIES
from kassay.experiments.simulation.run_simulation import Simulation, simulate
from kassay.experiments.simulation.script import BUILT_IN_SCRIPTS, load_script
from kassay.experiments.simulation.simulation_result import cost_of

ALL = tuple(POLICIES)


def _script(*events: scripts.ScriptEvent, members: int = 3, **fields: object) -> scripts.Script:
    script = scripts.Script(
        name="test",
        topics=(scripts.TopicPlan(name="t", partitions=12, rate=10),),
        members=tuple(scripts.MemberPlan(id=f"c{n}", topics=("t",)) for n in range(members)),
        events=events,
        until=300_000,
    )
    return replace(script, **fields)


def _unowned(simulation: Simulation) -> list[tuple[str, int]]:
    """Return the partitions that no running consumer owns."""
    owned = {tp for one in simulation.consumers.values() if one.is_up for tp in one.owned}
    topics = simulation.environment.topics.values()
    every = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    return [tp for tp in every if tp not in owned]


@pytest.mark.parametrize("policy", ALL)
@pytest.mark.parametrize("scenario", BUILT_IN_SCRIPTS)
def test_built_in_scripts_end_stable_and_fully_consumed(scenario: str, policy: str) -> None:
    simulation = Simulation(load_script(scenario), POLICIES[policy])
    result = simulation.run()
    assert simulation.broker.state == "Stable"
    assert _unowned(simulation) == []
    assert result.lag < 60 * 1_500


def test_partitions_of_a_crashed_member_are_unowned_until_the_session_timeout() -> None:
    script = _script(scripts.ScriptEvent(at=60_000, action=scripts.Action.CRASH, member="c1"))
    result = simulate(script, POLICIES["cooperative-sticky"])
    # Four partitions; the last heartbeat was at most 3.1 s before the crash.
    assert 4 * 41_000 < result.unowned_ms < 4 * 50_000
    assert result.unowned_messages == pytest.approx(result.unowned_ms // 100, abs=20)


def test_messages_since_the_last_commit_are_read_again_after_a_crash() -> None:
    script = _script(scripts.ScriptEvent(at=60_000, action=scripts.Action.CRASH, member="c1"))
    result = simulate(script, POLICIES["sticky"])
    assert 0 < result.reread_messages <= 4 * 10 * 5
    leaves = _script(scripts.ScriptEvent(at=60_000, action=scripts.Action.LEAVE, member="c1"))
    assert simulate(leaves, POLICIES["sticky"]).reread_messages == 0


def test_eager_revokes_all_partitions_and_cooperative_only_moved_ones() -> None:
    member = scripts.MemberPlan(id="d", topics=("t",))
    script = _script(
        scripts.ScriptEvent(at=60_000, action=scripts.Action.JOIN, member="d", new_member=member)
    )
    interrupted = {}
    for name in ("sticky", "cooperative-sticky"):
        simulation = Simulation(script, POLICIES[name])
        simulation.run()
        unowned_ms = simulation.environment.ownership.unowned_ms_by_partition()["t"]
        interrupted[name] = sum(time > 0 for time in unowned_ms)
    assert interrupted == {"sticky": 12, "cooperative-sticky": 3}


def test_cooperative_rebalances_with_moves_take_two_rounds() -> None:
    member = scripts.MemberPlan(id="d", topics=("t",))
    script = _script(
        scripts.ScriptEvent(at=60_000, action=scripts.Action.JOIN, member="d", new_member=member)
    )
    result = simulate(script, POLICIES["cooperative-sticky"])
    assert [len(sequence) for sequence in result.sequences()] == [1, 2]
    assert not result.completed[1].complete


def test_static_leader_that_was_down_never_detects_a_grown_topic() -> None:
    grow = scripts.ScriptEvent(at=62_000, action=scripts.Action.GROW, topic="t", partitions=14)
    restart = scripts.ScriptEvent(
        at=60_000, action=scripts.Action.RESTART, member="c0", duration=8_000
    )
    members = tuple(scripts.MemberPlan(id=f"c{n}", topics=("t",), static=True) for n in range(2))
    unowned = {}
    for events in ((grow,), (restart, grow)):
        script = replace(
            _script(*events, settings=scripts.Settings(metadata=10_000)), members=members
        )
        simulation = Simulation(script, POLICIES["sticky"])
        simulation.run()
        unowned[events] = [number for _, number in _unowned(simulation)]
    assert unowned == {(grow,): [], (restart, grow): [12, 13]}


def test_costs_are_measured_from_the_first_event() -> None:
    script = _script(scripts.ScriptEvent(at=60_000, action=scripts.Action.LEAVE, member="c1"))
    result = simulate(script, POLICIES["roundrobin"])
    cost = cost_of(result, POLICIES["roundrobin"], measured_from=script.measured_from)
    assert cost.rebalances == 1
    assert cost.needed_moves == 0
    assert cost.unnecessary_moves == cost.result.moves > 0
    assert cost.proven


def test_optimum_makes_no_unnecessary_moves() -> None:
    script = load_script("scale-out")
    for name in ("optimum-eager", "optimum-cooperative", "optimum-consumer"):
        cost = cost_of(
            simulate(script, POLICIES[name]), POLICIES[name], measured_from=script.measured_from
        )
        assert (cost.unnecessary_moves, cost.imbalance_gap) == (0, 0)
        assert cost.result.moves == cost.needed_moves
