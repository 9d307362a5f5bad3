"""Forecasts of rolling restarts, other assignors, static members and the consumer protocol."""

import random
from dataclasses import replace

import pytest

from kassay.experiments.planning.predictions import (
    Forecast,
    RestartSettings,
    current_assignor,
    simulate_configurations,
)
from kassay.reference import Group, Member, Topic
from kassay.reference.assignors import assign
from kassay.reference.model.assignment import rejoin
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import GroupStatus, Protocol


def running_group(assignor: str, members: int = 6, partitions: int = 24) -> Group:
    protocol = Protocol.CONSUMER if assignor in ("uniform", "server-range") else Protocol.CLASSIC
    name = "range" if assignor == "server-range" else assignor
    group = Group(
        id="g",
        topics=(Topic(name="t", partitions=partitions), Topic(name="u", partitions=7)),
        members=tuple(Member(id=f"pod-{n}", subscription=("t", "u")) for n in range(members)),
        status=GroupStatus(state="Stable", protocol=protocol, assignor=name),
    )
    return replace(rejoin(group, assign(group, assignor), generation=9), status=group.status)


def forecast(group: Group, *, current: str | None = None, **options) -> list[Forecast]:
    return simulate_configurations(group, current_assignor(group, current), **options)


def by_name(forecasts: list[Forecast]) -> dict[str, Forecast]:
    return {one.configuration.name: one for one in forecasts}


def test_a_restart_of_n_members_causes_two_rebalances_per_batch():
    group = running_group("range")
    for size, batches in ((1, 6), (2, 3), (4, 2), (6, 1)):
        (first, *_) = forecast(group, assignors=(), batch_sizes=(size,))
        expected = 2 * batches if size < 6 else 1  # no member is left to rebalance
        assert (first.batch_size, first.change, first.restart.rebalances) == (size, None, expected)


def test_sticky_makes_only_the_moves_back_to_the_restarted_members():
    group = running_group("sticky", members=4, partitions=17)
    restart = forecast(group, assignors=())[0].restart
    # 24 partitions; each restarted member gets 6 partitions back.
    assert (restart.rebalances, restart.moves) == (8, 24)


def test_static_members_restart_without_a_rebalance_or_move():
    found = by_name(forecast(running_group("range"), assignors=()))
    static = found["range, static members"]
    assert static.change.rebalances == 12
    assert (static.restart.rebalances, static.restart.moves) == (0, 0)
    # Each of the 31 partitions waits for the downtime of its member, and little more.
    assert 31 * 10_000 <= static.restart.unowned_ms < 31 * 10_100


def test_static_members_that_are_too_slow_cause_rebalances():
    settings = RestartSettings(downtime=20_000, session=10_000)
    found = by_name(forecast(running_group("range"), assignors=(), settings=settings))
    assert found["range, static members"].restart.rebalances == 12


_CHANGES = [
    (assignor, target)
    for assignor in ("range", "roundrobin", "sticky", "cooperative-sticky")
    for target in ("sticky", "cooperative-sticky", "uniform", "server-range")
    if assignor != target
]


@pytest.mark.parametrize(("assignor", "target"), _CHANGES)
def test_after_a_change_the_group_has_the_loads_of_the_new_assignor(assignor, target):
    group = running_group(assignor)
    results = by_name(forecast(group, assignors=(target,)))
    found = next(one for name, one in results.items() if name.split(",")[0] == target)
    fresh = assign(rejoin(group, {}, generation=-1), target)
    assert found.makespan == max(fresh.counts().values())
    steps = 2 if target == "cooperative-sticky" else 1
    assert len(found.configuration.steps) == steps
    assert found.change.rebalances >= 12 * steps
    assert found.restart.rebalances >= 12


@pytest.mark.parametrize("seed", range(12))
def test_random_groups_end_completely_consumed_in_each_configuration(seed):
    draw = random.Random(seed)
    assignor = draw.choice(["range", "sticky", "cooperative-sticky", "uniform"])
    group = running_group(assignor, members=draw.randint(2, 7), partitions=draw.randint(1, 30))
    settings = RestartSettings(
        downtime=draw.choice([0, 500, 10_000, 60_000]),
        pause=draw.choice([100, 2_000, 30_000]),
        seed=seed,
    )
    total = group.partition_count
    for one in forecast(group, batch_sizes=(draw.randint(1, 3),), settings=settings):
        assert -(-total // len(group.members)) <= one.makespan <= total
        assert one.restart.unowned_ms >= 0


def test_groups_of_the_consumer_protocol_have_no_change_of_the_assignor():
    names = by_name(forecast(running_group("uniform")))
    assert list(names) == ["uniform, current", "uniform, static members"]
    with pytest.raises(UsageError, match="stops the whole group"):
        forecast(running_group("uniform"), assignors=("sticky",))


def test_an_unknown_current_assignor_is_an_input_error():
    group = running_group("range")
    with pytest.raises(InputError, match="give --current"):
        forecast(replace(group, status=GroupStatus()))
    assert forecast(replace(group, status=GroupStatus()), current="sticky", assignors=())
    with pytest.raises(InputError, match="cannot simulate the assignor 'own'"):
        forecast(replace(group, status=GroupStatus(assignor="own")))
