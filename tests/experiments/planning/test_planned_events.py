"""Rebalances of planned events, and the moves of assignors over them."""

from dataclasses import replace

import pytest

from kassay.experiments.planning.planned_events import (
    forecast_events,
    load_planned_events,
    planned_rebalances,
)
from kassay.experiments.simulation.policies import POLICIES
from kassay.experiments.simulation.script import parse_script
from kassay.experiments.simulation.simulation import simulate
from kassay.reference import Group, Member, Topic
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.errors import InputError


def running_group(partitions: int = 12, members: int = 4, *, static: bool = False) -> Group:
    group = Group(
        id="g",
        topics=(Topic(name="t", partitions=partitions), Topic(name="u", partitions=5)),
        members=tuple(
            Member(id=f"pod-{n}", subscription=("t",), instance_id=f"pod-{n}" if static else None)
            for n in range(members)
        ),
    )
    return rejoin(group, assign(group, "sticky"), generation=4)


@pytest.fixture
def rebalances_of(tmp_path):
    def rebalances(events: str, group: Group | None = None):
        group = running_group() if group is None else group
        file = tmp_path / "events.yaml"
        file.write_text(events)
        return planned_rebalances(group, load_planned_events(file, group))

    return rebalances


def steps(rebalances):
    return [(one.at // 1000, len(one.group.members), one.events) for one in rebalances]


def test_a_restart_is_a_leave_and_a_join_with_a_new_id(rebalances_of):
    found = rebalances_of("events: [{at: 5s, do: restart, member: pod-1, for: 10s}]")
    assert steps(found) == [(5, 3, ("pod-1 leaves",)), (15, 4, ("pod-1 joins",))]
    assert [name for name, client in found[1].clients.items() if client == "pod-1"] == ["pod-1-1"]


def test_static_members_leave_only_after_their_session(rebalances_of):
    text = (
        "settings: {session: 30s}\n"
        "events: [{at: 0s, do: restart, member: pod-1, for: 29s},"
        " {at: 60s, do: restart, member: pod-2, for: 40s}]"
    )
    found = rebalances_of(text, running_group(static=True))
    assert steps(found) == [(90, 3, ("pod-2 leaves",)), (100, 4, ("pod-2 joins",))]


def test_a_crashed_member_leaves_after_its_session(rebalances_of):
    found = rebalances_of("events: [{at: 5s, do: crash, member: pod-1}]")
    assert steps(found) == [(50, 3, ("pod-1 leaves",))]


def test_events_at_the_same_time_are_one_rebalance(rebalances_of):
    found = rebalances_of(
        "events: [{at: 0s, do: subscribe, member: 'pod-*', topics: [t, u]},"
        " {at: 9s, do: grow, topic: u, partitions: 8}]"
    )
    assert [(at, members) for at, members, _ in steps(found)] == [(0, 4), (9, 4)]
    assert len(found[0].events) == 4
    assert found[1].group.topic_table()["u"].partitions == 8


def test_the_moves_of_an_assignor_equal_those_of_the_simulated_protocol(rebalances_of):
    events = 'events: [{at: 60s, do: restart, member: "pod-*", for: 9s, every: 60s}]'
    script = "{topics: {t: 12}, members: [{id: pod-, count: 4, topics: [t]}], until: 10m, "
    simulated = simulate(parse_script(f"{script}{events}}}", "s"), POLICIES["sticky"])
    found = forecast_events(rebalances_of(events), assignors=["sticky"])
    assert found.courses[0].moves == simulated.moves == 12


def test_no_even_course_has_fewer_moves_than_hindsight(rebalances_of):
    found = forecast_events(
        rebalances_of(
            "events: [{at: 0s, do: restart, member: 'pod-*', for: 5s, every: 20s},"
            " {at: 9m, do: subscribe, member: 'pod-*', topics: [t, u], every: 20s},"
            " {at: 20m, do: leave, member: pod-3}]"
        )
    )
    assert found.fewest.is_optimal
    assert all(one.moves >= found.fewest.moves for one in found.courses if not one.uneven)
    assert {one.name for one in found.courses if one.uneven} >= {"range", "server-range"}


def test_weights_limit_the_maximum_load(rebalances_of):
    group = running_group()
    topics = (replace(group.topics[0], weights=tuple(range(12))), group.topics[1])
    weighted = replace(group, topics=topics)
    rebalances = rebalances_of(
        "events: [{at: 0s, do: leave, member: pod-1}, "
        "{at: 9s, do: grow, topic: t, partitions: 14}]",
        weighted,
    )
    grown = rebalances[1].group.topic_table()["t"].weights
    assert grown == (*range(12), 6, 6)
    found = forecast_events(rebalances)
    assert found.fewest.is_optimal
    assert [one.value for one in found.fewest.load_limits] == [22, 26]
    assert all(one.moves >= found.fewest.moves for one in found.courses if not one.uneven)
    assert {one.name for one in found.courses if one.uneven} >= {"range"}


def test_speeds_must_be_known(rebalances_of):
    group = running_group()
    fast = replace(group.members[0], speed=3)
    group = replace(group, members=(fast, *group.members[1:]))
    restart = rebalances_of("events: [{at: 0s, do: restart, member: pod-0, for: 1s}]", group)
    assert [one.speed for one in restart[1].group.members] == [1, 1, 1, 3]
    found = forecast_events(restart, assignors=["sticky"])
    assert found.fewest.is_optimal
    assert found.rule == "the minimum of the maximum load"
    with pytest.raises(InputError, match="the speed of the new member 'p9' is unknown"):
        rebalances_of("{events: [{at: 0s, do: join, member: {id: p9, topics: [t]}}]}", group)
